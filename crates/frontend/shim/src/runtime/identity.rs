//! The identity of a mirror within an execution.
//!
//! Mirrors are created by `const` functions, which cannot know the execution. So a mirror gets its
//! location when it is first used in an execution, and keeps it together with the number of the
//! execution: one comparison shows whether it is still valid.

use std::panic::Location as Site;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicPtr, AtomicU64, compiler_fence, fence};

use preempt_replay::{OpKind, SiteId};
use preempt_system::{FailureKind, Kind, ThreadSet, VectorClock};

use super::arena::{self, Found};
use super::blocks::Block;
use super::freed::{Placed, Suspect};
use super::place::{Owner, Place};
use super::restart::{RestartReason, restart, stop_for_good};
use super::{Runtime, describe, inside, is_set, look, op, point, site, with};
use crate::foreign_threads;

/// The bits of a location in a tag; the other bits are the number of the execution.
const BITS: u32 = 20;

/// The location of a mirror in the execution that used it last. The tag is the first field, because
/// freed memory is recognised by it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Identity {
    tag: AtomicU64,
    /// The value at its first use in an execution of a check, as a word.
    first: AtomicU64,
    /// The number of the next execution at the last use from outside all executions while there
    /// were some, and the position of that use: see [`foreign_threads`].
    outside: AtomicU64,
    outside_site: AtomicPtr<Site<'static>>,
    site: &'static Site<'static>,
}

impl Identity {
    /// The identity of a new object, created at the position of the caller.
    #[track_caller]
    pub(crate) const fn new() -> Identity {
        Identity {
            tag: AtomicU64::new(0),
            first: AtomicU64::new(0),
            outside: AtomicU64::new(0),
            outside_site: AtomicPtr::new(null_mut()),
            site: Site::caller(),
        }
    }

    /// The position at which the object was created.
    pub(crate) fn site(&self) -> &'static Site<'static> {
        self.site
    }

    /// Whether this use of the object is part of an execution. Otherwise, fails if an execution
    /// that has used the object is running.
    #[inline]
    #[track_caller]
    pub(crate) fn inside(&self) -> bool {
        if inside() {
            return true;
        }
        if foreign_threads::are_possible() {
            self.note_outside(Site::caller());
        }
        let tag = self.tag.load(Relaxed);
        if tag != 0 && foreign_threads::is_over(tag >> BITS, Site::caller()) {
            self.tag.store(0, Relaxed);
        }
        false
    }

    /// Records that the object is used from outside all executions while there are some. An
    /// execution that uses it later compares the number with its own. The fences order the write of
    /// `outside` before the read of the tag, and the write of the tag before the read of `outside`:
    /// so at least one of the two sides detects the other. On the side of the execution, which uses
    /// objects for the first time a hundred thousand times a second, it is only a compiler fence:
    /// two first uses within the same few nanoseconds may both go unnoticed, until the next use or
    /// the next execution.
    #[cold]
    fn note_outside(&self, site: &'static Site<'static>) {
        if !is_set() {
            self.outside_site.store(std::ptr::from_ref(site).cast_mut(), Relaxed);
            self.outside.store(EXECUTIONS.load(Relaxed), Relaxed);
            fence(SeqCst);
        }
    }

    /// Reports the object if it was used from outside since the current execution began.
    fn look_outside(&self, noun: &'static str) {
        compiler_fence(SeqCst);
        with(|runtime| {
            if self.outside.load(Relaxed) > runtime.execution {
                let site = foreign_threads::site(&self.outside_site);
                runtime.live.record(foreign_threads::description("another thread", noun, site));
            }
        });
    }

    /// The location of this object, a `noun`, which the running thread is about to use.
    #[inline]
    pub(crate) fn locate(
        &self,
        kind: Option<Kind>,
        noun: &'static str,
        access: &'static Site<'static>,
    ) -> u32 {
        self.locate_holding(kind, noun, access, || 0)
    }

    /// Like [`Identity::locate`], for an object that holds a value, given as a word.
    #[inline]
    pub(crate) fn locate_holding(
        &self,
        kind: Option<Kind>,
        noun: &'static str,
        access: &'static Site<'static>,
        word: impl FnOnce() -> u64,
    ) -> u32 {
        if look(|runtime| runtime.requirements.ordered.is_empty()) {
            self.locate_unordered(kind, noun, access, word)
        } else {
            if self.known().is_none() {
                self.check_memory(None, noun, access);
            }
            self.locate_ordered(kind, noun, word())
        }
    }

