//! Histories that a test records itself.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use preempt::history::Log;
use preempt::linearize::Criterion;
use preempt::sync::atomic::{AtomicU32, Ordering::SeqCst};
use preempt::{Check, FailureKind, Order, Outcome, Reduction, Verdict, choose, history, thread};

use crate::linearize::structures::{Counter, LockQueue, Network};

#[derive(Clone, Copy, Debug)]
enum Call {
    Push(u32),
    Pop,
}

/// A queue that is not shared.
fn serial(queue: &mut VecDeque<u32>, call: &Call) -> Option<u32> {
    match call {
        Call::Push(value) => {
            queue.push_back(*value);
            None
        }
        Call::Pop => queue.pop_front(),
    }
}

fn perform(queue: &LockQueue, call: Call, is_wrong: bool) -> Option<u32> {
    match call {
        Call::Push(value) => {
            queue.push(value);
            None
        }
        Call::Pop if is_wrong => queue.pop_in_two_steps(),
        Call::Pop => queue.pop(),
    }
}

/// `push(1); pop() || pop()`, checked by a model or by the serial behaviour of the queue itself.
fn queue(check: &Check, is_wrong: bool, by_itself: bool) -> Outcome {
    check.run(|| {
        let queue = LockQueue::default();
        let (history, [mut a, mut b]) = if by_itself {
            history(LockQueue::default, |queue: &mut LockQueue, call| perform(queue, *call, false))
        } else {
            history(VecDeque::new, serial)
        };
        let call = |log: &mut Log<Call, Option<u32>>, call| {
            log.call(call, || perform(&queue, call, is_wrong))
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                call(&mut a, Call::Push(1));
                call(&mut a, Call::Pop);
            });
            scope.spawn(|| call(&mut b, Call::Pop));
        });
        history.check();
    })
}

#[test]
fn a_wrong_queue_is_found_by_a_model_and_by_its_own_serial_behaviour() {
    for by_itself in [false, true] {
        for check in [Check::new(), Check::new().unbounded(), Check::new().bound(2)] {
            let right = queue(&check, false, by_itself);
            assert_eq!(right.verdict, Verdict::Ok);
            let wrong = queue(&check, true, by_itself);
            let failure = &wrong.findings[0].failure;
            assert_eq!(failure.kind, FailureKind::Linearizability);
            let message = "not linearizable: t1's Push(1) = None, t1's Pop = Some(0), t2's Pop = \
                           Some(1). No serial order gives these results. Serially, after t1's \
                           Push(1) = None, then ";
            assert!(failure.message.starts_with(message), "{}", failure.message);
            assert_eq!(wrong.findings[0].preemptions, 1);
        }
    }
}

#[test]
fn a_report_shows_calls_and_returns_and_is_replayed() {
    let body = || {
        let counter = Counter::default();
        let (history, [mut a, mut b]) = history(
            || 0,
            |n: &mut u32, (): &()| {
                *n += 1;
                *n - 1
            },
        );
        thread::scope(|scope| {
            scope.spawn(|| a.call((), || counter.inc_in_two_steps()));
            scope.spawn(|| b.call((), || counter.inc_in_two_steps()));
        });
        history.check();
    };
    let text = Check::new().report(body);
    assert!(text.contains("() = 0"), "{text}");
    let token = text.split("PREEMPT_REPLAY=").nth(1).unwrap().split_whitespace().next().unwrap();
    let again = Check::new().replay(token).run(body);
    assert_eq!(again.findings[0].failure.kind, FailureKind::Linearizability);
    let json: serde_json::Value = serde_json::from_str(&Check::new().json(body)).unwrap();
    assert_eq!(json["findings"][0]["kind"], "not linearizable");
}

/// Threads that make `calls` calls each of an operation without effects.
fn idle(check: &Check, calls: [usize; 4]) -> u64 {
    let outcome = check.run(|| {
        let (history, logs): (_, [Log<(), ()>; 4]) = history(|| (), |(), ()| ());
        let threads = logs.into_iter().zip(calls).filter(|&(_, calls)| calls > 0);
        let threads = threads.map(|(mut log, calls)| {
            thread::spawn(move || (0..calls).for_each(|_| log.call((), || ())))
        });
        threads.collect::<Vec<_>>().into_iter().for_each(|thread| thread.join().unwrap());
        history.check();
    });
    assert_eq!(outcome.verdict, Verdict::Ok);
    outcome.executions().unwrap()
}

