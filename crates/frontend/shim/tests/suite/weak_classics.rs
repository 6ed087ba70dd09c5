//! Classic algorithms under weak memory: they pass with the orderings that they need, and fail if
//! one of these is weakened.

use preempt::cell::UnsafeCell;
use preempt::sync::Arc;
use preempt::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use preempt::{Check, FailureKind, Memory, Outcome, Verdict, hint, thread};

use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

pub(crate) fn weak() -> Check {
    Check::new().memory(Memory::Weak).quiet()
}

/// Plain data. The race detector sees every access.
pub(crate) struct Plain(UnsafeCell<usize>);

// SAFETY: the threads of a check run one at a time, and racing accesses fail the check.
unsafe impl Sync for Plain {}
// SAFETY: as above.
unsafe impl Send for Plain {}

impl Plain {
    pub(crate) fn new(value: usize) -> Plain {
        Plain(UnsafeCell::new(value))
    }

    pub(crate) fn get(&self) -> usize {
        // SAFETY: see above.
        self.0.with(|cell| unsafe { *cell })
    }

    pub(crate) fn set(&self, value: usize) {
        // SAFETY: see above.
        self.0.with_mut(|cell| unsafe { *cell = value });
    }
}

/// Runs `first` in another thread and `second` in this one on shared data.
pub(crate) fn two<T: Send + Sync + 'static>(
    shared: T,
    first: impl FnOnce(&T) + Send + 'static,
    second: impl FnOnce(&T),
) -> Arc<T> {
    let shared = Arc::new(shared);
    let t = thread::spawn({
        let shared = shared.clone();
        move || first(&shared)
    });
    second(&shared);
    t.join().unwrap();
    shared
}

pub(crate) fn passes(outcome: &Outcome) {
    assert_eq!(outcome.verdict, Verdict::Ok, "{:?}", outcome.findings);
}

/// The same for a search that has explored everything.
pub(crate) fn verified(outcome: &Outcome) {
    passes(outcome);
    assert!(outcome.complete, "{}", outcome.guarantee());
}

pub(crate) fn fails(outcome: &Outcome, kind: FailureKind) {
    assert_eq!(outcome.findings.first().map(|finding| finding.failure.kind), Some(kind));
}

/// Two threads enter if they do not see the other's flag.
fn dekker(order: (Ordering, Ordering), fences: Option<Ordering>) {
    let enter = move |own: &AtomicBool, other: &AtomicBool, data: &Plain| {
        own.store(true, order.0);
        if let Some(order) = fences {
            fence(order);
        }
        if !other.load(order.1) {
            data.set(data.get() + 1);
        }
    };
    let shared = (AtomicBool::new(false), AtomicBool::new(false), Plain::new(0));
    two(shared, move |(a, b, data)| enter(a, b, data), move |(a, b, data)| enter(b, a, data));
}

#[test]
fn dekker_needs_sequential_consistency() {
    verified(&weak().unbounded().run(|| dekker((SeqCst, SeqCst), None)));
    verified(&weak().unbounded().run(|| dekker((Relaxed, Relaxed), Some(SeqCst))));
    fails(&weak().run(|| dekker((Release, Acquire), None)), FailureKind::Race);
    fails(&weak().run(|| dekker((Relaxed, Relaxed), Some(AcqRel))), FailureKind::Race);
    fails(&weak().run(|| dekker((SeqCst, Acquire), None)), FailureKind::Race);
}

/// Peterson's lock, with one attempt each.
fn peterson(order: Ordering) {
    let load = if order == Release { Acquire } else { order };
    let enter = move |flags: &[AtomicBool; 2], turn: &AtomicUsize, data: &Plain, own: usize| {
        let other = 1 - own;
        flags[own].store(true, order);
        turn.store(other, order);
        if flags[other].load(load) && turn.load(load) == other {
            return;
        }
        data.set(data.get() + 1);
        flags[own].store(false, Release);
    };
    let flags = [AtomicBool::new(false), AtomicBool::new(false)];
    two(
        (flags, AtomicUsize::new(0), Plain::new(0)),
        move |(flags, turn, data)| enter(flags, turn, data, 0),
        move |(flags, turn, data)| enter(flags, turn, data, 1),
    );
}

#[test]
fn peterson_needs_sequential_consistency() {
    verified(&weak().unbounded().run(|| peterson(SeqCst)));
    fails(&weak().run(|| peterson(Release)), FailureKind::Race);
}

