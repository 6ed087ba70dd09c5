//! Running one schedule again.

use std::time::Duration;

use preempt_explore::{Coverage, Omission, Outcome, Plan, Tally};
use preempt_report::number::counted;
use preempt_report::{CheckReport, Ending, Layout, ScheduleFile, token};
use preempt_system::{Finding, Schedule, Verdict};

use crate::page::Page;
use crate::program::Closure;
use crate::report::{FIRST, Format, Told, layout, told};

/// What is asked of a replay.
pub(crate) struct Asked<'a> {
    /// The schedule: a token, or the name of a file.
    pub(crate) given: &'a str,
    /// Before which preemption to stop.
    pub(crate) stop_at: Option<u32>,
    pub(crate) format: Format,
}

/// Runs a schedule, and says how it ends; up to a preemption, if one is given, what comes then.
#[track_caller]
pub(crate) fn replay(
    plan: &Plan,
    program: Closure<'_>,
    asked: &Asked<'_>,
    page: Option<&Page<'_>>,
) -> (Outcome, String) {
    let Asked { given, stop_at, format } = *asked;
    let recorded = match read(given) {
        Ok(recorded) => recorded,
        Err(why) => panic!("PREEMPT_REPLAY={given} is not a schedule: {why}"),
    };
    let (program, all) = told(program, &recorded.schedule, None);
    if let Err(why) = fits(&recorded, &all) {
        panic!(
            "PREEMPT_REPLAY={given} is not a schedule of this test: {why}; the test has changed since it was made"
        );
    }
    if let Some(preemption) = stop_at {
        return stop(plan, program, &recorded.schedule, &all, preemption);
    }
    let Told { trace, history, failures, preemptions, .. } = all;
    let failure = failures.into_iter().next();
    if recorded.ending.is_same(failure.as_ref()) == Some(false) {
        let then = match &recorded.ending {
            Ending::Described(then) => format!("it ended with \"{then}\""),
            _ => "it failed in another way".to_owned(),
        };
        let now = failure.map_or_else(|| "nothing fails".to_owned(), |failure| failure.message);
        panic!(
            "PREEMPT_REPLAY={given} does not end as it did: {then}, and now {now}; the test was changed, or is not deterministic"
        );
    }
    let verdict = failure.as_ref().map_or(Verdict::Incomplete, |failure| failure.kind.into());
    let findings: Vec<Finding> = failure
        .into_iter()
        .map(|failure| Finding {
            failure,
            schedule: recorded.schedule.clone(),
            preemptions,
            shrunk: None,
        })
        .collect();
    drop(program);
    let outcome = replayed(plan, verdict, findings, recorded.schedule.steps().len());
    let traces = [trace];
    let checked = CheckReport {
        plan,
        chosen: None,
        outcome: &outcome,
        scouted: None,
        traces: &traces,
        peak_memory: None,
        replay: "PREEMPT_REPLAY=",
        first: FIRST,
        unreached: None,
    };
    let text = match format {
        Format::Json => format!("{}\n", checked.to_json()),
        Format::Text | Format::Failure => {
            checked.to_text(&Layout { most_steps: usize::MAX, ..layout() })
        }
    };
    let written = page.map(|page| page.write(&checked, &[history])).unwrap_or_default();
    let text = if format == Format::Json { text } else { text + &written };
    (outcome, text)
}

/// The outcome of one execution.
fn replayed(plan: &Plan, verdict: Verdict, findings: Vec<Finding>, steps: usize) -> Outcome {
    Outcome {
        verdict,
        complete: false,
        coverage: Coverage {
            transitions: steps as u64,
            depth: steps as u32,
            ..Coverage::default()
        },
        at_finding: !findings.is_empty(),
        unfinished: false,
        rerun: None,
        findings,
        stopped: None,
        tally: Some(Tally { steps: steps as u64, ..Tally::default() }),
        bounds: Vec::new(),
        growth: None,
        omission: Omission::Never,
        order: plan.order,
        reduction: plan.reduction,
        promoted: Vec::new(),
        assumptions: Vec::new(),
        elapsed: Duration::ZERO,
        store_bytes: 0,
        frontier_bytes: 0,
        restarts: 0,
    }
}

/// The schedule that is a token, or a file with one or with the readable form.
fn read(given: &str) -> Result<ScheduleFile, String> {
    if token::looks_like_one(given) {
        return token::parse(given);
    }
    let text = std::fs::read_to_string(given)
        .map_err(|error| format!("it is no token, and no file: {error}"))?;
    if token::looks_like_one(text.trim()) {
        return token::parse(&text);
    }
    ScheduleFile::parse(&text).map_err(|wrong| wrong.to_string())
}

/// Whether an execution is that of a recorded schedule, or where it begins to be another one.
fn fits(recorded: &ScheduleFile, told: &Told) -> Result<(), String> {
    for (at, then) in recorded.begins.iter().filter(|(at, _)| *at < told.taken) {
        if told.verbs[*at] != then {
            let Narrated { thread, place, words } = narrated(told, *at);
            let now = told.verbs[*at];
            return Err(format!(
                "step {} of {thread} was `{then}`, and is `{now}` now{place}: {words}",
                at + 1
            ));
        }
    }
    let all = recorded.schedule.steps().len();
    if let Some(misfit) = &told.misfit {
        return Err(format!("step {} of {all}: {misfit}", told.taken + 1));
    }
    for (thread, then) in &recorded.names {
        let now = told.name_of(*thread);
        if now.as_deref() != Some(then) {
            let now = now.unwrap_or_else(|| "not started".to_owned());
            return Err(format!("thread {} was `{then}`, and is `{now}` now", thread.index()));
        }
    }
    Ok(())
}

/// Shows the execution up to a preemption, counted from 1, and where every thread stands there.
#[track_caller]
fn stop(
    plan: &Plan,
    program: Closure<'_>,
    schedule: &Schedule,
    all: &Told,
    preemption: u32,
) -> (Outcome, String) {
    let mut preemptive =
        all.trace.steps.iter().enumerate().filter(|(_, step)| step.preempts.is_some());
    let Some((at, step)) =
        (preemption as usize).checked_sub(1).and_then(|before| preemptive.nth(before))
    else {
        panic!(
            "PREEMPT_STOP_AT={preemption}: the schedule has {}; they are counted from 1",
            counted(all.trace.preemptions() as u64, "preemption")
        );
    };
    let before = schedule.prefix(at);
    let (_, told) = told(program, &before, None);
    let layout = Layout { most_steps: usize::MAX, ..layout() };
    let preempted = step.preempts.expect("it is a preemption");
    let text = format!(
        "stopped before preemption {preemption}\n\n{}\nHere, before step {}, {} preempts {}.\n\n{}",
        told.trace.to_text(&layout),
        at + 1,
        all.trace.name(step.thread),
        all.trace.name(preempted),
        told.trace.state_to_text(&layout),
    );
    (replayed(plan, Verdict::Incomplete, Vec::new(), at), text)
}

/// A step for a message.
struct Narrated {
    thread: String,
    place: String,
    words: String,
}

fn narrated(told: &Told, at: usize) -> Narrated {
    let step = &told.trace.steps[at];
    let place = step.narration.site.as_ref().map(|site| format!(" at {site}")).unwrap_or_default();
    Narrated {
        thread: told.trace.name(step.thread).to_owned(),
        place,
        words: step.narration.source.clone(),
    }
}
