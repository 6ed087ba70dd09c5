//! When a wait with a time limit may end by its limit: the one rule that the runtime and the
//! controller share.
//!
//! Time is virtual. Every thread has a local time, which follows from what happens before
//! (`runtime/src/hooks/time.rs`), and a sleep or a wait with a time limit has a *deadline*: the
//! local time at its start plus its duration, or the absolute time that the program gave. Real
//! time is one number for all threads, so a rule must say how far the local times may be apart.
//!
//! # The rule
//!
//! A wait may end by its deadline if the deadline is at most [`max_delay`](crate::Block::max_delay)
//! later than
//!
//! - the local time of every other thread that can run, and
//! - the deadline of every other thread that sleeps or waits with a limit;
//!
//! or if the deadline is not later than the waiting thread's own time. In other words: a thread
//! that can run is never delayed by more than the maximal delay while time passes for others. If no
//! thread can run, time passes up to the earliest deadline. Which of the waits that may end does so
//! first is a scheduling choice, and so is whether it ends before another thread continues.
//!
//! # Why
//!
//! With an unlimited delay a timeout may fire whenever the thread is not notified, however long it
//! is. That is sound: no behaviour is lost, because any thread may be suspended for any time. But
//! it blames correct programs. A test that waits for a message for one hour fails if the sender,
//! which sleeps for 5 ms, is suspended for an hour, which no programmer would consider an error.
//! With a limit, executions in which a thread is delayed for longer are not explored. A pass relies
//! on that and says so. The limit is a parameter of the check: a program that uses short sleeps for
//! synchronisation fails as soon as the limit exceeds them.
//!
//! The limit is not zero by default. Two threads that sleep equally long must be able to wake up in
//! either order, and to run concurrently afterwards, although their deadlines differ by the few
//! nanoseconds that their operations take.
//!
//! # Partial orders
//!
//! The rule depends on what every thread does, so the end of a wait by its deadline is dependent on
//! every step of every other thread (`PROCESS` in `state.rs` of the controller). Deadlines and
//! local times follow from happens-before, therefore the rule gives the same answer in all
//! executions with the same happens-before graph.

/// The deadline of an operation that has none.
pub const NEVER: u64 = u64::MAX;

/// Whether a wait until `deadline` may end by it now. `own` is the local time of the thread;
/// `others` has, for every other thread that can run, its local time, and for every other thread
/// that waits with a limit, its deadline.
pub fn may_expire(
    deadline: u64,
    own: u64,
    mut others: impl Iterator<Item = u64>,
    max_delay: u64,
) -> bool {
    deadline <= own || others.all(|other| deadline <= other.saturating_add(max_delay))
}
