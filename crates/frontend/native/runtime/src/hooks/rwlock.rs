//! Reader-writer locks. A thread that holds a read lock may lock it for reading again: other
//! threads cannot observe that, so it is not a scheduling point.
//!
//! Threads that wait for a write lock do not stop readers, as with the default kind of glibc. Locks
//! of the kind whose readers wait while a writer waits are refused.

use core::ffi::{c_int, c_uint};

use super::time::{Time, is_valid, until};
use crate::block::{Misuse, NEVER, ObjectKind, Op};
use crate::real::real;
use crate::schedule::{Next, full, log_misuse, objects, point, runtime, unsupported};
use crate::sys::{EBUSY, EDEADLK, EINVAL, ETIMEDOUT, P};
use crate::thread::ThreadId;
use crate::threads::me;

/// How the calling thread holds a lock.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Held {
    No,
    Reading,
    Writing,
}

/// Refuses a lock that prefers writers. In glibc, `pthread_rwlock_t.__flags` is at byte 48 and has
/// the kind, which attributes or a static initialiser have set.
fn check_kind(lock: P, pc: usize) {
    const PREFER_WRITER_NONRECURSIVE: c_uint = 2;
    if crate::heap::check(lock as usize, pc) {
        // The memory was freed, so it does not contain a lock.
        return;
    }
    // SAFETY: the program passes a valid lock, which has 56 bytes.
    let kind = unsafe { *lock.cast::<u8>().add(48).cast::<c_uint>() };
    if kind == PREFER_WRITER_NONRECURSIVE {
        unsupported("`PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`");
    }
}

fn held(lock: P) -> Held {
    let object = objects().at(ObjectKind::RwLock, lock as u64, || 0);
    let id = ThreadId::new(me());
    if object.is_owned_by(id) {
        Held::Writing
    } else if object.is_held_by(id) {
        Held::Reading
    } else {
        Held::No
    }
}

fn read(lock: P, op: Op, deadline: u64, pc: usize) -> c_int {
    check_kind(lock, pc);
    match held(lock) {
        Held::Writing if op == Op::TryReadLock => EBUSY,
        Held::Writing => EDEADLK,
        Held::Reading => {
            *extra_reads(lock) += 1;
            0
        }
        Held::No => acquire(lock, op, deadline, pc),
    }
}

fn write(lock: P, op: Op, deadline: u64, pc: usize) -> c_int {
    check_kind(lock, pc);
    match held(lock) {
        Held::Writing if op == Op::TryWriteLock => EBUSY,
        Held::Writing => EDEADLK,
        // A thread that reads waits for itself, as with glibc.
        Held::Reading | Held::No => acquire(lock, op, deadline, pc),
    }
}

fn acquire(lock: P, op: Op, deadline: u64, pc: usize) -> c_int {
    let taken = point(Next::on(op, lock as u64, pc).until(deadline));
    match op {
        Op::TryReadLock | Op::TryWriteLock if taken.reply == 0 => EBUSY,
        Op::TimedReadLock | Op::TimedWriteLock if taken.reply == 0 => ETIMEDOUT,
        _ => 0,
    }
}

/// How often the calling thread holds the read lock beyond the first time.
fn extra_reads(lock: P) -> &'static mut u32 {
    let (lock, thread, reads) = (lock as u64, me(), &mut runtime().recursive_reads);
    let own = reads.iter().position(|r| r.extra > 0 && r.lock == lock && r.thread == thread);
    let Some(at) = own.or_else(|| reads.iter().position(|r| r.extra == 0)) else {
        full("threads hold more than 64 read locks more than once");
    };
    (reads[at].lock, reads[at].thread) = (lock, thread);
    &mut reads[at].extra
}

fn unlock(lock: P, pc: usize) -> c_int {
    let held = held(lock);
    if held == Held::Reading {
        let extra = extra_reads(lock);
        if *extra > 0 {
            *extra -= 1;
            return 0;
        }
    }
    let op = if held == Held::Writing { Op::WriteUnlock } else { Op::ReadUnlock };
    point(Next::on(op, lock as u64, pc));
    0
}

hook!(fn pthread_rwlock_init(lock: P, attributes: P; pc) -> c_int {
    objects().create(ObjectKind::RwLock, lock as u64, 0);
    real!(pthread_rwlock_init: extern "C-unwind" fn(P, P) -> c_int)(lock, attributes)
});
hook!(fn pthread_rwlock_destroy(lock: P; pc) -> c_int {
    if objects().at(ObjectKind::RwLock, lock as u64, || 0).is_held() {
        log_misuse(Misuse::DestroyHeldRwLock, lock as u64, pc);
    }
    0
});
hook!(fn pthread_rwlock_rdlock(lock: P; pc) -> c_int { read(lock, Op::ReadLock, NEVER, pc) });
hook!(fn pthread_rwlock_tryrdlock(lock: P; pc) -> c_int { read(lock, Op::TryReadLock, NEVER, pc) });
hook!(fn pthread_rwlock_timedrdlock(lock: P, time: *const Time; pc) -> c_int {
    if is_valid(time) { read(lock, Op::TimedReadLock, until(time), pc) } else { EINVAL }
});
hook!(fn pthread_rwlock_clockrdlock(lock: P, _clock: c_int, time: *const Time; pc) -> c_int {
    if is_valid(time) { read(lock, Op::TimedReadLock, until(time), pc) } else { EINVAL }
});
hook!(fn pthread_rwlock_wrlock(lock: P; pc) -> c_int { write(lock, Op::WriteLock, NEVER, pc) });
hook!(fn pthread_rwlock_trywrlock(
    lock: P; pc
) -> c_int {
    write(lock, Op::TryWriteLock, NEVER, pc)
});
hook!(fn pthread_rwlock_timedwrlock(lock: P, time: *const Time; pc) -> c_int {
    if is_valid(time) { write(lock, Op::TimedWriteLock, until(time), pc) } else { EINVAL }
});
hook!(fn pthread_rwlock_clockwrlock(lock: P, _clock: c_int, time: *const Time; pc) -> c_int {
    if is_valid(time) { write(lock, Op::TimedWriteLock, until(time), pc) } else { EINVAL }
});
hook!(fn pthread_rwlock_unlock(lock: P; pc) -> c_int { unlock(lock, pc) });
