//! Tests of recordings, on traces written by hand.

mod loops;
mod pasts;
mod scripts;

use std::num::NonZeroU64;
use std::sync::atomic::Ordering::SeqCst;

use preempt_system::race::RaceDetector;
use preempt_system::{
    Access, Action, Choice, Kind, Location, LocationKind, Status, Swap, ThreadId,
};

use crate::op::{EarlyWake, Lookahead, Op, OpKind, Outcome};
use crate::{Event, LoopRounds, Mode, NO_OBJECT, Names, Recording, SiteId, race, spin};

const MAIN: ThreadId = ThreadId::new(0);
const CHILD: ThreadId = ThreadId::new(1);

fn site(line: u64) -> SiteId {
    SiteId::new(NonZeroU64::new(line).expect("lines are counted from 1"))
}

/// The operation in `line` of the program.
fn op(kind: OpKind, object: u32, line: u64) -> Op {
    Op::new(kind, object, "op", site(line))
}

/// A step after which its thread arrives at `next`.
fn event(thread: ThreadId, next: Option<Op>) -> Event {
    Event { choice: Choice::of(thread), outcome: Outcome::default(), next, started: Vec::new() }
}

/// The same for a step that changes an atomic.
fn change(thread: ThreadId, next: Option<Op>) -> Event {
    let outcome = Outcome { changed: true, progress: true, ..Outcome::default() };
    Event { outcome, ..event(thread, next) }
}

/// Two threads that have arrived at these operations, where `object` numbers these kinds.
fn begin(first: fn(&[u32]) -> [Op; 2], kinds: &[Option<Kind>]) -> (Recording<u64>, Vec<u32>) {
    let mut names = Names::new(2);
    assert_eq!(names.child(0, 0), Ok(1));
    let locate = |(nth, &kind)| names.locate(nth as u64, kind, "object", site(99));
    let objects: Vec<u32> = kinds.iter().enumerate().map(locate).collect();
    let mut recording = Recording::new(names, LoopRounds::default());
    arrive(&mut recording, first(&objects));
    (recording, objects)
}

fn arrive(recording: &mut Recording<u64>, first: [Op; 2]) {
    recording.begin();
    for (thread, op) in [MAIN, CHILD].into_iter().zip(first) {
        recording.arrive(thread, &op).expect("the first execution diverges from nothing");
    }
    recording.start([CHILD].into_iter().collect());
    recording.ready();
}

fn lock(object: u32, line: u64) -> Op {
    op(OpKind::Object(Action::Lock), object, line)
}

fn unlock(object: u32, line: u64) -> Op {
    op(OpKind::Object(Action::Unlock), object, line)
}

fn load(object: u32, line: u64) -> Op {
    op(OpKind::Load(SeqCst), object, line)
}

fn store(object: u32, line: u64) -> Op {
    op(OpKind::Store(SeqCst), object, line)
}

#[test]
fn prefixes_that_never_ran_are_answered_from_the_histories() {
    let both = |objects: &[u32]| [lock(objects[0], 1), lock(objects[0], 2)];
    let (mut recording, objects) = begin(both, &[Some(Kind::Mutex)]);
    recording.feed(&event(MAIN, Some(unlock(objects[0], 3)))).expect("the mutex is free");
    assert_eq!(recording.ask(CHILD).status, Status::Blocked);
    recording.feed(&event(MAIN, None)).expect("the thread holds the mutex");
    assert!(recording.has_ended(MAIN) && recording.ask(CHILD).status == Status::Enabled);
    recording.feed(&event(CHILD, Some(unlock(objects[0], 4)))).expect("the mutex is free");

    // The child first: then the main thread has to wait.
    let mut state = recording.initial();
    recording.advance(&mut state, Choice::of(CHILD));
    assert_eq!(recording.ask_at(&state, MAIN).status, Status::Blocked);
    assert_eq!(recording.ask_at(&state, CHILD).status, Status::Enabled);

    // Going back runs nothing, and other steps can follow.
    recording.rewind(&[Choice::of(MAIN)]);
    assert_eq!(recording.ask(CHILD).status, Status::Blocked);
    assert_eq!(recording.next_op(MAIN).map(|op| op.site), Some(site(3)));
    recording.rewind(&[]);
    recording.feed(&event(CHILD, Some(unlock(objects[0], 4)))).expect("the mutex is free");
    assert_eq!(recording.ask(MAIN).status, Status::Blocked);
}

