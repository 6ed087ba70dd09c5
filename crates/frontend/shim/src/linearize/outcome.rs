//! The result of checking a structure: what was covered, and what is wrong.

use std::fmt;

use preempt_explore::Outcome;
use preempt_report::json::Value as Json;
use preempt_report::number::counted;
use preempt_system::text::grouped;
use preempt_system::{FailureKind, MemoryModel};

/// The scenarios with one number of calls for each thread.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShapeCoverage {
    /// The number of calls of each thread.
    pub shape: Vec<usize>,
    /// The scenarios that were checked.
    pub scenarios: u64,
    /// The concurrent executions of these.
    pub executions: u64,
    /// The distinct histories of these.
    pub histories: u64,
}

/// A scenario that fails.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FailedScenario {
    /// The scenario, as `PREEMPT_SCENARIO` reads it: `push(1); pop() || pop()`.
    pub scenario: String,
    /// The kind of failure: [`FailureKind::Linearizability`], or an error that shows without
    /// comparing results, such as a data race or a panic.
    pub kind: FailureKind,
    /// The preemptions of the schedule. Switches between operations do not count.
    pub preemptions: u32,
    /// The results of the calls as a table, if they are what is wrong.
    pub table: Option<String>,
    /// The operations without which the structure satisfies the criterion, each on its own, if its
    /// results are all that is wrong in this scenario.
    pub without: Vec<String>,
    /// The whole report.
    pub text: String,
    /// The outcome of the search in this scenario.
    pub outcome: Box<Outcome>,
    /// The condition that does not hold: `linearizable`, `lock-free`.
    pub condition: String,
    pub(super) json: String,
}

/// The result of checking a structure.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LinearizeOutcome {
    /// The scenarios that were checked, the failed one included.
    pub scenarios: u64,
    /// The serial executions that are the specification.
    pub serial_executions: u64,
    /// The concurrent executions.
    pub executions: u64,
    /// The distinct histories of all scenarios.
    pub histories: u64,
    /// The distinct histories in which calls never return, as they do serially.
    pub stuck_histories: u64,
    /// The points of serial executions that the searches for witnesses visited.
    pub witness_nodes: u64,
    /// The scenarios that were explored under all schedules.
    pub exhaustive: u64,
    /// Coverage by shape, in the order in which they were checked. The last one is incomplete if
    /// the check stopped in it.
    pub shapes: Vec<ShapeCoverage>,
    /// The scenario that fails, if there is one. It is a smallest one: those before it passed.
    pub failed: Option<FailedScenario>,
    /// Why the check stopped before all scenarios were explored, if it did.
    pub stopped: Option<String>,
    pub(super) words: Words,
}

/// The parts of the sentence about coverage that the settings determine.
#[derive(Clone, Debug, Default)]
pub(super) struct Words {
    pub(super) criterion: String,
    /// The progress condition, if there is one.
    pub(super) progress: Option<&'static str>,
    pub(super) operations: Vec<String>,
    pub(super) calls: usize,
    pub(super) threads: usize,
    pub(super) per_thread: Option<usize>,
    pub(super) prefixes: usize,
    pub(super) given: Option<String>,
    pub(super) memory: MemoryModel,
    pub(super) specification: String,
    /// The lowest bound within which a scenario was explored that was not explored completely.
    pub(super) bound: Option<u32>,
    /// What samples covered, if schedules were drawn at random.
    pub(super) sample: Option<String>,
    pub(super) assumptions: Vec<String>,
    /// Prefixes that block, so that there is nothing to check after them.
    pub(super) blocked_prefixes: u64,
}

impl LinearizeOutcome {
    /// Whether all scenarios were explored, as far as the bound allows, and none fails.
    pub fn is_ok(&self) -> bool {
        self.failed.is_none() && self.stopped.is_none()
    }

