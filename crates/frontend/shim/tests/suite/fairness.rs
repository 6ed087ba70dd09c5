//! Fair scheduling: a thread that yields lets other threads run first, whatever it writes.

use std::collections::BTreeSet;
use std::sync::Mutex as StdMutex;
use std::task::Poll;
use std::time::Duration;

use preempt::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use preempt::sync::{Arc, Condvar, Mutex, mpsc};
use preempt::{Cache, Check, FailureKind, Order, Outcome, Reduction, hint, thread};
use preempt_explore::pcg::Pcg;

/// All searches that support programs whose threads only spin.
fn searches() -> Vec<(&'static str, Check)> {
    vec![
        ("default", Check::new()),
        ("unbounded", Check::new().unbounded()),
        ("brute force", Check::new().order(Order::Executions).unbounded().reduce(Reduction::None)),
        ("icb, no cache", Check::new().order(Order::Icb { cache: Cache::None }).bound(3)),
        ("dfs with the hb cache", Check::new().order(Order::DfsHb).unbounded()),
        ("dpor", Check::new().unbounded().reduce(Reduction::Source)),
        ("dpor-optimal", Check::new().unbounded().reduce(Reduction::Optimal)),
        ("sleep", Check::new().unbounded().reduce(Reduction::Sleep)),
        ("cb-por", Check::new().bound(3).reduce(Reduction::CbPor)),
        ("random", Check::new().order(Order::Random).runs(50)),
    ]
}

#[track_caller]
fn passes_everywhere(test: impl Fn() + Sync) {
    for (name, check) in searches() {
        let outcome = check.run(&test);
        assert!(outcome.findings.is_empty(), "{name}: {:?}", outcome.findings[0].failure);
        if name != "random" && name != "default" {
            assert!(outcome.stopped.is_none(), "{name}: {}", outcome.guarantee());
        }
    }
}

fn assumes_fairness(outcome: &Outcome) -> bool {
    outcome.guarantee().contains("lets other threads run")
}

/// A thread that times out at the same place twice, while others change nothing that it uses, is
/// held back, so no execution has a third timeout unless the notifier has begun. The outcome says
/// that it relies on this, and names the place.
#[test]
fn a_loop_that_counts_timeouts_relies_on_them_to_let_others_run() {
    let receives = || {
        let (sender, receiver) = mpsc::channel();
        let t = thread::spawn(move || sender.send(1).unwrap());
        let mut timeouts = 0;
        while receiver.recv_timeout(Duration::from_millis(1)).is_err() {
            timeouts += 1;
        }
        t.join().unwrap();
        assert!(timeouts < 3);
    };
    let parks = || {
        let flag = Arc::new(AtomicBool::new(false));
        let t = thread::spawn({
            let flag = flag.clone();
            move || flag.store(true, SeqCst)
        });
        let mut timeouts = 0;
        while !flag.load(SeqCst) {
            thread::park_timeout(Duration::from_millis(1));
            timeouts += 1;
        }
        t.join().unwrap();
        assert!(timeouts < 3);
    };
    for outcome in [Check::new().run(receives), Check::new().run(parks)] {
        assert!(outcome.findings.is_empty(), "{:?}", outcome.findings[0].failure);
        let [assumption] = &outcome.assumptions[..] else { panic!("{}", outcome.guarantee()) };
        let (place, end) = (" timeout at crates/", " lets other threads run");
        let names = assumption.contains("fairness.rs:") && assumption.ends_with(end);
        assert!(assumption.contains(place) && names, "{assumption}");
    }
}

#[test]
fn a_flag_acquired_and_released_in_a_loop_that_yields() {
    passes_everywhere(|| {
        let (lock, ready) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let t = thread::spawn({
            let ready = ready.clone();
            move || ready.store(true, SeqCst)
        });
        loop {
            assert!(lock.compare_exchange(false, true, SeqCst, SeqCst).is_ok());
            let is_ready = ready.load(SeqCst);
            lock.store(false, SeqCst);
            if is_ready {
                break;
            }
            thread::yield_now();
        }
        t.join().unwrap();
    });
}

