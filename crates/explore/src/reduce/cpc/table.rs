//! The table of the search: states together with the phases of their threads, each with the flags
//! that the stack sees too.
//!
//! The paper's table and stack share their records, so that a flag set late is seen whenever the
//! state is reached afterwards. Here a record is a number: keys and flags lie in the order in which
//! states were found, and a stack entry is such a number. Slots of 64 bits, half hash and half
//! number, map a key to its record.

use preempt_system::ThreadId;

use crate::codec::{Damaged, Reader, Save, Writer};
use crate::engine::store::StoreFull;
use crate::engine::store::hash::hash;

/// The index of a state in the table.
pub(super) type Record = u32;

/// A path of left movers of the record's thread leads to a state in which all threads are
/// scheduled: the paper's CPC.
const COMPLETE: u8 = 1;
/// The record is on the stack.
const ON_STACK: u8 = 2;
/// Above these two flags is the thread that moves there, or moved there last.
const THREAD: u32 = 2;

/// The table. Keys have `W` words, any number if `W` is 0; the last word holds the phases.
pub(super) struct Table<const W: usize> {
    words: usize,
    keys: Vec<u64>,
    flags: Vec<u8>,
    /// 0 if empty, else the upper half of the hash and the record's number plus 1.
    slots: Vec<u64>,
}

/// Slots of an empty table; a power of two.
const FEWEST_SLOTS: usize = 1 << 10;

impl<const W: usize> Table<W> {
    /// An empty table for keys of `words` words.
    pub(super) fn new(words: usize) -> Table<W> {
        debug_assert!(words >= 2 && (W == 0 || W == words), "the width fits");
        Table { words, keys: Vec::new(), flags: Vec::new(), slots: vec![0; FEWEST_SLOTS] }
    }

    /// Whether the keys have `words` words.
    pub(super) fn has_width(&self, words: usize) -> bool {
        self.words == words
    }

    #[inline(always)]
    fn words(&self) -> usize {
        if W == 0 { self.words } else { W }
    }

    /// The number of states.
    pub(super) fn len(&self) -> u64 {
        self.flags.len() as u64
    }

    /// A state and its phases.
    #[inline(always)]
    pub(super) fn key(&self, record: Record) -> &[u64] {
        &self.keys[record as usize * self.words()..][..self.words()]
    }

    /// Whether a thread is in the right mover part of its transaction.
    #[inline(always)]
    pub(super) fn phase(&self, record: Record, thread: ThreadId) -> bool {
        self.key(record)[self.words() - 1] >> thread.index() & 1 == 1
    }

    /// The record of a key, and whether it is new.
    #[inline(always)]
    pub(super) fn insert(&mut self, key: &[u64]) -> Result<(Record, bool), StoreFull> {
        let hash = hash::<W>(key);
        let (mask, tag) = (self.slots.len() - 1, hash >> 32);
        let mut at = hash as usize & mask;
        while self.slots[at] != 0 {
            let record = (self.slots[at] as u32).wrapping_sub(1);
            if self.slots[at] >> 32 == tag && self.key(record) == key {
                return Ok((record, false));
            }
            at = (at + 1) & mask;
        }
        let record = self.append(key)?;
        self.slots[at] = tag << 32 | u64::from(record + 1);
        if self.flags.len() * 4 > self.slots.len() * 3 {
            self.grow()?;
        }
        Ok((record, true))
    }

    #[inline(always)]
    fn append(&mut self, key: &[u64]) -> Result<Record, StoreFull> {
        let record = self.flags.len();
        if self.flags.capacity() == record || self.keys.capacity() < self.keys.len() + key.len() {
            self.flags.try_reserve(1).map_err(|_| StoreFull)?;
            self.keys.try_reserve(key.len()).map_err(|_| StoreFull)?;
        }
        self.keys.extend_from_slice(key);
        self.flags.push(0);
        // One number is lost, since slots keep the number plus 1.
        Record::try_from(record).ok().filter(|&record| record < Record::MAX).ok_or(StoreFull)
    }

