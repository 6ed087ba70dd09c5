//! The step machine: a checked program as a [`Model`] with packed states.
//!
//! [`cells`] lists the parts of a state and [`layout`] packs them. [`compile`] generates the
//! [`code`], [`fuse`] shortens it, [`run`] interprets it, and [`diagram`] precomputes most steps.
//! The other files are parts of these: [`initial`] the initial state, [`frames`] calls,
//! [`new_thread`] new threads, [`objects`] synchronisation, [`stepper`] the interface for searches,
//! [`record`] footprints, [`failure`] errors. [`owners`] tracks ownership of records, [`straight`]
//! recognises straight-line threads, [`reach`] bounds what a step may do in any state, [`heap`]
//! renames heap records canonically, [`observe`] packs states for the values that occur,
//! [`reached`] records which statements were reached, and [`narrate`] describes steps. [`weak`] has
//! what searches under weak memory need in addition.

mod cells;
mod code;
mod compile;
mod diagram;
mod failure;
mod frames;
mod fuse;
mod heap;
mod initial;
mod invariant;
mod layout;
mod narrate;
mod new_thread;
mod objects;
mod observe;
mod owners;
mod reach;
mod reached;
mod record;
mod run;
#[cfg(test)]
mod sample;
mod stepper;
mod straight;
mod weak;

use std::collections::BTreeSet;
use std::sync::Arc;

use preempt_system::{
    Capacity, Choice, Footprint, GraphObstacle, Kind, Location, LocationKind, MAX_THREADS,
    MemoryModel, Model, NotStraight, Shape, Site, ThreadId,
};

use self::cells::{Capacities, Cells, Facts, Root, Sizes};
use self::code::{Cell, Code};
use self::layout::{Field, Layout, MAX_WORDS};
pub use self::reached::Unreached;
pub use self::run::Stepper;
use crate::diagnostic::Diagnostic;
use crate::program::Program;

/// The most nested calls of one recursive function.
const MAX_DEPTH: usize = 1_000;
/// The most live heap records of one type.
const MAX_RECORDS: usize = 1_000;
/// The most functions (including bodies of threads), and the most records.
const MAX_DECLARATIONS: usize = 10_000;
/// The most local values of all threads together.
const MAX_LOCAL_CELLS: u64 = 1_000_000;

/// A program that can be explored.
#[derive(Clone, Debug)]
pub struct Machine {
    program: Arc<Program>,
    facts: Arc<Facts>,
    capacities: Capacities,
    cells: Cells,
    layout: Layout,
    code: Code,
    slots: Vec<Slot>,
    heap: heap::Heap,
    /// For each shared cell, whether it is data: plain variables and those fields of heap records
    /// that are not objects.
    data: Vec<bool>,
    /// For each shared cell, whether it is an atomic variable under weak memory.
    atomics: Vec<bool>,
    /// The locks among the shared variables, by their cells.
    locks: Vec<(Cell, Kind)>,
    /// Whether heap records keep their names.
    stable: bool,
    /// The precomputed steps.
    diagrams: diagram::Diagrams,
}

/// The interpreter's data of a slot.
#[derive(Clone, Debug)]
struct Slot {
    counter: Field,
    /// Its cell, which represents the end of the thread in footprints.
    cell: Cell,
    /// Values below this one are rest points.
    rests: i64,
    /// The value of a thread that has ended.
    ended: i64,
    /// The value of a thread that has failed.
    wrong: i64,
    /// The value of an empty slot.
    absent: i64,
}

/// The parts of a state that can be too small.
#[derive(Clone, Copy, Debug)]
enum Part {
    Class(u32),
    Threads,
    Records(usize),
    Depth,
}

impl Part {
    fn encode(self) -> u32 {
        match self {
            Part::Class(class) => class << 2,
            Part::Threads => 1,
            Part::Records(record) => (record as u32) << 2 | 2,
            Part::Depth => 3,
        }
    }

    fn decode(part: u32) -> Part {
        match part & 3 {
            0 => Part::Class(part >> 2),
            1 => Part::Threads,
            2 => Part::Records(part as usize >> 2),
            _ => Part::Depth,
        }
    }
}

impl Machine {
    /// Makes a machine; refuses a program whose states are too large.
    pub fn new(program: Program) -> Result<Machine, Diagnostic> {
        Machine::within(program, &|| true)
    }

    /// The same; also refuses a program whose code is too large. Code is generated as long as
    /// `has_memory` returns true: the size of a program does not bound that of its code.
    pub fn within(program: Program, has_memory: &dyn Fn() -> bool) -> Result<Machine, Diagnostic> {
        let facts = Facts::new(&program);
        let capacities = Capacities::new(&program, &facts);
        refuse_too_many(&program, &facts, &capacities)?;
        let budget = compile::Budget::new(has_memory);
        let machine =
            Machine::build_within(&budget, Arc::new(program), Arc::new(facts), capacities)?;
        if machine.layout.words > MAX_WORDS {
            return Err(machine.too_large());
        }
        let machine = machine.grow_by_random_walks();
        // A state of one word cannot become smaller.
        Ok(match machine.layout.words {
            1 => machine.with_diagrams(),
            _ => machine.pack_for_observed_values(observe::VALUE_STEPS),
        })
    }