/// The numbers of interval orders, as in the tests of `preempt_linearize`.
#[test]
fn every_real_time_order_is_one_execution() {
    let shapes = [
        [1, 1, 0, 0],
        [2, 1, 0, 0],
        [1, 1, 1, 0],
        [2, 2, 0, 0],
        [3, 1, 0, 0],
        [2, 1, 1, 0],
        [1, 1, 1, 1],
    ];
    let optimal = Check::new().unbounded().allow_uncontrolled();
    assert_eq!(shapes.map(|shape| idle(&optimal, shape)), [3, 6, 19, 19, 10, 64, 207]);
    // The same graphs by a search without reduction, whose cache recognises them.
    for (shape, most) in [([1, 1, 0, 0], 3), ([2, 2, 0, 0], 19), ([1, 1, 1, 0], 19)] {
        let icb = Check::new().bound(12).allow_uncontrolled();
        assert_eq!(idle(&icb, shape), most);
        let all = Check::new().unbounded().allow_uncontrolled().reduce(Reduction::Sleep);
        assert!(idle(&all, shape) >= most);
    }
}

/// Three threads that call a counting network once each.
fn network(check: &Check, with_history: bool) -> (bool, bool) {
    let shows = AtomicUsize::new(0);
    let outcome = check.run(|| {
        let network = Network::new();
        let (history, logs) = history(
            || 0,
            |n: &mut u32, (): &()| {
                *n += 1;
                *n - 1
            },
        );
        let logs: [Log<(), u32>; 3] = logs;
        // A clock of the test's own, which the search does not see.
        let clock = AtomicUsize::new(0);
        let call = |mut log: Log<(), u32>| {
            let called = clock.fetch_add(1, Relaxed);
            let result = match with_history {
                true => log.call((), || network.next()),
                false => network.next(),
            };
            (called, clock.fetch_add(1, Relaxed), result)
        };
        let calls = thread::scope(|scope| {
            let threads = logs.map(|log| scope.spawn(|| call(log)));
            threads.map(|thread| thread.join().unwrap())
        });
        // A later call returned a smaller number.
        let is_late = |a: &(usize, usize, u32), b: &(usize, usize, u32)| a.1 < b.0 && a.2 > b.2;
        if calls.iter().any(|a| calls.iter().any(|b| is_late(a, b))) {
            shows.fetch_add(1, Relaxed);
        }
        history.check();
    });
    (outcome.verdict != Verdict::Ok, shows.into_inner() > 0)
}

/// The reason why calls and returns are steps: the same executions, judged by a clock of the test,
/// show nothing.
#[test]
fn a_clock_of_the_test_misses_what_a_history_finds() {
    let check = Check::new().unbounded();
    assert_eq!(network(&check, false), (false, false), "judged by the clock");
    assert!(network(&check, true).0, "judged by the history");
    assert!(network(&Check::new(), true).0, "the default search");
}

/// Two threads that read and write a register by a copy of their own: sequentially consistent, and
/// not linearizable.
#[test]
fn weaker_criteria() {
    let run = |criterion| {
        Check::new().run(move || {
            let register = AtomicU32::new(0);
            let (history, [mut a, mut b]) = history(
                || 0,
                |now: &mut u32, call: &Option<u32>| {
                    call.map(|value| *now = value);
                    *now
                },
            );
            // The write becomes visible at the read that follows.
            let own = |log: &mut Log<Option<u32>, u32>, value| {
                log.call(Some(value), || value);
                log.call(None, || {
                    register.store(value, SeqCst);
                    register.load(SeqCst)
                });
            };
            thread::scope(|scope| {
                scope.spawn(|| own(&mut a, 1));
                scope.spawn(|| own(&mut b, 2));
            });
            history.criterion(criterion).check();
        })
    };
    assert_eq!(run(Criterion::Linearizable).verdict, Verdict::Violation);
    assert_eq!(run(Criterion::Sequential).verdict, Verdict::Ok);
}

/// A model that chooses has several results, and each of them is correct.
#[test]
fn a_model_may_choose() {
    let run = |may_fail: bool| {
        Check::new().run(move || {
            let lock = preempt::sync::Mutex::new(());
            let (history, [mut a, mut b]) =
                history(|| (), move |(), (): &()| !may_fail || choose(2) == 0);
            let attempt = |log: &mut Log<(), bool>| log.call((), || lock.try_lock().is_ok());
            thread::scope(|scope| {
                scope.spawn(|| attempt(&mut a));
                scope.spawn(|| attempt(&mut b));
            });
            history.check();
        })
    };
    assert_eq!(run(true).verdict, Verdict::Ok);
    assert_eq!(run(false).verdict, Verdict::Violation);
}

