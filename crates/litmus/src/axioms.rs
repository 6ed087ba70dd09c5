//! All consistent executions of a program by definition: every combination of values that loads
//! could read, every assignment of stores with these values to them, every modification order of
//! each location; filtered by the axioms.
//!
//! The axioms are those of herd's `rc11.cat`, with the release sequences of C++20:
//!
//! 1. coherence: `hb ; eco?` is irreflexive, and so is `eco`
//! 2. atomicity: the write of a read-modify-write comes right after the write that it reads
//! 3. no thin air: `sb ∪ rf` is acyclic
//! 4. sequential consistency: `psc` is acyclic
//!
//! Programs with mutexes are not enumerated here.

use std::collections::{BTreeMap, BTreeSet};

use crate::graph::{Event, Graph, outcome};
use crate::program::{Instruction, Next, Operand, Order, Position, Program};

/// The kind of a node. A read-modify-write is a read and a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Fence,
}

/// A node of a candidate execution.
#[derive(Clone, Copy, Debug)]
struct Node {
    /// The thread and the event in it; `None` for an initial write.
    event: Option<(usize, usize)>,
    kind: Kind,
    location: usize,
    order: Order,
    value: u64,
    /// Whether it is part of a read-modify-write: a read whose write is the next node.
    is_half: bool,
}

/// One execution of a thread in isolation: its nodes, and its final registers.
#[derive(Clone, Debug)]
struct Run {
    nodes: Vec<Node>,
    end: Position,
}

/// A relation over at most 64 nodes: for each its successors.
type Relation = Vec<u64>;

fn compose(a: &Relation, b: &Relation) -> Relation {
    a.iter().map(|&row| bits(row).fold(0, |all, at| all | b[at])).collect()
}

fn union(relations: &[&Relation]) -> Relation {
    let rows = 0..relations[0].len();
    rows.map(|at| relations.iter().fold(0, |all, relation| all | relation[at])).collect()
}

fn with_identity(a: &Relation) -> Relation {
    a.iter().enumerate().map(|(at, row)| row | 1 << at).collect()
}

fn transitive(a: &Relation) -> Relation {
    let mut closed = a.clone();
    for middle in 0..closed.len() {
        let reached = closed[middle];
        for row in closed.iter_mut().filter(|row| **row >> middle & 1 == 1) {
            *row |= reached;
        }
    }
    closed
}

fn inverse(a: &Relation) -> Relation {
    let mut inverse = vec![0; a.len()];
    for (from, &row) in a.iter().enumerate() {
        bits(row).for_each(|to| inverse[to] |= 1 << from);
    }
    inverse
}

fn from(set: u64, a: &Relation) -> Relation {
    a.iter().enumerate().map(|(at, &row)| if set >> at & 1 == 1 { row } else { 0 }).collect()
}

fn into(a: &Relation, set: u64) -> Relation {
    a.iter().map(|row| row & set).collect()
}

fn only(a: &Relation, keep: impl Fn(usize, usize) -> bool) -> Relation {
    let row = |(at, &row): (usize, &u64)| {
        bits(row).filter(|&to| keep(at, to)).fold(0, |all, to| all | 1 << to)
    };
    a.iter().enumerate().map(row).collect()
}

fn is_irreflexive(a: &Relation) -> bool {
    a.iter().enumerate().all(|(at, row)| row >> at & 1 == 0)
}

fn is_acyclic(a: &Relation) -> bool {
    is_irreflexive(&transitive(a))
}

fn bits(mut set: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (set != 0).then(|| {
            let at = set.trailing_zeros() as usize;
            set &= set - 1;
            at
        })
    })
}

/// The consistent graphs of a program with their outcomes; `None` if there are more than `most`
/// candidates, or if the program has mutexes.
pub fn consistent(program: &Program, most: usize) -> Option<BTreeMap<Graph, String>> {
    if program.mutexes.contains(&true) {
        return None;
    }
    let values = values(program);
    let runs: Vec<Vec<Run>> =
        (0..program.threads.len()).map(|thread| runs(program, thread, &values)).collect();
    let mut search = Search { program, found: BTreeMap::new(), candidates: 0, most };
    search.combine(&runs, &mut Vec::new()).then_some(search.found)
}

/// A superset of the values that occur.
fn values(program: &Program) -> Vec<u64> {
    let (mut constants, mut sum) = (BTreeSet::from([0]), 0);
    for instruction in program.threads.iter().flatten() {
        match *instruction {
            Instruction::Store(_, Operand::Constant(value), _)
            | Instruction::Swap(_, _, value, _)
            | Instruction::CompareExchange(_, _, _, value, ..) => {
                constants.insert(value);
            }
            Instruction::Store(_, Operand::Register(_, value), _)
            | Instruction::Add(_, _, value, _) => sum += value,
            _ => {}
        }
    }
    let greatest = constants.iter().max().copied().unwrap_or(0);
    let is_copied =
        program.threads.iter().flatten().any(|instruction| {
            matches!(instruction, Instruction::Store(_, Operand::Register(..), _))
        });
    if sum == 0 && !is_copied {
        constants.into_iter().collect()
    } else {
        (0..=greatest + sum).collect()
    }
}

