//! Taking a thread of a check out of code that blocks it.
//!
//! All threads of an execution share an OS thread. If one of them blocks in a lock, a channel or a
//! `join` that is not controlled, the OS thread sleeps in the kernel, and nothing inside can run.
//! The [watchdog](crate::watchdog) notices and sends a signal to the OS thread. The handler runs on
//! the stack of the thread that blocks, records a backtrace and *suspends* that thread from inside
//! of the handler: the search goes on, on its own stack, and ends with a report. The thread is
//! never resumed, and its stack, with the frame of the signal on it, is never used again.
//!
//! # Why this is sound
//!
//! - The handler acts only if a thread of an execution runs on its own stack, in the turn that the
//!   watchdog saw, and outside of the runtime. So no reference to the runtime exists, and the
//!   suspension is one that could have come at a scheduling point.
//! - The watchdog sends the signal only if the OS thread has slept in one `futex` call for seconds.
//!   Then it holds no lock that the handler needs: the allocator and the unwinder wait for nothing
//!   while they hold theirs.
//! - Values on the stack are not dropped, which is always allowed, and stay where they are. What
//!   they borrow from outside is not used again, since the code never goes on.
//! - Other OS threads may go on with what they borrow. Those of `std::thread::scope`, and of
//!   libraries with scopes, may borrow what is gone when the test has failed. A backtrace that
//!   shows such a scope therefore ends the process, after the report.
//!
//! A lock of parking_lot leaves the OS thread in a queue of that crate. Tests that use the same OS
//! thread later may be affected; the failure of this one has been reported by then.

use std::backtrace::Backtrace;
use std::panic::Location as Site;

/// Where a thread was taken out.
#[derive(Debug)]
pub(crate) struct Stuck {
    pub(crate) thread: String,
    /// Its last operation.
    pub(crate) site: Option<&'static Site<'static>>,
    pub(crate) backtrace: Backtrace,
}

/// What a backtrace shows.
#[derive(Debug, Default, PartialEq, Eq)]
struct Blocked {
    /// The outermost function that is not the test's.
    function: Option<String>,
    /// Where the test calls it.
    place: Option<String>,
    /// Whether threads may borrow from this one.
    scoped: bool,
}

impl Stuck {
    /// The report, and whether the process has to end.
    pub(crate) fn report(&self) -> (String, bool) {
        let Blocked { function, place, scoped } = blocked(&self.backtrace.to_string());
        let place = place.map_or_else(String::new, |place| format!(" at {place}"));
        let function = function.map_or_else(String::new, |function| format!(", in {function}"));
        let last = self.site.map_or_else(
            || "it has made none".to_owned(),
            |site| format!("its last was at {site}"),
        );
        let text = format!(
            "the thread {} blocks{place}{function}, which preempt does not control: while it waits no other thread of the check can run, and it has \
             waited for {} seconds. Before that it came to its last operation: {last}. Use the locks, channels and threads of `preempt`; \
             `Check::allow_uncontrolled` or PREEMPT_ALLOW_UNCONTROLLED=1 waits on",
            self.thread,
            crate::watchdog::BLOCKED
        );
        (text, scoped)
    }
}

/// Reads a backtrace as std prints it: a line with the function, and one with the place if it is
/// known. What comes before the handler of the signal is the handler's, and where the coroutine
/// begins the search does.
fn blocked(backtrace: &str) -> Blocked {
    let lines: Vec<&str> = backtrace.lines().map(str::trim).collect();
    let handler =
        lines.iter().rposition(|line| line.contains("runtime/interrupt.rs")).map_or(0, |at| at + 1);
    let is_search =
        |line: &&str| line.contains("runtime/coroutine.rs") || line.contains("corosensei");
    let end = lines[handler..].iter().position(is_search).map_or(lines.len(), |at| handler + at);
    let (mut found, mut function) = (Blocked::default(), "");
    for &line in &lines[handler..end] {
        found.scoped |= SCOPES.iter().any(|scope| line.contains(scope));
        match line.strip_prefix("at ") {
            None => function = line.split_once(": ").map_or(line, |(_, name)| name),
            // Neither the C library nor this crate is the test's.
            Some(place) if found.place.is_some() || !place.contains(".rs:") || is_own(place) => {}
            Some(place) => match in_library(place) {
                Some(file) => found.function = Some(format!("`{function}` of {file}")),
                None => found.place = Some(place.to_owned()),
            },
        }
    }
    found.function = found.function.filter(|_| found.place.is_some());
    found
}

