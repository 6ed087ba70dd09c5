//! Lock ownership, the ranges of fields, and the texts that show an object's state.

use preempt_system::{Action, Cells, Holds, Kind, LockMode, ThreadId};

fn fields(kind: Kind) -> Vec<u64> {
    (0..kind.fields()).map(|field| kind.initial(field)).collect()
}

/// Performs the actions of threads one after the other and returns the fields.
fn after(kind: Kind, actions: &[(usize, Action)]) -> Vec<u64> {
    let mut cells = fields(kind);
    for &(thread, action) in actions {
        assert!(
            kind.enabled(&cells, ThreadId::new(thread), action),
            "{kind:?} {action:?} of {thread}"
        );
        kind.apply(&mut cells, ThreadId::new(thread), action).expect("the action is not a misuse");
    }
    cells
}

fn held(kind: Kind, actions: &[(usize, Action)]) -> [Option<LockMode>; 3] {
    let cells = after(kind, actions);
    [0, 1, 2].map(|thread| kind.lock_mode(&cells, ThreadId::new(thread)))
}

#[test]
fn a_mutex_is_held_by_the_thread_that_locked_it() {
    assert_eq!(held(Kind::Mutex, &[]), [None; 3]);
    assert_eq!(held(Kind::Mutex, &[(1, Action::Lock)]), [None, Some(LockMode::Exclusive), None]);
    assert_eq!(held(Kind::Mutex, &[(2, Action::TryLock)]), [None, None, Some(LockMode::Exclusive)]);
    assert_eq!(held(Kind::Mutex, &[(1, Action::Lock), (1, Action::Unlock)]), [None; 3]);
}

#[test]
fn a_reader_writer_lock_is_held_with_others_or_alone() {
    let shared = Some(LockMode::Shared);
    assert_eq!(
        held(Kind::RwLock, &[(0, Action::ReadLock), (2, Action::ReadLock)]),
        [shared, None, shared]
    );
    assert_eq!(
        held(Kind::RwLock, &[(1, Action::WriteLock)]),
        [None, Some(LockMode::Exclusive), None]
    );
    assert_eq!(held(Kind::RwLock, &[(1, Action::WriteLock), (1, Action::WriteUnlock)]), [None; 3]);
    assert_eq!(held(Kind::RwLock, &[(0, Action::ReadLock), (0, Action::ReadUnlock)]), [None; 3]);
}

/// For locks, and only for locks, `taken_by` agrees with what is held after the action.
#[test]
fn an_action_that_takes_a_lock_says_so() {
    for (kind, action) in [
        (Kind::Mutex, Action::Lock),
        (Kind::RwLock, Action::ReadLock),
        (Kind::RwLock, Action::WriteLock),
        (Kind::Mutex, Action::TryLock),
        (Kind::RwLock, Action::TryWriteLock),
    ] {
        let cells = after(kind, &[(1, action)]);
        let sure = !matches!(action, Action::TryLock | Action::TryWriteLock);
        let expected = kind.lock_mode(&cells, ThreadId::new(1)).filter(|_| sure);
        assert_eq!(kind.taken_by(action), expected, "{kind:?} {action:?}");
        assert!(kind.is_lock());
    }
    for kind in [Kind::Condvar, Kind::Parker, Kind::Semaphore { initial: 1 }, Kind::Thread] {
        assert!(!kind.is_lock());
        assert_eq!(kind.lock_mode(&fields(kind), ThreadId::new(0)), None);
    }
}

/// The maximum of each field is within its declared range.
#[test]
fn fields_can_hold_every_value_that_actions_write() {
    let ended = after(Kind::Thread, &[(0, Action::Start), (0, Action::Begin), (0, Action::Finish)]);
    let Holds::Below(limit) = Kind::Thread.holds(0, 3) else {
        panic!("the life of a thread is a small number")
    };
    assert_eq!(ended[0] + 1, limit);
    let owned = after(Kind::Mutex, &[(2, Action::Lock)]);
    assert_eq!(Kind::Mutex.holds(0, 3), Holds::Below(owned[0] + 1));
    assert_eq!(Kind::Semaphore { initial: 0 }.holds(0, 3), Holds::Below(1 << 32));
}

#[test]
fn a_slice_holds_fields_too() {
    let mut cells = [0; 2];
    let slice: &mut [u64] = &mut cells;
    Cells::set(slice, 1, 7);
    assert_eq!((Cells::get(slice, 0), Cells::get(slice, 1)), (0, 7));
}

#[test]
fn objects_are_described_by_texts() {
    let show = |kind: Kind, actions: &[(usize, Action)]| {
        let name = |thread: ThreadId| format!("t{}", thread.index());
        kind.show(&after(kind, actions), name, |value| value.to_string())
    };
    assert_eq!(show(Kind::Mutex, &[]), "free");
    assert_eq!(show(Kind::Mutex, &[(1, Action::Lock)]), "held by t1");
    assert_eq!(show(Kind::RwLock, &[]), "free");
    assert_eq!(show(Kind::RwLock, &[(2, Action::WriteLock)]), "written by t2");
    assert_eq!(
        show(Kind::RwLock, &[(0, Action::ReadLock), (2, Action::ReadLock)]),
        "read by t0, t2"
    );
    assert_eq!(show(Kind::Condvar, &[]), "no waiters");
    assert_eq!(show(Kind::Condvar, &[(1, Action::Wait)]), "t1 waits");
    assert_eq!(show(Kind::Condvar, &[(1, Action::Wait), (2, Action::Wait)]), "t1, t2 wait");
    let event = Kind::Event { auto: false, set: false };
    assert_eq!(
        (show(event, &[]), show(event, &[(0, Action::Set)])),
        ("not set".to_owned(), "set".to_owned())
    );
    assert_eq!(
        show(Kind::Channel { capacity: 2 }, &[(0, Action::Send(3)), (0, Action::Send(4))]),
        "[3, 4]"
    );
    assert_eq!(show(Kind::Parker, &[]), "no token");
    assert_eq!(show(Kind::Parker, &[(1, Action::Unpark)]), "token");
}
