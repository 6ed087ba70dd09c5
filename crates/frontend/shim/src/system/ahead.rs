//! Whether a loop ends by itself: the thread that seems to spin goes on alone before it is held back.

use preempt_explore::system::Status;
use preempt_system::{Capacity, Choice, ThreadId};

use super::{Execution, past};
use crate::program::Assumption;
use crate::runtime::needs::Need;
use crate::runtime::op::Outcome;
use crate::runtime::{Runtime, spin};

/// The most loops that are remembered to have no end of their own.
const REMEMBERED: usize = 1 << 14;

impl Execution<'_> {
    /// Lets a thread that is held back go on alone, to see whether its loop ends by itself. Then the search has to begin anew. What the thread
    /// did is forgotten otherwise, and the execution is not live any more. Once is enough for a thread with this past.
    #[cold]
    pub(super) fn look_ahead(&mut self, thread: ThreadId) -> Result<(), Capacity> {
        let Runtime { state, names, threads, .. } = self.read();
        let (slot, history) = (thread.index(), &threads[thread.index()].history);
        // If others have already changed what it looks at, that may be why it leaves the loop.
        if state.ask(&names.objects, thread, history).status != Status::Held {
            return Ok(());
        }
        let at = history.outcomes.len();
        let Outcome { round, fair, .. } = history.outcomes[at - 1];
        let round = usize::from(round);
        let recent = if fair { round } else { 1 };
        if !history.outcomes[(at - 1).saturating_sub(recent)..at - 1].iter().any(|before| before.followed) {
            let past = past::of(thread, &self.path, threads);
            if !self.endless.contains(&past) {
                self.follow_loop(thread, round, fair)?;
                if self.endless.len() == REMEMBERED {
                    self.endless.clear();
                }
                self.endless.insert(past);
            }
        }
        let history = &mut self.runtime().threads[slot].history;
        history.outcomes[at - 1].followed = true;
        if fair {
            self.rely_on_yield(slot);
        }
        Ok(())
    }

    /// Records that the search relies on the last yield of a thread to let others run.
    #[cold]
    pub(super) fn rely_on_yield(&self, slot: usize) {
        let yields = self.read().threads[slot].history.ops.iter().rev().find_map(|op| op.yielded);
        self.program.assumptions.add(Assumption::FairYield(yields.expect("a thread that yields has a place where")));
    }

    /// The same, once it is known that this has to be found out.
    fn follow_loop(&mut self, thread: ThreadId, round: usize, fair: bool) -> Result<(), Capacity> {
        let slot = thread.index();
        let runtime = self.runtime();
        let (state, telling) = (runtime.state.clone(), runtime.telling.take());
        let at = state.count(slot);
        let place = runtime.threads[slot].history.ops[at - 1].place();
        // How often it came to a yield again, and when it did last.
        let (mut rounds, mut came) = (0, at);
        for ahead in 1..=spin::AHEAD * round {
            let Runtime { state, names, threads, .. } = self.read();
            let history = &threads[slot].history;
            let next = history.ops.get(state.count(slot));
            let is_in_loop = next.is_some_and(|next| history.ops[at - round..at].iter().any(|op| op.is_again(next)));
            let pending = state.ask(&names.objects, thread, history);
            let alternative = pending.footprints.first().map(|&(alternative, _)| alternative);
            let goes_on = match (pending.status, alternative) {
                (Status::Enabled | Status::Held, Some(alternative)) => {
                    self.perform::<false>(Choice { thread, alternative })?;
                    let history = &self.read().threads[slot].history;
                    if history.ops.last().is_some_and(|next| next.yields_as(&history.ops[at - round])) {
                        (rounds, came) = (rounds + 1, at + ahead);
                    }
                    let spins = history.outcomes.last().is_some_and(|last| last.round > 0 && !last.fair);
                    if fair { at + ahead - came <= spin::LONGEST } else { spins }
                }
                (Status::Ended, _) => false,
                // It waits for others in the loop, or for something that comes after it.
                _ if is_in_loop => break,
                _ => false,
            };
            if !goes_on {
                let known = self.read().needs.rounds.get(&place).copied().unwrap_or(0);
                let gone = if fair { rounds } else { ahead / round };
                return Err(Need::Rounds(place, known.max(spin::ROUNDS) + gone + 1).capacity());
            }
        }
        let runtime = self.runtime();
        (runtime.state, runtime.telling, runtime.failure) = (state, telling, None);
        runtime.panics.clear();
        let history = &mut runtime.threads[slot].history;
        history.ops.truncate(at + 1);
        history.outcomes.truncate(at);
        (self.live, self.adrift) = (false, true);
        Ok(())
    }
}
