//! What a closure program means, by brute force: every interleaving at the documented scheduling points.
//!
//! This shares no code with the library, its engine or its transition system. It has its own interpreter
//! ([`thread`]), its own objects ([`objects`]) and steps ([`state`]), its own happens-before ([`order`]), and its own search, which is the simplest there is: from every
//! state every step of every thread is taken, and nothing is remembered or left out.
//!
//! The scheduling points are those of `docs/guide/rust.md`: every operation on an atomic or a lock is a step, so is the end
//! of a thread; spawning belongs to the step before it; accesses to cells are no steps. Main runs first, so that a switch
//! away from it while it could go on is a preemption.
//!
//! Some constructs are one step here and several in the library (see [`is_exact`](crate::compare::is_exact)): channels, `Once`,
//! `Arc` counts, futures, and loops that wait. What threads observe and how executions fail is the same for these, the
//! numbers of steps, traces and preemptions are not.

mod objects;
mod order;
mod state;
mod thread;

use std::collections::{BTreeMap, HashMap};

use self::state::{Event, State};
use crate::program::Program;

/// The most threads of a program.
pub const MOST_THREADS: usize = 5;

/// How an execution fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// No thread can move and not all have ended.
    Deadlock,
    /// The same, and a thread waits in a loop.
    Livelock,
    /// A panic leaves its thread.
    Panic,
    /// Accesses to a cell that nothing orders.
    Race,
}

/// What all threads observe in one execution.
pub type Observed = Vec<Vec<i64>>;

/// What all executions of a program show.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// How many executions there are.
    pub executions: u64,
    /// For every number of preemptions, how many traces need just so many.
    pub traces: Vec<u64>,
    /// What threads observe, with the least preemptions for it.
    pub observed: BTreeMap<Observed, u32>,
    /// How executions fail, with the least preemptions for it.
    pub failures: BTreeMap<Kind, u32>,
    /// Whether a loop that changes something in every round may never end.
    pub waits_busily: bool,
    /// The most preemptions of any execution.
    pub preemptions: u32,
}

impl Summary {
    /// How many traces have an execution within this bound.
    pub fn traces_within(&self, bound: u32) -> u64 {
        self.traces.iter().take(bound as usize + 1).sum()
    }
}

/// What becomes of an execution after a panic or a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// It ends there.
    Stop,
    /// The other threads go on, as far as they can.
    GoOn,
}

/// Explores a program; `None` if it has more executions than `most`.
pub fn explore(program: &Program, most: u64) -> Option<Summary> {
    search(program, most, After::Stop)
}

/// The failures that are possible if executions go on after a panic or a race; `None` if there are more than `most`.
pub fn failures(program: &Program, most: u64) -> Option<BTreeMap<Kind, u32>> {
    search(program, most, After::GoOn).map(|summary| summary.failures)
}

fn search(program: &Program, most: u64, after: After) -> Option<Summary> {
    let mut search = Search { program, most, after, summary: Summary::default(), traces: HashMap::new() };
    search.visit(&State::new(program))?;
    let Search { mut summary, traces, .. } = search;
    summary.traces.resize(summary.preemptions as usize + 1, 0);
    traces.values().for_each(|&preemptions| summary.traces[preemptions as usize] += 1);
    Some(summary)
}

struct Search<'a> {
    program: &'a Program,
    most: u64,
    after: After,
    summary: Summary,
    /// The traces, each with the least preemptions of its executions.
    traces: HashMap<Vec<Event>, u32>,
}

impl Search<'_> {
    fn visit(&mut self, state: &State) -> Option<()> {
        if let Some(kind) = state.failure {
            if self.after == After::Stop {
                return self.end(state, Some(kind));
            }
            self.fails(state, kind);
        }
        let mut moved = false;
        for thread in 0..self.program.threads.len() {
            for alternative in 0..state.alternatives(self.program, thread) {
                moved = true;
                let mut after = state.clone();
                after.failure = None;
                after.step(self.program, thread, alternative);
                self.visit(&after)?;
            }
        }
        if moved { Some(()) } else { self.end(state, state.verdict()) }
    }

    fn fails(&mut self, state: &State, kind: Kind) {
        let least = |known: &mut u32| *known = (*known).min(state.preemptions);
        self.summary.failures.entry(kind).and_modify(least).or_insert(state.preemptions);
    }

    fn end(&mut self, state: &State, failure: Option<Kind>) -> Option<()> {
        let summary = &mut self.summary;
        summary.executions += 1;
        if summary.executions > self.most {
            return None;
        }
        let preemptions = state.preemptions;
        summary.preemptions = summary.preemptions.max(preemptions);
        let least = |known: &mut u32| *known = (*known).min(preemptions);
        if let Some(kind) = failure {
            summary.waits_busily |= kind == Kind::Livelock && state.waits_busily();
            self.fails(state, kind);
        } else if let Some(observed) = state.observed() {
            self.summary.observed.entry(observed).and_modify(least).or_insert(preemptions);
        }
        // Steps in a fixed order: what is left are the threads' steps and what each depends on.
        let mut trace = state.events.clone();
        trace.sort_by_key(|&(thread, _, _)| thread);
        self.traces.entry(trace).and_modify(least).or_insert(preemptions);
        Some(())
    }
}
