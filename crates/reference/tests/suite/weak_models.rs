//! Models with weak memory: the litmus tests of the corpus with their exact numbers, and random
//! programs against the axioms of the memory model.

use std::collections::BTreeSet;

use preempt_explore::{Cache, Order, Outcome, Plan, Reduction, Subject};
use preempt_lang::source::Source;
use preempt_litmus::{Expected, Order as LitmusOrder, expected};
use preempt_machine::Machine;
use preempt_reference::compare::weak::{
    WeakVerdict, asserted, compare_weak, graphs, numbers, search, weak,
};
use preempt_reference::compare::weak_objects::{OBJECTS, compare_objects};
use preempt_reference::litmus_models::{model, model_of_outcomes};
use preempt_system::FailureKind;

fn machine(text: &str) -> Machine {
    preempt_lang::load(&Source::new("litmus.pre", text), &[])
        .unwrap_or_else(|errors| panic!("{text}\n{errors:?}"))
}

/// The outcomes of all executions within the plan.
fn outcomes(plan: Plan, test: &Expected) -> BTreeSet<String> {
    let texts = test.outcomes.iter().map(|outcome| &*outcome.text);
    let text = model_of_outcomes(&test.program, texts.filter(|text| !text.contains("waits")));
    asserted(plan, &text)
}

/// The expected outcomes whose cheapest execution costs at most this, in which all threads end.
fn within(test: &Expected, cost: u32) -> BTreeSet<String> {
    let all = test.outcomes.iter().filter(|outcome| outcome.cost.0 + outcome.cost.1 <= cost);
    all.map(|outcome| outcome.text.clone()).filter(|text| !text.contains("waits")).collect()
}

fn kinds(outcome: &Outcome) -> Vec<FailureKind> {
    let kinds = outcome.findings.iter().map(|finding| finding.failure.kind);
    let mut kinds: Vec<FailureKind> = kinds.collect();
    kinds.dedup();
    kinds
}

fn expected_kinds(test: &Expected) -> Vec<FailureKind> {
    match (test.racy, test.stuck) {
        (0, 0) => vec![],
        (0, _) => vec![FailureKind::Deadlock],
        _ => vec![FailureKind::Race],
    }
}

