//! Stack overflows: prints a message before the process ends.
//!
//! Below every stack of a coroutine is a guard page, so a thread that overflows its stack ends the
//! process by a signal. std's handler of that signal knows only the stacks of std's threads, and
//! prints nothing. So this handler comes before it: if the address is in such a guard page, it
//! prints what to do and aborts; everything else is passed to the previous handler.
//!
//! A handler may run at any moment. This one takes no lock and allocates nothing: it compares
//! numbers in a table of atomics.

#[cfg(unix)]
pub(crate) use unix::{enter, install, leave};

#[cfg(not(unix))]
pub(crate) use elsewhere::{enter, install, leave};

/// Platforms that report overflows themselves, or on which nothing can.
#[cfg(not(unix))]
mod elsewhere {
    pub(crate) fn install() {}
    pub(crate) fn enter(_limit: usize) {}
    pub(crate) fn leave(_limit: usize) {}
}

#[cfg(unix)]
mod unix {
    use std::mem::MaybeUninit;
    use std::ptr::{null, null_mut};
    use std::sync::OnceLock;
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;

    /// The lowest address of every stack, where its guard page begins; 0 for unused entries. Stacks
    /// that do not fit into the table have no message.
    static LIMITS: [AtomicUsize; 1024] = [const { AtomicUsize::new(0) }; 1024];

    /// The signals of an invalid access, and their previous handlers.
    const SIGNALS: [libc::c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];
    static BEFORE: [OnceLock<libc::sigaction>; 2] = [const { OnceLock::new() }; 2];

    static PAGE: AtomicUsize = AtomicUsize::new(0);

    const TEXT: &str = "\npreempt: a thread of a test has used up its stack, and the process has \
                        to abort: it recurses without an end, or needs more; `Check::stack_size` \
                        or PREEMPT_STACK_SIZE=bytes gives every thread of a check more than the \
                        usual 256 KiB\n";

    /// Registers a stack.
    pub(crate) fn enter(limit: usize) {
        let _ =
            LIMITS.iter().find(|place| place.compare_exchange(0, limit, Relaxed, Relaxed).is_ok());
    }

    /// Removes a stack.
    pub(crate) fn leave(limit: usize) {
        let _ =
            LIMITS.iter().find(|place| place.compare_exchange(limit, 0, Relaxed, Relaxed).is_ok());
    }

    /// Installs the handler, once in a process.
    pub(crate) fn install() {
        static INSTALLED: OnceLock<()> = OnceLock::new();
        INSTALLED.get_or_init(|| {
            // SAFETY: has no preconditions.
            let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            PAGE.store(usize::try_from(page).unwrap_or(0), Relaxed);
            for (signal, before) in SIGNALS.into_iter().zip(&BEFORE) {
                let mut known = MaybeUninit::<libc::sigaction>::zeroed();
                // SAFETY: reads the installed handler into `known`.
                if unsafe { libc::sigaction(signal, null(), known.as_mut_ptr()) } != 0 {
                    continue;
                }
                // SAFETY: the call above has initialised it.
                let known = *before.get_or_init(|| unsafe { known.assume_init() });
                let mut ours = known;
                ours.sa_sigaction = handle as *const () as usize;
                ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                // SAFETY: the handler has the signature that the flags require, and the previous
                // handler was saved.
                unsafe { libc::sigaction(signal, &raw const ours, null_mut()) };
            }
        });
    }

    /// Runs on the alternate stack that std sets up for every thread, since the other one is full.
    extern "C" fn handle(
        signal: libc::c_int,
        info: *mut libc::siginfo_t,
        _context: *mut libc::c_void,
    ) {
        // SAFETY: the flags make the system pass the information.
        let address = unsafe { (*info).si_addr() }.addr();
        let page = PAGE.load(Relaxed);
        let guards = |limit: usize| limit != 0 && (limit..limit + page).contains(&address);
        if LIMITS.iter().any(|limit| guards(limit.load(Relaxed))) {
            // SAFETY: both may be called from a handler; the text is static.
            unsafe {
                libc::write(libc::STDERR_FILENO, TEXT.as_ptr().cast(), TEXT.len());
                libc::abort();
            }
        }
        // Not a stack of ours: the access is repeated when this returns, and then the previous
        // handler gets the signal.
        let nth = usize::from(signal == SIGNALS[1]);
        if let Some(before) = BEFORE[nth].get() {
            // SAFETY: restores the handler that the system returned.
            unsafe { libc::sigaction(signal, &raw const *before, null_mut()) };
        }
    }
}
