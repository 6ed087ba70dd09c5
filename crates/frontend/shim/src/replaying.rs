//! Replaying one schedule of a test.

use std::time::Duration;

use preempt_explore::{Coverage, Omission, Outcome, Search, Tally};
use preempt_report::number::counted;
use preempt_report::recorder::Replayed;
use preempt_report::{CheckReport, Ending, Layout, ScheduleFile, Trace, token};
use preempt_system::{FailureKind, Finding, Schedule, ThreadId, Verdict};

use crate::page::Page;
use crate::program::Closure;
use crate::replay_command;
use crate::report::{FIRST, Format, execute, layout};

/// The settings of a replay.
pub(crate) struct ReplayRequest<'a> {
    /// The schedule: a token, or the name of a file.
    pub(crate) given: &'a str,
    /// The preemption before which to stop, from 1.
    pub(crate) stop_at: Option<u32>,
    pub(crate) format: Format,
}

/// Whether the test has this schedule under the memory model of `program`. Yes if it is not a
/// schedule at all, which [`replay`] reports.
pub(crate) fn is_possible(program: Closure<'_>, given: &str) -> bool {
    let Ok(recorded) = read(given) else { return true };
    let (_, all) = execute(program, &recorded.schedule);
    let ends_alike = recorded.ending.is_same(all.trace.failure.as_ref()) != Some(false);
    fits(&recorded, &all).is_ok() && ends_alike
}

/// Replays a schedule and reports its end, or the state before a preemption, if one is given.
#[track_caller]
pub(crate) fn replay(
    search: &Search,
    program: Closure<'_>,
    asked: &ReplayRequest<'_>,
    page: Option<&Page<'_>>,
) -> (Outcome, String) {
    let ReplayRequest { given, stop_at, format } = *asked;
    let recorded = match read(given) {
        Ok(recorded) => recorded,
        Err(why) => panic!("PREEMPT_REPLAY={given} is not a schedule: {why}"),
    };
    let (program, all) = execute(program, &recorded.schedule);
    if let Err(why) = fits(&recorded, &all) {
        panic!(
            "PREEMPT_REPLAY={given} is not a schedule of this test: {why}; the test has changed \
             since it was made"
        );
    }
    if let Some(preemption) = stop_at {
        return stop(search, program, &recorded.schedule, &all.trace, preemption);
    }
    let trace = all.trace;
    let failure = trace.failure.clone();
    if recorded.ending.is_same(failure.as_ref()) == Some(false) {
        let then = match &recorded.ending {
            Ending::Described(then) => then,
            _ => "another failure",
        };
        let now = failure.map_or_else(|| "no failure".to_owned(), |failure| failure.message);
        panic!(
            "PREEMPT_REPLAY={given}: this schedule no longer fails the way it was recorded \
             (recorded: {then}; now: {now}). Either the test has changed or it is not \
             deterministic."
        );
    }
    let verdict = failure.as_ref().map_or(Verdict::Incomplete, |failure| failure.kind.into());
    let findings: Vec<Finding> = failure
        .into_iter()
        .map(|failure| Finding {
            failure,
            schedule: trace.schedule(),
            preemptions: trace.preemptions(),
            shrunk: None,
        })
        .collect();
    let command = replay_command::of_scenario(program.scenario.as_deref());
    drop(program);
    let outcome = replayed(search, verdict, findings, recorded.schedule.steps().len());
    let traces = [trace];
    let checked = CheckReport {
        plan: search.plan(),
        chosen: None,
        outcome: &outcome,
        scouted: None,
        traces: &traces,
        peak_memory: None,
        replay: &command,
        first: FIRST,
        unreached: None,
    };
    let text = match format {
        Format::Json => format!("{}\n", checked.to_json()),
        Format::Text | Format::Failure => {
            checked.to_text(&Layout { most_steps: usize::MAX, ..layout() })
        }
    };
    let written = page.map(|page| page.write(&checked)).unwrap_or_default();
    let text = if format == Format::Json { text } else { text + &written };
    (outcome, text)
}