    /// Like [`Identity::locate_holding`], in an execution in which no objects are distinguished by
    /// the order of their first uses.
    #[inline]
    pub(crate) fn locate_unordered(
        &self,
        kind: Option<Kind>,
        noun: &'static str,
        access: &'static Site<'static>,
        word: impl FnOnce() -> u64,
    ) -> u32 {
        self.known().unwrap_or_else(|| {
            self.check_memory(None, noun, access);
            self.meet(kind, noun, word())
        })
    }

    /// Checks the object after the running thread has waited to access it: meanwhile another thread
    /// may have freed its memory.
    #[inline]
    pub(crate) fn is_there(
        &self,
        location: u32,
        noun: &'static str,
        access: &'static Site<'static>,
    ) {
        if self.tagged() != u64::from(location) {
            self.check_memory(Some(location), noun, access);
        }
    }

    /// Fails if this object, whose tag is not of this execution, is in freed memory. Freed memory
    /// is filled with a pattern, so the tag is invalid, and no field of the object may be used. The
    /// thread does not continue, since its behaviour would be undefined.
    #[cold]
    pub(crate) fn check_memory(
        &self,
        known: Option<u32>,
        noun: &'static str,
        access: &'static Site<'static>,
    ) {
        let address = std::ptr::from_ref(self).addr();
        let is_freed = with(|runtime| {
            let how = match runtime.arena.find(address) {
                Some(Found::Freed(by)) => format!("was freed by {}", runtime.freed_by(by)),
                // There was another block here when the thread arrived.
                Some(Found::Live(block, _))
                    if known.is_some_and(|known| runtime.is_in_other_block(known, block)) =>
                {
                    "was freed and allocated again while it waited".to_owned()
                }
                _ if !self.is_plausible() => "was freed and holds something else".to_owned(),
                _ => return false,
            };
            let message = format!(
                "use after free: {} uses {} {noun} at {access}, and the memory {how}",
                runtime.thread_name(runtime.current),
                if noun.starts_with('a') { "an" } else { "a" },
            );
            runtime.fail(FailureKind::Runtime, message, Some(access));
            runtime.verdict.used_after_free = true;
            true
        });
        if is_freed {
            stop_for_good();
        }
    }

