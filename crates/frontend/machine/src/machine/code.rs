//! The code of the step machine.
//!
//! Every thread slot has its own code, in which the thread's parameters are constants and its
//! locals are cells with fixed numbers. Instructions work on scratch registers, which do not
//! survive a step, and on cells, which are the state. A step runs from one [`Instr::Rest`] to the
//! next.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::Ordering;

use preempt_system::object::{Action, Kind};

use super::cells::Frame;
use crate::program::{BinaryOp, FunctionId, Type, UnaryOp};
use crate::source::Span;

/// A scratch register.
pub(super) type Reg = u8;
/// The number of a cell of the state.
pub(super) type Cell = u32;
/// An index into [`Code::instrs`].
pub(super) type Address = u32;

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Instr {
    /// Ends the step; the thread is at the rest point of this number.
    Rest(u32),
    /// Ends the thread.
    End,
    /// Marks statements as [reached](super::reached), by a number of [`Code::marks`].
    Mark(u32),
    /// `dst = value`
    Const { dst: Reg, value: i64 },
    /// `dst = src`
    Move { dst: Reg, src: Reg },
    /// `dst = cell`
    Load { dst: Reg, cell: Cell },
    /// `dst = cells[addr]`
    LoadAt { dst: Reg, addr: Reg },
    /// `cell = src`
    Store { cell: Cell, src: Reg },
    /// `cells[addr] = src`
    StoreAt { addr: Reg, src: Reg },
    /// Resets the cells `from..to` to zero (their lowest value).
    Clear { from: Cell, to: Cell },
    /// `addr += index * stride`; fails unless `index` is below `len`.
    Index { addr: Reg, index: Reg, stride: u32, len: u32 },
    /// `addr` is a pointer to a type of [`Code::targets`]: fails if it is null, otherwise turns it
    /// into the number of a cell.
    Deref { addr: Reg, target: u16 },
    /// `addr += offset`
    Offset { addr: Reg, offset: u32 },
    /// `dst = op src`
    Unary { op: UnaryOp, dst: Reg, src: Reg },
    /// `dst = a op b`
    Binary { op: BinaryOp, dst: Reg, a: Reg, b: Reg },
    /// `dst = a op b`
    BinaryConst { op: BinaryOp, dst: Reg, a: Reg, b: i32 },
    /// Jumps.
    Jump(Address),
    /// Jumps if the condition is true.
    JumpIf { condition: Reg, to: Address },
    /// Jumps if the condition is false.
    JumpUnless { condition: Reg, to: Address },
    /// Jumps unless `lo <= value <= hi`, for a pair of [`Code::ranges`].
    JumpUnlessWithin { value: Reg, range: u32, to: Address },
    /// Jumps to the address of [`Code::tables`] that `index` selects.
    JumpTable { index: Reg, table: u32 },
    /// Blocks unless the condition holds.
    Await { condition: Reg, resting: bool },
    /// Fails unless the condition holds, with a message of [`Code::messages`] if there is one.
    Assert { condition: Reg, message: u32 },
    /// `dst` = any value of `lo..hi`.
    Choose { dst: Reg, lo: Reg, hi: Reg },
    /// Performs an operation of [`Code::operations`] on an object, blocking until it is enabled;
    /// `dst` = its reply.
    Object { dst: Reg, arg: Reg, operation: u16, addr: Reg },
    /// Blocks until an operation on an object is enabled.
    Guard { operation: u16, addr: Reg },
    /// `dst = cells[addr]; cells[addr] = src`
    Swap { dst: Reg, addr: Reg, src: Reg },
    /// `dst = cells[addr] == old`, and if so `cells[addr] = new`.
    CompareAndSwap { dst: Reg, addr: Reg, old: Reg, new: Reg },
    /// `dst = cells[addr]`, and if that is `old`, `cells[addr] = new`.
    CompareExchange { dst: Reg, addr: Reg, old: Reg, new: Reg },
    /// `dst = cells[addr]; cells[addr] = dst op src`
    Fetch { op: BinaryOp, dst: Reg, addr: Reg, src: Reg },
    /// A fence; only under weak memory.
    Fence(Ordering),
    /// Pushes the frame of a recursive function on its stack, by a number of [`Code::frames`].
    Save(u32),
    /// Stores the result of a function for its caller; fails unless it is within a pair of
    /// [`Code::ranges`].
    Result { src: Reg, range: u32 },
    /// Loads the result of a function.
    TakeResult { dst: Reg },
    /// Drops the frame of this number in [`Code::frames`] and returns to the caller.
    Return(u32),
    /// `dst` = a new thread that runs a function with the arguments in the registers from `args`
    /// on.
    Spawn { dst: Reg, function: u16, args: Reg },
    /// Blocks until a thread has ended.
    Join { thread: Reg },
    /// `dst` = a pointer to a new record.
    New { dst: Reg, record: u16 },
    // Groups of the instructions above; see `fuse`.
    /// `cell = cell op b`; replaces three instructions.
    UpdateCell { op: BinaryOp, cell: Cell, b: i32 },
    /// Jumps unless `cell op b`; replaces `length` instructions.
    JumpUnlessCell { op: BinaryOp, cell: Cell, b: i16, to: Address, length: u8 },
    /// Blocks unless `cell op b`; replaces three instructions.
    AwaitCell { op: BinaryOp, cell: Cell, b: i32, resting: bool },
    /// `to = from`; replaces two instructions.
    CopyCell { from: Cell, to: Cell },
    /// `cell = value`; replaces two instructions.
    StoreConst { cell: Cell, value: i64 },
}

