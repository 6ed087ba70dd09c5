//! The report of a check: the trace of each finding, and what was covered.
//!
//! Slots are assigned in the order in which a search meets threads. A schedule that leaves this
//! process numbers threads in the order in which it starts them itself, so that it can be replayed
//! alone.

use std::path::Path;

use preempt_explore::cursor::Cursor;
use preempt_explore::replay::{cycle, deadlock, livelock};
use preempt_explore::{Outcome, Plan};
use preempt_report::recorder::{Numbering, Replayed, record};
use preempt_report::text_report::row;
use preempt_report::trace::ThreadPosition;
use preempt_report::{CheckReport, FileNames, Headline, Layout, Style, Trace};
use preempt_system::{
    Choice, Failure, FailureKind, MemoryModel, Narrate as _, Program, Restart, Schedule, Verdict,
};

use crate::caveats::{Used, explored_nothing};
use crate::page::Page;
use crate::program::Closure;
use crate::replay_command;
use crate::runtime::restart::RestartReason;

/// The layout of reports: as wide as `COLUMNS` says, but at least 80 characters. Colours only if
/// they are forced, because the text may be the message of a panic, which other programs read.
pub(crate) fn layout() -> Layout {
    let forced =
        std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0");
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let style = if forced && !plain { Style::coloured() } else { Style::default() };
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let usual = Layout::default();
    // A test may expect a panic whose message contains a certain text.
    let headline = Headline::Whole;
    let width = columns.unwrap_or(usual.width).max(usual.width);
    Layout { style, width, headline, files: FileNames::Shown, ..usual }
}

/// The format of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    /// Text, or nothing if the check passes.
    Failure,
    Json,
}

/// The settings of a report.
pub(crate) struct ReportSettings<'a> {
    /// The file for the schedule of the first finding.
    pub(crate) save: Option<&'a Path>,
    pub(crate) page: Option<&'a Page<'a>>,
    pub(crate) format: Format,
}

/// The note on a test that passes and has nothing to explore.
const ALONE: &str = "there is only one schedule: the threads share nothing that preempt controls";

/// The note on the panic of a spawned thread.
const SPAWNED_PANICS: &str = "a panic of a spawned thread fails a check, joined or not, unless the \
                              thread catches it; `Check::allow_panics` or PREEMPT_ALLOW_PANICS=1 \
                              makes it a result of `join`";

/// The setting that reports the first finding of several workers, in the terms of this crate.
pub(crate) const FIRST: &str = "`Check::first` (PREEMPT_FIRST=1)";

