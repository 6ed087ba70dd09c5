//! In which order states or executions are explored, and by how many workers.
//!
//! Each order of states is one file and a loop over the same parts:
//! [`expand`](crate::engine::expand) says what a state leads to, a [store](crate::engine::store)
//! says which of that is new, a [`SearchControl`] says when to stop.
//!
//! Each order of executions is one file too. It moves a [cursor](crate::engine::cursor) and tells a
//! [`ExecutionStats`](crate::engine::stats::ExecutionStats) what it sees. The systematic ones share the loop of
//! [`tree`], the random ones that of [`walk`]; both are done by the workers of a [`workers`].

pub(crate) mod bfs;
pub(crate) mod bounded;
pub(crate) mod depth;
pub(crate) mod dfs;
mod frontier;
pub(crate) mod icb;
pub(crate) mod pct;
pub(crate) mod random;
pub(crate) mod retrace;
pub(crate) mod urw;
pub(crate) mod walk;

use crate::engine::expand::Checks;
use crate::plan::Plan;

/// Successors that are looked up together, at least.
const BATCH: usize = 64;

/// What a plan asks to be checked.
fn checks(plan: &Plan) -> Checks {
    Checks { deadlock: plan.deadlock, keep_going: plan.keep_going }
}
