//! Both forms of a schedule are read back exactly, and damage is detected.

use preempt_report::schedule::{Ending, ScheduleFile, describe};
use preempt_report::token;
use preempt_system::{Choice, Failure, FailureKind, Schedule, ThreadId};
use proptest::prelude::*;

fn failure() -> Failure {
    Failure {
        kind: FailureKind::Assertion,
        message: "assertion failed:\n  x: 1".into(),
        site: None,
    }
}

/// Schedules with long and short contexts, with and without choices, with and without a cycle.
fn schedules() -> impl Strategy<Value = Schedule> {
    let alternative = prop_oneof![4 => Just(0), 2 => 0..4u32, 1 => any::<u32>()];
    let run =
        (prop_oneof![0..4usize, 0..64usize], alternative, prop_oneof![1..4usize, 1..600usize]);
    (prop::collection::vec(run, 0..40), any::<prop::sample::Index>()).prop_map(|(runs, cycle)| {
        let steps = runs.into_iter().flat_map(|(slot, alternative, count)| {
            std::iter::repeat_n(Choice { thread: ThreadId::new(slot), alternative }, count)
        });
        let steps: Vec<Choice> = steps.collect();
        // Most of the first steps of a cycle are in the middle of a context.
        let cycle = if runs_end_in_a_cycle(&steps) { cycle.index(steps.len() + 1) } else { 0 };
        Schedule::new(steps).with_cycle(cycle)
    })
}

/// True for half of the schedules, by their lengths.
fn runs_end_in_a_cycle(steps: &[Choice]) -> bool {
    steps.len() % 2 == 1
}

fn recorded(schedule: Schedule) -> ScheduleFile {
    let mut names: Vec<(ThreadId, String)> = Vec::new();
    for step in schedule.steps() {
        if !names.iter().any(|(thread, _)| *thread == step.thread) {
            names.push((step.thread, format!("t({}, 7): x", step.thread.index())));
        }
    }
    ScheduleFile {
        model: Some("a folder/model.pre".into()),
        settings: vec![("N".into(), "-3".into()), ("light".into(), "Red".into())],
        ending: Ending::Described(describe(&failure())),
        names,
        begins: begins(&schedule),
        schedule,
    }
}

/// Something for every other context, with all that separates things elsewhere.
fn begins(schedule: &Schedule) -> Vec<(usize, String)> {
    let steps = schedule.steps();
    let stem = schedule.stem().len();
    let first = |at: &usize| *at == 0 || *at == stem || steps[at - 1].thread != steps[*at].thread;
    let contexts = (0..steps.len()).filter(first).step_by(2);
    contexts.map(|at| (at, format!("a[{at}] = b | c: 3 # 4"))).collect()
}

proptest! {
    #[test]
    fn the_text_is_read_back(schedule in schedules()) {
        let recorded = recorded(schedule);
        let text = recorded.to_string();
        prop_assert_eq!(ScheduleFile::parse(&text), Ok(recorded), "{}", text);
    }

    #[test]
    fn the_token_is_read_back(schedule in schedules(), fails: bool) {
        let ending = if fails { Ending::Described(describe(&failure())) } else { Ending::Unknown };
        let word = token::token(&schedule, &ending);
        prop_assert!(token::looks_like_one(&word));
        let read = token::parse(&word).expect("the bytes were just written");
        prop_assert_eq!(&read.schedule, &schedule);
        prop_assert_eq!(read.ending.is_same(Some(&failure())), fails.then_some(true));
        prop_assert_eq!(read.ending.is_same(None), fails.then_some(false));
        prop_assert_eq!(token::parse(&word.to_uppercase().replacen("P1-", "p1-", 1)), Ok(read));
    }

    #[test]
    fn a_wrong_digit_in_a_token_is_noticed(schedule in schedules(), at: prop::sample::Index, digit in 0..32usize) {
        let word = token::token(&schedule, &Ending::Unknown);
        let mut changed: Vec<char> = word.chars().collect();
        let at = 3 + at.index(changed.len() - 3);
        changed[at] = "0123456789abcdefghjkmnpqrstvwxyz".chars().nth(digit).expect("there are 32");
        let changed: String = changed.into_iter().collect();
        prop_assert!(changed == word || token::parse(&changed).is_err());
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".*", rest in "[ 0-9?:a-z#\n]*") {
        let _ = token::parse(&text);
        let _ = token::parse(&format!("p1-{text}"));
        let _ = ScheduleFile::parse(&text);
        let _ = ScheduleFile::parse(&format!("preempt schedule 1\n{rest}"));
    }
}

