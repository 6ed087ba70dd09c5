//! Rust programs that use the standard library: threads, panics, and tests under libtest.

use std::path::{Path, PathBuf};
use std::process::Command;

use preempt_explore::{Cache, Order, Outcome, Plan};
use preempt_native::{Executable, Harness, Native};
use preempt_system::{FailureKind, Verdict};

use crate::compile::folder;

/// Compiles a program of the corpus with rustc and these options.
fn compiled(name: &str, options: &[&str]) -> PathBuf {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}_rs"));
    let status = Command::new("rustc")
        .current_dir(folder())
        .args(["-g", "-O", "--edition", "2024", &format!("{name}.rs"), "-o"])
        .arg(&out)
        .args(options)
        .status()
        .expect("rustc can be started");
    assert!(status.success(), "{name}.rs cannot be compiled");
    out
}

fn explored(executable: Executable) -> (Outcome, Native) {
    let plan = Plan { order: Order::Icb { cache: Cache::Hb }, bound: Some(1), ..Plan::new() };
    let search = plan.build_for_program().expect("the plan is possible");
    let (outcome, native) = search.run_program(Native::new(executable), &());
    assert_eq!(native.refusal(), None);
    (outcome, native)
}

#[test]
fn a_panic_is_found_with_its_message_and_its_position() {
    let out = compiled("panics", &[]);
    let executable = Executable::find(&out, Vec::new()).expect("the program can be explored");
    let (outcome, _) = explored(executable);
    let finding = outcome.findings.first().expect("there is an error");
    assert_eq!((finding.failure.kind, finding.preemptions), (FailureKind::Panic, 1));
    let message = &finding.failure.message;
    assert!(message.starts_with("thread main panicked at panics.rs:10: assertion"), "{message}");
    assert!(message.contains("the thread was first"), "{message}");
    let site = finding.failure.site.as_ref().expect("the panic says where it is");
    assert_eq!((&*site.file, site.line), ("panics.rs", 10));
}

#[test]
fn a_panic_is_a_failure_if_the_test_fails() {
    let out = compiled("tests", &["--test"]);
    let test = |name: &str, harness| {
        let args = [name, "--exact", "--test-threads=1"].map(Into::into).to_vec();
        let mut executable = Executable::find(&out, args).expect("the program can be explored");
        executable.harness = harness;
        explored(executable)
    };
    // The main thread of libtest and the thread of the test have only one schedule.
    let (outcome, native) = test("expects_a_panic", Harness::Libtest);
    assert_eq!((outcome.verdict, outcome.executions()), (Verdict::Ok, Some(1)));
    assert_eq!(native.threads(), 2);
    for harness in [Harness::Libtest, Harness::Other] {
        let (outcome, native) = test("handles_a_panic", harness);
        assert_eq!((outcome.verdict, native.threads()), (Verdict::Ok, 3), "{harness:?}");
        let (outcome, _) = test("is_first", harness);
        let failure = &outcome.findings.first().expect("there is an error").failure;
        assert!(failure.message.contains("the thread was first"), "{}", failure.message);
    }
    let (outcome, _) = test("handles_a_panic", Harness::Program);
    assert_eq!(outcome.verdict, Verdict::Panic);
}
