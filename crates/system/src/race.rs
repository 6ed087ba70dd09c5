//! Data races of an execution, found while it runs or afterwards.
//!
//! **Paper.** icb, section 3.1: switching only at synchronisation is sound where there are no data
//! races. Clocks and epochs as in FastTrack (Flanagan and Freund, PLDI 2009).
//!
//! **Guarantees.** Precise for the execution: two accesses to a variable by different threads, at
//! least one of them a write, conflict iff program order and synchronisation do not order them. The
//! caller decides what synchronises, by calling the operations below. There are two callers:
//!
//! - A search over footprints (`explore/src/engine/race.rs`) lets every access to a synchronisation
//!   location synchronise, which is what happens-before of the paper says, and runs after an
//!   execution.
//! - Front ends for real code (`frontend/replay/src/race.rs`) know the operations and what std or
//!   the C++ memory model promises for them, memory orderings included, and run along with an
//!   execution. A relaxed flag protects nothing there, although the search itself is sequentially
//!   consistent.
//!
//! **Map.** C(t) and L(m): [`SyncClocks`]; W(x) and R(x): [`Variable`].
//!
//! **Deviations.** 1. Reads are a short list, not an epoch that grows into a vector. 2. At least
//! one of the accesses must be a write: icb's printed definition reports read-only sharing. 3. A
//! release advances the clock of its thread, so that accesses after it are not ordered by it;
//! FastTrack does the same.
//!
//! **Cost.** O(threads) for each synchronisation, O(1) for most accesses.

use smallvec::SmallVec;

use crate::clock::Epoch;
use crate::footprint::Access;
use crate::sync_clocks::SyncClocks;
use crate::thread::ThreadId;

/// An access to a variable, with what the caller wants to know about it.
#[derive(Clone, Copy, Debug)]
struct Mark<M> {
    epoch: Epoch,
    about: M,
}

/// The accesses to a variable with which the next one may conflict: the last write, and the last
/// read of each thread since.
#[derive(Clone, Debug)]
struct Variable<M> {
    write: Option<Mark<M>>,
    reads: SmallVec<[Mark<M>; 2]>,
}

/// An earlier access that conflicts with a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict<M> {
    /// The thread of the earlier access.
    pub thread: ThreadId,
    /// The kind of the earlier access.
    pub access: Access,
    /// The data that was recorded with it.
    pub about: M,
}

/// The clocks of one execution. `M` is what is recorded about an access: its step, its source
/// position.
#[derive(Clone, Debug)]
pub struct RaceDetector<M> {
    /// The clocks of threads and synchronisation objects.
    pub clocks: SyncClocks,
    variables: Vec<Variable<M>>,
}

impl<M> Default for RaceDetector<M> {
    fn default() -> RaceDetector<M> {
        RaceDetector { clocks: SyncClocks::new(), variables: Vec::new() }
    }
}

/// Accesses to variables.
impl<M: Copy> RaceDetector<M> {
    /// The clocks before the first step, without variables.
    pub fn new() -> RaceDetector<M> {
        RaceDetector::default()
    }

    /// The number of a new variable.
    pub fn variable(&mut self) -> u32 {
        self.variables.push(Variable { write: None, reads: SmallVec::new() });
        self.variables.len() as u32 - 1
    }

    /// The number of variables.
    pub fn variables(&self) -> usize {
        self.variables.len()
    }

