//! `--memory` limits the whole process: for every search, store and number of workers, the peak is
//! at most a fifth above the limit.
//!
//! The peak is the kernel's figure, with which the report ends. The tests do not check how far a
//! search gets within the limit, only that searches which fill memory stop at it.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use preempt_explore::Subject;
use preempt_explore::plan::strategies::{Entry, STRATEGIES, Value as Strategy};
use serde_json::Value;

/// Searches that fill memory on this model within seconds.
const GREEDY: [&str; 35] = [
    "",
    "--jobs 2",
    "--order bfs",
    "--order bfs --jobs 2",
    "--order bfs --store tree",
    "--order bfs --store tree --jobs 2",
    "--order bfs --store fingerprint",
    "--order dfs",
    "--order dfs --jobs 2",
    "--order dfs --store tree",
    "--order icb",
    "--order icb --jobs 2",
    "--order icb --cache hb",
    "--order icb --cache hb --jobs 2",
    "--order icb --cache none",
    "--order icb --cache none --jobs 2",
    "--order delay",
    "--order delay --jobs 2",
    "--order delay --cache hb",
    "--order delay --cache none",
    "--order dfs-hb",
    "--order dfs-hb --jobs 2",
    "--order random --runs 100000000",
    "--order pct --runs 100000000",
    "--order urw --runs 100000000",
    "--reduce sleep",
    "--reduce cb-por --bound 9",
    "--reduce cb-por-states --bound 9",
    "--reduce budgeted-sleep --bound 9",
    "--reduce cartesian",
    "--reduce cartesian-literal",
    "--points sync",
    "--reduce transactions --no-deadlock",
    "--reduce transactions-cycle --no-deadlock",
    "--reduce transactions-unsound --no-deadlock",
];

/// Searches that use little memory, so they have to be stopped in another way.
const MODEST: [&str; 12] = [
    "--order bfs --store sorted --states 500000",
    "--order bfs --store sorted --states 500000 --jobs 2",
    "--order cb-dfs --bound 6 --executions 3000",
    "--order executions --executions 3000",
    "--order depth --depth 30 --executions 3000",
    "--order idfs --executions 3000",
    "--order random --jobs 2 --runs 100000000 --executions 3000",
    "--reduce dpor --executions 3000",
    "--reduce dpor-optimal --executions 3000",
    "--reduce dpor-fg --executions 3000",
    "--reduce cartesian --store tree --jobs 2 --states 20000",
    "--order bfs --store bitstate --bitstate-size 2M --states 100000",
];

/// A search that fills memory so slowly that only a small limit is reached within seconds, after
/// some ten thousand executions.
const SLOW: [&str; 2] = ["--reduce dpor", "--reduce dpor-optimal"];

/// Searches with more memory: tables in huge pages, and vectors that are mapped.
const LARGER: [&str; 6] = [
    "--order bfs --store tree --jobs 2",
    "--order bfs --jobs 2",
    "--order dfs",
    "--order icb --cache none --jobs 2",
    "--order dfs-hb",
    "--reduce cb-por --bound 9",
];

/// Searches of [`WEAK`].
const WITH_WEAK_MEMORY: [&str; 7] = [
    "--reduce graphs",
    "--order icb",
    "--order icb --jobs 2",
    "--order icb --cache none",
    "--order delay",
    "--order delay --cache none",
    "--order random --runs 10000000",
];

/// A model with weak memory that has more executions than a search can visit.
const WEAK: &str = "memory weak;
    atomic var x = 0;
    atomic var y = 0;
    thread t(i in 0..6) {
        store(x, 1, relaxed);
        var a = load(y, relaxed);
        fetch_add(y, a + 1, relaxed);
        var b = load(x, relaxed);
        store(y, b, relaxed);
    }";

#[test]
fn every_search_stays_within_a_fifth_of_its_limit() {
    for args in GREEDY {
        assert_eq!(checked(args, 20)["stopped"], "memory", "{args}");
    }
    for args in MODEST {
        checked(args, 20);
    }
    for args in SLOW {
        assert_eq!(checked(args, 12)["stopped"], "memory", "{args}");
    }
    for args in LARGER {
        assert_eq!(checked(args, 60)["stopped"], "memory", "{args}");
    }
}

#[test]
fn searches_of_weak_memory_stay_within_a_fifth_of_their_limit() {
    let model = model("weak", WEAK);
    for args in WITH_WEAK_MEMORY {
        let report = checked_model(&model, args, 20).expect("the model fits");
        assert_eq!(report["stopped"], "memory", "{args}");
    }
}

/// Except `blocks`, which computes the number of executions first and refuses too many.
#[test]
fn the_memory_of_every_strategy_is_tested() {
    let tested: Vec<&str> = [&GREEDY[..], &MODEST, &SLOW, &LARGER, &WITH_WEAK_MEMORY].concat();
    let subjects = [Subject::Model, Subject::WeakModel];
    let is_for_models = |entry: &&Entry| subjects.iter().any(|&subject| entry.searches(subject));
    for entry in STRATEGIES.iter().filter(is_for_models) {
        let option = match entry.value {
            Strategy::Order(_) => format!("--order {}", entry.name),
            Strategy::Reduction(_) => format!("--reduce {}", entry.name),
        };
        let is_of = |args: &&str| args == &option || args.starts_with(&format!("{option} "));
        let is_refused = entry.name.starts_with("blocks");
        assert!(is_refused || tested.iter().any(is_of), "{option}");
    }
}

