//! The hot paths: operations that occur so often that their instructions matter.

use std::path::Path;

use anyhow::{Context, Result, anyhow, ensure};
use preempt::sync::Arc;
use preempt::sync::atomic::AtomicUsize;
use preempt::sync::atomic::Ordering::SeqCst;
use preempt::{Check, Count, Order, thread};
use preempt_explore::{Plan, Reduction, Silent};
use preempt_machine::Machine;
use preempt_system::{
    Access, Choice, Footprint, HbGraph, Location, Model, Step, Stepper, ThreadId,
};

use crate::corpus;
use crate::papers::cartesian::CARTESIAN;

/// A hot path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum HotPath {
    /// A step of a model.
    Step,
    /// A scheduling point of a closure.
    Switch,
    /// A whole execution of a closure.
    Execution,
    /// An execution of a depth-first search, which begins with steps of the one before.
    DepthFirst,
    /// An execution of optimal dynamic partial-order reduction.
    Optimal,
    /// The fingerprint of a happens-before graph.
    Fingerprint,
    /// A look-up in the set of visited states.
    VisitedSet,
    /// A transition of CalcCV.
    CalcCv,
}

impl HotPath {
    /// All hot paths, in the order of the table.
    pub const ALL: [HotPath; 8] = [
        HotPath::Step,
        HotPath::Switch,
        HotPath::Execution,
        HotPath::DepthFirst,
        HotPath::Optimal,
        HotPath::Fingerprint,
        HotPath::VisitedSet,
        HotPath::CalcCv,
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            HotPath::Step => "step",
            HotPath::Switch => "switch",
            HotPath::Execution => "execution",
            HotPath::DepthFirst => "dfs",
            HotPath::Optimal => "optimal",
            HotPath::Fingerprint => "fingerprint",
            HotPath::VisitedSet => "visited-set insert",
            HotPath::CalcCv => "CalcCV",
        }
    }

    /// The unit that is counted.
    pub fn operation(self) -> &'static str {
        match self {
            HotPath::Step => "a step of bench/counter2.pre, with the copy of its state",
            HotPath::Switch => {
                "a step of a random execution of two threads with an atomic: ask, choose, leave a \
                 coroutine, enter one"
            }
            HotPath::Execution => {
                "an execution of three threads from its beginning to its end: 10 steps, 11 \
                 allocations, two threads started and joined"
            }
            HotPath::DepthFirst => {
                "an execution of the same test with one thread more in a depth-first search, which \
                 repeats steps of the execution before"
            }
            HotPath::Optimal => "the same with optimal dynamic partial-order reduction",
            HotPath::Fingerprint => {
                "an action added to a happens-before graph, its fingerprint, the action taken back"
            }
            HotPath::VisitedSet => {
                "a state of bench/grid.pre looked up and, if it is new, inserted; growth of the \
                 table included"
            }
            HotPath::CalcCv => "a transition executed in the cartesian search of indexer/model.pre",
        }
    }

    /// Its name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            HotPath::Step => "step",
            HotPath::Switch => "switch",
            HotPath::Execution => "execution",
            HotPath::DepthFirst => "depth-first",
            HotPath::Optimal => "optimal",
            HotPath::Fingerprint => "fingerprint",
            HotPath::VisitedSet => "visited-set",
            HotPath::CalcCv => "calc-cv",
        }
    }

    /// The sizes of the two runs, in the unit of [`run`](HotPath::run).
    pub fn sizes(self) -> [u32; 2] {
        match self {
            HotPath::Step | HotPath::Fingerprint => [20_000, 120_000],
            HotPath::Switch | HotPath::Execution | HotPath::DepthFirst | HotPath::Optimal => {
                [200, 1_200]
            }
            HotPath::VisitedSet => [4, 5],
            HotPath::CalcCv => [13, 14],
        }
    }

    /// The functions inside which instructions are counted; everywhere without any.
    pub(super) fn only_in(self) -> Option<&'static str> {
        (self == HotPath::VisitedSet).then_some("*Visited>::insert*")
    }

    /// Runs it; returns the number of operations.
    pub fn run(self, size: u32) -> Result<u64> {
        match self {
            HotPath::Step => steps(size.into()),
            HotPath::Switch => switches(size.into()),
            HotPath::Execution => executions(size.into()),
            HotPath::DepthFirst => {
                let check = Check::new().order(Order::Executions).count(Count::Executions);
                systematic(check, size.into())
            }
            HotPath::Optimal => {
                let check = Check::new().reduce(Reduction::Optimal);
                systematic(check, size.into())
            }
            HotPath::Fingerprint => Ok(fingerprints(size.into())),
            HotPath::VisitedSet => {
                search("bench/grid.pre", &[("N", size), ("K", 10)], Reduction::None)
            }
            HotPath::CalcCv => search("indexer/model.pre", &[("THREADS", size)], CARTESIAN),
        }
    }
}

fn machine(file: &str, settings: &[(&str, u32)]) -> Result<Machine> {
    let settings: Vec<_> =
        settings.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect();
    corpus::machine(&corpus::root().join(Path::new(file)), &settings)
}

