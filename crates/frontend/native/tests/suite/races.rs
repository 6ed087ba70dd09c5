//! Data races on plain memory are found, and programs without data races pass.

use preempt_explore::{Cache, Limits, Order, Outcome, Plan};
use preempt_native::{Executable, Level, Native};
use preempt_system::Verdict;

use crate::compile::instrumented;

/// Correct uses of the standard library (`race_free.rs`).
const FREE: [&str; 13] = [
    "mutex",
    "condvar",
    "condvar_timeout",
    "rwlock",
    "channel",
    "rendezvous",
    "arc",
    "once",
    "cells",
    "barrier",
    "park",
    "scope",
    "fences",
];

/// The maximal number of executions of each program.
const EXECUTIONS: u64 = 300;

fn explore(name: &str, argument: Option<&str>, keep_going: bool) -> (Outcome, Native) {
    let path = instrumented(name, Level::Memory);
    let args = argument.iter().map(Into::into).collect();
    let native = Native::new(Executable::find(&path, args).expect("the program can be explored"));
    let order = Order::Icb { cache: Cache::Hb };
    let limits = Limits { executions: Some(EXECUTIONS), ..Limits::default() };
    let plan = Plan { order, bound: Some(2), limits, keep_going, ..Plan::new() };
    let search = plan.build_for_program().expect("the plan is possible");
    let (outcome, native) = search.run_program(native, &());
    assert_eq!(native.refusal(), None, "{name} {argument:?}");
    (outcome, native)
}

#[test]
fn both_accesses_of_a_race_are_named() {
    for (name, argument, preemptions, executions, words) in [
        ("race_counter", None, 0, 1, ["on count: ", "race_counter.c:7 "]),
        ("race_publish", None, 1, 2, ["on value: ", "race_publish.c:9 "]),
        ("race_cell", None, 0, 1, ["on race_cell::CELL: ", "race_cell.rs:23, "]),
        ("race_cell", Some("relaxed"), 0, 1, ["on race_cell::CELL: ", "race_cell.rs:29, "]),
    ] {
        let (outcome, _) = explore(name, argument, false);
        assert_eq!(outcome.verdict, Verdict::Race, "{name} {argument:?}");
        let finding = outcome.findings.first().expect("there is an error");
        let message = &finding.failure.message;
        assert!(words.iter().all(|words| message.contains(words)), "{message}");
        assert!(
            message.contains(" writes at ") && message.contains("no synchronisation"),
            "{message}"
        );
        let numbers = (finding.preemptions, outcome.executions());
        assert_eq!(numbers, (preemptions, Some(executions)), "{name} {argument:?}");
    }
}

#[test]
fn programs_whose_accesses_are_ordered_have_no_races() {
    let twins = [
        ("race_counter_locked", None),
        ("race_publish_fence", None),
        ("race_cell", Some("acquire")),
    ];
    let std = FREE.map(|argument| ("race_free", Some(argument)));
    for (name, argument) in twins.into_iter().chain(std) {
        let (outcome, native) = explore(name, argument, true);
        assert_eq!(outcome.findings, [], "{name} {argument:?}");
        let assumptions = native.assumptions();
        let words = "was not built with this instrumentation is not disturbed between two \
                     scheduling points, and has no data races";
        assert!(assumptions[0].contains(words), "{name}: {assumptions:?}");
        let functions = "includes memcpy, memset, free and other functions of the C library";
        assert!(assumptions[0].contains(functions), "{name}: {assumptions:?}");
        assert!(native.oversynchronised().is_some(), "{name}: races are looked for");
    }
}

#[test]
fn races_can_be_ignored() {
    let path = instrumented("race_counter", Level::Memory);
    let mut executable = Executable::find(&path, Vec::new()).expect("the program can be explored");
    executable.races = false;
    let plan = Plan { order: Order::Icb { cache: Cache::Hb }, bound: Some(1), ..Plan::new() };
    let search = plan.build_for_program().expect("the plan is possible");
    let (outcome, native) = search.run_program(Native::new(executable), &());
    assert_eq!((outcome.verdict, native.oversynchronised()), (Verdict::Ok, None));
    let assumptions = native.assumptions();
    assert!(assumptions[0].ends_with("and that there are no data races"), "{assumptions:?}");
}
