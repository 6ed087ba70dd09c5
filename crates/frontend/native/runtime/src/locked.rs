//! Atomic instructions of programs that were built without instrumentation.
//!
//! The controller lists the instructions (`native/src/locked.rs` explains which, and why it is safe
//! to replace them). Before `main`, each is replaced by a breakpoint (`int3`). The handler of
//! `SIGTRAP` reaches a scheduling point, performs the instruction on the registers that the kernel
//! has saved, and continues after it. So one trap serves the points before and after the
//! operation, and the values before and after it can be logged.
//!
//! The handler executes an instruction with the same opcode, operand size and flags on the same
//! memory. Registers and flags therefore get the values that the processor defines.
//!
//! # Signals
//!
//! The kernel kills a process that reaches a breakpoint while it blocks `SIGTRAP`, and another
//! handler would not perform the instruction: [`crate::hooks::signal`].

use core::arch::asm;
use core::ffi::c_int;
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use crate::block::{
    IMMEDIATE, INSTRUCTION_POINTER, Locked, LockedKind, MAX_LOCKED, NO_REGISTER, Op, digest, orders,
};
use crate::schedule::{Next, Values, active, block, fault, log_values, point, runtime};
use crate::server::set_handler;
use crate::sys;
use crate::trap::{Context, Info, RAX, RIP, die};

const BREAKPOINT: u8 = 0xCC;

/// The address at which the executable is loaded, if instructions were replaced.
static BASE: AtomicUsize = AtomicUsize::new(NOTHING);
const NOTHING: usize = usize::MAX;

/// The address of the instruction that is being performed, or 0.
static PERFORMED: AtomicUsize = AtomicUsize::new(0);

/// Whether instructions were replaced, so that `SIGTRAP` belongs to this module.
pub fn is_on() -> bool {
    BASE.load(Relaxed) != NOTHING
}

/// The place in the program of a fault at `pc`, which is inside this library if the operand of a
/// replaced instruction is not valid.
pub fn fault_place(pc: u64) -> u64 {
    match PERFORMED.load(Relaxed) {
        0 => pc,
        place => place as u64,
    }
}

fn instructions() -> &'static [Locked] {
    let block = block();
    &block.locked[..(block.locked_len.load(Relaxed) as usize).min(MAX_LOCKED)]
}

/// Replaces the requested instructions, and counts those that could be.
///
/// # Safety
///
/// The addresses are those of instructions of the executable, which is loaded at `base`, and the
/// process has only this thread.
pub unsafe fn patch(base: usize) {
    if instructions().is_empty() {
        return;
    }
    const SIGTRAP: c_int = 5;
    const WITH_INFO: c_int = 4;
    const NOT_MASKED: c_int = 0x4000_0000;
    set_handler(SIGTRAP, trapped as *const () as usize, WITH_INFO | NOT_MASKED);
    const UNBLOCK: usize = 1;
    let mask: u64 = 1 << (SIGTRAP - 1);
    let mask = &raw const mask as usize;
    // SAFETY: the kernel copies the mask.
    unsafe { sys::call(sys::RT_SIGPROCMASK, [UNBLOCK, mask, 0, size_of::<u64>(), 0, 0]) };
    BASE.store(base, Relaxed);
    const PAGE: usize = 4096;
    let page = |address: usize| address & !(PAGE - 1);
    let mut rest = instructions();
    while let Some(first) = rest.first() {
        let at = page(base + first.address as usize);
        let on_page = |locked: &Locked| page(base + locked.address as usize) == at;
        let count = rest.iter().take_while(|locked| on_page(locked)).count();
        let (these, others) = rest.split_at(count);
        // SAFETY: as for this function.
        unsafe { patch_page(at, PAGE, base, these) };
        rest = others;
    }
}

