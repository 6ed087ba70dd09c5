//! Connections through a proxy that delays, cuts and damages them.

use std::net::Shutdown;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::*;

/// What happens to the bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// Each piece is delayed by up to some milliseconds.
    Delays,
    /// The connection ends after this number of bytes in both directions.
    CutAfter(u64),
    /// This bit is flipped, counted from the first byte of all.
    FlipBit(u64),
    /// After this number of bytes no further byte passes, but the connection stays open.
    HoldAfter(u64),
}

/// Numbers that are the same in every run.
fn next_random(state: &AtomicU64) -> u64 {
    let step = |old: u64| old.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    step(state.fetch_update(Relaxed, Relaxed, |old| Some(step(old))).unwrap_or_default()) >> 33
}

/// Passes the bytes of one direction on.
fn pump(
    mut from: TcpStream,
    mut to: TcpStream,
    fault: Fault,
    passed: &AtomicU64,
    random: &AtomicU64,
) {
    let mut buffer = [0; 4096];
    loop {
        let most = 1 + next_random(random) as usize % buffer.len();
        let Ok(count @ 1..) = from.read(&mut buffer[..most]) else { break };
        let before = passed.fetch_add(count as u64, Relaxed);
        let after = before + count as u64;
        let bytes = &mut buffer[..count];
        match fault {
            Fault::Delays => sleep(Duration::from_micros(next_random(random) % 3_000)),
            Fault::CutAfter(most) if after > most => break,
            Fault::HoldAfter(most) if after > most => loop {
                sleep(Duration::from_millis(50));
                if from.peek(&mut [0]).is_err() {
                    return;
                }
            },
            Fault::FlipBit(bit) if (before..after).contains(&(bit / 8)) => {
                bytes[(bit / 8 - before) as usize] ^= 1 << (bit % 8);
            }
            _ => {}
        }
        if to.write_all(bytes).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// Starts a proxy for the process that listens on `target`. Returns the address of the proxy.
fn proxy(target: String, fault: Fault, passed: Arc<AtomicU64>, seed: u64) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let random = Arc::new(AtomicU64::new(seed));
    // The threads end with the test program.
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            let Ok(other) = TcpStream::connect(&target) else { continue };
            for (from, to) in [(&socket, &other), (&other, &socket)] {
                let (from, to) = (from.try_clone().expect("fd"), to.try_clone().expect("fd"));
                let (passed, random) = (passed.clone(), random.clone());
                thread::spawn(move || pump(from, to, fault, &passed, &random));
            }
        }
    });
    address
}

