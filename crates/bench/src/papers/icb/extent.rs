//! The length of a program's executions: the most steps, blocking steps and preemptions of any of
//! them.
//!
//! Computed as a longest path through the graph of pairs of a state and the thread that moved last,
//! step by step and without reduction. Steps and preemptions are counted with scheduling points at
//! synchronisation only, as in the paper; a blocking step is one that blocks in some state.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow, bail};
use preempt_explore::points::SyncPoints;
use preempt_explore::{Plan, Silent};
use preempt_machine::Machine;
use preempt_system::{Choice, Model, ObjectAccess, Step, StepLog, Stepper, ThreadId, ThreadSet};

/// The maxima over all executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Threads.
    pub threads: u64,
    /// Steps: K.
    pub steps: u64,
    /// Blocking steps: B.
    pub blocking: u64,
    /// Preemptions: c.
    pub preemptions: u64,
}

impl Extent {
    /// The extent of a program that always terminates.
    pub fn of(machine: Machine) -> Result<Extent> {
        // After a full search the states are large enough.
        let search = Plan::new().keep_going().build().map_err(|refusal| anyhow!("{refusal}"))?;
        let machine = search.run(machine, &Silent).1;
        let threads = machine.shape().threads as u64;
        let blocking = longest(&machine, |step| u64::from(step.blocking))?;
        let coarse = SyncPoints::of(machine);
        let steps = longest(&coarse, |_| 1)?;
        let preemptions = longest(&coarse, |step| u64::from(step.preempts))?;
        Ok(Extent { threads, steps, blocking, preemptions })
    }
}

/// A step with its weights.
struct Weighed {
    to: usize,
    blocking: bool,
    preempts: bool,
}

/// The heaviest execution.
fn longest(model: &impl Model, weigh: impl Fn(&Weighed) -> u64) -> Result<u64> {
    let steps = graph(model)?;
    let mut missing = vec![0u64; steps.len()];
    steps.iter().flatten().for_each(|step| missing[step.to] += 1);
    // A position is processed when all steps that lead to it were weighed. In a cycle it never is.
    let mut heaviest = vec![0; steps.len()];
    let mut ready = if missing[0] == 0 { vec![0] } else { Vec::new() };
    let mut weighed = 0;
    while let Some(position) = ready.pop() {
        weighed += 1;
        for step in &steps[position] {
            heaviest[step.to] = heaviest[step.to].max(heaviest[position] + weigh(step));
            missing[step.to] -= 1;
            if missing[step.to] == 0 {
                ready.push(step.to);
            }
        }
    }
    if weighed < steps.len() {
        bail!("the program can run forever: its executions have no greatest length");
    }
    heaviest.into_iter().max().context("there is the empty execution")
}

/// The steps from every position.
fn graph(model: &impl Model) -> Result<Vec<Vec<Weighed>>> {
    let mut stepper = model.stepper();
    let mut first = vec![0; model.shape().words];
    stepper.initial(&mut first);
    let mut positions: Vec<(Vec<u64>, Option<ThreadId>)> = vec![(first, None)];
    let mut numbers = BTreeMap::from([(positions[0].clone(), 0)]);
    let mut steps = Vec::new();
    while let Some((state, last)) = positions.get(steps.len()).cloned() {
        let taken = steps_from(&mut stepper, model.shape().threads, &state)?;
        let enabled: ThreadSet = taken.iter().map(|taken| taken.thread).collect();
        let mut out = Vec::new();
        for Taken { thread, to, blocking } in taken {
            let preempts = last.is_some_and(|last| last != thread && enabled.contains(last));
            let position = (to, Some(thread));
            let to = *numbers.entry(position.clone()).or_insert(positions.len());
            if to == positions.len() {
                positions.push(position);
            }
            out.push(Weighed { to, blocking, preempts });
        }
        steps.push(out);
    }
    Ok(steps)
}

struct Taken {
    thread: ThreadId,
    to: Vec<u64>,
    blocking: bool,
}

fn steps_from(stepper: &mut impl Stepper, threads: usize, state: &[u64]) -> Result<Vec<Taken>> {
    let mut taken = Vec::new();
    let mut log = StepLog::new();
    for thread in (0..threads).map(ThreadId::new) {
        let (mut alternative, mut alternatives) = (0, 1);
        while alternative < alternatives {
            let mut to = state.to_vec();
            log.clear();
            let step = stepper.step_with_log(&mut to, Choice { thread, alternative }, &mut log);
            match step {
                Step::Moved { .. } | Step::Failed(_) => {
                    alternatives = alternatives.max(stepper.alternatives());
                    taken.push(Taken { thread, to, blocking: log.iter().any(may_wait) });
                }
                Step::Full(capacity) => bail!("the states are too small: {capacity:?}"),
                Step::Absent | Step::Blocked { .. } | Step::Ended | Step::Vacant => {}
            }
            alternative += 1;
        }
    }
    Ok(taken)
}

fn may_wait(entry: ObjectAccess) -> bool {
    matches!(entry, ObjectAccess::Act(_, _, action) if action.may_wait())
}
