//! Exact numbers of executions: each happens-before class once, joins included.

#[path = "../../examples/chase_lev.rs"]
#[allow(dead_code)]
mod chase_lev;
#[path = "../../examples/treiber.rs"]
#[allow(dead_code)]
mod treiber;

use std::collections::BTreeSet;
use std::sync::Mutex as StdMutex;

use chase_lev::Read;
use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use preempt::sync::{Arc, Mutex, RwLock};
use preempt::{Check, Count, Order, Outcome, Reduction, thread};

use crate::seq_cst::{self, Compared};

fn threads(count: usize, body: impl Fn(usize) + Clone + Send + 'static) {
    let spawn = |at| {
        let body = body.clone();
        thread::spawn(move || body(at))
    };
    let handles: Vec<_> = (0..count).map(spawn).collect();
    handles.into_iter().for_each(|handle| handle.join().unwrap());
}

fn adds(count: usize, times: usize) {
    let n = Arc::new(AtomicUsize::new(0));
    let all = n.clone();
    threads(count, move |_| {
        for _ in 0..times {
            n.fetch_add(1, SeqCst);
        }
    });
    assert_eq!(all.load(SeqCst), count * times);
}

fn locked(count: usize, times: usize) {
    let n = Arc::new(Mutex::new(0));
    let all = n.clone();
    threads(count, move |_| (0..times).for_each(|_| *n.lock().unwrap() += 1));
    assert_eq!(*all.lock().unwrap(), count * times);
}

/// Every thread uses an atomic and a mutex of its own.
fn independent(count: usize, times: usize) {
    threads(count, move |_| {
        let (n, m) = (Arc::new(AtomicUsize::new(0)), Mutex::new(0));
        for _ in 0..times {
            n.fetch_add(1, SeqCst);
            *m.lock().unwrap() += 1;
        }
    });
}

fn readers(count: usize, times: usize) {
    let n = Arc::new(AtomicUsize::new(7));
    threads(count, move |_| (0..times).for_each(|_| assert_eq!(n.load(SeqCst), 7)));
}

/// All executions, one by one.
fn brute(body: impl Fn() + Sync) -> Outcome {
    Check::new().order(Order::Executions).run(body)
}

fn optimal(body: impl Fn() + Sync) -> Outcome {
    Check::new().unbounded().run(body)
}

#[track_caller]
fn explores_traces(traces: u64, body: impl Fn() + Sync) {
    let outcome = optimal(body);
    let tally = outcome.tally.expect("a search over executions");
    assert_eq!(
        (tally.executions, tally.traces, tally.pruned),
        (traces, Some(traces), 0),
        "{}",
        outcome.guarantee()
    );
    assert!(outcome.complete && outcome.findings.is_empty());
}

/// The same for a body whose execution graphs under weak memory are its traces.
#[track_caller]
fn explores(traces: u64, body: impl Fn() + Sync) {
    explores_traces(traces, &body);
    assert_eq!(seq_cst::compare(body), Compared::Same(traces));
}

#[test]
fn additions_to_one_atomic() {
    explores(252, || adds(2, 5));
    explores(90, || adds(3, 2));
    explores(1680, || adds(3, 3));
}

#[test]
fn increments_under_a_mutex() {
    explores(252, || locked(2, 5));
    explores(90, || locked(3, 2));
    explores(1680, || locked(3, 3));
}

#[test]
fn independent_operations_are_one_trace() {
    for (count, times) in [(2, 3), (3, 3), (4, 3), (6, 2)] {
        explores(1, || independent(count, times));
        explores(1, || readers(count, times));
    }
}

#[test]
fn spawns_inside_spawned_threads_cost_nothing() {
    explores(1, || {
        let outer = || {
            let inner: Vec<_> = (0..2).map(|_| thread::spawn(|| ())).collect();
            inner.into_iter().for_each(|handle| handle.join().unwrap());
        };
        let handles: Vec<_> = (0..3).map(|_| thread::spawn(outer)).collect();
        handles.into_iter().for_each(|handle| handle.join().unwrap());
    });
}

