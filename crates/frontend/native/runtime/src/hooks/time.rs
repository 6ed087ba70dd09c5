//! Clocks and sleeps. Time is virtual.
//!
//! Every thread has its own local time. An operation on an object advances it past the times of the
//! operations that happen before; reading the clock and sleeping advance it too. So the time that a
//! thread reads follows from happens-before, not from the order of independent steps, and is the
//! same whenever the same schedule is taken.
//!
//! A sleep, and every wait with a time limit, has a deadline. Once a deadline has expired, no clock
//! shows an earlier time: such a step depends on the steps of all threads, so this follows from
//! happens-before too. [`may_expire`](crate::block::may_expire) defines when a deadline may expire.

use core::ffi::{c_int, c_long, c_uint};

use crate::block::{NEVER, Op};
use crate::schedule::{Next, point, runtime};
use crate::sys::{EINVAL, P, fail};
use crate::threads::me;

/// The time that all clocks show at the beginning of an execution: 14 November 2023.
const EPOCH: u64 = 1_700_000_000_000_000_000;

/// The nanoseconds by which reading a clock advances the time of a thread.
const READING: u64 = 1_000;

const SECOND: u64 = 1_000_000_000;

/// `struct timespec`, or `struct timeval`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Time {
    seconds: i64,
    /// In nanoseconds for `struct timespec`, in microseconds for `struct timeval`.
    rest: c_long,
}

impl Time {
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

/// Whether the nanoseconds of a time are in range. If not, glibc and the kernel refuse the call
/// with `EINVAL`.
pub fn is_valid(time: *const Time) -> bool {
    // SAFETY: the program passes a valid pointer.
    (0..SECOND as c_long).contains(&unsafe { (*time).rest })
}

/// Whether a sleep accepts the time: it must not be negative either.
fn is_valid_sleep(time: *const Time) -> bool {
    // SAFETY: the program passes a valid pointer.
    is_valid(time) && unsafe { (*time).seconds } >= 0
}

/// The deadline of a wait that begins now and takes at most `nanoseconds`.
pub fn after_nanoseconds(nanoseconds: u64) -> u64 {
    runtime().threads[me()].time.saturating_add(nanoseconds).min(NEVER - 1)
}

/// The deadline of a wait that begins now and takes at most `time`.
pub fn after(time: *const Time) -> u64 {
    after_nanoseconds(nanoseconds(time))
}

/// The deadline of a wait until a clock shows `time`.
pub fn until(time: *const Time) -> u64 {
    nanoseconds(time).saturating_sub(EPOCH).min(NEVER - 1)
}

fn sleep_until(deadline: u64, pc: usize) {
    point(Next::on(Op::Sleep, 0, pc).until(deadline));
}

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
    if !is_valid_sleep(time) {
        return fail(EINVAL);
    }
    sleep_until(after(time), pc);
    0
});
hook!(fn clock_nanosleep(_clock: c_int, flags: c_int, time: *const Time, _rest: P; pc) -> c_int {
    const ABSOLUTE: c_int = 1;
    if !is_valid_sleep(time) {
        return EINVAL;
    }
    sleep_until(if flags & ABSOLUTE != 0 { until(time) } else { after(time) }, pc);
    0
});
hook!(fn usleep(microseconds: c_uint; pc) -> c_int {
    sleep_until(after_nanoseconds(u64::from(microseconds) * 1_000), pc);
    0
});
hook!(fn sleep(seconds: c_uint; pc) -> c_uint {
    sleep_until(after_nanoseconds(u64::from(seconds) * SECOND), pc);
    0
});
hook!(fn thrd_sleep(time: *const Time, _rest: P; pc) -> c_int {
    /// The result for an error other than an interruption.
    const FAILED: c_int = -2;
    if !is_valid_sleep(time) {
        return FAILED;
    }
    sleep_until(after(time), pc);
    0
});
