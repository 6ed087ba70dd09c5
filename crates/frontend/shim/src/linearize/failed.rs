//! A scenario that fails: its report, and the operations without which the structure passes.

use preempt_linearize::{Scenario, witness};
use preempt_report::text_report::row;
use preempt_system::{FailureKind, Finding};

use super::driver::{Checked, Driver};
use super::explain;
use super::outcome::FailedScenario;
use super::scene::{Scene, Violation, ViolationKind};
use crate::Refusal;
use crate::check::Explored;
use crate::report::{Format, layout};

impl<H: 'static> Driver<H> {
    /// Checks a scenario that fails once more, for its report.
    pub(super) fn report(
        &self,
        scenario: &Scenario,
        prefix: &[usize],
    ) -> Result<FailedScenario, Refusal> {
        let scene = self.scene(scenario, prefix);
        let (_, explored, _) = self.explore(&scene, &self.settings(), Format::Failure)?;
        let finding = explored.as_ref().and_then(|explored| explored.outcome.findings.first());
        let (Some(finding), Some(Explored { outcome, text: trace, .. })) =
            (finding.cloned(), explored)
        else {
            return Err(Refusal::Test(format!(
                "{} failed, and does not fail again: the structure depends on something other than \
                 its calls and the schedule",
                scene.text()
            )));
        };
        let kind = finding.failure.kind;
        let violation = scene.violation().filter(|_| kind == FailureKind::Linearizability);
        if let Some(violation) = &violation {
            refuse_special(&scene, violation)?;
        }
        let without = match &violation {
            Some(of) if matches!(of.kind, ViolationKind::Unexplained(_)) => {
                self.without(&scene, of, scenario.calls())
            }
            _ => Vec::new(),
        };
        let condition = violation.as_ref().map_or_else(
            || self.subject.criterion.word().into_owned(),
            |violation| scene.condition(violation),
        );
        let table = violation.as_ref().map(|of| explain::table(&scene, &of.history));
        let text = self.text(&scene, violation.as_ref(), &without, &finding, &trace);
        let (_, again, _) = self.explore(&scene, &self.settings(), Format::Json)?;
        let json = again.map_or_else(|| "null".to_owned(), |explored| explored.text);
        Ok(FailedScenario {
            scenario: scene.text(),
            kind,
            preemptions: finding.preemptions,
            table,
            without,
            text,
            outcome: Box::new(outcome),
            condition,
            json,
        })
    }

    /// The report: what is wrong, the results as a table, why no serial order explains them, and
    /// the report of the search, with the interleaving and the command that replays it.
    fn text(
        &self,
        scene: &Scene<H>,
        violation: Option<&Violation>,
        without: &[String],
        finding: &Finding,
        trace: &str,
    ) -> String {
        let layout = layout();
        let word = self.subject.criterion.word();
        let head = match violation.map(|violation| &violation.kind) {
            Some(ViolationKind::Steps(..) | ViolationKind::Waits(..)) => {
                finding.failure.message.clone()
            }
            Some(_) => format!("not {word}: {}", scene.text()),
            None => format!("{} in {}", finding.failure.kind.word(), scene.text()),
        };
        let mut text = format!("{head}\n\n");
        if let Some(violation) = violation {
            let table = explain::table(scene, &violation.history);
            table.lines().for_each(|line| text += &format!("    {line}\n"));
            let why = explain::explanation(scene, violation);
            if !why.is_empty() {
                text += &format!("\n  {why}\n");
            }
            text.push('\n');
        }
        text += trace;
        let before = self.outcome.scenarios - 1;
        if self.subject.scenario.is_none() {
            let smallest = match before {
                0 => "it is the first scenario".to_owned(),
                1 => "the scenario before it passes".to_owned(),
                some => format!("the {some} scenarios before it pass"),
            };
            text += &row("smallest", &smallest, &layout);
        }
        for name in without {
            text += &row("note", &format!("{word} without `{name}`, up to as many calls"), &layout);
        }
        let specification = &self.outcome.words.specification;
        text += &row("against", &format!("specification: {specification}"), &layout);
        text
    }

    /// The operations whose results alone are wrong in a history, and without which all scenarios
    /// with as many calls pass.
    fn without(&self, scene: &Scene<H>, violation: &Violation, calls: usize) -> Vec<String> {
        let operations = &self.subject.operations;
        // Two operations at least remain: one alone says little.
        if operations.len() < 3 || self.subject.scenario.is_some() {
            return Vec::new();
        }
        let operation_of = |call: usize| {
            let instance = scene.calls[call].instance;
            self.subject.instances[instance].operation
        };
        let tree = scene.tree();
        let is_enough = |operation: usize| {
            let history = &violation.history;
            let own = (0..history.calls()).filter(|&call| operation_of(call) == operation);
            let ignored = own.fold(0, |set, call| set | 1 << call);
            ignored != 0
                && witness::search_ignoring(history, &tree, self.subject.criterion, ignored).is_ok()
        };
        (0..operations.len())
            .filter(|&operation| is_enough(operation) && self.passes_without(operation, calls))
            .map(|operation| operations[operation].name.clone())
            .collect()
    }

    /// Whether all scenarios of up to `calls` calls of the other operations pass.
    fn passes_without(&self, operation: usize, calls: usize) -> bool {
        let mut rules = self.subject.rules();
        let others: Vec<usize> = (0..rules.instances.len())
            .filter(|&at| self.subject.instances[at].operation != operation)
            .collect();
        if others.is_empty() {
            return false;
        }
        rules.instances = others.iter().map(|&at| rules.instances[at]).collect();
        let shapes = (2..=calls).flat_map(|calls| rules.shapes(calls));
        let mut scenarios = shapes.flat_map(|shape| rules.scenarios(&shape)).map(|scenario| {
            let original = |thread: Vec<usize>| thread.into_iter().map(|at| others[at]).collect();
            Scenario(scenario.0.into_iter().map(original).collect())
        });
        scenarios.all(|scenario| self.check(&scenario, &[]).as_ref().is_ok_and(Checked::passes))
    }
}

/// Refuses what is not an error of the structure, but cannot be judged by its serial executions.
fn refuse_special<H: 'static>(scene: &Scene<H>, violation: &Violation) -> Result<(), Refusal> {
    match &violation.kind {
        ViolationKind::NotDeterministic => Err(Refusal::Test(format!(
            "the structure is not deterministic: the calls of {} have other results than the same \
             calls, one after the other, had before; declare the operation with \
             `sometimes`, or give a `model`",
            scene.text()
        ))),
        ViolationKind::Meets(call) => Err(Refusal::Test(format!(
            "in {}, {} returns, and it blocks in every serial execution: operations that wait for \
             each other need a `model`",
            scene.text(),
            scene.calls[*call].label
        ))),
        ViolationKind::Unexplained(_) => Ok(()),
        ViolationKind::Steps(..) | ViolationKind::Waits(..) => Ok(()),
    }
}
