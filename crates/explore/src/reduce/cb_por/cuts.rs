//! Evaluated cuts: the state of a cut, the steps that are possible there, and the context bound of
//! each.
//!
//! A cut may never have been executed as such. Its state results from that of the cut without one
//! of its last actions by executing that action. So everything follows from the initial state, is
//! exact for every kind of object, and is computed once for each name.

use preempt_system::{Choice, HbAction, Status, System, ThreadId, ThreadSet};
use smallvec::SmallVec;

use super::log::{Cut, Log, distort};
use super::name::Name;
use crate::codec::{Damaged, Reader, Save, Writer, save_fields};
use crate::engine::mutants::seeded;
use crate::engine::sharded::Parts;
use crate::plan::Dependence;

/// One step that is possible in a state, and its context bound CB(s, t).
#[derive(Clone, Debug)]
pub(super) struct Possible<N> {
    pub(super) choice: Choice,
    /// The name of the state after it.
    pub(super) next: N,
    /// The fewest preemptions of an execution that ends with this step, capped at the bound plus
    /// one.
    pub(super) bound: u8,
}

save_fields!([N: Save] Possible<N> { choice, next, bound });

/// A state.
#[derive(Clone, Debug)]
pub(super) struct Known<T, N> {
    state: T,
    pub(super) possible: Box<[Possible<N>]>,
}

impl<T, N> Known<T, N> {
    fn bound(&self, thread: ThreadId) -> u8 {
        let of = self.possible.iter().find(|possible| possible.choice.thread == thread);
        of.map_or(u8::MAX, |possible| possible.bound)
    }
}

/// The overhead of an allocated block, rounding included.
const HEADER: usize = 16;

/// All cuts that were evaluated.
pub(super) struct Cuts<S: System, N: Name> {
    dependence: Dependence,
    /// Context bounds above this are not distinguished.
    most: u8,
    known: Parts<N, Known<S::State, N>, N::Hashing>,
    /// The bytes that they own outside the table.
    apart: usize,
}

impl<S: System, N: Name> Cuts<S, N> {
    pub(super) fn new(dependence: Dependence, bound: u32) -> Self {
        Cuts {
            dependence,
            most: u8::try_from(bound.saturating_add(1)).unwrap_or(u8::MAX - 1).min(u8::MAX - 1),
            known: Parts::default(),
            apart: 0,
        }
    }

    /// The number of cuts.
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }

    /// The memory of all cuts.
    pub(super) fn bytes(&self) -> usize {
        self.known.bytes() + self.apart
    }

    /// Stores the data of a cut.
    fn keep(&mut self, name: N, known: Known<S::State, N>) {
        let words = S::state_words(&known.state).map_or(0, size_of_val);
        // Each is a separate heap block with its allocator header.
        self.apart += words + size_of_val(&*known.possible) + 2 * HEADER;
        self.known.insert(name, known);
    }

    /// The data of a cut that was evaluated.
    pub(super) fn get(&self, name: &N) -> &Known<S::State, N> {
        self.known.get(name).expect("a cut is evaluated before it is used")
    }

    /// Writes the evaluated cuts.
    pub(super) fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.known.len());
        for (name, known) in self.known.iter() {
            to.put(name);
            to.words(
                S::state_words(&known.state)
                    .expect("only a system with comparable states has checkpoints"),
            );
            to.put(&known.possible);
        }
    }

    /// Reads what [`save`](Cuts::save) has written.
    pub(super) fn load(&mut self, from: &mut Reader) -> Result<(), Damaged> {
        for _ in 0..from.count()? {
            let (name, state) = (from.get()?, S::state_of(from.words()?).ok_or(Damaged)?);
            let possible = from.get()?;
            self.keep(name, Known { state, possible });
        }
        Ok(())
    }

    /// Evaluates a cut of the current execution of `system`, and those that it depends on.
    pub(super) fn evaluate_all(
        &mut self,
        system: &mut S,
        log: &Log,
        cut: &[u32],
        name: &N,
    ) -> Result<(), S::Need> {
        if self.known.contains(name) {
            return Ok(());
        }
        // Dynamic programming over cuts, with an explicit stack, because it is as deep as the
        // execution.
        let mut stack = vec![(Cut::from_slice(cut), name.clone())];
        while let Some((cut, name)) = stack.last().cloned() {
            let before = predecessors(log, &cut, &name);
            let unknown = before.iter().find(|(_, _, before)| !self.known.contains(before));
            if let Some((_, cut, name)) = unknown {
                stack.push((cut.clone(), name.clone()));
                continue;
            }
            let known = self.evaluate(system, log, &cut, &name, &before)?;
            self.keep(name, known);
            stack.pop();
        }
        Ok(())
    }

    fn evaluate(
        &mut self,
        system: &mut S,
        log: &Log,
        cut: &[u32],
        name: &N,
        before: &[(ThreadId, Cut, N)],
    ) -> Result<Known<S::State, N>, S::Need> {
        let state = match before.first() {
            None => system.initial(),
            Some((thread, _, before)) => {
                let mut state = self.get(before).state.clone();
                let last = log.last(cut, *thread).expect("a thread of the frontier has an action");
                system.advance(&mut state, last.choice)?;
                state
            }
        };
        let mut steps: Vec<(Choice, HbAction)> = Vec::new();
        let mut enabled = ThreadSet::EMPTY;
        for thread in (0..system.threads()).map(ThreadId::new) {
            let pending = system.ask_at(&state, thread)?;
            let overlooked = seeded!(PendingIgnored)
                && !log.continues(cut, thread)
                && log.all().as_slice() != cut;
            if pending.status != Status::Enabled || overlooked {
                continue;
            }
            enabled.insert(thread);
            for (alternative, footprint) in &pending.footprints {
                let choice = Choice { thread, alternative: *alternative };
                steps.push((choice, log.action(cut, choice, &self.dependence.apply(footprint))));
            }
        }
        let running = system.initially_running();
        let possible = steps.into_iter().map(|(choice, action)| {
            let bound = self.bound(choice.thread, enabled, before, running);
            Possible { choice, next: name.with(&distort(action)), bound }
        });
        let possible = possible.collect();
        Ok(Known { state, possible })
    }

    /// The fewest preemptions of an execution that consists of a cut and then a step of `thread`.
    /// `running` is the running thread before the first step: in the empty cut, which has no
    /// predecessors, it is the one that is switched away from.
    fn bound(
        &self,
        thread: ThreadId,
        enabled: ThreadSet,
        before: &[(ThreadId, Cut, N)],
        running: Option<ThreadId>,
    ) -> u8 {
        let preempts = |last: ThreadId| {
            last != thread && (enabled.contains(last) || seeded!(EverySwitchCounts))
        };
        let after = before.iter().map(|(last, _, name)| {
            self.get(name).bound(*last).saturating_add(u8::from(preempts(*last)))
        });
        after.min().unwrap_or_else(|| u8::from(running.is_some_and(preempts))).min(self.most)
    }
}

/// The cuts with one action fewer.
pub(super) fn predecessors<N: Name>(
    log: &Log,
    cut: &[u32],
    name: &N,
) -> SmallVec<[(ThreadId, Cut, N); 4]> {
    let without = |thread: ThreadId| {
        let mut before = Cut::from_slice(cut);
        before[thread.index()] -= 1;
        let last = log.last(cut, thread).expect("a thread of the frontier has an action");
        (thread, before, name.without(&last.action))
    };
    log.frontier(cut).into_iter().map(without).collect()
}
