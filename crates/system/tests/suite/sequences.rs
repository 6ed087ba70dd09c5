//! The behaviour of each object, as sequences of actions with their expected outcomes.

use preempt_system::Action::{self, *};
use preempt_system::{Holds, Kind, Misuse, ThreadId};

/// The outcome of an attempted action.
#[derive(Debug, PartialEq)]
enum Outcome {
    Waits,
    Replies(i64),
    Wrong(Misuse),
}

use Outcome::{Replies, Waits, Wrong};

const DONE: Outcome = Replies(0);
const YES: Outcome = Replies(1);
const NO: Outcome = Replies(0);

/// Lets the threads perform the actions in this order and compares the outcomes; returns the final
/// state.
fn perform_all(kind: Kind, lines: &[(usize, Action, Outcome)]) -> Vec<u64> {
    let mut cells: Vec<u64> = (0..kind.fields()).map(|field| kind.initial(field)).collect();
    for (at, (thread, action, expected)) in lines.iter().enumerate() {
        let (thread, before) = (ThreadId::new(*thread), cells.clone());
        let outcome = match kind.enabled(&cells, thread, *action) {
            false => Waits,
            true => kind.apply(&mut cells, thread, *action).map_or_else(Wrong, Replies),
        };
        assert_eq!(&outcome, expected, "{kind:?}, line {at}: {thread:?} {action:?} in {before:?}");
        assert!(!matches!(outcome, Wrong(_)) || cells == before, "a misuse changes nothing");
    }
    cells
}

#[test]
fn a_mutex_excludes() {
    let end = perform_all(
        Kind::Mutex,
        &[
            (0, Lock, DONE),
            (0, Lock, Waits),
            (0, TryLock, NO),
            (1, Lock, Waits),
            (1, TryLock, NO),
            (1, Unlock, Wrong(Misuse::NotHeld)),
            (0, Unlock, DONE),
            (0, Unlock, Wrong(Misuse::NotHeld)),
            (1, TryLock, YES),
            (0, Lock, Waits),
        ],
    );
    assert_eq!(end, [2]);
}

#[test]
fn readers_share_and_writers_do_not() {
    let end = perform_all(
        Kind::RwLock,
        &[
            (0, ReadLock, DONE),
            (1, TryReadLock, YES),
            (1, TryReadLock, NO),
            (1, ReadLock, Waits),
            (1, WriteLock, Waits),
            (2, WriteLock, Waits),
            (2, TryWriteLock, NO),
            (2, ReadUnlock, Wrong(Misuse::NotReading)),
            (0, ReadUnlock, DONE),
            (2, WriteLock, Waits),
            (1, ReadUnlock, DONE),
            (2, WriteLock, DONE),
            (2, ReadLock, Waits),
            (0, ReadLock, Waits),
            (0, TryReadLock, NO),
            (0, WriteUnlock, Wrong(Misuse::NotWriting)),
            (2, WriteUnlock, DONE),
            (0, TryWriteLock, YES),
        ],
    );
    assert_eq!(end, [1, 0]);
}

#[test]
fn a_notification_reaches_a_waiting_thread() {
    let end = perform_all(
        Kind::Condvar,
        &[
            (0, NotifyOne { nth: 0 }, DONE),
            (0, NotifyOne { nth: 1 }, Waits),
            (1, Wait, DONE),
            (1, Wake, Waits),
            (2, Wait, DONE),
            (3, Wait, DONE),
            (0, NotifyOne { nth: 1 }, DONE),
            (1, Wake, Waits),
            (2, Wake, DONE),
            (0, NotifyOne { nth: 2 }, Waits),
            (0, NotifyAll, DONE),
            (1, Wake, DONE),
            (3, Wake, DONE),
            (3, Wait, DONE),
        ],
    );
    assert_eq!(end, [0b1000]);
}

#[test]
fn a_notification_has_an_alternative_for_each_waiting_thread() {
    let [a, b] = [ThreadId::new(0), ThreadId::new(5)];
    for (waiting, alternatives) in [(0, 1), (0b10, 1), (0b1110, 3)] {
        assert_eq!(
            Kind::Condvar.alternatives(&vec![waiting], a, NotifyOne { nth: 0 }),
            alternatives
        );
        assert_eq!(Kind::Condvar.alternatives(&vec![waiting], b, NotifyAll), 1);
    }
}

#[test]
fn a_semaphore_counts() {
    let acquire_two =
        [(0, Acquire, DONE), (1, TryAcquire, YES), (0, Acquire, Waits), (1, TryAcquire, NO)];
    assert_eq!(perform_all(Kind::Semaphore { initial: 2 }, &acquire_two), [0]);
    perform_all(Kind::Semaphore { initial: u32::MAX }, &[(0, Release, Wrong(Misuse::Overflow))]);
    perform_all(
        Kind::Semaphore { initial: 0 },
        &[(0, Acquire, Waits), (1, Release, DONE), (0, Acquire, DONE)],
    );
}

