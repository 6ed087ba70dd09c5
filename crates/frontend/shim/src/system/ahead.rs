//! Look-ahead in loops: before a thread that seems to spin is held back, it runs alone, to see
//! whether its loop ends by itself.
//!
//! There are three results. The thread leaves the loop: the search starts over and allows the loop
//! that many rounds. The thread returns to an earlier state ([`repeats`](super::repeats)): it
//! spins, and as long as no other thread changes what it reads, another round is a no-op. Neither
//! happens within [`LOOKAHEAD`](spin::LOOKAHEAD) rounds: the loop may still end later, for example
//! one that counts to a thousand. Then the thread is held back as well, since following every such
//! loop to its end could take forever. The search records what it relies on: that the yield in the
//! loop lets others run ([`Assumption::FairYield`]), or, if there is none, that the loop does not
//! end by itself ([`Assumption::Endless`]); then it does not claim to be complete.
//!
//! An earlier version treated the third result like the second one. A loop of 150 reads was held
//! back while others could move, so no schedule was explored in which it ends before they do, and
//! the search claimed to be complete.

use std::collections::HashSet;

use preempt_replay::{Lookahead, Outcome, spin};
use preempt_system::{Choice, Status, ThreadId, ThreadSet};

use super::{Execution, Phase};
use crate::program::Assumption;
use crate::runtime::restart::RestartReason;
use crate::runtime::site;

/// The most loops for which the result is remembered.
const REMEMBERED: usize = 1 << 14;

/// Whether the state is compared after `rounds` rounds. Most loops repeat at once, some after a
/// back-off has grown to its limit, and those that count their rounds never do. So a few
/// consecutive rounds are compared, with longer and longer pauses in between.
fn is_compared(rounds: usize) -> bool {
    let pause = (rounds / 4).checked_ilog2().map_or(0, |power| 4 << power);
    rounds - pause < 4
}

