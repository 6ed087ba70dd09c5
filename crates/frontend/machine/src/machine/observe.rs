//! Random walks before a search, and packing for the values that they observe.
//!
//! A walk takes steps of threads that can move until none can. Walks first determine the sizes of
//! variables with large types ([`Machine::grow_by_random_walks`]). Then, for states of more than
//! one word, they record the values of every cell. Most cells of a wide state have few: elements of
//! an array that no thread uses, locks that only two threads take, an index with six of its 32
//! values. A cell that has had at most two values is packed for these alone; constant cells need no
//! bits. Diagrams branch over the recorded values of an index.
//!
//! Nothing depends on whether the walks have seen everything. A value that does not fit its cell
//! makes the step `Full`, as any value beyond a range does. Then the class of the cell is packed
//! for all values of its range, and after [`RELEASES`] such restarts so are all classes. A value
//! that is not among the recorded ones leads a diagram to the interpreter.
//!
//! **Cost.** A restart repeats the search up to that step. Walks that end early would cause many
//! restarts, so a walk tries one thread after the other instead of giving up when a random one
//! cannot move.

use std::collections::BTreeSet;
use std::sync::Arc;

use preempt_system::{Capacity, Choice, MemoryModel, Model as _, Step, Stepper as _, ThreadId};

use super::Machine;
use super::cells::{Capacities, Cells};
use super::layout::ClassId;
use super::run::{FUEL, Stepper};

/// The steps of the walks that determine how large values become.
const SIZE_STEPS: usize = 4_000;

/// The steps of the walks that record values.
pub(super) const VALUE_STEPS: usize = 8_000;

/// The most values of a cell that are recorded. A cell with more has none.
const MOST_VALUES: usize = 32;

/// The classes that are packed for their whole range one by one; after that all of them are.
const RELEASES: usize = 2;

/// The values of the cells of a state in random walks, and the classes for which they did not
/// suffice.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Observed {
    /// For each cell, all values that it had, if these are at most [`MOST_VALUES`].
    values: Arc<Vec<Vec<i64>>>,
    /// Classes of which a cell had another value in a search.
    released: BTreeSet<ClassId>,
}

impl Observed {
    /// The values of a cell, if there are few.
    pub(super) fn values(&self, cell: usize) -> Option<&[i64]> {
        self.values.get(cell).map(Vec::as_slice).filter(|values| !values.is_empty())
    }

    /// The range for which a cell of `class` is packed, if it is smaller than that of the class.
    fn range(&self, cell: usize, class: ClassId) -> Option<(i64, i64)> {
        if self.released.len() > RELEASES || self.released.contains(&class) {
            return None;
        }
        match *self.values(cell)? {
            [value] => Some((value, value)),
            [a, b] => Some((a.min(b), a.max(b))),
            _ => None,
        }
    }

    /// A cell of `class` had a value that was not observed.
    pub(super) fn release(&mut self, class: ClassId) {
        self.released.insert(class);
    }
}

impl Cells {
    /// The range for which each cell is packed.
    pub(super) fn ranges(&self, capacities: &Capacities) -> Vec<(i64, i64)> {
        let range = |(cell, &class): (usize, &ClassId)| {
            let whole = self.classes[class as usize].range;
            let observed = capacities.observed.as_ref();
            match observed.and_then(|observed| observed.range(cell, class)) {
                // More of the range where that takes no more bits.
                Some((lo, hi)) => (lo, (lo + full_span(hi - lo)).min(whole.1)),
                None => whole,
            }
        };
        self.cells.iter().enumerate().map(range).collect()
    }
}

/// The largest span that takes as many bits as `span`.
fn full_span(span: i64) -> i64 {
    ((1u64 << (64 - span.leading_zeros())) - 1) as i64
}

impl Machine {
    /// Grows the states by random walks. A search that must restart only loses time, so the walks
    /// need not find every value.
    pub(super) fn grow_by_random_walks(self) -> Machine {
        let mut machine = self;
        let (mut random, mut left) = (FIRST_RANDOM, SIZE_STEPS);
        while left > 0 {
            match machine.walk(&mut random, &mut left, |_, _| ()) {
                Some(capacity) => machine = machine.larger(capacity),
                None => left = left.saturating_sub(SIZE_STEPS / 32),
            }
        }
        machine
    }

    /// The same program with states that are packed for the values in random walks of `steps`
    /// steps. New machines are packed for several thousand steps if their states have several
    /// words.
    ///
    /// Programs whose records, threads or stacks come and go stay as they are: their cells have no
    /// fixed meaning. So do programs under weak memory, whose states are not compared.
    pub fn pack_for_observed_values(self, steps: usize) -> Machine {
        let is_fixed = self.heap.is_empty()
            && self.capacities.spare == 0
            && self.facts.recursive.is_empty()
            && !self.capacities.owners
            && self.program.memory == MemoryModel::Sc;
        let values = if is_fixed { self.observe(steps) } else { None };
        let Some(values) = values else { return self.with_diagrams() };
        let observed = Observed { values: Arc::new(values), released: BTreeSet::new() };
        let capacities = Capacities { observed: Some(observed), ..self.capacities.clone() };
        let narrow = Machine::build(self.program.clone(), self.facts.clone(), capacities)
            .expect("the code does not depend on the packing");
        Machine { stable: self.stable, ..narrow }.with_diagrams()
    }

