//! The outcome of a search: findings, coverage, and what they prove.

use std::time::Duration;

use preempt_system::memory::MemoryModel;
use preempt_system::text::grouped;
use preempt_system::{Finding, Verdict};

use crate::driver::guarantee;
use crate::plan::coverage::{Coverage, Limit, Omission};
use crate::plan::growth::Growth;
use crate::plan::strategy::{StateOrder, Strategy};
use crate::plan::tally::{BoundCoverage, Tally};

/// The outcome of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The kind of the first finding, or whether the search was complete.
    pub verdict: Verdict,
    /// Whether every reachable state was expanded (up to [`Omission::Collision`], never with
    /// [`Omission::Bits`]), or every execution was covered, or everything that a reduction has to
    /// visit for the same verdict.
    pub complete: bool,
    /// The coverage.
    pub coverage: Coverage,
    /// The failures, each with a schedule that was replayed. In breadth-first order the shortest
    /// come first, and each schedule is a shortest one.
    pub findings: Vec<Finding>,
    /// The limit that ended the search, if one did.
    pub stopped: Option<Limit>,
    /// Whether the search ended at its first finding, as planned.
    pub at_finding: bool,
    /// Whether it ended there in the middle of an execution, which [`Outcome::tally`] does not
    /// count.
    pub unfinished: bool,
    /// The time for which one worker searched again after several had found something, so that the
    /// finding is the same for any number of workers. Included in [`Outcome::elapsed`].
    pub rerun: Option<Duration>,
    /// The counts of a search over executions.
    pub tally: Option<Tally>,
    /// The coverage of each bound, in ascending order; empty for strategies without bounds.
    pub bounds: Vec<BoundCoverage>,
    /// The growth of coverage, if the plan has a [sampling](crate::Plan::sampling).
    pub growth: Option<Growth>,
    /// The states that the store may have missed.
    pub omission: Omission,
    /// The strategy that was run.
    pub strategy: Strategy,
    /// The memory model of the executions.
    pub memory: MemoryModel,
    /// The time that it took.
    pub elapsed: Duration,
    /// The memory of the store at the end, in bytes. A store never shrinks, so this is its maximum.
    pub store_bytes: usize,
    /// The most memory that waiting states needed at one time, in bytes.
    pub frontier_bytes: usize,
    /// The most bytes of states that were in files at one time: see
    /// [`Search::spill_to`](crate::Search::spill_to).
    pub spilled_bytes: u64,
    /// The variables that were treated as synchronisation because accesses to them race.
    pub promoted: Vec<String>,
    /// Assumptions that were not proved, each as the end of a sentence that begins with "assuming".
    pub assumptions: Vec<String>,
    /// The number of restarts because the model's states were too small.
    pub restarts: u32,
}

impl Outcome {
    /// The coverage and what it proves, in one sentence.
    pub fn guarantee(&self) -> String {
        let text = match &self.tally {
            Some(tally) => guarantee::of_executions(self, tally),
            None if matches!(self.strategy, Strategy::Transactions(_)) => {
                guarantee::of_transactions(self)
            }
            None => self.guarantee_of_states(),
        };
        let text = match &self.promoted[..] {
            [] => text,
            raced => format!(
                "{text}; accesses to {} race, and threads were switched there too",
                raced.join(", ")
            ),
        };
        let text = match self.memory {
            MemoryModel::Weak => format!("{text}; weak memory, without load buffering"),
            _ => text,
        };
        match &self.assumptions[..] {
            [] => text,
            assumed => format!("{text}; assuming {}", assumed.join(", and ")),
        }
    }

    /// The complete executions of a search over executions, and the one in which the search ended
    /// at a finding.
    pub fn executions(&self) -> Option<u64> {
        self.tally.map(|tally| tally.executions + u64::from(self.unfinished))
    }

    /// The distinct happens-before graphs of these, if they were counted.
    pub fn traces(&self) -> Option<u64> {
        self.tally.and_then(|tally| tally.traces)
    }

    fn guarantee_of_states(&self) -> String {
        let states = counted(self.coverage.states, "state");
        let cartesian = matches!(self.strategy, Strategy::Cartesian { .. });
        let mut text = if self.complete && cartesian {
            guarantee::of_cartesian(self)
        } else if self.complete {
            format!("complete: {}; {}", guarantee::all(&states), self.errors())
        } else if let Some(limit) = self.stopped {
            format!(
                "INCOMPLETE: stopped {}; {states}{}; {}",
                self.at(limit),
                self.reach(),
                self.errors()
            )
        } else if let Some(first) = self.findings.first() {
            let breadth_first = StateOrder::BreadthFirst;
            let fewest = match (self.strategy, self.omission) {
                (Strategy::States { order, .. }, Omission::Never) if order == breadth_first => {
                    // A simpler schedule may have more steps and fewer preemptions.
                    let steps =
                        first.shrunk.map_or(first.schedule.steps().len(), |found| found.steps);
                    format!("; no error needs fewer than {}", counted(steps as u64, "step"))
                }
                _ => String::new(),
            };
            format!("stopped at the first error: {states} seen, the rest not explored{fewest}")
        } else {
            format!(
                "INCOMPLETE: {states}, none left to expand, but some may have been missed; {}",
                self.errors()
            )
        };
        match self.omission {
            Omission::Never => {}
            Omission::Collision { expected } => {
                text += &format!(
                    "; unless fingerprints collided: {expected:.1e} missed states are to be \
                     expected among {}",
                    grouped(self.coverage.states)
                );
            }
            Omission::Bits { probability } => {
                text += &format!(
                    "; bitstate: at the end a new state was overlooked with probability \
                     {probability:.1e}"
                );
            }
        }
        text
    }

    pub(crate) fn errors(&self) -> String {
        match self.findings.len() as u64 {
            0 => "no error".into(),
            n => counted(n, "distinct error"),
        }
    }

    pub(crate) fn at(&self, limit: Limit) -> String {
        match limit {
            Limit::States => "at the state limit".into(),
            Limit::Executions => "at the execution limit".into(),
            Limit::Depth => "at the depth limit".into(),
            Limit::Memory => "at the memory limit".into(),
            Limit::Disk => "because the spill directory is full or cannot be written".into(),
            Limit::Damage => {
                "because a file in the spill directory could not be read back unchanged".into()
            }
            Limit::Time => format!("after {:.1} s", self.elapsed.as_secs_f64()),
            Limit::Interrupt => {
                format!("by an interrupt after {:.1} s", self.elapsed.as_secs_f64())
            }
            Limit::Process => "because another process ended or did not answer".into(),
            Limit::Round => "where an execution returned to an earlier state (a thread \
                             spins, or the program runs forever), which this reduction would follow \
                             forever: use no reduction, cartesian or transactions"
                .into(),
            Limit::Size => "where an execution creates more than 1,000 records of one type, \
                            or a state larger than 8 KiB; records that are no longer referred to \
                            count too in a search over executions: search over states (bfs, dfs), \
                            which reuses them, or bound the loop that creates them"
                .into(),
        }
    }

    fn reach(&self) -> String {
        match (self.coverage.settled, self.omission) {
            (Some(steps), Omission::Never) => {
                format!(", all within {} expanded", counted(steps.into(), "step"))
            }
            (Some(steps), _) => {
                format!(", those found within {} expanded", counted(steps.into(), "step"))
            }
            (None, _) => format!(" with at most depth {}", self.coverage.depth),
        }
    }
}

/// A number and its noun: `1 state`, `4,877 states`.
pub fn counted(n: u64, noun: &str) -> String {
    format!("{} {noun}{}", grouped(n), if n == 1 { "" } else { "s" })
}
