//! Where all orderings are `SeqCst`, the execution graphs of weak memory are the traces of
//! sequential consistency: `Reduction::Graphs` counts what dpor-optimal counts.
//!
//! The helpers of other modules, through which their programs run, call [`compare`]. Three kinds of
//! programs have other numbers:
//!
//! - An attempt to lock that fails only reads the mutex for dpor-optimal, but has a position among
//!   all operations in a graph.
//! - Some operations of std are ordered without synchronising: a notification and the wait that it
//!   ends, an attempt that fails, a wait with a timeout, `is_finished`, the calls of a history. A
//!   wait that times out also has a position among all operations on its mutex.
//!   The axioms allow a load that follows to read an old value, even if it is `SeqCst`.
//! - Plain memory that no mirror observes has no part in a graph. A program that races there gets
//!   other values in another execution of the same graph.

use std::sync::atomic::AtomicUsize as StdAtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use preempt::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use preempt::sync::{Arc, Barrier, Condvar, Mutex, Once, RwLock, mpsc};
use preempt::{Check, FailureKind, Memory, Order, Outcome, Reduction, thread};

/// The most executions of each search.
const MOST: u64 = 3_000;

/// The result of a comparison that found no difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compared {
    /// Both searches visit this many graphs, each once.
    Same(u64),
    /// There are this many graphs, and fewer traces.
    More(u64),
    /// The program has weaker orderings.
    HasOrderings,
    /// One of the searches does not handle the program.
    Refused,
    /// More executions than [`MOST`].
    TooLarge,
}

/// The numbers of executions, distinct graphs or traces, and graphs without a complete execution.
type Numbers = (u64, Option<u64>, u64);

fn numbers(outcome: &Outcome) -> Numbers {
    let tally = outcome.tally.expect("executions are counted");
    (tally.executions, tally.traces, tally.pruned)
}

fn unbounded(memory: Memory) -> Check {
    Check::new().memory(memory).unbounded().keep_going().quiet().executions(MOST)
}

/// The outcomes of dpor-optimal and of the search over graphs, if they can be compared.
fn both(set: fn(Check) -> Check, body: &(dyn Fn() + Sync)) -> Result<[Outcome; 2], Compared> {
    let run = |check: Check| set(check).try_run(body).map_err(|_| Compared::Refused);
    let traces = run(unbounded(Memory::Sc).reduce(Reduction::Optimal))?;
    let graphs = run(unbounded(Memory::Weak).reduce(Reduction::Graphs))?;
    let is_limited = |outcome: &Outcome| outcome.stopped.is_some();
    if is_limited(&traces) || is_limited(&graphs) {
        return Err(Compared::TooLarge);
    }
    Ok([traces, graphs])
}

/// Compares the numbers of a body.
#[track_caller]
pub(crate) fn compare(body: impl Fn() + Sync) -> Compared {
    compare_with(|check| check, body)
}

/// Like the function above, for checks with a setting.
#[track_caller]
pub(crate) fn compare_with(set: fn(Check) -> Check, body: impl Fn() + Sync) -> Compared {
    let by_default = set(Check::new().bound(2).quiet().executions(MOST)).try_run(&body);
    match by_default.map(|outcome| outcome.memory) {
        Ok(Memory::Sc) => compare_orderings(set, &body),
        Ok(_) => Compared::HasOrderings,
        Err(_) => Compared::Refused,
    }
}

/// Compares the numbers of a body that is known to have no weaker orderings.
#[track_caller]
fn compare_orderings(set: fn(Check) -> Check, body: &(dyn Fn() + Sync)) -> Compared {
    let [traces, graphs] = match both(set, body) {
        Ok(outcomes) => outcomes,
        Err(why) => return why,
    };
    assert!(numbers(&graphs).0 >= numbers(&traces).0, "a trace without a graph");
    if numbers(&graphs) != numbers(&traces) {
        // A wait with a timeout, or another of the exceptions.
        return more_graphs(set, &graphs, body);
    }
    assert_eq!(numbers(&graphs).1, Some(numbers(&graphs).0), "each graph once");
    assert!(graphs.complete && traces.complete, "{}", graphs.guarantee());
    // After a failure the threads that remain may be judged in another order.
    let first = |outcome: &Outcome| outcome.findings.first().map(|it| it.failure.kind);
    assert_eq!(first(&graphs), first(&traces));
    Compared::Same(numbers(&graphs).0)
}

