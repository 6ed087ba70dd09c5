//! Synchronisation in real code: maps the operations of threads to operations of the race clocks.
//!
//! A lock synchronises with the unlock before it, a join with the end of its thread, `unpark` with
//! the `park` that it ends, the arrivals at a barrier with the departures from it
//! ([`SyncClocks::act`]). A failed attempt synchronises with nothing. Accesses to atomics depend on
//! their memory orderings, and front ends report them when they are performed, because a
//! compare-and-exchange decides only then which of its two orderings counts.

use preempt_system::{SyncClocks, ThreadId};

use crate::op::{Op, OpKind};

/// Reports an operation of `thread` on objects with fields. `reply` is what the object replied.
pub fn synchronise(
    clocks: &mut SyncClocks,
    thread: ThreadId,
    op: &Op,
    alternative: u32,
    reply: i64,
) {
    let object = op.object;
    match op.kind {
        OpKind::Finish => clocks.release(thread, thread.index() as u32),
        OpKind::Downgrade => clocks.release(thread, object),
        OpKind::Wait => clocks.release(thread, op.other),
        // The thread locks the mutex later.
        OpKind::Wake { .. } if op.times_out(alternative) => {}
        OpKind::Wake { .. } => clocks.acquire(thread, op.other),
        OpKind::Park { .. } if alternative == 0 => clocks.acquire(thread, object),
        OpKind::Object(action) => clocks.act(thread, object, action, reply),
        _ => {}
    }
}
