//! The counts of a search over executions, in total and per bound.

use crate::codec::save_fields;

/// Numbers of a search over executions. `None` where the search did not [count](crate::Count) it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Complete executions. An iterative search counts those of earlier rounds again.
    pub executions: u64,
    /// Executions that were cut at the limit of steps.
    pub cut: u64,
    /// Executions in which an assumption of the program failed. They are not executions of the
    /// program, and no other number counts them.
    pub discarded: u64,
    /// Steps taken, without those that were only repeated to return to an earlier point.
    pub steps: u64,
    /// Steps that were skipped because everything that they lead to is covered.
    pub pruned: u64,
    /// Distinct happens-before graphs of complete executions.
    pub traces: Option<u64>,
    /// Distinct final states of complete executions.
    pub ends: Option<u64>,
    /// Distinct states, the initial one among them.
    pub states: Option<u64>,
    /// Distinct happens-before graphs of executions and their prefixes, including the empty one.
    pub graphs: Option<u64>,
}

save_fields!(Tally { executions, cut, discarded, steps, pruned, traces, ends, states, graphs });
save_fields!(BoundCoverage { bound, all, new, cut });

impl Tally {
    /// Executions taken: complete ones, those that were cut, and those that were discarded.
    pub fn taken(&self) -> u64 {
        self.executions + self.cut + self.discarded
    }

    /// Adds the counters of another worker. Counts that come from shared sets are not added.
    pub(crate) fn add(&mut self, other: &Tally) {
        self.executions += other.executions;
        self.cut += other.cut;
        self.discarded += other.discarded;
        self.steps += other.steps;
        self.pruned += other.pruned;
    }

    /// The difference to `before`, an earlier tally of the same search.
    pub(crate) fn since(&self, before: &Tally) -> Tally {
        let new = |all: Option<u64>, before: Option<u64>| all.map(|all| all - before.unwrap_or(0));
        Tally {
            executions: self.executions - before.executions,
            cut: self.cut - before.cut,
            discarded: self.discarded - before.discarded,
            steps: self.steps - before.steps,
            pruned: self.pruned - before.pruned,
            traces: new(self.traces, before.traces),
            ends: new(self.ends, before.ends),
            states: new(self.states, before.states),
            graphs: new(self.graphs, before.graphs),
        }
    }
}

/// The coverage within a bound: on preemptions, or on steps in a search that is bounded by steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundCoverage {
    /// The bound.
    pub bound: u32,
    /// Counts within this bound, including the lower ones.
    pub all: Tally,
    /// Counts that this bound added to the lower ones.
    pub new: Tally,
    /// Whether the bound cut anything.
    pub cut: bool,
}
