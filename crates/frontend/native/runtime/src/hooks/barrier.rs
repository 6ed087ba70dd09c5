//! Barriers. A thread arrives, and leaves as soon as all parties have arrived: two operations.

use core::ffi::{c_int, c_uint};

use crate::block::{Misuse, ObjectKind, Op};
use crate::real::real;
use crate::schedule::{Next, log_misuse, objects, point, unsupported};
use crate::sys::P;

/// `PTHREAD_BARRIER_SERIAL_THREAD`: the result of the last thread that arrives.
const SERIAL_THREAD: c_int = -1;

hook!(fn pthread_barrier_init(barrier: P, attributes: P, parties: c_uint; pc) -> c_int {
    if parties > 0 {
        objects().create(ObjectKind::Barrier, barrier as u64, parties);
    }
    let real = real!(pthread_barrier_init: extern "C-unwind" fn(P, P, c_uint) -> c_int);
    real(barrier, attributes, parties)
});
hook!(fn pthread_barrier_destroy(barrier: P; pc) -> c_int {
    if objects().at(ObjectKind::Barrier, barrier as u64, || 1).is_awaited() {
        log_misuse(Misuse::DestroyAwaitedBarrier, barrier as u64, pc);
    }
    0
});
hook!(fn pthread_barrier_wait(barrier: P; pc) -> c_int {
    objects().at(ObjectKind::Barrier, barrier as u64, || {
        unsupported("a barrier that was initialised before main")
    });
    let arrived = point(Next::on(Op::Arrive, barrier as u64, pc));
    if arrived.reply == 1 {
        return SERIAL_THREAD;
    }
    point(Next::on(Op::Leave, barrier as u64, pc));
    0
});
