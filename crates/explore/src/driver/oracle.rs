//! Brute force, for tests: what a search must find.
//!
//! Simple on purpose. It shares no code with the searches, keeps whole states in ordered sets of
//! the standard library, and takes every step of every thread. Reductions are tested against it:
//! they may visit fewer states, but must find the same failures. Only for small programs, whose
//! states must be large enough from the start: it panics at [`Step::Full`].
//!
//! Like a search that keeps going, it continues after a failure; the thread that failed takes no
//! further step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use preempt_system::{Choice, Failure, FailureKind, Model, Step, Stepper, ThreadId, ThreadSet};

/// A packed state.
pub type State = Vec<u64>;

/// Everything about the reachable states of a program.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reachable {
    /// The states.
    pub states: BTreeSet<State>,
    /// The states in which no thread can move.
    pub terminal: BTreeSet<State>,
    /// The terminal states in which some thread waits and may not rest.
    pub deadlocks: BTreeSet<State>,
    /// Steps that moved or failed.
    pub transitions: u64,
    /// Threads that were blocked, summed over the states.
    pub blocked: u64,
    /// Threads that had ended, summed over the states.
    pub ended: u64,
    /// The greatest distance of a state from the initial one.
    pub depth: u32,
    /// The distinct failures, deadlock being one of them, by kind, message and place; each with the
    /// least number of steps that shows it.
    pub failures: BTreeMap<FailureName, usize>,
}

/// A failure in a form that can be ordered: its kind, its message and its place.
pub type FailureName = (FailureKind, String, Option<String>);

/// The name of a failure.
pub fn name(failure: &Failure) -> FailureName {
    let site =
        failure.site.as_ref().map(|site| format!("{}:{}:{}", site.file, site.line, site.column));
    (failure.kind, failure.message.clone(), site)
}

/// A transition: the step, the target state, and the failure if the step failed.
struct Edge {
    choice: Choice,
    to: State,
    failure: Option<Failure>,
}

/// A state with its outgoing transitions.
struct Node {
    edges: Vec<Edge>,
    blocked: u64,
    ended: u64,
    deadlock: bool,
}

impl Node {
    fn of(stepper: &mut impl Stepper, threads: usize, state: &State) -> Node {
        let mut node = Node { edges: Vec::new(), blocked: 0, ended: 0, deadlock: false };
        let mut waits = false;
        for thread in (0..threads).map(ThreadId::new) {
            let mut alternatives = 1;
            let mut alternative = 0;
            while alternative < alternatives {
                let choice = Choice { thread, alternative };
                let mut to = state.clone();
                match stepper.step(&mut to, choice) {
                    Step::Moved { alternatives: known } => {
                        alternatives = alternatives.max(known);
                        node.edges.push(Edge { choice, to, failure: None });
                    }
                    Step::Failed(failure) => {
                        alternatives = alternatives.max(stepper.alternatives());
                        node.edges.push(Edge { choice, to, failure: Some(*failure) });
                    }
                    Step::Blocked { resting } => {
                        if alternative == 0 {
                            node.blocked += 1;
                            waits |= !resting;
                        }
                    }
                    Step::Ended => node.ended += u64::from(alternative == 0),
                    Step::Absent | Step::Vacant => {}
                    Step::Full(capacity) => {
                        panic!("the oracle needs states that are large enough: {capacity:?}")
                    }
                }
                alternative += 1;
            }
        }
        node.deadlock = node.edges.is_empty() && waits && !stepper.has_failed(state);
        node
    }

    /// The threads that can run.
    fn enabled(&self) -> ThreadSet {
        self.edges.iter().map(|edge| edge.choice.thread).collect()
    }
}

/// The name of a deadlock.
pub fn deadlock() -> FailureName {
    name(&crate::engine::expand::deadlock())
}

/// The initial state, and its failure if initialisation failed.
fn initial(model: &impl Model) -> (State, Option<Failure>) {
    let mut state = vec![0; model.shape().words];
    match model.stepper().initial(&mut state) {
        Step::Moved { .. } => (state, None),
        Step::Failed(failure) => (state, Some(*failure)),
        other => panic!("the oracle needs a program with an initial state, not {other:?}"),
    }
}

/// All reachable states.
pub fn reachable(model: &impl Model) -> Reachable {
    let threads = model.shape().threads;
    let mut stepper = model.stepper();
    let mut all = Reachable::default();
    let (first, failure) = initial(model);
    all.failures.extend(failure.iter().map(|failure| (name(failure), 0)));
    all.failures.extend(stepper.invariant(&first).err().map(|failure| (name(&failure), 0)));
    all.states.insert(first.clone());
    let mut queue = VecDeque::from([(first, 0u32)]);
    while let Some((state, depth)) = queue.pop_front() {
        let node = Node::of(&mut stepper, threads, &state);
        all.depth = all.depth.max(depth);
        all.transitions += node.edges.len() as u64;
        all.blocked += node.blocked;
        all.ended += node.ended;
        if node.edges.is_empty() {
            all.terminal.insert(state.clone());
        }
        if node.deadlock {
            all.failures.entry(deadlock()).or_insert(depth as usize);
            all.deadlocks.insert(state);
        }
        for edge in node.edges {
            if let Some(failure) = &edge.failure {
                all.failures.entry(name(failure)).or_insert(depth as usize + 1);
            }
            if all.states.insert(edge.to.clone()) {
                if let Err(failure) = stepper.invariant(&edge.to) {
                    all.failures.entry(name(&failure)).or_insert(depth as usize + 1);
                }
                queue.push_back((edge.to, depth + 1));
            }
        }
    }
    all
}

