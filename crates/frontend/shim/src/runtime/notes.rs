//! Data that an execution records for a report.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use preempt_system::ThreadId;
use preempt_system::memory::Stored;

/// Data for a report. Most executions are not narrated and record none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    /// Descriptions of the current step, if it is narrated.
    pub(crate) step: Option<Vec<String>>,
    /// The recorded values of objects without fields, by location.
    pub(crate) values: BTreeMap<u32, String>,
    /// The recorded addresses. A report shows their indices, which are the same in every process.
    pub(crate) pointers: Vec<usize>,
    /// The accesses to atomics under weak memory.
    pub(crate) accesses: Vec<NotedAccess>,
}

/// An access to an atomic under weak memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NotedAccess {
    pub(crate) thread: ThreadId,
    /// The number of its step, from 1.
    pub(crate) step: u32,
    pub(crate) location: u32,
    /// The ordering.
    pub(crate) order: Ordering,
    /// The store that it reads.
    pub(crate) read: Option<Stored>,
    /// Whether it writes.
    pub(crate) writes: bool,
}

/// A store that a thread has read without coming after what its writer did before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MissedOrder {
    pub(crate) location: u32,
    /// The step and the ordering of the store.
    pub(crate) store: (u32, Ordering),
    /// The step and the ordering of the load.
    pub(crate) load: (u32, Ordering),
}

impl Notes {
    /// The last store that `thread` has read and that `newest.event.thread` performed after
    /// `newest`, if its ordering or that of the load is the reason why `thread` need not see
    /// `newest`: the nearest miss of a stale load.
    pub(crate) fn missed_order(&self, thread: ThreadId, newest: &Stored) -> Option<MissedOrder> {
        let writer = newest.event.thread?;
        let is_later = |read: &Stored| read.event.thread == Some(writer) && read.step > newest.step;
        let mut loads = self.accesses.iter().rev().filter(|access| access.thread == thread);
        let (load, read) = loads
            .find_map(|load| Some((load, load.read.as_ref().filter(|read| is_later(read))?)))?;
        let store = self.accesses.iter().find(|store| store.step == read.step && store.writes)?;
        let synchronise = releases(store.order) && acquires(load.order);
        (!synchronise).then_some(MissedOrder {
            location: load.location,
            store: (store.step, store.order),
            load: (load.step, load.order),
        })
    }
}

/// Whether a store with this ordering releases.
pub(crate) fn releases(order: Ordering) -> bool {
    matches!(order, Ordering::Release | Ordering::AcqRel | Ordering::SeqCst)
}

/// Whether a load with this ordering acquires.
pub(crate) fn acquires(order: Ordering) -> bool {
    matches!(order, Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst)
}