    /// The values of every cell in random walks; none for a cell that may have any value. `None` if
    /// the program cannot start or needs larger states.
    fn observe(&self, steps: usize) -> Option<Vec<Vec<i64>>> {
        let mut values = Values::new(self);
        let (mut random, mut left) = (FIRST_RANDOM, steps);
        while left > 0 {
            let full = self.walk(&mut random, &mut left, |before, after| {
                values.record(before, after);
            });
            if full.is_some() {
                return None;
            }
            left = left.saturating_sub(1 + steps / 64);
        }
        Some(values.of_cells)
    }

    /// Takes steps from the initial state on until no thread can move or none of the steps is
    /// `left`. Calls `visit` for each step with the states before and after it; before the first
    /// one there is an empty state. Returns what a step needs that did not fit.
    fn walk(
        &self,
        random: &mut u64,
        left: &mut usize,
        mut visit: impl FnMut(&[u64], &[u64]),
    ) -> Option<Capacity> {
        let mut stepper = self.stepper();
        // A step with many jumps counts as many.
        let cost = |stepper: &Stepper<'_>| 1 + (FUEL - stepper.fuel) as usize / 100;
        let (mut state, mut next) = (vec![0; self.layout.words], vec![0; self.layout.words]);
        match stepper.initial(&mut state) {
            Step::Full(capacity) => return Some(capacity),
            Step::Failed(_) => return None,
            _ => visit(&[], &state),
        }
        let threads = self.slots.len();
        *left = left.saturating_sub(cost(&stepper) * threads);
        while *left > 0 {
            *random =
                random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            let (first, alternative) = ((*random >> 33) as usize, (*random >> 20) as u32 & 3);
            let choices = (0..threads).flat_map(|after| {
                let thread = ThreadId::new((first + after) % threads);
                // A thread with fewer alternatives has at least the first one.
                let alternatives = [Some(alternative), (alternative > 0).then_some(0)];
                let choice = move |alternative| Choice { thread, alternative };
                alternatives.into_iter().flatten().map(choice)
            });
            let mut moved = false;
            for choice in choices {
                next.copy_from_slice(&state);
                let step = stepper.step(&mut next, choice);
                *left = left.saturating_sub(cost(&stepper));
                match step {
                    Step::Full(capacity) => return Some(capacity),
                    Step::Moved { .. } => moved = true,
                    _ => continue,
                }
                break;
            }
            if !moved {
                return None;
            }
            visit(&state, &next);
            std::mem::swap(&mut state, &mut next);
        }
        None
    }
}

/// The first number of the generator of walks.
const FIRST_RANDOM: u64 = 0x2545_F491_4F6C_DD1D;

/// Records the values of cells.
struct Values<'m> {
    machine: &'m Machine,
    of_cells: Vec<Vec<i64>>,
    /// The cells of each word whose values are recorded.
    of_word: Vec<Vec<usize>>,
}

impl<'m> Values<'m> {
    /// Starts with the values that cells have before the program starts: unassigned cells, and
    /// initial values that the `init` block may replace.
    fn new(machine: &'m Machine) -> Values<'m> {
        let (cells, fields) = (&machine.cells, &machine.layout.fields);
        let mut of_cells = vec![Vec::new(); cells.cells.len()];
        let mut of_word = vec![Vec::new(); machine.layout.init_words];
        let initial = machine.initial_values();
        let fixed: BTreeSet<usize> = cells
            .slots
            .iter()
            .flat_map(|slot| [Some(slot.counter), slot.joined])
            .flatten()
            .map(|cell| cell as usize)
            .collect();
        for cell in (0..cells.init_from).filter(|cell| !fixed.contains(cell)) {
            let class = &cells.classes[cells.cells[cell] as usize];
            // Sets of threads are patterns of bits and not numbers.
            if class.range.0 > class.range.1 {
                continue;
            }
            let (unassigned, value) = (class.zero(), fields[cell].get(&initial));
            of_cells[cell].push(unassigned);
            if value != unassigned {
                of_cells[cell].push(value);
            }
            if fields[cell].mask != 0 {
                of_word[fields[cell].word as usize].push(cell);
            }
        }
        Values { machine, of_cells, of_word }
    }

    /// Records the values that a step has changed, or all values if there is no state `before`.
    fn record(&mut self, before: &[u64], after: &[u64]) {
        for (word, cells) in self.of_word[..after.len()].iter().enumerate() {
            let changed = before.get(word).map_or(u64::MAX, |before| before ^ after[word]);
            if changed == 0 {
                continue;
            }
            for &cell in cells {
                let field = &self.machine.layout.fields[cell];
                if changed & field.mask << field.shift == 0 {
                    continue;
                }
                let (values, value) = (&mut self.of_cells[cell], field.get(after));
                // A cell with too many values has none, and no more are recorded.
                if !values.is_empty() && !values.contains(&value) {
                    values.push(value);
                    if values.len() > MOST_VALUES {
                        values.clear();
                    }
                }
            }
        }
    }
}
