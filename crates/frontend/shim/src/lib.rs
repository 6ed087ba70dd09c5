//! Preempt checks Rust tests that use threads, locks and atomics: it runs a closure under every
//! schedule that matters, those with few preemptions first, and ends with the simplest failing
//! schedule, step by step, or with a sentence that says what was covered.
//!
//! # A first check
//!
//! Use `preempt::{sync, thread, cell, hint}` where a test would use std's, and pass it to
//! [`check`](fn@check):
//!
//! ```
//! use preempt::sync::Arc;
//! use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
//! use preempt::thread;
//!
//! preempt::check(|| {
//!     let n = Arc::new(AtomicUsize::new(0));
//!     let t = thread::spawn({
//!         let n = n.clone();
//!         move || n.fetch_add(1, SeqCst)
//!     });
//!     n.fetch_add(1, SeqCst);
//!     t.join().unwrap();
//!     assert_eq!(n.load(SeqCst), 2);
//! });
//! ```
//!
//! With a `load` and a `store` instead of `fetch_add` the test fails, and shows how:
//!
//! ```text
//!     line  main                                 t1
//!  1    17  let old = n.load(SeqCst);
//!           // n.load() = 0
//!           ── preemption: main could have continued ─────────────────────────────
//!  2    13                                       let old = n.load(SeqCst);
//!                                                // n.load() = 0
//!  3    14                                       n.store(old + 1, SeqCst);
//!                                                // n.store(1), was 0
//!  4                                             end
//!  5    18  n.store(old + 1, SeqCst);
//!           // n.store(1), was 1
//!  6    19  t.join().unwrap();  // join t1
//!  7    20  assert_eq!(n.load(SeqCst), 2);
//!           // n.load() = 1
//!  ✗  panic: main panicked at tests/counter.rs:20: assertion `left == right`
//!     failed left: 1 right: 2
//!     n = 1 was last written in step 5 by main: n.store(old + 1, SeqCst);
//!
//!   schedule  7 steps, 1 preemption; minimal: no schedule with fewer preemptions
//!             reproduces this failure
//!   replay    PREEMPT_REPLAY=p1-qxw002202drs cargo test -p counter --test counter adds -- --exact
//! ```
//!
//! The command at the end runs the same test with only this schedule. Variables are shown by their
//! source names if the source is available, otherwise by the line on which they were created.
//!
//! # What is covered
//!
//! [`check`](fn@check) explores all schedules with at most two preemptions, one per happens-before
//! graph, and then those with three, four and so on, as long as there are at most 10,000 executions
//! in all: small tests are explored completely. A *preemption* is a switch away from a thread that
//! could have continued; a switch away from a thread that waits, has ended, or spins is free. Most
//! errors need few preemptions. A pass that is not exhaustive prints one line that says so; an
//! exhaustive one prints nothing. [`Check`] has the other strategies: more preemptions, all
//! schedules with an optimal partial-order reduction, random schedules. [`Outcome::guarantee`] says
//! what a check proved. Reaching a limit is a failure, not a success.
//!
//! A check finds panics that escape from the closure or a thread, deadlocks, data races on
//! [`cell`]s, livelocks, leaked `Arc`s and [`alloc`]ations, and tests that are not deterministic.
//! Every finding is replayed before it is reported.
//!
//! # What is assumed
//!
//! - **No load buffering.** If the program uses orderings weaker than `SeqCst`, a load may read an
//!   older store wherever the memory model of Rust allows it ([`Check::memory`]), but no load reads
//!   a store that depends on it or comes later in its own thread. Plain accesses are ordered by
//!   acquire and release operations, so a relaxed flag protects nothing.
//! - **Determinism.** The test may depend only on its schedule: not on time, addresses, random
//!   numbers other than those of [`choose`] and [`rand`], or state left by earlier executions.
//! - **Everything shared is made inside, by mirrors.** Create everything that threads share inside
//!   the closure, with the types of this crate. A check fails and names the place if the code under
//!   test starts a thread with [`std::thread`], directly or in a library such as rayon or tokio
//!   (detected on Linux), or if such a thread uses an object of the check. A static keeps its value
//!   from one execution to the next, even from an abandoned one; this is reported as soon as it has
//!   an effect. Statics of [`lazy_static!`] are initialised in every execution. Communication
//!   through types of std is not observed: a test that has only one schedule for this reason fails,
//!   if its source shows the reason; a test with several schedules passes with a line that names
//!   the type; a lock of std that blocks stops the check, which fails after some seconds and names
//!   the place.
//! - **Fairness.** A thread that loops without observing a change is held back until something that
//!   it reads changes, or no other thread can move: after one such round if there is a `yield_now`,
//!   `spin_loop`, `sleep` or timeout in it, otherwise after three. The same holds for a thread that
//!   reaches the same yield twice while others change nothing that it uses, whatever it writes, and
//!   for a future that wakes itself. So waiting loops end. Before it is held back, the thread runs
//!   alone for a hundred rounds; a loop that ends by itself within them is not a wait, and all its
//!   rounds are explored. What follows a loop that ends after more rounds is explored only where no
//!   other thread can move. If a loop that yields also writes, schedules of an unfair scheduler may
//!   be missed: [`Outcome::guarantee`] then names the yield. A loop without a yield that changes
//!   something in every round is not a wait. If all threads that could move are held back and the
//!   whole state repeats, that is a livelock; an execution that has not ended after [20,000
//!   steps](Check::max_steps) is a finding as well, which says that the limit was reached.
//! - **Time** does not pass: a timeout may fire whenever its thread could also be waiting. That of
//!   [`sync::Condvar::wait_timeout`] may fire while another thread holds the mutex; the thread then
//!   waits for the mutex, and may find that the awaited condition has become true.
//!
//! # Data structures without tests
//!
//! [`linearize()`] needs a constructor and operations. It generates every small concurrent scenario
//! and compares the results with the serial behaviour of the structure itself:
//!
//! ```
//! use preempt::linearize;
//! use preempt::sync::atomic::{AtomicU32, Ordering::SeqCst};
//!
//! linearize(|| AtomicU32::new(0))
//!     .op("next", |n| n.fetch_add(1, SeqCst))
//!     .op("get", |n| n.load(SeqCst))
//!     .operations(3)
//!     .check();
//! ```
//!
//! Do not record the order of operations by a counter of your own inside a check: only one schedule
//! of each happens-before graph is executed, and the counter shows the order in that one. The calls
//! and returns of [`linearize()`] are part of the graph, and so are those that a test records with
//! [`history()`].
//!
//! # Settings
//!
//! Every setting of [`Check`] has an environment variable, which takes precedence:
//! `PREEMPT_BOUND=3 cargo test`. Misspelt variables are refused.
//!
//! # Speed
//!
//! Debug builds of this crate are about ten times slower. `[profile.dev.package."*"]` with
//! `opt-level = 2` in the `Cargo.toml` of a workspace optimises the dependencies of a test, but not
//! the test itself.
//!
//! # Names
//!
//! Objects have to be recognised in every schedule. This works for objects on a thread's stack, on
//! the heap, and for those that are the only one created at their source line, such as a static. On
//! the heap it needs [`alloc::Allocator`], which the feature `allocator` (on by default) makes the
//! global allocator of the test program. Without it, objects that are created at the same line, for
//! example in a `Vec`, are distinguished by the order of their first uses. That order then counts
//! as part of a schedule, so there are more schedules.
//!
//! # Outside a check
//!
//! All types behave like std's, so one `use` serves both. Without the feature `check`
//! (`default-features = false`) they *are* std's types, and the search is not built.
//!
//! # Coming from loom or shuttle
//!
//! `use preempt as loom`, or `as shuttle`, or [`use preempt::loom`](loom) if threads are given
//! values that are not `Send`: [`model`](fn@model) and [`model::Builder`], [`check_random`],
//! [`check_pct`], [`check_dfs`], [`check_urw`], [`replay`], [`Runner`], [`Config`] and the
//! [`scheduler`]s exist, and so do [`lazy_static!`] and [`future`]s.
#![cfg_attr(not(feature = "check"), deny(unsafe_code))]

