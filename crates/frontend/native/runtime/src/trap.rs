//! System calls that the program makes with the `syscall` instruction instead of through libc.
//!
//! libgomp, some language runtimes and hand-written locks contain the instruction itself, so there
//! is no function to replace. A seccomp filter traps these system calls: the kernel sends `SIGSYS`
//! to the thread instead of performing the call, and the handler performs it as the hook of libc's
//! `syscall` does ([`crate::hooks::futex::perform`]). A scheduling point in a signal handler is
//! like any other: the thread waits for the baton there.
//!
//! # What is trapped
//!
//! The calls in [`TRAPPED`], unless the instruction belongs to this library or to libc. libc is
//! exempt for two reasons. Its functions that make such calls are replaced. And it makes some futex
//! calls while all signals are blocked (a thread that starts with scheduling attributes waits for
//! its creator), where the kernel cannot deliver `SIGSYS`. A contended lock inside libc blocks the
//! process; the controller detects that and refuses the program. The function `syscall` of libc is
//! not exempt, because a program may have looked up its address.
//!
//! # Signals
//!
//! The kernel kills a process if it cannot deliver `SIGSYS`. So the program must neither block
//! `SIGSYS` nor handle it ([`crate::hooks::signal`]). If it does so in a way that is not
//! controlled, the process dies of `SIGSYS`, and the controller refuses the program instead of
//! blaming it.
//!
//! Syscall User Dispatch would be an alternative, but it can exempt only one range of addresses,
//! must be turned on in every thread, and traps all system calls.
//!
//! The filter would survive `exec`, after which its addresses are meaningless. Programs that create
//! processes are refused, so that cannot happen.

use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicUsize;
use core::sync::atomic::Ordering::Relaxed;

use crate::hooks::futex::perform;
use crate::real::real;
use crate::schedule::{active, block, unsupported};
use crate::server::{Loaded, set_handler};
use crate::sys;

/// The trapped system calls. `futex` is the first because this library calls it at every switch.
const TRAPPED: [usize; 16] = [
    sys::FUTEX,
    sys::SCHED_YIELD,
    sys::EXIT_GROUP,
    sys::GETRANDOM,
    sys::IO_URING_SETUP,
    sys::FUTEX_WAITV,
    sys::FUTEX_WAKE2,
    sys::FUTEX_WAIT2,
    sys::FUTEX_REQUEUE2,
    sys::CLONE,
    sys::CLONE3,
    sys::FORK,
    sys::VFORK,
    sys::EXECVE,
    sys::EXECVEAT,
    sys::EXIT,
];

/// `struct sock_filter`: one instruction of the filter.
#[repr(C)]
#[derive(Clone, Copy)]
struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    operand: u32,
}

/// `struct sock_fprog`.
#[repr(C)]
struct Program {
    len: u16,
    instructions: *const Instruction,
}

const MAX_INSTRUCTIONS: usize = 80;
const LOAD: u16 = 0x20;
const IF_EQUAL: u16 = 0x15;
const IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;
/// Offsets in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const PLACE_LOW: u32 = 8;
const PLACE_HIGH: u32 = 12;
/// `AUDIT_ARCH_X86_64`.
const X86_64: u32 = 0xC000_003E;
const ALLOW: u32 = 0x7FFF_0000;
const TRAP: u32 = 0x0003_0000;

/// A filter under construction.
struct Filter {
    instructions: [Instruction; MAX_INSTRUCTIONS],
    len: usize,
}

impl Filter {
    fn add(&mut self, code: u16, operand: u32, if_true: u8, if_false: u8) {
        // If the filter is full, the last instruction is overwritten, and `install` gives up.
        let at = self.len.min(MAX_INSTRUCTIONS - 1);
        self.instructions[at] = Instruction { code, if_true, if_false, operand };
        self.len = at + 1;
    }

    /// Returns `action` for calls from the instruction before `place`.
    fn decide_at(&mut self, place: usize, action: u32) {
        self.add(LOAD, PLACE_HIGH, 0, 0);
        self.add(IF_EQUAL, (place >> 32) as u32, 0, 3);
        self.add(LOAD, PLACE_LOW, 0, 0);
        self.add(IF_EQUAL, place as u32, 0, 1);
        self.add(RETURN, action, 0, 0);
    }

