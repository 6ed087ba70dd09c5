//! The end of the process, failed assertions and Rust panics.

use core::ffi::{CStr, c_char, c_int, c_uint};
use core::sync::atomic::Ordering::SeqCst;

use crate::block::{ExecutionEnd, Op};
use crate::real::real;
use crate::schedule::{Next, active, block, log_panic, point, write_text};
use crate::sys;
use crate::threads::{NO_THREAD, become_thread};

/// The last `atexit` handler. For the model, the process ends here: afterwards the C library only
/// writes buffers, and the other threads do not run any more.
pub extern "C" fn at_exit() {
    if active() {
        end();
    }
}

fn end() {
    point(Next::on(Op::Exit, 0, 0));
    block().outcome.store(ExecutionEnd::Exited as u32, SeqCst);
    become_thread(NO_THREAD);
}

/// Ends the process without calling `atexit` handlers.
pub fn end_now(code: c_int) -> ! {
    end();
    sys::exit_group(code)
}

hook!(fn _exit(code: c_int; pc) -> () { end_now(code) });
hook!(fn _Exit(code: c_int; pc) -> () { end_now(code) });

hook!(fn __assert_fail(
    expression: *const c_char, file: *const c_char, line: c_uint, function: *const c_char; pc
) -> () {
    let text = |text: *const c_char| match text.is_null() {
        true => &b""[..],
        // SAFETY: the compiler passes strings of the program.
        false => unsafe { CStr::from_ptr(text) }.to_bytes(),
    };
    write_text(&[text(expression), text(file), text(function)]);
    block().detail.store(line, SeqCst);
    block().outcome.store(ExecutionEnd::Assertion as u32, SeqCst);
    become_thread(NO_THREAD);
    type Real = extern "C-unwind" fn(*const c_char, *const c_char, c_uint, *const c_char);
    real!(__assert_fail: Real)(expression, file, line, function)
});

/// The exception class of Rust panics.
const RUST: u64 = u64::from_ne_bytes(*b"MOZ\0RUST");

hook!(fn _Unwind_RaiseException(exception: *mut u64; pc) -> c_int {
    // SAFETY: the class is the first field of every exception.
    if unsafe { *exception } == RUST {
        log_panic();
    }
    real!(_Unwind_RaiseException: extern "C-unwind" fn(*mut u64) -> c_int)(exception)
});
