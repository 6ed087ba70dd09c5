//! Loops that spin and loops that do not, as scripts.

use preempt_system::ThreadId;

use super::scripts::{Run, after, after_with};
use super::site;
use crate::LoopRounds;

/// A word, repeated `count` times.
fn times(count: usize, word: &str) -> String {
    [word].repeat(count).join(" ")
}

#[test]
fn a_round_spins_if_nothing_that_it_reads_has_changed() {
    let (spins, runs) = ("Spinning 0:Ra", "Enabled 0:Ra");
    let four = times(4, "0:load(a)@1");
    let cases: &[(String, &str)] = &[
        (format!("{four} ?0:load(a)@1"), spins),
        (format!("{} ?0:load(a)@1", times(3, "0:load(a)@1")), runs),
        // Another value, another alternative, another line or another object.
        (format!("0:load(a)@1=1 {} ?0:load(a)@1", times(3, "0:load(a)@1")), runs),
        (format!("0:load(a)@2 {} ?0:load(a)@1", times(3, "0:load(a)@1")), runs),
        (format!("0:load(b)@1 {} ?0:load(a)@1", times(3, "0:load(a)@1")), runs),
        // Another thread changes what it reads: it takes as many rounds again.
        (format!("{four} 1:store(a)@5 ?0:load(a)@1"), runs),
        (format!("{four} 1:store(a)@5 {} ?0:load(a)@1", times(3, "0:load(a)@1")), runs),
        (format!("{four} 1:store(a)@5 {four} ?0:load(a)@1"), spins),
        (format!("{four} 1:store(b)@5 ?0:load(a)@1"), spins),
        // A thread that reads changes nothing.
        (format!("{four} 1:load(a)@5 ?0:load(a)@1"), spins),
        // To start a thread is progress.
        (
            format!(
                "0:load(a)@1 0:load(a)@1+2 ?2:yield()@9 {} ?0:load(a)@1",
                times(2, "0:load(a)@1")
            ),
            runs,
        ),
    ];
    for (script, expected) in cases {
        assert_eq!(&after(script, 0), expected, "{script}");
    }
}

#[test]
fn a_round_of_several_operations_spins_and_watches_all_objects() {
    let round = "0:load(a)@1 0:load(b)@2";
    let script = times(4, round);
    assert_eq!(after(&format!("{script} ?0:load(a)@1"), 0), "Spinning 0:Ra,Rb");
    assert_eq!(after(&format!("{script} 1:store(b)@5 ?0:load(a)@1"), 0), "Enabled 0:Ra,Rb");
    assert_eq!(after(&format!("{} ?0:load(a)@1", times(3, round)), 0), "Enabled 0:Ra");
    // A mutex that is locked and unlocked again is as it was, but others see it change.
    let round = "0:lock(m)@1 0:unlock(m)@2";
    let script = times(4, round);
    assert_eq!(after(&format!("{script} ?0:lock(m)@1"), 0), "Spinning 0:Wm");
    let other = "1:lock(m)@5 1:unlock(m)@6";
    assert_eq!(after(&format!("{script} {other} ?0:lock(m)@1"), 0), "Enabled 0:Wm");
    let script = times(4, "0:read-lock(l)@1 0:read-unlock(l)@2");
    assert_eq!(after(&format!("{script} ?0:read-lock(l)@1"), 0), "Spinning 0:Rl");
    let other = "1:write-lock(l)@5 1:write-unlock(l)@6";
    assert_eq!(after(&format!("{script} {other} ?0:read-lock(l)@1"), 0), "Enabled 0:Rl");
    // A semaphore is no such loop.
    let round = "0:acquire(s)@1 0:release(s)@2";
    assert_eq!(after(&format!("{} ?0:acquire(s)@1", times(9, round)), 0), "Enabled 0:Ws");
    // A round without an object waits for nothing.
    assert_eq!(after(&format!("{} ?0:yield()@1", times(9, "0:yield()@1")), 0), "Enabled 0:");
}

#[test]
fn the_longest_round_has_its_length() {
    use crate::spin::LONGEST_ROUND;
    let spins = |length: usize| {
        let line = |nth: usize| format!("0:load(a)@{}", nth + 1);
        let round = (0..length).map(line).collect::<Vec<_>>().join(" ");
        after(&format!("{} ?0:load(a)@1", times(4, &round)), 0) == "Spinning 0:Ra"
    };
    assert!(spins(LONGEST_ROUND));
    assert!(!spins(LONGEST_ROUND + 1));
}

