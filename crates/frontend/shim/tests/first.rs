//! Closures with threads, atomics and mutexes are searched, fail, and are told.

use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use preempt::sync::{Arc, Mutex};
use preempt::{Check, check, thread};
use preempt_explore::{Cache, Order, Reduction};

fn lost_update() {
    let n = Arc::new(AtomicUsize::new(0));
    let t = thread::spawn({
        let n = n.clone();
        move || {
            let old = n.load(SeqCst);
            n.store(old + 1, SeqCst);
        }
    });
    let old = n.load(SeqCst);
    n.store(old + 1, SeqCst);
    t.join().unwrap();
    assert_eq!(n.load(SeqCst), 2);
}

fn adds(threads: usize, times: usize) {
    let n = Arc::new(AtomicUsize::new(0));
    let handles: Vec<_> = (0..threads)
        .map(|_| {
            let n = n.clone();
            thread::spawn(move || {
                for _ in 0..times {
                    n.fetch_add(1, SeqCst);
                }
            })
        })
        .collect();
    handles.into_iter().for_each(|handle| handle.join().unwrap());
    assert_eq!(n.load(SeqCst), threads * times);
}

fn locked(threads: usize, times: usize) {
    let n = Arc::new(Mutex::new(0));
    let handles: Vec<_> = (0..threads)
        .map(|_| {
            let n = n.clone();
            thread::spawn(move || {
                for _ in 0..times {
                    *n.lock().unwrap() += 1;
                }
            })
        })
        .collect();
    handles.into_iter().for_each(|handle| handle.join().unwrap());
    assert_eq!(*n.lock().unwrap(), threads * times);
}

#[test]
fn a_lost_update_is_found_by_every_strategy() {
    let strategies = [
        Check::new(),
        Check::new().unbounded().order(Order::Executions),
        Check::new().unbounded().order(Order::Executions).reduce(Reduction::Source),
        Check::new().unbounded().order(Order::Executions).reduce(Reduction::Optimal),
        Check::new().unbounded().order(Order::Executions).reduce(Reduction::Sleep),
        Check::new().order(Order::ContextBounded).reduce(Reduction::CbPor),
        Check::new().unbounded().order(Order::Random),
    ];
    for strategy in strategies {
        let outcome = strategy.run(lost_update);
        assert_eq!(outcome.findings.len(), 1, "{strategy:?}");
    }
    let panic = std::panic::catch_unwind(|| check(lost_update)).expect_err("it fails");
    println!("{}", panic.downcast_ref::<String>().expect("a text"));
}

#[test]
fn every_trace_is_explored_once() {
    let optimal = Check::new().unbounded().order(Order::Executions).reduce(Reduction::Optimal);
    for (threads, times, traces) in [(2, 5, 252), (3, 2, 90), (3, 3, 1680)] {
        for body in [adds, locked] {
            let outcome = optimal.run(|| body(threads, times));
            assert_eq!(
                (outcome.executions(), outcome.complete),
                (Some(traces), true),
                "{threads} {times}: {outcome:?}"
            );
        }
    }
    let dfs = Check::new().unbounded().order(Order::Executions).run(|| adds(3, 1));
    println!("dfs 3x1 {:?}", dfs.tally);
    let icb = Check::new().order(Order::Icb { cache: Cache::Hb }).run(|| adds(3, 2));
    println!("icb 3x2 {:?}", icb.tally);
    let icb = Check::new().order(Order::ContextBounded).reduce(Reduction::CbPor).run(|| adds(3, 2));
    println!("cbpor 3x2 {:?} {:?}", icb.tally, icb.bounds);
}
