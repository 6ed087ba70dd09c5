//! Signal masks and handlers. `SIGSYS` belongs to [`crate::trap`]: a process that makes a trapped
//! system call while this signal is blocked is killed, and another handler would not perform the
//! call. `SIGTRAP` belongs to [`crate::locked`] for the same reasons, if instructions are replaced.

use core::ffi::c_int;

use crate::real::real;
use crate::schedule::unsupported;
use crate::server::Action;

const SIGTRAP: c_int = 5;
const SIGSYS: c_int = 31;

/// A set of signals, as glibc defines it.
type Set = [u64; 16];

/// Whether the program must neither block nor handle a signal.
fn is_reserved(signal: c_int) -> bool {
    signal == SIGSYS || signal == SIGTRAP && crate::locked::is_on()
}

/// Removes the reserved signals from a set.
fn without_traps(set: &Set) -> Set {
    let mut copy = *set;
    for signal in [SIGTRAP, SIGSYS].into_iter().filter(|&signal| is_reserved(signal)) {
        copy[0] &= !(1 << (signal - 1));
    }
    copy
}

/// Ends the execution because the program handles a reserved signal.
fn refuse_handler(signal: c_int) -> ! {
    unsupported(match signal {
        SIGSYS => "a handler of the signal SIGSYS",
        _ => "a handler of the signal SIGTRAP together with --atomics",
    })
}

macro_rules! masks {
    ($($name:ident)+) => {$(
        hook!(fn $name(how: c_int, set: *const Set, old: *mut Set; pc) -> c_int {
            type Real = extern "C-unwind" fn(c_int, *const Set, *mut Set) -> c_int;
            // SAFETY: the program passes a valid set, or none.
            match unsafe { set.as_ref() } {
                None => real!($name: Real)(how, set, old),
                Some(set) => real!($name: Real)(how, &without_traps(set), old),
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
        Some(_) if is_reserved(signal) => refuse_handler(signal),
        Some(given) => {
            let mut action = *given;
            action.mask = without_traps(&given.mask);
            real!(sigaction: Real)(signal, &action, old)
        }
    }
});

macro_rules! handlers {
    ($($name:ident)+) => {$(
        hook!(fn $name(signal: c_int, handler: usize; pc) -> usize {
            if is_reserved(signal) {
                refuse_handler(signal);
            }
            real!($name: extern "C-unwind" fn(c_int, usize) -> usize)(signal, handler)
        });
    )+};
}

handlers! { signal bsd_signal sysv_signal __sysv_signal sigset }
