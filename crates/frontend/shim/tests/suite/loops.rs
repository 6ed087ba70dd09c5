//! Loops that look like waits but end by themselves: the code after them is explored in every
//! schedule.

use preempt::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::Mutex as StdMutex;

use preempt::sync::{Arc, Condvar, Mutex, RwLock};
use preempt::{Check, Count, FailureKind, Order, Outcome, thread};

fn fails(outcome: &Outcome) -> bool {
    !outcome.findings.is_empty()
}

/// Two threads read and then write `n`; one of them does something else first.
fn update_after(
    before: impl Fn() + Send + Sync + Clone + 'static,
) -> impl Fn() + Send + Sync + 'static {
    move || {
        let n = Arc::new(AtomicUsize::new(0));
        let (theirs, before) = (n.clone(), before.clone());
        let t = thread::spawn(move || {
            before();
            let seen = theirs.load(SeqCst);
            theirs.store(seen + 1, SeqCst);
        });
        let seen = n.load(SeqCst);
        n.store(seen + 1, SeqCst);
        t.join().unwrap();
        assert_eq!(n.load(SeqCst), 2);
    }
}

#[test]
fn a_bounded_loop_of_reads_is_not_a_wait() {
    for rounds in [1, 2, 3, 4, 5, 20, 90] {
        let test = || {
            let other = Arc::new(AtomicUsize::new(0));
            update_after(move || {
                for _ in 0..rounds {
                    other.load(SeqCst);
                }
            })()
        };
        assert!(fails(&Check::new().run(test)), "{rounds} rounds, within 2 preemptions");
        assert!(fails(&Check::new().unbounded().run(test)), "{rounds} rounds, unbounded");
    }
}

#[test]
fn locks_and_yields_in_a_bounded_loop() {
    let reads = || {
        let config = Arc::new(RwLock::new(2));
        update_after(move || {
            assert_eq!((0..5).map(|item| item * *config.read().unwrap()).sum::<i32>(), 20)
        })()
    };
    let locks = || {
        let config = Arc::new(Mutex::new(2));
        update_after(move || (0..5).for_each(|_| assert_eq!(*config.lock().unwrap(), 2)))()
    };
    let yields = || {
        let other = Arc::new(AtomicUsize::new(0));
        update_after(move || {
            for _ in 0..4 {
                other.load(SeqCst);
                thread::yield_now();
            }
        })()
    };
    assert!(fails(&Check::new().run(reads)));
    assert!(fails(&Check::new().run(locks)));
    assert!(fails(&Check::new().run(yields)));
}

#[test]
fn a_wait_that_gives_up_is_explored() {
    let outcome = Check::new().run(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let theirs = flag.clone();
        let t = thread::spawn(move || theirs.store(true, SeqCst));
        let mut tries = 0;
        while !flag.load(SeqCst) {
            tries += 1;
            assert!(tries < 10, "gave up");
        }
        t.join().unwrap();
    });
    assert!(fails(&outcome));
}

#[test]
fn an_unbounded_wait_is_held_back() {
    let outcome = Check::new().unbounded().run(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let theirs = flag.clone();
        let t = thread::spawn(move || theirs.store(true, SeqCst));
        while !flag.load(SeqCst) {}
        t.join().unwrap();
    });
    assert!(outcome.complete && !fails(&outcome), "{}", outcome.guarantee());
    assert!(outcome.assumptions.is_empty(), "{:?}", outcome.assumptions);
}

/// A loop that runs longer than the spin detection waits may end by itself. Schedules in which it
/// ends by itself are not explored, so the search does not claim to be complete.
#[test]
fn a_long_loop_taken_for_a_spin_makes_the_search_incomplete() {
    fn test(counts: fn(&AtomicUsize)) -> impl Fn() + Sync {
        move || {
            let (n, done) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
            let t = thread::spawn({
                let (n, done) = (n.clone(), done.clone());
                move || {
                    counts(&n);
                    done.store(true, SeqCst);
                }
            });
            assert!(!done.load(SeqCst), "the loop has ended before the store");
            n.store(1, SeqCst);
            t.join().unwrap();
        }
    }
    let on_the_stack = test(|n| assert!((0..150).all(|_| n.load(SeqCst) < 2)));
    let on_the_heap = test(|n| {
        let mut rounds = Box::new(0);
        while n.load(SeqCst) == 0 && *rounds < 150 {
            *std::hint::black_box(&mut *rounds) += 1;
        }
    });
    let on_a_borrowed_stack = test(|n| {
        let mut rounds = 0;
        thread::scope(|scope| {
            scope.spawn(|| {
                while n.load(SeqCst) == 0 && rounds < 150 {
                    *std::hint::black_box(&mut rounds) += 1;
                }
            });
        });
    });
    for test in [&on_the_stack as &(dyn Fn() + Sync), &on_the_heap, &on_a_borrowed_stack] {
        for check in [Check::new(), Check::new().unbounded()] {
            let outcome = check.run(test);
            let guarantee = outcome.guarantee();
            assert!(fails(&outcome) || !outcome.complete, "{guarantee}");
            assert!(
                fails(&outcome) || guarantee.contains("that the loop at crates/"),
                "{guarantee}"
            );
            assert!(!guarantee.contains("complete:"), "{guarantee}");
        }
    }
}

