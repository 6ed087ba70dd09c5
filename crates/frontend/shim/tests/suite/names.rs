//! Loom's and shuttle's names for checks, and schedule tokens.

use std::panic::catch_unwind;

use preempt::alloc::{Layout, Track, alloc, dealloc};
use preempt::model::Builder;
use preempt::sync::Arc;
use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use preempt::{
    Check, FailureKind, check_dfs, check_pct, check_random, check_urw, model, replay, thread,
};

fn lost_update() {
    let n = Arc::new(AtomicUsize::new(0));
    // A search schedules the last thread first, and it steps first in the failing schedule.
    let idle = thread::spawn(|| drop(thread::spawn(|| ()).join()));
    let t = thread::spawn({
        let n = n.clone();
        move || n.store(n.load(SeqCst) + 1, SeqCst)
    });
    n.store(n.load(SeqCst) + 1, SeqCst);
    t.join().unwrap();
    idle.join().unwrap();
    assert_eq!(n.load(SeqCst), 2, "an update was lost");
}

#[track_caller]
fn fails(check: impl FnOnce() + std::panic::UnwindSafe) -> String {
    *catch_unwind(check).expect_err("the check fails").downcast::<String>().expect("a message")
}

fn token(text: &str) -> &str {
    let (_, token) = text.split_once("PREEMPT_REPLAY=").expect("a token");
    token.split_whitespace().next().expect("a word")
}

#[test]
fn every_check_function_finds_a_lost_update() {
    let mut bounded = Builder::new();
    bounded.preemption_bound = Some(1);
    bounded.max_branches = 1000;
    for text in [
        fails(|| model(lost_update)),
        fails(move || bounded.check(lost_update)),
        fails(|| check_random(lost_update, 100)),
        fails(|| check_pct(lost_update, 1000, 2)),
        fails(|| check_urw(lost_update, 100)),
        fails(|| check_dfs(lost_update, None)),
    ] {
        assert!(text.contains("an update was lost"), "{text}");
        let again = fails(|| replay(lost_update, token(&text)));
        assert!(again.contains("an update was lost") && again.contains(token(&text)), "{again}");
    }
    check_dfs(|| (), Some(1));
}

#[test]
fn a_token_of_another_test_is_refused() {
    let text = fails(|| model(lost_update));
    let other = fails(|| replay(|| assert_eq!(AtomicUsize::new(0).load(SeqCst), 0), token(&text)));
    assert!(other.contains("is not a schedule of this test"), "{other}");
    let none = fails(|| replay(lost_update, "p1-xyz"));
    assert!(none.contains("is not a schedule"), "{none}");
    let fixed = || {
        let n = Arc::new(AtomicUsize::new(0));
        let idle = thread::spawn(|| drop(thread::spawn(|| ()).join()));
        let t = thread::spawn({
            let n = n.clone();
            move || n.store(n.load(SeqCst) + 1, SeqCst)
        });
        n.store(n.load(SeqCst) + 1, SeqCst);
        t.join().unwrap();
        idle.join().unwrap();
        n.load(SeqCst);
    };
    assert!(
        fails(move || replay(fixed, token(&text)))
            .contains("this schedule no longer fails the way it was recorded")
    );
}

/// Two threads start a child each; it is an error if the second thread comes first. A search
/// explores the other order first.
fn children() {
    let n = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let handles: Vec<_> = (0..2)
        .map(|at| {
            let n = n.clone();
            thread::spawn(move || {
                let wrong = n.0.fetch_add(1, SeqCst) == 0 && at == 1;
                let child = thread::spawn({
                    let n = n.clone();
                    move || n.1.fetch_add(usize::from(wrong), SeqCst)
                });
                child.join().unwrap();
            })
        })
        .collect();
    handles.into_iter().for_each(|handle| handle.join().unwrap());
    assert_eq!(n.1.load(SeqCst), 0, "the second came first");
}

#[test]
fn a_token_numbers_threads_by_the_order_of_their_starts() {
    let text = fails(|| model(children));
    assert!(fails(|| replay(children, token(&text))).contains("the second came first"));
}

#[test]
fn memory_leaks_are_found() {
    let layout = Layout::new::<u64>();
    let leak = |body: &(dyn Fn() + Sync)| {
        let outcome = Check::new().run(body);
        outcome.findings.first().map(|finding| finding.failure.kind)
    };
    assert_eq!(leak(&|| unsafe { assert!(!alloc(layout).is_null()) }), Some(FailureKind::Leak));
    assert_eq!(leak(&|| unsafe { dealloc(alloc(layout), layout) }), None);
    assert_eq!(leak(&|| std::mem::forget(Track::new(1))), Some(FailureKind::Leak));
    assert_eq!(leak(&|| drop(Track::new(1))), None);
    assert_eq!(leak(&|| assert_eq!(Track::new(1).into_inner(), 1)), None);
}
