//! Decodes the lengths and memory operands of x86-64 instructions.
//!
//! [`crate::locked`] needs to know where instructions begin, where direct jumps lead, and the
//! operands of atomic instructions. The meaning of other instructions does not matter, so this is a
//! table of which opcodes have a ModRM byte and an immediate. Opcodes that are invalid in 64-bit
//! mode, whose length differs between processors, or that compilers do not emit are not decoded,
//! and neither are prefixes in a combination that assemblers do not produce: the caller then leaves
//! the whole function alone. A test compares the lengths with those of `objdump`.

/// The number of a register in memory operands that have none.
pub(crate) const NO_REGISTER: u8 = 16;

/// The number that stands for the instruction pointer in memory operands.
pub(crate) const INSTRUCTION_POINTER: u8 = 17;

/// The maximal length of an instruction in bytes.
const LONGEST: usize = 15;

/// A decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Instruction {
    pub(crate) len: usize,
    pub(crate) prefixes: Prefixes,
    pub(crate) map: Map,
    pub(crate) opcode: u8,
    pub(crate) operands: Option<Operands>,
    /// The immediate, sign-extended; 0 if there is none.
    pub(crate) immediate: i64,
    /// The distance of a direct jump or call from the end of the instruction.
    pub(crate) jump: Option<i64>,
}

/// The prefixes of an instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Prefixes {
    pub(crate) lock: bool,
    /// `66`: operands of 16 bits.
    pub(crate) short: bool,
    /// `F2` or `F3`.
    pub(crate) repeat: bool,
    /// `67`: addresses of 32 bits.
    pub(crate) address: bool,
    /// `FS` or `GS`, by which thread-local memory is addressed.
    pub(crate) segment: bool,
    pub(crate) rex: Option<u8>,
}

impl Prefixes {
    /// A bit of the REX prefix: 3 widens operands to 64 bits, the others extend registers.
    fn rex_bit(self, bit: u8) -> u8 {
        self.rex.map_or(0, |rex| rex >> bit & 1)
    }

    pub(crate) fn wide(self) -> bool {
        self.rex_bit(3) != 0
    }
}

/// The table to which an opcode belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Map {
    /// One byte.
    One,
    /// After `0F`.
    Two,
    /// After `0F 38`, `0F 3A`, or a VEX or EVEX prefix. Only the length is decoded.
    Other,
}

/// The operands that a ModRM byte describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Operands {
    /// The register operand, or the second half of the opcode (without the extension).
    pub(crate) register: u8,
    /// The memory operand, if the other operand is not a register.
    pub(crate) memory: Option<Memory>,
}

/// `[base + index << shift + displacement]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Memory {
    pub(crate) base: u8,
    pub(crate) index: u8,
    pub(crate) shift: u8,
    pub(crate) displacement: i32,
}

/// What follows an opcode.
#[derive(Clone, Copy)]
struct Shape {
    modrm: bool,
    immediate: Immediate,
}

#[derive(Clone, Copy)]
enum Immediate {
    None,
    /// This many bytes.
    Bytes(usize),
    /// 2 bytes with the prefix `66`, otherwise 4.
    Full,
    /// As `Full`, and 8 bytes with REX.W.
    Long,
    /// A jump by this many bytes.
    Jump(usize),
}

/// The bytes of an instruction that are not decoded yet.
struct Reader<'c> {
    code: &'c [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.code.get(self.at).filter(|_| self.at < LONGEST)?;
        self.at += 1;
        Some(byte)
    }

    /// A little-endian number of `bytes` bytes, sign-extended.
    fn number(&mut self, bytes: usize) -> Option<i64> {
        let mut number = 0_u64;
        for nth in 0..bytes {
            number |= u64::from(self.byte()?) << (8 * nth);
        }
        let unused = 64 - 8 * bytes as u32;
        Some(if bytes == 0 { 0 } else { (number << unused) as i64 >> unused })
    }
}

