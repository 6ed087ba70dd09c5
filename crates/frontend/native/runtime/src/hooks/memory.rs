//! Plain accesses to memory, and the remaining functions of ThreadSanitizer's instrumentation.
//!
//! Plain accesses are not scheduling points. They are examined for data races ([`crate::race`]).

use core::ffi::{c_int, c_void};

use crate::footprint::Access;
use crate::sys::{self, P};

/// Defines functions that do nothing. Their results are never used.
macro_rules! ignored {
    ($($name:ident)+) => {$(
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() {}
    )+};
}

ignored! {
    __tsan_init __tsan_func_entry __tsan_func_exit
    __tsan_ignore_thread_begin __tsan_ignore_thread_end
    __tsan_vptr_read __tsan_vptr_update
}

/// Defines functions for accesses to a fixed number of bytes. The exported function is a jump that
/// passes the return address as the second argument, as in [`super`].
macro_rules! accesses {
    ($($name:ident($size:literal, $access:ident);)+) => {$(
        mod $name {
            use super::Access;

            extern "C" fn body(address: usize, pc: usize) {
                crate::race::access(address, $size, Access::$access, pc);
            }

            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub extern "C" fn $name() {
                core::arch::naked_asm!("mov rsi, [rsp]", "jmp {body}", body = sym body)
            }
        }
    )+};
}

// A volatile access is not atomic.
accesses! {
    __tsan_read1(1, Read);
    __tsan_write1(1, Write);
    __tsan_read2(2, Read);
    __tsan_write2(2, Write);
    __tsan_read4(4, Read);
    __tsan_write4(4, Write);
    __tsan_read8(8, Read);
    __tsan_write8(8, Write);
    __tsan_read16(16, Read);
    __tsan_write16(16, Write);
    __tsan_unaligned_read2(2, Read);
    __tsan_unaligned_write2(2, Write);
    __tsan_unaligned_read4(4, Read);
    __tsan_unaligned_write4(4, Write);
    __tsan_unaligned_read8(8, Read);
    __tsan_unaligned_write8(8, Write);
    __tsan_unaligned_read16(16, Read);
    __tsan_unaligned_write16(16, Write);
    __tsan_volatile_read1(1, Read);
    __tsan_volatile_write1(1, Write);
    __tsan_volatile_read2(2, Read);
    __tsan_volatile_write2(2, Write);
    __tsan_volatile_read4(4, Read);
    __tsan_volatile_write4(4, Write);
    __tsan_volatile_read8(8, Read);
    __tsan_volatile_write8(8, Write);
    __tsan_volatile_read16(16, Read);
    __tsan_volatile_write16(16, Write);
    __tsan_unaligned_volatile_read2(2, Read);
    __tsan_unaligned_volatile_write2(2, Write);
    __tsan_unaligned_volatile_read4(4, Read);
    __tsan_unaligned_volatile_write4(4, Write);
    __tsan_unaligned_volatile_read8(8, Read);
    __tsan_unaligned_volatile_write8(8, Write);
    __tsan_unaligned_volatile_read16(16, Read);
    __tsan_unaligned_volatile_write16(16, Write);
    __tsan_read_write1(1, Write);
    __tsan_read_write2(2, Write);
    __tsan_read_write4(4, Write);
    __tsan_read_write8(8, Write);
    __tsan_read_write16(16, Write);
    __tsan_unaligned_read_write2(2, Write);
    __tsan_unaligned_read_write4(4, Write);
    __tsan_unaligned_read_write8(8, Write);
    __tsan_unaligned_read_write16(16, Write);
}

/// Defines functions for accesses to a range.
macro_rules! ranges {
    ($($name:ident($access:ident);)+) => {$(
        mod $name {
            use super::Access;

            extern "C" fn body(address: usize, size: usize, pc: usize) {
                crate::race::access(address, size, Access::$access, pc);
            }

            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub extern "C" fn $name() {
                core::arch::naked_asm!("mov rdx, [rsp]", "jmp {body}", body = sym body)
            }
        }
    )+};
}

ranges! {
    __tsan_read_range(Read);
    __tsan_write_range(Write);
}

// Annotations for ThreadSanitizer in the source of programs.
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

/// An annotation too. The result is by how many levels a recursive mutex was unlocked.
#[unsafe(no_mangle)]
pub extern "C" fn __tsan_mutex_pre_unlock() -> c_int {
    0
}

unsafe extern "C" {
    fn memcpy(to: *mut c_void, from: *const c_void, count: usize) -> *mut c_void;
    fn memmove(to: *mut c_void, from: *const c_void, count: usize) -> *mut c_void;
    fn memset(to: *mut c_void, byte: c_int, count: usize) -> *mut c_void;
}

/// Defines functions that copy or fill memory: their names, the functions that do it, and whether
/// they read the memory at the second argument. The exported function is a jump that passes the
/// return address as the fourth argument.
macro_rules! copies {
    ($($name:ident, $real:ident($second:ident: $type:ty), $reads:literal;)+) => {$(
        mod $name {
            use super::*;

            unsafe extern "C" fn body(to: P, $second: $type, count: usize, pc: usize) -> P {
                crate::race::access(to as usize, count, Access::Write, pc);
                if $reads {
                    crate::race::access($second as usize, count, Access::Read, pc);
                }
                // SAFETY: the program passes valid arguments.
                unsafe { $real(to, $second, count) }
            }

            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            pub unsafe extern "C" fn $name() {
                core::arch::naked_asm!("mov rcx, [rsp]", "jmp {body}", body = sym body)
            }
        }
    )+};
}

copies! {
    __tsan_memcpy, memcpy(from: *const c_void), true;
    __tsan_memmove, memmove(from: *const c_void), true;
    __tsan_memset, memset(byte: c_int), false;
}

/// Defines a function that maps memory.
macro_rules! maps {
    ($($name:ident)+) => {$(
        /// # Safety
        ///
        /// As for the function of libc.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(
            at: usize,
            len: usize,
            protection: c_int,
            flags: c_int,
            fd: c_int,
            offset: isize,
        ) -> P {
            let arguments =
                [at, len, protection as usize, flags as usize, fd as usize, offset as usize];
            // SAFETY: the program passes what it would pass to the kernel.
            let mapped = sys::result(unsafe { sys::call(sys::MMAP, arguments) });
            if mapped != -1 {
                crate::race::forget(mapped as usize, len);
            }
            mapped as P
        }
    )+};
}

maps! { mmap mmap64 }
