//! Random programs: every reduction explores as many traces as brute force counts, with the same
//! results and failures.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex as StdMutex;
use std::time::Duration;

use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use preempt::sync::{Arc, Condvar, Mutex, RwLock};
use preempt::{Cache, Check, FailureKind, Memory, Order, Outcome, Reduction, thread};
use preempt_explore::pcg::Pcg;

#[derive(Clone, Copy, Debug)]
enum Op {
    Load(usize),
    Store(usize, usize),
    Add(usize),
    Cas(usize, usize),
    /// Locks one mutex, and a second one inside.
    Lock(usize),
    Nested(usize, usize),
    TryLock(usize),
    Read,
    Write,
    WaitTimeout(usize),
    Wait(usize),
    NotifyOne,
    NotifyAll,
    ParkTimeout,
    UnparkMain,
    Yield,
    /// Spins until an atomic is not 0, a few times at most.
    Spin(usize),
}

#[derive(Debug)]
struct Program {
    threads: Vec<Vec<Op>>,
    start: Start,
    place: Place,
}

impl Program {
    /// Whether everything that orders two operations synchronises, so that the execution graphs
    /// under weak memory are the traces: see [`seq_cst`](crate::seq_cst).
    fn is_synchronised(&self) -> bool {
        let is_not = |op: &Op| {
            matches!(
                op,
                Op::TryLock(_)
                    | Op::WaitTimeout(_)
                    | Op::Wait(_)
                    | Op::NotifyOne
                    | Op::NotifyAll
                    | Op::ParkTimeout
                    | Op::Spin(_)
            )
        };
        !self.threads.iter().flatten().any(is_not)
    }
}

/// When threads are started.
#[derive(Clone, Copy, Debug)]
enum Start {
    /// All by main, at once.
    AtOnce,
    /// By main, after its first operation.
    Later,
    /// Each by the one before it, after its first operation.
    Chained,
}

/// Where the atomics are.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// In the `Arc`.
    Inside,
    /// In a vector: without the allocator, they are identified by the order of their first uses.
    Elsewhere,
}

fn random(seed: u64) -> Program {
    let mut random = Pcg::new(seed, 0);
    let threads = 2 + random.below(2);
    let most = if threads == 2 { 4 } else { 2 };
    let op = |random: &mut Pcg| {
        let (a, b) = (random.below(2) as usize, random.below(2) as usize);
        match random.below(20) {
            0 | 1 => Op::Load(a),
            2 | 3 => Op::Store(a, b),
            4 | 5 => Op::Add(a),
            6 => Op::Cas(a, b),
            7 | 8 => Op::Lock(a),
            9 => Op::Nested(a, 1 - a),
            10 => Op::TryLock(a),
            11 => Op::Read,
            12 => Op::Write,
            13 => Op::WaitTimeout(a),
            14 => Op::Wait(a),
            15 => Op::NotifyOne,
            16 => Op::NotifyAll,
            17 => Op::ParkTimeout,
            18 => Op::UnparkMain,
            _ if a == 0 => Op::Yield,
            _ => Op::Spin(b),
        }
    };
    let mut thread = || (0..1 + random.below(most)).map(|_| op(&mut random)).collect();
    let threads = (0..threads).map(|_| thread()).collect();
    let start = [Start::AtOnce, Start::Later, Start::Chained][seed as usize % 3];
    let place = if seed.is_multiple_of(5) { Place::Elsewhere } else { Place::Inside };
    Program { threads, start, place }
}

#[derive(Default)]
struct Shared {
    atomics: [AtomicUsize; 2],
    elsewhere: Vec<AtomicUsize>,
    mutexes: [Mutex<usize>; 2],
    lock: RwLock<usize>,
    condvar: Condvar,
}

impl Shared {
    fn atomic(&self, at: usize) -> &AtomicUsize {
        self.elsewhere.get(at).unwrap_or(&self.atomics[at])
    }
}