/// The least number of preemptions that shows each failure.
///
/// A shortest-path search over pairs of a state and the thread that moved last: a step costs 1 if
/// it preempts, else 0.
pub fn least_preemptions(model: &impl Model) -> BTreeMap<FailureName, u32> {
    let threads = model.shape().threads;
    let mut stepper = model.stepper();
    let mut least: BTreeMap<FailureName, u32> = BTreeMap::new();
    let mut note = |failure: FailureName, cost: u32| {
        let known = least.entry(failure).or_insert(cost);
        *known = cost.min(*known);
    };
    let (first, failure) = initial(model);
    if let Some(failure) = &failure {
        note(name(failure), 0);
    }
    let mut done: BTreeSet<(State, Option<ThreadId>)> = BTreeSet::new();
    let mut queue = VecDeque::from([(first, None, 0)]);
    while let Some((state, last, cost)) = queue.pop_front() {
        if !done.insert((state.clone(), last)) {
            continue;
        }
        if let Err(failure) = stepper.invariant(&state) {
            note(name(&failure), cost);
        }
        let node = Node::of(&mut stepper, threads, &state);
        if node.deadlock {
            note(deadlock(), cost);
        }
        let enabled = node.enabled();
        for edge in node.edges {
            let thread = edge.choice.thread;
            let preempts = last.is_some_and(|last| last != thread && enabled.contains(last));
            let cost = cost + u32::from(preempts);
            if let Some(failure) = &edge.failure {
                note(name(failure), cost);
            }
            match preempts {
                true => queue.push_back((edge.to, Some(thread), cost)),
                false => queue.push_front((edge.to, Some(thread), cost)),
            }
        }
    }
    least
}

/// How many maximal executions there are with each number of preemptions. `None` if the program can
/// run forever.
///
/// An execution is maximal when no thread can move. A step with several alternatives makes several
/// executions. Counts the paths through the graph of pairs of a state and the thread that moved
/// last; their number must fit into 128 bits.
pub fn executions(model: &impl Model) -> Option<BTreeMap<u32, u128>> {
    let threads = model.shape().threads;
    let mut stepper = model.stepper();
    let mut positions: Vec<(State, Option<ThreadId>)> = vec![(initial(model).0, None)];
    let mut numbers: BTreeMap<(State, Option<ThreadId>), usize> =
        BTreeMap::from([(positions[0].clone(), 0)]);
    // For every position, the targets of its steps, and 1 for each step that preempts.
    let mut edges: Vec<Vec<(usize, u32)>> = Vec::new();
    while let Some((state, last)) = positions.get(edges.len()).cloned() {
        let node = Node::of(&mut stepper, threads, &state);
        let enabled = node.enabled();
        let mut out = Vec::new();
        for edge in node.edges {
            let thread = edge.choice.thread;
            let preempts =
                u32::from(last.is_some_and(|last| last != thread && enabled.contains(last)));
            let position = (edge.to, Some(thread));
            let number = *numbers.entry(position.clone()).or_insert(positions.len());
            if number == positions.len() {
                positions.push(position);
            }
            out.push((number, preempts));
        }
        edges.push(out);
    }
    // A position is processed when all steps that lead to it were counted. In a cycle this never
    // happens.
    let mut missing = vec![0; edges.len()];
    edges.iter().flatten().for_each(|&(to, _)| missing[to] += 1);
    let mut paths: Vec<BTreeMap<u32, u128>> = vec![BTreeMap::new(); edges.len()];
    paths[0].insert(0, 1);
    let mut ends: BTreeMap<u32, u128> = BTreeMap::new();
    let mut ready = if missing[0] == 0 { vec![0] } else { Vec::new() };
    let mut counted = 0;
    while let Some(position) = ready.pop() {
        counted += 1;
        for (preemptions, executions) in std::mem::take(&mut paths[position]) {
            if edges[position].is_empty() {
                *ends.entry(preemptions).or_default() += executions;
            }
            for &(to, preempts) in &edges[position] {
                *paths[to].entry(preemptions + preempts).or_default() += executions;
            }
        }
        for &(to, _) in &edges[position] {
            missing[to] -= 1;
            if missing[to] == 0 {
                ready.push(to);
            }
        }
    }
    (counted == edges.len()).then_some(ends)
}