/// Replaces the first bytes of `these`, which are all in the page at `page`.
///
/// # Safety
///
/// As for [`patch`].
unsafe fn patch_page(page: usize, size: usize, base: usize, these: &[Locked]) {
    const READ_WRITE: usize = 3;
    const READ_EXECUTE: usize = 5;
    // SAFETY: the page belongs to the code of the executable, which no thread executes now.
    let protect = |how| unsafe { sys::call(sys::MPROTECT, [page, size, how, 0, 0, 0]) };
    if protect(READ_WRITE) != 0 {
        return;
    }
    let mut patched = 0;
    for locked in these {
        let byte = (base + locked.address as usize) as *mut u8;
        // SAFETY: the byte is in the page, which can be written.
        unsafe {
            // Another value would mean that the executable was changed while it was loaded.
            if *byte == locked.first {
                *byte = BREAKPOINT;
                patched += 1;
            }
        }
    }
    protect(READ_EXECUTE);
    block().patched.fetch_add(patched, Relaxed);
}

/// The handler of `SIGTRAP`.
extern "C" fn trapped(signal: c_int, info: *const Info, context: *mut Context) {
    /// The signal was caused by an instruction (`SI_KERNEL`).
    const BY_BREAKPOINT: c_int = 0x80;
    // SAFETY: the kernel passes valid descriptions, and changes of the context are permitted.
    let (info, registers) = unsafe { (&*info, &mut (*context).registers) };
    let place = (registers[RIP] as usize).wrapping_sub(1);
    let address = place.wrapping_sub(BASE.load(Relaxed)) as u64;
    let all = instructions();
    match all.binary_search_by_key(&address, |locked| locked.address) {
        Ok(nth) if info.code == BY_BREAKPOINT => perform(&all[nth], place, registers),
        _ => die(signal, place as u64),
    }
}

type Registers = [u64; 23];

/// The positions of the registers in the saved context, by their numbers.
const POSITIONS: [usize; 16] = [RAX, 14, 12, 11, 15, 10, 9, 8, 0, 1, 2, 3, 4, 5, 6, 7];
const RDX: usize = POSITIONS[2];
const FLAGS: usize = 17;

/// Performs an instruction at `place`, as a step if the thread is in an execution with several
/// threads, and moves the instruction pointer behind it.
fn perform(locked: &Locked, place: usize, registers: &mut Registers) {
    let pc = place + usize::from(locked.len);
    let mut operation = Operation::of(locked, pc, registers);
    if active() && runtime().concurrent {
        let (object, size) = (operation.address as u64, operation.size);
        let (value, operands) =
            (orders(SEQ_CST, SEQ_CST), digest(operation.source, operation.accumulator));
        point(Next { size, value, operands, ..Next::on(operation.op(), object, pc) });
        let values = operation.apply(place);
        log_values(size, values);
        // As for instrumented programs: see `crate::hooks::atomic`.
        if values.found != values.left {
            point(Next { size, ..Next::on(Op::AfterWrite, object, pc) });
        }
    } else {
        operation.apply(place);
    }
    operation.write_back(locked, registers);
    registers[RIP] = pc as u64;
}

/// C11's number of the order that locked instructions have.
const SEQ_CST: c_int = 5;

const ZERO_FLAG: u64 = 0x40;
/// The flags that arithmetic changes: carry, parity, adjust, zero, sign, overflow.
const ARITHMETIC: u64 = 0x8D5;
/// The interrupt flag and the bit that is always set: the flags of ordinary code.
const ORDINARY: u64 = 0x202;

/// An instruction with the values of its operands.
struct Operation {
    kind: LockedKind,
    size: u8,
    address: usize,
    /// The second operand; for 16 bytes `rcx:rbx`.
    source: u128,
    /// `rax`; for 16 bytes `rdx:rax`. 0 unless the instruction is a compare-and-exchange.
    accumulator: u128,
    flags: u64,
}

