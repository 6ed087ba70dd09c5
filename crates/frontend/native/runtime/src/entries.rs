//! The beginnings of precompiled functions as scheduling points.
//!
//! The standard library of Rust is precompiled, so its atomic operations are not visible, except
//! for generic and inlined ones, which are compiled with the program. Precompiled code runs
//! undisturbed up to its next futex call. Without more, it would also be glued to the operation
//! *before* it: a thread that reads a flag and calls `Condvar::wait` would have read the word of
//! the condition variable in the same step as the flag, and no notification could come in between.
//! So the functions of the standard library that begin with an invisible operation get a scheduling
//! point at their beginning.
//!
//! # Which functions, and why that is enough
//!
//! Let a thread perform the visible operation *v*, then the invisible ones *i1 i2 …*, then the
//! visible one *w*. There is a point before *v* and one before *w*. What is lost without others is
//! that another thread comes between *v* and *i1*, or between two invisible operations.
//!
//! - **Between *v* and *i1***: if *v* is of the same function of the standard library as *i1*, the
//!   function is one operation of a linearizable object (a lock, a `Once`), and takes effect at one
//!   of the two; what another thread does between them it can also do before *v*. If *v* commutes
//!   with everything that others can do from then on (a thread begins, is woken, has joined
//!   another), the same holds. Otherwise *i1* is the first operation of a function that is
//!   precompiled as a whole, and the point at its beginning is between the two. The controller
//!   knows these functions by their names: `Condvar::wait`, `notify_one`, `notify_all`,
//!   `Barrier::wait`, `thread::park` and their variants. `Once::call` is among them for the sake of
//!   reductions, which have to know that it writes.
//! - **Between *i1* and *i2***: `Condvar::wait` reads its word and unlocks the mutex. Both together
//!   are what its documentation calls atomic: no notification is lost that comes after the unlock.
//!   After its wait it locks the mutex; that is a step of its own ([`Op::Relock`]), because it must
//!   not be glued to the end of the wait, whose effect others may see (a timeout). The other
//!   functions perform one operation before their next futex call (`park` takes its token,
//!   `notify` counts), or take a mutex and release it (`Barrier::wait`).
//!
//! Not covered is what a precompiled function does after it has called the program back: `Once`
//! marks itself as complete in the step in which the closure performs its last operation. Neither
//! are functions without a symbol, nor state that the standard library has for the whole process:
//! the environment, the panic hook, the lock of the standard output.
//!
//! # How
//!
//! The first instructions of the function are replaced by a jump. Its target performs the point,
//! then the replaced instructions, and jumps back to those that follow. Only instructions that mean
//! the same at another address are moved ([`movable`]); a function that begins otherwise is left as
//! it is, and the controller reports it. This happens in the fork server, before there are other
//! threads.

use core::sync::atomic::Ordering::Relaxed;

use crate::block::{MAX_ENTRIES, Op};
use crate::schedule::{Next, active, block, point, runtime};
use crate::sys;
use crate::threads::me;

/// The length of the jump.
const JUMP: usize = 5;

/// The code for one function: to the point, the moved instructions, and back.
const ROOM: usize = 64;

const PAGE: usize = 4096;
const READ_EXECUTE: usize = 5;
const READ_WRITE: usize = 3;

/// Makes the functions that the controller asks for begin with scheduling points, as far as
/// possible.
///
/// # Safety
///
/// The addresses are those of functions of the executable, which is loaded at `base`, and the
/// process has only this thread.
pub unsafe fn patch(base: usize) {
    let block = block();
    let count = (block.entries_len.load(Relaxed) as usize).min(MAX_ENTRIES);
    if count == 0 {
        return;
    }
    // SAFETY: as for this function.
    let Some(code) = (unsafe { room_near(base) }) else { return };
    for (nth, entry) in block.entries[..count].iter().enumerate() {
        let function = base + entry.address as usize;
        let stub = match entry.op {
            op if op == Op::EnterWait as u32 => enter_wait as *const () as usize,
            op if op == Op::EnterWrite as u32 => enter_write as *const () as usize,
            _ => enter as *const () as usize,
        };
        // SAFETY: the room is for this entry alone; the rest as for this function.
        if unsafe { divert((function, entry.size as usize), code + nth * ROOM, stub) } {
            block.entered.fetch_or(1 << nth, Relaxed);
        }
    }
    // SAFETY: the room was mapped for this.
    unsafe { sys::call(sys::MPROTECT, [code, PAGE, READ_EXECUTE, 0, 0, 0]) };
}