/// Whether a place is in this crate. std prints places below the present folder relative to it.
fn is_own(place: &str) -> bool {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/src/");
    match place.strip_prefix("./") {
        Some(rest) => std::env::current_dir().is_ok_and(|here| here.join(rest).starts_with(own)),
        None => place.starts_with(own),
    }
}

/// What the frame of a scope has in its name or place.
const SCOPES: [&str; 6] = [
    "std::thread::scoped::scope",
    "std/src/thread/scoped.rs",
    "rayon_core",
    "rayon-core",
    "crossbeam_utils::thread::scope",
    "crossbeam-utils",
];

/// The file of a place in std or in a crate of a registry, from the name of the crate on.
fn in_library(place: &str) -> Option<&str> {
    let file = place.split(".rs:").next()?;
    let std = file
        .split_once("/library/")
        .filter(|(before, _)| before.contains("/rustc/") || before.contains("/rustlib/"));
    let registry = || file.split_once("/registry/src/").and_then(|(_, rest)| rest.split_once('/'));
    std.or_else(registry).map(|(_, file)| file)
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{OsThread, send};

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{OsThread, send};

/// Where nothing tells what an OS thread waits for.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use crate::watchdog::Pulse;

    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct OsThread;

    impl OsThread {
        /// How often it has gone to sleep, if it sleeps until another thread wakes it.
        pub(crate) fn sleeps(self) -> Option<u64> {
            None
        }
    }

    pub(crate) fn send(_pulse: &Pulse, _turn: u64) {}
}

#[cfg(target_os = "linux")]
mod linux {
    use std::backtrace::Backtrace;
    use std::fs;
    use std::mem::MaybeUninit;
    use std::ptr::{from_ref, null, null_mut};
    use std::sync::Arc;
    use std::sync::atomic::Ordering::SeqCst;
    use std::sync::atomic::{AtomicPtr, AtomicU64};

    use crate::runtime::coroutine::suspend_by;
    use crate::runtime::{Runtime, is_interruptible, look, unobserved, with};
    use crate::watchdog::Pulse;

    /// An OS thread.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct OsThread(libc::pid_t);

    impl Default for OsThread {
        /// The one that runs.
        fn default() -> OsThread {
            // SAFETY: a question without conditions.
            OsThread(unsafe { libc::gettid() })
        }
    }

    impl OsThread {
        /// How often it has gone to sleep, if it sleeps until another thread wakes it.
        pub(crate) fn sleeps(self) -> Option<u64> {
            let read =
                |file: &str| fs::read_to_string(format!("/proc/self/task/{}/{file}", self.0)).ok();
            let call: i64 = read("syscall")?.split_whitespace().next()?.parse().ok()?;
            let status = read("status")?;
            let field =
                |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
            let sleeps = field("State:")?.starts_with('S') && call == libc::SYS_futex;
            field("voluntary_ctxt_switches:")?.parse().ok().filter(|_| sleeps)
        }
    }

    /// Whom the signal is for: an execution, and the turn in which its thread blocks.
    static PULSE: AtomicPtr<Pulse> = AtomicPtr::new(null_mut());
    static TURN: AtomicU64 = AtomicU64::new(0);

    /// Ignored unless it is handled, and used for little else.
    const SIGNAL: libc::c_int = libc::SIGURG;

