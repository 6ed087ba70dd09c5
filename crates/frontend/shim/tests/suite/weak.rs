//! Weak memory: litmus tests as closures with exact numbers, and programs whose orderings are too
//! weak.

use std::collections::BTreeSet;
use std::sync::Mutex as StdMutex;

use preempt::cell::UnsafeCell;
use preempt::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};
use preempt::sync::{Arc, Mutex};
use preempt::{Cache, Check, FailureKind, Memory, Order, Outcome, Reduction, Verdict, thread};
use preempt_litmus::program::{Change, Next, Position};
use preempt_litmus::random::{self, Random, Shape};
use preempt_litmus::{Expected, Graph, Order as LitmusOrder, Program, axioms, expected, graph};

use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

pub(crate) fn weak() -> Check {
    Check::new().memory(Memory::Weak).quiet().allow_uncontrolled()
}

fn ordering(order: LitmusOrder) -> Ordering {
    match order {
        LitmusOrder::Plain => unreachable!("a plain access has no ordering"),
        LitmusOrder::Relaxed => Relaxed,
        LitmusOrder::Acquire => Acquire,
        LitmusOrder::Release => Release,
        LitmusOrder::AcqRel => AcqRel,
        LitmusOrder::SeqCst => SeqCst,
    }
}

/// A location that is accessed plainly. The race detector sees every access.
struct Plain(UnsafeCell<u64>);

// SAFETY: the threads of a check run one at a time, and racing accesses fail the check.
unsafe impl Sync for Plain {}

/// The locations of a litmus test.
struct Locations {
    atomics: Vec<AtomicU64>,
    plain: Vec<Plain>,
    mutexes: Vec<Mutex<()>>,
}

/// Runs one thread of a litmus test. Returns its registers and its number of stores per location.
fn run_thread(program: &Program, thread: usize, locations: &Locations) -> (Position, Vec<usize>) {
    let code = &program.threads[thread];
    let (mut position, mut stores) = (Position::default(), vec![0; program.locations.len()]);
    let mut guards: Vec<_> = program.locations.iter().map(|_| None).collect();
    loop {
        let mut value = 0;
        match position.next(code) {
            Next::End => break,
            Next::Load(x, LitmusOrder::Plain) => {
                // SAFETY: see `Plain`.
                value = locations.plain[x].0.with(|cell| unsafe { *cell });
            }
            Next::Store(x, new, LitmusOrder::Plain) => {
                // SAFETY: see `Plain`.
                locations.plain[x].0.with_mut(|cell| unsafe { *cell = new });
                stores[x] += 1;
            }
            Next::Load(x, order) => value = locations.atomics[x].load(ordering(order)),
            Next::Store(x, new, order) => {
                locations.atomics[x].store(new, ordering(order));
                stores[x] += 1;
            }
            Next::Update(x, change, success, failure) => {
                let (atomic, order) = (&locations.atomics[x], ordering(success));
                value = match change {
                    Change::Add(summand) => atomic.fetch_add(summand, order),
                    Change::Swap(new) => atomic.swap(new, order),
                    Change::Exchange(expected, new) => {
                        let failure = ordering(failure);
                        let (Ok(old) | Err(old)) =
                            atomic.compare_exchange(expected, new, order, failure);
                        old
                    }
                };
                stores[x] += usize::from(change.new_value(value).is_some());
            }
            Next::Fence(order) => fence(ordering(order)),
            Next::Lock(m) => guards[m] = Some(locations.mutexes[m].lock().unwrap()),
            Next::Unlock(m) => drop(guards[m].take()),
        }
        position.advance(code, value);
    }
    // A mutex that was not released stays locked.
    std::mem::forget(guards);
    (position, stores)
}