/// A new page within the reach of a jump from the executable.
///
/// # Safety
///
/// The executable is loaded at `base`.
unsafe fn room_near(base: usize) -> Option<usize> {
    const { assert!(MAX_ENTRIES * ROOM <= PAGE) };
    const PRIVATE_ANONYMOUS_FIXED: usize = 0x02 | 0x20 | 0x10_0000;
    // An executable that is not position-independent has base 0, and lies at 4 MiB.
    let around = if base == 0 { 0x40_0000 } else { base };
    (1..64).find_map(|mebibytes| {
        let at = around.checked_sub(mebibytes << 20)?.max(0x1_0000);
        let none = usize::MAX;
        let arguments = [at, PAGE, READ_WRITE, PRIVATE_ANONYMOUS_FIXED, none, 0];
        // SAFETY: the kernel does not replace what is mapped there.
        (unsafe { sys::call(sys::MMAP, arguments) } == at as isize).then_some(at)
    })
}

/// Lets a function begin with the code at `stub`. Returns whether that was possible.
///
/// # Safety
///
/// As for [`patch`]; the bytes at `room` can be written.
unsafe fn divert((function, size): (usize, usize), room: usize, stub: usize) -> bool {
    // SAFETY: the function has this size.
    let code = unsafe { core::slice::from_raw_parts(function as *const u8, size) };
    let Some(moved) = moved(code).filter(|&moved| !jumps_into(code, moved)) else { return false };
    let mut writer = Writer { at: room };
    // SAFETY: what is written is shorter than the room; the pages of the function can be written
    // between the two calls, in which the only thread is here.
    unsafe {
        // mov r11, the moved instructions; jmp [stub]
        let body = room + 10 + 14;
        writer.bytes(&[0x49, 0xbb]);
        writer.bytes(&body.to_le_bytes());
        writer.bytes(&[0xff, 0x25, 0, 0, 0, 0]);
        writer.bytes(&stub.to_le_bytes());
        writer.bytes(&code[..moved]);
        // jmp [the rest of the function]
        writer.bytes(&[0xff, 0x25, 0, 0, 0, 0]);
        writer.bytes(&(function + moved).to_le_bytes());
        let first = function & !(PAGE - 1);
        let len = (function + JUMP).next_multiple_of(PAGE) - first;
        if sys::call(sys::MPROTECT, [first, len, READ_WRITE, 0, 0, 0]) != 0 {
            return false;
        }
        let distance = (room as isize - (function + JUMP) as isize) as i32;
        let mut jump = Writer { at: function };
        jump.bytes(&[0xe9]);
        jump.bytes(&distance.to_le_bytes());
        sys::call(sys::MPROTECT, [first, len, READ_EXECUTE, 0, 0, 0]);
    }
    true
}

struct Writer {
    at: usize,
}

impl Writer {
    /// # Safety
    ///
    /// There is room.
    unsafe fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: as for this function.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at as *mut u8, bytes.len()) };
        self.at += bytes.len();
    }
}

/// The length of the first instructions that make room for a jump, if all of them can be moved.
fn moved(code: &[u8]) -> Option<usize> {
    let mut len = 0;
    while len < JUMP {
        len += movable(code.get(len..)?)?;
    }
    Some(len)
}

/// Whether code may jump to one of its first `len` bytes other than the first: each byte is taken
/// for the beginning of a jump.
fn jumps_into(code: &[u8], len: usize) -> bool {
    let is_inside = |next: usize, distance: isize| {
        (1..len as isize).contains(&(next as isize).wrapping_add(distance))
    };
    (0..code.len()).any(|at| match code[at..] {
        [0x70..=0x7f | 0xe3 | 0xeb, near, ..] => is_inside(at + 2, (near as i8).into()),
        [0xe9, a, b, c, d, ..] => is_inside(at + 5, i32::from_le_bytes([a, b, c, d]) as isize),
        [0x0f, 0x80..=0x8f, a, b, c, d, ..] => {
            is_inside(at + 6, i32::from_le_bytes([a, b, c, d]) as isize)
        }
        _ => false,
    })
}

