//! State graphs compared with the full search, and searches followed through them.

use preempt_bench::corpus;
use preempt_explore::graph::Graph;
use preempt_explore::reduce::cartesian::Reading;
use preempt_explore::{Cache, Limits, Order, Outcome, Plan, Reduction, Silent};
use preempt_machine::Machine;

/// The small models of the corpus: each with its full search and its graph.
fn small() -> Vec<(String, Machine)> {
    let mut models = Vec::new();
    for subject in corpus::subjects().expect("a corpus") {
        for run in subject
            .runs
            .iter()
            .filter(|run| !run.big && run.states.is_some_and(|states| states <= 250))
        {
            models.push((
                format!("{} {run}", subject.name()),
                subject.machine(run).expect("a model"),
            ));
        }
    }
    assert!(models.len() > 40, "{}", models.len());
    models
}

fn full(machine: &Machine) -> Outcome {
    Plan::new().keep_going().build().expect("a plan").run(machine.clone(), &Silent).0
}

#[test]
fn a_graph_has_the_states_and_steps_of_the_full_search() {
    for (name, machine) in small() {
        let outcome = full(&machine);
        let (graph, _) = Graph::of(machine.clone(), None, 2_000).expect("the graph is small");
        let seen = (graph.nodes.len() as u64, graph.edges.len() as u64);
        assert_eq!(seen, (outcome.coverage.states, outcome.coverage.transitions), "{name}");
        let failures = graph.edges.iter().filter(|edge| edge.failure.is_some()).count()
            + graph.nodes.iter().filter(|node| node.failure.is_some()).count();
        assert_eq!(failures > 0, !outcome.findings.is_empty(), "{name}");
        assert_eq!(failures as u64, outcome.coverage.failed, "{name}");
        let most = graph.nodes.len() - 1;
        assert_eq!(
            Graph::of(machine, None, most).err().map(|too_large| too_large.most),
            Some(most),
            "{name}"
        );
    }
}

/// The numbers of explored states and steps.
fn explored(graph: &Graph) -> (u64, u64) {
    let nodes = graph.nodes.iter().filter(|node| node.explored).count() as u64;
    (nodes, graph.edges.iter().filter(|edge| edge.explored).count() as u64)
}

/// Whether the graph has no cycle.
fn always_ends(graph: &Graph) -> bool {
    let mut into = vec![0; graph.nodes.len()];
    graph.edges.iter().for_each(|edge| into[edge.to] += 1);
    let mut free: Vec<usize> = (0..into.len()).filter(|&node| into[node] == 0).collect();
    let mut sorted = 0;
    while let Some(node) = free.pop() {
        sorted += 1;
        for edge in graph.edges_of(node) {
            into[edge.to] -= 1;
            if into[edge.to] == 0 {
                free.push(edge.to);
            }
        }
    }
    sorted == into.len()
}

#[test]
fn searches_over_executions_explore_the_states_that_they_count() {
    let executions = |reduction| Plan::new().order(Order::Executions).reduction(reduction);
    let limits = Limits { executions: Some(200), ..Limits::default() };
    let plans = [
        Plan::new().order(Order::Icb { cache: Cache::State }).bound(1),
        Plan::new().order(Order::Icb { cache: Cache::Hb }).bound(1),
        Plan::new().order(Order::ContextBounded).bound(0),
        Plan::new().order(Order::Depth { steps: 6 }),
        Plan::new().order(Order::Random).runs(3),
        executions(Reduction::Source),
        executions(Reduction::Sleep),
    ];
    let (mut followed, mut less) = (0, 0);
    for (name, machine) in small() {
        for plan in plans.map(|plan| plan.keep_going().limits(limits)) {
            let search = plan.build().expect("a plan");
            if search.suits(&machine).is_err() {
                continue;
            }
            let (mut graph, machine) =
                Graph::of(machine.clone(), Some(&search), 5_000).expect("the graph is small");
            // Other searches follow executions to their ends, if they have one.
            let stops =
                matches!(plan.order, Order::Icb { cache: Cache::State } | Order::Depth { .. });
            if !stops && !always_ends(&graph) {
                continue;
            }
            let what = format!("{name}, {plan:?}");
            let outcome = graph.follow(&search, machine);
            let (states, steps) = explored(&graph);
            assert_eq!(Some(states), outcome.tally.and_then(|tally| tally.states), "{what}");
            assert!(steps <= outcome.coverage.transitions && steps + 1 >= states, "{what}");
            // The explored part is connected.
            for edge in graph.edges.iter().filter(|edge| edge.explored) {
                assert!(graph.nodes[edge.from].explored && graph.nodes[edge.to].explored, "{what}");
            }
            followed += 1;
            less += usize::from((states as usize) < graph.nodes.len());
        }
    }
    assert!(
        followed > 200 && less > 50,
        "{followed} searches, of which {less} explored less than everything"
    );
}

#[test]
fn reductions_of_states_explore_a_part_of_the_graph() {
    let reductions = [
        Reduction::Cartesian { reading: Reading::Late },
        Reduction::Transactions,
        Reduction::TransactionsCycle,
    ];
    let (mut followed, mut less) = (0, 0);
    for (name, machine) in small() {
        for reduction in reductions {
            let order = if reduction.is_by_transactions() {
                Order::DepthFirst
            } else {
                Order::BreadthFirst
            };
            let mut plan = Plan::new().order(order).reduction(reduction).keep_going();
            plan.deadlock = !reduction.is_by_transactions();
            let search = plan.build().expect("a plan");
            if search.suits(&machine).is_err() {
                continue;
            }
            let (mut graph, machine) =
                Graph::of(machine.clone(), Some(&search), 5_000).expect("the graph is small");
            let outcome = graph.follow(&search, machine);
            let (states, steps) = explored(&graph);
            let what = format!(
                "{name}, {reduction:?}: {states} states, {steps} steps, {:?}",
                outcome.coverage
            );
            if reduction.is_by_transactions() {
                // A state is visited once for every phase of its threads.
                assert!(
                    states <= outcome.coverage.states && steps <= outcome.coverage.transitions,
                    "{what}"
                );
            } else {
                // The ends of prefixes are counted, and all states on the way are explored.
                assert!(
                    states >= outcome.coverage.states && steps <= outcome.coverage.transitions,
                    "{what}"
                );
            }
            followed += 1;
            less += usize::from((states as usize) < graph.nodes.len());
        }
    }
    assert!(
        followed > 60 && less > 15,
        "{followed} searches, of which {less} explored less than everything"
    );
}
