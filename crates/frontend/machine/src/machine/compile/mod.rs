//! Compiles a checked program to the code of the step machine.
//!
//! Every slot is compiled separately, with its thread's parameters as constants. No register is
//! live across an [`Instr::Rest`]: a value that is needed after one is kept in a *temporary*, a
//! cell of the frame that is zero at all other times. Only this module decides where rest points
//! are: before each access to shared state, or before each statement, and never inside an `atomic`
//! block.

mod expr;
mod place;
mod stmt;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

use preempt_system::MemoryModel;

use super::cells::{Cells, Facts, Frame, Root, Sizes};
use super::code::{Address, Code, FrameCode, Instr, Operation, Reg, RestPoint, SlotCode};
use super::reached::Item;
use super::run::FUEL;
use crate::arith;
use crate::diagnostic::Diagnostic;
use crate::program::{FunctionId, Granularity, LocalId, Program, Type};
use crate::source::Span;

/// Compiles all slots with these cells. Also returns the sizes that the frames should have.
pub(super) fn compile(
    program: &Program,
    facts: &Facts,
    cells: &Cells,
    budget: &Budget,
) -> Result<(Code, Sizes), Diagnostic> {
    let input = Input { program, facts, cells, budget };
    let mut code = Code { messages: vec![String::new()], ..Code::default() };
    let mut sizes = Sizes { temps: vec![[0; 2]; program.functions.len()], ..Sizes::default() };
    for index in 0..cells.slots.len() {
        let slot = Slot::new(input, &mut code, index).compile(&mut sizes)?;
        sizes.counters.push(
            slot.rests.len()
                + usize::from(slot.ends)
                + usize::from(slot.fails)
                + usize::from(slot.spare),
        );
        code.slots.push(slot);
    }
    if cells.init.is_some() {
        let slot = Slot::new(input, &mut code, cells.slots.len()).compile(&mut sizes)?;
        code.init = slot.entries.first().map(|&(_, address)| address);
        if slot.fails {
            // No thread takes a step if `init` fails; their program counters record that.
            for (slot, counter) in
                code.slots.iter_mut().zip(&mut sizes.counters).filter(|(slot, _)| !slot.fails)
            {
                slot.fails = true;
                *counter += 1;
            }
        }
    }
    for invariant in &program.invariants {
        let mut slot = Slot::new(input, &mut code, usize::MAX);
        slot.span = invariant.span;
        let start = slot.here();
        let message = slot.message(&invariant.name);
        slot.invariant(&invariant.condition, message)?;
        code.invariants.push(start);
    }
    Ok((code, sizes))
}

fn too_complex(span: Span) -> Diagnostic {
    Diagnostic::new(span, "this is too complex")
        .label(
            "needs more than 250 intermediate values, or quantifiers over more than 100,000 cases",
        )
        .hint("split it: give parts of it names with `var`, or use a loop")
}

/// A version of a function: for calls from ordinary code, or from inside an `atomic` block, where
/// it has no rest points.
type Version = (FunctionId, bool);

fn too_large(span: Span) -> Diagnostic {
    Diagnostic::new(span, "the code of this model needs more memory than there is")
        .label("memory ran out here")
        .hint("use loops, arrays and functions in place of repeated statements, or fewer threads")
}

/// What all slots are compiled from.
#[derive(Clone, Copy)]
struct Input<'c> {
    program: &'c Program,
    facts: &'c Facts,
    cells: &'c Cells,
    budget: &'c Budget<'c>,
}

/// The memory for code. A short program may need much: each of its threads has code of its own.
pub(super) struct Budget<'c> {
    /// Whether there is memory for a few more instructions.
    has_memory: &'c dyn Fn() -> bool,
    /// The number of instructions at which that was last asked.
    asked: Cell<usize>,
    exhausted: Cell<bool>,
}

impl<'c> Budget<'c> {
    /// The number of instructions, with their spans and marks less than 100 KB, between two
    /// questions.
    const PACE: usize = 1 << 10;

