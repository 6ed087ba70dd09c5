//! Options of executions: input, output, temporary files and time limits.

use std::time::{Duration, Instant};

use preempt_explore::{Cache, Order, Outcome, Plan, Reduction};
use preempt_native::narrate::narrate;
use preempt_native::{Executable, Native};
use preempt_report::recorder::Numbering;
use preempt_system::{FailureKind, Verdict};

use crate::compile::executable;

/// A program of the corpus with changed options.
fn with(name: &str, change: impl FnOnce(&mut Executable)) -> Executable {
    let mut executable = executable(name);
    change(&mut executable);
    executable
}

fn explore(executable: Executable, jobs: usize) -> (Outcome, Native) {
    let plan =
        Plan { order: Order::Icb { cache: Cache::None }, bound: Some(1), jobs, ..Plan::new() };
    executable.suits(&plan).expect("the plan suits executables");
    let search = plan.build_for_program().expect("the plan is possible");
    search.run_program(Native::new(executable), &())
}

#[test]
fn executions_with_different_output_are_found() {
    let (outcome, _) = explore(executable("prints"), 1);
    assert_eq!(outcome.verdict, Verdict::Ok, "the order is only an error if that is asked for");
    let compared = with("prints", |prints| prints.same_output = true);
    for jobs in [1, 2] {
        let (outcome, native) = explore(compared.clone(), jobs);
        let finding = outcome.findings.first().expect("the order of the lines differs");
        assert_eq!(finding.failure.kind, FailureKind::Runtime);
        let message = &finding.failure.message;
        assert!(message.contains("line 1 is `two`, there it is `one`"), "{message}");
        assert_eq!(native.reference_output().as_deref(), Some("one\ntwo\n"));
        let narrated = narrate(&native, &finding.schedule, Numbering::Slots, |_| None);
        assert_eq!(narrated.expect("the execution can be described").output, "two\none\n");
    }
    let same = with("handover", |handover| handover.same_output = true);
    assert_eq!(explore(same.clone(), 1).0.verdict, Verdict::Ok);
    let reduced = Plan { order: Order::Executions, reduction: Reduction::Optimal, ..Plan::new() };
    for plan in [Plan { order: Order::Icb { cache: Cache::Hb }, ..Plan::new() }, reduced] {
        let why = same.suits(&plan).expect_err("independent steps may print");
        assert!(why.contains("may print in another order"), "{why}");
    }
}

#[test]
fn every_execution_reads_its_input_from_the_beginning() {
    let input = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("seven");
    std::fs::write(&input, "7\n").expect("the target folder can be written");
    let reads = with("reads_input", |reads| reads.stdin = Some(input));
    let (outcome, _) = explore(reads, 1);
    assert_eq!(outcome.verdict, Verdict::Ok, "{:?}", outcome.findings);
    assert!(outcome.tally.expect("executions are counted").executions > 1);
}

#[test]
fn every_execution_has_an_empty_directory_for_temporary_files() {
    let fresh = with("temporary_file", |fresh| fresh.temp_dir = true);
    let (outcome, _) = explore(fresh, 2);
    assert_eq!(outcome.verdict, Verdict::Ok, "{:?}", outcome.findings);
    assert!(outcome.tally.expect("executions are counted").executions > 1);
    // Without the option, the second execution finds the file of the first.
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("temporary_file.folder");
    // It may not exist.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).expect("the target folder can be written");
    let environment = vec![("TMPDIR".into(), folder.into())];
    let stale = with("temporary_file", |stale| stale.environment = environment);
    let (outcome, _) = explore(stale, 1);
    assert_eq!(outcome.verdict, Verdict::Nondeterministic);
}

#[test]
fn an_execution_that_takes_too_long_is_stopped() {
    let slow = with("spins", |spins| {
        (spins.max_time, spins.max_turn) =
            (Some(Duration::from_millis(300)), Duration::from_secs(600));
    });
    let started = Instant::now();
    let (outcome, native) = explore(slow, 1);
    let why = native.refusal().expect("the endless program is refused");
    assert!(why.contains("more than 0.3 seconds") && why.contains("--max-time"), "{why}");
    assert!(outcome.findings.is_empty());
    assert!(started.elapsed() < Duration::from_secs(300), "the other limit did not end it");
}
