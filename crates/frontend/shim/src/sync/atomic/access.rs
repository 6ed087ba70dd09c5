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
//!   the atomic until the reference ends. What they write is a plain write that comes after every
//!   access so far.
//! - `unsync_load`, `as_ptr` and `Debug` are not scheduling points. The program promises that no
//!   other thread writes at the same time, or does not care.
//! - Code outside all checks uses the atomic of std alone.
//!
//! So the copy and the newest value in memory are equal except after such a plain write, after
//! which the next access finds the difference and [initialises](Memory::initialise) the memory with
//! the copy ([`commit`]). A plain write of the same value is not noticed and need not be: its
//! thread has synchronised with all earlier accesses, so no later load could read an older store in
//! any model.
//!
//! The same rule covers an atomic that an execution uses for the first time, one that reuses the
//! memory of a dropped atomic (and perhaps its name), and statics whose value comes from outside of
//! the execution. There is nothing to do on drop: the memory forgets all values when the next
//! execution begins.
//!
//! # Exchanges that fail
//!
//! A compare-exchange that fails only reads, and treating it as a read saves many executions. So
//! that the search can tell in advance, even for executions that never happened, the recording
//! follows the values of atomics step by step once a test has such an operation
//! ([`known_value`]). That is right only for atomics whose values change by steps alone. At each
//! arrival and before each access the value is therefore compared with the recorded one. If they
//! differ, because of a plain write or because another atomic has taken the place of a dropped one,
//! the search starts over, and exchanges of atomics made at that place count as writes. Values may
//! be addresses, so the search also starts over when addresses change, and all exchanges count as
//! writes if that happens again and again, or if the allocator is not ours.
//!
//! # Weak memory
//!
//! Under [weak memory](preempt_system::memory::Weak) the copy is the last value in modification
//! order. The search asks for the alternatives of an access before it is performed, so the memory
//! gets to know an atomic when a thread arrives at an access to it ([`stop`]).
//!
//! # Pointers
//!
//! Memory holds numbers. A pointer that is written has its provenance exposed, and one that is read
//! picks it up again (`with_exposed_provenance_mut`), so that a pointer which comes out of an
//! `AtomicPtr` may be used for whatever the pointer that went in may be used for.

use std::panic::Location as Site;
use std::sync::atomic::Ordering;

use preempt_replay::{Mode, Op, OpKind};
use preempt_system::memory::explain::{MissedOrder, NotedAccess, missed_order};
use preempt_system::memory::{Memory, Stored};
use preempt_system::{FailureKind, Location, SyncClocks, ThreadId};

use crate::runtime::identity::Identity;
use crate::runtime::restart::{RestartReason, restart};
use crate::runtime::stale_watch::WatchedAccess;
use crate::runtime::{Runtime, is_set, look, op, point, site, with};

/// Whether all accesses of the execution are [plain](Runtime::plain_atomics). Both answers lead to
/// the same code, [`stop`] and [`commit`]. In its copy for plain accesses the kind of the operation
/// stays the constant that the method of the atomic passes, so the compiler decides what follows
/// from the kind, and nothing is checked for features that are not in use.
#[inline(always)]
pub(super) fn are_plain() -> bool {
    look(|runtime| runtime.plain_atomics)
}

/// Stops before an operation on an atomic that holds `word`, or `bits`. Returns its location, and
/// the operation with the orderings that apply: a check may [try others](crate::Check::weaken).
#[inline(always)]
pub(super) fn stop<const PLAIN: bool>(
    identity: &Identity,
    kind: OpKind,
    verb: &'static str,
    site: &'static Site<'static>,
    word: impl FnOnce() -> u64,
    bits: impl Fn() -> u64,
) -> (u32, OpKind) {
    let (location, kind) = if PLAIN {
        (identity.locate_unordered(None, "atomic", site, word), kind)
    } else {
        let location = identity.locate_holding(None, "atomic", site, word);
        (location, announce(location, (kind, verb, site), &bits))
    };
    let next = op(kind, location, verb, site);
    if !PLAIN && look(|runtime| runtime.follows_values) {
        point(known_value(next, identity, bits()));
        identity.is_there(location, "atomic", site);
        if with(|runtime| runtime.recording.value(location)) != Some(bits()) {
            replaced(identity);
        }
    } else {
        point(next);
        identity.is_there(location, "atomic", site);
    }
    (location, kind)
}

