//! The weak memory compared with litmus tests with known numbers, and with the axioms of its model
//! on random programs: all interleavings of all alternatives of the machine.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::Ordering;

use preempt_litmus::program::{Instruction, Next, Operand, Position};
use preempt_litmus::random::{self, Random, Shape};
use preempt_litmus::{Graph, Order, Outcome, Program, axioms, expected, graph};
use preempt_system::memory::{Memory, MemoryAccess, Weak};
use preempt_system::{Access, Fingerprint, SyncClocks, ThreadId};

fn ordering(order: Order) -> Ordering {
    match order {
        // No test has a release fence between a plain store and a thread that acquires it.
        Order::Plain | Order::Relaxed => Ordering::Relaxed,
        Order::Acquire => Ordering::Acquire,
        Order::Release => Ordering::Release,
        Order::AcqRel => Ordering::AcqRel,
        Order::SeqCst => Ordering::SeqCst,
    }
}

/// A past access to a location, for data races.
#[derive(Clone, Copy)]
struct Mark {
    thread: usize,
    time: u32,
    location: usize,
    is_plain: bool,
    writes: bool,
}

/// A program in the middle of an execution.
#[derive(Clone)]
struct State {
    memory: Weak,
    clocks: SyncClocks,
    threads: Vec<Position>,
    graph: Graph,
    holders: Vec<Option<usize>>,
    marks: Vec<Mark>,
    is_racy: bool,
}

impl State {
    fn new(program: &Program) -> State {
        let mut memory = Weak::default();
        (0..program.locations.len()).for_each(|location| memory.initialise(location as u32, 0));
        State {
            memory,
            clocks: SyncClocks::new(),
            threads: vec![Position::default(); program.threads.len()],
            graph: Graph::new(program),
            holders: vec![None; program.locations.len()],
            marks: Vec::new(),
            is_racy: false,
        }
    }

    fn next(&self, program: &Program, thread: usize) -> Next {
        self.threads[thread].clone().next(&program.threads[thread])
    }

    /// The alternatives of the next step of a thread; none if it waits or has ended.
    fn alternatives(&self, program: &Program, thread: usize) -> Vec<u32> {
        let ask = |location: usize, access| {
            let thread = ThreadId::new(thread);
            let all = self.memory.alternatives(&self.clocks, thread, location as u32, access);
            assert_eq!(all.first(), Some(&0), "the newest store is always possible");
            all.to_vec()
        };
        match self.next(program, thread) {
            Next::End => Vec::new(),
            Next::Load(x, order) => ask(x, MemoryAccess::Load(ordering(order))),
            Next::Store(x, _, order) => ask(x, MemoryAccess::Store(ordering(order))),
            Next::Update(x, change, success, failure) => {
                let (success, failure) = (ordering(success), ordering(failure));
                match change {
                    preempt_litmus::program::Change::Exchange(expected, _) => {
                        ask(x, MemoryAccess::Exchange { expected, success, failure })
                    }
                    _ => ask(x, MemoryAccess::Update(success)),
                }
            }
            Next::Lock(mutex) if self.holders[mutex].is_some() => Vec::new(),
            Next::Fence(_) | Next::Lock(_) | Next::Unlock(_) => vec![0],
        }
    }

    /// Records an access and whether it races with an earlier one.
    fn mark(&mut self, thread: usize, location: usize, order: Order, writes: bool) {
        let id = ThreadId::new(thread);
        let time = self.clocks.epoch(id).time;
        let now = self.clocks.now(id).expect("a running thread has an epoch").clone();
        let is_plain = order == Order::Plain;
        let mark = Mark { thread, time, location, is_plain, writes };
        self.is_racy |= self.marks.iter().any(|earlier| {
            earlier.location == location
                && earlier.thread != thread
                && (earlier.writes || writes)
                && (earlier.is_plain || is_plain)
                && earlier.time > now.time(ThreadId::new(earlier.thread))
        });
        self.marks.push(mark);
    }

