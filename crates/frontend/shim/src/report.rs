//! The outcome of a check as text: the story of each finding, and what was covered.
//!
//! Slots are given to threads in the order in which a search meets them. A schedule that leaves this process names threads by the
//! order in which it starts them itself, so that it can be replayed alone.

use preempt_explore::cursor::Cursor;
use preempt_explore::replay::{deadlock, livelock};
use preempt_explore::system::{Program, Status};
use preempt_explore::{Outcome, Plan};
use preempt_report::story::{Told as Step, Waiting};
use preempt_report::{Checked, Layout, Story, Timeline};
use preempt_system::{Choice, Failure, FailureKind, Narration, Schedule, ThreadId, Verdict};

use crate::page::{Page, Watch};
use crate::program::Closure;
use crate::runtime::op::{Act, NOTHING, Op};
use crate::runtime::{Runtime, place};

pub(crate) const LAYOUT_WIDTH: usize = 120;

/// The outcome with schedules that can be replayed alone, and the whole report.
pub(crate) fn tell(
    plan: &Plan,
    mut outcome: Outcome,
    program: &Closure<'_>,
    page: Option<&Page<'_>>,
) -> (Outcome, String) {
    let (mut stories, mut timelines) = (Vec::new(), Vec::new());
    for finding in &mut outcome.findings {
        let told = tell_one(program, &finding.schedule, Some(&finding.failure), Names::Slots);
        if finding.failure.kind == FailureKind::Deadlock {
            finding.failure = told.story.failure.clone().unwrap_or_else(deadlock);
        }
        finding.schedule = Schedule(finding.schedule.steps().iter().map(|&choice| told.by_start(choice)).collect());
        stories.push(told.story);
        timelines.push(told.timeline);
    }
    let checked = Checked {
        plan,
        chosen: None,
        outcome: &outcome,
        stories: &stories,
        peak_memory: None,
        replay: "PREEMPT_REPLAY=",
    };
    let mut text = checked.to_text(&Layout { width: LAYOUT_WIDTH, ..Layout::default() });
    text += "  memory    sequentially consistent: what weaker orderings of atomics allow was not explored\n";
    if outcome.verdict == Verdict::Ok && outcome.executions() == Some(1) {
        text += "  note      there was one schedule only: nothing that the threads share is controlled, or there is one thread\n";
    }
    text += &page.map(|page| page.write(&checked, &timelines)).unwrap_or_default();
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
    pub(crate) story: Story,
    pub(crate) timeline: Timeline,
    /// What shows at its end.
    pub(crate) failures: Vec<Failure>,
    pub(crate) preemptions: u32,
    /// How many steps could be taken.
    pub(crate) taken: usize,
    order: Vec<usize>,
}

impl Told {
    /// A step of a slot, as one of the thread that was started as so-and-so-many-th.
    fn by_start(&self, choice: Choice) -> Choice {
        let nth = self.order.iter().position(|&slot| slot == choice.thread.index());
        Choice { thread: ThreadId::new(nth.expect("a thread that moves was started")), ..choice }
    }
}

/// Tells the execution of a schedule that names threads by their starts, of a program that grows as it has to.
pub(crate) fn told<'f>(
    mut program: Closure<'f>,
    schedule: &Schedule,
    failure: Option<&Failure>,
) -> (Closure<'f>, Told) {
    loop {
        match attempt(&program, schedule, failure, Names::Starts) {
            Ok(told) => return (program, told),
            Err(capacity) => program = program.grow(capacity),
        }
        if let Some(refusal) = &program.refusal {
            panic!("this schedule cannot be replayed: {refusal}");
        }
    }
}

fn tell_one(program: &Closure<'_>, schedule: &Schedule, failure: Option<&Failure>, names: Names) -> Told {
    match attempt(program, schedule, failure, names) {
        Ok(told) => told,
        Err(capacity) => panic!("a program that was searched is large enough: {capacity:?}"),
    }
}

