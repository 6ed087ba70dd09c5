//! Data structures with published weak-memory errors: they pass with the orderings that they need,
//! and fail if one of these is weakened.

use std::ptr::null_mut;

use preempt::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};
use preempt::{FailureKind, hint, thread};

use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use crate::weak_classics::{Plain, fails, passes, two, verified, weak};

/// A thread's node in the queue of an MCS lock.
struct Waiter {
    next: AtomicPtr<Waiter>,
    waits: AtomicBool,
}

/// The lock of Mellor-Crummey and Scott: two threads increment a number.
fn mcs_lock(hand_over: Ordering) {
    struct Shared {
        tail: AtomicPtr<Waiter>,
        waiters: [Waiter; 2],
        data: Plain,
    }
    let add = move |shared: &Shared, nth: usize| {
        let own = &shared.waiters[nth];
        let pointer = std::ptr::from_ref(own).cast_mut();
        let before = shared.tail.swap(pointer, AcqRel);
        // SAFETY: the waiters are in the shared data, which outlives the threads.
        if let Some(before) = unsafe { before.as_ref() } {
            before.next.store(pointer, Release);
            while own.waits.load(Acquire) {
                hint::spin_loop();
            }
        }
        shared.data.set(shared.data.get() + 1);
        if own.next.load(Acquire).is_null() {
            if shared.tail.compare_exchange(pointer, null_mut(), hand_over, Relaxed).is_ok() {
                return;
            }
            while own.next.load(Acquire).is_null() {
                hint::spin_loop();
            }
        }
        // SAFETY: as above.
        unsafe { &*own.next.load(Relaxed) }.waits.store(false, hand_over);
    };
    let waiter = || Waiter { next: AtomicPtr::new(null_mut()), waits: AtomicBool::new(true) };
    let tail = AtomicPtr::new(null_mut());
    let shared = Shared { tail, waiters: [waiter(), waiter()], data: Plain::new(0) };
    let end = two(shared, move |shared| add(shared, 0), move |shared| add(shared, 1));
    assert_eq!(end.data.get(), 2);
}

#[test]
fn an_mcs_lock_needs_release_and_acquire() {
    verified(&weak().unbounded().run(|| mcs_lock(Release)));
    fails(&weak().run(|| mcs_lock(Relaxed)), FailureKind::Race);
}

/// A node of a queue.
struct Node {
    value: Plain,
    next: AtomicPtr<Node>,
}

impl Node {
    fn allocate() -> *mut Node {
        let next = AtomicPtr::new(null_mut());
        Box::into_raw(Box::new(Node { value: Plain::new(0), next }))
    }
}

/// The queue of Michael and Scott: one thread enqueues, the other dequeues if it sees an element.
fn michael_scott(link: Ordering, follow: Ordering) {
    let dummy = Node::allocate();
    let end = two(
        (AtomicPtr::new(dummy), AtomicPtr::new(dummy)),
        move |(_, tail)| {
            let node = Node::allocate();
            // SAFETY: it is not published yet.
            unsafe { &*node }.value.set(7);
            let last = tail.load(Acquire);
            // SAFETY: nodes are freed at the end.
            let next = unsafe { &(*last).next };
            next.compare_exchange(null_mut(), node, link, Relaxed).unwrap();
            let _ = tail.compare_exchange(last, node, Release, Relaxed);
        },
        move |(head, tail)| {
            let first = head.load(Acquire);
            // SAFETY: nodes are freed at the end.
            let next = unsafe { &*first }.next.load(follow);
            // SAFETY: as above.
            let Some(node) = (unsafe { next.as_ref() }) else { return };
            if tail.load(Acquire) == first {
                let _ = tail.compare_exchange(first, next, Release, Relaxed);
            }
            head.compare_exchange(first, next, Release, Relaxed).unwrap();
            assert_eq!(node.value.get(), 7);
        },
    );
    drop(end);
    let mut node = dummy;
    while !node.is_null() {
        // SAFETY: all threads have ended, and nodes came from boxes.
        node = unsafe { Box::from_raw(node) }.next.into_inner();
    }
}

#[test]
fn michael_and_scotts_queue_publishes_its_nodes() {
    verified(&weak().unbounded().run(|| michael_scott(Release, Acquire)));
    fails(&weak().run(|| michael_scott(Relaxed, Acquire)), FailureKind::Race);
    fails(&weak().run(|| michael_scott(Release, Relaxed)), FailureKind::Race);
}

