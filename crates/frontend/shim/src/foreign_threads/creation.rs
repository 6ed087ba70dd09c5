//! Detects threads that the code under test starts itself.
//!
//! A thread of std that uses no object of a check does nothing that a search could observe. Its
//! *start* can be observed: `std::thread`, rayon, tokio and every other library start threads with
//! `pthread_create`. This crate defines a function of that name, so the linker resolves the calls
//! of the test program to it, and it calls the function of the C library. If code of an execution
//! is the caller, the check fails and names the place. So the verdict depends neither on what the
//! thread does nor on when.
//!
//! # Why there are no false alarms
//!
//! The caller runs on the OS thread of the execution, and [`is_programs_own`] is true exactly while
//! a coroutine runs there. Threads that other tests start, or that this test starts before its
//! check, are started on other OS threads or outside coroutines. The threads of the search
//! itself (workers, the watchdog) are started outside coroutines too.
//!
//! # What is not detected
//!
//! Work that is handed to threads that already existed, for example those of rayon's global pool if
//! another test has used it. [`uncontrolled`](crate::uncontrolled) inspects the source of the test
//! for that. Systems other than Linux with a shared glibc are not covered: there only uses of
//! objects are detected.

use std::backtrace::Backtrace;
use std::panic::Location as Site;

use crate::runtime::interrupt::blocked;

/// Whether starts of threads by the code under test are detected on this platform.
pub(crate) const IS_NOTICED: bool = cfg!(all(
    target_os = "linux",
    target_env = "gnu",
    not(target_feature = "crt-static"),
    not(miri)
));

/// A thread that the code under test has started.
#[derive(Debug)]
pub(crate) struct Started {
    /// The name of the thread that started it.
    pub(crate) by: String,
    /// The place of the check.
    pub(crate) check: Option<&'static Site<'static>>,
    pub(crate) backtrace: Backtrace,
}

impl Started {
    /// The report: the error, its place, and what to do.
    pub(crate) fn text(&self) -> String {
        let place = blocked(&self.backtrace.to_string()).words(self.check);
        text(&self.by, &place)
    }
}

fn text(by: &str, place: &str) -> String {
    format!(
        "{by} starts a thread{place}, which the check does not know: no search can schedule it or \
         see what it does. Start threads with `preempt::thread`. Libraries that start their own \
         threads, as rayon and tokio do, cannot be used in a check. If the thread shares nothing \
         with the test, `Check::allow_uncontrolled` or PREEMPT_ALLOW_UNCONTROLLED=1 accepts it"
    )
}

#[cfg(all(target_os = "linux", target_env = "gnu", not(target_feature = "crt-static"), not(miri)))]
mod interposed {
    use std::backtrace::Backtrace;
    use std::ffi::c_void;
    use std::ptr::null_mut;
    use std::sync::atomic::AtomicPtr;
    use std::sync::atomic::Ordering::Relaxed;

    use libc::{c_int, pthread_attr_t, pthread_t};

    use super::Started;
    use crate::runtime::{is_programs_own, look, unobserved, with};

    type Start = extern "C" fn(*mut c_void) -> *mut c_void;
    type Create =
        unsafe extern "C" fn(*mut pthread_t, *const pthread_attr_t, Start, *mut c_void) -> c_int;

    /// The function of the C library.
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

    /// Starts a thread.
    ///
    /// # Safety
    ///
    /// As of the function of the C library.
    #[unsafe(no_mangle)]
    unsafe extern "C" fn pthread_create(
        thread: *mut pthread_t,
        attributes: *const pthread_attr_t,
        start: Start,
        argument: *mut c_void,
    ) -> c_int {
        if is_programs_own() && !look(|runtime| runtime.options.allow_uncontrolled) {
            note();
        }
        let mut real = REAL.load(Relaxed);
        if real.is_null() {
            // SAFETY: the name ends with a zero. The result is the next definition after the one in
            // this program: that of the C library, or of a library that is loaded before it.
            real = unsafe { libc::dlsym(libc::RTLD_NEXT, c"pthread_create".as_ptr()) };
            REAL.store(real, Relaxed);
        }
        if real.is_null() {
            return libc::EAGAIN;
        }
        // SAFETY: a function of that name has that signature.
        let real = unsafe { std::mem::transmute::<*mut c_void, Create>(real) };
        // SAFETY: the caller upholds the contract.
        unsafe { real(thread, attributes, start, argument) }
    }

    /// The thread that runs has started another one. The place is looked up when the check reports:
    /// the stack of a coroutine may be too small for that.
    #[cold]
    #[inline(never)]
    fn note() {
        let backtrace = unobserved(Backtrace::force_capture);
        with(|runtime| {
            let (by, check) = (runtime.thread_name(runtime.current), runtime.options.place);
            runtime.live.record_start(Started { by, check, backtrace });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_names_the_place_and_says_what_to_do() {
        let text = text("t1", " at ./tests/queue.rs:31:7");
        assert!(text.starts_with("t1 starts a thread at ./tests/queue.rs:31:7, which"), "{text}");
        assert!(
            text.contains("`preempt::thread`") && text.contains("allow_uncontrolled"),
            "{text}"
        );
    }
}
