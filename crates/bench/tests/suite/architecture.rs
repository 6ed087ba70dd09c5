//! The invariants of ARCHITECTURE.md.

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The dependencies of a package, each line in this format of `cargo tree`.
fn tree(package: &str, format: &str) -> Vec<String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .current_dir(root())
        .args([
            "tree",
            "--offline",
            "--edges",
            "normal,build",
            "--prefix",
            "none",
            "--format",
            format,
            "--package",
            package,
        ])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().filter(|line| line.split(' ').next() != Some(package)).map(str::to_owned).collect()
}

/// The names of all dependencies of a package.
fn built_from(package: &str) -> Vec<String> {
    let lines = tree(package, "{p}");
    let mut names: Vec<String> =
        lines.iter().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

fn ours(package: &str) -> Vec<String> {
    built_from(package).into_iter().filter(|name| name.starts_with("preempt")).collect()
}

#[test]
fn the_arrows_point_one_way() {
    assert_eq!(ours("preempt-system"), [""; 0]);
    assert_eq!(ours("preempt-machine"), ["preempt-system"]);
    // A reader of models. A reader of another language would have the same dependencies.
    assert_eq!(ours("preempt-lang"), ["preempt-machine", "preempt-system"]);
    // Only closures use it; it does not depend on their front end.
    assert_eq!(ours("preempt-replay"), ["preempt-system"]);
    assert_eq!(ours("preempt-explore"), ["preempt-system"]);
    assert_eq!(ours("preempt-report"), ["preempt-explore", "preempt-system"]);
    // It knows neither models nor the command line: only how to exchange bytes.
    assert_eq!(ours("preempt-cluster"), ["preempt-explore", "preempt-system"]);
    // No language and no command line: users' tests are built with this crate.
    assert_eq!(
        ours("preempt"),
        [
            "preempt-explore",
            "preempt-linearize",
            "preempt-replay",
            "preempt-report",
            "preempt-system"
        ]
    );
    // It runs no code, so that any front end can use it.
    assert_eq!(built_from("preempt-linearize"), [""; 0]);
    // The runtime for executables is compiled by a build script and has no dependencies.
    assert_eq!(ours("preempt-native-block"), [""; 0]);
    // The memory models are compared with it.
    assert_eq!(ours("preempt-litmus"), [""; 0]);
    assert_eq!(built_from("preempt-native-runtime"), [""; 0]);
    assert_eq!(
        ours("preempt-native"),
        ["preempt-explore", "preempt-native-block", "preempt-report", "preempt-system"]
    );
    assert_eq!(
        ours("preempt-cli"),
        [
            "preempt-explore",
            "preempt-lang",
            "preempt-machine",
            "preempt-native",
            "preempt-native-block",
            "preempt-report",
            "preempt-system"
        ]
    );
}

#[test]
fn the_reference_shares_only_the_parser_with_the_product() {
    // The searches are compared with the reference, so it must not use the same code. The
    // comparison itself is excepted.
    let comparing = |name: &str| {
        !name.starts_with("crates/reference/src/")
            || name.starts_with("crates/reference/src/compare/")
            || name == "crates/reference/src/main.rs"
    };
    let product = [
        "preempt_explore",
        "preempt_system",
        "preempt_machine",
        "preempt_lang::check",
        "preempt_lang::load",
        "preempt_lang::{",
        "use preempt_lang;",
    ];
    assert_eq!(files_with(&product, comparing), [""; 0]);
}

#[test]
fn the_core_has_few_dependencies() {
    assert_eq!(built_from("preempt-system"), ["smallvec"]);
    assert_eq!(built_from("preempt-replay"), ["preempt-system", "smallvec"]);
    let explore = built_from("preempt-explore");
    assert!(explore.len() <= 6, "a user's test would be built from all of these: {explore:?}");
    let shim = built_from("preempt");
    assert!(shim.len() <= 16, "a user's test is built from all of these: {shim:?}");
}

#[test]
fn only_the_cluster_is_built_from_timely() {
    let has_timely = |package: &str| built_from(package).iter().any(|name| name == "timely");
    let packages = ["preempt-cluster", "preempt-explore", "preempt", "preempt-cli"];
    assert_eq!(packages.map(has_timely), [true, false, false, false]);
}

#[test]
fn a_rust_test_is_built_without_charts() {
    let charts = |package: &str| {
        let lines = tree(package, "{p} {f}");
        let report = lines
            .iter()
            .find(|line| line.starts_with("preempt-report "))
            .expect("the crate depends on preempt-report");
        report.contains("charts")
    };
    assert_eq!(["preempt", "preempt-cli", "preempt-bench"].map(charts), [false, true, true]);
}

#[test]
fn no_product_contains_seeded_errors() {
    for package in ["preempt", "preempt-cli", "preempt-bench"] {
        let lines = tree(package, "{p} {f}");
        let mut explore = lines.iter().filter(|line| line.starts_with("preempt-explore "));
        assert!(explore.clone().count() > 0, "{package} is built from the engine");
        assert!(!explore.any(|line| line.contains("mutants")), "{package} enables `mutants`");
    }
}

/// The source files of the crates, under `src`, with their texts.
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut todo = vec![root().join("crates")];
    while let Some(folder) = todo.pop() {
        for entry in std::fs::read_dir(&folder).expect("folders of the repository can be read") {
            let path = entry.expect("entries can be read").path();
            if path.is_dir() && !path.ends_with("target") {
                todo.push(path);
            } else if path.extension().is_some_and(|e| e == "rs")
                && path.components().any(|c| c.as_os_str() == "src")
            {
                let name = path.strip_prefix(root()).expect("below the root").display().to_string();
                found.push((name, std::fs::read_to_string(&path).expect("sources can be read")));
            }
        }
    }
    assert!(found.len() > 50, "the sources are where they are looked for");
    found.sort();
    found
}

