//! The cuts of the current execution with CB ≤ bound: the only ones that are evaluated.
//!
//! An execution of n threads with k actions each has up to kⁿ cuts, and most of them need more
//! preemptions than the bound. They are never needed:
//!
//! - Search is only in states with CB ≤ bound, because it takes only steps with CB(s, t) ≤ bound,
//!   and CB(next(s, t)) ≤ CB(s, t).
//! - Mark tests CB(x, t) ≤ bound for a cut x. CB(x, t) is the minimum over executions that begin
//!   with an execution to x, so CB(x) ≤ CB(x, t), and the test fails if CB(x) > bound.
//! - CB(x, t) is a minimum over the cuts x - u before x. If CB(x - u, u) > bound, that cut
//!   contributes only numbers above the bound, which are not distinguished.
//!
//! So it is enough to find the cuts with CB ≤ bound. They are *not* closed under taking actions
//! away: a cut may need fewer preemptions than a smaller one. But an execution with at most `bound`
//! preemptions passes only cuts with CB ≤ bound, by steps with CB(x, t) ≤ bound. Hence all of them
//! are reached forward from the empty cut by such steps.
//!
//! The list grows with the execution. When it takes an action a, the new cuts are those with a. On
//! the way to one of them, some step adds a: so each is reached, by steps within the bound, from a
//! cut x + a such that x is in the list and CB(x, a's thread) ≤ bound. They are visited by size,
//! because the CB of a cut follows from the cuts with one action fewer. When the execution goes
//! back, the list is truncated.

use preempt_system::{System, ThreadId};

use super::log::Cut;
use super::name::Name;
use super::search::Search;

/// The cuts of the current execution that are within the bound.
pub(super) struct Within<T, N> {
    /// In the order in which they were found. The first one is the empty cut.
    found: Vec<Found<T, N>>,
    /// For each number of actions of the execution, the number of cuts that it has. Only this is
    /// part of a checkpoint: the list is found again at the next step.
    pub(super) levels: Vec<usize>,
}

/// A cut of the current execution.
struct Found<T, N> {
    cut: Cut,
    name: N,
    /// The position of a cut with one action fewer in the list, and the thread of that action.
    from: usize,
    last: ThreadId,
    /// The state of the cut. Only what follows from it is kept when the execution goes back: a
    /// state takes more memory, and cuts are evaluated once, so it is rarely needed again. Then it
    /// is computed from another one.
    state: Option<T>,
}

/// A cut with one action more than another one, whose position in the list is `from`.
struct Longer<N> {
    cut: Cut,
    name: N,
    from: usize,
    last: ThreadId,
}

impl<T, N> Default for Within<T, N> {
    fn default() -> Within<T, N> {
        Within { found: Vec::new(), levels: Vec::new() }
    }
}

impl<T, N> Within<T, N> {
    /// The execution was taken back to `len` actions.
    pub(super) fn truncate(&mut self, len: usize) {
        self.levels.truncate(len + 1);
        self.found.truncate(self.levels.last().copied().unwrap_or(0));
    }

    /// The memory of the list.
    pub(super) fn bytes(&self) -> usize {
        self.levels.last().map_or(0, |&len| len.saturating_mul(size_of::<Found<T, N>>()))
    }
}

impl<S: System, N: Name> Search<S, N> {
    /// Finds and evaluates the cuts of the current execution that are within the bound.
    pub(super) fn evaluate_all(&mut self, system: &mut S) -> Result<(), S::Need> {
        if self.within.found.is_empty() {
            // The search begins, or a checkpoint was read.
            self.within.levels.clear();
        }
        while self.within.levels.len() <= self.log.len() {
            match self.within.levels.len() {
                0 => self.evaluate_empty(system)?,
                len => self.evaluate_with_action(system, len)?,
            }
            self.within.levels.push(self.within.found.len());
        }
        Ok(())
    }

    fn evaluate_empty(&mut self, system: &mut S) -> Result<(), S::Need> {
        let (cut, name, state) = (self.log.cut(0), N::default(), system.initial());
        self.cuts.evaluate(system, &self.log, (&cut, &name), &state)?;
        let last = ThreadId::new(0);
        self.within.found.push(Found { cut, name, from: 0, last, state: Some(state) });
        Ok(())
    }

    /// Evaluates the cuts of the first `len` actions that have the last one of these.
    fn evaluate_with_action(&mut self, system: &mut S, len: usize) -> Result<(), S::Need> {
        let (all, added) = (self.log.cut(len), self.log.thread(len - 1));
        let mut by_size: Vec<Vec<Longer<N>>> = (0..=len).map(|_| Vec::new()).collect();
        for at in 0..self.within.found.len() {
            if self.within.found[at].cut[added.index()] + 1 == all[added.index()] {
                add(&mut by_size, self.step(at, added));
            }
        }
        for size in 1..=len {
            let mut cuts = std::mem::take(&mut by_size[size]);
            cuts.sort_unstable_by(|one, other| one.cut.cmp(&other.cut));
            cuts.dedup_by(|one, other| one.cut == other.cut);
            for cut in cuts {
                self.evaluate(system, cut)?;
                let at = self.within.found.len() - 1;
                for thread in (0..all.len()).map(ThreadId::new) {
                    if self.within.found[at].cut[thread.index()] < all[thread.index()] {
                        add(&mut by_size, self.step(at, thread));
                    }
                }
            }
        }
        Ok(())
    }

    /// Evaluates a cut that is within the bound, unless it was before, and adds it to the list.
    fn evaluate(&mut self, system: &mut S, longer: Longer<N>) -> Result<(), S::Need> {
        let Longer { cut, name, from, last } = longer;
        let mut state = None;
        if self.cuts.find(&name).is_none() {
            let mut after = self.state(system, from)?;
            system.advance(&mut after, self.log.last(&cut, last).expect(ADDED).choice)?;
            self.cuts.evaluate(system, &self.log, (&cut, &name), &after)?;
            state = Some(after);
        }
        self.within.found.push(Found { cut, name, from, last, state });
        Ok(())
    }

    /// The state of a cut of the list.
    fn state(&self, system: &mut S, mut at: usize) -> Result<S::State, S::Need> {
        let found = &self.within.found;
        let mut missing = Vec::new();
        let mut state = loop {
            if let Some(state) = &found[at].state {
                break state.clone();
            }
            missing.push(at);
            at = found[at].from;
        };
        while let Some(at) = missing.pop() {
            let Found { cut, last, .. } = &found[at];
            system.advance(&mut state, self.log.last(cut, *last).expect(ADDED).choice)?;
        }
        Ok(state)
    }

    /// The cut with the next action of `thread` in the execution, if that is a cut and the step is
    /// within the bound.
    fn step(&self, from: usize, thread: ThreadId) -> Option<Longer<N>> {
        let Found { cut, name, .. } = &self.within.found[from];
        let next = self.log.next(cut, thread)?;
        if !self.is_within(self.cuts.get(name).bound(thread)) {
            return None;
        }
        let mut longer = cut.clone();
        longer[thread.index()] += 1;
        Some(Longer { cut: longer, name: name.with(&next.action), from, last: thread })
    }
}

/// The invariant of [`Found::last`].
const ADDED: &str = "the thread has the action that was added";

/// Adds a cut to the list of its size.
fn add<N>(by_size: &mut [Vec<Longer<N>>], longer: Option<Longer<N>>) {
    if let Some(longer) = longer {
        by_size[longer.cut.iter().sum::<u32>() as usize].push(longer);
    }
}
