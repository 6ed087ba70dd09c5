//! Signal masks and handlers. `SIGSYS` belongs to [`crate::trap`]: a process that makes a trapped
//! system call while this signal is blocked is killed, and another handler would not perform the
//! call.

use core::ffi::c_int;

use crate::real::real;
use crate::schedule::unsupported;
use crate::server::Action;

const SIGSYS: c_int = 31;

/// A set of signals, as glibc defines it.
type Set = [u64; 16];

/// Removes `SIGSYS` from a set.
fn without_trap(set: &Set) -> Set {
    let mut copy = *set;
    copy[0] &= !(1 << (SIGSYS - 1));
    copy
}

macro_rules! masks {
    ($($name:ident)+) => {$(
        hook!(fn $name(how: c_int, set: *const Set, old: *mut Set; pc) -> c_int {
            type Real = extern "C-unwind" fn(c_int, *const Set, *mut Set) -> c_int;
            // SAFETY: the program passes a valid set, or none.
            match unsafe { set.as_ref() } {
                None => real!($name: Real)(how, set, old),
                Some(set) => real!($name: Real)(how, &without_trap(set), old),
            }
        });
    )+};
}

masks! { sigprocmask pthread_sigmask }

hook!(fn sigaction(signal: c_int, new: *const Action, old: *mut Action; pc) -> c_int {
    type Real = extern "C-unwind" fn(c_int, *const Action, *mut Action) -> c_int;
    // SAFETY: the program passes a valid description, or none.
    match unsafe { new.as_ref() } {
        None => real!(sigaction: Real)(signal, new, old),
        Some(_) if signal == SIGSYS => unsupported("a handler of the signal SIGSYS"),
        Some(given) => {
            let mut action = *given;
            action.mask = without_trap(&given.mask);
            real!(sigaction: Real)(signal, &action, old)
        }
    }
});

macro_rules! handlers {
    ($($name:ident)+) => {$(
        hook!(fn $name(signal: c_int, handler: usize; pc) -> usize {
            if signal == SIGSYS {
                unsupported("a handler of the signal SIGSYS");
            }
            real!($name: extern "C-unwind" fn(c_int, usize) -> usize)(signal, handler)
        });
    )+};
}

handlers! { signal bsd_signal sysv_signal __sysv_signal sigset }
