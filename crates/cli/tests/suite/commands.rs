//! Tests that do not fit into a transcript: files that are written, JSON that is parsed, signals.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn preempt(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_preempt"))
        .args(args)
        .output()
        .expect("the binary was built for this test")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

fn model(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models").join(name).display().to_string()
}

fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn json(args: &[&str]) -> (i32, serde_json::Value) {
    let output = preempt(args);
    let value = serde_json::from_slice(&output.stdout).expect("--json prints JSON");
    assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
    (output.status.code().expect("no signal killed the process"), value)
}

#[test]
fn every_finding_is_replayed_in_another_process_from_its_file_and_from_its_token() {
    for name in ["abba", "index", "invariant", "lost-update", "spin"] {
        let (file, saved) = (model(&format!("{name}.pre")), temporary(&format!("{name}.schedule")));
        let saved = saved.display().to_string();
        for order in ["bfs", "dfs"] {
            let (code, value) =
                json(&["check", &file, "--order", order, "--json", "--save-schedule", &saved]);
            assert_eq!(code, 1, "{name}");
            let token =
                value["finding"]["schedule"].as_str().expect("a finding has a schedule").to_owned();
            let [by_file, by_token] =
                [saved.as_str(), &token].map(|schedule| preempt(&["replay", &file, schedule]));
            assert_eq!(by_file.status.code(), Some(1), "{name}: {}", text(&by_file.stderr));
            assert!(
                text(&by_file.stdout).ends_with("\nThe schedule still fails in the same way.\n"),
                "{name}"
            );
            assert_eq!(by_file.stdout, by_token.stdout, "{name}");
        }
    }
}

#[test]
fn a_schedule_file_brings_its_settings() {
    let (file, saved) = (model("index.pre"), temporary("settings.schedule").display().to_string());
    assert_eq!(
        preempt(&["check", &file, "--set", "SLOTS=1", "--save-schedule", &saved]).status.code(),
        Some(1)
    );
    assert_eq!(preempt(&["replay", &file, &saved]).status.code(), Some(1));
    let other = preempt(&["replay", &file, &saved, "--set", "SLOTS=2"]);
    assert_eq!(other.status.code(), Some(0), "with more slots the same steps do no harm");
    assert!(text(&other.stdout).contains("does not fail any more"));
}

#[test]
fn json_has_the_documented_fields() {
    let (code, value) = json(&["check", &model("lost-update.pre"), "--json", "--keep-going"]);
    assert_eq!(
        (code, &value["verdict"], &value["complete"]),
        (1, &"violation".into(), &true.into())
    );
    assert_eq!(
        value["strategy"],
        serde_json::json!({"order": "bfs", "reduce": "none", "store": "exact", "jobs": 1})
    );
    for count in ["states", "transitions", "blocked", "ended", "depth", "store_bytes"] {
        assert!(value[count].as_u64().is_some_and(|n| n > 0), "{count}: {}", value[count]);
    }
    let finding = &value["finding"];
    assert_eq!(finding, &value["findings"][0]);
    assert_eq!(finding["message"], "assertion failed: no update is lost");
    let steps = finding["steps"].as_array().expect("a list");
    let preemptions = steps.iter().filter(|step| step["preemption"] == true).count();
    assert_eq!(Some(preemptions as u64), finding["preemptions"].as_u64());
    assert_eq!(steps[0]["thread"], "count(0)");
    assert_eq!(steps[0]["line"], 6);
}

/// The output is not a terminal, so there are colours only if they are forced.
#[test]
fn colours_are_used_on_request() {
    let file = model("abba.pre");
    let coloured = |options: &[&str], variables: &[(&str, &str)]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_preempt"));
        command.args(["check", &file]).args(options).envs(variables.iter().copied());
        ["NO_COLOR", "CLICOLOR_FORCE"].iter().for_each(|name| {
            if !variables.iter().any(|(set, _)| set == name) {
                command.env_remove(name);
            }
        });
        let output = command.output().expect("the binary was built for this test");
        text(&output.stdout).contains("\x1b[")
    };
    assert!(!coloured(&[], &[]));
    assert!(coloured(&[], &[("CLICOLOR_FORCE", "1")]));
    assert!(!coloured(&["--color", "never"], &[("CLICOLOR_FORCE", "1")]));
    assert!(coloured(&["--color", "always"], &[]));
    assert!(coloured(&["--color", "always"], &[("NO_COLOR", "1")]), "the command line wins");
    assert!(!coloured(&[], &[("NO_COLOR", "1")]));
}

