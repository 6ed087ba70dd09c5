//! Condition variables, of POSIX and of C11.
//!
//! A wait is two operations: the first unlocks the mutex and starts to wait; the second continues
//! after a notification once the mutex is free. A timeout ends the wait at once, and locking the
//! mutex is then a separate operation: in between, other threads may make the awaited condition
//! true, although the wait returns `ETIMEDOUT`. Spurious wakeups are not explored.
//!
//! A wait releases one level of a recursive mutex, as in glibc. A thread that has locked it more
//! than once keeps it while it waits, so neither operation accesses the mutex.

use core::ffi::c_int;

use super::mutex::{c11, checks_owner, type_of};
use super::time::{Time, is_valid, until};
use crate::block::{Misuse, ObjectKind, Op};
use crate::real::real;
use crate::schedule::{Next, log_misuse, objects, point};
use crate::sys::{EINVAL, EPERM, ETIMEDOUT, P};
use crate::thread::ThreadId;
use crate::threads::me;

/// Waits for a notification, at most until the deadline if there is one.
fn wait(condvar: P, mutex: P, deadline: Option<u64>, pc: usize) -> c_int {
    let (object, other) = (condvar as u64, mutex as u64);
    let kind = type_of(mutex, pc);
    let held = objects().at(ObjectKind::Mutex, other, || 0);
    if !held.is_owned_by(ThreadId::new(me())) {
        if checks_owner(kind) {
            return EPERM;
        }
        // This is undefined behaviour. The controller reports the unlock.
        point(Next::on(Op::Unlock, other, pc));
        return EPERM;
    }
    let keeps = held.relocked > 0;
    let other = if keeps { 0 } else { other };
    point(Next::on_both(Op::Wait, object, other, pc));
    let wake = match deadline {
        None => Next::on_both(Op::Wake, object, other, pc),
        Some(deadline) => Next::on_both(Op::TimedWake, object, other, pc).until(deadline),
    };
    let timed_out = point(wake).alternative == 1;
    if timed_out && !keeps {
        point(Next::on(Op::Lock, other, pc));
    }
    if timed_out { ETIMEDOUT } else { 0 }
}

/// Waits for a notification at most until `time`, which must be valid.
fn wait_until(condvar: P, mutex: P, time: *const Time, pc: usize) -> c_int {
    if is_valid(time) { wait(condvar, mutex, Some(until(time)), pc) } else { EINVAL }
}

fn notify(condvar: P, op: Op, pc: usize) -> c_int {
    point(Next::on(op, condvar as u64, pc));
    0
}

fn destroy(condvar: P, pc: usize) {
    if objects().at(ObjectKind::Condvar, condvar as u64, || 0).is_awaited() {
        log_misuse(Misuse::DestroyAwaitedCondvar, condvar as u64, pc);
    }
}

hook!(fn pthread_cond_init(condvar: P, attributes: P; pc) -> c_int {
    objects().create(ObjectKind::Condvar, condvar as u64, 0);
    real!(pthread_cond_init: extern "C-unwind" fn(P, P) -> c_int)(condvar, attributes)
});
hook!(fn pthread_cond_destroy(condvar: P; pc) -> c_int {
    destroy(condvar, pc);
    0
});
hook!(fn pthread_cond_wait(condvar: P, mutex: P; pc) -> c_int {
    wait(condvar, mutex, None, pc)
});
hook!(fn pthread_cond_timedwait(condvar: P, mutex: P, time: *const Time; pc) -> c_int {
    wait_until(condvar, mutex, time, pc)
});
hook!(fn pthread_cond_clockwait(
    condvar: P, mutex: P, _clock: c_int, time: *const Time; pc
) -> c_int {
    wait_until(condvar, mutex, time, pc)
});
hook!(fn pthread_cond_signal(condvar: P; pc) -> c_int { notify(condvar, Op::NotifyOne, pc) });
hook!(fn pthread_cond_broadcast(condvar: P; pc) -> c_int { notify(condvar, Op::NotifyAll, pc) });

hook!(fn cnd_init(condvar: P; pc) -> c_int {
    objects().create(ObjectKind::Condvar, condvar as u64, 0);
    real!(cnd_init: extern "C-unwind" fn(P) -> c_int)(condvar)
});
hook!(fn cnd_destroy(condvar: P; pc) -> () { destroy(condvar, pc) });
hook!(fn cnd_wait(condvar: P, mutex: P; pc) -> c_int { c11(wait(condvar, mutex, None, pc)) });
hook!(fn cnd_timedwait(condvar: P, mutex: P, time: *const Time; pc) -> c_int {
    c11(wait_until(condvar, mutex, time, pc))
});
hook!(fn cnd_signal(condvar: P; pc) -> c_int { notify(condvar, Op::NotifyOne, pc) });
hook!(fn cnd_broadcast(condvar: P; pc) -> c_int { notify(condvar, Op::NotifyAll, pc) });
