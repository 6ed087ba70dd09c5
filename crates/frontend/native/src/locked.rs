//! Finds the atomic instructions of an executable that was built without instrumentation.
//!
//! On x86-64, compilers translate read-modify-write operations and sequentially consistent stores
//! to instructions with a `lock` prefix or to `xchg` with memory. The runtime replaces each by a
//! breakpoint, whose handler is a scheduling point and performs the instruction
//! (`runtime/src/locked.rs`). Loads, and stores with weaker orders, are ordinary `mov`
//! instructions; nothing distinguishes them from accesses to plain memory, so they stay invisible.
//!
//! # Why this does not damage a program
//!
//! A breakpoint replaces the first byte of an instruction. That is safe if an instruction begins at
//! this address, because every jump to the address then executes the breakpoint, and a jump behind
//! the `lock` prefix executes bytes that are unchanged. If the bytes were data, the program would
//! read another value. So a function is patched only if all of this holds:
//!
//! - The unwind tables (or symbols) say where the function begins and ends, and that is in an
//!   executable section of the file, apart from the linkage tables.
//! - Every instruction from its beginning is known ([`crate::instruction`]), and the last one ends
//!   where the function ends.
//! - Every direct jump inside the function leads to the beginning of an instruction.
//! - It does not overlap another function in a different way.
//!
//! Data between instructions violates one of these with near certainty; compilers put their jump
//! tables into sections of their own. Other functions are left alone, and so are single
//! instructions whose operands are unusual ([`operation`]). The report counts both.
//!
//! The standard idiom for a fence, a locked `or` of zero to the stack, is not an operation: without
//! the instruction, the execution is sequentially consistent anyway.

use std::collections::BTreeMap;

use addr2line::gimli::{self, UnwindSection as _};
use object::{Object as _, ObjectSection as _, ObjectSymbol as _, SectionKind, SymbolKind};
use preempt_native_block::{self as block, IMMEDIATE, Locked, LockedKind, MAX_LOCKED};

use crate::instruction::{INSTRUCTION_POINTER, Instruction, Map, NO_REGISTER, Operands, decode};

/// The atomic instructions of an executable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LockedInstructions {
    /// Those that can be replaced, by address.
    pub(crate) found: Vec<Locked>,
    /// The number of instructions that cannot be replaced.
    pub(crate) left: usize,
    /// The number of functions that could not be decoded.
    pub(crate) undecoded: usize,
}

impl LockedInstructions {
    /// Finds the instructions of an executable.
    pub(crate) fn of(file: &object::File<'_>) -> LockedInstructions {
        let mut all = LockedInstructions::default();
        for (first, code) in functions(file) {
            match scan(first, code) {
                Some(Scan { mut found, left }) => {
                    all.found.append(&mut found);
                    all.left += left;
                }
                None => all.undecoded += 1,
            }
        }
        all.found.sort_by_key(|locked| locked.address);
        all.left += all.found.len().saturating_sub(MAX_LOCKED);
        all.found.truncate(MAX_LOCKED);
        all
    }
}

/// The code of all functions whose beginning and end are known, by address, without overlaps: of
/// functions that overlap, the outer one is taken.
fn functions<'f>(file: &'f object::File<'_>) -> Vec<(u64, &'f [u8])> {
    let mut ends: BTreeMap<u64, u64> = BTreeMap::new();
    let symbols = file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text);
    let symbols = symbols.map(|symbol| (symbol.address(), symbol.address() + symbol.size()));
    for (first, end) in unwound(file).unwrap_or_default().into_iter().chain(symbols) {
        if first < end {
            let known = ends.entry(first).or_insert(end);
            *known = end.max(*known);
        }
    }
    let mut all: Vec<(u64, &[u8])> = Vec::new();
    let mut covered = 0;
    for (first, end) in ends {
        if first < covered {
            continue;
        }
        if let Some(code) = code(file, first, end) {
            all.push((first, code));
            covered = end;
        }
    }
    all
}

/// The beginning and end of every function that the unwind tables describe.
fn unwound(file: &object::File<'_>) -> Option<Vec<(u64, u64)>> {
    let section = file.section_by_name(".eh_frame")?;
    let table = gimli::EhFrame::new(section.data().ok()?, gimli::LittleEndian);
    let bases = gimli::BaseAddresses::default().set_eh_frame(section.address());
    let mut entries = table.entries(&bases);
    let mut all = Vec::new();
    while let Some(entry) = entries.next().ok()? {
        if let gimli::CieOrFde::Fde(partial) = entry {
            let description = partial.parse(gimli::EhFrame::cie_from_offset).ok()?;
            let first = description.initial_address();
            all.push((first, first.checked_add(description.len())?));
        }
    }
    Some(all)
}

