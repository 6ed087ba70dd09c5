//! The access and mover classes of every object, checked by executing actions in both orders.
//!
//! Most objects have few states, so the checks cover *all* states that three threads can reach
//! within a few steps. Random walks of more threads and more steps go further.

use std::collections::{HashSet, VecDeque};

use preempt_system::mover::Directions;
use preempt_system::{Access, Action, Kind, Mover, ThreadId};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// One object, and which actions each of its threads may perform on it.
struct Subject {
    kind: Kind,
    /// The depth of the exhaustive check, in steps.
    depth: usize,
    actions: Vec<Action>,
}

const PAYLOADS: [i64; 2] = [3, -1];

fn subjects() -> Vec<Subject> {
    use Action::*;
    let of = |kind, depth, actions: &[Action]| Subject { kind, depth, actions: actions.to_vec() };
    let notify =
        [Wait, Wake, NotifyOne { nth: 0 }, NotifyOne { nth: 1 }, NotifyOne { nth: 2 }, NotifyAll];
    let meeting = [Send(3), Send(-1), Sent, Recv, TryRecv];
    let channel = [Send(3), Send(-1), Sent, TrySend(3), Recv, TryRecv, Len];
    let cell = [
        Load,
        Store(3),
        Store(-1),
        Swap(3),
        CompareExchange { old: 0, new: 3 },
        CompareExchange { old: 3, new: -1 },
        FetchAdd(3),
        FetchSub(3),
        FetchAnd(3),
        FetchOr(-1),
        FetchXor(3),
    ];
    let rwlock = [ReadLock, TryReadLock, ReadUnlock, WriteLock, TryWriteLock, WriteUnlock];
    let mut subjects = vec![
        of(Kind::Mutex, 9, &[Lock, TryLock, Unlock]),
        of(Kind::RwLock, 9, &rwlock),
        of(Kind::Condvar, 9, &notify),
        of(Kind::Thread, 9, &[Start, Begin, Finish, Join]),
        of(Kind::Parker, 9, &[Park, Unpark]),
        of(Kind::Cell { initial: 0 }, 3, &cell),
    ];
    subjects.extend(
        [0, 2].map(|initial| of(Kind::Semaphore { initial }, 5, &[Acquire, TryAcquire, Release])),
    );
    subjects.extend(
        [true, false].map(|auto| of(Kind::Event { auto, set: false }, 9, &[Set, Reset, Await])),
    );
    subjects.extend([2, 3].map(|parties| of(Kind::Barrier { parties }, 9, &[Arrive, Leave])));
    subjects.push(of(Kind::Channel { capacity: 0 }, 5, &meeting));
    subjects.extend([1, 3].map(|capacity| of(Kind::Channel { capacity }, 5, &channel)));
    subjects
}

impl Subject {
    fn initial(&self) -> Vec<u64> {
        (0..self.kind.fields()).map(|field| self.kind.initial(field)).collect()
    }

    /// Thread 0 starts thread 1 and the others join it; thread 0 is the one that parks. All other
    /// objects treat their threads alike.
    fn may(&self, thread: ThreadId, action: Action) -> bool {
        match action {
            Action::Start | Action::Park => thread.index() == 0,
            Action::Begin | Action::Finish => thread.index() == 1,
            Action::Join => thread.index() != 1,
            _ => true,
        }
    }

    fn moves(&self, threads: usize) -> Vec<Move> {
        let all = (0..threads).map(ThreadId::new);
        let each =
            all.flat_map(|thread| self.actions.iter().map(move |&action| Move { thread, action }));
        each.filter(|m| self.may(m.thread, m.action)).collect()
    }

    fn enabled(&self, state: &[u64], m: Move) -> bool {
        self.kind.enabled(state, m.thread, m.action)
    }

    /// The state after a move, and its reply; a misuse is a reply too.
    fn after(&self, state: &[u64], m: Move) -> Option<(Vec<u64>, String)> {
        let mut state = state.to_vec();
        self.enabled(&state, m).then(|| {
            let reply = self.kind.apply(&mut state, m.thread, m.action);
            (state, format!("{reply:?}"))
        })
    }

    /// Both moves in order: the final state, and the two replies.
    fn both(&self, state: &[u64], first: Move, second: Move) -> Option<(Vec<u64>, String, String)> {
        let (state, a) = self.after(state, first)?;
        let (state, b) = self.after(&state, second)?;
        Some((state, a, b))
    }

    /// Whether the two moves, possible in this order, are possible with the same outcome in the
    /// other order.
    fn commute(&self, state: &[u64], first: Move, second: Move) -> bool {
        let one = self.both(state, first, second);
        let other = self.both(state, second, first).map(|(state, b, a)| (state, a, b));
        one.is_none() || one == other
    }

    fn reachable(&self, threads: usize) -> Vec<Vec<u64>> {
        let moves = self.moves(threads);
        let mut seen = HashSet::from([self.initial()]);
        let mut queue = VecDeque::from([(self.initial(), 0)]);
        while let Some((state, depth)) = queue.pop_front() {
            for (next, _) in moves.iter().filter_map(|&m| self.after(&state, m)) {
                if depth < self.depth && seen.insert(next.clone()) {
                    queue.push_back((next, depth + 1));
                }
            }
        }
        seen.into_iter().collect()
    }

