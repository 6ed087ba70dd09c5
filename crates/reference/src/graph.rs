//! The steps of a state, and the graph of all states, by brute force.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::model::Model;
use crate::run::{Access, Failure, Kind, Run, Stop};
use crate::value::{At, Data, Life, Local, Operand, Place, Root, State, Task, Thread, Value};

/// One step that a thread can take.
#[derive(Clone, Debug)]
pub struct Step<'p> {
    /// The thread that takes the step.
    pub thread: usize,
    /// The alternative that it takes, from 0.
    pub alternative: usize,
    /// The state after the step.
    pub to: State<'p>,
    /// The failure, if the step fails.
    pub failure: Option<Failure>,
    /// The accesses in order.
    pub accesses: Vec<Access>,
}

/// The steps from one state.
#[derive(Clone, Debug, Default)]
pub struct Steps<'p> {
    /// The steps, thread by thread.
    pub steps: Vec<Step<'p>>,
    /// The number of threads that have to wait.
    pub blocked: u64,
    /// The number of threads that have ended or failed.
    pub ended: u64,
    /// Whether a thread has failed. A state with a failed thread is not a deadlock.
    pub failed: bool,
    /// Whether a thread waits that may not wait forever.
    pub waits: bool,
}

impl Steps<'_> {
    /// Whether a thread can take a step.
    pub fn enables(&self, thread: usize) -> bool {
        self.steps.iter().any(|step| step.thread == thread)
    }

    /// Whether the state is a deadlock.
    pub fn is_deadlock(&self) -> bool {
        self.steps.is_empty() && self.waits && !self.failed
    }
}

/// Whether an execution ends with its first failure. It does not: the failed thread takes no
/// further step, and the others continue.
pub const fn ends_execution() -> bool {
    false
}

/// The failure that a deadlock is reported as.
pub fn deadlock() -> Failure {
    Failure { kind: Kind::Deadlock, line: 0, message: "no thread can move".to_owned() }
}