/// Runs a litmus test and records its outcome.
fn run(program: &Arc<Program>, outcomes: &StdMutex<BTreeSet<String>>) {
    let all = || program.locations.iter();
    let locations = Arc::new(Locations {
        atomics: all().map(|_| AtomicU64::new(0)).collect(),
        plain: all().map(|_| Plain(UnsafeCell::new(0))).collect(),
        mutexes: all().map(|_| Mutex::new(())).collect(),
    });
    let threads: Vec<_> = (0..program.threads.len())
        .map(|thread| {
            let (program, locations) = (program.clone(), locations.clone());
            thread::spawn(move || run_thread(&program, thread, &locations))
        })
        .collect();
    let ends: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
    let mut stores = Graph::new(program);
    for (location, order) in stores.orders.iter_mut().enumerate() {
        *order = vec![(0, 0); ends.iter().map(|(_, stores)| stores[location]).sum()];
    }
    let text = graph::outcome(
        program,
        &stores,
        |thread, register| ends[thread].0.registers[register],
        |_| false,
        |location| match &program.locations[location][..] {
            // SAFETY: all threads have been joined.
            "d" => locations.plain[location].0.with(|cell| unsafe { *cell }),
            _ => locations.atomics[location].load(SeqCst),
        },
    );
    outcomes.lock().unwrap().insert(text);
}

/// The outcome of a check of a litmus test, and the outcomes of its executions.
pub(crate) fn explore(check: &Check, test: &Expected) -> (Outcome, BTreeSet<String>) {
    let (program, outcomes) = (Arc::new(test.program.clone()), StdMutex::default());
    let outcome = check.run(|| run(&program, &outcomes));
    (outcome, outcomes.into_inner().unwrap())
}

/// The expected outcomes whose cheapest execution costs at most this, in which all threads end.
pub(crate) fn within(test: &Expected, cost: u32) -> BTreeSet<String> {
    let is_within = |outcome: &&preempt_litmus::Outcome| outcome.cost.0 + outcome.cost.1 <= cost;
    let all = test.outcomes.iter().filter(is_within).map(|outcome| outcome.text.clone());
    all.filter(|text| !text.contains("waits")).collect()
}

#[test]
fn litmus_tests_have_their_graphs_and_outcomes_as_closures() {
    for test in expected::all() {
        let (outcome, found) = explore(&weak().unbounded().keep_going(), &test);
        let mut kinds: Vec<FailureKind> =
            outcome.findings.iter().map(|finding| finding.failure.kind).collect();
        kinds.dedup();
        let expected = match (test.racy, test.stuck) {
            (0, 0) => vec![],
            (0, _) => vec![FailureKind::Deadlock],
            _ => vec![FailureKind::Race],
        };
        assert_eq!(kinds, expected, "{}", test.name);
        if test.racy == 0 {
            assert_eq!(outcome.traces(), Some(test.graphs as u64), "{}", test.name);
            assert_eq!(found, within(&test, u32::MAX), "{}", test.name);
            assert!(outcome.complete, "{}", test.name);
        }
    }
}

#[test]
fn a_bound_counts_preemptions_and_stale_accesses() {
    for test in expected::all().into_iter().filter(|test| test.racy == 0) {
        for bound in 0..=2 {
            let (_, found) = explore(&weak().bound(bound).keep_going(), &test);
            assert_eq!(found, within(&test, bound), "{} with bound {bound}", test.name);
        }
    }
}

#[test]
fn other_orders_find_the_same_outcomes() {
    let names = ["SB+rlx+rlx", "MP+rel+acq", "2+2W+rlx", "cas2", "RS+rmw", "dekker+scf"];
    for test in expected::all().into_iter().filter(|test| names.contains(&&test.name[..])) {
        let all = within(&test, u32::MAX);
        let orders =
            [Order::Executions, Order::Icb { cache: Cache::None }, Order::IterativeDepth { by: 5 }];
        for order in orders {
            let (outcome, found) = explore(&weak().unbounded().order(order), &test);
            assert_eq!(found, all, "{} in {order:?}", test.name);
            assert_eq!(outcome.traces(), Some(test.graphs as u64), "{} in {order:?}", test.name);
        }
        for order in [Order::Random, Order::Pct { depth: 3 }, Order::Urw] {
            let (_, found) = explore(&weak().order(order).runs(400), &test);
            assert!(found.is_subset(&all), "{} in {order:?}: {found:?}", test.name);
            assert!(found.len() > 1, "{} in {order:?}: {found:?}", test.name);
        }
        let several = explore(&weak().unbounded().jobs(2), &test);
        assert_eq!(several.1, all, "{} with two workers", test.name);
    }
}

