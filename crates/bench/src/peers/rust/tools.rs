//! The tools: how each explores a body in each of the compared ways.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use preempt::{Check, Count, FailureKind, Order};

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

/// How a body is explored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// All executions, with the tool's reduction if it has one.
    All,
    /// All executions, one by one, without a reduction.
    Dfs,
    /// Like [`Way::All`], with at most this many preemptions.
    Bound(u32),
    /// Random schedules from this seed.
    Random(u64),
    /// Random priorities (depth 3) from this seed.
    Pct(u64),
}

/// The depth of the random priorities: errors that need two changes of priority.
const DEPTH: u32 = 3;

impl Way {
    /// A word of a command line.
    pub fn word(self) -> String {
        match self {
            Way::All => "all".into(),
            Way::Dfs => "dfs".into(),
            Way::Bound(bound) => format!("bound:{bound}"),
            Way::Random(seed) => format!("random:{seed}"),
            Way::Pct(seed) => format!("pct:{seed}"),
        }
    }

    /// A part of a sentence.
    pub fn name(self) -> String {
        match self {
            Way::All => "unbounded".into(),
            Way::Dfs => "dfs".into(),
            Way::Bound(bound) => format!("≤{bound}"),
            Way::Random(_) => "random".into(),
            Way::Pct(_) => "pct".into(),
        }
    }

    /// Parses the result of [`word`](Way::word).
    pub fn parse(word: &str) -> Result<Way> {
        let (name, number) = word.split_once(':').unwrap_or((word, "0"));
        Ok(match name {
            "all" => Way::All,
            "dfs" => Way::Dfs,
            "bound" => Way::Bound(number.parse()?),
            "random" => Way::Random(number.parse()?),
            "pct" => Way::Pct(number.parse()?),
            _ => bail!("no way to explore is called {word}"),
        })
    }
}

/// Explores a body once. The counts of tools that count executions are used; for the others each
/// call of the body counts.
pub fn explore(tool: Tool, way: Way, name: &str, cap: f64) -> Result<Ended> {
    match tool {
        Tool::Preempt => {
            preempt(way, sources::of_preempt::body(name).context("no such test")?, cap)
        }
        #[cfg(feature = "peers")]
        Tool::Loom => loom(way, sources::of_loom::body(name).context("no such test")?, cap),
        #[cfg(feature = "peers")]
        Tool::Shuttle => {
            shuttle(way, sources::of_shuttle::body(name).context("no such test")?, cap)
        }
        #[cfg(not(feature = "peers"))]
        Tool::Loom | Tool::Shuttle => bail!("{}", super::HOW),
    }
}

/// A check by Preempt in this way.
///
/// Its default counts the distinct traces that it saw. Where there is nothing to reduce, the peers
/// count only executions, and so does it.
pub fn check(way: Way) -> Check {
    match way {
        Way::All => Check::new().unbounded(),
        Way::Bound(bound) => Check::new().bound(bound),
        Way::Dfs => Check::new().unbounded().order(Order::Executions).count(Count::Executions),
        Way::Random(seed) => {
            Check::new().order(Order::Random).seed(seed).runs(u64::MAX).count(Count::Executions)
        }
        Way::Pct(seed) => Check::new()
            .order(Order::Pct { depth: DEPTH })
            .seed(seed)
            .runs(u64::MAX)
            .count(Count::Executions),
    }
}

fn preempt(way: Way, body: fn(), cap: f64) -> Result<Ended> {
    let outcome = check(way).time(Duration::from_secs_f64(cap)).run(|| {
        meter::start();
        body();
    });
    let tally = outcome.tally.context("a search over executions")?;
    // It counts complete executions, and one with a failing step is not complete. The peers count
    // those too.
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
fn loom(way: Way, body: fn(), cap: f64) -> Result<Ended> {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = match way {
        Way::All => None,
        Way::Bound(bound) => Some(bound as usize),
        Way::Dfs | Way::Random(_) | Way::Pct(_) => bail!("loom knows no {way:?}"),
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
fn shuttle(way: Way, body: fn(), cap: f64) -> Result<Ended> {
    use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler, Scheduler};

    let scheduler: Box<dyn Scheduler + Send> = match way {
        Way::Dfs => Box::new(DfsScheduler::new(None, false)),
        Way::Random(seed) => Box::new(RandomScheduler::new_from_seed(seed, usize::MAX)),
        Way::Pct(seed) => Box::new(PctScheduler::new_from_seed(seed, DEPTH as usize, usize::MAX)),
        Way::All | Way::Bound(_) => bail!("shuttle knows no {way:?}"),
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
