//! The outcome of a check as text: the trace of each finding, and what was covered.
//!
//! Slots are given to threads in the order in which a search meets them. A schedule that leaves
//! this process names threads by the order in which it starts them itself, so that it can be
//! replayed alone.

use std::path::Path;

use preempt_explore::cursor::Cursor;
use preempt_explore::replay::{deadlock, livelock};
use preempt_explore::{Outcome, Plan};
use preempt_replay::Op;
use preempt_report::text_report::row;
use preempt_report::trace::{NarratedStep, Waiting};
use preempt_report::{
    CheckReport, Ending, Headline, Layout, ScheduleFile, Style, Trace, ValueHistory,
};
use preempt_system::{
    Choice, Failure, FailureKind, Program, Restart, Schedule, Status, ThreadId, ThreadSet, Verdict,
};

use crate::caveats::explored_nothing;
use crate::narrator::{Narrator, origin};
use crate::page::{Page, Watch};
use crate::program::Closure;
use crate::runtime::Runtime;
use crate::runtime::needs::Need;

/// How reports are laid out: as wide as the environment says the terminal is, 80 characters if it
/// says nothing. Colours only if they are forced: the text may be that of a panic, which is read by
/// others.
pub(crate) fn layout() -> Layout {
    let forced =
        std::env::var_os("CLICOLOR_FORCE").is_some_and(|value| !value.is_empty() && value != "0");
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let style = if forced && !plain { Style::coloured() } else { Style::default() };
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let usual = Layout::default();
    // A test may expect a panic with certain words.
    let headline = Headline::Whole;
    Layout { style, width: columns.unwrap_or(usual.width).max(usual.width), headline, ..usual }
}

/// What a report is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Text,
    /// Text, or nothing if all is well.
    Failure,
    Json,
}

/// What is wanted of a report.
pub(crate) struct Telling<'a> {
    /// Where the schedule of the first finding is written.
    pub(crate) save: Option<&'a Path>,
    pub(crate) page: Option<&'a Page<'a>>,
    pub(crate) format: Format,
}

/// What is said of a test that passes and has nothing to explore.
const ALONE: &str = "there is one schedule only: the threads share nothing that preempt controls";

/// What is said of the panic of a spawned thread.
const SPAWNED_PANICS: &str = "a panic of a spawned thread fails a check, joined or not, unless the thread catches it; `Check::allow_panics` or \
                              PREEMPT_ALLOW_PANICS=1 makes it a result of `join`";

/// How a test asks for the first finding of several workers.
pub(crate) const FIRST: &str = "`Check::first` (PREEMPT_FIRST=1)";

/// The outcome with schedules that can be replayed alone, and the whole report.
pub(crate) fn tell(
    plan: &Plan,
    mut outcome: Outcome,
    program: &Closure<'_>,
    telling: &Telling<'_>,
) -> (Outcome, String) {
    let Telling { save, page, format } = *telling;
    let (mut traces, mut histories) = (Vec::new(), Vec::new());
    let (mut spawned_panics, mut unsaved) = (false, String::new());
    for finding in &mut outcome.findings {
        let told = tell_one(program, &finding.schedule, Some(&finding.failure), Names::Slots);
        // The search does not say who waits, or who spins.
        if matches!(finding.failure.kind, FailureKind::Deadlock | FailureKind::Livelock)
            && let Some(told) = told.failures.iter().find(|told| told.kind == finding.failure.kind)
        {
            finding.failure = told.clone();
        }
        finding.schedule = finding.schedule.map(|choice| told.by_start(choice));
        if let Some(path) = save.filter(|_| traces.is_empty()) {
            let recorded = told.recorded(&finding.schedule, &finding.failure);
            if let Err(error) = std::fs::write(path, recorded.to_string()) {
                // A finding counts more than a file that cannot be written.
                unsaved = format!(
                    "  saved     the schedule cannot be saved as {}: {error}\n",
                    path.display()
                );
            }
        }
        spawned_panics |= told.spawned_panics;
        traces.push(told.trace);
        histories.push(told.history);
    }
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
    let written = unsaved + &page.map(|page| page.write(&checked, &histories)).unwrap_or_default();
    if format == Format::Json {
        let json = format!("{}\n", checked.to_json());
        return (outcome, json);
    }
    if format == Format::Failure && outcome.verdict == Verdict::Ok {
        return (outcome, String::new());
    }
    let layout = layout();
    let mut text = checked.to_text(&layout);
    let weaker = "sequentially consistent: what weaker orderings of atomics allow was not explored";
    text += &row("memory", weaker, &layout);
    if spawned_panics && !program.options.allow_panics {
        text += &row("note", SPAWNED_PANICS, &layout);
    }
    if program.used().threads > 1 && explored_nothing(&outcome, &program.used()) {
        text += &row("note", ALONE, &layout);
    }
    if let Some(lines) = program.unidentified() {
        let lines = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
        let cost = format!(
            "objects that {lines} of the program made on the heap could not be identified, so the orders of their first uses count as schedules and \
             there are more executions than necessary: turn the feature `allocator` on, or wrap your own allocator by `preempt::alloc::Allocator`"
        );
        text += &row("note", &cost, &layout);
    }
    text += &written;
    (outcome, text)
}

