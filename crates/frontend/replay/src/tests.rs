//! Tests of recordings, on traces written by hand.

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
        recording.arrive(thread, op).expect("the first execution diverges from nothing");
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
    recording.feed(&event(MAIN, Some(load(objects[0], 3)))).expect("a load is no misuse");
    recording.set_mode(Mode::Repeat);
    arrive(&mut recording, both(&objects));
    let (step, _) = recording.start_repeated_step(Choice::of(MAIN));
    let found = store(objects[0], 6);
    let divergence = recording.arrive(MAIN, found).expect_err("it was a load before");
    assert_eq!((divergence.thread, divergence.at), (MAIN, 1));
    assert_eq!(divergence.recorded.kind, OpKind::Load(SeqCst));
    recording.arrive(MAIN, load(objects[0], 3)).expect("the same operation");
    recording.end_repeated_step(step, [].into_iter().collect());
    assert_eq!(recording.end(MAIN).map(|op| op.site), Some(site(3)), "it ended later before");
}

/// The status of the main thread after each of `loads` loads in a loop that yields at a line, or
/// not, and that is known to end after so many `rounds`, or not.
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
        recording.feed(&event(MAIN, Some(next))).expect("a load is no misuse");
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
        recording.feed(&event(MAIN, Some(load(objects[0], 1)))).expect("a load is no misuse");
    }
    assert_eq!(recording.ask(MAIN).status, Status::Spinning);
    assert_eq!(recording.only_spinning().len(), 0, "the child can step");
    recording.set_lookahead(MAIN, Lookahead::Repeats);
    let before = recording.state().clone();
    recording.feed(&change(CHILD, None)).expect("a store is no misuse");
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
fn a_spurious_wakeup_needs_no_notification_and_a_timeout_none_either() {
    let wait = |early| {
        let both = |objects: &[u32]| [op(OpKind::Yield, NO_OBJECT, 1), lock(objects[0], 2)];
        let (mut recording, objects) = begin(both, &[Some(Kind::Parker)]);
        let park = op(OpKind::Park { early }, objects[0], 3);
        recording.feed(&event(MAIN, Some(park))).expect("a yield is no misuse");
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
        recording.feed(&event(MAIN, Some(load(objects[0], 3)))).expect("a load is no misuse");
        recording.feed(&change(CHILD, None)).expect("a store is no misuse");
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
    recording.feed(&change(CHILD, Some(finish))).expect("a store is no misuse");
    let join = op(OpKind::Object(Action::Join), CHILD.index() as u32, 5);
    recording.feed(&event(MAIN, Some(join))).expect("a load is no misuse");
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
}

/// Whether a write by the main thread before its `actions` is ordered before a read by the child
/// after its own.
fn is_ordered(actions: &[(ThreadId, Action, i64)]) -> bool {
    let mut detector = RaceDetector::new();
    let variable = detector.variable();
    detector.record(MAIN, variable, Access::Write, ());
    for &(thread, action, reply) in actions {
        race::synchronise(&mut detector, thread, &op(OpKind::Object(action), 7, 1), 0, reply);
    }
    detector.conflicts(CHILD, variable, Access::Read).next().is_none()
}

#[test]
fn an_unlock_orders_the_locks_after_it() {
    use Action::{Lock, ReadLock, ReadUnlock, TryLock, TryWriteLock, Unlock};
    assert!(is_ordered(&[(MAIN, Unlock, 0), (CHILD, Lock, 0)]));
    assert!(is_ordered(&[(MAIN, Unlock, 0), (CHILD, TryLock, 1)]));
    assert!(!is_ordered(&[(MAIN, Unlock, 0), (CHILD, TryLock, 0)]), "the attempt failed");
    // Readers order the writers after them and not each other.
    assert!(is_ordered(&[(MAIN, ReadUnlock, 0), (CHILD, Action::WriteLock, 0)]));
    assert!(is_ordered(&[(MAIN, ReadUnlock, 0), (CHILD, TryWriteLock, 1)]));
    assert!(!is_ordered(&[(MAIN, ReadUnlock, 0), (CHILD, ReadLock, 0)]));
    assert!(is_ordered(&[(MAIN, Action::WriteUnlock, 0), (CHILD, ReadLock, 0)]));
    assert!(is_ordered(&[(MAIN, Action::Release, 0), (CHILD, Action::Acquire, 0)]));
    assert!(is_ordered(&[(MAIN, Action::Set, 0), (CHILD, Action::Await, 0)]));
    assert!(is_ordered(&[(MAIN, Action::Arrive, 0), (CHILD, Action::Leave, 0)]));
}
