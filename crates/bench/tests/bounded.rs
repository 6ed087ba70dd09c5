//! The figures of reference/bounded.md: searches over executions on the zoo, the race programs and the work-stealing queue.

use preempt_bench::corpus;
use preempt_explore::{Cache, Count, Order, Outcome, Plan, Silent, Tally};
use preempt_lang::machine::Machine;
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Figures {
    zoo: Vec<Zoo>,
    races: Vec<Race>,
    queue: Vec<Queue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Zoo {
    name: String,
    exactly: Vec<u64>,
    within: Vec<u64>,
    traces: Vec<u64>,
    graphs: Vec<u64>,
    steps: Vec<u64>,
    state_cache: Vec<[u64; 2]>,
    states: u64,
    depth: Vec<[u64; 3]>,
    idfs: [u64; 2],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Race {
    name: String,
    exactly: Vec<u64>,
    ends: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Queue {
    size: u32,
    locked: u32,
    within: Vec<u64>,
    traces: Vec<u64>,
    #[serde(default)]
    graphs: Vec<u64>,
    #[serde(default)]
    steps: Vec<u64>,
    #[serde(default)]
    new_traces: Vec<u64>,
    unbounded: Option<[u64; 2]>,
}

fn figures() -> Figures {
    toml::from_str(include_str!("../data/bounded.toml")).expect("the figures can be read")
}

fn zoo(name: &str) -> Machine {
    corpus::machine(&corpus::root().join(format!("zoo/{name}.pre")), &[]).expect("a program of the zoo")
}

impl Queue {
    fn machine(&self) -> Machine {
        let set = |name: &str, value: u32| (name.to_owned(), value.to_string());
        let file = corpus::root().join("work-stealing-queue/protocol.pre");
        corpus::machine(&file, &[set("SIZE", self.size), set("LOCKED", self.locked)]).expect("the queue")
    }

    fn name(&self) -> String {
        format!("queue {} {}", self.size, if self.locked == 1 { "blocking" } else { "plain" })
    }
}

fn run(plan: Plan, machine: Machine) -> Outcome {
    let search = plan.keep_going().build().expect("a plan that makes sense");
    search.run(machine, &Silent).0
}

fn icb(cache: Cache) -> Plan {
    Plan::new().order(Order::Icb { cache })
}

/// A figure for every bound up to the last one of `expected`. A search that is complete earlier has nothing to add.
fn by_bound<T>(outcome: &Outcome, expected: &[T], figure: impl Fn(&Tally) -> T) -> Vec<T> {
    let of = |bound: usize| &outcome.bounds[bound.min(outcome.bounds.len() - 1)].all;
    (0..expected.len()).map(|bound| figure(of(bound))).collect()
}

fn counted(figure: Option<u64>) -> u64 {
    figure.expect("all is counted")
}

#[test]
fn zoo_icb_takes_the_executions_with_exactly_so_many_preemptions() {
    for Zoo { name, exactly, within, traces, .. } in figures().zoo {
        let outcome = run(icb(Cache::None), zoo(&name));
        assert!(outcome.complete, "{name}");
        let found: Vec<u64> = outcome.bounds.iter().map(|bound| bound.new.executions).collect();
        assert_eq!(found, exactly, "{name}: exactly c");
        assert_eq!(by_bound(&outcome, &within, |tally| tally.executions), within, "{name}: at most c");
        assert_eq!(by_bound(&outcome, &traces, |tally| counted(tally.traces)), traces, "{name}: traces");
    }
}

#[test]
fn zoo_cb_dfs() {
    for Zoo { name, within, traces, graphs, .. } in figures().zoo {
        for (bound, &executions) in within.iter().enumerate() {
            let outcome = run(Plan::new().order(Order::ContextBounded).bound(bound as u32), zoo(&name));
            let tally = outcome.tally.expect("a search over executions");
            assert_eq!(tally.executions, executions, "{name} within {bound}");
            assert_eq!(counted(tally.traces), traces[bound], "{name}: traces within {bound}");
            assert_eq!(counted(tally.graphs), graphs[bound], "{name}: graphs within {bound}");
            assert_eq!(outcome.complete, bound + 1 == within.len(), "{name}: complete within {bound}");
        }
        let all = run(Plan::new().order(Order::Executions), zoo(&name));
        assert_eq!(all.executions(), within.last().copied(), "{name}: all executions");
        assert!(all.complete, "{name}");
    }
}

#[test]
fn zoo_icb_with_the_cache_hb_reaches_each_graph_at_its_least_bound() {
    for Zoo { name, traces, graphs, steps, .. } in figures().zoo {
        let outcome = run(icb(Cache::Hb), zoo(&name));
        assert!(outcome.complete, "{name}");
        assert_eq!(by_bound(&outcome, &steps, |tally| tally.steps), steps, "{name}: steps (s, t)");
        assert_eq!(by_bound(&outcome, &graphs, |tally| counted(tally.graphs)), graphs, "{name}: graphs");
        assert_eq!(by_bound(&outcome, &traces, |tally| counted(tally.traces)), traces, "{name}: traces");
    }
}

#[test]
fn zoo_icb_with_the_cache_state_reaches_each_state_at_its_least_bound() {
    for Zoo { name, state_cache, states, .. } in figures().zoo {
        let outcome = run(icb(Cache::State), zoo(&name));
        assert!(outcome.complete, "{name}");
        let found = by_bound(&outcome, &state_cache, |tally| [tally.steps, counted(tally.ends)]);
        assert_eq!(found, state_cache, "{name}: items, ends");
        assert_eq!(outcome.coverage.states, states, "{name}: states");
    }
}

#[test]
fn zoo_dfs_hb_covers_each_graph() {
    for Zoo { name, traces, graphs, steps, .. } in figures().zoo {
        for bound in 0..traces.len() {
            let outcome = run(Plan::new().order(Order::DfsHb).bound(bound as u32), zoo(&name));
            let tally = outcome.tally.expect("a search over executions");
            assert_eq!(counted(tally.traces), traces[bound], "{name}: traces within {bound}");
            assert_eq!(counted(tally.graphs), graphs[bound], "{name}: graphs within {bound}");
            assert!(tally.steps >= steps[bound], "{name}: steps within {bound}");
        }
        let all = run(Plan::new().order(Order::DfsHb), zoo(&name));
        assert!(all.complete, "{name}");
        assert_eq!(all.tally.map(|tally| tally.steps), steps.last().copied(), "{name}: each step once");
        assert_eq!(all.traces(), traces.last().copied(), "{name}: traces");
    }
}

#[test]
fn zoo_depth() {
    for Zoo { name, depth, idfs, .. } in figures().zoo {
        for (&expected, steps) in depth.iter().zip(1..) {
            let outcome = run(Plan::new().order(Order::Depth { steps }), zoo(&name));
            let tally = outcome.tally.expect("a search over executions");
            assert_eq!([tally.executions, tally.cut, counted(tally.states)], expected, "{name}: db:{steps}");
            assert_eq!(outcome.complete, expected[1] == 0, "{name}: db:{steps}");
        }
        let outcome = run(Plan::new().order(Order::IterativeDepth { by: 1 }), zoo(&name));
        let tally = outcome.tally.expect("a search over executions");
        assert_eq!([outcome.bounds.len() as u64, tally.executions + tally.cut], idfs, "{name}: idfs");
        assert!(outcome.complete, "{name}: idfs");
    }
}

#[test]
fn races_with_points_at_all_accesses() {
    for Race { name, exactly, ends } in figures().races {
        let machine = corpus::machine(&corpus::root().join(format!("races/{name}.pre")), &[]).expect("a program");
        let outcome = run(icb(Cache::None), machine);
        let found: Vec<u64> = outcome.bounds.iter().map(|bound| bound.new.executions).collect();
        assert_eq!(found, exactly, "{name}");
        let found = outcome.tally.and_then(|tally| tally.ends);
        assert!(ends.is_none_or(|ends| found == Some(ends)), "{name}: {found:?} ends");
    }
}

#[test]
fn queue_cb_dfs() {
    for queue in figures().queue {
        // The last bound of the plain lock takes the longest of all by far.
        let bounds = queue.within.len() - usize::from(queue.locked == 0);
        for (bound, &executions) in queue.within.iter().enumerate().take(bounds) {
            let plan = Plan::new().order(Order::ContextBounded).count(Count::Traces).bound(bound as u32);
            let outcome = run(plan, queue.machine());
            assert_eq!(outcome.executions(), Some(executions), "{} within {bound}", queue.name());
            assert_eq!(outcome.traces(), Some(queue.traces[bound]), "{}: traces within {bound}", queue.name());
        }
    }
}

#[test]
fn queue_icb_with_the_cache_hb() {
    for queue in figures().queue {
        let Queue { traces, graphs, steps, new_traces, unbounded, .. } = &queue;
        let name = queue.name();
        let plan = icb(Cache::Hb);
        let outcome = run(if queue.locked == 0 { plan.bound(3) } else { plan }, queue.machine());
        let last = outcome.bounds.len().min(traces.len());
        assert_eq!(by_bound(&outcome, &traces[..last], |tally| counted(tally.traces)), traces[..last], "{name}: traces");
        assert_eq!(by_bound(&outcome, graphs, |tally| counted(tally.graphs)), *graphs, "{name}: graphs");
        assert_eq!(by_bound(&outcome, steps, |tally| tally.steps), *steps, "{name}: steps (s, t)");
        for (bound, &new) in new_traces.iter().enumerate() {
            assert_eq!(outcome.bounds[bound].new.traces, Some(new), "{name}: new traces at {bound}");
        }
        if let Some(unbounded) = *unbounded {
            let tally = outcome.tally.expect("a search over executions");
            assert!(outcome.complete, "{name}");
            assert_eq!([tally.traces, tally.graphs].map(counted), unbounded, "{name}");
        }
    }
}
