//! Names that do not depend on the schedule: slots of threads and locations of objects.
//!
//! A thread is identified by its creator and by how many threads the creator had created before.
//! Slots are in the order of these names ([`sorted`]), whichever execution shows a thread first, so
//! a search takes threads in the same order for any number of workers.
//!
//! An object is identified by its kind, its address, and how many objects of this kind existed
//! there before (its *life*). The executable is loaded at the same addresses in every execution,
//! and the runtime's allocator gives a thread with the same past the same addresses. With
//! `--allocator system`, other threads can change which addresses a thread gets. The same object
//! can then have two names, and a search explores two graphs where one would be enough.

use std::collections::HashMap;

use preempt_native_block::{ObjectKind, Slot};
use preempt_system::{Kind, Location, MAX_THREADS, ThreadId};

use crate::executable::Harness;

/// The identity of an object in every execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ObjectName {
    pub(crate) kind: ObjectKind,
    pub(crate) address: u64,
    /// The parameter of its kind, such as the initial count of a semaphore.
    pub(crate) parameter: u32,
    /// The number of earlier objects of this kind at the same address.
    pub(crate) life: u32,
}

impl ObjectName {
    /// The semantics of the object. An atomic variable has none here, because its value is in the
    /// program's memory.
    fn semantics(self) -> Option<Kind> {
        match self.kind {
            ObjectKind::Mutex | ObjectKind::Once => Some(Kind::Mutex),
            ObjectKind::RwLock => Some(Kind::RwLock),
            ObjectKind::Condvar | ObjectKind::Futex => Some(Kind::Condvar),
            ObjectKind::Semaphore => Some(Kind::Semaphore { initial: self.parameter }),
            ObjectKind::Barrier => Some(Kind::Barrier { parties: self.parameter }),
            ObjectKind::Atomic => None,
        }
    }

    /// The noun for its kind in reports.
    pub(crate) fn noun(self) -> &'static str {
        match self.kind {
            ObjectKind::Mutex => "mutex",
            ObjectKind::RwLock => "rwlock",
            ObjectKind::Condvar => "condvar",
            ObjectKind::Semaphore => "semaphore",
            ObjectKind::Barrier => "barrier",
            ObjectKind::Once => "once",
            ObjectKind::Futex => "futex",
            ObjectKind::Atomic => "atomic",
        }
    }
}

/// All names of a search. Locations are numbered in this order: one for each thread slot (start,
/// end and join), [`PROCESS`], [`ENDS`], [`DESCRIPTORS`], then the objects.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// The identities of all threads except the main thread, which has slot 0.
    pub(crate) slots: Vec<Slot>,
    harness: Harness,
    locations: HashMap<ObjectName, u32>,
    /// All objects, in the order of their locations.
    objects: Vec<ObjectName>,
    /// For every location, its semantics and the index of its first field.
    kinds: Vec<Option<(Kind, usize)>>,
    /// The initial fields of all objects.
    initial: Vec<u64>,
    /// Atomic variables by the aligned 16 bytes in which they lie: offsets and sizes.
    atomics: HashMap<u64, Vec<(u8, u8)>>,
    /// The aligned 16 bytes in which atomic variables overlap: see [`Names::locate_atomic`].
    mixed: Vec<u64>,
}

/// The location of the process: see [`crate::state`].
pub(crate) const PROCESS: u32 = MAX_THREADS as u32;

/// The location of the ends of threads: see [`crate::state`].
pub(crate) const ENDS: u32 = PROCESS + 1;

/// The location of all descriptors: see [`crate::state`].
pub(crate) const DESCRIPTORS: u32 = ENDS + 1;

/// The location of the first object.
pub(crate) const FIRST_OBJECT: u32 = DESCRIPTORS + 1;

/// Stands for the location of an object that an operation does not have.
pub(crate) const NOTHING: u32 = u32::MAX;

impl Names {
    /// The names of the threads in `slots`, besides the main thread, and of no objects.
    pub(crate) fn new(harness: Harness, slots: Vec<Slot>) -> Names {
        let mut names = Names { harness, slots, ..Names::default() };
        for _ in 0..MAX_THREADS {
            names.add(Some(Kind::Thread));
        }
        (PROCESS..FIRST_OBJECT).for_each(|_| _ = names.add(None));
        names
    }

    /// Sets the aligned 16 bytes that have one location each, because the program accesses them by
    /// atomic operations of different sizes.
    pub(crate) fn with_mixed(self, mixed: Vec<u64>) -> Names {
        Names { mixed, ..self }
    }

    fn add(&mut self, kind: Option<Kind>) -> u32 {
        let at = self.initial.len();
        if let Some(kind) = kind {
            self.initial.extend((0..kind.fields()).map(|field| kind.initial(field)));
        }
        self.kinds.push(kind.map(|kind| (kind, at)));
        self.kinds.len() as u32 - 1
    }

