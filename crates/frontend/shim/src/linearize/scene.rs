//! One scenario with its calls, its serial executions and the histories that were judged.

use std::collections::HashMap;
use std::panic::Location as Site;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use preempt_linearize::{Answer, CallOutcome, Criterion, History, Scenario, SerialTree, witness};
use preempt_system::{Failure, FailureKind, MemoryModel};

use super::operation::{Fresh, Run, RunModel, Value};
use super::subject::Subject;
use crate::runtime::harness::Progress;
use crate::runtime::site;

/// A call of a scenario.
pub(super) struct Call<H> {
    pub(super) thread: usize,
    pub(super) instance: usize,
    pub(super) fresh: Fresh,
    pub(super) label: String,
    pub(super) run: Run<H>,
    pub(super) may_panic: bool,
}

/// The results of one call that were seen, each with its text. Its index is the number that stands
/// for it in histories.
#[derive(Default)]
struct Results(Vec<(Box<dyn Value>, String)>);

impl Results {
    fn number(&mut self, value: Box<dyn Value>) -> u32 {
        let known = self.0.iter().position(|(known, _)| known.equals(&*value));
        let number = known.unwrap_or_else(|| {
            let text = value.text();
            self.0.push((value, text));
            self.0.len() - 1
        });
        number as u32
    }
}

/// How an execution is wrong.
#[derive(Clone, Debug)]
pub(super) struct Violation {
    pub(super) history: History,
    pub(super) kind: ViolationKind,
}

/// What is wrong with a history.
#[derive(Clone, Debug)]
pub(super) enum ViolationKind {
    /// No serial execution explains it.
    Unexplained(Box<witness::Unexplained>),
    /// It is serial, and has other results than the same calls had before.
    NotDeterministic,
    /// This call returned although it blocks in every serial execution.
    Meets(usize),
    /// This call took this number of steps.
    Steps(usize, u32),
    /// This call makes no progress, for this reason.
    Waits(usize, String),
}

/// A scenario and what is known about it.
pub(super) struct Scene<H> {
    pub(super) subject: Arc<Subject<H>>,
    pub(super) scenario: Scenario,
    pub(super) prefix: Vec<usize>,
    pub(super) calls: Vec<Call<H>>,
    /// The calls of each thread.
    pub(super) programs: Vec<Vec<usize>>,
    pub(super) place: &'static Site<'static>,
    tables: Mutex<Tables>,
}

/// What executions of the scenario have shown.
#[derive(Default)]
struct Tables {
    /// The results of each call, and of the observer at last.
    results: Vec<Results>,
    tree: SerialTree,
    /// Whether each history that occurred has a witness.
    judged: HashMap<History, Option<Violation>>,
    /// The points of the tree that searches for witnesses visited.
    nodes: u64,
    /// Stuck histories that have witnesses.
    stuck: u64,
    /// The last wrong execution.
    wrong: Option<Violation>,
    /// Serial executions fail by themselves, so that the tree is not complete.
    is_partial: bool,
    is_prefix_blocked: bool,
}