/// The bytes between two addresses of one section with code.
fn code<'f>(file: &'f object::File<'_>, first: u64, end: u64) -> Option<&'f [u8]> {
    let is_code = |section: &object::Section<'_, 'f>| {
        section.kind() == SectionKind::Text
            && !section.name().is_ok_and(|name| name.starts_with(".plt"))
            && section.address() <= first
            && end <= section.address() + section.size()
    };
    let section = file.sections().find(is_code)?;
    let from = usize::try_from(first - section.address()).ok()?;
    let len = usize::try_from(end - first).ok()?;
    section.data().ok()?.get(from..from.checked_add(len)?)
}

/// The atomic instructions of one function.
struct Scan {
    found: Vec<Locked>,
    /// The number of others that cannot be replaced.
    left: usize,
}

/// Decodes a function. `None` if there is a doubt about where its instructions begin.
fn scan(first: u64, code: &[u8]) -> Option<Scan> {
    let mut scan = Scan { found: Vec::new(), left: 0 };
    let mut begins = vec![false; code.len()];
    let mut targets = Vec::new();
    let mut at = 0;
    while at < code.len() {
        begins[at] = true;
        let instruction = decode(&code[at..])?;
        let end = at + instruction.len;
        targets.extend(instruction.jump.map(|distance| end as i64 + distance));
        if is_locked(&instruction) && !is_fence(&instruction) {
            match operation(&instruction) {
                Some(locked) => {
                    let address = first + at as u64;
                    scan.found.push(Locked { address, first: code[at], ..locked });
                }
                None => scan.left += 1,
            }
        }
        at = end;
    }
    let splits = |&target: &i64| {
        usize::try_from(target).is_ok_and(|target| begins.get(target) == Some(&false))
    };
    (at == code.len() && !targets.iter().any(splits)).then_some(scan)
}

/// Whether an instruction is atomic: it has a `lock` prefix, or exchanges a register with memory.
fn is_locked(instruction: &Instruction) -> bool {
    let exchanges = instruction.map == Map::One
        && matches!(instruction.opcode, 0x86 | 0x87)
        && instruction.operands.is_some_and(|operands| operands.memory.is_some());
    instruction.prefixes.lock || exchanges
}

/// Whether an instruction is the idiom for a fence: `lock or [rsp + n], 0`.
fn is_fence(instruction: &Instruction) -> bool {
    const STACK_POINTER: u8 = 4;
    const OR: u8 = 1;
    let Some(Operands { register, memory: Some(memory) }) = instruction.operands else {
        return false;
    };
    instruction.map == Map::One
        && matches!(instruction.opcode, 0x80 | 0x81 | 0x83)
        && register & 7 == OR
        && instruction.immediate == 0
        && (memory.base, memory.index) == (STACK_POINTER, NO_REGISTER)
}

/// The operation of an atomic instruction, without its place, if the runtime can perform it.
fn operation(instruction: &Instruction) -> Option<Locked> {
    const { assert!(block::NO_REGISTER == NO_REGISTER) };
    const { assert!(block::INSTRUCTION_POINTER == INSTRUCTION_POINTER) };
    let &Instruction { len, prefixes, map, opcode, operands, immediate, .. } = instruction;
    let Operands { register, memory } = operands?;
    let memory = memory?;
    if prefixes.segment || prefixes.address || prefixes.repeat {
        return None;
    }
    let (kind, from_register) = kind(map, opcode, register & 7)?;
    // In most opcodes, the lowest bit distinguishes bytes from larger operands.
    let is_bit =
        matches!(kind, LockedKind::SetBit | LockedKind::ResetBit | LockedKind::ComplementBit);
    let size = match () {
        () if (map, opcode) == (Map::Two, 0xC7) => 16,
        () if opcode & 1 == 0 && !is_bit => 1,
        () if prefixes.wide() => 8,
        () if prefixes.short => 2,
        () => 4,
    };
    if size == 16 && !prefixes.wide() {
        // cmpxchg8b
        return None;
    }
    // Without REX, the numbers 4 to 7 are the second bytes of registers: ah, ch, dh, bh.
    if size == 1 && from_register && prefixes.rex.is_none() && register >= 4 {
        return None;
    }
    Some(Locked {
        address: 0,
        displacement: memory.displacement,
        immediate: i32::try_from(immediate).ok()?,
        kind: kind as u8,
        len: len as u8,
        size,
        base: memory.base,
        index: memory.index,
        shift: memory.shift,
        source: if from_register { register } else { IMMEDIATE },
        first: 0,
    })
}

