//! The search over execution graphs: litmus tests with exact numbers, and random programs against
//! brute force over the memory and against the axioms of its model.
//!
//! All search orders share the library's memory model, which counts distinct graphs by their
//! fingerprints. So a search over graphs that counts as many graphs as brute force has visited the
//! same graphs, and one with as many executions as graphs has visited each once.

use std::collections::BTreeSet;
use std::sync::Mutex as StdMutex;
use std::time::Duration;

use preempt::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use preempt::sync::{
    Arc, Barrier, Condvar, Mutex, MutexGuard, OnceLock, RwLock, RwLockWriteGuard, mpsc,
};
use preempt::{Check, FailureKind, Memory, Order, Outcome, Reduction, Verdict, thread};
use preempt_litmus::random::{self, Random, Shape};
use preempt_litmus::{Expected, Order as LitmusOrder, axioms, expected};

use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use crate::weak::{explore, weak, within};

fn graphs() -> Check {
    weak().unbounded().reduce(Reduction::Graphs)
}

/// The numbers of executions and of graphs.
fn numbers(outcome: &Outcome) -> (u64, u64) {
    let executions = outcome.tally.map(|tally| tally.executions);
    (executions.expect("executions are counted"), outcome.traces().expect("graphs are counted"))
}

#[test]
fn litmus_tests_have_their_graphs_each_once() {
    let mut wrong = Vec::new();
    for test in expected::all() {
        let (outcome, found) = explore(&graphs().keep_going(), &test);
        let mut kinds: Vec<FailureKind> =
            outcome.findings.iter().map(|finding| finding.failure.kind).collect();
        kinds.dedup();
        let expected = match (test.racy, test.stuck) {
            (0, 0) => None,
            (0, _) => Some(FailureKind::Deadlock),
            _ => Some(FailureKind::Race),
        };
        assert_eq!(kinds, Vec::from_iter(expected), "{}", test.name);
        // The number is not defined for programs with a data race.
        if test.racy > 0 {
            continue;
        }
        let count = test.graphs as u64;
        if numbers(&outcome) != (count, count) || !outcome.complete {
            wrong.push(format!("{}: {:?} instead of {count}", test.name, numbers(&outcome)));
        } else if found != within(&test, u32::MAX) {
            wrong.push(format!("{}: {found:?}", test.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn with_sequentially_consistent_orderings_graphs_are_traces() {
    for test in expected::all().into_iter().filter(|test| test.racy == 0) {
        let program = test.program.with_order(LitmusOrder::SeqCst);
        // A partial-order reduction treats every exchange as a write.
        let has_exchange = program.show().contains(".cas(");
        let all_sc = Expected { program, ..test.clone() };
        let (outcome, found) = explore(&graphs().keep_going(), &all_sc);
        let count = test.graphs_all_sc as u64;
        assert_eq!(numbers(&outcome), (count, count), "{}", test.name);
        let optimal = weak().memory(Memory::Sc).unbounded().keep_going();
        let (optimal, traces) = explore(&optimal, &all_sc);
        assert!(has_exchange || numbers(&optimal).0 == count, "{}", test.name);
        assert_eq!(found, traces, "{}", test.name);
    }
}

#[test]
fn random_programs_have_the_graphs_that_the_axioms_allow() {
    let mut random = Random(15);
    let (mut compared, mut all) = (0, 0);
    while compared < 150 {
        let shape = Shape { threads: 3, length: 4, mutexes: false };
        let program = random::program(&mut random, shape);
        let Some(expected) = axioms::consistent(&program, 10_000) else { continue };
        let count = expected.len() as u64;
        let outcomes: BTreeSet<String> = expected.into_values().collect();
        let test = Expected { program, ..expected::all().remove(0) };
        let (outcome, found) = explore(&graphs(), &test);
        assert_eq!(numbers(&outcome), (count, count), "{}", test.program.show());
        assert_eq!(found, outcomes, "{}", test.program.show());
        (compared, all) = (compared + 1, all + count);
    }
    assert!(all > 1_500, "the programs have few graphs: {all}");
}

#[test]
fn random_programs_have_the_graphs_of_brute_force() {
    let mut random = Random(16);
    let (mut compared, mut all, mut dead) = (0, 0, 0);
    while compared < 100 {
        let shape = Shape { threads: 3, length: 3, mutexes: true };
        let program = random::program(&mut random, shape);
        let test = Expected { program, ..expected::all().remove(0) };
        let brute = weak().unbounded().order(Order::Executions).executions(5_000).keep_going();
        let (brute, outcomes) = explore(&brute, &test);
        if brute.verdict == Verdict::Incomplete || numbers(&brute).0 >= 5_000 {
            continue;
        }
        let (outcome, found) = explore(&graphs().keep_going(), &test);
        let (executions, count) = numbers(&outcome);
        assert_eq!(count, numbers(&brute).1, "{}", test.program.show());
        assert_eq!(executions, count, "{}: a graph twice", test.program.show());
        assert_eq!(found, outcomes, "{}", test.program.show());
        dead += outcome.tally.map_or(0, |tally| tally.pruned);
        (compared, all) = (compared + 1, all + count);
    }
    assert!(all > 200, "the programs have few graphs: {all}");
    assert!(dead * 50 <= all, "{dead} dead ends for {all} graphs");
}

/// An operation of a random program.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Load(Ordering),
    Store(u64, Ordering),
    Add(Ordering),
    Fence(Ordering),
    Lock,
    Unlock,
    TryLock,
    Read,
    ReadUnlock,
    Write,
    WriteUnlock,
    TryRead,
    TryWrite,
    Park,
    Unpark,
    ParkTimeout,
    Barrier,
    Choose,
    Wait,
    WaitTimeout,
    NotifyOne,
    NotifyAll,
    Downgrade,
    Send,
    Receive,
    TryReceive,
    Once,
}

/// The kinds of operations that random programs mix.
#[derive(Clone, Copy, Debug)]
enum Family {
    Memory,
    Mutex,
    RwLock,
    Park,
    Barrier,
    Choice,
    Condvar,
    Timeout,
    Channel,
    Once,
}

fn random_thread(random: &mut Random, families: &[Family]) -> Vec<Operation> {
    let mut code = Vec::new();
    let (mut locked, mut reads, mut writes) = (false, false, false);
    for _ in 0..1 + random.below(3) {
        let way = random.below(4);
        code.push(match families[random.below(families.len())] {
            Family::Memory => match way {
                0 => Operation::Load([Relaxed, Acquire, SeqCst][random.below(3)]),
                1 => Operation::Store(1, [Relaxed, Release, SeqCst][random.below(3)]),
                2 => Operation::Add([Relaxed, AcqRel, SeqCst][random.below(3)]),
                _ => Operation::Fence([Acquire, Release, SeqCst][random.below(3)]),
            },
            Family::Mutex if locked => {
                locked = false;
                Operation::Unlock
            }
            Family::Mutex if way == 0 => Operation::TryLock,
            Family::Mutex => {
                locked = true;
                Operation::Lock
            }
            Family::RwLock if reads => {
                reads = false;
                Operation::ReadUnlock
            }
            Family::RwLock if writes && way == 0 => {
                (reads, writes) = (true, false);
                Operation::Downgrade
            }
            Family::RwLock if writes => {
                writes = false;
                Operation::WriteUnlock
            }
            Family::Condvar | Family::Timeout if !locked && way == 0 => {
                locked = true;
                Operation::Lock
            }
            Family::Condvar if locked && way < 3 => Operation::Wait,
            Family::Timeout if locked && way < 3 => Operation::WaitTimeout,
            Family::Timeout if way == 1 => Operation::ParkTimeout,
            Family::Timeout if way == 2 => Operation::Unpark,
            Family::Condvar if way < 3 => Operation::NotifyOne,
            Family::Condvar | Family::Timeout => Operation::NotifyAll,
            Family::Channel => match way {
                0 => Operation::Receive,
                1 => Operation::TryReceive,
                _ => Operation::Send,
            },
            Family::Once => Operation::Once,
            Family::RwLock => match way {
                0 => Operation::TryRead,
                1 => Operation::TryWrite,
                2 => {
                    reads = true;
                    Operation::Read
                }
                _ => {
                    writes = true;
                    Operation::Write
                }
            },
            Family::Park if way < 2 => Operation::Park,
            Family::Park => Operation::Unpark,
            Family::Barrier => Operation::Barrier,
            Family::Choice => Operation::Choose,
        });
    }
    // Most locks are released.
    code.extend((locked && random.below(5) > 0).then_some(Operation::Unlock));
    code.extend((reads && random.below(5) > 0).then_some(Operation::ReadUnlock));
    code.extend((writes && random.below(5) > 0).then_some(Operation::WriteUnlock));
    code
}

/// The objects of a random program.
struct Objects {
    atomic: AtomicU64,
    mutex: Mutex<u64>,
    lock: RwLock<u64>,
    barrier: Barrier,
    first: StdMutex<Option<thread::Thread>>,
    condvar: Condvar,
    sender: mpsc::SyncSender<u64>,
    once: OnceLock<u64>,
}

/// The first thread has the receiver, the others pass over operations on it.
type Receiver = Option<mpsc::Receiver<u64>>;

fn run_thread(code: &[Operation], objects: &Objects, receiver: &Receiver) -> Vec<u64> {
    let mut seen = Vec::new();
    let (mut guard, mut reader, mut writer) = (None::<MutexGuard<'_, u64>>, None, None);
    for &operation in code {
        match operation {
            Operation::Load(order) => seen.push(objects.atomic.load(order)),
            Operation::Store(value, order) => objects.atomic.store(value, order),
            Operation::Add(order) => seen.push(objects.atomic.fetch_add(2, order)),
            Operation::Fence(order) => fence(order),
            Operation::Lock => guard = Some(objects.mutex.lock().unwrap()),
            Operation::Unlock => {
                let mut guard = guard.take().unwrap();
                *guard += 1;
                seen.push(*guard);
            }
            Operation::TryLock => seen.push(objects.mutex.try_lock().map_or(99, |value| *value)),
            Operation::Read => {
                let guard = objects.lock.read().unwrap();
                seen.push(*guard);
                reader = Some(guard);
            }
            Operation::ReadUnlock => drop(reader.take()),
            Operation::Write => {
                let mut guard = objects.lock.write().unwrap();
                *guard += 1;
                writer = Some(guard);
            }
            Operation::WriteUnlock => drop(writer.take()),
            Operation::TryRead => seen.push(objects.lock.try_read().map_or(99, |value| *value)),
            Operation::TryWrite => seen.push(objects.lock.try_write().map_or(99, |mut value| {
                *value += 1;
                *value
            })),
            Operation::Park => thread::park(),
            Operation::Unpark => {
                let first = objects.first.lock().unwrap().clone();
                first.unwrap().unpark();
            }
            Operation::ParkTimeout => thread::park_timeout(Duration::from_millis(1)),
            Operation::Wait => guard = guard.map(|held| objects.condvar.wait(held).unwrap()),
            Operation::WaitTimeout => {
                let held = guard.take().unwrap();
                let (held, result) =
                    objects.condvar.wait_timeout(held, Duration::from_millis(1)).unwrap();
                seen.push(result.timed_out().into());
                guard = Some(held);
            }
            Operation::NotifyOne => objects.condvar.notify_one(),
            Operation::NotifyAll => objects.condvar.notify_all(),
            Operation::Downgrade => {
                reader = writer.take().map(RwLockWriteGuard::downgrade);
            }
            Operation::Send => objects.sender.send(7).unwrap(),
            Operation::Receive => seen.extend(receiver.iter().map(|it| it.recv().unwrap())),
            Operation::TryReceive => {
                seen.extend(receiver.iter().map(|it| it.try_recv().unwrap_or(99)));
            }
            Operation::Once => seen.push(*objects.once.get_or_init(|| code.len() as u64)),
            Operation::Barrier => seen.push(objects.barrier.wait().is_leader().into()),
            Operation::Choose => seen.push(preempt::choose(2) as u64),
        }
    }
    std::mem::forget((guard, reader, writer));
    seen
}

/// The observations of the threads in one execution.
type Seen = BTreeSet<Vec<Vec<u64>>>;

fn run_objects(program: &[Vec<Operation>], all: &StdMutex<Seen>) {
    let (sender, receiver) = mpsc::sync_channel(1);
    let objects = Arc::new(Objects {
        atomic: AtomicU64::new(0),
        mutex: Mutex::new(0),
        lock: RwLock::new(0),
        barrier: Barrier::new(2),
        first: StdMutex::new(None),
        condvar: Condvar::new(),
        sender,
        once: OnceLock::new(),
    });
    let mut receiver = Some(receiver);
    let threads: Vec<_> = program
        .iter()
        .map(|code| {
            let (code, objects, receiver) = (code.clone(), objects.clone(), receiver.take());
            thread::spawn(move || {
                let seen = run_thread(&code, &objects, &receiver);
                std::mem::forget(receiver);
                seen
            })
        })
        .collect();
    // Spawning is not a step, so no thread has run yet.
    *objects.first.lock().unwrap() = Some(threads[0].thread().clone());
    let seen = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    all.lock().unwrap().insert(seen);
    std::mem::forget(objects);
}

/// Compares programs with brute force. Returns the numbers of programs and of graphs.
fn compare(seed: u64, families: &[Family], programs: usize) -> (usize, u64) {
    let (mut random, mut compared, mut all) = (Random(seed), 0, 0);
    for _ in 0..programs {
        let threads = 2 + random.below(2);
        let program: Vec<_> = (0..threads).map(|_| random_thread(&mut random, families)).collect();
        let (expected, found) = (StdMutex::default(), StdMutex::default());
        let brute = weak().unbounded().order(Order::Executions).executions(3_000).keep_going();
        let Ok(brute) = brute.try_run(|| run_objects(&program, &expected)) else { continue };
        if brute.verdict == Verdict::Incomplete || numbers(&brute).0 >= 3_000 {
            continue;
        }
        let outcome = graphs().keep_going().run(|| run_objects(&program, &found));
        let (executions, count) = numbers(&outcome);
        assert_eq!(count, numbers(&brute).1, "{program:?}");
        assert_eq!(executions, count, "{program:?}: a graph twice");
        assert_eq!(*found.lock().unwrap(), *expected.lock().unwrap(), "{program:?}");
        let deadlocks = |outcome: &Outcome| {
            outcome.findings.iter().any(|it| it.failure.kind == FailureKind::Deadlock)
        };
        assert_eq!(deadlocks(&outcome), deadlocks(&brute), "{program:?}");
        (compared, all) = (compared + 1, all + count);
    }
    (compared, all)
}

#[test]
fn objects_have_the_graphs_of_brute_force() {
    let memory = Family::Memory;
    for (nth, families) in [
        &[Family::Mutex][..],
        &[Family::Mutex, memory],
        &[Family::RwLock],
        &[Family::RwLock, memory],
        &[Family::Park, memory],
        &[Family::Barrier],
        &[Family::Barrier, Family::Mutex, memory],
        &[Family::Choice, memory, Family::Mutex],
        &[Family::Mutex, Family::RwLock, Family::Park, memory],
        &[Family::Condvar],
        &[Family::Condvar, memory],
        &[Family::Condvar, Family::Mutex, Family::RwLock],
        &[Family::Timeout],
        &[Family::Timeout, Family::Condvar, memory],
        &[Family::Channel],
        &[Family::Channel, memory],
        &[Family::Once],
        &[Family::Once, memory],
    ]
    .into_iter()
    .enumerate()
    {
        let (compared, all) = compare(100 + nth as u64, families, 30);
        assert!(compared >= 12 && all >= 25, "{families:?}: {compared} programs, {all} graphs");
    }
}

/// Why a check by graphs is refused.
fn refusal(check: &Check, body: impl Fn() + Sync) -> String {
    check.try_run(body).err().map(|refusal| refusal.to_string()).unwrap_or_default()
}

#[test]
fn unsupported_operations_are_refused_by_name() {
    let wait = refusal(&graphs().spurious_wakeups(), || {
        let pair = Arc::new((Mutex::new(()), Condvar::new()));
        let t = thread::spawn({
            let pair = pair.clone();
            move || pair.1.notify_one()
        });
        drop(pair.1.wait(pair.0.lock().unwrap()));
        t.join().unwrap();
    });
    assert!(wait.contains("`Reduction::Graphs` does not handle `"), "{wait}");
    assert!(wait.contains("graphs.rs:"), "{wait}");
    let assume = refusal(&graphs(), || preempt::assume(false));
    assert!(assume.contains("`Reduction::Graphs` does not handle `"), "{assume}");
    let spin = refusal(&graphs(), || {
        let flag = Arc::new(AtomicBool::new(false));
        let t = thread::spawn({
            let flag = flag.clone();
            move || flag.store(true, Release)
        });
        while !flag.load(Acquire) {
            preempt::hint::spin_loop();
        }
        t.join().unwrap();
    });
    assert!(spin.contains("in a loop that repeats without an effect"), "{spin}");
    let plain = refusal(&graphs(), || {
        let mut atomic = AtomicU64::new(0);
        atomic.store(1, Relaxed);
        *atomic.get_mut() = 2;
        assert_eq!(atomic.load(Relaxed), 2);
    });
    assert!(plain.contains("written through its only reference"), "{plain}");
}

#[test]
fn unsupported_combinations_are_refused() {
    let body = || ();
    let bound = refusal(&weak().bound(2).reduce(Reduction::Graphs), body);
    assert!(bound.contains("`bound`"), "{bound}");
    let jobs = refusal(&graphs().jobs(2), body);
    assert!(jobs.contains("`jobs`"), "{jobs}");
    let sc = refusal(&graphs().memory(Memory::Sc), body);
    assert!(sc.contains("execution graphs of weak memory"), "{sc}");
}

#[test]
fn a_failing_execution_is_found_and_replayed() {
    let outcome = graphs().run(|| {
        let shared = Arc::new((AtomicU64::new(0), AtomicBool::new(false)));
        let t = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.0.store(1, Relaxed);
                shared.1.store(true, Relaxed);
            }
        });
        if shared.1.load(Acquire) {
            assert_eq!(shared.0.load(Relaxed), 1);
        }
        t.join().unwrap();
    });
    let kinds: Vec<FailureKind> = outcome.findings.iter().map(|it| it.failure.kind).collect();
    assert_eq!(kinds, [FailureKind::Panic]);
}