/// A writer changes two values; a reader takes both if the sequence number did not change.
fn seqlock(fences: bool, end: Ordering) {
    two(
        (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0)),
        move |(sequence, x, y)| {
            sequence.store(1, Relaxed);
            if fences {
                fence(Release);
            }
            x.store(1, Relaxed);
            y.store(1, Relaxed);
            sequence.store(2, end);
        },
        move |(sequence, x, y)| {
            let before = sequence.load(Acquire);
            let (x, y) = (x.load(Relaxed), y.load(Relaxed));
            if fences {
                fence(Acquire);
            }
            if before % 2 == 0 && sequence.load(Relaxed) == before {
                assert_eq!(x, y, "a torn read");
            }
        },
    );
}

#[test]
fn a_seqlock_needs_its_fences_and_its_release() {
    verified(&weak().unbounded().run(|| seqlock(true, Release)));
    fails(&weak().run(|| seqlock(false, Release)), FailureKind::Panic);
    fails(&weak().run(|| seqlock(true, Relaxed)), FailureKind::Panic);
}

/// The last of two owners frees the data.
fn arc(decrement: Ordering, before_free: Option<Ordering>) {
    let release = move |(count, data, freed): &(AtomicUsize, Plain, Plain)| {
        data.get();
        if count.fetch_sub(1, decrement) == 1 {
            if let Some(order) = before_free {
                fence(order);
            }
            data.set(0);
            freed.set(1);
        }
    };
    let shared = (AtomicUsize::new(2), Plain::new(7), Plain::new(0));
    let shared = two(shared, release, release);
    assert_eq!(shared.2.get(), 1, "one thread is the last owner");
}

#[test]
fn the_count_of_an_arc_is_released_and_acquired() {
    verified(&weak().unbounded().run(|| arc(Release, Some(Acquire))));
    verified(&weak().unbounded().run(|| arc(AcqRel, None)));
    fails(&weak().run(|| arc(Relaxed, Some(Acquire))), FailureKind::Race);
    fails(&weak().run(|| arc(Release, None)), FailureKind::Race);
}

/// Data that is initialised once, under a lock that is acquired only if the flag is not set.
fn double_checked(store: Ordering, load: Ordering) {
    type Shared = (AtomicBool, preempt::sync::Mutex<()>, Plain);
    let get = move |(ready, lock, data): &Shared| {
        if !ready.load(load) {
            let _guard = lock.lock().unwrap();
            if !ready.load(Relaxed) {
                data.set(7);
                ready.store(true, store);
            }
        }
        assert_eq!(data.get(), 7);
    };
    let shared = (AtomicBool::new(false), preempt::sync::Mutex::new(()), Plain::new(0));
    two(shared, get, get);
}

#[test]
fn double_checked_locking_publishes_its_data() {
    verified(&weak().unbounded().run(|| double_checked(Release, Acquire)));
    fails(&weak().run(|| double_checked(Relaxed, Acquire)), FailureKind::Race);
    fails(&weak().run(|| double_checked(Release, Relaxed)), FailureKind::Race);
}

/// A ticket lock.
fn ticket_lock(unlock: Ordering) {
    let add = move |(next, serving, data): &(AtomicUsize, AtomicUsize, Plain)| {
        let ticket = next.fetch_add(1, Relaxed);
        while serving.load(Acquire) != ticket {
            hint::spin_loop();
        }
        data.set(data.get() + 1);
        serving.store(ticket + 1, unlock);
    };
    let shared = (AtomicUsize::new(0), AtomicUsize::new(0), Plain::new(0));
    assert_eq!(two(shared, add, add).2.get(), 2);
}

#[test]
fn a_ticket_lock_needs_a_release() {
    verified(&weak().unbounded().run(|| ticket_lock(Release)));
    fails(&weak().run(|| ticket_lock(Relaxed)), FailureKind::Race);
}

/// A node of Treiber's stack.
struct Node {
    value: Plain,
    next: *mut Node,
}

/// One thread pushes, the other pops one node if it sees one.
pub(crate) fn treiber(push: Ordering, pop: Ordering) {
    let shared = two(
        AtomicPtr::new(std::ptr::null_mut::<Node>()),
        move |head| {
            let node = Node { value: Plain::new(0), next: std::ptr::null_mut() };
            let node = Box::into_raw(Box::new(node));
            // SAFETY: it is not published yet.
            unsafe { &*node }.value.set(7);
            head.compare_exchange(std::ptr::null_mut(), node, push, Relaxed).unwrap();
        },
        move |head| {
            let top = head.load(pop);
            if !top.is_null() {
                // SAFETY: nodes are freed at the end.
                assert_eq!(unsafe { &*top }.value.get(), 7);
            }
        },
    );
    let mut top = shared.load(Acquire);
    while !top.is_null() {
        // SAFETY: all threads have ended, and nodes came from boxes.
        top = unsafe { Box::from_raw(top) }.next;
    }
}

