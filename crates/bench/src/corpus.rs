//! The corpus: subject programs with exact expectations, one folder each.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use preempt_explore::{Order, Outcome, Plan, Silent, oracle};
use preempt_lang::diagnostic;
use preempt_lang::source::Source;
use preempt_machine::Machine;
use serde::Deserialize;

/// A folder of the corpus: its `expect.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// A description of the program and its origin.
    pub about: String,
    /// The runs with their expected results.
    #[serde(rename = "run", default)]
    pub runs: Vec<Run>,
    /// The folder.
    #[serde(skip)]
    pub folder: PathBuf,
}

/// One run of a subject and its expected results. Missing values are not checked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The model.
    #[serde(default = "model")]
    pub file: String,
    /// Values of constants that differ from the text.
    #[serde(default)]
    pub set: BTreeMap<String, toml::Value>,
    /// How to search.
    pub strategy: StateSearch,
    /// The verdict, in one word.
    pub verdict: String,
    /// Whether the search continues after a finding.
    #[serde(default)]
    pub keep_going: bool,
    /// Distinct states.
    pub states: Option<u64>,
    /// Steps taken.
    pub steps: Option<u64>,
    /// Blocked threads, summed over the states.
    pub blocked: Option<u64>,
    /// Threads that have ended, summed over the states.
    pub ended: Option<u64>,
    /// The transitions as a paper counts them: steps and blocked threads, and ended ones if the
    /// next field says so.
    pub published: Option<u64>,
    /// Whether the paper counts a self-loop for a thread that has ended.
    #[serde(default)]
    pub published_counts_ended: bool,
    /// The least preemptions of the finding.
    pub preemptions: Option<u32>,
    /// A part of the finding's message.
    pub message: Option<String>,
    /// Too large for the tests.
    #[serde(default)]
    pub big: bool,
}

fn model() -> String {
    "model.pre".to_owned()
}

/// The strategies that expectations name.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum StateSearch {
    /// Full search, breadth first.
    Bfs,
    /// Full search, depth first.
    Dfs,
    /// Full search, breadth first and depth first, with the same counts.
    Full,
}

impl StateSearch {
    /// The orders that it denotes.
    pub fn orders(self) -> &'static [Order] {
        match self {
            StateSearch::Bfs => &[Order::BreadthFirst],
            StateSearch::Dfs => &[Order::DepthFirst],
            StateSearch::Full => &[Order::BreadthFirst, Order::DepthFirst],
        }
    }
}

/// The folder `corpus` of this repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")
}

/// All subjects, by name.
pub fn subjects() -> Result<Vec<Subject>> {
    let mut folders: Vec<PathBuf> =
        std::fs::read_dir(root())?.map(|e| Ok(e?.path())).collect::<Result<_>>()?;
    folders.retain(|folder| folder.join("expect.toml").exists());
    folders.sort();
    folders.iter().map(|folder| Subject::load(folder)).collect()
}

impl Subject {
    /// Reads the subject in a folder.
    pub fn load(folder: &Path) -> Result<Subject> {
        let file = folder.join("expect.toml");
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("reading {}", file.display()))?;
        let mut subject: Subject =
            toml::from_str(&text).with_context(|| format!("in {}", file.display()))?;
        subject.folder = folder.to_owned();
        Ok(subject)
    }

    /// The name of the folder.
    pub fn name(&self) -> String {
        self.folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// The path of the model of a run.
    pub fn machine(&self, run: &Run) -> Result<Machine> {
        let settings: Vec<(String, String)> =
            run.set.iter().map(|(name, v)| (name.clone(), v.to_string())).collect();
        machine(&self.folder.join(&run.file), &settings)
    }

    /// Runs it and compares.
    pub fn check(&self, run: &Run, order: Order) -> Result<Outcome> {
        let machine = self.machine(run)?;
        let mut plan = Plan::new().order(order);
        if run.keep_going {
            plan = plan.keep_going();
        }
        let search = plan.build().map_err(|refusal| anyhow::anyhow!("{refusal}"))?;
        let (outcome, machine) = search.run(machine, &Silent);
        run.compare(&outcome)?;
        // The oracle is too slow for large programs; their smaller sizes are compared.
        if let Some(expected) = run.preemptions.filter(|_| !run.big) {
            let fewest = oracle::least_preemptions(&machine).into_values().min();
            ensure!(
                fewest == Some(expected),
                "fewest preemptions: expected {expected}, found {fewest:?}"
            );
        }
        Ok(outcome)
    }
}

impl Run {
    fn compare(&self, outcome: &Outcome) -> Result<()> {
        let coverage = &outcome.coverage;
        let mut wrong = Vec::new();
        if outcome.verdict.word() != self.verdict {
            wrong.push(format!(
                "verdict: expected {}, found {}",
                self.verdict,
                outcome.verdict.word()
            ));
        }
        let ended = if self.published_counts_ended { coverage.ended } else { 0 };
        for (what, expected, found) in [
            ("states", self.states, coverage.states),
            ("steps", self.steps, coverage.transitions),
            ("blocked", self.blocked, coverage.blocked),
            ("ended", self.ended, coverage.ended),
            (
                "published transitions",
                self.published,
                coverage.transitions + coverage.blocked + ended,
            ),
        ] {
            if let Some(expected) = expected.filter(|&expected| expected != found) {
                wrong.push(format!("{what}: expected {expected}, found {found}"));
            }
        }
        if let Some(part) = &self.message {
            let messages: Vec<&str> =
                outcome.findings.iter().map(|f| f.failure.message.as_str()).collect();
            if !messages.iter().any(|message| message.contains(part)) {
                wrong.push(format!("message: expected {part:?}, found {messages:?}"));
            }
        }
        if !wrong.is_empty() {
            bail!("{}", wrong.join("; "));
        }
        Ok(())
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file.trim_end_matches(".pre"))?;
        self.set.iter().try_for_each(|(name, value)| write!(f, " {name}={value}"))?;
        if self.keep_going { write!(f, " keep-going") } else { Ok(()) }
    }
}

/// Runs the programs that are too large for the tests; returns whether all results are as expected.
pub fn run_big() -> Result<bool> {
    let mut good = true;
    for subject in subjects()? {
        for run in subject.runs.iter().filter(|run| run.big) {
            for &order in run.strategy.orders() {
                let word = match subject.check(run, order) {
                    Ok(outcome) => format!(
                        "as expected, {} states in {:.1} s",
                        outcome.coverage.states,
                        outcome.elapsed.as_secs_f64()
                    ),
                    Err(error) => {
                        good = false;
                        format!("{error:#}")
                    }
                };
                println!("{} {run} {order:?}: {word}", subject.name());
            }
        }
    }
    Ok(good)
}

/// The machine of a model file.
pub fn machine(file: &Path, settings: &[(String, String)]) -> Result<Machine> {
    let text =
        std::fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
    let source = Source::new(file.display().to_string(), text);
    preempt_lang::load(&source, settings).map_err(|diagnostics| {
        anyhow::anyhow!("{}", diagnostic::render(&source, &diagnostics, diagnostic::Style::Plain))
    })
}