/// Starts a worker. Returns it and its address.
fn worker() -> (Child, String) {
    let mut worker = Command::new(PREEMPT)
        .args(["worker", "--listen", "127.0.0.1:0", "--cluster-timeout", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary was built for this test");
    let mut line = String::new();
    let stderr = worker.stderr.take().expect("it is a pipe");
    BufReader::new(stderr).read_line(&mut line).expect("it says where it listens");
    let address = line.trim().rsplit_once(' ').expect("it says where it listens").1.to_owned();
    (worker, address)
}

/// Searches in three processes whose connections are proxies. Returns the output of process 0, the
/// exit codes of the others, and how many bytes went through the proxies.
fn through_proxies(check: &[&str], fault: Fault, seed: u64) -> (Output, Vec<Option<i32>>, u64) {
    let passed = Arc::new(AtomicU64::new(0));
    let mut lines = vec!["127.0.0.1:1".to_owned()];
    let mut workers = Vec::new();
    for _ in 0..2 {
        let (child, address) = worker();
        lines.push(proxy(address.clone(), fault, passed.clone(), seed));
        workers.push((child, address));
    }
    let hosts = temporary(&format!("proxies-{fault:?}-{seed}.txt"));
    fs::write(&hosts, lines.join("\n")).expect("it can be written");
    let hosts = hosts.display().to_string();
    let cluster = ["--cluster", &hosts, "--process", "0", "--cluster-timeout", "1"];
    let output = preempt(&[check, &cluster].concat());
    // A worker that no search has reached waits for another one, and serves it.
    let refused = output.status.code() == Some(2);
    let codes = workers.iter_mut().map(|(worker, address)| {
        let mut next_search = Some(Instant::now() + Duration::from_secs(20));
        let deadline = Instant::now() + Duration::from_secs(60);
        while let Ok(None) = worker.try_wait() {
            if refused {
                let _ = worker.kill();
            }
            if next_search.take_if(|at| *at < Instant::now()).is_some() {
                // The connection was held before the worker got to know the search.
                fs::write(&hosts, format!("127.0.0.1:1\n{address}")).expect("it can be written");
                let next = preempt(&[check, &cluster].concat());
                assert_ne!(next.status.code(), Some(2), "{fault:?}, {seed}: {next:?}");
            }
            assert!(Instant::now() < deadline, "a worker does not end: {fault:?}, {seed}");
            sleep(Duration::from_millis(10));
        }
        worker.wait().expect("it has ended").code()
    });
    (output, codes.collect(), passed.load(Relaxed))
}

#[test]
fn delays_change_nothing() {
    for (seed, file, options) in [
        (1, "philosophers/model.pre", &["--set", "N=5"][..]),
        (2, "philosophers/model.pre", &["--set", "N=5", "--keep-going"]),
        (3, "peterson/model.pre", &[]),
    ] {
        let file = corpus(file);
        let check = [&["check", &file, "--order", "bfs", "--json"], options].concat();
        let (output, codes, _) = through_proxies(&check, Fault::Delays, seed);
        let alone = preempt(&check);
        assert_eq!(numbers(&output), numbers(&alone), "seed {seed}");
        assert_eq!(codes, [alone.status.code(); 2]);
    }
}

/// Whether the search ended as it has to: with the numbers of one process, or incomplete with one
/// message, or refused because the processes could not connect.
fn ends_well(
    alone: &Output,
    fault: Fault,
    seed: u64,
    (output, codes, _): &(Output, Vec<Option<i32>>, u64),
) {
    let stderr = text(&output.stderr);
    let what = format!("{fault:?}, seed {seed}: {output:?}, {codes:?}");
    match output.status.code() {
        code if code == alone.status.code() => {
            assert_eq!(numbers(output), numbers(alone), "{what}");
        }
        Some(3) => {
            assert_eq!(stderr.lines().count(), 1, "{what}");
            assert!(stderr.starts_with("error: "), "{what}");
            if output.stdout.is_empty() {
                // A process was lost before the search began: there is nothing to report.
                return;
            }
            let report: Value = serde_json::from_slice(&output.stdout).expect("one object");
            assert_eq!(report["verdict"], "incomplete", "{what}");
        }
        Some(2) => assert!(!stderr.is_empty() && output.stdout.is_empty(), "{what}"),
        _ => panic!("{what}"),
    }
    assert!(!stderr.contains("panicked"), "{what}");
}

#[test]
fn cut_and_damaged_connections_end_all_processes() {
    let file = corpus("philosophers/model.pre");
    let check = ["check", &file, "--set", "N=6", "--order", "bfs", "--keep-going", "--json"];
    let alone = preempt(&check);
    let (undisturbed, _, all) = through_proxies(&check, Fault::CutAfter(u64::MAX), 0);
    assert_eq!(numbers(&undisturbed), numbers(&alone));
    let random = AtomicU64::new(11);
    let mut incomplete = 0;
    for seed in 0..12 {
        let at = next_random(&random) % all;
        let fault = match seed % 3 {
            0 => Fault::CutAfter(at),
            1 => Fault::FlipBit(8 * at + seed % 8),
            _ => Fault::HoldAfter(at),
        };
        let ended = through_proxies(&check, fault, seed);
        ends_well(&alone, fault, seed, &ended);
        incomplete += u32::from(ended.0.status.code() == Some(3));
    }
    assert!(incomplete > 3, "most faults happen during the search: {incomplete}");
}
