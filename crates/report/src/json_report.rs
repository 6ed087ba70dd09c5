//! A check as one JSON object, described by `docs/schema/check.schema.json`.
//!
//! Fields are added, never renamed. What the strategy does not know is null.

use preempt_explore::{BoundCoverage, Cache, Outcome, Plan};
use preempt_system::{Failure, Finding, Narration, Shrunk, Stale};

use crate::check_report::{CheckReport, Unreached, UnreachedPlace};
use crate::json::Value;
use crate::origin::Origin;
use crate::schedule::Ending;
use crate::trace::{NarratedStep, Trace};
use crate::{token, words};

impl CheckReport<'_> {
    /// The object that `--json` prints.
    pub fn to_json(&self) -> Value {
        let outcome = self.outcome;
        let findings: Vec<Value> = outcome
            .findings
            .iter()
            .zip(self.traces)
            .map(|(finding, trace)| found(finding, trace))
            .collect();
        let mut fields = self.without_findings();
        let at = fields
            .iter()
            .position(|(name, _)| *name == "stopped")
            .expect("the object says whether it stopped");
        fields.splice(
            at..at,
            [("finding", findings.first().cloned().into()), ("findings", Value::List(findings))],
        );
        Value::Object(fields)
    }

    /// The fields of that object, without the findings.
    pub(crate) fn without_findings(&self) -> Vec<(&'static str, Value)> {
        let (outcome, seen) = (self.outcome, &self.outcome.coverage);
        let mut fields = vec![
            ("verdict", outcome.verdict.word().into()),
            ("complete", outcome.complete.into()),
            ("guarantee", outcome.guarantee().into()),
            ("strategy", strategy(self.plan)),
            ("chosen", self.chosen.map(str::to_owned).into()),
            ("memory", outcome.memory.name().into()),
            ("states", seen.states.into()),
            ("transitions", seen.transitions.into()),
            ("blocked", seen.blocked.into()),
            ("ended", seen.ended.into()),
            ("depth", seen.depth.into()),
            ("executions", outcome.tally.map(|tally| tally.executions).into()),
            ("traces", outcome.traces().into()),
            ("bounds", outcome.bounds.iter().map(bounded).collect()),
            ("stopped", outcome.stopped.map(words::limit).into()),
            ("scouted", self.scouted.map(scouted).into()),
            ("seconds", outcome.elapsed.as_secs_f64().into()),
            ("peak_memory", self.peak_memory.into()),
            ("store_bytes", outcome.store_bytes.into()),
        ];
        // Omitted if it is unknown.
        let known = self.unreached.as_ref().filter(|&unreached| *unreached != Unreached::Open);
        let discarded = outcome.tally.map(|tally| tally.discarded).filter(|&count| count > 0);
        fields.extend(discarded.map(|count| ("discarded", count.into())));
        let spilled = Some(outcome.spilled_bytes).filter(|&bytes| bytes > 0);
        fields.extend(spilled.map(|bytes| ("spilled_bytes", bytes.into())));
        fields.extend(outcome.rerun.map(|took| ("rerun_seconds", took.as_secs_f64().into())));
        fields.extend(known.map(|unreached| ("unreached", not_reached(unreached))));
        fields
    }
}

/// The coverage of a quick search before the main search.
fn scouted(outcome: &Outcome) -> Value {
    Value::Object(vec![
        ("guarantee", outcome.guarantee().into()),
        ("stopped", outcome.stopped.map(words::limit).into()),
        ("seconds", outcome.elapsed.as_secs_f64().into()),
    ])
}

/// Statements and branches that were not reached, if they are known.
fn not_reached(unreached: &Unreached) -> Value {
    let Unreached::Lines { file, places } = unreached else { return Value::Null };
    let place = |place: &UnreachedPlace| {
        Value::Object(vec![
            ("file", file.as_str().into()),
            ("line", place.first.into()),
            ("last_line", place.last.into()),
            ("never", place.outcome.into()),
        ])
    };
    places.iter().map(place).collect()
}

/// The object for a check that was not made, with the reason.
pub fn refusal(verdict: &'static str, why: &str) -> Value {
    let why = why.trim();
    Value::Object(vec![
        ("verdict", verdict.into()),
        ("complete", false.into()),
        ("error", why.strip_prefix("error: ").unwrap_or(why).into()),
    ])
}

fn strategy(plan: &Plan) -> Value {
    let mut fields = vec![
        ("order", words::order(plan.order).into()),
        ("reduce", words::reduction(plan.reduction).into()),
    ];
    if plan.order.is_of_executions() {
        let cache = plan.order.cache().map(Cache::name);
        fields.extend([("cache", cache.into()), ("bound", plan.bound.into())]);
    } else {
        fields.push(("store", plan.store.name().into()));
    }
    if plan.order.samples() {
        fields.extend([("seed", plan.seed.into()), ("runs", plan.runs.into())]);
    }
    fields.push(("jobs", plan.jobs.into()));
    Value::Object(fields)
}