#[test]
fn under_sequential_consistency_litmus_tests_have_their_traces() {
    for test in expected::all().into_iter().filter(|test| test.racy == 0) {
        let program = test.program.with_order(LitmusOrder::SeqCst);
        let all_sc = Expected { program, ..test.clone() };
        let (weak, weak_found) = explore(&weak().unbounded().keep_going(), &all_sc);
        let (sc, sc_found) = explore(&weak_free().unbounded().keep_going(), &all_sc);
        assert_eq!(weak.traces(), Some(test.graphs_all_sc as u64), "{}", test.name);
        // A reduction treats every exchange as a write.
        if !test.program.show().contains(".cas(") {
            assert_eq!(weak.traces(), sc.traces(), "{}", test.name);
        }
        assert_eq!(weak_found, sc_found, "{}", test.name);
    }
}

fn weak_free() -> Check {
    Check::new().quiet().allow_uncontrolled()
}

/// A message passed through a plain cell and a flag.
pub(crate) fn message(store: Ordering, load: Ordering) {
    let shared = Arc::new((Plain(UnsafeCell::new(0)), AtomicBool::new(false)));
    let t = thread::spawn({
        let shared = shared.clone();
        move || {
            // SAFETY: see `Plain`.
            shared.0.0.with_mut(|cell| unsafe { *cell = 1 });
            shared.1.store(true, store);
        }
    });
    if shared.1.load(load) {
        // SAFETY: see `Plain`.
        shared.0.0.with(|cell| assert_eq!(unsafe { *cell }, 1));
    }
    t.join().unwrap();
}

#[test]
fn races_depend_on_the_orderings() {
    assert_eq!(weak().run(|| message(Release, Acquire)).verdict, Verdict::Ok);
    for (store, load) in [(Relaxed, Acquire), (Release, Relaxed)] {
        let outcome = weak().run(|| message(store, load));
        assert_eq!(outcome.findings[0].failure.kind, FailureKind::Race);
    }
}

/// Store buffering: both threads store and read the other's flag.
fn store_buffering(order: Ordering) {
    let [a, b] = [0, 1].map(|_| Arc::new(AtomicU32::new(0)));
    let t = thread::spawn({
        let (a, b) = (a.clone(), b.clone());
        move || {
            a.store(1, order);
            b.load(if order == Release { Acquire } else { order })
        }
    });
    b.store(1, order);
    let mine = a.load(if order == Release { Acquire } else { order });
    let other = t.join().unwrap();
    assert!(mine == 1 || other == 1, "both read 0");
}

#[test]
fn a_report_names_the_store_that_was_not_seen() {
    assert_eq!(weak().run(|| store_buffering(SeqCst)).verdict, Verdict::Ok);
    let sequential = weak_free().memory(Memory::Sc).run(|| store_buffering(Relaxed));
    assert_eq!(sequential.verdict, Verdict::Ok);
    let report = weak().report(|| store_buffering(Release));
    assert!(report.contains("stored 1 in step"), "{report}");
    assert!(report.contains("nothing orders the two"), "{report}");
    assert!(report.contains("0 preemptions and 1 stale read"), "{report}");
    assert!(!report.contains("this would be"), "{report}");
    let json = weak().json(|| store_buffering(Release));
    assert!(json.contains("\"memory\": \"weak\""), "{json}");
    assert_eq!(json.matches("\"access\": \"read\"").count(), 2, "{json}");
    let json = weak_free().memory(Memory::Sc).json(|| store_buffering(SeqCst));
    assert!(json.contains("\"memory\": \"sc\"") && !json.contains("stale"), "{json}");
    let hint = |store, load| {
        let report = weak().report(|| crate::weaken::message(Relaxed, store, load));
        let words: Vec<&str> = report.split_whitespace().collect();
        let from = words.iter().position(|word| *word == "two.").expect("a hint") + 2;
        let until = words[from..].iter().position(|word| *word == "be").expect("its end");
        words[from..=from + until + 1].join(" ").replace("//", "").replace("  ", " ")
    };
    let both = "is stored in step 2 with Relaxed and loaded in step 4 with Relaxed: with Release \
                and Acquire this would be 7";
    assert_eq!(hint(Relaxed, Relaxed), both);
    let store = "is stored in step 2 with Relaxed: with Release this would be 7";
    assert_eq!(hint(Relaxed, Acquire), store);
    let load = "is loaded in step 4 with Relaxed: with Acquire this would be 7";
    assert_eq!(hint(Release, Relaxed), load);
    let pass = weak().report(|| store_buffering(SeqCst));
    assert!(pass.contains("weak memory, without load buffering"), "{pass}");
}

