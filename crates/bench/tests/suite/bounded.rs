//! The figures of `data/bounded.toml`: searches over executions on the zoo, the race programs and
//! the work-stealing queue.

use std::collections::BTreeMap;

use preempt_bench::corpus;
use preempt_bench::random::{self, Shape};
use preempt_explore::{Cache, Count, Limits, Order, Outcome, Plan, Silent, Tally, oracle};
use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::{
    Choice, Footprint, HbGraph, HbKey, Model, Preemptions, Step, Stepper, ThreadId, ThreadSet,
};
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
    toml::from_str(include_str!("../../data/bounded.toml")).expect("the figures can be read")
}

fn zoo(name: &str) -> Machine {
    corpus::machine(&corpus::root().join(format!("zoo/{name}.pre")), &[])
        .expect("a program of the zoo")
}

impl Queue {
    fn machine(&self) -> Machine {
        let set = |name: &str, value: u32| (name.to_owned(), value.to_string());
        let file = corpus::root().join("work-stealing-queue/protocol.pre");
        corpus::machine(&file, &[set("SIZE", self.size), set("LOCKED", self.locked)])
            .expect("the queue")
    }

    fn name(&self) -> String {
        format!("queue {} {}", self.size, if self.locked == 1 { "blocking" } else { "plain" })
    }
}

fn run(plan: Plan, machine: Machine) -> Outcome {
    let search = plan.keep_going().build().expect("the plan is valid");
    search.run(machine, &Silent).0
}

fn icb(cache: Cache) -> Plan {
    Plan::new().order(Order::Icb { cache })
}

/// A figure for every bound up to the last one of `expected`. If the search is complete earlier,
/// its last figure is repeated.
fn by_bound<T>(outcome: &Outcome, expected: &[T], figure: impl Fn(&Tally) -> T) -> Vec<T> {
    let of = |bound: usize| &outcome.bounds[bound.min(outcome.bounds.len() - 1)].all;
    (0..expected.len()).map(|bound| figure(of(bound))).collect()
}

fn counted(figure: Option<u64>) -> u64 {
    figure.expect("all is counted")
}

#[test]
fn zoo_icb_explores_the_executions_with_exactly_c_preemptions() {
    for Zoo { name, exactly, within, traces, .. } in figures().zoo {
        let outcome = run(icb(Cache::None), zoo(&name));
        assert!(outcome.complete, "{name}");
        let found: Vec<u64> = outcome.bounds.iter().map(|bound| bound.new.executions).collect();
        assert_eq!(found, exactly, "{name}: exactly c");
        assert_eq!(
            by_bound(&outcome, &within, |tally| tally.executions),
            within,
            "{name}: at most c"
        );
        assert_eq!(
            by_bound(&outcome, &traces, |tally| counted(tally.traces)),
            traces,
            "{name}: traces"
        );
    }
}

