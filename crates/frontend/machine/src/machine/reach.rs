//! A static bound on what the step at a rest point may do, in whatever state it is taken: the code
//! is read from there to the next rest points.
//!
//! A search with scheduling points only at synchronisation merges steps. A merged step must end at
//! the same place of the code whatever other threads did meanwhile: whether the next step belongs
//! to it must not depend on shared values. So the question is answered for the rest point, over all
//! paths of the code from there, and not for the state.
//!
//! The answer is an upper bound. Every branch is assumed to be possible, a function may return to
//! each of its callers, an index may have any value in its range. A pointer may lead to any heap
//! record, and to any shared place of its type whose address the program takes ([`Targets`]).
//! Imprecision adds scheduling points and never removes one.
//!
//! Shared places whose address is taken must be among the targets of a pointer, because such a
//! place may be atomic or promoted. With `p = &y` and atomic `y`, `*p = 1; *p = 0` must be two
//! steps: merged, they would hide the failure of `assert y != 1` in parallel.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use preempt_system::Location;

use super::Machine;
use super::cells::size;
use super::code::{Address, Cell, Instr, Reg, RestPoint};
use crate::program::{Base, ExprKind, Place, Projection, Type};
use crate::walk;

/// The most ranges of cells that are distinguished; more are merged into one.
const MOST_RANGES: usize = 256;

/// For each slot and each of its rest points, whether the step there only accesses plain variables:
/// it cannot block, cannot choose, and accesses neither a variable of `points` nor one that a
/// thread may wait for.
pub(super) fn data_steps(machine: &Machine, points: &BTreeSet<Location>) -> Vec<Vec<bool>> {
    let mut awaited = Cells::default();
    let targets = Targets::of(machine);
    let slots = machine.code.slots.iter();
    let mut reach = |rest: &RestPoint| Reach::from(machine, &targets, rest.address, &mut awaited);
    let reaches: Vec<Vec<Reach>> =
        slots.map(|slot| slot.rests.iter().map(&mut reach).collect()).collect();
    points.iter().for_each(|&Location(cell)| awaited.add(cell.into(), cell.into()));
    let is_data = |reach: &Reach| reach.is_data(machine, &awaited);
    reaches.iter().map(|slot| slot.iter().map(is_data).collect()).collect()
}

/// Cells of the state, as ranges that include both ends.
#[derive(Clone, Debug, Default, PartialEq)]
struct Cells {
    ranges: BTreeSet<(i64, i64)>,
    /// Also the variables in all heap records.
    heap: bool,
    /// Also all other cells.
    any: bool,
}

impl Cells {
    fn add(&mut self, from: i64, to: i64) {
        self.ranges.insert((from, to));
        if self.ranges.len() > MOST_RANGES {
            let from = self
                .ranges
                .iter()
                .map(|range| range.0)
                .min()
                .expect("there are more than MOST_RANGES");
            let to = self
                .ranges
                .iter()
                .map(|range| range.1)
                .max()
                .expect("there are more than MOST_RANGES");
            self.ranges = BTreeSet::from([(from, to)]);
        }
    }

    fn add_all(&mut self, other: &Cells) {
        other.ranges.iter().for_each(|&(from, to)| self.add(from, to));
        self.heap |= other.heap;
        self.any |= other.any;
    }

    /// These cells shifted by each of several distances.
    fn moved(&self, by: impl Iterator<Item = i64> + Clone) -> Cells {
        let mut moved = Cells { ranges: BTreeSet::new(), ..*self };
        for &(from, to) in &self.ranges {
            by.clone().for_each(|by| moved.add(from + by, to + by));
        }
        moved
    }

    fn is_empty(&self) -> bool {
        self.ranges.is_empty() && !self.heap && !self.any
    }

    /// Whether the two may have a cell in common.
    fn meets(&self, other: &Cells, machine: &Machine) -> bool {
        let in_heap =
            |&(from, to): &(i64, i64)| (from..=to).any(|cell| machine.cells.is_heap(cell as Cell));
        let meet = |a: &Cells, b: &Cells| a.heap && (b.heap || b.ranges.iter().any(in_heap));
        let overlap =
            |&(from, to): &(i64, i64)| other.ranges.iter().any(|&(a, b)| a <= to && from <= b);
        !self.is_empty() && other.any
            || !other.is_empty() && self.any
            || meet(self, other)
            || meet(other, self)
            || self.ranges.iter().any(overlap)
    }
}

/// The cells at which pointers may point, by the type of what they point to.
///
/// A pointer is the address of a heap record, of a shared variable or of a part of one of these.
/// Addresses of locals are not taken. So all cells outside the heap come from expressions `&place`:
/// those of a variable's part directly, and those of a part of `*p` from the cells of `p`'s type.
#[derive(Debug, Default)]
struct Targets(Vec<(Type, Cells)>);

