//! Which object of the execution a mirror is.
//!
//! Mirrors are made by `const` functions, which cannot know of an execution. So a mirror learns its location when it is first used in one,
//! and keeps it together with the number of the execution: one comparison tells whether it is still valid.

use std::panic::Location as Site;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use preempt_system::Kind;

use super::Runtime;
use super::names::Place;

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

    /// The location of this object, a `noun`.
    #[inline]
    pub(crate) fn locate(&self, runtime: &mut Runtime, kind: Option<Kind>, noun: &'static str) -> u32 {
        let tag = self.tag.load(Relaxed);
        if tag >> BITS == runtime.execution {
            return (tag & ((1 << BITS) - 1)) as u32;
        }
        self.meet(runtime, kind, noun)
    }

    fn meet(&self, runtime: &mut Runtime, kind: Option<Kind>, noun: &'static str) -> u32 {
        let place = runtime.place_of(std::ptr::from_ref(self).addr(), self.site);
        let location = runtime.names.locate(place, kind, noun, self.site);
        assert!(location < 1 << BITS, "an execution has fewer than 2²⁰ objects");
        self.tag.store(runtime.execution << BITS | u64::from(location), Relaxed);
        location
    }
}

/// What an execution has met.
#[derive(Debug, Default)]
pub(crate) struct Met {
    /// The `Arc`s: address, size, creating thread, and which of its.
    pub(crate) shared: Vec<(usize, usize, u8, u32)>,
    /// How often objects were met at a place.
    times: Vec<((u64, usize), u32)>,
}

impl Met {
    pub(crate) fn clear(&mut self) {
        self.shared.clear();
        self.times.clear();
    }

    fn again(&mut self, class: u64, key: usize) -> u32 {
        match self.times.iter_mut().find(|(other, _)| *other == (class, key)) {
            Some((_, times)) => {
                *times += 1;
                *times
            }
            None => {
                self.times.push(((class, key), 0));
                0
            }
        }
    }
}

impl Runtime {
    fn place_of(&mut self, address: usize, site: &'static Site<'static>) -> Place {
        if let Some((slot, depth)) = self.coroutines.depth_of(address) {
            let nth = self.met.again(slot as u64 + 1, depth);
            return Place::Stack { slot: slot as u8, depth: depth as u32, nth };
        }
        let holds = |&&(start, size, ..): &&(usize, usize, u8, u32)| (start..start + size).contains(&address);
        if let Some(&(start, _, slot, nth)) = self.met.shared.iter().rev().find(holds) {
            return Place::Shared { slot, nth, offset: (address - start) as u32 };
        }
        let site = std::ptr::from_ref(site).addr();
        Place::Made { site, nth: self.met.again(0, site) }
    }
}

static EXECUTIONS: AtomicU64 = AtomicU64::new(1);

/// The number of a new execution.
pub(crate) fn next_execution() -> u64 {
    EXECUTIONS.fetch_add(1, Relaxed)
}
