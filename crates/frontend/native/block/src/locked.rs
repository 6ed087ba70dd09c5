//! Atomic instructions of an executable that the runtime replaces by breakpoints.

/// The maximal number of [`Locked`] instructions.
pub const MAX_LOCKED: usize = 1 << 14;

/// Stands for no register in [`Locked::base`] and [`Locked::index`].
pub const NO_REGISTER: u8 = 16;

/// Stands for the address of the next instruction in [`Locked::base`].
pub const INSTRUCTION_POINTER: u8 = 17;

/// Stands for [`Locked::immediate`] in [`Locked::source`].
pub const IMMEDIATE: u8 = 18;

/// An atomic instruction with a memory operand, `[base + (index << shift) + displacement]`.
/// Registers have the numbers that the processor's manual gives them.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locked {
    /// Its address, relative to the address at which the executable is loaded.
    pub address: u64,
    /// See the type.
    pub displacement: i32,
    /// The second operand if [`Locked::source`] is [`IMMEDIATE`].
    pub immediate: i32,
    /// A [`LockedKind`].
    pub kind: u8,
    /// Its length in bytes.
    pub len: u8,
    /// The size of its memory operand in bytes.
    pub size: u8,
    /// A register, [`NO_REGISTER`] or [`INSTRUCTION_POINTER`].
    pub base: u8,
    /// A register or [`NO_REGISTER`].
    pub index: u8,
    /// See the type.
    pub shift: u8,
    /// The second operand: a register or [`IMMEDIATE`].
    pub source: u8,
    /// Its first byte, which the breakpoint replaces.
    pub first: u8,
}

/// What a [`Locked`] instruction does.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockedKind {
    /// `add`.
    Add = 1,
    /// `sub`.
    Sub = 2,
    /// `and`.
    And = 3,
    /// `or`.
    Or = 4,
    /// `xor`.
    Xor = 5,
    /// `inc`.
    Inc = 6,
    /// `dec`.
    Dec = 7,
    /// `not`.
    Not = 8,
    /// `xadd`.
    ExchangeAdd = 9,
    /// `xchg`.
    Exchange = 10,
    /// `cmpxchg`, and `cmpxchg16b` for 16 bytes.
    CompareExchange = 11,
    /// `bts`.
    SetBit = 12,
    /// `btr`.
    ResetBit = 13,
    /// `btc`.
    ComplementBit = 14,
}

impl LockedKind {
    /// The kind with this number.
    pub fn of(number: u8) -> Option<LockedKind> {
        use LockedKind::{
            Add, And, CompareExchange, ComplementBit, Dec, Exchange, ExchangeAdd, Inc, Not, Or,
            ResetBit, SetBit, Sub, Xor,
        };
        let all = [
            Add,
            Sub,
            And,
            Or,
            Xor,
            Inc,
            Dec,
            Not,
            ExchangeAdd,
            Exchange,
            CompareExchange,
            SetBit,
            ResetBit,
            ComplementBit,
        ];
        all.into_iter().find(|&kind| kind as u8 == number)
    }
}
