//! Which object of the execution a mirror is.
//!
//! Mirrors are made by `const` functions, which cannot know of an execution. So a mirror learns its location when it is first used in one,
//! and keeps it together with the number of the execution: one comparison tells whether it is still valid.

use std::panic::Location as Site;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use preempt_system::{Kind, ThreadSet, VectorClock};

use super::names::Place;
use super::needs::{Need, need};
use super::op::{Act, NOTHING, Op};
use super::{Runtime, point, tell, with};

/// Bits of a location; the rest is the number of the execution.
const BITS: u32 = 20;

/// The place of a mirror in the execution that met it last.
#[derive(Debug)]
pub(crate) struct Identity {
    tag: AtomicU64,
    site: &'static Site<'static>,
}

impl Identity {
    /// That of a new object, which is made where the caller's caller says.
    #[track_caller]
    pub(crate) const fn new() -> Identity {
        Identity { tag: AtomicU64::new(0), site: Site::caller() }
    }

    /// Where the object was made.
    pub(crate) fn site(&self) -> &'static Site<'static> {
        self.site
    }

    /// The location of this object, a `noun`, which the running thread is about to use.
    #[inline]
    pub(crate) fn locate(&self, kind: Option<Kind>, noun: &'static str) -> u32 {
        self.known().unwrap_or_else(|| self.meet(kind, noun))
    }

    /// The same, if the execution has met the object.
    #[inline]
    fn known(&self) -> Option<u32> {
        let tag = self.tag.load(Relaxed);
        (tag >> BITS == with(|runtime| runtime.execution)).then_some((tag & ((1 << BITS) - 1)) as u32)
    }

    #[cold]
    fn meet(&self, kind: Option<Kind>, noun: &'static str) -> u32 {
        let address = std::ptr::from_ref(self).addr();
        let place = with(|runtime| runtime.place_of(address));
        let place = place.unwrap_or_else(|| self.meet_made(noun));
        self.known().unwrap_or_else(|| {
            let location = with(|runtime| runtime.names.locate(place, kind, noun, self.site));
            self.name(location);
            location
        })
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

    /// An object that only the place where it was made can name. If there are several of one place, the order of their first uses
    /// tells them apart; so that this order is part of what makes executions different, the first use is a step.
    fn meet_made(&self, noun: &'static str) -> Place {
        let site = std::ptr::from_ref(self.site).addr();
        if with(|runtime| runtime.needs.ordered.contains(&site)) {
            let first = Place::Made { site, nth: u32::MAX };
            let object = with(|runtime| runtime.names.locate(first, None, noun, self.site));
            point(Op { act: Act::Update, object, other: NOTHING, verb: "first use", site: self.site });
            tell(|| "first use".into());
        } else if with(|runtime| runtime.met.count(site)) > 0 {
            need(Need::Ordered(site));
        }
        Place::Made { site, nth: with(|runtime| runtime.met.again(0, site)) }
    }
}

/// An `Arc` of the execution, or an allocation.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    /// What it is.
    pub(crate) noun: &'static str,
    pub(crate) address: usize,
    pub(crate) size: usize,
    /// The thread that made it, and which of its.
    pub(crate) slot: u8,
    pub(crate) nth: u32,
    pub(crate) site: &'static Site<'static>,
    /// Who has dropped references to it, and what they did before, as far as races are concerned.
    pub(crate) droppers: ThreadSet,
    pub(crate) clock: VectorClock,
}

impl Shared {
    pub(crate) fn new(noun: &'static str, site: &'static Site<'static>) -> Shared {
        let (droppers, clock) = (ThreadSet::EMPTY, VectorClock::new());
        Shared { noun, address: 0, size: 0, slot: 0, nth: 0, site, droppers, clock }
    }
}

/// What an execution has met.
#[derive(Debug, Default)]
pub(crate) struct Met {
    pub(crate) shared: Vec<Shared>,
    /// How often objects were met at a place.
    times: Vec<((u64, usize), u32)>,
}

impl Met {
    pub(crate) fn clear(&mut self) {
        self.shared.clear();
        self.times.clear();
    }

    /// Counts one more object of a place, and returns how many there were before.
    fn again(&mut self, class: u64, key: usize) -> u32 {
        match self.times.iter_mut().find(|(other, _)| *other == (class, key)) {
            Some((_, times)) => {
                *times += 1;
                *times - 1
            }
            None => {
                self.times.push(((class, key), 1));
                0
            }
        }
    }

    fn count(&self, site: usize) -> u32 {
        self.times.iter().find(|(other, _)| *other == (0, site)).map_or(0, |&(_, times)| times)
    }
}

impl Runtime {
    /// Where an object is, if that names it.
    fn place_of(&mut self, address: usize) -> Option<Place> {
        if let Some((slot, depth)) = self.coroutines.depth_of(address) {
            let nth = self.met.again(slot as u64 + 1, depth);
            return Some(Place::Stack { slot: slot as u8, depth: depth as u32, nth });
        }
        let holds = |shared: &&Shared| (shared.address..shared.address + shared.size).contains(&address);
        let shared = self.met.shared.iter().rev().find(holds)?;
        Some(Place::Shared { slot: shared.slot, nth: shared.nth, offset: (address - shared.address) as u32 })
    }
}

static EXECUTIONS: AtomicU64 = AtomicU64::new(1);

/// The number of a new execution.
pub(crate) fn next_execution() -> u64 {
    EXECUTIONS.fetch_add(1, Relaxed)
}