    /// Independent moves must commute, must not enable or disable each other, and must not change
    /// each other's class.
    fn check_independence(&self, state: &[u64], a: Move, b: Move) {
        let access = |state: &[u64], m: Move| self.kind.access_in(state, m.action);
        if a.thread == b.thread || access(state, a).conflicts(access(state, b)) {
            return;
        }
        let note = format!("{:?} in {state:?}: {a:?} and {b:?} are called independent", self.kind);
        assert!(self.commute(state, a, b), "{note} and do not commute");
        for (x, y) in [(a, b), (b, a)] {
            if let Some((next, _)) = self.after(state, x) {
                assert_eq!(
                    self.enabled(state, y),
                    self.enabled(&next, y),
                    "{note} and one en- or disables the other"
                );
                assert_eq!(access(state, y), access(&next, y), "{note} and one changes the other");
            }
        }
    }

    /// Whether one move can directly follow the other. The finish of a thread follows its begin, so
    /// it never directly follows its start.
    fn neighbours(&self, first: Move, second: Move) -> bool {
        first.thread != second.thread
            && (first.action, second.action) != (Action::Start, Action::Finish)
    }

    /// Conditions 1, 3 and 4 on movers of the paper cpc, for `t` and one move of another thread.
    /// (Condition 2 says that the class belongs to the action whatever the state; the signature of
    /// `Kind::mover` guarantees it.)
    fn directions(&self, state: &[u64], t: Move, u: Move) -> Directions {
        let right = !self.neighbours(t, u) || self.commute(state, t, u);
        let left = !self.neighbours(u, t)
            || self.commute(state, u, t) && {
                let next = self.after(state, u).map(|(next, _)| next);
                !self.enabled(state, t) || next.is_none_or(|next| self.enabled(&next, t))
            };
        Directions { left, right }
    }

    /// The moves of an object without its disturbing actions.
    fn undisturbing(&self, threads: usize) -> Vec<Move> {
        self.moves(threads).into_iter().filter(|m| !self.kind.disturbs(m.action)).collect()
    }
}

#[derive(Clone, Copy, Debug)]
struct Move {
    thread: ThreadId,
    action: Action,
}

#[test]
fn independent_actions_commute_in_every_small_state() {
    for subject in subjects() {
        let moves = subject.moves(3);
        for state in subject.reachable(3) {
            for &a in &moves {
                moves.iter().for_each(|&b| subject.check_independence(&state, a, b));
            }
        }
    }
}

/// The declared classes are sound and maximal: each is exactly the class computed by execution.
#[test]
fn mover_classes_are_those_of_execution() {
    for subject in subjects() {
        let moves = subject.undisturbing(3);
        let states = subject.reachable(3);
        for &action in &subject.actions {
            if subject.kind.disturbs(action) {
                assert_eq!(
                    subject.kind.mover(action),
                    Mover::None,
                    "{:?} {action:?}",
                    subject.kind
                );
                continue;
            }
            let mut all = Directions { left: true, right: true };
            for &t in moves.iter().filter(|m| m.action == action) {
                for (state, &u) in states.iter().flat_map(|s| moves.iter().map(move |u| (s, u))) {
                    let one = subject.directions(state, t, u);
                    all = Directions { left: all.left && one.left, right: all.right && one.right };
                }
            }
            assert_eq!(subject.kind.mover(action), Mover::of(all), "{:?} {action:?}", subject.kind);
        }
    }
}

/// With a disturbing action the classes are wrong, so `disturbs` is necessary.
#[test]
fn disturbing_actions_disturb() {
    for subject in subjects() {
        for &u in subject.moves(3).iter().filter(|m| subject.kind.disturbs(m.action)) {
            let refuted = subject.reachable(3).iter().any(|state| {
                subject.undisturbing(3).iter().any(|&t| {
                    let (class, seen) =
                        (subject.kind.mover(t.action), subject.directions(state, t, u));
                    class.is_left() && !seen.left || class.is_right() && !seen.right
                })
            });
            // An automatic event has no movers to lose.
            assert!(
                refuted || matches!(subject.kind, Kind::Event { auto: true, .. }),
                "{:?} {u:?}",
                subject.kind
            );
        }
    }
}

