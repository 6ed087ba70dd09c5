//! Programs built with instrumentation, so that their atomic operations are scheduling points.

use preempt_explore::{Cache, Order, Outcome, Plan, Reduction};
use preempt_native::narrate::narrate;
use preempt_native::{Executable, Level, Native};
use preempt_report::recorder::Numbering;
use preempt_system::{FailureKind, Verdict};

use crate::compile::instrumented;

fn native(name: &str, level: Level) -> Native {
    let path = instrumented(name, level);
    let native =
        Native::new(Executable::find(&path, Vec::new()).expect("the program can be explored"));
    assert_eq!(native.level(), level, "{name}");
    native
}

fn explore(name: &str, level: Level, plan: Plan) -> (Outcome, Native) {
    let search = plan.build_for_program().expect("the plan is possible");
    let (outcome, native) = search.run_program(native(name, level), &());
    assert_eq!(native.refusal(), None, "{name}");
    (outcome, native)
}

fn icb(bound: u32) -> Plan {
    Plan { order: Order::Icb { cache: Cache::Hb }, bound: Some(bound), ..Plan::new() }
}

#[test]
fn an_update_is_lost_between_a_load_and_a_store() {
    for (name, level) in [
        ("atomic_lost_update", Level::Memory),
        ("atomic_counter", Level::Atomics),
        ("atomic_counter", Level::Memory),
    ] {
        let (outcome, native) = explore(name, level, icb(2));
        let finding = outcome.findings.first().expect("there is an error");
        assert_eq!(finding.preemptions, 1, "{name}");
        let narrated = narrate(&native, &finding.schedule, Numbering::Slots, |_| None);
        let steps = narrated.expect("a finding can be described").replayed.trace.steps;
        let effects: Vec<&String> = steps.iter().flat_map(|step| &step.narration.effects).collect();
        let effect = |end: &str| {
            effects
                .iter()
                .any(|words| words.to_lowercase().contains("count") && words.ends_with(end))
        };
        for end in [".load() = 0", ": 0 → 1", ": 1 → 1", ".load() = 1"] {
            assert!(effect(end), "{name}: both store the same value: {effects:?}");
        }
    }
}

#[test]
fn code_after_a_write_can_be_interrupted() {
    let (outcome, _) = explore("take_twice", Level::Atomics, icb(1));
    let finding = outcome.findings.first().expect("there is an error");
    assert_eq!((finding.failure.kind, finding.preemptions), (FailureKind::Panic, 1));
}

#[test]
fn all_sizes_and_operations_do_what_they_should() {
    let (outcome, _) = explore("atomic_operations", Level::Memory, icb(1));
    assert_eq!(outcome.findings, [], "the program checks each result");
    assert_eq!(outcome.verdict, Verdict::Ok);
    let status = std::process::Command::new(instrumented("atomic_operations", Level::Memory))
        .status()
        .expect("an instrumented program runs on its own");
    assert!(status.success());
}

#[test]
fn a_futex_wait_depends_on_writes_to_its_word() {
    let (all, _) = explore("futex_word", Level::Memory, icb(2));
    assert_eq!(all.verdict, Verdict::Ok, "{:?}", all.findings);
    let optimal = Plan { order: Order::Executions, reduction: Reduction::Optimal, ..Plan::new() };
    let (optimal, _) = explore("futex_word", Level::Memory, optimal);
    assert_eq!(optimal.verdict, Verdict::Ok, "{:?}", optimal.findings);
    let (lost, _) = explore("futex_word_lost", Level::Memory, icb(2));
    assert_eq!(lost.verdict, Verdict::Deadlock, "{:?}", lost.findings);
}

#[test]
fn a_thread_that_waits_in_a_loop_is_held_back_and_the_report_says_so() {
    for (name, level, words) in [
        ("spin_lock", Level::Memory, "spin_lock.c:10 waits"),
        ("spin_flags", Level::Atomics, "spin_flags.rs:18 waits"),
    ] {
        let (outcome, native) = explore(name, level, icb(2));
        assert_eq!(outcome.findings, [], "{name}");
        assert_eq!(outcome.verdict, Verdict::Ok, "{name}");
        let assumptions = native.assumptions();
        assert!(assumptions.iter().any(|text| text.contains(words)), "{name}: {assumptions:?}");
        assert!(native.omits_executions(), "{name}");
    }
}

#[test]
fn an_infinite_loop_reaches_the_step_limit() {
    let path = instrumented("spin_forever", Level::Memory);
    let mut executable = Executable::find(&path, Vec::new()).expect("the program can be explored");
    executable.max_steps = 200;
    let search = icb(1).build_for_program().expect("the plan is possible");
    let (outcome, native) = search.run_program(Native::new(executable), &());
    assert_eq!(native.refusal(), None);
    assert_eq!(outcome.findings[0].failure.kind, FailureKind::StepLimit);
}
