//! A stats in a checkpoint: what it writes, and how it goes on from that.

use std::sync::atomic::Ordering::Relaxed;

use super::ExecutionStats;
use crate::codec::{Damaged, Reader, Writer};
use crate::engine::sampler::Sampler;

impl<N: Copy> ExecutionStats<'_, N> {
    /// Writes what was seen, by all workers. Those others have to be [absorbed](ExecutionStats::absorb).
    pub(super) fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.tally);
        to.put(&((self.failed, self.depth), self.polled));
        to.put(&self.bounds);
        [self.held, self.most_held, self.others_held].iter().for_each(|held| to.put(held));
        to.put(&(self.told, self.recorded));
        to.put(&(self.untold, self.told_waiting));
        to.put(&self.cycles);
        self.sampler.save(to);
        self.shared.save(to);
    }

    /// Goes on with what [`ExecutionStats::save`] has written, if the search goes on from a checkpoint.
    /// Whether it does.
    pub(crate) fn resume_counts(&mut self) -> bool {
        let (control, stats) = (self.control, self);
        let resumed = control.resume_part(|from| {
            control.load(from)?;
            stats.tally = from.get()?;
            ((stats.failed, stats.depth), stats.polled) = from.get()?;
            stats.bounds = from.get()?;
            (stats.held, stats.most_held, stats.others_held) =
                (from.get()?, from.get()?, from.get()?);
            (stats.told, stats.recorded) = from.get()?;
            (stats.untold, stats.told_waiting) = from.get()?;
            stats.cycles = from.get()?;
            stats.sampler = Sampler::load(stats.plan.sampling, from)?;
            stats.shared.held.store(stats.told, Relaxed);
            stats.shared.load(from)
        });
        resumed.is_some()
    }

    /// Reads a part of what the strategy has written, and not the last.
    pub(crate) fn resume_part<T>(
        &mut self,
        read: impl FnOnce(&mut Reader) -> Result<T, Damaged>,
    ) -> Option<T> {
        self.control.resume_part(read)
    }
}