    fn build(
        program: Arc<Program>,
        facts: Arc<Facts>,
        capacities: Capacities,
    ) -> Result<Machine, Diagnostic> {
        // The search that asks for a larger layout limits the memory.
        Machine::build_within(&compile::Budget::new(&|| true), program, facts, capacities)
    }

    fn build_within(
        budget: &compile::Budget,
        program: Arc<Program>,
        facts: Arc<Facts>,
        capacities: Capacities,
    ) -> Result<Machine, Diagnostic> {
        // The sizes of the frames are known only after compilation, which needs the cells of the
        // frames.
        let cells = Cells::new(&program, &facts, &capacities, &Sizes::default());
        let (_, sizes) = compile::compile(&program, &facts, &cells, budget)?;
        let cells = Cells::new(&program, &facts, &capacities, &sizes);
        let (mut code, again) = compile::compile(&program, &facts, &cells, budget)?;
        if program.memory == MemoryModel::Sc {
            // A fused instruction has no orderings.
            fuse::fuse(&mut code);
        }
        debug_assert_eq!(sizes, again, "the sizes of frames do not depend on where they are");
        let ranges = cells.ranges(&capacities);
        let layout = Layout::new(&cells.classes, &cells.cells, &ranges, cells.init_from);
        let slots = code.slots.iter().zip(&cells.slots).map(|(code, cells)| {
            let rests = code.rests.len() as i64;
            let wrong = rests + i64::from(code.ends);
            let absent = wrong + i64::from(code.fails);
            Slot {
                counter: layout.fields[cells.counter as usize],
                cell: cells.counter,
                rests,
                ended: rests,
                wrong,
                absent,
            }
        });
        let slots = slots.collect();
        let heap = heap::Heap::new(&cells);
        let (data, locks) = (cells.data(&program), cells.locks(&program));
        let atomics = cells.atomics(&program);
        let (stable, diagrams) = (false, diagram::Diagrams::default());
        Ok(Machine {
            program,
            facts,
            capacities,
            cells,
            layout,
            code,
            slots,
            heap,
            data,
            atomics,
            locks,
            stable,
            diagrams,
        })
    }

    /// The same machine with diagrams: for machines that will be searched.
    fn with_diagrams(self) -> Machine {
        if self.program.memory == MemoryModel::Weak {
            // Its steps are only taken with footprints, by the interpreter.
            return self;
        }
        Machine { diagrams: diagram::Diagrams::new(&self), ..self }
    }

    /// The checked program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The bits of a state that belong to one thread alone: its position and its local variables,
    /// except those of outer activations of a recursive function.
    pub fn local_bits(&self, thread: ThreadId) -> Vec<u64> {
        let slot = &self.cells.slots[thread.index()];
        let mut bits = vec![0; self.layout.words];
        for cell in slot.frames.values().flat_map(|frame| frame.cells.clone()).chain([slot.counter])
        {
            let field = &self.layout.fields[cell as usize];
            bits[field.word as usize] |= field.mask << field.shift;
        }
        bits
    }

    fn too_large(&self) -> Diagnostic {
        let bits = |global: usize| -> usize {
            let from = self.cells.globals[global] as usize;
            let size = cells::size(&self.program, &self.program.globals[global].ty) as usize;
            self.cells.cells[from..from + size]
                .iter()
                .map(|&c| self.cells.classes[c as usize].bits() as usize)
                .sum()
        };
        let largest = (0..self.program.globals.len()).max_by_key(|&g| bits(g));
        let message = format!(
            "a state of this program takes {} bytes; at most {} are supported",
            self.layout.words * 8,
            MAX_WORDS * 8
        );
        match largest {
            Some(global) => Diagnostic::new(self.program.globals[global].span, message)
                .label(format!("the largest part: {} bytes", bits(global).div_ceil(8)))
                .hint("make it smaller, or give its elements a smaller range such as `0..16`"),
            None => Diagnostic::new(self.program.functions[0].span, message),
        }
    }

