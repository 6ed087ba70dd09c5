//! Mutexes and spin locks, of POSIX and of C11.
//!
//! Only operations that other threads can observe are scheduling points. They cannot observe that
//! the owner of a recursive mutex locks it again, nor that an error-checking mutex refuses this.

use core::ffi::c_int;

use super::time::{Time, is_valid, until};
use crate::block::{Misuse, ObjectKind, Op};
use crate::real::real;
use crate::schedule::{Next, log_misuse, objects, point, unsupported};
use crate::sys::{EBUSY, EDEADLK, EINVAL, EPERM, ETIMEDOUT, P};
use crate::thread::ThreadId;
use crate::threads::me;

/// The types of mutexes, as glibc numbers them.
const RECURSIVE: c_int = 1;
const ERROR_CHECKING: c_int = 2;

/// The type that glibc stores in a destroyed mutex.
const DESTROYED: c_int = -1;

/// The type of a mutex. In glibc, `pthread_mutex_t.__kind` is at byte 16 and has the type in its
/// lowest two bits; the tests of `preempt-native` would fail if that changed.
pub fn type_of(mutex: P, pc: usize) -> c_int {
    if crate::heap::check(mutex as usize, pc) {
        // The memory was freed, so it does not contain a mutex.
        return 0;
    }
    // SAFETY: the program passes a valid mutex, which has 40 bytes.
    let kind = unsafe { *mutex.cast::<u8>().add(16).cast::<c_int>() };
    if kind == DESTROYED {
        objects().at(ObjectKind::Mutex, mutex as u64, || 0);
        log_misuse(Misuse::UseDestroyedMutex, mutex as u64, pc);
        return 0;
    }
    if kind & 16 != 0 {
        unsupported("a robust mutex");
    }
    kind & 3
}

/// How long a thread waits for a mutex.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Attempt {
    /// Without a limit.
    Lock,
    /// Not at all.
    Try,
    /// Until a deadline.
    Until(u64),
    /// Until a time that is not valid, which is an error if the mutex is not free.
    Never,
}

impl Attempt {
    fn until(time: *const Time) -> Attempt {
        if is_valid(time) { Attempt::Until(until(time)) } else { Attempt::Never }
    }
}

/// Whether a thread that does not own a mutex of this type gets an error if it unlocks it.
pub fn checks_owner(kind: c_int) -> bool {
    matches!(kind, RECURSIVE | ERROR_CHECKING)
}

fn acquire(mutex: P, kind: c_int, attempt: Attempt, pc: usize) -> c_int {
    let address = mutex as u64;
    let object = objects().at(ObjectKind::Mutex, address, || 0);
    if object.is_owned_by(ThreadId::new(me())) {
        match (kind, attempt) {
            (RECURSIVE, _) => {
                object.relocked += 1;
                return 0;
            }
            (_, Attempt::Try) => {}
            (ERROR_CHECKING, _) => return EDEADLK,
            _ => {}
        }
    }
    match attempt {
        Attempt::Lock => {
            point(Next::on(Op::Lock, address, pc));
            0
        }
        Attempt::Try | Attempt::Never => {
            let taken = point(Next::on(Op::TryLock, address, pc));
            match attempt {
                _ if taken.reply == 1 => 0,
                Attempt::Never => EINVAL,
                _ => EBUSY,
            }
        }
        Attempt::Until(deadline) => {
            let taken = point(Next::on(Op::TimedLock, address, pc).until(deadline));
            if taken.reply == 1 { 0 } else { ETIMEDOUT }
        }
    }
}

fn release(mutex: P, kind: c_int, pc: usize) -> c_int {
    let object = objects().at(ObjectKind::Mutex, mutex as u64, || 0);
    let owned = object.is_owned_by(ThreadId::new(me()));
    if !owned && checks_owner(kind) {
        return EPERM;
    }
    if owned && object.relocked > 0 {
        object.relocked -= 1;
        return 0;
    }
    point(Next::on(Op::Unlock, mutex as u64, pc));
    0
}