    fn step(&mut self, program: &Program, thread: usize, alternative: u32) {
        let next = self.threads[thread].next(&program.threads[thread]);
        let id = ThreadId::new(thread);
        let nth = self.graph.threads[thread].len();
        let mut event = graph::Event { location: None, reads: None, writes: false };
        let mut value = 0;
        let source = |memory: &Weak, location: usize| {
            let event = memory.stored(location as u32, alternative).event;
            event.thread.map(|thread| (thread.index(), event.nth as usize))
        };
        match next {
            Next::End => unreachable!("a thread that has ended has no alternatives"),
            Next::Load(x, order) => {
                self.mark(thread, x, order, false);
                event.reads = Some(source(&self.memory, x));
                let (clocks, order) = (&mut self.clocks, ordering(order));
                value = self.memory.load(clocks, id, x as u32, order, alternative);
                event.location = Some(x);
            }
            Next::Store(x, new, order) => {
                self.mark(thread, x, order, true);
                let (clocks, order) = (&mut self.clocks, ordering(order));
                self.memory.store(clocks, id, x as u32, new, order, alternative);
                let at = self.graph.orders[x].len() - alternative as usize;
                self.graph.orders[x].insert(at, (thread, nth));
                (event.location, event.writes) = (Some(x), true);
            }
            Next::Update(x, change, success, failure) => {
                event.reads = Some(source(&self.memory, x));
                let orders = (ordering(success), ordering(failure));
                let clocks = &mut self.clocks;
                let new = |old| change.new_value(old);
                value = self.memory.update(clocks, id, x as u32, orders, alternative, new);
                event.writes = change.new_value(value).is_some();
                self.mark(thread, x, success, event.writes);
                if event.writes {
                    let at = self.graph.orders[x].len() - alternative as usize;
                    self.graph.orders[x].insert(at, (thread, nth));
                }
                event.location = Some(x);
            }
            Next::Fence(order) => {
                self.memory.fence(&mut self.clocks, id, ordering(order));
            }
            Next::Lock(mutex) | Next::Unlock(mutex) => {
                self.clocks.epoch(id);
                let before = self.clocks.now(id).expect("a running thread has an epoch").clone();
                if let Next::Lock(_) = next {
                    self.holders[mutex] = Some(thread);
                    self.clocks.acquire(id, mutex as u32);
                } else {
                    self.holders[mutex] = None;
                    self.clocks.release(id, mutex as u32);
                }
                let after = self.clocks.now(id).expect("a running thread has an epoch");
                let objects = std::iter::once((mutex as u32, Access::Write));
                self.memory.act(id, objects, 0, (&before, after));
                self.graph.orders[mutex].push((thread, nth));
                event.location = Some(mutex);
            }
        }
        self.graph.threads[thread].push(event);
        self.threads[thread].advance(&program.threads[thread], value);
    }

    fn outcome(&self, program: &Program) -> String {
        graph::outcome(
            program,
            &self.graph,
            |thread, register| self.threads[thread].registers[register],
            |thread| self.next(program, thread) != Next::End,
            |location| self.memory.latest(location as u32).expect("the cell was initialised"),
        )
    }
}

/// Numbers of preemptions and of stale steps.
type Cost = (u32, u32);

/// A complete graph.
struct Complete {
    outcome: String,
    is_racy: bool,
    is_stuck: bool,
    /// The Pareto-minimal costs of its executions.
    costs: Vec<Cost>,
}

fn insert(costs: &mut Vec<Cost>, new: Cost) {
    let is_below = |a: &Cost, b: &Cost| a.0 <= b.0 && a.1 <= b.1;
    if !costs.iter().any(|known| is_below(known, &new)) {
        costs.retain(|known| !is_below(&new, known));
        costs.push(new);
    }
}

