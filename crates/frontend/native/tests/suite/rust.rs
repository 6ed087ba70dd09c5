//! A Rust program with the standard library: its threads and its panics.

use std::path::Path;
use std::process::Command;

use preempt_explore::{Cache, Order, Plan};
use preempt_native::{Executable, Native};
use preempt_system::FailureKind;

use crate::compile::folder;

#[test]
fn a_panic_is_found_with_its_message_and_its_place() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("panics_rs");
    let status = Command::new("rustc")
        .current_dir(folder())
        .args(["-g", "-O", "--edition", "2024", "panics.rs", "-o"])
        .arg(&out)
        .status()
        .expect("rustc can be started");
    assert!(status.success(), "panics.rs cannot be compiled");
    let executable = Executable::find(&out, Vec::new()).expect("it can be explored");
    let plan = Plan { order: Order::Icb { cache: Cache::Hb }, bound: Some(1), ..Plan::new() };
    let search = plan.build_for_program().expect("the plan is possible");
    let (outcome, native) = search.run_program(Native::new(executable), &());
    assert_eq!(native.refusal(), None);
    let finding = outcome.findings.first().expect("there is an error");
    assert_eq!((finding.failure.kind, finding.preemptions), (FailureKind::Panic, 1));
    let message = &finding.failure.message;
    assert!(message.starts_with("thread main panicked: assertion"), "{message}");
    assert!(message.contains("the thread was first"), "{message}");
    let site = finding.failure.site.as_ref().expect("the panic says where it is");
    assert_eq!((&*site.file, site.line), ("panics.rs", 10));
}
