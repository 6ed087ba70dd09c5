//! Waiting for several descriptors: `poll`, `select` and `epoll`.

use core::ffi::c_int;

use super::descriptor::{announce_io, raw, wait_for};
use super::time::{Time, after, after_nanoseconds};
use crate::block::{Call, NEVER};
use crate::descriptors::{
    PollFd, READABLE, Results, Set, Wait, kind_of, poll as poll_now, select as select_now,
};
use crate::schedule::runtime;
use crate::sys::{self, P, result};

/// How long a call waits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    /// Not at all.
    Now,
    /// Until this deadline, or forever ([`NEVER`]).
    Until(u64),
}

fn milliseconds(time: c_int) -> Limit {
    match time {
        0 => Limit::Now,
        ..0 => Limit::Until(NEVER),
        _ => Limit::Until(after_nanoseconds(time as u64 * 1_000_000)),
    }
}

fn relative(time: *const Time) -> Limit {
    if time.is_null() {
        return Limit::Until(NEVER);
    }
    // SAFETY: the program passes a valid time.
    if unsafe { (*time).is_zero() } { Limit::Now } else { Limit::Until(after(time)) }
}

/// Waits until `ask`, which returns the number of ready descriptors, does not return 0.
fn wait(
    call: Call,
    fd: c_int,
    what: Wait,
    limit: Limit,
    pc: usize,
    ask: impl Fn() -> isize,
) -> c_int {
    let Limit::Until(deadline) = limit else {
        // Every Rust program starts with such a call, which would be the first line of its traces.
        // Before the program has created a thread, there is nothing to choose.
        if runtime().concurrent {
            announce_io(call, fd, pc);
        }
        return result(ask()) as c_int;
    };
    loop {
        let timed_out = wait_for(call, fd, what, deadline, pc);
        let ready = ask();
        if ready != 0 || timed_out {
            return result(ready) as c_int;
        }
    }
}

fn poll_all(first: *mut PollFd, count: usize, limit: Limit, pc: usize) -> c_int {
    // SAFETY: the program passes a valid array.
    let fds = (0..count).map(|at| unsafe { (*first.add(at)).fd });
    // `kind_of` refuses a descriptor that may lead to another process.
    let shown = fds.filter(|&fd| fd >= 0).inspect(|&fd| _ = kind_of(fd)).next().unwrap_or(-1);
    wait(Call::Poll, shown, Wait::Several { first, count }, limit, pc, || poll_now(first, count))
}

hook!(fn poll(first: *mut PollFd, count: usize, time: c_int; pc) -> c_int {
    poll_all(first, count, milliseconds(time), pc)
});
hook!(fn __poll_chk(first: *mut PollFd, count: usize, time: c_int, _room: usize; pc) -> c_int {
    poll_all(first, count, milliseconds(time), pc)
});
// Signal masks matter only for asynchronous signals, which are refused.
hook!(fn ppoll(first: *mut PollFd, count: usize, time: *const Time, _mask: P; pc) -> c_int {
    poll_all(first, count, relative(time), pc)
});
hook!(fn __ppoll_chk(
    first: *mut PollFd, count: usize, time: *const Time, _mask: P, _room: usize; pc
) -> c_int {
    poll_all(first, count, relative(time), pc)
});

fn select_all(count: c_int, sets: [*mut Set; 3], limit: Limit, pc: usize) -> c_int {
    wait(Call::Select, -1, Wait::Sets { count, sets }, limit, pc, || {
        select_now(count, sets, Results::Store)
    })
}

hook!(fn select(
    count: c_int, reads: *mut Set, writes: *mut Set, exceptions: *mut Set,
    time: *const [i64; 2]; pc
) -> c_int {
    let limit = match time.is_null() {
        true => Limit::Until(NEVER),
        false => {
            // SAFETY: the program passes a valid time.
            let [seconds, microseconds] = unsafe { *time };
            relative(&Time::new(seconds, microseconds * 1_000))
        }
    };
    select_all(count, [reads, writes, exceptions], limit, pc)
});
hook6!(fn pselect(
    count: c_int, reads: *mut Set, writes: *mut Set, exceptions: *mut Set, time: *const Time,
    _mask: P; pc
) -> c_int {
    select_all(count, [reads, writes, exceptions], relative(time), pc)
});

fn epoll(fd: c_int, events: usize, capacity: c_int, limit: Limit, pc: usize) -> c_int {
    let what = Wait::One { fd, events: READABLE };
    wait(Call::EpollWait, fd, what, limit, pc, || {
        raw(sys::EPOLL_WAIT, [fd as usize, events, capacity as usize, 0])
    })
}

hook!(fn epoll_wait(fd: c_int, events: usize, capacity: c_int, time: c_int; pc) -> c_int {
    epoll(fd, events, capacity, milliseconds(time), pc)
});
hook!(fn epoll_pwait(
    fd: c_int, events: usize, capacity: c_int, time: c_int, _mask: P; pc
) -> c_int {
    epoll(fd, events, capacity, milliseconds(time), pc)
});
hook!(fn epoll_pwait2(
    fd: c_int, events: usize, capacity: c_int, time: *const Time, _mask: P; pc
) -> c_int {
    epoll(fd, events, capacity, relative(time), pc)
});
hook!(fn epoll_ctl(fd: c_int, operation: c_int, target: c_int, event: usize; pc) -> c_int {
    kind_of(target);
    announce_io(Call::EpollControl, fd, pc);
    result(raw(sys::EPOLL_CTL, [fd as usize, operation as usize, target as usize, event])) as c_int
});
