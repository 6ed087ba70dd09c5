//! The memory of a check does not grow with the number of executions if the strategy keeps no
//! table, and a step allocates nothing.
//!
//! The program wraps its own allocator, which counts allocations: `cargo test -p preempt
//! --no-default-features --features check --test memory`.
#![cfg(all(feature = "check", not(feature = "allocator")))]
#![allow(clippy::unwrap_used)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use preempt::sync::Arc;
use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use preempt::{Check, Count, Order, Reduction, thread};

/// Counts the allocations of each operating system thread. A check runs on the thread that starts
/// it; counts of the whole process would include the test runner and concurrent tests.
struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
    static TIMES: Cell<usize> = const { Cell::new(0) };
    /// The sizes of the first large allocations, for the failure message.
    static LARGE: [Cell<usize>; 64] = const { [const { Cell::new(0) }; 64] };
}

/// The minimum size of a large allocation, in bytes.
const LEAST: usize = 256;

// SAFETY: forwards to the system allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.set(LIVE.get() + layout.size() as isize);
        PEAK.set(PEAK.get().max(LIVE.get()));
        TIMES.set(TIMES.get() + 1);
        if layout.size() >= LEAST {
            LARGE.with(|sizes| {
                let free = sizes.iter().find(|size| size.get() == 0);
                free.into_iter().for_each(|size| size.set(layout.size()));
            });
        }
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE.set(LIVE.get() - layout.size() as isize);
        // SAFETY: the caller upholds the contract of `GlobalAlloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: preempt::alloc::Allocator<Counting> =
    preempt::alloc::Allocator::wrapping(Counting);

/// Held by every test. The arenas of a process are shared: a check takes a free one, with its
/// tables, and allocates a new one only if all are in use. So a concurrent check would decide
/// whether a check of this test has to allocate an arena.
static ARENAS: Mutex<()> = Mutex::new(());

fn exclusive() -> MutexGuard<'static, ()> {
    ARENAS.lock().unwrap_or_else(PoisonError::into_inner)
}

fn threads(n: usize, adds: usize) -> impl Fn() + Sync {
    move || {
        let shared = Arc::new(AtomicUsize::new(0));
        let handles: [_; 4] = std::array::from_fn(|at| {
            let shared = shared.clone();
            (at < n).then(|| {
                thread::spawn(move || {
                    for _ in 0..adds {
                        shared.fetch_add(1, SeqCst);
                    }
                })
            })
        });
        handles.into_iter().flatten().for_each(|handle| handle.join().unwrap());
    }
}

/// The allocations of a check.
struct Cost {
    /// The largest number of bytes allocated at one time.
    peak: isize,
    allocations: usize,
    /// The sizes of the first large allocations.
    large: Vec<usize>,
}

fn cost(check: &Check, adds: usize) -> Cost {
    let (live, times) = (LIVE.get(), TIMES.get());
    PEAK.set(live);
    LARGE.with(|sizes| sizes.iter().for_each(|size| size.set(0)));
    let outcome = check.run(threads(3, adds));
    assert!(outcome.findings.is_empty());
    drop(outcome);
    let (peak, allocations) = (PEAK.get() - live, TIMES.get() - times);
    let large = LARGE.with(|sizes| sizes.iter().map(Cell::get).filter(|&size| size > 0).collect());
    Cost { peak, allocations, large }
}

#[test]
fn neither_executions_nor_steps_cost_memory() {
    let _exclusive = exclusive();
    let few = Check::new().count(Count::Executions).quiet();
    let searches = [
        ("random", few.clone().order(Order::Random)),
        ("pct", few.clone().order(Order::Pct { depth: 3 })),
        ("dfs", few.clone().order(Order::Executions)),
        ("sleep", few.clone().reduce(Reduction::Sleep)),
        ("dpor", few.clone().reduce(Reduction::Source)),
        ("optimal", few.clone().unbounded()),
    ];
    for (name, search) in searches {
        let limited = |n: u64| search.clone().runs(n).executions(n);
        cost(&limited(10), 3);
        let (less, more) = (cost(&limited(100), 3), cost(&limited(1500), 3));
        assert!(
            less.peak > 0 && more.peak <= less.peak + 4096,
            "{name}: {} bytes for 100 executions, {} for 1500; large allocations: {:?}, {:?}",
            less.peak,
            more.peak,
            less.large,
            more.large
        );
        // The same number of executions with 27 more steps each: vectors grow once, and nothing
        // else is allocated. Reductions are exempt, because they record the steps.
        let [short, long] = [3, 12].map(|adds| cost(&limited(500), adds).allocations);
        let reduces = ["sleep", "dpor", "optimal"].contains(&name);
        assert!(
            reduces || long <= short + 500,
            "{name}: {short} allocations, and {long} with 13500 more steps"
        );
    }
}

/// A wrapped allocator identifies objects just as the allocator that the crate declares.
#[test]
fn a_wrapped_allocator_identifies_objects() {
    let _exclusive = exclusive();
    let text = Check::new().unbounded().report(|| {
        let counts: Arc<Vec<AtomicUsize>> = Arc::new((0..3).map(|_| AtomicUsize::new(0)).collect());
        let add = |at: usize| {
            let counts = counts.clone();
            thread::spawn(move || counts[at].fetch_add(1, SeqCst))
        };
        let handles: Vec<_> = (0..3).map(add).collect();
        handles.into_iter().for_each(|handle| drop(handle.join()));
    });
    assert!(text.contains("the only trace") && !text.contains("could not be identified"), "{text}");
}
