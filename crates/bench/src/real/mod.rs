//! Known concurrency bugs in unmodified crates (`corpus/real`): each is found in the affected
//! version and not in the fixed one.
//!
//! Everything goes through `cargo preempt test`, as a user would call it. Crates come from the
//! registry by their lock files.

mod cargo;
mod case;

use anyhow::{Context, Result, bail};
use preempt_report::number::time;

pub(crate) use self::cargo::cargo_preempt;
use self::cargo::{Explored, explore, stress};
pub use self::case::{Case, Expected, cases};
use crate::table::{Table, absent, grouped};

/// The cases to explore, and the time limit.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Only the cases with these names; all if there are none.
    pub only: Vec<String>,
    /// The most seconds of one search.
    pub seconds: u32,
}

/// Explores the cases and prints the table. Returns whether all came out as expected.
pub fn run(ask: &Ask) -> Result<bool> {
    let mut all = cases()?;
    if let Some(name) = ask.only.iter().find(|name| all.iter().all(|case| case.name != **name)) {
        bail!("there is no case {name} in corpus/real/cases.toml");
    }
    all.retain(|case| ask.only.is_empty() || ask.only.contains(&case.name));
    let heads = [
        "case",
        "affected",
        "error",
        "executions",
        "preemptions",
        "time",
        "fixed",
        "executions",
        "preemptions",
        "native runs",
        "failed",
    ];
    let mut table = Table::new(heads);
    let mut wrong = Vec::new();
    for case in &all {
        let row = row(case, ask).with_context(|| case.name.clone())?;
        if let Some(why) = row.differs(case) {
            wrong.push(format!("{}: {why}", case.name));
        }
        table.row(row.cells(case));
        // Searches take long, so intermediate results are shown.
        let verdict = &row.affected.verdict;
        eprintln!("{}: {verdict}; {}", case.name, row.cells(case).join("  "));
    }
    print!("{}", table.to_text());
    wrong.iter().for_each(|why| println!("{why}"));
    Ok(wrong.is_empty())
}

/// The measurements of one case.
struct Row {
    affected: Explored,
    fixed: Explored,
    /// The results of the scenario in a loop without Preempt, for as long as the search took: how
    /// often it ran, and how it failed.
    native: (Option<u64>, String),
}

fn row(case: &Case, ask: &Ask) -> Result<Row> {
    let affected = explore(&case.folder(), &case.search, ask.seconds)?;
    let fixed = explore(&case.folder().join("fixed"), &case.search, ask.seconds)?;
    let native = stress(&case.folder(), affected.seconds)?;
    Ok(Row { affected, fixed, native })
}

impl Row {
    /// How the result differs from the expected one, if it does.
    fn differs(&self, case: &Case) -> Option<String> {
        let found = self.affected.finding.as_ref();
        match (case.expected, found) {
            (Expected::Found, None) => {
                Some(format!("not found in {}: {}", case.affected, self.affected.guarantee))
            }
            (Expected::OutOfReach, Some(finding)) => {
                Some(format!("found, although it is called out of reach: {}", finding.message))
            }
            _ => self.fixed.finding.as_ref().map(|finding| {
                format!("found in {}, which is fixed: {}", case.fixed, finding.message)
            }),
        }
    }

    fn cells(&self, case: &Case) -> [String; 11] {
        let Row { affected, fixed, native } = self;
        let finding = affected.finding.as_ref();
        let seconds = std::time::Duration::from_secs_f64(affected.seconds);
        [
            format!("{} {}", case.krate, case.source),
            case.affected.clone(),
            finding.map_or_else(absent, |finding| finding.kind.clone()),
            grouped(affected.executions),
            finding.map_or_else(absent, |finding| finding.preemptions.to_string()),
            time(seconds),
            case.fixed.clone(),
            grouped(fixed.executions),
            fixed.covered(),
            native.0.map_or_else(absent, grouped),
            native.1.clone(),
        ]
    }
}