/// The files whose code contains one of `texts`, not counting tests and comments.
fn files_with(texts: &[&str], allowed: impl Fn(&str) -> bool) -> Vec<String> {
    let mut files = Vec::new();
    for (name, text) in sources() {
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let mut lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
        if !allowed(&name) && lines.any(|line| texts.iter().any(|text| line.contains(text))) {
            files.push(name);
        }
    }
    files
}

#[test]
fn every_file_has_a_module_doc() {
    let silent: Vec<String> = sources()
        .into_iter()
        .filter(|(_, text)| !text.starts_with("//!"))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(silent, [""; 0], "these files have no module doc");
}

/// The layers of `explore`, lowest first. Modules in the same row do not use each other.
const LAYERS: &[&[&str]] = &[&["codec"], &["plan"], &["engine"], &["order", "reduce"], &["driver"]];

#[test]
fn the_engine_has_layers() {
    let layer = |module: &str| LAYERS.iter().position(|layer| layer.contains(&module));
    let mut files = 0;
    for (name, text) in sources() {
        let Some(path) = name.strip_prefix("crates/explore/src/").filter(|path| *path != "lib.rs")
        else {
            continue;
        };
        if path.ends_with("/tests.rs") {
            continue;
        }
        let own = path.split('/').next().unwrap_or_default();
        let from = layer(own).unwrap_or_else(|| panic!("{path} is in no layer"));
        files += 1;
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let code: String =
            code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        assert!(!code.contains("crate::{"), "{path}: name the layer of each import");
        for used in code.split("crate::").skip(1) {
            let used: String =
                used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            let to = layer(&used)
                .unwrap_or_else(|| panic!("{path} uses crate::{used}, which is in no layer"));
            assert!(used == own || to < from, "{path} is in layer {own} and uses {used}");
        }
    }
    assert!(files > 90, "{files} files");
}

/// The table of slots; calls of the allocator; a probe and litmus tests that share racing data; the
/// mirrors that run coroutines, hold shared values or lend from a stack; and the code that shares
/// memory with an executable. The runtime inside the executable is unsafe throughout: see
/// [`RUNTIME`].
const UNSAFE: &[&str] = &[
    "crates/bench/src/peers/rust/sources/litmus.rs",
    "crates/bench/src/peers/rust/sources/probes.rs",
    "crates/closures/src/mirror/shared.rs",
    "crates/explore/src/engine/memory.rs",
    "crates/explore/src/engine/store/slots.rs",
    "crates/frontend/native/src/server.rs",
    "crates/frontend/shim/src/alloc.rs",
    "crates/frontend/shim/src/cell/plain.rs",
    "crates/frontend/shim/src/cell/pointer.rs",
    "crates/frontend/shim/src/lazy.rs",
    "crates/frontend/shim/src/plain/alloc.rs",
    "crates/frontend/shim/src/plain/cell.rs",
    "crates/frontend/shim/src/runtime/arena.rs",
    "crates/frontend/shim/src/runtime/arena/reclaim.rs",
    "crates/frontend/shim/src/runtime/arena/scan.rs",
    "crates/frontend/shim/src/runtime/arena/window.rs",
    "crates/frontend/shim/src/runtime/coroutine.rs",
    "crates/frontend/shim/src/runtime/current.rs",
    "crates/frontend/shim/src/runtime/identity.rs",
    "crates/frontend/shim/src/runtime/interrupt.rs",
    "crates/frontend/shim/src/runtime/overflow.rs",
    "crates/frontend/shim/src/runtime/site.rs",
    "crates/frontend/shim/src/foreign_threads.rs",
    "crates/frontend/shim/src/foreign_threads/creation.rs",
    "crates/frontend/shim/src/sync/arc/make.rs",
    "crates/frontend/shim/src/sync/arc/mod.rs",
    "crates/frontend/shim/src/sync/arc/weak.rs",
    "crates/frontend/shim/src/sync/atomic/mod.rs",
    "crates/frontend/shim/src/sync/guarded.rs",
    "crates/frontend/shim/src/sync/mutex.rs",
    "crates/frontend/shim/src/sync/once_lock.rs",
    "crates/frontend/shim/src/sync/rwlock.rs",
    "crates/frontend/shim/src/system.rs",
    "crates/frontend/shim/src/thread/scope.rs",
    "crates/frontend/shim/src/watchdog.rs",
];

