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
//! With a `load` and a `store` in place of `fetch_add` the test fails, and says how:
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
//! [`check`](fn@check) explores all schedules with at most two preemptions, of those with the same
//! happens-before graph one, and then those with three, four and so on, as long as there are at
//! most 10,000 executions in all: small tests are explored completely. A *preemption* is a switch
//! away from a thread that could have gone on; a switch away from one that waits, has ended, or
//! spins is free. Most errors need few. A pass that leaves something out prints one line that says
//! so; one that is exhaustive prints nothing. [`Check`] has the other strategies: more preemptions,
//! all schedules with an optimal partial-order reduction, random ones. What a check proved is said
//! by [`Outcome::guarantee`]. A limit that was reached is a failure, not a success.
//!
//! Found are: panics that leave the closure or a thread, deadlocks, data races on [`cell`]s,
//! livelocks, `Arc`s and [`alloc`]ations that are left at the end, and tests that are not
//! deterministic. Every finding has been replayed before it is reported.
//!
//! # What is assumed
//!
//! - **Sequential consistency.** A load gives the value of the last store, whatever the ordering.
//!   Orderings count in one respect: a plain access is ordered by acquire and release only, so that
//!   a relaxed flag shows as a data race.
//! - **Determinism.** What the test does must depend on its schedule alone: no time, no addresses,
//!   no random numbers but those of [`choose`] and [`rand`], nothing left over from the execution
//!   before.
//! - **Everything shared is made inside, by mirrors.** Make what threads share in the closure, of
//!   the types of this crate. Threads of [`std::thread`] that use them are told so. A static keeps
//!   its value from one execution to the next, also from one that was given up in the middle: as
//!   soon as that shows it is reported. Those of [`lazy_static!`] begin anew in every execution.
//!   What threads share through types of std is not seen: a test that has one schedule for this
//!   reason fails, as far as its source shows the reason; one that has several passes with a line
//!   that names the type; a lock of std that blocks stops everything, and after some seconds the
//!   check fails with its place.
//! - **Fairness.** A thread that goes round and finds nothing new is held back until something
//!   changes that it looked at, or nobody else can move: after one such round if there is a
//!   `yield_now`, `spin_loop`, `sleep` or timeout in it, after three without. So is a thread that
//!   comes to the same yield twice while others change nothing that it uses, whatever it writes,
//!   and a future that wakes itself. So loops that wait end. Before that the thread goes on alone
//!   for a hundred rounds, and a loop that ends by itself meanwhile is no wait: all its rounds are
//!   explored. What follows a loop that gives up after more rounds is only explored where nobody
//!   else can move. If a loop that yields also writes, not everything is explored that an unfair
//!   scheduler could do: [`Outcome::guarantee`] then names the yield. A loop without a yield that
//!   changes something in every round is no wait at all. If all threads that could move are held
//!   back and their whole state repeats itself, that is a livelock; an execution that has not ended
//!   after [20,000 steps](Check::max_steps) is a finding as well, and says that the limit was
//!   reached.
//! - **Time** does not pass: a timeout may fire whenever its thread could also be waiting.
//!
//! # Settings
//!
//! Every setting of [`Check`] has a variable of the environment, which wins: `PREEMPT_BOUND=3 cargo
//! test`. One that is misspelt is refused.
//!
//! # Speed
//!
//! Tests are built without optimisation, and so would be this crate, which is then ten times
//! slower. In the `Cargo.toml` of a workspace `[profile.dev.package."*"]` with `opt-level = 2`
//! optimises what a test depends on, and not the test.
//!
//! # Names
//!
//! Objects have to be recognised in every schedule. Those on a thread's stack, on the heap, or made
//! at a line of the program that makes one of them, as the declaration of a static does, are. On
//! the heap this takes [`alloc::Allocator`], which the feature `allocator` (on by default) makes
//! the global allocator of the test program. Without it, if a line makes several objects in a
//! `Vec`, say, they are told apart by the order of their first uses, which then counts as part of a
//! schedule and makes more of them.
//!
//! # Outside a check
//!
//! All types behave as std's, so that one `use` serves both. Without the feature `check`
//! (`default-features = false`) they *are* std's, and nothing of the search is built.
//!
//! # Coming from loom or shuttle
//!
//! `use preempt as loom`, or `as shuttle`, or [`use preempt::loom`](loom) if threads are given what
//! is not `Send`: [`model`](fn@model) and [`model::Builder`], [`check_random`], [`check_pct`],
//! [`check_dfs`], [`check_urw`], [`replay`], [`Runner`], [`Config`] and the [`scheduler`]s are
//! there, [`lazy_static!`] and [`future`]s too.
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
mod lazy;
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
    choice::choose,
    lazy::Lazy,
    loom::{MAX_THREADS, explore, model, skip_branch, stop_exploring},
    preempt_explore::{Cache, Count, Order, Outcome, Reduction},
    preempt_system::{Failure, FailureKind, Finding, Verdict},
    refusal::Refusal,
    shuttle::{
        Config, FailurePersistence, MaxSteps, PortfolioRunner, Runner, check_dfs, check_pct,
        check_random, check_random_with_seed, check_uncontrolled_nondeterminism, check_urw, rand,
        replay, replay_from_file, scheduler,
    },
};

#[cfg(not(feature = "check"))]
pub use plain::{Lazy, alloc, cell, hint, lazy_static, sync, thread, thread_local};
