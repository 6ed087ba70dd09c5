//! The cells of a program's state: shared variables, the heap, and the frames of every thread slot.
//!
//! Frames are static. A function that does not call itself is active at most once per thread, so
//! its locals have fixed cells in every slot that can reach it; they are zero while it is not
//! active. A recursive function saves these cells on a stack of its own before it is entered again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use preempt_system::object::{Holds, Kind};

use super::code::Cell;
use super::layout::{Class, ClassId};
use super::reached::Items;
use crate::program::{Expr, ExprKind, FunctionId, LocalId, ObjectType, Program, RecordId, Type};
use crate::walk;

/// The sizes of the parts of a state that grow at run time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Capacities {
    /// Ranges of classes that were widened.
    pub ranges: BTreeMap<ClassId, (i64, i64)>,
    /// Number of slots for spawned threads.
    pub spare: usize,
    /// Number of records of each type.
    pub heap: Vec<usize>,
    /// Number of nested calls of each recursive function.
    pub depth: usize,
    /// Whether states track ownership: which records are shared, which threads were joined.
    pub owners: bool,
}

impl Capacities {
    /// The initial sizes.
    pub(super) fn new(program: &Program, facts: &Facts) -> Capacities {
        Capacities {
            ranges: BTreeMap::new(),
            spare: usize::from(!facts.spawned.is_empty()),
            heap: (0..program.records.len())
                .map(|r| if facts.allocated.contains(&r) { 2 } else { 0 })
                .collect(),
            depth: 4,
            owners: false,
        }
    }
}

/// Facts about a program that are collected before cells are assigned.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    /// The functions that are started by `spawn`.
    pub spawned: BTreeSet<FunctionId>,
    /// The records that are allocated by `new`.
    pub allocated: BTreeSet<RecordId>,
    /// For each function, itself and all functions that it can call.
    pub reachable: Vec<BTreeSet<FunctionId>>,
    /// The functions that can call themselves, directly or indirectly.
    pub recursive: BTreeSet<FunctionId>,
    /// For each function, its quantifier variables: quantifiers are unrolled, so these need no
    /// cells.
    pub quantified: Vec<BTreeSet<LocalId>>,
    /// The statements, and which of them were reached.
    pub items: Arc<Items>,
}

impl Facts {
    /// Collects the facts.
    pub(super) fn new(program: &Program) -> Facts {
        let mut facts = Facts {
            spawned: BTreeSet::new(),
            allocated: BTreeSet::new(),
            reachable: Vec::new(),
            recursive: BTreeSet::new(),
            quantified: vec![BTreeSet::new(); program.functions.len()],
            items: Arc::new(Items::new(program)),
        };
        let mut calls = vec![BTreeSet::new(); program.functions.len()];
        for (id, function) in program.functions.iter().enumerate() {
            walk::exprs(&function.body, &mut |expr: &Expr| match &expr.kind {
                ExprKind::Call(callee, _) => {
                    calls[id].insert(*callee);
                }
                ExprKind::Spawn(callee, _) => {
                    facts.spawned.insert(*callee);
                }
                ExprKind::New(record, _) => {
                    facts.allocated.insert(*record);
                }
                ExprKind::Quantifier { local, .. } => {
                    facts.quantified[id].insert(*local);
                }
                _ => {}
            });
        }
        for id in 0..program.functions.len() {
            let (mut seen, mut todo) = (BTreeSet::from([id]), vec![id]);
            while let Some(next) = todo.pop() {
                if calls[next].contains(&id) {
                    facts.recursive.insert(id);
                }
                todo.extend(calls[next].iter().filter(|&&callee| seen.insert(callee)));
            }
            facts.reachable.push(seen);
        }
        facts
    }
}

/// Properties of the frames that are only known after compilation.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Sizes {
    /// For each function, the number of temporaries that survive a step: numbers, and pointers.
    pub temps: Vec<[usize; 2]>,
    /// For each slot and function, the number of places that it is called from; the start of a
    /// thread is one of them.
    pub sites: BTreeMap<(usize, FunctionId), usize>,
    /// For each slot, the number of values of its program counter.
    pub counters: Vec<usize>,
}