/// The outcome of one execution.
fn replayed(search: &Search, verdict: Verdict, findings: Vec<Finding>, steps: usize) -> Outcome {
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
        strategy: search.strategy(),
        memory: search.plan().memory,
        promoted: Vec::new(),
        assumptions: Vec::new(),
        elapsed: Duration::ZERO,
        store_bytes: 0,
        frontier_bytes: 0,
        spilled_bytes: 0,
        restarts: 0,
    }
}

/// Reads a schedule: a token, or a file that contains a token or a readable schedule.
fn read(given: &str) -> Result<ScheduleFile, String> {
    if token::looks_like_one(given) {
        return token::parse(given);
    }
    let text = std::fs::read_to_string(given)
        .map_err(|error| format!("it is neither a token nor a readable file: {error}"))?;
    if token::looks_like_one(text.trim()) {
        return token::parse(&text);
    }
    ScheduleFile::parse(&text).map_err(|wrong| wrong.to_string())
}

/// Checks that an execution is that of a recorded schedule; an error says where it differs.
fn fits(recorded: &ScheduleFile, replayed: &Replayed) -> Result<(), String> {
    let Replayed { trace, misfit, failures, .. } = replayed;
    for (at, then) in recorded.begins.iter().filter(|(at, _)| *at < trace.steps.len()) {
        let step = &trace.steps[*at];
        if step.label != *then {
            let (thread, now) = (trace.name(step.thread), &step.label);
            let narration = &step.narration;
            let place =
                narration.site.as_ref().map(|site| format!(" at {site}")).unwrap_or_default();
            return Err(format!(
                "step {} of {thread} was `{then}`, and is `{now}` now{place}: {}",
                at + 1,
                narration.source
            ));
        }
    }
    if let Some(misfit) = misfit {
        let all = recorded.schedule.steps().len();
        let unlike = failures.iter().find(|of| of.kind == FailureKind::Nondeterminism);
        // The schedule continues, but no thread can step.
        let why = unlike.map_or_else(
            || format!("it is {misfit}; threads that can move there: {}", misfit.movers()),
            |failure| failure.message.clone(),
        );
        return Err(format!("step {} of {all}: {why}", misfit.step + 1));
    }
    for (thread, then) in &recorded.names {
        let now = name_of(trace, *thread);
        if now != Some(then) {
            let now = now.unwrap_or("not started");
            return Err(format!("thread {} was `{then}`, and is `{now}` now", thread.index()));
        }
    }
    Ok(())
}

/// The name of the thread with this number, if it has moved.
fn name_of(trace: &Trace, number: ThreadId) -> Option<&str> {
    let step = trace.steps.iter().find(|step| step.number == number)?;
    Some(trace.name(step.thread))
}

/// Shows the execution up to a preemption, counted from 1, and the state before it.
#[track_caller]
fn stop(
    search: &Search,
    program: Closure<'_>,
    schedule: &Schedule,
    all: &Trace,
    preemption: u32,
) -> (Outcome, String) {
    let mut preemptive = all.steps.iter().enumerate().filter(|(_, step)| step.preempts.is_some());
    let Some((at, step)) =
        (preemption as usize).checked_sub(1).and_then(|before| preemptive.nth(before))
    else {
        panic!(
            "PREEMPT_STOP_AT={preemption}: the schedule has {}; they are counted from 1",
            counted(all.preemptions().into(), "preemption")
        );
    };
    let before = schedule.prefix(at);
    let (_, before) = execute(program, &before);
    let layout = Layout { most_steps: usize::MAX, ..layout() };
    let preempted = step.preempts.expect("the step is a preemption");
    let text = format!(
        "stopped before preemption {preemption}\n\n{}\nHere, before step {}, {} preempts {}.\n\n{}",
        before.trace.to_text(&layout),
        at + 1,
        all.name(step.thread),
        all.name(preempted),
        before.trace.state_to_text(&layout),
    );
    (replayed(search, Verdict::Incomplete, Vec::new(), at), text)
}
