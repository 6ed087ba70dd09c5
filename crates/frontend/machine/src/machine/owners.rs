//! Who owns what: which records only one thread could ever reach, whether a thread is alone, and
//! where the locks of a record are.
//!
//! A reduction by movers asks for this. The answers have to be such that only the steps of the
//! thread itself change them, and what a thread can reach in one state is not: when another thread
//! forgets its pointer to a record, it may have written to the record just before. So states of a
//! machine that knows owners ([`Model::with_owners`](preempt_system::Model::with_owners)) remember
//! two things that others do not:
//!
//! - Each heap record has a bit, *shared*: set forever as soon as, at the end of a step, a shared
//!   variable or a record that is shared points to it, or two threads lead to it. As long as it is
//!   not set, one thread alone leads to the record. It stays that one until a step of its own gives
//!   the record away: to all, and the bit is set, or to a thread that the step starts. A shared
//!   record counts to the end of the step even if nothing leads to it any more: whether others had
//!   a way to it must not matter, or the bit would not be a matter of the step alone, and steps
//!   that commute would commute no more.
//! - Each thread that was started by another has a bit, *joined*. A thread is alone if every other
//!   is not there or has been joined. Nobody else takes a step then; and while it is not alone,
//!   nobody else can make it so: who joins the last other one is an other one itself.

use preempt_system::{Location, LockMode, Place, Record, ThreadId};

use super::Machine;
use super::cells::Pool;
use super::code::Cell;
use super::objects::Fields;

/// Memory that is used again by every step.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// For each pool and record, who leads to it.
    reached: Vec<Vec<u8>>,
    /// Records whose pointers are still to be followed.
    todo: Vec<(usize, u32)>,
}

/// Nobody leads there so far; from 1 on, one thread does.
const NOBODY: u8 = 0;
const SHARED: u8 = u8::MAX;

impl Scratch {
    fn reach(&mut self, (pool, record): (usize, u32), from: u8) {
        let reached = &mut self.reached[pool][record as usize];
        let now = if [NOBODY, from].contains(reached) { from } else { SHARED };
        if now != *reached {
            *reached = now;
            self.todo.push((pool, record));
        }
    }
}

impl Machine {
    /// Sets the bits of the records that are shared from now on.
    pub(super) fn mark_shared(&self, state: &mut [u64], scratch: &mut Scratch) {
        let (heap, fields) = (&self.heap, &self.layout.fields);
        let bit = |pool: &Pool, record: u32| {
            let shared =
                pool.shared.expect("a machine that knows owners has a bit in every record");
            &fields[(pool.base + record * pool.size + shared) as usize]
        };
        scratch.reached.resize_with(heap.pools.len(), Vec::new);
        for (at, pool) in heap.pools.iter().enumerate() {
            let live = fields[pool.live as usize].get(state) as u32;
            scratch.reached[at].clear();
            scratch.reached[at].resize(live as usize, NOBODY);
            let shared = (0..live).filter(|&record| bit(pool, record).get(state) == 1);
            shared.for_each(|record| scratch.reach((at, record), SHARED));
        }
        let follow = |cell: Cell, from: u8, scratch: &mut Scratch| {
            if let Some((pool, record, _)) = heap.target(fields[cell as usize].get(state)) {
                scratch.reach((pool, record), from);
            }
        };
        for &root in &heap.roots {
            let slots = self.cells.slots.partition_point(|slot| slot.counter <= root);
            follow(root, if slots == 0 { SHARED } else { slots as u8 }, scratch);
        }
        while let Some((pool, record)) = scratch.todo.pop() {
            let (from, of) = (scratch.reached[pool][record as usize], &heap.pools[pool]);
            of.pointers
                .iter()
                .for_each(|offset| follow(of.base + record * of.size + offset, from, scratch));
        }
        for (reached, pool) in scratch.reached.iter().zip(&heap.pools) {
            for (record, _) in (0..).zip(reached).filter(|&(_, &reached)| reached == SHARED) {
                bit(pool, record).set(state, 1);
            }
        }
    }

    /// The thread in a slot has been joined.
    pub(super) fn mark_joined(&self, state: &mut [u64], slot: usize) {
        if let Some(cell) = self.cells.slots[slot].joined {
            self.layout.fields[cell as usize].set(state, 1);
        }
    }

    /// Where a shared cell is, forever.
    #[inline(always)]
    pub(super) fn place(&self, cell: Cell) -> Place {
        if self.cells.is_heap(cell) { self.place_in_heap(cell) } else { Location(cell).into() }
    }

    fn place_in_heap(&self, cell: Cell) -> Place {
        let pool = self.pool(cell);
        let offset = (cell - pool.base) % pool.size;
        Place { location: Location(pool.base + offset), record: Some(Record(cell - offset)) }
    }

    fn pool(&self, cell: Cell) -> &Pool {
        let pool = self.heap.pools.iter().find(|pool| pool.range().contains(&cell));
        pool.expect("a cell of the heap belongs to a record")
    }

    /// The locks that have a name at `place`.
    pub(super) fn locks_for(&self, place: Place) -> impl Iterator<Item = Place> {
        let own = place.record.map(|record| (record, self.pool(record.0)));
        let own = own.into_iter().flat_map(|(record, pool)| {
            pool.locks.iter().map(move |&(offset, _)| Place {
                location: Location(pool.base + offset),
                record: Some(record),
            })
        });
        self.locks.iter().map(|&(cell, _)| Location(cell).into()).chain(own)
    }

    /// How `thread` holds a lock.
    #[inline]
    pub(super) fn holds(&self, state: &[u64], thread: ThreadId, lock: Place) -> Option<LockMode> {
        let (cell, kind) = match lock.record {
            None => {
                self.locks
                    [self.locks.binary_search_by_key(&lock.location.0, |&(cell, _)| cell).ok()?]
            }
            Some(Record(first)) => {
                let pool = self.pool(first);
                let offset = lock.location.0 - pool.base;
                let &(_, kind) = pool.locks.iter().find(|&&(lock, _)| lock == offset)?;
                (first + offset, kind)
            }
        };
        kind.lock_mode(&Fields { fields: &self.layout.fields[cell as usize..], state }, thread)
    }

    /// Whether only one thread could ever reach the record of a place: it is made by the next step,
    /// or its bit is not set.
    #[inline]
    pub(super) fn is_private(&self, state: &[u64], place: Place) -> bool {
        let Some(Record(first)) = place.record else { return false };
        let pool = self.pool(first);
        let Some(shared) = pool.shared else { return false };
        let (live, fields) = (&self.layout.fields[pool.live as usize], &self.layout.fields);
        i64::from((first - pool.base) / pool.size) >= live.get(state)
            || fields[(first + shared) as usize].get(state) == 0
    }

    /// Whether every other thread is not there, or has been joined.
    #[inline]
    pub(super) fn is_alone(&self, state: &[u64], thread: ThreadId) -> bool {
        if !self.capacities.owners {
            return false;
        }
        let fields = &self.layout.fields;
        self.slots.iter().zip(&self.cells.slots).enumerate().all(|(at, (slot, cells))| {
            // Only slots for threads that are started later can be empty, and only these have the
            // cell.
            let gone = |joined: Cell| {
                slot.counter.get(state) == slot.absent || fields[joined as usize].get(state) == 1
            };
            at == thread.index() || cells.joined.is_some_and(gone)
        })
    }
}