/// A body that has more graphs than traces, for one of the reasons above. The search over graphs
/// visits those that all executions under weak memory have.
#[track_caller]
pub(crate) fn differs(traces: u64, graphs: u64, body: impl Fn() + Sync) {
    let found = both(|check| check, &body).expect("the program can be compared");
    assert_eq!(found.each_ref().map(numbers), [traces, graphs].map(|it| (it, Some(it), 0)));
    assert_eq!(more_graphs(|check| check, &found[1], &body), Compared::More(graphs));
}

/// Compares the graphs with those of all executions under weak memory.
#[track_caller]
fn more_graphs(set: fn(Check) -> Check, graphs: &Outcome, body: &(dyn Fn() + Sync)) -> Compared {
    let (executions, distinct, cut) = numbers(graphs);
    assert_eq!((distinct, cut), (Some(executions), 0), "each graph once");
    let all = set(unbounded(Memory::Weak)).order(Order::Executions).run(body);
    if all.stopped.is_some() {
        return Compared::TooLarge;
    }
    assert_eq!((all.complete, all.traces()), (true, distinct), "{}", all.guarantee());
    Compared::More(executions)
}

/// Runs `body` in two threads.
fn twice<T: Send + Sync + 'static>(shared: T, body: impl Fn(&T, usize) + Copy + Send + 'static) {
    let shared = Arc::new(shared);
    let run = |nth| {
        let shared = shared.clone();
        thread::spawn(move || body(&shared, nth))
    };
    [0, 1].map(run).into_iter().for_each(|thread| thread.join().unwrap());
}

/// Programs that use each object, with their numbers of traces, which dpor-optimal and brute force
/// agree on.
fn objects() -> Vec<(&'static str, u64, fn())> {
    vec![
        ("store buffering", 3, || {
            twice([const { AtomicUsize::new(0) }; 2], |pair, nth| {
                pair[nth].store(1, SeqCst);
                pair[1 - nth].load(SeqCst);
            });
        }),
        ("mutex", 6, || {
            twice(Mutex::new(0), |lock, _| (0..2).for_each(|_| *lock.lock().unwrap() += 1));
        }),
        ("reader-writer lock", 5, || {
            twice((RwLock::new(0), AtomicUsize::new(0)), |(lock, n), nth| match nth {
                0 => {
                    n.store(*lock.read().unwrap(), SeqCst);
                    drop(lock.read().unwrap());
                }
                _ => *lock.write().unwrap() += 1 + n.load(SeqCst),
            });
        }),
        ("barrier", 8, || {
            twice((Barrier::new(2), AtomicUsize::new(0)), |(barrier, n), _| {
                n.fetch_add(1, SeqCst);
                barrier.wait();
                n.fetch_add(1, SeqCst);
            });
        }),
        ("once", 4, || {
            twice((Once::new(), AtomicUsize::new(0)), |(once, n), _| {
                once.call_once(|| n.store(1, SeqCst));
                assert_eq!(n.load(SeqCst), 1);
            });
        }),
        ("park", 2, || {
            let flag = Arc::new(AtomicBool::new(false));
            let main = thread::current();
            let t = thread::spawn({
                let flag = flag.clone();
                move || {
                    flag.store(true, SeqCst);
                    main.unpark();
                }
            });
            while !flag.load(SeqCst) {
                thread::park();
            }
            t.join().unwrap();
        }),
        ("condition variable", 2, || {
            twice((Mutex::new(false), Condvar::new()), |(ready, condvar), nth| match nth {
                0 => {
                    *ready.lock().unwrap() = true;
                    condvar.notify_one();
                }
                _ => {
                    let ready = ready.lock().unwrap();
                    drop(condvar.wait_while(ready, |ready| !*ready).unwrap());
                }
            });
        }),
        ("channel", 16, || {
            let (sender, receiver) = mpsc::sync_channel(1);
            let n = Arc::new(AtomicUsize::new(0));
            let t = thread::spawn({
                let n = n.clone();
                move || (0..2).for_each(|_| sender.send(n.fetch_add(1, SeqCst)).unwrap())
            });
            let received = [receiver.recv().unwrap(), receiver.recv().unwrap()];
            assert_eq!(received, [0, 1]);
            t.join().unwrap();
        }),
        ("exchanges", 20, || {
            twice(AtomicUsize::new(0), |n, nth| {
                for _ in 0..2 {
                    if let Err(found) = n.compare_exchange(nth, nth + 1, SeqCst, SeqCst) {
                        n.store(found + 1, SeqCst);
                    }
                }
            });
        }),
        ("reference counts", 2, || {
            twice(Arc::new(AtomicUsize::new(0)), |n, _| {
                n.clone().fetch_add(1, SeqCst);
            });
        }),
        ("threads of threads", 6, || {
            let n = Arc::new(AtomicUsize::new(0));
            let add = |n: &Arc<AtomicUsize>| {
                let n = n.clone();
                move || n.fetch_add(1, SeqCst)
            };
            let (inner, own) = (add(&n), add(&n));
            let t = thread::spawn(move || {
                let t = thread::spawn(inner);
                own();
                t.join().unwrap();
            });
            n.fetch_add(1, SeqCst);
            t.join().unwrap();
        }),
        ("stack with the ABA problem", 13, aba),
    ]
}

