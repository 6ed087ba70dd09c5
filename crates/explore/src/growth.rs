//! How coverage grows with the number of executions: the data of the curves that icb's Figures 2, 5 and 6 show.
//!
//! A search over executions looks at its own tally after certain numbers of executions. Between two looks it compares two numbers at
//! the end of each execution, and nothing more; without [`Sampling`] it never looks.

use crate::save::{Damaged, Reader, Writer, save_fields};
use crate::tally::Tally;

/// After which executions a search looks at what it has covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// Never.
    #[default]
    Off,
    /// After 1, 2, …, 9, 10, 20, …, 90, 100, 200, …: as often in every decade.
    Decades,
    /// After every so many, at least 1.
    Every(u64),
}

impl Sampling {
    /// The first number of executions after `taken` at which to look.
    fn next(self, taken: u64) -> u64 {
        match self {
            Sampling::Off => u64::MAX,
            Sampling::Every(n) => (taken / n).saturating_add(1).saturating_mul(n),
            Sampling::Decades => {
                let power = 10u64.pow(taken.checked_ilog10().unwrap_or(0));
                (taken / power + 1).saturating_mul(power)
            }
        }
    }
}

/// What was covered after more and more executions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// From the first look to the end of the search, which is always looked at.
    pub samples: Vec<Tally>,
    /// How many executions there were when the first failure was known, if one was found.
    pub first_failure: Option<u64>,
}

save_fields!(Growth { samples, first_failure });

/// Looks now and then.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    sampling: Sampling,
    next: u64,
    growth: Growth,
}

impl Sampler {
    pub(crate) fn new(sampling: Sampling) -> Sampler {
        Sampler { sampling, next: sampling.next(0), growth: Growth::default() }
    }

    pub(crate) fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.next);
        to.put(&self.growth);
    }

    /// Reads what was written, for a plan with this sampling.
    pub(crate) fn load(sampling: Sampling, from: &mut Reader) -> Result<Sampler, Damaged> {
        Ok(Sampler { sampling, next: from.get()?, growth: from.get()? })
    }

    /// Whether it ever looks.
    #[inline(always)]
    pub(crate) fn looks(&self) -> bool {
        self.sampling != Sampling::Off
    }

    /// An execution has ended: `taken` did by now, and `failed` failures were seen. Whether it is time for a look.
    pub(crate) fn ended(&mut self, taken: u64, failed: u64) -> bool {
        if failed > 0 && self.growth.first_failure.is_none() {
            self.growth.first_failure = Some(taken);
        }
        taken >= self.next
    }

    /// Takes a look.
    pub(crate) fn look(&mut self, tally: Tally) {
        self.next = self.sampling.next(tally.taken());
        self.growth.samples.push(tally);
    }

    /// All that was seen, `tally` at the end.
    pub(crate) fn finish(mut self, tally: Tally) -> Option<Growth> {
        // With a cache a search may see more after its last execution, on paths that come to what is covered.
        let new = self.growth.samples.last().is_none_or(|last| *last != tally);
        if self.looks() && new && tally.taken() > 0 {
            self.look(tally);
        }
        self.looks().then_some(self.growth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks(sampling: Sampling, until: u64) -> Vec<u64> {
        std::iter::successors(Some(sampling.next(0)), |&at| Some(sampling.next(at)))
            .take_while(|&at| at <= until)
            .collect()
    }

    #[test]
    fn every_decade_is_looked_at_as_often() {
        assert_eq!(looks(Sampling::Decades, 40), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 30, 40]);
        assert_eq!(looks(Sampling::Decades, 99_999).len(), 45);
        assert_eq!(looks(Sampling::Every(7), 30), [7, 14, 21, 28]);
        assert_eq!(looks(Sampling::Off, u64::MAX - 1), []);
    }
}