#[test]
fn the_text_is_that_of_the_guide() {
    let thread = ThreadId::new;
    let step = |slot, alternative| Choice { thread: thread(slot), alternative };
    let recorded = ScheduleFile {
        model: Some("philosophers.pre".into()),
        settings: vec![("N".into(), "3".into())],
        ending: Ending::Described("deadlock: no thread can move".into()),
        names: vec![(thread(0), "phil(0)".into()), (thread(1), "phil(1)".into())],
        begins: vec![(0, "left.lock()".into()), (2, "choose { … }".into())],
        schedule: Schedule::new(vec![
            step(0, 0),
            step(0, 0),
            step(1, 0),
            step(1, 2),
            step(1, 0),
            step(0, 0),
        ]),
    };
    let text = "preempt schedule 1\nmodel philosophers.pre\nset N = 3\n\
                failure deadlock: no thread can move\n\
                0 phil(0): 2 | left.lock()\n1 phil(1): 1 ?2 1 | choose { … }\n0 phil(0): 1\n";
    assert_eq!(recorded.to_string(), text);
    assert_eq!(token::token(&recorded.schedule, &recorded.ending), "p1-mrd01203102000pkc");
}

#[test]
fn a_cycle_has_a_line_of_its_own_and_a_mark_in_the_token() {
    let step = |slot, alternative| Choice { thread: ThreadId::new(slot), alternative };
    let steps = vec![step(0, 0), step(0, 0), step(0, 0), step(1, 2)];
    let file = ScheduleFile {
        begins: vec![(0, "go = 1".into()), (1, "while busy".into())],
        schedule: Schedule::new(steps.clone()).with_cycle(3),
        ..ScheduleFile::default()
    };
    let text = "preempt schedule 1\n0 -: 1 | go = 1\ncycle\n0 -: 2 | while busy\n1 -: ?2\n";
    assert_eq!(file.to_string(), text);
    assert_eq!(ScheduleFile::parse(text), Ok(file.clone()));
    let word = token::token(&file.schedule, &Ending::Unknown);
    assert_eq!(token::parse(&word).map(|read| read.schedule), Ok(file.schedule));
    assert_ne!(word, token::token(&Schedule::new(steps), &Ending::Unknown));
}

/// Tokens that were printed before schedules had cycles.
#[test]
fn tokens_without_a_cycle_are_unchanged() {
    let step = |slot, alternative| Choice { thread: ThreadId::new(slot), alternative };
    let steps = vec![step(0, 0), step(0, 0), step(1, 0), step(1, 2), step(1, 0), step(0, 0)];
    let read = token::parse("p1-mrd01203102000pkc").expect("a token of the first version");
    assert_eq!(read.schedule, Schedule::new(steps));
}

#[test]
fn errors_are_reported_with_their_line() {
    for (text, line, why) in [
        ("", 1, "begins with the line"),
        ("0 a: 1", 1, "begins with the line"),
        ("preempt schedule 2\n", 1, "version 1"),
        ("preempt schedule 1\n\n# fine\nphil: 1", 4, "`phil:` is neither"),
        ("preempt schedule 1\n0 a: 1\n0 b: 1", 3, "called `a` above and `b` here"),
        ("preempt schedule 1\n64 a: 1", 2, "from 0 to 63"),
        ("preempt schedule 1\n0 a 1", 2, "colon"),
        ("preempt schedule 1\n0 a: 1 ?", 2, "`?` is neither"),
        ("preempt schedule 1\n0 a: -1", 2, "`-1` is neither"),
        ("preempt schedule 1\n0 a: 99999999999", 2, "at most"),
        ("preempt schedule 1\nset N", 2, "NAME = VALUE"),
        ("preempt schedule 1\n0 a: 1\ncycle\n\n", 3, "no steps"),
        ("preempt schedule 1\n0 a: 1\ncycle\n0 a: 1\ncycle", 5, "at most one cycle"),
        ("preempt schedule 1\n0 a: 1\ncycle 0 a: 1", 3, "`cycle` is neither"),
    ] {
        let malformed = ScheduleFile::parse(text).expect_err(text);
        assert_eq!(malformed.line, line, "{text}");
        assert!(malformed.why.contains(why), "{text}: {malformed}");
    }
}

/// An edit above a position moves it; the failure is still the same.
#[test]
fn a_description_contains_no_positions() {
    let of = |kind, message: &str| describe(&Failure { kind, message: message.into(), site: None });
    let panic =
        "main panicked at src/a.rs:7: no\n  left: 1; then t1 panicked at src/b.rs:9: more: at once";
    assert_eq!(
        of(FailureKind::Panic, panic),
        "panic: main panicked: no left: 1; then t1 panicked: more: at once"
    );
    assert_eq!(
        of(FailureKind::Race, "one reads `x` (a.pre:3), another writes it (a.pre:4)"),
        "race: one reads `x`, another writes it"
    );
}