/// The content of a slot.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Root {
    /// A thread that starts with the program, with the values of its parameters.
    Thread(FunctionId, Vec<i64>),
    /// A thread that `spawn` starts.
    Spare,
    /// The `init` block, which is not a thread.
    Init(FunctionId),
}

/// The cells of one activation of a function.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// The first cell of each local; [`NO_CELL`] for parameters that are constants.
    pub locals: Vec<Cell>,
    /// The first temporary for numbers, and the first for pointers.
    pub temps: [Cell; 2],
    /// The number of the caller to return to, if there are several.
    pub selector: Option<Cell>,
    /// All cells of the frame.
    pub cells: std::ops::Range<Cell>,
    /// The stack of the frames of outer activations: the cell that counts them, and the first cell
    /// of the frames.
    pub stack: Option<(Cell, Cell)>,
}

/// A local without a cell.
pub(super) const NO_CELL: Cell = Cell::MAX;

/// The cells of one slot.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    /// Its content.
    pub root: Root,
    /// The program counter.
    pub counter: Cell,
    /// The frames of the functions that it can reach.
    pub frames: BTreeMap<FunctionId, Frame>,
    /// Whether the thread was joined, if it can be and states track ownership.
    pub joined: Option<Cell>,
}

/// The heap records of one type.
#[derive(Clone, Debug)]
pub(super) struct Pool {
    /// The first cell of the first record.
    pub base: Cell,
    /// The cells of one record.
    pub size: u32,
    /// The number of records that fit.
    pub capacity: u32,
    /// The number of records in use; these come first.
    pub live: Cell,
    /// The pointers in a record, as offsets from its first cell.
    pub pointers: Vec<u32>,
    /// The locks in a record, as offsets.
    pub locks: Vec<(Cell, Kind)>,
    /// The flag that more than one thread may have reached the record, as an offset, if states
    /// track ownership.
    pub shared: Option<u32>,
}

impl Pool {
    /// The cells of all its records.
    pub(super) fn range(&self) -> std::ops::Range<Cell> {
        self.base..self.base + self.size * self.capacity
    }
}

/// All cells of a program's state.
#[derive(Clone, Debug, Default)]
pub(super) struct Cells {
    /// The class of each cell.
    pub cells: Vec<ClassId>,
    /// The classes.
    pub classes: Vec<Class>,
    /// The first cell of each shared variable.
    pub globals: Vec<Cell>,
    /// Represents the supply of threads in footprints; has no content.
    pub threads: Cell,
    /// The heap, by record type.
    pub pools: BTreeMap<RecordId, Pool>,
    /// Cells below this number are shared.
    pub shared: Cell,
    /// The slots of threads.
    pub slots: Vec<Slot>,
    /// The pseudo-slot of the `init` block.
    pub init: Option<Slot>,
    /// Cells from this number on are used by the `init` block only.
    pub init_from: usize,
}

