//! Checkpoints of several processes as files.
//!
//! The main file is written like the [checkpoint of one process](crate::checkpoint). The shards are
//! in a directory beside it, `FILE.shards`, and are named `EPOCH-PROCESS`. All processes must see
//! the same directory: on several machines it has to be on a shared file system.
//!
//! A shard is synchronised to disk before its process reports it, and process 0 replaces the main
//! file only after all processes have reported theirs. Then it removes the shards of other epochs.
//! So whenever a process is killed, the main file is complete, and so are the shards that it names.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use preempt_explore::{Keeper, ShardBytes, ShardKeeper, ShardSource, WriteBytes};

use crate::checkpoint::{self, CheckpointFile};

/// The shards of a main file.
#[derive(Debug)]
pub struct ShardDirectory(PathBuf);

impl ShardDirectory {
    /// The directory with the shards of the main file at `path`.
    pub fn of(path: &Path) -> ShardDirectory {
        ShardDirectory(checkpoint::beside(path, ".shards"))
    }

    fn path(&self, epoch: u64, process: usize) -> PathBuf {
        self.0.join(format!("{epoch}-{process}"))
    }

    /// The files of shards, complete or not, with their epochs.
    fn files(&self) -> Vec<(u64, PathBuf)> {
        let entries = fs::read_dir(&self.0).into_iter().flatten().flatten();
        let epoch = |path: PathBuf| {
            let epoch = path.file_name()?.to_str()?.split_once('-')?.0.parse().ok()?;
            Some((epoch, path))
        };
        entries.filter_map(|entry| epoch(entry.path())).collect()
    }

    /// Removes the shards of the epochs that are not wanted. A file that cannot be removed does
    /// no harm.
    fn remove(&self, is_wanted: impl Fn(u64) -> bool) {
        for (_, path) in self.files().into_iter().filter(|(epoch, _)| !is_wanted(*epoch)) {
            let _ = fs::remove_file(path);
        }
    }
}

impl ShardSource for ShardDirectory {
    fn open(&self, epoch: u64, process: usize) -> io::Result<Box<dyn ShardBytes>> {
        Ok(Box::new(File::open(self.path(epoch, process))?))
    }
}

/// The files of the checkpoints of several processes, as one of them uses them.
#[derive(Debug)]
pub struct ShardFiles {
    main: CheckpointFile,
    directory: ShardDirectory,
    /// Whether this is process 0.
    leads: bool,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The last epoch that was used.
    last: Option<u64>,
    /// When this process began to write its last shard.
    began: Instant,
}

impl ShardFiles {
    /// Writes the shards of `process` beside `path`, and in process 0 the main files to `path`,
    /// one after each `interval`.
    pub fn new(path: PathBuf, interval: Duration, process: usize) -> ShardFiles {
        let directory = ShardDirectory::of(&path);
        let state = Mutex::new(State { last: None, began: Instant::now() });
        let main = CheckpointFile::new(path, interval);
        ShardFiles { main, directory, leads: process == 0, state }
    }

    /// The main file.
    pub fn main(&self) -> &CheckpointFile {
        &self.main
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().expect("mutex poisoned")
    }
}

impl Keeper for ShardFiles {
    fn is_due(&self) -> bool {
        self.leads && self.main.is_due()
    }

    fn keep(&self, write: WriteBytes<'_>) {
        self.main.keep(write);
    }
}

impl ShardKeeper for ShardFiles {
    fn next_epoch(&self) -> u64 {
        let mut state = self.state();
        let kept = || self.directory.files().into_iter().map(|(epoch, _)| epoch).max();
        let last = *state.last.get_or_insert_with(|| kept().unwrap_or(0));
        last.saturating_add(1)
    }

    fn keep_shard(&self, epoch: u64, process: usize, write: WriteBytes<'_>) -> io::Result<()> {
        *self.state() = State { last: Some(epoch), began: Instant::now() };
        fs::create_dir_all(&self.directory.0)?;
        checkpoint::replace(&self.directory.path(epoch, process), write)
    }

    fn commit(&self, epoch: u64, shards: usize, write: WriteBytes<'_>) {
        let missing = (0..shards).find(|&shard| !self.directory.path(epoch, shard).exists());
        if let Some(process) = missing {
            return self.abandon(
                epoch,
                format!("process {process} writes to another directory: it must be a shared one"),
            );
        }
        let began = self.state().began;
        let is_kept = self.main.keep_since(began, write);
        self.directory.remove(|other| (other == epoch) == is_kept);
    }

    fn abandon(&self, epoch: u64, why: String) {
        self.main.record(self.state().began, Err(io::Error::other(why)));
        self.directory.remove(|other| other != epoch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(files: &ShardFiles) -> Vec<String> {
        let mut names: Vec<String> = files
            .directory
            .files()
            .iter()
            .map(|(_, path)| path.file_name().expect("a file").to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_main_file_names_shards_that_are_there() {
        let folder = std::env::temp_dir().join(format!("preempt-{}-shards", std::process::id()));
        fs::create_dir_all(&folder).expect("there is a folder for temporary files");
        let path = folder.join("c");
        let hour = Duration::from_secs(3600);
        let process = |number: usize| ShardFiles::new(path.clone(), hour, number);
        let (zero, one) = (process(0), process(1));
        let shards = |epoch: u64| {
            for (number, files) in [&zero, &one].iter().enumerate() {
                let written = files.keep_shard(epoch, number, &|to| to.write_all(b"states"));
                written.expect("it can be written");
            }
        };
        assert_eq!(zero.next_epoch(), 1);
        shards(1);
        zero.commit(1, 2, &|to| to.write_all(b"first"));
        assert_eq!((names(&zero), zero.next_epoch()), (vec!["1-0".into(), "1-1".into()], 2));
        shards(2);
        assert_eq!(names(&zero), ["1-0", "1-1", "2-0", "2-1"], "both exist until the commit");
        zero.commit(2, 2, &|to| to.write_all(b"second"));
        assert_eq!(names(&zero), ["2-0", "2-1"]);
        // A main file that cannot be written leaves the one before, and its shards.
        shards(3);
        zero.commit(3, 2, &|_| Err(io::Error::other("no room")));
        assert_eq!(names(&zero), ["2-0", "2-1"]);
        assert_eq!(fs::read(&path).expect("it is there"), b"second");
        // So does a process that writes to another directory, or cannot write.
        zero.keep_shard(4, 0, &|to| to.write_all(b"states")).expect("it can be written");
        zero.commit(4, 2, &|to| to.write_all(b"third"));
        assert!(zero.main().error().is_some_and(|why| why.contains("another directory")));
        shards(5);
        zero.abandon(5, "process 1: the disk is full".into());
        assert_eq!(names(&zero), ["2-0", "2-1"]);
        assert_eq!(fs::read(&path).expect("it is there"), b"second");
        assert_eq!((zero.main().written(), zero.next_epoch()), (2, 6));
        // Another search in the same place does not use the epochs of the first one.
        assert_eq!(process(0).next_epoch(), 3);
        fs::remove_dir_all(folder).expect("it is ours");
    }
}
