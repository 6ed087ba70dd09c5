//! Heap objects in a program with Preempt's allocator: an object is identified by the thread and
//! the step that allocated it, so traces differ only in the order of dependent operations.
#![cfg(feature = "allocator")]

use std::ptr;

use preempt::sync::Arc;
use preempt::sync::atomic::Ordering::SeqCst;
use preempt::sync::atomic::{AtomicPtr, AtomicUsize};
use preempt::sync::{Mutex, RwLock};
use preempt::{Check, Outcome, Reduction, thread};

fn all(test: impl Fn() + Sync) -> Outcome {
    let outcome = Check::new().unbounded().run(&test);
    assert!(outcome.findings.is_empty(), "{:?}", outcome.findings);
    outcome
}

fn executions(test: impl Fn() + Sync) -> u64 {
    all(test).executions().unwrap()
}

/// Runs each job in a thread of its own and joins all threads.
fn run(jobs: impl IntoIterator<Item = impl FnOnce() + Send + 'static>) {
    let threads: Vec<_> = jobs.into_iter().map(thread::spawn).collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn elements_of_a_vec_are_independent() {
    let test = || {
        let counts: Arc<Vec<AtomicUsize>> = Arc::new((0..3).map(|_| AtomicUsize::new(0)).collect());
        run((0..3).map(|at| {
            let counts = counts.clone();
            move || {
                counts[at].fetch_add(1, SeqCst);
                counts[at].fetch_add(1, SeqCst);
            }
        }));
    };
    assert_eq!(executions(test), 1);
    assert_eq!(Check::new().bound(2).run(test).tally.unwrap().traces, Some(1));
}

#[test]
fn boxes_allocated_on_one_line_are_distinct() {
    // Two threads access each box, in either order. It is impossible that each thread comes second
    // at the box that it accesses first.
    let test = || {
        let boxes: Arc<Vec<Box<AtomicUsize>>> =
            Arc::new((0..2).map(|_| Box::new(AtomicUsize::new(0))).collect());
        run([[0, 1], [1, 0]].map(|order| {
            let boxes = boxes.clone();
            move || {
                for at in order {
                    boxes[at].fetch_add(1, SeqCst);
                }
            }
        }));
        assert!(boxes.iter().all(|n| n.load(SeqCst) == 2));
    };
    assert_eq!(executions(test), 3);
}

#[test]
fn allocations_of_different_threads_are_independent() {
    let test = || {
        run((0..3).map(|_| {
            || {
                let own = Box::new(Mutex::new(0));
                *own.lock().unwrap() += 1;
                let others: Vec<_> = [1, 2].map(RwLock::new).into();
                assert_eq!(others.iter().map(|lock| *lock.read().unwrap()).sum::<i32>(), 3);
            }
        }));
    };
    assert_eq!(executions(test), 1);
}

#[test]
fn boxes_allocated_in_different_steps_are_distinct() {
    let test = || {
        let step = AtomicUsize::new(0);
        let boxes: Vec<_> = (0..2)
            .map(|_| {
                step.fetch_add(1, SeqCst);
                Box::new(AtomicUsize::new(0))
            })
            .collect();
        run(boxes.into_iter().map(|own| {
            move || {
                own.fetch_add(1, SeqCst);
            }
        }));
    };
    assert_eq!(executions(test), 1);
}

#[test]
fn a_vec_that_grows_keeps_its_elements() {
    let test = || {
        let mut counts = Vec::new();
        for at in 0..20 {
            counts.push(AtomicUsize::new(at));
            counts[at / 2].fetch_add(1, SeqCst);
        }
        let counts = Arc::new(counts);
        run([3, 11].map(|at| {
            let counts = counts.clone();
            move || {
                counts[at].fetch_add(1, SeqCst);
            }
        }));
        assert_eq!(counts.iter().map(|n| n.load(SeqCst)).sum::<usize>(), 190 + 20 + 2);
    };
    assert_eq!(executions(test), 1);
}

/// The queue of Michael and Scott; nodes are freed only at the end.
struct Queue {
    head: AtomicPtr<Node>,
    tail: AtomicPtr<Node>,
}

struct Node {
    value: usize,
    next: AtomicPtr<Node>,
}

impl Node {
    fn make(value: usize) -> *mut Node {
        Box::into_raw(Box::new(Node { value, next: AtomicPtr::new(ptr::null_mut()) }))
    }
}

impl Queue {
    fn new() -> Queue {
        let first = Node::make(0);
        Queue { head: AtomicPtr::new(first), tail: AtomicPtr::new(first) }
    }

    fn push(&self, value: usize) {
        let node = Node::make(value);
        loop {
            let tail = self.tail.load(SeqCst);
            // SAFETY: nodes live as long as the queue.
            let next = unsafe { &(*tail).next };
            match next.compare_exchange(ptr::null_mut(), node, SeqCst, SeqCst) {
                Ok(_) => {
                    let _ = self.tail.compare_exchange(tail, node, SeqCst, SeqCst);
                    return;
                }
                Err(other) => {
                    let _ = self.tail.compare_exchange(tail, other, SeqCst, SeqCst);
                }
            }
        }
    }

    fn values(&self) -> Vec<usize> {
        let (mut values, mut at) = (Vec::new(), self.head.load(SeqCst));
        while !at.is_null() {
            // SAFETY: as above.
            let node = unsafe { &*at };
            values.push(node.value);
            at = node.next.load(SeqCst);
        }
        values
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let mut at = *self.head.get_mut();
        while !at.is_null() {
            // SAFETY: no other thread has the queue, and every node came from a box.
            at = *unsafe { Box::from_raw(at) }.next.get_mut();
        }
    }
}

fn pushes() {
    let queue = Arc::new(Queue::new());
    run([1, 2].map(|value| {
        let queue = queue.clone();
        move || queue.push(value)
    }));
    let mut values = queue.values();
    values.sort_unstable();
    assert_eq!(values, [0, 1, 2]);
}

#[test]
fn a_lock_free_queue_agrees_with_all_reductions() {
    let traces = all(pushes).executions();
    let every = Check::new().unbounded().reduce(Reduction::None).run(pushes);
    assert!(every.findings.is_empty() && every.complete, "{}", every.guarantee());
    assert_eq!(traces, every.tally.unwrap().traces);
    let sleep = Check::new().unbounded().reduce(Reduction::Sleep).run(pushes);
    assert_eq!(traces, sleep.executions());
}

#[test]
fn a_finding_is_replayed() {
    let test = || {
        let counts: Arc<Vec<AtomicUsize>> = Arc::new((0..2).map(|_| AtomicUsize::new(0)).collect());
        run((0..2).map(|_| {
            let counts = counts.clone();
            move || {
                let seen = counts[1].load(SeqCst);
                counts[1].store(seen + 1, SeqCst);
            }
        }));
        assert_eq!(counts[1].load(SeqCst), 2);
    };
    let report = Check::new().report(test);
    assert!(report.contains("assertion `left == right` failed"), "{report}");
    let token = report.split("PREEMPT_REPLAY=").nth(1).unwrap().split_whitespace().next().unwrap();
    let again = Check::new().replay(token).report(test);
    assert!(again.contains("assertion `left == right` failed"), "{again}");
}
