//! What synchronises in real code: the operations of threads as operations of the race detector.
//!
//! A lock synchronises with the unlock before it, a join with the end of its thread, `unpark` with
//! the `park` that it ends, the arrivals at a barrier with the departures from it. A failed attempt
//! synchronises with nothing. Accesses to atomics depend on their memory orderings, and front ends
//! report them when they are performed, because a compare-and-exchange decides only then which of
//! its two orderings counts.

use preempt_system::race::RaceDetector;
use preempt_system::{Action, ThreadId};

use crate::op::{Op, OpKind};

/// Reports an operation of `thread` on objects with fields. `reply` is what the object replied.
pub fn synchronise<M: Copy>(
    detector: &mut RaceDetector<M>,
    thread: ThreadId,
    op: &Op,
    alternative: u32,
    reply: i64,
) {
    let object = op.object;
    match op.kind {
        OpKind::Finish => detector.release(thread, thread.index() as u32),
        OpKind::Downgrade => detector.release(thread, object),
        OpKind::Wait => detector.release(thread, op.other),
        OpKind::Wake { .. } => detector.acquire(thread, op.other),
        OpKind::Park { .. } if alternative == 0 => detector.acquire(thread, object),
        OpKind::Object(action) => match action {
            Action::Lock | Action::Join | Action::Leave => detector.acquire(thread, object),
            Action::TryLock if reply == 1 => detector.acquire(thread, object),
            Action::Unlock | Action::Unpark => detector.release(thread, object),
            Action::Arrive => {
                detector.acquire(thread, object);
                detector.release(thread, object);
            }
            Action::ReadLock => detector.acquire(thread, object),
            Action::TryReadLock if reply == 1 => detector.acquire(thread, object),
            Action::ReadUnlock => detector.release_shared(thread, object),
            Action::WriteLock => detector.acquire_exclusive(thread, object),
            Action::TryWriteLock if reply == 1 => detector.acquire_exclusive(thread, object),
            Action::WriteUnlock => detector.release(thread, object),
            Action::Acquire | Action::Await | Action::Recv => detector.acquire(thread, object),
            Action::TryAcquire if reply == 1 => detector.acquire(thread, object),
            Action::Release | Action::Set | Action::Send(_) => detector.release(thread, object),
            _ => {}
        },
        _ => {}
    }
}
