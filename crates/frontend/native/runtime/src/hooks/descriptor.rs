//! Reading, writing and closing descriptors, and making new ones.
//!
//! An operation on a pipe, a socket or an eventfd is a scheduling point. If it would block, the
//! thread waits in the model ([`crate::descriptors`]). A nonblocking operation (`O_NONBLOCK`) is
//! performed at once and may fail with `EAGAIN`. Operations on files are not controlled.

use core::ffi::{c_int, c_uint};

use super::time::{Time, after};
use crate::block::{Call, NEVER, Op};
use crate::descriptors::{
    DescriptorKind, READABLE, WRITABLE, Wait, is_nonblocking, kind_of, without_waiting,
};
use crate::schedule::{Next, point};
use crate::sys::{self, EAGAIN, result};

/// `EAGAIN` as the kernel returns it.
pub const AGAIN: isize = -(EAGAIN as isize);

fn on(op: Op, call: Call, fd: c_int, pc: usize) -> Next {
    Next { value: call as u32, other: fd as u32 as u64, ..Next::on(op, 0, pc) }
}

/// A scheduling point before an operation that does not wait.
pub fn announce_io(call: Call, fd: c_int, pc: usize) {
    point(on(Op::Io, call, fd, pc));
}

/// Waits for descriptors. Returns whether the wait timed out.
pub fn wait_for(call: Call, fd: c_int, wait: Wait, deadline: u64, pc: usize) -> bool {
    point(on(Op::IoWait, call, fd, pc).waiting(wait).until(deadline)).alternative == 1
}

/// Makes a system call with up to six arguments. Returns its result, or the negated error.
pub fn raw<const N: usize>(number: usize, args: [usize; N]) -> isize {
    let all = core::array::from_fn(|at| args.get(at).copied().unwrap_or(0));
    // SAFETY: the program passes what it would pass to the kernel.
    unsafe { sys::call(number, all) }
}

/// `SO_RCVTIMEO` and `SO_SNDTIMEO`.
const RECEIVE_TIMEOUT: usize = 20;
const SEND_TIMEOUT: usize = 21;

/// The deadline of an operation, which only sockets have.
fn deadline(fd: c_int, kind: DescriptorKind, events: i16) -> u64 {
    if kind != DescriptorKind::Socket {
        return NEVER;
    }
    const SOCKET_LEVEL: usize = 1;
    let option = if events == READABLE { RECEIVE_TIMEOUT } else { SEND_TIMEOUT };
    let (mut time, mut size) = ([0_i64; 2], 16_u32);
    let (value, len) = (time.as_mut_ptr() as usize, &raw mut size as usize);
    let found = raw(sys::GETSOCKOPT, [fd as usize, SOCKET_LEVEL, option, value, len]);
    if found != 0 || time == [0, 0] {
        return NEVER;
    }
    after(&Time::new(time[0], time[1] * 1_000))
}

/// How an operation uses its descriptor.
#[derive(Clone, Copy)]
pub struct Use {
    pub call: Call,
    pub fd: c_int,
    /// The events for which it waits, as in [`PollFd`](crate::descriptors::PollFd).
    pub events: i16,
    /// Whether the call itself asks not to wait (`MSG_DONTWAIT`).
    pub at_once: bool,
    pub pc: usize,
}

/// Performs an operation that is complete after one system call.
pub fn perform(Use { call, fd, events, at_once, pc }: Use, operation: impl Fn() -> isize) -> isize {
    let kind = kind_of(fd);
    if kind == DescriptorKind::Plain {
        return result(operation());
    }
    if at_once || is_nonblocking(fd) {
        announce_io(call, fd, pc);
        return result(operation());
    }
    let deadline = deadline(fd, kind, events);
    loop {
        if wait_for(call, fd, Wait::One { fd, events }, deadline, pc) {
            return result(AGAIN);
        }
        let done = without_waiting(fd, &operation);
        if done != AGAIN {
            return result(done);
        }
    }
}

/// Performs an operation that continues until all `len` bytes are transferred, as blocking writes
/// do. `operation` gets the number of bytes transferred so far.
pub fn perform_all(usage: Use, len: usize, operation: impl Fn(usize) -> isize) -> isize {
    let Use { call, fd, events, at_once, pc } = usage;
    let kind = kind_of(fd);
    if kind == DescriptorKind::Plain || at_once || is_nonblocking(fd) {
        return perform(usage, || operation(0));
    }
    let deadline = deadline(fd, kind, events);
    let mut done = 0;
    loop {
        let timed_out = wait_for(call, fd, Wait::One { fd, events }, deadline, pc);
        let part = if timed_out { AGAIN } else { without_waiting(fd, || operation(done)) };
        match part {
            AGAIN if !timed_out => {}
            // The end of the input, or an error: returns what was transferred before, if anything.
            ..=0 if done > 0 => return done as isize,
            ..=0 => return result(part),
            _ => done += part as usize,
        }
        if done >= len {
            return done as isize;
        }
    }
}

