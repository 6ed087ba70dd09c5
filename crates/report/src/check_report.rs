//! The data of a check that has ended, from which the [text](crate::text_report), the
//! [JSON](crate::json_report) and the [page](crate::html) are made.

use std::fmt;

use preempt_explore::{Outcome, Plan};
use preempt_system::{Describe, Finding, Model};

use crate::recorder::{Fairness, Replayed, replay};
use crate::trace::Trace;

/// A check that has ended.
#[derive(Clone, Debug)]
pub struct CheckReport<'a> {
    /// The plan of the search.
    pub plan: &'a Plan,
    /// Why this reduction was chosen, if the user left the choice to Preempt.
    pub chosen: Option<&'a str>,
    /// The outcome. Its time includes that of `scouted`.
    pub outcome: &'a Outcome,
    /// The outcome of a quick search for the simplest errors before, if it found none.
    pub scouted: Option<&'a Outcome>,
    /// The traces of the findings, in the same order.
    pub traces: &'a [Trace],
    /// The peak memory of the process in bytes, if the operating system reports it.
    pub peak_memory: Option<u64>,
    /// The command that replays a schedule.
    pub replay: &'a ReplayCommand,
    /// The user's setting for the first finding of several workers, in the terms of the front end.
    pub first: &'a str,
    /// Statements and branches that were never reached, for a program whose statements are known.
    pub unreached: Option<Unreached>,
}

/// A shell command that replays a schedule, without the token.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplayCommand {
    /// The text before the token.
    pub before: String,
    /// The text after the token.
    pub after: String,
}

impl ReplayCommand {
    /// The command for the schedule with this token.
    pub fn of(&self, token: &str) -> String {
        format!("{}{token}{}", self.before, self.after)
    }
}

/// Statements and branches that were never reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreached {
    /// Unknown: the search has not covered everything.
    Open,
    /// Unknown: the search was resumed, and checkpoints do not contain what was reached.
    Resumed,
    /// These, in the order of the file.
    Lines {
        /// The file.
        file: String,
        /// The places in it that were not reached.
        places: Vec<UnreachedPlace>,
    },
}

/// Lines that were not reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreachedPlace {
    /// The first line, from 1.
    pub first: u32,
    /// The last line.
    pub last: u32,
    /// `None` for statements. Otherwise the condition on this line never had this value, and the
    /// branch for it has no statement of its own.
    pub outcome: Option<bool>,
}

impl Unreached {
    /// One line of a report, if there is something to report.
    pub(crate) fn to_line(&self) -> Option<String> {
        match self {
            Unreached::Open => None,
            Unreached::Resumed => Some(
                "not known: the search was resumed, and a checkpoint does not say what was reached"
                    .into(),
            ),
            Unreached::Lines { places, .. } if places.is_empty() => None,
            Unreached::Lines { file, places } => {
                let places: Vec<String> = places.iter().map(ToString::to_string).collect();
                Some(format!("{file}:{}", places.join(", ")))
            }
        }
    }
}

impl fmt::Display for UnreachedPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        if self.last > self.first {
            write!(f, "-{}", self.last)?;
        }
        match self.outcome {
            Some(outcome) => write!(f, " (never {outcome})"),
            None => Ok(()),
        }
    }
}

/// The traces of the findings of `outcome`. `model` and `plan` are those of the search.
pub fn traces<M>(model: &M, outcome: &Outcome) -> Vec<Trace>
where
    M: Model + Clone,
    for<'m> M::Stepper<'m>: Describe,
{
    // Preemptions are counted as the search did.
    let is_fair = outcome.strategy.is_fair();
    let fairness = if is_fair { Fairness::Respected } else { Fairness::Ignored };
    let trace = |finding: &Finding| {
        // A record on the heap keeps its name from the first step to the last.
        let model = model.clone().with_stable_names();
        let failure = |_: &Replayed| Some(finding.failure.clone());
        let (replayed, _) = replay(model, &finding.schedule, fairness, failure);
        assert_eq!(replayed.misfit, None, "a finding was replayed before it was reported");
        replayed.trace
    };
    outcome.findings.iter().map(trace).collect()
}
