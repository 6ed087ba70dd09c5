//! Sequential consistency: one value per location.

use std::sync::atomic::Ordering;

use smallvec::smallvec;

use super::{Alternatives, Memory, MemoryAccess, MemoryModel};
use crate::sync_clocks::SyncClocks;
use crate::thread::ThreadId;

/// Sequentially consistent memory. A load reads the newest store, and orderings and fences have no
/// effect.
#[derive(Clone, Debug, Default)]
pub struct Sc {
    values: Vec<Option<u64>>,
}

impl Sc {
    /// The value of a location, which is initialised before it is accessed.
    #[inline]
    fn value(&mut self, location: u32) -> &mut u64 {
        let value = self.values.get_mut(location as usize).and_then(Option::as_mut);
        value.expect("a location is initialised before it is accessed")
    }

    #[cold]
    fn append(&mut self, location: u32, value: u64) {
        self.values.resize(location as usize, None);
        self.values.push(Some(value));
    }
}

impl Memory for Sc {
    const MODEL: MemoryModel = MemoryModel::Sc;

    fn clear(&mut self) {
        self.values.clear();
    }

    #[inline]
    fn initialise(&mut self, location: u32, value: u64) {
        match self.values.get_mut(location as usize) {
            Some(known) => *known = Some(value),
            None => self.append(location, value),
        }
    }

    #[inline]
    fn latest(&self, location: u32) -> Option<u64> {
        self.values.get(location as usize).copied().flatten()
    }

    #[inline]
    fn alternatives(
        &self,
        _clocks: &SyncClocks,
        _thread: ThreadId,
        _location: u32,
        _access: MemoryAccess,
    ) -> Alternatives {
        smallvec![0]
    }

    #[inline]
    fn load(
        &mut self,
        _clocks: &mut SyncClocks,
        _thread: ThreadId,
        location: u32,
        _order: Ordering,
        alternative: u32,
    ) -> u64 {
        debug_assert_eq!(alternative, 0, "a load reads the newest store");
        *self.value(location)
    }

    #[inline]
    fn store(
        &mut self,
        _clocks: &mut SyncClocks,
        _thread: ThreadId,
        location: u32,
        value: u64,
        _order: Ordering,
        alternative: u32,
    ) {
        debug_assert_eq!(alternative, 0, "a store is the newest one");
        *self.value(location) = value;
    }

    #[inline]
    fn update(
        &mut self,
        _clocks: &mut SyncClocks,
        _thread: ThreadId,
        location: u32,
        _orders: (Ordering, Ordering),
        alternative: u32,
        new: impl FnOnce(u64) -> Option<u64>,
    ) -> u64 {
        debug_assert_eq!(alternative, 0, "an update reads the newest store");
        let value = self.value(location);
        let old = *value;
        if let Some(new) = new(old) {
            *value = new;
        }
        old
    }

    #[inline]
    fn fence(&mut self, _clocks: &mut SyncClocks, _thread: ThreadId, _order: Ordering) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: ThreadId = ThreadId::new(0);

    #[test]
    fn a_load_reads_the_last_store_whatever_its_ordering() {
        let (mut memory, mut clocks) = (Sc::default(), SyncClocks::new());
        memory.initialise(3, 7);
        assert_eq!((memory.latest(3), memory.latest(0), memory.latest(9)), (Some(7), None, None));
        memory.store(&mut clocks, THREAD, 3, 8, Ordering::Relaxed, 0);
        memory.fence(&mut clocks, THREAD, Ordering::SeqCst);
        let other = ThreadId::new(5);
        for order in [Ordering::Relaxed, Ordering::Acquire, Ordering::SeqCst] {
            let access = MemoryAccess::Load(order);
            assert_eq!(memory.alternatives(&clocks, other, 3, access)[..], [0]);
            assert_eq!(memory.load(&mut clocks, other, 3, order, 0), 8);
        }
        memory.clear();
        assert_eq!(memory.latest(3), None);
    }

    #[test]
    fn an_update_that_declines_only_reads() {
        let (mut memory, mut clocks) = (Sc::default(), SyncClocks::new());
        memory.initialise(0, 1);
        let orders = (Ordering::AcqRel, Ordering::Relaxed);
        assert_eq!(memory.update(&mut clocks, THREAD, 0, orders, 0, |_| None), 1);
        let add = |old| Some(old + 4);
        assert_eq!(memory.update(&mut clocks, THREAD, 0, orders, 0, add), 1);
        assert_eq!(memory.latest(0), Some(5));
    }
}
