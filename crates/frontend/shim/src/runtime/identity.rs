//! Which object of the execution a mirror is.
//!
//! Mirrors are made by `const` functions, which cannot know of an execution. So a mirror learns its
//! location when it is first used in one, and keeps it together with the number of the execution:
//! one comparison tells whether it is still valid.

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
use super::{Runtime, inside, is_set, look, op, point, site, tell, with};
use crate::foreign_threads;

/// Bits of a location; the rest is the number of the execution.
const BITS: u32 = 20;

/// The place of a mirror in the execution that met it last. The tag comes first: memory that was
/// freed is recognised by it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Identity {
    tag: AtomicU64,
    /// The value it had when an execution of a check met it first, as a word.
    first: AtomicU64,
    /// The number of the next execution when the object was last used from outside of all
    /// executions while there were some, and where: see [`foreign_threads`].
    outside: AtomicU64,
    outside_site: AtomicPtr<Site<'static>>,
    site: &'static Site<'static>,
}

impl Identity {
    /// That of a new object, which is made where the caller's caller says.
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

    /// Where the object was made.
    pub(crate) fn site(&self) -> &'static Site<'static> {
        self.site
    }

    /// Whether this use of the object is part of an execution. Otherwise none may be running that
    /// has met it.
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

    /// Notes that the object is used from outside of all executions while there are some. The
    /// execution that meets it later compares the number with its own. The fences order the note
    /// before the look at the tag, and the tag before the look at the note: so at least one of the
    /// two learns of the other. On the side of the execution, which meets its objects anew a
    /// hundred thousand times a second, it is a fence for the compiler only: two first uses within
    /// the same few nanoseconds may both go unnoticed, until the next use or the next execution.
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
                runtime.live.complain(foreign_threads::told("another thread", noun, site));
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

    /// The same for one that holds a value, as a word.
    #[inline]
    pub(crate) fn locate_holding(
        &self,
        kind: Option<Kind>,
        noun: &'static str,
        access: &'static Site<'static>,
        word: impl FnOnce() -> u64,
    ) -> u32 {
        if look(|runtime| runtime.requirements.ordered.is_empty()) {
            self.known().unwrap_or_else(|| {
                self.check_memory(None, noun, access);
                self.meet(kind, noun, word())
            })
        } else {
            if self.known().is_none() {
                self.check_memory(None, noun, access);
            }
            self.locate_ordered(kind, noun, word())
        }
    }

    /// The running thread has waited to access this object, of which it knew the location.
    /// Meanwhile another one may have freed its memory.
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

    /// Fails if this object, of which the execution does not know the tag, is in memory that was
    /// freed. Freed memory is filled with a pattern, so the tag is a wrong one, and nothing of the
    /// object may be used. The thread does not go on: it could do anything.
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
                // The thread found another block here when it arrived.
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