/// The reductions explore as many traces as brute force counts.
#[track_caller]
fn agrees(traces: u64, body: impl Fn() + Sync + Copy) {
    agree_on_traces(traces, body);
    assert_eq!(seq_cst::compare(body), Compared::Same(traces));
}

/// The same for a body that has another number of execution graphs under weak memory, or whose
/// orderings are weaker than `SeqCst`.
#[track_caller]
fn agree_on_traces(traces: u64, body: impl Fn() + Sync + Copy) {
    let all = brute(body);
    assert_eq!(all.traces(), Some(traces), "{}", all.guarantee());
    explores_traces(traces, body);
    for reduction in [Reduction::Source, Reduction::Sleep] {
        let outcome = Check::new().reduce(reduction).run(body);
        assert_eq!((outcome.executions(), outcome.complete), (Some(traces), true), "{reduction:?}");
    }
    let icb = Check::new().order(Order::Icb { cache: preempt::Cache::Hb }).bound(64).run(body);
    assert_eq!((icb.traces(), icb.complete), (Some(traces), true));
    // Within each bound, cb-por explores the traces that the cache counts, each once.
    for bound in &icb.bounds {
        let outcome = Check::new().reduce(Reduction::CbPor).bound(bound.bound).run(body);
        assert_eq!(
            (outcome.executions(), outcome.traces()),
            (bound.all.traces, bound.all.traces),
            "bound {}",
            bound.bound
        );
    }
}

#[test]
fn small_programs_agree_with_brute_force() {
    agrees(20, || adds(2, 3));
    agrees(6, || locked(3, 1));
    agrees(6, || locked(2, 2));
}

/// A push that is retried loads the head twice, and both loads count.
#[test]
fn a_treiber_stack_agrees_with_brute_force() {
    agrees(22, treiber::test);
}

#[test]
fn a_chase_lev_deque_agrees_with_brute_force() {
    agrees(18, || chase_lev::test::<4>(3, 2, Read::Before));
}

#[test]
fn without_preemptions_all_orders_are_explored() {
    for (count, factorial) in [(2, 2), (3, 6), (4, 24)] {
        let seen = StdMutex::new(BTreeSet::new());
        let outcome = Check::new().bound(0).run(|| {
            let log = Arc::new(Mutex::new(Vec::new()));
            let entries = log.clone();
            threads(count, move |at| entries.lock().unwrap().push(at));
            seen.lock().unwrap().insert(log.lock().unwrap().clone());
        });
        assert_eq!(seen.lock().unwrap().len(), factorial, "{}", outcome.guarantee());
    }
}

#[test]
fn bound_zero_counts_one_trace_for_each_order() {
    for (count, factorial) in [(2, 2), (3, 6), (4, 24), (5, 120)] {
        let outcome = Check::new().bound(0).run(|| adds(count, 1));
        assert_eq!(outcome.traces(), Some(factorial), "{}", outcome.guarantee());
    }
}

/// `main` runs when the search begins, so the switch away from it before its first step is a
/// preemption: the error needs two of them, with a step before the spawn and without.
#[test]
fn the_first_switch_is_a_preemption() {
    let pair = |first_step: bool| {
        let shared = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
        if first_step {
            assert_eq!(shared.0.load(SeqCst), 0);
        }
        let t = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.0.store(1, SeqCst);
                shared.1.store(1, SeqCst);
            }
        });
        let (x, y) = (shared.0.load(SeqCst), shared.1.load(SeqCst));
        t.join().unwrap();
        assert!((x, y) != (1, 0));
    };
    for first_step in [false, true] {
        let body = || pair(first_step);
        let icb = || Check::new().order(Order::Icb { cache: preempt::Cache::Hb });
        let cb_por = || Check::new().reduce(Reduction::CbPor);
        for check in [&icb as &dyn Fn() -> Check, &cb_por] {
            for (bound, traces) in [(0, 1), (1, 3)] {
                let outcome = check().bound(bound).run(body);
                assert_eq!(
                    (outcome.traces(), outcome.findings.len()),
                    (Some(traces), 0),
                    "{}",
                    outcome.guarantee()
                );
            }
            let outcome = check().bound(2).run(body);
            assert_eq!(outcome.findings[0].preemptions, 2, "{}", outcome.guarantee());
        }
    }
}

