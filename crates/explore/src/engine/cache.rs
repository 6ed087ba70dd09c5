//! The cache of steps: which were taken from the same state, and with how many preemptions.
//!
//! A step from a state is covered if it was taken with no more preemptions than now. Comparing the
//! numbers of preemptions is what makes a table sound under a bound: a plain set of visited states,
//! filled depth first, treats a state that was reached with the last preemption as explored, and
//! loses what a path to it with fewer preemptions could still reach. A search that explores level
//! by level never lowers the number, so for it the table is as good as a set.

use preempt_system::{Choice, System};

use crate::codec::save_in_place;
use crate::engine::cursor::Cursor;
use crate::engine::names::Name;
use crate::engine::sharded::Sharded;
use crate::plan::Cache;

/// The least number of preemptions with which each step was taken.
pub(crate) struct Table {
    cache: Cache,
    workers: usize,
    least: Sharded<u32>,
}

save_in_place!(Table { least });

impl Table {
    /// An empty table that `workers` share.
    pub(crate) fn new(cache: Cache, workers: usize) -> Table {
        Table { cache, workers, least: Sharded::new(workers) }
    }

    /// The name of a step, if steps are remembered.
    #[inline]
    pub(crate) fn name<S: System>(&self, cursor: &Cursor<S>, choice: Choice) -> Option<Name> {
        match self.cache {
            Cache::None => None,
            Cache::State | Cache::Hb => self.remembered_name(cursor, choice),
        }
    }

    fn remembered_name<S: System>(&self, cursor: &Cursor<S>, choice: Choice) -> Option<Name> {
        let state = match self.cache {
            Cache::None => return None,
            Cache::State => Name::of_state(
                cursor
                    .system()
                    .words()
                    .expect("Plan::suits: states are compared only if the system has them"),
            ),
            Cache::Hb => {
                let graph: Name = cursor
                    .name()
                    .expect("a search with this table records happens-before graphs")
                    .into();
                match cursor.system().announced() {
                    0 => graph,
                    announced => graph.and(announced),
                }
            }
        };
        Some(state.with(choice))
    }

    /// Whether a step was taken with at most `preemptions`.
    pub(crate) fn covers(&self, step: Option<Name>, preemptions: u32) -> bool {
        step.and_then(|step| self.least.get(step)).is_some_and(|least| least <= preemptions)
    }

    /// Claims a step with `preemptions`. Returns whether it was not covered before; from now on it
    /// is. Of several workers that claim a step with the same number, exactly one gets `true`.
    pub(crate) fn take(&self, step: Option<Name>, preemptions: u32) -> bool {
        step.is_none_or(|step| self.least.lower(step, preemptions))
    }

    /// The bytes of the table divided by the number of workers.
    pub(crate) fn bytes(&self) -> usize {
        self.least.bytes() / self.workers
    }
}
