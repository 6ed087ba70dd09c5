//! `--checkpoint` and `--resume` of a search in several processes.

use std::path::PathBuf;

use preempt_cluster::Cluster;
use preempt_explore::{Outcome, Refusal, Saved, Search, ShardKeeper, ShardedCheckpoints};
use preempt_machine::Machine;
use preempt_report::checkpoint::INTERVAL;
use preempt_report::shards::{ShardDirectory, ShardFiles};

use crate::checkpoint::{CheckpointArgs, open, report};
use crate::progress::Watcher;
use crate::{Refused, output};

/// The checkpoints of one process of a cluster.
pub struct ClusterCheckpoints {
    program: u64,
    files: Option<ShardFiles>,
    /// The main file to resume from, and its shards.
    saved: Option<(Saved, ShardDirectory)>,
}

impl ClusterCheckpoints {
    /// Opens the checkpoint to resume, which has to be one of this search. `None` without
    /// `--checkpoint` and `--resume`. `program` is the hash of the program that is searched.
    pub fn open(
        args: &CheckpointArgs,
        (program, search): (u64, &Search),
        process: usize,
    ) -> Result<Option<ClusterCheckpoints>, Refused> {
        args.check()?;
        if !args.are_used() {
            return Ok(None);
        }
        let saved = args.resume.as_deref().map(|path| {
            let saved = open(path)?;
            let fits = saved.fits_distributed(program, search.plan());
            fits.map_err(|refusal| Refused::by_engine(&refusal))?;
            Ok::<_, Refused>((saved, ShardDirectory::of(path)))
        });
        let saved = saved.transpose()?;
        if let Some(path) = &args.checkpoint {
            output::writable(path, "checkpoints")?;
        }
        let interval = args.checkpoint_every.unwrap_or(INTERVAL);
        let files = |path: PathBuf| ShardFiles::new(path, interval, process);
        let files = args.checkpoint.clone().map(files);
        Ok(Some(ClusterCheckpoints { program, files, saved }))
    }

    /// Searches, from the checkpoint if there is one.
    pub fn run(
        &mut self,
        search: &Search,
        machine: Machine,
        watcher: &Watcher,
        cluster: &Cluster,
    ) -> Result<(Outcome, Machine), Refusal> {
        let keeper = self.files.as_ref().map(|files| files as &dyn ShardKeeper);
        let checkpoints = ShardedCheckpoints::of(self.program, keeper);
        match self.saved.take() {
            Some((saved, shards)) => {
                let checkpoints = checkpoints.resume(saved, &shards);
                search.run_distributed_with(machine, watcher, cluster, checkpoints)
            }
            None => search.run_distributed_with(machine, watcher, cluster, checkpoints),
        }
    }

    /// Prints the command that resumes the search, and errors of writing.
    pub fn finish(&self, outcome: &Outcome) {
        if let Some(files) = &self.files {
            report(files.main(), outcome);
        }
    }
}
