//! Both forms of a schedule are read back exactly, and damage is noticed.

use preempt_report::schedule::{Ending, Recorded, describe};
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

/// Schedules with long and short contexts, with and without choices.
fn schedules() -> impl Strategy<Value = Schedule> {
    let alternative = prop_oneof![4 => Just(0), 2 => 0..4u32, 1 => any::<u32>()];
    let run =
        (prop_oneof![0..4usize, 0..64usize], alternative, prop_oneof![1..4usize, 1..600usize]);
    prop::collection::vec(run, 0..40).prop_map(|runs| {
        let steps = runs.into_iter().flat_map(|(slot, alternative, count)| {
            std::iter::repeat_n(Choice { thread: ThreadId::new(slot), alternative }, count)
        });
        Schedule(steps.collect())
    })
}

fn recorded(schedule: Schedule) -> Recorded {
    let mut names: Vec<(ThreadId, String)> = Vec::new();
    for step in schedule.steps() {
        if !names.iter().any(|(thread, _)| *thread == step.thread) {
            names.push((step.thread, format!("t({}, 7): x", step.thread.index())));
        }
    }
    Recorded {
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
    let first = |at: &usize| *at == 0 || steps[at - 1].thread != steps[*at].thread;
    let contexts = (0..steps.len()).filter(first).step_by(2);
    contexts.map(|at| (at, format!("a[{at}] = b | c: 3 # 4"))).collect()
}

proptest! {
    #[test]
    fn the_text_is_read_back(schedule in schedules()) {
        let recorded = recorded(schedule);
        let text = recorded.to_string();
        prop_assert_eq!(Recorded::parse(&text), Ok(recorded), "{}", text);
    }

    #[test]
    fn the_token_is_read_back(schedule in schedules(), fails: bool) {
        let ending = if fails { Ending::Described(describe(&failure())) } else { Ending::Unknown };
        let word = token::token(&schedule, &ending);
        prop_assert!(token::looks_like_one(&word));
        let read = token::parse(&word).expect("it was just written");
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
        let _ = Recorded::parse(&text);
        let _ = Recorded::parse(&format!("preempt schedule 1\n{rest}"));
    }
}

#[test]
fn the_text_is_what_the_book_shows() {
    let thread = ThreadId::new;
    let step = |slot, alternative| Choice { thread: thread(slot), alternative };
    let recorded = Recorded {
        model: Some("philosophers.pre".into()),
        settings: vec![("N".into(), "3".into())],
        ending: Ending::Described("deadlock: no thread can move".into()),
        names: vec![(thread(0), "phil(0)".into()), (thread(1), "phil(1)".into())],
        begins: vec![(0, "left.lock()".into()), (2, "choose { … }".into())],
        schedule: Schedule(vec![
            step(0, 0),
            step(0, 0),
            step(1, 0),
            step(1, 2),
            step(1, 0),
            step(0, 0),
        ]),
    };
    let text = "preempt schedule 1\nmodel philosophers.pre\nset N = 3\nfailure deadlock: no thread can move\n\
                0 phil(0): 2 | left.lock()\n1 phil(1): 1 ?2 1 | choose { … }\n0 phil(0): 1\n";
    assert_eq!(recorded.to_string(), text);
    assert_eq!(token::token(&recorded.schedule, &recorded.ending), "p1-mrd01203102000pkc");
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
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
    ] {
        let malformed = Recorded::parse(text).expect_err(text);
        assert_eq!(malformed.line, line, "{text}");
        assert!(malformed.why.contains(why), "{text}: {malformed}");
    }
}

/// An edit above it moves a place, and is no other failure.
#[test]
fn a_description_names_no_places() {
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
