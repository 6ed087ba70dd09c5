//! Delays: how far a schedule departs from round robin.
//!
//! **Paper.** Emmi, Qadeer, Rakamarić: Delay-bounded scheduling (POPL 2011). A deterministic
//! scheduler chooses the next thread, and a *delay* makes it skip that thread once. We use the
//! scheduler that Thomson, Donaldson and Betts use for threads (Concurrency testing using schedule
//! bounding, PPoPP 2014): non-preemptive round robin. The running thread continues for as long as
//! it is enabled; then comes the next enabled thread in the order of their slots, and the first
//! slot comes after the last.
//!
//! So there is one schedule without delays, apart from the alternatives of a thread, while n
//! threads have n! schedules without preemptions. Every preemption costs at least one delay: a
//! schedule with k delays has at most k preemptions.

use crate::thread::{ThreadId, ThreadSet};

/// The delays of a step of `thread`, in a state in which the threads `enabled` can step: the number
/// of enabled threads that round robin would run before it. `running` is the thread of the last
/// step; `None` at the beginning of a program that starts with no running thread, where round robin
/// begins with the first slot.
#[inline]
pub fn delays(running: Option<ThreadId>, thread: ThreadId, enabled: ThreadSet) -> u32 {
    let from = running.map_or(0, ThreadId::index);
    let (before, until) = (ThreadSet::first(from).bits(), ThreadSet::first(thread.index()).bits());
    // The slots from `from` on and before `thread`; if `thread` comes before `from`, these are all
    // slots but those from `thread` on and before `from`.
    let skipped = if thread.index() >= from { until & !before } else { until | !before };
    ThreadSet::from_bits(enabled.bits() & skipped).len() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition: round robin from `running` on, one thread at a time.
    fn counted(running: Option<usize>, thread: usize, enabled: ThreadSet, slots: usize) -> u32 {
        let mut next = running.unwrap_or(0);
        let mut skipped = 0;
        while next != thread {
            skipped += u32::from(enabled.contains(ThreadId::new(next)));
            next = (next + 1) % slots;
        }
        skipped
    }

    #[test]
    fn delays_are_the_enabled_threads_that_round_robin_skips() {
        let slots = 5;
        for bits in 0..1 << slots {
            let enabled = ThreadSet::from_bits(bits);
            for thread in enabled.iter() {
                for running in std::iter::once(None).chain((0..slots).map(Some)) {
                    let expected = counted(running, thread.index(), enabled, slots);
                    let found = delays(running.map(ThreadId::new), thread, enabled);
                    assert_eq!(found, expected, "{running:?} {thread:?} {bits:b}");
                }
            }
        }
        let all = ThreadSet::first(64);
        assert_eq!(delays(Some(ThreadId::new(63)), ThreadId::new(62), all), 63);
        assert_eq!(delays(Some(ThreadId::new(62)), ThreadId::new(63), all), 1);
    }
}
