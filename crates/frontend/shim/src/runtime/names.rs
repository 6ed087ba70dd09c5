//! Names of threads and objects that are the same in every schedule.
//!
//! A thread is (parent, n-th spawn). An object gets its name when an execution meets it first, and
//! the name must not depend on who came first. So it says where the object *is*: on which thread's
//! stack and how deep, or in which [`Arc`](crate::sync::Arc) and where in it; an `Arc` is (creating
//! thread, n-th creation). So is other memory, if the program uses the
//! [allocator](crate::alloc::Allocator). All others, statics among them, are named by the place in
//! the program where they were made.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::panic::Location as Site;

use preempt_system::{Kind, MAX_THREADS};

use super::blocks::Block;
use super::state::Objects;

/// Where an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    /// On the stack of a thread, so many bytes from its beginning; the `nth` object that was met
    /// there.
    Stack { slot: u8, depth: u32, nth: u32 },
    /// In an `Arc`.
    Shared { slot: u8, nth: u32, offset: u32 },
    /// In memory that a thread has allocated.
    Block { block: Block, offset: usize },
    /// Made at this place of the program, the `nth` of these that was met.
    Made { site: usize, nth: u32 },
}

/// What an object looks like to its user.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Description {
    /// The word for what it is.
    pub(crate) noun: &'static str,
    /// Where it was made.
    pub(crate) site: &'static Site<'static>,
    /// Which of those that were made there, from 0, in the order in which they were first met.
    pub(crate) nth: u32,
}

type Map<K, V> = HashMap<K, V, BuildHasherDefault<PlaceHasher>>;

/// Every execution looks every object up. Places are small numbers that nobody chooses with malice:
/// a multiplication for each spreads them.
#[derive(Clone, Copy, Debug, Default)]
struct PlaceHasher(u64);

impl Hasher for PlaceHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u8(byte));
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        let product = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ product >> 32;
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_u64(value as u64);
    }
}

/// All names, for all executions of a search.
#[derive(Clone, Debug)]
pub(crate) struct Names {
    slots: usize,
    used: usize,
    /// For each slot those of its children.
    children: Vec<Vec<u8>>,
    parents: Vec<Option<(u8, u32)>>,
    pub(crate) objects: Objects,
    locations: Map<(Place, Option<Kind>), u32>,
    /// The same by location, and the location that was found last: executions mostly meet their
    /// objects in the same order.
    places: Vec<Option<(Place, Option<Kind>)>>,
    last: u32,
    descriptions: Vec<Option<Description>>,
    made: Map<usize, u32>,
    /// The statics that `lazy_static!` has declared, by their addresses.
    statics: Vec<usize>,
}

impl Names {
    /// Names for so many threads; the first is there.
    pub(crate) fn new(slots: usize) -> Names {
        let mut objects = Objects::default();
        for kind in [Kind::Thread, Kind::Parker] {
            for _ in 0..slots {
                objects.add(Some(kind));
            }
        }
        Names {
            slots,
            used: 1,
            children: vec![Vec::new(); slots],
            parents: vec![None; slots],
            descriptions: vec![None; objects.len()],
            places: vec![None; objects.len()],
            last: 0,
            objects,
            locations: Map::default(),
            made: Map::default(),
            statics: Vec::new(),
        }
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// The threads that have names.
    pub(crate) fn threads(&self) -> usize {
        self.used
    }

    /// An execution begins.
    pub(crate) fn begin(&mut self) {
        // Threads and their tokens come first.
        self.last = 2 * self.slots as u32 - 1;
    }

    /// The location of the token for which a thread parks.
    pub(crate) fn parker(&self, slot: usize) -> u32 {
        (self.slots + slot) as u32
    }

    /// The slot of the `nth` child of a thread, or the number of slots that are needed.
    pub(crate) fn child(&mut self, parent: usize, nth: u32) -> Result<usize, usize> {
        if let Some(&slot) = self.children[parent].get(nth as usize) {
            return Ok(slot.into());
        }
        if self.used == self.slots {
            return Err(self.slots + 1);
        }
        let slot = self.used;
        self.used += 1;
        self.children[parent].push(slot as u8);
        self.parents[slot] = Some((parent as u8, nth));
        Ok(slot)
    }

    /// The name of a thread that has no other: `main`, `t2`, `t2.1`.
    pub(crate) fn thread(&self, slot: usize) -> String {
        match self.parents[slot] {
            None => "main".to_owned(),
            Some((0, nth)) => format!("t{}", nth + 1),
            Some((parent, nth)) => format!("{}.{}", self.thread(parent.into()), nth + 1),
        }
    }

    /// The number of a static, the same in every execution.
    pub(crate) fn static_number(&mut self, key: usize) -> u32 {
        let known = self.statics.iter().position(|&other| other == key);
        known.unwrap_or_else(|| {
            self.statics.push(key);
            self.statics.len() - 1
        }) as u32
    }

    /// The location of an object.
    pub(crate) fn locate(
        &mut self,
        place: Place,
        kind: Option<Kind>,
        noun: &'static str,
        site: &'static Site<'static>,
    ) -> u32 {
        let key = (place, kind);
        let next = self.last + 1;
        if let Some(Some(known)) = self.places.get(next as usize)
            && *known == key
        {
            self.last = next;
            return next;
        }
        if let Some(&location) = self.locations.get(&key) {
            self.last = location;
            return location;
        }
        let location = self.objects.add(kind);
        self.places.push(Some(key));
        self.last = location;
        let nth = self.made.entry(std::ptr::from_ref(site).addr()).or_default();
        self.descriptions.push(Some(Description { noun, site, nth: *nth }));
        *nth += 1;
        self.locations.insert(key, location);
        location
    }

    /// Whether a location is in this block, if it is in one at all.
    pub(crate) fn is_in(&self, location: u32, block: Block) -> bool {
        match self.places.get(location as usize) {
            Some(Some((Place::Block { block: of, .. }, _))) => *of == block,
            _ => true,
        }
    }

    /// The thread whose life a location is.
    pub(crate) fn thread_of(&self, location: u32) -> Option<usize> {
        ((location as usize) < self.slots).then_some(location as usize)
    }

    /// What is known about an object.
    pub(crate) fn description(&self, location: u32) -> Option<Description> {
        self.descriptions.get(location as usize).copied().flatten()
    }

    /// What is known about all objects.
    pub(crate) fn descriptions(&self) -> impl Iterator<Item = Description> + '_ {
        self.descriptions.iter().flatten().copied()
    }

    /// What an object is called.
    pub(crate) fn object(&self, location: u32) -> String {
        let at = location as usize;
        if at < self.slots {
            return self.thread(at);
        }
        if at < 2 * self.slots {
            return format!("token of {}", self.thread(at - self.slots));
        }
        match self.descriptions.get(at).copied().flatten() {
            None => format!("location {location}"),
            Some(description) => self.describe(description),
        }
    }

    /// By the line where it was made, and what else it takes to tell it from others.
    fn describe(&self, Description { noun, site, nth }: Description) -> String {
        let mut others = self.descriptions.iter().flatten();
        let crowded = others.any(|other| {
            let same = (other.noun, other.site.line()) == (noun, site.line());
            same && other.site.column() != site.column() && other.site.file() == site.file()
        });
        let column = if crowded { format!(":{}", site.column()) } else { String::new() };
        let number = if nth == 0 { String::new() } else { format!("#{}", nth + 1) };
        format!("{noun}@{}{column}{number}", site.line())
    }
}

/// More threads than are supported.
pub(crate) const MOST_THREADS: usize = MAX_THREADS;