impl Targets {
    fn of(machine: &Machine) -> Targets {
        let mut places = Vec::new();
        for function in &machine.program.functions {
            walk::exprs(&function.body, &mut |e| {
                if let (ExprKind::AddressOf(place), Type::Pointer(target)) = (&e.kind, &e.ty) {
                    places.push((place, &**target));
                }
            });
        }
        let mut targets = Targets::default();
        // Until no place adds a cell: each is part of a larger one, so there is an end.
        loop {
            let mut changed = false;
            for &(place, target) in &places {
                let cells = targets.place(machine, place);
                changed |= targets.add(target, &cells);
            }
            if !changed {
                return targets;
            }
        }
    }

    /// The cells of variables at which a place may begin.
    fn place(&self, machine: &Machine, place: &Place) -> Cells {
        let program = &machine.program;
        let (mut cells, mut ty) = match &place.base {
            Base::Global(id) => {
                let (mut cells, first) = (Cells::default(), machine.cells.globals[*id]);
                cells.add(first.into(), first.into());
                (cells, &program.globals[*id].ty)
            }
            Base::Deref(pointer) => {
                let Type::Pointer(target) = &pointer.ty else {
                    unreachable!("only pointers are dereferenced")
                };
                (self.variables(target), &**target)
            }
            Base::Local(_) => unreachable!("locals have no address"),
        };
        for projection in &place.path {
            match projection {
                Projection::Field(record, index) => {
                    let fields = &program.records[*record].fields;
                    let before = fields[..*index].iter().map(|(_, ty)| size(program, ty));
                    cells = cells.moved(std::iter::once(before.sum::<u32>().into()));
                    ty = &fields[*index].1;
                }
                Projection::Index(_, length) => {
                    let Type::Array(element, _) = ty else {
                        unreachable!("only arrays are indexed")
                    };
                    let stride = i64::from(size(program, element));
                    cells = cells.moved((0..*length as i64).map(|index| index * stride));
                    ty = element;
                }
            }
        }
        cells
    }

    /// Adds cells of variables. Returns whether one of them is new.
    fn add(&mut self, target: &Type, cells: &Cells) -> bool {
        let at = self.0.iter().position(|(ty, _)| ty == target).unwrap_or_else(|| {
            self.0.push((target.clone(), Cells::default()));
            self.0.len() - 1
        });
        let known = &mut self.0[at].1;
        let before = known.clone();
        known.add_all(cells);
        *known != before
    }

    /// The cells of variables at which pointers to a type may point. Scalar types count as one.
    fn variables(&self, target: &Type) -> Cells {
        let is_scalar =
            |ty: &Type| !matches!(ty, Type::Record(_) | Type::Array(..) | Type::Object(_));
        let mut cells = Cells::default();
        for (ty, of) in &self.0 {
            if ty == target || is_scalar(ty) && is_scalar(target) {
                cells.add_all(of);
            }
        }
        cells
    }
}

/// The possible effects of a step.
#[derive(Debug, Default)]
struct Reach {
    touched: Cells,
    /// It may use an object, start a thread or allocate a record.
    acts: bool,
    waits: bool,
    chooses: bool,
}

/// The facts before an instruction.
#[derive(Clone, Debug, Default, PartialEq)]
struct Known {
    /// The registers with known values, as numbers of cells.
    regs: BTreeMap<Reg, Cells>,
    /// The cells that the step may have accessed before.
    touched: Cells,
}

impl Known {
    /// Merges the facts of two paths. Returns whether this changed anything.
    fn join(&mut self, other: &Known) -> bool {
        let before = self.clone();
        self.regs.retain(|reg, value| match other.regs.get(reg) {
            Some(other) => {
                value.add_all(other);
                true
            }
            None => false,
        });
        self.touched.add_all(&other.touched);
        *self != before
    }

    fn set(&mut self, reg: Reg, value: Option<Cells>) {
        match value {
            Some(value) => self.regs.insert(reg, value),
            None => self.regs.remove(&reg),
        };
    }

    fn touch(&mut self, cell: Cell) {
        self.touched.add(cell.into(), cell.into());
    }

    fn touch_at(&mut self, addr: Reg) {
        match self.regs.get(&addr) {
            Some(cells) => self.touched.add_all(cells),
            None => self.touched.any = true,
        }
    }
}

impl Reach {
    /// Reads the code from `address` to all rest points that may come next. Adds to `awaited` what
    /// may have been read where the step may block.
    fn from(machine: &Machine, targets: &Targets, address: Address, awaited: &mut Cells) -> Reach {
        let mut reach = Reach::default();
        let mut known: HashMap<Address, Known> = HashMap::from([(address, Known::default())]);
        let mut open = vec![address];
        while let Some(at) = open.pop() {
            let mut here = known[&at].clone();
            let next = reach.pass((machine, targets), at, &mut here, awaited);
            for to in next {
                let changed = match known.get_mut(&to) {
                    Some(known) => known.join(&here),
                    None => {
                        known.insert(to, here.clone());
                        true
                    }
                };
                if changed && !open.contains(&to) {
                    open.push(to);
                }
            }
            reach.touched.add_all(&here.touched);
        }
        reach
    }