impl Cells {
    /// Assigns the cells.
    pub(super) fn new(
        program: &Program,
        facts: &Facts,
        capacities: &Capacities,
        sizes: &Sizes,
    ) -> Cells {
        let mut cells = Cells::default();
        let roots = roots(program, capacities);
        // The classes that can be widened come first and do not depend on what was widened, so
        // their numbers are stable.
        let globals: Vec<Vec<ClassId>> = program
            .globals
            .iter()
            .map(|g| cells.classes_of(program, &g.ty, &g.init, roots.len()))
            .collect();
        let records: BTreeMap<RecordId, Vec<ClassId>> = facts
            .allocated
            .iter()
            .map(|&r| (r, cells.classes_of(program, &Type::Record(r), &[], roots.len())))
            .collect();
        let locals: Vec<Vec<Vec<ClassId>>> = program
            .functions
            .iter()
            .map(|f| {
                f.locals
                    .iter()
                    .map(|l| cells.classes_of(program, &l.ty, &[], roots.len()))
                    .collect()
            })
            .collect();
        let numbers = Class::new((i64::MIN >> 16, i64::MAX >> 16), (0, 0));
        let pointers = Class { pointer: true, ..Class::new((0, i64::from(i32::MAX)), (0, 0)) };
        let temps: Vec<[ClassId; 2]> = program
            .functions
            .iter()
            .map(|_| [cells.class(numbers.clone()), cells.class(pointers.clone())])
            .collect();
        for (&class, &range) in &capacities.ranges {
            cells.classes[class as usize].range = range;
        }

        cells.globals = globals.iter().map(|classes| cells.take(classes)).collect();
        let nothing = cells.class(Class::exact(0, 0));
        cells.threads = cells.take(&[nothing]);
        let bit = cells.class(Class::exact(0, 1));
        for (&record, classes) in &records {
            let capacity = capacities.heap[record];
            let shared = capacities.owners.then_some(classes.len() as u32);
            let classes: Vec<ClassId> =
                classes.iter().copied().chain(shared.map(|_| bit)).collect();
            let mut locks = Vec::new();
            find_locks(program, &Type::Record(record), 0, &mut locks);
            let count = cells.class(Class::exact(0, capacity as i64));
            let live = cells.take(&[count]);
            let base = cells.cells.len() as Cell;
            (0..capacity).for_each(|_| cells.cells.extend(&classes));
            let pointers = (0..classes.len() as u32)
                .filter(|&i| cells.classes[classes[i as usize] as usize].pointer);
            let pool = Pool {
                base,
                size: classes.len() as u32,
                capacity: capacity as u32,
                live,
                pointers: pointers.collect(),
                locks,
                shared,
            };
            cells.pools.insert(record, pool);
        }
        cells.shared = cells.cells.len() as Cell;

        let frames = Frames { facts, capacities, sizes, locals: &locals, temps: &temps };
        for (index, root) in roots.into_iter().enumerate() {
            let slot = frames.slot(&mut cells, index, root);
            cells.slots.push(slot);
        }
        cells.init_from = cells.cells.len();
        if let Some(init) = program.init {
            let index = cells.slots.len();
            let slot = frames.slot(&mut cells, index, Root::Init(init));
            cells.init = Some(slot);
        }
        cells
    }

    /// For each shared cell, whether it is data: plain variables and those fields of heap records
    /// that are not objects.
    pub(super) fn data(&self, program: &Program) -> Vec<bool> {
        let mut data = vec![false; self.shared as usize];
        for (global, &base) in
            program.globals.iter().zip(&self.globals).filter(|(global, _)| !global.atomic)
        {
            mark_data(program, &global.ty, &mut data[base as usize..]);
        }
        for (&record, pool) in &self.pools {
            for base in pool.range().step_by(pool.size as usize) {
                mark_data(program, &Type::Record(record), &mut data[base as usize..]);
            }
        }
        data
    }

    /// For each shared cell, whether it is an atomic variable or a part of one. Objects are not.
    pub(super) fn atomics(&self, program: &Program) -> Vec<bool> {
        let mut atomics = vec![false; self.shared as usize];
        for (global, &base) in
            program.globals.iter().zip(&self.globals).filter(|(global, _)| global.atomic)
        {
            mark_data(program, &global.ty, &mut atomics[base as usize..]);
        }
        atomics
    }

    /// The locks among the shared variables, by their cells. Locks in heap records move to other
    /// cells: see [`Pool::locks`].
    pub(super) fn locks(&self, program: &Program) -> Vec<(Cell, Kind)> {
        let mut locks = Vec::new();
        for (global, &base) in program.globals.iter().zip(&self.globals) {
            find_locks(program, &global.ty, base, &mut locks);
        }
        locks
    }

    /// Whether a cell belongs to the heap.
    pub(super) fn is_heap(&self, cell: Cell) -> bool {
        self.threads < cell && cell < self.shared
    }

    fn class(&mut self, class: Class) -> ClassId {
        self.classes.push(class);
        self.classes.len() as ClassId - 1
    }

    fn take(&mut self, classes: &[ClassId]) -> Cell {
        self.cells.extend(classes);
        (self.cells.len() - classes.len()) as Cell
    }