/// The commutation tests would also pass if every action wrote. This test names the actions that
/// must stay reads.
#[test]
fn actions_that_only_read_do_not_write() {
    use Action::*;
    let manual = Kind::Event { auto: false, set: false };
    let channel = Kind::Channel { capacity: 1 };
    let looks: [(Kind, &[Action]); 7] = [
        (Kind::RwLock, &[ReadLock, TryReadLock, ReadUnlock]),
        (Kind::Condvar, &[Wake]),
        (manual, &[Await]),
        (Kind::Barrier { parties: 2 }, &[Leave]),
        (channel, &[Len, Sent]),
        (Kind::Thread, &[Begin, Join]),
        (Kind::Cell { initial: 0 }, &[Load]),
    ];
    for (kind, action) in
        looks.iter().flat_map(|(kind, actions)| actions.iter().map(move |a| (kind, a)))
    {
        assert_eq!(kind.access(*action), Access::Read, "{kind:?} {action:?}");
    }
    let fails: [(Kind, &[Action], Action); 2] =
        [(Kind::Mutex, &[Lock], TryLock), (Kind::RwLock, &[WriteLock], TryWriteLock)];
    for (kind, before, attempt) in fails {
        let mut state: Vec<u64> = (0..kind.fields()).map(|field| kind.initial(field)).collect();
        assert_eq!(kind.access_in(&state, attempt), Access::Write, "{kind:?} can be locked");
        for &action in before {
            kind.apply(&mut state, ThreadId::new(0), action).unwrap();
        }
        assert_eq!(kind.access_in(&state, attempt), Access::Read, "{kind:?} is locked");
    }
}

#[test]
fn actions_wait_in_some_state_if_they_may() {
    let (mut waiting, mut all) = (HashSet::new(), HashSet::new());
    for subject in subjects() {
        for (state, m) in subject
            .reachable(3)
            .iter()
            .flat_map(|s| subject.moves(3).into_iter().map(move |m| (s, m)))
        {
            // Whether a send has to wait does not depend on what is sent.
            let action = if let Action::Send(_) = m.action { Action::Send(0) } else { m.action };
            all.insert(action);
            if !subject.enabled(state, m) {
                waiting.insert(action);
            }
        }
    }
    // These actions are disabled in some states although no thread waits for them there: a thread
    // that was not started cannot wait, no thread is started twice, and a missing alternative of a
    // notification does not appear later.
    use Action::{Begin, Finish, NotifyOne, Start};
    all.retain(|action| !matches!(action, Start | Begin | Finish | NotifyOne { .. }));
    let wrong: Vec<_> =
        all.iter().filter(|action| action.may_wait() != waiting.contains(action)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn only_notifying_one_thread_is_a_choice() {
    for subject in subjects() {
        for state in subject.reachable(3) {
            for Move { thread, action } in subject.moves(3) {
                let alternatives = subject.kind.alternatives(&state[..], thread, action);
                let chooses = matches!(action, Action::NotifyOne { .. });
                assert!(
                    chooses || alternatives == 1,
                    "{:?} {action:?}: {alternatives}",
                    subject.kind
                );
            }
        }
    }
}

/// A random walk: for each step, an index into the enabled moves.
fn walk() -> impl Strategy<Value = Vec<prop::sample::Index>> {
    prop::collection::vec(any::<prop::sample::Index>(), 0..24)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 100,
        rng_seed: RngSeed::Fixed(7),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn classes_hold_at_the_end_of_random_walks(walk in walk(), threads in 2usize..6) {
        for subject in subjects() {
            let moves = subject.moves(threads);
            let mut state = subject.initial();
            for step in &walk {
                let enabled: Vec<Move> = moves.iter().copied().filter(|&m| subject.enabled(&state, m)).collect();
                if !enabled.is_empty() {
                    state = subject.after(&state, *step.get(&enabled)).expect("only enabled moves \
                                                                               were kept").0;
                }
            }
            for (&a, &b) in moves.iter().flat_map(|a| moves.iter().map(move |b| (a, b))) {
                subject.check_independence(&state, a, b);
            }
            let moves = subject.undisturbing(threads);
            for (&t, &u) in moves.iter().flat_map(|t| moves.iter().map(move |u| (t, u))) {
                let (class, seen) = (subject.kind.mover(t.action), subject.directions(&state, t, u));
                let holds = (seen.left || !class.is_left()) && (seen.right || !class.is_right());
                prop_assert!(holds, "{:?} in {:?}: {:?} {:?}, {:?}", subject.kind, state, class, t, u);
            }
        }
    }

    #[test]
    fn a_channel_is_a_queue(capacity in 1u32..5, wishes in prop::collection::vec(prop::option::of(0..2usize), 0..40)) {
        let kind = Kind::Channel { capacity };
        let mut cells = vec![0; kind.fields()];
        let mut queue = VecDeque::new();
        let thread = ThreadId::new(0);
        for wish in wishes {
            let action = wish.map_or(Action::Recv, |which| Action::Send(PAYLOADS[which]));
            let possible = if wish.is_some() { queue.len() < capacity as usize } else { !queue.is_empty() };
            prop_assert_eq!(kind.enabled(&cells, thread, action), possible);
            if possible {
                let reply = kind.apply(&mut cells, thread, action);
                let expected = match wish {
                    Some(which) => { queue.push_back(PAYLOADS[which]); 0 }
                    None => queue.pop_front().expect("the queue was found not empty"),
                };
                prop_assert_eq!(reply, Ok(expected));
            }
            let mut expected = vec![queue.len() as u64];
            expected.extend(queue.iter().map(|&value| value as u64));
            expected.resize(kind.fields(), 0);
            prop_assert_eq!(&cells, &expected, "freed slots are 0");
        }
    }
}
