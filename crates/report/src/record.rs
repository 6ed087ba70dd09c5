//! A check as one JSON object, for programs that read it.
//!
//! Fields are added, never renamed. What the strategy does not know is null.

use preempt_explore::{Limit, Order, Outcome, Plan, Reduction, StoreKind};
use preempt_system::Finding;

use crate::json::Value;
use crate::story::{Story, Told};

/// All that is known when a check has ended.
#[derive(Clone, Debug)]
pub struct Checked<'a> {
    /// How it searched.
    pub plan: &'a Plan,
    /// What it found.
    pub outcome: &'a Outcome,
    /// The executions of its findings, in the same order.
    pub stories: &'a [Story],
    /// The most memory that the process had, in bytes, if the system tells.
    pub peak_memory: Option<u64>,
}

impl Checked<'_> {
    /// The object that `--json` prints.
    pub fn to_json(&self) -> Value {
        let (outcome, seen) = (self.outcome, &self.outcome.coverage);
        let findings: Vec<Value> =
            outcome.findings.iter().zip(self.stories).map(|(finding, story)| found(finding, story)).collect();
        Value::Object(vec![
            ("verdict", outcome.verdict.word().into()),
            ("complete", outcome.complete.into()),
            ("guarantee", outcome.guarantee().into()),
            ("strategy", strategy(self.plan)),
            ("states", seen.states.into()),
            ("transitions", seen.transitions.into()),
            ("blocked", seen.blocked.into()),
            ("ended", seen.ended.into()),
            ("depth", seen.depth.into()),
            ("executions", Value::Null),
            ("traces", Value::Null),
            ("bounds", Value::List(Vec::new())),
            ("finding", findings.first().cloned().into()),
            ("findings", Value::List(findings)),
            ("stopped", outcome.stopped.map(limit_word).into()),
            ("seconds", outcome.elapsed.as_secs_f64().into()),
            ("peak_memory", self.peak_memory.into()),
            ("store_bytes", outcome.store_bytes.into()),
        ])
    }
}

fn strategy(plan: &Plan) -> Value {
    Value::Object(vec![
        ("order", order_word(plan.order).into()),
        ("reduce", reduction_word(plan.reduction).into()),
        ("store", store_word(plan.store).into()),
        ("jobs", plan.jobs.into()),
    ])
}

fn found(finding: &Finding, story: &Story) -> Value {
    let failure = &finding.failure;
    Value::Object(vec![
        ("kind", failure.kind.word().into()),
        ("message", failure.message.as_str().into()),
        ("site", failure.site.as_ref().map(ToString::to_string).into()),
        ("preemptions", finding.preemptions.into()),
        ("steps", story.steps.iter().map(|step| told(story, step)).collect()),
    ])
}

fn told(story: &Story, step: &Told) -> Value {
    let site = step.narration.site.as_ref();
    Value::Object(vec![
        ("thread", story.name(step.thread).into()),
        ("slot", step.thread.index().into()),
        ("file", site.map(|site| &*site.file).into()),
        ("line", site.map(|site| site.line).into()),
        ("source", step.narration.source.as_str().into()),
        ("effects", step.narration.effects.iter().map(|effect| effect.as_str().into()).collect()),
        ("preemption", step.preempts.is_some().into()),
    ])
}

/// The word for an order, on the command line and in reports.
pub fn order_word(order: Order) -> &'static str {
    match order {
        Order::BreadthFirst => "bfs",
        Order::DepthFirst => "dfs",
        _ => "unknown",
    }
}

/// The word for a reduction.
pub fn reduction_word(reduction: Reduction) -> &'static str {
    match reduction {
        Reduction::None => "none",
        _ => "unknown",
    }
}

/// The word for a store.
pub fn store_word(store: StoreKind) -> &'static str {
    match store {
        StoreKind::Exact => "exact",
        StoreKind::Tree => "tree",
        StoreKind::Fingerprint => "fingerprint",
        StoreKind::Bitstate { .. } => "bitstate",
        _ => "unknown",
    }
}

/// The word for the limit that ended a search.
pub fn limit_word(limit: Limit) -> &'static str {
    match limit {
        Limit::States => "states",
        Limit::Depth => "depth",
        Limit::Memory => "memory",
        Limit::Time => "time",
        Limit::Interrupt => "interrupt",
    }
}