/// The length of the first instruction, if it is known to mean the same at another address. These
/// are the instructions with which compilers begin functions.
fn movable(code: &[u8]) -> Option<usize> {
    /// The length of the operand after `modrm`, which is its first byte; nothing that is relative
    /// to the instruction, and no index.
    fn operand(code: &[u8]) -> Option<usize> {
        let modrm = *code.first()?;
        match (modrm >> 6, modrm & 7) {
            (3, _) => Some(1),
            (_, 4) | (0, 5) => None,
            (0, _) => Some(1),
            (1, _) => Some(2),
            _ => Some(5),
        }
    }
    let prefixes = code.iter().take_while(|&&byte| matches!(byte, 0xf0 | 0x40..=0x4f)).count();
    let (rest, code) = (&code[prefixes..], prefixes);
    Some(
        code + match *rest {
            // push
            [0x50..=0x57, ..] => 1,
            // mov, xor, test between registers and memory
            [0x88..=0x8b | 0x31 | 0x33 | 0x85, ..] => 1 + operand(&rest[1..])?,
            // sub with a constant
            [0x83, ..] => 2 + operand(&rest[1..])?,
            [0x81, ..] => 5 + operand(&rest[1..])?,
            // mov of a constant
            [0xb8..=0xbf, ..] if prefixes == 0 => 5,
            // inc and dec, by which counters are changed
            [0xff, modrm, ..] if modrm >> 3 & 7 <= 1 => 1 + operand(&rest[1..])?,
            _ => return None,
        },
    )
}

/// Defines the target of the jumps: keeps the arguments of the function, calls `body` with the
/// return address and the first two arguments, and continues at the address in `r11`.
macro_rules! stub {
    ($name:ident, $body:ident) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push rdi",
                "push rsi",
                "push rdx",
                "push rcx",
                "push r8",
                "push r9",
                "push rax",
                "push r11",
                ".cfi_adjust_cfa_offset 64",
                "mov rdx, rsi",
                "mov rsi, rdi",
                "mov rdi, [rsp + 64]",
                "sub rsp, 8",
                ".cfi_adjust_cfa_offset 8",
                "call {body}",
                "add rsp, 8",
                ".cfi_adjust_cfa_offset -8",
                "pop r11",
                "pop rax",
                "pop r9",
                "pop r8",
                "pop rcx",
                "pop rdx",
                "pop rsi",
                "pop rdi",
                ".cfi_adjust_cfa_offset -64",
                "jmp r11",
                ".cfi_endproc",
                body = sym $body,
            )
        }
    };
}

stub!(enter_wait, at_wait);
stub!(enter_write, at_write);
stub!(enter, at_any);

/// The size of the words of condition variables and mutexes.
const WORD: u8 = 4;

/// Whether the beginning of a function is a point now.
fn is_point() -> bool {
    active() && runtime().concurrent
}

extern "C" fn at_wait(pc: usize, condvar: usize, mutex: usize) {
    if is_point() {
        let (condvar, mutex) = (condvar as u64, mutex as u64);
        runtime().threads[me()].waits_on = (condvar, mutex);
        point(Next { size: WORD, ..Next::on_both(Op::EnterWait, mutex, condvar, pc) });
    }
}

extern "C" fn at_write(pc: usize, object: usize, _: usize) {
    if is_point() {
        point(Next { size: WORD, ..Next::on(Op::EnterWrite, object as u64, pc) });
    }
}

extern "C" fn at_any(pc: usize, _: usize, _: usize) {
    if is_point() {
        point(Next::on(Op::Enter, 0, pc));
    }
}

/// A wait on a futex word has ended. If precompiled code waits on a condition variable, it locks
/// the mutex next.
pub fn after_wait(word: u64, pc: usize) {
    let thread = &mut runtime().threads[me()];
    let (condvar, mutex) = thread.waits_on;
    if condvar == word && word != 0 {
        thread.waits_on = (0, 0);
        point(Next { size: WORD, ..Next::on(Op::Relock, mutex, pc) });
    }
}
