//! The page that a check writes.
#![cfg(feature = "check")]
#![allow(clippy::unwrap_used)]

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use preempt::sync::{Arc, Mutex};
use preempt::{Check, thread};

fn temporary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn lost_update() {
    let n = Arc::new((AtomicUsize::new(5), Mutex::new(())));
    let add = |n: &(AtomicUsize, Mutex<()>)| {
        drop(n.1.lock().unwrap());
        n.0.store(n.0.load(SeqCst) + 1, SeqCst);
    };
    let t = thread::spawn({
        let n = n.clone();
        move || add(&n)
    });
    add(&n);
    t.join().unwrap();
    assert_eq!(n.0.load(SeqCst), 7, "an update was lost");
}

/// The numbers of the variables, and in order the values of the one whose name begins so.
fn values(page: &str, name: &str) -> Vec<String> {
    let list = |from: &str| {
        let (_, rest) = page.split_once(&format!("\"{from}\": [")).unwrap();
        rest.split_once("\n      ]").unwrap().0.to_owned()
    };
    let names = list("variables");
    let number = names.lines().filter(|line| line.contains("\"name\"")).position(|line| line.contains(name)).unwrap();
    let changes = list("changes");
    let of = |line: &str| {
        let change = line.trim().strip_prefix(&format!("[{number}, "))?;
        Some(change.trim_end_matches([',', ']']).trim_matches('"').to_owned())
    };
    changes.split('\n').flat_map(|line| line.split("[[").last().map(|rest| format!("[{}", rest.trim_start_matches('[')))).filter_map(|line| of(&line)).collect()
}

#[test]
fn a_finding_has_a_page_with_its_values_and_its_source() {
    let path = temporary("lost_update.html");
    let text = Check::new().html(&path).report(lost_update);
    assert!(text.ends_with(&format!("  page      {}\n", path.display())), "{text}");
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.contains("\"subject\": \"crates/frontend/shim/tests/page.rs:"), "the place of the check");
    assert!(page.contains("an update was lost"), "the source of this file");
    assert!(page.contains("fn a_finding_has_a_page"), "all of it");
    assert_eq!(values(&page, "atomic@"), ["5", "6", "6"].map(str::to_owned)[..2], "{}", values(&page, "atomic@").join(" "));
    assert!(page.contains("held by t1"), "what the lock is at each step");
}

#[test]
fn a_check_without_a_finding_has_a_page_too() {
    let path = temporary("nothing.html");
    let outcome = Check::new().html(&path).run(|| ());
    assert!(outcome.findings.is_empty());
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.contains("\"verdict\": \"ok\"") && page.contains("\"executions\": []"), "{page}");
}

#[test]
fn a_replay_writes_the_same_execution() {
    let [found, replayed] = ["found.html", "replayed.html"].map(temporary);
    let outcome = Check::new().html(&found).report(lost_update);
    let token = outcome.split_once("PREEMPT_REPLAY=").unwrap().1.split_whitespace().next().unwrap();
    let _ = Check::new().html(&replayed).replay(token).report(lost_update);
    let execution = |path: &Path| {
        let page = std::fs::read_to_string(path).unwrap();
        let (_, from) = page.split_once("\"executions\": [\n").unwrap();
        from.split_once("\"sources\"").unwrap().0.to_owned()
    };
    assert_eq!(execution(&found), execution(&replayed));
}

#[test]
fn a_page_that_cannot_be_saved_is_refused_before_the_search() {
    let path = temporary("no such folder").join("page.html");
    let panicked = catch_unwind(|| Check::new().html(&path).run(|| panic!("this is not reached"))).unwrap_err();
    let said = panicked.downcast::<String>().unwrap();
    assert!(said.starts_with("this check cannot be made: the page cannot be saved as"), "{said}");
    assert!(said.contains("there is no directory"), "{said}");
}