/// The coverage up to a bound, and the part of it that is new with this bound.
fn bounded(covered: &BoundCoverage) -> Value {
    let BoundCoverage { bound, all, new, cut } = *covered;
    Value::Object(vec![
        ("bound", bound.into()),
        ("executions", all.executions.into()),
        ("traces", all.traces.into()),
        ("states", all.states.into()),
        ("new_executions", new.executions.into()),
        ("new_traces", new.traces.into()),
        ("new_states", new.states.into()),
        ("pruned", new.pruned.into()),
        ("cut", cut.into()),
    ])
}

fn found(finding: &Finding, trace: &Trace) -> Value {
    let mut fields = failed(&finding.failure);
    fields.extend(schedule_of(finding));
    fields.extend(steps(trace));
    Value::Object(fields)
}

fn failed(failure: &Failure) -> Vec<(&'static str, Value)> {
    vec![
        ("kind", failure.kind.word().into()),
        ("message", failure.message.as_str().into()),
        ("site", failure.site.as_ref().map(ToString::to_string).into()),
    ]
}

/// The schedule of a finding and its properties.
pub(crate) fn schedule_of(finding: &Finding) -> Vec<(&'static str, Value)> {
    vec![
        ("preemptions", finding.preemptions.into()),
        ("shrunk", finding.shrunk.map(shrunk).into()),
        ("schedule", token_of(finding).into()),
    ]
}

/// The token of a finding's schedule.
pub(crate) fn token_of(finding: &Finding) -> String {
    token::token(&finding.schedule, &Ending::of(Some(&finding.failure)))
}

/// An execution and its failure, if it has one.
pub(crate) fn execution(trace: &Trace) -> Vec<(&'static str, Value)> {
    let mut fields = trace.failure.as_ref().map(failed).unwrap_or_default();
    fields.extend(steps(trace));
    fields
}

fn steps(trace: &Trace) -> Vec<(&'static str, Value)> {
    let waiting = trace.waiting.iter().map(|waiting| {
        let mut fields = vec![
            ("thread", trace.name(waiting.thread).into()),
            ("slot", waiting.thread.index().into()),
        ];
        fields.extend(narration(&waiting.narration));
        Value::Object(fields)
    });
    let mut fields = vec![
        ("steps", trace.steps.iter().map(|taken| step(trace, taken)).collect()),
        ("waiting", waiting.collect()),
        ("origins", trace.origins.iter().map(origin).collect()),
    ];
    // Counted from 1, as in the text.
    fields.extend(trace.cycle_start().map(|start| ("cycle", (start + 1).into())));
    fields
}

/// The origin of a value. Steps are counted from 1, as in the text.
fn origin(origin: &Origin) -> Value {
    Value::Object(vec![
        ("variable", origin.variable.as_str().into()),
        ("value", origin.value.clone().into()),
        ("read", origin.read.map(|at| at + 1).into()),
        ("written", origin.written.map(|at| at + 1).into()),
    ])
}

/// The original size of a schedule that was made simpler.
fn shrunk(shrunk: Shrunk) -> Value {
    Value::Object(vec![
        ("steps", shrunk.steps.into()),
        ("preemptions", shrunk.preemptions.into()),
        ("executions", shrunk.executions.into()),
        ("fewest", shrunk.fewest.into()),
    ])
}

fn step(trace: &Trace, step: &NarratedStep) -> Value {
    let mut fields = vec![
        ("thread", trace.name(step.thread).into()),
        ("slot", step.thread.index().into()),
        ("alternative", step.alternative.into()),
    ];
    fields.extend(narration(&step.narration));
    fields.push(("preemption", step.preempts.is_some().into()));
    fields.extend(step.stale.map(|access| ("stale", stale(access))));
    Value::Object(fields)
}

/// The stores that a stale access does not see. Steps are counted from 1, as in the text; null is
/// an initial value.
fn stale(access: Stale) -> Value {
    let number = |step: Option<usize>| Value::from(step.map(|at| at + 1));
    Value::Object(match access {
        Stale::Read { store, newest } => {
            vec![("access", "read".into()), ("store", number(store)), ("newest", number(newest))]
        }
        Stale::Write { next } => vec![("access", "write".into()), ("next", number(next))],
    })
}

fn narration(narration: &Narration) -> [(&'static str, Value); 4] {
    let site = narration.site.as_ref();
    [
        ("file", site.map(|site| &*site.file).into()),
        ("line", site.map(|site| site.line).into()),
        ("source", narration.source.as_str().into()),
        ("effects", narration.effects.iter().map(|effect| effect.as_str().into()).collect()),
    ]
}
