//! Raw system calls: functions of libc may be replaced, and some of them allocate.

use core::arch::asm;
use core::ffi::{c_int, c_void};
use core::sync::atomic::AtomicU32;

/// A pointer of the C interface.
pub type P = *mut c_void;

pub const READ: usize = 0;
pub const WRITE: usize = 1;
pub const CLOSE: usize = 3;
pub const FSTAT: usize = 5;
pub const POLL: usize = 7;
pub const LSEEK: usize = 8;
pub const MMAP: usize = 9;
pub const MPROTECT: usize = 10;
pub const RT_SIGPROCMASK: usize = 14;
pub const READV: usize = 19;
pub const WRITEV: usize = 20;
pub const SCHED_YIELD: usize = 24;
pub const MADVISE: usize = 28;
pub const DUP: usize = 32;
pub const DUP2: usize = 33;
pub const GETPID: usize = 39;
pub const SOCKET: usize = 41;
pub const CONNECT: usize = 42;
pub const SENDTO: usize = 44;
pub const RECVFROM: usize = 45;
pub const SENDMSG: usize = 46;
pub const RECVMSG: usize = 47;
pub const SHUTDOWN: usize = 48;
pub const BIND: usize = 49;
pub const LISTEN: usize = 50;
pub const GETSOCKNAME: usize = 51;
pub const SOCKETPAIR: usize = 53;
pub const SETSOCKOPT: usize = 54;
pub const GETSOCKOPT: usize = 55;
pub const CLONE: usize = 56;
pub const FORK: usize = 57;
pub const VFORK: usize = 58;
pub const EXECVE: usize = 59;
pub const EXIT: usize = 60;
pub const WAIT4: usize = 61;
pub const FCNTL: usize = 72;
pub const GETPPID: usize = 110;
pub const PRCTL: usize = 157;
pub const GETTID: usize = 186;
pub const FUTEX: usize = 202;
pub const EXIT_GROUP: usize = 231;
pub const EPOLL_WAIT: usize = 232;
pub const EPOLL_CTL: usize = 233;
pub const TGKILL: usize = 234;
pub const PSELECT6: usize = 270;
pub const ACCEPT4: usize = 288;
pub const EVENTFD2: usize = 290;
pub const EPOLL_CREATE1: usize = 291;
pub const DUP3: usize = 292;
pub const PIPE2: usize = 293;
pub const SECCOMP: usize = 317;
pub const GETRANDOM: usize = 318;
pub const EXECVEAT: usize = 322;
pub const IO_URING_SETUP: usize = 425;
pub const CLONE3: usize = 435;
pub const FUTEX_WAITV: usize = 449;
pub const FUTEX_WAKE2: usize = 454;
pub const FUTEX_WAIT2: usize = 455;
pub const FUTEX_REQUEUE2: usize = 456;

pub const EPERM: c_int = 1;
pub const EAGAIN: c_int = 11;
pub const EBUSY: c_int = 16;
pub const EINVAL: c_int = 22;
pub const EDEADLK: c_int = 35;
pub const EOVERFLOW: c_int = 75;
pub const ETIMEDOUT: c_int = 110;

/// Makes a system call. Returns its result, or the negated error.
///
/// # Safety
///
/// The arguments must be what the system call expects.
#[inline(always)]
pub unsafe fn call(number: usize, args: [usize; 6]) -> isize {
    let result: isize;
    // SAFETY: the caller passes valid arguments; the kernel keeps all other registers.
    unsafe {
        asm!("syscall", inlateout("rax") number as isize => result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            in("r10") args[3], in("r8") args[4], in("r9") args[5],
            lateout("rcx") _, lateout("r11") _, options(nostack));
    }
    result
}

const FUTEX_WAIT: usize = 0;
const FUTEX_WAKE: usize = 1;
const FUTEX_PRIVATE: usize = 128;

/// Waits while `word` has the value `value`; may return early.
pub fn wait(word: &AtomicU32, value: u32) {
    let address = word as *const _ as usize;
    // SAFETY: the word is valid, and there is no timeout.
    unsafe { call(FUTEX, [address, FUTEX_WAIT | FUTEX_PRIVATE, value as usize, 0, 0, 0]) };
}

/// Wakes the thread that waits on `word`.
pub fn wake(word: &AtomicU32) {
    let address = word as *const _ as usize;
    // SAFETY: the word is valid.
    unsafe { call(FUTEX, [address, FUTEX_WAKE | FUTEX_PRIVATE, 1, 0, 0, 0]) };
}

/// Like [`wait`], but between processes and for at most a second.
pub fn wait_shared(word: &AtomicU32, value: u32) {
    let (address, second) = (word as *const _ as usize, [1_i64, 0]);
    let timeout = second.as_ptr() as usize;
    // SAFETY: the word and the time are valid.
    unsafe { call(FUTEX, [address, FUTEX_WAIT, value as usize, timeout, 0, 0]) };
}

/// Like [`wake`], but between processes.
pub fn wake_shared(word: &AtomicU32) {
    // SAFETY: the word is valid.
    unsafe { call(FUTEX, [word as *const _ as usize, FUTEX_WAKE, 1, 0, 0, 0]) };
}

/// Ends the process at once.
pub fn exit_group(code: c_int) -> ! {
    loop {
        // SAFETY: no memory is involved.
        unsafe { call(EXIT_GROUP, [code as usize, 0, 0, 0, 0, 0]) };
    }
}

unsafe extern "C" {
    fn __errno_location() -> *mut c_int;
}

/// Sets `errno` and returns -1, as functions of libc do.
pub fn fail(error: c_int) -> c_int {
    // SAFETY: libc returns the address of the thread's own variable.
    unsafe { *__errno_location() = error };
    -1
}

/// Converts the result of a system call to libc's convention: -1 and `errno` instead of a negated
/// error.
pub fn result(raw: isize) -> isize {
    if (-4095..0).contains(&raw) { fail(-raw as c_int) as isize } else { raw }
}