#[test]
fn a_misuse_is_reported_and_recorded() {
    let both = |objects: &[u32]| [unlock(objects[0], 1), lock(objects[0], 2)];
    let (mut recording, _) = begin(both, &[Some(Kind::Mutex)]);
    assert!(recording.feed(&event(MAIN, None)).is_err());
    assert!(recording.has_ended(MAIN));
}

#[test]
fn a_repeated_execution_is_compared_with_the_recorded_one() {
    let both = |objects: &[u32]| [load(objects[0], 1), store(objects[0], 2)];
    let (mut recording, objects) = begin(both, &[None]);
    recording.feed(&event(MAIN, Some(load(objects[0], 3)))).expect("a load is not a misuse");
    recording.set_mode(Mode::Repeat);
    arrive(&mut recording, both(&objects));
    let (step, _) = recording.start_repeated_step(Choice::of(MAIN));
    let found = store(objects[0], 6);
    let divergence = recording.arrive(MAIN, &found).expect_err("it was a load before");
    assert_eq!((divergence.thread, divergence.at), (MAIN, 1));
    assert_eq!(divergence.recorded.kind, OpKind::Load(SeqCst));
    recording.arrive(MAIN, &load(objects[0], 3)).expect("the same operation");
    recording.end_repeated_step(step, [].into_iter().collect());
    assert_eq!(recording.end(MAIN).map(|op| op.site), Some(site(3)), "it ended later before");
}

/// The status of the main thread after each of `loads` loads in a loop that yields at a line, or
/// not, and that is known to end after `rounds` rounds, or not.
fn spin_for(loads: usize, yields: Option<u64>, rounds: Option<usize>) -> Vec<Status> {
    let both = |objects: &[u32]| [load(objects[0], 1), store(objects[0], 2)];
    let (mut recording, objects) = begin(both, &[None]);
    if let Some(rounds) = rounds {
        let mut loops = LoopRounds::default();
        loops.insert(site(1), rounds);
        recording = Recording::new(recording.into_names(), loops);
        arrive(&mut recording, both(&objects));
    }
    let status = |_| {
        let mut next = load(objects[0], 1);
        next.yielded = yields.map(site);
        recording.feed(&event(MAIN, Some(next))).expect("a load is not a misuse");
        recording.ask(MAIN).status
    };
    (0..loads).map(status).collect()
}

#[test]
fn a_thread_that_reads_the_same_again_and_again_spins() {
    use Status::{Enabled, Spinning};
    let spins_after = |statuses: Vec<Status>| {
        let first = statuses.iter().position(|&status| status == Spinning);
        assert!(first.is_none_or(|first| statuses[first..].iter().all(|&s| s == Spinning)));
        assert!(statuses.iter().all(|status| [Enabled, Spinning].contains(status)));
        first.map(|first| first + 1)
    };
    // One load, and as many rounds more as it takes.
    assert_eq!(spins_after(spin_for(9, None, None)), Some(1 + spin::ROUNDS));
    assert_eq!(spins_after(spin_for(9, Some(7), None)), Some(2), "a yield asks for others");
    assert_eq!(spins_after(spin_for(9, None, Some(6))), Some(7), "the loop is known to end");
    assert_eq!(spins_after(spin_for(9, None, Some(9))), None);
}

#[test]
fn a_change_releases_a_thread_that_spins_and_is_part_of_what_its_step_depends_on() {
    let both = |objects: &[u32]| [load(objects[0], 1), store(objects[0], 2)];
    let (mut recording, objects) = begin(both, &[None]);
    for _ in 0..=spin::ROUNDS {
        recording.feed(&event(MAIN, Some(load(objects[0], 1)))).expect("a load is not a misuse");
    }
    assert_eq!(recording.ask(MAIN).status, Status::Spinning);
    assert_eq!(recording.only_spinning().len(), 0, "the child can step");
    recording.set_lookahead(MAIN, Lookahead::Repeats);
    let before = recording.state().clone();
    recording.feed(&change(CHILD, None)).expect("a store is not a misuse");
    let pending = recording.ask(MAIN);
    assert_eq!(pending.status, Status::Enabled);
    assert_eq!(pending.footprints[0].1.accesses(), [(Location(objects[0]), Access::Read)]);
    // Without that change it is held back, whatever ran meanwhile.
    assert_eq!(recording.ask_at(&before, MAIN).status, Status::Spinning);
    recording.take_back(before, CHILD);
    assert_eq!(recording.ask(MAIN).status, Status::Spinning);
}

