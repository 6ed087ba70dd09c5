//! The depth-first loop of all systematic searches over executions: take the next step, report it,
//! and process the state that it leads to.
//!
//! A search decides what the next step is, which includes going back. There are two kinds:
//! [`Tree`](crate::engine::tree::Tree) opens all steps of a state and shares them with other
//! workers; a reduction opens few and adds others while it explores the subtrees.

use preempt_system::{Choice, System};

use crate::engine::execution::{Follow, Stop, Visitor};

/// The next step, with what the search knows about it; `None` if there is none left.
pub(crate) type Next<T, N> = Result<Option<(Choice, T)>, Stop<N>>;

/// A depth-first search that `at` follows and `V` observes.
pub(crate) trait DepthFirst<S: System, F: Follow<S>, V: Visitor<S>> {
    /// The data of a step before it is taken.
    type Step;

    /// Goes back to where the next step is to be taken, and returns that step.
    fn next(&mut self, at: &mut F, visitor: &mut V) -> Next<Self::Step, S::Need>;

    /// The step was taken, and will be reported.
    fn taken(&mut self, at: &F, visitor: &mut V);

    /// Processes the state that the step led to.
    fn arrive(
        &mut self,
        at: &mut F,
        step: Self::Step,
        visitor: &mut V,
    ) -> Result<(), Stop<S::Need>>;
}

/// Takes the next step. Returns whether there was one.
#[inline(always)]
pub(crate) fn advance<S: System, F: Follow<S>, V: Visitor<S>, D: DepthFirst<S, F, V>>(
    search: &mut D,
    at: &mut F,
    visitor: &mut V,
) -> Result<bool, Stop<S::Need>> {
    let Some((choice, step)) = search.next(at, visitor)? else { return Ok(false) };
    let failure = at.follow(choice)?;
    search.taken(at, visitor);
    visitor.step(at.cursor(), failure)?;
    search.arrive(at, step, visitor)?;
    Ok(true)
}