    /// Whether the stored creation site is a plausible reference; otherwise there is no object
    /// here.
    fn is_plausible(&self) -> bool {
        // SAFETY: a reference has the size of a `usize`, and the value is only used as a number.
        let site = unsafe { (&raw const self.site).cast::<usize>().read() };
        site > 0xffff
            && site.is_multiple_of(align_of::<Site<'_>>())
            && !arena::contains(site)
            && site >> 47 == 0
    }

    /// The location of the object, if the execution has used it.
    #[inline]
    fn known(&self) -> Option<u32> {
        let location = self.tagged();
        (location < 1 << BITS).then_some(location as u32)
    }

    /// The location in the tag, if it is of the current execution; otherwise a number larger than
    /// any location.
    #[inline]
    fn tagged(&self) -> u64 {
        self.tag.load(Relaxed) ^ look(|runtime| runtime.execution) << BITS
    }

    #[cold]
    fn meet(&self, kind: Option<Kind>, noun: &'static str, word: u64) -> u32 {
        let address = std::ptr::from_ref(self).addr();
        self.outlive(noun, word);
        match with(|runtime| runtime.place_of(address)) {
            Some(place) => self.settle(place, kind, noun),
            None if self.is_ordered() => self.introduce(kind, noun),
            None => {
                let site = site::id(self.site);
                if with(|runtime| runtime.met.count(site)) > 0 {
                    restart(RestartReason::Ordered(site));
                }
                let nth = with(|runtime| runtime.met.again(0, site.get()));
                self.settle(Place::Made { site, nth }, kind, noun)
            }
        }
    }

    /// If another execution of the check has used this object, it outlives executions, and must
    /// have the same value at the beginning of each.
    fn outlive(&self, noun: &'static str, word: u64) {
        let last = self.tag.load(Relaxed) >> BITS;
        with(|runtime| {
            if last < runtime.options.since {
                self.first.store(word, Relaxed);
            } else if self.first.load(Relaxed) != word {
                let message = format!(
                    "the {noun} made at {} outlives executions and does not begin each of them \
                     with the same value, so that the test is not deterministic; make what is \
                     shared inside the closure, or use `preempt::lazy_static!`",
                    self.site
                );
                runtime.fail(FailureKind::Nondeterminism, message, Some(self.site));
            }
        });
    }

    /// Assigns the location of `place` to this object.
    fn settle(&self, place: Place, kind: Option<Kind>, noun: &'static str) -> u32 {
        let address = std::ptr::from_ref(self).addr();
        let location = with(|runtime| {
            let names = runtime.recording.names_mut();
            let location = names.locate(place, kind, noun, site::id(self.site));
            runtime.place_location(address, location, self.site);
            location
        });
        self.name(location);
        self.look_outside(noun);
        location
    }

    /// Whether objects created at the same position are distinguished by the order of their first
    /// uses.
    fn is_ordered(&self) -> bool {
        with(|runtime| runtime.requirements.ordered.contains(&site::id(self.site)))
    }

    /// The first use by a thread of an object that only its creation position can name, where
    /// several objects were created there: the order of their first uses distinguishes them. So
    /// that this order is part of the schedule, the first use is a step. Each thread has one, even
    /// if other threads have used the object already, because a thread must not depend on that.
    #[cold]
    fn introduce(&self, kind: Option<Kind>, noun: &'static str) -> u32 {
        let site = site::id(self.site);
        let first = Place::Made { site, nth: u32::MAX };
        let object = with(|runtime| runtime.recording.names_mut().locate(first, None, noun, site));
        point(op(OpKind::Touch, object, "first use", self.site));
        describe(|| "first use".into());
        let location = self.known().unwrap_or_else(|| {
            let nth = with(|runtime| runtime.met.again(0, site.get()));
            self.settle(Place::Made { site, nth }, kind, noun)
        });
        with(|runtime| {
            // A thread that uses the object in a loop must not count as spinning because of this
            // step.
            runtime.outcome.progress = true;
            runtime.met.introduced.push((runtime.current, location));
        });
        location
    }

    /// The location of an object that other threads may have used, if any objects are distinguished
    /// by their first uses.
    #[cold]
    fn locate_ordered(&self, kind: Option<Kind>, noun: &'static str, word: u64) -> u32 {
        let Some(location) = self.known() else { return self.meet(kind, noun, word) };
        let unknown = with(|runtime| {
            let met = &runtime.met.introduced;
            met.iter().any(|&(_, other)| other == location)
                && !met.contains(&(runtime.current, location))
        });
        if unknown { self.introduce(kind, noun) } else { location }
    }

    /// Assigns a number in the current execution to this object.
    pub(crate) fn name(&self, number: u32) {
        assert!(number < 1 << BITS, "an execution has fewer than 2²⁰ objects");
        self.tag.store(with(|runtime| runtime.execution) << BITS | u64::from(number), Relaxed);
    }

    /// The number of this object in an execution.
    pub(crate) fn number_in(&self, execution: u64) -> Option<u32> {
        let tag = self.tag.load(Relaxed);
        (tag >> BITS == execution).then_some((tag & ((1 << BITS) - 1)) as u32)
    }

    /// The number of this object in the current execution.
    pub(crate) fn number(&self) -> Option<u32> {
        self.known()
    }
}

/// An `Arc` of the execution, or an allocation.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    /// The noun for reports.
    pub(crate) noun: &'static str,
    pub(crate) address: usize,
    pub(crate) size: usize,
    pub(crate) owner: Owner,
    pub(crate) site: &'static Site<'static>,
    /// The threads that have dropped references to it, and the join of their clocks.
    pub(crate) droppers: ThreadSet,
    pub(crate) clock: VectorClock,
}

impl Shared {
    pub(crate) fn new(noun: &'static str, owner: Owner, site: &'static Site<'static>) -> Shared {
        let (droppers, clock) = (ThreadSet::EMPTY, VectorClock::new());
        Shared { noun, address: 0, size: 0, owner, site, droppers, clock }
    }
}

