//! A keeper that keeps checkpoints in memory, and the two ways in which a search with pauses is
//! run.

use std::io::{self, Cursor, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use preempt_bench::random::Random;
use preempt_explore::{
    Checkpoints, Keeper, Limit, Observer, Outcome, Plan, Progress, Reduction, Saved, Silent,
};
use preempt_machine::Machine;

/// The program of all checkpoints here.
pub const PROGRAM: u64 = 0x5EED;

/// Keeps checkpoints in memory.
pub struct Tape {
    poll_interval: u64,
    /// The number of calls after which the first checkpoint is due; the intervals grow. 0 for none.
    every: u64,
    looks: AtomicU64,
    next: AtomicU64,
    pub kept: Mutex<Vec<Vec<u8>>>,
}

impl Tape {
    pub fn new(poll_interval: u64, every: u64) -> Tape {
        Tape {
            poll_interval,
            every,
            looks: AtomicU64::new(0),
            next: AtomicU64::new(every),
            kept: Mutex::default(),
        }
    }

    pub fn into_kept(self) -> Vec<Vec<u8>> {
        self.kept.into_inner().expect("mutex poisoned")
    }
}

impl Keeper for Tape {
    fn is_due(&self) -> bool {
        let looks = self.looks.fetch_add(1, Relaxed) + 1;
        let due = self.every > 0 && looks >= self.next.load(Relaxed);
        if due {
            self.next.store(looks + looks / 4 + self.every, Relaxed);
        }
        due
    }

    fn keep(&self, write: &dyn Fn(&mut dyn Write) -> io::Result<()>) {
        let mut bytes = Vec::new();
        write(&mut bytes).expect("a vector takes all");
        self.kept.lock().expect("mutex poisoned").push(bytes);
    }

    fn poll_interval(&self) -> u64 {
        self.poll_interval
    }
}

/// Interrupts after this many calls.
struct Interrupts(AtomicU64);

impl Observer for Interrupts {
    fn progress(&self, _: &Progress) {}

    fn wants_estimates(&self) -> bool {
        true
    }

    fn interrupted(&self) -> bool {
        self.0
            .fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(1)))
            .is_ok_and(|left| left <= 1)
    }
}

pub fn open(bytes: &[u8]) -> Saved {
    Saved::open(Cursor::new(bytes.to_vec())).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// The outcome without its durations.
fn timeless((outcome, _): (Outcome, Machine)) -> Outcome {
    Outcome { elapsed: Duration::ZERO, ..outcome }
}

/// Runs without a pause.
pub fn run(plan: &Plan, machine: &Machine) -> Outcome {
    timeless(plan.build().expect("the plan is valid").run(machine.clone(), &Silent))
}

/// Runs without a pause, and polls limits after `steps` steps. Some limits are exceeded a little,
/// by an amount that depends on `steps`.
pub fn run_through(plan: &Plan, machine: &Machine, poll_interval: u64) -> Outcome {
    run_with(plan, machine, &Silent, Checkpoints::of(PROGRAM, &Tape::new(poll_interval, 0)))
}

/// Runs with checkpoints.
pub fn run_with(
    plan: &Plan,
    machine: &Machine,
    observer: &dyn Observer,
    checkpoints: Checkpoints<'_>,
) -> Outcome {
    let search = plan.build().expect("the plan is valid");
    timeless(
        search
            .run_with(machine.clone(), observer, checkpoints)
            .unwrap_or_else(|refusal| panic!("{refusal}")),
    )
}

/// Pauses now and then and continues; then resumes one of the checkpoints. Returns the two outcomes
/// and the number of checkpoints.
pub fn pausing(
    plan: &Plan,
    machine: &Machine,
    poll_interval: u64,
    random: &mut Random,
) -> (Outcome, Option<Outcome>, usize) {
    let tape = Tape::new(poll_interval, 1 + random.below(4) as u64);
    let paused = run_with(plan, machine, &Silent, Checkpoints::of(PROGRAM, &tape));
    let kept = tape.into_kept();
    let resumed = (!kept.is_empty()).then(|| {
        let saved = open(&kept[random.below(kept.len())]);
        run_with(
            plan,
            machine,
            &Silent,
            Checkpoints::of(PROGRAM, &Tape::new(poll_interval, 0)).resume(saved),
        )
    });
    (paused, resumed, kept.len())
}

/// Interrupts the search repeatedly, and resumes each time from the last checkpoint, as another
/// process would. Returns the last outcome and the number of interrupts.
pub fn interrupted(
    plan: &Plan,
    machine: &Machine,
    poll_interval: u64,
    random: &mut Random,
) -> (Outcome, usize) {
    let mut last: Option<Vec<u8>> = None;
    for interrupts in 0.. {
        // Some parts also pause on the way.
        let tape = Tape::new(poll_interval, random.below(4) as u64);
        // The intervals grow; otherwise a long search would never end.
        let observer =
            Interrupts(AtomicU64::new(1 + random.below(4 << (interrupts / 3).min(20)) as u64));
        let checkpoints = Checkpoints::of(PROGRAM, &tape);
        let checkpoints = match &last {
            Some(bytes) => checkpoints.resume(open(bytes)),
            None => checkpoints,
        };
        let outcome = run_with(plan, machine, &observer, checkpoints);
        if outcome.stopped != Some(Limit::Interrupt) {
            return (outcome, interrupts);
        }
        // A budgeted search visits all states before it begins. An interrupt during that time does
        // not change the last checkpoint.
        let prepares = plan.reduction == Reduction::BudgetedSleep;
        match tape.into_kept().pop() {
            Some(bytes) => last = Some(bytes),
            None => assert!(prepares, "an interrupt ends a search with a checkpoint"),
        }
    }
    unreachable!("a search gets on between two interrupts")
}
