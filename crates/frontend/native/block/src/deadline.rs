//! When a wait may time out: the rule that the runtime and the controller share.
//!
//! Time is virtual. Every thread has a local time, which follows from happens-before
//! (`runtime/src/hooks/time.rs`), and a sleep or a wait with a time limit has a *deadline*: the
//! local time at its start plus its duration, or the absolute time that the program gave. Real
//! time is the same for all threads, so a rule must say how far the local times may be apart.
//!
//! # The rule
//!
//! A wait may time out if its deadline is at most [`max_delay`](crate::Block::max_delay) later than
//!
//! - the local time of every other thread that can run, and
//! - the deadline of every other thread that sleeps or waits with a time limit;
//!
//! or if the deadline is not later than the waiting thread's own time. In other words: a thread
//! that can run is never delayed by more than the maximal delay while time passes for others. If no
//! thread can run, time passes up to the earliest deadline. If several waits may time out, which of
//! them does so first is a scheduling choice, and so is whether a wait times out before another
//! thread continues.
//!
//! # Why
//!
//! With an unlimited delay, a wait could always time out before its notification, however long its
//! limit is. That is sound: no behaviour is lost, because any thread may be suspended for any time.
//! But it blames correct programs. A test that waits for a message for one hour fails if the
//! sender, which sleeps for 5 ms, is suspended for an hour, which no programmer would consider an
//! error. With a maximal delay, executions in which a thread is delayed for longer are not
//! explored. A pass relies on that and says so. The maximal delay is a parameter of the check: a
//! program that uses short sleeps for synchronisation fails as soon as it exceeds them.
//!
//! The default is not zero. Two threads that sleep equally long must be able to wake up in either
//! order, and to run concurrently afterwards, although their deadlines differ by the few
//! nanoseconds that their operations take.
//!
//! # Partial orders
//!
//! The rule depends on all threads, so a timeout is dependent on every step of every other thread
//! (`PROCESS` in `state.rs` of the controller). Deadlines and local times follow from
//! happens-before, so the rule gives the same answer in all executions with the same happens-before
//! graph.

/// The deadline of an operation without a time limit.
pub const NEVER: u64 = u64::MAX;

/// Whether a wait until `deadline` may time out now. `own` is the local time of the thread.
/// `others` has the local time of every other thread that can run, and the deadline of every other
/// thread that waits with a time limit.
pub fn may_expire(
    deadline: u64,
    own: u64,
    mut others: impl Iterator<Item = u64>,
    max_delay: u64,
) -> bool {
    deadline <= own || others.all(|other| deadline <= other.saturating_add(max_delay))
}
