//! Schedules for the failures of a search that keeps no paths: one worker searches again.
//!
//! The second search has one worker and one fixed order, so the reported schedules do not depend on
//! the number of workers of the first.
//!
//! The hash function is fixed, so a store that may omit states omits the same ones when one worker
//! searches again. After several workers a bitstate store may have omitted other states; a failure
//! that is missing in the second search is then searched for with an exact store, which omits none.

use preempt_system::{Failure, Schedule};

use crate::engine::control::SearchControl;
use crate::engine::distinct_failures::DistinctFailures;
use crate::engine::execution::Stop;
use crate::engine::memory;
use crate::engine::store::{self, Visited};
use crate::plan::{Limits, ResolvedPlan, StoreKind};

/// A schedule for each of the failures in `wanted`, or only the best one unless the plan keeps
/// going. `search` returns the failures that it finds, the best first. They may include failures
/// that the first search did not find, if the store omits states.
pub(crate) fn retrace<E>(
    plan: &ResolvedPlan,
    wanted: &DistinctFailures<E>,
    control: &SearchControl,
    search: impl Fn(&ResolvedPlan, &SearchControl) -> Vec<(Failure, Schedule)>,
) -> Vec<(Failure, Schedule)> {
    let serial = ResolvedPlan { jobs: 1, ..*plan };
    let exact = ResolvedPlan { strategy: plan.strategy.with_store(StoreKind::Exact), ..serial };
    for plan in [serial, exact] {
        let own = SearchControl::unobserved(Limits::default());
        let mut found = search(&plan, &own);
        let is_found = |failure: &Failure| found.iter().any(|(other, _)| other == failure);
        let is_done = match plan.keep_going {
            true => wanted.iter().all(|(failure, _)| is_found(failure)),
            false => !found.is_empty(),
        };
        if is_done {
            found.truncate(if plan.keep_going { usize::MAX } else { 1 });
            return found;
        }
        match own.reason() {
            // Only a state that the first search did not visit can be too large. The whole search
            // starts again with larger states.
            Some(Stop::Restart(capacity)) => {
                control.stop(Stop::Restart(capacity));
                return Vec::new();
            }
            Some(Stop::Limit(limit)) => panic!("the second search stopped at a limit: {limit:?}"),
            _ => {}
        }
    }
    panic!("an exact search finds what the first search found")
}

/// An empty store for the second search.
pub(crate) fn store(plan: &ResolvedPlan, words: usize) -> Box<dyn Visited> {
    let Ok(store) = store::build(plan.strategy.store(), words, 1) else {
        panic!("the first search has freed the memory for the second");
    };
    store
}

/// The bytes that a second search may use in addition to the `first_bytes` that the first search
/// needed and has freed. At least a sixteenth of the limit is always granted: with less, the path
/// would have to be recovered in very many parts.
pub(crate) fn room(limits: &Limits, first_bytes: usize) -> usize {
    let left = |limit: usize, used: usize| {
        limit.saturating_sub(used.saturating_add(first_bytes)).max(limit / 16)
    };
    let tables = limits.memory.map(|limit| left(limit, 0));
    let process = limits.resident.and_then(|limit| {
        memory::release_free_blocks();
        Some(left(limit - limit / 16, memory::resident()?))
    });
    tables.into_iter().chain(process).min().unwrap_or(usize::MAX)
}

/// The labels on the path from the root to `node`, in order. `parent` returns the parent of a node
/// and the label of the edge between them, or `None` at the root.
pub(crate) fn path<N, L>(node: N, parent: impl Fn(&N) -> Option<(N, L)>) -> Vec<L> {
    let (mut labels, mut node) = (Vec::new(), node);
    while let Some((above, label)) = parent(&node) {
        labels.push(label);
        node = above;
    }
    labels.reverse();
    labels
}