    #[cold]
    fn grow(&mut self) -> Result<(), StoreFull> {
        let capacity = 2 * self.slots.len();
        // The slots can be rebuilt from the keys, so the old ones are freed before the new ones are
        // allocated.
        self.slots = Vec::new();
        let mut slots = Vec::new();
        slots.try_reserve_exact(capacity).map_err(|_| StoreFull)?;
        slots.resize(capacity, 0);
        for (number, key) in (1u64..).zip(self.keys.chunks_exact(self.words())) {
            let hash = hash::<W>(key);
            let mut at = hash as usize & (capacity - 1);
            while slots[at] != 0 {
                at = (at + 1) & (capacity - 1);
            }
            slots[at] = hash >> 32 << 32 | number;
        }
        self.slots = slots;
        Ok(())
    }

    /// Whether the record is complete: the paper's CPC.
    #[inline(always)]
    pub(super) fn is_complete(&self, record: Record) -> bool {
        self.flags[record as usize] & COMPLETE != 0
    }

    #[inline(always)]
    pub(super) fn complete(&mut self, record: Record) {
        self.flags[record as usize] |= COMPLETE;
    }

    /// Whether the record is on the stack.
    #[inline(always)]
    pub(super) fn is_on_stack(&self, record: Record) -> bool {
        self.flags[record as usize] & ON_STACK != 0
    }

    /// The record is on the stack, and `thread` moves from there.
    #[inline(always)]
    pub(super) fn enter_stack(&mut self, record: Record, thread: ThreadId) {
        let flags = &mut self.flags[record as usize];
        *flags = *flags & COMPLETE | ON_STACK | (thread.index() as u8) << THREAD;
    }

    /// The thread that moves from the record, or moved from it last: the paper's tid.
    pub(super) fn thread(&self, record: Record) -> ThreadId {
        ThreadId::new(usize::from(self.flags[record as usize] >> THREAD))
    }

    #[inline(always)]
    pub(super) fn leave_stack(&mut self, record: Record) {
        self.flags[record as usize] &= !ON_STACK;
    }

    /// The memory of the table.
    pub(super) fn bytes(&self) -> usize {
        8 * (self.keys.capacity() + self.slots.len()) + self.flags.capacity()
    }
}

/// The records in their order. A table that was read has grown as the one that was written.
impl<const W: usize> Save for Table<W> {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.words);
        to.words(&self.keys);
        self.flags.iter().for_each(|flags| to.put(flags));
    }

    fn load(from: &mut Reader) -> Result<Table<W>, Damaged> {
        let (words, keys): (usize, _) = (from.get()?, from.words()?);
        if words < 2 || W > 0 && W != words || keys.len() % words != 0 {
            return Err(Damaged);
        }
        let mut table = Table::new(words);
        for key in keys.chunks_exact(words) {
            if !table.insert(key)?.1 {
                return Err(Damaged);
            }
        }
        for flags in &mut table.flags {
            *flags = from.get()?;
        }
        Ok(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_record_however_large_the_table_grows() {
        let mut table = Table::<2>::new(2);
        for round in 0..2 {
            for i in 0..20_000u64 {
                let (record, fresh) = table.insert(&[i << 1 | 1, i % 3]).expect("there is memory");
                assert_eq!((u64::from(record), fresh), (i, round == 0));
            }
        }
        assert_eq!((table.len(), table.key(7)), (20_000, &[15, 1][..]));
        assert!(table.phase(7, ThreadId::new(0)) && !table.phase(7, ThreadId::new(1)));
    }

    #[test]
    fn flags_are_those_of_the_record() {
        let mut table = Table::<0>::new(5);
        let (a, _) = table.insert(&[1, 0, 0, 0, 0]).expect("there is memory");
        let (b, _) = table.insert(&[1, 0, 0, 0, 1]).expect("there is memory");
        table.complete(a);
        table.enter_stack(a, ThreadId::new(63));
        table.enter_stack(b, ThreadId::new(1));
        table.leave_stack(a);
        assert_eq!((table.is_complete(a), table.is_on_stack(a)), (true, false));
        assert_eq!((table.is_complete(b), table.is_on_stack(b)), (false, true));
        assert_eq!((table.thread(a).index(), table.thread(b).index()), (63, 1));
    }
}
