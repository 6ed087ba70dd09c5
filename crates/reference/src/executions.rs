//! All executions of a small program: their number within each bound on preemptions and on delays,
//! the number of their traces, and their failures.
//!
//! A *trace* is a happens-before graph: each step with its accesses, and for each access the number
//! of the write that it makes or observes. Two executions have the same set of such steps iff
//! swapping adjacent steps that do not conflict turns one into the other.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{Steps, deadlock, ends_execution};
use crate::model::Model;
use crate::race::{Race, races};
use crate::run::{Access, Failure, Location};
use crate::value::State;

/// A step of an execution as it appears in a trace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Action {
    thread: usize,
    /// The number of the step within its thread.
    time: usize,
    alternative: usize,
    /// For each location, whether the step writes it, and the number of the write made or observed.
    accesses: BTreeMap<Location, (bool, usize)>,
}

/// A step with its accesses.
#[derive(Clone, Debug)]
pub struct Taken {
    /// The thread that took the step.
    pub thread: usize,
    /// The alternative that it took.
    pub alternative: usize,
    /// The accesses in order.
    pub accesses: Vec<Access>,
}

/// The executions of one cost.
#[derive(Clone, Debug, Default)]
pub struct Level {
    /// The number of executions.
    pub executions: u64,
    /// Their distinct traces.
    traces: BTreeSet<Vec<Action>>,
}

/// All executions of a program, each with its cost: its preemptions or its delays.
#[derive(Clone, Debug, Default)]
pub struct Executions {
    /// The executions by their cost.
    pub levels: BTreeMap<u32, Level>,
    /// Each failure with the least cost that shows it.
    pub failures: BTreeMap<Failure, u32>,
    /// Each data race with the least cost that shows it.
    pub races: BTreeMap<Race, u32>,
}

impl Executions {
    /// The number of executions whose cost is at most `bound`.
    pub fn within(&self, bound: u32) -> u64 {
        self.levels.range(..=bound).map(|(_, level)| level.executions).sum()
    }

    /// The number of traces of the executions whose cost is at most `bound`.
    pub fn traces_within(&self, bound: u32) -> u64 {
        let mut all = BTreeSet::new();
        self.levels.range(..=bound).for_each(|(_, level)| all.extend(&level.traces));
        all.len() as u64
    }

    /// The failures that executions whose cost is at most `bound` show.
    pub fn failures_within(&self, bound: u32) -> BTreeSet<Failure> {
        self.failures.iter().filter(|&(_, &least)| least <= bound).map(|(f, _)| f.clone()).collect()
    }

    /// The greatest cost of an execution.
    pub fn most(&self) -> u32 {
        self.levels.keys().last().copied().unwrap_or(0)
    }
}

/// All executions of a program, once by each cost.
#[derive(Clone, Debug, Default)]
pub struct ByCost {
    /// A preemption is a switch away from a thread that could continue.
    pub preemptions: Executions,
    /// The delays of a step are the threads that could step and that a round robin, which starts
    /// with the thread of the last step, would run before its thread.
    pub delays: Executions,
}

/// What an execution has cost so far.
#[derive(Clone, Copy, Debug, Default)]
struct Costs {
    preemptions: u32,
    delays: u32,
}

impl Costs {
    /// The costs with a step of `thread` after one of `last`.
    fn with(self, thread: usize, last: Option<usize>, steps: &Steps<'_>) -> Costs {
        let preempts = last.is_some_and(|last| last != thread && steps.enables(last));
        let from = last.unwrap_or(0);
        let mut skipped = BTreeSet::new();
        for other in steps.steps.iter().map(|step| step.thread) {
            let comes_before = match from <= thread {
                true => from <= other && other < thread,
                false => from <= other || other < thread,
            };
            if comes_before {
                skipped.insert(other);
            }
        }
        Costs {
            preemptions: self.preemptions + u32::from(preempts),
            delays: self.delays + skipped.len() as u32,
        }
    }
}

/// Why the executions of a program are not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unknown {
    /// The program fails before its first step.
    NoStart,
    /// Some executions never end.
    Endless,
    /// There are more executions than the limit.
    TooMany,
    /// The executions together have more steps than the limit.
    TooLong,
}