#[test]
fn a_loop_that_yields_and_writes_lets_others_run_first() {
    let (spins, runs) = ("Spinning 0:Wa", "Enabled 0:Wa");
    let again = "0:update(a)@1~7";
    let cases: &[(String, &str)] = &[
        (format!("0:update(a)@1 ?{again}"), runs),
        (format!("0:update(a)@1 {again} ?{again}"), spins),
        (format!("{} ?0:update(a)@1", times(9, "0:update(a)@1")), runs),
        // Not in one place, not in the loop any more, or not on the same object.
        (format!("0:update(a)@1 {again} ?0:update(a)@1~8"), runs),
        (format!("0:update(a)@1 {again} ?0:update(a)@2~7"), runs),
        (format!("0:update(b)@1 0:update(b)@1~7 ?{again}"), runs),
        // It found the object changed in the round.
        (format!("0:update(a)@1 1:store(a)@5 {again} ?{again}"), runs),
        (format!("0:update(a)@1 1:store(a)@5 {again} {again} ?{again}"), spins),
        (format!("0:update(a)@1 1:store(b)@5 {again} ?{again}"), spins),
        // A change after the round releases it.
        (format!("0:update(a)@1 {again} 1:store(a)@5 ?{again}"), runs),
        (format!("0:update(a)@1 {again} 1:store(b)@5 ?{again}"), spins),
    ];
    for (script, expected) in cases {
        assert_eq!(&after(script, 0), expected, "{script}");
    }
    // The whole round is watched, not only the operation that comes next.
    let round = "0:update(a)@1~7 0:update(b)@2";
    let script = format!("0:update(a)@1 0:update(b)@2 {round} ?0:update(a)@1~7");
    assert_eq!(after(&script, 0), "Spinning 0:Wa,Rb");
    let script = format!("0:update(a)@1 0:update(b)@2 {round} 1:store(b)@5 ?0:update(a)@1~7");
    assert_eq!(after(&script, 0), "Enabled 0:Wa,Rb");
}

#[test]
fn a_loop_that_yields_and_ends_by_itself_goes_round_as_often() {
    let status = |rounds, count| {
        let mut loops = LoopRounds::default();
        loops.insert(site(1), rounds);
        assert_eq!((loops.get(site(1)), loops.get(site(2))), (Some(rounds), None));
        let script = format!("0:update(a)@1 {}", times(count, "0:update(a)@1~7"));
        after_with(loops, &format!("{script} ?0:update(a)@1~7"), 0)
    };
    for rounds in [1, 2, 5] {
        assert_eq!(status(rounds, rounds), "Spinning 0:Wa", "{rounds} rounds");
        assert_eq!(status(rounds + 1, rounds), "Enabled 0:Wa", "{rounds} rounds of one more");
    }
}

/// A change by thread 0 in round `round` of a loop that yields, while thread 1 spins on it: what
/// thread 1 can do afterwards.
fn released_by(round: usize, first: &str, again: &str) -> String {
    let rounds = |count: usize| match count {
        0 => String::new(),
        count => format!("{first} {}", times(count - 1, again)),
    };
    let last = if round == 1 { first } else { again };
    let spins = times(4, "1:load(a)@3");
    after(&format!("{} {spins} {last} ?{again} ?1:load(a)@3", rounds(round - 1)), 1)
}

#[test]
fn from_the_third_round_on_a_change_in_a_loop_that_yields_releases_nobody() {
    let released = |round| released_by(round, "0:update(a)@1", "0:update(a)@1~7");
    let all = [1, 2, 3, 4, 5].map(released);
    let (runs, spins) = ("Enabled 0:Ra", "Spinning 0:Ra");
    assert_eq!(all, [runs, runs, spins, spins, spins]);
    // Without yields every change counts.
    let all = [1, 2, 3, 4, 5].map(|round| released_by(round, "0:update(a)@1", "0:update(a)@1"));
    assert_eq!(all, [runs; 5]);
    // A loop that ends by itself after four rounds is a wait from the fifth on.
    let mut loops = LoopRounds::default();
    loops.insert(site(1), 4);
    let released = |round: usize| {
        let (before, spins) = (times(round - 2, "0:update(a)@1~7"), times(4, "1:load(a)@3"));
        let change = "0:update(a)@1~7 ?0:update(a)@1~7";
        let script = format!("0:update(a)@1 {before} {spins} {change} ?1:load(a)@3");
        after_with(loops.clone(), &script, 1)
    };
    assert_eq!([2, 3, 4, 5, 6].map(released), [runs, runs, runs, spins, spins]);
}