/// With the default memory of a check, an operation may see stale values, and a later call of
/// another thread need not see an earlier one.
#[test]
fn weak_memory_is_explored() {
    let run = |order| {
        Check::new().run(move || {
            let flag = AtomicU32::new(0);
            let (history, [mut a, mut b]) = history(
                || 0,
                |now: &mut u32, call: &Option<u32>| {
                    call.map(|value| *now = value);
                    *now
                },
            );
            let other = AtomicU32::new(0);
            thread::scope(|scope| {
                scope.spawn(|| {
                    a.call(Some(1), || {
                        flag.store(1, order);
                        1
                    });
                    other.store(1, order);
                });
                scope.spawn(|| {
                    let _ = other.load(order);
                    b.call(None, || flag.load(order));
                });
            });
            history.check();
        })
    };
    assert_eq!(run(SeqCst).verdict, Verdict::Ok);
    let weak = run(Relaxed);
    assert_eq!(weak.findings[0].failure.kind, FailureKind::Linearizability);
}

#[test]
fn other_strategies_find_the_same() {
    let strategies = [
        Check::new().order(Order::Executions).reduce(Reduction::None),
        Check::new().unbounded().reduce(Reduction::Sleep),
        Check::new().reduce(Reduction::CbPor).bound(2),
        Check::new().order(Order::Random).runs(300),
    ];
    for check in strategies {
        assert_eq!(queue(&check, false, false).verdict, Verdict::Ok);
        assert_eq!(queue(&check, true, false).verdict, Verdict::Violation);
    }
}

/// A number generator for reproducible tests.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Whether some permutation of the calls keeps real time and has the results of a queue.
fn brute(calls: &[(Call, u32, u32, Option<u32>)], placed: &mut Vec<usize>) -> bool {
    if placed.len() == calls.len() {
        let mut queue = VecDeque::new();
        let fits = |&call: &usize| serial(&mut queue, &calls[call].0) == calls[call].3;
        return placed.iter().all(fits);
    }
    (0..calls.len()).any(|next| {
        let is_open = !placed.contains(&next);
        let comes_late = (0..calls.len())
            .any(|other| !placed.contains(&other) && calls[other].2 < calls[next].1);
        if !is_open || comes_late {
            return false;
        }
        placed.push(next);
        let found = brute(calls, placed);
        placed.pop();
        found
    })
}

#[test]
fn the_judgement_agrees_with_brute_force_on_random_histories() {
    let mut random = Random(7);
    let mut verdicts = [0; 2];
    for _ in 0..600 {
        let (history, mut logs): (_, [Log<Call, Option<u32>>; 3]) = history(VecDeque::new, serial);
        let mut open: [Option<usize>; 3] = [None; 3];
        let mut calls: Vec<(Call, u32, u32, Option<u32>)> = Vec::new();
        let most = 2 + random.below(4) as usize;
        let mut now = 0;
        while calls.len() < most || open.iter().any(Option::is_some) {
            let log = random.below(3) as usize;
            now += 1;
            if let Some(call) = open[log].take() {
                let result = match calls[call].0 {
                    Call::Push(_) => None,
                    Call::Pop => Some(random.below(4) as u32).filter(|&value| value > 0),
                };
                logs[log].end(&result);
                (calls[call].2, calls[call].3) = (now, result);
            } else if calls.len() < most {
                let value = 1 + random.below(3) as u32;
                let call = if random.below(2) == 0 { Call::Push(value) } else { Call::Pop };
                logs[log].begin(call);
                open[log] = Some(calls.len());
                calls.push((call, now, u32::MAX, None));
            }
        }
        let expected = brute(&calls, &mut Vec::new());
        let judged = catch_unwind(AssertUnwindSafe(|| history.check())).is_ok();
        assert_eq!(judged, expected, "{calls:?}");
        verdicts[usize::from(expected)] += 1;
    }
    assert!(verdicts.iter().all(|&count| count > 100), "{verdicts:?}");
}

#[test]
fn misuse_is_refused() {
    let text = |f: &(dyn Fn() + Sync)| {
        let outcome = Check::new().run(f);
        outcome.findings[0].failure.message.clone()
    };
    let pending = text(&|| {
        let (history, [mut a]) = history(|| (), |(), (): &()| ());
        a.begin(());
        history.check();
    });
    assert!(pending.contains("has not returned: join its thread"), "{pending}");
    let twice = text(&|| {
        let (_history, [mut a]): (_, [Log<(), ()>; 1]) = history(|| (), |(), ()| ());
        a.begin(());
        a.begin(());
    });
    assert!(twice.contains("`end` comes before the next `begin`"), "{twice}");
    let panics = text(&|| {
        let (history, [mut a]): (_, [Log<(), ()>; 1]) = history(|| (), |(), ()| panic!("no model"));
        a.call((), || ());
        history.check();
    });
    assert!(panics.contains("the model of a history panicked: no model"), "{panics}");
}