#[test]
fn every_store_and_every_number_of_workers_has_the_same_result() {
    let file = model("ok.pre");
    let counts = |options: &[&str]| {
        let (code, value) =
            json(&[&["check", &file, "--json", "--set", "THREADS=4"], options].concat());
        (
            code,
            value["states"].clone(),
            value["transitions"].clone(),
            value["blocked"].clone(),
            value["ended"].clone(),
        )
    };
    let exact = counts(&[]);
    assert_eq!(exact.0, 0);
    for options in [
        &["--store", "tree"][..],
        &["--store", "fingerprint"],
        &["--jobs", "2"],
        &["--order", "dfs"],
    ] {
        assert_eq!(counts(options), exact, "{options:?}");
    }
    assert_eq!(counts(&["--store", "bitstate"]).0, 3, "bitstate is never complete");
    assert_eq!(counts(&["--store", "bitstate"]).1, exact.1);
}

#[test]
fn limits_end_in_an_incomplete_search() {
    let file = model("ok.pre");
    for limit in [["--states", "20"], ["--depth", "3"], ["--time", "0.0000001"]] {
        let (code, value) =
            json(&["check", &file, "--json", "--set", "THREADS=12", limit[0], limit[1]]);
        assert_eq!((code, &value["verdict"]), (3, &"incomplete".into()), "{limit:?}");
        assert_eq!(value["stopped"], limit[0][2..], "{limit:?}");
    }
}

#[test]
fn without_time_there_is_no_search_for_simple_errors() {
    let (code, value) =
        json(&["check", &model("ok.pre"), "--json", "--set", "THREADS=12", "--time", "0.0000001"]);
    assert_eq!((code, value["stopped"].as_str()), (3, Some("time")), "{value}");
    assert_eq!(value["scouted"], serde_json::Value::Null, "{value}");
}

#[test]
fn the_time_is_that_of_all_searches_together() {
    let limited = ["check", &model("endless.pre"), "--states", "300"];
    let (code, value) = json(&[&limited[..], &["--json"]].concat());
    assert_eq!((code, value["stopped"].as_str()), (3, Some("states")));
    let (all, scouting) = (value["seconds"].as_f64(), value["scouted"]["seconds"].as_f64());
    assert!(all > scouting && scouting > Some(0.0), "{value}");
    let output = preempt(&limited);
    assert!(text(&output.stdout).contains("\n  scouted  "), "{}", text(&output.stdout));
    for options in [&["--order", "bfs"][..], &[]] {
        let (_, value) = json(&[&["check", &model("ok.pre"), "--json"], options].concat());
        assert_eq!(value["scouted"], serde_json::Value::Null, "a small model is searched once");
    }
}

/// The model comes through a pipe that stays empty for a moment: a clock that starts before the
/// model was read has waited at least as long. On a busy machine more time passes, never less.
#[test]
#[cfg(unix)]
fn the_time_of_reading_the_model_counts() {
    let pause = std::time::Duration::from_millis(200);
    for options in [&["--order", "bfs"][..], &["--reduce", "auto"], &[]] {
        let pipe = temporary("pipe.pre");
        let _ = std::fs::remove_file(&pipe);
        assert!(
            Command::new("mkfifo").arg(&pipe).status().expect("Unix has this command").success()
        );
        let check = Command::new(env!("CARGO_BIN_EXE_preempt"))
            .args(["check", "--json"])
            .arg(&pipe)
            .args(options)
            .stdout(std::process::Stdio::piped())
            .spawn()
            .expect("the binary was built for this test");
        // Opening waits for the reader.
        let mut writer =
            std::fs::OpenOptions::new().write(true).open(&pipe).expect("the pipe is there");
        std::thread::sleep(pause);
        writer.write_all(b"var x = 0;\nthread t { x = 1; }\n").expect("the reader waits");
        drop(writer);
        let output = check.wait_with_output().expect("the process ends");
        let value: serde_json::Value =
            serde_json::from_slice(&output.stdout).expect("--json prints JSON");
        assert_eq!(output.status.code(), Some(0), "{options:?}: {value}");
        assert!(value["seconds"].as_f64() >= Some(pause.as_secs_f64()), "{options:?}: {value}");
    }
}

/// Breadth-first search stops at the violation. The next step of the thread, which a replay asks
/// for, stores a negative number, and states have no room for one yet.
#[test]
fn a_finding_is_replayed_where_the_next_step_needs_larger_states() {
    let file = temporary("larger.pre");
    let same = "x = x; ".repeat(4);
    let model = format!(
        "var x = 2;\nthread t {{ {same}x = 0; x = fetch_sub(x, 2) - 2; }}\ninvariant x == 2;\n"
    );
    std::fs::write(&file, model).expect("the folder is there");
    let file = file.display().to_string();
    for order in ["bfs", "dfs"] {
        let (code, value) = json(&["check", &file, "--json", "--order", order]);
        assert_eq!((code, value["verdict"].as_str()), (1, Some("violation")), "{order}: {value}");
    }
}

