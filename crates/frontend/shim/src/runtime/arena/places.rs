//! The places of a window's regions: where blocks are, and which place a thread's next block gets.
//!
//! A test allocates and frees a dozen blocks in an execution of a few microseconds, so nothing here
//! searches: a table maps an offset to its record, and freed places are linked lists within the
//! records. At the end of an execution the records are dropped and the table is left unchanged: an
//! entry is valid only if its record is at that offset.

use std::alloc::Layout;

use preempt_system::fingerprint::Mixer;
use preempt_system::{MAX_THREADS, ThreadId, ThreadSet};

use super::super::blocks::Block;
use super::parts::FIRST;
use super::{Freed, LARGEST, Use};

/// The number of size classes up to 1 KiB, by multiples of 16. Larger classes are powers of two.
pub(super) const FINE: usize = 64;

/// The class of places that are not reused.
pub(super) const UNIQUE: usize = FINE + 8;

/// The number of classes.
pub(crate) const CLASSES: usize = UNIQUE + 1;

/// Offsets of blocks are multiples of it.
pub(super) const GRAIN: usize = 16;

/// A place in a region: the region's slot, and the number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlaceId(u32);

impl PlaceId {
    /// The end of a list.
    const NONE: PlaceId = PlaceId(u32::MAX);
    /// Regions have at most 16 MiB, and two places in them are 32 bytes apart or more.
    const BITS: u32 = 24;

    fn new(slot: usize, number: usize) -> PlaceId {
        debug_assert!(slot < 1 << (u32::BITS - PlaceId::BITS) && number < 1 << PlaceId::BITS);
        PlaceId((slot << PlaceId::BITS | number) as u32)
    }

    pub(super) fn slot(self) -> usize {
        (self.0 >> PlaceId::BITS) as usize
    }

    fn number(self) -> usize {
        (self.0 & ((1 << PlaceId::BITS) - 1)) as usize
    }
}

/// A place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// The offset from the beginning of the execution's part of the region.
    pub(super) at: u32,
    /// The next place in the list of freed places.
    next: PlaceId,
    /// The current block at the place, or the last one.
    pub(super) block: Block,
    pub(super) state: Use,
    class: u8,
    /// Whether the block contains objects of the check.
    pub(super) holds_objects: bool,
}

impl Record {
    /// An unused record.
    const NONE: Record = Record {
        at: 0,
        next: PlaceId::NONE,
        block: Block { slot: 0, done: 0, size: 0, nth: 0 },
        state: Use::Reserved,
        class: 0,
        holds_objects: false,
    };
}

/// The blocks of a slot's region, sorted by their places.
#[derive(Debug)]
pub(super) struct Region {
    next: usize,
    /// The number of records that belong to the current execution.
    count: usize,
    records: Vec<Record>,
    /// For every [`GRAIN`] of the region, the number of the last record that began there.
    numbers: Vec<u32>,
}

/// All blocks of the current execution.
#[derive(Debug)]
pub(super) struct Blocks {
    /// The offset at which the current execution's part of each region begins.
    pub(super) start: usize,
    pub(super) live: isize,
    /// The slots whose regions or lists are not empty.
    touched: ThreadSet,
    /// The slots of which this was so in an earlier execution.
    used: ThreadSet,
    regions: [Region; MAX_THREADS],
    /// For each slot and class the place that the thread freed last.
    lists: [[List; CLASSES]; MAX_THREADS],
    /// The number of the present execution. Lists of others are empty: emptying all classes of all
    /// threads would take longer than most executions use their lists.
    execution: u32,
}

/// Places that a thread has freed, linked by [`Record::next`]: the first one, and the execution in
/// which it was put there.
#[derive(Clone, Copy, Debug)]
struct List {
    first: PlaceId,
    execution: u32,
}

impl List {
    const EMPTY: List = List { first: PlaceId::NONE, execution: 0 };

    #[inline(always)]
    fn first(self, execution: u32) -> PlaceId {
        if self.execution == execution { self.first } else { PlaceId::NONE }
    }

    /// Puts a place in front, and returns the one that was there.
    #[inline(always)]
    fn push(&mut self, place: PlaceId, execution: u32) -> PlaceId {
        std::mem::replace(self, List { first: place, execution }).first(execution)
    }
}

