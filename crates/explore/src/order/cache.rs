//! Which steps were taken before from the same state, and with how few preemptions.
//!
//! A step from a state is covered if it was taken with no more preemptions than now. Comparing the numbers of preemptions is
//! what makes a table sound under a bound: a plain set of visited states, filled depth first, takes a state that was
//! reached with the last preemption for explored, and loses what a cheaper way to it could still do. Level by level the number
//! never falls, and the table is as good as a set.

use preempt_system::Choice;

use crate::cursor::Cursor;
use crate::names::{Name, NameMap, table_bytes};
use crate::plan::Cache;
use crate::system::System;

/// The least number of preemptions with which each step was taken.
pub(crate) struct Table {
    cache: Cache,
    least: NameMap<u32>,
}

impl Table {
    pub(crate) fn new(cache: Cache) -> Table {
        Table { cache, least: NameMap::default() }
    }

    /// The name of a step, if steps are remembered.
    pub(crate) fn name<S: System>(&self, cursor: &Cursor<S>, choice: Choice) -> Option<Name> {
        let state = match self.cache {
            Cache::None => return None,
            Cache::State => {
                Name::of_state(cursor.system().words().expect("Plan::suits: states are compared where they are known"))
            }
            Cache::Hb => cursor.graph().expect("the cursor of a search with this table records").fingerprint().into(),
        };
        Some(state.with(choice))
    }

    /// Whether a step was taken with at most so many preemptions.
    pub(crate) fn covers(&self, step: Option<Name>, preemptions: u32) -> bool {
        step.and_then(|step| self.least.get(&step)).is_some_and(|&least| least <= preemptions)
    }

    /// Takes note of a step that is about to be taken and was not covered.
    pub(crate) fn insert(&mut self, step: Option<Name>, preemptions: u32) {
        debug_assert!(!self.covers(step, preemptions), "what is covered is not taken");
        self.least.extend(step.map(|step| (step, preemptions)));
    }

    /// Its memory.
    pub(crate) fn bytes(&self) -> usize {
        table_bytes::<(Name, u32)>(self.least.capacity())
    }
}
