//! Spin detection: threads that are held back so that others run first.
//!
//! # Rounds that change nothing
//!
//! A *round* is a sequence of operations after which the thread is at the same place again. It is
//! fruitless if it changes nothing (locking and unlocking without writing to the protected value is
//! no change), every operation is the same as in the round before with the same result, and no
//! other thread has changed what the round reads. After one such round that contains a yield
//! (`yield_now`, `spin_loop`, `sleep`, a timeout), or three without, the thread is held back until
//! another thread changes what it reads, or no other thread can run.
//!
//! Nothing is lost by that if the thread's variables are the same after every round: going round
//! again is then a no-op. A loop may also count its rounds and end by itself. So before a thread is
//! held back, the front end lets it run alone for up to [`LOOKAHEAD`] rounds, once for each past
//! that leads there. If it leaves the loop, the search starts over and lets this loop go round as
//! often ([`LoopRounds`]). If it comes back to an earlier state, the loop does not end by itself.
//! If neither happens, the search relies on an assumption and reports it. [`Lookahead`] is the
//! answer.
//!
//! # Rounds that yield and change something
//!
//! A loop that counts its attempts, or takes and releases a flag to read something, changes
//! something in every round and is never fruitless. If it yields, it asks for others to run first.
//! So a thread is also held back if
//!
//! 1. it has yielded twice at one place,
//! 2. none of its operations since the first of these two yields found an object changed that the
//!    thread had used before, and
//! 3. its next operation is one that it performed between the two yields (the same place, the same
//!    object): it is still in the loop.
//!
//! It is held back until another thread changes an object that it used in its last round, or no
//! other thread can run. This can lose executions: those in which a loop goes round a third time
//! while others could run and have changed nothing that the loop uses. A scheduler that is fair to
//! a thread that yields does not produce them, and loom does not explore them either. The front end
//! records that the search relied on this, and the coverage says so. Yields outside loops lose
//! nothing, by 3, nor do loops that end by themselves within [`LOOKAHEAD`] rounds, since the thread
//! runs alone here as well before it is held back.
//!
//! Two such loops may change what both use: a counter of attempts, a lock that both take and
//! release. Each would let the other continue, forever, while a third thread waits for its turn. So
//! what a thread changes in a loop that yields, from the third round on and as long as it stays in
//! the loop, is *idle*: it does not count as a change and releases no thread that is held back. A
//! thread that waits for such a change gets its turn when no other thread can run.
//!
//! Why not "until another thread *steps*", which would lose less? Whether a thread is held back has
//! to be the same in all executions with the same happens-before graph. Reductions execute one of
//! them, and the cache of happens-before graphs identifies them. A step of another thread that
//! shares nothing with the loop is not ordered with the loop's next step: of two executions that
//! differ only in the order of these two, the thread would be held back in one and not in the
//! other.
//!
//! # Why this is a function of the happens-before past
//!
//! Which rounds a thread has gone, and whether they are of one of the two kinds, follows from its
//! own operations, their results and the versions of the objects that it saw. A version counts the
//! changes of one object that are not idle, which follows from the operations of the thread that
//! makes them; all changes of an object are ordered with each other and with every operation on it,
//! so the version that an operation sees is the same in all linearisations of a graph. Whether the
//! thread is then held back in a *prefix* of an execution follows from the versions of the watched
//! objects there, that is, from which changes the prefix contains, not from their order with
//! unrelated steps. A thread that is held back offers reads of all watched objects besides its
//! operation, so that a change which releases it depends on it, and searches ask again after it. It
//! offers them also once it is released, since its next step follows from that change, though it
//! may be on another object. Otherwise a reduction could move the step before the change, where it
//! seemed to be enabled by another change, and go round once more in every execution, forever. The
//! same condition is checked after every operation of the round, not only at its end. So in a
//! prefix without that change the thread is held back wherever it is in its round, and no race with
//! the change seems to be reversible by letting the thread go round once more, which could be
//! repeated forever.
//!
//! [`Lookahead`]: crate::Lookahead

use std::collections::BTreeMap;

