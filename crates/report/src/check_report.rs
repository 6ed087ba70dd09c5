//! All that is known when a check has ended, ready to be [told](crate::text_report) or
//! [recorded](crate::json_report).

use std::fmt;

use preempt_explore::{Outcome, Plan, Replay, replay};
use preempt_system::{Finding, Model, Narrate};

use crate::trace::Trace;

/// A check that has ended.
#[derive(Clone, Debug)]
pub struct CheckReport<'a> {
    /// How it searched.
    pub plan: &'a Plan,
    /// Why it searched so, if the choice was ours.
    pub chosen: Option<&'a str>,
    /// What it found. Its time includes that of `scouted`.
    pub outcome: &'a Outcome,
    /// The end of a quick search for the simplest errors, if one was made before and found none.
    pub scouted: Option<&'a Outcome>,
    /// The executions of its findings, in the same order.
    pub traces: &'a [Trace],
    /// The most memory that the process had, in bytes, if the system tells.
    pub peak_memory: Option<u64>,
    /// The command that replays a schedule, but for the token at its end.
    pub replay: &'a str,
    /// How the user asks for the first finding of several workers.
    pub first: &'a str,
    /// What was never reached, of a program whose statements are known.
    pub unreached: Option<Unreached>,
}

/// Statements and branches that were never reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreached {
    /// The search has not covered everything, so nothing can be said.
    Open,
    /// The search has covered everything, but was resumed: what was reached before is not known.
    Resumed,
    /// These, in the order of the text.
    Lines {
        /// The file.
        file: String,
        /// What was not reached in it.
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
    /// `None` for statements; else the condition there never had this value, and what follows then
    /// has no statement of its own.
    pub outcome: Option<bool>,
}

impl Unreached {
    /// One line for a person, if there is something to say.
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

/// The executions of the findings of `outcome`. `model` is the one that the search returned.
pub fn traces<M>(model: &M, outcome: &Outcome) -> Vec<Trace>
where
    M: Model + Clone,
    for<'m> M::Stepper<'m>: Narrate,
{
    outcome.findings.iter().map(|finding| trace(model, finding)).collect()
}

fn trace<M>(model: &M, finding: &Finding) -> Trace
where
    M: Model + Clone,
    for<'m> M::Stepper<'m>: Narrate,
{
    let Finding { schedule, failure, .. } = finding;
    let counted =
        Replay::of(model, schedule).expect("a finding was replayed before it was reported");
    let fair = counted.preemptions() > finding.preemptions;
    let again = if fair { counted.fair(model, schedule) } else { Ok(counted) };
    let counted = again.expect("a schedule that was replayed fits the states");
    // What a thread has made keeps its name from the first step to the last.
    let told = replay(model.clone().with_stable_names(), schedule);
    let (told, stable) = told.expect("names decide nothing");
    Trace::of(&stable, schedule, &told.preempting_as(&counted), Some(failure))
}