/// The outcome with schedules that can be replayed alone, and the whole report.
pub(crate) fn make_report(
    plan: &Plan,
    mut outcome: Outcome,
    program: &Closure<'_>,
    settings: &ReportSettings<'_>,
) -> (Outcome, String) {
    let ReportSettings { save, page, format } = *settings;
    let (mut traces, mut spawned_panics, mut unsaved) = (Vec::<Trace>::new(), false, String::new());
    for finding in &mut outcome.findings {
        let of = Some(&finding.failure);
        let executed = match attempt(program, &finding.schedule, of, Numbering::Slots) {
            Ok(executed) => executed,
            Err(need) => panic!("a program that was searched has no further needs: {need:?}"),
        };
        let trace = executed.replayed.trace;
        // The search does not name the threads that wait or spin.
        if is_of_threads(finding.failure.kind)
            && let Some(failure) =
                trace.failure.as_ref().filter(|of| of.kind == finding.failure.kind)
        {
            finding.failure = failure.clone();
        }
        // A test that is not deterministic may not fit its schedule any more: then the trace is
        // shorter.
        let moved = |thread| trace.steps.iter().find(|step| step.thread == thread);
        let number = |thread| moved(thread).map_or(thread, |step| step.number);
        let portable = |choice: Choice| Choice { thread: number(choice.thread), ..choice };
        finding.schedule = finding.schedule.map(portable).with_cycle(trace.cycle);
        if let Some(path) = save.filter(|_| traces.is_empty())
            && let Err(error) = std::fs::write(path, trace.schedule_file().to_string())
        {
            // A finding counts more than a file that cannot be written.
            unsaved = format!(
                "  saved     the schedule cannot be saved as {}: {error}\n",
                path.display()
            );
        }
        spawned_panics |= executed.spawned_panics;
        traces.push(trace);
    }
    let checked = CheckReport {
        plan,
        chosen: None,
        outcome: &outcome,
        scouted: None,
        traces: &traces,
        peak_memory: None,
        replay: &replay_command::of_scenario(program.scenario.as_deref()),
        first: FIRST,
        unreached: None,
    };
    let written = unsaved + &page.map(|page| page.write(&checked)).unwrap_or_default();
    if format == Format::Json {
        let json = format!("{}\n", checked.to_json());
        return (outcome, json);
    }
    if format == Format::Failure && outcome.verdict == Verdict::Ok {
        return (outcome, String::new());
    }
    let layout = layout();
    let mut text = checked.to_text(&layout);
    text += &row("memory", memory_words(&outcome, &program.used()), &layout);
    if spawned_panics && !program.options.allow_panics {
        text += &row("note", SPAWNED_PANICS, &layout);
    }
    if program.used().threads > 1 && explored_nothing(&outcome, &program.used()) {
        text += &row("note", ALONE, &layout);
    }
    if let Some(lines) = program.unidentified() {
        let lines = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
        let cost = format!(
            "objects that {lines} of the program made on the heap could not be identified, so the \
             orders of their first uses count as schedules and there are more executions than \
             necessary: enable the feature `allocator`, or wrap your allocator in \
             `preempt::alloc::Allocator`"
        );
        text += &row("note", &cost, &layout);
    }
    text += &written;
    (outcome, text)
}

/// Which memory model was explored.
fn memory_words(outcome: &Outcome, used: &Used) -> &'static str {
    match outcome.memory {
        MemoryModel::Weak => "weak: what the orderings of atomics allow, except load buffering",
        _ if used.weak.is_none() => {
            "sequentially consistent: no ordering weaker than SeqCst was used"
        }
        _ if used.is_watched && !outcome.findings.is_empty() => {
            "sequentially consistent, which is enough for this failure"
        }
        // One thread, one object, or executions in which no access could be stale.
        _ if used.weaker().is_none() => {
            "sequentially consistent: the orderings of atomics allow nothing else"
        }
        _ => "sequentially consistent: what weaker orderings of atomics allow was not explored",
    }
}

/// An execution of a schedule.
pub(crate) struct Executed {
    pub(crate) replayed: Replayed,
    /// Whether the first panic is that of a spawned thread.
    spawned_panics: bool,
}

/// Executes a schedule that numbers threads in the order of their starts. The program grows as
/// necessary.
pub(crate) fn execute<'f>(
    mut program: Closure<'f>,
    schedule: &Schedule,
) -> (Closure<'f>, Replayed) {
    loop {
        match attempt(&program, schedule, None, Numbering::Portable) {
            Ok(executed) => return (program, executed.replayed),
            Err(need) if program.grow(need) == Restart::Again => {}
            Err(_) => {
                let why =
                    program.refusal.as_deref().expect("a program that refuses a need says why");
                panic!("this schedule cannot be replayed: {why}");
            }
        }
    }
}

