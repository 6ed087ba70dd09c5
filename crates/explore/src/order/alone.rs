//! What one worker has to search again after several, so that their outcome is that of one.
//!
//! Of several workers, who comes first to a state or to a failure depends on how fast they are. Where that would be seen in the
//! outcome, one worker searches again, in its own order:
//!
//! - A search that ends at its first finding: everything again, up to the finding that one worker meets first.
//! - Threads that spin in a search that compares happens-before graphs: everything again. This shows early, if at all.
//! - Schedules of findings where only the first way to a state or a graph is taken: the counts are right, the schedules are looked
//!   for again. Level by level each failure has its best schedule in the first level that shows it, so that the last such level
//!   is the last one that is searched.
//!
//! **Cost.** At most the time of a search by one worker, after that of several. A search that finds nothing costs nothing more.
//!
//! If a limit ends the second search first, what the first one has found is reported: a finding is never withheld.

use super::Explored;
use super::executions::attempt;
use crate::plan::{Cache, Order, Plan};
use crate::system::Program;
use crate::watch::{Stop as Ended, Watch};

/// Searches again after `explored` as far as it is necessary. `most`: the most preemptions that the schedule of a failure has.
pub(super) fn settle<P: Program>(
    plan: &Plan,
    program: &P,
    watch: &Watch<'_>,
    (mut explored, most): (Explored, Option<u32>),
) -> Explored {
    let anew = watch.anew();
    match (watch.reason(), most) {
        (Some(Ended::Alone), _) => {
            let (mut again, _) = attempt(&Plan { jobs: 1, ..*plan }, program, &anew);
            if again.failures.is_empty() {
                again.failures = explored.failures;
            }
            watch.follow(&anew);
            again
        }
        (None, Some(most)) if takes_the_first_way(plan) => {
            let bound = if plan.order == Order::DfsHb { plan.bound } else { Some(most) };
            let (again, _) = attempt(&Plan { jobs: 1, bound, ..*plan }, program, &anew);
            if anew.reason().is_none() {
                explored.failures = again.failures;
            }
            explored
        }
        _ => explored,
    }
}

/// Whether of several ways to the same thing only the first is taken.
fn takes_the_first_way(plan: &Plan) -> bool {
    matches!(plan.order, Order::Icb { cache: Cache::State | Cache::Hb } | Order::DfsHb)
}
