//! Every program of the corpus: verdict, fewest preemptions, and exact numbers of executions.
//!
//! `BLESS=1` rewrites the file of expected numbers. Read the diff: a number changes only if the
//! program, the scheduling points or a search have changed.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use std::time::Duration;

use preempt_explore::{Cache, Limits, Order, Outcome, Plan, Reduction};
use preempt_native::{Executable, Native};

use crate::compile::{executable, folder, programs};

/// Programs that are refused, with words of the refusal.
const REFUSED: [(&str, &str); 10] = [
    ("requeues", "FUTEX_REQUEUE"),
    ("cancels", "`pthread_cancel`"),
    ("executes", "`execl`"),
    ("forks", "`fork`"),
    ("prefers_writers", "`PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP`"),
    ("raw_blocked", "while it blocks the signal SIGSYS"),
    ("raw_clone", "the system call clone"),
    ("spins", "without a scheduling point"),
    ("timers", "`timerfd_create`"),
    ("connects_outside", "a connection to another machine"),
];

/// Programs with a data race on plain memory. Reductions and the cache of happens-before graphs
/// assume that there are none: two orders of steps that share no object count as one. So all
/// executions of these programs are run.
const RACY: [&str; 4] = ["reorder_plain", "use_before_init", "wronglock", "wronglock_plain"];

/// Programs with too many executions for the usual bound and too many traces to count all.
const LARGE: [&str; 2] = ["polls_two", "safe_stack"];

/// The bound of these programs.
const SMALL_BOUND: u32 = 1;

/// Programs that need files: see `replays` and `options`.
const NEED_FILES: [&str; 2] = ["changes_file", "temporary_file"];

/// Programs that are explored a second time with a longer maximal delay, in seconds.
const DELAYED: [(&str, u64); 3] = [("hour", 3600), ("sleep_order", 1), ("timeout", 2)];

/// dpor-optimal is stopped after this many executions.
const MAX_TRACES: u64 = 300;

fn explore(executable: &Executable, plan: Plan) -> (Outcome, Native) {
    let search = plan.build_for_program().expect("the plan is possible");
    search.run_program(Native::new(executable.clone()), &())
}

fn expected_of(name: &str, title: &str, executable: &Executable) -> String {
    // The search continues after failures, so the numbers are those of all schedules.
    let icb = Plan {
        order: Order::Icb { cache: if RACY.contains(&name) { Cache::None } else { Cache::Hb } },
        bound: Some(if LARGE.contains(&name) { SMALL_BOUND } else { 2 }),
        keep_going: true,
        ..Plan::new()
    };
    let (outcome, native) = explore(executable, icb);
    assert_eq!(native.refusal(), None, "{name}");
    let mut text = format!("[{title}]\nverdict = {:?}\n", outcome.verdict.word());
    if let Some(finding) = outcome.findings.iter().min_by_key(|finding| finding.preemptions) {
        let _ = writeln!(text, "preemptions = {}", finding.preemptions);
        // Messages may contain absolute paths of the source.
        let here = folder().canonicalize().expect("the corpus exists");
        let message = finding.failure.message.replace(&format!("{}/", here.display()), "");
        let _ = writeln!(text, "message = {message:?}");
        if let Some(site) = &finding.failure.site {
            let file = site.file.rsplit('/').next().unwrap_or_default();
            let _ = writeln!(text, "site = \"{file}:{}\"", site.line);
        }
    }
    let per_bound: Vec<String> =
        outcome.bounds.iter().map(|bound| bound.all.executions.to_string()).collect();
    let _ = writeln!(text, "executions = [{}]", per_bound.join(", "));
    if RACY.contains(&name) || LARGE.contains(&name) {
        return text + "\n";
    }
    // All operations on descriptors are dependent, so programs that use them have too many traces.
    let limits = Limits { executions: Some(MAX_TRACES), ..Limits::default() };
    let reduction = Reduction::Optimal;
    let optimal = Plan { order: Order::Executions, reduction, limits, ..Plan::new() };
    let (all, native) = explore(executable, optimal);
    assert_eq!(native.refusal(), None, "{name}");
    if all.complete || !all.findings.is_empty() {
        assert_eq!(all.verdict, outcome.verdict, "{name}: dpor-optimal agrees with icb");
    }
    if all.complete {
        let traces = all.tally.map_or(0, |tally| tally.executions);
        let _ = writeln!(text, "traces = {traces}");
    }
    text.push('\n');
    text
}