#[test]
fn the_two_preemption_error_of_chase_lev_is_found_with_two() {
    let body = || chase_lev::test::<2>(3, 2, Read::After);
    assert!(Check::new().bound(1).run(body).findings.is_empty());
    let outcome = Check::new().run(body);
    assert_eq!(outcome.findings.len(), 1);
    assert_eq!(outcome.findings[0].preemptions, 2);
    assert!(outcome.executions() <= Some(65), "{}", outcome.guarantee());
    assert!(
        Check::new()
            .bound(3)
            .count(Count::Executions)
            .run(|| chase_lev::test::<2>(3, 2, Read::Before))
            .findings
            .is_empty()
    );
}

#[test]
fn several_workers_give_the_same_results_as_one() {
    let test = || adds(3, 2);
    // 6! / 2!³ = 90 in all, of which 60 have at most two preemptions.
    for (check, executions) in [(Check::new().bound(2), 60), (Check::new(), 90)] {
        let one = check.run(test);
        assert_eq!(one.executions(), Some(executions));
        for jobs in [2, 3] {
            let several = check.clone().jobs(jobs).run(test);
            assert_eq!((&several.tally, &several.bounds), (&one.tally, &one.bounds), "{jobs} jobs");
            assert_eq!(several.guarantee(), one.guarantee(), "{jobs} jobs");
        }
    }
}

/// Thread `at` replaces `at` by `at + 1`: the benchmark casrot of GenMC.
fn rotate(count: usize) {
    let x = Arc::new(AtomicUsize::new(0));
    threads(count, move |at| {
        let _ = x.compare_exchange(at, at + 1, SeqCst, SeqCst);
    });
}

/// The first `k` threads succeed, in their order. Thread `k` fails in one of the `k` states before
/// it would succeed, and every later one in any of the `k + 1` states.
fn rotations(count: u32) -> u64 {
    let failing = |k: u32| u64::from(k) * u64::from(k + 1).pow(count - k - 1);
    (1..count).map(failing).sum::<u64>() + 1
}

#[test]
fn an_exchange_that_fails_is_a_read() {
    assert_eq!(rotations(9), 8_597, "the number that GenMC reports");
    agrees(rotations(2), || rotate(2));
    agrees(rotations(3), || rotate(3));
    agrees(rotations(4), || rotate(4));
    explores(rotations(6), || rotate(6));
}

/// The value is written through the only reference, or a new atomic is created at the same address:
/// then earlier steps do not determine the result of an exchange, and it counts as a write.
#[test]
fn an_exchange_of_a_value_that_no_step_wrote_is_a_write() {
    let exchange = |x: &Arc<AtomicUsize>| {
        let x = x.clone();
        thread::spawn(move || x.compare_exchange(5, 6, SeqCst, SeqCst).is_ok())
    };
    let body = || {
        let mut x = AtomicUsize::new(0);
        x.store(1, SeqCst);
        *x.get_mut() = 5;
        let x = Arc::new(x);
        let exchanges = [exchange(&x), exchange(&x)];
        let done = exchanges.map(|exchange| exchange.join().unwrap());
        assert_eq!(done.iter().filter(|&&ok| ok).count(), 1, "one thread finds the 5");
    };
    // A search over graphs refuses the write through the only reference.
    agree_on_traces(2, body);
    let body = || {
        for round in 0..2 {
            let x = Arc::new(AtomicUsize::new(5 * round));
            let exchanges = [exchange(&x), exchange(&x)];
            let done = exchanges.map(|exchange| exchange.join().unwrap());
            assert_eq!(done.iter().filter(|&&ok| ok).count(), round);
        }
    };
    let all = brute(body);
    assert!(all.complete && all.findings.is_empty(), "{}", all.guarantee());
    explores(all.traces().unwrap(), body);
}