impl Default for Blocks {
    fn default() -> Blocks {
        let (regions, lists) =
            ([const { Region::EMPTY }; MAX_THREADS], [[List::EMPTY; CLASSES]; MAX_THREADS]);
        let (touched, used) = (ThreadSet::EMPTY, ThreadSet::EMPTY);
        Blocks { start: FIRST, live: 0, touched, used, regions, lists, execution: 1 }
    }
}

impl Blocks {
    /// A place for a block of this class: the one that the thread in this slot freed last, or else
    /// the next `room` bytes of its region, up to `end`. `None` if there is no room or the region's
    /// tables are full; then nothing is changed. The caller fills in the record.
    #[inline(always)]
    pub(super) fn take(
        &mut self,
        slot: usize,
        class: usize,
        (room, end): (usize, usize),
    ) -> Option<(PlaceId, &mut Record)> {
        let list = &mut self.lists[slot][class];
        let place = list.first(self.execution);
        if place != PlaceId::NONE {
            let record = &mut self.regions[place.slot()].records[place.number()];
            list.first = record.next;
            return Some((place, record));
        }
        let region = &mut self.regions[slot];
        let (at, number) = (region.next, region.count);
        if self.start + at + room > end {
            return None;
        }
        let record = region.records.get_mut(number)?;
        *region.numbers.get_mut(at / GRAIN)? = number as u32;
        (record.at, record.class) = (at as u32, class as u8);
        (region.next, region.count) = (at + room, number + 1);
        self.touched.insert(ThreadId::new(slot));
        Some((PlaceId::new(slot, number), record))
    }

    /// Like [`Blocks::take`], for a block of any size. `None` if it would not end before `end`.
    pub(super) fn place(
        &mut self,
        slot: usize,
        layout: Layout,
        end: usize,
    ) -> Option<(PlaceId, &mut Record)> {
        let class = class_of(layout);
        if self.lists[slot][class].first(self.execution) == PlaceId::NONE {
            let region = &mut self.regions[slot];
            region.next = region.next.next_multiple_of(layout.align().max(GRAIN));
            region.fit();
        }
        self.take(slot, class, (room_of(class, layout.size()), end))
    }

    /// Frees the block at this offset of a region, if there is one without objects of the check:
    /// the thread in `by.slot` can reuse the place. Returns the size; otherwise changes nothing.
    #[inline(always)]
    pub(super) fn free_plain(&mut self, slot: usize, offset: usize, by: Freed) -> Option<usize> {
        let Region { count, records, numbers, .. } = &mut self.regions[slot];
        let number = *numbers.get(offset / GRAIN)? as usize;
        let record = records.get_mut(number)?;
        let class = usize::from(record.class);
        let is_plain = record.state == Use::Live && !record.holds_objects && class < UNIQUE;
        if number >= *count || record.at as usize != offset || !is_plain {
            return None;
        }
        record.state = Use::Freed(by);
        let list = &mut self.lists[usize::from(by.slot)][class];
        record.next = list.push(PlaceId::new(slot, number), self.execution);
        self.touched.insert(ThreadId::new(by.slot.into()));
        self.live -= 1;
        Some(record.block.size)
    }

    /// The place that begins at this offset of a region, and its record.
    #[inline(always)]
    pub(super) fn at(&mut self, slot: usize, offset: usize) -> Option<(PlaceId, &mut Record)> {
        let Region { count, records, numbers, .. } = &mut self.regions[slot];
        let number = *numbers.get(offset / GRAIN)? as usize;
        let record = records.get_mut(number)?;
        (number < *count && record.at as usize == offset)
            .then(|| (PlaceId::new(slot, number), record))
    }

    /// The record of the block that contains this offset of a region.
    pub(super) fn find(&mut self, slot: usize, offset: usize) -> Option<&mut Record> {
        let region = &mut self.regions[slot];
        let records = &mut region.records[..region.count];
        let after = records.partition_point(|record| record.at as usize <= offset);
        records[..after]
            .last_mut()
            .filter(|record| offset - (record.at as usize) < record.block.size)
    }

    /// Adds a place to the list of freed places of the thread in this slot.
    #[inline(always)]
    pub(super) fn list(&mut self, slot: usize, place: PlaceId) {
        let record = &mut self.regions[place.slot()].records[place.number()];
        let class = usize::from(record.class);
        if class < UNIQUE {
            record.next = self.lists[slot][class].push(place, self.execution);
            self.touched.insert(ThreadId::new(slot));
        }
    }

