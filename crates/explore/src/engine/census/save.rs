//! A census in a checkpoint: what it writes, and how it goes on from that.

use std::sync::atomic::Ordering::Relaxed;

use super::Census;
use crate::codec::{Damaged, Reader, Writer};
use crate::engine::sampler::Sampler;

impl<N: Copy> Census<'_, N> {
    /// Writes what was seen, by all workers. Those others have to be [absorbed](Census::absorb).
    pub(super) fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.tally);
        to.put(&((self.failed, self.depth), self.polled));
        to.put(&self.bounds);
        [self.held, self.most_held, self.others_held].iter().for_each(|held| to.put(held));
        to.put(&(self.told, self.recorded));
        to.put(&(self.untold, self.told_waiting));
        to.put(&self.rounds);
        self.sampler.save(to);
        self.common.save(to);
    }

    /// Goes on with what [`Census::save`] has written, if the search goes on from a checkpoint.
    /// Whether it does.
    pub(crate) fn resume_counts(&mut self) -> bool {
        let (watch, census) = (self.watch, self);
        let resumed = watch.resume_part(|from| {
            watch.load(from)?;
            census.tally = from.get()?;
            ((census.failed, census.depth), census.polled) = from.get()?;
            census.bounds = from.get()?;
            (census.held, census.most_held, census.others_held) =
                (from.get()?, from.get()?, from.get()?);
            (census.told, census.recorded) = from.get()?;
            (census.untold, census.told_waiting) = from.get()?;
            census.rounds = from.get()?;
            census.sampler = Sampler::load(census.plan.sampling, from)?;
            census.common.held.store(census.told, Relaxed);
            census.common.load(from)
        });
        resumed.is_some()
    }

    /// Reads a part of what the strategy has written, and not the last.
    pub(crate) fn resume_part<T>(
        &mut self,
        read: impl FnOnce(&mut Reader) -> Result<T, Damaged>,
    ) -> Option<T> {
        self.watch.resume_part(read)
    }
}
