//! The code of the step machine.
//!
//! Every thread slot has code of its own, in which the thread's parameters are constants and its
//! locals are cells with fixed numbers. An instruction works on scratch registers, which do not
//! survive a step, and on cells, which are the state. A step runs from one [`Instr::Rest`] to the
//! next.

use std::ops::Range;

use preempt_system::object::{Action, Kind};

use super::cells::Frame;
use crate::program::{BinaryOp, FunctionId, UnaryOp};
use crate::source::Span;

/// A scratch register.
pub(super) type Reg = u8;
/// The number of a cell of the state.
pub(super) type Cell = u32;
/// An index into [`Code::instrs`].
pub(super) type Address = u32;

/// One instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Instr {
    /// The step is over; the thread rests at its rest point of this number.
    Rest(u32),
    /// The thread has ended.
    End,
    /// The statements of this number in [`Code::marks`] are [reached](super::reached).
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
    /// Makes the cells from `from` to before `to` zero (their lowest value).
    Clear { from: Cell, to: Cell },
    /// `addr += index * stride` after checking that `index` is below `len`.
    Index { addr: Reg, index: Reg, stride: u32, len: u32 },
    /// `addr` is a pointer: fails on null, else makes it the number of a cell.
    Deref { addr: Reg },
    /// `addr += offset`
    Offset { addr: Reg, offset: u32 },
    /// `dst = op src`
    Unary { op: UnaryOp, dst: Reg, src: Reg },
    /// `dst = a op b`
    Binary { op: BinaryOp, dst: Reg, a: Reg, b: Reg },
    /// `dst = a op b`
    BinaryConst { op: BinaryOp, dst: Reg, a: Reg, b: i32 },
    /// Continues at another address.
    Jump(Address),
    /// Continues elsewhere if the condition is true.
    JumpIf { condition: Reg, to: Address },
    /// Continues elsewhere if the condition is false.
    JumpUnless { condition: Reg, to: Address },
    /// Continues elsewhere unless `lo <= value <= hi` for the pair of this number in
    /// [`Code::ranges`].
    JumpUnlessWithin { value: Reg, range: u32, to: Address },
    /// Continues at the address of [`Code::tables`] that `index` selects.
    JumpTable { index: Reg, table: u32 },
    /// The thread has to wait unless the condition holds.
    Await { condition: Reg, resting: bool },
    /// Fails unless the condition holds, with a message of [`Code::messages`] if one was given.
    Assert { condition: Reg, message: u32 },
    /// `dst` = any value from `lo` to before `hi`.
    Choose { dst: Reg, lo: Reg, hi: Reg },
    /// An operation of [`Code::operations`] on an object: waits until it is possible, does it,
    /// `dst` = its reply.
    Object { dst: Reg, arg: Reg, operation: u16, addr: Reg },
    /// Waits until an operation on an object is possible.
    Guard { operation: u16, addr: Reg },
    /// `dst = cells[addr]; cells[addr] = src`
    Swap { dst: Reg, addr: Reg, src: Reg },
    /// `dst = cells[addr] == old`, and if so `cells[addr] = new`.
    CompareAndSwap { dst: Reg, addr: Reg, old: Reg, new: Reg },
    /// `dst = cells[addr]; cells[addr] = dst op src`
    Fetch { op: BinaryOp, dst: Reg, addr: Reg, src: Reg },
    /// Puts the frame of a recursive function on its stack, by its number in [`Code::frames`].
    Save(u32),
    /// Keeps the result of a function for its caller; fails unless it is within the pair of this
    /// number in [`Code::ranges`].
    Result { src: Reg, range: u32 },
    /// Fetches it.
    TakeResult { dst: Reg },
    /// Drops the frame of this number in [`Code::frames`] and goes back to the caller.
    Return(u32),
    /// `dst` = a new thread that runs a function with the arguments in the registers from `args`
    /// on.
    Spawn { dst: Reg, function: u16, args: Reg },
    /// Waits for the end of a thread.
    Join { thread: Reg },
    /// `dst` = a pointer to a new record.
    New { dst: Reg, record: u16 },
    // Groups of the above; see `fuse`.
    /// `cell = cell op b`, for three instructions.
    UpdateCell { op: BinaryOp, cell: Cell, b: i32 },
    /// Continues elsewhere unless `cell op b`, for as many instructions as `length` says.
    JumpUnlessCell { op: BinaryOp, cell: Cell, b: i16, to: Address, length: u8 },
    /// The thread has to wait unless `cell op b`, for three instructions.
    AwaitCell { op: BinaryOp, cell: Cell, b: i32, resting: bool },
    /// `to = from`, for two instructions.
    CopyCell { from: Cell, to: Cell },
    /// `cell = value`, for two instructions.
    StoreConst { cell: Cell, value: i64 },
}

