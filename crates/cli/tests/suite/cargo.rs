//! `cargo preempt` with a small crate that was not written for it: `tests/crates/gate`.

use std::path::Path;
use std::process::{Command, Output};

/// Runs `cargo preempt` in the crate, with a target directory that all tests share.
fn cargo_preempt(words: &str) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_cargo-preempt"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crates/gate"))
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("gate"))
        .arg("preempt")
        .args(words.split_whitespace())
        .output()
        .expect("cargo-preempt can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (status.code(), text(&stdout), text(&stderr))
}

/// The row of a test in the table: its cells.
fn row<'r>(report: &'r str, test: &str) -> Vec<&'r str> {
    let is_row = |line: &&str| line.split_whitespace().next() == Some(test);
    let line = report.lines().find(is_row).unwrap_or_else(|| panic!("no row for {test}: {report}"));
    line.split_whitespace().collect()
}

#[test]
fn each_test_is_explored_and_a_lost_wakeup_is_found() {
    let (code, report, why) = cargo_preempt("test --quiet --locked --lib");
    assert_eq!(code, Some(1), "{report}{why}");
    for (test, verdict) in [
        ("tests::a_closed_gate_is_seen", "ok"),
        ("tests::a_panic_is_expected", "ok"),
        ("tests::no_addition_is_lost", "ignored"),
        ("tests::the_gate_is_passed", "ok"),
        ("tests::the_gate_is_passed_carelessly", "deadlock"),
    ] {
        assert_eq!(row(&report, test).last(), Some(&verdict), "{report}");
    }
    assert_eq!(row(&report, "tests::a_closed_gate_is_seen")[1..5], ["1", "1", "no", "threads"]);
    assert!(report.contains("no thread can move: test and t1 wait forever"), "{report}");
    // Operations of the standard library are folded into the statements that call it.
    let steps = report.lines().skip_while(|line| !line.contains("  line  ")).skip(1);
    let steps = steps.take_while(|line| !line.contains('✗')).count();
    assert!(steps <= 20, "{report}");
    let replay = report.lines().find_map(|line| line.trim().strip_prefix("replay"));
    let command = replay.and_then(|line| line.trim().strip_prefix("cargo preempt "));
    let command = command.unwrap_or_else(|| panic!("there is a command: {report}"));
    let (code, replayed, why) = cargo_preempt(command);
    assert_eq!(code, Some(1), "{command}: {replayed}{why}");
    assert!(replayed.contains("The schedule still fails in the same way."), "{replayed}");
    let (code, every, _) = cargo_preempt(&format!("{command} --all-steps"));
    assert_eq!(code, Some(1));
    assert!(every.lines().count() > replayed.lines().count(), "{every}");
}

#[test]
fn tests_are_selected_as_by_cargo_test() {
    let (code, json, why) =
        cargo_preempt("test --json --locked --lib -- --ignored --skip the_gate");
    assert_eq!(code, Some(1), "{json}{why}");
    let json: serde_json::Value = serde_json::from_str(&json).expect("one JSON object");
    let tests = json["tests"].as_array().expect("a list of tests");
    assert_eq!(tests.len(), 1, "{json}");
    assert_eq!(tests[0]["test"], "tests::no_addition_is_lost");
    assert_eq!(tests[0]["verdict"], "panic");
    assert_eq!(tests[0]["report"]["finding"]["preemptions"], 1, "{json}");
    let (code, report, _) =
        cargo_preempt("test --quiet --locked --lib -- --exact tests::the_gate_is_passed");
    assert_eq!(code, Some(0), "{report}");
    assert!(report.contains("1 test explored, 0 failed"), "{report}");
    assert!(report.contains("\na test that passes was explored"), "{report}");
}

#[test]
fn a_program_is_explored_with_its_arguments() {
    let (code, report, why) = cargo_preempt("run --quiet --locked");
    assert_eq!(code, Some(1), "{report}{why}");
    assert!(report.contains("cargo preempt replay --locked --bin gate p1-"), "{report}");
    let (code, report, why) = cargo_preempt("run --quiet --locked -- in-turn");
    assert_eq!(code, Some(0), "{report}{why}");
}

#[test]
fn unsupported_uses_are_refused_with_advice() {
    for (words, expected) in [
        ("test -- --nocapture", "remove --nocapture"),
        ("test --manifest-path nowhere/Cargo.toml", "see above"),
        ("test --runs 5", "random"),
    ] {
        let (code, _, why) = cargo_preempt(words);
        assert_eq!(code, Some(2), "{words}: {why}");
        assert!(why.contains(expected), "{words}: {why}");
    }
}

#[test]
fn a_test_ends_at_its_own_limit_and_the_table_says_what_was_covered() {
    let (code, report, why) =
        cargo_preempt("test --quiet --locked --lib --executions 10 -- --skip carelessly");
    assert_eq!(code, Some(3), "{report}{why}");
    let passed = row(&report, "tests::the_gate_is_passed");
    assert_eq!((passed[1], passed.last()), ("10", Some(&"incomplete")), "{report}");
    // Others are explored, and no trace is shown: nothing has failed.
    assert_eq!(row(&report, "tests::a_closed_gate_is_seen").last(), Some(&"ok"), "{report}");
    assert!(!report.contains("replay"), "{report}");
    let (_, json, why) = cargo_preempt(
        "test --json --locked --lib --test-time 60 --bound 0 -- --exact tests::the_gate_is_passed",
    );
    let json: serde_json::Value = serde_json::from_str(&json).expect("one JSON object");
    assert_eq!(json["tests"][0]["covered"], "≤ 0", "{json}{why}");
}

/// What the last paragraph of the table says of a test that passes, in one line.
fn assumption(options: &str) -> String {
    let (code, report, why) = cargo_preempt(&format!(
        "test --quiet --locked --lib --bound 0 {options} -- --exact tests::the_gate_is_passed"
    ));
    assert_eq!(code, Some(0), "{report}{why}");
    let (_, last) = report.split_once("doctests are not explored").expect("the counts");
    last.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_pass_is_of_the_memory_model_that_was_explored() {
    let std = "that precompiled code of std is not disturbed between its beginning and its futex \
               calls";
    assert_eq!(
        assumption("--memory sc"),
        format!(
            "a test that passes was explored under sequential consistency, assuming that there \
             are no data races and {std}"
        )
    );
    assert_eq!(
        assumption("--memory weak"),
        format!(
            "a test that passes was explored under weak memory without load buffering, assuming \
             that there are no data races and {std}"
        )
    );
}

#[test]
fn reductions_are_refused_for_tests() {
    let (code, report, why) = cargo_preempt(
        "test --quiet --locked --lib --reduce dpor -- --exact tests::the_gate_is_passed",
    );
    assert_eq!(code, Some(2), "{report}{why}");
    assert!(report.contains("a reduction could miss errors of this executable"), "{report}");
}
