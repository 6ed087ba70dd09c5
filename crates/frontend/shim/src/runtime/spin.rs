//! Who spins: a thread that goes round and finds nothing new.
//!
//! A *round* is a sequence of operations after which the thread is at the same place again. It leads nowhere if it changes nothing
//! (to take and to give back a lock without writing to what it protects is no change), every operation is the same as in the round before with the same result, and nobody else has changed what
//! it looked at. After one such round with a `yield_now`, `spin_loop`, `sleep` or timeout in it, or three without, the thread
//! is taken to spin: it is held back until somebody changes what it looked at, or nobody else can move.
//!
//! A loop may also end by itself after some rounds, and what follows must not be lost. So before a thread is held back it goes on alone for
//! [`AHEAD`] rounds more, once for each past that leads it there. If it leaves the loop, the search begins anew and lets this loop go round as often
//! ([`Needs::rounds`](super::needs::Needs)); if not, the loop is taken to have no end of its own.
//!
//! All of that follows from the thread's own operations and the versions of the objects that it saw. So it is the same in all
//! executions with the same happens-before graph, and in parts of executions.

use super::needs::Needs;
use super::op::{NOTHING, Op, Outcome};

/// The longest round that is recognised.
const LONGEST: usize = 24;

/// Rounds without a yield that a thread goes before it is taken to spin.
pub(crate) const ROUNDS: usize = 3;

/// Rounds that a thread goes on alone to see whether the loop ends by itself.
pub(crate) const AHEAD: usize = 100;

/// How many operations the round has that a thread goes, if it spins after its last operation; else 0. `outcomes` has what came of those
/// before, `last` what came of that one, which got it nowhere.
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
fn leads_nowhere(ops: &[Op], outcomes: &[Outcome], last: &Outcome, length: usize, needs: &Needs) -> bool {
    let n = ops.len();
    let outcome = |at: usize| outcomes.get(at).unwrap_or(last);
    let yields = (n - length..n).any(|at| outcome(at).yielded);
    let known = ops[n - length..n].iter().filter_map(|op| needs.rounds.get(&op.place())).max();
    let rounds = known.copied().unwrap_or(if yields { 1 } else { ROUNDS });
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
                && objects(&ops[at])
                    .all(|(of, object)| last_seen(&ops[..at], &outcomes[..at], object) == Some(now.seen[of].before))
        })
}

/// The objects of an operation, with their numbers.
pub(crate) fn objects(op: &Op) -> impl Iterator<Item = (usize, u32)> {
    [(0, op.object), (1, op.other)].into_iter().filter(|&(_, object)| object != NOTHING)
}

/// The version of an object after the thread's last operation on it.
fn last_seen(ops: &[Op], outcomes: &[Outcome], object: u32) -> Option<u32> {
    let backwards = ops[..outcomes.len()].iter().zip(outcomes).rev();
    backwards
        .take(2 * LONGEST)
        .find_map(|(op, outcome)| objects(op).find(|&(_, other)| other == object).map(|(of, _)| outcome.seen[of].after))
}

/// What a spinning thread looked at in its last round, and the versions it saw. Objects may come twice, with the same version.
pub(crate) fn watched<'h>(
    ops: &'h [Op],
    outcomes: &'h [Outcome],
    length: usize,
) -> impl Iterator<Item = (u32, u32)> + 'h {
    let n = outcomes.len();
    let round = ops[n - length..n].iter().flat_map(|op| objects(op).map(|(_, object)| object));
    round.map(move |object| (object, last_seen(&ops[..n], outcomes, object).expect("what is in the round was seen")))
}
