//! Takes the samples of a [growth](crate::plan::growth) curve while a search runs.

use crate::codec::save_fields;
use crate::plan::growth::{Growth, Sampling};
use crate::plan::tally::Tally;

/// Takes a sample after certain numbers of executions.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    sampling: Sampling,
    next: u64,
    growth: Growth,
}

save_fields!(Sampler { sampling, next, growth });

impl Sampler {
    pub(crate) fn new(sampling: Sampling) -> Sampler {
        Sampler { sampling, next: sampling.next(0), growth: Growth::default() }
    }

    /// Whether sampling is enabled.
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.sampling != Sampling::Off
    }

    /// An execution has ended: the `taken`-th, and `failed` failures were seen so far. Returns
    /// whether a sample is due.
    pub(crate) fn ended(&mut self, taken: u64, failed: u64) -> bool {
        if failed > 0 && self.growth.first_failure.is_none() {
            self.growth.first_failure = Some(taken);
        }
        taken >= self.next
    }

    /// Takes a sample.
    pub(crate) fn sample(&mut self, tally: Tally) {
        self.next = self.sampling.next(tally.taken());
        self.growth.samples.push(tally);
    }

    /// The samples, the last of which is `tally`.
    pub(crate) fn finish(mut self, tally: Tally) -> Option<Growth> {
        // With a cache a search may visit more after its last execution, on paths that end at a
        // covered step.
        let new = self.growth.samples.last().is_none_or(|last| *last != tally);
        if self.is_on() && new && tally.taken() > 0 {
            self.sample(tally);
        }
        self.is_on().then_some(self.growth)
    }
}
