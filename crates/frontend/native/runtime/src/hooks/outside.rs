//! Calls by which a program reads or changes the world outside of its process. They are performed
//! unchanged and noted: if an execution differs from an earlier one with the same schedule, they
//! are the likely causes.
//!
//! Clocks, sleeps and random numbers are not noted, because they are the same in every execution.

use core::ffi::{CStr, c_char, c_int, c_long};

use crate::real::real;
use crate::schedule::note;
use crate::sys::P;

/// Paths of files that are taken to be the same in all executions.
const SYSTEM: [&[u8]; 6] = [b"/proc/", b"/sys/", b"/etc/", b"/usr/", b"/lib", b"/dev/null"];

/// Notes that a file is opened for reading or writing.
fn note_file(path: *const c_char, writes: bool) {
    if path.is_null() {
        return;
    }
    // SAFETY: the program passes a string.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    if writes {
        note(b"writes to the file ", path);
    } else if !SYSTEM.iter().any(|start| path.starts_with(start)) {
        note(b"reads the file ", path);
    }
}

/// Whether the flags of `open` permit to write.
fn may_write(flags: c_int) -> bool {
    const ACCESS: c_int = 3;
    flags & ACCESS != 0
}

macro_rules! opens {
    ($($name:ident)+) => {$(
        hook!(fn $name(path: *const c_char, flags: c_int, mode: usize; pc) -> c_int {
            note_file(path, may_write(flags));
            type Real = extern "C-unwind" fn(*const c_char, c_int, usize) -> c_int;
            real!($name: Real)(path, flags, mode)
        });
    )+};
}

opens! { open open64 }

macro_rules! opens_at {
    ($($name:ident)+) => {$(
        hook!(fn $name(at: c_int, path: *const c_char, flags: c_int, mode: usize; pc) -> c_int {
            note_file(path, may_write(flags));
            type Real = extern "C-unwind" fn(c_int, *const c_char, c_int, usize) -> c_int;
            real!($name: Real)(at, path, flags, mode)
        });
    )+};
}

opens_at! { openat openat64 }

macro_rules! opens_streams {
    ($($name:ident)+) => {$(
        hook!(fn $name(path: *const c_char, mode: *const c_char; pc) -> P {
            // SAFETY: the program passes a string.
            let wanted = unsafe { CStr::from_ptr(mode) }.to_bytes();
            note_file(path, wanted.iter().any(|byte| matches!(byte, b'w' | b'a' | b'+')));
            real!($name: extern "C-unwind" fn(*const c_char, *const c_char) -> P)(path, mode)
        });
    )+};
}

opens_streams! { fopen fopen64 }

macro_rules! noted {
    ($($name:ident -> $result:ty;)+) => {$(
        hook!(fn $name(a: usize, b: usize; pc) -> $result {
            note(b"calls ", stringify!($name).as_bytes());
            real!($name: extern "C-unwind" fn(usize, usize) -> $result)(a, b)
        });
    )+};
}

// The results differ between executions, because each is a process of its own.
noted! {
    getpid -> c_int;
    getppid -> c_int;
    gettid -> c_int;
    sched_getcpu -> c_int;
    times -> c_long;
    clock -> c_long;
    getrusage -> c_int;
}
