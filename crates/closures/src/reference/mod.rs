//! The semantics of closure programs by brute force: every interleaving at the documented
//! scheduling points.
//!
//! This module shares no code with the library, its engine or its transition system. It has its own
//! interpreter ([`thread`]), objects ([`objects`]), steps ([`state`]) and happens-before relation
//! ([`order`]), and the simplest possible search: it takes every step of every thread from every
//! state, without caching and without reduction.
//!
//! The scheduling points are those of `docs/guide/rust.md`: every operation on an atomic or a lock
//! is a step, and so is the end of every thread except main. Spawning belongs to the step before
//! it, and accesses to cells are not steps. Main runs first, so switching away from it while it is
//! enabled is a preemption.
//!
//! Some constructs are one step here and several in the library (see
//! [`is_exact`](crate::compare::is_exact)): channels, `Once`, `Arc` counts, futures, and loops that
//! wait. For these, observed values and failures agree, but the numbers of steps, traces and
//! preemptions do not.

mod objects;
mod order;
mod state;
mod thread;

use std::collections::{BTreeMap, HashMap};

use self::state::{Event, State};
use crate::program::Program;

/// The maximum number of threads of a program.
pub const MOST_THREADS: usize = 5;

/// The kinds of failures of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// No thread can step, and not all threads have ended.
    Deadlock,
    /// Like a deadlock, but a thread waits in a loop.
    Livelock,
    /// A panic unwinds a whole thread.
    Panic,
    /// Two conflicting accesses to a cell are unordered.
    Race,
    /// An atomic is used after its memory was freed.
    UseAfterFree,
}

/// The values that each thread observes in one execution.
pub type Observed = Vec<Vec<i64>>;

/// The results of all executions of a program.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The number of executions.
    pub executions: u64,
    /// For each number of preemptions, the number of traces that need exactly that many.
    pub traces: Vec<u64>,
    /// The observed values, each with the fewest preemptions that show them.
    pub observed: BTreeMap<Observed, u32>,
    /// The failures, each with the fewest preemptions that show it.
    pub failures: BTreeMap<Kind, u32>,
    /// Whether a loop that changes state in every iteration may never end.
    pub waits_busily: bool,
    /// The maximum number of preemptions of an execution.
    pub preemptions: u32,
    /// The executions by their number of delays; `None` if threads are not started in the same
    /// order in all executions: the library numbers them in the order in which it meets them.
    pub delays: Option<ByDelays>,
    /// The number of executions in which an assumption failed. Nothing else counts them.
    pub discarded: u64,
}

/// The results of all executions by their number of delays.
#[derive(Clone, Debug, Default)]
pub struct ByDelays {
    /// The number of executions with each number of delays.
    pub executions: BTreeMap<u32, u64>,
    /// The number of traces whose fewest delays are this number.
    pub traces: BTreeMap<u32, u64>,
    /// The observed values, each with the fewest delays that show them.
    pub observed: BTreeMap<Observed, u32>,
    /// The failures, each with the fewest delays that show it.
    pub failures: BTreeMap<Kind, u32>,
}

impl Summary {
    /// The number of traces that have an execution with at most `bound` preemptions.
    pub fn traces_within(&self, bound: u32) -> u64 {
        self.traces.iter().take(bound as usize + 1).sum()
    }
}

impl Kind {
    /// All kinds.
    pub const ALL: [Kind; 5] =
        [Kind::Deadlock, Kind::Livelock, Kind::Panic, Kind::Race, Kind::UseAfterFree];

    /// Whether one step fails; otherwise the execution cannot continue.
    pub fn is_of_a_step(self) -> bool {
        matches!(self, Kind::Panic | Kind::Race | Kind::UseAfterFree)
    }
}

/// How an execution proceeds after a step that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    /// The execution ends.
    Stop,
    /// The other threads continue as far as they can.
    GoOn,
}

/// Explores a program; `None` if it has more executions than `most`.
pub fn explore(program: &Program, most: u64) -> Option<Summary> {
    search(program, most, After::Stop)
}

/// The failures that are possible if executions continue after a step that fails; `None` if there
/// are more than `most` executions.
pub fn failures(program: &Program, most: u64) -> Option<BTreeMap<Kind, u32>> {
    search(program, most, After::GoOn).map(|summary| summary.failures)
}

fn search(program: &Program, most: u64, after: After) -> Option<Summary> {
    let mut search = Search {
        program,
        most,
        after,
        summary: Summary::default(),
        traces: HashMap::new(),
        delays: ByDelays::default(),
        delay_traces: HashMap::new(),
        started: Vec::new(),
        one_order: true,
    };
    search.visit(&State::new(program))?;
    let Search { mut summary, traces, mut delays, delay_traces, one_order, .. } = search;
    delay_traces.values().for_each(|&least| *delays.traces.entry(least).or_default() += 1);
    summary.delays = one_order.then_some(delays);
    summary.traces.resize(summary.preemptions as usize + 1, 0);
    traces.values().for_each(|&preemptions| summary.traces[preemptions as usize] += 1);
    Some(summary)
}

struct Search<'a> {
    program: &'a Program,
    most: u64,
    after: After,
    summary: Summary,
    /// The traces, each with the fewest preemptions of its executions.
    traces: HashMap<Vec<Event>, u32>,
    delays: ByDelays,
    /// The traces, each with the fewest delays of its executions.
    delay_traces: HashMap<Vec<Event>, u32>,
    /// The threads in the order in which the longest list of started threads so far has them.
    started: Vec<usize>,
    /// Whether every list of started threads was a beginning of that one.
    one_order: bool,
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
        let known = self.delays.failures.entry(kind).or_insert(state.delays);
        *known = state.delays.min(*known);
    }

    /// Records whether threads are started in the same order in all executions.
    fn compare_starts(&mut self, started: &[usize]) {
        let common = self.started.len().min(started.len());
        self.one_order &= self.started[..common] == started[..common];
        if started.len() > self.started.len() {
            self.started = started.to_vec();
        }
    }

    fn end(&mut self, state: &State, failure: Option<Kind>) -> Option<()> {
        let summary = &mut self.summary;
        if summary.executions + summary.discarded >= self.most {
            return None;
        }
        // A step that fails comes before the failed assumption in another order of the same steps.
        if state.is_discarded() && !failure.is_some_and(Kind::is_of_a_step) {
            summary.discarded += 1;
            return Some(());
        }
        summary.executions += 1;
        let preemptions = state.preemptions;
        summary.preemptions = summary.preemptions.max(preemptions);
        let least = |known: &mut u32| *known = (*known).min(preemptions);
        if let Some(kind) = failure {
            summary.waits_busily |= kind == Kind::Livelock && state.waits_busily();
            self.fails(state, kind);
        } else if let Some(mut observed) = state.observed() {
            self.program.unobserved().into_iter().for_each(|thread| observed[thread].clear());
            let known = self.delays.observed.entry(observed.clone()).or_insert(state.delays);
            *known = state.delays.min(*known);
            self.summary.observed.entry(observed).and_modify(least).or_insert(preemptions);
        }
        // Sorting by thread gives equivalent executions the same list: each thread's steps, and the
        // steps that each depends on.
        let mut trace = state.events.clone();
        trace.sort_by_key(|&(thread, _, _)| thread);
        self.compare_starts(&state.started);
        *self.delays.executions.entry(state.delays).or_default() += 1;
        let known = self.delay_traces.entry(trace.clone()).or_insert(state.delays);
        *known = state.delays.min(*known);
        self.traces.entry(trace).and_modify(least).or_insert(preemptions);
        Some(())
    }
}