#[test]
fn an_event_releases_all_threads_or_one() {
    let manual = Kind::Event { auto: false, set: true };
    perform_all(
        manual,
        &[(0, Await, DONE), (1, Await, DONE), (2, Reset, DONE), (0, Await, Waits), (2, Set, DONE)],
    );
    let auto = Kind::Event { auto: true, set: false };
    let end =
        [(0, Await, Waits), (1, Set, DONE), (1, Set, DONE), (0, Await, DONE), (0, Await, Waits)];
    assert_eq!(perform_all(auto, &end), [0]);
}

#[test]
fn a_barrier_opens_for_all_and_closes_again() {
    let end = perform_all(
        Kind::Barrier { parties: 2 },
        &[
            (0, Arrive, NO),
            (0, Leave, Waits),
            (1, Arrive, YES),
            (1, Leave, DONE),
            (1, Arrive, NO),
            (0, Leave, DONE),
            (1, Leave, Waits),
        ],
    );
    assert_eq!(end, [0b10]);
    perform_all(Kind::Barrier { parties: 0 }, &[(0, Arrive, YES), (0, Leave, DONE)]);
}

#[test]
fn a_channel_keeps_the_order() {
    let end = perform_all(
        Kind::Channel { capacity: 2 },
        &[
            (0, Recv, Waits),
            (0, TryRecv, NO),
            (0, Send(-7), DONE),
            (0, Sent, DONE),
            (1, TrySend(8), YES),
            (1, TrySend(9), NO),
            (1, Send(9), Waits),
            (2, Len, Replies(2)),
            (2, Recv, Replies(-7)),
            (2, Len, Replies(1)),
        ],
    );
    assert_eq!(end, [1, 8, 0]);
}

#[test]
fn without_capacity_the_sender_waits_for_the_receiver() {
    let end = perform_all(
        Kind::Channel { capacity: 0 },
        &[
            (1, Recv, Waits),
            (1, TryRecv, NO),
            (0, TrySend(5), Wrong(Misuse::TryRendezvous)),
            (0, Send(5), DONE),
            (0, Sent, Waits),
            (2, Send(6), Waits),
            (1, Len, Replies(0)),
            (1, Recv, Replies(5)),
            (1, Recv, Waits),
            (2, Send(6), Waits),
            (0, Sent, DONE),
            (2, Send(6), DONE),
            (1, TryRecv, Replies(6)),
        ],
    );
    assert_eq!(end, [2, 0]);
}

#[test]
fn a_thread_starts_and_ends_once() {
    let life = [
        (1, Begin, Waits),
        (1, Finish, Waits),
        (0, Start, DONE),
        (0, Start, Waits),
        (1, Begin, DONE),
        (0, Join, Waits),
        (1, Finish, DONE),
        (0, Join, DONE),
        (2, Join, DONE),
    ];
    assert_eq!(perform_all(Kind::Thread, &life), [2]);
}

#[test]
fn a_parker_keeps_one_token() {
    perform_all(
        Kind::Parker,
        &[
            (0, Park, Waits),
            (1, Unpark, DONE),
            (1, Unpark, DONE),
            (0, Park, DONE),
            (0, Park, Waits),
        ],
    );
}

#[test]
fn a_cell_replies_its_old_value() {
    let end = perform_all(
        Kind::Cell { initial: -2 },
        &[
            (0, Load, Replies(-2)),
            (0, Store(1), DONE),
            (0, Swap(6), Replies(1)),
            (1, CompareExchange { old: 5, new: 0 }, Replies(6)),
            (1, CompareExchange { old: 6, new: 12 }, Replies(6)),
            (0, FetchAnd(6), Replies(12)),
            (0, FetchOr(3), Replies(4)),
            (0, FetchXor(1), Replies(7)),
            (0, FetchSub(8), Replies(6)),
            (0, FetchAdd(i64::MIN), Replies(-2)),
            (0, Load, Replies(i64::MAX - 1)),
        ],
    );
    assert_eq!(end, [i64::MAX as u64 - 1]);
}

#[test]
fn fields_declare_their_contents() {
    let channel = Kind::Channel { capacity: 4 };
    assert_eq!(channel.fields(), 5);
    assert_eq!((channel.holds(0, 3), channel.holds(4, 3)), (Holds::Below(5), Holds::Payload));
    assert_eq!(Kind::Channel { capacity: 0 }.holds(0, 3), Holds::Below(3));
    assert_eq!(Kind::Mutex.holds(0, 3), Holds::Below(4));
    assert_eq!(
        (Kind::RwLock.holds(0, 3), Kind::RwLock.holds(1, 3)),
        (Holds::Below(4), Holds::Threads)
    );
    assert_eq!(Kind::Cell { initial: -1 }.initial(0), u64::MAX);
}
