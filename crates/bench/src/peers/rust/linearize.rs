//! Linearizability: `preempt::linearize` and the crate lincheck on the same structures.
//!
//! Both are asked for scenarios of two threads with at most two calls each. lincheck draws random
//! scenarios with proptest (here from a fixed seed), with up to two calls before and after the
//! threads, explores each with loom, and shrinks the first one that fails; it needs a sequential
//! model. Preempt generates all scenarios, smallest first, and needs no model. Both explore
//! schedules with at most two preemptions.
//!
//! lincheck refuses the atomic counter: `get` returns 0 although `add` has returned. loom treats
//! SeqCst accesses as AcqRel ones, as its documentation says, and lincheck's record of the order of
//! calls synchronises nothing, so the load may be stale.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use preempt::Check;
use preempt::linearize::LinearizeOutcome;

use super::meter::{self, Ended, Run};
use super::structures::{Model, Op, Structure, of_preempt};
use super::table::{Table, grouped};
use super::{Times, Tool};
use crate::measure;

/// Preemptions.
const BOUND: u32 = 2;

/// The threads of a scenario, and the calls of each.
const SIZE: (usize, usize) = (2, 2);

/// The structures, and whether they are linearizable.
const STRUCTURES: [(&str, bool); 5] = [
    ("counter", true),
    ("counter, load and store", false),
    ("queue with a lock", true),
    ("queue, check-then-act", false),
    ("one slot", false),
];

/// Checks the structures with both tools and prints the table; returns whether Preempt is always
/// correct.
pub fn structures(times: Times) -> Result<bool> {
    println!(
        "\nLinearizability, two threads with at most two calls each, at most {BOUND} preemptions \
         (WRONG marks a wrong\nverdict; with a failure, scenarios and executions are those up to \
         the first one)"
    );
    let names = ["scenarios", "executions", "CPU s"];
    let heads = ["structure", "Preempt"].into_iter().chain(names).chain(["lincheck"]).chain(names);
    let mut table = Table::new(heads);
    let mut right = true;
    for (structure, is_linearizable) in STRUCTURES {
        let mut cells = vec![structure.to_owned()];
        for tool in [Tool::Preempt, Tool::Loom] {
            let run = in_child(tool, structure, times.cap)?;
            let (verdict, good) = match &run.ended {
                Ended::Complete => ("ok", is_linearizable),
                Ended::Failed(_) => ("not linearizable", !is_linearizable),
                Ended::Capped => ("not finished", false),
            };
            right &= good || tool != Tool::Preempt;
            let mark = if good || run.ended == Ended::Capped { "" } else { "WRONG " };
            cells.extend([
                format!("{mark}{verdict}"),
                grouped(run.steps),
                grouped(run.first),
                format!("{:.3}", run.seconds),
            ]);
        }
        table.row(cells);
    }
    print!("{}", table.to_text());
    Ok(right)
}

