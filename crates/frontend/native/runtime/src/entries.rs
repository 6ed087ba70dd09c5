//! Scheduling points at the entries of precompiled functions.
//!
//! Rust's standard library is precompiled, so its atomic operations are not visible, except for
//! generic and inlined ones, which are compiled with the program. Precompiled code runs without
//! interruption up to its next futex call. Without further scheduling points, it would also run in
//! the same step as the operation *before* it: a thread that reads a flag and calls `Condvar::wait`
//! would read the word of the condition variable in the same step as the flag, and no notification
//! could come in between. So the functions of the standard library that begin with an invisible
//! operation get a scheduling point at their entry.
//!
//! # Which functions, and why that is enough
//!
//! Let a thread perform the visible operation *v*, then the invisible ones *i1 i2 …*, then the
//! visible one *w*. There are scheduling points before *v* and before *w*. Without others, no other
//! thread can run between *v* and *i1*, or between two invisible operations.
//!
//! - **Between *v* and *i1***: if *v* and *i1* belong to the same function of the standard library,
//!   the function is one operation of a linearizable object (a lock, a `Once`), and takes effect at
//!   one of the two. Whatever another thread does between them, it can also do before *v*. The same
//!   holds if *v* commutes with everything that other threads can do from then on (a thread begins,
//!   is woken, or has joined another). Otherwise *i1* is the first operation of a function that is
//!   precompiled as a whole, and the point at its entry is between the two. The controller finds
//!   these functions by their names: `Condvar::wait`, `notify_one`, `notify_all`, `Barrier::wait`,
//!   `thread::park` and their variants. `Once::call` is one of them only for reductions, which have
//!   to know that it writes.
//! - **Between *i1* and *i2***: `Condvar::wait` reads its word and unlocks the mutex. Its
//!   documentation calls both together atomic: no notification after the unlock is lost. After the
//!   wait it locks the mutex. That is a separate step ([`Op::Relock`]), because other threads may
//!   observe the end of the wait (a timeout) before the mutex is locked. The other functions
//!   perform one operation before their next futex call (`park` takes its token, `notify` counts),
//!   or lock a mutex and unlock it (`Barrier::wait`).
//!
//! Not covered: operations of a precompiled function after it has called back into the program
//! (`Once` marks itself as complete in the step in which the closure performs its last operation);
//! functions without a symbol; and state that the standard library keeps for the whole process (the
//! environment, the panic hook, the lock of the standard output).
//!
//! # How
//!
//! The first instructions of the function are replaced by a jump. Its target reaches the scheduling
//! point, executes the replaced instructions, and jumps back to the next one. Only instructions
//! that mean the same at another address are moved ([`movable`]); a function that begins with
//! others is not changed, and the controller reports it. This happens in the fork server, before
//! there are other threads.

use core::sync::atomic::Ordering::Relaxed;

use crate::block::{MAX_ENTRIES, Op};
use crate::schedule::{Next, active, block, point, runtime};
use crate::sys;
use crate::threads::me;

/// The length of the jump.
const JUMP: usize = 5;

/// The size of the code for one function: the jump to the stub, the moved instructions, and the
/// jump back.
const DETOUR: usize = 64;

const PAGE: usize = 4096;
const READ_EXECUTE: usize = 5;
const READ_WRITE: usize = 3;

/// Inserts a scheduling point at the entry of each requested function, where that is possible.
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
    let Some(code) = (unsafe { page_near(base) }) else { return };
    for (nth, entry) in block.entries[..count].iter().enumerate() {
        let function = base + entry.address as usize;
        let stub = match entry.op {
            op if op == Op::EnterWait as u32 => enter_wait as *const () as usize,
            op if op == Op::EnterWrite as u32 => enter_write as *const () as usize,
            _ => enter as *const () as usize,
        };
        // SAFETY: this part of the page is for this entry alone; the rest as for this function.
        if unsafe { divert((function, entry.size as usize), code + nth * DETOUR, stub) } {
            block.entered.fetch_or(1 << nth, Relaxed);
        }
    }
    // SAFETY: the page was mapped for this.
    unsafe { sys::call(sys::MPROTECT, [code, PAGE, READ_EXECUTE, 0, 0, 0]) };
}