impl Operation {
    fn of(locked: &Locked, pc: usize, registers: &Registers) -> Operation {
        let register = |number: u8| registers[POSITIONS[usize::from(number & 15)]];
        let base = match locked.base {
            NO_REGISTER => 0,
            INSTRUCTION_POINTER => pc as u64,
            number => register(number),
        };
        let index = match locked.index {
            NO_REGISTER => 0,
            number => register(number) << locked.shift,
        };
        let displacement = i64::from(locked.displacement) as u64;
        let mut address = base.wrapping_add(index).wrapping_add(displacement);
        let mut source = match locked.source {
            IMMEDIATE => i64::from(locked.immediate) as u64,
            number => register(number),
        };
        let size = locked.size;
        let kind = LockedKind::of(locked.kind)
            .unwrap_or_else(|| fault("the controller lists known instructions"));
        if is_bit(kind) {
            // A register selects a bit of a string of words, an immediate one of this word.
            let bits = u32::from(size) * 8;
            if locked.source != IMMEDIATE {
                let unused = 64 - bits;
                let bit = (source << unused) as i64 >> unused;
                let word = bit >> bits.trailing_zeros();
                address = address.wrapping_add((word * i64::from(size)) as u64);
            }
            source &= u64::from(bits) - 1;
        }
        let wide = |low: u64, high: u64| u128::from(high) << 64 | u128::from(low);
        let compares = kind == LockedKind::CompareExchange;
        Operation {
            kind,
            size,
            address: address as usize,
            source: match size {
                16 => wide(register(3), register(1)),
                _ => source.into(),
            },
            accumulator: match (compares, size) {
                (true, 16) => wide(registers[RAX], registers[RDX]),
                (true, _) => registers[RAX].into(),
                _ => 0,
            },
            flags: registers[FLAGS] & ARITHMETIC,
        }
    }

    /// The operation as the log names it.
    fn op(&self) -> Op {
        use LockedKind as Kind;
        match self.kind {
            Kind::Add | Kind::Inc | Kind::ExchangeAdd => Op::FetchAdd,
            Kind::Sub | Kind::Dec => Op::FetchSub,
            Kind::And | Kind::ResetBit => Op::FetchAnd,
            Kind::Or | Kind::SetBit => Op::FetchOr,
            Kind::Xor | Kind::Not | Kind::ComplementBit => Op::FetchXor,
            Kind::Exchange => Op::Exchange,
            Kind::CompareExchange => Op::CompareExchange,
        }
    }

    /// Performs the instruction at `place`.
    fn apply(&mut self, place: usize) -> Values {
        PERFORMED.store(place, Relaxed);
        let found = self.read();
        // SAFETY: the program executes this instruction on this memory.
        unsafe { self.execute() };
        let left = self.read();
        PERFORMED.store(0, Relaxed);
        let compares = self.kind == LockedKind::CompareExchange;
        Values { found, left, wrote: !compares || self.flags & ZERO_FLAG != 0 }
    }

    /// The value in memory.
    fn read(&self) -> u128 {
        let p = self.address as *const u8;
        // SAFETY: the program accesses this memory, and no other thread runs. If the address is not
        // valid, the process dies of the signal of which it would have died without this library.
        unsafe {
            match self.size {
                1 => p.read_volatile().into(),
                2 => p.cast::<u16>().read_unaligned().into(),
                4 => p.cast::<u32>().read_unaligned().into(),
                8 => p.cast::<u64>().read_unaligned().into(),
                _ => p.cast::<u128>().read_unaligned(),
            }
        }
    }

    /// Stores the results in the saved registers.
    fn write_back(&self, locked: &Locked, registers: &mut Registers) {
        match self.kind {
            LockedKind::Exchange | LockedKind::ExchangeAdd => {
                registers[POSITIONS[usize::from(locked.source & 15)]] = self.source as u64;
            }
            LockedKind::CompareExchange => {
                registers[RAX] = self.accumulator as u64;
                if self.size == 16 {
                    registers[RDX] = (self.accumulator >> 64) as u64;
                }
            }
            _ => {}
        }
        registers[FLAGS] = registers[FLAGS] & !ARITHMETIC | self.flags & ARITHMETIC;
    }