/// All complete graphs of a program by brute force over the machine: all threads and alternatives
/// from every graph, level by level.
fn explore(program: &Program, most: usize) -> Option<BTreeMap<Graph, Complete>> {
    let threads = 0..program.threads.len();
    let mut complete: BTreeMap<Graph, Complete> = BTreeMap::new();
    let mut names: HashMap<Fingerprint, Graph> = HashMap::new();
    let mut level =
        HashMap::from([((Graph::new(program), None), (State::new(program), vec![(0, 0)]))]);
    let mut states = 0;
    while !level.is_empty() {
        let mut next_level: HashMap<(Graph, Option<usize>), (State, Vec<Cost>)> = HashMap::new();
        for ((_, last), (state, costs)) in level {
            states += 1;
            if states > most {
                return None;
            }
            let known = names.entry(state.memory.name()).or_insert_with(|| state.graph.clone());
            assert_eq!(*known, state.graph, "two graphs have one name");
            let enabled: Vec<Vec<u32>> =
                threads.clone().map(|thread| state.alternatives(program, thread)).collect();
            if enabled.iter().all(Vec::is_empty) {
                let entry = complete.entry(state.graph.clone()).or_insert_with(|| Complete {
                    outcome: state.outcome(program),
                    is_racy: state.is_racy,
                    is_stuck: threads.clone().any(|it| state.next(program, it) != Next::End),
                    costs: Vec::new(),
                });
                assert_eq!(entry.is_racy, state.is_racy, "races are a property of the graph");
                costs.into_iter().for_each(|cost| insert(&mut entry.costs, cost));
                continue;
            }
            for thread in threads.clone() {
                let preempts =
                    last.is_some_and(|last: usize| last != thread && !enabled[last].is_empty());
                for &alternative in &enabled[thread] {
                    let mut after = state.clone();
                    after.step(program, thread, alternative);
                    let key = (after.graph.clone(), Some(thread));
                    let entry = match next_level.entry(key) {
                        Entry::Occupied(known) => {
                            let known = known.into_mut();
                            let same = known.0.memory.name() == after.memory.name();
                            assert!(same, "one graph has two names");
                            known
                        }
                        Entry::Vacant(new) => new.insert((after, Vec::new())),
                    };
                    for &(preemptions, stale) in &costs {
                        let cost =
                            (preemptions + u32::from(preempts), stale + u32::from(alternative > 0));
                        insert(&mut entry.1, cost);
                    }
                }
            }
        }
        level = next_level;
    }
    Some(complete)
}

/// The outcomes of complete graphs, in the form of the corpus.
fn outcomes(complete: &BTreeMap<Graph, Complete>) -> Vec<Outcome> {
    let mut outcomes: BTreeMap<&str, (Outcome, Vec<Cost>)> = BTreeMap::new();
    for graph in complete.values() {
        let (outcome, costs) = outcomes.entry(&graph.outcome).or_insert_with(|| {
            let text = graph.outcome.clone();
            (Outcome { text, graphs: 0, cost: (0, 0), racy: 0 }, Vec::new())
        });
        outcome.graphs += 1;
        outcome.racy += usize::from(graph.is_racy);
        graph.costs.iter().for_each(|&cost| insert(costs, cost));
    }
    let cheapest =
        |costs: Vec<Cost>| costs.into_iter().min_by_key(|cost| (cost.0 + cost.1, cost.1));
    let with_cost = |(mut outcome, costs): (Outcome, Vec<Cost>)| {
        outcome.cost = cheapest(costs).expect("an outcome has an execution");
        outcome
    };
    outcomes.into_values().map(with_cost).collect()
}