impl<'p> Model<'p> {
    /// The initial state, after `init` and everything that threads do before their first access; or
    /// the failure of `init`.
    pub fn initial(&self) -> Result<State<'p>, Failure> {
        let globals = self.globals.iter().map(|global| global.initial.clone()).collect();
        let start = |start: &crate::model::Start<'p>| {
            let param = |&(name, value): &(&'p str, i64)| Local {
                name,
                ty: self.int(),
                data: Data::Scalar(Value::Int(value)),
            };
            Thread {
                todo: vec![Task::Stmts(At(start.body), 0)],
                frames: vec![vec![start.params.iter().map(param).collect(), Vec::new()]],
                ..Thread::default()
            }
        };
        let threads = self.starts.iter().map(start).collect();
        let state = State { globals, heap: BTreeMap::new(), threads };
        let mut run = Run::alone(self, state);
        run.nonstop = true;
        for &block in &self.init {
            run.me.frames = vec![Vec::new()];
            run.block(block);
            finish(run.to_rest())?;
        }
        let mut state = run.state;
        for number in 0..self.starts.len() {
            let mut run = Run::of(self, &state, number, Vec::new());
            // A thread that would fail before its first access stays at its beginning: failing is
            // its first step.
            if finish(run.to_rest()).is_ok() {
                state = run.finish();
            }
        }
        Ok(canonical(state))
    }

    /// The first invariant that does not hold in a state.
    pub fn broken_invariant(&self, state: &State<'p>) -> Option<Failure> {
        self.invariants.iter().find_map(|&(name, condition)| {
            let mut run = Run::alone(self, state.clone());
            run.me.frames = vec![vec![Vec::new()]];
            match run.at_once(condition) {
                Ok(value) if value.bool() => None,
                Ok(_) => {
                    let words = name.unwrap_or_else(|| self.source.slice(condition.span));
                    Some(Failure {
                        kind: Kind::Invariant,
                        line: self.line(condition.span),
                        message: format!("invariant violated: {words}"),
                    })
                }
                Err(Stop::Failed(failure)) => Some(failure),
                Err(Stop::Blocked { .. }) => panic!("an invariant does not wait"),
            }
        })
    }

    /// All steps from a state. With `rename` the step gives heap records canonical names, so that
    /// states can be compared; without it records keep their names, so that accesses can be
    /// compared.
    pub fn steps(&self, state: &State<'p>, rename: bool) -> Steps<'p> {
        let mut found = Steps::default();
        for thread in 0..state.threads.len() {
            if state.threads[thread].life != Life::Running {
                found.failed |= state.threads[thread].life == Life::Failed;
                found.ended += 1;
                continue;
            }
            let mut choices: Vec<(usize, usize)> = Vec::new();
            let mut alternative = 0;
            loop {
                let mut run = Run::of(self, state, thread, choices);
                let outcome = run.step();
                choices = run.choices.clone();
                let failure = match outcome {
                    Ok(()) => None,
                    Err(Stop::Failed(failure)) => Some(failure),
                    Err(Stop::Blocked { resting }) => {
                        if alternative == 0 {
                            found.blocked += 1;
                            found.waits |= !resting;
                        }
                        break;
                    }
                };
                let accesses = std::mem::take(&mut run.accesses);
                let unborn = std::mem::take(&mut run.unborn);
                let mut to = run.finish();
                // A failing step changes nothing except that its thread has failed. Threads that it
                // spawned and that would fail before their first access could fail first.
                let mut others = Vec::new();
                if failure.is_some() {
                    to = state.clone();
                    to.threads[thread] = Thread { life: Life::Failed, ..Thread::default() };
                    others = unborn;
                }
                let to = if rename { canonical(to) } else { to };
                for failure in std::iter::once(failure).chain(others.into_iter().map(Some)) {
                    found.steps.push(Step {
                        thread,
                        alternative,
                        to: to.clone(),
                        failure,
                        accesses: accesses.clone(),
                    });
                    alternative += 1;
                }
                // Advance to the next combination of choices: increment the last choice that has
                // another value.
                while choices.last().is_some_and(|&(taken, of)| taken + 1 == of) {
                    choices.pop();
                }
                match choices.last_mut() {
                    Some((taken, _)) => *taken += 1,
                    None => break,
                }
            }
        }
        found
    }
}

fn finish(outcome: Result<(), Stop>) -> Result<(), Failure> {
    match outcome {
        Ok(()) => Ok(()),
        Err(Stop::Failed(failure)) => Err(failure),
        Err(Stop::Blocked { .. }) => panic!("no thread waits before the first step"),
    }
}

/// The graph of all states.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The number of states.
    pub states: u64,
    /// The number of steps that moved or failed.
    pub transitions: u64,
    /// The number of waiting threads, summed over all states.
    pub blocked: u64,
    /// The number of ended and failed threads, summed over all states.
    pub ended: u64,
    /// The distinct failures, each with the fewest steps that show it.
    pub failures: BTreeMap<Failure, usize>,
    /// Whether a state can be reached from itself.
    pub cyclic: bool,
}

/// Why a program has no graph.
#[derive(Clone, Debug)]
pub enum NoGraph {
    /// There are more states than the limit.
    TooLarge,
}