impl Op {
    /// Executes the operation. Returns the value that the thread observes.
    fn run(self, shared: &Shared, main: &thread::Thread, id: usize) -> usize {
        match self {
            Op::Load(a) => shared.atomic(a).load(SeqCst),
            Op::Store(a, value) => {
                shared.atomic(a).store(value, SeqCst);
                0
            }
            Op::Add(a) => shared.atomic(a).fetch_add(1, SeqCst),
            Op::Cas(a, b) => shared
                .atomic(a)
                .compare_exchange(b, 2, SeqCst, SeqCst)
                .unwrap_or_else(|found| found + 10),
            Op::Lock(a) => {
                let mut value = shared.mutexes[a].lock().unwrap();
                *value = *value * 3 + id;
                *value
            }
            Op::Nested(a, b) => {
                let outer = shared.mutexes[a].lock().unwrap();
                *outer + *shared.mutexes[b].lock().unwrap()
            }
            Op::TryLock(a) => shared.mutexes[a].try_lock().map_or(99, |value| *value),
            Op::Read => *shared.lock.read().unwrap(),
            Op::Write => {
                *shared.lock.write().unwrap() += id;
                0
            }
            Op::WaitTimeout(a) => {
                let guard = shared.mutexes[a].lock().unwrap();
                let (guard, over) =
                    shared.condvar.wait_timeout(guard, Duration::from_secs(1)).unwrap();
                *guard * 2 + usize::from(over.timed_out())
            }
            Op::Wait(a) => {
                let guard = shared.mutexes[a].lock().unwrap();
                *shared.condvar.wait(guard).unwrap()
            }
            Op::NotifyOne => {
                shared.condvar.notify_one();
                0
            }
            Op::NotifyAll => {
                shared.condvar.notify_all();
                0
            }
            Op::ParkTimeout => {
                thread::park_timeout(Duration::from_secs(1));
                0
            }
            Op::UnparkMain => {
                main.unpark();
                0
            }
            Op::Yield => {
                thread::yield_now();
                0
            }
            // The loop on the second atomic gives up later than the spin detection waits.
            Op::Spin(a) => (0..if a == 0 { 6 } else { 130 })
                .find(|_| {
                    thread::yield_now();
                    shared.atomic(a).load(SeqCst) != 0
                })
                .map_or(50, |_| 51),
        }
    }
}

/// Runs the threads from `id` on. Returns the values that they observe, in order of the threads.
fn run(
    program: &'static Program,
    at: usize,
    shared: &Arc<Shared>,
    main: &thread::Thread,
) -> Vec<Vec<usize>> {
    let (ops, count) = (&program.threads[at], program.threads.len());
    let step = |op: &Op| op.run(shared, main, at + 1);
    let mut seen = Vec::new();
    let mut first = 0;
    if !matches!(program.start, Start::AtOnce) {
        seen.push(step(&ops[0]));
        first = 1;
    }
    let children = match program.start {
        Start::Chained => at + 1..(at + 2).min(count),
        _ if at == 0 => 1..count,
        _ => 0..0,
    };
    let spawn = |child: usize| {
        let (shared, main) = (shared.clone(), main.clone());
        thread::spawn(move || run(program, child, &shared, &main))
    };
    let handles: Vec<_> = children.map(spawn).collect();
    seen.extend(ops[first..].iter().map(step));
    let others = handles.into_iter().flat_map(|handle| handle.join().unwrap());
    [seen].into_iter().chain(others).collect()
}

/// The observations of all executions.
type Results = BTreeSet<Vec<Vec<usize>>>;

/// A check under sequential consistency: a failed `try_lock` does not synchronise, so the default
/// would explore weak memory.
fn sc() -> Check {
    Check::new().memory(Memory::Sc)
}