#[test]
fn litmus_tests_have_exactly_the_expected_graphs_and_outcomes() {
    let tests = expected::all();
    assert_eq!(tests.len(), 123);
    let mut wrong = Vec::new();
    for test in tests {
        let found = explore(&test.program, usize::MAX).expect("without a limit");
        let count = |holds: fn(&Complete) -> bool| found.values().filter(|&it| holds(it)).count();
        let counts = (found.len(), count(|it| it.is_racy), count(|it| it.is_stuck));
        if counts != (test.graphs, test.racy, test.stuck) {
            wrong.push(format!("{}: {counts:?}", test.name));
        }
        let mut expected = test.outcomes.clone();
        expected.sort_by(|a, b| a.text.cmp(&b.text));
        let found = outcomes(&found);
        if found != expected {
            wrong.push(format!("{}: {found:?} instead of {expected:?}", test.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn with_sequentially_consistent_orderings_litmus_tests_have_the_expected_traces() {
    for test in expected::all() {
        let program = test.program.with_order(Order::SeqCst);
        let found = explore(&program, usize::MAX).expect("without a limit");
        assert_eq!(found.len(), test.graphs_all_sc, "{}", test.name);
        for graph in found.values() {
            let stale = graph.costs.iter().map(|cost| cost.1).min();
            assert_eq!(stale, Some(0), "{}: an execution that is not a trace", test.name);
        }
    }
}

/// Compares the machine with the axioms on `count` programs. Returns the number of their graphs.
fn compare_with_axioms(count: usize, mut program: impl FnMut() -> Program) -> usize {
    let (mut compared, mut graphs) = (0, 0);
    while compared < count {
        let program = program();
        let Some(expected) = axioms::consistent(&program, 20_000) else { continue };
        let Some(found) = explore(&program, 20_000) else { continue };
        let found: BTreeMap<&Graph, &String> =
            found.iter().map(|(graph, complete)| (graph, &complete.outcome)).collect();
        assert!(expected.iter().eq(found), "{}", program.show());
        (compared, graphs) = (compared + 1, graphs + expected.len());
    }
    graphs
}

#[test]
fn random_programs_have_the_graphs_that_the_axioms_allow() {
    let mut random = Random(7);
    let shape = Shape { threads: 3, length: 4, mutexes: false };
    let graphs = compare_with_axioms(400, || random::program(&mut random, shape));
    assert!(graphs > 5_000, "the programs have few executions: {graphs}");
}

/// Three threads in a ring: each accesses one location and then the next thread's first one. Half
/// of the accesses are sequentially consistent, some pairs have a fence between, and some threads
/// access a third location afterwards. Forbidden executions are cycles around the ring.
fn ring(random: &mut Random) -> Program {
    use Order::{AcqRel, Acquire, Relaxed, Release, SeqCst};
    let mut program = Program::default();
    let locations = ["x", "y", "z"].map(|name| program.location(name, false));
    for thread in 0..3 {
        let mut code = Vec::new();
        let access = |random: &mut Random, register: usize, at: usize| {
            let of = |random: &mut Random, orders: [Order; 4]| orders[random.below(4)];
            let location = locations[at % 3];
            match random.below(9) {
                0..=3 => {
                    let order = of(random, [Relaxed, Acquire, SeqCst, SeqCst]);
                    Instruction::Load(register, location, order)
                }
                4..=7 => {
                    let order = of(random, [Relaxed, Release, SeqCst, SeqCst]);
                    Instruction::Store(location, Operand::Constant(1), order)
                }
                _ => {
                    let order = of(random, [Relaxed, AcqRel, SeqCst, SeqCst]);
                    Instruction::Add(register, location, 1, order)
                }
            }
        };
        code.push(access(random, 0, thread));
        if random.below(4) == 0 {
            code.push(Instruction::Fence(SeqCst));
        }
        code.push(access(random, 1, thread + 1));
        if random.below(3) == 0 {
            let at = thread + random.below(3);
            code.push(access(random, 2, at));
        }
        program.threads.push(code);
    }
    program
}

/// The condition on sequentially consistent accesses and fences rarely matters in other programs.
#[test]
fn sequentially_consistent_accesses_have_the_order_that_the_axioms_demand() {
    let mut random = Random(11);
    let graphs = compare_with_axioms(1_500, || ring(&mut random));
    assert!(graphs > 5_000, "the programs have few executions: {graphs}");
}

#[test]
fn the_axioms_agree_with_the_expected_numbers() {
    let mut compared = 0;
    for test in expected::all() {
        let Some(found) = axioms::consistent(&test.program, 100_000) else { continue };
        assert_eq!(found.len(), test.graphs, "{}", test.name);
        let texts: BTreeSet<&str> = found.values().map(String::as_str).collect();
        assert!(test.outcomes.iter().all(|outcome| texts.contains(&outcome.text[..])));
        compared += 1;
    }
    assert!(compared > 90, "only {compared} tests were small enough");
}