/// All three threads succeed in 6 orders. If two succeed, in 6 orders, the third fails while one of
/// them holds the mutex. If one succeeds, the others fail while it holds the mutex, unordered.
#[test]
fn an_attempt_to_lock_that_fails_is_a_read() {
    agree_on_traces(6 + 6 * 2 + 3, || {
        let m = Arc::new(Mutex::new(0));
        threads(3, move |_| {
            if let Ok(mut n) = m.try_lock() {
                *n += 1;
            }
        });
    });
}

/// A `try_write` that fails because of a reader depends on the reader's unlock.
#[test]
fn an_attempt_to_write_depends_on_readers() {
    let body = || {
        let lock = Arc::new(RwLock::new(0));
        let (reader, writer) = (lock.clone(), lock.clone());
        let reads = thread::spawn(move || drop(reader.read().unwrap()));
        let writes = thread::spawn(move || writer.try_write().is_ok());
        reads.join().unwrap();
        writes.join().unwrap()
    };
    // Before, during and after the reader's critical section.
    agrees(3, move || {
        body();
    });
}

/// Memory that outlives an execution must not change the addresses, and so the pointer values, of
/// later executions.
#[test]
fn memory_that_outlives_executions_does_not_change_the_traces() {
    static KEPT: StdMutex<Vec<Vec<usize>>> = StdMutex::new(Vec::new());
    let body = || {
        KEPT.lock().unwrap().push(vec![1]);
        treiber::test();
    };
    let outcome = optimal(body);
    assert!(outcome.complete, "{}", outcome.guarantee());
    assert!(outcome.executions().unwrap() >= 22, "{}", outcome.guarantee());
}

/// Each of `count` workers adds 1 in two steps, so that an update may be lost.
fn racing_adds(count: usize) {
    let n = Arc::new(AtomicUsize::new(0));
    let all = n.clone();
    threads(count, move |_| n.store(n.load(SeqCst) + 1, SeqCst));
    assert_eq!(all.load(SeqCst), count);
}

/// Eight workers have 8! executions without a preemption, and one without a delay. An update is
/// lost with one preemption, and with one delay: of the first worker between its steps.
#[test]
fn a_bound_on_delays_does_not_begin_with_all_orders_of_the_workers() {
    let body = || racing_adds(8);
    let cache = preempt::Cache::Hb;
    let icb = Check::new().order(Order::Icb { cache }).run(body);
    let orders: u64 = (1..=8).product();
    assert_eq!(icb.bounds.iter().map(|bound| bound.all.executions).collect::<Vec<_>>(), [orders]);
    let delay = Check::new().order(Order::Delay { cache }).run(body);
    assert_eq!(delay.bounds.iter().map(|bound| bound.all.executions).collect::<Vec<_>>(), [1]);
    assert_eq!((delay.findings.len(), delay.findings[0].preemptions), (1, 1));
    let text = delay.guarantee();
    assert!(text.ends_with("; no error needs fewer than 1 delay"), "{text}");
}

/// The executions to the first lost update do not depend on the number of workers: the one without
/// a delay, and then those with one, of which one of the first delays a worker between its steps.
#[test]
fn a_bound_on_delays_finds_a_lost_update_in_few_executions_of_any_number_of_workers() {
    for (cache, executions) in [(preempt::Cache::None, 6), (preempt::Cache::Hb, 2)] {
        for workers in [2, 3, 8, 10] {
            let outcome =
                Check::new().order(Order::Delay { cache }).run(move || racing_adds(workers));
            assert_eq!(outcome.findings.len(), 1, "{workers} workers, {cache:?}");
            assert_eq!(outcome.executions(), Some(executions), "{workers} workers, {cache:?}");
        }
    }
}
