//! `--memory` limits the whole process: for every search, store and number of workers, the peak is
//! at most a fifth above the limit.
//!
//! The peak is the kernel's figure, with which the report ends. The tests do not check how far a
//! search gets within the limit, only that searches which fill memory stop at it.
#![cfg(target_os = "linux")]

use std::process::Command;

use serde_json::Value;

/// Searches that fill memory on this model within seconds.
const GREEDY: [&str; 27] = [
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
    "--order dfs-hb",
    "--order dfs-hb --jobs 2",
    "--order random --runs 100000000",
    "--order pct --runs 100000000",
    "--order urw --runs 100000000",
    "--reduce sleep",
    "--reduce cb-por --bound 9",
    "--reduce cb-por-states --bound 9",
    "--reduce cartesian",
    "--points sync",
    "--reduce transactions --no-deadlock",
];

/// Searches that use little memory, so they have to be stopped in another way.
const MODEST: [&str; 13] = [
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
    "--reduce budgeted-sleep --bound 9 --executions 3000",
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
    let left = std::fs::read_dir(directory).expect("the directory of the test can be read");
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
    let output = Command::new(env!("CARGO_BIN_EXE_preempt"))
        .args(["check", model, "--set", "ADDERS=9", "--json", "--memory", &format!("{megabytes}M")])
        .args(args.split_whitespace())
        .output()
        .expect("the command can be run");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{args}: {stderr}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("the report is JSON");
    let peak = report["peak_memory"].as_u64().expect("Linux reports the peak memory of a process");
    assert!(peak > 4 << 20, "{args}: a process has more than {peak} bytes");
    let most = (megabytes << 20) / 5 * 6;
    assert!(peak <= most, "{args}: {} of {megabytes} MiB", peak as f64 / f64::from(1 << 20));
    report
}
