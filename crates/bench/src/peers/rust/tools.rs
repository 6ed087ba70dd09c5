//! The tools, and how each explores a body in each search mode.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use preempt::{Check, Count, FailureKind, Memory, Order, Reduction};

use super::meter::{self, Ended};
use super::sources;

/// A tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Tool {
    /// This library.
    Preempt,
    /// loom.
    Loom,
    /// shuttle.
    Shuttle,
}

/// How a tool searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// All executions, with the tool's reduction if it has one.
    All,
    /// All executions, one by one, without a reduction.
    Dfs,
    /// Like [`Mode::All`], with at most this many preemptions.
    Bound(u32),
    /// All execution graphs under weak memory, each once.
    Graphs,
    /// Random schedules from this seed.
    Random(u64),
    /// Random priorities (depth 3) from this seed.
    Pct(u64),
}

/// The depth of the random priorities: errors that need two changes of priority.
pub const DEPTH: u32 = 3;

impl Mode {
    /// The mode as an argument of the command line.
    pub fn word(self) -> String {
        match self {
            Mode::All => "all".into(),
            Mode::Dfs => "dfs".into(),
            Mode::Graphs => "graphs".into(),
            Mode::Bound(bound) => format!("bound:{bound}"),
            Mode::Random(seed) => format!("random:{seed}"),
            Mode::Pct(seed) => format!("pct:{seed}"),
        }
    }

    /// The mode as a word of a report.
    pub fn name(self) -> String {
        match self {
            Mode::All => "unbounded".into(),
            Mode::Dfs => "dfs".into(),
            Mode::Graphs => "graphs".into(),
            Mode::Bound(bound) => format!("≤{bound}"),
            Mode::Random(_) => "random".into(),
            Mode::Pct(_) => "pct".into(),
        }
    }

    /// Parses the result of [`word`](Mode::word).
    pub fn parse(word: &str) -> Result<Mode> {
        let (name, number) = word.split_once(':').unwrap_or((word, "0"));
        Ok(match name {
            "all" => Mode::All,
            "dfs" => Mode::Dfs,
            "graphs" => Mode::Graphs,
            "bound" => Mode::Bound(number.parse()?),
            "random" => Mode::Random(number.parse()?),
            "pct" => Mode::Pct(number.parse()?),
            _ => bail!("{word} is not a search mode"),
        })
    }
}

/// Explores a body once. The counts of tools that count executions are used; for the others each
/// call of the body counts.
pub fn explore(tool: Tool, mode: Mode, name: &str, cap: f64) -> Result<Ended> {
    match tool {
        Tool::Preempt => {
            preempt(mode, sources::of_preempt::body(name).context("no such test")?, cap)
        }
        #[cfg(feature = "peers")]
        Tool::Loom => loom(mode, sources::of_loom::body(name).context("no such test")?, cap),
        #[cfg(feature = "peers")]
        Tool::Shuttle => {
            shuttle(mode, sources::of_shuttle::body(name).context("no such test")?, cap)
        }
        #[cfg(not(feature = "peers"))]
        Tool::Loom | Tool::Shuttle => bail!("{}", super::NOT_BUILT),
    }
}

/// The check that is Preempt in this mode.
///
/// By default Preempt also counts distinct traces. In modes without a reduction it counts only
/// executions, as the peers do.
pub fn check(mode: Mode) -> Check {
    match mode {
        Mode::All => Check::new().unbounded(),
        Mode::Bound(bound) => Check::new().bound(bound),
        Mode::Dfs => Check::new().unbounded().order(Order::Executions).count(Count::Executions),
        Mode::Graphs => Check::new().memory(Memory::Weak).unbounded().reduce(Reduction::Graphs),
        Mode::Random(seed) => {
            Check::new().order(Order::Random).seed(seed).runs(u64::MAX).count(Count::Executions)
        }
        Mode::Pct(seed) => Check::new()
            .order(Order::Pct { depth: DEPTH })
            .seed(seed)
            .runs(u64::MAX)
            .count(Count::Executions),
    }
}

fn preempt(mode: Mode, body: fn(), cap: f64) -> Result<Ended> {
    let outcome = check(mode).time(Duration::from_secs_f64(cap)).run(|| {
        meter::start();
        body();
    });
    let tally = outcome.tally.context("a search over executions")?;
    // Preempt counts complete executions, and one with a failing step is not complete. The peers
    // count that one too.
    let cut_short = outcome.findings.iter().any(|finding| {
        !matches!(finding.failure.kind, FailureKind::Deadlock | FailureKind::Livelock)
    });
    meter::counted(tally.executions + u64::from(cut_short), tally.steps);
    Ok(match outcome.findings.first() {
        Some(finding) => {
            Ended::Failed(format!("{}: {}", finding.failure.kind.word(), finding.failure.message))
        }
        None if outcome.stopped.is_some() => Ended::Capped,
        None => Ended::Complete,
    })
}

/// Runs a body that panics when it fails.
#[cfg(feature = "peers")]
fn caught(f: impl FnOnce()) -> Ended {
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(f)) {
        Ok(()) => Ended::Complete,
        Err(panic) => Ended::Failed(match panic.downcast_ref::<&str>() {
            Some(text) => (*text).to_owned(),
            None => panic.downcast_ref::<String>().cloned().unwrap_or_default(),
        }),
    }
}

#[cfg(feature = "peers")]
fn loom(mode: Mode, body: fn(), cap: f64) -> Result<Ended> {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = match mode {
        Mode::All => None,
        Mode::Bound(bound) => Some(bound as usize),
        Mode::Dfs | Mode::Graphs | Mode::Random(_) | Mode::Pct(_) => {
            bail!("loom has no mode {mode:?}")
        }
    };
    meter::limit(cap);
    Ok(caught(|| {
        builder.check(move || {
            meter::execution();
            body();
        });
    }))
}

#[cfg(feature = "peers")]
fn shuttle(mode: Mode, body: fn(), cap: f64) -> Result<Ended> {
    use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, Scheduler};

    let scheduler: Box<dyn Scheduler + Send> = match mode {
        Mode::Dfs => Box::new(DfsScheduler::new(None, false)),
        Mode::Random(seed) => Box::new(RandomScheduler::new_from_seed(seed, usize::MAX)),
        Mode::Pct(seed) => Box::new(PctScheduler::new_from_seed(seed, DEPTH as usize, usize::MAX)),
        Mode::All | Mode::Graphs | Mode::Bound(_) => bail!("shuttle has no mode {mode:?}"),
    };
    let mut config = shuttle::Config::new();
    config.failure_persistence = shuttle::FailurePersistence::None;
    config.silence_warnings = true;
    meter::limit(cap);
    Ok(caught(|| {
        shuttle::Runner::new(Counted(scheduler), config).run(move || {
            meter::execution();
            body();
        });
    }))
}

/// A scheduler of shuttle whose choices are counted.
#[cfg(feature = "peers")]
struct Counted(Box<dyn shuttle::scheduler::Scheduler + Send>);

#[cfg(feature = "peers")]
impl shuttle::scheduler::Scheduler for Counted {
    fn new_execution(&mut self) -> Option<shuttle::scheduler::Schedule> {
        self.0.new_execution()
    }

    fn next_task(
        &mut self,
        runnable: &[&shuttle::scheduler::Task],
        current: Option<shuttle::scheduler::TaskId>,
        is_yielding: bool,
    ) -> Option<shuttle::scheduler::TaskId> {
        meter::step();
        self.0.next_task(runnable, current, is_yielding)
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}
