//! Canonical names of heap records.
//!
//! The order in which records were allocated must not distinguish two states. After every step the
//! reachable records are numbered in the order in which a traversal from the shared variables and
//! then from the threads' locals visits them; unreachable records are dropped. Equal heaps then
//! have equal words, whatever their history.

use super::Machine;
use super::cells::{Cells, Pool};
use super::code::Cell;
use super::layout::Field;

/// The data that does not change from step to step.
#[derive(Clone, Debug, Default)]
pub(super) struct Heap {
    /// The cells outside the heap that hold pointers, in the order of the traversal.
    pub(super) roots: Vec<Cell>,
    pub(super) pools: Vec<Pool>,
}

/// Memory that every step reuses.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    /// The new number of each record of each pool; [`UNMET`] if it was not visited yet.
    renamed: Vec<Vec<u32>>,
    /// The visited records in order: pool and old number.
    met: Vec<(u32, u32)>,
    /// The cells of the visited records.
    values: Vec<i64>,
}

const UNMET: u32 = u32::MAX;

impl Heap {
    /// Finds the pointers of a program.
    pub(super) fn new(cells: &Cells) -> Heap {
        let pools: Vec<Pool> = cells.pools.values().cloned().collect();
        if pools.is_empty() {
            return Heap::default();
        }
        let in_heap = |cell: Cell| pools.iter().any(|pool| pool.range().contains(&cell));
        let is_pointer = |cell: Cell| cells.classes[cells.cells[cell as usize] as usize].pointer;
        let roots = (0..cells.init_from as Cell)
            .filter(|&cell| is_pointer(cell) && !in_heap(cell))
            .collect();
        Heap { roots, pools }
    }

    /// Whether the program has no heap.
    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.pools.is_empty()
    }

    /// Renames the records of `state` canonically and drops unreachable ones. A new name may be
    /// greater than the old one and not fit a pointer cell: then the cell and the value are
    /// returned.
    pub(super) fn canonicalise(
        &self,
        machine: &Machine,
        state: &mut [u64],
        scratch: &mut Scratch,
    ) -> Result<(), (Cell, i64)> {
        let fields = &machine.layout.fields;
        scratch.met.clear();
        scratch.renamed.resize_with(self.pools.len(), Vec::new);
        for (renamed, pool) in scratch.renamed.iter_mut().zip(&self.pools) {
            renamed.clear();
            renamed.resize(fields[pool.live as usize].get(state) as usize, UNMET);
        }
        let mut counts = vec![0; self.pools.len()];
        let mut meet = |pointer: i64, scratch: &mut Scratch| {
            let Some((pool, record, _)) = self.target(pointer) else { return };
            let name = &mut scratch.renamed[pool][record as usize];
            if *name == UNMET {
                *name = counts[pool];
                counts[pool] += 1;
                scratch.met.push((pool as u32, record));
            }
        };
        for &root in &self.roots {
            meet(fields[root as usize].get(state), scratch);
        }
        let mut next = 0;
        while next < scratch.met.len() {
            let (pool, record) = scratch.met[next];
            next += 1;
            let pool = &self.pools[pool as usize];
            for offset in &pool.pointers {
                meet(
                    fields[(pool.base + record * pool.size + offset) as usize].get(state),
                    scratch,
                );
            }
        }
        let settled = scratch
            .renamed
            .iter()
            .all(|names| names.iter().enumerate().all(|(i, &n)| n as usize == i));
        if settled { Ok(()) } else { self.rename(fields, state, scratch, &counts) }
    }

    fn rename(
        &self,
        fields: &[Field],
        state: &mut [u64],
        scratch: &mut Scratch,
        counts: &[u32],
    ) -> Result<(), (Cell, i64)> {
        let put = |cell: Cell, value: i64, state: &mut [u64]| {
            if fields[cell as usize].set(state, value) { Ok(()) } else { Err((cell, value)) }
        };
        scratch.values.clear();
        for &(pool, record) in &scratch.met {
            let pool = &self.pools[pool as usize];
            let base = pool.base + record * pool.size;
            scratch
                .values
                .extend((base..base + pool.size).map(|cell| fields[cell as usize].get(state)));
        }
        for (pool, &count) in self.pools.iter().zip(counts) {
            pool.range().for_each(|cell| fields[cell as usize].clear(state));
            put(pool.live, i64::from(count), state)?;
        }
        let renamed = |pointer: i64| match self.target(pointer) {
            Some((pool, record, offset)) => {
                let name = scratch.renamed[pool][record as usize];
                i64::from(self.pools[pool].base + name * self.pools[pool].size + offset) + 1
            }
            None => pointer,
        };
        let mut values = scratch.values.iter();
        for &(index, record) in &scratch.met {
            let pool = &self.pools[index as usize];
            let base = pool.base + scratch.renamed[index as usize][record as usize] * pool.size;
            for offset in 0..pool.size {
                let value = *values.next().expect("every cell of a record was read");
                let value = if pool.pointers.contains(&offset) { renamed(value) } else { value };
                put(base + offset, value, state)?;
            }
        }
        for &root in &self.roots {
            let pointer = fields[root as usize].get(state);
            put(root, renamed(pointer), state)?;
        }
        Ok(())
    }

    /// The pool, the record and the offset in it that a pointer refers to, if it points into the
    /// heap.
    pub(super) fn target(&self, pointer: i64) -> Option<(usize, u32, u32)> {
        let cell = Cell::try_from(pointer - 1).ok()?;
        let index = self.pools.iter().position(|pool| pool.range().contains(&cell))?;
        let pool = &self.pools[index];
        let distance = cell - pool.base;
        Some((index, distance / pool.size, distance % pool.size))
    }

    /// The pool and the number of the record that contains a cell, if it is a cell of the heap.
    pub(super) fn record_of(&self, cell: Cell) -> Option<(&Pool, u32)> {
        let (pool, record, _) = self.target(i64::from(cell) + 1)?;
        Some((&self.pools[pool], record))
    }
}
