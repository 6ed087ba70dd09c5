//! Operations that are the same or conflict, pasts, and what later executions replace.

use preempt_system::fingerprint::Mixer;
use preempt_system::{Choice, Kind, Status, ThreadId, ThreadSet};

use super::scripts::{Run, operation};
use super::{event, site};
use crate::objects::Objects;
use crate::op::{Lookahead, Op, OpKind, Outcome};
use crate::{Event, LoopRounds, Mode, Names};

fn run(script: &str) -> Run {
    Run::new(script, LoopRounds::default())
}

const ZERO: ThreadId = ThreadId::new(0);
const ONE: ThreadId = ThreadId::new(1);

#[test]
fn operations_conflict_if_they_share_an_object_and_one_writes_it() {
    let cases = [
        ("0:load(a)@1", "0:load(a)@2", false),
        ("0:load(a)@1", "0:store(a)@2", true),
        ("0:store(a)@1", "0:load(a)@2", true),
        ("0:store(a)@1", "0:store(a)@2", true),
        ("0:store(a)@1", "0:store(b)@2", false),
        ("0:wait(cm)@1", "0:lock(m)@2", true),
        ("0:wait(cm)@1", "0:lock(n)@2", false),
        ("0:yield()@1", "0:yield()@2", false),
    ];
    for (one, other, conflict) in cases {
        let (one, other) = (operation(one), operation(other));
        assert_eq!([one.conflicts(&other), other.conflicts(&one)], [conflict; 2], "{one:?}");
    }
}

#[test]
fn the_same_operation_is_recognised_without_its_values() {
    use preempt_system::Action::{Recv, Send};
    // Not the same memory, so that the words are compared.
    let op = |kind, object, verb: &str, line| {
        Op::new(kind, object, String::leak(verb.to_owned()), site(line))
    };
    let sends = |value, line| op(OpKind::Object(Send(value)), 1, "send", line);
    assert!(sends(1, 1).is_same(&sends(2, 1)));
    assert!(sends(1, 1).is_same(&sends(2, 9)), "inlined code may have moved");
    assert!(!sends(1, 1).is_same(&op(OpKind::Object(Recv), 1, "send", 1)));
    assert!(!sends(1, 1).is_same(&op(OpKind::Object(Send(1)), 1, "try_send", 1)));
    assert!(!sends(1, 1).is_same(&op(OpKind::Object(Send(1)), 2, "send", 1)));
    assert!(!sends(1, 1).is_same(&sends(1, 1).and(2)));
    // The same code is one operation, whatever it does this time.
    let [load, store] = ["0:load(a)@1", "0:store(a)@1"].map(operation);
    assert!(load.is_same(&store) && !load.is_same(&operation("0:store(a)@2")));
    assert!(!load.is_same(&operation("0:load(b)@1")));
}

#[test]
fn a_past_consists_of_the_steps_that_happen_before() {
    let past = |script: &str, thread: usize| {
        let run = run(script);
        run.recording.past(ThreadId::new(thread), &run.path)
    };
    // For each pair whether the pasts of the thread are the same.
    let cases = [
        (0, "0:yield()@1", "0:yield()@1 0:yield()@1", false),
        (0, "0:choose()@1#0", "0:choose()@1#1", false),
        (0, "0:yield()@1", "0:yield()@1 1:yield()@1", true),
        (0, "1:store(a)@2 0:load(a)@1", "0:load(a)@1 1:store(a)@2", false),
        (0, "1:load(a)@2 0:load(a)@1", "0:load(a)@1 1:load(a)@2", true),
        (0, "1:store(b)@2 0:load(a)@1", "0:load(a)@1 1:store(b)@2", true),
        // What started a thread is part of its past, and what its creator does later is not.
        (2, "0:choose()@1#0+2 ?2:yield()@5", "0:choose()@1#1+2 ?2:yield()@5", false),
        (2, "0:choose()@1+2 ?2:yield()@5", "0:choose()@1+2 0:yield()@2 ?2:yield()@5", true),
        // The lives of threads are objects too, of which main's is the first.
        (1, "0:finish(0)@1 1:join(0)@2", "0:yield()@3 0:finish(0)@1 1:join(0)@2", false),
    ];
    for (thread, one, other, same) in cases {
        assert_eq!(past(one, thread) == past(other, thread), same, "{one}, {other}");
    }
    assert_ne!(past("?0:yield()@1", 0), past("?0:yield()@1", 1), "two threads before their first");
}

