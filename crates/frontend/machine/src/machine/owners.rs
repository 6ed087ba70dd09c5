//! Ownership: which records only one thread can reach, whether a thread is alone, and where the
//! locks of a record are.
//!
//! Reductions by movers need this. The answers must change only by steps of the thread itself, and
//! what a thread can currently reach does not have this property: when another thread drops its
//! pointer to a record, it may have written to the record just before. So states of a machine that
//! tracks ownership ([`Model::with_owners`](preempt_system::Model::with_owners)) have two
//! additional kinds of bits:
//!
//! - Each heap record has a *shared* bit. It is set, and stays set, as soon as at the end of a step
//!   a shared variable or a shared record points to the record, or two threads can reach it. While
//!   it is not set, only one thread can reach the record, and this thread changes only by a step of
//!   its own that gives the record away: to all threads, which sets the bit, or to a thread that
//!   the step starts. A shared record counts until the end of the step even if nothing points to it
//!   any more: whether other threads could reach it must not matter, or the bit would not depend on
//!   the step alone, and commuting steps would no longer commute.
//! - Each thread that another thread started has a *joined* bit. A thread is alone if every other
//!   thread does not exist or was joined. Then no other thread takes a step; and while it is not
//!   alone, no other thread can make it so, because a thread that joins the last other one is
//!   itself another thread.

use preempt_system::{Location, LockMode, Place, Record, ThreadId};

use super::Machine;
use super::cells::Pool;
use super::code::Cell;
use super::objects::Fields;

/// Memory that every step reuses.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// For each record of each pool, which thread can reach it.
    reached: Vec<Vec<u8>>,
    /// Records whose pointers were not followed yet.
    todo: Vec<(usize, u32)>,
}

/// Not reached so far; from 1 on, reached by one thread.
const UNREACHED: u8 = 0;
const SHARED: u8 = u8::MAX;

impl Scratch {
    fn reach(&mut self, (pool, record): (usize, u32), from: u8) {
        let reached = &mut self.reached[pool][record as usize];
        let now = if [UNREACHED, from].contains(reached) { from } else { SHARED };
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
            scratch.reached[at].resize(live as usize, UNREACHED);
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

    /// The stable place of a shared cell.
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

    /// In which mode `thread` holds a lock.
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

    /// Whether only one thread can ever have reached the record of a place: the next step creates
    /// it, or its bit is not set.
    #[inline]
    pub(super) fn is_private(&self, state: &[u64], place: Place) -> bool {
        let Some(Record(first)) = place.record else { return false };
        let pool = self.pool(first);
        let Some(shared) = pool.shared else { return false };
        let (live, fields) = (&self.layout.fields[pool.live as usize], &self.layout.fields);
        i64::from((first - pool.base) / pool.size) >= live.get(state)
            || fields[(first + shared) as usize].get(state) == 0
    }

    /// Whether every other thread does not exist or was joined.
    #[inline]
    pub(super) fn is_alone(&self, state: &[u64], thread: ThreadId) -> bool {
        if !self.capacities.owners {
            return false;
        }
        let fields = &self.layout.fields;
        self.slots.iter().zip(&self.cells.slots).enumerate().all(|(at, (slot, cells))| {
            // Only slots for spawned threads can be empty, and only these have the cell.
            let gone = |joined: Cell| {
                slot.counter.get(state) == slot.absent || fields[joined as usize].get(state) == 1
            };
            at == thread.index() || cells.joined.is_some_and(gone)
        })
    }
}
