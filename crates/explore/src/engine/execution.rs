//! What strategies that explore executions tell, and how they are stopped.
//!
//! A strategy moves a [`Cursor`] and calls its [`Visitor`] after every step that it takes and at
//! the end of every execution. It keeps no findings, no counts of traces and no limits of its own:
//! those are the visitor's, the same for all strategies.

use preempt_system::{Capacity, Failure, System};

use crate::codec::{Damaged, Reader, Writer};
use crate::engine::cursor::Cursor;
use crate::plan::coverage::Limit;

/// Watches a strategy.
pub trait Visitor<S: System> {
    /// A step was taken, for the first time at this place of the search; `failure` if it failed.
    fn step(
        &mut self,
        cursor: &mut Cursor<S>,
        failure: Option<Box<Failure>>,
    ) -> Result<(), Stop<S::Need>>;

    /// No thread can move: the execution is complete. Every complete execution of a strategy is
    /// told once.
    fn end(&mut self, cursor: &mut Cursor<S>) -> Result<(), Stop<S::Need>>;

    /// The strategy gave an execution up before its end, or left a step out, and why.
    fn cut(&mut self, cursor: &mut Cursor<S>, why: Cut) -> Result<(), Stop<S::Need>>;

    /// All that `bound` allows was explored. `cut`: there is more beyond it.
    fn bound(&mut self, bound: u32, cut: bool) {
        let _ = (bound, cut);
    }

    /// So many steps that waited to be taken are covered by now, and will not be taken.
    fn covered(&mut self, steps: usize) {
        let _ = steps;
    }

    /// Whether the strategy is to [pause](Visitor::pause) as soon as what is left of its work is
    /// plain data.
    fn is_pausing(&self) -> bool {
        false
    }

    /// The strategy stands where what is left of its work is plain data: `rest` writes it.
    fn pause(&mut self, rest: impl Fn(&mut Writer<'_>)) -> Result<(), Stop<S::Need>>
    where
        Self: Sized,
    {
        let _ = rest;
        Ok(())
    }

    /// If the strategy is to go on from where it [paused](Visitor::pause), `read` reads what it
    /// wrote there. Asked before all else.
    fn resume<T>(&mut self, read: impl FnOnce(&mut Reader) -> Result<T, Damaged>) -> Option<T>
    where
        Self: Sized,
    {
        let _ = read;
        None
    }

    /// Records that `weight` of the tree has been explored: see
    /// [`estimate`](crate::engine::estimate).
    fn weighed(&mut self, weight: f64) {
        let _ = weight;
    }

    /// Whether somebody wants to know that.
    fn wants_weights(&self) -> bool {
        false
    }

    /// So many steps wait for the next bound.
    fn queued(&mut self, next: usize) {
        let _ = next;
    }

    /// So many steps wait to be taken now, and the strategy's own tables need so many bytes.
    fn holds(&mut self, waiting: usize, bytes: usize) {
        let _ = (waiting, bytes);
    }
}

/// Why an execution was not followed to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cut {
    /// All that could follow is covered elsewhere.
    Covered,
    /// It would have to go beyond the bound on preemptions.
    Bound,
    /// It would have to go beyond the bound on steps.
    Steps,
}

/// Why a search has to stop before its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop<N = Capacity> {
    /// The visitor has seen enough, or another worker has stopped the search.
    Enough,
    /// At a limit.
    Limit(Limit),
    /// At a finding, and the plan asks for one.
    Finding,
    /// The result of several workers would depend on their speed: one worker has to search again.
    Rerun,
    /// The program has a [need](preempt_system::Program::Need): the search has to begin anew.
    Restart(N),
}

impl<N> From<N> for Stop<N> {
    fn from(need: N) -> Stop<N> {
        Stop::Restart(need)
    }
}