/// A reader protects the object that it reads by a hazard pointer. A writer replaces the object
/// and reclaims the old one, which is a write, if it is not protected.
fn hazard_pointer(reader: Ordering, writer: Ordering, clear: Ordering) {
    struct Shared {
        current: AtomicUsize,
        hazard: AtomicUsize,
        objects: [Plain; 2],
    }
    const NONE: usize = 9;
    let objects = [Plain::new(1), Plain::new(1)];
    let (current, hazard) = (AtomicUsize::new(0), AtomicUsize::new(NONE));
    two(
        Shared { current, hazard, objects },
        move |shared| {
            let at = shared.current.load(Acquire);
            shared.hazard.store(at, Relaxed);
            fence(reader);
            if shared.current.load(Acquire) == at {
                assert_eq!(shared.objects[at].get(), 1, "reclaimed");
            }
            shared.hazard.store(NONE, clear);
        },
        move |shared| {
            let old = shared.current.swap(1, AcqRel);
            fence(writer);
            if shared.hazard.load(Acquire) != old {
                shared.objects[old].set(0);
            }
        },
    );
}

#[test]
fn a_hazard_pointer_needs_its_fences() {
    verified(&weak().unbounded().run(|| hazard_pointer(SeqCst, SeqCst, Release)));
    fails(&weak().run(|| hazard_pointer(AcqRel, SeqCst, Release)), FailureKind::Race);
    fails(&weak().run(|| hazard_pointer(SeqCst, AcqRel, Release)), FailureKind::Race);
    fails(&weak().run(|| hazard_pointer(SeqCst, SeqCst, Relaxed)), FailureKind::Race);
}

/// An event count: a thread announces that it will wait, checks the condition and parks; the other
/// thread sets the condition and wakes the threads that have announced themselves.
fn event_count(wait: Ordering, notify: Ordering) {
    let waiter = thread::current();
    two(
        (AtomicBool::new(false), AtomicBool::new(false)),
        move |(condition, waits)| {
            condition.store(true, Relaxed);
            fence(notify);
            if waits.load(Relaxed) {
                waiter.unpark();
            }
        },
        move |(condition, waits)| {
            waits.store(true, Relaxed);
            fence(wait);
            if !condition.load(Relaxed) {
                thread::park();
            }
        },
    );
}

#[test]
fn an_event_count_needs_both_fences() {
    verified(&weak().unbounded().run(|| event_count(SeqCst, SeqCst)));
    fails(&weak().run(|| event_count(AcqRel, SeqCst)), FailureKind::Deadlock);
    fails(&weak().run(|| event_count(SeqCst, AcqRel)), FailureKind::Deadlock);
}

/// RCU: a writer publishes a new version, waits until the reader is not in a critical section, and
/// reclaims the old version, which is a write.
fn rcu(publish: Ordering, enter: Ordering, leave: Ordering) {
    struct Shared {
        version: AtomicUsize,
        reads: AtomicBool,
        versions: [Plain; 2],
    }
    let shared = Shared {
        version: AtomicUsize::new(0),
        reads: AtomicBool::new(false),
        versions: [Plain::new(1), Plain::new(0)],
    };
    two(
        shared,
        move |shared| {
            shared.reads.store(true, Relaxed);
            fence(enter);
            let version = shared.version.load(Acquire);
            assert_eq!(shared.versions[version].get(), 1, "version {version}");
            shared.reads.store(false, leave);
        },
        move |shared| {
            shared.versions[1].set(1);
            shared.version.store(1, publish);
            fence(SeqCst);
            while shared.reads.load(Acquire) {
                hint::spin_loop();
            }
            shared.versions[0].set(0);
        },
    );
}

#[test]
fn rcu_publishes_and_waits_for_readers() {
    verified(&weak().unbounded().run(|| rcu(Release, SeqCst, Release)));
    fails(&weak().run(|| rcu(Relaxed, SeqCst, Release)), FailureKind::Race);
    fails(&weak().run(|| rcu(Release, AcqRel, Release)), FailureKind::Race);
    fails(&weak().run(|| rcu(Release, SeqCst, Relaxed)), FailureKind::Race);
}

/// The same structures without a named memory model.
#[test]
fn the_errors_are_found_by_default() {
    let check = || preempt::Check::new().quiet();
    fails(&check().run(|| mcs_lock(Relaxed)), FailureKind::Race);
    fails(&check().run(|| michael_scott(Relaxed, Acquire)), FailureKind::Race);
    fails(&check().run(|| hazard_pointer(AcqRel, SeqCst, Release)), FailureKind::Race);
    fails(&check().run(|| event_count(SeqCst, AcqRel)), FailureKind::Deadlock);
    fails(&check().run(|| rcu(Relaxed, SeqCst, Release)), FailureKind::Race);
    passes(&check().run(|| event_count(SeqCst, SeqCst)));
}