    /// One sentence that says what was covered.
    pub fn guarantee(&self) -> String {
        let Words { criterion, specification, memory, .. } = &self.words;
        let scenarios = self.scenario_words();
        let explored = format!(
            "{}, {}",
            counted(self.executions, "execution"),
            match self.histories {
                1 => "1 history".to_owned(),
                histories => format!("{} histories", grouped(histories)),
            }
        );
        let schedules = self.schedule_words();
        let memory = match memory {
            MemoryModel::Weak => "weak memory",
            _ => "sequentially consistent memory",
        };
        let verdict = match (&self.failed, &self.stopped) {
            (Some(failed), _) => format!("not {}", failed.condition),
            (None, Some(why)) => format!("incomplete ({why})"),
            (None, None) => [criterion.as_str()]
                .iter()
                .chain(&self.words.progress)
                .copied()
                .collect::<Vec<_>>()
                .join(" and "),
        };
        let assumptions: String =
            self.words.assumptions.iter().map(|of| format!("; assuming {of}")).collect();
        format!(
            "{verdict}: {scenarios}; {explored}; {schedules}; {memory}; specification: \
             {specification}{assumptions}"
        )
    }

    fn scenario_words(&self) -> String {
        let Words { operations, calls, threads, per_thread, prefixes, given, .. } = &self.words;
        if let Some(given) = given {
            return format!("the scenario {given}");
        }
        let complete = self.is_ok();
        let all = if complete && self.scenarios > 1 { "all " } else { "" };
        let each = per_thread.map(|most| format!(", at most {most} each")).unwrap_or_default();
        let prefixes = match prefixes {
            0 => String::new(),
            most => {
                format!(", after every serial prefix of up to {}", counted(*most as u64, "call"))
            }
        };
        let blocked = match self.words.blocked_prefixes {
            0 => String::new(),
            some => format!(" ({} with a prefix that blocks left out)", counted(some, "scenario")),
        };
        format!(
            "{all}{} of up to {calls} calls of {} by up to {threads} threads{each}{prefixes}{blocked}",
            counted(self.scenarios, "scenario"),
            operations.join(", ")
        )
    }

    fn schedule_words(&self) -> String {
        if let Some(sample) = &self.words.sample {
            return format!("a sample of the schedules: {sample}");
        }
        let passed = self.scenarios - u64::from(self.failed.is_some());
        let bounded = passed.saturating_sub(self.exhaustive);
        let within = self.words.bound.map_or_else(
            || "within the limits".to_owned(),
            |bound| {
                format!("with at most {} inside operations", counted(bound.into(), "preemption"))
            },
        );
        match (self.exhaustive, bounded) {
            (_, 0) => "under all schedules".to_owned(),
            (0, _) => within,
            (exhaustive, _) => {
                format!("{} of them under all schedules, the others {within}", grouped(exhaustive))
            }
        }
    }

    /// The outcome as one JSON object. `check` is the failing scenario in the format of
    /// [`Check::json`](crate::Check::json), or null.
    pub fn json(&self) -> String {
        let number = |value: u64| Json::Number(value);
        let shapes = self.shapes.iter().map(|shape| {
            let calls = shape.shape.iter().map(|&calls| Json::from(calls)).collect();
            Json::Object(vec![
                ("calls", Json::List(calls)),
                ("scenarios", number(shape.scenarios)),
                ("executions", number(shape.executions)),
                ("histories", number(shape.histories)),
            ])
        });
        let text = |text: &str| Json::Text(text.to_owned());
        let failed = self.failed.as_ref().map_or(Json::Null, |failed| {
            let without = failed.without.iter().map(|name| text(name)).collect();
            Json::Object(vec![
                ("scenario", text(&failed.scenario)),
                ("kind", text(failed.kind.word())),
                ("preemptions", Json::from(failed.preemptions)),
                ("table", failed.table.as_deref().map_or(Json::Null, text)),
                ("without", Json::List(without)),
            ])
        });
        let linearize = Json::Object(vec![
            ("ok", Json::Bool(self.is_ok())),
            ("guarantee", text(&self.guarantee())),
            ("scenarios", number(self.scenarios)),
            ("serial_executions", number(self.serial_executions)),
            ("executions", number(self.executions)),
            ("histories", number(self.histories)),
            ("stuck_histories", number(self.stuck_histories)),
            ("exhaustive", number(self.exhaustive)),
            ("shapes", Json::List(shapes.collect())),
            ("stopped", self.stopped.as_deref().map_or(Json::Null, text)),
            ("failed", failed),
        ]);
        let check = self.failed.as_ref().map_or("null", |failed| failed.json.trim());
        format!("{{\"linearize\":{linearize},\"check\":{check}}}\n")
    }
}

impl fmt::Display for LinearizeOutcome {
    /// The report of a failure, or what was covered.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.failed {
            Some(failed) => f.write_str(&failed.text),
            None => f.write_str(&self.guarantee()),
        }
    }
}
