//! The harness of a test of a data structure: its threads call operations, and the calls and
//! returns are steps of the execution. The same steps record a history of the user's.
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

/// The progress that operations have to make whatever other threads do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Progress {
    /// They may wait for other threads.
    #[default]
    Any,
    /// An operation whose thread runs alone returns.
    ObstructionFree,
    /// Some operation returns, whichever threads run.
    LockFree,
}

/// Judges executions of a harness that end with threads that wait forever, or in which operations
/// make no progress.
pub(crate) trait Harness: Send + Sync {
    /// The progress that operations have to make.
    fn progress(&self) -> Progress {
        Progress::Any
    }

    /// The failure of an execution in which the operation of a thread makes no progress; `how` says
    /// why.
    fn judge_waiting(&self, _thread: u8, how: &str) -> Failure {
        unreachable!("only operations that have to make progress are judged: {how}")
    }

    /// The failure of an execution in which the pending calls never return; `failure` is the
    /// deadlock or livelock that it is without a harness. `None` if they may wait.
    fn judge_stuck(&self, failure: Failure) -> Option<Failure>;
}

/// What describes the objects of returns, which are not objects of the program.
pub(crate) const NOUN: &str = "returns";

impl Runtime {
    /// Installs the harness of this execution, and returns the first object of its threads'
    /// returns.
    pub(crate) fn begin_harness(&mut self, harness: Arc<dyn Harness>, threads: u8) -> u32 {
        self.harness = Some(harness);
        self.begin_returns(threads)
    }

    /// Makes an object for the returns of each thread, and returns the first of them; the others
    /// follow it. Their places do not depend on the schedule: what a thread has begun before
    /// depends on its own past alone. They are consecutive, because all places of a history get
    /// their locations here, when the first of them does.
    pub(crate) fn begin_returns(&mut self, threads: u8) -> u32 {
        let here = site::id(Site::caller());
        let slot = self.current as u8;
        let nth = self.threads[self.current].histories;
        self.threads[self.current].histories += 1;
        let names = self.recording.names_mut();
        let place = |thread| Place::Returns { slot, nth, threads, thread };
        let objects: Vec<u32> =
            (0..threads).map(|thread| names.locate(place(thread), None, NOUN, here)).collect();
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
#[track_caller]
pub(crate) fn call(returns: Returns, label: impl FnOnce() -> String) {
    point(op(OpKind::Call(returns), NO_OBJECT, "call", Site::caller()));
    describe(label);
}

/// The scheduling point at which the operation returns.
#[track_caller]
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
