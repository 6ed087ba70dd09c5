//! Runs strategies and collects the traces and failures that they reach.

use std::collections::{BTreeMap, BTreeSet};

use preempt_explore::cursor::Cursor;
use preempt_explore::execution::{Cut, Stop, Visitor};
use preempt_explore::model::ModelExecution;
use preempt_explore::reduce::Dependence;
use preempt_machine::Machine;
use preempt_system::{Access, Failure, Fingerprint, HbGraph, Model, System};

/// The traces that executions reach, each with the fewest preemptions, and the failures.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// For each trace, the fewest preemptions.
    pub traces: BTreeMap<Fingerprint, u32>,
    pub deadlocks: BTreeSet<Fingerprint>,
    pub failures: BTreeSet<String>,
}

/// Collects the traces and failures of a strategy.
#[derive(Default)]
pub struct Collect {
    pub dependence: Dependence,
    pub seen: Seen,
    pub executions: u64,
    pub covered: u64,
    /// The maximal number of executions.
    pub patience: Option<u64>,
}

/// The happens-before graph of the cursor's execution, built from scratch.
pub fn graph<S: System>(cursor: &Cursor<S>, dependence: Dependence) -> HbGraph {
    let mut graph = HbGraph::new();
    for at in 0..cursor.len() {
        let all = |&(location, access): &(_, Access)| match dependence {
            Dependence::ReadWrite => (location, access),
            Dependence::All => (location, Access::Write),
        };
        graph.push(cursor.choice(at), &cursor.taken(at).accesses().iter().map(all).collect());
    }
    graph
}

impl<S: System> Visitor<S> for Collect {
    fn step(
        &mut self,
        _: &mut Cursor<S>,
        failure: Option<Box<Failure>>,
    ) -> Result<(), Stop<S::Need>> {
        if let Some(failure) = failure {
            self.seen.failures.insert(format!("{:?} {}", failure.site, failure.message));
        }
        Ok(())
    }

    fn end(&mut self, cursor: &mut Cursor<S>) -> Result<(), Stop<S::Need>> {
        let trace = graph(cursor, self.dependence).fingerprint();
        let preemptions = cursor.preemptions().count();
        let least = self.seen.traces.entry(trace).or_insert(preemptions);
        *least = preemptions.min(*least);
        if cursor.is_deadlock() {
            self.seen.deadlocks.insert(trace);
        }
        self.executions += 1;
        if self.patience.is_some_and(|most| self.executions > most) {
            Err(Stop::Enough)
        } else {
            Ok(())
        }
    }

    fn cut(&mut self, _: &mut Cursor<S>, _: Cut) -> Result<(), Stop<S::Need>> {
        self.covered += 1;
        Ok(())
    }
}

/// Runs a strategy over a model that was searched before.
pub fn again<T>(
    machine: Machine,
    strategy: impl Fn(&mut Cursor<ModelExecution<'_, Machine>>, &mut Collect) -> Result<T, Stop>,
) -> ((T, Collect), Machine) {
    again_with(machine, Collect::default, strategy)
}

/// Runs a strategy over a model that does not fail before its first step.
pub fn again_with<T>(
    machine: Machine,
    collect: impl Fn() -> Collect,
    strategy: impl Fn(&mut Cursor<ModelExecution<'_, Machine>>, &mut Collect) -> Result<T, Stop>,
) -> ((T, Collect), Machine) {
    let found = run(machine, |cursor| {
        let mut collect = collect();
        strategy(cursor, &mut collect).map(|counts| (counts, collect))
    });
    found.expect("the program starts, and no limit is reached")
}

/// Runs something over a model, with states as large as they have to be.
pub fn run<T>(
    machine: Machine,
    mut strategy: impl FnMut(&mut Cursor<ModelExecution<'_, Machine>>) -> Result<T, Stop>,
) -> Option<(T, Machine)> {
    let mut machine = machine;
    loop {
        let outcome = match Cursor::new(&machine) {
            Ok(mut cursor) => strategy(&mut cursor),
            Err(capacity) => Err(Stop::Restart(capacity)),
        };
        match outcome {
            Ok(result) => return Some((result, machine)),
            Err(Stop::Restart(capacity)) => machine = machine.grow(capacity),
            Err(_) => return None,
        }
    }
}
