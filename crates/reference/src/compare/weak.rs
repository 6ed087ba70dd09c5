//! Random litmus programs as models with weak memory, compared with the axioms of the memory model
//! or, if they have mutexes, with all executions.

use std::collections::BTreeSet;

use preempt_explore::{Order, Outcome, Plan, Reduction, Silent, Subject};
use preempt_lang::source::Source;
use preempt_litmus::random::{self, Random, Shape};
use preempt_litmus::{Program, axioms};
use preempt_system::{FailureKind, MemoryModel};

use super::weak_objects::{OBJECTS, compare_objects};
use crate::litmus_models::{model, model_of_outcomes};

/// The most candidates for executions that the axioms are applied to.
const MOST_CANDIDATES: usize = 10_000;

/// The most executions that are taken without a reduction.
const MOST_EXECUTIONS: u64 = 3_000;

/// The result of a comparison.
#[derive(Clone, Debug)]
pub enum WeakVerdict {
    /// The graphs and the outcomes agree.
    Agree {
        /// The number of graphs.
        graphs: u64,
        /// The number of times that the search over graphs has added an event in vain: no complete
        /// graph follows.
        dead_ends: u64,
    },
    /// The program is too large for brute force.
    TooLarge,
    /// They do not: the program, and what differs.
    Disagree(String),
}

/// The usual plan for models with weak memory.
pub fn weak() -> Plan {
    let plan = Plan { memory: MemoryModel::Weak, shrink: None, ..Plan::new() };
    plan.choose(None, None, Subject::WeakModel)
}

/// The search over execution graphs.
pub fn graphs() -> Plan {
    weak().choose(None, Some(Reduction::Graphs), Subject::WeakModel)
}

/// Searches a model.
pub fn search(plan: Plan, text: &str) -> Outcome {
    let search = plan.build().expect("the plan is possible");
    let machine = preempt_lang::load(&Source::new("litmus.pre", text), &[])
        .unwrap_or_else(|errors| panic!("{text}\n{errors:?}"));
    search.suits(&machine).expect("the search suits the model");
    search.run(machine, &Silent).0
}

/// The number of executions and of graphs.
pub fn numbers(outcome: &Outcome) -> (u64, u64) {
    let executions = outcome.tally.map(|tally| tally.executions);
    (executions.expect("executions are counted"), outcome.traces().expect("graphs are counted"))
}

/// The messages of the assertions that fail, as outcomes: see [`model_of_outcomes`].
pub fn asserted(plan: Plan, text: &str) -> BTreeSet<String> {
    let findings = search(plan.keep_going(), text).findings.into_iter();
    let asserted = findings.filter(|finding| finding.failure.kind == FailureKind::Assertion);
    let outcomes = asserted.map(|finding| {
        let message = finding.failure.message;
        let outcome =
            message.strip_prefix("assertion failed: ").expect("a failed assertion has this prefix");
        if outcome == "no registers" { String::new() } else { outcome.to_owned() }
    });
    outcomes.collect()
}

/// The program of a seed. Every fourth has mutexes.
pub fn program(seed: u64) -> Program {
    let mut random = Random(seed);
    let mutexes = seed % 4 == 3;
    random::program(&mut random, Shape { threads: 3, length: if mutexes { 3 } else { 4 }, mutexes })
}

/// Compares the searches of the program of a seed with brute force. Every eighth has an object that
/// blocks.
pub fn compare_weak(seed: u64) -> WeakVerdict {
    if seed % 8 == 7 {
        let object = OBJECTS[(seed / 8) as usize % OBJECTS.len()];
        return compare_objects(object, seed);
    }
    let program = program(seed);
    if program.mutexes.contains(&true) { with_executions(&program) } else { with_axioms(&program) }
}

fn with_axioms(program: &Program) -> WeakVerdict {
    let Some(expected) = axioms::consistent(program, MOST_CANDIDATES) else {
        return WeakVerdict::TooLarge;
    };
    let count = expected.len() as u64;
    let allowed: BTreeSet<String> = expected.into_values().collect();
    let outcome = search(graphs(), &model(program));
    let found = numbers(&outcome);
    if found != (count, count) {
        return disagree(program, &format!("{found:?} instead of {count} graphs"));
    }
    let text = model_of_outcomes(program, allowed.iter().map(|text| &**text));
    for plan in [graphs(), weak()] {
        let found = asserted(plan, &text);
        if found != allowed {
            return disagree(program, &format!("{found:?} instead of {allowed:?}"));
        }
    }
    agree(&outcome)
}

fn with_executions(program: &Program) -> WeakVerdict {
    compare_text(&model(program))
}

/// Compares the search over the graphs of a model with all its executions.
pub(super) fn compare_text(text: &str) -> WeakVerdict {
    let mut all = weak().order(Order::Executions).keep_going();
    all.limits.executions = Some(MOST_EXECUTIONS);
    let (executions, count) = numbers(&search(all, text));
    if executions >= MOST_EXECUTIONS {
        return WeakVerdict::TooLarge;
    }
    let outcome = search(graphs().keep_going(), text);
    let found = numbers(&outcome);
    if found != (count, count) {
        return WeakVerdict::Disagree(format!("{text}: {found:?} instead of {count} graphs"));
    }
    agree(&outcome)
}

/// The verdict about a search over graphs whose numbers are right.
fn agree(outcome: &Outcome) -> WeakVerdict {
    let dead_ends = outcome.tally.map_or(0, |tally| tally.pruned);
    WeakVerdict::Agree { graphs: numbers(outcome).1, dead_ends }
}

fn disagree(program: &Program, what: &str) -> WeakVerdict {
    WeakVerdict::Disagree(format!("{}: {what}", program.show()))
}