/// The runtime is called by C programs, with raw pointers.
const RUNTIME: &str = "crates/frontend/native/runtime/src/";

#[test]
fn only_the_table_of_slots_the_mirrors_and_the_runtime_are_unsafe() {
    let allowed = |name: &str| UNSAFE.contains(&name) || name.starts_with(RUNTIME);
    let files = files_with(&["unsafe {", "unsafe impl", "unsafe fn"], allowed);
    assert_eq!(files, [""; 0]);
}

#[test]
fn only_the_command_line_and_the_benches_print() {
    // A stuck thread cannot panic, so one file of the mirrors prints.
    let printing = |name: &str| {
        name.starts_with("crates/cli/")
            || name.starts_with("crates/bench/")
            || name == "crates/reference/src/main.rs"
            || name == "crates/frontend/shim/src/stderr.rs"
    };
    let words =
        ["println!(", "eprintln!(", "print!(", "eprint!(", "dbg!(", "io::stderr()", "io::stdout()"];
    assert_eq!(files_with(&words, printing), [""; 0]);
}

/// The walks of ARCHITECTURE.md: every hop is a function of the file that it names.
#[test]
fn the_walks_lead_from_file_to_file() {
    let text = std::fs::read_to_string(root().join("ARCHITECTURE.md")).expect("the file is there");
    let (_, walks) = text.split_once("## From `main` to the printed line").expect("the section");
    let (walks, _) = walks.split_once("\n## ").expect("another section follows");
    let walks: Vec<&str> = walks.split("\n### ").skip(1).collect();
    assert_eq!(walks.len(), 3, "a model, a test, a page");
    for walk in walks {
        let (title, hops) = walk.split_once('\n').expect("a walk has hops");
        let hops: Vec<&str> =
            hops.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect();
        assert!((5..=10).contains(&hops.len()), "{title}: {} hops", hops.len());
        for hop in hops {
            let quoted: Vec<&str> = hop.split('`').skip(1).step_by(2).take(2).collect();
            let [file, function] = quoted[..] else { panic!("{title}: {hop}") };
            let source = std::fs::read_to_string(root().join("crates").join(file));
            let source = source.unwrap_or_else(|error| panic!("{title}: {file}: {error}"));
            let declared = source
                .match_indices(&format!("fn {function}"))
                .any(|(at, found)| source[at + found.len()..].starts_with(['(', '<']));
            assert!(declared, "{title}: there is no function `{function}` in {file}");
        }
    }
}

#[test]
fn nothing_is_left_unfinished() {
    // Split, so that this file does not contain them.
    let marks = [
        concat!("to", "do!("),
        concat!("unimple", "mented!("),
        concat!("FIX", "ME"),
        concat!("#[ig", "nore"),
    ];
    assert_eq!(files_with(&marks, |_| false), [""; 0]);
}

#[test]
fn no_choice_depends_on_a_clock_an_address_or_a_seed() {
    // Only the code that enforces limits or reports durations measures time.
    let clocks = |name: &str| {
        ["crates/cli/", "crates/bench/", "crates/report/"]
            .iter()
            .any(|folder| name.starts_with(folder))
            || [
                "engine/control.rs",
                "driver/serial_rerun.rs",
                "driver/shrink/mod.rs",
                "driver/shrink/contexts.rs",
            ]
            .iter()
            .any(|file| name == format!("crates/explore/src/{file}"))
            // Time-outs of connections, and the limit of time of many checks together.
            || name == "crates/cluster/src/join.rs"
            || name == "crates/frontend/shim/src/linearize/driver.rs"
            // A child that makes no progress is killed.
            || name == "crates/frontend/native/src/server.rs"
            // How long to wait until memory can be released.
            || name == "crates/frontend/shim/src/runtime/arena/reclaim.rs"
    };
    assert_eq!(files_with(&["Instant::now", "SystemTime"], clocks), [""; 0]);
    // Outside of checks, the mirror of `ThreadId` asks std for it; messages name the thread of a
    // test. Random closure programs use that mirror.
    let mirror = |name: &str| {
        name == "crates/closures/src/mirror/mod.rs"
            // The connections of a process unpark its worker.
            || name == "crates/cluster/src/dataflow.rs"
            || ["thread/park.rs", "foreign_threads.rs", "stderr.rs", "replay_command.rs"]
                .iter()
                .any(|file| name == format!("crates/frontend/shim/src/{file}"))
    };
    assert_eq!(files_with(&["RandomState", "thread::current()"], mirror), [""; 0]);
}