#[test]
fn an_idle_change_needs_two_rounds_that_yield_and_are_not_too_long() {
    use crate::spin::LONGEST_ROUND;
    let spins = times(4, "1:load(a)@3");
    let status = |before: &str, change: &str| {
        after(&format!("{before} {spins} {change} ?0:update(a)@1~7 ?1:load(a)@3"), 1)
    };
    // The thread has yielded twice, but not between the first two changes.
    let before = "0:load(b)@8 0:load(b)@8~9 0:update(a)@1 0:update(a)@1";
    assert_eq!(status(before, "0:update(a)@1~7"), "Enabled 0:Ra");
    assert_eq!(status(&format!("{before} 0:update(a)@1~7"), "0:update(a)@1~7"), "Spinning 0:Ra");
    let idle = |length: usize| {
        let rest: Vec<String> = (2..=length).map(|line| format!("0:load(b)@{line}1")).collect();
        let rest = rest.join(" ");
        let before = format!("0:update(a)@1 {rest} 0:update(a)@1~7 {rest}");
        let change = "0:update(a)@1~7";
        let script = format!("{before} {spins} {change} {rest} ?0:update(a)@1~7 ?1:load(a)@3");
        after(&script, 1) == "Spinning 0:Ra"
    };
    assert!(idle(2) && idle(LONGEST_ROUND));
    assert!(!idle(LONGEST_ROUND + 1));
}

#[test]
fn a_thread_that_leaves_its_loop_is_not_idle() {
    let spins = times(4, "1:load(a)@3");
    let rounds = "0:update(a)@1 0:update(a)@1~7";
    // The third round, but its next operation is another one.
    let script = format!("{rounds} {spins} 0:update(a)@1~7 ?0:load(b)@2 ?1:load(a)@3");
    assert_eq!(after(&script, 1), "Enabled 0:Ra");
    // The next operation after a second loop.
    let script = format!(
        "{rounds} 0:load(b)@2 0:update(a)@1 {spins} 0:update(a)@1~7 ?0:load(b)@2 ?1:load(a)@3"
    );
    assert_eq!(after(&script, 1), "Enabled 0:Ra");
}

#[test]
fn an_idle_change_is_known_to_the_thread_that_waits_for_it() {
    let script = |round: usize| {
        let spins = times(4, "1:load(a)@3");
        let before = format!("0:update(a)@1 {}", times(round - 2, "0:update(a)@1~7"));
        let change = "0:update(a)@1~7 ?0:update(a)@1~7";
        format!("{before} {spins} {change} ?1:load(a)@3")
    };
    let is_changed = |round, of: usize| {
        let run = Run::new(&script(round), LoopRounds::default());
        run.recording.is_changed_idly(ThreadId::new(of), 1, &run.path)
    };
    assert!(!is_changed(2, 1), "the change of the second round is not idle");
    assert!(is_changed(3, 1));
    assert!(!is_changed(3, 0), "its own change");
    let unrelated = script(3).replace("1:load(a)@3", "1:load(b)@3");
    let run = Run::new(&unrelated, LoopRounds::default());
    assert!(!run.recording.is_changed_idly(ThreadId::new(1), 1, &run.path));
    // A load of the thread after the change has seen it.
    let seen = script(3).replace("?1:load(a)@3", "1:load(a)@3 ?1:load(a)@3");
    let run = Run::new(&seen, LoopRounds::default());
    assert!(!run.recording.is_changed_idly(ThreadId::new(1), 1, &run.path));
}

#[test]
fn threads_that_are_held_back_are_found_if_no_other_can_step() {
    let spins = times(4, "1:load(a)@3");
    let only = |script: &str| {
        let run = Run::new(script, LoopRounds::default());
        run.recording.only_spinning().iter().map(|thread| thread.index()).collect::<Vec<_>>()
    };
    assert_eq!(only(&format!("{spins} ?1:load(a)@3")), [1]);
    assert_eq!(only(&format!("{spins} ?1:load(a)@3 ?0:load(a)@2")), []);
    assert_eq!(only(&format!("{spins} ?1:load(a)@3 ?0:park(x)@2")), [1]);
    let both = format!("{spins} {} ?1:load(a)@3 ?0:load(a)@3", times(4, "0:load(a)@3"));
    assert_eq!(only(&both), [0, 1]);
}