/// Reports the destruction of a mutex that a thread holds.
fn destroy(mutex: P, pc: usize) {
    if objects().at(ObjectKind::Mutex, mutex as u64, || 0).is_held() {
        log_misuse(Misuse::DestroyHeldMutex, mutex as u64, pc);
    }
}

hook!(fn pthread_mutex_init(mutex: P, attributes: P; pc) -> c_int {
    objects().create(ObjectKind::Mutex, mutex as u64, 0);
    real!(pthread_mutex_init: extern "C-unwind" fn(P, P) -> c_int)(mutex, attributes)
});
hook!(fn pthread_mutex_destroy(mutex: P; pc) -> c_int {
    destroy(mutex, pc);
    real!(pthread_mutex_destroy: extern "C-unwind" fn(P) -> c_int)(mutex)
});
hook!(fn pthread_mutex_lock(mutex: P; pc) -> c_int {
    acquire(mutex, type_of(mutex, pc), Attempt::Lock, pc)
});
hook!(fn pthread_mutex_trylock(mutex: P; pc) -> c_int {
    acquire(mutex, type_of(mutex, pc), Attempt::Try, pc)
});
hook!(fn pthread_mutex_timedlock(mutex: P, time: *const Time; pc) -> c_int {
    acquire(mutex, type_of(mutex, pc), Attempt::until(time), pc)
});
hook!(fn pthread_mutex_clocklock(mutex: P, _clock: c_int, time: *const Time; pc) -> c_int {
    acquire(mutex, type_of(mutex, pc), Attempt::until(time), pc)
});
hook!(fn pthread_mutex_unlock(mutex: P; pc) -> c_int { release(mutex, type_of(mutex, pc), pc) });

hook!(fn pthread_spin_init(lock: P, shared: c_int; pc) -> c_int {
    objects().create(ObjectKind::Mutex, lock as u64, 0);
    real!(pthread_spin_init: extern "C-unwind" fn(P, c_int) -> c_int)(lock, shared)
});
hook!(fn pthread_spin_destroy(lock: P; pc) -> c_int {
    destroy(lock, pc);
    0
});
// Spinning is modelled as waiting, because other threads cannot observe the difference.
hook!(fn pthread_spin_lock(lock: P; pc) -> c_int { acquire(lock, 0, Attempt::Lock, pc) });
hook!(fn pthread_spin_trylock(lock: P; pc) -> c_int { acquire(lock, 0, Attempt::Try, pc) });
hook!(fn pthread_spin_unlock(lock: P; pc) -> c_int { release(lock, 0, pc) });

/// The results of C11 functions.
const BUSY: c_int = 1;
const ERROR: c_int = 2;
const TIMED_OUT: c_int = 4;

/// The C11 result for an error number.
pub fn c11(error: c_int) -> c_int {
    match error {
        0 => 0,
        EBUSY => BUSY,
        ETIMEDOUT => TIMED_OUT,
        _ => ERROR,
    }
}

hook!(fn mtx_init(mutex: P, kind: c_int; pc) -> c_int {
    objects().create(ObjectKind::Mutex, mutex as u64, 0);
    real!(mtx_init: extern "C-unwind" fn(P, c_int) -> c_int)(mutex, kind)
});
hook!(fn mtx_destroy(mutex: P; pc) -> () {
    destroy(mutex, pc);
    real!(mtx_destroy: extern "C-unwind" fn(P))(mutex)
});
hook!(fn mtx_lock(mutex: P; pc) -> c_int {
    c11(acquire(mutex, type_of(mutex, pc), Attempt::Lock, pc))
});
hook!(fn mtx_trylock(mutex: P; pc) -> c_int {
    c11(acquire(mutex, type_of(mutex, pc), Attempt::Try, pc))
});
hook!(fn mtx_timedlock(mutex: P, time: *const Time; pc) -> c_int {
    c11(acquire(mutex, type_of(mutex, pc), Attempt::until(time), pc))
});
hook!(fn mtx_unlock(mutex: P; pc) -> c_int { c11(release(mutex, type_of(mutex, pc), pc)) });
