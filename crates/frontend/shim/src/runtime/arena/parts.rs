//! The parts of a window that executions have left behind: which blocks are still there.
//!
//! An execution whose blocks were not all freed leaves a *part*: the pages that it used in each
//! region. The part lasts until its last block is freed. The part of an execution that could not
//! end is also released once nothing refers to it ([`reclaim`](super::reclaim)).

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use preempt_system::ThreadSet;

use super::PAGE;

/// The offset at which the first execution of a window begins. Not 0: the address of the window
/// itself is in variables of the runtime, and must not look like a reference to a block.
pub(super) const FIRST: usize = PAGE;

/// The bytes in all parts of executions that could not end.
pub(super) static RETAINED: AtomicUsize = AtomicUsize::new(0);

/// The pages of an execution in which blocks are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// The offsets in every region, multiples of [`PAGE`].
    pub(super) start: usize,
    pub(super) end: usize,
    /// The slots in whose regions there may be pages. Earlier executions that began at the same
    /// offset may have used more slots than the one that has left blocks.
    pub(super) regions: ThreadSet,
    /// The blocks that were not freed.
    pub(super) live: isize,
    /// Whether the execution could not end, and the part is released when nothing refers to it.
    pub(super) abandoned: bool,
    /// The number of scans in a row that have found no reference to it.
    pub(super) unreferenced: u8,
}

impl Part {
    /// The size of its pages, or more.
    pub(super) fn size(&self) -> usize {
        (self.end - self.start) * self.regions.len()
    }

    /// The bytes that count in [`RETAINED`].
    fn retained(&self) -> usize {
        if self.abandoned { self.size() } else { 0 }
    }
}

/// The parts of a window.
#[derive(Debug)]
pub(super) struct Parts {
    /// Sorted by their offsets, without overlaps.
    all: Vec<Part>,
    /// The offset at which the current execution begins.
    start: usize,
    /// Blocks of the current execution that other OS threads have freed. Only the window's owner
    /// uses the records of these blocks, so the owner subtracts them when the execution ends.
    freed_by_others: isize,
}

impl Default for Parts {
    fn default() -> Parts {
        Parts { all: Vec::new(), start: FIRST, freed_by_others: 0 }
    }
}

impl Parts {
    pub(super) fn all(&self) -> &[Part] {
        &self.all
    }

    /// Begins an execution after the last part. Returns the offset.
    pub(super) fn begin(&mut self) -> usize {
        self.start = self.all.last().map_or(FIRST, |part| part.end);
        self.start
    }

    /// Ends the current execution, which has used `size` bytes of each region. `live` blocks of it
    /// were not freed by its own OS thread.
    pub(super) fn end(&mut self, live: isize, size: usize, regions: ThreadSet, abandoned: bool) {
        let live = live - std::mem::take(&mut self.freed_by_others);
        if live <= 0 || size == 0 {
            return;
        }
        let (start, end) = (self.start, self.start + size.next_multiple_of(PAGE));
        let part = Part { start, end, regions, live, abandoned, unreferenced: 0 };
        RETAINED.fetch_add(part.retained(), Relaxed);
        self.all.push(part);
        self.start = end;
    }

    /// Code other than the current execution frees the block at this offset of a region. `release`
    /// is called with its part if the block was the last one there.
    pub(super) fn free(&mut self, offset: usize, release: impl FnOnce(&Part)) {
        if offset >= self.start {
            self.freed_by_others += 1;
            return;
        }
        let at = self.all.partition_point(|part| part.end <= offset);
        let Some(part) = self.all.get_mut(at).filter(|part| part.start <= offset) else { return };
        part.live -= 1;
        if part.live == 0 {
            release(&self.all.remove(at).removed());
        }
    }

    /// Records the result of a scan for the abandoned parts that are `known` to it, by their
    /// beginnings and whether there is a reference. `release` is called with each part that
    /// `scans` scans in a row have found without one.
    pub(super) fn note_scan(
        &mut self,
        known: &[(usize, bool)],
        scans: u8,
        mut release: impl FnMut(&Part),
    ) {
        let found = |part: &Part| {
            let at = known.binary_search_by_key(&part.start, |&(start, _)| start).ok()?;
            Some(known[at].1)
        };
        self.all.retain_mut(|part| {
            match found(part).filter(|_| part.abandoned) {
                Some(true) => part.unreferenced = 0,
                Some(false) => part.unreferenced += 1,
                None => {}
            }
            let keep = part.unreferenced < scans;
            if !keep {
                release(&part.removed());
            }
            keep
        });
    }
}

impl Part {
    /// Subtracts it from [`RETAINED`].
    fn removed(&self) -> Part {
        RETAINED.fetch_sub(self.retained(), Relaxed);
        *self
    }
}

/// Locks the parts of a window. No block of a window is allocated or freed while they are locked.
pub(super) fn lock(parts: &Mutex<Parts>) -> MutexGuard<'_, Parts> {
    parts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn regions() -> ThreadSet {
        ThreadSet::first(2)
    }

    #[test]
    fn a_part_lasts_until_its_last_block_is_freed() {
        let mut parts = Parts::default();
        assert_eq!(parts.begin(), FIRST);
        parts.end(2, 100, regions(), false);
        assert_eq!(parts.begin(), FIRST + PAGE);
        parts.end(1, PAGE + 1, regions(), false);
        assert_eq!(parts.begin(), FIRST + 3 * PAGE);
        let never = |_: &Part| panic!("blocks are left");
        parts.free(FIRST + 16, never);
        let mut released = Vec::new();
        parts.free(FIRST + 32, |part| released.push(*part));
        assert_eq!(released.iter().map(Part::size).collect::<Vec<_>>(), [2 * PAGE]);
        // The second part is still there, so that executions begin after it.
        assert_eq!(parts.begin(), FIRST + 3 * PAGE);
        parts.free(FIRST + PAGE + 16, |part| released.push(*part));
        assert_eq!((released.len(), parts.begin()), (2, FIRST));
        // A block that is no longer recorded.
        parts.begin();
        parts.free(0, never);
    }

    #[test]
    fn blocks_that_others_free_during_the_execution_leave_no_part() {
        let mut parts = Parts::default();
        let never = |_: &Part| panic!("there is no part");
        parts.begin();
        parts.free(FIRST, never);
        parts.free(FIRST + 64, never);
        parts.end(2, 128, regions(), true);
        assert_eq!((parts.all().len(), parts.begin()), (0, FIRST));
        parts.end(1, 128, regions(), true);
        assert_eq!(parts.all().len(), 1);
    }

    #[test]
    fn only_abandoned_parts_without_references_are_released() {
        let mut parts = Parts::default();
        for abandoned in [false, true, true] {
            parts.begin();
            parts.end(1, 1, regions(), abandoned);
        }
        let [first, second, third] = [0, 1, 2].map(|at| FIRST + at * PAGE);
        let mut scan = |second_has: bool| {
            let known = [(first, false), (second, second_has), (third, false)];
            let mut released = Vec::new();
            parts.note_scan(&known, 2, |part| released.push(part.start));
            released
        };
        assert_eq!(scan(false), []);
        assert_eq!(scan(true), [third]);
        assert_eq!(scan(false), [], "the scans without a reference must be consecutive");
        assert_eq!(scan(false), [second]);
        assert_eq!(parts.all().iter().map(|part| part.start).collect::<Vec<_>>(), [first]);
    }
}