#[test]
fn zoo_cb_dfs() {
    for Zoo { name, within, traces, graphs, .. } in figures().zoo {
        for (bound, &executions) in within.iter().enumerate() {
            let outcome =
                run(Plan::new().order(Order::ContextBounded).bound(bound as u32), zoo(&name));
            let tally = outcome.tally.expect("a search over executions");
            assert_eq!(tally.executions, executions, "{name} within {bound}");
            assert_eq!(counted(tally.traces), traces[bound], "{name}: traces within {bound}");
            assert_eq!(counted(tally.graphs), graphs[bound], "{name}: graphs within {bound}");
            assert_eq!(
                outcome.complete,
                bound + 1 == within.len(),
                "{name}: complete within {bound}"
            );
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
        assert_eq!(
            by_bound(&outcome, &graphs, |tally| counted(tally.graphs)),
            graphs,
            "{name}: graphs"
        );
        assert_eq!(
            by_bound(&outcome, &traces, |tally| counted(tally.traces)),
            traces,
            "{name}: traces"
        );
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
        assert_eq!(
            all.tally.map(|tally| tally.steps),
            steps.last().copied(),
            "{name}: each step once"
        );
        assert_eq!(all.traces(), traces.last().copied(), "{name}: traces");
    }
}

#[test]
fn zoo_depth() {
    for Zoo { name, depth, idfs, .. } in figures().zoo {
        for (&expected, steps) in depth.iter().zip(1..) {
            let outcome = run(Plan::new().order(Order::Depth { steps }), zoo(&name));
            let tally = outcome.tally.expect("a search over executions");
            assert_eq!(
                [tally.executions, tally.cut, counted(tally.states)],
                expected,
                "{name}: db:{steps}"
            );
            assert_eq!(outcome.complete, expected[1] == 0, "{name}: db:{steps}");
        }
        let outcome = run(Plan::new().order(Order::IterativeDepth { by: 1 }), zoo(&name));
        let tally = outcome.tally.expect("a search over executions");
        assert_eq!(
            [outcome.bounds.len() as u64, tally.executions + tally.cut],
            idfs,
            "{name}: idfs"
        );
        assert!(outcome.complete, "{name}: idfs");
    }
}

#[test]
fn races_with_points_at_all_accesses() {
    for Race { name, exactly, ends } in figures().races {
        let machine = corpus::machine(&corpus::root().join(format!("races/{name}.pre")), &[])
            .expect("a program");
        let outcome = run(icb(Cache::None), machine);
        let found: Vec<u64> = outcome.bounds.iter().map(|bound| bound.new.executions).collect();
        assert_eq!(found, exactly, "{name}");
        let found = outcome.tally.and_then(|tally| tally.ends);
        assert!(ends.is_none_or(|ends| found == Some(ends)), "{name}: {found:?} ends");
    }
}

/// Searches with more executions take too long for a test.
const LARGE: u64 = 70_000;

#[test]
fn queue_cb_dfs() {
    for queue in figures().queue {
        for (bound, &executions) in queue.within.iter().enumerate() {
            // `preempt-bench papers cb-por` compares these. They take most of the time and execute
            // the same code as the smallest queue with this bound.
            if executions > LARGE {
                continue;
            }
            // With the last bound, traces cost more than all the rest; icb counts them.
            let count =
                if queue.locked == 0 && bound == 4 { Count::Executions } else { Count::Traces };
            let plan = Plan::new().order(Order::ContextBounded).count(count).bound(bound as u32);
            let outcome = run(plan, queue.machine());
            assert_eq!(outcome.executions(), Some(executions), "{} within {bound}", queue.name());
            let traces = (count == Count::Traces).then_some(queue.traces[bound]);
            assert_eq!(outcome.traces(), traces, "{}: traces within {bound}", queue.name());
        }
    }
}

#[test]
fn queue_icb_with_the_cache_hb() {
    for queue in figures().queue {
        let Queue { traces, graphs, steps, new_traces, unbounded, .. } = &queue;
        let name = queue.name();
        let plan = icb(Cache::Hb);
        let outcome = run(
            if queue.locked == 0 { plan.bound(4).count(Count::Traces) } else { plan },
            queue.machine(),
        );
        assert_eq!(
            by_bound(&outcome, traces, |tally| counted(tally.traces)),
            *traces,
            "{name}: traces"
        );
        assert_eq!(
            by_bound(&outcome, graphs, |tally| counted(tally.graphs)),
            *graphs,
            "{name}: graphs"
        );
        assert_eq!(by_bound(&outcome, steps, |tally| tally.steps), *steps, "{name}: steps (s, t)");
        for (bound, &new) in new_traces.iter().enumerate() {
            assert_eq!(
                outcome.bounds[bound].new.traces,
                Some(new),
                "{name}: new traces at {bound}"
            );
        }
        if let Some(unbounded) = *unbounded {
            let tally = outcome.tally.expect("a search over executions");
            assert!(outcome.complete, "{name}");
            assert_eq!([tally.traces, tally.graphs].map(counted), unbounded, "{name}");
        }
    }
}

#[test]
fn the_first_finding_of_icb_has_the_fewest_preemptions() {
    let mut runs = 0;
    for subject in corpus::subjects().expect("the corpus can be read") {
        for case in subject.runs.iter().filter(|case| !case.big) {
            let Some(expected) = case.preemptions else { continue };
            runs += 1;
            let search = icb(Cache::State).build().expect("the plan is valid");
            let (outcome, _) =
                search.run(subject.machine(case).expect("a program of the corpus"), &Silent);
            let found = outcome.findings.first().map(|finding| finding.preemptions);
            assert_eq!(found, Some(expected), "{} {case}", subject.name());
        }
    }
    assert!(runs > 30, "only {runs} programs of the corpus fail");
}

#[test]
fn urw_counts_the_steps_of_threads_that_are_not_started_yet() {
    // `other` begins in 2 of 7 interleavings of its 2 steps with the 3 of `main` and the 2 of the
    // spawned thread. Without the latter it would begin in 2 of 5.
    let text = "
        atomic var flag = 0;
        atomic var x = 0;
        atomic var y = 0;
        fn child() { x = 1; x = 2; }
        thread main { flag = 1; spawn child(); y = 1; }
        thread other { assert flag == 1; y = 2; }";
    let machine = preempt_lang::load(&Source::new("spawn.pre", text), &[]).expect("a program");
    let plan = Plan::new().order(Order::Urw).runs(7_000).count(Count::Executions);
    let first = run(plan, machine).coverage.failed;
    assert!((1_900..2_100).contains(&first), "{first} of 7,000, expected 2,000");
}

/// All executions of a program by brute force: the fewest preemptions for each happens-before graph
/// and for each final state.
struct BruteForce<'m> {
    stepper: <Machine as Model>::Stepper<'m>,
    threads: usize,
    graph: HbGraph,
    traces: BTreeMap<HbKey, u32>,
    ends: BTreeMap<Vec<u64>, u32>,
}

