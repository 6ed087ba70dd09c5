//! Searches that are killed or interrupted and resumed in another process.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

const PREEMPT: &str = env!("CARGO_BIN_EXE_preempt");

fn model(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models").join(name).display().to_string()
}

/// The path of a file that does not exist.
fn temporary(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    path
}

fn preempt(args: &[&str]) -> Output {
    Command::new(PREEMPT).args(args).output().expect("the binary was built for this test")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// The printed JSON without the fields that depend on the machine and its load, or that a
/// checkpoint does not keep.
fn numbers(stdout: &[u8]) -> Value {
    let mut value: Value = serde_json::from_slice(stdout).expect("--json prints JSON");
    let object = value.as_object_mut().expect("the report is an object");
    object.remove("seconds");
    object.remove("peak_memory");
    object.remove("rerun_seconds");
    object.remove("unreached");
    // A resumed search looks for simple errors at other numbers of states.
    object.remove("scouted");
    value
}

/// Kills a search again and again, later and later, and resumes it each time from its last
/// checkpoint.
fn killed(name: &str, file: &str, options: &[&str]) {
    let file = model(file);
    killed_command(name, &[&["check", &file, "--json"], options].concat(), &[]);
}

/// Like [`killed`], for any search: a command, and the arguments after its options.
fn killed_command(name: &str, command: &[&str], subject: &[&str]) {
    let checkpoint = temporary(&format!("{name}.checkpoint")).display().to_string();
    let through = preempt(&[command, subject].concat());
    let check = [command, &["--checkpoint", &checkpoint, "--checkpoint-every", "0.01"]].concat();
    // The first part ends at once, by a limit of time, so that there is a checkpoint to resume
    // however fast the machine is.
    let first = preempt(&[&check[..], &["--time", "0.0000001"], subject].concat());
    assert_eq!(numbers(&first.stdout)["stopped"], "time", "{}", text(&first.stderr));
    assert!(
        text(&first.stderr).contains("To resume, with a larger --time"),
        "{}",
        text(&first.stderr)
    );
    let resume = [&check[..], &["--resume", &checkpoint], subject].concat();
    let (mut delay, mut seed) = (5u64, name.len() as u64);
    let last = loop {
        let mut child = Command::new(PREEMPT)
            .args(&resume)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary was built for this test");
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        sleep(Duration::from_millis(1 + (seed >> 33) % delay));
        let ended = child.try_wait().expect("the child is alive").is_some();
        if !ended {
            child.kill().expect("the child is alive");
        }
        let output = child.wait_with_output().expect("the child has ended");
        // It may have ended before it was killed.
        if output.status.code().is_some() {
            break output;
        }
        delay = delay * 3 / 2 + 20;
    };
    assert_eq!(last.status.code(), through.status.code(), "{name}: {}", text(&last.stderr));
    assert_eq!(numbers(&last.stdout), numbers(&through.stdout), "{name}");
    let resumed: Value = serde_json::from_slice(&last.stdout).expect("--json prints JSON");
    if resumed["complete"] == true && subject.is_empty() {
        assert_eq!(
            resumed.get("unreached"),
            Some(&Value::Null),
            "{name}: a checkpoint does not say what was reached"
        );
    }
}

#[test]
fn killed_breadth_first() {
    killed(
        "bfs",
        "counters.pre",
        &["--order", "bfs", "--set", "STEPS=3", "--set", "THREADS=5", "--keep-going"],
    );
}

#[test]
fn killed_depth_first() {
    let options = [
        "--order",
        "dfs",
        "--store",
        "tree",
        "--set",
        "STEPS=3",
        "--set",
        "THREADS=5",
        "--keep-going",
    ];
    killed("dfs", "counters.pre", &options);
}

#[test]
fn killed_by_context_bounds() {
    let options =
        ["--order", "icb", "--cache", "hb", "--bound", "2", "--set", "THREADS=4", "--keep-going"];
    killed("icb", "counters.pre", &options);
}

#[test]
fn killed_in_executions() {
    let options =
        ["--order", "executions", "--set", "STEPS=2", "--executions", "50000", "--keep-going"];
    killed("executions", "counters.pre", &options);
}

#[test]
fn killed_in_a_reduction() {
    let options =
        ["--reduce", "dpor-optimal", "--set", "THREADS=5", "--set", "STEPS=2", "--keep-going"];
    killed("dpor", "counters.pre", &options);
}

/// The threads and objects of an executable have to keep their names.
#[test]
#[cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]
fn killed_in_an_executable() {
    let program = super::executables::compiled("philosophers").display().to_string();
    let options = ["run", "--json", "--bound", "2", "--cache", "none", "--order", "icb"];
    let jobs = [&options[..], &["--jobs", "2"]].concat();
    killed_command("executable", &options, &["--", &program]);
    killed_command("executable-jobs", &jobs, &["--", &program]);
    // A checkpoint of another executable, or of other arguments, is refused.
    let checkpoint = temporary("foreign.checkpoint").display().to_string();
    let every = ["--checkpoint", &checkpoint, "--checkpoint-every", "0.01", "--time", "0.0000001"];
    preempt(&[&options[..], &every, &["--", &program, "a"]].concat());
    let other = super::executables::compiled("abba").display().to_string();
    let resume = [&options[..], &["--resume", &checkpoint]].concat();
    for subject in [&[&*other, "a"][..], &[&*program, "b"], &[&*program, "a", "--resume"]] {
        let output = preempt(&[&resume[..], &["--"], subject].concat());
        assert_eq!(output.status.code(), Some(2), "{subject:?}");
        assert!(text(&output.stderr).contains("another program"), "{}", text(&output.stderr));
    }
    let again = preempt(&[&resume[..], &["--", &program, "a"]].concat());
    assert_eq!(again.status.code(), Some(1), "{}", text(&again.stderr));
}

/// The default: first a search of simple executions, then one over all states.
#[test]
fn killed_in_the_first_or_the_second_search() {
    killed("default", "ok.pre", &["--set", "THREADS=11"]);
}

#[test]
#[cfg(target_os = "linux")]
fn an_interrupt_writes_a_checkpoint_and_says_how_to_resume() {
    // By default the interrupt may come during the first search, of simple executions, or later.
    for order in ["bfs", "icb", "auto"] {
        interrupt(order);
    }
}

#[cfg(target_os = "linux")]
fn interrupt(order: &str) {
    let (file, checkpoint) =
        (model("endless.pre"), temporary(&format!("interrupt-{order}.checkpoint")));
    let checkpoint = checkpoint.display().to_string();
    let args = [
        "check",
        &file,
        "--order",
        order,
        "--memory",
        "2G",
        "--quiet",
        "--checkpoint",
        &checkpoint,
    ];
    let child = Command::new(PREEMPT)
        .args(args)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built for this test");
    let status = format!("/proc/{}/status", child.id());
    let catches_interrupts = || {
        let status = fs::read_to_string(&status).expect("the search is still running");
        let mask = status
            .lines()
            .find_map(|line| line.strip_prefix("SigCgt:"))
            .expect("the kernel reports handled signals");
        u64::from_str_radix(mask.trim(), 16).expect("a mask in base 16") & 2 != 0
    };
    while !catches_interrupts() {
        sleep(Duration::from_millis(5));
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
    let command = format!("To resume: preempt {} --resume {checkpoint}\n", args.join(" "));
    assert!(text(&output.stderr).ends_with(&command), "{}\n{command}", text(&output.stderr));
    // The command works, but would not end.
    let args = [&args[..], &["--resume", &checkpoint, "--json", "--time", "0.0000001"]].concat();
    let resumed = numbers(&preempt(&args).stdout);
    assert_eq!(resumed["stopped"], "time");
    let states = |value: &Value| value["states"].as_u64().expect("a number");
    assert!(states(&resumed) >= 1000, "{resumed}");
}

/// The refusal to resume `checkpoint` with these options.
fn refused(checkpoint: &Path, options: &[&str]) -> String {
    let checkpoint = checkpoint.display().to_string();
    let output = preempt(&[&["check"], options, &["--resume", &checkpoint]].concat());
    assert_eq!(output.status.code(), Some(2), "{options:?}: {}", text(&output.stderr));
    text(&output.stderr)
}

#[test]
fn a_checkpoint_of_another_search_is_refused() {
    let (file, checkpoint) = (temporary("changed.pre"), temporary("refused.checkpoint"));
    let source = fs::read_to_string(model("counters.pre")).expect("a model");
    fs::write(&file, &source).expect("the folder for temporary files can be written");
    let name = file.display().to_string();
    let kept = checkpoint.display().to_string();
    let options = [&name, "--order", "bfs", "--set", "STEPS=9", "--set", "THREADS=6"];
    let first = preempt(
        &[&["check"], &options[..], &["--time", "0.0000001", "--checkpoint", &kept]].concat(),
    );
    assert_eq!(first.status.code(), Some(3), "{}", text(&first.stderr));
    let with = |more: &[&str]| {
        refused(&checkpoint, &[&[name.as_str(), "--set", "THREADS=6"], more].concat())
    };
    let constant = with(&["--order", "bfs", "--set", "STEPS=8"]);
    assert!(constant.contains("another program") && constant.contains("constant"), "{constant}");
    let order = with(&["--order", "dfs", "--set", "STEPS=9"]);
    assert!(order.contains("there the order is BreadthFirst, here it is DepthFirst"), "{order}");
    let jobs = with(&["--order", "bfs", "--set", "STEPS=9", "--jobs", "2"]);
    assert!(jobs.contains("the number of jobs is 1"), "{jobs}");
    let bytes = fs::read(&checkpoint).expect("the checkpoint was written");
    fs::write(&checkpoint, &bytes[..bytes.len() / 2]).expect("the file is writable");
    assert!(refused(&checkpoint, &options).contains("damaged"));
    fs::write(&checkpoint, &source).expect("the file is writable");
    assert!(refused(&checkpoint, &options).contains("not a checkpoint"));
    fs::write(&checkpoint, &bytes).expect("the file is writable");
    fs::write(&file, format!("{source}\n// changed\n")).expect("the file is writable");
    assert!(refused(&checkpoint, &options).contains("another program"));
    assert!(refused(Path::new("no/such/file"), &options).contains("there is no such file"));
    let alone = preempt(&["check", &name, "--checkpoint-every", "1"]);
    assert!(text(&alone.stderr).contains("needs --checkpoint"), "{}", text(&alone.stderr));
    let nowhere = preempt(&["check", &name, "--checkpoint", "no/such/folder/file"]);
    assert!(
        text(&nowhere.stderr).contains("there is no directory no/such/folder"),
        "{}",
        text(&nowhere.stderr)
    );
}
