//! The execution as cb-por sees it: for each thread the list of its actions. A *cut* consists of
//! the first few actions of every thread.

use std::collections::HashMap;

use preempt_system::hb::NumberedAccess;
use preempt_system::{Access, Choice, Footprint, HbAction, Location, ThreadId, VectorClock};
use smallvec::SmallVec;

use crate::engine::mutants::seeded;

/// The number of actions of each thread.
pub(super) type Cut = SmallVec<[u32; 8]>;

/// One action of the execution.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) choice: Choice,
    /// The action as it enters the names of cuts.
    pub(super) action: HbAction,
    /// The actions that happen before it, and itself.
    pub(super) clock: VectorClock,
}

/// The actions of an execution, by thread.
#[derive(Clone, Debug)]
pub(super) struct Log {
    threads: Vec<Vec<Entry>>,
    /// The threads of the actions, in the order of the execution.
    order: Vec<ThreadId>,
    /// For each location the writes in their order: the thread, and the number of the action within
    /// the thread, from 1.
    writes: HashMap<Location, Vec<(ThreadId, u32)>>,
}

impl Log {
    pub(super) fn new(threads: usize) -> Log {
        Log { threads: vec![Vec::new(); threads], order: Vec::new(), writes: HashMap::new() }
    }

    pub(super) fn push(&mut self, choice: Choice, action: HbAction, clock: VectorClock) {
        let thread = choice.thread;
        for access in action.accesses.iter().filter(|a| a.access == Access::Write) {
            self.writes.entry(access.location).or_default().push((thread, action.time));
        }
        let action = distort(action);
        self.threads[thread.index()].push(Entry { choice, action, clock });
        self.order.push(thread);
    }

    /// Takes actions back until `len` are left.
    pub(super) fn truncate(&mut self, len: usize) {
        while self.order.len() > len {
            let thread = self.order.pop().expect("the log has more than `len` actions");
            let entry =
                self.threads[thread.index()].pop().expect("a thread in the order has an action");
            for access in entry.action.accesses.iter().filter(|a| a.access == Access::Write) {
                self.writes
                    .get_mut(&access.location)
                    .expect("a written location has an entry")
                    .pop();
            }
        }
    }

    /// The number of actions.
    pub(super) fn len(&self) -> usize {
        self.order.len()
    }

    /// The thread of an action, by its position in the execution.
    pub(super) fn thread(&self, at: usize) -> ThreadId {
        self.order[at]
    }

    /// The cut of the first `len` actions of the execution.
    pub(super) fn cut(&self, len: usize) -> Cut {
        let mut cut = Cut::from_elem(0, self.threads.len());
        self.order[..len].iter().for_each(|thread| cut[thread.index()] += 1);
        cut
    }

    /// The cut of all actions.
    pub(super) fn all(&self) -> Cut {
        self.threads.iter().map(|entries| entries.len() as u32).collect()
    }

    /// The next action of `thread` after a cut, if the cut has all actions that happen before it.
    pub(super) fn next(&self, cut: &[u32], thread: ThreadId) -> Option<&Entry> {
        let next = self.threads[thread.index()].get(cut[thread.index()] as usize)?;
        let mut others = (0..cut.len()).map(ThreadId::new).filter(|&other| other != thread);
        others.all(|other| next.clock.time(other) <= cut[other.index()]).then_some(next)
    }

    /// Whether the execution has more actions of `thread` than a cut.
    pub(super) fn continues(&self, cut: &[u32], thread: ThreadId) -> bool {
        (cut[thread.index()] as usize) < self.threads[thread.index()].len()
    }

    /// The last action of `thread` in a cut.
    pub(super) fn last(&self, cut: &[u32], thread: ThreadId) -> Option<&Entry> {
        let count = cut[thread.index()] as usize;
        count.checked_sub(1).map(|at| &self.threads[thread.index()][at])
    }