/// Decodes the instruction with which `code` begins; `None` if it is not known.
pub(crate) fn decode(code: &[u8]) -> Option<Instruction> {
    let mut reader = Reader { code, at: 0 };
    let mut prefixes = Prefixes::default();
    let first = loop {
        match reader.byte()? {
            0xF0 => prefixes.lock = true,
            0x66 => prefixes.short = true,
            0xF2 | 0xF3 => prefixes.repeat = true,
            0x67 => prefixes.address = true,
            0x64 | 0x65 => prefixes.segment = true,
            // Without effect in 64-bit mode, except as a hint or as padding.
            0x26 | 0x2E | 0x36 | 0x3E => {}
            rex @ 0x40..=0x4F => {
                prefixes.rex = Some(rex);
                // It must be the last prefix.
                break reader.byte()?;
            }
            byte => break byte,
        }
    };
    if matches!(first, 0xC4 | 0xC5 | 0x62) {
        return decode_vector(reader, prefixes, first);
    }
    let (map, opcode) = match first {
        0x0F => match reader.byte()? {
            0x38 | 0x3A => {
                let with_immediate = reader.code[reader.at - 1] == 0x3A;
                let opcode = reader.byte()?;
                return finish(reader, prefixes, (Map::Other, opcode), vector(with_immediate));
            }
            opcode => (Map::Two, opcode),
        },
        opcode => (Map::One, opcode),
    };
    let second = reader.code.get(reader.at).copied();
    let shape = match map {
        Map::One => one_byte(opcode, prefixes, second)?,
        _ => two_bytes(opcode, prefixes, second)?,
    };
    finish(reader, prefixes, (map, opcode), shape)
}

/// An instruction with a VEX (`C4`, `C5`) or EVEX (`62`) prefix, whose first byte was read.
fn decode_vector(mut reader: Reader<'_>, prefixes: Prefixes, first: u8) -> Option<Instruction> {
    if prefixes.lock || prefixes.short || prefixes.repeat || prefixes.rex.is_some() {
        return None;
    }
    let map = match first {
        0xC5 => {
            reader.byte()?;
            1
        }
        0xC4 => {
            let map = reader.byte()? & 0x1F;
            reader.byte()?;
            map
        }
        _ => {
            let (p0, p1, _) = (reader.byte()?, reader.byte()?, reader.byte()?);
            (p0 & 8 == 0 && p1 & 4 != 0).then_some(p0 & 7)?
        }
    };
    let opcode = reader.byte()?;
    let shape = match (map, opcode) {
        // vzeroupper and vzeroall
        (1, 0x77) if first != 0x62 => Shape { modrm: false, immediate: Immediate::None },
        (1, 0x70..=0x73 | 0xC2 | 0xC4..=0xC6) | (3, _) => vector(true),
        (1 | 2, _) => vector(false),
        (5 | 6, _) if first == 0x62 => vector(false),
        _ => return None,
    };
    finish(reader, prefixes, (Map::Other, opcode), shape)
}

fn vector(with_immediate: bool) -> Shape {
    let immediate = if with_immediate { Immediate::Bytes(1) } else { Immediate::None };
    Shape { modrm: true, immediate }
}

/// Reads what follows the opcode.
fn finish(
    mut reader: Reader<'_>,
    prefixes: Prefixes,
    (map, opcode): (Map, u8),
    shape: Shape,
) -> Option<Instruction> {
    let operands = if shape.modrm { Some(read_operands(&mut reader, prefixes)?) } else { None };
    let full = if prefixes.short && !prefixes.wide() { 2 } else { 4 };
    let (bytes, is_jump) = match shape.immediate {
        Immediate::None => (0, false),
        Immediate::Bytes(bytes) => (bytes, false),
        Immediate::Full => (full, false),
        Immediate::Long if prefixes.wide() => (8, false),
        Immediate::Long => (full, false),
        Immediate::Jump(bytes) => (bytes, true),
    };
    let number = reader.number(bytes)?;
    let (immediate, jump) = if is_jump { (0, Some(number)) } else { (number, None) };
    Some(Instruction { len: reader.at, prefixes, map, opcode, operands, immediate, jump })
}

/// Reads the ModRM byte, and the SIB byte and displacement that follow it.
fn read_operands(reader: &mut Reader<'_>, prefixes: Prefixes) -> Option<Operands> {
    let modrm = reader.byte()?;
    let (mode, low) = (modrm >> 6, modrm & 7);
    let register = modrm >> 3 & 7 | prefixes.rex_bit(2) << 3;
    if mode == 3 {
        return Some(Operands { register, memory: None });
    }
    let extended = |number: u8, bit: u8| number | prefixes.rex_bit(bit) << 3;
    let (mut base, mut index, mut shift) = (extended(low, 0), NO_REGISTER, 0);
    let mut displaced = [0, 1, 4][usize::from(mode)];
    if low == 4 {
        let sib = reader.byte()?;
        (base, shift) = (extended(sib & 7, 0), sib >> 6);
        let number = extended(sib >> 3 & 7, 1);
        // Number 4 (the stack pointer) stands for no index.
        index = if number == 4 { NO_REGISTER } else { number };
        if sib & 7 == 5 && mode == 0 {
            (base, displaced) = (NO_REGISTER, 4);
        }
    } else if low == 5 && mode == 0 {
        (base, displaced) = (INSTRUCTION_POINTER, 4);
    }
    let displacement = reader.number(displaced)? as i32;
    Some(Operands { register, memory: Some(Memory { base, index, shift, displacement }) })
}