#[test]
fn a_timeout_depends_on_notifications_and_not_on_the_mutex() {
    let begins = "1:lock(m)@1 1:wait(cm)@2";
    let past = |steps: &str| {
        let run = run(&format!("{begins} {steps}"));
        run.recording.past(ZERO, &run.path)
    };
    let times_out = "1:wake-timeout(cm)@2#1";
    let (lock, unlock) = ("0:lock(m)@4", "0:unlock(m)@5");
    assert_eq!(past(&format!("{lock} {times_out} {unlock}")), past(&format!("{lock} {unlock}")));
    let notify = "0:notify-all(c)@6";
    assert_ne!(past(&format!("{times_out} {notify}")), past(notify));
    let notified = format!("{notify} 1:wake-timeout(cm)@2 1:unlock(m)@3 {lock}");
    assert_ne!(past(&notified), past(&format!("{notify} {lock}")));
    // The operation of thread 0, which locks the mutex, is its second one.
    let kept = |script: &str| {
        let run = run(script);
        run.recording.without(&run.path, ZERO, 1).map(|kept| kept.len())
    };
    assert_eq!(kept(&format!("{begins} 0:yield()@3 {lock} {times_out}")), Some(4));
    let notified = "1:wake-timeout(cm)@2";
    assert_eq!(kept(&format!("{begins} 0:yield()@3 {notify} {notified}")), None);
}

/// The version of the mutex at a timeout differs between executions with the same happens-before
/// graph, so whether the thread spins must not depend on it.
#[test]
fn whether_a_timed_wait_is_in_a_loop_does_not_depend_on_who_holds_the_mutex() {
    let times_out = "1:wake-timeout(cm)@2#1";
    let locks = "1:lock(m)@2";
    // What the thread does in a round before it waits; it yields where the wait has timed out.
    let round = |does: &str, last: &str| {
        let rounds = [format!("{does} 1:wait(cm)@2 {times_out} {locks}").as_str(); 4].join(" ");
        let run = run(&format!("1:lock(m)@1 {rounds} {does} 1:wait(cm)@2 {last}"));
        let outcomes = run.recording.history(ONE).outcomes();
        let last = outcomes.last().expect("the thread has taken steps");
        (last.round, last.fair)
    };
    let other = "0:lock(m)@8 0:unlock(m)@9";
    for (does, expected) in [("1:load(a)@3", (4, false)), ("1:update(a)@3~7", (7, true))] {
        for last in [format!("{other} {times_out}"), format!("{times_out} {other}")] {
            assert_eq!(round(does, &format!("{last} ?{locks}")), expected, "{does} {last}");
            // The thread sees the change when it locks the mutex.
            let next = format!("{last} {locks} ?{does}");
            assert_eq!(round(does, &next), (0, false), "{does} {next}");
        }
    }
}

#[test]
fn the_steps_that_do_not_depend_on_an_operation_are_kept() {
    // The operation is the first one of thread 0.
    let cases: [(&str, Option<&[usize]>); 8] = [
        ("0:load(a)@1 1:load(a)@2", Some(&[1])),
        ("0:store(a)@1 1:load(a)@2", None),
        ("0:load(a)@1 1:store(a)@2", None),
        ("0:store(a)@1 1:load(b)@2", Some(&[1])),
        ("1:store(a)@1 0:load(a)@2 1:store(b)@3", Some(&[1, 1])),
        // A chain of dependences, and steps beside it.
        ("0:store(a)@1 1:load(a)@2 1:store(b)@3 2:load(b)@4", None),
        ("0:store(a)@1 2:load(b)@4 1:load(a)@2 2:load(b)@4", Some(&[2, 2])),
        ("0:load(a)@1+2 2:load(b)@4", None),
    ];
    for (script, kept) in cases {
        let run = run(script);
        let found = run.recording.without(&run.path, ZERO, 0);
        let found = found.map(|kept| kept.iter().map(|choice| choice.thread.index()).collect());
        assert_eq!(found, kept.map(<[usize]>::to_vec), "{script}");
    }
}