#[test]
fn a_finding_with_more_records_than_states_can_name_is_reported() {
    // Live records, and freed ones, which keep their names in a trace as long as there is space.
    let models = [
        ("live", "loop { all_of_them = new Node { next: all_of_them }; }", "more than 1000 live"),
        ("gone", "for i in 0..1100 { all_of_them = new Node { }; } assert false;", "assertion"),
    ];
    for (name, body, message) in models {
        let path = temporary(&format!("records-{name}.pre"));
        let model =
            format!("record Node {{ next: *Node }} var all_of_them: *Node; thread t {{ {body} }}");
        std::fs::write(&path, model).expect("the folder is there");
        let path = path.to_str().expect("the name is text");
        let (code, report) = json(&["check", path, "--order", "bfs", "--no-shrink", "--json"]);
        let finding = &report["finding"];
        assert_eq!(code, 1, "{name}");
        assert!(finding["message"].as_str().is_some_and(|said| said.contains(message)), "{name}");
        let token = finding["schedule"].as_str().expect("a token");
        let output = preempt(&["replay", path, token]);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
        assert!(text(&output.stdout).contains("still fails in the same way"), "{name}");
    }
}

#[test]
fn truncated_executions_make_a_check_incomplete() {
    let file = temporary("deeper.pre");
    std::fs::write(&file, "var x = 0;\nthread t { x = 1; assert x == 0; }\n")
        .expect("the folder is there");
    let file = file.display().to_string();
    for order in ["depth", "idfs"] {
        let (code, value) = json(&["check", &file, "--json", "--order", order, "--depth", "1"]);
        assert_eq!(
            (code, value["verdict"].as_str(), value["stopped"].as_str()),
            (3, Some("incomplete"), Some("depth"))
        );
        let covered = value["guarantee"].as_str().expect("a sentence");
        assert!(covered.starts_with("INCOMPLETE: all executions up to 1 step"), "{covered}");
        assert_eq!(
            json(&["check", &file, "--json", "--order", order, "--depth", "2"]).0,
            1,
            "{order}"
        );
        assert_eq!(
            preempt(&["check", &file, "--order", order, "--depth", "0"]).status.code(),
            Some(2),
            "{order}"
        );
    }
}

#[test]
fn a_step_that_fails_has_the_number_of_its_alternative() {
    let file = temporary("alternatives.pre");
    let program =
        "var x = 0;\nthread t { atomic { choose { x = 1; } or { x = 2; } assert x == 0; } }\n";
    std::fs::write(&file, program).expect("the folder is there");
    let (code, value) = json(&["check", &file.display().to_string(), "--json"]);
    assert_eq!(
        (code, &value["finding"]["steps"][0]["alternative"]),
        (1, &serde_json::json!(0)),
        "{value}"
    );
    std::fs::write(&file, "thread t { choose { assert false, \"a\"; } or { skip; } }\n")
        .expect("the folder is there");
    let output = preempt(&["check", &file.display().to_string()]);
    assert!(text(&output.stdout).contains("// alternative 0"), "{}", text(&output.stdout));
}

/// The formula of the language reference, c1 + n1 · (c2 + n2 · c3): here 1 + 2 · (2 + 3 · 1).
#[test]
fn choices_of_one_step_are_the_digits_of_its_alternative() {
    let file = temporary("digits.pre");
    let program = "thread t {
    atomic {
        var a = choose(0..2);
        var b = choose(0..3);
        var c = choose(0..4);
        assert a != 1 || b != 2 || c != 1;
    }
}
";
    std::fs::write(&file, program).expect("the folder is there");
    for order in ["bfs", "dfs", "executions"] {
        let (code, value) =
            json(&["check", &file.display().to_string(), "--json", "--order", order]);
        let alternative = &value["finding"]["steps"][0]["alternative"];
        assert_eq!((code, alternative), (1, &serde_json::json!(11)), "{order}: {value}");
    }
}