#[cfg(feature = "check")]
pub mod alloc;
#[cfg(feature = "check")]
mod caveats;
#[cfg(feature = "check")]
pub mod cell;
#[cfg(feature = "check")]
mod check;
#[cfg(feature = "check")]
mod choice;
#[cfg(feature = "check")]
mod foreign_threads;
pub mod future;
#[cfg(feature = "check")]
pub mod hint;
#[cfg(feature = "check")]
pub mod history;
#[cfg(feature = "check")]
mod lazy;
#[cfg(feature = "check")]
pub mod linearize;
#[cfg(feature = "check")]
pub mod loom;
mod macros;
#[cfg(feature = "check")]
mod narrator;
#[cfg(feature = "check")]
mod page;
#[cfg(feature = "check")]
mod possible;
#[cfg(feature = "check")]
mod program;
#[cfg(feature = "check")]
mod refusal;
#[cfg(feature = "check")]
mod replay_command;
#[cfg(feature = "check")]
mod replaying;
#[cfg(feature = "check")]
mod report;
#[cfg(feature = "check")]
mod runtime;
#[cfg(feature = "check")]
mod settings;
#[cfg(feature = "check")]
mod shuttle;
#[cfg(feature = "check")]
mod source;
#[cfg(feature = "check")]
mod stderr;
#[cfg(feature = "check")]
pub mod sync;
#[cfg(feature = "check")]
mod system;
#[cfg(feature = "check")]
pub mod thread;
#[cfg(feature = "check")]
mod uncontrolled;
#[cfg(feature = "check")]
mod watchdog;
#[cfg(feature = "check")]
mod weaken;

#[cfg(not(feature = "check"))]
mod plain;

#[cfg(feature = "check")]
pub mod lazy_static {
    //! The types of [`lazy_static!`](crate::lazy_static!), by loom's names.
    pub use crate::lazy::Lazy;
    pub use crate::thread::AccessError;
}

#[cfg(feature = "check")]
pub use {
    check::{Check, check},
    choice::{assume, choose},
    history::history,
    lazy::Lazy,
    linearize::{linearize, linearize_handles},
    loom::{MAX_THREADS, explore, model, skip_branch, stop_exploring},
    preempt_explore::{Cache, Count, Order, Outcome, Reduction},
    preempt_system::{Failure, FailureKind, Finding, MemoryModel as Memory, Verdict},
    refusal::Refusal,
    runtime::orderings::OrderingRole,
    shuttle::{
        Config, FailurePersistence, MaxSteps, PortfolioRunner, Runner, check_dfs, check_pct,
        check_random, check_random_with_seed, check_uncontrolled_nondeterminism, check_urw, rand,
        replay, replay_from_file, scheduler,
    },
    weaken::{OrderingReport, OrderingTrial, TrialResult},
};

#[cfg(not(feature = "check"))]
pub use plain::{Lazy, alloc, cell, hint, lazy_static, sync, thread, thread_local};
