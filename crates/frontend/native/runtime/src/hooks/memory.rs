//! Plain accesses to memory, and the other functions of the instrumentation of ThreadSanitizer.
//!
//! Plain accesses are not scheduling points. The functions exist so that instrumented code links
//! and runs.

use core::ffi::{c_int, c_void};

use crate::sys::P;

/// Defines functions that do nothing. What they return is never used.
macro_rules! ignored {
    ($($name:ident)+) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() {}
    )+};
}

ignored! {
    __tsan_init __tsan_func_entry __tsan_func_exit
    __tsan_ignore_thread_begin __tsan_ignore_thread_end
    __tsan_vptr_read __tsan_vptr_update __tsan_read_range __tsan_write_range
}

ignored! {
    __tsan_read1 __tsan_read2 __tsan_read4 __tsan_read8 __tsan_read16
    __tsan_write1 __tsan_write2 __tsan_write4 __tsan_write8 __tsan_write16
    __tsan_unaligned_read2 __tsan_unaligned_read4 __tsan_unaligned_read8
    __tsan_unaligned_read16
    __tsan_unaligned_write2 __tsan_unaligned_write4 __tsan_unaligned_write8
    __tsan_unaligned_write16
    __tsan_volatile_read1 __tsan_volatile_read2 __tsan_volatile_read4
    __tsan_volatile_read8 __tsan_volatile_read16
    __tsan_volatile_write1 __tsan_volatile_write2 __tsan_volatile_write4
    __tsan_volatile_write8 __tsan_volatile_write16
    __tsan_unaligned_volatile_read2 __tsan_unaligned_volatile_read4
    __tsan_unaligned_volatile_read8 __tsan_unaligned_volatile_read16
    __tsan_unaligned_volatile_write2 __tsan_unaligned_volatile_write4
    __tsan_unaligned_volatile_write8 __tsan_unaligned_volatile_write16
    __tsan_read_write1 __tsan_read_write2 __tsan_read_write4 __tsan_read_write8
    __tsan_read_write16
    __tsan_unaligned_read_write2 __tsan_unaligned_read_write4
    __tsan_unaligned_read_write8 __tsan_unaligned_read_write16
}

// Annotations of programs that know ThreadSanitizer.
ignored! {
    __tsan_acquire __tsan_release
    __tsan_mutex_create __tsan_mutex_destroy __tsan_mutex_post_lock __tsan_mutex_pre_lock
    __tsan_mutex_pre_signal __tsan_mutex_post_signal __tsan_mutex_pre_divert
    __tsan_mutex_post_divert __tsan_mutex_post_unlock
    AnnotateHappensBefore AnnotateHappensAfter AnnotateIgnoreReadsBegin
    AnnotateIgnoreReadsEnd AnnotateIgnoreWritesBegin AnnotateIgnoreWritesEnd
    AnnotateNewMemory AnnotateBenignRaceSized
    AnnotateRWLockCreate AnnotateRWLockDestroy AnnotateRWLockAcquired AnnotateRWLockReleased
}

/// Unlocks nothing: the number of levels that a recursive mutex was unlocked by.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_mutex_pre_unlock() -> c_int {
    0
}

unsafe extern "C" {
    fn memcpy(to: *mut c_void, from: *const c_void, count: usize) -> *mut c_void;
    fn memmove(to: *mut c_void, from: *const c_void, count: usize) -> *mut c_void;
    fn memset(to: *mut c_void, byte: c_int, count: usize) -> *mut c_void;
}

/// # Safety
///
/// As for `memcpy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_memcpy(to: P, from: *const c_void, count: usize) -> P {
    // SAFETY: as for this function.
    unsafe { memcpy(to, from, count) }
}

/// # Safety
///
/// As for `memmove`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_memmove(to: P, from: *const c_void, count: usize) -> P {
    // SAFETY: as for this function.
    unsafe { memmove(to, from, count) }
}

/// # Safety
///
/// As for `memset`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __tsan_memset(to: P, byte: c_int, count: usize) -> P {
    // SAFETY: as for this function.
    unsafe { memset(to, byte, count) }
}