impl Execution<'_> {
    /// Lets a thread that is held back run alone, to see whether its loop ends by itself. If it
    /// does, the search has to start over. Otherwise the thread's steps are discarded, and the
    /// execution is no longer live. Done once for a thread with this history.
    #[cold]
    pub(super) fn look_ahead(&mut self, thread: ThreadId) -> Result<(), RestartReason> {
        let recording = &self.read().recording;
        let outcomes = recording.history(thread).outcomes();
        // If others have changed what it reads, it may leave the loop for that reason.
        if recording.ask(thread).status != Status::Spinning {
            return Ok(());
        }
        let at = outcomes.len();
        let Outcome { round, fair, .. } = outcomes[at - 1];
        let round = usize::from(round);
        if fair && recording.is_changed_idly(thread, round, &self.path) {
            // So it may leave the loop because of others, and not by itself. It is held back
            // nevertheless.
            self.rely_on_yield(thread);
            return Ok(());
        }
        let recent = if fair { round } else { 1 };
        let before = &outcomes[(at - 1).saturating_sub(recent)..at - 1];
        let followed = match before
            .iter()
            .rev()
            .map(|before| before.lookahead)
            .find(|&followed| followed != Lookahead::Skipped)
        {
            Some(followed) => followed,
            None => {
                let past = recording.past(thread, &self.path);
                match self.endless.get(&past) {
                    Some(&followed) => followed,
                    None => {
                        let followed = self.follow_loop(thread, round, fair)?;
                        if self.endless.len() == REMEMBERED {
                            self.endless.clear();
                        }
                        self.endless.insert(past, followed);
                        followed
                    }
                }
            }
        };
        self.runtime().recording.set_lookahead(thread, followed);
        let recording = &self.read().recording;
        if fair {
            self.rely_on_yield(thread);
        } else if followed == Lookahead::Undecided && recording.others_can_step(thread) {
            let last_round = &recording.history(thread).ops()[at - round..at];
            if last_round.iter().any(|op| op.yielded.is_some()) {
                self.rely_on_yield(thread);
            } else {
                let site = site::of(last_round[round - 1].site);
                self.program.assumptions.add(Assumption::Endless(site));
            }
        }
        Ok(())
    }

    /// Records that the search relies on the last yield of a thread to let others run.
    #[cold]
    pub(super) fn rely_on_yield(&self, thread: ThreadId) {
        let ops = self.read().recording.history(thread).ops();
        let yields = ops.iter().rev().find_map(|op| op.yielded);
        let site = site::of(yields.expect("a thread that yields has a yield in its history"));
        self.program.assumptions.add(Assumption::FairYield(site));
    }

    /// Like [`look_ahead`](Execution::look_ahead), without the checks for whether it is necessary.
    /// A thread that blocks in its loop does not leave it alone either.
    fn follow_loop(
        &mut self,
        thread: ThreadId,
        round: usize,
        fair: bool,
    ) -> Result<Lookahead, RestartReason> {
        let slot = thread.index();
        let runtime = self.runtime();
        let (state, telling) = (runtime.recording.state().clone(), runtime.notes.step.take());
        let at = state.count(slot);
        let place = runtime.recording.history(thread).ops()[at - 1].site;
        // The number of times that it has reached a yield again, and the last time.
        let (mut rounds, mut came) = (0, at);
        let (mut states, mut repeats) = (HashSet::new(), false);
        // From its next suspension on, the thread's registers are recorded.
        runtime.compares_states = true;
        for ahead in 1..=spin::LOOKAHEAD * round {
            let recording = &self.read().recording;
            let last_round = &recording.history(thread).ops()[at - round..at];
            let next = recording.next_op(thread);
            let is_in_loop = next.is_some_and(|next| last_round.iter().any(|op| op.is_again(next)));
            let pending = recording.ask(thread);
            let alternative = pending.footprints.first().map(|&(alternative, _)| alternative);
            let goes_on = match (pending.status, alternative) {
                (Status::Enabled | Status::Spinning, Some(alternative)) => {
                    self.perform::<false>(Choice { thread, alternative })?;
                    let ops = self.read().recording.history(thread).ops();
                    let again = ops.last().is_some_and(|next| next.yields_as(&ops[at - round]));
                    if again {
                        (rounds, came) = (rounds + 1, at + ahead);
                    }
                    let gone = if fair { rounds } else { ahead / round };
                    let is_round = if fair { again } else { ahead.is_multiple_of(round) };
                    if is_round && is_compared(gone) {
                        let state = self.fingerprint(ThreadSet::EMPTY.with(thread), thread, round);
                        repeats = state.is_some_and(|state| !states.insert(state));
                    }
                    let outcomes = self.read().recording.history(thread).outcomes();
                    let spins = outcomes.last().is_some_and(|last| last.round > 0 && !last.fair);
                    if fair { at + ahead - came <= spin::LONGEST_ROUND } else { spins }
                }
                (Status::Ended, _) => false,
                // It waits in the loop, for a change of an object that it used in its last round:
                // that change lets it continue anyway.
                _ if is_in_loop => {
                    repeats = true;
                    break;
                }
                // It waits for something that comes after the loop.
                _ => false,
            };
            if !goes_on {
                let known = self.read().recording.loops().get(place).unwrap_or(0);
                if known == spin::MOST_ROUNDS {
                    break;
                }
                let gone = if fair { rounds } else { ahead / round };
                let needed = (known.max(spin::ROUNDS) + gone + 1).min(spin::MOST_ROUNDS);
                return Err(RestartReason::Rounds(place, needed));
            }
            if repeats {
                break;
            }
        }
        let runtime = self.runtime();
        runtime.recording.take_back(state, thread);
        (runtime.notes.step, runtime.verdict.failure) = (telling, None);
        runtime.verdict.panics.clear();
        self.phase = Phase::Adrift;
        Ok(if repeats { Lookahead::Repeats } else { Lookahead::Undecided })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_compared_in_runs_of_four() {
        let compared: Vec<usize> =
            (1..=spin::LOOKAHEAD).filter(|&rounds| is_compared(rounds)).collect();
        assert_eq!(
            compared,
            [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 32, 33, 34, 35, 64, 65, 66, 67]
        );
    }
}
