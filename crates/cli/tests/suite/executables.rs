//! `preempt run` and `preempt replay` with executables, started from the command line.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

/// Compiles a program of the corpus, once: tests run in parallel, and one that is being executed
/// must not be replaced.
pub fn compiled(name: &str) -> PathBuf {
    static COMPILED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let out =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("run-{}", name.replace('/', "-")));
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if compiled.contains(&out) {
        return out;
    }
    let status = Command::new("gcc")
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/native"))
        .args(["-g", "-O1", "-pthread", &format!("{name}.c"), "-o"])
        .arg(&out)
        .status()
        .expect("gcc can be started: scripts/install-test-tools installs it");
    assert!(status.success(), "{name}.c cannot be compiled");
    compiled.insert(out.clone());
    out
}

fn preempt(args: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = Command::new(env!("CARGO_BIN_EXE_preempt"))
        .args(args)
        .output()
        .expect("preempt can be started");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (status.code(), text(&stdout), text(&stderr))
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
fn a_schedule_runs_under_gdb_up_to_a_step() {
    if Command::new("gdb").arg("--version").output().is_err() {
        eprintln!("skipped: gdb is not installed");
        return;
    }
    let program = compiled("abba");
    let program = program.to_str().expect("the path is text");
    let (_, report, _) = preempt(&["run", "--quiet", "--", program]);
    let replay = report.lines().find_map(|line| line.trim().strip_prefix("replay"));
    let token = replay.and_then(|line| line.split(' ').next_back()).expect("there is a token");
    // The sixth step is the lock of b by the second thread; the first one holds a.
    for (step, caller) in [(4, "one"), (6, "two")] {
        let step = step.to_string();
        let (code, out, why) = preempt(&[
            "replay",
            "--gdb",
            "--step",
            &step,
            "--gdb-command=backtrace",
            "--gdb-command=kill",
            "--gdb-command=quit",
            program,
            token,
        ]);
        assert_eq!(code, Some(0), "{out}{why}");
        let stops = out.contains("Breakpoint 1, ") && out.contains("preempt_step");
        assert!(stops, "{step}: {out}{why}");
        let frame = |line: &str| line.starts_with('#') && line.contains(&format!(" in {caller} "));
        assert!(out.lines().any(frame), "{step}: {out}{why}");
    }
    let (code, _, why) = preempt(&["replay", "--gdb", "--step", "7", program, token]);
    assert_eq!(code, Some(2), "{why}");
    assert!(why.contains("the schedule has the steps 1 to 6"), "{why}");
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
fn an_error_of_an_executable_is_reported_and_can_be_replayed() {
    let program = compiled("abba");
    let program = program.to_str().expect("the path is text");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (page, schedule) = (folder.join("run-abba.html"), folder.join("run-abba.schedule"));
    let [page, schedule] = [&page, &schedule].map(|path| path.to_str().expect("the path is UTF-8"));
    let (code, report, _) =
        preempt(&["run", "--quiet", "--html", page, "--save-schedule", schedule, "--", program]);
    assert_eq!(code, Some(1), "{report}");
    for words in ["main, t1 and t2 wait forever", "a: free → held by t1", "1 preemption; minimal"]
    {
        assert!(report.contains(words), "{words}: {report}");
    }
    let replay = report.lines().find_map(|line| line.trim().strip_prefix("replay"));
    let token = replay.and_then(|line| line.split(' ').next_back()).expect("there is a token");
    for given in [token, schedule] {
        let (code, replayed, why) = preempt(&["replay", program, given]);
        assert_eq!(code, Some(1), "{given}: {replayed}{why}");
        assert!(replayed.contains("The schedule still fails in the same way."), "{replayed}");
    }
    let (code, replayed, why) = preempt(&["replay", program, token, "--html", "/dev/full"]);
    assert_eq!(code, Some(1), "a finding counts more than its page: {replayed}{why}");
    assert!(why.contains("as /dev/full: "), "{why}");
    let (code, stopped, _) = preempt(&["replay", program, token, "--stop-at", "1"]);
    assert_eq!(code, Some(0), "{stopped}");
    assert!(stopped.contains("Here, before step 5, t2 preempts t1."), "{stopped}");
    let written = std::fs::read_to_string(page).expect("the page was written");
    assert!(written.contains("pthread_mutex_lock("), "the page shows the source");
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
fn a_pass_says_what_it_assumes() {
    let program = compiled("no_lost_update");
    let program = program.to_str().expect("the path is text");
    let (code, report, _) = preempt(&["run", "--quiet", "--", program]);
    assert_eq!(code, Some(0), "{report}");
    let words = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("assuming that threads synchronise by calls"), "{report}");
    let (code, json, _) = preempt(&["run", "--json", "--", program]);
    assert_eq!(code, Some(0), "{json}");
    let json: serde_json::Value = serde_json::from_str(&json).expect("one JSON object");
    assert_eq!((&json["verdict"], &json["complete"]), (&"ok".into(), &true.into()));
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
fn different_output_is_reported_with_both_outputs_and_can_be_replayed() {
    let program = compiled("prints");
    let program = program.to_str().expect("the path is text");
    let run = ["run", "--quiet", "--same-output", "--temp-dir", "--jobs", "2", "--", program, "x"];
    let (code, report, why) = preempt(&run);
    assert_eq!(code, Some(1), "{report}{why}");
    for words in [
        "line 1 is `two`, there it is `one`",
        "output of the failing execution:\n    two\n    one\n",
        "output of the execution without preemptions:\n    one\n    two\n",
    ] {
        assert!(report.contains(words), "{words}: {report}");
    }
    let replay = report.lines().position(|line| line.trim().starts_with("replay"));
    let line: String = report.lines().skip(replay.expect("there is a command")).take(2).collect();
    let words: Vec<&str> = line.split_whitespace().skip(2).collect();
    assert_eq!(words[..4], ["replay", "--same-output", "--temp-dir", "--arg=x"], "{line}");
    let end = words.iter().position(|word| word.starts_with("p1-")).expect("there is a token");
    let (code, replayed, why) = preempt(&words[..=end]);
    assert_eq!(code, Some(1), "{replayed}{why}");
    assert!(replayed.contains("The schedule still fails in the same way."), "{replayed}");
    let (code, report, _) = preempt(&["run", "--quiet", "--", program]);
    assert_eq!(code, Some(0), "{report}");
}

#[test]
fn options_that_do_not_apply_to_executables_are_refused() {
    for (args, words) in [
        (&["run", "--", "no-such-program-anywhere"][..], "no executable"),
        (&["run", "--checkpoint-every", "5", "--", "true"], "needs --checkpoint"),
        (&["run", "--same-output", "--reduce", "dpor", "--", "true"], "may print in another order"),
        (&["run", "--runs", "5", "--", "true"], "--runs needs --order random, --order pct or"),
        (&["run", "--pct-depth", "5", "--", "true"], "--pct-depth needs --order pct"),
        (&["run", "--order", "depth", "--", "true"], "--order depth needs --depth"),
        (&["run", "--order", "bfs", "--", "true"], "invalid value 'bfs'"),
        (&["run", "--reduce", "blocks", "--", "true"], "invalid value 'blocks'"),
        (&["run", "--order", "icb", "--cache", "state", "--", "true"], "use --cache hb or"),
        (&["run", "--reduce", "dpor", "--keep-going", "--", "true"], "leave out --keep-going"),
        (&["run", "--bound", "2", "--order", "random", "--", "true"], "bound"),
    ] {
        let (code, _, why) = preempt(args);
        assert_eq!(code, Some(2), "{args:?}: {why}");
        assert!(why.contains(words), "{args:?}: {why}");
    }
}

/// The words of a line up to the parts that depend on the machine, such as versions.
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
fn without_versions(line: &str) -> String {
    let words = line.split_whitespace().map(|word| match word.contains(|c: char| c.is_numeric()) {
        true if word.starts_with("x86") => word,
        true => "N",
        false => word,
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
fn atomic_instructions_of_an_unmodified_program_are_patched_on_request() {
    let program = compiled("locked/counter_lost");
    let program = program.to_str().expect("the path is text");
    let (code, report, why) = preempt(&["run", "--quiet", "--", program]);
    assert_eq!(code, Some(0), "{report}{why}");
    let (code, report, why) = preempt(&["run", "--quiet", "--atomics", "--", program]);
    assert_eq!(code, Some(1), "{report}{why}");
    assert!(report.contains("locked instructions of the executable (1 patched)"), "{report}");
    assert!(report.contains("count: 1 → 1"), "{report}");
    let replay = report.lines().find_map(|line| line.trim().strip_prefix("replay"));
    let replay = replay.expect("the report has a command").trim();
    let words: Vec<&str> = replay.split(' ').skip(1).collect();
    assert_eq!(words[..2], ["replay", "--atomics"], "{replay}");
    let (code, replayed, why) = preempt(&words);
    assert_eq!(code, Some(1), "{replayed}{why}");
    assert!(replayed.contains("count: 1 → 1"), "{replayed}");
    let (_, json, _) = preempt(&["run", "--json", "--atomics", "--", program]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("the output is JSON");
    assert_eq!(json["level"], "locked");
    let visible = json["visible"].as_str().expect("the field is a string");
    assert!(visible.contains("(1 patched)"), "{visible}");
    let mut debugged = words.clone();
    debugged.insert(1, "--gdb");
    for (args, why) in [
        (&["run", "--atomics", "--reduce", "cb-por", "--", program][..], "leave out --reduce"),
        (&debugged, "--gdb cannot be combined with --atomics"),
    ] {
        let (code, _, error) = preempt(args);
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains(why), "{error}");
    }
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
fn the_doctor_tries_everything_that_executables_need() {
    let (code, report, why) = preempt(&["doctor"]);
    assert_eq!(code, Some(0), "{report}{why}");
    let lines: Vec<String> = report.lines().map(without_versions).collect();
    let row = |what: &str| {
        let is_row = |line: &&String| line.split(' ').nth(1) == Some(what);
        lines.iter().find(is_row).unwrap_or_else(|| panic!("no row {what}: {report}"))
    };
    assert_eq!(row("system"), "ok system linux N on x86_64");
    assert_eq!(row("libc"), "ok libc glibc N");
    assert_eq!(row("control"), "ok control a program was run by the fork server");
    assert_eq!(
        row("atomics"),
        "ok atomics N locked instructions of a program were patched (run --atomics)"
    );
    assert_eq!(row("traps"), "ok traps futex system calls made without libc are controlled");
    assert!(row("cargo").starts_with("ok cargo cargo N"), "{report}");
    // The tests of this file need both, and so does the instrumentation of the programs that they
    // build.
    for compiler in ["rustc", "gcc"] {
        assert!(row(compiler).starts_with(&format!("ok {compiler} ")), "{report}");
        assert!(row(compiler).ends_with("atomic operations are visible"), "{report}");
    }
    // These may be missing. Then there is advice on the next line.
    for optional in ["addresses", "clang"] {
        let at =
            lines.iter().position(|line| line == row(optional)).expect("the table has this row");
        let advised = lines.get(at + 1).is_some_and(|line| !line.is_empty());
        assert!(row(optional).starts_with("ok ") || advised, "{report}");
    }
}

#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
fn flags_make_atomic_operations_visible() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("flags");
    let dir = folder.to_str().expect("the path is text");
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/native/instrumented");
    for (compiler, source) in [("gcc", "atomic_lost_update.c"), ("rustc", "atomic_counter.rs")] {
        let (code, flags, _) = preempt(&["flags", compiler, "--dir", dir]);
        assert_eq!(code, Some(0), "{compiler}");
        let out = folder.join(compiler);
        let status = Command::new(compiler)
            .current_dir(&corpus)
            .args(flags.split_whitespace())
            .args(["-g", source, "-o"])
            .arg(&out)
            .status()
            .expect("the compiler can be started");
        assert!(status.success(), "{compiler} {flags}");
        let program = out.to_str().expect("the path is text");
        let (code, report, _) = preempt(&["run", "--quiet", "--", program]);
        assert_eq!(code, Some(1), "{compiler}: {report}");
        assert!(report.contains("visible   atomic operations"), "{compiler}: {report}");
        assert!(report.contains("1 preemption; minimal"), "{compiler}: {report}");
    }
    let (code, _, error) = preempt(&["flags", "gcc", "--dir", "a b"]);
    assert_eq!(code, Some(2));
    assert!(error.contains("choose another directory"), "{error}");
}