    /// The classes of the cells of a variable, in order. `init` are its initial values, unless all
    /// are zero.
    fn classes_of(
        &mut self,
        program: &Program,
        ty: &Type,
        init: &[i64],
        threads: usize,
    ) -> Vec<ClassId> {
        match ty {
            Type::Array(element, length) => {
                // One class for all elements: the initial values of all of them count.
                let one = self.classes_of(program, element, init, threads);
                one.repeat(*length)
            }
            Type::Record(id) => program.records[*id]
                .fields
                .iter()
                .flat_map(|(_, ty)| self.classes_of(program, ty, &[], threads))
                .collect(),
            Type::Object(object) => {
                let kind = kind(object);
                (0..kind.fields())
                    .map(|field| self.object_class(program, object, field, threads))
                    .collect()
            }
            scalar => {
                let bounds = scalar.bounds(program);
                let zero = Class::exact(bounds.0, bounds.1).zero();
                let seen = init.iter().fold((zero, zero), |(lo, hi), &v| (lo.min(v), hi.max(v)));
                let mut class = Class::new(bounds, seen);
                class.pointer = matches!(scalar, Type::Pointer(_));
                vec![self.class(class)]
            }
        }
    }

    fn object_class(
        &mut self,
        program: &Program,
        object: &ObjectType,
        field: usize,
        threads: usize,
    ) -> ClassId {
        let kind = kind(object);
        match (kind.holds(field, threads), object) {
            (Holds::Below(n), _) => {
                self.class(Class::new((0, n as i64 - 1), (0, kind.initial(field) as i64)))
            }
            (Holds::Threads, _) => self.class(Class::thread_set(threads)),
            (Holds::Payload, ObjectType::Channel { element, .. }) => {
                self.classes_of(program, element, &[], threads)[0]
            }
            (Holds::Payload, _) => unreachable!("only channels hold values"),
        }
    }
}

/// Marks the cells of a value of type `ty` that do not belong to objects.
fn mark_data(program: &Program, ty: &Type, cells: &mut [bool]) {
    match ty {
        Type::Array(element, length) => {
            let stride = size(program, element) as usize;
            (0..*length).for_each(|i| mark_data(program, element, &mut cells[i * stride..]));
        }
        Type::Record(id) => {
            let mut at = 0;
            for (_, ty) in &program.records[*id].fields {
                mark_data(program, ty, &mut cells[at..]);
                at += size(program, ty) as usize;
            }
        }
        Type::Object(_) => {}
        _ => cells[0] = true,
    }
}

/// Finds the locks in a value of type `ty` whose first cell is `at`.
fn find_locks(program: &Program, ty: &Type, at: Cell, locks: &mut Vec<(Cell, Kind)>) {
    match ty {
        Type::Array(element, length) => {
            let stride = size(program, element);
            (0..*length as u32).for_each(|i| find_locks(program, element, at + i * stride, locks));
        }
        Type::Record(id) => {
            let mut at = at;
            for (_, ty) in &program.records[*id].fields {
                find_locks(program, ty, at, locks);
                at += size(program, ty);
            }
        }
        Type::Object(object) if kind(object).is_lock() => locks.push((at, kind(object))),
        _ => {}
    }
}

/// The content of each slot.
fn roots(program: &Program, capacities: &Capacities) -> Vec<Root> {
    let mut roots = Vec::new();
    for thread in &program.threads {
        let mut values: Vec<Vec<i64>> = vec![Vec::new()];
        for &(lo, hi) in &thread.params {
            values = values
                .iter()
                .flat_map(|v| (lo..hi).map(move |x| [v.as_slice(), &[x]].concat()))
                .collect();
        }
        roots.extend(values.into_iter().map(|params| Root::Thread(thread.function, params)));
    }
    roots.extend((0..capacities.spare).map(|_| Root::Spare));
    roots
}

/// The number of cells that the locals of all slots need.
pub(super) fn local_cells(program: &Program, facts: &Facts, capacities: &Capacities) -> u64 {
    let of = |function: FunctionId| -> u64 {
        program.functions[function]
            .locals
            .iter()
            .map(|local| u64::from(size(program, &local.ty)))
            .sum()
    };
    let sizes: Vec<u64> = (0..program.functions.len()).map(of).collect();
    let reach =
        |function: &FunctionId| facts.reachable[*function].iter().map(|&f| sizes[f]).sum::<u64>();
    let threads = program.threads.iter().map(|thread| {
        let count: u64 = thread.params.iter().map(|&(lo, hi)| (hi - lo) as u64).product();
        count * reach(&thread.function)
    });
    threads.sum::<u64>() + capacities.spare as u64 * facts.spawned.iter().map(reach).sum::<u64>()
}

