//! The history of a thread in the current execution.

use crate::op::{Op, Outcome};
use crate::spin::{self, LoopRounds};

/// The operations of a thread with their outcomes. There is one operation more than there are
/// outcomes, the next one, unless the thread has ended.
#[derive(Clone, Debug)]
pub struct History {
    pub(crate) ops: Vec<Op>,
    pub(crate) outcomes: Vec<Outcome>,
}

impl Default for History {
    /// An empty history with room for the operations of most threads.
    fn default() -> History {
        History { ops: Vec::with_capacity(16), outcomes: Vec::with_capacity(16) }
    }
}

impl History {
    /// The operations, the next one included.
    #[inline]
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The outcomes of the operations that were performed.
    #[inline]
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// Forgets what followed the first `count` operations in an earlier execution, except the
    /// operation that follows them.
    #[inline]
    pub(crate) fn forget_after(&mut self, count: usize) {
        if self.outcomes.len() > count {
            self.outcomes.truncate(count);
        }
        if self.ops.len() > count + 1 {
            self.ops.truncate(count + 1);
        }
    }

    /// Whether the thread spins after its last operation.
    #[inline]
    pub fn spins(&self) -> bool {
        self.outcomes.last().is_some_and(|last| last.round > 0)
    }

    /// The same after `count` operations.
    #[inline]
    pub fn spins_after(&self, count: usize) -> bool {
        count > 0 && self.outcomes[count - 1].round > 0
    }

    /// Whether the thread spins after its first `count` operations, and has read an older store
    /// than the newest one in its last round. No thread has changed what it reads since, but its
    /// last read was stale.
    pub fn spins_on_stale_values_after(&self, count: usize) -> bool {
        if !self.spins_after(count) {
            return false;
        }
        let from = count - usize::from(self.outcomes[count - 1].round);
        let mut round = self.ops[from..count].iter().zip(&self.outcomes[from..count]);
        round.any(|(op, outcome)| op.is_stale(outcome.alternative))
    }

    /// Whether the thread cannot become blocked: the operation after the first `count` is enabled
    /// in every state, and the thread does not spin before it.
    #[inline]
    pub fn is_always_enabled_after(&self, count: usize) -> bool {
        !self.spins_after(count) && self.ops.get(count).is_none_or(Op::is_always_enabled)
    }

    /// Whether the last operation was one more round of a loop that yields, and the thread made
    /// progress by it.
    pub fn yields_and_writes(&self) -> bool {
        self.outcomes.last().is_some_and(|last| last.idle && last.progress)
    }

    /// Appends the outcome of the last operation and decides whether the thread spins after it,
    /// without a yield. Returns that.
    #[inline(always)]
    pub(crate) fn push(&mut self, outcome: &Outcome, loops: &LoopRounds) -> bool {
        // A thread that made progress does not spin, and a round takes at least two operations.
        let may_spin =
            !outcome.progress && self.outcomes.last().is_some_and(|before| !before.progress);
        self.outcomes.push(*outcome);
        may_spin && self.find_round(loops)
    }

    fn find_round(&mut self, loops: &LoopRounds) -> bool {
        if let Some((last, before)) = self.outcomes.split_last_mut() {
            last.round = spin::round(&self.ops, before, last, loops);
        }
        self.spins()
    }

    /// The same for rounds that yield. Needed only once a thread has yielded.
    #[cold]
    pub(crate) fn find_yielding_round(&mut self, loops: &LoopRounds) {
        let next = self.ops.get(self.outcomes.len());
        let yields = next.is_some_and(|next| next.yielded.is_some());
        let Some((last, before)) = self.outcomes.split_last_mut() else { return };
        last.yields = before.last().map_or(0, |before| before.yields) + u32::from(yields);
        if last.yields > 1 && last.round == 0 {
            let round = spin::yielding_round(&self.ops, &self.outcomes, loops);
            let last = self.outcomes.last_mut().expect("the outcome is the last one, see above");
            (last.round, last.fair) = (round, round > 0);
        }
    }
}
