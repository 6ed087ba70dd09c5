//! Settings, refusals, models, replays and reports.

use preempt::linearize::linearize;
use preempt::sync::atomic::{AtomicU32, Ordering::SeqCst};
use preempt::sync::{Condvar, Mutex};
use preempt::{Check, Refusal, choose};

use super::structures::{Counter, LockQueue, MichaelScott};

#[track_caller]
fn refused<T>(result: Result<T, Refusal>, words: &str) {
    let Err(refusal) = result else { panic!("this should be refused: {words}") };
    assert!(refusal.to_string().contains(words), "{refusal}");
}

#[test]
fn a_replay_shows_the_same_failure() {
    let queue = || {
        linearize(LockQueue::default)
            .op1("push", LockQueue::push)
            .op("pop", LockQueue::pop_in_two_steps)
    };
    let outcome = queue().run();
    let text = outcome.to_string();
    let scenario = "push(1); pop() || pop()";
    assert!(text.contains(&format!("PREEMPT_SCENARIO='{scenario}' PREEMPT_REPLAY=p1-")), "{text}");
    let token = text.split("PREEMPT_REPLAY=").nth(1).unwrap().split_whitespace().next().unwrap();
    let again = queue().scenario(scenario).explore(Check::new().replay(token)).run();
    assert_eq!(
        again.failed.map(|failed| failed.table),
        outcome.failed.map(|failed| failed.table),
        "the replay has the same results"
    );
    refused(queue().explore(Check::new().replay(token)).try_run(), "needs the scenario");
}

#[test]
fn the_report_has_a_table_and_an_explanation() {
    let outcome = linearize(Counter::default).op("inc", Counter::inc_in_two_steps).run();
    let text = outcome.to_string();
    for part in [
        "not linearizable: inc() || inc()\n\n    A            B\n    inc() = 0    inc() = 0\n",
        "No serial order gives these results. Serially, after A's inc() = 0: B's inc() = 1.",
        "preemption: A could have continued",
        "smallest  it is the first scenario",
        "specification: the serial behaviour of Counter itself",
    ] {
        assert!(text.contains(part), "{part}\n\n{text}");
    }
    assert!(!text.contains("join A"), "the trace ends with the last return\n{text}");
    let json: serde_json::Value = serde_json::from_str(&outcome.json()).unwrap();
    assert_eq!(json["linearize"]["failed"]["scenario"], "inc() || inc()");
    assert_eq!(json["check"]["findings"][0]["kind"], "not linearizable");
}

/// `PREEMPT_HTML` does the same.
#[test]
fn a_failing_scenario_has_a_page() {
    let page = std::env::temp_dir().join(format!("linearize-{}.html", std::process::id()));
    let outcome = linearize(Counter::default)
        .op("inc", Counter::inc_in_two_steps)
        .explore(Check::new().bound(2).html(&page))
        .run();
    assert!(outcome.failed.is_some());
    let text = std::fs::read_to_string(&page).unwrap();
    std::fs::remove_file(&page).unwrap();
    for part in ["inc() = 0", "not linearizable: no serial execution of inc() || inc()"] {
        assert!(text.contains(part), "{part}");
    }
}

#[test]
fn a_pass_says_what_was_covered() {
    let outcome =
        linearize(LockQueue::default).op1("push", LockQueue::push).op("pop", LockQueue::pop).run();
    let guarantee = outcome.guarantee();
    for part in [
        "linearizable: all 53 scenarios of up to 4 calls of push, pop by up to 3 threads; ",
        "inside operations; sequentially consistent memory",
        "specification: the serial behaviour of LockQueue itself",
    ] {
        assert!(guarantee.contains(part), "{part}\n\n{guarantee}");
    }
    let json: serde_json::Value = serde_json::from_str(&outcome.json()).unwrap();
    assert_eq!((&json["linearize"]["scenarios"], &json["check"]), (&53.into(), &().into()));
    linearize(Counter::default).op("inc", Counter::inc).operations(2).check();
}

#[test]
#[should_panic(expected = "not linearizable: inc() || inc()")]
fn a_check_panics_with_the_report() {
    linearize(Counter::default).op("inc", Counter::inc_in_two_steps).check();
}

#[test]
fn limits_make_a_check_incomplete() {
    let outcome = linearize(MichaelScott::new)
        .op1("push", MichaelScott::push)
        .op("pop", MichaelScott::pop)
        .explore(Check::new().bound(2).executions(5))
        .run();
    assert!(!outcome.is_ok() && outcome.failed.is_none());
    assert!(outcome.guarantee().starts_with("incomplete (a limit was reached in"), "{outcome}");
}

