//! Semaphores.

use core::ffi::{c_int, c_uint};

use super::time::{Time, is_valid, until};
use crate::block::{MAX_COUNT, NEVER, ObjectKind, Op};
use crate::real::real;
use crate::schedule::{Next, OVERFLOW, objects, point};
use crate::sys::{EAGAIN, EINVAL, EOVERFLOW, ETIMEDOUT, P, fail};

/// Performs an operation on a semaphore. If it was not initialised in this execution, its count is
/// read from its memory: in glibc, the lower half of its first word.
fn operate(semaphore: P, op: Op, deadline: u64, pc: usize) -> c_int {
    // SAFETY: the program passes a valid semaphore.
    let in_memory = || unsafe { *semaphore.cast::<c_uint>() };
    objects().at(ObjectKind::Semaphore, semaphore as u64, in_memory);
    let taken = point(Next::on(op, semaphore as u64, pc).until(deadline));
    match op {
        Op::TryAcquire if taken.reply == 0 => fail(EAGAIN),
        Op::TimedAcquire if taken.reply == 0 => fail(ETIMEDOUT),
        Op::Release if taken.reply == OVERFLOW => fail(EOVERFLOW),
        _ => 0,
    }
}

/// Decrements a semaphore, or times out. The time must be valid even if the count is not 0.
fn acquire_until(semaphore: P, time: *const Time, pc: usize) -> c_int {
    if !is_valid(time) {
        return fail(EINVAL);
    }
    operate(semaphore, Op::TimedAcquire, until(time), pc)
}

hook!(fn sem_init(semaphore: P, shared: c_int, value: c_uint; pc) -> c_int {
    if value > MAX_COUNT {
        return fail(EINVAL);
    }
    objects().create(ObjectKind::Semaphore, semaphore as u64, value);
    real!(sem_init: extern "C-unwind" fn(P, c_int, c_uint) -> c_int)(semaphore, shared, value)
});
hook!(fn sem_wait(semaphore: P; pc) -> c_int { operate(semaphore, Op::Acquire, NEVER, pc) });
hook!(fn sem_trywait(semaphore: P; pc) -> c_int { operate(semaphore, Op::TryAcquire, NEVER, pc) });
hook!(fn sem_timedwait(semaphore: P, time: *const Time; pc) -> c_int {
    acquire_until(semaphore, time, pc)
});
hook!(fn sem_clockwait(semaphore: P, _clock: c_int, time: *const Time; pc) -> c_int {
    acquire_until(semaphore, time, pc)
});
hook!(fn sem_post(semaphore: P; pc) -> c_int { operate(semaphore, Op::Release, NEVER, pc) });
hook!(fn sem_getvalue(semaphore: P, value: *mut c_int; pc) -> c_int {
    operate(semaphore, Op::Count, NEVER, pc);
    let count = objects().at(ObjectKind::Semaphore, semaphore as u64, || 0).count();
    // SAFETY: the program passes a valid pointer.
    unsafe { *value = count as c_int };
    0
});
