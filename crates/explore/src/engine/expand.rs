//! The successors of a state: every step of every thread, and its result.
//!
//! Breadth-first and depth-first search take steps only here, so this module alone decides what
//! they count as a transition, as blocked, as ended, and as a deadlock.

use preempt_system::{
    Batch, BlockedCounts, Capacity, Choice, Failure, FailureKind, Shape, Step, Stepper,
};

use crate::engine::control::SearchControl;
use crate::engine::execution::Stop;
use crate::plan::coverage::Coverage;

/// Which failures are reported, and whether the search continues after them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Checks {
    /// Whether deadlocks are failures.
    pub(crate) deadlock: bool,
    /// Whether the state in which a thread has failed is a successor.
    pub(crate) keep_going: bool,
}

/// A failure seen while a state was expanded: by which step, `None` if it is a failure of the state
/// itself.
pub(crate) type Failed = (Option<Choice>, Failure);

/// Expands states. Every worker has one.
pub(crate) struct Expander<S> {
    stepper: S,
    shape: Shape,
    checks: Checks,
    /// The counts of expansion.
    pub(crate) seen: Coverage,
    /// The failures of the state that was expanded last.
    pub(crate) failures: Vec<Failed>,
}

impl<S: Stepper> Expander<S> {
    pub(crate) fn new(stepper: S, shape: Shape, checks: Checks) -> Expander<S> {
        Expander { stepper, shape, checks, seen: Coverage::default(), failures: Vec::new() }
    }

    /// Appends the successors of `state` to `batch` and leaves its failures in `failures`.
    #[inline(always)]
    pub(crate) fn expand<const W: usize>(
        &mut self,
        state: &[u64],
        batch: &mut Batch<W>,
    ) -> Result<(), Capacity> {
        let (mut steps, mut idle) = (0, BlockedCounts::default());
        let state = &state[..batch.words()];
        let mut slot = 0;
        loop {
            let before = batch.len();
            let partial = self.stepper.step_all(state, slot..self.shape.threads, batch, &mut idle);
            steps += (batch.len() - before) as u64;
            let Some(partial) = partial else { break };
            let thread = partial.thread;
            slot = thread.index() + 1;
            let (mut alternative, mut alternatives) = (0, 1);
            while alternative < alternatives {
                let choice = Choice { thread, alternative };
                match self.stepper.finish_step(state, batch.draft(), partial, alternative) {
                    Step::Moved { alternatives: known } => {
                        batch.keep(choice);
                        steps += 1;
                        alternatives = alternatives.max(known);
                    }
                    Step::Failed(failure) => {
                        if self.checks.keep_going {
                            batch.keep(choice);
                        }
                        self.failures.push((Some(choice), *failure));
                        steps += 1;
                        alternatives = alternatives.max(self.stepper.alternatives());
                    }
                    Step::Blocked { resting: true } if alternative == 0 => idle.resting += 1,
                    Step::Blocked { resting: false } if alternative == 0 => idle.waiting += 1,
                    Step::Ended if alternative == 0 => idle.ended += 1,
                    Step::Vacant if alternative == 0 => {}
                    Step::Absent | Step::Blocked { .. } | Step::Ended | Step::Vacant => {
                        assert!(
                            alternative > 0,
                            "a thread that is neither blocked nor ended has an alternative 0"
                        );
                    }
                    Step::Full(capacity) => return Err(capacity),
                }
                alternative += 1;
            }
        }
        self.seen.expanded += 1;
        self.seen.transitions += steps;
        self.seen.blocked += idle.waiting + idle.resting;
        self.seen.ended += idle.ended;
        // A failed thread holds the locks that it held, so whatever waits for it is a consequence
        // of the failure. Reporting a deadlock here would invent an error that no execution has
        // first. The other threads do continue: ending all executions at a failure would lose the
        // errors that they make at the same time (`docs/language.md`, "What follows a failure").
        if steps == 0 && idle.waiting > 0 && self.checks.deadlock && !self.stepper.has_failed(state)
        {
            self.failures.push((None, deadlock()));
        }
        Ok(())
    }

    /// Checks the invariants.
    #[inline(always)]
    pub(crate) fn invariant(&mut self, state: &[u64]) -> Result<(), Box<Failure>> {
        self.stepper.invariant(state)
    }

    /// The first step of a search: the [initial state](Expander::initial). `None` if states need
    /// more room; the search then restarts.
    pub(crate) fn begin(&mut self, control: &SearchControl<'_, Capacity>) -> Option<Initial> {
        self.initial().map_err(|capacity| control.stop(Stop::Restart(capacity))).ok()
    }

    /// The initial state and its failures, except for a deadlock, which expansion finds.
    pub(crate) fn initial(&mut self) -> Result<Initial, Capacity> {
        let mut state = vec![0; self.shape.words];
        let mut failures = Vec::new();
        match self.stepper.initial(&mut state) {
            Step::Moved { .. } => {}
            Step::Failed(failure) => failures.push(*failure),
            Step::Full(capacity) => return Err(capacity),
            other => unreachable!("the initial state cannot be {other:?}"),
        }
        if failures.is_empty() || self.checks.keep_going {
            assert_eq!(state[0] & 1, 1, "the lowest bit of the first word of a state is set");
            failures.extend(self.stepper.invariant(&state).err().map(|failure| *failure));
        }
        Ok(Initial { state, failures })
    }
}

/// The initial state of a program.
pub(crate) struct Initial {
    pub(crate) state: Vec<u64>,
    pub(crate) failures: Vec<Failure>,
}

/// The failure of a program in which the same steps do not lead to the same state.
pub(crate) fn nondeterminism() -> Failure {
    let message = "the test is not deterministic: after the same steps a thread cannot do what it \
                   did before; whatever a test depends on has to be made inside it, and must not \
                   depend on time, addresses, random numbers, or statics that keep their values";
    Failure { kind: FailureKind::Nondeterminism, message: message.into(), site: None }
}

/// The failure of a livelock. All livelocks have the same message, as deadlocks have.
pub fn livelock() -> Failure {
    Failure {
        kind: FailureKind::Livelock,
        message: "the program runs forever: every thread that can move repeats its steps without \
                  effect"
            .into(),
        site: None,
    }
}

/// The failure of a deadlock. All deadlocks have the same message: a report names the threads and
/// what they wait for.
pub fn deadlock() -> Failure {
    Failure { kind: FailureKind::Deadlock, message: "no thread can move".into(), site: None }
}