/// How a schedule names threads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    /// By their slots.
    Slots,
    /// By the order in which they are started.
    Starts,
}

/// An execution, told.
pub(crate) struct Told {
    pub(crate) trace: Trace,
    pub(crate) history: ValueHistory,
    /// What shows at its end.
    pub(crate) failures: Vec<Failure>,
    pub(crate) preemptions: u32,
    /// How many steps could be taken.
    pub(crate) taken: usize,
    /// Why the next one could not.
    pub(crate) misfit: Option<String>,
    /// Whether the first panic is that of a spawned thread.
    spawned_panics: bool,
    /// The word for each step.
    pub(crate) verbs: Vec<&'static str>,
    order: Vec<usize>,
}

impl Told {
    /// The name of the thread that was started as so-and-so-many-th.
    pub(crate) fn name_of(&self, nth: ThreadId) -> Option<String> {
        self.order.get(nth.index()).map(|&slot| self.trace.names[slot].clone())
    }

    /// The schedule for a file. Names are those of threads by their starts, and steps are told by
    /// their verbs: they do not depend on whether the source can be read.
    pub(crate) fn recorded(&self, schedule: &Schedule, failure: &Failure) -> ScheduleFile {
        let mut recorded = self.trace.recorded(schedule);
        let movers: ThreadSet = schedule.steps().iter().map(|step| step.thread).collect();
        recorded.names =
            movers.iter().filter_map(|thread| Some((thread, self.name_of(thread)?))).collect();
        recorded.begins.iter_mut().for_each(|(at, begin)| *begin = self.verbs[*at].to_owned());
        ScheduleFile { ending: Ending::of(Some(failure)), ..recorded }
    }

    /// A step of a slot, as one of the thread that was started as so-and-so-many-th.
    fn by_start(&self, choice: Choice) -> Choice {
        let nth = self.order.iter().position(|&slot| slot == choice.thread.index());
        Choice { thread: ThreadId::new(nth.expect("a thread that moves was started")), ..choice }
    }
}

/// Tells the execution of a schedule that names threads by their starts, of a program that grows as
/// it has to.
pub(crate) fn told<'f>(
    mut program: Closure<'f>,
    schedule: &Schedule,
    failure: Option<&Failure>,
) -> (Closure<'f>, Told) {
    loop {
        match attempt(&program, schedule, failure, Names::Starts) {
            Ok(told) => return (program, told),
            Err(need) if program.grow(need) == Restart::Again => {}
            Err(_) => {
                let why =
                    program.refusal.as_deref().expect("a program that refuses a need says why");
                panic!("this schedule cannot be replayed: {why}");
            }
        }
    }
}

fn tell_one(
    program: &Closure<'_>,
    schedule: &Schedule,
    failure: Option<&Failure>,
    names: Names,
) -> Told {
    match attempt(program, schedule, failure, names) {
        Ok(told) => told,
        Err(need) => panic!("a program that was searched has all that it needs: {need:?}"),
    }
}