impl<H: 'static> Scene<H> {
    pub(super) fn new(
        subject: Arc<Subject<H>>,
        scenario: Scenario,
        prefix: Vec<usize>,
        place: &'static Site<'static>,
    ) -> Scene<H> {
        let all = scenario.calls() as u32;
        let mut calls: Vec<Call<H>> = Vec::new();
        let mut programs = Vec::new();
        for (thread, program) in scenario.0.iter().enumerate() {
            programs.push((calls.len()..calls.len() + program.len()).collect());
            for &instance in program {
                let fresh = fresh(calls.len() as u32, all);
                let of = &subject.instances[instance];
                calls.push(Call {
                    thread,
                    instance,
                    fresh,
                    label: (of.label)(fresh),
                    run: of.run.clone(),
                    may_panic: subject.operations[of.operation].may_panic,
                });
            }
        }
        let results = (0..=calls.len()).map(|_| Results::default()).collect();
        let tables = Mutex::new(Tables { results, ..Tables::default() });
        Scene { subject, scenario, prefix, calls, programs, place, tables }
    }

    /// The calls before the scenario.
    pub(super) fn prefix_runs(&self) -> Vec<(Run<H>, Fresh)> {
        let calls = self.prefix.iter().enumerate();
        calls
            .map(|(nth, &of)| (self.subject.instances[of].run.clone(), prefix_fresh(nth)))
            .collect()
    }

    /// The same calls on the model.
    pub(super) fn prefix_models(&self) -> Vec<(RunModel, Fresh)> {
        let calls = self.prefix.iter().enumerate();
        calls
            .map(|(nth, &of)| {
                let run = self.subject.instances[of].model.clone();
                (run.expect("with a model, every operation has one"), prefix_fresh(nth))
            })
            .collect()
    }

    /// The scenario as text, which `PREEMPT_SCENARIO` reads.
    pub(super) fn text(&self) -> String {
        let threads: Vec<String> = self
            .programs
            .iter()
            .map(|calls| {
                let labels: Vec<&str> = calls.iter().map(|&at| &self.calls[at].label[..]).collect();
                labels.join("; ")
            })
            .collect();
        let threads = threads.join(" || ");
        if self.prefix.is_empty() {
            return threads;
        }
        let prefix: Vec<String> = self
            .prefix
            .iter()
            .enumerate()
            .map(|(nth, &of)| (self.subject.instances[of].label)(prefix_fresh(nth)))
            .collect();
        format!("after {}: {threads}", prefix.join("; "))
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number that stands for a result of a call; the observer is the call after the last.
    pub(super) fn number(&self, call: usize, result: Box<dyn Value>) -> u32 {
        self.tables().results[call].number(result)
    }

    /// The text of the result that a number stands for.
    pub(super) fn result(&self, call: usize, number: u32) -> String {
        self.tables().results[call].0[number as usize].1.clone()
    }

    /// Adds a call to the serial executions.
    pub(super) fn extend(&self, from: usize, call: usize, outcome: CallOutcome) -> usize {
        self.tables().tree.extend(from, call, outcome)
    }

    /// Adds what the observer saw after a serial execution.
    pub(super) fn observe(&self, at: usize, result: u32) {
        self.tables().tree.observe(at, result);
    }

    /// Serial executions fail by themselves: no history is judged.
    pub(super) fn give_up_serial(&self) {
        self.tables().is_partial = true;
    }

    /// The calls before the scenario never return.
    pub(super) fn block_prefix(&self) {
        self.tables().is_prefix_blocked = true;
    }

    /// Whether the calls before the scenario never return.
    pub(super) fn is_prefix_blocked(&self) -> bool {
        self.tables().is_prefix_blocked
    }

    /// The serial executions.
    pub(super) fn tree(&self) -> SerialTree {
        self.tables().tree.clone()
    }

    /// The number of distinct histories, of stuck ones that are explained, and of the points of the
    /// tree that were visited.
    pub(super) fn counts(&self) -> (u64, u64, u64) {
        let tables = self.tables();
        (tables.judged.len() as u64, tables.stuck, tables.nodes)
    }

    /// The last wrong execution.
    pub(super) fn violation(&self) -> Option<Violation> {
        self.tables().wrong.clone()
    }

    /// Judges the history of an execution.
    pub(super) fn judge(&self, history: &History) -> Option<Failure> {
        let mut tables = self.tables();
        if tables.is_partial {
            return None;
        }
        if !tables.judged.contains_key(history) {
            let found = witness::search(history, &tables.tree, self.subject.criterion);
            let is_stuck = history.pending().next().is_some();
            let (nodes, violation) = match found {
                Ok(witness) => {
                    tables.stuck += u64::from(is_stuck);
                    (witness.nodes, None)
                }
                Err(why) => (why.nodes, Some(self.classify(history, &tables.tree, why))),
            };
            tables.nodes += nodes;
            let violation = violation.map(|kind| Violation { history: history.clone(), kind });
            tables.judged.insert(history.clone(), violation);
        }
        let violation = tables.judged.get(history).cloned().flatten()?;
        tables.wrong = Some(violation.clone());
        drop(tables);
        Some(self.failure(&violation))
    }

    /// A call took too many steps.
    pub(super) fn too_many_steps(&self, history: &History, call: usize, steps: u32) -> Failure {
        let kind = ViolationKind::Steps(call, steps);
        let violation = Violation { history: history.clone(), kind };
        self.tables().wrong = Some(violation.clone());
        self.failure(&violation)
    }

    /// The pending call of a thread makes no progress.
    pub(super) fn no_progress(&self, history: &History, thread: usize, how: &str) -> Failure {
        let mut pending = history.pending();
        let call = pending.find(|&call| history.thread(call) == thread);
        let call = call.expect("a thread inside an operation has a pending call");
        let kind = ViolationKind::Waits(call, how.to_owned());
        let violation = Violation { history: history.clone(), kind };
        self.tables().wrong = Some(violation.clone());
        self.failure(&violation)
    }

    /// The condition that a violation shows not to hold.
    pub(super) fn condition(&self, violation: &Violation) -> String {
        match (&violation.kind, self.subject.progress) {
            (ViolationKind::Steps(..), _) => {
                let most = self.subject.most_steps.unwrap_or_default();
                format!("wait-free within {most} steps")
            }
            (ViolationKind::Waits(..), Progress::LockFree) => "lock-free".to_owned(),
            (ViolationKind::Waits(..), _) => "obstruction-free".to_owned(),
            _ => self.subject.criterion.word().into_owned(),
        }
    }

    /// What it means that a history has no witness.
    fn classify(
        &self,
        history: &History,
        tree: &SerialTree,
        why: Box<witness::Unexplained>,
    ) -> ViolationKind {
        let is_complete = history.complete().count_ones() as usize == history.calls();
        if self.subject.model.is_some() {
            return ViolationKind::Unexplained(why);
        }
        // Under weak memory a call need not see what an earlier one of another thread did.
        let sees_all = self.subject.check.options.memory == MemoryModel::Sc
            && self.subject.criterion == Criterion::Linearizable;
        if sees_all && is_complete && history.is_serial() {
            return ViolationKind::NotDeterministic;
        }
        let returns = |call: usize| matches!(history.answer(call), Answer::Returned(_));
        let serial = tree.executions();
        let ever_returns = |call: usize| {
            serial.iter().any(|(calls, _)| {
                calls
                    .iter()
                    .any(|&(other, outcome)| other == call && outcome != CallOutcome::Blocks)
            })
        };
        let meets = (0..history.calls()).find(|&call| returns(call) && !ever_returns(call));
        meets.map_or(ViolationKind::Unexplained(why), ViolationKind::Meets)
    }

    /// The failure of a wrong execution. Its position is that of the check, so that all wrong
    /// executions of a scenario count as the same error.
    fn failure(&self, violation: &Violation) -> Failure {
        let word = self.subject.criterion.word();
        let message = match &violation.kind {
            ViolationKind::Unexplained(why) => match why.pending {
                Some(call) => format!(
                    "not {word}: in {}, {} never returns, but it does not block in any serial \
                     execution with these results",
                    self.text(),
                    self.calls[call].label
                ),
                None => {
                    format!("not {word}: no serial execution of {} has these results", self.text())
                }
            },
            ViolationKind::NotDeterministic => {
                format!(
                    "the same serial calls returned different results in another execution: {}",
                    self.text()
                )
            }
            ViolationKind::Meets(call) => format!(
                "{} returned, and blocks in every serial execution of {}",
                self.calls[*call].label,
                self.text()
            ),
            ViolationKind::Steps(call, steps) => {
                let (condition, label) = (self.condition(violation), &self.calls[*call].label);
                format!("not {condition}: {label} took {steps}")
            }
            ViolationKind::Waits(call, how) => {
                let (condition, label) = (self.condition(violation), &self.calls[*call].label);
                format!("not {condition}: in {}, {label} does not return; {how}", self.text())
            }
        };
        let site = Some(site::position(self.place));
        Failure { kind: FailureKind::Linearizability, message, site }
    }
}

/// The numbers for the fresh arguments of a call: its position, counted from 1. A second fresh
/// argument continues after all of these.
pub(super) fn fresh(position: u32, all: u32) -> Fresh {
    Fresh([position + 1, all + position + 1])
}

/// The same for a call before the scenario.
pub(super) fn prefix_fresh(nth: usize) -> Fresh {
    Fresh([101 + nth as u32, 201 + nth as u32])
}
