//! Why an access is stale, in words.
//!
//! A stale load reads an older store than the newest one because nothing orders the two threads.
//! Often one of the two orderings that could have ordered them is too weak: the thread has read a
//! later store of the same writer, and either that store did not release or the load did not
//! acquire. That is the *nearest miss*, and a report names it.

use std::sync::atomic::Ordering;

use super::Stored;
use crate::sync_clocks::{acquires, releases};
use crate::thread::ThreadId;

/// An access to an atomic, as a report remembers it.
#[derive(Clone, Copy, Debug)]
pub struct NotedAccess {
    /// The thread.
    pub thread: ThreadId,
    /// The number of its step, from 1.
    pub step: u32,
    /// The location.
    pub location: u32,
    /// The ordering.
    pub order: Ordering,
    /// The store that it reads.
    pub read: Option<Stored>,
    /// Whether it writes.
    pub writes: bool,
}

/// A store that a thread has read without coming after what its writer did before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissedOrder {
    /// The location.
    pub location: u32,
    /// The step and the ordering of the store.
    pub store: (u32, Ordering),
    /// The step and the ordering of the load.
    pub load: (u32, Ordering),
}

/// The last store that `thread` has read and that `newest.event.thread` performed after `newest`,
/// if its ordering or that of the load is the reason why `thread` need not see `newest`: the
/// nearest miss of a stale load.
pub fn missed_order(
    accesses: &[NotedAccess],
    thread: ThreadId,
    newest: &Stored,
) -> Option<MissedOrder> {
    let writer = newest.event.thread?;
    let is_later = |read: &Stored| read.event.thread == Some(writer) && read.step > newest.step;
    let mut loads = accesses.iter().rev().filter(|access| access.thread == thread);
    let (load, read) =
        loads.find_map(|load| Some((load, load.read.as_ref().filter(|read| is_later(read))?)))?;
    let store = accesses.iter().find(|store| store.step == read.step && store.writes)?;
    let synchronise = releases(store.order) && acquires(load.order);
    (!synchronise).then_some(MissedOrder {
        location: load.location,
        store: (store.step, store.order),
        load: (load.step, load.order),
    })
}

/// The newest store of a location, which an access does not see, in the words of the program.
#[derive(Clone, Debug)]
pub struct Unseen {
    /// The thread that stored it; `None` for the initial value.
    pub by: Option<String>,
    /// The value.
    pub value: String,
    /// The step of the store, from 1.
    pub step: u32,
    /// The nearest miss of a load, with the name of its location.
    pub missed: Option<(String, MissedOrder)>,
}

impl Unseen {
    /// The rest of a sentence about a store before the unseen one.
    pub fn after_store(&self) -> String {
        let Unseen { value, step, .. } = self;
        format!(", which comes before {}'s {value} of step {step} in modification order", self.by())
    }

    /// The rest of a sentence about a load of an older value. `ordering` spells an ordering as the
    /// program does.
    pub fn after_load(&self, ordering: impl Fn(Ordering) -> &'static str) -> String {
        let Unseen { value, step, missed, .. } = self;
        let hint = missed.as_ref().map(|(name, missed)| hint(name, missed, value, ordering));
        let hint = hint.unwrap_or_default();
        let by = self.by();
        format!(" although {by} stored {value} in step {step}: nothing orders the two{hint}")
    }

    fn by(&self) -> &str {
        self.by.as_deref().unwrap_or("its creator")
    }
}

/// Which stronger orderings would make a stale load return `value`.
fn hint(
    name: &str,
    missed: &MissedOrder,
    value: &str,
    ordering: impl Fn(Ordering) -> &'static str,
) -> String {
    let MissedOrder { store: (stored, store), load: (loaded, load), .. } = *missed;
    let (release, acquire) = (ordering(Ordering::Release), ordering(Ordering::Acquire));
    let stores = format!("stored in step {stored} with {}", ordering(store));
    let loads = format!("loaded in step {loaded} with {}", ordering(load));
    let (accesses, orderings) = match (releases(store), acquires(load)) {
        (false, false) => (format!("{stores} and {loads}"), format!("{release} and {acquire}")),
        (false, true) => (stores, release.to_owned()),
        (true, _) => (loads, acquire.to_owned()),
    };
    format!(". {name} is {accesses}: with {orderings} this would be {value}")
}

/// The name of an ordering in Rust.
pub fn rust_name(order: Ordering) -> &'static str {
    match order {
        Ordering::Relaxed => "Relaxed",
        Ordering::Acquire => "Acquire",
        Ordering::Release => "Release",
        Ordering::AcqRel => "AcqRel",
        _ => "SeqCst",
    }
}

/// The name of an ordering in models.
pub fn lower_case_name(order: Ordering) -> &'static str {
    match order {
        Ordering::Relaxed => "relaxed",
        Ordering::Acquire => "acquire",
        Ordering::Release => "release",
        Ordering::AcqRel => "acq_rel",
        _ => "seq_cst",
    }
}