#[test]
fn treibers_stack_publishes_its_nodes() {
    verified(&weak().unbounded().run(|| treiber(Release, Acquire)));
    fails(&weak().run(|| treiber(Relaxed, Acquire)), FailureKind::Race);
    fails(&weak().run(|| treiber(Release, Relaxed)), FailureKind::Race);
}

/// The owner of a Chase–Lev deque of one element takes it while a thief steals it (Lê et al. 2013).
fn chase_lev(take: Option<Ordering>, steal: Option<Ordering>) {
    let between = |order: Option<Ordering>| {
        if let Some(order) = order {
            fence(order);
        }
    };
    let taken = two(
        (AtomicUsize::new(0), AtomicUsize::new(1), AtomicUsize::new(0)),
        move |(top, bottom, taken)| {
            let t = top.load(Acquire);
            between(steal);
            let b = bottom.load(Acquire);
            if t < b && top.compare_exchange(t, t + 1, SeqCst, Relaxed).is_ok() {
                taken.fetch_add(1, Relaxed);
            }
        },
        move |(top, bottom, taken)| {
            let b = bottom.load(Relaxed) - 1;
            bottom.store(b, Relaxed);
            between(take);
            let t = top.load(Relaxed);
            if t < b || t == b && top.compare_exchange(t, t + 1, SeqCst, Relaxed).is_ok() {
                taken.fetch_add(1, Relaxed);
            }
            bottom.store(b + 1, Relaxed);
        },
    );
    assert_eq!(taken.2.load(Relaxed), 1, "the element is taken once");
}

/// The same with two elements: the owner takes the last one without an exchange if it sees the
/// other one, so that a thief which does not see its store takes the same element.
fn chase_lev_of_two(take: Ordering, steal: Ordering) {
    let taken = two(
        (AtomicUsize::new(0), AtomicUsize::new(2), [AtomicUsize::new(0), AtomicUsize::new(0)]),
        move |(top, bottom, taken)| {
            for _ in 0..2 {
                let t = top.load(Acquire);
                fence(steal);
                let b = bottom.load(Acquire);
                if t < b && top.compare_exchange(t, t + 1, SeqCst, Relaxed).is_ok() {
                    taken[t].fetch_add(1, Relaxed);
                }
            }
        },
        move |(top, bottom, taken)| {
            let b = bottom.load(Relaxed) - 1;
            bottom.store(b, Relaxed);
            fence(take);
            let t = top.load(Relaxed);
            if t < b {
                taken[b].fetch_add(1, Relaxed);
            } else {
                if t == b && top.compare_exchange(t, t + 1, SeqCst, Relaxed).is_ok() {
                    taken[b].fetch_add(1, Relaxed);
                }
                bottom.store(b + 1, Relaxed);
            }
        },
    );
    assert!(taken.2.iter().all(|taken| taken.load(Relaxed) <= 1), "an element is taken twice");
}

/// The owner pushes an element, which a thief steals. The fence of `push` publishes it.
fn chase_lev_push(push: Option<Ordering>) {
    two(
        (AtomicUsize::new(0), AtomicUsize::new(0), Plain::new(0)),
        |(top, bottom, element)| {
            let t = top.load(Acquire);
            fence(SeqCst);
            let b = bottom.load(Acquire);
            if t < b {
                let stolen = element.get();
                if top.compare_exchange(t, t + 1, SeqCst, Relaxed).is_ok() {
                    assert_eq!(stolen, 7);
                }
            }
        },
        move |(_, bottom, element)| {
            let b = bottom.load(Relaxed);
            element.set(7);
            if let Some(order) = push {
                fence(order);
            }
            bottom.store(b + 1, Relaxed);
        },
    );
}

#[test]
fn the_chase_lev_deque_needs_the_fence_of_push() {
    verified(&weak().unbounded().run(|| chase_lev_push(Some(Release))));
    fails(&weak().run(|| chase_lev_push(None)), FailureKind::Race);
}

#[test]
fn the_chase_lev_deque_needs_both_fences() {
    verified(&weak().unbounded().run(|| chase_lev(Some(SeqCst), Some(SeqCst))));
    verified(&weak().unbounded().run(|| chase_lev_of_two(SeqCst, SeqCst)));
    fails(&weak().bound(3).run(|| chase_lev_of_two(AcqRel, SeqCst)), FailureKind::Panic);
    fails(&weak().bound(3).run(|| chase_lev_of_two(SeqCst, AcqRel)), FailureKind::Panic);
}
