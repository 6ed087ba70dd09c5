//! Accesses that last as long as a closure.
//!
//! The pointer that a closure gets may be used until the closure returns or unwinds, so the whole
//! closure is one access. It has no length if the closure performs no operation.
//!
//! # Why starts and ends suffice
//!
//! Two conflicting accesses race unless the end of one happens before the start of the other. Take
//! the one that starts later in the execution. Its end does not happen before the start of the
//! other, so they race iff the end of the other does not happen before its start. If the other has
//! ended, the race detector knows: an end is recorded like an access, in place of its start. If it
//! has not, then its end happens before nothing so far, and they race. So it is enough to check an
//! access when it starts, against accesses that have ended, whose clocks are those of their ends,
//! and against accesses that [last](LastingAccesses).
//!
//! Comparing clocks at the starts and ends alone would not do. If one thread publishes in the
//! middle of its access, another thread writes and publishes, and the first one waits for that
//! before its access ends, then both ends of the access are ordered with the write, and what lies
//! between them is not.

use std::panic::Location as Site;

use preempt_replay::{NO_OBJECT, OpKind};
use preempt_system::{Access, ThreadId};

use super::Accessed;
use crate::runtime::identity::Identity;
use crate::runtime::{changes, inside, op, point, with};

/// The accesses of an execution that have not ended.
#[derive(Debug, Default)]
pub(crate) struct LastingAccesses(Vec<LastingAccess>);

#[derive(Debug)]
struct LastingAccess {
    thread: ThreadId,
    accessed: Accessed,
    /// The time of its start on the clock of its thread, and the number of operations before it.
    since: (u32, u32),
}

impl LastingAccesses {
    /// An execution begins.
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// An access by another thread that conflicts with one by `thread`: its thread, its kind and
    /// its place.
    pub(super) fn conflict(
        &self,
        thread: ThreadId,
        cell: u32,
        access: Access,
    ) -> Option<(ThreadId, Access, &'static Site<'static>)> {
        let conflicts = |lasting: &&LastingAccess| {
            let other = &lasting.accessed;
            lasting.thread != thread
                && other.cell == cell
                && (access == Access::Write || other.access == Access::Write)
        };
        let found = self.0.iter().find(conflicts)?;
        Some((found.thread, found.accessed.access, found.accessed.site))
    }
}

/// Ends an access when it is dropped. What is known about the access is in the execution, because
/// times on the stack of a thread would make equal states look different.
pub(super) struct Lasting<'a>(Option<&'a Identity>);

impl Accessed {
    /// The access, which was recorded just now, lasts until the result is dropped. `cell` is the
    /// cell, if it is known to exist until then.
    pub(super) fn lasts(self, cell: Option<&Identity>) -> Lasting<'_> {
        with(|runtime| {
            let thread = ThreadId::new(runtime.current);
            let since = (runtime.races.clocks.epoch(thread).time, runtime.done);
            runtime.lasting.0.push(LastingAccess { thread, accessed: self, since });
        });
        Lasting(cell)
    }
}

impl Drop for Lasting<'_> {
    fn drop(&mut self) {
        if !inside() {
            return;
        }
        // Closures of a thread nest, so the last access of the thread ends first. Time advances
        // without an operation when a thread starts another one.
        let ended = with(|runtime| {
            let thread = ThreadId::new(runtime.current);
            let at = runtime.lasting.0.iter().rposition(|lasting| lasting.thread == thread)?;
            let now = (runtime.races.clocks.epoch(thread).time, runtime.done);
            let LastingAccess { accessed, since, .. } = runtime.lasting.0.remove(at);
            (since != now).then_some(accessed)
        });
        let Some(accessed) = ended else { return };
        if accessed.access == Access::Write {
            changes();
        }
        if with(|runtime| runtime.stops_before_access()) {
            point(op(OpKind::Yield, NO_OBJECT, "access", accessed.site));
        }
        if let Some(identity) = self.0 {
            identity.is_there(accessed.cell, "cell", accessed.site);
        }
        accessed.note();
    }
}