/// The limits of brute force.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    /// The number of executions.
    pub executions: u64,
    /// The sum of their steps. It bounds the work, which is at most quadratic in the length of an
    /// execution.
    pub steps: usize,
}

/// All executions of a program whose graph has no cycles.
pub fn all(model: &Model<'_>, most: Most) -> Result<ByCost, Unknown> {
    let first = model.initial().map_err(|_| Unknown::NoStart)?;
    let (taken, found) = (Vec::new(), ByCost::default());
    let mut walk = Walk { model, most, executions: 0, steps: 0, taken, found };
    walk.from(&first, None, Costs::default())?;
    Ok(walk.found)
}

struct Walk<'m, 'p> {
    model: &'m Model<'p>,
    most: Most,
    /// The executions so far, and their steps.
    executions: u64,
    steps: usize,
    taken: Vec<Taken>,
    found: ByCost,
}

impl<'p> Walk<'_, 'p> {
    /// Explores all executions from a state.
    fn from(
        &mut self,
        state: &State<'p>,
        last: Option<usize>,
        costs: Costs,
    ) -> Result<(), Unknown> {
        if let Some(failure) = self.model.broken_invariant(state) {
            self.note(failure, costs);
        }
        let steps = self.model.steps(state, false);
        if steps.is_deadlock() {
            self.note(deadlock(), costs);
        }
        if steps.steps.is_empty() {
            return self.end(costs);
        }
        for step in &steps.steps {
            let costs = costs.with(step.thread, last, &steps);
            let ends = step.failure.is_some() && ends_execution();
            if let Some(failure) = step.failure.clone() {
                self.note(failure, costs);
            }
            let (thread, alternative) = (step.thread, step.alternative);
            self.taken.push(Taken { thread, alternative, accesses: step.accesses.clone() });
            if ends {
                self.end(costs)?;
            } else {
                self.from(&step.to, Some(thread), costs)?;
            }
            self.taken.pop();
        }
        Ok(())
    }

    /// Both ways of counting, each with its cost.
    fn each(&mut self, costs: Costs) -> [(&mut Executions, u32); 2] {
        let ByCost { preemptions, delays } = &mut self.found;
        [(preemptions, costs.preemptions), (delays, costs.delays)]
    }

    fn note(&mut self, failure: Failure, costs: Costs) {
        for (found, cost) in self.each(costs) {
            let least = found.failures.entry(failure.clone()).or_insert(cost);
            *least = cost.min(*least);
        }
    }

    /// Records a finished execution.
    fn end(&mut self, costs: Costs) -> Result<(), Unknown> {
        self.executions += 1;
        self.steps += self.taken.len();
        if self.executions > self.most.executions {
            return Err(Unknown::TooMany);
        }
        if self.steps > self.most.steps {
            return Err(Unknown::TooLong);
        }
        let (races, trace) = (races(&self.taken), trace(&self.taken));
        for (found, cost) in self.each(costs) {
            for race in &races {
                let least = found.races.entry(race.clone()).or_insert(cost);
                *least = cost.min(*least);
            }
            let level = found.levels.entry(cost).or_default();
            level.executions += 1;
            level.traces.insert(trace.clone());
        }
        Ok(())
    }
}

/// The trace of an execution: its actions in an order that is the same for all equivalent
/// executions.
fn trace(taken: &[Taken]) -> Vec<Action> {
    let mut times: BTreeMap<usize, usize> = BTreeMap::new();
    let mut writes: BTreeMap<&Location, usize> = BTreeMap::new();
    let mut actions = Vec::new();
    for step in taken {
        let time = times.entry(step.thread).or_default();
        *time += 1;
        let mut written: BTreeMap<&Location, bool> = BTreeMap::new();
        for access in &step.accesses {
            *written.entry(&access.location).or_default() |= access.write;
        }
        let mut accesses = BTreeMap::new();
        for (location, write) in written {
            let number = writes.entry(location).or_default();
            *number += usize::from(write);
            accesses.insert(location.clone(), (write, *number));
        }
        actions.push(Action {
            thread: step.thread,
            time: *time,
            alternative: step.alternative,
            accesses,
        });
    }
    actions.sort();
    actions
}