#[test]
fn a_finding_is_replayed_by_its_token() {
    let report = weak().report(|| store_buffering(Relaxed));
    let token = report.split("PREEMPT_REPLAY=").nth(1).expect("the report has a token");
    let token = token.split(['\'', ' ', '\n']).find(|word| !word.is_empty()).unwrap();
    let outcome = weak().replay(token).run(|| store_buffering(Relaxed));
    assert_eq!(outcome.findings.len(), 1, "{token}");
}

#[test]
fn reductions_are_refused() {
    for reduction in [Reduction::Sleep, Reduction::Optimal, Reduction::CbPor] {
        let refusal = weak().unbounded().reduce(reduction).try_run(|| message(Release, Acquire));
        let text = refusal.err().map(|refusal| refusal.to_string()).unwrap_or_default();
        assert!(text.contains("cannot be combined with weak memory"), "{reduction:?}: {text}");
    }
}

#[test]
fn loops_that_wait_for_a_flag_end() {
    let wait = |store: Ordering, load: Ordering| {
        move || {
            let shared = Arc::new((AtomicU32::new(0), AtomicBool::new(false)));
            let t = thread::spawn({
                let shared = shared.clone();
                move || {
                    shared.0.store(1, Relaxed);
                    shared.1.store(true, store);
                }
            });
            while !shared.1.load(load) {
                preempt::hint::spin_loop();
            }
            assert_eq!(shared.0.load(Relaxed), 1);
            t.join().unwrap();
        }
    };
    for check in [weak().unbounded(), weak().bound(3), weak().order(Order::Random)] {
        assert_eq!(check.run(wait(Release, Acquire)).verdict, Verdict::Ok);
        let outcome = check.run(wait(Relaxed, Acquire));
        assert_eq!(outcome.findings[0].failure.kind, FailureKind::Panic);
    }
}

#[test]
fn a_spin_lock_with_a_relaxed_unlock_protects_nothing() {
    let locked = |unlock: Ordering| {
        move || {
            let shared = Arc::new((AtomicBool::new(false), Plain(UnsafeCell::new(0))));
            let add = move |shared: &(AtomicBool, Plain)| {
                while shared.0.compare_exchange(false, true, Acquire, Relaxed).is_err() {
                    preempt::hint::spin_loop();
                }
                // SAFETY: see `Plain`.
                shared.1.0.with_mut(|cell| unsafe { *cell += 1 });
                shared.0.store(false, unlock);
            };
            let t = thread::spawn({
                let shared = shared.clone();
                move || add(&shared)
            });
            add(&shared);
            t.join().unwrap();
            // SAFETY: see `Plain`.
            shared.1.0.with(|cell| assert_eq!(unsafe { *cell }, 2));
        }
    };
    assert_eq!(weak().unbounded().run(locked(Release)).verdict, Verdict::Ok);
    let outcome = weak().run(locked(Relaxed));
    assert_eq!(outcome.findings[0].failure.kind, FailureKind::Race);
}