#[test]
fn steps_that_are_always_enabled_are_affected_by_no_other_thread() {
    let both = |objects: &[u32]| [load(objects[0], 1), lock(objects[1], 2)];
    let (mut recording, objects) = begin(both, &[None, Some(Kind::Mutex)]);
    assert!(!recording.unaffected().contains(CHILD), "all are asked in the beginning");
    recording.feed(&event(CHILD, Some(unlock(objects[1], 3)))).expect("the mutex is free");
    assert!(recording.unaffected().contains(MAIN) && recording.unaffected().contains(CHILD));
    recording.feed(&event(CHILD, Some(lock(objects[1], 4)))).expect("the thread holds it");
    assert!(recording.unaffected().contains(MAIN) && !recording.unaffected().contains(CHILD));
}

#[test]
fn a_thread_that_waits_is_affected_by_steps_on_what_it_waits_for() {
    let both = |objects: &[u32]| [lock(objects[1], 1), lock(objects[0], 2)];
    let (mut recording, objects) = begin(both, &[Some(Kind::Mutex); 2]);
    recording.feed(&event(MAIN, Some(lock(objects[0], 3)))).expect("the mutex is free");
    assert!(recording.unaffected().contains(CHILD), "it waits for another mutex");
    recording.feed(&event(MAIN, Some(unlock(objects[0], 4)))).expect("the mutex is free");
    assert!(!recording.unaffected().contains(CHILD));
    assert_eq!(recording.ask(CHILD).status, Status::Blocked);
    recording.feed(&event(MAIN, Some(unlock(objects[1], 5)))).expect("the thread holds it");
    assert!(!recording.unaffected().contains(CHILD));
    assert_eq!(recording.ask(CHILD).status, Status::Enabled);
    recording.feed(&event(MAIN, None)).expect("the thread holds it");
    assert!(recording.unaffected().contains(CHILD));
}

#[test]
fn a_spurious_wakeup_needs_no_notification_and_a_timeout_none_either() {
    let wait = |early| {
        let both = |objects: &[u32]| [op(OpKind::Yield, NO_OBJECT, 1), lock(objects[0], 2)];
        let (mut recording, objects) = begin(both, &[Some(Kind::Parker)]);
        let park = op(OpKind::Park { early }, objects[0], 3);
        recording.feed(&event(MAIN, Some(park))).expect("a yield is not a misuse");
        let pending = recording.ask(MAIN);
        (pending.status, pending.footprints[0].0)
    };
    assert_eq!(wait(EarlyWake::Never), (Status::Blocked, 0));
    assert_eq!(wait(EarlyWake::Spurious), (Status::Enabled, 1));
    assert_eq!(wait(EarlyWake::Timeout), (Status::Enabled, 1));
}

#[test]
fn the_order_of_independent_steps_is_not_part_of_a_past() {
    let pasts = |object: usize| {
        let both: fn(&[u32]) -> [Op; 2] = match object {
            0 => |objects| [load(objects[0], 1), store(objects[0], 2)],
            _ => |objects| [load(objects[0], 1), store(objects[1], 2)],
        };
        let (mut recording, objects) = begin(both, &[None, None]);
        recording.feed(&event(MAIN, Some(load(objects[0], 3)))).expect("a load is not a misuse");
        recording.feed(&change(CHILD, None)).expect("a store is not a misuse");
        let path = [MAIN, CHILD].map(Choice::of);
        let other_way = [CHILD, MAIN].map(Choice::of);
        let without = recording.without(&path, MAIN, 0).map(|kept| kept.len());
        (recording.past(MAIN, &path) == recording.past(MAIN, &other_way), without)
    };
    assert_eq!(pasts(0), (false, None), "the store depends on the load");
    assert_eq!(pasts(1), (true, Some(1)));
}

#[test]
fn steps_that_could_have_come_first_are_known_without_a_state() {
    let both = |objects: &[u32]| [lock(objects[0], 1), store(objects[1], 2)];
    let (mut recording, objects) = begin(both, &[Some(Kind::Mutex), None]);
    recording.feed(&event(MAIN, Some(load(objects[1], 3)))).expect("the mutex is free");
    let finish = op(OpKind::Finish, CHILD.index() as u32, 4);
    recording.feed(&change(CHILD, Some(finish))).expect("a store is not a misuse");
    let join = op(OpKind::Object(Action::Join), CHILD.index() as u32, 5);
    recording.feed(&event(MAIN, Some(join))).expect("a load is not a misuse");
    recording.feed(&event(CHILD, None)).expect("a thread can end");
    assert_eq!(recording.swap((CHILD, 0), (MAIN, 1)), Swap::Possible);
    assert_eq!(recording.swap((CHILD, 1), (MAIN, 2)), Swap::Impossible);
    assert_eq!(recording.swap((CHILD, 0), (MAIN, 0)), Swap::Unknown);
    assert_eq!(recording.location_kind(Location(1)), LocationKind::Life(CHILD));
    let atomic = recording.location_kind(Location(objects[1]));
    assert_eq!(atomic, LocationKind::Synchronisation);
}

