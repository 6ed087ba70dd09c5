//! The HTML page that a check writes.
#![cfg(feature = "check")]
#![allow(clippy::unwrap_used)]

use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use preempt::sync::{Arc, Mutex};
use preempt::{Check, thread};
use serde_json::{Value, json};

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

/// The JSON data that a page contains.
fn data(path: &Path) -> Value {
    let page = std::fs::read_to_string(path).unwrap();
    let (_, rest) = page.split_once("id=\"data\">").unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// The successive values of the variable whose name begins with `name`.
fn values<'d>(execution: &'d Value, name: &str) -> Vec<&'d str> {
    let variables = execution["variables"].as_array().unwrap();
    let number = variables
        .iter()
        .position(|variable| variable["name"].as_str().unwrap().starts_with(name))
        .unwrap();
    let changes = execution["changes"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|changes| changes.as_array().unwrap());
    changes.filter(|change| change[0] == number).map(|change| change[1].as_str().unwrap()).collect()
}

#[test]
fn a_finding_has_a_page_with_its_values_and_its_source() {
    let path = temporary("lost_update.html");
    let text = Check::new().html(&path).report(lost_update);
    assert!(text.ends_with(&format!("  page      {}\n", path.display())), "{text}");
    let data = data(&path);
    let file = "crates/frontend/shim/tests/page.rs";
    assert!(data["subject"].as_str().unwrap().starts_with(file), "{}", data["subject"]);
    assert_eq!(data["sources"], json!([{"file": file, "text": include_str!("page.rs")}]));
    let execution = &data["executions"][0];
    assert_eq!(values(execution, "atomic@"), ["5", "6"], "both threads add to the same atomic");
    // The first store is where the value changes, not the first load after it.
    let steps = execution["steps"].as_array().unwrap();
    let store = steps
        .iter()
        .position(|step| step["effects"].to_string().contains(".store(6), was 5"))
        .unwrap();
    assert!(
        execution["changes"][store + 1].as_array().unwrap().iter().any(|change| change[1] == "6")
    );
    let lock = values(execution, "mutex@");
    assert!(
        lock.contains(&"held by t1") && lock.contains(&"held by main") && lock.ends_with(&["free"]),
        "{lock:?}"
    );
    assert_eq!(values(execution, "t1"), ["ended"], "shown from its last step on");
    let arrows = execution["arrows"].as_array().unwrap();
    assert_eq!(arrows.len(), execution["steps"].as_array().unwrap().len());
    assert!(
        arrows.iter().any(|from| from.as_array().unwrap().len() == 2),
        "some step is ordered after two others"
    );
}

#[test]
fn a_check_without_findings_writes_a_page_too() {
    let path = temporary("nothing.html");
    let outcome = Check::new().html(&path).run(|| ());
    assert!(outcome.findings.is_empty());
    let data = data(&path);
    assert_eq!((&data["check"]["verdict"], &data["executions"]), (&json!("ok"), &json!([])));
}

#[test]
fn a_replay_writes_the_same_execution() {
    let [found, replayed] = ["found.html", "replayed.html"].map(temporary);
    let outcome = Check::new().html(&found).report(lost_update);
    let token = outcome.split_once("PREEMPT_REPLAY=").unwrap().1.split_whitespace().next().unwrap();
    let _ = Check::new().html(&replayed).replay(token).report(lost_update);
    let [found, replayed] = [&found, &replayed].map(|path| data(path)["executions"][0].take());
    for same in [
        "headline",
        "schedule",
        "preemptions",
        "steps",
        "preempts",
        "arrows",
        "variables",
        "changes",
        "waiting",
    ] {
        assert_eq!(found[same], replayed[same], "{same}");
        assert!(!found[same].is_null(), "{same}");
    }
}

#[test]
fn a_page_that_cannot_be_saved_is_refused_before_the_search() {
    let path = temporary("no such folder").join("page.html");
    let panicked =
        catch_unwind(|| Check::new().html(&path).run(|| panic!("not reached"))).unwrap_err();
    let said = panicked.downcast::<String>().unwrap();
    assert!(said.starts_with("this check cannot be made: the page cannot be saved as"), "{said}");
    assert!(said.contains("there is no directory"), "{said}");
}