    /// Permits calls from a range, in which all addresses have the same upper 32 bits.
    fn permit(&mut self, range: Range) {
        self.add(LOAD, PLACE_HIGH, 0, 0);
        self.add(IF_EQUAL, (range.first >> 32) as u32, 0, 4);
        self.add(LOAD, PLACE_LOW, 0, 0);
        self.add(IF_AT_LEAST, range.first as u32, 0, 2);
        self.add(IF_AT_LEAST, range.end as u32, 1, 0);
        self.add(RETURN, ALLOW, 0, 0);
    }

    /// Builds the filter, which traps except in `ranges`: first that of this library. `libc_call`
    /// is the address after the instruction in libc's `syscall`.
    fn build(ranges: &[Range], libc_call: usize) -> Filter {
        let nothing = Instruction { code: 0, if_true: 0, if_false: 0, operand: 0 };
        let mut filter = Filter { instructions: [nothing; MAX_INSTRUCTIONS], len: 0 };
        filter.add(LOAD, ARCHITECTURE, 0, 0);
        filter.add(IF_EQUAL, X86_64, 1, 0);
        filter.add(RETURN, TRAP, 0, 0);
        filter.add(LOAD, NUMBER, 0, 0);
        for (nth, number) in TRAPPED.iter().enumerate() {
            // If equal, continues after the next `RETURN`.
            filter.add(IF_EQUAL, *number as u32, (TRAPPED.len() - nth) as u8, 0);
        }
        filter.add(RETURN, ALLOW, 0, 0);
        for (nth, &range) in ranges.iter().enumerate() {
            // Before libc is permitted, and after this library, which needs to be fast.
            if nth == 1 {
                filter.decide_at(libc_call, TRAP);
            }
            filter.permit(range);
        }
        filter.add(RETURN, TRAP, 0, 0);
        filter
    }
}

/// A range of addresses.
#[derive(Clone, Copy)]
struct Range {
    first: usize,
    end: usize,
}

/// A search for the code segment that contains `address`.
struct Search {
    address: usize,
    found: Option<Range>,
}

extern "C" fn look(loaded: *mut Loaded, _: usize, search: *mut c_void) -> c_int {
    const LOADED: u32 = 1;
    const EXECUTABLE: u32 = 1;
    // SAFETY: the dynamic linker passes valid descriptions, and `code_around` a search.
    unsafe {
        let (loaded, search) = (&*loaded, &mut *search.cast::<Search>());
        let headers = core::slice::from_raw_parts(loaded.headers, loaded.count.into());
        let mut code =
            headers.iter().filter(|h| h.kind == LOADED && h.flags & EXECUTABLE != 0).map(|h| {
                let first = loaded.base + h.address as usize;
                Range { first, end: first + h.memory_size as usize }
            });
        search.found = code.find(|range| (range.first..range.end).contains(&search.address));
        c_int::from(search.found.is_some())
    }
}

/// The code segment that contains an address, if all its addresses have the same upper 32 bits.
fn code_around(address: usize) -> Option<Range> {
    let mut search = Search { address, found: None };
    // SAFETY: the function gets the search that it expects.
    unsafe { crate::server::dl_iterate_phdr(look, (&raw mut search).cast()) };
    search.found.filter(|range| range.first >> 32 == (range.end - 1) >> 32)
}

/// The address after the `syscall` instruction in libc's `syscall`; 0 until it is found.
static LIBC_CALL: AtomicUsize = AtomicUsize::new(0);

/// The address after the first `syscall` instruction of a function.
fn after_instruction(function: usize) -> Option<usize> {
    const LONGEST: usize = 64;
    // SAFETY: the code segment of libc does not end with its `syscall`.
    let bytes = unsafe { core::slice::from_raw_parts(function as *const u8, LONGEST) };
    let at = bytes.windows(2).position(|pair| pair == [0x0F, 0x05])?;
    Some(function + at + 2)
}