#[test]
fn a_value_under_a_mutex_is_polled() {
    passes_everywhere(|| {
        let ready = Arc::new(Mutex::new(false));
        let t = thread::spawn({
            let ready = ready.clone();
            move || *ready.lock().unwrap() = true
        });
        while !*ready.lock().unwrap() {
            thread::yield_now();
        }
        t.join().unwrap();
    });
}

/// The loop counts its attempts in an atomic, so that no two iterations have the same state.
fn counts_attempts() {
    let (attempts, ready) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let t = thread::spawn({
        let ready = ready.clone();
        move || ready.store(true, SeqCst)
    });
    while !ready.load(SeqCst) {
        attempts.fetch_add(1, SeqCst);
        thread::yield_now();
    }
    t.join().unwrap();
}

#[test]
fn a_loop_that_counts_its_attempts() {
    passes_everywhere(counts_attempts);
    let outcome = Check::new().unbounded().run(counts_attempts);
    assert!(outcome.complete && assumes_fairness(&outcome), "{}", outcome.guarantee());
    assert!(outcome.guarantee().contains("fairness.rs:"), "{}", outcome.guarantee());
}

#[test]
fn a_reader_that_adds_and_subtracts() {
    passes_everywhere(|| {
        let lock = Arc::new(AtomicUsize::new(1));
        let t = thread::spawn({
            let lock = lock.clone();
            move || lock.fetch_sub(1, SeqCst)
        });
        while lock.fetch_add(2, SeqCst) & 1 != 0 {
            lock.fetch_sub(2, SeqCst);
            hint::spin_loop();
        }
        t.join().unwrap();
    });
}

