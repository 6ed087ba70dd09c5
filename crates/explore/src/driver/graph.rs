//! The graph of all states of a small model, and which part of it a search explores.
//!
//! The graph is that of a full search that continues after failures. A search is
//! [followed](Graph::follow) through it step by step: what it explores is a part of the graph,
//! whatever it compares and skips.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard};

use preempt_system::text::grouped;
use preempt_system::{Capacity, Choice, Failure, Model, Step, Stepper, ThreadId};

use crate::driver::outcome::Outcome;
use crate::driver::search::Search;
use crate::engine::expand::deadlock;
use crate::engine::observer::{Follower, Observer, Progress};

/// States and steps between them.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// The states: the initial one first, then by their distance from it.
    pub nodes: Vec<Node>,
    /// The steps, sorted by the states in which they start.
    pub edges: Vec<Edge>,
}

/// A state.
#[derive(Clone, Debug)]
pub struct Node {
    /// The packed state of the model.
    pub state: Box<[u64]>,
    /// The step by which it was found, unless it is the initial one.
    pub found_by: Option<usize>,
    /// No thread can step.
    pub terminal: bool,
    /// A violated invariant or a deadlock.
    pub failure: Option<Failure>,
    /// Whether a search that was followed has visited it.
    pub explored: bool,
    /// The index of its first edge.
    first: usize,
}

/// A step.
#[derive(Clone, Debug)]
pub struct Edge {
    /// The state before.
    pub from: usize,
    /// The state after.
    pub to: usize,
    /// The thread and its alternative.
    pub choice: Choice,
    /// The failure of the step.
    pub failure: Option<Failure>,
    /// Whether a search that was followed has taken it.
    pub explored: bool,
}

/// A model has more states than a graph may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// The limit.
    pub most: usize,
}

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the model has more than {} states", grouped(self.most as u64))
    }
}

impl Graph {
    /// The graph of a model with at most `most` states, and the model that its states belong to,
    /// which may have grown. If a search is to be followed, the model is prepared for it.
    pub fn of<M: Model>(
        model: M,
        search: Option<&Search>,
        most: usize,
    ) -> Result<(Graph, M), TooLarge> {
        let mut model = match search {
            Some(search) => search.prepared(model),
            None => model,
        };
        loop {
            match Graph::build(&model, most) {
                Ok(graph) => return graph.map(|graph| (graph, model)),
                Err(capacity) => model = model.grow(capacity),
            }
        }
    }

    /// The graph, unless it is too large; an error if the states of the model are too small.
    fn build<M: Model>(model: &M, most: usize) -> Result<Result<Graph, TooLarge>, Capacity> {
        let (mut stepper, shape) = (model.stepper(), model.shape());
        let mut initial = vec![0; shape.words];
        let failure = match stepper.initial(&mut initial) {
            Step::Full(capacity) => return Err(capacity),
            Step::Failed(failure) => Some(*failure),
            _ => None,
        };
        let mut graph = Graph::default();
        let mut known: HashMap<Box<[u64]>, usize> = HashMap::new();
        graph.add(&mut known, &mut stepper, &initial, None);
        graph.nodes[0].failure = failure.or(graph.nodes[0].failure.take());
        let mut next = vec![0; shape.words];
        let mut at = 0;
        while at < graph.nodes.len() {
            graph.nodes[at].first = graph.edges.len();
            let state = graph.nodes[at].state.clone();
            let mut waits = false;
            for thread in (0..shape.threads).map(ThreadId::new) {
                let (mut alternative, mut alternatives) = (0, 1);
                while alternative < alternatives {
                    let choice = Choice { thread, alternative };
                    alternative += 1;
                    next.copy_from_slice(&state);
                    let failure = match stepper.step(&mut next, choice) {
                        Step::Moved { alternatives: known } => {
                            alternatives = alternatives.max(known);
                            None
                        }
                        Step::Failed(failure) => {
                            alternatives = alternatives.max(stepper.alternatives());
                            Some(*failure)
                        }
                        Step::Absent => continue,
                        Step::Full(capacity) => return Err(capacity),
                        Step::Blocked { resting } => {
                            waits |= !resting;
                            break;
                        }
                        Step::Ended | Step::Vacant => break,
                    };
                    let edge = graph.edges.len();
                    let to = graph.add(&mut known, &mut stepper, &next, Some(edge));
                    if graph.nodes.len() > most {
                        return Ok(Err(TooLarge { most }));
                    }
                    graph.edges.push(Edge { from: at, to, choice, failure, explored: false });
                }
            }
            let terminal = graph.edges.len() == graph.nodes[at].first;
            let node = &mut graph.nodes[at];
            node.terminal = terminal;
            if terminal && waits && !stepper.has_failed(&state) {
                node.failure.get_or_insert_with(deadlock);
            }
            at += 1;
        }
        Ok(Ok(graph))
    }