#[test]
fn pointers_are_published_and_reclaimed() {
    let publish = |store: Ordering| {
        move || {
            let shared = Arc::new((Plain(UnsafeCell::new(0)), AtomicPtr::default()));
            let t = thread::spawn({
                let shared = shared.clone();
                move || {
                    // SAFETY: see `Plain`.
                    shared.0.0.with_mut(|cell| unsafe { *cell = 1 });
                    shared.1.store(std::ptr::from_ref(&shared.0).cast_mut(), store);
                }
            });
            let published = shared.1.load(Acquire);
            if !published.is_null() {
                // SAFETY: the tuple lives until both threads have dropped it.
                unsafe { &*published }.0.with(|cell| assert_eq!(unsafe { *cell }, 1));
            }
            t.join().unwrap();
        }
    };
    assert_eq!(weak().run(publish(Release)).verdict, Verdict::Ok);
    assert_eq!(weak().run(publish(Relaxed)).findings[0].failure.kind, FailureKind::Race);
}

/// A pointer that threads share by their own rules.
#[derive(Clone, Copy)]
struct Raw(*mut AtomicUsize);

// SAFETY: the threads of a check run one at a time.
unsafe impl Send for Raw {}

impl Raw {
    fn get(self) -> *mut AtomicUsize {
        self.0
    }
}

#[test]
fn a_plain_access_through_the_only_reference_can_race() {
    // The other thread hands over its share by a flag, as the last owner of an `Arc` does.
    let hand_over = |order: Ordering| {
        move || {
            let counter = Raw(Box::into_raw(Box::new(AtomicUsize::new(0))));
            let done = Arc::new(AtomicBool::new(false));
            let t = thread::spawn({
                let done = done.clone();
                move || {
                    // SAFETY: the counter is freed after the join.
                    unsafe { &*counter.get() }.store(5, Relaxed);
                    done.store(true, order);
                }
            });
            if done.load(Acquire) {
                // SAFETY: the other thread does not use it any more.
                let _ = *unsafe { &mut *counter.get() }.get_mut();
            }
            t.join().unwrap();
            // SAFETY: it came from a box, and the other thread has ended.
            drop(unsafe { Box::from_raw(counter.get()) });
        }
    };
    assert_eq!(weak().run(hand_over(Release)).verdict, Verdict::Ok);
    assert_eq!(weak().run(hand_over(Relaxed)).findings[0].failure.kind, FailureKind::Race);
}

#[test]
fn a_weak_exchange_fails_spuriously_on_the_expected_value_only() {
    let results = StdMutex::new(BTreeSet::new());
    let outcome = weak().weak_cas_failures().unbounded().run(|| {
        let x = Arc::new(AtomicU32::new(0));
        let t = thread::spawn({
            let x = x.clone();
            move || x.store(1, Relaxed)
        });
        let result = x.compare_exchange_weak(0, 2, Relaxed, Relaxed);
        t.join().unwrap();
        results.lock().unwrap().insert((result, x.load(Relaxed)));
    });
    assert_eq!(outcome.verdict, Verdict::Ok);
    let expected = [(Ok(0), 1), (Err(0), 1), (Err(1), 1), (Ok(0), 2)];
    // If the exchange succeeds on 0, it immediately follows the initial value, so 1 is last.
    let expected: BTreeSet<_> = expected.into_iter().filter(|&(_, last)| last == 1).collect();
    assert_eq!(*results.lock().unwrap(), expected);
}

#[test]
fn random_programs_have_the_outcomes_that_the_axioms_allow() {
    let mut random = Random(11);
    let shape = Shape { threads: 3, length: 3, mutexes: false };
    let mut compared = 0;
    while compared < 60 {
        let program = random::program(&mut random, shape);
        let Some(graphs) = axioms::consistent(&program, 5_000) else { continue };
        let outcomes: BTreeSet<String> = graphs.values().cloned().collect();
        let (shared, found) = (Arc::new(program), StdMutex::default());
        let outcome = weak().unbounded().run(|| run(&shared, &found));
        assert_eq!(found.into_inner().unwrap(), outcomes, "{}", shared.show());
        assert_eq!(outcome.traces(), Some(graphs.len() as u64), "{}", shared.show());
        compared += 1;
    }
}
