//! One access to an atomic inside a check.
//!
//! # Where the value is
//!
//! The value of an atomic is in the [memory](preempt_system::memory) of the execution: an access
//! reads and writes it there, and the memory model decides which store a load reads. The atomic of
//! std inside the mirror is only a copy of the newest value. It exists for code that sees the
//! atomic without an access of the check:
//!
//! - `get_mut`, `with_mut` and `into_inner` have the only reference, so no other thread can access
//!   the atomic until the holder has passed it on. What they write is a plain write that comes
//!   after every access so far.
//! - `unsync_load`, `as_ptr` and `Debug` are no scheduling points. The program promises that no
//!   other thread writes at the same time, or does not care.
//! - Code outside of all checks uses the atomic of std alone.
//!
//! So the copy and the newest value in memory are equal except after such a plain write, after
//! which the next access finds the difference and [initialises](Memory::initialise) the memory with
//! the copy ([`commit`]). A plain write of the value that is already there is not seen and needs
//! not be: its thread has synchronised with all accesses before, so no later load could read an
//! older store in any model.
//!
//! The same rule covers an atomic that an execution uses for the first time, one that is made in
//! the memory of another one that is gone (the name of the place may be the same), and statics
//! whose value comes from outside of the execution. There is nothing to do on drop: the memory
//! forgets all values when the next execution begins.
//!
//! # Pointers
//!
//! Memory holds numbers. A pointer that is written has its provenance exposed, and one that is read
//! picks it up again (`with_exposed_provenance_mut`), so that a pointer which comes out of an
//! `AtomicPtr` may be used for whatever the pointer that went in may be used for.

use std::panic::Location as Site;
use std::sync::atomic::Ordering;

use preempt_replay::OpKind;
use preempt_system::ThreadId;
use preempt_system::memory::Memory;

use crate::runtime::identity::Identity;
use crate::runtime::{op, point, with};

/// Stops before an operation on an atomic that holds `word`. Returns its location.
#[inline]
pub(super) fn stop(
    identity: &Identity,
    kind: OpKind,
    verb: &'static str,
    site: &'static Site<'static>,
    word: impl FnOnce() -> u64,
) -> u32 {
    let location = identity.locate_holding(None, "atomic", site, word);
    point(op(kind, location, verb, site));
    identity.is_there(location, "atomic", site);
    location
}

/// The candidate that a read-modify-write reads, whatever the alternative of its step means: it has
/// to read the newest store, or it would not be indivisible.
const NEWEST: u32 = 0;

/// What an access did.
pub(super) struct Done {
    /// The value before it: the one that it read, unless it is a store.
    pub(super) old: u64,
    /// The value that it wrote.
    pub(super) written: Option<u64>,
    /// Whether a report wants to know about it.
    pub(super) is_narrated: bool,
}

/// How an operation accessed an atomic in the end, with the ordering that counts. A
/// compare-and-exchange decides that only when it finds the value.
#[derive(Clone, Copy, Debug)]
enum Committed {
    Load(Ordering),
    Store(Ordering),
    Update(Ordering),
}

/// Performs an operation on the atomic at `location`, whose copy is `copy`. `new` returns the value
/// to write, given the old one. `learned` makes a number of the old value that can be compared
/// between executions, which that of a pointer cannot. Both run while the runtime is borrowed, so
/// they must not be code of the program.
#[inline]
pub(super) fn commit(
    location: u32,
    kind: OpKind,
    copy: u64,
    new: impl FnOnce(u64) -> Option<u64>,
    learned: impl FnOnce(u64) -> u64,
) -> Done {
    with(|runtime| {
        let thread = ThreadId::new(runtime.current);
        let memory = &mut runtime.memory;
        if memory.latest(location) != Some(copy) {
            memory.initialise(location, copy);
        }
        let mut written = None;
        let new = |old| {
            written = new(old);
            written
        };
        let (old, committed) = match kind {
            OpKind::Load(order) => {
                let candidate = runtime.outcome.alternative;
                (memory.load(thread, location, order, candidate), Committed::Load(order))
            }
            OpKind::Store(order) => {
                let value = new(copy).expect("a store writes");
                memory.store(thread, location, value, order);
                (copy, Committed::Store(order))
            }
            OpKind::Update(order) => {
                let old = memory.update(thread, location, (order, order), NEWEST, new);
                (old, Committed::Update(order))
            }
            OpKind::WeakCompareExchange { failure, .. } if runtime.outcome.alternative == 1 => {
                // The spurious failure: it finds the value and does not write.
                let old = memory.load(thread, location, failure, NEWEST);
                (old, Committed::Load(failure))
            }
            OpKind::CompareExchange { success, failure }
            | OpKind::WeakCompareExchange { success, failure } => {
                let old = memory.update(thread, location, (success, failure), NEWEST, new);
                let worked = written.is_some();
                (old, if worked { Committed::Update(success) } else { Committed::Load(failure) })
            }
            _ => unreachable!("an operation on an atomic is one of these"),
        };
        runtime.outcome.value = learned(old);
        let (Committed::Load(order) | Committed::Store(order) | Committed::Update(order)) =
            committed;
        if order != Ordering::SeqCst && runtime.weak.is_none() {
            runtime.note_weak(order);
        }
        if runtime.requirements.races {
            match committed {
                Committed::Load(order) => runtime.races.load(thread, location, order),
                Committed::Store(order) => runtime.races.store(thread, location, order),
                Committed::Update(order) => runtime.races.update(thread, location, order),
            }
        }
        if written.is_some_and(|written| written != old) {
            (runtime.outcome.changed, runtime.outcome.progress) = (true, true);
            runtime.recording.change(location);
        }
        Done { old, written, is_narrated: runtime.notes.step.is_some() }
    })
}