    /// The records of all regions, with their slots.
    pub(super) fn records(&self) -> impl Iterator<Item = (usize, &Record)> {
        self.touched.iter().flat_map(|thread| {
            let region = &self.regions[thread.index()];
            region.records[..region.count].iter().map(move |record| (thread.index(), record))
        })
    }

    /// Adds the places of the next allocations to `mixer`.
    pub(super) fn absorb_places(&self, mixer: &mut Mixer) {
        for slot in self.touched.iter().map(ThreadId::index) {
            mixer.absorb(slot as u64);
            mixer.absorb(self.regions[slot].next as u64);
            for &list in &self.lists[slot] {
                let mut place = list.first(self.execution);
                while place != PlaceId::NONE {
                    mixer.absorb(place.0.into());
                    place = self.regions[place.slot()].records[place.number()].next;
                }
            }
        }
    }

    /// Removes all places.
    pub(super) fn clear(&mut self) {
        self.live = 0;
        self.used = self.used();
        for thread in std::mem::take(&mut self.touched).iter() {
            let region = &mut self.regions[thread.index()];
            (region.next, region.count) = (0, 0);
        }
        self.execution = self.execution.wrapping_add(1);
        if self.execution == 0 {
            // Numbers come again: no list may have one of them.
            self.lists = [[List::EMPTY; CLASSES]; MAX_THREADS];
            self.execution = 1;
        }
    }

    /// The slots whose regions have been used by any execution of the window.
    pub(super) fn used(&self) -> ThreadSet {
        ThreadSet::from_bits(self.used.bits() | self.touched.bits())
    }

    /// The largest number of bytes that is used in any region.
    pub(super) fn most(&self) -> usize {
        self.touched.iter().map(|thread| self.regions[thread.index()].next).max().unwrap_or(0)
    }
}

impl Region {
    const EMPTY: Region = Region { next: 0, count: 0, records: Vec::new(), numbers: Vec::new() };

    /// Extends the tables for one more place.
    fn fit(&mut self) {
        let enough = |needed: usize| needed.next_power_of_two().max(64);
        if self.count >= self.records.len() {
            self.records.resize(enough(self.count + 1), Record::NONE);
        }
        if self.next / GRAIN >= self.numbers.len() {
            self.numbers.resize(enough(self.next / GRAIN + 1), 0);
        }
    }
}

/// The size class of a block. Blocks of one class can reuse each other's places.
#[inline]
pub(crate) fn class_of(layout: Layout) -> usize {
    // Wraps to the largest number if the size is 0.
    let fine = layout.size().wrapping_sub(1) / GRAIN;
    if fine < FINE && layout.align() <= GRAIN { fine } else { coarse_class(layout) }
}

#[cold]
fn coarse_class(layout: Layout) -> usize {
    let size = layout.size().max(1);
    if layout.align() > GRAIN || size > LARGEST {
        UNIQUE
    } else if size <= GRAIN * FINE {
        size.div_ceil(GRAIN) - 1
    } else {
        FINE + size.next_power_of_two().ilog2() as usize - 11
    }
}

/// Like [`class_of`], for blocks of up to 1 KiB, which nearly all are; `None` for others.
#[inline(always)]
pub(super) fn fine_class_of(layout: Layout) -> Option<usize> {
    let last = layout.size().max(1) - 1;
    (layout.align() <= GRAIN && last < GRAIN * FINE).then_some(last / GRAIN)
}

