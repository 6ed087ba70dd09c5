//! Findings replay reliably: in other processes, many times, and with the same description.

use preempt_explore::cursor::Cursor;
use preempt_explore::replay::end;
use preempt_explore::{Cache, Order, Plan};
use preempt_native::Native;
use preempt_native::narrate::narrate;
use preempt_report::recorder::{Numbering, Replayed};
use preempt_system::{FailureKind, Finding, Program as _, Restart, Verdict};

use crate::compile::{compiled, executable, program};

/// How often the schedule of a finding is replayed with a new controller.
const REPLAYS: usize = 3;

/// How often the schedule of every finding is executed. Whatever makes executions differ is not
/// specific to one program, so all programs together have hundreds of chances to show it.
const EXECUTIONS: usize = 25;

fn found(name: &str) -> (Finding, Native) {
    // This program has a data race, and the cache of graphs assumes that there are none.
    let cache = if name == "wronglock" { Cache::None } else { Cache::Hb };
    let plan = Plan { order: Order::Icb { cache }, bound: Some(2), ..Plan::new() };
    let search = plan.build_for_program().expect("the plan is possible");
    let (outcome, native) = search.run_program(program(name), &());
    (outcome.findings.into_iter().next().expect("there is an error"), native)
}

/// The description of a finding's execution.
fn narrated(native: &Native, finding: &Finding) -> Replayed {
    let narrated = narrate(native, &finding.schedule, Numbering::Slots, |replayed| {
        replayed.failures.first().cloned()
    });
    narrated.expect("a finding can be described").replayed
}

#[test]
fn a_schedule_replayed_in_another_process_fails_in_the_same_way_every_time() {
    let calls = ["abba", "lost_update", "signal_one", "exits", "unlock_free", "use_before_init"];
    let descriptors_and_time = ["pipe_deadlock", "eventfd_handoff", "epoll_loop", "timeout_race"];
    for name in calls.into_iter().chain(descriptors_and_time) {
        let (finding, native) = found(name);
        let narrated = narrated(&native, &finding);
        assert_eq!(narrated.misfit, None, "{name}");
        drop(native);
        for _ in 0..REPLAYS {
            let mut fresh = Native::new(executable(name));
            let schedule = narrated.trace.schedule();
            let again = loop {
                match narrate(&fresh, &schedule, Numbering::Portable, |_| None) {
                    Ok(again) => break again.replayed,
                    Err(need) => assert_eq!(fresh.grow(need), Restart::Again, "{name}"),
                }
            };
            assert_eq!(again.misfit, None, "{name}");
            let kinds: Vec<FailureKind> = again.failures.iter().map(|f| f.kind).collect();
            assert_eq!(kinds, [finding.failure.kind], "{name}");
            assert_eq!(again.trace.steps, narrated.trace.steps, "{name}");
        }
    }
}

#[test]
fn every_finding_of_the_corpus_fails_again_every_time() {
    let numbers = std::fs::read_to_string(crate::compile::folder().join("numbers.toml"))
        .expect("the corpus can be read");
    let numbers: toml::Table = toml::from_str(&numbers).expect("the file has this form");
    // `floods` takes long, and a name with a space is that of a program with options.
    let fails = |name: &&String| {
        let plain = *name != "floods" && !name.contains(' ');
        plain && numbers[&**name].get("message").is_some()
    };
    let names: Vec<&String> = numbers.keys().filter(fails).collect();
    assert!(names.len() >= 25, "{names:?}");
    for name in names {
        let (finding, native) = found(name);
        for _ in 0..EXECUTIONS {
            let cursor = native.start().and_then(Cursor::over).expect("the program starts");
            let end = end(cursor, &finding.schedule);
            let end = end.unwrap_or_else(|misfit| panic!("{name}: {misfit:?}"));
            assert!(end.failures.contains(&finding.failure), "{name}: {:?}", end.failures);
        }
    }
}

#[test]
fn the_trace_names_lines_objects_and_preemptions() {
    let (finding, native) = found("abba");
    let Replayed { trace, failures, .. } = narrated(&native, &finding);
    let lock = &trace.steps[3].narration;
    let site = lock.site.as_ref().expect("the program has line tables");
    assert!(site.file.ends_with("abba.c"), "{site}");
    assert_eq!(lock.effects, ["a: free → held by t1"]);
    assert_eq!(trace.preemptions(), 1);
    let waits: Vec<&str> = trace.waiting.iter().map(|w| trace.name(w.thread)).collect();
    assert_eq!(waits, ["main", "t1", "t2"]);
    assert!(failures[0].message.contains("main, t1 and t2 wait"), "{failures:?}");
}

#[test]
fn a_program_that_changes_its_input_is_not_deterministic() {
    let counter = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("changes_file.counter");
    // It may not exist.
    let _ = std::fs::remove_file(&counter);
    let changes = compiled("changes_file");
    let executable = preempt_native::Executable::find(&changes, vec![counter.clone().into()])
        .expect("the program can be explored");
    let plan = Plan { order: Order::Icb { cache: Cache::Hb }, bound: Some(1), ..Plan::new() };
    let search = plan.build_for_program().expect("the plan is possible");
    let (outcome, _) = search.run_program(Native::new(executable), &());
    assert_eq!(outcome.verdict, Verdict::Nondeterministic);
    let message = &outcome.findings[0].failure.message;
    assert!(message.contains("main reached m.lock(), but earlier it reached join t1"), "{message}");
    for note in ["reads the file ", "writes to the file "] {
        assert!(message.contains(&format!("{note}{}", counter.display())), "{message}");
    }
}
