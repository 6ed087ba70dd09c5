//! What a search over executions has counted, in all and bound by bound.

use crate::codec::save_fields;

/// Numbers of a search over executions. `None` where the search did not [count](crate::Count) it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Executions that came to their end. Of an iterative search also those that were met before.
    pub executions: u64,
    /// Executions that were cut after the greatest number of steps allowed.
    pub cut: u64,
    /// Steps taken, apart from those that were only taken again to get somewhere.
    pub steps: u64,
    /// Steps left out because what they lead to is covered.
    pub pruned: u64,
    /// Distinct happens-before graphs of executions that came to their end.
    pub traces: Option<u64>,
    /// Distinct states in which executions came to their end.
    pub ends: Option<u64>,
    /// Distinct states, the initial one among them.
    pub states: Option<u64>,
    /// Distinct happens-before graphs of executions and of their beginnings, the empty one among
    /// them.
    pub graphs: Option<u64>,
}

save_fields!(Tally { executions, cut, steps, pruned, traces, ends, states, graphs });
save_fields!(BoundCoverage { bound, all, new, cut });

impl Tally {
    /// Executions that were taken, to their end or as far as allowed.
    pub fn taken(&self) -> u64 {
        self.executions + self.cut
    }

    /// Adds what another worker has counted. What is counted in sets is left alone.
    pub(crate) fn add(&mut self, other: &Tally) {
        self.executions += other.executions;
        self.cut += other.cut;
        self.steps += other.steps;
        self.pruned += other.pruned;
    }

    /// What was added since there was `before`.
    pub(crate) fn since(&self, before: &Tally) -> Tally {
        let new = |all: Option<u64>, before: Option<u64>| all.map(|all| all - before.unwrap_or(0));
        Tally {
            executions: self.executions - before.executions,
            cut: self.cut - before.cut,
            steps: self.steps - before.steps,
            pruned: self.pruned - before.pruned,
            traces: new(self.traces, before.traces),
            ends: new(self.ends, before.ends),
            states: new(self.states, before.states),
            graphs: new(self.graphs, before.graphs),
        }
    }
}

/// What a bound allows: of preemptions, or of steps in a search that is bounded by these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoundCoverage {
    /// The bound.
    pub bound: u32,
    /// What was seen within this bound and those before.
    pub all: Tally,
    /// What of that was not seen within those before.
    pub new: Tally,
    /// Whether the bound kept the search from anything.
    pub cut: bool,
}