    /// The location of an object; a new one if the object is new.
    pub(crate) fn locate(&mut self, name: ObjectName) -> u32 {
        if let Some(&location) = self.locations.get(&name) {
            return location;
        }
        let location = self.add(name.semantics());
        self.objects.push(name);
        self.locations.insert(name, location);
        location
    }

    /// The location of the atomic variable of `size` bytes at `address`.
    ///
    /// Operations on overlapping variables must be dependent. Variables that begin at the same
    /// address have one location anyway. If others overlap, all variables in the same aligned 16
    /// bytes must share a location. They had separate ones in earlier executions, so `Err` returns
    /// the address of these bytes, and the search restarts with it.
    pub(crate) fn locate_atomic(&mut self, address: u64, size: u8) -> Result<u32, u64> {
        let (range, offset) = (address & !15, (address & 15) as u8);
        let atomic =
            |address| ObjectName { kind: ObjectKind::Atomic, address, parameter: 0, life: 0 };
        if self.mixed.contains(&range) {
            return Ok(self.locate(atomic(range)));
        }
        let known = self.atomics.entry(range).or_default();
        match known.iter_mut().find(|(other, _)| *other == offset) {
            Some((_, largest)) => *largest = size.max(*largest),
            None => known.push((offset, size)),
        }
        let overlaps = |&(other, largest): &(u8, u8)| {
            other != offset && other < offset + size && offset < other + largest
        };
        if known.iter().any(overlaps) {
            return Err(range);
        }
        Ok(self.locate(atomic(address)))
    }

    /// All atomic variables: their addresses and sizes.
    pub(crate) fn atomics(&self) -> Vec<(u64, u8)> {
        let all = self.atomics.iter().flat_map(|(&range, known)| {
            known.iter().map(move |&(offset, size)| (range + u64::from(offset), size))
        });
        let mut all: Vec<(u64, u8)> = all.collect();
        all.sort_unstable();
        all
    }

    /// The size of the atomic variable at an address.
    pub(crate) fn atomic_size(&self, address: u64) -> Option<u8> {
        let known = self.atomics.get(&(address & !15))?;
        known.iter().find(|(offset, _)| u64::from(*offset) == address & 15).map(|&(_, size)| size)
    }

    /// The object at a location; `None` for threads and other locations without an object.
    pub(crate) fn object(&self, location: u32) -> Option<ObjectName> {
        let nth = (location as usize).checked_sub(FIRST_OBJECT as usize)?;
        self.objects.get(nth).copied()
    }

    /// All objects, in the order of their locations.
    pub(crate) fn objects(&self) -> &[ObjectName] {
        &self.objects
    }

    /// The thread to which a location belongs, if it is that of a thread.
    pub(crate) fn thread(location: Location) -> Option<ThreadId> {
        let slot = location.0 as usize;
        (slot < MAX_THREADS).then(|| ThreadId::new(slot))
    }

    /// The semantics of an object, and the index of its first field.
    pub(crate) fn kind(&self, location: u32) -> (Kind, usize) {
        self.kinds[location as usize].expect("only objects with semantics are acted on")
    }

    /// The initial fields of all objects.
    pub(crate) fn initial(&self) -> &[u64] {
        &self.initial
    }

    /// The semantics of an object and its fields in a state, if it has fields.
    pub(crate) fn fields<'a>(&self, location: u32, cells: &'a [u64]) -> Option<(Kind, &'a [u64])> {
        let (kind, at) = (*self.kinds.get(location as usize)?)?;
        Some((kind, cells.get(at..at + kind.fields())?))
    }

    /// The name of a thread: `main`, `t2`, `t2.1`. In a libtest program, numbering starts at the
    /// thread that runs the test: `test`, `t1`.
    pub(crate) fn thread_name(&self, slot: usize) -> String {
        let slot_of = |slot: usize| slot.checked_sub(1).and_then(|nth| self.slots.get(nth));
        match (slot_of(slot), self.harness) {
            (None, Harness::Program | Harness::Other) => "main".to_owned(),
            (None, Harness::Libtest) => "libtest".to_owned(),
            (Some(&Slot { creator: 0, nth: 0 }), Harness::Libtest) => "test".to_owned(),
            (Some(&Slot { creator, nth }), harness) => {
                let root = u32::from(harness == Harness::Libtest);
                match creator == root {
                    true => format!("t{}", nth + 1),
                    false => format!("{}.{}", self.thread_name(creator as usize), nth + 1),
                }
            }
        }
    }
}