fn explore(check: &Check, program: &'static Program) -> (Outcome, Results) {
    let results = StdMutex::new(Results::new());
    let outcome = check.clone().keep_going().run(|| {
        let mut shared = Shared::default();
        if let Place::Elsewhere = program.place {
            shared.elsewhere = (0..2).map(|_| AtomicUsize::new(0)).collect();
        }
        let seen = run(program, 0, &Arc::new(shared), &thread::current());
        results.lock().unwrap().insert(seen);
    });
    (outcome, results.into_inner().unwrap())
}

fn kinds(outcome: &Outcome) -> BTreeSet<FailureKind> {
    outcome.findings.iter().map(|finding| finding.failure.kind).collect()
}

/// Whether some schedule leads to a state in which every enabled thread spins: some reductions
/// refuse such programs.
fn spins(program: &'static Program) -> bool {
    let search = || explore(&sc().reduce(Reduction::Source), program);
    match catch_unwind(AssertUnwindSafe(search)) {
        Ok(_) => false,
        Err(panic) => panic
            .downcast::<String>()
            .is_ok_and(|text| text.contains("every thread that can move spins")),
    }
}

#[test]
fn reductions_lose_nothing() {
    let (mut compared, mut deadlocks, mut spinning, mut with_graphs) = (0, 0, 0, 0);
    for seed in 0..400 {
        let program: &'static Program = Box::leak(Box::new(random(seed)));
        let (brute, results) = explore(&sc().order(Order::Executions).executions(6_000), program);
        if brute.stopped.is_some() {
            continue;
        }
        compared += 1;
        deadlocks += usize::from(kinds(&brute).contains(&FailureKind::Deadlock));
        let spins = spins(program);
        spinning += usize::from(spins);
        let all = |what: &str, check: Check| {
            let (outcome, seen) = explore(&check, program);
            let what = format!("{what} on {seed}: {program:?}");
            assert!(outcome.complete, "{what}: {}", outcome.guarantee());
            if spins && outcome.strategy.is_reduced() {
                // A reduction may run a thread that the fair scheduler holds back: the results are
                // then possible too.
                assert!(
                    seen.is_superset(&results) && kinds(&outcome).is_superset(&kinds(&brute)),
                    "{what}"
                );
            } else {
                assert_eq!((&seen, kinds(&outcome)), (&results, kinds(&brute)), "{what}");
                assert_eq!(outcome.traces(), brute.traces(), "{what}");
            }
            outcome
        };
        let optimal = all("optimal", sc().unbounded());
        assert_eq!(optimal.executions(), optimal.traces(), "optimal on {seed}: {program:?}");
        if !spins {
            all("source", sc().reduce(Reduction::Source));
            all("sleep", sc().reduce(Reduction::Sleep));
        }
        if !spins && program.is_synchronised() {
            let graphs = Check::new().memory(Memory::Weak).unbounded().reduce(Reduction::Graphs);
            let graphs = all("graphs", graphs);
            assert_eq!(graphs.executions(), graphs.traces(), "graphs on {seed}: {program:?}");
            with_graphs += 1;
        }
        let icb = all("icb", sc().order(Order::Icb { cache: Cache::Hb }).bound(60));
        for bound in 0..3 {
            let (plain, seen) = explore(&sc().order(Order::ContextBounded).bound(bound), program);
            let within = icb.bounds[(bound as usize).min(icb.bounds.len() - 1)].all;
            assert_eq!(within.traces, plain.traces(), "icb within {bound} on {seed}: {program:?}");
            if !spins {
                let (reduced, fewer) =
                    explore(&sc().reduce(Reduction::CbPor).bound(bound), program);
                let what = format!("cb-por within {bound} on {seed}: {program:?}");
                assert_eq!(
                    (reduced.traces(), reduced.executions()),
                    (plain.traces(), plain.traces()),
                    "{what}"
                );
                assert_eq!((fewer, kinds(&reduced)), (seen, kinds(&plain)), "{what}");
            }
        }
    }
    assert!(with_graphs > 30, "{with_graphs}");
    assert!(compared > 150 && deadlocks > 20 && spinning > 3, "{compared} {deadlocks} {spinning}");
}