/// The executions of a thread in isolation, with all values that it might read.
fn runs(program: &Program, thread: usize, values: &[u64]) -> Vec<Run> {
    let code = &program.threads[thread];
    let (mut done, mut open) = (Vec::new(), Vec::new());
    open.push((Position::default(), Vec::<Node>::new(), 0));
    while let Some((mut position, nodes, events)) = open.pop() {
        let event = Some((thread, events));
        let node = |kind, location, order, value| Node {
            event,
            kind,
            location,
            order,
            value,
            is_half: false,
        };
        let next = position.next(code);
        let mut push = |read: u64, new: &[Node]| {
            let mut position = position;
            position.advance(code, read);
            let nodes = nodes.iter().chain(new).copied().collect();
            open.push((position, nodes, events + 1));
        };
        match next {
            Next::End => done.push(Run { nodes, end: position }),
            Next::Load(location, order) => {
                values.iter().for_each(|&old| push(old, &[node(Kind::Read, location, order, old)]));
            }
            Next::Store(location, value, order) => {
                push(0, &[node(Kind::Write, location, order, value)]);
            }
            Next::Update(location, change, success, failure) => {
                for &old in values {
                    let Some(new) = change.new_value(old) else {
                        push(old, &[node(Kind::Read, location, failure, old)]);
                        continue;
                    };
                    let mut halves = [
                        node(Kind::Read, location, success, old),
                        node(Kind::Write, location, success, new),
                    ];
                    halves.iter_mut().for_each(|half| half.is_half = true);
                    push(old, &halves);
                }
            }
            Next::Fence(order) => push(0, &[node(Kind::Fence, usize::MAX, order, 0)]),
            Next::Lock(_) | Next::Unlock(_) => unreachable!("there are no mutexes"),
        }
    }
    done
}

struct Search<'p> {
    program: &'p Program,
    found: BTreeMap<Graph, String>,
    candidates: usize,
    most: usize,
}

impl Search<'_> {
    /// All combinations of executions of the threads. Returns whether there were not too many.
    fn combine(&mut self, runs: &[Vec<Run>], chosen: &mut Vec<Run>) -> bool {
        if chosen.len() < runs.len() {
            return runs[chosen.len()].iter().all(|run| {
                chosen.push(run.clone());
                let goes_on = self.combine(runs, chosen);
                chosen.pop();
                goes_on
            });
        }
        let initial = (0..self.program.locations.len()).map(|location| Node {
            event: None,
            kind: Kind::Write,
            location,
            order: Order::Plain,
            value: 0,
            is_half: false,
        });
        let nodes: Vec<Node> =
            initial.chain(chosen.iter().flat_map(|run| run.nodes.iter().copied())).collect();
        assert!(nodes.len() <= 64, "a relation has rows of 64 bits");
        let positions: Vec<Position> = chosen.iter().map(|run| run.end).collect();
        self.assign(&nodes, &positions, &mut Vec::new())
    }

    /// All assignments of stores to the reads.
    fn assign(&mut self, nodes: &[Node], ends: &[Position], sources: &mut Vec<usize>) -> bool {
        let at = sources.len();
        let Some(node) = nodes.get(at) else {
            return self.order(nodes, ends, sources, &mut Vec::new());
        };
        let is_source = |source: &Node| {
            source.kind == Kind::Write
                && source.location == node.location
                && source.value == node.value
        };
        let candidates: Vec<usize> = match node.kind {
            Kind::Read => (0..nodes.len()).filter(|&at| is_source(&nodes[at])).collect(),
            // A write has no source to assign.
            _ => vec![at],
        };
        candidates.into_iter().all(|source| {
            sources.push(source);
            let goes_on = self.assign(nodes, ends, sources);
            sources.pop();
            goes_on
        })
    }

    /// All modification orders.
    fn order(
        &mut self,
        nodes: &[Node],
        ends: &[Position],
        sources: &[usize],
        orders: &mut Vec<Vec<usize>>,
    ) -> bool {
        let location = orders.len();
        if location == self.program.locations.len() {
            self.candidates += 1;
            if is_consistent(nodes, sources, orders) {
                self.record(nodes, ends, sources, orders);
            }
            return self.candidates <= self.most;
        }
        let written = |at: &usize| {
            let node = &nodes[*at];
            node.kind == Kind::Write && node.location == location && node.event.is_some()
        };
        let stores: Vec<usize> = (0..nodes.len()).filter(written).collect();
        permutations(&stores).into_iter().all(|order| {
            orders.push(std::iter::once(location).chain(order).collect());
            let goes_on = self.order(nodes, ends, sources, orders);
            orders.pop();
            goes_on
        })
    }

    fn record(
        &mut self,
        nodes: &[Node],
        ends: &[Position],
        sources: &[usize],
        orders: &[Vec<usize>],
    ) {
        let mut graph = Graph::new(self.program);
        for (at, node) in nodes.iter().enumerate() {
            let Some((thread, _)) = node.event else { continue };
            if node.is_half && node.kind == Kind::Write {
                continue;
            }
            let reads = (node.kind == Kind::Read).then(|| nodes[sources[at]].event);
            graph.threads[thread].push(Event {
                location: (node.kind != Kind::Fence).then_some(node.location),
                reads,
                writes: node.kind == Kind::Write || node.is_half,
            });
        }
        for (location, order) in orders.iter().enumerate() {
            let stores = order.iter().filter_map(|&store| nodes[store].event);
            graph.orders[location] = stores.collect();
        }
        let text = outcome(
            self.program,
            &graph,
            |thread, register| ends[thread].registers[register],
            |_| false,
            |location| orders[location].last().map_or(0, |&last| nodes[last].value),
        );
        let known = self.found.insert(graph, text);
        assert!(known.is_none(), "each candidate is enumerated once");
    }
}