/// A loop whose state repeats is proved to spin, even if a back-off grows for a while first.
#[test]
fn a_back_off_that_stops_growing_is_proved_to_spin() {
    let outcome = Check::new().unbounded().run(|| {
        let flag = Arc::new(AtomicBool::new(false));
        let theirs = flag.clone();
        let t = thread::spawn(move || theirs.store(true, SeqCst));
        let mut pause = 1_usize;
        while !flag.load(SeqCst) {
            (0..pause).for_each(|at| assert!(std::hint::black_box(at) < pause));
            pause = (2 * pause).min(64);
        }
        t.join().unwrap();
    });
    assert!(outcome.complete && !fails(&outcome), "{}", outcome.guarantee());
    assert!(outcome.assumptions.is_empty(), "{:?}", outcome.assumptions);
}

/// The number of iterations depends on a value under a lock, which the thread's own operations do
/// not show. If the loop once ran longer than the spin detection waits, that must not be taken as
/// the result for executions in which it soon gives up.
#[test]
fn a_loop_is_taken_to_spin_only_with_the_same_past() {
    let outcome = Check::new().bound(1).run(|| {
        let (rounds, go) = (Arc::new(Mutex::new(0)), Arc::new(AtomicBool::new(false)));
        let done = Arc::new(AtomicBool::new(false));
        let write = |n| {
            let rounds = rounds.clone();
            thread::spawn(move || *rounds.lock().unwrap() = n)
        };
        let writers = [write(10), write(150)];
        let polls = thread::spawn({
            let (rounds, go, done) = (rounds.clone(), go.clone(), done.clone());
            move || {
                writers.into_iter().for_each(|writer| writer.join().unwrap());
                let rounds = *rounds.lock().unwrap();
                let _ = (0..rounds).any(|_| go.load(SeqCst));
                done.store(rounds == 10, SeqCst);
            }
        });
        assert!(!done.load(SeqCst), "gave up before the flag was set");
        go.store(true, SeqCst);
        polls.join().unwrap();
    });
    assert!(fails(&outcome), "{}", outcome.guarantee());
}

/// Threads that wait for each other in every way: by spinning, for a lock, and for a notification
/// that wakes one of two. `came` records their order.
fn waits(came: &StdMutex<Vec<usize>>) {
    let (ready, queue) =
        (Arc::new(AtomicBool::new(false)), Arc::new((Mutex::new(0), Condvar::new())));
    thread::scope(|scope| {
        for name in 1..=2 {
            let (ready, queue) = (ready.clone(), queue.clone());
            scope.spawn(move || {
                while !ready.load(SeqCst) {
                    thread::yield_now();
                }
                let mut items = queue.0.lock().unwrap();
                while *items == 0 {
                    items = queue.1.wait(items).unwrap();
                }
                *items -= 1;
                came.lock().unwrap().push(name);
            });
        }
        for _ in 0..2 {
            *queue.0.lock().unwrap() += 1;
            queue.1.notify_one();
            ready.store(true, SeqCst);
            came.lock().unwrap().push(0);
        }
    });
    // It fails in some executions.
    assert!(
        came.lock().unwrap().last() != Some(&0),
        "no thread took an item after the last notification"
    );
}

/// A random search that only counts executions records no steps, and draws the same executions.
#[test]
fn a_search_without_records_draws_the_same_executions() {
    for order in [Order::Random, Order::Pct { depth: 3 }, Order::Urw] {
        let draw = |count| {
            let came = StdMutex::new(Vec::new());
            let check = Check::new().order(order).seed(7).runs(300).count(count).keep_going();
            let outcome = check.run(|| waits(&came));
            let tally = outcome.tally.unwrap();
            let findings: Vec<_> =
                outcome.findings.into_iter().map(|found| (found.failure, found.schedule)).collect();
            (
                tally.executions,
                tally.steps,
                outcome.coverage.failed,
                findings,
                came.into_inner().unwrap(),
            )
        };
        let (counts, records) = (draw(Count::Executions), draw(Count::Traces));
        assert!(counts.2 > 0 && counts.0 > 0, "{order:?}: some fail, others do not");
        assert_eq!(counts, records, "{order:?}");
    }
}

/// An execution ends at its step limit, even if the search continues after a failure.
#[test]
fn keep_going_ends_an_execution_at_its_step_limit() {
    for check in [Check::new(), Check::new().unbounded(), Check::new().order(Order::Random).runs(3)]
    {
        let outcome = check.keep_going().max_steps(60).run(|| {
            let n = AtomicUsize::new(0);
            loop {
                n.fetch_add(1, SeqCst);
            }
        });
        let [finding] = &outcome.findings[..] else { panic!("{:?}", outcome.findings) };
        assert_eq!(finding.failure.kind, FailureKind::StepLimit);
        assert_eq!(finding.schedule.steps().len(), 60);
    }
}

/// Whether the spin detection runs a thread ahead, and so executes it again, depends on records of
/// other executions. The number of steps until it detects a cycle must not: a livelock that a
/// replay does not reproduce would be reported as nondeterminism.
#[test]
fn a_livelock_is_found_after_the_same_steps_in_every_execution() {
    let outcome = Check::new().order(Order::Random).runs(5).keep_going().run(|| {
        let n = AtomicUsize::new(0);
        let mut rounds = Box::new(0);
        while n.load(SeqCst) == 0 && *rounds < 104 {
            *std::hint::black_box(&mut *rounds) += 1;
        }
        while n.load(SeqCst) == 0 {
            thread::yield_now();
        }
    });
    let kinds: Vec<_> = outcome.findings.iter().map(|finding| finding.failure.kind).collect();
    let expected = match cfg!(all(feature = "allocator", target_arch = "x86_64")) {
        true => FailureKind::Livelock,
        false => FailureKind::StepLimit,
    };
    assert_eq!(kinds, [expected], "{:?}", outcome.findings);
}
