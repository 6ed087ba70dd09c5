//! Whether the orderings of a program allow anything beyond sequential consistency.
//!
//! A check that does not name a memory model explores weak memory if that makes a difference. Most
//! programs never use an ordering weaker than `SeqCst`, and many that do allow nothing more by it:
//! counters that are only updated by read-modify-writes, flags that are read under a lock. For them
//! a search under sequential consistency is complete, and the reductions, which weak memory does
//! not admit, can be used. So a check has up to three stages:
//!
//! 1. It searches under sequential consistency, at no cost, until an execution with several threads
//!    uses a weaker ordering.
//! 2. The same search starts over and every access is also performed by a [`StaleWatch`], until an
//!    access could be stale: a load that could read an older store than the newest one, a store
//!    that could come before others in modification order, or a read-modify-write or exchange that
//!    could read an older store.
//! 3. The check starts over under weak memory.
//!
//! In most programs that reach the third stage, the very first execution gets there.
//!
//! # Why stage 2 loses nothing
//!
//! Take an execution of weak memory, its steps in any order in which it can be performed, and the
//! first of its steps that is stale. The steps before it are not: they are the beginning of a
//! sequentially consistent execution, which costs at least one less than the bound, so stage 2
//! explores that beginning or an equivalent one, in which the accesses to each location have the
//! same order. Whether the step can be stale there depends on the modification order of its
//! location and on which accesses to it happen before the step, which are the same in equivalent
//! executions; and, for `SeqCst` accesses and fences, on the total order that RC11 asks for, which
//! may forbid more in one of two equivalent executions than in the other. So a watch ignores that
//! order: it performs every access with the strongest ordering below `SeqCst`, which has the same
//! happens-before. It may thus start stage 3 without a need, and never fails to.
//!
//! Whether the watch restarts the search depends on the steps of the execution alone. So executing
//! the schedule of a finding again does not restart what did not restart before.

use std::sync::atomic::Ordering;

use preempt_replay::OpKind;
use preempt_system::memory::{Memory as _, MemoryAccess, Weak as WeakMemory};
use preempt_system::{SyncClocks, ThreadId};

/// Follows a sequentially consistent execution with a weak memory.
#[derive(Debug, Default)]
pub(crate) struct StaleWatch {
    memory: WeakMemory,
}

/// An access that was performed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatchedAccess {
    pub(crate) thread: ThreadId,
    pub(crate) location: u32,
    pub(crate) kind: OpKind,
    /// The ordering that applies.
    pub(crate) order: Ordering,
    /// The value before it.
    pub(crate) old: u64,
    /// The value that it wrote.
    pub(crate) written: Option<u64>,
}

impl StaleWatch {
    /// An execution begins.
    pub(crate) fn clear(&mut self) {
        self.memory.clear();
    }

    /// Performs an access, which advances the clocks. Returns whether weak memory might allow it to
    /// be stale.
    pub(crate) fn perform(&mut self, clocks: &mut SyncClocks, access: WatchedAccess) -> bool {
        let WatchedAccess { thread, location, kind, order, old, written } = access;
        let memory = &mut self.memory;
        if memory.latest(location) != Some(old) {
            memory.initialise(location, old);
        }
        let order = match (order, kind) {
            (Ordering::SeqCst, OpKind::Load(_)) => Ordering::Acquire,
            (Ordering::SeqCst, OpKind::Store(_)) => Ordering::Release,
            (Ordering::SeqCst, _) if written.is_none() => Ordering::Acquire,
            (Ordering::SeqCst, _) => Ordering::AcqRel,
            (order, _) => order,
        };
        let wanted = match kind {
            OpKind::Store(_) => MemoryAccess::Store(order),
            OpKind::Update(_) => MemoryAccess::Update(order),
            // An exchange may also fail on an old value.
            _ => MemoryAccess::Load(Ordering::Relaxed),
        };
        let alternatives = memory.alternatives(clocks, thread, location, wanted).len();
        match (kind, written) {
            (OpKind::Store(_), Some(value)) => {
                memory.store(clocks, thread, location, value, order, 0);
            }
            (_, Some(value)) => {
                memory.update(clocks, thread, location, (order, order), 0, |_| Some(value));
            }
            (_, None) => {
                memory.load(clocks, thread, location, order, 0);
            }
        }
        alternatives > 1
    }
}