    /// The index of a state, which is added if it is new.
    fn add(
        &mut self,
        known: &mut HashMap<Box<[u64]>, usize>,
        stepper: &mut impl Stepper,
        state: &[u64],
        found_by: Option<usize>,
    ) -> usize {
        if let Some(&number) = known.get(state) {
            return number;
        }
        let number = self.nodes.len();
        let failure = stepper.invariant(state).err().map(|failure| *failure);
        known.insert(state.into(), number);
        self.nodes.push(Node {
            state: state.into(),
            found_by,
            terminal: false,
            failure,
            explored: false,
            first: 0,
        });
        number
    }

    /// The steps from a state.
    pub fn edges_of(&self, node: usize) -> &[Edge] {
        let end = self.nodes.get(node + 1).map_or(self.edges.len(), |next| next.first);
        &self.edges[self.nodes[node].first..end]
    }

    /// Runs a search, and marks what it explores. `model` is the one that the graph was returned
    /// with.
    ///
    /// Panics if the search does not [suit](Search::suits) the model, or takes a step that the
    /// graph does not have.
    pub fn follow<M: Model>(&mut self, search: &Search, model: M) -> Outcome {
        let numbers =
            self.nodes.iter().enumerate().map(|(number, node)| (&*node.state, number)).collect();
        let trail = Trail { graph: self, numbers, explored: Mutex::new(Explored::none(self)) };
        let (outcome, _) = search.run(model, &trail);
        let Explored { nodes, edges } = trail.explored.into_inner().expect("mutex poisoned");
        self.nodes.iter_mut().zip(nodes).for_each(|(node, explored)| node.explored = explored);
        self.edges.iter_mut().zip(edges).for_each(|(edge, explored)| edge.explored = explored);
        outcome
    }
}

/// The states that a search has visited and the steps that it has taken.
struct Explored {
    nodes: Vec<bool>,
    edges: Vec<bool>,
}

impl Explored {
    /// Nothing but the initial state.
    fn none(graph: &Graph) -> Explored {
        let nodes = (0..graph.nodes.len()).map(|node| node == 0).collect();
        Explored { nodes, edges: vec![false; graph.edges.len()] }
    }
}

/// Follows a search through a graph.
struct Trail<'g> {
    graph: &'g Graph,
    numbers: HashMap<&'g [u64], usize>,
    explored: Mutex<Explored>,
}

impl Trail<'_> {
    fn explored(&self) -> MutexGuard<'_, Explored> {
        self.explored.lock().expect("mutex poisoned")
    }
}

impl Follower for Trail<'_> {
    fn run(&self, from: Option<&[u64]>, steps: &[Choice]) {
        let mut at = from.map_or(0, |state| {
            *self.numbers.get(state).expect("a search visits states of the graph")
        });
        let mut explored = self.explored();
        for &choice in steps {
            let edges = self.graph.edges_of(at);
            let edge = edges
                .iter()
                .position(|edge| edge.choice == choice)
                .expect("a search takes steps of the graph");
            explored.edges[self.graph.nodes[at].first + edge] = true;
            at = edges[edge].to;
            explored.nodes[at] = true;
        }
    }

    fn restart(&self) {
        *self.explored() = Explored::none(self.graph);
    }
}

impl Observer for Trail<'_> {
    fn progress(&self, _: &Progress) {}

    fn follower(&self) -> Option<&dyn Follower> {
        Some(self)
    }
}