#[test]
fn names_depend_on_places_and_not_on_the_order_of_uses() {
    let mut names = Names::<u64>::new(4);
    let first = names.locate(7, Some(Kind::Mutex), "mutex", site(3));
    let second = names.locate(8, Some(Kind::Mutex), "mutex", site(3));
    assert_eq!(names.locate(7, Some(Kind::Mutex), "mutex", site(3)), first);
    assert_ne!(names.locate(7, None, "atomic", site(3)), first, "another kind, another object");
    let position = |site: SiteId| preempt_system::Site {
        file: "test.rs".into(),
        line: site.get() as u32,
        column: 1,
    };
    assert_eq!(names.object(first, position), "mutex@3");
    assert_eq!(names.object(second, position), "mutex@3#2");
    assert_eq!((names.child(0, 0), names.child(1, 0), names.child(1, 0)), (Ok(1), Ok(2), Ok(2)));
    assert_eq!((names.child(0, 1), names.child(0, 2)), (Ok(3), Err(5)));
    let threads = [0, 1, 2, 3].map(|slot| names.thread(slot));
    assert_eq!(threads, ["main", "t1", "t1.1", "t2"]);
    assert_eq!(names.object(names.parker(2), position), "token of t1.1");
    assert_eq!(names.object(2, position), "t1.1", "the life of a thread");
    assert_eq!(names.threads(), 4);
    assert_eq!(
        [first, names.parker(2), 99].map(|location| names.place(location)),
        [Some(7), None, None]
    );
    assert_eq!(names.thread_of(3), Some(ThreadId::new(3)));
    assert_eq!(names.thread_of(4), None, "the token of main");
}

#[test]
fn objects_of_one_line_are_told_apart_by_their_columns() {
    // The site is the line times ten plus the column.
    let position = |site: SiteId| preempt_system::Site {
        file: if site.get() > 90 { "other.rs".into() } else { "test.rs".into() },
        line: site.get() as u32 / 10 % 9,
        column: site.get() as u32 % 10,
    };
    let mut names = Names::<u64>::new(1);
    let mut made = |place, noun, at| names.locate(place, None, noun, site(at));
    let all = [
        made(0, "atomic", 31),
        made(1, "atomic", 35),
        made(2, "atomic", 35),
        made(3, "mutex", 38),
        made(4, "atomic", 41),
        // In the same line and column of another file as the one before.
        made(5, "atomic", 41 + 90),
    ];
    let found = all.map(|location| names.object(location, position));
    let expected = ["atomic@3:1", "atomic@3:5", "atomic@3:5#2", "mutex@3", "atomic@4", "atomic@4"];
    assert_eq!(found, expected);
}

#[test]
fn objects_are_found_again_in_any_order_of_use() {
    let mut names = Names::<u64>::new(1);
    let kinds = [None, Some(Kind::Mutex), Some(Kind::Condvar), None];
    let locate = |names: &mut Names<u64>, nth: usize| {
        names.locate(nth as u64, kinds[nth], "object", site(1 + nth as u64))
    };
    let made: Vec<u32> = (0..4).map(|nth| locate(&mut names, nth)).collect();
    assert_eq!(made, [2, 3, 4, 5]);
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 2, 0, 0]] {
        names.begin();
        assert_eq!(order.map(|nth| locate(&mut names, nth)), order.map(|nth| made[nth]));
    }
    assert_eq!(names.objects().len(), 6);
    assert!(!names.objects().is_empty());
}

/// Whether a write by the main thread before `released` is ordered before a read by the child after
/// `acquired`. An operation has a kind, its objects, its alternative, and what it replied.
fn is_ordered(released: Operation, acquired: Operation) -> bool {
    let mut detector = RaceDetector::new();
    let variable = detector.variable();
    detector.record(MAIN, variable, Access::Write, ());
    for (thread, (kind, object, other, alternative, reply)) in [(MAIN, released), (CHILD, acquired)]
    {
        let op = op(kind, object, 1).and(other);
        race::synchronise(&mut detector.clocks, thread, &op, alternative, reply);
    }
    detector.conflicts(CHILD, variable, Access::Read).next().is_none()
}