use crate::op::{NO_OBJECT, Op, Outcome};
use crate::site::SiteId;

/// The longest round that is recognised, in operations.
pub const LONGEST_ROUND: usize = 24;

/// How far back the last use of an object is searched, in operations: farther than the longest
/// round, with what follows its second yield, reaches.
const FARTHEST: usize = 2 * LONGEST_ROUND + 2;

/// Fruitless rounds without a yield after which a thread spins.
pub const ROUNDS: usize = 3;

/// Rounds that a thread runs alone to find out whether its loop ends by itself.
pub const LOOKAHEAD: usize = 100;

/// The most rounds of a loop that ends by itself before it counts as spinning anyway.
pub const MOST_ROUNDS: usize = 4_095;

/// How many rounds loops take that end by themselves, by the place of an operation in them. A
/// thread does not spin in such a loop before it has gone as many rounds.
#[derive(Clone, Debug, Default)]
pub struct LoopRounds(BTreeMap<SiteId, usize>);

impl LoopRounds {
    /// The rounds of the loop with an operation at `site`, if it ended by itself once.
    pub fn get(&self, site: SiteId) -> Option<usize> {
        self.0.get(&site).copied()
    }

    /// Records that the loop with an operation at `site` ends by itself within `rounds` rounds.
    pub fn insert(&mut self, site: SiteId, rounds: usize) {
        self.0.insert(site, rounds);
    }

    /// Adds the loops of `other`.
    pub fn merge(&mut self, other: &LoopRounds) {
        for (&site, &rounds) in &other.0 {
            let known = self.0.entry(site).or_default();
            *known = rounds.max(*known);
        }
    }

    /// The most rounds of a loop with one of these operations.
    fn of(&self, ops: &[Op]) -> Option<usize> {
        ops.iter().filter_map(|op| self.get(op.site)).max()
    }
}

/// The number of operations of the round in which a thread spins after its last operation, or 0.
/// `outcomes` are those before the last operation, and `last` is its outcome, without progress.
pub(crate) fn round(ops: &[Op], outcomes: &[Outcome], last: &Outcome, loops: &LoopRounds) -> u16 {
    let n = outcomes.len();
    let (op, before) = (&ops[n], &ops[..n]);
    for (length, (at, outcome)) in (1..=LONGEST_ROUND).zip(before.iter().zip(outcomes).rev()) {
        if outcome.progress {
            break;
        }
        if op.is_again(at) && is_fruitless(&ops[..=n], outcomes, last, length, loops) {
            return length as u16;
        }
    }
    0
}

#[cold]
fn is_fruitless(
    ops: &[Op],
    outcomes: &[Outcome],
    last: &Outcome,
    length: usize,
    loops: &LoopRounds,
) -> bool {
    let n = ops.len();
    let outcome = |at: usize| outcomes.get(at).unwrap_or(last);
    let yields = ops[n - length..n].iter().any(|op| op.yielded.is_some());
    let rounds = loops.of(&ops[n - length..n]).unwrap_or(if yields { 1 } else { ROUNDS });
    let repeated = rounds * length;
    if n < repeated + length {
        return false;
    }
    // A round that reads nothing waits for nothing.
    ops[n - length..n].iter().any(|op| op.object != NO_OBJECT)
        && (n - repeated..n).all(|at| {
            let (now, before) = (outcome(at), outcome(at - length));
            !now.progress
                && now.value == before.value
                && now.alternative == before.alternative
                && ops[at].is_again(&ops[at - length])
                && ops[at].performed(now.alternative).objects().all(|(of, object)| {
                    last_seen(&ops[..at], &outcomes[..at], object) == Some(now.versions[of].before)
                })
        })
}

