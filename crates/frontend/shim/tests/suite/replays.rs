//! Schedules of Rust tests: saved, replayed, stopped before a preemption, and refused if they do
//! not fit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use preempt::sync::Arc;
use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use preempt::{Check, Order, thread};

fn lost_update() {
    let n = Arc::new(AtomicUsize::new(0));
    let t = thread::spawn({
        let n = n.clone();
        move || n.store(n.load(SeqCst) + 1, SeqCst)
    });
    n.store(n.load(SeqCst) + 1, SeqCst);
    t.join().unwrap();
    assert_eq!(n.load(SeqCst), 2, "an update was lost");
}

/// The same with a swap in place of the first load.
fn changed() {
    let n = Arc::new(AtomicUsize::new(0));
    let t = thread::spawn({
        let n = n.clone();
        move || n.store(n.load(SeqCst) + 1, SeqCst)
    });
    n.store(n.swap(0, SeqCst) + 1, SeqCst);
    t.join().unwrap();
    assert_eq!(n.load(SeqCst), 2, "an update was lost");
}

/// The same without the last load.
fn shortened() {
    let n = Arc::new(AtomicUsize::new(0));
    let t = thread::spawn({
        let n = n.clone();
        move || n.store(n.load(SeqCst) + 1, SeqCst)
    });
    n.store(n.load(SeqCst) + 1, SeqCst);
    t.join().unwrap();
}

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn refused(check: &Check, body: impl Fn() + Sync) -> String {
    let panic =
        catch_unwind(AssertUnwindSafe(|| check.run(body))).expect_err("the check is refused");
    *panic.downcast::<String>().expect("a message")
}

#[test]
#[cfg(target_os = "linux")]
fn a_schedule_that_cannot_be_saved_does_not_hide_the_finding() {
    let report = Check::new().save_schedule("/dev/full").report(lost_update);
    assert!(
        report.contains("an update was lost") && report.contains("PREEMPT_REPLAY="),
        "{report}"
    );
    assert!(report.contains("the schedule cannot be saved as /dev/full: "), "{report}");
}

#[test]
fn a_file_and_a_token_replay_the_same_schedule() {
    let path = file("lost-update.schedule");
    let found = Check::new().save_schedule(&path).report(lost_update);
    let saved = std::fs::read_to_string(&path).unwrap();
    assert_eq!(
        saved,
        "preempt schedule 1\n\
         failure panic: main panicked: an update was lost left: 1 right: 2\n\
         0 main: 1 | load\n\
         1 t1: 3 | load\n\
         0 main: 3 | store\n"
            .replace("an update", "assertion `left == right` failed: an update")
    );
    let token = found
        .split("PREEMPT_REPLAY=")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next())
        .unwrap();
    let again =
        [path.to_str().unwrap(), token].map(|given| Check::new().replay(given).run(lost_update));
    assert_eq!(again[0].findings, again[1].findings);
    let [finding] = &again[0].findings[..] else { panic!("one finding") };
    assert!(finding.failure.message.contains("an update was lost"), "{finding:?}");
    assert_eq!(finding.preemptions, 1);
}

#[test]
fn a_replay_stops_before_a_preemption() {
    let path = file("stopped.schedule");
    Check::new().save_schedule(&path).run(lost_update);
    let replay = Check::new().replay(path.to_str().unwrap());
    let text = replay.clone().stop_at(1).report(lost_update);
    for part in [
        "stopped before preemption 1",
        "Here, before step 2, t1 preempts main.",
        "main continues at line 17:",
        "t1   continues at line 15:",
        "n = 0\n",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert!(!text.contains("an update was lost"), "{text}");
    for wrong in [0, 2] {
        let why = refused(&replay.clone().stop_at(wrong), lost_update);
        assert!(why.contains("the schedule has 1 preemption; they are counted from 1"), "{why}");
    }
}

#[test]
fn a_mismatched_schedule_says_what_was_expected_and_what_was_found() {
    let path = file("fits.schedule");
    Check::new().save_schedule(&path).run(lost_update);
    let replay = Check::new().replay(path.to_str().unwrap());
    let why = refused(&replay, changed);
    assert!(
        why.contains("step 1 of main was `load`, and is `swap` now at ")
            && why.contains("replays.rs:"),
        "{why}"
    );
    let why = refused(&replay, shortened);
    assert!(
        why.contains(
            "step 7 of 7: it is one of `main`, which has ended or was not started; threads \
                      that can move there: none"
        ),
        "{why}"
    );
    let saved = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, saved.replace("1 t1:", "1 other:")).unwrap();
    let why = refused(&replay, lost_update);
    assert!(why.contains("thread 1 was `other`, and is `t1` now"), "{why}");
    std::fs::write(&path, saved.replace("an update was lost", "all is well")).unwrap();
    let why = refused(&replay, lost_update);
    assert!(
        why.contains("no longer fails the way it was recorded (recorded: ")
            && why.contains("all is well")
            && why.contains("; now: "),
        "{why}"
    );
    std::fs::write(&path, saved.replace("schedule 1", "schedule 9")).unwrap();
    assert!(refused(&replay, lost_update).contains("not `preempt schedule 9`"));
    assert!(
        refused(&Check::new().replay("no such thing"), lost_update)
            .contains("it is neither a token nor a readable file")
    );
}

/// An object that the test creates may have any initial value.
#[test]
fn an_initial_value_need_not_be_zero() {
    let body = || {
        let n = Arc::new(AtomicUsize::new(5));
        let t = thread::spawn({
            let n = n.clone();
            move || n.store(6, SeqCst)
        });
        let seen = n.load(SeqCst);
        t.join().unwrap();
        assert_eq!(seen, 6);
    };
    let text = Check::new().report(body);
    let token = text
        .split("PREEMPT_REPLAY=")
        .nth(1)
        .and_then(|rest| rest.split_whitespace().next())
        .unwrap();
    assert_eq!(Check::new().replay(token).run(body).findings.len(), 1);
}

#[test]
fn findings_of_random_orders_shrink_to_the_schedules_of_icb() {
    let simplest = &Check::new().run(lost_update).findings[0];
    for order in [Order::Random, Order::Urw, Order::Pct { depth: 3 }, Order::Executions] {
        let check =
            Check::new().order(order).runs(10_000).shrink(std::time::Duration::from_secs(600));
        for seed in 0..10 {
            let finding = &check.clone().seed(seed).run(lost_update).findings[0];
            let shrunk = finding.shrunk.expect("a finding is shrunk");
            assert!(shrunk.fewest, "{order:?}, {seed}: {shrunk:?}");
            let steps = finding.schedule.steps().len();
            assert_eq!(
                (finding.preemptions, steps),
                (1, simplest.schedule.steps().len()),
                "{order:?}, {seed}"
            );
        }
    }
    let as_found =
        Check::new().order(Order::Random).shrink(std::time::Duration::ZERO).run(lost_update);
    assert_eq!(as_found.findings[0].shrunk, None);
}