    /// Executes the instruction.
    ///
    /// # Safety
    ///
    /// As for the instruction of the program.
    unsafe fn execute(&mut self) {
        let Operation { kind, size, address, .. } = *self;
        let mut flags = self.flags | ORDINARY;
        let mut source = self.source as u64;
        let mut accumulator = self.accumulator as u64;

        /// Executes one instruction with the flags of the program, and takes its flags.
        macro_rules! run {
            ($instruction:expr) => {
                asm!(
                    "push {flags}",
                    "popfq",
                    $instruction,
                    "pushfq",
                    "pop {flags}",
                    p = in(reg) address,
                    s = inout(reg) source,
                    flags = inout(reg) flags,
                    inout("rax") accumulator,
                )
            };
        }
        /// The forms of an instruction with a second operand, by size.
        macro_rules! binary {
            ($name:literal) => {
                match size {
                    1 => run!(concat!("lock ", $name, " byte ptr [{p}], {s:l}")),
                    2 => run!(concat!("lock ", $name, " word ptr [{p}], {s:x}")),
                    4 => run!(concat!("lock ", $name, " dword ptr [{p}], {s:e}")),
                    _ => run!(concat!("lock ", $name, " qword ptr [{p}], {s:r}")),
                }
            };
        }
        /// The same for instructions that have no form for bytes.
        macro_rules! bit {
            ($name:literal) => {
                match size {
                    2 => run!(concat!("lock ", $name, " word ptr [{p}], {s:x}")),
                    4 => run!(concat!("lock ", $name, " dword ptr [{p}], {s:e}")),
                    _ => run!(concat!("lock ", $name, " qword ptr [{p}], {s:r}")),
                }
            };
        }
        /// The forms of an instruction without a second operand. The comment names the operand that
        /// `run` passes.
        macro_rules! unary {
            ($name:literal) => {
                match size {
                    1 => run!(concat!("lock ", $name, " byte ptr [{p}] # {s}")),
                    2 => run!(concat!("lock ", $name, " word ptr [{p}] # {s}")),
                    4 => run!(concat!("lock ", $name, " dword ptr [{p}] # {s}")),
                    _ => run!(concat!("lock ", $name, " qword ptr [{p}] # {s}")),
                }
            };
        }
        // SAFETY: as for this function. The pushed flags are popped again, and the direction flag
        // stays clear.
        unsafe {
            match kind {
                LockedKind::Add => binary!("add"),
                LockedKind::Sub => binary!("sub"),
                LockedKind::And => binary!("and"),
                LockedKind::Or => binary!("or"),
                LockedKind::Xor => binary!("xor"),
                LockedKind::ExchangeAdd => binary!("xadd"),
                LockedKind::Exchange => binary!("xchg"),
                LockedKind::Inc => unary!("inc"),
                LockedKind::Dec => unary!("dec"),
                LockedKind::Not => unary!("not"),
                LockedKind::SetBit => bit!("bts"),
                LockedKind::ResetBit => bit!("btr"),
                LockedKind::ComplementBit => bit!("btc"),
                LockedKind::CompareExchange if size == 16 => {
                    let found = self.execute_wide(&mut flags);
                    self.accumulator = found;
                    self.flags = flags;
                    return;
                }
                LockedKind::CompareExchange => binary!("cmpxchg"),
            }
        }
        (self.source, self.accumulator, self.flags) = (source.into(), accumulator.into(), flags);
    }

    /// Executes `cmpxchg16b`. Returns `rdx:rax`.
    ///
    /// # Safety
    ///
    /// As for [`execute`](Operation::execute).
    unsafe fn execute_wide(&self, flags: &mut u64) -> u128 {
        let (low, high): (u64, u64);
        // SAFETY: as for this function. The compiler reserves rbx, so it is exchanged.
        unsafe {
            asm!(
                "xchg rbx, rsi",
                "push {flags}",
                "popfq",
                "lock cmpxchg16b [rdi]",
                "pushfq",
                "pop {flags}",
                "mov rbx, rsi",
                flags = inout(reg) *flags,
                in("rdi") self.address,
                inout("rsi") self.source as u64 => _,
                inout("rax") self.accumulator as u64 => low,
                inout("rdx") (self.accumulator >> 64) as u64 => high,
                in("rcx") (self.source >> 64) as u64,
            );
        }
        u128::from(high) << 64 | u128::from(low)
    }
}

/// Whether an instruction operates on one bit.
fn is_bit(kind: LockedKind) -> bool {
    matches!(kind, LockedKind::SetBit | LockedKind::ResetBit | LockedKind::ComplementBit)
}
