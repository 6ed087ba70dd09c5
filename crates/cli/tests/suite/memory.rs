//! A limit on memory is one on the whole process: whatever the search, the store and the number of
//! workers, the peak is at most a fifth above `--memory`.
//!
//! The peak is the kernel's own figure, which the report ends with. How far a search comes within
//! the limit is left open; that those which fill memory do stop at the limit is not.
#![cfg(target_os = "linux")]

use std::process::Command;

use serde_json::Value;

/// What fills memory in this model, in a moment or two.
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

/// What keeps little, so that it has to be stopped in another way.
const MODEST: [&str; 11] = [
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

/// What fills memory so slowly that only a small limit is reached in a moment or two, after some
/// ten thousand executions.
const SLOW: [&str; 2] = ["--reduce dpor", "--reduce dpor-optimal"];

/// The same with more memory: tables whose parts are huge pages, and vectors that are mapped.
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

/// The JSON report of a check limited to `megabytes`, of a model whose states need far more.
fn checked(args: &str, megabytes: u64) -> Value {
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/../../corpus/bluetooth/fixed.pre");
    let output = Command::new(env!("CARGO_BIN_EXE_preempt"))
        .args(["check", model, "--set", "ADDERS=9", "--json", "--memory", &format!("{megabytes}M")])
        .args(args.split_whitespace())
        .output()
        .expect("the command can be run");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{args}: {told}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("the report is JSON");
    let peak = report["peak_memory"].as_u64().expect("Linux tells how much memory a process had");
    assert!(peak > 4 << 20, "{args}: a process has more than {peak} bytes");
    let most = (megabytes << 20) / 5 * 6;
    assert!(peak <= most, "{args}: {} of {megabytes} MiB", peak as f64 / f64::from(1 << 20));
    report
}