    pub(super) fn new(has_memory: &'c dyn Fn() -> bool) -> Budget<'c> {
        Budget { has_memory, asked: Cell::new(0), exhausted: Cell::new(false) }
    }

    /// Whether the memory is exhausted, at this number of instructions.
    fn is_exhausted(&self, instructions: usize) -> bool {
        if instructions.abs_diff(self.asked.get()) >= Budget::PACE {
            self.asked.set(instructions);
            self.exhausted.set(self.exhausted.get() || !(self.has_memory)());
        }
        self.exhausted.get()
    }
}

/// The compiler's state for one slot.
pub(super) struct Slot<'c> {
    program: &'c Program,
    facts: &'c Facts,
    cells: &'c Cells,
    budget: &'c Budget<'c>,
    code: &'c mut Code,
    index: usize,
    out: SlotCode,
    /// The addresses of compiled versions of functions.
    entries: BTreeMap<Version, Address>,
    /// Jumps to functions, whose targets are filled in at the end.
    calls: Vec<(Address, Version)>,
    /// Versions that are called and not compiled yet.
    todo: Vec<Version>,
    /// The number in [`Code::frames`] of each function of the slot.
    frames: BTreeMap<FunctionId, u32>,
    // The function being compiled.
    function: FunctionId,
    atomic: bool,
    loops: Vec<Loop>,
    scopes: Vec<Vec<LocalId>>,
    bound: BTreeMap<LocalId, i64>,
    temps: [Vec<bool>; 2],
    regs: usize,
    span: Span,
    end: bool,
    too_complex: Option<Span>,
    /// The statement at which the memory for code was exhausted; those after it have no code.
    too_large: Option<Span>,
    unrolled: usize,
    /// Stores whose value may be outside the range of their variable.
    narrowing: Vec<Address>,
    /// The marks of statements whose instruction was not emitted yet, with the start of each
    /// statement.
    pending: Vec<(Address, u32)>,
}

/// A loop that surrounds the current code.
struct Loop {
    /// The jumps out of the loop.
    breaks: Vec<Address>,
    /// The jumps to its next iteration.
    continues: Vec<Address>,
    /// The number of scopes around it.
    scopes: usize,
    /// Whether it is inside an `atomic` block.
    atomic: bool,
}

/// A value during evaluation.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Value {
    Const(i64),
    Reg(Reg),
}

