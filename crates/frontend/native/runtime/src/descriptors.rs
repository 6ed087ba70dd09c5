//! Descriptors that can block a thread, and when they are ready.
//!
//! Pipes, sockets, eventfds and epoll instances are objects of the kernel. They are not modelled:
//! the real system call is made, but only when it does not block. A thread that would block
//! announces [`Op::IoWait`] and the descriptors for which it waits, and can continue when `poll`
//! reports them as ready. Only the program itself uses these descriptors, so their readiness
//! changes only by its own operations: the kernel is asked again after each of them, and for every
//! new wait.
//!
//! All operations on descriptors count as accesses to one location. So they have the same order in
//! all executions with the same happens-before graph, and readiness follows from that order.

use core::ffi::c_int;

use crate::block::Op;
use crate::schedule::{Next, log_ready, runtime, unsupported};
use crate::sys;
use crate::threads::Stage;

/// `struct pollfd`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PollFd {
    pub fd: c_int,
    pub events: i16,
    pub returned: i16,
}

pub const READABLE: i16 = 1;
pub const WRITABLE: i16 = 4;

/// A set of descriptors, `fd_set`.
pub type Set = [u64; 16];

/// The descriptors for which a thread waits.
#[derive(Clone, Copy)]
pub enum Wait {
    /// None.
    Nothing,
    /// One descriptor.
    One { fd: c_int, events: i16 },
    /// Any of those in an array of the program, which lives as long as the call.
    Several { first: *mut PollFd, count: usize },
    /// Any of those in sets of the program: for reading, for writing, exceptions.
    Sets { count: c_int, sets: [*mut Set; 3] },
    /// Any operation on a descriptor, once there have been more than `since`.
    Change { since: u64 },
}

/// Whether a wait can end. `operations` is the number of operations on descriptors so far.
fn is_ready(wait: Wait, operations: u64) -> bool {
    match wait {
        Wait::Nothing => true,
        Wait::One { fd, events } => {
            let mut one = PollFd { fd, events, returned: 0 };
            poll(&raw mut one, 1) != 0
        }
        Wait::Several { first, count } => poll(first, count) != 0,
        Wait::Sets { count, sets } => select(count, sets, Results::Discard) != 0,
        Wait::Change { since } => operations > since,
    }
}

/// Asks the kernel which descriptors are ready, without waiting. Returns their number, or a negated
/// error.
pub fn poll(first: *mut PollFd, count: usize) -> isize {
    // SAFETY: the array is valid while the thread is in its call.
    unsafe { sys::call(sys::POLL, [first as usize, count, 0, 0, 0, 0]) }
}

/// Whether [`select`] changes the sets of the program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Results {
    Discard,
    Store,
}

/// Like [`poll`], for sets of descriptors.
pub fn select(count: c_int, sets: [*mut Set; 3], results: Results) -> isize {
    let words = (count.clamp(0, 1024) as usize).div_ceil(64);
    let mut copies = [[0_u64; 16]; 3];
    for (copy, set) in copies.iter_mut().zip(sets) {
        // SAFETY: sets have room for `count` bits.
        (0..if set.is_null() { 0 } else { words }).for_each(|at| copy[at] = unsafe { (*set)[at] });
    }
    let pointers = core::array::from_fn::<usize, 3, _>(|at| match sets[at].is_null() {
        true => 0,
        false => copies[at].as_mut_ptr() as usize,
    });
    let zero_timeout = [0_i64; 2];
    let [reads, writes, exceptions] = pointers;
    let time = zero_timeout.as_ptr() as usize;
    // SAFETY: the sets and the time are valid.
    let ready =
        unsafe { sys::call(sys::PSELECT6, [count as usize, reads, writes, exceptions, time, 0]) };
    if results == Results::Store && ready >= 0 {
        for (copy, set) in copies.iter().zip(sets).filter(|(_, set)| !set.is_null()) {
            // SAFETY: as above.
            (0..words).for_each(|at| unsafe { (*set)[at] = copy[at] });
        }
    }
    ready
}

/// Updates the readiness of every thread that waits for descriptors, and logs changes. Called
/// before every choice.
#[inline]
pub fn refresh() {
    if runtime().waits_for_descriptors > 0 {
        refresh_all();
    }
}

