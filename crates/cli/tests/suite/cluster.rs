//! Searches in several processes, compared with one; and what happens when a process is killed,
//! stopped or interrupted.

mod checkpoints;
#[cfg(target_os = "linux")]
mod namespaces;
mod proxy;
#[cfg(unix)]
mod starting;

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use serde_json::Value;

const PREEMPT: &str = env!("CARGO_BIN_EXE_preempt");

fn corpus(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus").join(name).display().to_string()
}

fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn preempt(args: &[&str]) -> Output {
    Command::new(PREEMPT).args(args).output().expect("the binary was built for this test")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The JSON that was printed, without what depends on the machine, and without what depends on the
/// number of processes: memory, the states that wait at one time, and lines that were not reached,
/// which a cluster does not report.
fn numbers(output: &Output) -> Value {
    let parsed = serde_json::from_slice(&output.stdout);
    let mut value: Value = parsed.unwrap_or_else(|error| panic!("{error}: {output:?}"));
    let object = value.as_object_mut().expect("the report is an object");
    let dropped = ["seconds", "peak_memory", "unreached", "frontier", "store_bytes"];
    for name in dropped {
        object.remove(name);
    }
    drop_memory(&mut value);
    value
}

fn drop_memory(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.retain(|name, _| !(name.contains("bytes") || name.contains("frontier")));
            object.values_mut().for_each(drop_memory);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_memory),
        _ => {}
    }
}

#[test]
fn the_report_does_not_depend_on_the_number_of_processes() {
    let cases: [(&str, &[&str]); 10] = [
        ("abba/model.pre", &[]),
        ("abba/ordered.pre", &[]),
        ("peterson/model.pre", &[]),
        ("peterson/turn-first.pre", &["--keep-going"]),
        ("treiber-stack/aba.pre", &[]),
        ("philosophers/model.pre", &["--set", "N=6"]),
        ("philosophers/left-right.pre", &["--set", "N=5", "--store", "tree"]),
        ("bench/indexer.pre", &["--set", "N=2"]),
        ("philosophers/model.pre", &["--set", "N=5", "--store", "sorted", "--spill", "."]),
        ("bench/counter2.pre", &["--set", "N=3", "--set", "K=3", "--jobs", "2"]),
    ];
    for (file, options) in cases {
        let file = corpus(file);
        let check = [&["check", &file, "--order", "bfs", "--json"], options].concat();
        let alone = preempt(&check);
        assert!(alone.status.code().is_some_and(|code| code < 2), "{}", text(&alone.stderr));
        for processes in ["1", "2", "3", "4"] {
            let together = preempt(&[&check[..], &["--processes", processes]].concat());
            assert_eq!(numbers(&together), numbers(&alone), "{file}, {processes} processes");
            assert_eq!(together.status.code(), alone.status.code());
            assert_eq!(text(&together.stderr), "");
        }
    }
}

#[test]
fn every_level_has_the_same_counts() {
    let file = corpus("philosophers/model.pre");
    for depth in ["0", "1", "2", "5", "9"] {
        let check = ["check", &file, "--set", "N=5", "--order", "bfs", "--keep-going", "--json"];
        let check = [&check[..], &["--depth", depth]].concat();
        let alone = numbers(&preempt(&check));
        let together = numbers(&preempt(&[&check[..], &["--processes", "3"]].concat()));
        assert_eq!(together, alone, "depth {depth}");
    }
}

/// A search that takes far longer than the test.
fn long(options: &[&str]) -> Child {
    let file = corpus("bench/grid.pre");
    let check = ["check", &file, "--set", "N=9", "--set", "K=30", "--order", "bfs", "--quiet"];
    Command::new(PREEMPT)
        .args([&check[..], options].concat())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built for this test")
}

/// The processes that `parent` has started.
fn started_by(parent: u32) -> Vec<u32> {
    let numbers = fs::read_dir("/proc")
        .expect("there is /proc")
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let is_child = |number: &u32| {
        let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        // The name, in parentheses, may contain blanks.
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        let mut fields = rest.split_ascii_whitespace();
        let state = fields.next();
        fields.next() == Some(&parent.to_string()) && state != Some("Z")
    };
    let mut found: Vec<u32> = numbers.filter(is_child).collect();
    found.sort_unstable();
    found
}

