//! The states that the prefixes of one vector have passed: CalcCV's test for cycles.
//!
//! One open-addressing table for all threads, emptied in constant time. It holds indices into the
//! vector's list of states, not states: a hit is confirmed by comparing the states themselves, so a
//! hash collision never counts as a cycle.

use preempt_system::ThreadId;

/// The table.
#[derive(Debug)]
pub(super) struct Passed {
    slots: Vec<Slot>,
    vector: u32,
    used: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    hash: u64,
    /// The vector that it belongs to. In any other the slot is free.
    vector: u32,
    /// The number of the state.
    state: u32,
}

impl Passed {
    pub(super) fn new() -> Passed {
        Passed { slots: vec![Slot::default(); 64], vector: 1, used: 0 }
    }

    /// Clears the table, in constant time except once in 2³² calls.
    pub(super) fn clear(&mut self) {
        self.used = 0;
        self.vector = self.vector.wrapping_add(1);
        if self.vector == 0 {
            self.slots.fill(Slot::default());
            self.vector = 1;
        }
    }

    /// The hash of a state in `thread`'s prefix: cycles of different threads are unrelated.
    #[inline(always)]
    pub(super) fn hash_for(thread: ThreadId, hash: u64) -> u64 {
        hash.wrapping_add(thread.index() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    /// Whether the table has a state with this hash for which `is` holds.
    #[inline(always)]
    pub(super) fn contains(&self, hash: u64, is: impl Fn(u32) -> bool) -> bool {
        let mut at = self.home(hash);
        loop {
            let slot = self.slots[at];
            if slot.vector != self.vector {
                return false;
            }
            if slot.hash == hash && is(slot.state) {
                return true;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    /// Adds a state.
    #[inline(always)]
    pub(super) fn insert(&mut self, hash: u64, state: u32) {
        if 2 * (self.used + 1) > self.slots.len() {
            self.widen();
        }
        self.used += 1;
        self.put(Slot { hash, vector: self.vector, state });
    }

    fn put(&mut self, slot: Slot) {
        let mut at = self.home(slot.hash);
        while self.slots[at].vector == self.vector {
            at = (at + 1) & (self.slots.len() - 1);
        }
        self.slots[at] = slot;
    }

    #[cold]
    fn widen(&mut self) {
        let old = std::mem::take(&mut self.slots);
        self.slots = vec![Slot::default(); 2 * old.len()];
        let vector = self.vector;
        old.into_iter().filter(|slot| slot.vector == vector).for_each(|slot| self.put(slot));
    }

    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.slots.len() - 1)
    }

    pub(super) fn bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_is_there_until_it_is_cleared() {
        let mut passed = Passed::new();
        for round in 0..3u64 {
            passed.clear();
            for state in 0..1_000u32 {
                let hash = Passed::hash_for(ThreadId::new(1), u64::from(state) * 7 + round);
                assert!(!passed.contains(hash, |_| true));
                passed.insert(hash, state);
                assert!(
                    passed.contains(hash, |there| there == state)
                        && !passed.contains(hash, |there| there != state)
                );
            }
        }
    }
}