#[test]
fn a_failure_of_init_is_one_state_and_no_transition() {
    let file = temporary("init.pre");
    let program = "var x = 0;\ninit { x = 1; assert x == 2, \"I\"; }\nthread t { x = 3; }\n";
    std::fs::write(&file, program).expect("the folder is there");
    for options in
        ["--order bfs", "--order bfs --jobs 2", "--order dfs", "--order bfs --store tree"]
    {
        for keep_going in [&[][..], &["--keep-going"]] {
            let mut args = vec!["check", file.to_str().expect("UTF-8"), "--json"];
            args.extend(options.split(' ').chain(keep_going.iter().copied()));
            let (code, value) = json(&args);
            assert_eq!(
                (code, &value["states"], &value["transitions"]),
                (1, &1.into(), &0.into()),
                "{args:?}"
            );
        }
    }
}

#[test]
fn unreached_code_is_part_of_every_report() {
    let (file, out) =
        (temporary("unreached.pre").display().to_string(), temporary("unreached.html"));
    let program = "const RETRY = false;
var x = 0;
thread t {
    while RETRY {
        x = 1;
    }
    if x == 0 {
        skip;
    }
    x = 2;
    x = 3;
}
";
    std::fs::write(&file, program).expect("the folder is there");
    let (code, value) = json(&["check", &file, "--json", "--html", &out.display().to_string()]);
    let places = serde_json::json!([
        {"file": file, "line": 5, "last_line": 5, "never": null},
        {"file": file, "line": 7, "last_line": 7, "never": false},
    ]);
    assert_eq!((code, &value["unreached"]), (0, &places));
    let summary = page(&out)["summary"].as_array().expect("a list").clone();
    let line = serde_json::json!(["unreached", format!("{file}:5, 7 (never false)")]);
    assert!(summary.contains(&line), "{summary:?}");
    let report = text(&preempt(&["check", &file]).stdout);
    assert!(report.contains("\n  unreached ") && report.contains("7 (never false)"), "{report}");
    let (code, cut) = json(&["check", &file, "--json", "--order", "bfs", "--depth", "1"]);
    assert_eq!((code, cut.get("unreached")), (3, None), "nothing is said of an incomplete search");
}

