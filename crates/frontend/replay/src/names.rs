//! Names of threads and objects that are the same in every schedule.
//!
//! A thread is (parent, n-th spawn). An object is identified by a *place* that the front end
//! computes and that must not depend on the schedule: where the object was allocated or made, not
//! which thread used it first. Identifiers by order of first use would make equal executions look
//! different.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use preempt_system::{Kind, Site, ThreadId};

use crate::objects::Objects;
use crate::site::SiteId;

/// The description of an object in reports.
#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// Its noun, such as `mutex`.
    pub noun: &'static str,
    /// The place of its creation.
    pub site: SiteId,
    /// Its number among the objects made there, from 0, in the order of first use.
    pub nth: u32,
}

type Map<K, V> = HashMap<K, V, BuildHasherDefault<PlaceHasher>>;

/// Every execution looks every object up. Places consist of small numbers that no adversary
/// chooses, so one multiplication per number spreads them well enough.
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

/// The names of all threads and objects, for all executions of a search. `P` identifies an object.
///
/// Locations are dense: first the lives of the threads, then their parkers, then all other objects.
#[derive(Clone, Debug)]
pub struct Names<P> {
    slots: usize,
    used: usize,
    /// For each slot the slots of its children.
    children: Vec<Vec<u8>>,
    parents: Vec<Option<(u8, u32)>>,
    objects: Objects,
    locations: Map<(P, Option<Kind>), u32>,
    /// The inverse of `locations`.
    places: Vec<Option<(P, Option<Kind>)>>,
    /// The location that was found last. Executions mostly use their objects in the same order, so
    /// the next one is tried before the map.
    last: u32,
    descriptions: Vec<Option<Description>>,
    made: Map<u64, u32>,
}

impl<P: Copy + Eq + Hash> Names<P> {
    /// Names for a program with `slots` thread slots. The first thread exists.
    pub fn new(slots: usize) -> Names<P> {
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
        }
    }

    /// Starts an execution.
    pub(crate) fn begin(&mut self) {
        self.last = 2 * self.slots as u32 - 1;
    }

    /// The number of thread slots.
    #[inline]
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// The number of threads that have names.
    pub fn threads(&self) -> usize {
        self.used
    }

    /// The kinds of all objects.
    #[inline]
    pub fn objects(&self) -> &Objects {
        &self.objects
    }

    /// All objects, to change what is known about them.
    pub(crate) fn objects_mut(&mut self) -> &mut Objects {
        &mut self.objects
    }

    /// The location of the token for which the thread in `slot` parks.
    pub fn parker(&self, slot: usize) -> u32 {
        (self.slots + slot) as u32
    }

    /// The slot of the `nth` child of a thread, or the number of slots that the program needs.
    pub fn child(&mut self, parent: usize, nth: u32) -> Result<usize, usize> {
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

    /// The name of a thread: `main`, `t2`, `t2.1`.
    pub fn thread(&self, slot: usize) -> String {
        match self.parents[slot] {
            None => "main".to_owned(),
            Some((0, nth)) => format!("t{}", nth + 1),
            Some((parent, nth)) => format!("{}.{}", self.thread(parent.into()), nth + 1),
        }
    }

    /// The location of the object of `kind` at `place`. If the object is new, `noun` and `site`
    /// describe it from now on.
    pub fn locate(
        &mut self,
        place: P,
        kind: Option<Kind>,
        noun: &'static str,
        site: SiteId,
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
        let nth = self.made.entry(site.get()).or_default();
        self.descriptions.push(Some(Description { noun, site, nth: *nth }));
        *nth += 1;
        self.locations.insert(key, location);
        location
    }

    /// The place of an object, unless it belongs to a thread.
    pub fn place(&self, location: u32) -> Option<P> {
        self.places.get(location as usize).copied().flatten().map(|(place, _)| place)
    }

    /// The thread whose life a location is.
    pub fn thread_of(&self, location: u32) -> Option<ThreadId> {
        let slot = location as usize;
        (slot < self.slots).then(|| ThreadId::new(slot))
    }

    /// The description of an object, unless it belongs to a thread.
    pub fn description(&self, location: u32) -> Option<Description> {
        self.descriptions.get(location as usize).copied().flatten()
    }

    /// The descriptions of all objects.
    pub fn descriptions(&self) -> impl Iterator<Item = Description> + '_ {
        self.descriptions.iter().flatten().copied()
    }

    /// The name of an object: what it is, the line where it was made, and as much more as
    /// distinguishes it from others. `resolve` finds the source position of a site.
    pub fn object(&self, location: u32, resolve: impl Fn(SiteId) -> Site) -> String {
        let at = location as usize;
        if at < self.slots {
            return self.thread(at);
        }
        if at < 2 * self.slots {
            return format!("token of {}", self.thread(at - self.slots));
        }
        let Some(Description { noun, site, nth }) = self.description(location) else {
            return format!("location {location}");
        };
        let position = resolve(site);
        let shares_line = self.descriptions().any(|other| {
            other.noun == noun && other.site != site && {
                let other = resolve(other.site);
                other.line == position.line
                    && other.column != position.column
                    && other.file == position.file
            }
        });
        let column = if shares_line { format!(":{}", position.column) } else { String::new() };
        let number = if nth == 0 { String::new() } else { format!("#{}", nth + 1) };
        format!("{noun}@{}{column}{number}", position.line)
    }
}
