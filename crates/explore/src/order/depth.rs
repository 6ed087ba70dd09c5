//! Depth first over executions of at most N steps, and iterative deepening: db:N and idfs.
//!
//! **Paper.** icb, section 4: the searches that its Figures 2 to 4 compare with.
//!
//! **Guarantees.** Every execution is followed to its end or to its N-th step, where it is cut. No
//! failure that shows within N steps is lost. Iterative deepening ends when nothing was cut, and is
//! then complete; it does not end on programs that can run forever, unless a limit of depth is
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

use crate::codec::Damaged;
use crate::engine::cache::Table;
use crate::engine::execution::Stop;
use crate::engine::tree::{Discard, Extent};
use crate::engine::workers::{PausedSearch, Workers};
use crate::plan::Cache;

/// Explores all executions up to `steps` steps.
pub(crate) fn explore<P: Program>(
    workers: &mut Workers<'_, P>,
    steps: u32,
) -> Result<(), Stop<P::Need>> {
    let paused = resume(workers).map(|(_, paused)| paused);
    round(workers, steps, paused).map(drop)
}

/// Explores all executions up to `by` steps, then up to `by` more, and so on until none is cut or
/// `most` is reached.
pub(crate) fn iterate<P: Program>(
    workers: &mut Workers<'_, P>,
    by: u32,
    most: Option<u32>,
) -> Result<(), Stop<P::Need>> {
    let most = most.unwrap_or(u32::MAX);
    let (mut steps, mut paused) = match resume(workers) {
        Some((steps, paused)) => (steps, Some(paused)),
        None => (by.min(most), None),
    };
    while round(workers, steps, paused.take())? && steps < most {
        steps = steps.saturating_add(by).min(most);
    }
    Ok(())
}

/// The round in which the search has paused, and its remaining work.
fn resume<P: Program>(workers: &Workers<'_, P>) -> Option<(u32, PausedSearch<Discard>)> {
    workers.stats.resume(|from| {
        let (steps, paused): (u32, PausedSearch<Discard>) = from.get()?;
        if paused.fits(workers.count()) { Ok((steps, paused)) } else { Err(Damaged) }
    })
}

/// Explores all executions up to `steps` steps, or the remaining ones. Returns whether any of them
/// was cut.
fn round<P: Program>(
    workers: &mut Workers<'_, P>,
    steps: u32,
    paused: Option<PausedSearch<Discard>>,
) -> Result<bool, Stop<P::Need>> {
    workers.cursor.rewind(0);
    let table = Table::new(Cache::None, workers.count());
    let within = (Extent { preemptions: None, steps: Some(steps) }, &table);
    let done = workers.explore_all(within, paused, |to| to.put(&steps), |_, kept: Discard| kept)?;
    let cut = done.iter().any(|worker| worker.cut);
    workers.stats.complete_bound(steps, cut);
    Ok(cut)
}
