//! The searches of the product against the reference, on one program.
//!
//! This is the only part of the crate that knows the product's machine and searches.

use std::collections::BTreeSet;
use std::fmt;

use preempt_explore::{Order, Outcome, Plan, Silent, StoreKind};
use preempt_lang::machine::Machine;
use preempt_lang::source::Source;
use preempt_lang::syntax::parse;
use preempt_system::FailureKind;

use crate::graph::{self, Graph};
use crate::model::Model;
use crate::run::{Failure, Kind};

/// Two answers to one question.
#[derive(Clone, Debug)]
pub struct Disagreement {
    /// Who was asked: the search.
    pub search: String,
    /// About what.
    pub what: &'static str,
    /// The answer of the reference.
    pub expected: String,
    /// The answer of the product.
    pub found: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: expected {}, found {}", self.search, self.what, self.expected, self.found)
    }
}

/// What became of a comparison.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// All agree; how many searches were compared.
    Agree(u64),
    /// The program is too large for brute force.
    TooLarge,
    /// The product refuses the program, with this message.
    Refused(String),
    /// Somebody is wrong.
    Disagree(Disagreement),
}

/// Programs with more states than these are too large.
pub const MOST_STATES: usize = 3_000;

/// Compares all searches on a program. A panic, of the product or of the reference, is a disagreement.
pub fn compare(text: &str) -> Verdict {
    let outcome = std::panic::catch_unwind(|| compare_or_panic(text));
    outcome.unwrap_or_else(|panic| {
        let words = panic.downcast_ref::<String>().cloned();
        let words = words.or_else(|| panic.downcast_ref::<&str>().map(|&s| s.to_owned()));
        Verdict::Disagree(Disagreement {
            search: "any".to_owned(),
            what: "panic",
            expected: "none".to_owned(),
            found: words.unwrap_or_default(),
        })
    })
}

fn compare_or_panic(text: &str) -> Verdict {
    let source = Source::new("random.pre", text);
    let machine = match preempt_lang::load(&source, &[]) {
        Ok(machine) => machine,
        Err(diagnostics) => {
            let first = &diagnostics[0];
            let line = source.site(first.span).line;
            return Verdict::Refused(format!("line {line}: {}", first.message));
        }
    };
    let (file, _) = parse(&source);
    let model = Model::new(&file, &source);
    let Ok(expected) = graph::explore(&model, MOST_STATES) else { return Verdict::TooLarge };
    match searches(&machine, &expected) {
        Ok(searches) => Verdict::Agree(searches),
        Err(disagreement) => Verdict::Disagree(disagreement),
    }
}

fn searches(machine: &Machine, expected: &Graph) -> Result<u64, Disagreement> {
    let mut searches = 0;
    for order in [Order::BreadthFirst, Order::DepthFirst] {
        for (store, jobs) in [(StoreKind::Exact, 1), (StoreKind::Tree, 1), (StoreKind::Exact, 2)] {
            let plan = Plan::new().order(order).store(store).jobs(jobs).keep_going();
            let search = format!("{order:?}, {store:?}, {jobs} jobs");
            states(&search, &run(plan, machine), expected)?;
            searches += 1;
        }
    }
    Ok(searches)
}

fn run(plan: Plan, machine: &Machine) -> Outcome {
    let search = plan.build().expect("only plans that can be built are compared");
    search.run(machine.clone(), &Silent).0
}

/// A search over states that keeps going.
fn states(search: &str, outcome: &Outcome, expected: &Graph) -> Result<(), Disagreement> {
    let same = |what, expected: &dyn fmt::Debug, found: &dyn fmt::Debug| {
        let (expected, found) = (format!("{expected:?}"), format!("{found:?}"));
        let disagreement = Disagreement { search: search.to_owned(), what, expected, found };
        if disagreement.expected == disagreement.found { Ok(()) } else { Err(disagreement) }
    };
    let wanted: BTreeSet<Failure> = expected.failures.keys().cloned().collect();
    same("failures", &wanted, &failures(outcome))?;
    if expected.states == 0 {
        // It fails before the first step.
        return Ok(());
    }
    let seen = &outcome.coverage;
    same("states", &expected.states, &seen.states)?;
    same("transitions", &expected.transitions, &seen.transitions)?;
    same("waiting threads", &expected.blocked, &seen.blocked)?;
    same("ended threads", &expected.ended, &seen.ended)?;
    same("complete", &true, &outcome.complete)
}

/// The failures of an outcome in the form of the reference.
fn failures(outcome: &Outcome) -> BTreeSet<Failure> {
    outcome.findings.iter().map(|finding| name(&finding.failure)).collect()
}

fn name(failure: &preempt_system::Failure) -> Failure {
    let kind = match failure.kind {
        FailureKind::Assertion => Kind::Assertion,
        FailureKind::Invariant => Kind::Invariant,
        FailureKind::Runtime => Kind::Runtime,
        FailureKind::Deadlock => Kind::Deadlock,
        FailureKind::Race => Kind::Race,
        other => panic!("a model has no {other:?}"),
    };
    // Where a step without end was found out to have none is nothing that the language says.
    let line = if failure.message.starts_with("this step never ends") { 0 } else { line(failure) };
    Failure { kind, line, message: failure.message.clone() }
}

fn line(failure: &preempt_system::Failure) -> u32 {
    failure.site.as_ref().map_or(0, |site| site.line)
}
