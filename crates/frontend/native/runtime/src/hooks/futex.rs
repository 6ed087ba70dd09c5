//! Futexes through libc's `syscall`, as Rust's standard library and libstdc++ use them, and other
//! system calls that are made in this way.

use core::ffi::{c_int, c_long};
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};

use super::time::{Time, after, until};
use crate::block::{MAX_THREADS, ObjectKind, Op};
use crate::object::Action;
use crate::schedule::{Next, active, log_learned, point, runtime, unsupported};
use crate::sys::{self, EAGAIN, ETIMEDOUT};
use crate::thread::ThreadId;
use crate::threads::me;

/// The exported function. For a futex call it passes the return address in place of the number of
/// the call.
///
/// # Safety
///
/// As for the function of libc.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C" fn syscall() {
    core::arch::naked_asm!(
        "cmp rdi, {futex}",
        "jne {other}",
        "mov rdi, [rsp]",
        "jmp {body}",
        futex = const sys::FUTEX,
        other = sym other,
        body = sym futex,
    )
}

/// Performs a system call that the program made at `pc`. Returns its result, or the negated error.
///
/// # Safety
///
/// As for the system call.
pub unsafe fn perform(pc: usize, number: usize, args: [usize; 6]) -> isize {
    let [a, b, c, d, e, f] = args;
    if !active() {
        // SAFETY: the program passes what it would pass to the kernel.
        return unsafe { sys::call(number, args) };
    }
    match number {
        sys::FUTEX => return control(pc, a, b, c, d, f),
        sys::GETRANDOM => {
            super::random::fill(a as *mut u8, b);
            return b as isize;
        }
        sys::SCHED_YIELD => {
            point(Next::on(Op::Yield, 0, pc));
            return 0;
        }
        sys::EXIT_GROUP => super::process::end_now(a as c_int),
        _ => {}
    }
    if let Some(name) = refused(number) {
        unsupported(name);
    }
    // SAFETY: the program passes what it would pass to the kernel.
    unsafe { sys::call(number, [a, b, c, d, e, f]) }
}

/// The name of a system call that cannot be controlled.
fn refused(number: usize) -> Option<&'static str> {
    Some(match number {
        sys::IO_URING_SETUP => "io_uring",
        sys::FUTEX_WAITV => "the system call futex_waitv",
        sys::FUTEX_WAKE2 => "the system call futex_wake",
        sys::FUTEX_WAIT2 => "the system call futex_wait",
        sys::FUTEX_REQUEUE2 => "the system call futex_requeue",
        sys::CLONE | sys::CLONE3 => "the system call clone",
        sys::FORK | sys::VFORK => "the system call fork",
        sys::EXECVE | sys::EXECVEAT => "the system call execve",
        sys::EXIT => "the system call exit, which ends a thread",
        _ => return None,
    })
}

unsafe extern "C" fn other(
    number: usize,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    // SAFETY: the program passes what it would pass to the kernel. The return address is not known;
    // only a yield would show it.
    sys::result(unsafe { perform(0, number, [a, b, c, d, e, f]) }) as c_long
}

const WAIT: usize = 0;
const WAKE: usize = 1;
const WAIT_BITSET: usize = 9;
const WAKE_BITSET: usize = 10;
/// Flags that do not change what an operation means within one process.
const FLAGS: usize = 128 | 256;
const ANY: u32 = u32::MAX;

unsafe extern "C" fn futex(
    pc: usize,
    word: usize,
    operation: usize,
    value: usize,
    timeout: usize,
    other: usize,
    mask: usize,
) -> c_long {
    // SAFETY: the program passes what it would pass to the kernel.
    let done = unsafe { perform(pc, sys::FUTEX, [word, operation, value, timeout, other, mask]) };
    sys::result(done) as c_long
}

/// Performs a futex call on the model. Returns its result, or the negated error.
fn control(
    pc: usize,
    word: usize,
    operation: usize,
    value: usize,
    timeout: usize,
    mask: usize,
) -> isize {
    let masked = matches!(operation & !FLAGS, WAIT_BITSET | WAKE_BITSET);
    if masked && mask as u32 != ANY {
        unsupported("a futex call with a bit mask");
    }
    match operation & !FLAGS {
        WAIT => wait(word, value as u32, limit(timeout, after), pc),
        WAIT_BITSET => wait(word, value as u32, limit(timeout, until), pc),
        WAKE | WAKE_BITSET => wake(word, value as u32, pc),
        other => unsupported(name(other)),
    }
}

/// The name of a futex operation that is not modelled.
fn name(operation: usize) -> &'static str {
    match operation {
        3 => "the futex operation FUTEX_REQUEUE",
        4 => "the futex operation FUTEX_CMP_REQUEUE",
        5 => "the futex operation FUTEX_WAKE_OP",
        6 | 7 | 8 | 11 | 12 | 13 => {
            "futex operations with priority inheritance (FUTEX_LOCK_PI and others)"
        }
        _ => "a futex operation other than wait and wake",
    }
}

/// The deadline of a wait, if it has one.
fn limit(timeout: usize, meaning: fn(*const Time) -> u64) -> Option<u64> {
    (timeout != 0).then(|| meaning(timeout as *const Time))
}

fn wait(word: usize, expected: u32, deadline: Option<u64>, pc: usize) -> isize {
    let address = word as u64;
    // The word is also the second object, because its value decides whether the thread waits.
    let value = expected;
    point(Next { value, ..Next::on_both(Op::FutexWait, address, address, pc) });
    // Reading the word and starting to wait are one step.
    // SAFETY: the program passes a valid word.
    let found = unsafe { &*(word as *const AtomicU32) }.load(SeqCst);
    log_learned(u32::from(found == expected), found);
    let mut result = EAGAIN;
    if found != expected {
        crate::race::after_unexpected_word();
    } else {
        runtime().act(ThreadId::new(me()), ObjectKind::Futex, address, Action::Wait);
        let woken = match deadline {
            None => Next::on_both(Op::FutexWoken, address, address, pc),
            Some(deadline) => {
                Next::on_both(Op::TimedFutexWoken, address, address, pc).until(deadline)
            }
        };
        result = if point(woken).alternative == 1 { ETIMEDOUT } else { 0 };
    }
    crate::entries::after_wait(address, pc);
    -(result as isize)
}

fn wake(word: usize, count: u32, pc: usize) -> isize {
    let op = match count {
        1 => Op::FutexWakeOne,
        _ if count as usize >= MAX_THREADS => Op::FutexWakeAll,
        _ => unsupported("a futex call that wakes a number of threads other than one or all"),
    };
    point(Next::on(op, word as u64, pc)).reply as isize
}
