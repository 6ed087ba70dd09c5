//! Programs without instrumentation whose locked instructions are patched: `corpus/native/locked`.
//!
//! `BLESS=1` rewrites the file of expected numbers. Read the diff.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use preempt_explore::{Cache, Order, Outcome, Plan, Reduction};
use preempt_native::{Executable, Level, Native};
use preempt_system::{MemoryModel, Verdict};

use crate::compile::{compile_once, folder, gcc, instrumented};

/// The beginning of the file of expected numbers.
const HEAD: &str = "\
# Measured: verdict and fewest preemptions with patched instructions; executions of icb without a
# cache up to each bound; the number of patched instructions; the verdict without patching.

";

fn compiled(name: &str) -> PathBuf {
    gcc(&folder().join("locked"), name, &[])
}

/// The program with its locked instructions as scheduling points.
fn patched(path: &Path) -> Executable {
    let mut executable = Executable::find(path, Vec::new()).expect("the program can be explored");
    executable.patch_atomics().expect("the program is not instrumented");
    executable
}

fn plan(bound: u32) -> Plan {
    Plan { order: Order::Icb { cache: Cache::None }, bound: Some(bound), ..Plan::new() }
}

fn explore(executable: Executable, plan: Plan) -> (Outcome, Native) {
    assert_eq!(executable.suits(&plan), Ok(()));
    let search = plan.build_for_program().expect("the plan is possible");
    let (outcome, native) = search.run_program(Native::new(executable), &());
    assert_eq!(native.refusal(), None);
    (outcome, native)
}

fn programs() -> Vec<String> {
    let files = std::fs::read_dir(folder().join("locked")).expect("the corpus can be read");
    let paths = files.map(|file| file.expect("the corpus can be read").path());
    let sources = paths.filter(|path| path.extension().is_some_and(|end| end == "c"));
    let mut names: Vec<String> = sources
        .map(|path| path.file_stem().expect("a file has a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Verdict and numbers of a program with patched instructions, and its verdict without.
fn numbers(name: &str) -> String {
    let path = compiled(name);
    // One execution of this one has thousands of steps.
    let bound = if name == "operations" { 0 } else { 2 };
    let (outcome, native) = explore(patched(&path), Plan { keep_going: true, ..plan(bound) });
    let mut text = format!("[{name}]\nverdict = {:?}\n", outcome.verdict.word());
    if let Some(finding) = outcome.findings.iter().min_by_key(|finding| finding.preemptions) {
        let _ = writeln!(text, "preemptions = {}", finding.preemptions);
        let _ = writeln!(text, "message = {:?}", finding.failure.message);
    }
    let per_bound: Vec<String> =
        outcome.bounds.iter().map(|bound| bound.all.executions.to_string()).collect();
    let _ = writeln!(text, "executions = [{}]", per_bound.join(", "));
    let _ = writeln!(text, "patched = {}", native.patched());
    let unmodified = Executable::find(&path, Vec::new()).expect("the program can be explored");
    let (outcome, native) = explore(unmodified, plan(bound));
    assert_eq!((native.level(), native.patched()), (Level::Calls, 0));
    let _ = writeln!(text, "without = {:?}\n", outcome.verdict.word());
    text
}

#[test]
fn every_program_has_its_verdict_and_its_numbers() {
    let names = programs();
    let numbers: String = names.iter().map(|name| numbers(name)).collect();
    let actual = format!("{HEAD}{}\n", numbers.trim_end());
    let path = folder().join("locked/numbers.toml");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &actual).expect("the corpus can be written");
    }
    let expected = std::fs::read_to_string(&path).expect("the expected numbers can be read");
    assert_eq!(actual, expected);
}

/// The number of atomic instructions of a program, as `objdump` prints them, without fences.
fn disassembled(path: &Path) -> usize {
    let output = Command::new("objdump").args(["-d", "-w", "-M", "intel"]).arg(path).output();
    let text = String::from_utf8_lossy(&output.expect("objdump is installed with gcc").stdout)
        .into_owned();
    let is_atomic = |line: &&str| {
        let exchanges = line.contains("\txchg ") && line.contains('[');
        let is_fence = line.contains(" or ") && line.contains("[rsp") && line.ends_with(",0x0");
        (line.contains("\tlock ") || exchanges) && !is_fence
    };
    text.lines().filter(is_atomic).count()
}

/// A Rust program, optimised and without instrumentation.
fn rust() -> PathBuf {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("locked_two_locks");
    let mut compiler = Command::new("rustc");
    compiler.args(["-g", "-O", "--edition", "2024"]).current_dir(folder().join("locked"));
    compile_once(&mut compiler, Path::new("two_locks.rs"), &out);
    out
}

#[test]
fn all_atomic_instructions_of_a_rust_program_are_patched() {
    let path = rust();
    let (outcome, native) = explore(patched(&path), plan(1));
    let finding = outcome.findings.first().expect("the program loses an update");
    assert_eq!((outcome.verdict, finding.preemptions), (Verdict::Panic, 1));
    assert_eq!(native.level(), Level::Locked);
    assert_eq!(native.patched() as usize, disassembled(&path), "{}", native.visibility());
    assert!(native.visibility().contains(&format!("({} patched)", native.patched())));
    // Without patching, the locks' atomic instructions are not visible.
    let unmodified = Executable::find(&path, Vec::new()).expect("the program can be explored");
    let (outcome, _) = explore(unmodified, plan(1));
    assert_eq!(outcome.findings, []);
}

#[test]
fn the_report_names_the_assumption() {
    let (_, native) = explore(patched(&compiled("counter")), plan(1));
    let assumptions = native.assumptions().join("; ");
    assert!(assumptions.contains("by the patched instructions"), "{assumptions}");
    assert!(!assumptions.contains("could not be patched"), "{assumptions}");
}

#[test]
fn options_that_need_to_see_all_accesses_are_refused() {
    let executable = patched(&compiled("counter"));
    let refused = [
        (Plan { reduction: Reduction::Sleep, order: Order::Executions, ..Plan::new() }, "--reduce"),
        (Plan { order: Order::Icb { cache: Cache::Hb }, ..Plan::new() }, "--cache"),
        (Plan { order: Order::DfsHb, ..Plan::new() }, "dfs-hb"),
    ];
    for (plan, words) in refused {
        let why = executable.suits(&plan).expect_err(words);
        assert!(why.contains(words), "{why}");
    }
    let mut weak = executable;
    weak.memory = MemoryModel::Weak;
    let why = weak.suits(&Plan { memory: MemoryModel::Weak, ..plan(1) });
    assert!(why.expect_err("orders are not visible").contains("--memory weak"));
    let path = instrumented("atomic_counter", Level::Atomics);
    let mut executable = Executable::find(&path, Vec::new()).expect("the program can be explored");
    let why = executable.patch_atomics().expect_err("it was built with instrumentation");
    assert!(why.contains("leave out --atomics"), "{why}");
}