fn refresh_all() {
    let operations = runtime().descriptor_operations;
    for slot in 0..runtime().threads.len() {
        let thread = &mut runtime().threads[slot];
        let waits = thread.stage == Stage::Waiting && thread.next.op == Op::IoWait;
        // `asked` is one higher, because 0 stands for a new wait.
        if !waits || thread.asked == operations + 1 {
            continue;
        }
        thread.asked = operations + 1;
        let ready = is_ready(thread.next.wait, operations);
        if ready != thread.ready {
            thread.ready = ready;
            log_ready(slot, ready);
        }
    }
}

/// The kinds of descriptors that are treated differently.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum DescriptorKind {
    /// A file, a directory, a device, or an invalid descriptor: never waits for another thread.
    Plain,
    /// A pipe, an eventfd or an epoll instance.
    Pipe,
    /// A socket.
    Socket,
}

/// `struct stat`.
#[repr(C)]
struct Status {
    device: u64,
    inode: u64,
    links: u64,
    mode: u32,
    rest: [u32; 29],
}

fn status(fd: c_int) -> Option<Status> {
    let mut status = Status { device: 0, inode: 0, links: 0, mode: 0, rest: [0; 29] };
    let to = &raw mut status as usize;
    // SAFETY: the structure has the size of `struct stat`.
    let done = unsafe { sys::call(sys::FSTAT, [fd as usize, to, 0, 0, 0, 0]) };
    (done == 0).then_some(status)
}

const TYPE: u32 = 0o170_000;
const FIFO: u32 = 0o010_000;
const SOCKET: u32 = 0o140_000;
const ANONYMOUS: u32 = 0;

/// The kind of a descriptor. Ends the execution if the descriptor may lead to another process.
pub fn kind_of(fd: c_int) -> DescriptorKind {
    let Some(status) = status(fd) else { return DescriptorKind::Plain };
    let kind = match status.mode & TYPE {
        FIFO => DescriptorKind::Pipe,
        SOCKET => DescriptorKind::Socket,
        ANONYMOUS => return DescriptorKind::Pipe,
        _ => return DescriptorKind::Plain,
    };
    let inherited = &raw const INHERITED;
    // SAFETY: written before the program begins.
    if unsafe { (*inherited).contains(&status.inode) } {
        unsupported(
            "a pipe or a socket that existed before `main` and may lead to another process",
        );
    }
    kind
}

/// The maximal number of inherited descriptors that are recognised.
const MAX_INHERITED: usize = 64;

/// The inodes of pipes and sockets that existed before the first execution.
static mut INHERITED: [u64; MAX_INHERITED] = [0; MAX_INHERITED];

/// Records the pipes and sockets that exist now. Called before the first execution.
pub fn note_inherited() {
    const HIGHEST: c_int = 256;
    let found = (0..HIGHEST).filter_map(status);
    let can_block = found.filter(|status| matches!(status.mode & TYPE, FIFO | SOCKET));
    for (at, status) in can_block.take(MAX_INHERITED).enumerate() {
        // SAFETY: there is only one thread.
        unsafe { INHERITED[at] = status.inode };
    }
}

const GET_FLAGS: usize = 3;
const SET_FLAGS: usize = 4;
const NONBLOCKING: isize = 0o4000;

/// The flags of a descriptor, or a negated error.
pub fn flags(fd: c_int) -> isize {
    // SAFETY: no memory is involved.
    unsafe { sys::call(sys::FCNTL, [fd as usize, GET_FLAGS, 0, 0, 0, 0]) }
}

/// Whether operations on a descriptor fail instead of waiting.
pub fn is_nonblocking(fd: c_int) -> bool {
    let flags = flags(fd);
    flags < 0 || flags & NONBLOCKING != 0
}

/// Calls `operation` with the descriptor in nonblocking mode. No other thread runs in between, so
/// none can observe the changed flag.
pub fn without_waiting(fd: c_int, operation: impl FnOnce() -> isize) -> isize {
    let flags = flags(fd) as usize;
    let set = |flags: usize| {
        // SAFETY: no memory is involved.
        unsafe { sys::call(sys::FCNTL, [fd as usize, SET_FLAGS, flags, 0, 0, 0]) }
    };
    set(flags | NONBLOCKING as usize);
    let done = operation();
    set(flags);
    done
}

impl Next {
    /// Sets the descriptors for which the operation waits.
    pub fn waiting(self, wait: Wait) -> Next {
        Next { wait, ..self }
    }
}