#[test]
fn an_idle_change_between_the_operations_of_a_round_is_found() {
    let round = "1:load(a)@3 1:load(b)@4";
    let script = format!(
        "0:update(a)@1 0:update(a)@1~7 {round} 1:load(a)@3 0:update(a)@1~7 1:load(b)@4 \
         ?0:update(a)@1~7 ?1:load(a)@3"
    );
    let run = run(&script);
    assert!(run.recording.is_changed_idly(ONE, 2, &run.path));
    assert!(!run.recording.is_changed_idly(ONE, 1, &run.path), "the last operation is on `b`");
}

#[test]
fn another_execution_replaces_what_followed() {
    let mut run = run("0:load(a)@1 0:load(a)@2 0:load(a)@3 ?0:load(a)@4");
    assert_eq!(run.recording.history(ZERO).outcomes().len(), 3);
    run.recording.rewind(&[Choice::of(ZERO)]);
    run.recording.feed(&event(ZERO, None)).expect("a load is not a misuse");
    let history = run.recording.history(ZERO);
    assert_eq!((history.ops().len(), history.outcomes().len()), (2, 2));
    assert!(run.recording.has_ended(ZERO));
}

#[test]
fn a_history_says_whether_its_thread_spins_and_whether_it_waits_by_writing() {
    let ends = |script: &str| {
        let run = run(script);
        let history = run.recording.history(ZERO);
        (history.spins(), history.yields_and_writes())
    };
    let loads = ["0:load(a)@1"; 4].join(" ");
    let (first, again) = ("0:update(a)@1", "0:update(a)@1~7");
    assert_eq!(ends("?0:load(a)@1"), (false, false));
    assert_eq!(ends(&format!("{loads} ?0:load(a)@1")), (true, false));
    assert_eq!(ends(&format!("{first} {again} ?{again}")), (true, false));
    assert_eq!(ends(&format!("{first} {again} {again} ?{again}")), (true, true));
    // Rounds that only read are found without the yields, and then do not count as fair.
    let fair = |script: &str| {
        let run = run(script);
        let last = run.recording.history(ZERO).outcomes().last().expect("some steps were taken");
        (last.round, last.fair)
    };
    let reads = ["0:load(a)@1~7"; 5].join(" ");
    assert_eq!(fair(&format!("{reads} ?0:load(a)@1~7")), (1, false));
    assert_eq!(fair(&format!("{first} {again} ?{again}")), (1, true));
}

#[test]
fn a_thread_that_no_other_can_block_is_always_enabled() {
    let always = |script: &str, count: usize| {
        run(script).recording.history(ZERO).is_always_enabled_after(count)
    };
    assert!(always("?0:load(a)@1", 0) && !always("?0:lock(m)@1", 0));
    assert!(!always("0:load(a)@1 ?0:lock(m)@2", 1) && always("0:lock(m)@1 ?0:load(a)@2", 1));
    assert!(always("0:load(a)@1", 1), "it has ended");
    let spins = format!("{} ?0:load(a)@1", ["0:load(a)@1"; 4].join(" "));
    assert!(always(&spins, 3) && !always(&spins, 4));
}

/// The threads that the last step cannot have affected, by slot.
fn unaffected(run: &Run) -> Vec<usize> {
    let all = run.recording.unaffected();
    (0..3).filter(|&slot| all.contains(ThreadId::new(slot))).collect()
}