/// What an opcode does, and whether its second operand is the register of the ModRM byte. `reg` is
/// the register's number without extension, which is part of some opcodes.
fn kind(map: Map, opcode: u8, reg: u8) -> Option<(LockedKind, bool)> {
    use LockedKind::{
        Add, And, CompareExchange, ComplementBit, Dec, Exchange, ExchangeAdd, Inc, Not, Or,
        ResetBit, SetBit, Sub, Xor,
    };
    // The order of the processor's manual; adc and sbb depend on the carry flag and do not occur.
    let arithmetic = |nth: u8| {
        [Some(Add), Some(Or), None, None, Some(And), Some(Sub), Some(Xor), None][usize::from(nth)]
    };
    match (map, opcode) {
        (Map::One, 0x00..=0x3F) if opcode & 7 <= 1 => Some((arithmetic(opcode >> 3)?, true)),
        (Map::One, 0x80 | 0x81 | 0x83) => Some((arithmetic(reg)?, false)),
        (Map::One, 0x86 | 0x87) => Some((Exchange, true)),
        (Map::One, 0xFE | 0xFF) => match reg {
            0 => Some((Inc, false)),
            1 => Some((Dec, false)),
            _ => None,
        },
        (Map::One, 0xF6 | 0xF7) if reg == 2 => Some((Not, false)),
        (Map::Two, 0xB0 | 0xB1) => Some((CompareExchange, true)),
        (Map::Two, 0xC0 | 0xC1) => Some((ExchangeAdd, true)),
        (Map::Two, 0xC7) if reg == 1 => Some((CompareExchange, false)),
        (Map::Two, 0xAB) => Some((SetBit, true)),
        (Map::Two, 0xB3) => Some((ResetBit, true)),
        (Map::Two, 0xBB) => Some((ComplementBit, true)),
        (Map::Two, 0xBA) => match reg {
            5 => Some((SetBit, false)),
            6 => Some((ResetBit, false)),
            7 => Some((ComplementBit, false)),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The addresses of the replaceable instructions of a function at 0x100, and the number of
    /// others.
    fn scanned(code: &[u8]) -> Option<(Vec<u64>, usize)> {
        let Scan { found, left } = scan(0x100, code)?;
        Some((found.iter().map(|locked| locked.address).collect(), left))
    }

    const NOP: u8 = 0x90;
    const RET: u8 = 0xC3;

    #[test]
    fn atomic_instructions_of_a_function_are_found() {
        // lock xadd [rdi], eax; xchg [rdi], eax; xchg ecx, eax; ret
        let code = [0xF0, 0x0F, 0xC1, 0x07, 0x87, 0x07, 0x87, 0xC8, RET];
        assert_eq!(scanned(&code), Some((vec![0x100, 0x104], 0)));
        let found = scan(0x100, &code).expect("the code is decoded").found;
        let exchange = Locked {
            address: 0x104,
            displacement: 0,
            immediate: 0,
            kind: LockedKind::Exchange as u8,
            len: 2,
            size: 4,
            base: 7,
            index: NO_REGISTER,
            shift: 0,
            source: 0,
            first: 0x87,
        };
        assert_eq!(found[1], exchange);
    }

    #[test]
    fn unusual_operands_are_left_alone() {
        // lock inc fs:[rdi]; lock adc [rdi], eax; lock add [rdi], ah; lock cmpxchg8b [rdi]
        for code in [
            &[0xF0, 0x64, 0xFF, 0x07, RET][..],
            &[0xF0, 0x11, 0x07, RET],
            &[0xF0, 0x00, 0x27, RET],
            &[0xF0, 0x0F, 0xC7, 0x0F, RET],
        ] {
            assert_eq!(scanned(code), Some((vec![], 1)), "{code:x?}");
        }
        // With REX the same register number is spl: lock add [rdi], spl
        assert_eq!(scanned(&[0xF0, 0x40, 0x00, 0x27, RET]), Some((vec![0x100], 0)));
    }

    #[test]
    fn a_fence_is_not_an_operation() {
        // lock or [rsp], 0; lock or [rsp - 64], 0; lock or [rdi], 0
        let stack = [0xF0, 0x83, 0x0C, 0x24, 0, 0xF0, 0x83, 0x4C, 0x24, 0xC0, 0, RET];
        assert_eq!(scanned(&stack), Some((vec![], 0)));
        assert_eq!(scanned(&[0xF0, 0x83, 0x0F, 0, RET]), Some((vec![0x100], 0)));
    }

    #[test]
    fn a_function_with_doubtful_instructions_is_left_alone() {
        let inc = [0xF0, 0xFF, 0x07];
        let function = |before: &[u8], after: &[u8]| scanned(&[before, &inc, after].concat());
        assert_eq!(function(&[NOP], &[RET]), Some((vec![0x101], 0)));
        // Unknown: push es.
        assert_eq!(function(&[], &[0x06, RET]), None);
        // The last instruction is cut off: call.
        assert_eq!(function(&[], &[0xE8, 0]), None);
        // A jump behind the lock prefix, as hand-written code for one processor has: je +1.
        assert_eq!(function(&[0x74, 1], &[RET]), None);
        // A jump to the instruction itself, out of the function, and back to its beginning.
        assert_eq!(function(&[0x74, 0], &[RET]), Some((vec![0x102], 0)));
        assert_eq!(function(&[0x74, 0x70], &[0xEB, 0xF9]), Some((vec![0x102], 0)));
    }
}