fn reading(call: Call, fd: c_int, pc: usize) -> Use {
    Use { call, fd, events: READABLE, at_once: false, pc }
}

fn writing(call: Call, fd: c_int, pc: usize) -> Use {
    Use { call, fd, events: WRITABLE, at_once: false, pc }
}

fn read_some(fd: c_int, to: usize, len: usize, pc: usize) -> isize {
    perform(reading(Call::Read, fd, pc), || raw(sys::READ, [fd as usize, to, len]))
}

fn write_some(fd: c_int, from: usize, len: usize, pc: usize) -> isize {
    perform_all(writing(Call::Write, fd, pc), len, |done| {
        raw(sys::WRITE, [fd as usize, from + done, len - done])
    })
}

hook!(fn read(fd: c_int, to: usize, len: usize; pc) -> isize { read_some(fd, to, len, pc) });
hook!(fn __read_chk(fd: c_int, to: usize, len: usize, _room: usize; pc) -> isize {
    read_some(fd, to, len, pc)
});
hook!(fn write(fd: c_int, from: usize, len: usize; pc) -> isize { write_some(fd, from, len, pc) });
hook!(fn eventfd_read(fd: c_int, to: usize; pc) -> c_int {
    if read_some(fd, to, 8, pc) == 8 { 0 } else { -1 }
});
hook!(fn eventfd_write(fd: c_int, value: u64; pc) -> c_int {
    if write_some(fd, &raw const value as usize, 8, pc) == 8 { 0 } else { -1 }
});

/// `struct iovec`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Part {
    base: usize,
    len: usize,
}

/// # Safety
///
/// `first` points to `count` parts.
unsafe fn parts<'a>(first: *const Part, count: c_int) -> &'a [Part] {
    if count <= 0 {
        return &[];
    }
    // SAFETY: the caller guarantees it.
    unsafe { core::slice::from_raw_parts(first, count as usize) }
}

hook!(fn readv(fd: c_int, first: *const Part, count: c_int; pc) -> isize {
    perform(reading(Call::Read, fd, pc), || {
        raw(sys::READV, [fd as usize, first as usize, count as usize])
    })
});
hook!(fn writev(fd: c_int, first: *const Part, count: c_int; pc) -> isize {
    // SAFETY: the program passes a valid vector.
    let all = unsafe { parts(first, count) };
    let len = all.iter().map(|part| part.len).sum();
    perform_all(writing(Call::Write, fd, pc), len, |done| {
        if done == 0 {
            return raw(sys::WRITEV, [fd as usize, first as usize, count as usize]);
        }
        // Continue with the rest of the part in which the last write stopped.
        let mut before = done;
        for part in all {
            if before < part.len {
                return raw(sys::WRITE, [fd as usize, part.base + before, part.len - before]);
            }
            before -= part.len;
        }
        0
    })
});

hook!(fn close(fd: c_int; pc) -> c_int {
    if kind_of(fd) != DescriptorKind::Plain {
        announce_io(Call::Close, fd, pc);
    }
    result(raw(sys::CLOSE, [fd as usize])) as c_int
});

/// Makes a new descriptor. It is a scheduling point because the number of the descriptor depends on
/// the order of these calls.
fn make(pc: usize, number: usize, args: [usize; 4]) -> c_int {
    announce_io(Call::Create, -1, pc);
    result(raw(number, args)) as c_int
}

hook!(fn pipe(ends: usize; pc) -> c_int { make(pc, sys::PIPE2, [ends, 0, 0, 0]) });
hook!(fn pipe2(
    ends: usize, flags: usize; pc
) -> c_int {
    make(pc, sys::PIPE2, [ends, flags, 0, 0])
});
hook!(fn eventfd(value: c_uint, flags: c_int; pc) -> c_int {
    make(pc, sys::EVENTFD2, [value as usize, flags as usize, 0, 0])
});
hook!(fn epoll_create(_size: c_int; pc) -> c_int { make(pc, sys::EPOLL_CREATE1, [0; 4]) });
hook!(fn epoll_create1(flags: c_int; pc) -> c_int {
    make(pc, sys::EPOLL_CREATE1, [flags as usize, 0, 0, 0])
});
hook!(fn socketpair(domain: usize, kind: usize, protocol: usize, ends: usize; pc) -> c_int {
    make(pc, sys::SOCKETPAIR, [domain, kind, protocol, ends])
});
hook!(fn dup(fd: c_int; pc) -> c_int { make(pc, sys::DUP, [fd as usize, 0, 0, 0]) });
hook!(fn dup2(fd: c_int, to: c_int; pc) -> c_int {
    make(pc, sys::DUP2, [fd as usize, to as usize, 0, 0])
});
hook!(fn dup3(fd: c_int, to: c_int, flags: c_int; pc) -> c_int {
    make(pc, sys::DUP3, [fd as usize, to as usize, flags as usize, 0])
});