#[test]
fn a_step_affects_the_threads_that_want_its_object() {
    let [load, lock] = ["0:load(a)@5", "0:lock(m)@6"].map(|word| Some(operation(word)));
    let mut first = run("?0:load(a)@1 ?1:lock(m)@2 ?2:load(b)@3");
    assert_eq!(unaffected(&first), [0; 0], "no thread was asked yet");
    first.recording.feed(&event(ZERO, lock)).expect("a load is no misuse");
    assert_eq!(unaffected(&first), [0, 1, 2]);
    first.recording.feed(&event(ZERO, load)).expect("the mutex is free");
    assert_eq!(unaffected(&first), [0, 2]);
    // After a rewind all threads are asked again.
    first.recording.rewind(&[]);
    assert_eq!(unaffected(&first), [0; 0]);
    first.recording.feed(&event(ZERO, load)).expect("a load is no misuse");
    assert_eq!(unaffected(&first), [0, 1, 2]);
    // A thread that is started, and a slot without a thread.
    let mut starts = run("?0:load(a)@1+2 ?1:lock(m)@2 ?2:load(b)@3");
    starts.recording.feed(&event(ZERO, load)).expect("a load is no misuse");
    assert_eq!(unaffected(&starts), [0, 1, 2]);
    let started = vec![(ThreadId::new(2), operation("2:load(b)@3"))];
    starts.recording.feed(&Event { started, ..event(ZERO, load) }).expect("a load is no misuse");
    assert!(!unaffected(&starts).contains(&2));
    starts.recording.feed(&event(ZERO, load)).expect("a load is no misuse");
    assert_eq!(unaffected(&starts), [0, 1, 2]);
}

#[test]
fn a_look_ahead_is_taken_back_and_a_saved_point_restored() {
    let mut run = run("?0:lock(m)@1 ?1:lock(m)@2");
    let load = Some(operation("1:load(a)@5"));
    let points = |run: &Run| {
        let slots = [ZERO, ONE];
        let histories = slots.map(|slot| {
            let history = run.recording.history(slot);
            (history.ops().len(), history.outcomes().len())
        });
        (slots.map(|slot| run.recording.ask(slot)), histories, unaffected(run))
    };
    let (before, saved) = (points(&run), run.recording.save());
    let state = run.recording.state().clone();
    run.recording.feed(&event(ONE, load)).expect("the mutex is free");
    run.recording.take_back(state, ONE);
    assert_eq!((&points(&run).0, &points(&run).1), (&before.0, &before.1));
    run.recording.feed(&event(ZERO, load)).expect("the mutex is free");
    assert_eq!(unaffected(&run), [0, 2], "thread 1 wants the mutex again");
    assert_ne!(points(&run), before);
    run.recording.restore(saved);
    assert_eq!(points(&run), before);
}

#[test]
fn a_thread_that_arrives_elsewhere_replaces_what_was_recorded() {
    let mut run = run("0:load(a)@1 0:load(a)@2 ?0:load(a)@3");
    run.recording.begin();
    run.recording.arrive(ZERO, &operation("0:lock(m)@4")).expect("nothing is repeated");
    assert_eq!(run.recording.history(ZERO).ops().len(), 1);
    assert_eq!(run.recording.ask(ZERO).status, Status::Enabled);
    assert_eq!(run.recording.next_op(ZERO).map(|op| op.object), Some(8));
    run.recording.set_mode(Mode::Repeat);
    assert!(run.recording.end(ZERO).is_some(), "there was an operation");
    run.recording.set_mode(Mode::Record);
    assert!(run.recording.end(ZERO).is_none() && run.recording.has_ended(ZERO));
    assert!(!run.recording.yields());
    run.recording.note_yield();
    assert!(run.recording.yields());
}

#[test]
fn a_step_says_whether_its_thread_spins() {
    let script = format!("{} ?0:load(a)@1", ["0:load(a)@1"; 3].join(" "));
    let (mut run, next) = (run(&script), operation("0:load(a)@1"));
    for (mut outcome, spins) in [(Outcome::default(), true), (Outcome::default(), true)] {
        let (step, reply) = run.recording.start_step(Choice::of(ZERO));
        reply.expect("a load is no misuse");
        run.recording.arrive(ZERO, &next).expect("nothing is repeated");
        assert_eq!(run.recording.end_step(step, &mut outcome, ThreadSet::EMPTY), spins);
    }
    run.recording.rewind(&[Choice::of(ZERO)]);
    let (step, _) = run.recording.start_step(Choice::of(ZERO));
    run.recording.arrive(ZERO, &next).expect("nothing is repeated");
    assert!(!run.recording.end_step(step, &mut Outcome::default(), ThreadSet::EMPTY));
}