/// Explores all states, up to `most`.
pub fn explore(model: &Model<'_>, most: usize) -> Result<Graph, NoGraph> {
    let mut graph = Graph::default();
    let first = match model.initial() {
        Ok(first) => first,
        Err(failure) => {
            graph.failures.insert(failure, 0);
            return Ok(graph);
        }
    };
    let mut edges: Vec<BTreeSet<usize>> = Vec::new();
    if let Some(failure) = model.broken_invariant(&first) {
        graph.failures.insert(failure, 0);
    }
    let mut numbers = HashMap::from([(first.clone(), 0)]);
    let mut queue = VecDeque::from([(first, 0)]);
    while let Some((state, depth)) = queue.pop_front() {
        let steps = model.steps(&state, true);
        graph.transitions += steps.steps.len() as u64;
        graph.blocked += steps.blocked;
        graph.ended += steps.ended;
        if steps.is_deadlock() {
            graph.failures.entry(deadlock()).or_insert(depth);
        }
        let mut out = BTreeSet::new();
        for step in steps.steps {
            if let Some(failure) = step.failure {
                graph.failures.entry(failure).or_insert(depth + 1);
            }
            if let Some(&number) = numbers.get(&step.to) {
                out.insert(number);
                continue;
            }
            if let Some(failure) = model.broken_invariant(&step.to) {
                graph.failures.entry(failure).or_insert(depth + 1);
            }
            if numbers.len() == most {
                return Err(NoGraph::TooLarge);
            }
            out.insert(numbers.len());
            numbers.insert(step.to.clone(), numbers.len());
            queue.push_back((step.to, depth + 1));
        }
        edges.push(out);
    }
    graph.states = numbers.len() as u64;
    graph.cyclic = has_cycle(&edges);
    Ok(graph)
}

/// Whether a graph, given by the successors of each node, has a cycle: repeatedly removing nodes
/// without predecessors leaves some nodes.
fn has_cycle(edges: &[BTreeSet<usize>]) -> bool {
    let mut before = vec![0; edges.len()];
    edges.iter().flatten().for_each(|&to| before[to] += 1);
    let mut free: Vec<usize> = (0..edges.len()).filter(|&node| before[node] == 0).collect();
    let mut taken = 0;
    while let Some(node) = free.pop() {
        taken += 1;
        for &to in &edges[node] {
            before[to] -= 1;
            if before[to] == 0 {
                free.push(to);
            }
        }
    }
    taken < edges.len()
}

/// Canonical names of heap records: numbers in the order in which the traversal reaches them.
#[derive(Default)]
struct Names {
    known: BTreeMap<(usize, usize), usize>,
    /// Records that have a name but whose own pointers are not renamed yet.
    waiting: VecDeque<(usize, usize)>,
}

impl Names {
    fn rename(&mut self, place: &mut Place) {
        if let Root::Heap(thread, number) = place.root {
            let next = self.known.len();
            let name = *self.known.entry((thread, number)).or_insert_with(|| {
                self.waiting.push_back((thread, number));
                next
            });
            place.root = Root::Heap(0, name);
        }
    }
}

/// The state with its heap records renamed in the order in which they are reachable from the shared
/// variables and the threads. Unreachable records are dropped.
pub fn canonical(mut state: State<'_>) -> State<'_> {
    let mut names = Names::default();
    state.globals.iter_mut().for_each(|data| pointers(data, &mut |place| names.rename(place)));
    for thread in &mut state.threads {
        thread.made = 0;
        for operand in &mut thread.operands {
            match operand {
                Operand::Place(place) | Operand::Value(Value::Pointer(place)) => {
                    names.rename(place)
                }
                Operand::Value(_) => {}
            }
        }
        for local in thread.frames.iter_mut().flatten().flatten() {
            pointers(&mut local.data, &mut |place| names.rename(place));
        }
    }
    let mut heap = BTreeMap::new();
    while let Some(old) = names.waiting.pop_front() {
        let (ty, mut data) = state.heap.remove(&old).expect("what is pointed to exists");
        let name = names.known[&old];
        pointers(&mut data, &mut |place| names.rename(place));
        heap.insert((0, name), (ty, data));
    }
    state.heap = heap;
    state
}

/// Calls `meet` for every pointer in `data`.
fn pointers(data: &mut Data, meet: &mut impl FnMut(&mut Place)) {
    use crate::value::Object;
    match data {
        Data::Scalar(Value::Pointer(place)) => meet(place),
        Data::Parts(parts) => parts.iter_mut().for_each(|part| pointers(part, meet)),
        Data::Object(Object::Channel(values)) => {
            for value in values {
                if let Value::Pointer(place) = value {
                    meet(place);
                }
            }
        }
        Data::Object(Object::Rendezvous(Some((_, Some(Value::Pointer(place)))))) => meet(place),
        Data::Scalar(_) | Data::Object(_) => {}
    }
}
