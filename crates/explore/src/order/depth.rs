//! Depth first over executions of at most N steps, and iterative deepening: db:N and idfs.
//!
//! **Paper.** icb, section 4: the searches that its Figures 2 to 4 compare with.
//!
//! **Guarantees.** Every execution is followed to its end or to its N-th step, where it is cut. No
//! failure that shows within N steps is lost. Iterative deepening ends when nothing was cut, and is
//! then complete; it does not end on programs that can run for ever, unless a limit of depth is
//! given.
//!
//! **Map.** db:N is [`Order::Depth`](crate::Order::Depth), idfs is
//! [`Order::IterativeDepth`](crate::Order::IterativeDepth).
//!
//! **Deviations.** 1. Executions that end and those that are cut are counted apart, as the paper
//! does not. 2. idfs begins with its own increment.
//!
//! **Cost.** Nothing is kept but the current execution. Every round takes the steps of those before
//! again.

use preempt_system::Program;

use super::cache::Table;
use super::crew::{Crew, Left};
use super::tree::{Extent, Forget};
use crate::engine::execution::{Stop, Visitor};
use crate::plan::Cache;

/// Explores all executions up to `steps` steps.
pub(crate) fn explore<P: Program>(crew: &mut Crew<'_, P>, steps: u32) -> Result<(), Stop<P::Need>> {
    let left = resume(crew).map(|(_, left)| left);
    round(crew, steps, left).map(drop)
}

/// Explores all executions up to `by` steps, then up to `by` more, and so on until none is cut or
/// `most` is reached.
pub(crate) fn iterate<P: Program>(
    crew: &mut Crew<'_, P>,
    by: u32,
    most: Option<u32>,
) -> Result<(), Stop<P::Need>> {
    let most = most.unwrap_or(u32::MAX);
    let (mut steps, mut left) = match resume(crew) {
        Some((steps, left)) => (steps, Some(left)),
        None => (by.min(most), None),
    };
    while round(crew, steps, left.take())? && steps < most {
        steps = steps.saturating_add(by).min(most);
    }
    Ok(())
}

/// The round in which the search has paused, and what is left of it.
fn resume<'p, P: Program>(crew: &mut Crew<'p, P>) -> Option<(u32, Left<Forget>)> {
    let workers = crew.workers();
    Visitor::<P::System<'p>>::resume(&mut crew.census, |from| {
        Ok((from.get()?, Left::load(workers, from, |_, from| Forget::load(from))?))
    })
}

/// Explores all executions up to `steps` steps, or what is left of them. Whether any of them was
/// cut.
fn round<P: Program>(
    crew: &mut Crew<'_, P>,
    steps: u32,
    left: Option<Left<Forget>>,
) -> Result<bool, Stop<P::Need>> {
    crew.cursor.rewind(0);
    let table = Table::new(Cache::None, crew.workers());
    let extent = Extent { preemptions: None, steps: Some(steps) };
    let done =
        crew.explore_all((extent, &table), left, |_| Forget::default(), |to| to.put(&steps))?;
    let cut = done.iter().any(|rest| rest.cut);
    crew.bound(steps, cut);
    Ok(cut)
}