    /// The threads whose last action in a cut happens before no other of the cut: a cut without one
    /// of these is a cut.
    pub(super) fn frontier(&self, cut: &[u32]) -> SmallVec<[ThreadId; 8]> {
        let slots = || (0..cut.len()).map(ThreadId::new);
        let is_last = |&thread: &ThreadId| {
            let count = cut[thread.index()];
            let knows = |other: ThreadId| {
                self.last(cut, other).is_some_and(|e| e.clock.time(thread) >= count)
            };
            count > 0 && !slots().any(|other| other != thread && knows(other))
        };
        slots().filter(is_last).collect()
    }

    /// The action of a step that is taken after a cut.
    pub(super) fn action(&self, cut: &[u32], choice: Choice, footprint: &Footprint) -> HbAction {
        let numbered = |&(location, access): &(Location, Access)| {
            let write = self.writes(cut, location) + u32::from(access == Access::Write);
            NumberedAccess { location, access, write }
        };
        let accesses = footprint.accesses().iter().map(numbered).collect();
        HbAction {
            thread: choice.thread,
            time: cut[choice.thread.index()] + 1,
            alternative: choice.alternative,
            accesses,
        }
    }

    /// The number of writes to a location in a cut. They are totally ordered by happens-before, so
    /// those in a cut come first.
    fn writes(&self, cut: &[u32], location: Location) -> u32 {
        let of = self.writes.get(&location).map_or(&[][..], Vec::as_slice);
        of.partition_point(|&(thread, time)| time <= cut[thread.index()]) as u32
    }
}

/// An action as it enters names: without a part of it, if a test has seeded that error.
pub(super) fn distort(mut action: HbAction) -> HbAction {
    if seeded!(WithoutWriteNumbers) {
        action.accesses.iter_mut().for_each(|access| access.write = 0);
    }
    if seeded!(WithoutTime) {
        action.time = 0;
    }
    action
}

#[cfg(test)]
mod tests {
    use preempt_system::HbGraph;

    use super::*;

    /// The thread writes location 0.
    fn write(log: &mut Log, graph: &mut HbGraph, thread: usize) {
        let choice = Choice::of(ThreadId::new(thread));
        graph.push(choice, &Footprint::one(Location(0), Access::Write));
        let last = graph.len() - 1;
        log.push(choice, graph.step(last), graph.step_clock(last).into());
    }

    #[test]
    fn actions_that_are_taken_back_leave_nothing() {
        let (mut log, mut graph) = (Log::new(2), HbGraph::new());
        write(&mut log, &mut graph, 0);
        write(&mut log, &mut graph, 1);
        log.truncate(0);
        graph.truncate(0);
        assert_eq!((log.all().as_slice(), log.writes(&[0, 0], Location(0))), (&[0, 0][..], 0));
        write(&mut log, &mut graph, 1);
        // Were the write of the first thread still there, none would count in this cut.
        assert_eq!(log.writes(&[0, 1], Location(0)), 1);
        let read = Footprint::one(Location(0), Access::Read);
        let action = log.action(&[0, 1], Choice::of(ThreadId::new(0)), &read);
        assert_eq!((action.time, action.accesses[0].write), (1, 1));
        assert!(log.continues(&[0, 0], ThreadId::new(1)));
        assert!(!log.continues(&[0, 1], ThreadId::new(1)));
    }

    #[test]
    fn the_frontier_has_the_actions_that_no_other_follows() {
        let (mut log, mut graph) = (Log::new(3), HbGraph::new());
        write(&mut log, &mut graph, 0);
        write(&mut log, &mut graph, 1);
        let frontier = |cut: &[u32]| log.frontier(cut).iter().map(|t| t.index()).collect();
        let expected: [(&[u32], Vec<usize>); 3] =
            [(&[1, 1, 0], vec![1]), (&[1, 0, 0], vec![0]), (&[0, 0, 0], vec![])];
        for (cut, threads) in expected {
            assert_eq!(threads, Vec::<usize>::clone(&frontier(cut)), "{cut:?}");
        }
    }
}
