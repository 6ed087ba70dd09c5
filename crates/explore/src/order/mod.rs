//! In which order states or executions are explored, and by how many workers.
//!
//! Each order of states is one file and a loop over the same parts:
//! [`expand`](crate::engine::expand) computes the successors of a state, a
//! [store](crate::engine::store) knows which of them are new, and a
//! [control](crate::engine::control) decides when to stop.
//!
//! Each order of executions is one file too. It moves a [cursor](crate::engine::cursor) and reports
//! to [`ExecutionStats`](crate::engine::stats::ExecutionStats). The systematic ones share the loop
//! of [`tree`](crate::engine::tree), the random ones that of [`walk`]; the
//! [workers](crate::engine::workers) of a search run both.

pub(crate) mod bfs;
pub(crate) mod bounded;
pub(crate) mod depth;
pub(crate) mod dfs;
pub(crate) mod distributed;
mod frontier;
pub(crate) mod icb;
pub(crate) mod pct;
pub(crate) mod random;
pub(crate) mod retrace;
pub(crate) mod sorted;
pub(crate) mod urw;
pub(crate) mod walk;

use crate::engine::expand::Checks;
use crate::plan::ResolvedPlan;

/// Successors that are looked up together, at least.
const BATCH: usize = 64;

/// The checks that a plan asks for.
fn checks(plan: &ResolvedPlan) -> Checks {
    Checks { deadlock: plan.deadlock, keep_going: plan.keep_going }
}