/// The running thread arrives at `next`, an operation on an atomic that has this value: see the
/// module documentation.
#[inline(never)]
fn known_value(next: Op, identity: &Identity, value: u64) -> Op {
    let location = next.object;
    let is_known = with(|runtime| runtime.recording.find_value(location, value));
    if !is_known {
        replaced(identity);
    }
    if !matches!(next.kind, OpKind::CompareExchange { .. } | OpKind::WeakCompareExchange { .. }) {
        return next;
    }
    with(|runtime| {
        if runtime.requirements.replaced.contains(&site::id(identity.site())) {
            return next;
        }
        let thread = ThreadId::new(runtime.current);
        let next = next.expecting(runtime.threads[runtime.current].expected);
        let recorded = runtime.recording.next_op(thread).and_then(Op::expected);
        if runtime.recording.mode() == Mode::Repeat
            && recorded.is_some_and(|recorded| next.expected() != Some(recorded))
        {
            moved(runtime);
        }
        next
    })
}

/// The same step of an earlier execution had another value: addresses have changed.
#[cold]
fn moved(runtime: &mut Runtime) {
    let times = runtime.requirements.moved + 1;
    runtime.restart.get_or_insert(RestartReason::Moved(times));
}

/// The value of the atomic does not follow from the steps.
#[cold]
fn replaced(identity: &Identity) {
    let made = site::id(identity.site());
    if !with(|runtime| runtime.requirements.replaced.contains(&made)) {
        restart(RestartReason::Replaced(made));
    }
}

/// The running thread is about to compare and exchange, and expects this value.
#[inline]
pub(super) fn expect(bits: u64) {
    let starts_over = with(|runtime| {
        runtime.threads[runtime.current].expected = bits;
        runtime.can_follow_values && !runtime.follows_values
    });
    if starts_over {
        restart(RestartReason::Exchanges);
    }
}

/// The result of an access.
pub(super) struct Done {
    /// The value before it: the one that it read, unless it is a store.
    pub(super) old: u64,
    /// The value that it wrote.
    pub(super) written: Option<u64>,
    /// The new value of the copy, if it has one.
    pub(super) copy: Option<u64>,
    /// The newest store, if the access does not see it and is narrated.
    pub(super) stale: Option<Stale>,
    /// Whether the step is being narrated.
    pub(super) is_narrated: bool,
}

/// A store that an access does not see.
pub(super) struct Stale {
    /// Its thread, unless it is the initial value.
    pub(super) by: Option<String>,
    pub(super) value: u64,
    /// The number of its step.
    pub(super) step: u32,
    /// The accesses that would order it before this one if their orderings were stronger, with the
    /// name of their atomic.
    pub(super) missed: Option<(String, MissedOrder)>,
}

/// How an operation accessed an atomic, with the ordering that applies. A compare-and-exchange
/// decides that when it reads the value.
#[derive(Clone, Copy, Debug)]
enum Committed {
    Load(Ordering),
    Store(Ordering),
    Update(Ordering),
}

/// Performs an operation on the atomic at `location`, whose copy is `copy`. `new` returns the value
/// to write, given the old one. `learned` maps the old value to a number that can be compared
/// between executions; addresses cannot. Both run while the runtime is borrowed, so they must not
/// be code of the program.
#[inline(always)]
pub(super) fn commit<const PLAIN: bool>(
    location: u32,
    kind: OpKind,
    copy: u64,
    new: impl FnOnce(u64) -> Option<u64>,
    learned: impl FnOnce(u64) -> u64,
) -> Done {
    with(|runtime| {
        debug_assert!(!PLAIN || runtime.plain_atomics, "the caller has asked");
        if !PLAIN && runtime.weak_memory.is_some() {
            return commit_weak(runtime, location, kind, copy, new, learned);
        }
        let thread = ThreadId::new(runtime.current);
        let access = Performed { thread, location, kind, alternative: runtime.outcome.alternative };
        let (old, committed, written) =
            access.perform(&mut runtime.memory, &mut runtime.races.clocks, copy, new);
        if !PLAIN && runtime.stale_watch.is_some() {
            let (Committed::Load(order) | Committed::Store(order) | Committed::Update(order)) =
                committed;
            watch(runtime, WatchedAccess { thread, location, kind, order, old, written });
        } else if runtime.requirements.races {
            let clocks = &mut runtime.races.clocks;
            match committed {
                Committed::Load(order) => clocks.load(thread, location, order),
                Committed::Store(order) => clocks.store(thread, location, order),
                Committed::Update(order) => clocks.update(thread, location, order),
            }
        }
        note::<PLAIN>(runtime, location, committed, (old, written), learned);
        let is_narrated = runtime.notes.step.is_some();
        Done { old, written, copy: written, stale: None, is_narrated }
    })
}

