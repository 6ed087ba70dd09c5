//! Allocation: see [`crate::heap`].
//!
//! Outside of an execution, in code of this library, and for memory that was allocated there, the
//! functions of the C library are called. They are called by the names that glibc provides for
//! replacements (`__libc_malloc`), because looking up a name may allocate.

use core::ffi::c_int;

use crate::heap;
use crate::real::real;
use crate::sys::P;

unsafe extern "C" {
    fn __libc_malloc(size: usize) -> P;
    fn __libc_calloc(count: usize, size: usize) -> P;
    fn __libc_realloc(block: P, size: usize) -> P;
    fn __libc_memalign(alignment: usize, size: usize) -> P;
    fn __libc_free(block: P);
    fn __errno_location() -> *mut c_int;
}

const NO_MEMORY: c_int = 12;
const INVALID: c_int = 22;
const PAGE: usize = 4096;

/// Converts the result of an allocation to libc's convention: a null pointer and `errno`.
fn result(block: usize) -> P {
    if block == 0 {
        // SAFETY: libc returns the address of the thread's own variable.
        unsafe { *__errno_location() = NO_MEMORY };
    }
    block as P
}

/// # Safety
///
/// As for the function of libc, like all that follow.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc(size: usize) -> P {
    if heap::is_on() {
        return result(heap::allocate(size, 0));
    }
    // SAFETY: as for this function.
    unsafe { __libc_malloc(size) }
}

/// # Safety
///
/// See [`malloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn calloc(count: usize, size: usize) -> P {
    if heap::is_on() {
        // Memory is never reused, so it is zero.
        return result(count.checked_mul(size).map_or(0, |size| heap::allocate(size, 0)));
    }
    // SAFETY: as for this function.
    unsafe { __libc_calloc(count, size) }
}

/// # Safety
///
/// See [`malloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn memalign(alignment: usize, size: usize) -> P {
    if heap::is_on() {
        return result(heap::allocate(size, alignment.next_power_of_two()));
    }
    // SAFETY: as for this function.
    unsafe { __libc_memalign(alignment, size) }
}

/// # Safety
///
/// See [`malloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn aligned_alloc(alignment: usize, size: usize) -> P {
    // SAFETY: as for this function.
    unsafe { memalign(alignment, size) }
}

/// # Safety
///
/// See [`malloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn valloc(size: usize) -> P {
    // SAFETY: as for this function.
    unsafe { memalign(PAGE, size) }
}

/// # Safety
///
/// See [`malloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pvalloc(size: usize) -> P {
    // SAFETY: as for this function.
    unsafe { memalign(PAGE, size.next_multiple_of(PAGE)) }
}

/// # Safety
///
/// See [`malloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(out: *mut P, alignment: usize, size: usize) -> c_int {
    if !alignment.is_power_of_two() || !alignment.is_multiple_of(size_of::<P>()) {
        return INVALID;
    }
    // SAFETY: as for this function.
    let block = unsafe { memalign(alignment, size) };
    if block.is_null() {
        return NO_MEMORY;
    }
    // SAFETY: the program passes a valid pointer.
    unsafe { *out = block };
    0
}

/// Defines an exported function that passes its return address to the body in `$register`.
macro_rules! export {
    ($name:ident, $register:literal, $body:ident) => {
        /// # Safety
        ///
        /// See [`malloc`].
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                concat!("mov ", $register, ", [rsp]"),
                "jmp {body}",
                body = sym $body
            )
        }
    };
}

export!(free, "rsi", free_at);
export!(cfree, "rsi", free_at);
export!(realloc, "rdx", realloc_at);
export!(reallocarray, "rcx", reallocarray_at);

unsafe extern "C" fn free_at(block: P, pc: usize) {
    if !heap::contains(block as usize) {
        // SAFETY: as for `free`.
        return unsafe { __libc_free(block) };
    }
    // In code of this library, memory of the program is not freed, because it is never reused.
    if heap::is_on() {
        heap::release(block as usize, pc);
    }
}

unsafe extern "C" fn realloc_at(block: P, size: usize, pc: usize) -> P {
    if !heap::contains(block as usize) && (!heap::is_on() || !block.is_null()) {
        // SAFETY: as for `realloc`.
        return unsafe { __libc_realloc(block, size) };
    }
    // SAFETY: as for `malloc`.
    let new = unsafe { malloc(size) };
    if !new.is_null() && !block.is_null() {
        let common = heap::size(block as usize).min(size);
        // SAFETY: both blocks have this many bytes, and they do not overlap.
        unsafe {
            core::ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast::<u8>(), common);
            free_at(block, pc);
        }
    }
    new
}

unsafe extern "C" fn reallocarray_at(block: P, count: usize, size: usize, pc: usize) -> P {
    match count.checked_mul(size) {
        // SAFETY: as for `realloc`.
        Some(size) => unsafe { realloc_at(block, size, pc) },
        None => result(0),
    }
}

/// # Safety
///
/// See [`malloc`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: P) -> usize {
    if heap::contains(block as usize) {
        return heap::size(block as usize);
    }
    real!(malloc_usable_size: extern "C" fn(P) -> usize)(block)
}