#[test]
fn every_object_has_as_many_graphs_as_traces() {
    let mut wrong = Vec::new();
    for (name, count, body) in objects() {
        let all = unbounded(Memory::Sc).order(Order::Executions).executions(200_000).run(body);
        assert!(all.complete, "{name}: {}", all.guarantee());
        let compared = compare_orderings(|check| check, &body);
        if (compared, all.traces()) != (Compared::Same(count), Some(count)) {
            wrong.push(format!("{name}: {compared:?}, {:?} instead of {count}", all.traces()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A stack of two nodes, whose links are atomic: of the top and of each node to the next one. 0 is
/// none. One thread pops; the other one pops both and pushes the first again.
fn aba() {
    let links = Arc::new([1, 2, 0].map(AtomicUsize::new));
    let pop = |links: &[AtomicUsize; 3]| {
        let top = links[0].load(SeqCst);
        if top == 0 {
            return 0;
        }
        let next = links[top].load(SeqCst);
        links[0].compare_exchange(top, next, SeqCst, SeqCst).unwrap_or(0)
    };
    let t = thread::spawn({
        let links = links.clone();
        move || pop(&links)
    });
    let (first, second) = (pop(&links), pop(&links));
    if first != 0 {
        links[first].store(0, SeqCst);
        let _ = links[0].compare_exchange(0, first, SeqCst, SeqCst);
    }
    let popped = t.join().unwrap();
    assert!(popped == 0 || popped != second, "taken twice");
}

/// The mutex is held or free when the other thread tries: for traces the attempt comes before, in
/// between or after; in graphs too, because it is an event of the mutex.
#[test]
fn an_attempt_that_fails_is_an_event_of_the_mutex() {
    differs(21, 24, || {
        let lock = Arc::new(Mutex::new(0));
        let attempt = |_| {
            let lock = lock.clone();
            thread::spawn(move || drop(lock.try_lock().map(|mut n| *n += 1)))
        };
        [0, 1, 2].map(attempt).into_iter().for_each(|thread| thread.join().unwrap());
    });
}

/// The thread that was woken reads the flag again, and may read the old value: a notification
/// orders nothing. It then waits forever.
#[test]
fn a_notification_does_not_synchronise() {
    differs(3, 4, || {
        let pair = Arc::new((AtomicBool::new(false), Mutex::new(()), Condvar::new()));
        let t = thread::spawn({
            let pair = pair.clone();
            move || {
                pair.0.store(true, SeqCst);
                pair.2.notify_one();
            }
        });
        let mut guard = pair.1.lock().unwrap();
        while !pair.0.load(SeqCst) {
            guard = pair.2.wait(guard).unwrap();
        }
        drop(guard);
        t.join().unwrap();
    });
}

/// A search over graphs takes one execution of each graph, in which a racing access to memory that
/// no mirror observes comes early or late.
#[test]
fn plain_memory_without_a_mirror_has_no_part_in_a_graph() {
    static PLAIN: StdAtomicUsize = StdAtomicUsize::new(0);
    let body = || {
        PLAIN.store(0, Relaxed);
        twice(AtomicUsize::new(0), |n, nth| match nth {
            0 => {
                n.load(SeqCst);
                PLAIN.store(1, Relaxed);
            }
            _ => {
                n.load(SeqCst);
                assert_eq!(PLAIN.load(Relaxed), 0);
            }
        });
    };
    let kind = |outcome: &Outcome| outcome.findings.first().map(|it| it.failure.kind);
    let all = unbounded(Memory::Weak).order(Order::Executions).allow_uncontrolled().run(body);
    assert_eq!((kind(&all), all.traces()), (Some(FailureKind::Panic), Some(1)));
    let graphs = unbounded(Memory::Weak).reduce(Reduction::Graphs).allow_uncontrolled().run(body);
    assert_eq!((graphs.complete, graphs.traces()), (true, Some(1)), "{}", graphs.guarantee());
}
