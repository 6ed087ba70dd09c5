//! Stacks that are too small: a text before the process ends.
//!
//! Below every stack of a coroutine is a guard page, so that a thread that needs
//! more ends the process by a signal. std's handler of that signal knows the stacks of std's
//! threads only, and says nothing. So this one stands before it: it looks whether the address is in
//! such a page, and if so says what to do and aborts; everything else it leaves to the handler that
//! was there.
//!
//! A handler may run at any moment. This one takes no lock and allocates nothing: it compares
//! numbers in a table of atomics.

#[cfg(unix)]
pub(crate) use unix::{enter, install, leave};

#[cfg(not(unix))]
pub(crate) use elsewhere::{enter, install, leave};

/// Where the system reports it itself, or nothing can.
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

    /// The lowest address of every stack, where its guard page begins; 0 where there is none. If
    /// there are more stacks than places, those that find none go without a text.
    static LIMITS: [AtomicUsize; 1024] = [const { AtomicUsize::new(0) }; 1024];

    /// The signals of a bad access, and what was done about them before.
    const SIGNALS: [libc::c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];
    static BEFORE: [OnceLock<libc::sigaction>; 2] = [const { OnceLock::new() }; 2];

    static PAGE: AtomicUsize = AtomicUsize::new(0);

    const TEXT: &str = "\npreempt: a thread of a test has used up its stack, and the process has to abort: it recurses without an end, or needs more; \
                        `Check::stack_size` or PREEMPT_STACK_SIZE=bytes gives every thread of a check more than the usual 256 KiB\n";

    /// A stack is there.
    pub(crate) fn enter(limit: usize) {
        let _ =
            LIMITS.iter().find(|place| place.compare_exchange(0, limit, Relaxed, Relaxed).is_ok());
    }

    /// A stack is gone.
    pub(crate) fn leave(limit: usize) {
        let _ =
            LIMITS.iter().find(|place| place.compare_exchange(limit, 0, Relaxed, Relaxed).is_ok());
    }

    /// Installs the handler, once in a process.
    pub(crate) fn install() {
        static INSTALLED: OnceLock<()> = OnceLock::new();
        INSTALLED.get_or_init(|| {
            // SAFETY: a question without conditions.
            let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
            PAGE.store(usize::try_from(page).unwrap_or(0), Relaxed);
            for (signal, before) in SIGNALS.into_iter().zip(&BEFORE) {
                let mut known = MaybeUninit::<libc::sigaction>::zeroed();
                // SAFETY: asks for what is installed, and writes that to `known`.
                if unsafe { libc::sigaction(signal, null(), known.as_mut_ptr()) } != 0 {
                    continue;
                }
                // SAFETY: it was written.
                let known = *before.get_or_init(|| unsafe { known.assume_init() });
                let mut ours = known;
                ours.sa_sigaction = handle as *const () as usize;
                ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                // SAFETY: a handler with the signature that the flags ask for; what was there is
                // known to it.
                unsafe { libc::sigaction(signal, &raw const ours, null_mut()) };
            }
        });
    }

    /// Runs on the alternate stack that std gives every thread, since the other one is full.
    extern "C" fn handle(
        signal: libc::c_int,
        info: *mut libc::siginfo_t,
        _context: *mut libc::c_void,
    ) {
        // SAFETY: the system passes the information that the flags ask for.
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
        // Not ours: the access is made again when this returns, and then the handler that was there
        // gets it.
        let nth = usize::from(signal == SIGNALS[1]);
        if let Some(before) = BEFORE[nth].get() {
            // SAFETY: what the system itself gave as the handler before.
            unsafe { libc::sigaction(signal, &raw const *before, null_mut()) };
        }
    }
}