/// Sorts threads into the order of slots. Returns `None` if they are in that order already. A
/// thread comes after its creator and after all threads with shorter names; threads with names of
/// the same length are in the order of their creation.
pub(crate) fn sorted(slots: &[Slot]) -> Option<Vec<Slot>> {
    let name = |mut at: usize| {
        let mut name = Vec::new();
        while let Some(slot) = at.checked_sub(1).map(|nth| slots[nth]) {
            name.push(slot.nth);
            at = slot.creator as usize;
        }
        name.reverse();
        (name.len(), name)
    };
    let mut order: Vec<usize> = (1..=slots.len()).collect();
    if order.is_sorted_by_key(|&at| name(at)) {
        return None;
    }
    order.sort_by_cached_key(|&at| name(at));
    let new_slot = |creator: u32| match creator {
        0 => 0,
        _ => 1 + order.iter().position(|&at| at == creator as usize).expect("creators have slots"),
    };
    let renumber =
        |&at: &usize| Slot { creator: new_slot(slots[at - 1].creator) as u32, ..slots[at - 1] };
    Some(order.iter().map(renumber).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_keep_their_locations_and_a_new_life_is_another_object() {
        let mut names = Names::new(Harness::Program, Vec::new());
        let mutex = ObjectName { kind: ObjectKind::Mutex, address: 0x1000, parameter: 0, life: 0 };
        let first = names.locate(mutex);
        let condvar = names.locate(ObjectName { kind: ObjectKind::Condvar, ..mutex });
        let second = names.locate(ObjectName { life: 1, ..mutex });
        assert_eq!([first, condvar, second], [FIRST_OBJECT, FIRST_OBJECT + 1, FIRST_OBJECT + 2]);
        assert_eq!(names.locate(mutex), first);
        assert_eq!(names.object(second), Some(ObjectName { life: 1, ..mutex }));
        assert_eq!([PROCESS, ENDS].map(|location| names.object(location)), [None, None]);
        assert_eq!(names.kind(first).0, Kind::Mutex);
    }

    #[test]
    fn atomics_that_overlap_share_a_location() {
        let mut names = Names::new(Harness::Program, Vec::new());
        let low = names.locate_atomic(0x1000, 4);
        assert_eq!(
            names.locate_atomic(0x1004, 4),
            Ok(FIRST_OBJECT + 1),
            "neighbours are two objects"
        );
        assert_eq!(names.locate_atomic(0x1010, 8), Ok(FIRST_OBJECT + 2));
        assert_eq!(names.locate_atomic(0x1010, 4), Ok(FIRST_OBJECT + 2), "the same first byte");
        assert_eq!(names.locate_atomic(0x1000, 8), Err(0x1000), "it covers the neighbour");
        assert_eq!(low, Ok(FIRST_OBJECT));
        let mut names = Names::new(Harness::Program, Vec::new()).with_mixed(vec![0x1000]);
        let all = [(0x1000, 8), (0x1004, 4), (0x1008, 8)].map(|(a, s)| names.locate_atomic(a, s));
        assert_eq!(all, [Ok(FIRST_OBJECT); 3]);
        assert_eq!(names.locate_atomic(0x1010, 4), Ok(FIRST_OBJECT + 1));
    }

    #[test]
    fn threads_are_named_after_their_creators() {
        let slots = [(0, 0), (0, 1), (2, 0)].map(|(creator, nth)| Slot { creator, nth });
        let all = |harness| -> Vec<String> {
            let names = Names::new(harness, slots.to_vec());
            (0..4).map(|slot| names.thread_name(slot)).collect()
        };
        assert_eq!(all(Harness::Program), ["main", "t1", "t2", "t2.1"]);
        let slots = [(0, 0), (1, 0), (2, 0)].map(|(creator, nth)| Slot { creator, nth });
        let names = Names::new(Harness::Libtest, slots.to_vec());
        let all: Vec<String> = (0..4).map(|slot| names.thread_name(slot)).collect();
        assert_eq!(all, ["libtest", "test", "t1", "t1.1"]);
    }

    #[test]
    fn slots_do_not_depend_on_which_thread_was_seen_first() {
        let slot = |(creator, nth)| Slot { creator, nth };
        // t1, t1.1, t1.1.1, t2 in the order in which an execution creates them, and sorted.
        let created = [(0, 0), (1, 0), (2, 0), (0, 1)].map(slot);
        let order = [(0, 0), (0, 1), (1, 0), (3, 0)].map(slot);
        assert_eq!(sorted(&created), Some(order.to_vec()));
        assert_eq!(sorted(&order), None);
        let names = |slots: &[Slot]| {
            let names = Names::new(Harness::Program, slots.to_vec());
            (1..=slots.len()).map(|slot| names.thread_name(slot)).collect::<Vec<_>>()
        };
        assert_eq!(names(&created), ["t1", "t1.1", "t1.1.1", "t2"]);
        assert_eq!(names(&order), ["t1", "t2", "t1.1", "t1.1.1"]);
    }
}