/// If one worker searches again after several, the report says so, unless `--first` makes that
/// unnecessary.
#[test]
fn a_repeated_search_is_reported() {
    let file = model("lost-update.pre");
    let check = ["check", &file, "--order", "executions", "--jobs", "2"];
    let report = text(&preempt(&check).stdout);
    let line = "of this: 1 worker searched again after 2, so that this report";
    assert!(
        report.contains("\n  rerun ") && report.contains(line) && report.contains("--first"),
        "{report}"
    );
    let (code, value) = json(&[&check[..], &["--json"]].concat());
    assert!(code == 1 && value["rerun_seconds"].is_number(), "{value}");
    let (code, first) = json(&[&check[..], &["--json", "--first"]].concat());
    assert_eq!((code, first.get("rerun_seconds")), (1, None));
    let refused = preempt(&["check", &file, "--first"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
}

/// Every command with its output on a full device: lost output is an error for every command.
#[test]
#[cfg(target_os = "linux")]
fn output_that_cannot_be_written_is_an_error() {
    let (ok, failing) = (model("ok.pre"), model("lost-update.pre"));
    let (_, found) = json(&["check", &failing, "--json"]);
    let token = found["finding"]["schedule"].as_str().expect("a token");
    let commands: [&[&str]; 8] = [
        &["check", &ok],
        &["check", &ok, "--json"],
        &["check", &failing, "--json"],
        &["replay", &failing, token],
        &["simulate", &ok],
        &["compare", &ok, "--quiet"],
        &["graph", &ok],
        &["strategies"],
    ];
    for args in commands.into_iter().chain([&["--help"][..], &["check", "--help"]]) {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .expect("Linux has such a device");
        let output = Command::new(env!("CARGO_BIN_EXE_preempt"))
            .args(args)
            .stdout(full)
            .output()
            .expect("the command runs");
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(
            text(&output.stderr).contains("cannot write to the standard output: "),
            "{}",
            text(&output.stderr)
        );
    }
    for (args, option, code) in [
        (&["check", &ok][..], "--html", 2),
        (&["check", &failing], "--html", 1),
        (&["check", &failing], "--save-schedule", 1),
        (&["replay", &failing, token], "--html", 1),
        (&["compare", &ok], "--svg", 2),
        (&["graph", &ok], "--dot", 2),
    ] {
        let output = preempt(&[args, &[option, "/dev/full"]].concat());
        assert_eq!(output.status.code(), Some(code), "{args:?} {option}");
        assert!(text(&output.stderr).contains("as /dev/full: "), "{}", text(&output.stderr));
        assert_eq!(
            text(&output.stdout).contains("assertion failed: "),
            code == 1,
            "{args:?} {option}"
        );
    }
    // One object, whether or not the files can be written.
    for (file, code) in [(&ok, 2), (&failing, 1)] {
        let output = preempt(&[
            "check",
            file,
            "--json",
            "--html",
            "/dev/full",
            "--save-schedule",
            "/dev/full",
        ]);
        let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
        assert_eq!(output.status.code(), Some(code), "{file}");
        assert_eq!(value["verdict"] == "ok", code == 2, "{file}");
    }
}

#[test]
#[cfg(unix)]
fn files_that_are_not_text_are_refused() {
    let path = temporary("latin1.pre");
    std::fs::write(&path, b"// caf\xe9\n").expect("the folder for temporary files can be written");
    let output = preempt(&["check", &path.display().to_string()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).ends_with("latin1.pre: byte 7 is not UTF-8 text\n"));
}

/// Interrupts a search that would take hours.
#[test]
#[cfg(target_os = "linux")]
fn an_interrupt_ends_a_search_with_what_was_covered() {
    use std::process::Stdio;
    use std::time::Duration;

    let child = Command::new(env!("CARGO_BIN_EXE_preempt"))
        .args(["check", &model("endless.pre"), "--memory", "2G"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built for this test");
    let status = format!("/proc/{}/status", child.id());
    let catches_interrupts = || {
        let status = std::fs::read_to_string(&status).expect("the search is still running");
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))
            .expect("the kernel reports handled signals");
        u64::from_str_radix(mask.trim(), 16).expect("a mask in base 16") & 2 != 0
    };
    while !catches_interrupts() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .expect("there is a command kill");
    assert!(sent.success());
    let output = child.wait_with_output().expect("the process ends");
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(
        text(&output.stdout).contains("INCOMPLETE: stopped by an interrupt"),
        "{}",
        text(&output.stdout)
    );
}

/// The data of a page.
fn page(path: &Path) -> serde_json::Value {
    let page = std::fs::read_to_string(path).expect("the page was written");
    let (_, rest) = page.split_once("id=\"data\">").expect("a page has data");
    let (data, _) = rest.split_once("</script>").expect("the data end");
    serde_json::from_str(data).expect("the data are JSON")
}

#[test]
fn a_page_has_the_values_of_every_thread_after_every_step() {
    let (file, path) = (temporary("locals.pre"), temporary("locals.html"));
    let text = "var total = 0;\nfn twice(n: int) -> int { var m = n + n; total = m; return m; \
                }\nthread adder(i in 0..2) { var t = total; var u = twice(t + i + 1); assert u < \
                5, \"small\"; }\n";
    std::fs::write(&file, text).expect("the folder for tests is there");
    let [file, out] = [&file, &path].map(|path| path.display().to_string());
    let (code, value) = json(&["check", &file, "--json", "--html", &out]);
    assert_eq!(code, 1);
    let page = page(&path);
    let execution = &page["executions"][0];
    for shared in ["kind", "message", "site", "preemptions", "schedule", "steps", "waiting"] {
        assert_eq!(
            execution[shared], value["finding"][shared],
            "{shared}: a page says what --json says"
        );
    }
    assert_eq!(page["check"]["guarantee"], value["guarantee"]);
    assert_eq!(page["sources"], serde_json::json!([{"file": file, "text": text}]));
    let name = |at: u64| {
        let variable = &execution["variables"][at as usize];
        let name = variable["name"].as_str().expect("a variable has a name");
        variable["slot"].as_u64().map_or(name.to_owned(), |slot| format!("{slot}:{name}"))
    };
    let changes = execution["changes"].as_array().expect("a list").iter().map(|changes| {
        let one = |change: &serde_json::Value| {
            format!(
                "{} {}",
                name(change[0].as_u64().expect("a number")),
                change[1].as_str().unwrap_or("gone")
            )
        };
        changes.as_array().expect("a list").iter().map(one).collect::<Vec<_>>().join(", ")
    });
    let expected = [
        "total 0, 0:t 0, 0:u 0, 1:t 0, 1:u 0",
        "0:twice.n 1, 0:twice.m 2",
        "total 2, 0:t gone, 0:u gone, 0:twice.n gone, 0:twice.m gone",
        "1:t 2, 1:twice.n 4, 1:twice.m 8",
        "total 8, 1:u 8, 1:twice.n gone, 1:twice.m gone",
    ];
    assert_eq!(changes.collect::<Vec<_>>(), expected);
    assert_eq!(execution["arrows"], serde_json::json!([[], [0], [1], [2]]));
}