/// Performs an access on the watch too; the check starts over under weak memory if that might allow
/// the access to be stale.
#[inline(never)]
fn watch(runtime: &mut Runtime, access: WatchedAccess) {
    let Some(watch) = &mut runtime.stale_watch else { return };
    if watch.perform(&mut runtime.races.clocks, access) {
        runtime.restart.get_or_insert(RestartReason::WeakMemory);
    }
}

/// The same under weak memory, which advances the clocks itself.
#[inline(never)]
fn commit_weak(
    runtime: &mut Runtime,
    location: u32,
    kind: OpKind,
    copy: u64,
    new: impl FnOnce(u64) -> Option<u64>,
    learned: impl FnOnce(u64) -> u64,
) -> Done {
    let thread = ThreadId::new(runtime.current);
    let access = Performed { thread, location, kind, alternative: runtime.outcome.alternative };
    if let Some(creator) = runtime.unseen_creator(thread, location) {
        report_unseen_creation(runtime, thread, location, creator);
    }
    let mut memory = runtime.weak_memory.take().expect("the caller has checked it");
    memory.set_step(runtime.step);
    let is_narrated = runtime.notes.step.is_some();
    let is_known = is_narrated && memory.latest(location) == Some(copy);
    let newest = (is_known && access.nth() > 0).then(|| memory.stored(location, 0));
    let reads = is_known && !matches!(kind, OpKind::Store(_));
    let read = reads.then(|| memory.stored(location, access.nth()));
    if is_known {
        runtime.notes.read_from = read.map(|read| (Location(location), read.number()));
        runtime.notes.stale = match reads {
            true => memory.stale_read(location, access.nth()),
            false => memory.stale_write(location, access.nth()),
        };
    }
    let clocks = &mut runtime.races.clocks;
    let (old, committed, written) = access.perform(&mut *memory, clocks, copy, new);
    // The copy is the last value in modification order, which need not be the one just written.
    let copy = written.and_then(|_| memory.latest(location));
    runtime.weak_memory = Some(memory);
    runtime.begin_period(thread);
    note::<false>(runtime, location, committed, (old, written), learned);
    let stale = newest.map(|newest| stale(runtime, thread, newest));
    if is_narrated {
        let (Committed::Load(order) | Committed::Store(order) | Committed::Update(order)) =
            committed;
        let (step, writes) = (runtime.step, written.is_some());
        let noted = NotedAccess { thread, step, location, order, read, writes };
        runtime.notes.accesses.push(noted);
    }
    Done { old, written, copy, stale, is_narrated }
}

/// An access to an atomic races with its initialisation: see `runtime/creation.rs`.
#[cold]
fn report_unseen_creation(
    runtime: &mut Runtime,
    thread: ThreadId,
    location: u32,
    creator: ThreadId,
) {
    let described = runtime.recording.names().description(location);
    let made = described.map_or(String::new(), |it| format!(" made at {}", site::of(it.site)));
    let (one, other) = (runtime.thread_name(thread.index()), runtime.thread_name(creator.index()));
    let site = runtime.recording.last_op(thread).map(|op| site::of(op.site));
    let message = format!(
        "data race on the atomic{made}: nothing orders its initialisation, which {other} allocated \
         the memory for, and the access by {one}"
    );
    runtime.fail(FailureKind::Race, message, site);
}

/// The newest store of a location, which an access of `thread` does not see.
fn stale(runtime: &Runtime, thread: ThreadId, newest: Stored) -> Stale {
    let missed = missed_order(&runtime.notes.accesses, thread, &newest);
    let Stored { event, value, step } = newest;
    Stale {
        by: event.thread.map(|thread| runtime.thread_name(thread.index())),
        value,
        step,
        missed: missed.map(|missed| (runtime.object_name(missed.location), missed)),
    }
}

/// An access that is about to be performed.
struct Performed {
    thread: ThreadId,
    location: u32,
    kind: OpKind,
    alternative: u32,
}

impl Performed {
    /// The number of stores that it does not see. An odd alternative of a weak exchange is a
    /// spurious failure.
    #[inline]
    fn nth(&self) -> u32 {
        match self.kind {
            OpKind::WeakCompareExchange { .. } => self.alternative / 2,
            _ => self.alternative,
        }
    }

