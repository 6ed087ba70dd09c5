//! Reference counts of `Arc`s in an execution: when changing them is a step, what they order, and
//! what is leaked.

use std::panic::Location as Site;
use std::sync::Arc as Std;
use std::sync::atomic::Ordering;

use preempt_replay::{OpKind, SiteId};
use preempt_system::{ThreadId, VectorClock};

use super::Arc;
use crate::runtime::identity::{COVERED, Shared};
use crate::runtime::place::Place;
use crate::runtime::restart::{RestartReason, restart};
use crate::runtime::{self, Runtime, accounts, describe, inside, op, point, site, with};

pub(super) fn address<T: ?Sized>(std: &Std<T>) -> usize {
    Std::as_ptr(std).cast::<()>().addr()
}

/// The kinds of references to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owners {
    /// Mirrors only.
    Ours,
    /// Also references of std, whose drops the check does not control.
    Others,
}

/// Registers a new `Arc` with the execution. Returns the number of the execution, or 0 outside of
/// all.
pub(super) fn register(
    address: usize,
    size: usize,
    owners: Owners,
    site: &'static Site<'static>,
) -> u64 {
    if !inside() {
        return 0;
    }
    with(|runtime| {
        let owner = runtime.next_owner();
        // A dead entry with this address has been freed: the memory is reused.
        runtime.met.shared.retain(|shared| shared.address != address || !is_dead(shared));
        let known = runtime.met.shared.iter().any(|shared| shared.address == address);
        if !known {
            let noun = if owners == Owners::Ours { "`Arc`" } else { COVERED };
            let shared = Shared { address, size, ..Shared::new(noun, owner, site) };
            runtime.met.shared.push(shared);
        }
        runtime.execution
    })
}

/// Whether only weak references are left. Then it no longer names anything, but attempts to upgrade
/// them are ordered with the last drop.
fn is_dead(shared: &Shared) -> bool {
    shared.noun == COVERED && shared.size == 0
}

/// The value of an `Arc` was dropped, and its memory was freed unless there are weak references.
pub(super) fn forget(address: usize, weak: usize) {
    if !accounts() {
        return;
    }
    with(|runtime| {
        if weak == 0 {
            runtime.met.shared.retain(|shared| shared.address != address);
        } else if let Some(shared) = find(runtime, address) {
            (shared.noun, shared.size) = (COVERED, 0);
        }
    });
}

fn find(runtime: &mut Runtime, address: usize) -> Option<&mut Shared> {
    runtime.met.shared.iter_mut().rev().find(|shared| shared.address == address)
}

/// An observation of the counts of the `Arc` at this address; `None` if it does not belong to the
/// execution.
#[must_use = "a thread with the only reference acquires what other threads released"]
pub(super) struct ObservedCounts(Option<usize>);

impl ObservedCounts {
    /// Orders a thread that has the only reference after all drops of the others.
    pub(super) fn acquire(&self) {
        let Some(address) = self.0.filter(|_| inside()) else { return };
        with(|runtime| {
            if let Some(clock) = find(runtime, address).map(|shared| shared.clock.clone()) {
                let current = runtime.current;
                runtime.join_clock(current, &clock);
            }
        });
    }
}

/// The program reads the counts of an `Arc`: a scheduling point, and from now on so are its clones
/// and drops. The read itself orders nothing, because std's counts are read with relaxed ordering.
pub(super) fn observe_counts<T: ?Sized>(
    arc: &Arc<T>,
    verb: &'static str,
    site: &'static Site<'static>,
) -> ObservedCounts {
    observe_counts_at(address(&arc.std), verb, site)
}

/// Like [`observe_counts`], by the address of the `Arc`.
pub(super) fn observe_counts_at(
    address: usize,
    verb: &'static str,
    site: &'static Site<'static>,
) -> ObservedCounts {
    if !inside() {
        return ObservedCounts(None);
    }
    let Some(shared) = with(|runtime| find(runtime, address).cloned()) else {
        return ObservedCounts(None);
    };
    let made = site::id(shared.site);
    if !with(|runtime| runtime.requirements.counted.contains(&made)) {
        restart(RestartReason::Counted(made));
    }
    count(&shared, verb, site);
    // std reads them with relaxed ordering.
    with(|runtime| runtime.note_weak(Ordering::Relaxed));
    ObservedCounts(Some(address))
}

/// A step that touches the counts of an `Arc`.
pub(super) fn count(shared: &Shared, verb: &'static str, site: &'static Site<'static>) {
    let place = Place::Shared { owner: shared.owner, offset: u32::MAX };
    let made = site::id(shared.site);
    let object = with(|runtime| runtime.recording.names_mut().locate(place, None, "arc", made));
    point(op(OpKind::Touch, object, verb, site));
    describe(|| format!("{verb}()"));
    with(|runtime| {
        (runtime.outcome.changed, runtime.outcome.progress) = (true, true);
        runtime.recording.change(object);
    });
}

/// Whether the counts of `Arc`s that are made at `site` are steps.
fn is_counted(runtime: &Runtime, site: &'static Site<'static>) -> bool {
    !runtime.requirements.counted.is_empty()
        && runtime.requirements.counted.contains(&site::id(site))
}

/// The `Arc` at this address, if changes of its counts are steps.
#[inline]
pub(super) fn counted(address: usize) -> Option<Shared> {
    let counts_none = runtime::look(|runtime| runtime.requirements.counted.is_empty());
    if counts_none { None } else { counted_among(address) }
}

/// The same in a test whose `Arc`s are counted, some of them at least.
#[cold]
fn counted_among(address: usize) -> Option<Shared> {
    with(|runtime| {
        let shared = find(runtime, address).cloned()?;
        is_counted(runtime, shared.site).then_some(shared)
    })
}

impl Runtime {
    /// A reference to an `Arc` is dropped. If it is the last one, but another thread could have
    /// dropped the last one, the destructor must not synchronise unless drops are steps. Returns
    /// the value that was being dropped before.
    pub(super) fn drop_reference(&mut self, address: usize, last: bool) -> Option<SiteId> {
        let current = self.current;
        let before = self.threads[current].dropping;
        if self.requirements.races
            && let Some(clock) = find(self, address).map(|shared| shared.clock.clone())
        {
            let mut own = self.races.clocks.publish(ThreadId::new(current));
            own.join(&clock);
            find(self, address).expect("the entry was found above").clock = own;
            if last {
                self.join_clock(current, &clock);
            }
        }
        let Some(shared) = find(self, address) else { return before };
        shared.droppers.insert(ThreadId::new(current));
        if last && shared.droppers.len() > 1 {
            let site = shared.site;
            if !is_counted(self, site) {
                self.threads[current].dropping = Some(site::id(site));
            }
        }
        before
    }

    /// The running thread publishes what it did to the thread that drops the last reference.
    pub(super) fn publish(&mut self, address: usize) {
        if self.requirements.races {
            let own = self.races.clocks.publish(ThreadId::new(self.current));
            if let Some(shared) = find(self, address) {
                shared.clock.join(&own);
            }
        }
    }

    fn join_clock(&mut self, thread: usize, clock: &VectorClock) {
        if self.requirements.races {
            self.races.clocks.join(ThreadId::new(thread), clock);
        }
    }
}