/// Installs the filter and the handler, in this process and in those that it forks. Returns whether
/// that was possible.
pub fn install() -> bool {
    let Some(own) = code_around(install as *const () as usize) else { return false };
    type Any = extern "C" fn();
    // libc and libpthread are one library since glibc 2.34.
    let Some(libc) = code_around(real!(_exit: Any) as usize) else { return false };
    let Some(threads) = code_around(real!(pthread_create: Any) as usize) else { return false };
    let Some(call) = after_instruction(real!(syscall: Any) as usize) else { return false };
    LIBC_CALL.store(call, Relaxed);
    let filter = Filter::build(&[own, libc, threads], call);
    if filter.len == MAX_INSTRUCTIONS {
        return false;
    }
    const SIGSYS: c_int = 31;
    const WITH_INFO: c_int = 4;
    const NOT_MASKED: c_int = 0x4000_0000;
    set_handler(SIGSYS, trapped as *const () as usize, WITH_INFO | NOT_MASKED);
    const UNBLOCK: usize = 1;
    const NO_NEW_PRIVILEGES: usize = 38;
    const SET_MODE_FILTER: usize = 1;
    /// Does not restrict speculative execution: the filter is not a sandbox.
    const ALLOW_SPECULATION: usize = 1 << 2;
    let mask: u64 = 1 << (SIGSYS - 1);
    let program = Program { len: filter.len as u16, instructions: filter.instructions.as_ptr() };
    // SAFETY: mask and program are valid, and the kernel copies them.
    unsafe {
        let mask = &raw const mask as usize;
        sys::call(sys::RT_SIGPROCMASK, [UNBLOCK, mask, 0, size_of::<u64>(), 0, 0]);
        sys::call(sys::PRCTL, [NO_NEW_PRIVILEGES, 1, 0, 0, 0, 0]);
        let program = &raw const program as usize;
        sys::call(sys::SECCOMP, [SET_MODE_FILTER, ALLOW_SPECULATION, program, 0, 0, 0]) == 0
    }
}

/// The beginning of `siginfo_t` of a trapped system call.
#[repr(C)]
pub struct Info {
    signal: c_int,
    error: c_int,
    pub code: c_int,
    place: u64,
    number: c_int,
    architecture: u32,
}

/// The registers in `ucontext_t`, as the kernel saves them.
#[repr(C)]
pub struct Context {
    flags: u64,
    link: u64,
    stack: [u64; 3],
    pub registers: [u64; 23],
}

const R8: usize = 0;
const R9: usize = 1;
const R10: usize = 2;
const RDI: usize = 8;
const RSI: usize = 9;
const RDX: usize = 12;
pub const RAX: usize = 13;
const RSP: usize = 15;
pub const RIP: usize = 16;

/// The handler of `SIGSYS`: performs the system call for the interrupted instruction.
extern "C" fn trapped(signal: c_int, info: *const Info, context: *mut Context) {
    const BY_FILTER: c_int = 1;
    // SAFETY: the kernel passes valid descriptions, and changes of the context are permitted.
    let (info, registers) = unsafe { (&*info, &mut (*context).registers) };
    if info.code != BY_FILTER {
        return die(signal, registers[RIP]);
    }
    if info.architecture != X86_64 {
        unsupported("a system call of 32-bit programs");
    }
    let args = [RDI, RSI, RDX, R10, R8, R9].map(|register| registers[register] as usize);
    let pc = match registers[RIP] as usize {
        // SAFETY: libc's `syscall` pushes nothing, so its return address is on top of the stack.
        pc if pc == LIBC_CALL.load(Relaxed) => unsafe { *(registers[RSP] as *const usize) },
        pc => pc,
    };
    let number = info.number as usize;
    if active() {
        block().trapped.fetch_add(1, Relaxed);
    }
    // The instruction does not change `errno`, and neither does `perform`.
    // SAFETY: the program passes what it would pass to the kernel.
    registers[RAX] = unsafe { perform(pc, number, args) } as u64;
}

/// Kills the process by a signal that the program has sent to itself.
pub fn die(signal: c_int, pc: u64) {
    // Shows the controller that the process did not die of a trap (`Run::dies_of_trap`).
    block().fault.store(pc, Relaxed);
    const DEFAULT: usize = 0;
    set_handler(signal, DEFAULT, 0);
    // SAFETY: no memory is involved.
    unsafe {
        let process = sys::call(sys::GETPID, [0; 6]) as usize;
        let thread = sys::call(sys::GETTID, [0; 6]) as usize;
        sys::call(sys::TGKILL, [process, thread, signal as usize, 0, 0, 0]);
    }
}