/// The semantics of an object of the language.
pub(super) fn kind(object: &ObjectType) -> Kind {
    match *object {
        ObjectType::Mutex => Kind::Mutex,
        ObjectType::RwLock => Kind::RwLock,
        ObjectType::Condvar => Kind::Condvar,
        ObjectType::Semaphore { initial } => Kind::Semaphore { initial },
        ObjectType::Event { auto, set } => Kind::Event { auto, set },
        ObjectType::Barrier { parties } => Kind::Barrier { parties },
        ObjectType::Channel { capacity, .. } => Kind::Channel { capacity },
    }
}

/// The number of cells of a value of this type.
pub(super) fn size(program: &Program, ty: &Type) -> u32 {
    match ty {
        Type::Array(element, length) => size(program, element) * *length as u32,
        Type::Record(id) => {
            program.records[*id].fields.iter().map(|(_, ty)| size(program, ty)).sum()
        }
        Type::Object(object) => kind(object).fields() as u32,
        _ => 1,
    }
}

/// Assigns the frames of slots.
struct Frames<'p> {
    facts: &'p Facts,
    capacities: &'p Capacities,
    sizes: &'p Sizes,
    locals: &'p [Vec<Vec<ClassId>>],
    temps: &'p [[ClassId; 2]],
}

impl Frames<'_> {
    fn slot(&self, cells: &mut Cells, index: usize, root: Root) -> Slot {
        let values = self.sizes.counters.get(index).copied().unwrap_or(1).max(1);
        let counter = cells.class(Class::exact(0, values as i64 - 1));
        let counter = cells.take(&[counter]);
        let joined = (self.capacities.owners && root == Root::Spare).then(|| {
            let class = cells.class(Class::exact(0, 1));
            cells.take(&[class])
        });
        let reachable: BTreeSet<FunctionId> = match root {
            Root::Thread(function, _) | Root::Init(function) => {
                self.facts.reachable[function].clone()
            }
            Root::Spare => self
                .facts
                .spawned
                .iter()
                .flat_map(|&f| self.facts.reachable[f].iter().copied())
                .collect(),
        };
        let frames =
            reachable.into_iter().map(|f| (f, self.frame(cells, index, f, &root))).collect();
        Slot { root, counter, frames, joined }
    }

    fn frame(&self, cells: &mut Cells, slot: usize, function: FunctionId, root: &Root) -> Frame {
        let start = cells.cells.len() as Cell;
        let constants = match root {
            Root::Thread(body, params) if *body == function => params.len(),
            _ => 0,
        };
        let (locals, quantified) = (&self.locals[function], &self.facts.quantified[function]);
        let locals = (0..locals.len())
            .map(|i| {
                if i < constants || quantified.contains(&i) {
                    NO_CELL
                } else {
                    cells.take(&locals[i])
                }
            })
            .collect();
        let counts = self.sizes.temps.get(function).copied().unwrap_or_default();
        let temps = [0, 1].map(|i| cells.take(&[self.temps[function][i]].repeat(counts[i])));
        let sites = self.sizes.sites.get(&(slot, function)).copied().unwrap_or(0);
        let selector = (sites > 1).then(|| {
            let class = cells.class(Class::exact(0, sites as i64 - 1));
            cells.take(&[class])
        });
        let range = start..cells.cells.len() as Cell;
        let stack = self.facts.recursive.contains(&function).then(|| {
            let depth = self.capacities.depth;
            let count = cells.class(Class::exact(0, depth as i64));
            let count = cells.take(&[count]);
            let frame = cells.cells[range.start as usize..range.end as usize].to_vec();
            let base = cells.cells.len() as Cell;
            (0..depth).for_each(|_| cells.cells.extend(&frame));
            (count, base)
        });
        Frame { locals, temps, selector, cells: range, stack }
    }
}