#[test]
fn an_object_that_is_made_during_an_execution_is_in_its_initial_state() {
    let mut run = run("?0:load(a)@1 ?1:load(a)@1");
    let names = run.recording.names_mut();
    let atomic = names.locate(100, None, "atomic", site(99));
    let mutex = names.locate(101, Some(Kind::Mutex), "mutex", site(99));
    run.recording.change(atomic);
    assert_eq!(run.recording.state().version(atomic), 1);
    let lock =
        |object| Op::new(OpKind::Object(preempt_system::Action::Lock), object, "lock", site(1));
    run.recording.arrive(ZERO, &lock(mutex)).expect("nothing is repeated");
    assert_eq!(run.recording.ask(ZERO).status, Status::Enabled);
    let later = run.recording.names_mut().locate(102, Some(Kind::Mutex), "mutex", site(99));
    run.recording.arrive(ONE, &lock(later)).expect("nothing is repeated");
    assert_eq!(run.recording.ask(ONE).status, Status::Enabled, "the state has no room for it yet");
}

#[test]
fn the_fields_of_objects_enter_the_name_of_a_state() {
    let name = |script: &str| {
        let mut mixer = Mixer::new();
        run(script).recording.state().absorb(&mut mixer);
        mixer.finish()
    };
    assert_eq!(name("?0:lock(m)@1"), name("0:lock(m)@1 0:unlock(m)@2"));
    assert_ne!(name("?0:lock(m)@1"), name("0:lock(m)@1"));
    assert_ne!(name("1:lock(m)@1"), name("0:lock(m)@1"));
}

#[test]
fn a_thread_that_only_spurious_wakeups_bring_back_waits() {
    let status = |wake: &str, lookahead, notified: &str| {
        // A thread that timed out has not locked the mutex yet.
        let lock = if wake == "wake-timeout" { "1:lock(m)@3" } else { "" };
        let round = format!("1:wait(cm)@2 1:{wake}(cm)@3#1 {lock}");
        let rounds = [round.as_str(); 4].join(" ");
        let last = format!("1:wait(cm)@2 {notified} ?1:{wake}(cm)@3");
        let mut run = run(&format!("1:lock(m)@1 {rounds} {last}"));
        run.recording.set_lookahead(ONE, lookahead);
        run.recording.ask(ONE).status
    };
    assert_eq!(status("wake-spurious", Lookahead::Repeats, ""), Status::Blocked);
    assert_eq!(status("wake-spurious", Lookahead::Undecided, ""), Status::Spinning);
    assert_eq!(status("wake-timeout", Lookahead::Repeats, ""), Status::Spinning);
    let notify = "0:notify-one(c)@9";
    assert_eq!(status("wake-spurious", Lookahead::Repeats, notify), Status::Enabled);
}

#[test]
fn objects_without_fields_have_no_state_to_show() {
    let mut objects = Objects::default();
    assert!(objects.is_empty());
    objects.add(None);
    assert!(!objects.is_empty());
    let run = run("1:lock(m)@1 ?0:load(a)@2");
    let (names, state) = (run.recording.names(), run.recording.state());
    let show = |word: &str| {
        state.show(names.objects(), operation(word).object, |thread| format!("{thread:?}"))
    };
    assert_eq!(show("0:load(a)@1"), None);
    assert!(show("0:lock(m)@1").is_some());
    assert_ne!(show("0:lock(m)@1"), show("0:lock(n)@1"), "one is locked");
    let token = Names::<u64>::new(2);
    let nowhere = |_| preempt_system::Site { file: "".into(), line: 0, column: 0 };
    assert_eq!(token.object(token.parker(0), nowhere), "token of main");
    assert_eq!(token.objects().get(0).map(|(kind, _)| kind), Some(Kind::Thread));
}
