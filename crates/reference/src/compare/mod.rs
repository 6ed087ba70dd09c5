//! Compares the product's searches with the reference on one program.
//!
//! This is the only module of the crate that uses the product's machine and searches.

pub mod plans;
pub mod weak;
pub mod weak_objects;

use std::any::Any;
use std::collections::BTreeSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::LazyLock;

use preempt_explore::{Outcome, Plan, Search, Silent};
use preempt_lang::source::Source;
use preempt_lang::syntax::ast::File;
use preempt_lang::syntax::parse;
use preempt_machine::Machine;
use preempt_system::FailureKind;

use self::plans::{Expected, label, plans};
use crate::coverage::Coverage;
use crate::executions::{self, Most, Unknown};
use crate::graph;
use crate::model::Model;
use crate::run::{Failure, Kind};

/// A question to which the product and the reference give different answers.
#[derive(Clone, Debug)]
pub struct Disagreement {
    /// The search that gave the product's answer.
    pub search: String,
    /// The quantity or property compared.
    pub what: &'static str,
    /// The answer of the reference.
    pub expected: String,
    /// The answer of the product.
    pub found: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {}: expected {}, found {}",
            self.search, self.what, self.expected, self.found
        )
    }
}

/// The extent of a comparison.
#[derive(Clone, Debug)]
pub struct Compared {
    /// The searches that were compared.
    pub plans: Vec<Plan>,
    /// Why there is none over executions, if so.
    pub without_executions: Option<Unknown>,
}

/// The result of a comparison.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// The product and the reference agree.
    Agree(Compared),
    /// The program is too large for brute force.
    TooLarge,
    /// The program has weak memory or memory orderings, which the reference does not interpret.
    Orderings,
    /// The product rejects the program with this message.
    Refused(String),
    /// The product or the reference is wrong.
    Disagree(Disagreement),
}

/// Programs with more states than this are too large for brute force.
pub const MOST_STATES: usize = 3_000;

/// Searches over executions are compared only on programs with executions within these limits.
pub const MOST_EXECUTIONS: Most = Most { executions: 1_000, steps: 40_000 };

/// The plans to compare on a program.
#[derive(Clone, Copy, Debug)]
pub enum Selection {
    /// Every plan.
    All,
    /// The first plan and every seventh of the others. The number selects which ones, so that over
    /// many programs every plan is used.
    Some(u64),
    /// The first plan, a search over all states. Executions are not enumerated, so many more
    /// programs can be compared in the same time.
    First,
}

/// The number of parts into which [`Selection::Some`] divides the plans.
const PARTS: u64 = 7;

impl Selection {
    fn plans(self) -> impl Iterator<Item = Plan> {
        static ALL: LazyLock<Vec<Plan>> = LazyLock::new(plans);
        let chosen = move |at: usize| match self {
            Selection::All => true,
            Selection::Some(number) => at == 0 || at as u64 % PARTS == number % PARTS,
            Selection::First => at == 0,
        };
        ALL.iter().copied().enumerate().filter(move |&(at, _)| chosen(at)).map(|(_, plan)| plan)
    }
}

/// Compares searches with the reference on a program. A panic of the product or of the reference
/// counts as a disagreement.
pub fn compare(text: &str, selection: Selection) -> Verdict {
    catch_unwind(|| compare_or_panic(text, selection)).unwrap_or_else(|panic| {
        Verdict::Disagree(Disagreement {
            search: "front end or reference".to_owned(),
            what: "panic",
            expected: "none".to_owned(),
            found: words(&*panic),
        })
    })
}