/// The processes that `parent` has started, when they are all there and have worked for a while.
fn workers(parent: u32, count: usize) -> Vec<u32> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let found = started_by(parent);
        let cpu = |number: &u32| {
            let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
            let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
            let ticks = fields.split_ascii_whitespace().nth(11);
            ticks.and_then(|ticks| ticks.parse::<u64>().ok()).unwrap_or(0)
        };
        if found.len() == count && found.iter().all(|number| cpu(number) > 5) {
            return found;
        }
        assert!(Instant::now() < deadline, "the search has not begun");
        sleep(Duration::from_millis(20));
    }
}

fn signal(name: &str, process: u32) {
    let sent = Command::new("kill").args([name, &process.to_string()]).status();
    assert!(sent.expect("there is kill").success());
}

fn is_there(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    !matches!(rest.split_ascii_whitespace().next(), None | Some("Z"))
}

/// Waits until none of `processes` is there.
fn all_end(processes: &[u32]) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while processes.iter().any(|&process| is_there(process)) {
        assert!(Instant::now() < deadline, "a process is left");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_killed_process_ends_all_as_incomplete() {
    for victim in 0..2 {
        let search = long(&["--processes", "3"]);
        let workers = workers(search.id(), 2);
        signal("-KILL", workers[victim]);
        let output = search.wait_with_output().expect("the process ends");
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert!(stdout.contains("INCOMPLETE"), "{stdout}");
        assert!(stdout.contains("because another process ended or did not answer"), "{stdout}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
        assert!(stderr.starts_with("error: process ") && stderr.contains(" is gone"), "{stderr}");
        all_end(&workers);
    }
}

#[test]
fn the_others_end_when_process_0_is_killed() {
    let mut search = long(&["--processes", "3"]);
    let workers = workers(search.id(), 2);
    signal("-KILL", search.id());
    search.wait().expect("the process ends");
    all_end(&workers);
}

#[test]
fn a_stopped_process_is_noticed() {
    let search = long(&["--processes", "3", "--cluster-timeout", "2"]);
    let workers = workers(search.id(), 2);
    signal("-STOP", workers[1]);
    let output = search.wait_with_output().expect("the process ends");
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let stderr = text(&output.stderr);
    assert!(stderr.contains("has not answered for 2 s"), "{stderr}");
    all_end(&workers);
}

#[test]
fn the_others_end_when_process_0_is_stopped() {
    let mut search = long(&["--processes", "2", "--cluster-timeout", "2"]);
    let workers = workers(search.id(), 1);
    signal("-STOP", search.id());
    all_end(&workers);
    signal("-KILL", search.id());
    search.wait().expect("the process ends");
}

#[test]
fn an_interrupt_of_any_process_ends_all() {
    for victim in 0..2 {
        let search = long(&["--processes", "2"]);
        let workers = workers(search.id(), 1);
        signal("-INT", if victim == 0 { search.id() } else { workers[0] });
        let output = search.wait_with_output().expect("the process ends");
        assert_eq!(output.status.code(), Some(3), "{output:?}");
        let stdout = text(&output.stdout);
        assert!(stdout.contains("by an interrupt"), "{stdout}");
        assert_eq!(text(&output.stderr), "");
        all_end(&workers);
    }
}

#[test]
fn what_is_not_distributed_is_refused() {
    let file = corpus("abba/model.pre");
    for (options, why) in [
        (&["--processes", "2"][..], "--processes needs --order bfs"),
        (&["--processes", "0", "--order", "bfs"], "--processes must be at least 1"),
        (&["--processes", "2", "--order", "dfs"], "--order dfs is not distributed"),
        (&["--processes", "2", "--order", "bfs", "--store", "bitstate"], "--store bitstate is not"),
        (
            &["--processes", "2", "--order", "bfs", "--spill", "."],
            "--spill with --processes needs --store sorted",
        ),
        (
            &["--processes", "2", "--order", "bfs", "--checkpoint-every", "1"],
            "--checkpoint-every needs --checkpoint",
        ),
        (
            &["--processes", "2", "--order", "bfs", "--store", "sorted", "--checkpoint", "c"],
            "--processes has no checkpoints with --store sorted",
        ),
    ] {
        let output = preempt(&[&["check", &file], options].concat());
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(text(&output.stderr).contains(why), "{options:?}: {}", text(&output.stderr));
    }
}

/// Addresses with unused ports.
fn free_addresses(count: usize) -> Vec<String> {
    let listeners: Vec<TcpListener> =
        (0..count).map(|_| TcpListener::bind("127.0.0.1:0").expect("there is a port")).collect();
    listeners
        .iter()
        .map(|listener| listener.local_addr().expect("the listener is bound").to_string())
        .collect()
}

#[test]
fn processes_find_each_other_by_a_file_of_hosts() {
    let hosts = temporary("hosts.txt");
    fs::write(&hosts, free_addresses(3).join("\n")).unwrap();
    let (hosts, file) = (hosts.display().to_string(), corpus("philosophers/model.pre"));
    let check = ["check", &file, "--set", "N=5", "--order", "bfs", "--json"];
    let alone = preempt(&check);
    let run = |process: usize| {
        let process = process.to_string();
        preempt(&[&check[..], &["--cluster", &hosts, "--process", &process]].concat())
    };
    thread::scope(|scope| {
        let others: Vec<_> = [2, 1].map(|process| scope.spawn(move || run(process))).into();
        assert_eq!(numbers(&run(0)), numbers(&alone));
        for other in others {
            let output = other.join().unwrap();
            assert_eq!(output.status.code(), alone.status.code());
            assert_eq!((text(&output.stdout), text(&output.stderr)), Default::default());
        }
    });
}

#[test]
fn another_model_and_other_options_are_refused_by_name() {
    for (number, other, why) in [
        (0, &["--set", "N=4"][..], "its model differs"),
        (1, &["--set", "N=5", "--keep-going"], "whether to keep going is true there and false"),
    ] {
        let hosts = temporary(&format!("hosts-{number}.txt"));
        fs::write(&hosts, free_addresses(2).join("\n")).unwrap();
        let (hosts, file) = (hosts.display().to_string(), corpus("philosophers/model.pre"));
        let check = ["check", &file, "--order", "bfs", "--cluster", &hosts, "--process"];
        thread::scope(|scope| {
            let worker = scope.spawn(|| preempt(&[&check[..], &["1"], other].concat()));
            let output = preempt(&[&check[..], &["0", "--set", "N=5"]].concat());
            assert_eq!(output.status.code(), Some(2), "{output:?}");
            assert!(text(&output.stderr).contains(why), "{}", text(&output.stderr));
            assert_eq!(worker.join().unwrap().status.code(), Some(2));
        });
    }
}

#[test]
fn only_processes_with_the_key_are_accepted() {
    let outside = preempt(&["worker", "--listen", "0.0.0.0:0"]);
    assert_eq!(outside.status.code(), Some(2));
    assert!(text(&outside.stderr).contains("is not a loopback address"), "{outside:?}");
    let keys = ["one", "two"].map(|name| {
        let path = temporary(&format!("{name}.key"));
        fs::write(&path, format!("a secret of many letters: {name}\n")).unwrap();
        path.display().to_string()
    });
    let mut worker = Command::new(PREEMPT)
        .args(["worker", "--listen", "127.0.0.1:0", "--cluster-key", &keys[0]])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(worker.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address =
        line.trim().rsplit_once(' ').expect("the line ends with the address").1.to_owned();
    // Bytes that are no greeting, and one that hangs up at once.
    let mut stranger = TcpStream::connect(&address).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n and more than enough bytes for it").unwrap();
    let _ = stranger.read_to_end(&mut Vec::new());
    drop(TcpStream::connect(&address).unwrap());
    let hosts = temporary("keyed.txt");
    fs::write(&hosts, format!("127.0.0.1:1\n{address}\n")).unwrap();
    let (hosts, file) = (hosts.display().to_string(), corpus("abba/model.pre"));
    let check = |key: &str| {
        let cluster = ["--cluster", &hosts, "--process", "0", "--cluster-key", key];
        preempt(&[&["check", &file, "--order", "bfs", "--json"], &cluster[..]].concat())
    };
    let wrong = check(&keys[1]);
    assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
    assert!(text(&wrong.stderr).contains("has another key"), "{}", text(&wrong.stderr));
    // The worker still waits, and needs no model of its own.
    let alone = preempt(&["check", &file, "--order", "bfs", "--json"]);
    assert_eq!(numbers(&check(&keys[0])), numbers(&alone));
    assert_eq!(worker.wait().unwrap().code(), alone.status.code());
}
