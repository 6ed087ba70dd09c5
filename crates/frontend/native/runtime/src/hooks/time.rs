//! Clocks and sleeping: time is virtual.
//!
//! Every thread has a time of its own. An operation on an object moves it past the times of the
//! operations that happen before, and reading the clock and sleeping move it forward. So what a
//! thread reads from a clock follows from what happened before, not from the order of independent
//! steps, and is the same whenever the same schedule is taken.
//!
//! A sleep, and every wait with a time limit, has a deadline. When one passes, no clock shows an
//! earlier time any more: such a step depends on the steps of all threads, so this too follows from
//! what happened before. When a deadline may pass says [`may_expire`](crate::block::may_expire).

use core::ffi::{c_int, c_long, c_uint};

use crate::block::{NEVER, Op};
use crate::schedule::{Next, point, runtime};
use crate::sys::P;
use crate::threads::me;

/// The virtual time at the beginning: 14 November 2023, for all clocks.
const EPOCH: u64 = 1_700_000_000_000_000_000;

/// How far reading a clock moves the time of a thread.
const READING: u64 = 1_000;

const SECOND: u64 = 1_000_000_000;

/// Seconds, and a fraction of a second.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Time {
    seconds: i64,
    rest: c_long,
}

impl Time {
    /// Seconds and nanoseconds.
    pub fn new(seconds: i64, nanoseconds: i64) -> Time {
        Time { seconds, rest: nanoseconds }
    }

    /// Whether the duration is zero.
    pub fn is_zero(&self) -> bool {
        (self.seconds, self.rest) == (0, 0)
    }
}

fn now() -> u64 {
    let thread = &mut runtime().threads[me()];
    thread.time += READING;
    EPOCH + thread.time
}

/// The deadline of a wait that begins now and takes this long.
pub fn after_nanoseconds(nanoseconds: u64) -> u64 {
    runtime().threads[me()].time.saturating_add(nanoseconds).min(NEVER - 1)
}

/// The deadline of a wait that takes this long.
pub fn after(time: *const Time) -> u64 {
    after_nanoseconds(nanoseconds(time))
}

/// The deadline of a wait until this time of a clock.
pub fn until(time: *const Time) -> u64 {
    nanoseconds(time).saturating_sub(EPOCH).min(NEVER - 1)
}

fn pass(deadline: u64, pc: usize) {
    point(Next::on(Op::Sleep, 0, pc).until(deadline));
}

/// The nanoseconds of a time.
fn nanoseconds(time: *const Time) -> u64 {
    // SAFETY: the program passes a valid pointer.
    let Time { seconds, rest } = unsafe { *time };
    (seconds.max(0) as u64).saturating_mul(SECOND).saturating_add(rest.max(0) as u64)
}

hook!(fn clock_gettime(_clock: c_int, time: *mut Time; pc) -> c_int {
    let now = now();
    // SAFETY: the program passes a valid pointer.
    unsafe { *time = Time { seconds: (now / SECOND) as i64, rest: (now % SECOND) as c_long } };
    0
});
hook!(fn timespec_get(time: *mut Time, base: c_int; pc) -> c_int {
    let now = now();
    // SAFETY: the program passes a valid pointer.
    unsafe { *time = Time { seconds: (now / SECOND) as i64, rest: (now % SECOND) as c_long } };
    base
});
hook!(fn gettimeofday(time: *mut Time, _zone: P; pc) -> c_int {
    let now = now();
    let rest = (now % SECOND / 1_000) as c_long;
    // SAFETY: the program passes a valid pointer.
    unsafe { *time = Time { seconds: (now / SECOND) as i64, rest } };
    0
});
hook!(fn time(seconds: *mut i64; pc) -> i64 {
    let now = (now() / SECOND) as i64;
    if !seconds.is_null() {
        // SAFETY: the program passes a valid pointer.
        unsafe { *seconds = now };
    }
    now
});
hook!(fn nanosleep(time: *const Time, _rest: P; pc) -> c_int {
    pass(after(time), pc);
    0
});
hook!(fn clock_nanosleep(_clock: c_int, flags: c_int, time: *const Time, _rest: P; pc) -> c_int {
    const ABSOLUTE: c_int = 1;
    pass(if flags & ABSOLUTE != 0 { until(time) } else { after(time) }, pc);
    0
});
hook!(fn usleep(microseconds: c_uint; pc) -> c_int {
    pass(after_nanoseconds(u64::from(microseconds) * 1_000), pc);
    0
});
hook!(fn sleep(seconds: c_uint; pc) -> c_uint {
    pass(after_nanoseconds(u64::from(seconds) * SECOND), pc);
    0
});
hook!(fn thrd_sleep(time: *const Time, _rest: P; pc) -> c_int {
    pass(after(time), pc);
    0
});