fn attempt(
    program: &Closure<'_>,
    schedule: &Schedule,
    failure: Option<&Failure>,
    names: Names,
) -> Result<Told, Need> {
    let mut cursor = Cursor::over(program.start()?)?.recording();
    let (mut steps, mut verbs, mut ops, mut watch) =
        (Vec::new(), Vec::new(), Vec::new(), Watch::new());
    let mut failed: Option<Failure> = cursor.system_mut().first_failure();
    let mut misfit = None;
    let narrator = Narrator::default();
    for &asked in schedule.steps() {
        let order = &cursor.system_mut().runtime().order;
        let thread = match names {
            Names::Slots => Some(asked.thread),
            Names::Starts => order.get(asked.thread.index()).map(|&slot| ThreadId::new(slot)),
        };
        let possible = thread.map(|thread| Choice { thread, ..asked });
        let Some(choice) = possible.filter(|&choice| cursor.can(choice)) else {
            misfit = Some(match &failed {
                // Nobody moves after it.
                Some(failure) if failure.kind == FailureKind::Nondeterminism => {
                    failure.message.clone()
                }
                _ => narrator.misfit(&mut cursor, asked, thread),
            });
            break;
        };
        let chosen = choice.alternative > 0 || cursor.pending(choice.thread).footprints.len() > 1;
        let preempts = cursor
            .running()
            .filter(|&last| last != choice.thread && cursor.enabled().contains(last));
        let runtime = cursor.system_mut().runtime();
        let op = next_op(runtime, choice.thread);
        let before = runtime.recording.state().clone();
        runtime.telling = Some(Vec::new());
        failed = cursor.step(choice)?.map(|failure| *failure);
        let runtime = cursor.system_mut().runtime();
        let told = runtime.telling.take().unwrap_or_default();
        verbs.push(op.map_or("", |op| op.verb));
        let narration = narrator.step(runtime, choice.thread, op, &before, told);
        ops.push(narrator.touched(runtime, choice.thread, op, &before, &narration));
        watch.step(runtime, op, &narrator);
        let alternative = chosen.then_some(choice.alternative);
        steps.push(NarratedStep { thread: choice.thread, alternative, narration, preempts });
    }
    let mut failures: Vec<Failure> = failed.into_iter().collect();
    let spinning = cursor.system_mut().runtime().recording.only_spinning();
    let spins = misfit.is_none() && failures.is_empty() && !spinning.is_empty();
    let period = if spins { period(program, schedule, names)? } else { None };
    let (mut waiting, mut next) = (Vec::new(), Vec::new());
    for thread in (0..cursor.threads()).map(ThreadId::new) {
        let list = match cursor.pending(thread).status {
            Status::Blocked | Status::Resting => &mut waiting,
            Status::Enabled | Status::Spinning => &mut next,
            Status::Vacant | Status::Ended => continue,
        };
        let runtime = cursor.system_mut().runtime();
        let op = next_op(runtime, thread);
        list.push(Waiting { thread, narration: narrator.next(runtime, thread, op) });
    }
    let names: Vec<String> = {
        let runtime = cursor.system_mut().runtime();
        (0..runtime.threads.len()).map(|slot| runtime.thread_name(slot)).collect()
    };
    failures.extend(period.map(|period| who_spins(&next, &names, period)));
    let dead = cursor.is_deadlock().then(|| who_waits(&waiting, &names));
    failures.extend(dead.clone());
    let (taken, preemptions) = (steps.len(), cursor.preemptions().count());
    let history = watch.history(cursor.graph().expect("the cursor is recording"));
    let runtime = cursor.system_mut().runtime();
    let named = |kind| matches!(kind, FailureKind::Deadlock | FailureKind::Livelock);
    let failure = failure.filter(|failure| !named(failure.kind)).or(failures.first()).cloned();
    if dead.is_none() && failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Panic)
    {
        // Whoever waits has nothing to do with it.
        waiting.clear();
    }
    let variables = narrator.variables(runtime, &ops);
    let origins = match &failure {
        Some(failure) if failure.kind == FailureKind::Panic => {
            runtime.panics.first().and_then(|panic| {
                // What it does while it unwinds is of no interest.
                let own = steps
                    .iter()
                    .enumerate()
                    .filter(|(_, step)| step.thread.index() == panic.thread);
                let last = own.map(|(at, _)| at).nth((panic.done as usize).checked_sub(1)?)?;
                origin(&ops, panic.thread, last + 1)
            })
        }
        _ => None,
    };
    let origins = origins.into_iter().collect();
    let order = runtime.order.clone();
    let spawned_panics = runtime.panics.first().is_some_and(|panic| panic.thread != 0);
    let trace = Trace {
        names,
        steps,
        cycle: schedule.cycle().len(),
        failure,
        waiting,
        next,
        origins,
        variables,
    };
    Ok(Told { trace, history, failures, preemptions, taken, misfit, spawned_panics, verbs, order })
}

/// How many steps an execution repeats forever after this schedule, if it is a livelock. Words that
/// are made between its steps would leave traces on the stacks, which are compared; so the
/// execution is made once more, without words.
fn period(program: &Closure<'_>, schedule: &Schedule, names: Names) -> Result<Option<usize>, Need> {
    let mut cursor = Cursor::over(program.start()?)?;
    for &asked in schedule.steps() {
        let order = &cursor.system_mut().runtime().order;
        let thread = match names {
            Names::Slots => asked.thread,
            Names::Starts => ThreadId::new(order[asked.thread.index()]),
        };
        cursor.step(Choice { thread, ..asked })?;
    }
    Ok(cursor.system_mut().period())
}

/// A deadlock: here nobody may rest, so that everybody who waits is part of it.
fn who_waits(waiting: &[Waiting], names: &[String]) -> Failure {
    let who: Vec<&str> =
        waiting.iter().map(|waiting| names[waiting.thread.index()].as_str()).collect();
    let who = match &who[..] {
        [] => return deadlock(),
        [one] => format!("{one} waits"),
        [others @ .., last] => format!("{} and {last} wait", others.join(", ")),
    };
    Failure { message: format!("no thread can move: {who} for ever"), ..deadlock() }
}

/// A livelock: who spins, where, and after how many steps all is as it was.
fn who_spins(next: &[Waiting], names: &[String], period: usize) -> Failure {
    let spins = |next: &Waiting| {
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
        "the program goes on forever: {who} the same {period}, after which the state is what it was before"
    );
    Failure { message, ..livelock() }
}

/// What a thread is about to do.
pub(crate) fn next_op(runtime: &mut Runtime, thread: ThreadId) -> Option<Op> {
    runtime.recording.next_op(thread).copied()
}