/// Executes a schedule and explains `failure`, or the failure that shows at its end.
fn attempt(
    program: &Closure<'_>,
    schedule: &Schedule,
    failure: Option<&Failure>,
    numbering: Numbering,
) -> Result<Executed, RestartReason> {
    let mut cursor = Cursor::over(program.start()?)?;
    let mut replayed = record(&mut cursor, schedule, numbering)?;
    // Whether the state repeats itself is only known without narration: see `cycle_of`.
    replayed.failures.retain(|failure| failure.kind != FailureKind::Livelock);
    let runtime = cursor.system_mut().runtime();
    let spins = replayed.misfit.is_none() && replayed.failures.is_empty();
    let spins = spins && !runtime.recording.only_spinning().is_empty();
    let spawned_panics = runtime.verdict.panics.first().is_some_and(|panic| panic.thread != 0);
    let trace = &mut replayed.trace;
    trace.cycle = if spins { cycle_of(program, schedule, numbering)? } else { 0 };
    let dead = replayed.failures.iter_mut().find(|of| of.kind == FailureKind::Deadlock);
    let is_dead = dead.is_some();
    if let Some(failure) = dead {
        *failure = deadlock_of(&trace.waiting, &trace.names);
    }
    if trace.cycle > 0 {
        replayed.failures.push(livelock_of(&trace.next, &trace.names, trace.cycle));
    }
    let failure = failure.filter(|failure| !is_of_threads(failure.kind));
    let failure = failure.or(replayed.failures.first()).cloned();
    if !is_dead && failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Panic) {
        // Waiting threads do not explain this failure.
        trace.waiting.clear();
    }
    let is_judged = |failure: &Failure| failure.kind == FailureKind::Linearizability;
    if failure.as_ref().is_some_and(is_judged) && !trace.next.is_empty() {
        // Nor this one, unless calls never return.
        trace.waiting.clear();
    }
    if let Some(failure) = failure {
        replayed.explain(&mut cursor, failure);
    }
    Ok(Executed { replayed, spawned_panics })
}

/// Whether the message of such a failure names the threads that wait or spin.
fn is_of_threads(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Deadlock | FailureKind::Livelock)
}

/// The number of last steps that the execution of a schedule repeats forever, if it is a livelock;
/// otherwise 0. Narrated operations leave different data on the stacks of their threads, which are
/// part of the compared state, so the schedule is executed once more without narration.
fn cycle_of(
    program: &Closure<'_>,
    schedule: &Schedule,
    numbering: Numbering,
) -> Result<usize, RestartReason> {
    let mut cursor = Cursor::over(program.start()?)?;
    for &asked in schedule.steps() {
        let thread = match numbering {
            Numbering::Slots => Some(asked.thread),
            Numbering::Portable => cursor.system().numbered(asked.thread),
        };
        let thread = thread.expect("the schedule was just executed");
        cursor.step(Choice { thread, ..asked })?;
    }
    Ok(cycle(&cursor))
}

/// A deadlock. A thread of a closure may not rest, so every thread that waits is part of it.
fn deadlock_of(waiting: &[ThreadPosition], names: &[String]) -> Failure {
    let who: Vec<&str> =
        waiting.iter().map(|waiting| names[waiting.thread.index()].as_str()).collect();
    let who = match &who[..] {
        [] => return deadlock(),
        [one] => format!("{one} waits"),
        [others @ .., last] => format!("{} and {last} wait", others.join(", ")),
    };
    Failure { message: format!("no thread can move: {who} forever"), ..deadlock() }
}

/// A livelock: the threads that spin, their positions, and the length of the cycle.
fn livelock_of(next: &[ThreadPosition], names: &[String], period: usize) -> Failure {
    let spins = |next: &ThreadPosition| {
        let place = next
            .narration
            .site
            .as_ref()
            .map(|site| format!(" ({}:{})", site.file, site.line))
            .unwrap_or_default();
        format!("{}{place}", names[next.thread.index()])
    };
    let who: Vec<String> = next.iter().map(spins).collect();
    let who = match &who[..] {
        [] => return livelock(),
        [one] => format!("{one} repeats"),
        [others @ .., last] => format!("{} and {last} repeat", others.join(", ")),
    };
    let period = if period == 1 { "step".to_owned() } else { format!("{period} steps") };
    let message = format!(
        "the program runs forever: {who} the same {period}, after which the state is the \
         same as before"
    );
    Failure { message, ..livelock() }
}