/// A place where a thread can be between two steps.
#[derive(Clone, Copy, Debug)]
pub(super) struct RestPoint {
    /// Where its next step begins.
    pub address: Address,
    /// The text of its next step.
    pub span: Span,
    /// What a person has to read behind that text.
    pub tail: &'static str,
    /// The thread may stay here forever.
    pub end: bool,
}

/// What [`Instr::Object`] and [`Instr::Guard`] do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Operation {
    /// The kind of the object.
    pub kind: Kind,
    /// What is done to it; the value of a send is filled in when it runs.
    pub action: Action,
}

/// The code of all threads.
#[derive(Clone, Debug, Default)]
pub(super) struct Code {
    /// The instructions of all slots.
    pub instrs: Vec<Instr>,
    /// The text that each instruction comes from.
    pub spans: Vec<Span>,
    /// Targets of [`Instr::JumpTable`].
    pub tables: Vec<Vec<Address>>,
    /// Pairs for [`Instr::JumpUnlessWithin`].
    pub ranges: Vec<(i64, i64)>,
    /// Messages of assertions; the first is empty.
    pub messages: Vec<String>,
    /// Operations on objects.
    pub operations: Vec<Operation>,
    /// The frames that functions return from.
    pub frames: Vec<FrameCode>,
    /// The slots: threads that start at once, then those for `spawn`.
    pub slots: Vec<SlotCode>,
    /// The `init` block.
    pub init: Option<Address>,
    /// The marks of the statements that are reached together. One instruction for all statements of
    /// a straight line stands behind the last of them that may fail, so that a step that comes to
    /// its end executes few of them.
    pub marks: Vec<Vec<u32>>,
    /// Where each mark of a line is not set yet although its statement is reached: from the
    /// beginning of the statement to the instruction. A step that fails there sets it. Lines follow
    /// each other, and so do the statements of a line.
    pub late_marks: Vec<(Range<Address>, u32)>,
    /// The invariants: where their code begins; it ends with [`Instr::End`] and fails with
    /// [`Instr::Assert`].
    pub invariants: Vec<Address>,
}

/// How to return from a function in one slot.
#[derive(Clone, Debug)]
pub(super) struct FrameCode {
    /// Its cells.
    pub frame: Frame,
    /// Where its callers go on; for the root of a thread, where it ends.
    pub sites: Vec<Address>,
}

/// The code of one slot.
#[derive(Clone, Debug, Default)]
pub(super) struct SlotCode {
    /// Its rest points.
    pub rests: Vec<RestPoint>,
    /// Where each function begins that the slot can be started with; for a thread that starts at
    /// once, its body.
    pub entries: Vec<(FunctionId, Address)>,
    /// For each of these, the rest point at its beginning, if what comes before its first rest
    /// point may fail: there a thread stays that would fail on its way, so that failing is its
    /// first step.
    pub starts: Vec<Option<u32>>,
    /// Whether some step can end the thread.
    pub ends: bool,
    /// Whether some step can fail.
    pub fails: bool,
    /// Whether the slot is for threads made by `spawn`, and may be empty.
    pub spare: bool,
    /// Whether a step can find out that it has to wait after it has changed cells.
    pub waits_late: bool,
}

/// The id of a function, record or operation in an instruction.
pub(super) fn id16(id: usize) -> u16 {
    u16::try_from(id).expect("the checker limits functions and records to 65,535")
}

const _: () = assert!(size_of::<Instr>() <= 16, "an instruction is two words");
