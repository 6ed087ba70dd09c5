//! Evaluated cuts: the steps that are possible in a cut, and the context bound of each.
//!
//! A cut may never have been executed as such. Its state results from that of the cut without one
//! of its last actions by executing that action. So everything follows from the initial state, is
//! exact for every kind of object, and is computed once for each name. Only cuts
//! [within](super::within) the bound are evaluated, and their states are not kept.

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

/// A cut that was evaluated.
#[derive(Clone, Debug)]
pub(super) struct Known<N> {
    pub(super) possible: Box<[Possible<N>]>,
}

save_fields!([N: Save] Known<N> { possible });

impl<N> Known<N> {
    /// CB(s, t), if the thread can take a step in the state.
    pub(super) fn bound(&self, thread: ThreadId) -> u8 {
        let of = self.possible.iter().find(|possible| possible.choice.thread == thread);
        of.map_or(u8::MAX, |possible| possible.bound)
    }
}

/// The overhead of an allocated block, rounding included.
const HEADER: usize = 16;

/// All cuts that were evaluated, of all executions.
pub(super) struct Cuts<N: Name> {
    dependence: Dependence,
    /// Context bounds above this are not distinguished.
    most: u8,
    known: Parts<N, Known<N>, N::Hashing>,
    /// The bytes that they own outside the table.
    apart: usize,
}

impl<N: Name> Cuts<N> {
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
    fn keep(&mut self, name: N, known: Known<N>) {
        // A separate heap block with its allocator header.
        self.apart += size_of_val(&*known.possible) + HEADER;
        self.known.insert(name, known);
    }

    /// The data of a cut; `None` if it is beyond the bound.
    pub(super) fn find(&self, name: &N) -> Option<&Known<N>> {
        self.known.get(name)
    }

    /// The data of a cut that was evaluated.
    pub(super) fn get(&self, name: &N) -> &Known<N> {
        self.known.get(name).expect("a cut is evaluated before it is used")
    }

    /// Writes the evaluated cuts.
    pub(super) fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.known.len());
        for (name, known) in self.known.iter() {
            to.put(name);
            to.put(known);
        }
    }

    /// Reads what [`save`](Cuts::save) has written.
    pub(super) fn load(&mut self, from: &mut Reader) -> Result<(), Damaged> {
        for _ in 0..from.count()? {
            let (name, known) = (from.get()?, from.get()?);
            self.keep(name, known);
        }
        Ok(())
    }

    /// Evaluates a cut of the current execution of `system`, which has this state, unless it was
    /// evaluated before. The cuts with one action fewer that are within the bound were evaluated.
    pub(super) fn evaluate<S: System>(
        &mut self,
        system: &mut S,
        log: &Log,
        (cut, name): (&[u32], &N),
        state: &S::State,
    ) -> Result<(), S::Need> {
        if self.known.contains(name) {
            return Ok(());
        }
        let mut before = predecessors(log, cut, name);
        before.retain(|(_, _, before)| self.known.contains(before));
        let mut steps: Vec<(Choice, HbAction)> = Vec::new();
        let mut enabled = ThreadSet::EMPTY;
        for thread in (0..system.threads()).map(ThreadId::new) {
            let pending = system.ask_at(state, thread)?;
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
            let bound = self.bound(choice.thread, enabled, &before, running);
            Possible { choice, next: name.with(&distort(action)), bound }
        });
        let possible = possible.collect();
        self.keep(name.clone(), Known { possible });
        Ok(())
    }

    /// The fewest preemptions of an execution that consists of a cut and then a step of `thread`.
    /// `before` are the cuts with one action fewer that are within the bound: the others contribute
    /// only numbers beyond it. `running` is the running thread before the first step: in the empty
    /// cut, which has no predecessors, it is the one that is switched away from.
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
