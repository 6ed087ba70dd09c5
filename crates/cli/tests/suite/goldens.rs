//! Every kind of finding as text and as JSON, compared with the files in `tests/golden`.
//!
//! `BLESS=1 cargo test -p preempt-cli goldens` rewrites them: read the diff. Times and memory are
//! masked. Every object is also validated against the published schema.

use crate::schema;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A name, and the arguments of the command.
const FINDINGS: [(&str, &[&str]); 18] = [
    ("assertion", &["lost-update.pre"]),
    ("assertion-random", &["lost-update.pre", "--order", "random", "--seed", "1"]),
    ("assertion-local", &["local.pre"]),
    ("assertion-heap", &["heap.pre"]),
    ("assertion-choice", &["spin.pre"]),
    ("invariant", &["invariant.pre"]),
    ("invariant-unshrunk", &["invariant.pre", "--order", "bfs", "--no-shrink"]),
    ("deadlock", &["abba.pre"]),
    ("deadlock-condvar", &["condvar.pre"]),
    ("race", &["race.pre", "--points", "sync"]),
    ("races", &["race.pre", "--points", "sync", "--keep-going"]),
    ("livelock", &["livelock.pre", "--order", "icb", "--cache", "hb"]),
    ("index", &["index.pre", "--order", "dfs"]),
    ("division", &["division.pre"]),
    ("range", &["range.pre"]),
    ("null", &["null.pre"]),
    ("unlock", &["unlock.pre"]),
    ("several", &["several.pre", "--keep-going", "--reduce", "auto"]),
];

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// The output of the command, and its exit code.
fn run(args: &[&str], format: &[&str]) -> (String, Option<i32>) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_preempt"));
    command.arg("check").args(args).args(format).current_dir(tests().join("models"));
    // On a busy machine, the time limit must not end the search for simpler schedules.
    if !args.contains(&"--no-shrink") {
        command.args(["--shrink", "600"]);
    }
    let output = command.output().expect("the binary was built for this test");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    (String::from_utf8(output.stdout).expect("output is UTF-8"), output.status.code())
}

/// Masks everything that differs from run to run.
fn masked(text: &str) -> String {
    let mask = |line: &str| {
        let measured = ["  \"seconds\": ", "  \"peak_memory\": ", "  \"store_bytes\": "];
        let masked = match measured.into_iter().find(|start| line.starts_with(start)) {
            // Still JSON.
            Some(start) => format!("{start}0{}", if line.ends_with(',') { "," } else { "" }),
            None if line.starts_with("  cost      ") => "  cost      …".to_owned(),
            None => line.to_owned(),
        };
        masked + "\n"
    };
    text.lines().map(mask).collect()
}

/// Compares with a file, or writes it.
fn golden(name: &str, now: &str, differences: &mut Vec<String>) {
    let path = tests().join("golden").join(name);
    if std::env::var_os("BLESS").is_some() {
        std::fs::create_dir_all(tests().join("golden")).expect("the folder can be written");
        return std::fs::write(&path, now).expect("the file can be written");
    }
    let then = std::fs::read_to_string(&path).unwrap_or_default();
    if then != now {
        differences.push(format!("{name}: expected\n{then}\nfound\n{now}"));
    }
}

/// Checks that every finding has as many preemptions as its steps show.
fn preemptions_are_those_of_the_steps(name: &str, report: &serde_json::Value) {
    for finding in report["findings"].as_array().expect("a list") {
        let steps = finding["steps"].as_array().expect("a list");
        let shown = steps.iter().filter(|step| step["preemption"] == true).count();
        assert_eq!(finding["preemptions"], shown, "{name}");
    }
}

#[test]
fn findings_match_the_golden_files() {
    let mut differences = Vec::new();
    for (name, args) in FINDINGS {
        let (text, code) = run(args, &[]);
        assert_eq!(code, Some(1), "{name}: {text}");
        let widest = text
            .lines()
            .filter(|line| !line.contains("preempt replay"))
            .map(|line| line.chars().count())
            .max();
        assert!(widest <= Some(80), "{name} does not fit 80 columns:\n{text}");
        golden(&format!("{name}.txt"), &masked(&text), &mut differences);
        let (json, code) = run(args, &["--json"]);
        assert_eq!(code, Some(1), "{name}");
        let value =
            schema::validate(&json).unwrap_or_else(|wrong| panic!("{name}: {wrong}\n{json}"));
        preemptions_are_those_of_the_steps(name, &value);
        golden(&format!("{name}.json"), &masked(&json), &mut differences);
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

/// The goldens of Rust tests are made elsewhere; they are objects of the same kind.
#[test]
fn findings_of_rust_tests_fit_the_schema() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../frontend/shim/tests/golden");
    let files = std::fs::read_dir(folder)
        .expect("there are goldens")
        .map(|file| file.expect("the file is readable").path());
    let mut kinds = std::collections::BTreeSet::new();
    for path in files.filter(|path| path.extension().is_some_and(|extension| extension == "json")) {
        let json = std::fs::read_to_string(&path).expect("the file is readable");
        let value =
            schema::validate(&json).unwrap_or_else(|wrong| panic!("{}: {wrong}", path.display()));
        preemptions_are_those_of_the_steps(&path.display().to_string(), &value);
        kinds.insert(value["finding"]["kind"].as_str().expect("a finding has a kind").to_owned());
    }
    let all = ["deadlock", "leak", "livelock", "nondeterminism", "panic", "race"];
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), all);
}

/// Output without a finding fits the schema too.
#[test]
fn every_outcome_fits_the_schema() {
    let cases: [(&[&str], i32); 8] = [
        (&["ok.pre"], 0),
        (&["ok.pre", "--bound", "1"], 0),
        (&["ok.pre", "--order", "random", "--runs", "10"], 0),
        (&["ok.pre", "--reduce", "auto"], 0),
        (&["ok.pre", "--states", "3"], 3),
        (&["broken.pre"], 2),
        (&["no such file"], 2),
        (&["ok.pre", "--reduce", "cartesian", "--bound", "2"], 2),
    ];
    for (args, expected) in cases {
        let output = Command::new(env!("CARGO_BIN_EXE_preempt"))
            .arg("check")
            .args(args)
            .arg("--json")
            .current_dir(tests().join("models"))
            .output()
            .expect("the binary was built for this test");
        assert_eq!(output.status.code(), Some(expected), "{args:?}");
        let json = String::from_utf8(output.stdout).expect("output is UTF-8");
        let value =
            schema::validate(&json).unwrap_or_else(|wrong| panic!("{args:?}: {wrong}\n{json}"));
        let refused = value["verdict"] == "refused";
        assert_eq!(refused, expected == 2, "{args:?}: {json}");
        assert_eq!(refused, !output.stderr.is_empty(), "refusals are printed on stderr");
    }
}

/// An option that does not exist is refused by another part of the program.
#[test]
fn a_wrong_option_is_an_object_too() {
    let output = Command::new(env!("CARGO_BIN_EXE_preempt"))
        .args(["check", "ok.pre", "--no-such-option", "--json"])
        .output()
        .expect("the binary was built for this test");
    assert_eq!(output.status.code(), Some(2));
    let json = String::from_utf8(output.stdout).expect("output is UTF-8");
    let value = schema::validate(&json).unwrap_or_else(|wrong| panic!("{wrong}\n{json}"));
    assert!(
        value["error"].as_str().is_some_and(|error| error.contains("--no-such-option")),
        "{json}"
    );
}
