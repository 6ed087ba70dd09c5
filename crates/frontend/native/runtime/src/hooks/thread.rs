//! Threads, of POSIX and of C11.

use core::ffi::c_int;

use super::mutex::c11;
use crate::block::Op;
use crate::real::real;
use crate::schedule::{Next, point};
use crate::sys::{EDEADLK, P};
use crate::threads::{Start, create, join, main_attributes, me, set_result, slot_of};

const ESRCH: c_int = 3;

hook!(fn pthread_create(
    id: *mut u64, attributes: P, start: extern "C-unwind" fn(P) -> P, argument: P; pc
) -> c_int {
    create(id, attributes, Start::Posix(start, argument), pc)
});
hook!(fn thrd_create(
    id: *mut u64, start: extern "C-unwind" fn(P) -> c_int, argument: P; pc
) -> c_int {
    c11(create(id, core::ptr::null_mut(), Start::C11(start, argument), pc))
});
hook!(fn pthread_join(id: u64, result: *mut P; pc) -> c_int {
    let Some(slot) = slot_of(id) else { return ESRCH };
    if slot == me() {
        return EDEADLK;
    }
    let returned = join(slot, pc);
    if !result.is_null() {
        // SAFETY: the program passes a valid pointer.
        unsafe { *result = returned };
    }
    0
});
hook!(fn thrd_join(id: u64, result: *mut c_int; pc) -> c_int {
    let Some(slot) = slot_of(id) else { return c11(ESRCH) };
    if slot == me() {
        return c11(EDEADLK);
    }
    let returned = join(slot, pc);
    if !result.is_null() {
        // SAFETY: the program passes a valid pointer.
        unsafe { *result = returned as isize as c_int };
    }
    0
});
// Kernel threads live until the process ends, so there is nothing to release.
hook!(fn pthread_detach(_id: u64; pc) -> c_int { 0 });
hook!(fn thrd_detach(_id: u64; pc) -> c_int { 0 });
hook!(fn pthread_exit(result: P; pc) -> () {
    set_result(result);
    real!(pthread_exit: extern "C-unwind" fn(P))(result)
});
hook!(fn thrd_exit(result: c_int; pc) -> () {
    set_result(result as isize as P);
    real!(pthread_exit: extern "C-unwind" fn(P))(result as isize as P)
});
hook!(fn pthread_getattr_np(thread: u64, attributes: P; pc) -> c_int {
    type Real = extern "C-unwind" fn(u64, P) -> c_int;
    match main_attributes(thread, attributes) {
        true => 0,
        false => real!(pthread_getattr_np: Real)(thread, attributes),
    }
});
hook!(fn sched_yield(; pc) -> c_int {
    point(Next::on(Op::Yield, 0, pc));
    0
});
hook!(fn pthread_yield(; pc) -> c_int {
    point(Next::on(Op::Yield, 0, pc));
    0
});
hook!(fn thrd_yield(; pc) -> () {
    point(Next::on(Op::Yield, 0, pc));
});
