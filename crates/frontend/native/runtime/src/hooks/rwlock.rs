//! Reader-writer locks. A thread that already reads may read again: that changes nothing for other
//! threads and is not a scheduling point.

use core::ffi::c_int;

use super::time::{Time, until};
use crate::block::{Misuse, NEVER, ObjectKind, Op};
use crate::real::real;
use crate::schedule::{Next, full, log_misuse, objects, point, runtime};
use crate::sys::{EBUSY, EDEADLK, ETIMEDOUT, P};
use crate::thread::ThreadId;
use crate::threads::me;

/// Whether the calling thread has the lock for writing, for reading, or not.
fn held(lock: P) -> (bool, bool) {
    let object = objects().at(ObjectKind::RwLock, lock as u64, || 0);
    let id = ThreadId::new(me());
    let writes = object.is_owned_by(id);
    (writes, !writes && object.is_held_by(id))
}

fn read(lock: P, op: Op, deadline: u64, pc: usize) -> c_int {
    match held(lock) {
        (true, _) if op == Op::TryReadLock => return EBUSY,
        (true, _) => return EDEADLK,
        (_, true) => {
            *reads_again(lock) += 1;
            return 0;
        }
        _ => {}
    }
    acquire(lock, op, deadline, pc)
}

fn write(lock: P, op: Op, deadline: u64, pc: usize) -> c_int {
    if held(lock).0 {
        return if op == Op::TryWriteLock { EBUSY } else { EDEADLK };
    }
    acquire(lock, op, deadline, pc)
}

fn acquire(lock: P, op: Op, deadline: u64, pc: usize) -> c_int {
    let taken = point(Next::on(op, lock as u64, pc).until(deadline));
    match op {
        Op::TryReadLock | Op::TryWriteLock if taken.reply == 0 => EBUSY,
        Op::TimedReadLock | Op::TimedWriteLock if taken.reply == 0 => ETIMEDOUT,
        _ => 0,
    }
}

/// How often the calling thread reads beyond the first time.
fn reads_again(lock: P) -> &'static mut u32 {
    let (lock, thread, rereads) = (lock as u64, me(), &mut runtime().rereads);
    let own = rereads.iter().position(|r| r.again > 0 && r.lock == lock && r.thread == thread);
    let Some(at) = own.or_else(|| rereads.iter().position(|r| r.again == 0)) else {
        full("threads hold more than 64 read locks more than once");
    };
    (rereads[at].lock, rereads[at].thread) = (lock, thread);
    &mut rereads[at].again
}

fn unlock(lock: P, pc: usize) -> c_int {
    let (writes, reads) = held(lock);
    if reads {
        let again = reads_again(lock);
        if *again > 0 {
            *again -= 1;
            return 0;
        }
    }
    let op = if writes { Op::WriteUnlock } else { Op::ReadUnlock };
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
    read(lock, Op::TimedReadLock, until(time), pc)
});
hook!(fn pthread_rwlock_clockrdlock(lock: P, _clock: c_int, time: *const Time; pc) -> c_int {
    read(lock, Op::TimedReadLock, until(time), pc)
});
hook!(fn pthread_rwlock_wrlock(lock: P; pc) -> c_int { write(lock, Op::WriteLock, NEVER, pc) });
hook!(fn pthread_rwlock_trywrlock(lock: P; pc) -> c_int { write(lock, Op::TryWriteLock, NEVER, pc) });
hook!(fn pthread_rwlock_timedwrlock(lock: P, time: *const Time; pc) -> c_int {
    write(lock, Op::TimedWriteLock, until(time), pc)
});
hook!(fn pthread_rwlock_clockwrlock(lock: P, _clock: c_int, time: *const Time; pc) -> c_int {
    write(lock, Op::TimedWriteLock, until(time), pc)
});
hook!(fn pthread_rwlock_unlock(lock: P; pc) -> c_int { unlock(lock, pc) });
