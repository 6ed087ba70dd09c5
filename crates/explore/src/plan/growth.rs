//! The growth of coverage with the number of executions: the data of the curves that icb's Figures
//! 2, 5 and 6 show.
//!
//! A search over executions records its tally after certain numbers of executions. Between two
//! samples this costs a comparison of two numbers at the end of each execution.

use crate::codec::{save_fields, save_variants};
use crate::plan::tally::Tally;

/// The executions after which coverage is sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Sampling {
    /// Never.
    #[default]
    Off,
    /// After 1, 2, …, 9, 10, 20, …, 90, 100, 200, …: as often in every decade.
    Decades,
    /// After every `n` executions, `n` at least 1.
    Every(u64),
}

save_variants!(Sampling { 0 => Off, 1 => Decades, 2 => Every(n) });

impl Sampling {
    /// The first number of executions after `taken` at which a sample is due.
    pub(crate) fn next(self, taken: u64) -> u64 {
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

/// Coverage as a function of the number of executions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// The samples, in order. The last one is from the end of the search.
    pub samples: Vec<Tally>,
    /// The number of executions after which the first failure was known, if one was found.
    pub first_failure: Option<u64>,
}

save_fields!(Growth { samples, first_failure });

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