/// The shape of an opcode of one byte; `second` is the byte after it.
fn one_byte(opcode: u8, prefixes: Prefixes, second: Option<u8>) -> Option<Shape> {
    let reg = second.map(|modrm| modrm >> 3 & 7);
    let plain = |immediate| Some(Shape { modrm: false, immediate });
    let modrm = |immediate| Some(Shape { modrm: true, immediate });
    let near = |bytes| match prefixes.short && !prefixes.wide() {
        // Processors disagree on the length of a jump with the prefix `66`.
        true => None,
        false => plain(Immediate::Jump(bytes)),
    };
    match opcode {
        0x00..=0x3F => match opcode & 7 {
            0..=3 => modrm(Immediate::None),
            4 => plain(Immediate::Bytes(1)),
            5 => plain(Immediate::Full),
            _ => None,
        },
        0x50..=0x5F | 0x6C..=0x6F | 0x90..=0x99 | 0x9B..=0x9F => plain(Immediate::None),
        0x63 | 0x84..=0x8E | 0xD0..=0xD3 | 0xD8..=0xDF => modrm(Immediate::None),
        0x8F if reg? == 0 => modrm(Immediate::None),
        0x68 | 0xA9 => plain(Immediate::Full),
        0x69 | 0x81 => modrm(Immediate::Full),
        0x6A | 0xA8 | 0xB0..=0xB7 | 0xCD | 0xE4..=0xE7 => plain(Immediate::Bytes(1)),
        0x6B | 0x80 | 0x83 | 0xC0 | 0xC1 => modrm(Immediate::Bytes(1)),
        0x70..=0x7F | 0xE0..=0xE3 | 0xEB => near(1),
        0xA0..=0xA3 if !prefixes.address => plain(Immediate::Bytes(8)),
        0xA4..=0xA7 | 0xAA..=0xAF | 0xC3 | 0xC9 | 0xCC | 0xD7 => plain(Immediate::None),
        0xB8..=0xBF => plain(Immediate::Long),
        0xC2 => plain(Immediate::Bytes(2)),
        0xC6 if reg? == 0 => modrm(Immediate::Bytes(1)),
        0xC7 if reg? == 0 => modrm(Immediate::Full),
        0xC8 => plain(Immediate::Bytes(3)),
        0xE8 | 0xE9 => near(4),
        0xF4 | 0xF5 | 0xF8..=0xFD => plain(Immediate::None),
        0xF6 if reg? <= 1 => modrm(Immediate::Bytes(1)),
        0xF7 if reg? <= 1 => modrm(Immediate::Full),
        0xF6 | 0xF7 => modrm(Immediate::None),
        0xFE if reg? <= 1 => modrm(Immediate::None),
        0xFF if reg? <= 6 => modrm(Immediate::None),
        _ => None,
    }
}