/// The number of operations of the round in which a thread yields, whatever it writes, so that
/// others have to run first; else 0. All operations except the next one have outcomes.
#[cold]
pub(crate) fn yielding_round(ops: &[Op], outcomes: &[Outcome], loops: &LoopRounds) -> u16 {
    let n = outcomes.len();
    let Some(next) = ops.get(n) else { return 0 };
    let Some(last) = latest_yield(ops, n, |_| true) else { return 0 };
    let again =
        |before: usize| latest_yield(ops, before.checked_sub(1)?, |op| op.yields_as(&ops[last]));
    let Some(before) = again(last) else { return 0 };
    if !ops[before..last].iter().any(|op| op.is_again(next)) {
        return 0;
    }
    // A loop that ends by itself goes round as often before it counts as a wait.
    let rounds = loops.of(&ops[before..n]).unwrap_or(1);
    let Some(first) = (1..rounds).try_fold(before, |at, _| again(at)) else { return 0 };
    let is_undisturbed = |at: usize| {
        ops[at].performed(outcomes[at].alternative).objects().all(|(of, object)| {
            let seen = last_seen(&ops[..at], &outcomes[..at], object);
            seen.is_none_or(|seen| seen == outcomes[at].versions[of].before)
        })
    };
    if (first..n).all(is_undisturbed) { (n - before) as u16 } else { 0 }
}

/// Whether the operation `at` is one more round of a loop that yields: the thread has performed it
/// twice before, or as often as the loop goes round that ends by itself, has yielded each time in
/// between, and stays in the loop. It has not left the loop and come to it again, as a thread does
/// that takes the same spin lock twice: everything that it did since its last yield, and does next,
/// it did in the rounds before.
pub(crate) fn is_idle(ops: &[Op], at: usize, loops: &LoopRounds) -> bool {
    let (op, Some(next)) = (&ops[at], ops.get(at + 1)) else { return false };
    let (mut yields, mut times, mut since) = (op.yielded.is_some(), 0, 0);
    for (before, earlier) in ops[..at].iter().enumerate().rev() {
        since += 1;
        if since > LONGEST_ROUND {
            break;
        }
        if yields && earlier.is_again(op) {
            (times, since, yields) = (times + 1, 0, false);
            let round = &ops[before..(before + LONGEST_ROUND).min(at + 1)];
            if times == 1 && !round.iter().any(|op| op.is_again(next)) {
                return false;
            }
            if times >= 2 && times >= loops.of(round).unwrap_or(2) {
                let since =
                    ops[..=at].iter().rposition(|op| op.yielded.is_some()).unwrap_or(before);
                let rounds = &ops[before..since.max(before)];
                return ops[since..=at + 1]
                    .iter()
                    .all(|op| rounds.iter().any(|earlier| earlier.is_again(op)));
            }
        }
        yields |= earlier.yielded.is_some();
    }
    false
}

/// The latest operation up to `at`, within a round, before which the thread yielded in such a way.
fn latest_yield(ops: &[Op], at: usize, which: impl Fn(&Op) -> bool) -> Option<usize> {
    (at.saturating_sub(LONGEST_ROUND)..=at)
        .rev()
        .find(|&at| ops[at].yielded.is_some() && which(&ops[at]))
}

/// The version of an object after the thread's last operation on it.
fn last_seen(ops: &[Op], outcomes: &[Outcome], object: u32) -> Option<u32> {
    let backwards = ops[..outcomes.len()].iter().zip(outcomes).rev();
    backwards.take(FARTHEST).find_map(|(op, outcome)| {
        let mut objects = op.performed(outcome.alternative).objects();
        let seen = objects.find(|&(_, other)| other == object);
        seen.map(|(of, _)| outcome.versions[of].after)
    })
}

/// The objects that a spinning thread used in its last round, with the versions it saw. An object
/// may occur twice, with the same version.
pub(crate) fn watched<'h>(
    ops: &'h [Op],
    outcomes: &'h [Outcome],
    length: usize,
) -> impl Iterator<Item = (u32, u32)> + 'h {
    let n = outcomes.len();
    let round = ops[n - length..n].iter().zip(&outcomes[n - length..]);
    let used = round.flat_map(|(op, outcome)| op.performed(outcome.alternative).objects());
    used.map(|(_, object)| object).map(move |object| {
        let seen = last_seen(&ops[..n], outcomes, object);
        (object, seen.expect("an object of the round was used in the round"))
    })
}