    /// The earlier accesses to a variable that conflict with one by `thread` now: a write first,
    /// then reads.
    pub fn conflicts(
        &self,
        thread: ThreadId,
        variable: u32,
        access: Access,
    ) -> impl Iterator<Item = Conflict<M>> + '_ {
        // A thread without clocks has synchronised with nothing.
        let now = self.clocks.now(thread);
        let is_before = move |epoch| now.is_some_and(|now| now.includes(epoch));
        let Variable { write, reads } = &self.variables[variable as usize];
        let reads = if access == Access::Write { &reads[..] } else { &[] };
        let writes = write.iter().map(|mark| (Access::Write, mark));
        let all = writes.chain(reads.iter().map(|mark| (Access::Read, mark)));
        all.filter(move |(_, mark)| mark.epoch.thread != thread && !is_before(mark.epoch))
            .map(|(access, mark)| Conflict { thread: mark.epoch.thread, access, about: mark.about })
    }

    /// Records an access by `thread`.
    pub fn record(&mut self, thread: ThreadId, variable: u32, access: Access, about: M) {
        let mark = Mark { epoch: self.clocks.epoch(thread), about };
        let variable = &mut self.variables[variable as usize];
        match access {
            Access::Read => {
                variable.reads.retain(|read| read.epoch.thread != thread);
                variable.reads.push(mark);
            }
            Access::Write => *variable = Variable { write: Some(mark), reads: SmallVec::new() },
        }
    }

    /// The accesses to a variable that no later one is known to follow, with their threads.
    pub fn last_accesses(&self, variable: u32) -> impl Iterator<Item = (ThreadId, M)> + '_ {
        let Variable { write, reads } = &self.variables[variable as usize];
        write.iter().chain(reads).map(|mark| (mark.epoch.thread, mark.about))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use super::*;

    const ONE: ThreadId = ThreadId::new(0);
    const OTHER: ThreadId = ThreadId::new(1);
    const FLAG: u32 = 0;

    /// Whether a write by one thread before `published` conflicts with a read by another one after
    /// `acquired`.
    fn races(
        published: impl Fn(&mut RaceDetector<()>),
        acquired: impl Fn(&mut RaceDetector<()>),
    ) -> bool {
        let mut detector = RaceDetector::new();
        let variable = detector.variable();
        detector.record(ONE, variable, Access::Write, ());
        published(&mut detector);
        acquired(&mut detector);
        detector.conflicts(OTHER, variable, Access::Read).next().is_some()
    }

    #[test]
    fn a_release_store_orders_an_acquire_load_and_a_relaxed_one_does_not() {
        use Ordering::{Acquire, Relaxed, Release, SeqCst};
        for (store, load, expected) in [
            (Release, Acquire, false),
            (SeqCst, SeqCst, false),
            (Relaxed, Acquire, true),
            (Release, Relaxed, true),
        ] {
            let raced =
                races(|d| d.clocks.store(ONE, FLAG, store), |d| d.clocks.load(OTHER, FLAG, load));
            assert_eq!(raced, expected, "{store:?} {load:?}");
        }
    }

    #[test]
    fn fences_order_relaxed_accesses() {
        use Ordering::{Acquire, Relaxed, Release};
        let fenced = |d: &mut RaceDetector<()>| {
            d.clocks.fence(ONE, Release);
            d.clocks.store(ONE, FLAG, Relaxed);
        };
        let acquired = |d: &mut RaceDetector<()>| {
            d.clocks.load(OTHER, FLAG, Relaxed);
            d.clocks.fence(OTHER, Acquire);
        };
        assert!(!races(fenced, acquired));
        assert!(races(|d| d.clocks.store(ONE, FLAG, Relaxed), acquired));
        assert!(races(fenced, |d| d.clocks.load(OTHER, FLAG, Relaxed)));
    }

    #[test]
    fn an_update_continues_a_release_sequence_and_a_store_ends_it() {
        use Ordering::{Acquire, Relaxed, Release};
        let third = ThreadId::new(2);
        let after = |by: fn(&mut RaceDetector<()>, ThreadId)| {
            let mut detector = RaceDetector::new();
            let variable = detector.variable();
            detector.record(ONE, variable, Access::Write, ());
            detector.clocks.store(ONE, FLAG, Release);
            by(&mut detector, third);
            detector.clocks.load(OTHER, FLAG, Acquire);
            detector.conflicts(OTHER, variable, Access::Read).next().is_some()
        };
        assert!(!after(|d, third| d.clocks.update(third, FLAG, Relaxed)));
        assert!(after(|d, third| d.clocks.store(third, FLAG, Relaxed)));
    }

    #[test]
    fn shared_releases_order_exclusive_acquisitions_only() {
        assert!(!races(|d| d.clocks.release(ONE, FLAG), |d| d.clocks.acquire(OTHER, FLAG)));
        assert!(!races(
            |d| d.clocks.release_shared(ONE, FLAG),
            |d| d.clocks.acquire_exclusive(OTHER, FLAG)
        ));
        assert!(races(|d| d.clocks.release_shared(ONE, FLAG), |d| d.clocks.acquire(OTHER, FLAG)));
    }

    #[test]
    fn accesses_after_a_release_are_not_ordered_by_it() {
        let mut detector = RaceDetector::new();
        let variable = detector.variable();
        detector.clocks.release(ONE, FLAG);
        detector.record(ONE, variable, Access::Write, 7);
        detector.clocks.acquire(OTHER, FLAG);
        let conflict = Conflict { thread: ONE, access: Access::Write, about: 7 };
        assert_eq!(detector.conflicts(OTHER, variable, Access::Read).next(), Some(conflict));
    }

    #[test]
    fn an_object_passes_on_what_was_released_to_every_thread_that_acquires_it() {
        let third = ThreadId::new(2);
        type Operation = fn(&mut RaceDetector<()>, ThreadId);
        let pairs: [(Operation, Operation); 6] = [
            (|d, by| d.clocks.release(by, FLAG), |d, by| d.clocks.acquire(by, FLAG)),
            (|d, by| d.clocks.release(by, FLAG), |d, by| d.clocks.acquire_exclusive(by, FLAG)),
            (
                |d, by| d.clocks.release_shared(by, FLAG),
                |d, by| d.clocks.acquire_exclusive(by, FLAG),
            ),
            (
                |d, by| d.clocks.release(by, FLAG),
                |d, by| d.clocks.update(by, FLAG, Ordering::Acquire),
            ),
            (
                |d, by| d.clocks.update(by, FLAG, Ordering::Release),
                |d, by| d.clocks.acquire(by, FLAG),
            ),
            (
                |d, by| d.clocks.update(by, FLAG, Ordering::AcqRel),
                |d, by| d.clocks.load(by, FLAG, Ordering::Acquire),
            ),
        ];
        for (nth, (release, acquire)) in pairs.into_iter().enumerate() {
            assert!(races(|d| release(d, ONE), |_| ()), "pair {nth}: nothing was acquired");
            assert!(!races(|d| release(d, ONE), |d| acquire(d, OTHER)), "pair {nth}");
            let after_third = |d: &mut RaceDetector<()>| {
                acquire(d, third);
                acquire(d, OTHER);
            };
            assert!(!races(|d| release(d, ONE), after_third), "pair {nth}: acquired twice");
        }
    }

    #[test]
    fn a_clock_that_was_published_orders_those_who_join_it() {
        let mut detector = RaceDetector::new();
        let variable = detector.variable();
        detector.record(ONE, variable, Access::Write, ());
        let clock = detector.clocks.publish(ONE);
        assert!(detector.conflicts(OTHER, variable, Access::Read).next().is_some());
        detector.clocks.join(OTHER, &clock);
        assert!(detector.conflicts(OTHER, variable, Access::Read).next().is_none());
    }

    #[test]
    fn what_a_child_does_is_not_ordered_before_its_parent() {
        let mut detector = RaceDetector::new();
        let variable = detector.variable();
        detector.clocks.fork(ONE, OTHER);
        detector.record(OTHER, variable, Access::Write, ());
        assert!(detector.conflicts(ONE, variable, Access::Write).next().is_some());
    }

    #[test]
    fn the_last_read_of_a_thread_replaces_its_earlier_ones() {
        let mut detector = RaceDetector::new();
        let variable = detector.variable();
        for (thread, about) in [(ONE, 1), (OTHER, 2), (ONE, 3)] {
            detector.record(thread, variable, Access::Read, about);
        }
        assert_eq!(detector.last_accesses(variable).collect::<Vec<_>>(), [(OTHER, 2), (ONE, 3)]);
    }

    #[test]
    fn a_child_comes_after_its_start_and_a_write_conflicts_with_all_reads() {
        let mut detector = RaceDetector::new();
        let variable = detector.variable();
        detector.record(ONE, variable, Access::Write, 1);
        detector.clocks.fork(ONE, OTHER);
        assert_eq!(detector.conflicts(OTHER, variable, Access::Write).next(), None);
        detector.record(OTHER, variable, Access::Read, 2);
        detector.record(ONE, variable, Access::Read, 3);
        let third = ThreadId::new(2);
        let all = detector.conflicts(third, variable, Access::Write);
        assert_eq!(all.map(|conflict| conflict.about).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(detector.last_accesses(variable).count(), 3);
    }
}