/// A model also finds errors of the serial behaviour.
#[test]
fn an_explicit_model_is_the_specification() {
    let even = |wrong: u32| {
        linearize(|| AtomicU32::new(0))
            .model(|| 0)
            .op(
                "next",
                move |n| n.fetch_add(2 + wrong, SeqCst),
                |n: &mut u32| {
                    *n += 2;
                    *n - 2
                },
            )
            .op1(
                "add",
                |n, value| n.fetch_add(value, SeqCst),
                |n, value: u32| {
                    *n += value;
                    *n - value
                },
            )
            .operations(3)
    };
    let right = even(0).run();
    assert!(right.is_ok(), "{right}");
    assert!(right.guarantee().ends_with("specification: the model"));
    assert_eq!(even(1).run().failed.map(|of| of.scenario), Some("next() || next()".to_owned()));
}

/// A pop that may fail spuriously.
#[test]
fn an_operation_with_several_results_has_to_be_declared() {
    let flaky = || {
        linearize(LockQueue::default)
            .op1("push", LockQueue::push)
            .op("pop", |queue| if choose(2) == 0 { queue.pop() } else { None })
            .operations(3)
    };
    refused(flaky().try_run(), "declare the operation with `sometimes`");
    let declared = flaky().sometimes().run();
    assert!(declared.is_ok(), "{declared}");
    let wrong = linearize(LockQueue::default)
        .op1("push", LockQueue::push)
        .op("pop", |queue| if choose(2) == 0 { queue.pop_in_two_steps() } else { None })
        .sometimes()
        .run();
    assert_eq!(wrong.failed.map(|of| of.scenario), Some("push(1); pop() || pop()".to_owned()));
}

/// A model with choices: a pop that may fail if another thread interferes.
#[test]
fn a_model_may_choose() {
    let outcome = linearize(|| Mutex::new(0_u32))
        .model(|| 0_u32)
        .op(
            "try_inc",
            |n| n.try_lock().ok().map(|mut n| std::mem::replace(&mut *n, 1)),
            |n: &mut u32| (choose(2) == 0).then(|| std::mem::replace(n, 1)),
        )
        .sometimes()
        .run();
    assert!(outcome.is_ok(), "{outcome}");
}

#[test]
fn operations_that_meet_need_a_model() {
    #[derive(Default)]
    struct Rendezvous(Mutex<(u32, u32)>, Condvar);
    impl Rendezvous {
        fn meet(&self) {
            let mut state = self.0.lock().unwrap();
            let round = state.1;
            state.0 += 1;
            if state.0 == 2 {
                *state = (0, round + 1);
                self.1.notify_all();
            }
            while state.1 == round {
                state = self.1.wait(state).unwrap();
            }
        }
    }
    let outcome =
        linearize(Rendezvous::default).op("meet", Rendezvous::meet).operations(2).try_run();
    refused(outcome, "operations that wait for each other need a `model`");
}

#[test]
fn bounded_steps_of_an_operation() {
    let counter = || linearize(Counter::default).op("inc", Counter::inc_in_two_steps).operations(2);
    let outcome = counter().wait_free(1).run();
    assert!(
        outcome.to_string().starts_with("not wait-free within 1 steps: inc() took 2"),
        "{outcome}"
    );
    let one = linearize(Counter::default).op("inc", Counter::inc).wait_free(1).run();
    assert!(one.is_ok(), "{one}");
}

#[test]
fn senseless_settings_are_refused() {
    let queue = || linearize(LockQueue::default).op1("push", LockQueue::push);
    refused(linearize(LockQueue::default).try_run(), "no operation");
    refused(queue().threads(1).try_run(), "`threads` must be between 2 and 16");
    refused(queue().operations(1).try_run(), "`operations` must be between 2 and 16");
    refused(queue().scenario("push(1) || shove(2)").try_run(), "`shove(2)`, which is not a call");
    refused(queue().explore(Check::new().keep_going()).try_run(), "`keep_going`");
    let sleep = Check::new().unbounded().reduce(preempt::Reduction::Sleep);
    refused(queue().explore(sleep).try_run(), "use `Reduction::Optimal`");
    refused(
        linearize(std::sync::Mutex::<u32>::default).op("get", |n| *n.lock().unwrap()).try_run(),
        "share nothing that preempt controls",
    );
    refused(queue().op("pop", LockQueue::pop).once().scenario("pop() || pop()").try_run(), "once");
}