/// A model whose size is a parameter.
type Shape = (&'static str, fn(usize) -> String);

/// Models that take much memory for each of their tokens, in different ways. The first ones have
/// large syntax trees, the last ones much code.
const SHAPES: [Shape; 9] = [
    ("alternatives", |n| thread(&"choose { x = 1; } or { x = 2; }".repeat(n))),
    ("blocks", |n| thread(&"{{{ x = 1; }}}".repeat(n))),
    ("branches", |n| thread(&"if x == 1 { x = 2; } else { x = 3; }".repeat(n))),
    ("skips", |n| thread(&"skip;".repeat(n))),
    ("conditions", |n| thread(&"assert x == 0 || x == 1 || x == 2;".repeat(n))),
    ("variables", |n| {
        (0..n).map(|at| format!("var x{at} = 0;")).collect::<String>() + "thread t {}"
    }),
    ("threads", |n| format!("var x = 0; thread t(i in 0..60) {{ {} }}", "x = i;".repeat(n))),
    ("calls", |n| {
        let body = "x = x + 1;".repeat(n);
        format!("var x = 0; fn f() {{ {body} }} thread t(i in 0..60) {{ f(); atomic {{ f(); }} }}")
    }),
    ("quantifiers", |n| {
        let asserted = "assert all(k in 0..100: !x[k]);".repeat(n / 10);
        format!("var x: [bool; 100]; thread t(i in 0..4) {{ {asserted} }}")
    }),
];

fn thread(body: &str) -> String {
    format!("var x = 0; thread t {{ {body} }}")
}

#[test]
fn a_large_model_stays_within_a_fifth_of_the_limit_or_is_refused() {
    for (name, shape) in SHAPES {
        let is_refused = |statements: &usize| {
            let model = model(name, &shape(*statements));
            checked_model(&model, "--states 10000", 20).is_none()
        };
        let sizes = [20, 100, 400, 1_000, 2_500, 6_000, 15_000, 40_000];
        let first = sizes.iter().position(is_refused);
        assert!(first > Some(0), "{name}: the first size fits and the last does not: {first:?}");
    }
}

#[test]
fn a_search_continues_in_files_when_memory_is_full() {
    let directory = env!("CARGO_TARGET_TMPDIR");
    for jobs in [1, 2] {
        let with = |spill: &str| {
            checked(&format!("--order bfs --states 1500000 --jobs {jobs} {spill}"), 20)
        };
        let without = with("");
        assert_eq!(without["stopped"], "memory", "the table does not fit");
        let report = with(&format!("--spill {directory}"));
        assert_eq!(report["stopped"], "states", "{report}");
        assert!(report["spilled_bytes"].as_u64() > Some(100_000), "{report}");
        assert!(report["states"].as_u64() > without["states"].as_u64(), "{report}");
    }
    let left = fs::read_dir(directory).expect("the directory of the test can be read");
    let runs = left.flatten().filter(|file| file.path().extension().is_some_and(|e| e == "run"));
    assert_eq!(runs.count(), 0, "files have no names");
}

#[test]
fn searches_that_cannot_spill_are_refused() {
    let refused = |args: &str| {
        let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/bluetooth/fixed.pre");
        let output = Command::new(env!("CARGO_BIN_EXE_preempt"))
            .args(["check", model])
            .args(args.split_whitespace())
            .output()
            .expect("the command can be run");
        assert_eq!(output.status.code(), Some(2), "{args}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused("--spill . --order dfs").contains("--order bfs"));
    assert!(refused("--store sorted --order dfs").contains("--order bfs"));
    assert!(refused("--store sorted --reduce cartesian").contains("--order bfs"));
    assert!(refused("--spill . --checkpoint spill.checkpoint").contains("--store sorted"));
    assert!(refused("--spill no/such/directory").contains("no/such/directory"));
}

/// The JSON report of a check limited to `megabytes`, of a model whose states need far more.
fn checked(args: &str, megabytes: u64) -> Value {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/bluetooth/fixed.pre");
    let report = checked_model(Path::new(model), &format!("--set ADDERS=9 {args}"), megabytes);
    let report = report.expect("the model fits");
    assert_eq!(report["verdict"], "incomplete", "{args}");
    report
}

/// A file with this model.
fn model(name: &str, text: &str) -> PathBuf {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("memory-{name}.pre"));
    fs::write(&file, text).expect("the directory of the test can be written");
    file
}

/// The JSON report of a check of this model limited to `megabytes`; `None` if it is refused because
/// of its size.
fn checked_model(model: &Path, args: &str, megabytes: u64) -> Option<Value> {
    let output = Command::new(env!("CARGO_BIN_EXE_preempt"))
        .arg("check")
        .arg(model)
        .args(["--json", "--memory", &format!("{megabytes}M")])
        .args(args.split_whitespace())
        .output()
        .expect("the command can be run");
    let stderr = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(2) && stderr.contains("is too large: ") {
        return None;
    }
    assert!(matches!(output.status.code(), Some(0 | 3)), "{args}: {stderr}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("the report is JSON");
    let peak = report["peak_memory"].as_u64().expect("Linux reports the peak memory of a process");
    assert!(peak > 4 << 20, "{args}: a process has more than {peak} bytes");
    let most = (megabytes << 20) / 5 * 6;
    let used = peak as f64 / f64::from(1 << 20);
    assert!(peak <= most, "{} {args}: {used} of {megabytes} MiB", model.display());
    Some(report)
}