/// Checks a structure in a child process (this program, command `linearize-one`).
fn in_child(tool: Tool, structure: &str, cap: f64) -> Result<Run> {
    let name = format!("{tool:?}").to_lowercase();
    let output = Command::new(std::env::current_exe()?)
        .args(["linearize-one", &name, structure, &cap.to_string()])
        .env("LOOM_MAX_PREEMPTIONS", BOUND.to_string())
        .output()?;
    let (text, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{structure}, {name}: {}", said.trim());
    Run::parse(text.lines().last().unwrap_or_default())
}

/// Checks a structure in this process, and prints the result for its parent; scenarios are counted
/// as steps. `Tool::Loom` is lincheck, which explores with loom.
pub fn here(tool: Tool, structure: &str, cap: f64) -> Result<()> {
    let before = measure::thread_seconds()?;
    let ended = match tool {
        Tool::Preempt => {
            let outcome = ours(structure, cap)?;
            meter::counted(outcome.executions, outcome.scenarios);
            match (&outcome.failed, &outcome.stopped) {
                (Some(failed), _) => Ended::Failed(failed.scenario.clone()),
                (None, Some(_)) => Ended::Capped,
                (None, None) => Ended::Complete,
            }
        }
        #[cfg(feature = "peers")]
        Tool::Loom => lincheck::structure(structure, cap)?,
        #[cfg(not(feature = "peers"))]
        Tool::Loom => bail!("{}", super::NOT_BUILT),
        Tool::Shuttle => bail!("shuttle does not check linearizability"),
    };
    let seconds = measure::thread_seconds()? - before;
    let first = (meter::executions(), meter::starts());
    println!("{}", meter::run(first, ended, seconds)?.line());
    Ok(())
}

/// Preempt's answer about a structure.
pub fn ours(structure: &str, cap: f64) -> Result<LinearizeOutcome> {
    Ok(match structure {
        "counter" => check::<of_preempt::objects::Atomic>(cap),
        "counter, load and store" => check::<of_preempt::objects::LoadAndStore>(cap),
        "queue with a lock" => check::<of_preempt::objects::Locked>(cap),
        "queue, check-then-act" => check::<of_preempt::objects::CheckThenAct>(cap),
        "one slot" => check::<of_preempt::objects::Slot>(cap),
        _ => bail!("there is no structure {structure}"),
    })
}

fn check<S: Structure>(cap: f64) -> LinearizeOutcome {
    let [first, second] = S::Model::NAMES;
    let (threads, calls) = SIZE;
    preempt::linearize(S::default)
        .op1(first, |structure, value| structure.call(Op::First(value)))
        .op(second, |structure| structure.call(Op::Second))
        .threads(threads)
        .per_thread(calls)
        .operations(threads * calls)
        .explore(Check::new().bound(BOUND).time(Duration::from_secs_f64(cap)))
        .run()
}

#[cfg(feature = "peers")]
mod lincheck {
    //! The crate lincheck on a structure.

    use std::cell::Cell;
    use std::marker::PhantomData;

    use anyhow::{Result, bail};
    use lincheck::scenario::{Scenario, check_scenario_with_loom};
    use lincheck::{ConcurrentSpec, Lincheck, SequentialSpec};
    use proptest::prelude::*;
    use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

    use super::super::meter::{self, Ended};
    use super::super::structures::{Model, Op, Structure, of_lincheck};
    use super::SIZE;

    impl Arbitrary for Op {
        type Parameters = ();
        type Strategy = BoxedStrategy<Op>;

        fn arbitrary_with((): ()) -> Self::Strategy {
            prop_oneof![(1_u32..=3).prop_map(Op::First), Just(Op::Second)].boxed()
        }
    }

    /// The model as lincheck wants it.
    struct Serial<S: Structure>(S::Model);

    impl<S: Structure> Default for Serial<S> {
        fn default() -> Self {
            Serial(S::Model::default())
        }
    }

    impl<S: Structure> SequentialSpec for Serial<S> {
        type Op = Op;
        type Ret = Option<u32>;

        fn exec(&mut self, op: Op) -> Option<u32> {
            self.0.call(op)
        }
    }

    /// The structure as lincheck wants it. Each execution makes one.
    struct Concurrent<S: Structure>(S, PhantomData<S>);

    impl<S: Structure> Default for Concurrent<S> {
        fn default() -> Self {
            if !FAILED.get() {
                meter::execution();
            }
            Concurrent(S::default(), PhantomData)
        }
    }

    impl<S: Structure> ConcurrentSpec for Concurrent<S> {
        type Seq = Serial<S>;

        fn exec(&self, op: Op) -> Option<u32> {
            self.0.call(op)
        }
    }

    thread_local! {
        /// Set by the first scenario that fails: shrinking is not counted.
        static FAILED: Cell<bool> = const { Cell::new(false) };
    }

    /// Checks the structure of this name.
    pub fn structure(name: &str, cap: f64) -> Result<Ended> {
        meter::limit(cap);
        Ok(match name {
            "counter" => check::<of_lincheck::objects::Atomic>(),
            "counter, load and store" => check::<of_lincheck::objects::LoadAndStore>(),
            "queue with a lock" => check::<of_lincheck::objects::Locked>(),
            "queue, check-then-act" => check::<of_lincheck::objects::CheckThenAct>(),
            "one slot" => check::<of_lincheck::objects::Slot>(),
            _ => bail!("there is no structure {name}"),
        })
    }

    /// What `Lincheck::verify` does, from a fixed seed.
    fn check<S: Structure>() -> Ended {
        let (num_threads, num_ops) = SIZE;
        let scenarios = any_with::<Scenario<Op>>(Lincheck { num_threads, num_ops });
        let config = Config { failure_persistence: None, ..Config::default() };
        let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
        let result = TestRunner::new_with_rng(config, random).run(&scenarios, |scenario| {
            if !FAILED.get() {
                meter::step();
            }
            check_scenario_with_loom::<Concurrent<S>>(scenario).map_err(|_| {
                FAILED.set(true);
                TestCaseError::fail("not linearizable")
            })
        });
        match result {
            Ok(()) => Ended::Complete,
            Err(TestError::Fail(_, scenario)) => {
                Ended::Failed(format!("{:?}", scenario.parallel_part))
            }
            Err(TestError::Abort(why)) => Ended::Failed(why.to_string()),
        }
    }
}
