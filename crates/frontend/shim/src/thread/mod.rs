//! Mirrors of [`std::thread`].
//!
//! Inside a check a thread is a coroutine. It starts in the step that spawned it, so spawning adds
//! no schedules; its end is a step of its own, which only joining threads observe.

pub(crate) mod local;
mod packet;
mod park;
mod scope;
pub(crate) mod spawn;

use std::num::NonZero;
use std::time::Duration;

use crate::runtime::{Stage, inside, is_set, pause, with};

pub use self::local::{AccessError, LocalKey};
pub use self::park::{Thread, ThreadId, current, park, park_timeout};
pub use self::scope::{Scope, ScopedJoinHandle, scope};
pub use self::spawn::{Builder, JoinHandle, spawn};
pub use std::thread::Result;

/// A mirror of [`std::thread::yield_now`].
#[track_caller]
pub fn yield_now() {
    if inside() { pause("yield_now") } else { std::thread::yield_now() }
}

/// A mirror of [`std::thread::sleep`]. Inside a check no time passes, and other threads may run.
#[track_caller]
pub fn sleep(time: Duration) {
    if inside() { pause("sleep") } else { std::thread::sleep(time) }
}

/// Whether the thread is unwinding because of a panic, or its execution is being abandoned.
pub fn panicking() -> bool {
    if is_set() {
        with(|runtime| runtime.stage != Stage::Running || runtime.is_panicking())
    } else {
        std::thread::panicking()
    }
}

/// A mirror of [`std::thread::available_parallelism`]: 2 inside a check, on every machine.
pub fn available_parallelism() -> std::io::Result<NonZero<usize>> {
    match NonZero::new(2) {
        Some(two) if is_set() => Ok(two),
        _ => std::thread::available_parallelism(),
    }
}
