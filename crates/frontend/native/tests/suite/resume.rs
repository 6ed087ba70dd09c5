//! A search that is interrupted and resumed has the same result as an uninterrupted one.

use std::io::{Cursor, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use preempt_explore::{Cache, Checkpoints, Keeper, Order, Outcome, Plan, Reduction, Saved, Search};
use preempt_native::Native;

use crate::compile::program;

/// Keeps every checkpoint, and asks for one after every few polls.
struct Every {
    polls: u64,
    asked: AtomicU64,
    kept: Mutex<Vec<Vec<u8>>>,
}

impl Every {
    fn polls(polls: u64) -> Every {
        Every { polls, asked: AtomicU64::new(0), kept: Mutex::default() }
    }
}

impl Keeper for Every {
    fn is_due(&self) -> bool {
        self.asked.fetch_add(1, Relaxed) % self.polls == self.polls - 1
    }

    fn keep(&self, write: &dyn Fn(&mut dyn Write) -> std::io::Result<()>) {
        let mut bytes = Vec::new();
        write(&mut bytes).expect("a vector takes all");
        self.kept.lock().expect("mutex poisoned").push(bytes);
    }

    fn poll_interval(&self) -> u64 {
        1
    }
}

fn shown(outcome: &Outcome, native: &Native) -> String {
    let Outcome { verdict, complete, findings, tally, bounds, .. } = outcome;
    let assumptions = native.assumptions();
    format!("{verdict:?} {complete} {tally:?} {bounds:?} {findings:?} {assumptions:?}")
}

fn resumed(search: &Search, name: &str, checkpoint: Vec<u8>) -> String {
    let saved = Saved::open(Cursor::new(checkpoint)).unwrap_or_else(|refusal| panic!("{refusal}"));
    let checkpoints = Checkpoints::of(7, &()).resume(saved);
    let (outcome, native) = search
        .run_program_with(program(name), &(), checkpoints)
        .unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
    assert_eq!(native.refusal(), None, "{name}");
    shown(&outcome, &native)
}

#[test]
fn a_search_can_be_resumed_from_every_checkpoint() {
    let icb = Plan {
        order: Order::Icb { cache: Cache::Hb },
        bound: Some(2),
        keep_going: true,
        ..Plan::new()
    };
    let optimal = Plan { order: Order::Executions, reduction: Reduction::Optimal, ..Plan::new() };
    let random = Plan { order: Order::Random, runs: 12, ..Plan::new() };
    let several = Plan { jobs: 2, ..icb };
    for name in ["lost_update", "nested", "signal_one", "yields"] {
        for plan in [icb, several, optimal, random] {
            let search = plan.build_for_program().expect("the plan is possible");
            let (outcome, native) = search.run_program(program(name), &());
            let uninterrupted = shown(&outcome, &native);
            let every = Every::polls(7);
            let (outcome, native) = search
                .run_program_with(program(name), &(), Checkpoints::of(7, &every))
                .unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
            assert_eq!(shown(&outcome, &native), uninterrupted, "{name}, {plan:?}: paused");
            let kept = every.kept.into_inner().expect("mutex poisoned");
            assert!(!kept.is_empty(), "{name}, {plan:?}: there are checkpoints");
            let step = kept.len().div_ceil(3);
            for checkpoint in kept.into_iter().step_by(step) {
                assert_eq!(resumed(&search, name, checkpoint), uninterrupted, "{name}, {plan:?}");
            }
        }
    }
}

#[test]
fn the_identity_depends_on_the_contents_the_arguments_and_the_input() {
    let identity = |name: &str, args: &[&str]| {
        let args = args.iter().map(Into::into).collect();
        let path = crate::compile::compiled(name);
        let found = preempt_native::Executable::find(&path, args);
        found.expect("the program can be explored").identity().expect("the file is readable")
    };
    let one = identity("abba", &["a", "b"]);
    assert_eq!(identity("abba", &["a", "b"]), one);
    for (name, args) in
        [("abba", &["ab"][..]), ("abba", &["a"]), ("abba", &[]), ("handover", &["a", "b"])]
    {
        assert_ne!(identity(name, args), one, "{name} {args:?}");
    }
    let mut input = crate::compile::executable("abba");
    let before = input.identity().expect("the file is readable");
    input.stdin = Some(crate::compile::folder().join("numbers.toml"));
    assert_ne!(input.identity().expect("the file is readable"), before);
}