/// The shape of an opcode after `0F`; `second` is the byte after it.
fn two_bytes(opcode: u8, prefixes: Prefixes, second: Option<u8>) -> Option<Shape> {
    let plain = |immediate| Some(Shape { modrm: false, immediate });
    let modrm = |immediate| Some(Shape { modrm: true, immediate });
    match opcode {
        // syscall, ud2, rdtsc, emms, cpuid and others
        0x05 | 0x0B | 0x31 | 0x77 | 0xA0..=0xA2 | 0xA8 | 0xA9 | 0xC8..=0xCF => {
            plain(Immediate::None)
        }
        0x01 | 0x0D | 0x10..=0x1F | 0x28..=0x2F | 0x40..=0x6F => modrm(Immediate::None),
        0x70..=0x73 | 0xA4 | 0xAC | 0xC2 | 0xC4..=0xC6 => modrm(Immediate::Bytes(1)),
        0xBA if second? >> 3 & 7 >= 4 => modrm(Immediate::Bytes(1)),
        0x74..=0x76 | 0x7C..=0x7F | 0x90..=0x9F | 0xA3 | 0xA5 => modrm(Immediate::None),
        0x80..=0x8F if !prefixes.short => plain(Immediate::Jump(4)),
        0xAB | 0xAD..=0xB7 | 0xBB..=0xC1 | 0xC3 | 0xC7 | 0xD0..=0xFE => modrm(Immediate::None),
        0xB8 if prefixes.repeat => modrm(Immediate::None),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    /// The instructions of a file, as `objdump` decodes them: their bytes and texts.
    fn disassembled(path: &Path, most: usize) -> Vec<(Vec<u8>, String)> {
        let output = Command::new("objdump")
            .args(["-d", "-w", "-j", ".text"])
            .arg(path)
            .output()
            .expect("objdump is installed with gcc");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let instruction = |line: &str| {
            let mut columns = line.split('\t').skip(1);
            let (bytes, text) = (columns.next()?, columns.next()?);
            let byte = |word: &str| u8::from_str_radix(word, 16).ok();
            Some((bytes.split_whitespace().map(byte).collect::<Option<_>>()?, text.to_owned()))
        };
        text.lines().filter_map(instruction).take(most).collect()
    }

    #[test]
    fn lengths_and_jumps_are_those_of_objdump() {
        let own = std::env::current_exe().expect("the test has a file");
        let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux has this file");
        let libc = maps.lines().filter_map(|line| line.split_whitespace().nth(5));
        let libc = libc.filter(|path| path.contains("libc.so")).map(Path::new).next();
        for path in [&own, libc.expect("the test uses libc")] {
            let all = disassembled(path, 400_000);
            assert!(all.len() > 100_000, "{}: {} instructions", path.display(), all.len());
            let mut unknown = 0;
            for (bytes, text) in &all {
                // What follows must not matter.
                let followed: Vec<u8> = bytes.iter().copied().chain([0xCC; 16]).collect();
                match decode(&followed) {
                    Some(decoded) => {
                        assert_eq!(decoded.len, bytes.len(), "{bytes:x?}: {text}");
                        // xbegin also has a target, and prefixes may come before the name.
                        let mut words = text.split_whitespace();
                        let name =
                            words.find(|word| !word.starts_with("bnd") && *word != "notrack");
                        let name = name.unwrap_or_default();
                        let jumps = name.starts_with('j') || name.starts_with("call");
                        let direct = jumps && !text.contains(" *") || name.starts_with("loop");
                        let with_hint = text.contains(",p");
                        assert!(
                            decoded.jump.is_some() == direct
                                || with_hint
                                || text.contains("data16"),
                            "{bytes:x?}: {text}"
                        );
                    }
                    None => unknown += 1,
                }
            }
            let share = all.len() / 1000;
            assert!(unknown < share, "{unknown} of {} are not decoded", all.len());
        }
    }

    #[test]
    fn operands_are_decoded() {
        let memory = |code: &[u8]| decode(code).and_then(|i| i.operands).and_then(|o| o.memory);
        let at =
            |base, index, shift, displacement| Some(Memory { base, index, shift, displacement });
        // lock xadd [rdi], eax
        assert_eq!(memory(&[0xF0, 0x0F, 0xC1, 0x07]), at(7, NO_REGISTER, 0, 0));
        // lock add [rsp - 8], 1
        assert_eq!(memory(&[0xF0, 0x83, 0x44, 0x24, 0xF8, 1]), at(4, NO_REGISTER, 0, -8));
        // lock inc [rip + 0x1000]
        let relative = [0xF0, 0xFF, 0x05, 0, 0x10, 0, 0];
        assert_eq!(memory(&relative), at(INSTRUCTION_POINTER, NO_REGISTER, 0, 0x1000));
        // lock dec qword [r8 + r9*8 + 0x12345678]
        let indexed = [0xF0, 0x4B, 0xFF, 0x8C, 0xC8, 0x78, 0x56, 0x34, 0x12];
        assert_eq!(memory(&indexed), at(8, 9, 3, 0x1234_5678));
        // lock or [0x1000], 1
        let absolute = [0xF0, 0x83, 0x0C, 0x25, 0, 0x10, 0, 0, 1];
        assert_eq!(memory(&absolute), at(NO_REGISTER, NO_REGISTER, 0, 0x1000));
    }

    #[test]
    fn incomplete_and_invalid_instructions_are_not_decoded() {
        assert_eq!(decode(&[]), None);
        assert_eq!(decode(&[0xF0, 0x0F]), None);
        assert_eq!(decode(&[0xE8, 0, 0]), None);
        // push es, aaa: not in 64-bit mode
        assert_eq!(decode(&[0x06, 0, 0, 0]), None);
        assert_eq!(decode(&[0x37, 0, 0, 0]), None);
        // A jump with the prefix 66, whose length depends on the processor.
        assert_eq!(decode(&[0x66, 0xE9, 0, 0, 0, 0]), None);
        // Longer than 15 bytes.
        assert_eq!(decode(&[0x66; 20]), None);
    }
}