impl<'c> Slot<'c> {
    fn new(input: Input<'c>, code: &'c mut Code, index: usize) -> Slot<'c> {
        let Input { program, facts, cells, budget } = input;
        Slot {
            program,
            facts,
            cells,
            budget,
            code,
            index,
            out: SlotCode::default(),
            entries: BTreeMap::new(),
            calls: Vec::new(),
            todo: Vec::new(),
            frames: BTreeMap::new(),
            function: usize::MAX,
            atomic: false,
            loops: Vec::new(),
            scopes: Vec::new(),
            bound: BTreeMap::new(),
            temps: Default::default(),
            regs: 0,
            span: Span::default(),
            end: false,
            too_complex: None,
            too_large: None,
            unrolled: 0,
            narrowing: Vec::new(),
            pending: Vec::new(),
        }
    }

    fn cells(&self) -> &'c super::cells::Slot {
        self.cells.slots.get(self.index).or(self.cells.init.as_ref()).expect("a slot has cells")
    }

    fn frame(&self) -> &'c Frame {
        &self.cells().frames[&self.function]
    }

    fn compile(mut self, sizes: &mut Sizes) -> Result<SlotCode, Diagnostic> {
        let cells = self.cells();
        for (&function, frame) in &cells.frames {
            self.frames.insert(function, self.code.frames.len() as u32);
            self.code.frames.push(FrameCode { frame: frame.clone(), sites: Vec::new() });
        }
        match cells.root {
            Root::Thread(function, _) => {
                let entry = self.function((function, false), sizes);
                self.out.entries.push((function, entry));
            }
            Root::Init(function) => {
                let entry = self.function((function, true), sizes);
                self.out.entries.push((function, entry));
            }
            Root::Spare => {
                self.out.spare = true;
                for &function in &self.facts.spawned {
                    // The first activation of a thread returns to the thread's end.
                    let end = self.here();
                    if self.program.memory == MemoryModel::Weak {
                        self.rest_before_end(function);
                    }
                    self.emit(Instr::End);
                    self.out.ends = true;
                    let frame = self.frames[&function];
                    self.code.frames[frame as usize].sites.push(end);
                }
                for &function in &self.facts.spawned {
                    let entry = self.function((function, false), sizes);
                    self.out.entries.push((function, entry));
                }
            }
        }
        while let Some(version) = self.todo.pop() {
            if !self.entries.contains_key(&version) {
                self.function(version, sizes);
            }
        }
        for &(jump, version) in &self.calls {
            self.code.instrs[jump as usize] = Instr::Jump(self.entries[&version]);
        }
        for index in 0..self.out.entries.len() {
            let start = self.start(self.out.entries[index]);
            self.out.starts.push(start);
        }
        for (&function, &frame) in &self.frames {
            sizes
                .sites
                .insert((self.index, function), self.code.frames[frame as usize].sites.len());
        }
        // Even straight-line code may exceed the jumps of a step.
        self.out.fails |= self.code.instrs.len() > FUEL as usize;
        match (self.too_large, self.too_complex) {
            (Some(span), _) => Err(too_large(span)),
            (None, Some(span)) => Err(too_complex(span)),
            (None, None) => Ok(self.out),
        }
    }

    /// Makes the end of a thread that can be joined a step of its own: its last access may be an
    /// event of the weak memory, and a step has one event.
    fn rest_before_end(&mut self, function: FunctionId) {
        self.span = self.program.functions[function].span;
        self.rest();
    }

    /// Adds a rest point at the start of a thread's code if the code before its first rest point
    /// may fail.
    fn start(&mut self, (function, entry): (FunctionId, Address)) -> Option<u32> {
        if matches!(self.cells().root, Root::Init(_)) || !self.may_fail_before_rest(entry) {
            return None;
        }
        let function = &self.program.functions[function];
        let span = function.body.first().map_or(function.span, |stmt| stmt.span);
        self.out.rests.push(RestPoint { address: entry, span, tail: "", end: false });
        Some(self.out.rests.len() as u32 - 1)
    }

    /// Whether the code from `entry` on may fail before it reaches a rest point; `true` if this is
    /// unknown.
    fn may_fail_before_rest(&self, entry: Address) -> bool {
        let (mut todo, mut seen) = (vec![entry], BTreeSet::new());
        while let Some(at) = todo.pop() {
            if !seen.insert(at) {
                continue;
            }
            match self.code.instrs[at as usize] {
                Instr::Rest(_) | Instr::End => {}
                Instr::Store { .. } if self.narrowing.contains(&at) => return true,
                Instr::Mark(_)
                | Instr::Const { .. }
                | Instr::Move { .. }
                | Instr::Load { .. }
                | Instr::Store { .. }
                | Instr::Clear { .. } => todo.push(at + 1),
                Instr::Binary { op, .. } | Instr::BinaryConst { op, .. }
                    if !arith::may_fail(op) =>
                {
                    todo.push(at + 1)
                }
                // A backward jump may loop forever.
                Instr::Jump(to) if to > at => todo.push(to),
                Instr::JumpIf { to, .. } | Instr::JumpUnless { to, .. } if to > at => {
                    todo.extend([at + 1, to])
                }
                _ => return true,
            }
        }
        false
    }

    /// Compiles one version of a function and returns its address.
    fn function(&mut self, version: Version, sizes: &mut Sizes) -> Address {
        if let Some(&entry) = self.entries.get(&version) {
            return entry;
        }
        let program = self.program;
        let function = &program.functions[version.0];
        (self.function, self.atomic) = version;
        self.temps = Default::default();
        self.span = function.span;
        let entry = self.here();
        self.entries.insert(version, entry);
        self.block(&function.body);
        self.leave();
        for (size, used) in sizes.temps[version.0].iter_mut().zip(&self.temps) {
            *size = (*size).max(used.len());
        }
        entry
    }

    /// Whether the current function is the body of its thread, and not one that the thread calls.
    fn is_thread_body(&self) -> bool {
        matches!(self.cells().root, Root::Thread(body, _) | Root::Init(body) if body == self.function)
    }

    /// Ends the current function.
    fn leave(&mut self) {
        match self.cells().root {
            Root::Thread(body, _) | Root::Init(body) if body == self.function => {
                // The thread's own locals stay as they are; the compiler's temporaries do not.
                let frame = self.frame();
                if frame.temps[0] < frame.cells.end {
                    self.emit(Instr::Clear { from: frame.temps[0], to: frame.cells.end });
                }
                self.emit(Instr::End);
                self.out.ends = true;
            }
            _ => {
                let frame = self.frames[&self.function];
                self.emit(Instr::Return(frame));
            }
        }
    }

    fn here(&self) -> Address {
        self.code.instrs.len() as Address
    }

    fn emit(&mut self, instr: Instr) -> Address {
        if ends_line(instr) {
            self.emit_marks();
        }
        self.push(instr)
    }

    fn push(&mut self, instr: Instr) -> Address {
        self.code.instrs.push(instr);
        self.code.spans.push(self.span);
        self.here() - 1
    }

    /// The thread reaches this item here. The instruction that records it may come later: see
    /// [`Code::marks`].
    fn mark(&mut self, item: Item) {
        if let Some(mark) = self.facts.items.mark(item) {
            self.pending.push((self.here(), mark));
        }
    }

    /// Emits one instruction for all statements since the last one.
    fn emit_marks(&mut self) {
        if self.pending.is_empty() {
            return;
        }
        let here = self.here();
        let late = self
            .pending
            .iter()
            .filter(|&&(from, _)| from < here)
            .map(|&(from, mark)| (from..here, mark));
        self.code.late_marks.extend(late);
        self.code.marks.push(self.pending.drain(..).map(|(_, mark)| mark).collect());
        self.push(Instr::Mark(self.code.marks.len() as u32 - 1));
    }

    /// A branch of a constant condition is not reported.
    fn pass_over(&self, item: Item) {
        if let Some(mark) = self.facts.items.mark(item) {
            self.facts.items.reach(mark);
        }
    }

    /// Makes the jump at `at` go to the next instruction.
    fn land(&mut self, at: Address) {
        // A jump to here does not come from the statements before.
        self.emit_marks();
        let here = self.here();
        match &mut self.code.instrs[at as usize] {
            Instr::Jump(to)
            | Instr::JumpIf { to, .. }
            | Instr::JumpUnless { to, .. }
            | Instr::JumpUnlessWithin { to, .. } => *to = here,
            other => unreachable!("only jumps land, not {other:?}"),
        }
    }

    /// Emits a rest point.
    fn rest(&mut self) {
        let number = self.out.rests.len() as u32;
        let address = self.emit(Instr::Rest(number)) + 1;
        self.out.rests.push(RestPoint { address, span: self.span, tail: "", end: self.end });
    }

    /// Whether an access to shared state starts a step here.
    fn visible(&self) -> bool {
        !self.atomic && self.program.granularity == Granularity::Access
    }

    fn fresh(&mut self) -> Reg {
        if self.regs >= 250 {
            self.too_complex.get_or_insert(self.span);
            return 250;
        }
        self.regs += 1;
        self.regs as Reg - 1
    }

    /// Loads the value into a register.
    fn reg(&mut self, value: Value) -> Reg {
        match value {
            Value::Reg(reg) => reg,
            Value::Const(value) => {
                let dst = self.fresh();
                self.emit(Instr::Const { dst, value });
                dst
            }
        }
    }

    fn message(&mut self, text: &str) -> u32 {
        self.code.messages.push(text.to_owned());
        self.code.messages.len() as u32 - 1
    }

    fn operation(&mut self, operation: Operation) -> u16 {
        let number = position_of(&mut self.code.operations, &operation);
        self.narrow(number)
    }

    /// The number in [`Code::targets`] of what a pointer points to.
    fn target(&mut self, ty: &Type) -> u16 {
        let number = position_of(&mut self.code.targets, ty);
        self.narrow(number)
    }

    /// The number of a list as an operand.
    fn narrow(&mut self, number: usize) -> u16 {
        u16::try_from(number).unwrap_or_else(|_| {
            self.too_complex.get_or_insert(self.span);
            0
        })
    }
}

/// The position of an entry, which is appended if it is not in the list.
fn position_of<T: Clone + PartialEq>(list: &mut Vec<T>, entry: &T) -> usize {
    list.iter().position(|known| known == entry).unwrap_or_else(|| {
        list.push(entry.clone());
        list.len() - 1
    })
}

/// Whether a thread that reaches this instruction may not reach the next one for another reason
/// than an error: it jumps, blocks, or ends the step.
fn ends_line(instr: Instr) -> bool {
    !matches!(
        instr,
        Instr::Mark(_)
            | Instr::Const { .. }
            | Instr::Move { .. }
            | Instr::Load { .. }
            | Instr::LoadAt { .. }
            | Instr::Store { .. }
            | Instr::StoreAt { .. }
            | Instr::Clear { .. }
            | Instr::Index { .. }
            | Instr::Deref { .. }
            | Instr::Offset { .. }
            | Instr::Unary { .. }
            | Instr::Binary { .. }
            | Instr::BinaryConst { .. }
            | Instr::Assert { .. }
    )
}