    /// Whether the place where the object was made can be a place of a program: otherwise there is
    /// no object here.
    fn is_plausible(&self) -> bool {
        // SAFETY: a reference is as large as a number. It is not used as a reference before it is
        // known to be one.
        let site = unsafe { (&raw const self.site).cast::<usize>().read() };
        site > 0xffff
            && site.is_multiple_of(align_of::<Site<'_>>())
            && !arena::contains(site)
            && site >> 47 == 0
    }

    /// The same, if the execution has met the object.
    #[inline]
    fn known(&self) -> Option<u32> {
        let location = self.tagged();
        (location < 1 << BITS).then_some(location as u32)
    }

    /// The location that the tag says, if it is one of the present execution; else something larger
    /// than any location.
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

    /// If another execution of the check has met this object it outlives executions, and has to
    /// begin each of them with the same value.
    fn outlive(&self, noun: &'static str, word: u64) {
        let last = self.tag.load(Relaxed) >> BITS;
        with(|runtime| {
            if last < runtime.options.since {
                self.first.store(word, Relaxed);
            } else if self.first.load(Relaxed) != word {
                let message = format!(
                    "the {noun} made at {} outlives executions and does not begin each of them with the same value, so that the test is not \
                     deterministic; make what is shared inside the closure, or use `preempt::lazy_static!`",
                    self.site
                );
                runtime.fail(FailureKind::Nondeterminism, message, Some(self.site));
            }
        });
    }

    /// Gives this object the location of a place.
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

    /// Whether objects made at the same place are told apart by the order of their first uses.
    fn is_ordered(&self) -> bool {
        with(|runtime| runtime.requirements.ordered.contains(&site::id(self.site)))
    }

    /// The first use by a thread of an object that only the place where it was made can name, and
    /// several were made there: the order of their first uses tells them apart. So that this order
    /// is part of what makes executions different, the first use is a step. Each thread has one,
    /// also if others have met the object: whether they have by now is not for this thread to know.
    #[cold]
    fn introduce(&self, kind: Option<Kind>, noun: &'static str) -> u32 {
        let site = site::id(self.site);
        let first = Place::Made { site, nth: u32::MAX };
        let object = with(|runtime| runtime.recording.names_mut().locate(first, None, noun, site));
        point(op(OpKind::Touch, object, "first use", self.site));
        tell(|| "first use".into());
        let location = self.known().unwrap_or_else(|| {
            let nth = with(|runtime| runtime.met.again(0, site.get()));
            self.settle(Place::Made { site, nth }, kind, noun)
        });
        with(|runtime| {
            // A thread that only looks for the object in a loop must not be taken to spin.
            runtime.outcome.progress = true;
            runtime.met.introduced.push((runtime.current, location));
        });
        location
    }

    /// The location of an object that others may have met, if objects are told apart by their first
    /// uses somewhere.
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

    /// Gives this object a number in the present execution.
    pub(crate) fn name(&self, number: u32) {
        assert!(number < 1 << BITS, "an execution has fewer than 2²⁰ objects");
        self.tag.store(with(|runtime| runtime.execution) << BITS | u64::from(number), Relaxed);
    }

    /// The number that this object was given in the present execution.
    pub(crate) fn number(&self) -> Option<u32> {
        self.known()
    }
}

/// An `Arc` of the execution, or an allocation.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    /// What it is.
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

/// The noun of memory that only names what is in it.
pub(crate) const COVERED: &str = "memory";

/// What an execution has met.
#[derive(Debug, Default)]
pub(crate) struct Met {
    pub(crate) shared: Vec<Shared>,
    /// Which threads have used which of the objects that are told apart by their first uses.
    introduced: Vec<(usize, u32)>,
    /// Objects in memory that threads have allocated, by their addresses.
    pub(super) placed: Vec<(usize, Placed)>,
    /// Frees of this step that other threads' uses may come after.
    pub(crate) suspects: Vec<Suspect>,
    /// How often objects were met at a place.
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

    /// Counts one more object of a place, and returns how many there were before.
    fn again(&mut self, class: u64, key: u64) -> u32 {
        once_more(&mut self.times, (class, key))
    }

    fn count(&self, site: SiteId) -> u32 {
        let key = (0, site.get());
        self.times.iter().find(|(other, _)| *other == key).map_or(0, |&(_, times)| times)
    }
}

/// Counts something once more; says how often it was counted before.
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
    /// The running thread makes shared memory: what identifies it.
    pub(crate) fn next_owner(&mut self) -> Owner {
        let created = &mut self.threads[self.current].created;
        *created += 1;
        Owner::Thread { slot: self.current as u8, nth: *created - 1 }
    }

    /// Memory that names what is in it, without being a leak if it is left.
    pub(crate) fn cover(&mut self, address: usize, size: usize, site: &'static Site<'static>) {
        let owner = self.next_owner();
        self.met.shared.push(Shared { address, size, ..Shared::new(COVERED, owner, site) });
    }

    /// The same for the value of a static, which has the same name in every schedule.
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

    /// The memory is given back.
    pub(crate) fn uncover(&mut self, address: usize) {
        self.met.shared.retain(|shared| shared.address != address || shared.noun != COVERED);
    }

    /// Whether an object is in a memory block, and in another one than this.
    fn is_in_other_block(&self, location: u32, block: Block) -> bool {
        let place = self.recording.names().place(location);
        matches!(place, Some(Place::Block { block: of, .. }) if of != block)
    }

    /// Where an object is, if that names it.
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
