//! Spinning: threads that are held back so that others run first.
//!
//! # Rounds that change nothing
//!
//! A *round* is a sequence of operations after which the thread is at the same place again. It
//! leads nowhere if it changes nothing (to take and to give back a lock without writing to what it
//! protects is no change), every operation is the same as in the round before with the same result,
//! and nobody else has changed what it looked at. After one such round with a `yield_now`,
//! `spin_loop`, `sleep` or timeout in it, or three without, the thread is held back until somebody
//! changes what it looked at, or nobody else can move.
//!
//! Nothing is lost by that if the thread's variables are the same after every round: to go round
//! again is then to do nothing. A loop may also count its rounds and end by itself. So before a
//! thread is held back it goes on alone for up to [`AHEAD`] rounds more, once for each past that
//! leads it there. If it leaves the loop, the search begins anew and lets this loop go round as
//! often ([`Needs::rounds`](super::needs::Needs)). If it comes back to a state that it was in, the
//! loop has no end of its own. If neither happens, the search relies on an assumption and says so:
//! see `system/ahead.rs`.
//!
//! # Rounds that yield and change something
//!
//! A loop that counts its tries, or takes and gives back a flag to look at something, changes
//! something in every round and is never a round of the first kind. If it yields it asks for others
//! to run first. So a thread is held back as well if
//!
//! 1. it has yielded twice at one place,
//! 2. none of its operations since the first of these two yields found an object changed that the
//!    thread had used before, and
//! 3. its next operation is one that it performed between the two yields (the same place, the same
//!    object): it is still in the loop.
//!
//! It is held back until somebody changes an object that it used in its last round, or nobody else
//! can move. This is not free of loss. What is left out are executions in which a loop goes round a
//! third time while others could move and have changed nothing of what the loop uses: a scheduler
//! that is fair to a thread that yields does not produce them, and loom does not explore them
//! either. The search records that it relied on this
//! ([`Assumptions`](crate::program::Assumptions)), and the coverage says so. Yields outside of
//! loops leave nothing out, by 3., nor do loops that end by themselves within [`AHEAD`] rounds,
//! since the thread goes on alone here as well before it is held back.
//!
//! Two such loops may change what both use: a counter of tries, a lock that both take and give
//! back. Each would let the other go on, for ever, while a third thread waits for its turn. So what
//! a thread changes in a loop that yields, from the third round on and as long as it stays in the
//! loop, is *idle*: it is not counted as a change, and lets nobody go on who is held back. A thread
//! that waits for such a change gets its turn when nobody else can move.
//!
//! Why not "until another thread *moves*", which would leave out less? Whether a thread is held
//! back has to be the same in all executions with the same happens-before graph. Reductions execute
//! one of them, and the cache of happens-before graphs identifies them. A step of another thread
//! that shares nothing with the loop is not ordered with the loop's next step: of two executions
//! that differ in the order of these alone, the thread would be held back in one and not in the
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
//! objects there, that is from which changes the prefix has, not from their order with unrelated
//! steps. A thread that is held back offers reads of all watched objects besides its operation, so
//! that a change which lets it go on depends on it, and searches ask again after it. It offers them
//! also once it is let go on, since its next step follows from that change, though it may be on
//! another object. Without that (as it was before), a reduction could move the step before the
//! change, where it seemed to be made possible by another change, and go round once more in every
//! execution, without end. The same condition is checked after every operation of the round, not
//! only at its end. So in a prefix without that change the thread is held back wherever it stands
//! in its round, and no race with the change seems to be reversible by letting the thread go round
//! once more, which could be repeated without end.

use super::needs::Needs;
use super::op::{NOTHING, Op, Outcome};

/// The longest round that is recognised.
pub(crate) const LONGEST: usize = 24;

/// How far back the last use of an object is looked for: farther than the longest round, with what
/// follows its second yield, reaches.
const FARTHEST: usize = 2 * LONGEST + 2;

/// Rounds without a yield that a thread goes before it is taken to spin.
pub(crate) const ROUNDS: usize = 3;

/// Rounds that a thread goes on alone to see whether the loop ends by itself.
pub(crate) const AHEAD: usize = 100;

/// How many operations the round has that a thread goes, if it spins after its last operation;
/// else 0. `outcomes` has what came of those before, `last` what came of that one, which got it
/// nowhere.
pub(crate) fn round(ops: &[Op], outcomes: &[Outcome], last: &Outcome, needs: &Needs) -> u16 {
    let n = outcomes.len();
    let (op, before) = (&ops[n], &ops[..n]);
    for (length, (at, outcome)) in (1..=LONGEST).zip(before.iter().zip(outcomes).rev()) {
        if outcome.effective {
            break;
        }
        if op.is_again(at) && leads_nowhere(&ops[..=n], outcomes, last, length, needs) {
            return length as u16;
        }
    }
    0
}