#[test]
fn every_program_has_its_verdict_and_its_numbers() {
    let names = programs();
    let explored = names
        .iter()
        .filter(|name| !NEED_FILES.contains(&&***name) && !REFUSED.iter().any(|(r, _)| r == name));
    let mut actual: String =
        explored.map(|name| expected_of(name, name, &executable(name))).collect();
    for (name, seconds) in DELAYED {
        let mut delayed = executable(name);
        delayed.max_delay = Duration::from_secs(seconds);
        actual += &expected_of(name, &format!("\"{name} --max-delay {seconds}\""), &delayed);
    }
    let path = folder().join("numbers.toml");
    let head = "# Measured: verdict, fewest preemptions and message of a finding; executions of icb with a cache of\n\
                # happens-before graphs up to each bound (without one if the program has data races); all traces of\n\
                # programs without errors (executions of dpor-optimal).\n\n";
    let actual = format!("{head}{}", actual.trim_end().to_owned() + "\n");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &actual).expect("the corpus can be written");
    }
    let expected = std::fs::read_to_string(&path).expect("the expected numbers can be read");
    for (actual, expected) in actual.split("\n\n").zip(expected.split("\n\n")) {
        assert_eq!(actual, expected);
    }
    assert_eq!(actual, expected);
}

/// A published bug.
#[derive(serde::Deserialize)]
struct Known {
    bound: u32,
    source: String,
    /// Why a search with scheduling points at calls does not find it within the usual bound.
    needs: Option<String>,
}

#[derive(serde::Deserialize)]
struct Measured {
    verdict: String,
    preemptions: Option<u32>,
}

#[test]
fn published_bugs_are_found_at_their_bounds() {
    let read =
        |file: &str| std::fs::read_to_string(folder().join(file)).expect("the file is readable");
    let known: BTreeMap<String, Known> =
        toml::from_str(&read("literature.toml")).expect("the file has this form");
    let measured: BTreeMap<String, Measured> =
        toml::from_str(&read("numbers.toml")).expect("the file has this form");
    assert!(known.len() >= 20);
    for (name, Known { bound, source, needs }) in known {
        assert!(!source.is_empty(), "{name}");
        let Measured { verdict, preemptions } = &measured[&name];
        match needs {
            None => assert_eq!(*preemptions, Some(bound), "{name}"),
            Some(what) => assert_eq!(verdict, "ok", "{name} needs {what}"),
        }
    }
}

#[test]
fn programs_that_cannot_be_controlled_are_refused_with_the_reason() {
    for (name, words) in REFUSED {
        let mut executable = executable(name);
        executable.max_turn = Duration::from_millis(500);
        let plan = Plan { order: Order::Icb { cache: Cache::Hb }, bound: Some(1), ..Plan::new() };
        let search = plan.build_for_program().expect("the plan is possible");
        let (outcome, native) = search.run_program(Native::new(executable), &());
        let why = native.refusal().unwrap_or_default();
        assert!(why.contains(words), "{name}: {why}");
        assert!(outcome.findings.is_empty(), "{name}");
    }
}

#[test]
fn trapped_system_calls_are_named_in_the_report() {
    for (name, trapped) in [("raw_futex_ok", true), ("handover", false)] {
        let plan = Plan { order: Order::Icb { cache: Cache::Hb }, bound: Some(1), ..Plan::new() };
        let (outcome, native) = explore(&executable(name), plan);
        assert!(outcome.findings.is_empty(), "{name}");
        assert!(native.traps_system_calls(), "this machine permits seccomp filters");
        let visible = native.visibility();
        assert_eq!(visible.contains("made without the C library"), trapped, "{name}: {visible}");
    }
}
