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
use super::tree::{Discard, Extent};
use super::workers::{PausedSearch, Workers};
use crate::engine::execution::{Stop, Visitor};
use crate::plan::Cache;

/// Explores all executions up to `steps` steps.
pub(crate) fn explore<P: Program>(
    workers: &mut Workers<'_, P>,
    steps: u32,
) -> Result<(), Stop<P::Need>> {
    let left = resume(workers).map(|(_, left)| left);
    round(workers, steps, left).map(drop)
}

/// Explores all executions up to `by` steps, then up to `by` more, and so on until none is cut or
/// `most` is reached.
pub(crate) fn iterate<P: Program>(
    workers: &mut Workers<'_, P>,
    by: u32,
    most: Option<u32>,
) -> Result<(), Stop<P::Need>> {
    let most = most.unwrap_or(u32::MAX);
    let (mut steps, mut left) = match resume(workers) {
        Some((steps, left)) => (steps, Some(left)),
        None => (by.min(most), None),
    };
    while round(workers, steps, left.take())? && steps < most {
        steps = steps.saturating_add(by).min(most);
    }
    Ok(())
}

/// The round in which the search has paused, and what is left of it.
fn resume<'p, P: Program>(workers: &mut Workers<'p, P>) -> Option<(u32, PausedSearch<Discard>)> {
    let jobs = workers.count();
    Visitor::<P::System<'p>>::resume(&mut workers.stats, |from| {
        Ok((from.get()?, PausedSearch::load(jobs, from, |_, from| Discard::load(from))?))
    })
}

/// Explores all executions up to `steps` steps, or what is left of them. Whether any of them was
/// cut.
fn round<P: Program>(
    workers: &mut Workers<'_, P>,
    steps: u32,
    left: Option<PausedSearch<Discard>>,
) -> Result<bool, Stop<P::Need>> {
    workers.cursor.rewind(0);
    let table = Table::new(Cache::None, workers.count());
    let extent = Extent { preemptions: None, steps: Some(steps) };
    let done =
        workers.explore_all((extent, &table), left, |_| Discard::default(), |to| to.put(&steps))?;
    let cut = done.iter().any(|rest| rest.cut);
    workers.bound(steps, cut);
    Ok(cut)
}