/// Maps a new page within the range of a relative jump from the executable.
///
/// # Safety
///
/// The executable is loaded at `base`.
unsafe fn page_near(base: usize) -> Option<usize> {
    const { assert!(MAX_ENTRIES * DETOUR <= PAGE) };
    const PRIVATE_ANONYMOUS_FIXED: usize = 0x02 | 0x20 | 0x10_0000;
    // An executable that is not position-independent has base 0 and is loaded at 4 MiB.
    let around = if base == 0 { 0x40_0000 } else { base };
    (1..64).find_map(|mebibytes| {
        let at = around.checked_sub(mebibytes << 20)?.max(0x1_0000);
        let none = usize::MAX;
        let arguments = [at, PAGE, READ_WRITE, PRIVATE_ANONYMOUS_FIXED, none, 0];
        // SAFETY: the kernel refuses to replace an existing mapping.
        (unsafe { sys::call(sys::MMAP, arguments) } == at as isize).then_some(at)
    })
}

/// Inserts a call of `stub` at the entry of a function, with code at `detour`. Returns whether that
/// was possible.
///
/// # Safety
///
/// As for [`patch`]; the [`DETOUR`] bytes at `detour` can be written.
unsafe fn divert((function, size): (usize, usize), detour: usize, stub: usize) -> bool {
    // SAFETY: the function has this size.
    let code = unsafe { core::slice::from_raw_parts(function as *const u8, size) };
    let Some(moved) = moved(code).filter(|&moved| !jumps_into(code, moved)) else { return false };
    let mut writer = Writer { at: detour };
    // SAFETY: less than `DETOUR` bytes are written there. The pages of the function are writable
    // between the two calls of `mprotect`, and no other thread executes them.
    unsafe {
        // mov r11, the moved instructions; jmp [stub]
        let body = detour + 10 + 14;
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
        let distance = (detour as isize - (function + JUMP) as isize) as i32;
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
    /// `bytes.len()` bytes at `self.at` can be written.
    unsafe fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: as for this function.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), self.at as *mut u8, bytes.len()) };
        self.at += bytes.len();
    }
}

/// The length of the first instructions that a jump replaces, if all of them can be moved.
fn moved(code: &[u8]) -> Option<usize> {
    let mut len = 0;
    while len < JUMP {
        len += movable(code.get(len..)?)?;
    }
    Some(len)
}

/// Whether code may jump to one of its first `len` bytes other than the first. To be on the safe
/// side, every byte is taken for the beginning of a jump.
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

/// The length of the first instruction, if it is known to mean the same at another address. Only
/// instructions with which compilers begin functions are known.
fn movable(code: &[u8]) -> Option<usize> {
    /// The length of the operand that begins with the ModRM byte; `None` if it is relative to the
    /// instruction or has an index.
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
            // inc and dec of a counter
            [0xff, modrm, ..] if modrm >> 3 & 7 <= 1 => 1 + operand(&rest[1..])?,
            _ => return None,
        },
    )
}

/// Defines a target of jumps, which saves the arguments of the function, calls `body` with the
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

/// Whether entries are scheduling points now.
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

/// Called when a futex wait has ended. If precompiled code waited on a condition variable,
/// it locks the mutex next, which is a scheduling point.
pub fn after_wait(word: u64, pc: usize) {
    let thread = &mut runtime().threads[me()];
    let (condvar, mutex) = thread.waits_on;
    if condvar == word && word != 0 {
        thread.waits_on = (0, 0);
        point(Next { size: WORD, ..Next::on(Op::Relock, mutex, pc) });
    }
}
