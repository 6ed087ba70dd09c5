//! Interrupts a thread of a check that blocks in uncontrolled code.
//!
//! All threads of an execution share an OS thread. If one of them blocks in a lock, a channel or a
//! `join` that is not controlled, the OS thread sleeps in the kernel, and nothing inside can run.
//! The [watchdog](crate::watchdog) notices and sends a signal to the OS thread. The handler runs on
//! the stack of the thread that blocks, records a backtrace and *suspends* that thread from inside
//! of the handler: the search continues on its own stack and ends with a report. The thread is
//! never resumed, and its stack, with the frame of the signal on it, is never used again.
//!
//! # Why this is sound
//!
//! - The handler acts only if a thread of an execution runs on its own stack, in the turn that the
//!   watchdog saw, and outside the runtime. So no reference to the runtime exists, and the
//!   suspension is one that could have come at a scheduling point.
//! - The watchdog sends the signal only if the OS thread has slept in one `futex` call for seconds.
//!   Then it holds no lock that the handler needs: the allocator and the unwinder wait for nothing
//!   while they hold theirs.
//! - Values on the stack are not dropped, which is always allowed, and stay where they are. Their
//!   borrows are not used again, since the code never continues.
//! - Other OS threads may continue to use their borrows. Those of `std::thread::scope`, and of
//!   libraries with scopes, may borrow what is gone when the test has failed. A backtrace that
//!   shows such a scope therefore ends the process, after the report.
//!
//! A lock of parking_lot leaves the OS thread in a queue of that crate. Tests that use the same OS
//! thread later may be affected; the failure of this one has been reported by then.

use std::backtrace::Backtrace;
use std::panic::Location as Site;

/// A thread that was interrupted in blocking code.
#[derive(Debug)]
pub(crate) struct Stuck {
    pub(crate) thread: String,
    /// Its last operation.
    pub(crate) site: Option<&'static Site<'static>>,
    /// The place of the check.
    pub(crate) check: Option<&'static Site<'static>>,
    pub(crate) backtrace: Backtrace,
}

/// The relevant part of a backtrace.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Blocked {
    /// The outermost function that does not belong to the test.
    pub(crate) function: Option<String>,
    /// The position of the call in the test.
    pub(crate) place: Option<String>,
    /// Whether other OS threads may borrow from this one.
    pub(crate) scoped: bool,
}

impl Blocked {
    /// The place and the function, as the continuation of a sentence. An optimised test may have no
    /// frame of its own, where it calls a function at its very end; then the place of its check is
    /// given.
    pub(crate) fn words(&self, check: Option<&Site<'_>>) -> String {
        let function = self.function.as_ref().map(|function| format!(", in {function}"));
        let function = function.unwrap_or_default();
        match (&self.place, check) {
            (Some(place), _) => format!(" at {place}{function}"),
            (None, Some(check)) => format!(" in the check at {check}{function}"),
            (None, None) => function,
        }
    }
}

impl Stuck {
    /// The report, and whether the process has to end.
    pub(crate) fn report(&self) -> (String, bool) {
        let blocked = blocked(&self.backtrace.to_string());
        let (place, scoped) = (blocked.words(self.check), blocked.scoped);
        let last = self.site.map_or_else(
            || "it has performed none".to_owned(),
            |site| format!("its last was at {site}"),
        );
        let text = format!(
            "the thread {} blocks{place}, which preempt does not control: while it waits, \
             no other thread of the check can run, and it has waited for {} seconds. Before that, \
             it reached its last operation: {last}. Use the locks, channels and threads of \
             `preempt`; `Check::allow_uncontrolled` or PREEMPT_ALLOW_UNCONTROLLED=1 keeps waiting",
            self.thread,
            crate::watchdog::BLOCKED
        );
        (text, scoped)
    }
}

/// Reads a backtrace as std prints it: a line with the function, and one with the place if it is
/// known. Frames before the signal handler belong to the handler, and frames after the start of the
/// coroutine to the search.
pub(crate) fn blocked(backtrace: &str) -> Blocked {
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
            // Frames of the C library and of this crate are not the test's.
            Some(place) if found.place.is_some() || !place.contains(".rs:") || is_own(place) => {}
            Some(place) => match in_library(place) {
                Some(file) => {
                    found.function = Some(format!("`{}` of {file}", without_types(function)));
                }
                None => found.place = Some(place.to_owned()),
            },
        }
    }
    found
}

/// The name of a generic function without its type arguments.
fn without_types(function: &str) -> &str {
    let mut depth = 0;
    let open = function.strip_suffix('>').and_then(|inner| {
        inner.rfind(|c| {
            depth += i32::from(c == '>') - i32::from(c == '<');
            depth < 0
        })
    });
    open.filter(|&at| at > 0).map_or(function, |at| function[..at].trim_end_matches("::"))
}

/// Whether a place is in this crate. std prints places below the current folder relative to it.
fn is_own(place: &str) -> bool {
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/src/");
    match place.strip_prefix("./") {
        Some(rest) => std::env::current_dir().is_ok_and(|here| here.join(rest).starts_with(own)),
        None => place.starts_with(own),
    }
}

/// Texts that identify the frame of a scope.
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
pub(crate) use linux::{OsThread, observe, send};

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{OsThread, observe, send};