type Operation = (OpKind, u32, u32, u32, i64);

#[test]
fn what_synchronises_with_what() {
    use Action::*;
    // The object of most operations, and a second one.
    const X: u32 = 7;
    const Y: u32 = 8;
    let of = |action, reply| (OpKind::Object(action), X, NO_OBJECT, 0, reply);
    let wake = |early, other, alternative| (OpKind::Wake { early }, Y, other, alternative, 0);
    let park =
        |alternative| (OpKind::Park { early: EarlyWake::Timeout }, X, NO_OBJECT, alternative, 0);
    let wait = (OpKind::Wait, Y, X, 0, 0);
    let finish = (OpKind::Finish, MAIN.index() as u32, NO_OBJECT, 0, 0);
    let join = |thread: ThreadId| (OpKind::Object(Join), thread.index() as u32, NO_OBJECT, 0, 0);
    let downgrade = (OpKind::Downgrade, X, NO_OBJECT, 0, 0);
    let cases: &[(Operation, Operation, bool)] = &[
        // Mutexes. An attempt that failed synchronises with nothing.
        (of(Unlock, 0), of(Lock, 0), true),
        (of(Unlock, 0), of(TryLock, 1), true),
        (of(Unlock, 0), of(TryLock, 0), false),
        (of(Lock, 0), of(Lock, 0), false),
        (of(Unlock, 0), of(Unlock, 0), false),
        // Readers order the writers after them and not each other.
        (of(ReadUnlock, 0), of(WriteLock, 0), true),
        (of(ReadUnlock, 0), of(TryWriteLock, 1), true),
        (of(ReadUnlock, 0), of(TryWriteLock, 0), false),
        (of(ReadUnlock, 0), of(ReadLock, 0), false),
        (of(ReadUnlock, 0), of(TryReadLock, 1), false),
        (of(WriteUnlock, 0), of(ReadLock, 0), true),
        (of(WriteUnlock, 0), of(TryReadLock, 1), true),
        (of(WriteUnlock, 0), of(TryReadLock, 0), false),
        (of(WriteUnlock, 0), of(WriteLock, 0), true),
        (downgrade, of(ReadLock, 0), true),
        (downgrade, of(WriteLock, 0), true),
        // A wait unlocks its mutex, and waking locks it again, notified or not. A timeout does not.
        (wait, of(Lock, 0), true),
        (of(Unlock, 0), wake(EarlyWake::Timeout, X, 0), true),
        (of(Unlock, 0), wake(EarlyWake::Timeout, X, 1), false),
        (of(Unlock, 0), wake(EarlyWake::Spurious, X, 1), true),
        (wait, wake(EarlyWake::Timeout, X, 0), true),
        (of(NotifyAll, 0), wake(EarlyWake::Timeout, Y, 0), false),
        // A park that ended early has not seen the token.
        (of(Unpark, 0), park(0), true),
        (of(Unpark, 0), park(1), false),
        (finish, join(MAIN), true),
        (finish, join(CHILD), false),
        (of(Arrive, 0), of(Leave, 0), true),
        (of(Arrive, 0), of(Arrive, 0), true),
        (of(Release, 0), of(Acquire, 0), true),
        (of(Release, 0), of(TryAcquire, 1), true),
        (of(Release, 0), of(TryAcquire, 0), false),
        (of(Set, 0), of(Await, 0), true),
        (of(Send(1), 0), of(Recv, 1), true),
        (of(Recv, 0), of(Send(1), 0), false),
    ];
    for &(released, acquired, ordered) in cases {
        assert_eq!(is_ordered(released, acquired), ordered, "{released:?}, then {acquired:?}");
    }
}

#[test]
fn all_who_arrive_at_a_barrier_come_before_all_who_leave() {
    let mut detector = RaceDetector::new();
    let variables = [MAIN, CHILD].map(|thread| {
        let variable = detector.variable();
        detector.record(thread, variable, Access::Write, ());
        variable
    });
    for (thread, action) in [
        (MAIN, Action::Arrive),
        (CHILD, Action::Arrive),
        (MAIN, Action::Leave),
        (CHILD, Action::Leave),
    ] {
        race::synchronise(&mut detector.clocks, thread, &op(OpKind::Object(action), 7, 1), 0, 0);
    }
    for (thread, variable) in [(MAIN, variables[1]), (CHILD, variables[0])] {
        assert_eq!(detector.conflicts(thread, variable, Access::Write).count(), 0, "{thread:?}");
    }
}
