//! Executions that are given up because all that follows is covered: they run to their ends unseen by the search, but not unseen by
//! whoever the test shows something to. So they stay within the bound, and whatever they made is dropped.
#![cfg(feature = "check")]
#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::sync::Mutex as Real;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use preempt::sync::{Arc, Mutex};
use preempt::{Check, Order, thread};

/// All orders in which three threads add to a number twice, as somebody outside sees them, and how often the closure was started.
fn orders(check: &Check) -> (BTreeSet<Vec<usize>>, usize) {
    let (seen, starts) = (Real::new(BTreeSet::new()), std::sync::atomic::AtomicUsize::new(0));
    let outcome = check.run(|| {
        starts.fetch_add(1, Relaxed);
        let (n, order) = (Arc::new(AtomicUsize::new(0)), std::sync::Arc::new(Real::new(Vec::new())));
        let add = |thread: usize| {
            let (n, order) = (n.clone(), order.clone());
            thread::spawn(move || {
                for _ in 0..2 {
                    n.fetch_add(1, SeqCst);
                    order.lock().unwrap().push(thread);
                }
            })
        };
        let threads: Vec<_> = (0..3).map(add).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        seen.lock().unwrap().insert(order.lock().unwrap().clone());
    });
    assert!(outcome.findings.is_empty());
    (seen.into_inner().unwrap(), starts.into_inner())
}

#[test]
fn they_show_nothing_beyond_the_bound() {
    for bound in 0..=2 {
        let (all, _) = orders(&Check::new().order(Order::ContextBounded).bound(bound));
        let (seen, starts) = orders(&Check::new().bound(bound));
        assert_eq!(seen, all, "bound {bound}");
        assert!(bound == 0 || starts > seen.len(), "some are given up: {starts} were started");
    }
}

/// Counts those that live.
struct Counted<'c>(&'c AtomicIsize);

impl<'c> Counted<'c> {
    fn new(alive: &'c AtomicIsize) -> Counted<'c> {
        alive.fetch_add(1, Relaxed);
        Counted(alive)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

/// Whether they come to an end soon, late, by unwinding, or not at all.
#[test]
fn what_they_made_is_dropped() {
    static ALIVE: AtomicIsize = AtomicIsize::new(0);
    for times in [1, 3, 40] {
        for waits in [false, true] {
            let outcome = Check::new().bound(1).keep_going().run(|| {
                assert_eq!(ALIVE.load(Relaxed), 0, "the executions before have left nothing");
                let (n, lock) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(())));
                let _main = Counted::new(&ALIVE);
                let add = |_| {
                    let (n, lock) = (n.clone(), lock.clone());
                    thread::spawn(move || {
                        let _own = Counted::new(&ALIVE);
                        for _ in 0..times {
                            n.fetch_add(1, SeqCst);
                        }
                        let _held = lock.lock().unwrap();
                        // Whoever comes second waits for ever: it takes the lock twice.
                        let _again = (waits && n.load(SeqCst) == 2 * times).then(|| lock.lock().unwrap());
                    })
                };
                let threads: Vec<_> = (0..2).map(add).collect();
                threads.into_iter().for_each(|thread| thread.join().unwrap());
            });
            assert_eq!(outcome.findings.is_empty(), !waits, "{times} times, waits: {waits}");
            assert_eq!(ALIVE.load(Relaxed), 0, "{times} times, waits: {waits}");
        }
    }
}