/// Platforms on which it is not known what an OS thread waits for.
#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use crate::watchdog::Heartbeat;

    #[derive(Clone, Copy, Debug, Default)]
    pub(crate) struct OsThread;

    impl OsThread {
        /// The number of its voluntary context switches, if it is blocked in a futex.
        pub(crate) fn sleeps(self) -> Option<u64> {
            None
        }
    }

    pub(crate) fn send(_heartbeat: &Heartbeat, _turn: u64) {}

    pub(crate) fn observe(_heartbeat: &Heartbeat, _turn: u64) -> Option<std::backtrace::Backtrace> {
        None
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::backtrace::Backtrace;
    use std::fs;
    use std::mem::MaybeUninit;
    use std::ptr::{from_ref, null, null_mut};
    use std::sync::Arc;
    use std::sync::atomic::Ordering::SeqCst;
    use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};
    use std::time::Duration;

    use crate::runtime::coroutine::suspend_by;
    use crate::runtime::{Runtime, is_interruptible, look, unobserved, with};
    use crate::watchdog::Heartbeat;

    /// An OS thread.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct OsThread(libc::pid_t);

    impl Default for OsThread {
        /// The current OS thread.
        fn default() -> OsThread {
            // SAFETY: has no preconditions.
            OsThread(unsafe { libc::gettid() })
        }
    }

    impl OsThread {
        /// The number of its voluntary context switches, if it is blocked in a futex.
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

    /// The target of the signal: the heartbeat of an execution, and the turn in which its thread
    /// blocks.
    static HEARTBEAT: AtomicPtr<Heartbeat> = AtomicPtr::new(null_mut());
    static TURN: AtomicU64 = AtomicU64::new(0);

    /// Whether the thread only reports where it is.
    static OBSERVES: AtomicBool = AtomicBool::new(false);
    static OBSERVED: AtomicPtr<Backtrace> = AtomicPtr::new(null_mut());

    /// Ignored by default, and rarely used by programs.
    const SIGNAL: libc::c_int = libc::SIGURG;

    /// Interrupts the thread if it is still in this turn. Does nothing if the program handles the
    /// signal itself.
    pub(crate) fn send(heartbeat: &Heartbeat, turn: u64) {
        if install() {
            signal(heartbeat, turn);
        }
    }

    /// Where the thread is that has had this turn since, if it answers within a second. It may hold
    /// the lock of an allocator and never answer, or never continue, so this is only for a process
    /// that is about to end.
    pub(crate) fn observe(heartbeat: &Heartbeat, turn: u64) -> Option<Backtrace> {
        if !install() {
            return None;
        }
        OBSERVES.store(true, SeqCst);
        signal(heartbeat, turn);
        let answer = (0..20).find_map(|_| {
            std::thread::sleep(Duration::from_millis(50));
            Some(OBSERVED.swap(null_mut(), SeqCst)).filter(|answer| !answer.is_null())
        });
        OBSERVES.store(false, SeqCst);
        // SAFETY: the handler made it from a box, and it was taken once.
        answer.map(|answer| *unsafe { Box::from_raw(answer) })
    }

    fn signal(heartbeat: &Heartbeat, turn: u64) {
        TURN.store(turn, SeqCst);
        HEARTBEAT.store(from_ref(heartbeat).cast_mut(), SeqCst);
        // SAFETY: sends a signal that has a handler to a thread of this process; the call fails if
        // that has ended.
        unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), heartbeat.os.0, SIGNAL) };
    }

    /// Installs the handler. Returns whether it is installed.
    fn install() -> bool {
        let mut known = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: reads the installed handler into `known`.
        if unsafe { libc::sigaction(SIGNAL, null(), known.as_mut_ptr()) } != 0 {
            return false;
        }
        // SAFETY: the call above has initialised it.
        let mut action = unsafe { known.assume_init() };
        let ours = handle as *const () as usize;
        if action.sa_sigaction == ours {
            return true;
        }
        if ![libc::SIG_DFL, libc::SIG_IGN].contains(&action.sa_sigaction) {
            return false;
        }
        action.sa_sigaction = ours;
        // Not on the alternate stack, since the handler suspends the thread; and the signal is not
        // masked, since the handler does not return.
        action.sa_flags = libc::SA_NODEFER | libc::SA_RESTART;
        // SAFETY: the handler has the signature that the flags require.
        unsafe { libc::sigaction(SIGNAL, &raw const action, null_mut()) == 0 }
    }

    extern "C" fn handle(_signal: libc::c_int) {
        let here = 0u8;
        let is_meant = |runtime: &Runtime| {
            let heartbeat = runtime
                .heartbeat
                .as_ref()
                .filter(|heartbeat| std::ptr::eq(Arc::as_ptr(heartbeat), HEARTBEAT.load(SeqCst)));
            let on_own_stack = runtime.coroutines.depth_of((&raw const here).addr());
            heartbeat.is_some_and(|heartbeat| heartbeat.turn() == TURN.load(SeqCst))
                && on_own_stack.is_some_and(|(slot, _)| slot == runtime.current)
        };
        if !is_interruptible() || !look(is_meant) {
            return;
        }
        let backtrace = unobserved(Backtrace::force_capture);
        if OBSERVES.load(SeqCst) {
            let answer = unobserved(|| Box::into_raw(Box::new(backtrace)));
            return OBSERVED.store(answer, SeqCst);
        }
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
        assert_eq!(without_types("spawn<queue::push::{closure_env#0}, ()>"), "spawn");
        assert_eq!(without_types("recv::<Vec<u8>>"), "recv");
        assert_eq!(without_types("std::sync::Mutex<T>::lock"), "std::sync::Mutex<T>::lock");
        assert_eq!(without_types("<T as Trait>::run"), "<T as Trait>::run");
        assert_eq!(blocked("   1: __restore_rt\n   2: syscall"), Blocked::default());
    }
}