    /// Takes the thread out that has had this turn since. If the program handles the signal itself,
    /// nothing is done.
    pub(crate) fn send(pulse: &Pulse, turn: u64) {
        if !install() {
            return;
        }
        TURN.store(turn, SeqCst);
        PULSE.store(from_ref(pulse).cast_mut(), SeqCst);
        // SAFETY: sends a signal that is handled to a thread of this process; if that has ended the
        // call fails.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), pulse.os.0, SIGNAL) };
    }

    /// Installs the handler. Whether it is there.
    fn install() -> bool {
        let mut known = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: asks for what is installed, and writes that to `known`.
        if unsafe { libc::sigaction(SIGNAL, null(), known.as_mut_ptr()) } != 0 {
            return false;
        }
        // SAFETY: it was written.
        let mut action = unsafe { known.assume_init() };
        let ours = handle as *const () as usize;
        if action.sa_sigaction == ours {
            return true;
        }
        if ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction) {
            return false;
        }
        action.sa_sigaction = ours;
        // Not on the alternate stack, since the thread is suspended there; and not masked
        // meanwhile, since the handler does not return.
        action.sa_flags = libc::SA_NODEFER | libc::SA_RESTART;
        // SAFETY: a handler with the signature that the flags ask for.
        unsafe { libc::sigaction(SIGNAL, &raw const action, null_mut()) == 0 }
    }

    extern "C" fn handle(_signal: libc::c_int) {
        let here = 0u8;
        let is_meant = |runtime: &Runtime| {
            let pulse = runtime
                .pulse
                .as_ref()
                .filter(|pulse| std::ptr::eq(Arc::as_ptr(pulse), PULSE.load(SeqCst)));
            let on_own_stack = runtime.coroutines.depth_of((&raw const here).addr());
            pulse.is_some_and(|pulse| pulse.turn() == TURN.load(SeqCst))
                && on_own_stack.is_some_and(|(slot, _)| slot == runtime.current)
        };
        if !is_interruptible() || !look(is_meant) {
            return;
        }
        let backtrace = unobserved(Backtrace::force_capture);
        let yielder = with(|runtime| {
            runtime.take_out(backtrace);
            runtime.coroutines.yielder(runtime.current)
        });
        suspend_by(yielder);
        std::process::abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backtrace_shows_where_the_test_blocks() {
        let text = "   0: preempt::runtime::current::unobserved
             at ./crates/frontend/shim/src/runtime/current.rs:10:5
   1: preempt::runtime::interrupt::linux::handle
             at ./crates/frontend/shim/src/runtime/interrupt.rs:10:5
   1: __restore_rt
   2: syscall
             at ./misc/../sysdeps/unix/sysv/linux/x86_64/syscall.S:36:0
   3: std::sys::sync::mutex::futex::Mutex::lock_contended
             at /rustc/0/library/std/src/sys/sync/mutex/futex.rs:70:5
   4: std::sync::poison::mutex::Mutex<T>::lock
             at /rustc/0/library/std/src/sync/poison/mutex.rs:9:5
   5: queue::push::{{closure}}
             at ./tests/queue.rs:31:7
   6: core::ops::function::FnOnce::call_once
             at /rustc/0/library/core/src/ops/function.rs:250:5
   7: corosensei::coroutine::coroutine_func
   8: std::thread::scoped::scope";
        let function = Some(
            "`std::sync::poison::mutex::Mutex<T>::lock` of std/src/sync/poison/mutex".to_owned(),
        );
        let expected =
            Blocked { function, place: Some("./tests/queue.rs:31:7".into()), scoped: false };
        assert_eq!(blocked(text), expected);
        assert!(blocked("   1: std::thread::scoped::scope").scoped);
        let crates =
            "home/.cargo/registry/src/index-6f17d22bba15001f/parking_lot-0.12.1/src/mutex.rs:7:5";
        assert_eq!(in_library(crates), Some("parking_lot-0.12.1/src/mutex"));
        assert_eq!(in_library("./src/library/queue.rs:31:7"), None);
        assert_eq!(blocked("   1: __restore_rt\n   2: syscall"), Blocked::default());
    }
}
