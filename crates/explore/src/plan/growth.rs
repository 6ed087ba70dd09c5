//! How coverage grows with the number of executions: the data of the curves that icb's Figures 2, 5
//! and 6 show.
//!
//! A search over executions looks at its own tally after certain numbers of executions. Between two
//! looks it compares two numbers at the end of each execution, and nothing more; without
//! [`Sampling`] it never looks.

use crate::codec::{save_fields, save_variants};
use crate::plan::tally::Tally;

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

save_variants!(Sampling { 0 => Off, 1 => Decades, 2 => Every(n) });

impl Sampling {
    /// The first number of executions after `taken` at which to look.
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

/// What was covered after more and more executions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Growth {
    /// From the first look to the end of the search, which is always looked at.
    pub samples: Vec<Tally>,
    /// How many executions there were when the first failure was known, if one was found.
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