/// A place in the code where a thread can be between two steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct RestPoint {
    /// The address at which its next step starts.
    pub address: Address,
    /// The source of its next step.
    pub span: Span,
    /// The text that traces show after that source.
    pub tail: &'static str,
    /// Whether the thread may stay here forever.
    pub end: bool,
}

/// The operation of [`Instr::Object`] and [`Instr::Guard`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Operation {
    /// The kind of the object.
    pub kind: Kind,
    /// The action; the value of a send is filled in at run time.
    pub action: Action,
}

/// The code of all threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Code {
    /// The instructions of all slots.
    pub instrs: Vec<Instr>,
    /// The source of each instruction.
    pub spans: Vec<Span>,
    /// The targets of [`Instr::JumpTable`].
    pub tables: Vec<Vec<Address>>,
    /// The pairs of [`Instr::JumpUnlessWithin`].
    pub ranges: Vec<(i64, i64)>,
    /// The messages of assertions; the first is empty.
    pub messages: Vec<String>,
    /// Operations on objects.
    pub operations: Vec<Operation>,
    /// The types of what pointers that are followed point to.
    pub targets: Vec<Type>,
    /// The frames from which functions return.
    pub frames: Vec<FrameCode>,
    /// The slots: threads that start with the program, then those for `spawn`.
    pub slots: Vec<SlotCode>,
    /// The `init` block.
    pub init: Option<Address>,
    /// The marks of statements that are reached together. There is one instruction for all
    /// statements of a straight line, after the last of them that may fail, so that a step that
    /// completes executes few such instructions.
    pub marks: Vec<Vec<u32>>,
    /// For each mark, the addresses at which its statement was reached but the mark is not set yet:
    /// from the start of the statement to the instruction. A step that fails there sets the mark.
    /// Lines are sorted, and so are the statements of a line.
    pub late_marks: Vec<(Range<Address>, u32)>,
    /// The orderings of instructions that access shared state, by their addresses, if they are not
    /// sequentially consistent: those of a write and of a mere read.
    pub orders: BTreeMap<Address, (Ordering, Ordering)>,
    /// The start of the code of each invariant. The code ends with [`Instr::End`] and fails with
    /// [`Instr::Assert`].
    pub invariants: Vec<Address>,
}

/// The return from a function in one slot.
#[derive(Clone, Debug)]
pub(super) struct FrameCode {
    /// Its cells.
    pub frame: Frame,
    /// The addresses at which its callers continue; for the first function of a thread, the
    /// thread's end.
    pub sites: Vec<Address>,
}

/// The code of one slot.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotCode {
    /// Its rest points.
    pub rests: Vec<RestPoint>,
    /// The start of each function that the slot can be started with; for a thread that starts with
    /// the program, its body.
    pub entries: Vec<(FunctionId, Address)>,
    /// For each of these, a rest point at its start, if the code before its first rest point may
    /// fail. A thread that would fail there stays at its start, so that failing is its first step.
    pub starts: Vec<Option<u32>>,
    /// Whether some step can end the thread.
    pub ends: bool,
    /// Whether some step can fail.
    pub fails: bool,
    /// Whether the slot is for spawned threads, and may be empty.
    pub spare: bool,
    /// Whether a step can block after it has changed cells.
    pub waits_late: bool,
}

/// The number of a function, record or operation in an instruction.
pub(super) fn id16(id: usize) -> u16 {
    u16::try_from(id).expect("the checker limits functions and records to 65,535")
}

const _: () = assert!(size_of::<Instr>() <= 16, "an instruction is two words");