#[test]
fn a_future_that_wakes_itself_yields() {
    let test = || {
        let ready = Arc::new(AtomicBool::new(false));
        let t = thread::spawn({
            let ready = ready.clone();
            move || ready.store(true, SeqCst)
        });
        preempt::future::block_on(std::future::poll_fn(|context| {
            if ready.load(SeqCst) {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        }));
        t.join().unwrap();
    };
    passes_everywhere(test);
    let outcome = Check::new().unbounded().run(test);
    assert!(outcome.complete && assumes_fairness(&outcome), "{}", outcome.guarantee());
}

/// Each of two writes lets the loop continue: a reduction must not add one more iteration to the
/// loop for each execution that it explores.
#[test]
fn loops_that_read_two_variables() {
    fn test(poll: fn(&AtomicUsize) -> usize) -> impl Fn() + Sync {
        move || {
            let (n, flag) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
            let counts = thread::spawn({
                let n = n.clone();
                move || n.fetch_add(1, SeqCst)
            });
            let polls = thread::spawn({
                let (n, flag) = (n.clone(), flag.clone());
                move || {
                    while !flag.load(SeqCst) {
                        poll(&n);
                        thread::yield_now();
                    }
                }
            });
            flag.load(SeqCst);
            flag.store(true, SeqCst);
            counts.join().unwrap();
            polls.join().unwrap();
        }
    }
    passes_everywhere(test(|n| n.load(SeqCst)));
    passes_everywhere(test(|n| n.fetch_add(1, SeqCst)));
}

/// A loop whose iterations write nothing can be held back without losing results, so the search
/// does not rely on a fair scheduler.
#[test]
fn a_loop_that_only_reads_needs_no_fairness() {
    let outcome = Check::new().unbounded().run(|| {
        let ready = Arc::new(AtomicBool::new(false));
        let t = thread::spawn({
            let ready = ready.clone();
            move || ready.store(true, SeqCst)
        });
        while !ready.load(SeqCst) {
            thread::yield_now();
        }
        t.join().unwrap();
    });
    assert!(outcome.complete && !assumes_fairness(&outcome), "{}", outcome.guarantee());
}

/// A lock that consists of one flag: a waiting thread writes nothing.
#[test]
fn a_spin_lock_needs_no_fairness() {
    let test = |threads: usize| {
        move || {
            let lock = Arc::new((AtomicBool::new(false), AtomicUsize::new(0)));
            let add = |(flag, n): &(AtomicBool, AtomicUsize)| {
                while flag.compare_exchange(false, true, SeqCst, SeqCst).is_err() {
                    hint::spin_loop();
                }
                n.store(n.load(SeqCst) + 1, SeqCst);
                flag.store(false, SeqCst);
            };
            let others: Vec<_> = (1..threads)
                .map(|_| {
                    let lock = lock.clone();
                    thread::spawn(move || add(&lock))
                })
                .collect();
            add(&lock);
            others.into_iter().for_each(|other| other.join().unwrap());
            add(&lock);
            assert_eq!(lock.1.load(SeqCst), threads + 1);
        }
    };
    for threads in [2, 3] {
        for check in [Check::new(), Check::new().unbounded()] {
            let outcome = check.run(test(threads));
            assert!(outcome.findings.is_empty() && outcome.complete, "{}", outcome.guarantee());
            assert!(outcome.assumptions.is_empty(), "{}", outcome.guarantee());
        }
    }
}

/// The observations of the threads in all executions of a search.
fn seen(check: &Check, test: impl Fn() -> Vec<usize> + Sync) -> (BTreeSet<Vec<usize>>, Outcome) {
    let all = StdMutex::new(BTreeSet::new());
    let outcome = check.run(|| {
        let seen = test();
        all.lock().unwrap().insert(seen);
    });
    assert!(outcome.findings.is_empty(), "{:?}", outcome.findings);
    (all.into_inner().unwrap(), outcome)
}

/// Two loads of `x` while another thread executes `writes` on it.
fn two_loads(writes: fn(&AtomicUsize)) -> impl Fn() -> Vec<usize> + Sync {
    move || {
        let x = Arc::new(AtomicUsize::new(0));
        let t = thread::spawn({
            let x = x.clone();
            move || writes(&x)
        });
        let seen = vec![x.load(SeqCst), x.load(SeqCst)];
        t.join().unwrap();
        seen
    }
}

#[test]
fn a_yield_outside_a_loop_loses_no_results() {
    let yields = two_loads(|x| {
        x.store(1, SeqCst);
        thread::yield_now();
        x.store(2, SeqCst);
        thread::yield_now();
        x.store(3, SeqCst);
    });
    let does_not = two_loads(|x| (1..4).for_each(|value| x.store(value, SeqCst)));
    let brute_force = Check::new().order(Order::Executions).unbounded().reduce(Reduction::None);
    let (all, _) = seen(&brute_force, does_not);
    assert_eq!(all.len(), 10, "all pairs in order");
    for check in [brute_force, Check::new().unbounded(), Check::new().bound(6)] {
        let (with, outcome) = seen(&check, &yields);
        assert_eq!(with, all);
        assert!(!assumes_fairness(&outcome), "{}", outcome.guarantee());
    }
}

/// A loop that ends by itself is not a wait: the search detects that and loses no results.
#[test]
fn a_bounded_loop_that_yields_and_writes_loses_no_results() {
    let yields = two_loads(|x| {
        for value in 1..6 {
            x.store(value, SeqCst);
            thread::yield_now();
        }
    });
    for check in [Check::new().unbounded(), Check::new().bound(6)] {
        let (with, outcome) = seen(&check, &yields);
        assert_eq!(with.len(), 21, "all pairs in order: {with:?}");
        assert!(!assumes_fairness(&outcome), "{}", outcome.guarantee());
    }
}

/// An operation of a random program. A loop ends when another thread has set a flag, and writes in
/// every iteration.
#[derive(Clone, Copy, Debug)]
enum Op {
    Load(usize),
    Set(usize),
    Count,
    Read,
    /// Waits for a flag and counts its attempts.
    Poll(usize),
    /// Waits for a flag that it reads only while it holds another flag as a lock.
    PollBehind(usize),
    /// Waits for a flag by compare-and-exchange, and yields only in every second iteration.
    PollSometimes(usize),
    /// Writes a few times and yields in between.
    Bounded,
    Yield,
}

struct Shared {
    flags: [AtomicUsize; 2],
    taken: AtomicBool,
    count: AtomicUsize,
}

impl Op {
    fn random(random: &mut Pcg, may_wait: bool) -> Op {
        let flag = random.below(2) as usize;
        match random.below(if may_wait { 9 } else { 6 }) {
            0 => Op::Load(flag),
            1 => Op::Set(flag),
            2 => Op::Count,
            3 => Op::Read,
            4 => Op::Bounded,
            5 => Op::Yield,
            6 => Op::Poll(flag),
            7 => Op::PollBehind(flag),
            _ => Op::PollSometimes(flag),
        }
    }

    /// Executes the operation. Returns the value that the thread observes.
    fn run(self, shared: &Shared) -> usize {
        let Shared { flags, taken, count } = shared;
        match self {
            Op::Load(flag) => flags[flag].load(SeqCst),
            Op::Set(flag) => flags[flag].swap(1, SeqCst),
            Op::Count => count.fetch_add(1, SeqCst),
            Op::Read => count.load(SeqCst),
            Op::Poll(flag) => {
                let mut attempts = 0;
                while flags[flag].load(SeqCst) == 0 {
                    count.fetch_add(1, SeqCst);
                    attempts += 1;
                    thread::yield_now();
                }
                attempts
            }
            Op::PollBehind(flag) => loop {
                if !taken.swap(true, SeqCst) {
                    let is_set = flags[flag].load(SeqCst) != 0;
                    taken.store(false, SeqCst);
                    if is_set {
                        return 0;
                    }
                }
                hint::spin_loop();
            },
            Op::PollSometimes(flag) => {
                let mut attempts = 0;
                while flags[flag].compare_exchange(1, 2, SeqCst, SeqCst) == Err(0) {
                    attempts += 1;
                    if attempts % 2 == 0 {
                        count.fetch_add(1, SeqCst);
                        thread::yield_now();
                    }
                }
                0
            }
            Op::Bounded => {
                for _ in 0..3 {
                    count.fetch_add(1, SeqCst);
                    thread::yield_now();
                }
                0
            }
            Op::Yield => {
                thread::yield_now();
                0
            }
        }
    }
}

/// Reductions and caches produce exactly the results of brute force under the same rule for threads
/// that yield.
#[test]
fn searches_agree_about_loops_that_yield_and_write() {
    let (mut compared, mut relied) = (0, 0);
    for seed in 0..80 {
        let mut random = Pcg::new(seed, 0);
        let mut ops = |may_wait, most| -> Vec<Op> {
            (0..1 + random.below(most)).map(|_| Op::random(&mut random, may_wait)).collect()
        };
        // Main never waits, and finally sets all flags.
        let main = [ops(false, 2), vec![Op::Set(0), Op::Set(1)]].concat();
        let others: Vec<_> =
            (0..1 + seed % 2).map(|_| ops(true, if seed % 2 == 0 { 3 } else { 1 })).collect();
        let test = || {
            let flags = [AtomicUsize::new(0), AtomicUsize::new(0)];
            let shared = Arc::new(Shared {
                flags,
                taken: AtomicBool::new(false),
                count: AtomicUsize::new(0),
            });
            let threads: Vec<_> = others
                .iter()
                .map(|ops| {
                    let (ops, shared) = (ops.clone(), shared.clone());
                    thread::spawn(move || ops.iter().map(|op| op.run(&shared)).collect::<Vec<_>>())
                })
                .collect();
            let mut seen: Vec<usize> = main.iter().map(|op| op.run(&shared)).collect();
            threads.into_iter().for_each(|thread| seen.extend(thread.join().unwrap()));
            seen
        };
        let brute_force = Check::new().order(Order::Executions).unbounded().reduce(Reduction::None);
        let (all, brute) = seen(&brute_force.executions(20_000).allow_incomplete(), test);
        if brute.stopped.is_some() {
            continue;
        }
        compared += 1;
        relied += usize::from(assumes_fairness(&brute));
        for (name, check) in [
            ("dpor-optimal", Check::new().unbounded()),
            ("dpor", Check::new().reduce(Reduction::Source)),
            ("sleep", Check::new().reduce(Reduction::Sleep)),
            ("icb hb", Check::new().order(Order::Icb { cache: Cache::Hb }).bound(60)),
            ("dfs-hb", Check::new().order(Order::DfsHb).unbounded()),
            ("cb-por", Check::new().reduce(Reduction::CbPor).bound(60)),
        ] {
            let (reduced, outcome) = seen(&check, test);
            let what = format!("{name} on {seed}: {main:?} {others:?}: {}", outcome.guarantee());
            assert!(outcome.complete, "{what}");
            assert_eq!(reduced, all, "{what}");
            assert_eq!(outcome.traces(), brute.traces(), "{what}");
        }
    }
    assert!(compared > 50 && relied > 15, "{compared} {relied}");
}

fn kind(outcome: &Outcome) -> Option<FailureKind> {
    outcome.findings.first().map(|finding| finding.failure.kind)
}

#[test]
fn many_consecutive_loads_are_not_a_livelock() {
    for loads in [205, 10_000] {
        let test = move || {
            let x = AtomicUsize::new(0);
            (0..loads).for_each(|_| assert_eq!(x.load(SeqCst), 0));
        };
        assert_eq!(kind(&Check::new().run(test)), None);
        assert_eq!(kind(&Check::new().unbounded().run(test)), None);
    }
}

/// Loops that give up keep a counter somewhere: on the stack, on the heap, behind a reference.
#[test]
fn loops_that_count_are_not_livelocks() {
    fn waits(mut gives_up: impl FnMut() -> bool) {
        let flag = AtomicBool::new(false);
        while !flag.load(SeqCst) && !gives_up() {
            thread::yield_now();
        }
    }
    let on_the_stack = || {
        let mut rounds = 0;
        waits(|| {
            rounds += 1;
            rounds > 700
        });
    };
    let in_a_box = || {
        let mut rounds = Box::new(0);
        waits(move || {
            *rounds += 1;
            *rounds > 700
        });
    };
    let in_a_cell = || {
        let rounds = Box::new(std::cell::Cell::new(0));
        waits(move || {
            rounds.set(rounds.get() + 1);
            rounds.get() > 700
        });
    };
    assert_eq!(kind(&Check::new().run(on_the_stack)), None);
    assert_eq!(kind(&Check::new().run(in_a_box)), None);
    let in_a_static = || {
        waits(|| {
            let mut rounds = ROUNDS.lock().unwrap();
            *rounds += 1;
            *rounds > 700
        });
    };
    let on_a_borrowed_stack = || {
        let mut rounds = 0;
        thread::scope(|scope| {
            scope.spawn(|| {
                waits(|| {
                    *std::hint::black_box(&mut rounds) += 1;
                    rounds > 700
                })
            });
        });
    };
    assert_eq!(kind(&Check::new().run(in_a_cell)), None);
    assert_eq!(kind(&Check::new().run(in_a_static)), None);
    assert_eq!(kind(&Check::new().run(on_a_borrowed_stack)), None);
}

preempt::lazy_static! {
    static ref ROUNDS: Mutex<usize> = Mutex::new(0);
}

/// Each of two threads withdraws its offer when it sees that the other thread offers too. In
/// lockstep they do so forever: a cycle of states that is fair to both threads.
#[test]
fn two_threads_that_back_off_together_are_a_livelock() {
    fn offer(own: &AtomicBool, other: &AtomicBool) {
        loop {
            own.store(true, SeqCst);
            let is_alone = !other.load(SeqCst);
            own.store(false, SeqCst);
            if is_alone {
                break;
            }
            thread::yield_now();
        }
    }
    let test = || {
        let (a, b) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let t = thread::spawn({
            let (a, b) = (a.clone(), b.clone());
            move || offer(&b, &a)
        });
        offer(&a, &b);
        t.join().unwrap();
    };
    for check in [
        Check::new(),
        Check::new().unbounded(),
        Check::new().order(Order::Icb { cache: Cache::None }),
    ] {
        let outcome = check.run(test);
        assert_eq!(
            kind(&outcome),
            expected(FailureKind::Livelock),
            "{:?}",
            outcome.findings[0].failure
        );
        let message = &outcome.findings[0].failure.message;
        assert!(
            message.contains("main (crates/") && message.contains(" and t1 (crates/"),
            "{message}"
        );
        assert!(message.contains("repeat the same 6 steps"), "{message}");
    }
}

/// Spurious wakeups are never guaranteed, so a wait that only they can end is a deadlock.
#[test]
fn a_wait_that_only_spurious_wakeups_end_is_a_deadlock() {
    let channel = || {
        let (sender, receiver) = mpsc::channel::<usize>();
        let t = thread::spawn(move || receiver.recv());
        t.join().unwrap().unwrap_err();
        drop(sender);
    };
    let condvar = || {
        let shared = Arc::new((Mutex::new(false), Condvar::new()));
        let t = thread::spawn({
            let shared = shared.clone();
            move || drop(shared.1.wait_while(shared.0.lock().unwrap(), |ready| !*ready).unwrap())
        });
        t.join().unwrap();
    };
    let parks = || {
        let ready = Arc::new(AtomicBool::new(false));
        let t = thread::spawn({
            let ready = ready.clone();
            move || {
                while !ready.load(SeqCst) {
                    thread::park();
                }
            }
        });
        t.join().unwrap();
    };
    for test in [&channel as &(dyn Fn() + Sync), &condvar, &parks] {
        for check in [Check::new(), Check::new().unbounded()] {
            assert_eq!(kind(&check.clone().run(test)), Some(FailureKind::Deadlock));
            assert_eq!(kind(&check.spurious_wakeups().run(test)), expected(FailureKind::Deadlock));
        }
    }
    // A wait with a timeout ends again and again, so the loop is a livelock.
    let times_out = || {
        let (sender, receiver) = mpsc::channel::<usize>();
        while receiver.recv_timeout(Duration::from_secs(1)).is_err() {}
        drop(sender);
    };
    assert_eq!(kind(&Check::new().max_steps(500).run(times_out)), expected(FailureKind::Livelock));
}

/// An error after spurious wakeups is found, although nothing else ends the waits.
#[test]
fn a_bounded_loop_of_waits_is_not_a_deadlock() {
    let outcome = Check::new().spurious_wakeups().run(|| {
        let shared = (Mutex::new(()), Condvar::new());
        let mut guard = shared.0.lock().unwrap();
        for _ in 0..20 {
            guard = shared.1.wait(guard).unwrap();
        }
        panic!("woken 20 times");
    });
    assert_eq!(kind(&outcome), Some(FailureKind::Panic), "{:?}", outcome.findings);
}

/// Without the allocator the heap is not observed, and no cycle of states can be proved.
fn expected(kind: FailureKind) -> Option<FailureKind> {
    Some(if cfg!(feature = "allocator") { kind } else { FailureKind::StepLimit })
}

#[test]
fn a_wait_for_a_flag_that_is_never_set_is_a_livelock() {
    fn test(pause: fn()) -> impl Fn() + Sync {
        move || {
            let flag = Arc::new(AtomicBool::new(false));
            let t = thread::spawn({
                let flag = flag.clone();
                move || {
                    while !flag.load(SeqCst) {
                        pause();
                    }
                }
            });
            t.join().unwrap();
        }
    }
    for pause in [thread::yield_now as fn(), || ()] {
        for check in [Check::new(), Check::new().unbounded()] {
            let outcome = check.run(test(pause));
            assert_eq!(
                kind(&outcome),
                expected(FailureKind::Livelock),
                "{:?}",
                outcome.findings[0].failure
            );
            if !cfg!(feature = "allocator") {
                continue;
            }
            assert!(
                outcome.findings[0].schedule.steps().len() < 100,
                "{}",
                outcome.findings[0].schedule.steps().len()
            );
        }
    }
}

/// A loop that reaches a new state in every iteration cannot be distinguished from one that ends.
#[test]
fn a_wait_that_counts_forever_reaches_the_step_limit() {
    let outcome = Check::new().max_steps(500).run(|| {
        let (flag, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
        while !flag.load(SeqCst) {
            rounds.fetch_add(1, SeqCst);
            thread::yield_now();
        }
    });
    assert_eq!(kind(&outcome), Some(FailureKind::StepLimit));
    let message = &outcome.findings[0].failure.message;
    assert!(
        message.contains("PREEMPT_MAX_STEPS") && message.contains("Check::max_steps"),
        "{message}"
    );
}
