//! Sequential consistency: one value per location.

use std::sync::atomic::Ordering;

use super::{Memory, MemoryModel};
use crate::thread::ThreadId;

/// Sequentially consistent memory. A load has one candidate, the newest store, and orderings and
/// fences have no effect.
#[derive(Clone, Debug, Default)]
pub struct Sc {
    values: Vec<Option<u64>>,
}

impl Sc {
    #[inline]
    fn value(&self, location: u32) -> u64 {
        let value = self.latest(location);
        value.expect("a location is initialised before it is accessed")
    }
}

impl Memory for Sc {
    const MODEL: MemoryModel = MemoryModel::Sc;

    fn clear(&mut self) {
        self.values.clear();
    }

    #[inline]
    fn initialise(&mut self, location: u32, value: u64) {
        let at = location as usize;
        if self.values.len() <= at {
            self.values.resize(at + 1, None);
        }
        self.values[at] = Some(value);
    }

    #[inline]
    fn latest(&self, location: u32) -> Option<u64> {
        self.values.get(location as usize).copied().flatten()
    }

    #[inline]
    fn candidates(&self, _thread: ThreadId, _location: u32, _order: Ordering) -> u32 {
        1
    }

    #[inline]
    fn load(&mut self, thread: ThreadId, location: u32, order: Ordering, candidate: u32) -> u64 {
        debug_assert!(
            candidate < self.candidates(thread, location, order),
            "a load reads one of its candidates"
        );
        self.value(location)
    }

    #[inline]
    fn store(&mut self, _thread: ThreadId, location: u32, value: u64, _order: Ordering) {
        self.initialise(location, value);
    }

    #[inline]
    fn update(
        &mut self,
        thread: ThreadId,
        location: u32,
        (success, _failure): (Ordering, Ordering),
        candidate: u32,
        new: impl FnOnce(u64) -> Option<u64>,
    ) -> u64 {
        let old = self.load(thread, location, success, candidate);
        if let Some(new) = new(old) {
            self.store(thread, location, new, success);
        }
        old
    }

    #[inline]
    fn fence(&mut self, _thread: ThreadId, _order: Ordering) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: ThreadId = ThreadId::new(0);

    #[test]
    fn a_load_reads_the_last_store_whatever_its_ordering() {
        let mut memory = Sc::default();
        memory.initialise(3, 7);
        assert_eq!((memory.latest(3), memory.latest(0), memory.latest(9)), (Some(7), None, None));
        memory.store(THREAD, 3, 8, Ordering::Relaxed);
        memory.fence(THREAD, Ordering::SeqCst);
        let other = ThreadId::new(5);
        for order in [Ordering::Relaxed, Ordering::Acquire, Ordering::SeqCst] {
            assert_eq!(memory.candidates(other, 3, order), 1);
            assert_eq!(memory.load(other, 3, order, 0), 8);
        }
        memory.clear();
        assert_eq!(memory.latest(3), None);
    }

    #[test]
    fn an_update_that_declines_only_reads() {
        let mut memory = Sc::default();
        memory.initialise(0, 1);
        let orders = (Ordering::AcqRel, Ordering::Relaxed);
        assert_eq!(memory.update(THREAD, 0, orders, 0, |_| None), 1);
        assert_eq!(memory.update(THREAD, 0, orders, 0, |old| Some(old + 4)), 1);
        assert_eq!(memory.latest(0), Some(5));
    }
}