/// The size of a place for a block of this size and class. One byte is added, so that the end of a
/// block is never the address of another one.
#[inline(always)]
pub(super) fn room_of(class: usize, size: usize) -> usize {
    if class < FINE {
        return GRAIN * (class + 2);
    }
    let largest = if class == UNIQUE { size } else { 1 << (class - FINE + 11) };
    (largest + 1).next_multiple_of(GRAIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: usize = 1 << 20;

    fn layout(size: usize) -> Layout {
        Layout::from_size_align(size, 8).expect("a small layout")
    }

    fn placed(blocks: &mut Blocks, slot: usize, size: usize) -> (PlaceId, usize) {
        let class = class_of(layout(size));
        let quick = blocks.take(slot, class, (room_of(class, size), SIZE)).map(|(place, _)| place);
        let place =
            quick.or_else(|| blocks.place(slot, layout(size), SIZE).map(|(place, _)| place));
        let place = place.expect("there is room");
        let record = &mut blocks.regions[place.slot()].records[place.number()];
        (record.block, record.state, record.holds_objects) =
            (Block { size, ..Block::default() }, Use::Live, false);
        (place, record.at as usize)
    }

    fn found(blocks: &mut Blocks, offset: usize) -> Option<PlaceId> {
        blocks.at(0, offset).map(|(place, _)| place)
    }

    #[test]
    fn every_size_fits_into_its_class() {
        for size in 0..=LARGEST {
            let class = class_of(layout(size));
            assert!(class < UNIQUE && room_of(class, size) > size, "{size}");
            assert_eq!(fine_class_of(layout(size)), (class < FINE).then_some(class), "{size}");
            assert!(
                class == 0 || room_of(class - 1, size) - GRAIN < size,
                "{size}: a smaller class would do"
            );
        }
        assert_eq!(class_of(layout(LARGEST + 1)), UNIQUE);
    }

    #[test]
    fn a_thread_gets_the_place_that_it_freed_last() {
        let mut blocks = Blocks::default();
        let places = [40, 33, 48, 64].map(|size| placed(&mut blocks, 0, size));
        // Another thread frees two of the same class, and one of another.
        [places[0], places[1], places[3]].iter().for_each(|(place, _)| blocks.list(1, *place));
        assert_eq!(placed(&mut blocks, 1, 48), places[1]);
        assert_eq!(placed(&mut blocks, 1, 48), places[0]);
        assert_eq!(placed(&mut blocks, 1, 48).0.slot(), 1);
        assert_eq!(placed(&mut blocks, 1, 64), places[3]);
        assert_eq!(placed(&mut blocks, 0, 40).0.slot(), 0);
    }

    #[test]
    fn places_of_the_execution_before_are_neither_found_nor_listed() {
        let mut blocks = Blocks::default();
        let first = [16, 100, 16].map(|size| placed(&mut blocks, 0, size));
        for (place, offset) in first {
            assert_eq!(found(&mut blocks, offset), Some(place));
            assert_eq!(found(&mut blocks, offset + GRAIN), None);
        }
        blocks.list(0, first[1].0);
        blocks.list(1, first[2].0);
        blocks.clear();
        assert_eq!(first.map(|(_, offset)| found(&mut blocks, offset)), [None; 3]);
        assert_eq!(placed(&mut blocks, 1, 16).0.slot(), 1);
        // The same records, but the second one has a larger block, so that the third one is
        // somewhere else.
        let again = [16, 200, 16].map(|size| placed(&mut blocks, 0, size));
        assert_eq!((again[0], again[1], again[2].0), (first[0], first[1], first[2].0));
        assert_eq!(
            first.map(|(_, offset)| found(&mut blocks, offset)),
            [Some(first[0].0), Some(first[1].0), None]
        );
    }

    #[test]
    fn only_plain_blocks_are_freed_without_further_ado() {
        let mut blocks = Blocks::default();
        let by = Freed { slot: 2, done: 7 };
        let [(plain, at), (_, met)] = [40, 40].map(|size| placed(&mut blocks, 0, size));
        let wide = Layout::from_size_align(40, 64).expect("a layout");
        let (place, record) = blocks.place(0, wide, SIZE).expect("there is room");
        (record.block.size, record.state, record.holds_objects) = (40, Use::Live, false);
        let unique = record.at as usize;
        blocks.find(0, met).expect("the block was added").holds_objects = true;
        for offset in [met, unique, at + GRAIN, 1 << 16] {
            assert_eq!(blocks.free_plain(0, offset, by), None, "{offset}");
        }
        assert_eq!(blocks.free_plain(0, at, by), Some(40));
        assert_eq!(blocks.free_plain(0, at, by), None, "twice");
        assert_eq!(blocks.find(0, at).expect("the block was added").state, Use::Freed(by));
        assert_eq!(placed(&mut blocks, 2, 40).0, plain);
        assert_ne!(place, plain);
        blocks.clear();
        assert_eq!(blocks.free_plain(0, at, by), None, "of an execution before");
    }
}
