//! Every figure of `data/reductions.toml`, reproduced by every reduction to which it applies.

use std::collections::BTreeMap;

use preempt_bench::corpus;
use preempt_explore::reduce::dpor::Sleep;
use preempt_explore::reduce::{Dependence, cb_por, dpor, sleep};
use preempt_machine::Machine;
use serde::Deserialize;

use super::watch::{Collect, again_with};

#[derive(Deserialize)]
struct Data {
    program: Vec<Program>,
}

/// The expected figures of a program; lists are indexed by the bound.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    pub file: String,
    #[serde(default)]
    set: BTreeMap<String, toml::Value>,
    #[serde(default)]
    dependence: Option<String>,
    graphs: Option<u64>,
    all_traces: Option<u64>,
    all_states: Option<u64>,
    all_steps: Option<u64>,
    pub traces: Vec<u64>,
    #[serde(default)]
    states: Vec<u64>,
    #[serde(default)]
    steps: Vec<u64>,
}

impl Program {
    fn dependence(&self) -> Dependence {
        match self.dependence.as_deref() {
            None | Some("read/write") => Dependence::ReadWrite,
            Some("all") => Dependence::All,
            Some(other) => panic!("no dependence: {other}"),
        }
    }

    pub fn machine(&self) -> Machine {
        let settings: Vec<(String, String)> =
            self.set.iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
        corpus::machine(&corpus::root().join(&self.file), &settings).expect("the corpus is well")
    }

    fn collect(&self) -> Collect {
        Collect { dependence: self.dependence(), ..Collect::default() }
    }

    fn name(&self) -> String {
        format!("{} {:?} {:?}", self.file, self.set, self.dependence())
    }

    /// Compares both algorithms of cb-por, for one bound.
    pub fn check_bound(&self, bound: usize) -> Result<(), String> {
        let name = format!("{}, bound {bound}", self.name());
        let config = cb_por::Config {
            bound: bound as u32,
            dependence: self.dependence(),
            ..cb_por::Config::default()
        };
        let (known, steps) = (self.states.get(bound), self.steps.get(bound));
        let ((two, seen), machine) = again_with(
            self.machine(),
            || self.collect(),
            |cursor, c| cb_por::terminals(cursor, c, &config),
        );
        two.check_terminals().map_err(|invariant| format!("{name}: {invariant}: {two:?}"))?;
        equal(&name, "executions of Algorithm 2", two.executions, self.traces.get(bound))?;
        equal(&name, "distinct traces", seen.seen.traces.len() as u64, self.traces.get(bound))?;
        equal(&name, "marks", two.marks, known)?;
        equal(&name, "evaluations of Mark", two.evaluations, steps)?;
        if known.is_some_and(|&states| states < 100_000) {
            let ((one, _), _) = again_with(
                machine,
                || self.collect(),
                |cursor, c| cb_por::states(cursor, c, &config),
            );
            one.check_states().map_err(|invariant| format!("{name}: {invariant}: {one:?}"))?;
            equal(&name, "search calls of Algorithm 1", one.searches, known)?;
            equal(&name, "terminals of Algorithm 1", one.executions, self.traces.get(bound))?;
        }
        Ok(())
    }
}

fn equal(name: &str, what: &str, found: u64, expected: Option<&u64>) -> Result<(), String> {
    match expected {
        Some(&expected) if expected != found => {
            Err(format!("{name}: {what}: expected {expected}, found {found}"))
        }
        _ => Ok(()),
    }
}

pub fn programs() -> Vec<Program> {
    let text = include_str!("../../../data/reductions.toml");
    toml::from_str::<Data>(text).expect("the data is well").program
}

/// Searches with more executions take too long for a test; every program has smaller bounds.
const LARGE: u64 = 6_000;

#[test]
fn cb_por_reproduces_the_counts() {
    for program in programs() {
        for bound in (0..program.traces.len()).filter(|&bound| program.traces[bound] < LARGE) {
            program.check_bound(bound).unwrap_or_else(|wrong| panic!("{wrong}"));
        }
    }
}

#[test]
fn unbounded_reductions_find_every_trace_once() {
    for program in programs().into_iter().filter(|program| program.all_traces.is_some()) {
        let (name, dependence) = (program.name(), program.dependence());
        let collect = || program.collect();
        let ((asleep, seen), machine) = again_with(program.machine(), collect, |cursor, c| {
            sleep::sleep_sets(cursor, c, dependence)
        });
        let ((source, same), machine) =
            again_with(machine, collect, |cursor, c| dpor::source(cursor, c, dependence));
        let ((optimal, again), machine) =
            again_with(machine, collect, |cursor, c| dpor::optimal(cursor, c, dependence));
        let traces = program.all_traces.as_ref();
        for (what, found, expected) in [
            ("sleep sets, executions", asleep.executions, traces),
            ("sleep sets, traces", seen.seen.traces.len() as u64, traces),
            ("sleep sets, places", asleep.nodes, program.all_states.as_ref()),
            ("source-DPOR, executions", source.executions, traces),
            ("source-DPOR, traces", same.seen.traces.len() as u64, traces),
            ("optimal DPOR, executions", optimal.executions, traces),
            ("optimal DPOR, traces", again.seen.traces.len() as u64, traces),
            ("optimal DPOR, given up", optimal.covered, Some(&0)),
        ] {
            equal(&name, what, found, expected).unwrap_or_else(|wrong| panic!("{wrong}"));
        }
        if program.file.starts_with("zoo") {
            let ((_, all), _) = again_with(machine, collect, |cursor, c| {
                dpor::flanagan_godefroid(cursor, c, dependence, Sleep::Never)
            });
            equal(&name, "Flanagan–Godefroid, traces", all.seen.traces.len() as u64, traces)
                .unwrap_or_else(|wrong| panic!("{wrong}"));
            // With a large bound, all steps are within it.
            let all_bound = cb_por::Config { bound: 100, ..cb_por::Config::default() };
            let ((counts, _), _) = again_with(program.machine(), collect, |cursor, c| {
                cb_por::terminals(cursor, c, &all_bound)
            });
            equal(&name, "all steps", counts.evaluations, program.all_steps.as_ref())
                .unwrap_or_else(|wrong| panic!("{wrong}"));
            assert_eq!(counts.bounded, 0, "{name}: a bound of 100 leaves nothing out");
        }
    }
}

#[test]
fn reads_may_count_as_writes() {
    for program in programs().into_iter().filter(|program| program.graphs.is_some()) {
        let (all, graphs) = (Dependence::All, program.graphs.as_ref());
        let collect = || Collect { dependence: all, ..Collect::default() };
        let bound = cb_por::Config { bound: 100, dependence: all, ..cb_por::Config::default() };
        let machine = program.machine();
        let ((asleep, seen), machine) =
            again_with(machine, collect, |cursor, c| sleep::sleep_sets(cursor, c, all));
        let ((source, _), machine) =
            again_with(machine, collect, |cursor, c| dpor::source(cursor, c, all));
        let ((optimal, _), machine) =
            again_with(machine, collect, |cursor, c| dpor::optimal(cursor, c, all));
        let ((terminals, _), _) =
            again_with(machine, collect, |cursor, c| cb_por::terminals(cursor, c, &bound));
        for (what, found) in [
            ("traces", seen.seen.traces.len() as u64),
            ("sleep sets", asleep.executions),
            ("source-DPOR", source.executions),
            ("optimal DPOR", optimal.executions),
            ("cb-por", terminals.executions),
        ] {
            equal(&program.file, what, found, graphs).unwrap_or_else(|wrong| panic!("{wrong}"));
        }
    }
}