impl<'m> BruteForce<'m> {
    fn of(machine: &'m Machine) -> BruteForce<'m> {
        let (mut stepper, shape) = (machine.stepper(), machine.shape());
        let mut state = vec![0; shape.words];
        stepper.initial(&mut state);
        let (graph, traces, ends) = (HbGraph::new(), BTreeMap::new(), BTreeMap::new());
        let mut all = BruteForce { stepper, threads: shape.threads, graph, traces, ends };
        all.follow(&state, Preemptions::default());
        all
    }

    fn follow(&mut self, state: &[u64], preemptions: Preemptions) {
        let mut steps = Vec::new();
        for thread in (0..self.threads).map(ThreadId::new) {
            for alternative in 0.. {
                let (choice, mut next, mut footprint) =
                    (Choice { thread, alternative }, state.to_vec(), Footprint::new());
                match self.stepper.step_with_footprint(&mut next, choice, &mut footprint) {
                    Step::Moved { .. } | Step::Failed(_) => steps.push((choice, next, footprint)),
                    Step::Absent if alternative < MOST_ALTERNATIVES => {}
                    _ => break,
                }
            }
        }
        if steps.is_empty() {
            let note = |least: &mut u32| *least = preemptions.count().min(*least);
            note(self.traces.entry(self.graph.key()).or_insert(u32::MAX));
            note(self.ends.entry(state.to_vec()).or_insert(u32::MAX));
        }
        let enabled: ThreadSet = steps.iter().map(|(choice, ..)| choice.thread).collect();
        for (choice, next, footprint) in steps {
            let mut preemptions = preemptions;
            preemptions.step(choice.thread, enabled);
            self.graph.push(choice, &footprint);
            self.follow(&next, preemptions);
            self.graph.pop();
        }
    }
}

/// No step of a random program has more alternatives.
const MOST_ALTERNATIVES: u32 = 8;

/// The number of executions with at most `bound` preemptions.
fn within<K>(least: &BTreeMap<K, u32>, bound: u32) -> u64 {
    least.values().filter(|&&least| least <= bound).count() as u64
}

#[test]
fn random_programs_by_brute_force() {
    let (mut compared, mut failing, mut deep) = (0, 0, 0);
    for seed in 0..4_000 {
        let text = random::program(seed, Shape { threads: (2, 3), statements: 3 });
        let machine = preempt_lang::load(&Source::new("random.pre", text.as_str()), &[])
            .expect("random programs are programs");
        let full =
            Plan::new().keep_going().limits(Limits { states: Some(2_000), ..Limits::default() });
        let (outcome, machine) = full.build().expect("the plan is valid").run(machine, &Silent);
        if !outcome.complete
            || oracle::executions(&machine).is_none_or(|n| n.values().sum::<u128>() > 1_000)
        {
            continue;
        }
        compared += 1;
        let brute = BruteForce::of(&machine);
        let least = oracle::least_preemptions(&machine);
        failing += usize::from(!least.is_empty());
        deep += usize::from(brute.ends.values().any(|&least| least > 0));
        for cache in [Cache::None, Cache::State, Cache::Hb] {
            let what = format!("cache {cache:?} on\n{text}");
            let outcome = run(icb(cache), machine.clone());
            assert!(outcome.complete, "{what}");
            let found: BTreeMap<_, _> = outcome
                .findings
                .iter()
                .map(|f| (oracle::name(&f.failure), f.preemptions))
                .collect();
            assert_eq!(found, least, "least preemptions: {what}");
            for bound in &outcome.bounds {
                assert_eq!(
                    counted(bound.all.ends),
                    within(&brute.ends, bound.bound),
                    "ends: {what}"
                );
                if cache != Cache::State {
                    assert_eq!(
                        counted(bound.all.traces),
                        within(&brute.traces, bound.bound),
                        "traces: {what}"
                    );
                }
            }
            if cache == Cache::Hb {
                for bound in 0..outcome.bounds.len() as u32 {
                    let outcome =
                        run(Plan::new().order(Order::DfsHb).bound(bound), machine.clone());
                    assert_eq!(
                        outcome.traces(),
                        Some(within(&brute.traces, bound)),
                        "dfs-hb within {bound} on\n{text}"
                    );
                }
            }
            assert_eq!(
                counted(outcome.tally.and_then(|tally| tally.ends)),
                brute.ends.len() as u64,
                "all ends: {what}"
            );
            if cache != Cache::State {
                assert_eq!(outcome.traces(), Some(brute.traces.len() as u64), "all traces: {what}");
            }
        }
    }
    assert!(
        compared > 2_000 && failing > 1_000 && deep > 200,
        "{compared} programs, {failing} fail, {deep} need preemptions"
    );
}