fn permutations(items: &[usize]) -> Vec<Vec<usize>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (at, &first) in items.iter().enumerate() {
        let mut others = items.to_vec();
        others.remove(at);
        for mut rest in permutations(&others) {
            rest.insert(0, first);
            all.push(rest);
        }
    }
    all
}

/// The axioms. The names are those of the papers.
fn is_consistent(nodes: &[Node], sources: &[usize], orders: &[Vec<usize>]) -> bool {
    let count = nodes.len();
    let none = || vec![0_u64; count];
    let set = |holds: &dyn Fn(&Node) -> bool| {
        nodes
            .iter()
            .enumerate()
            .filter(|(_, node)| holds(node))
            .fold(0, |set, (at, _)| set | 1 << at)
    };
    let (mut sb, mut rf, mut mo) = (none(), none(), none());
    for (a, first) in nodes.iter().enumerate() {
        for (b, second) in nodes.iter().enumerate() {
            let is_before = match (first.event, second.event) {
                (None, Some(_)) => true,
                (Some((t, _)), Some((u, _))) => t == u && a < b,
                _ => false,
            };
            sb[a] |= u64::from(is_before) << b;
        }
    }
    for (at, &source) in sources.iter().enumerate().filter(|&(at, &source)| at != source) {
        rf[source] |= 1 << at;
    }
    for order in orders {
        for (at, &store) in order.iter().enumerate() {
            mo[store] = order[at + 1..].iter().fold(0, |later, &next| later | 1 << next);
        }
    }
    // 2. Atomicity.
    for order in orders {
        for (at, &store) in order.iter().enumerate() {
            if nodes[store].is_half && (at == 0 || order[at - 1] != sources[store - 1]) {
                return false;
            }
        }
    }
    // 3. No thin air.
    if !is_acyclic(&union(&[&sb, &rf])) {
        return false;
    }
    let identity = with_identity(&none());
    let writes = set(&|node| node.kind == Kind::Write && node.order != Order::Plain);
    let reads = set(&|node| node.kind == Kind::Read && node.order != Order::Plain);
    let fences = set(&|node| node.kind == Kind::Fence);
    let release = set(&|node| node.kind != Kind::Read && node.order.releases());
    let acquire = set(&|node| node.kind != Kind::Write && node.order.acquires());
    // rf ; rmw.
    let mut rf_rmw = none();
    for (at, node) in nodes.iter().enumerate() {
        if node.is_half && node.kind == Kind::Write {
            rf_rmw[sources[at - 1]] |= 1 << at;
        }
    }
    let rs = from(writes, &with_identity(&transitive(&rf_rmw)));
    let to_write = union(&[&identity, &from(fences, &sb)]);
    let from_read = union(&[&identity, &into(&sb, fences)]);
    let sw =
        compose(&into(&compose(&compose(&from(release, &to_write), &rs), &rf), reads), &from_read);
    let sw = into(&sw, acquire);
    let hb = transitive(&union(&[&sb, &sw]));
    let rb = only(&compose(&inverse(&rf), &mo), |a, b| a != b);
    let eco = transitive(&union(&[&rf, &mo, &rb]));
    // 1. Coherence.
    if !(is_irreflexive(&hb) && is_irreflexive(&compose(&hb, &eco)) && is_irreflexive(&eco)) {
        return false;
    }
    // 4. Sequential consistency.
    let sc = set(&|node| node.order == Order::SeqCst);
    let sc_fences = sc & fences;
    let is_same = |a: usize, b: usize| {
        nodes[a].kind != Kind::Fence
            && nodes[b].kind != Kind::Fence
            && nodes[a].location == nodes[b].location
    };
    let sb_elsewhere = only(&sb, |a, b| !is_same(a, b));
    let hb_here = only(&hb, is_same);
    let around = compose(&compose(&sb_elsewhere, &hb), &sb_elsewhere);
    let scb = union(&[&sb, &around, &hb_here, &mo, &rb]);
    let hb_or_id = with_identity(&hb);
    let left = union(&[&from(sc, &identity), &from(sc_fences, &hb_or_id)]);
    let right = union(&[&into(&identity, sc), &into(&hb_or_id, sc_fences)]);
    let base = compose(&compose(&left, &scb), &right);
    let by_fences = union(&[&hb, &compose(&compose(&hb, &eco), &hb)]);
    is_acyclic(&union(&[&base, &into(&from(sc_fences, &by_fences), sc_fences)]))
}
