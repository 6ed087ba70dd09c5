//! The fences that a thread performs between two operations, in normal form.
//!
//! A fence acts on the clocks of its own thread: an acquire fence joins what relaxed loads have
//! read to the present, and a release fence keeps the present for later relaxed stores. Between two
//! operations nothing is read, so a second acquire fence has no effect, and a release fence makes
//! the ones before it irrelevant. What matters is therefore whether there is an acquire fence,
//! whether there is a release fence, and whether the last release comes after the first acquire. A
//! SeqCst fence does both and takes a place in the order of sequentially consistent events; two of
//! them in a row have the same place as one, since no event is between them.

use std::sync::atomic::Ordering;

/// The fences after an operation: see the module documentation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fences {
    /// There are none.
    #[default]
    None,
    /// Acquire fences.
    Acquire,
    /// Release fences.
    Release,
    /// Acquire fences after all release fences.
    ReleaseThenAcquire,
    /// A release fence at or after an acquire fence.
    AcquireRelease,
    /// At least one SeqCst fence.
    SeqCst,
}

impl Fences {
    /// These fences and one more, of this ordering.
    pub(crate) fn and(self, order: Ordering) -> Fences {
        match (self, order) {
            (Fences::SeqCst, _) | (_, Ordering::SeqCst) => Fences::SeqCst,
            (Fences::AcquireRelease, _) | (_, Ordering::AcqRel) => Fences::AcquireRelease,
            (Fences::None | Fences::Acquire, Ordering::Acquire) => Fences::Acquire,
            (Fences::Release | Fences::ReleaseThenAcquire, Ordering::Acquire) => {
                Fences::ReleaseThenAcquire
            }
            (Fences::None | Fences::Release, Ordering::Release) => Fences::Release,
            (Fences::Acquire | Fences::ReleaseThenAcquire, Ordering::Release) => {
                Fences::AcquireRelease
            }
            // A relaxed fence has no effect.
            (same, _) => same,
        }
    }

    /// The fences that have the same effect, in their order.
    pub(crate) fn orders(self) -> &'static [Ordering] {
        match self {
            Fences::None => &[],
            Fences::Acquire => &[Ordering::Acquire],
            Fences::Release => &[Ordering::Release],
            Fences::ReleaseThenAcquire => &[Ordering::Release, Ordering::Acquire],
            Fences::AcquireRelease => &[Ordering::AcqRel],
            Fences::SeqCst => &[Ordering::SeqCst],
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

    use preempt_system::{SyncClocks, ThreadId};

    use super::*;

    /// What the clocks let a second and a third thread see after thread 0 has read a store of
    /// thread 1 by a relaxed load, performed `fences`, and stored with Relaxed: whether thread 0
    /// comes after the store that it read, and whether a reader of its own store does.
    fn effect(fences: &[Ordering]) -> (bool, bool, bool) {
        let [own, writer, reader] = [0, 1, 2].map(ThreadId::new);
        let mut clocks = SyncClocks::new();
        let mine = clocks.epoch(own).time;
        let theirs = clocks.epoch(writer).time;
        clocks.store(writer, 0, Release);
        clocks.load(own, 0, Relaxed);
        fences.iter().for_each(|&order| _ = clocks.fence(own, order));
        clocks.store(own, 1, Relaxed);
        clocks.load(reader, 1, Acquire);
        let knows = |thread, of, time| clocks.now(thread).is_some_and(|now| now.time(of) >= time);
        (knows(own, writer, theirs), knows(reader, own, mine), knows(reader, writer, theirs))
    }

    #[test]
    fn the_normal_form_has_the_effect_of_the_sequence() {
        let all = [Relaxed, Acquire, Release, AcqRel, SeqCst];
        let mut sequences: Vec<Vec<Ordering>> = vec![Vec::new()];
        for _ in 0..4 {
            let longer = sequences.iter().flat_map(|sequence| {
                all.map(|order| sequence.iter().copied().chain([order]).collect())
            });
            let longer: Vec<Vec<Ordering>> = longer.collect();
            sequences.extend(longer);
        }
        for sequence in &sequences {
            let normal = sequence.iter().fold(Fences::None, |fences, &order| fences.and(order));
            let local: Vec<Ordering> =
                sequence.iter().copied().filter(|&order| order != Relaxed).collect();
            assert_eq!(effect(normal.orders()), effect(&local), "{sequence:?} as {normal:?}");
            let is_ordered = sequence.contains(&SeqCst);
            assert_eq!(normal.orders().contains(&SeqCst), is_ordered, "{sequence:?}");
        }
        assert_eq!(effect(&[Release, Acquire]), (true, true, false), "the order matters");
        assert_eq!(effect(&[Acquire, Release]), (true, true, true));
    }
}
