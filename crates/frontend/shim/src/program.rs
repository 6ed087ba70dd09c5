//! A closure as a program whose executions can be explored.

use std::sync::Mutex;

use preempt_explore::system::Program;
use preempt_system::Capacity;

use crate::runtime::names::{MOST_THREADS, Names};
use crate::runtime::{Options, Runtime, SLOTS};
use crate::system::Execution;

/// Thread slots at the beginning; more are made when a run needs them.
const FEW: usize = 4;

/// A closure under test.
pub(crate) struct Closure<'f> {
    body: &'f (dyn Fn() + Sync),
    pub(crate) options: Options,
    slots: usize,
    /// The names that the executions so far have given. They are handed from one system to the next.
    names: Mutex<Option<Names>>,
    /// Why the search cannot go on, if it cannot.
    pub(crate) refusal: Option<String>,
}

impl<'f> Closure<'f> {
    pub(crate) fn new(body: &'f (dyn Fn() + Sync), options: Options) -> Closure<'f> {
        Closure { body, options, slots: FEW, names: Mutex::new(None), refusal: None }
    }

    /// Keeps the names for the next system.
    pub(crate) fn keep(&self, names: Names) {
        *self.names.lock().expect("nobody panics while it keeps names") = Some(names);
    }

    fn names(&self) -> Names {
        let kept = self.names.lock().expect("nobody panics while it keeps names").clone();
        kept.unwrap_or_else(|| Names::new(self.slots))
    }
}

impl<'f> Program for Closure<'f> {
    type System<'p>
        = Execution<'p>
    where
        Self: 'p;

    fn start(&self) -> Result<Execution<'_>, Capacity> {
        Execution::new(self, self.body, Runtime::new(self.options, self.names()))
    }

    fn grow(mut self, capacity: Capacity) -> Self {
        debug_assert_eq!(capacity.part, SLOTS, "only threads can be too many");
        if capacity.value > MOST_THREADS as i64 {
            self.refusal = Some(format!(
                "the test starts more than {MOST_THREADS} threads, the first one included; that is the most that is supported: start \
                 fewer threads"
            ));
        }
        self.slots = (2 * self.slots).min(MOST_THREADS);
        self.names = Mutex::new(None);
        self
    }
}