/// The noun of memory that only gives names to the objects in it.
pub(crate) const COVERED: &str = "memory";

/// The objects that an execution has used.
#[derive(Debug, Default)]
pub(crate) struct Met {
    pub(crate) shared: Vec<Shared>,
    /// The pairs of threads and objects with a first use, of objects that are distinguished by
    /// their first uses.
    introduced: Vec<(usize, u32)>,
    /// Objects in memory that threads have allocated, by their addresses.
    pub(super) placed: Vec<(usize, Placed)>,
    /// Frees of this step that other threads' uses may come after.
    pub(crate) suspects: Vec<Suspect>,
    /// The number of objects found at a place.
    times: Vec<((u64, u64), u32)>,
}

impl Met {
    pub(crate) fn clear(&mut self) {
        self.shared.clear();
        self.introduced.clear();
        self.placed.clear();
        self.suspects.clear();
        self.times.clear();
    }

    /// Counts one more object at a place, and returns the previous count.
    fn again(&mut self, class: u64, key: u64) -> u32 {
        once_more(&mut self.times, (class, key))
    }

    fn count(&self, site: SiteId) -> u32 {
        let key = (0, site.get());
        self.times.iter().find(|(other, _)| *other == key).map_or(0, |&(_, times)| times)
    }
}

/// Increments the count of a key and returns the previous count.
fn once_more<K: PartialEq>(times: &mut Vec<(K, u32)>, what: K) -> u32 {
    match times.iter_mut().find(|(other, _)| *other == what) {
        Some((_, times)) => {
            *times += 1;
            *times - 1
        }
        None => {
            times.push((what, 1));
            0
        }
    }
}

impl Runtime {
    /// The identity of shared memory that the running thread allocates.
    pub(crate) fn next_owner(&mut self) -> Owner {
        self.create_owner();
        let created = &mut self.threads[self.current].created;
        *created += 1;
        Owner::Thread { slot: self.current as u8, nth: *created - 1 }
    }

    /// Records memory that gives names to the objects in it, but is not a leak if it remains.
    pub(crate) fn cover(&mut self, address: usize, size: usize, site: &'static Site<'static>) {
        let owner = self.next_owner();
        self.met.shared.push(Shared { address, size, ..Shared::new(COVERED, owner, site) });
    }

    /// Like [`Runtime::cover`], for the value of a static, which has the same name in every
    /// schedule.
    pub(crate) fn cover_static(
        &mut self,
        key: usize,
        address: usize,
        size: usize,
        site: &'static Site<'static>,
    ) {
        let owner = Owner::Static(key);
        self.met.shared.push(Shared { address, size, ..Shared::new(COVERED, owner, site) });
    }

    /// Removes memory that was freed.
    pub(crate) fn uncover(&mut self, address: usize) {
        self.met.shared.retain(|shared| shared.address != address || shared.noun != COVERED);
    }

    /// Whether an object is in a memory block other than this one.
    fn is_in_other_block(&self, location: u32, block: Block) -> bool {
        let place = self.recording.names().place(location);
        matches!(place, Some(Place::Block { block: of, .. }) if of != block)
    }

    /// The place of an object, if it can name the object.
    fn place_of(&mut self, address: usize) -> Option<Place> {
        if let Some((slot, depth)) = self.coroutines.depth_of(address) {
            let nth = self.met.again(slot as u64 + 1, depth as u64);
            return Some(Place::Stack { slot: slot as u8, depth: depth as u32, nth });
        }
        let holds =
            |shared: &&Shared| (shared.address..shared.address + shared.size).contains(&address);
        if let Some(shared) = self.met.shared.iter().rev().find(holds) {
            let offset = (address - shared.address) as u32;
            return Some(Place::Shared { owner: shared.owner, offset });
        }
        match self.arena.find(address)? {
            Found::Live(block, offset) => Some(Place::Block { block, offset }),
            Found::Freed(_) => None,
        }
    }
}

static EXECUTIONS: AtomicU64 = AtomicU64::new(1);

/// The number of a new execution.
pub(crate) fn next_execution() -> u64 {
    EXECUTIONS.fetch_add(1, Relaxed)
}