fn compare_or_panic(text: &str, selection: Selection) -> Verdict {
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
    let mut coverage = Coverage::default();
    coverage.add(&file);
    if coverage.has_orderings() {
        return Verdict::Orderings;
    }
    let model = Model::new(&file, &source);
    let Ok(graph) = graph::explore(&model, MOST_STATES) else { return Verdict::TooLarge };
    let executions = match selection {
        _ if graph.cyclic => Err(Unknown::Endless),
        Selection::First => Err(Unknown::TooMany),
        Selection::All | Selection::Some(_) => executions::all(&model, MOST_EXECUTIONS),
    };
    let without_executions = executions.as_ref().err().copied();
    let fails = graph.failures.keys().any(|failure| failure.kind == Kind::Runtime);
    let heap = text.contains("new ");
    let traces = !fails && !heap;
    let expected = Expected { graph, executions: executions.ok(), traces, heap };
    let compared = searches(&machine, &expected, selection);
    // The walks are so short that a search meets other values and has to release cells.
    let narrow = || machine.clone().pack_for_observed_values(20);
    match compared.and_then(|plans| {
        same_coverage(&machine, &model, &file)?;
        searches(&narrow(), &expected, Selection::First)?;
        Ok(plans)
    }) {
        Ok(plans) => Verdict::Agree(Compared { plans, without_executions }),
        Err(disagreement) => Verdict::Disagree(disagreement),
    }
}

/// Runs the plans that apply to the program.
fn searches(
    machine: &Machine,
    expected: &Expected,
    selection: Selection,
) -> Result<Vec<Plan>, Disagreement> {
    let mut compared = Vec::new();
    for plan in selection.plans() {
        let search = plan.build().expect("only plans that can be built are listed");
        if !expected.covers(&plan) || search.suits(machine).is_err() {
            continue;
        }
        expected.check(&plan, &run(&search, machine, &plan)?)?;
        compared.push(plan);
    }
    Ok(compared)
}

/// Compares the lines of statements that no execution has begun. All searches of a machine share
/// the record of what was reached, and the first one visits all states.
fn same_coverage(machine: &Machine, model: &Model<'_>, file: &File) -> Result<(), Disagreement> {
    let unreached = machine.unreached();
    let statements = unreached.iter().filter(|lines| lines.outcome.is_none());
    let lines: BTreeSet<u32> = statements.flat_map(|lines| lines.first..=lines.last).collect();
    let all = model.statement_lines(file);
    let expected: BTreeSet<u32> = all.difference(&model.begun.borrow()).copied().collect();
    // The lines between two statements may be a single brace, and of several statements on one line
    // some may be reached.
    let found: BTreeSet<u32> = lines.intersection(&all).copied().collect();
    if found == expected {
        return Ok(());
    }
    Err(Disagreement {
        search: "statement coverage".to_owned(),
        what: "unreached lines",
        expected: format!("{expected:?}"),
        found: format!("{found:?}"),
    })
}

/// Runs a search. A panic is a bug of the product.
fn run(search: &Search, machine: &Machine, plan: &Plan) -> Result<Outcome, Disagreement> {
    let run = || search.run(machine.clone(), &Silent).0;
    catch_unwind(AssertUnwindSafe(run)).map_err(|panic| Disagreement {
        search: label(plan),
        what: "panic",
        expected: "none".to_owned(),
        found: words(&*panic),
    })
}

fn words(panic: &(dyn Any + Send)) -> String {
    let words = panic.downcast_ref::<String>().cloned();
    words.or_else(|| panic.downcast_ref::<&str>().map(|&s| s.to_owned())).unwrap_or_default()
}

/// The failures of an outcome, converted to the reference's type.
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
    // The language does not define at which line an endless step is detected.
    let line = if failure.message.starts_with("this step never ends") { 0 } else { line(failure) };
    Failure { kind, line, message: unnamed(&failure.message) }
}

/// The message without the name of the variable for which a value is too large: the name of an
/// element may contain the index as written or its value.
fn unnamed(message: &str) -> String {
    match message.split_once(" of `").map(|(before, after)| (before, after.rsplit_once("`: "))) {
        Some((before, Some((_, range)))) => format!("{before}: {range}"),
        _ => message.to_owned(),
    }
}

fn line(failure: &preempt_system::Failure) -> u32 {
    failure.site.as_ref().map_or(0, |site| site.line)
}
