//! Strategies that explore executions, and what they report.
//!
//! A [`ResumableSearch`] moves a [`Cursor`] and reports every step and every end of an execution to
//! its [`Visitor`]. It contains its algorithm and nothing else: the visitor counts, keeps findings
//! and checks limits, and [`ExecutionStats::drive`](crate::engine::stats::ExecutionStats::drive)
//! writes checkpoints between two steps.

use preempt_system::{Capacity, Choice, Failure, FailureKind, System};

use crate::codec::{Damaged, Reader, Writer};
use crate::engine::cursor::Cursor;
use crate::engine::expand::nondeterminism;
use crate::plan::coverage::Limit;

/// A search over executions that can pause after each of its steps.
pub(crate) trait ResumableSearch<S: System> {
    /// Explores the initial state.
    fn start(&mut self, visitor: &mut impl Visitor<S>) -> Result<(), Stop<S::Need>>;

    /// Takes one step, forward or back. Returns whether anything is left.
    fn advance(&mut self, visitor: &mut impl Visitor<S>) -> Result<bool, Stop<S::Need>>;

    /// Whether the bound on preemptions has left out something.
    fn is_cut_by_bound(&self) -> bool {
        false
    }

    /// Writes the remaining work.
    fn save(&self, to: &mut Writer<'_>);

    /// Reads what [`save`](ResumableSearch::save) has written. [`ResumableSearch::replay`] follows.
    fn load(&mut self, from: &mut Reader) -> Result<(), Damaged>;

    /// Moves the cursor to where the search paused.
    fn replay(&mut self, visitor: &mut impl Visitor<S>) -> Result<(), Stop<S::Need>>;
}

/// Runs a strategy to its end, without checkpoints.
pub(crate) fn run_to_end<S: System>(
    strategy: &mut impl ResumableSearch<S>,
    visitor: &mut impl Visitor<S>,
) -> Result<(), Stop<S::Need>> {
    strategy.start(visitor)?;
    while strategy.advance(visitor)? {}
    Ok(())
}

/// Observes the steps of a strategy.
pub trait Visitor<S: System> {
    /// A step was taken, for the first time in this branch of the search; `failure` if it failed.
    fn step(
        &mut self,
        cursor: &mut Cursor<S>,
        failure: Option<Box<Failure>>,
    ) -> Result<(), Stop<S::Need>>;

    /// No thread can move: the execution is complete. Called once for every complete execution.
    fn end(&mut self, cursor: &mut Cursor<S>) -> Result<(), Stop<S::Need>>;

    /// The strategy abandoned an execution before its end, or skipped a step.
    fn cut(&mut self, cursor: &mut Cursor<S>, why: Cut) -> Result<(), Stop<S::Need>>;

    /// Everything within `bound` was explored. `cut`: there is more beyond it.
    fn bound(&mut self, bound: u32, cut: bool) {
        let _ = (bound, cut);
    }

    /// `waiting` steps are still to be taken, and the strategy's tables need `bytes`.
    fn holds(&mut self, waiting: usize, bytes: usize) {
        let _ = (waiting, bytes);
    }
}

/// A visitor that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ignore;

impl<S: System> Visitor<S> for Ignore {
    fn step(&mut self, _: &mut Cursor<S>, _: Option<Box<Failure>>) -> Result<(), Stop<S::Need>> {
        Ok(())
    }

    fn end(&mut self, _: &mut Cursor<S>) -> Result<(), Stop<S::Need>> {
        Ok(())
    }

    fn cut(&mut self, _: &mut Cursor<S>, _: Cut) -> Result<(), Stop<S::Need>> {
        Ok(())
    }
}

/// Why an execution was not followed to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cut {
    /// Everything that could follow is covered elsewhere.
    Covered,
    /// It would exceed the bound on preemptions.
    Bound,
    /// It would exceed the bound on steps.
    Steps,
}

/// Why a search has to stop before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop<N = Capacity> {
    /// The visitor has seen enough, or another worker has stopped the search.
    Enough,
    /// A limit was reached.
    Limit(Limit),
    /// There is a finding, and the plan stops at the first.
    Finding,
    /// The result of several workers would depend on their speed: one worker has to search again.
    Rerun,
    /// The program has a [need](preempt_system::Program::Need): the search has to start again.
    Restart(N),
}

impl<N> From<N> for Stop<N> {
    fn from(need: N) -> Stop<N> {
        Stop::Restart(need)
    }
}

/// Something that takes the steps of an execution: a cursor, alone or with data that a strategy
/// records in addition.
pub(crate) trait Follow<S: System> {
    fn cursor(&mut self) -> &mut Cursor<S>;

    /// Takes a step that the cursor [can](Cursor::can) take.
    fn follow(&mut self, choice: Choice) -> Result<Option<Box<Failure>>, S::Need>;
}

impl<S: System> Follow<S> for Cursor<S> {
    fn cursor(&mut self) -> &mut Cursor<S> {
        self
    }

    fn follow(&mut self, choice: Choice) -> Result<Option<Box<Failure>>, S::Need> {
        self.step(choice)
    }
}

/// Takes steps once more that the search has taken before. The visitor saw them then, so it is only
/// called if a step is not what it was.
pub(crate) fn take_again<S: System>(
    follower: &mut impl Follow<S>,
    steps: &[Choice],
    visitor: &mut impl Visitor<S>,
) -> Result<(), Stop<S::Need>> {
    for &choice in steps {
        let failure = match follower.cursor().can(choice) {
            true => follower.follow(choice)?,
            false => Some(Box::new(nondeterminism())),
        };
        if failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Nondeterminism) {
            visitor.step(follower.cursor(), failure)?;
            return Err(Stop::Enough);
        }
    }
    Ok(())
}