    /// Performs it. Returns the old value, what happened, and the value written.
    #[inline(always)]
    fn perform(
        &self,
        memory: &mut impl Memory,
        clocks: &mut SyncClocks,
        copy: u64,
        new: impl FnOnce(u64) -> Option<u64>,
    ) -> (u64, Committed, Option<u64>) {
        let (thread, location, nth) = (self.thread, self.location, self.nth());
        if memory.latest(location) != Some(copy) {
            memory.initialise(location, copy);
        }
        let mut written = None;
        let new = |old| {
            written = new(old);
            written
        };
        let (old, committed) = match self.kind {
            OpKind::Load(order) => {
                (memory.load(clocks, thread, location, order, nth), Committed::Load(order))
            }
            OpKind::Store(order) => {
                let value = new(copy).expect("a store writes");
                memory.store(clocks, thread, location, value, order, nth);
                (copy, Committed::Store(order))
            }
            OpKind::Update(order) => {
                let old = memory.update(clocks, thread, location, (order, order), nth, new);
                (old, Committed::Update(order))
            }
            OpKind::WeakCompareExchange { failure, .. } if self.alternative % 2 == 1 => {
                // The spurious failure: it reads the value and does not write.
                let old = memory.load(clocks, thread, location, failure, nth);
                (old, Committed::Load(failure))
            }
            OpKind::CompareExchange { success, failure }
            | OpKind::WeakCompareExchange { success, failure } => {
                let orders = (success, failure);
                let old = memory.update(clocks, thread, location, orders, nth, new);
                let worked = written.is_some();
                (old, if worked { Committed::Update(success) } else { Committed::Load(failure) })
            }
            _ => unreachable!("an operation on an atomic is one of these"),
        };
        (old, committed, written)
    }
}

/// Records the result of an access.
#[inline(always)]
fn note<const PLAIN: bool>(
    runtime: &mut Runtime,
    location: u32,
    committed: Committed,
    (old, written): (u64, Option<u64>),
    learned: impl FnOnce(u64) -> u64,
) {
    runtime.outcome.value = learned(old);
    let (Committed::Load(order) | Committed::Store(order) | Committed::Update(order)) = committed;
    if order != Ordering::SeqCst && !runtime.is_weak {
        runtime.note_weak(order);
    }
    if !PLAIN && runtime.follows_values {
        let newest = written.unwrap_or(old);
        runtime.outcome.newest = Some(newest);
        runtime.recording.set_value(location, newest);
        if runtime.recording.mode() == Mode::Repeat
            && runtime.recorded_newest().is_some_and(|recorded| recorded != newest)
        {
            moved(runtime);
        }
    }
    if written.is_some_and(|written| written != old) {
        (runtime.outcome.changed, runtime.outcome.progress) = (true, true);
        runtime.recording.change(location);
    }
}

/// The running thread announces an access to the atomic at `location`, whose copy is `copy`: under
/// weak memory the search asks for its alternatives before it is performed. Returns the operation
/// with the orderings that apply.
#[inline]
fn announce(
    location: u32,
    (kind, verb, site): (OpKind, &'static str, &'static Site<'static>),
    copy: impl FnOnce() -> u64,
) -> OpKind {
    with(|runtime| {
        if let Some(memory) = &mut runtime.weak_memory {
            let copy = copy();
            if memory.latest(location) != Some(copy) {
                memory.initialise(location, copy);
            }
        }
        match &runtime.orderings {
            None => kind,
            Some(orderings) => orderings.apply_to(kind, verb, site),
        }
    })
}

/// Under weak memory, a plain access to an atomic through its only reference races with accesses
/// that do not happen before it.
#[inline]
pub(super) fn exclusive(identity: &Identity, site: &'static Site<'static>) {
    if is_set() {
        exclusive_inside(identity, site);
    }
}

#[cold]
fn exclusive_inside(identity: &Identity, site: &'static Site<'static>) {
    with(|runtime| {
        let Some(memory) = &runtime.weak_memory else { return };
        let Some(location) = identity.number_in(runtime.execution) else { return };
        let thread = ThreadId::new(runtime.current);
        let Some(other) = memory.unordered(&runtime.races.clocks, thread, location) else { return };
        let (one, other) =
            (runtime.thread_name(runtime.current), runtime.thread_name(other.index()));
        let message = format!(
            "data race on the atomic made at {}: {one} accesses it through its only reference at \
             {site}, and {other} has accessed it; nothing orders these accesses",
            identity.site()
        );
        runtime.fail(FailureKind::Race, message, Some(site));
    });
}
