//! The harness of a test of a data structure: its threads call operations, and the calls and
//! returns are steps of the execution.
//!
//! Real-time order is part of what is explored because of that: see [`Returns`]. Code that keeps a
//! clock of its own instead, a counter that is read at calls and returns, records the order of
//! whichever schedule a search happens to execute among those with the same happens-before graph.

use std::panic::Location as Site;
use std::sync::Arc;

use preempt_replay::{NO_OBJECT, OpKind, Returns};
use preempt_system::Failure;

use super::place::Place;
use super::{Runtime, describe, op, point, site, with};

/// Judges executions of a harness that end with threads that wait forever.
pub(crate) trait Harness: Send + Sync {
    /// The failure of an execution in which the pending calls never return; `failure` is the
    /// deadlock or livelock that it is without a harness. `None` if they may wait.
    fn judge_stuck(&self, failure: Failure) -> Option<Failure>;
}

/// What describes the objects of returns, which are not objects of the program.
pub(crate) const NOUN: &str = "returns";

impl Runtime {
    /// Installs the harness of this execution, and returns the objects of its threads' returns. Has
    /// to be called before the program uses any object, so that these are consecutive.
    pub(crate) fn begin_harness(&mut self, harness: Arc<dyn Harness>, threads: u8) -> u32 {
        self.harness = Some(harness);
        let here = site::id(Site::caller());
        let names = self.recording.names_mut();
        let objects: Vec<u32> = (0..threads)
            .map(|thread| names.locate(Place::Returns { thread }, None, NOUN, here))
            .collect();
        let is_next = |pair: &[u32]| pair[0] + 1 == pair[1];
        assert!(objects.windows(2).all(is_next), "the objects of returns are consecutive");
        objects.first().copied().unwrap_or(NO_OBJECT)
    }

    /// Whether an object is that of the returns of a thread.
    pub(crate) fn is_of_harness(&self, object: u32) -> bool {
        let place = self.recording.names().place(object);
        matches!(place, Some(Place::Returns { .. }))
    }
}

/// The scheduling point at which a thread calls an operation. `label` describes it.
pub(crate) fn call(returns: Returns, label: impl FnOnce() -> String) {
    point(op(OpKind::Call(returns), NO_OBJECT, "call", Site::caller()));
    describe(label);
}

/// The scheduling point at which the operation returns.
pub(crate) fn returned(returns: Returns, label: impl FnOnce() -> String) {
    let own = returns.first + u32::from(returns.caller);
    point(op(OpKind::Return, own, "return", Site::caller()));
    describe(label);
}

/// Names the running thread.
pub(crate) fn name_thread(name: &str) {
    with(|runtime| {
        let current = runtime.current;
        if runtime.threads[current].name.as_deref() != Some(name) {
            runtime.threads[current].name = Some(name.to_owned());
        }
    });
}