/// Threads take turns; when none can move, the model restarts.
fn steps(wanted: u64) -> Result<u64> {
    let machine = machine("bench/counter2.pre", &[("N", 2), ("K", 5)])?;
    // After a search the states are large enough.
    let search = Plan::new().build().map_err(|refusal| anyhow!("{refusal}"))?;
    let machine = search.run(machine, &Silent).1;
    let threads = machine.shape().threads;
    let mut stepper = machine.stepper();
    let mut initial = vec![0; machine.shape().words];
    stepper.initial(&mut initial);
    let (mut state, mut next) = (initial.clone(), initial.clone());
    let (mut done, mut idle, mut turn) = (0, 0, 0);
    while done < wanted {
        next.copy_from_slice(&state);
        match stepper.step(&mut next, Choice::of(ThreadId::new(turn))) {
            Step::Moved { .. } => {
                std::mem::swap(&mut state, &mut next);
                (done, idle) = (done + 1, 0);
            }
            _ => idle += 1,
        }
        if idle == threads {
            state.copy_from_slice(&initial);
        }
        turn = (turn + 1) % threads;
    }
    Ok(done)
}

/// A test of the comparison with other tools.
fn body(name: &str) -> Result<fn()> {
    crate::peers::rust::sources::of_preempt::body(name).context("the test is one of the sources")
}

fn switches(executions: u64) -> Result<u64> {
    let body = body("atomic 2x5")?;
    let outcome = Check::new().order(Order::Random).seed(1).runs(executions).run(body);
    Ok(outcome.tally.context("executions are counted")?.steps)
}

/// Random executions of a test that mostly consists of starts and ends: of threads, of memory
/// blocks, of the execution.
fn executions(wanted: u64) -> Result<u64> {
    let check = Check::new().order(Order::Random).count(Count::Executions).seed(1).runs(wanted);
    Ok(check.run(allocates::<2>).tally.context("executions are counted")?.executions)
}

/// The first executions of a search that has more.
fn systematic(check: Check, wanted: u64) -> Result<u64> {
    let outcome = check.unbounded().executions(wanted).run(allocates::<3>);
    Ok(outcome.tally.context("executions are counted")?.executions)
}

fn allocates<const THREADS: usize>() {
    let sum = Arc::new(AtomicUsize::new(0));
    let add = |sum: Arc<AtomicUsize>| {
        for n in 1..=3 {
            // The allocation must not be optimised away.
            let block = std::hint::black_box(Box::new([n; 4]));
            sum.fetch_add(block[1], SeqCst);
        }
    };
    let sums: [_; THREADS] = std::array::from_fn(|_| sum.clone());
    drop(sum);
    let threads = sums.map(|sum| thread::spawn(move || add(sum)));
    threads.into_iter().for_each(|thread| thread.join().expect("nothing in it panics"));
}

/// Actions of a graph before it is cleared.
const GRAPH: u64 = 64;

fn fingerprints(wanted: u64) -> u64 {
    let mut graph = HbGraph::new();
    let footprint = |at: u64| {
        let access = if at.is_multiple_of(3) { Access::Write } else { Access::Read };
        Footprint::from_iter([(Location((at % 5) as u32), access)])
    };
    let footprints: Vec<Footprint> = (0..GRAPH).map(footprint).collect();
    let mut sum = 0;
    for at in 0..wanted {
        let (choice, footprint) =
            (Choice::of(ThreadId::new((at % 4) as usize)), &footprints[(at % GRAPH) as usize]);
        graph.push(choice, footprint);
        sum ^= graph.fingerprint().0;
        graph.pop();
        if at.is_multiple_of(16) {
            graph.push(choice, footprint);
        }
        if at % (16 * GRAPH) == 0 {
            graph.truncate(0);
        }
    }
    std::hint::black_box(sum);
    wanted
}

fn search(file: &str, settings: &[(&str, u32)], reduction: Reduction) -> Result<u64> {
    let search =
        Plan::new().reduction(reduction).build().map_err(|refusal| anyhow!("{refusal}"))?;
    let (outcome, _) = search.run(machine(file, settings)?, &Silent);
    ensure!(outcome.complete, "the search is complete");
    let seen = outcome.coverage;
    Ok(match reduction {
        Reduction::None => seen.transitions,
        _ => seen.transitions + seen.blocked + seen.ended,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_makes_as_many_operations_as_it_says_and_always_the_same() {
        let twice = |path: HotPath, size| {
            let counts =
                [path.run(size), path.run(size)].map(|count| count.expect("the path can be run"));
            assert_eq!(counts[0], counts[1], "{path:?}");
            counts[0]
        };
        assert_eq!(twice(HotPath::Step, 100), 100);
        assert_eq!(twice(HotPath::Fingerprint, 100), 100);
        assert!(
            twice(HotPath::Switch, 3) > 3 * 10,
            "each execution has ten steps of the atomic, and more"
        );
        assert_eq!(twice(HotPath::Execution, 3), 3);
        assert_eq!(twice(HotPath::DepthFirst, 3), 3);
        assert_eq!(twice(HotPath::Optimal, 3), 3);
        assert_eq!(twice(HotPath::VisitedSet, 3), 3 * 10 * 11 * 11);
        // The paper's transitions, and the ended threads, which it does not count here.
        assert!(twice(HotPath::CalcCv, 12) > 394);
    }
}