#[cold]
fn leads_nowhere(
    ops: &[Op],
    outcomes: &[Outcome],
    last: &Outcome,
    length: usize,
    needs: &Needs,
) -> bool {
    let n = ops.len();
    let outcome = |at: usize| outcomes.get(at).unwrap_or(last);
    let yields = ops[n - length..n].iter().any(|op| op.yielded.is_some());
    let rounds =
        known_rounds(&ops[n - length..n], needs).unwrap_or(if yields { 1 } else { ROUNDS });
    let repeated = rounds * length;
    if n < repeated + length {
        return false;
    }
    // Where nothing is looked at, nothing could end the wait.
    ops[n - length..n].iter().any(|op| op.object != NOTHING)
        && (n - repeated..n).all(|at| {
            let (now, before) = (outcome(at), outcome(at - length));
            !now.effective
                && now.value == before.value
                && now.alternative == before.alternative
                && ops[at].is_again(&ops[at - length])
                && objects(&ops[at]).all(|(of, object)| {
                    last_seen(&ops[..at], &outcomes[..at], object) == Some(now.seen[of].before)
                })
        })
}

/// How many operations the round has that a thread goes, if it yields in it, whatever it writes,
/// and others have to run first; else 0. All operations but the next one have outcomes.
#[cold]
pub(crate) fn yielding_round(ops: &[Op], outcomes: &[Outcome], needs: &Needs) -> u16 {
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
    let rounds = known_rounds(&ops[before..n], needs).unwrap_or(1);
    let Some(first) = (1..rounds).try_fold(before, |at, _| again(at)) else { return 0 };
    let is_undisturbed = |at: usize| {
        objects(&ops[at]).all(|(of, object)| {
            let seen = last_seen(&ops[..at], &outcomes[..at], object);
            seen.is_none_or(|seen| seen == outcomes[at].seen[of].before)
        })
    };
    if (first..n).all(is_undisturbed) { (n - before) as u16 } else { 0 }
}

/// Whether an operation is one more round of a loop that yields: the thread has performed it twice
/// before, or as often as the loop goes round that ends by itself, has yielded each time in
/// between, and stays in the loop. It has not left the loop and come to it again, as a thread does
/// that takes the same spin lock twice: all that it did since its last yield, and does next, it did
/// in the rounds before.
pub(crate) fn is_idle(ops: &[Op], at: usize, needs: &Needs) -> bool {
    let (op, Some(next)) = (&ops[at], ops.get(at + 1)) else { return false };
    let (mut yields, mut times, mut since) = (op.yielded.is_some(), 0, 0);
    for (before, earlier) in ops[..at].iter().enumerate().rev() {
        since += 1;
        if since > LONGEST {
            break;
        }
        if yields && earlier.is_again(op) {
            (times, since, yields) = (times + 1, 0, false);
            let round = &ops[before..(before + LONGEST).min(at + 1)];
            if times == 1 && !round.iter().any(|op| op.is_again(next)) {
                return false;
            }
            if times >= 2 && times >= known_rounds(round, needs).unwrap_or(2) {
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
    (at.saturating_sub(LONGEST)..=at).rev().find(|&at| ops[at].yielded.is_some() && which(&ops[at]))
}

/// How often a loop with these operations goes round before it ends by itself, if it once did.
fn known_rounds(ops: &[Op], needs: &Needs) -> Option<usize> {
    ops.iter().filter_map(|op| needs.rounds.get(&op.place())).max().copied()
}

/// The objects of an operation, with their numbers.
pub(crate) fn objects(op: &Op) -> impl Iterator<Item = (usize, u32)> {
    [(0, op.object), (1, op.other)].into_iter().filter(|&(_, object)| object != NOTHING)
}

/// The version of an object after the thread's last operation on it.
fn last_seen(ops: &[Op], outcomes: &[Outcome], object: u32) -> Option<u32> {
    let backwards = ops[..outcomes.len()].iter().zip(outcomes).rev();
    backwards.take(FARTHEST).find_map(|(op, outcome)| {
        objects(op).find(|&(_, other)| other == object).map(|(of, _)| outcome.seen[of].after)
    })
}

/// What a spinning thread looked at in its last round, and the versions it saw. Objects may come
/// twice, with the same version.
pub(crate) fn watched<'h>(
    ops: &'h [Op],
    outcomes: &'h [Outcome],
    length: usize,
) -> impl Iterator<Item = (u32, u32)> + 'h {
    let n = outcomes.len();
    let round = ops[n - length..n].iter().flat_map(|op| objects(op).map(|(_, object)| object));
    round.map(move |object| {
        (object, last_seen(&ops[..n], outcomes, object).expect("what is in the round was seen"))
    })
}