fn attempt(
    program: &Closure<'_>,
    schedule: &Schedule,
    failure: Option<&Failure>,
    names: Names,
) -> Result<Told, preempt_system::Capacity> {
    let mut cursor = Cursor::over(program.start()?)?.recording();
    let (mut steps, mut watch) = (Vec::new(), Watch::new());
    let mut failed: Option<Failure> = cursor.system_mut().first_failure();
    for &choice in schedule.steps() {
        let order = &cursor.system_mut().runtime().order;
        let thread = match names {
            Names::Slots => Some(choice.thread),
            Names::Starts => order.get(choice.thread.index()).map(|&slot| ThreadId::new(slot)),
        };
        let possible = thread.map(|thread| Choice { thread, ..choice });
        let Some(choice) = possible.filter(|&choice| cursor.can(choice)) else {
            break;
        };
        let chosen = choice.alternative > 0 || cursor.pending(choice.thread).footprints.len() > 1;
        let preempts = cursor.running().filter(|&last| last != choice.thread && cursor.enabled().contains(last));
        let op = next_op(cursor.system_mut().runtime(), choice.thread);
        cursor.system_mut().runtime().telling = Some(Vec::new());
        failed = cursor.step(choice)?.map(|failure| *failure);
        let runtime = cursor.system_mut().runtime();
        let told = runtime.telling.take().unwrap_or_default();
        let narration = narrate(runtime, choice.thread, op, told);
        watch.step(runtime, op);
        let alternative = chosen.then_some(choice.alternative);
        steps.push(Step { thread: choice.thread, alternative, narration, preempts });
    }
    let mut failures: Vec<Failure> = failed.into_iter().collect();
    failures.extend(cursor.is_livelock().then(livelock));
    let mut waiting = Vec::new();
    for thread in (0..cursor.threads()).map(ThreadId::new) {
        if matches!(cursor.pending(thread).status, Status::Blocked { .. }) {
            let runtime = cursor.system_mut().runtime();
            let op = next_op(runtime, thread);
            waiting.push(Waiting { thread, narration: narrate(runtime, thread, op, Vec::new()) });
        }
    }
    let names: Vec<String> = {
        let runtime = cursor.system_mut().runtime();
        (0..runtime.threads.len()).map(|slot| runtime.thread_name(slot)).collect()
    };
    let dead = cursor.is_deadlock().then(|| who_waits(&waiting, &names));
    failures.extend(dead.clone());
    let (taken, preemptions) = (steps.len(), cursor.preemptions().count());
    let timeline = watch.timeline(cursor.graph().expect("the cursor is recording"));
    let runtime = cursor.system_mut().runtime();
    let order = runtime.order.clone();
    let failure = failure.filter(|failure| failure.kind != FailureKind::Deadlock).or(failures.first()).cloned();
    let story = Story { names, steps, failure, waiting, variables: Vec::new() };
    Ok(Told { story, timeline, failures, preemptions, taken, order })
}

/// A deadlock: here nobody may rest, so that everybody who waits is part of it.
fn who_waits(waiting: &[Waiting], names: &[String]) -> Failure {
    let who: Vec<&str> = waiting.iter().map(|waiting| names[waiting.thread.index()].as_str()).collect();
    let who = match &who[..] {
        [] => return deadlock(),
        [one] => format!("{one} waits"),
        [others @ .., last] => format!("{} and {last} wait", others.join(", ")),
    };
    Failure { message: format!("no thread can move: {who} for ever"), ..deadlock() }
}

/// What a thread is about to do.
fn next_op(runtime: &mut Runtime, thread: ThreadId) -> Option<Op> {
    let at = runtime.state.counts[thread.index()] as usize;
    runtime.threads[thread.index()].history.ops.get(at).copied()
}

fn narrate(runtime: &Runtime, thread: ThreadId, op: Option<Op>, told: Vec<String>) -> Narration {
    let Some(op) = op else { return Narration::default() };
    let mut told = told.into_iter();
    let words = if op.act == Act::Finish { None } else { told.next() };
    let words = words.unwrap_or_else(|| op.verb.to_owned());
    let own = op.object as usize == thread.index() || op.object == NOTHING;
    let source = match op.verb {
        "join" => format!("join {}", runtime.thread_name(op.object as usize)),
        _ if own => words,
        _ => format!("{}.{words}", runtime.names.object(op.object)),
    };
    let site = (op.act != Act::Finish).then(|| place(op.site));
    Narration { site, source, effects: told.collect() }
}