#[test]
fn litmus_tests_have_their_graphs_each_once_as_models() {
    let mut wrong = Vec::new();
    for test in expected::all() {
        let outcome = search(graphs().keep_going(), &model(&test.program));
        assert_eq!(kinds(&outcome), expected_kinds(&test), "{}", test.name);
        // Nothing is said about what follows a data race.
        if test.racy > 0 {
            continue;
        }
        let count = test.graphs as u64;
        if numbers(&outcome) != (count, count) || !outcome.complete {
            wrong.push(format!("{}: {:?} instead of {count}", test.name, numbers(&outcome)));
        }
        let found = outcomes(graphs(), &test);
        if found != within(&test, u32::MAX) {
            wrong.push(format!("{}: {found:?}", test.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn icb_finds_the_same_graphs_and_outcomes_of_models() {
    for test in expected::all() {
        let outcome = search(weak().keep_going(), &model(&test.program));
        assert_eq!(kinds(&outcome), expected_kinds(&test), "{}", test.name);
        if test.racy == 0 {
            assert_eq!(outcome.traces(), Some(test.graphs as u64), "{}", test.name);
            assert!(outcome.complete, "{}", test.name);
        }
    }
}

#[test]
fn outcomes_of_models_need_their_preemptions_and_stale_accesses() {
    for test in expected::all().into_iter().filter(|test| test.racy == 0) {
        for bound in 0..=2 {
            let found = outcomes(Plan { bound: Some(bound), ..weak() }, &test);
            assert_eq!(found, within(&test, bound), "{} with bound {bound}", test.name);
        }
    }
}

#[test]
fn other_orders_find_the_same_outcomes_of_models() {
    let names = ["SB+rlx+rlx", "MP+rel+acq", "2+2W+rlx", "cas2", "RS+rmw", "dekker+scf"];
    for test in expected::all().into_iter().filter(|test| names.contains(&&test.name[..])) {
        let all = within(&test, u32::MAX);
        for order in [Order::Executions, Order::Icb { cache: Cache::None }] {
            assert_eq!(outcomes(weak().order(order), &test), all, "{} in {order:?}", test.name);
        }
        for order in [Order::Random, Order::Pct { depth: 3 }, Order::Urw] {
            let found = outcomes(Plan { runs: 400, ..weak().order(order) }, &test);
            assert!(found.is_subset(&all), "{} in {order:?}: {found:?}", test.name);
            assert!(found.len() > 1, "{} in {order:?}: {found:?}", test.name);
        }
        let several = outcomes(Plan { jobs: 2, ..weak() }, &test);
        assert_eq!(several, all, "{} with two workers", test.name);
    }
}

#[test]
fn with_sequentially_consistent_orderings_the_graphs_of_models_are_traces() {
    for test in expected::all().into_iter().filter(|test| test.racy == 0) {
        let program = test.program.with_order(LitmusOrder::SeqCst);
        let text = model(&program);
        let count = test.graphs_all_sc as u64;
        let outcome = search(graphs().keep_going(), &text);
        assert_eq!(numbers(&outcome), (count, count), "{}", test.name);
        // A partial-order reduction takes every exchange for a write.
        if !program.show().contains(".cas(") {
            let sc = Plan { shrink: None, ..Plan::new() }.keep_going();
            let sc = sc.choose(None, Some(Reduction::Optimal), Subject::Model);
            let optimal = search(sc, &text.replace("memory weak;", "memory sc;"));
            assert_eq!(numbers(&optimal).0, count, "{}", test.name);
        }
    }
}

/// An access before a fence does not happen after it, although both have the same time of their
/// thread: the memory once refused the last load where the fence of `b` came before that of `c`, so
/// that this order of the threads lost a graph.
#[test]
fn a_fence_does_not_happen_before_the_accesses_before_it() {
    let text = "memory weak;
        atomic var x = 0;
        thread a { store(x, 1, relaxed); }
        thread b { store(x, 1, relaxed); var r = load(x, relaxed); fence(seq_cst); }
        thread c { var r = load(x, relaxed); fence(seq_cst); var s = load(x, relaxed); }";
    assert_eq!(numbers(&search(graphs().keep_going(), text)), (18, 18));
    let all = weak().order(Order::Executions).keep_going();
    assert_eq!(numbers(&search(all, text)), (1_344, 18));
}

#[test]
fn random_models_have_the_graphs_of_brute_force() {
    let (mut compared, mut all, mut dead) = (0, 0, 0);
    for seed in 0..600 {
        match compare_weak(seed) {
            WeakVerdict::Agree { graphs, dead_ends } => {
                (compared, all, dead) = (compared + 1, all + graphs, dead + dead_ends);
            }
            WeakVerdict::TooLarge => {}
            WeakVerdict::Disagree(what) => panic!("seed {seed}: {what}"),
        }
    }
    assert!(compared > 400 && all > 3_000, "{compared} programs with {all} graphs");
    assert!(dead * 50 <= all, "{dead} dead ends for {all} graphs");
}

#[test]
fn random_models_with_objects_have_the_graphs_of_brute_force() {
    for object in OBJECTS {
        let (mut compared, mut all) = (0, 0);
        for seed in 0..60 {
            match compare_objects(object, seed) {
                WeakVerdict::Agree { graphs, .. } => (compared, all) = (compared + 1, all + graphs),
                WeakVerdict::TooLarge => {}
                WeakVerdict::Disagree(what) => panic!("{object:?}, seed {seed}: {what}"),
            }
        }
        assert!(compared > 30 && all > 60, "{object:?}: {compared} programs with {all} graphs");
    }
}

#[test]
fn loops_end_and_wait_for_the_newest_stores() {
    let spin = |order| {
        let text = format!(
            "memory weak; var data = 0; atomic var flag = 0;
             thread writer {{ data = 42; store(flag, 1, {order}); }}
             thread reader {{ while load(flag, acquire) == 0 {{ }} assert data == 42; }}"
        );
        search(weak(), &text)
    };
    let right = spin("release");
    assert!(right.complete && right.findings.is_empty());
    assert_eq!(kinds(&spin("relaxed")), [FailureKind::Race]);
    let locked = "memory weak; atomic var locked = false; var x = 0;
        thread t(i in 0..2) {
            while swap(locked, true, acquire) { skip; }
            x += 1;
            store(locked, false, release);
        }";
    let right = search(weak(), locked);
    assert!(right.complete && right.findings.is_empty());
    let wrong = search(weak(), &locked.replace("release", "relaxed"));
    assert_eq!(kinds(&wrong), [FailureKind::Race]);
    let never = "memory weak; atomic var x = 0; thread t { while load(x, relaxed) == 0 { } }";
    assert_eq!(kinds(&search(weak(), never)), [FailureKind::Livelock]);
    // Two rounds with an old value, and then the newest one: no livelock.
    let both = "memory weak; atomic var x = 0; atomic var y = 0;
        thread a { store(x, 1, relaxed); store(y, 1, relaxed); }
        thread b { while load(y, relaxed) == 0 || load(x, relaxed) == 0 { } }";
    let right = search(weak(), both);
    assert!(right.complete && right.findings.is_empty());
}

#[test]
fn what_weak_memory_does_not_admit_is_refused() {
    let text = "memory weak; atomic var x = 0; thread t { while x == 1 { } x = 1; }";
    let refusal = |plan: Plan| match plan.build() {
        Err(refusal) => refusal.to_string(),
        Ok(search) => search.suits(&machine(text)).expect_err("it is refused").to_string(),
    };
    let orders = [Order::BreadthFirst, Order::DepthFirst, Order::Icb { cache: Cache::State }];
    for order in orders {
        let refused = refusal(weak().order(order));
        assert!(refused.contains("weak memory"), "{order:?}: {refused}");
    }
    for reduction in [Reduction::Sleep, Reduction::Source, Reduction::Optimal] {
        let refused = refusal(weak().choose(None, Some(reduction), Subject::WeakModel));
        assert!(refused.contains("weak memory"), "{reduction:?}: {refused}");
    }
    assert!(refusal(Plan::new()).contains("another memory model"));
    assert!(refusal(graphs()).contains("a loop that may repeat forever (litmus.pre:1)"));
    let search = graphs().build().expect("the plan is possible");
    let condvar = machine("memory weak; condvar c; thread u { c.notify_one(); }");
    assert!(search.suits(&condvar).is_err());
}