    fn is_data(&self, machine: &Machine, points: &Cells) -> bool {
        let shared = i64::from(machine.cells.shared);
        let is_data = |&(from, to): &(i64, i64)| {
            (from..=to.min(shared - 1)).all(|cell| machine.data[cell as usize])
        };
        let mut touched = self.touched.clone();
        touched.ranges.retain(|&(from, _)| from < shared);
        !(self.acts || self.waits || self.chooses || touched.any || touched.is_empty())
            && touched.ranges.iter().all(is_data)
            && !touched.meets(points, machine)
    }

    /// Adds what an instruction may do, and returns where the step may continue.
    fn pass(
        &mut self,
        (machine, targets): (&Machine, &Targets),
        at: Address,
        known: &mut Known,
        awaited: &mut Cells,
    ) -> Vec<Address> {
        let code = &machine.code;
        let cells = |known: &Known, reg: Reg| known.regs.get(&reg).cloned();
        let mut fused = 0;
        match code.instrs[at as usize] {
            Instr::Rest(_) | Instr::End => return Vec::new(),
            Instr::Const { dst, value } => {
                known.set(
                    dst,
                    Some(Cells { ranges: BTreeSet::from([(value, value)]), ..Cells::default() }),
                );
            }
            Instr::Move { dst, src } => known.set(dst, cells(known, src)),
            Instr::Offset { addr, offset } => {
                let by = std::iter::once(i64::from(offset));
                known.set(addr, cells(known, addr).map(|cells| cells.moved(by)));
            }
            Instr::Index { addr, stride, len, .. } => {
                let by = (0..i64::from(len)).map(|index| index * i64::from(stride));
                known.set(addr, cells(known, addr).map(|cells| cells.moved(by)));
            }
            Instr::Deref { addr, target } => {
                let variables = targets.variables(&code.targets[target as usize]);
                known.set(addr, Some(Cells { heap: true, ..variables }));
            }
            Instr::Unary { dst, .. }
            | Instr::Binary { dst, .. }
            | Instr::BinaryConst { dst, .. } => known.set(dst, None),
            Instr::Load { dst, cell } => {
                known.touch(cell);
                known.set(dst, None);
            }
            Instr::LoadAt { dst, addr }
            | Instr::Swap { dst, addr, .. }
            | Instr::CompareAndSwap { dst, addr, .. }
            | Instr::CompareExchange { dst, addr, .. }
            | Instr::Fetch { dst, addr, .. } => {
                known.touch_at(addr);
                known.set(dst, None);
            }
            Instr::Store { cell, .. } => known.touch(cell),
            Instr::StoreAt { addr, .. } => known.touch_at(addr),
            // Cells of the thread alone.
            Instr::Mark(_)
            | Instr::Fence(_)
            | Instr::Clear { .. }
            | Instr::Save(_)
            | Instr::Result { .. }
            | Instr::Assert { .. } => {}
            Instr::TakeResult { dst } => known.set(dst, None),
            Instr::Jump(to) => return vec![to],
            Instr::JumpIf { to, .. }
            | Instr::JumpUnless { to, .. }
            | Instr::JumpUnlessWithin { to, .. } => {
                return vec![at + 1, to];
            }
            Instr::JumpTable { table, .. } => return code.tables[table as usize].clone(),
            Instr::Return(frame) => {
                // A call leaves nothing in the registers.
                known.regs.clear();
                return code.frames[frame as usize].sites.clone();
            }
            Instr::Await { .. } => self.wait(known, awaited),
            Instr::Choose { dst, .. } => {
                self.chooses = true;
                known.set(dst, None);
            }
            Instr::Object { dst, operation, .. } => {
                self.acts = true;
                if code.operations[operation as usize].action.may_wait() {
                    self.wait(known, awaited);
                }
                known.set(dst, None);
            }
            Instr::Guard { .. } | Instr::Join { .. } => {
                self.acts = true;
                self.wait(known, awaited);
            }
            Instr::Spawn { dst, .. } | Instr::New { dst, .. } => {
                self.acts = true;
                known.set(dst, None);
            }
            Instr::UpdateCell { cell, .. } => {
                known.touch(cell);
                fused = 2;
            }
            Instr::JumpUnlessCell { cell, to, length, .. } => {
                known.touch(cell);
                return vec![at + Address::from(length), to];
            }
            Instr::AwaitCell { cell, .. } => {
                known.touch(cell);
                self.wait(known, awaited);
                fused = 2;
            }
            Instr::CopyCell { from, to } => {
                known.touch(from);
                known.touch(to);
                fused = 1;
            }
            Instr::StoreConst { cell, .. } => {
                known.touch(cell);
                fused = 1;
            }
        }
        vec![at + 1 + fused]
    }

    /// The step may block here, which depends on what it has accessed before.
    fn wait(&mut self, known: &Known, awaited: &mut Cells) {
        self.waits = true;
        awaited.add_all(&known.touched);
    }
}