    /// The same program with larger states.
    fn larger(&self, capacity: Capacity) -> Machine {
        let mut capacities = self.capacities.clone();
        match Part::decode(capacity.part) {
            Part::Class(class) => {
                let known = &self.cells.classes[class as usize];
                let mut wider = known.clone();
                wider.widen(capacity.value);
                // If the class has room for the value, only the cell was packed for fewer.
                if wider.range != known.range {
                    capacities.ranges.insert(class, wider.range);
                }
                capacities.observed.iter_mut().for_each(|observed| observed.release(class));
            }
            Part::Threads => {
                let fixed = self.cells.slots.iter().filter(|slot| slot.root != Root::Spare).count();
                capacities.spare = (capacities.spare * 2).min(MAX_THREADS - fixed);
            }
            Part::Records(record) => {
                let most = if self.can_grow(Part::Records(record)) {
                    MAX_RECORDS
                } else {
                    capacities.heap[record]
                };
                capacities.heap[record] = (capacities.heap[record] * 2).min(most);
            }
            Part::Depth => capacities.depth = (capacities.depth * 2).min(MAX_DEPTH),
        }
        let larger = Machine::build(self.program.clone(), self.facts.clone(), capacities)
            .expect("the code is no more complex when states are larger");
        Machine { stable: self.stable, ..larger }
    }

    /// Whether this part of states can grow.
    fn can_grow(&self, part: Part) -> bool {
        self.layout.words < MAX_WORDS / 2
            && match part {
                Part::Class(_) => true,
                Part::Threads => self.slots.len() < MAX_THREADS,
                Part::Records(record) => self.capacities.heap[record] < MAX_RECORDS,
                Part::Depth => self.capacities.depth < MAX_DEPTH,
            }
    }
}

/// Refuses programs with too many functions, records or local variables.
fn refuse_too_many(
    program: &Program,
    facts: &Facts,
    capacities: &Capacities,
) -> Result<(), Diagnostic> {
    let Some(first) = program.functions.first() else { return Ok(()) };
    let (functions, records) = (program.functions.len(), program.records.len());
    if functions.max(records) > MAX_DECLARATIONS {
        let message = format!(
            "{functions} functions and threads, {records} records: at most {MAX_DECLARATIONS} each \
             are supported"
        );
        return Err(Diagnostic::new(first.span, message).label("one of them").hint("use fewer"));
    }
    let cells = cells::local_cells(program, facts, capacities);
    if cells > MAX_LOCAL_CELLS {
        let message = format!(
            "the local variables of all threads are {cells} values; at most {MAX_LOCAL_CELLS} are \
             supported"
        );
        return Err(Diagnostic::new(first.span, message)
            .label("counted for every thread that can get here")
            .hint("make local arrays smaller, or share them"));
    }
    Ok(())
}

impl Model for Machine {
    type Stepper<'m> = Stepper<'m>;

    fn shape(&self) -> Shape {
        Shape { words: self.layout.words, threads: self.slots.len() }
    }

    fn stepper(&self) -> Stepper<'_> {
        Stepper::new(self)
    }

    fn straight_lines(&self) -> Result<Vec<Vec<Footprint>>, NotStraight> {
        straight::lines(self)
    }

    fn data_steps(&self, points: &BTreeSet<Location>) -> Vec<Vec<bool>> {
        reach::data_steps(self, points)
    }

    fn rest_point(&self, state: &[u64], thread: ThreadId) -> Option<usize> {
        let slot = &self.slots[thread.index()];
        let at = slot.counter.get(state);
        (at < slot.rests).then_some(at as usize)
    }

    fn location_kind(&self, location: Location) -> LocationKind {
        match self.data.get(location.0 as usize) {
            Some(true) => LocationKind::Data,
            Some(false) => LocationKind::Synchronisation,
            None => {
                let slot = self.slots.iter().position(|slot| slot.cell == location.0);
                LocationKind::Life(ThreadId::new(slot.expect(
                    "of the cells that are not shared only program counters are locations",
                )))
            }
        }
    }

    fn site(&self, state: &[u64], choice: Choice) -> Option<Site> {
        let slot = choice.thread.index();
        let rest = self.code.slots[slot].rests.get(self.slots[slot].counter.get(state) as usize)?;
        Some(self.program.source.site(rest.span))
    }

    fn location_name(&self, location: Location) -> String {
        self.cell_name(location.0)
    }

    fn memory_model(&self) -> MemoryModel {
        self.program.memory
    }

    fn graph_obstacle(&self) -> Option<GraphObstacle> {
        weak::graph_obstacle(&self.program)
    }

    fn with_stable_names(self) -> Machine {
        Machine { stable: true, ..self }
    }

    fn without_stable_names(self) -> Machine {
        Machine { stable: false, ..self }
    }

    fn with_owners(self) -> Machine {
        if self.heap.is_empty() && self.cells.slots.iter().all(|slot| slot.root != Root::Spare) {
            return self;
        }
        let capacities = Capacities { owners: true, observed: None, ..self.capacities };
        let machine = Machine::build(self.program, self.facts, capacities)
            .expect("the code is no more complex when states are larger");
        Machine { stable: self.stable, ..machine }.with_diagrams()
    }

    fn has_invariants(&self) -> bool {
        !self.code.invariants.is_empty()
    }

    fn grow(&self, capacity: Capacity) -> Machine {
        self.larger(capacity).with_diagrams()
    }
}
