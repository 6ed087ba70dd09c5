//! The outcome of a check as text: the story of each finding, and what was covered.

use preempt_explore::cursor::Cursor;
use preempt_explore::system::{Program, Status};
use preempt_explore::{Outcome, Plan};
use preempt_report::story::{Told, Waiting};
use preempt_report::{Checked, Layout, Story};
use preempt_system::{Failure, Narration, Schedule, ThreadId};

use crate::program::Closure;
use crate::runtime::op::{Act, Op};
use crate::runtime::{Runtime, place};

/// The whole report.
pub(crate) fn text(plan: &Plan, outcome: &Outcome, program: &Closure<'_>) -> String {
    let stories: Vec<Story> =
        outcome.findings.iter().map(|finding| story(program, &finding.schedule, Some(&finding.failure))).collect();
    let checked = Checked { plan, outcome, stories: &stories, peak_memory: None, replay: "PREEMPT_REPLAY=" };
    checked.to_text(&Layout { width: 120, ..Layout::default() })
}

/// The execution of a schedule, told.
pub(crate) fn story(program: &Closure<'_>, schedule: &Schedule, failure: Option<&Failure>) -> Story {
    let system = match program.start() {
        Ok(system) => system,
        Err(capacity) => panic!("a program that was searched can begin: {capacity:?}"),
    };
    let mut cursor = match Cursor::over(system) {
        Ok(cursor) => cursor,
        Err(capacity) => panic!("a program that was searched can begin: {capacity:?}"),
    };
    let mut steps = Vec::new();
    for &choice in schedule.steps() {
        let pending = cursor.pending(choice.thread);
        let chosen = choice.alternative > 0 || pending.footprints.len() > 1;
        let running = cursor.running();
        let preempts = running.filter(|&last| last != choice.thread && cursor.enabled().contains(last));
        let op = next_op(cursor.system_mut().runtime(), choice.thread);
        cursor.system_mut().runtime().telling = Some(Vec::new());
        if !cursor.choices(choice.thread).any(|possible| possible == choice) || cursor.step(choice).is_err() {
            break;
        }
        let runtime = cursor.system_mut().runtime();
        let told = runtime.telling.take().unwrap_or_default();
        steps.push(Told {
            thread: choice.thread,
            alternative: chosen.then_some(choice.alternative),
            narration: narrate(runtime, choice.thread, op, told),
            preempts,
        });
    }
    let slots = (0..cursor.threads()).map(ThreadId::new);
    let mut waiting = Vec::new();
    for thread in slots.clone() {
        if matches!(cursor.pending(thread).status, Status::Blocked { .. }) {
            let runtime = cursor.system_mut().runtime();
            let op = next_op(runtime, thread);
            waiting.push(Waiting { thread, narration: narrate(runtime, thread, op, Vec::new()) });
        }
    }
    let runtime = cursor.system_mut().runtime();
    let names = slots.map(|slot| runtime.thread_name(slot.index())).collect();
    Story { names, steps, failure: failure.cloned(), waiting, variables: Vec::new() }
}

/// What a thread is about to do.
fn next_op(runtime: &mut Runtime, thread: ThreadId) -> Option<Op> {
    let at = runtime.state.counts[thread.index()] as usize;
    runtime.threads[thread.index()].history.ops.get(at).copied()
}

fn narrate(runtime: &Runtime, thread: ThreadId, op: Option<Op>, told: Vec<String>) -> Narration {
    let Some(op) = op else { return Narration::default() };
    let own = op.object as usize == thread.index();
    let mut told = told.into_iter();
    let words = told.next().unwrap_or_else(|| op.verb.to_owned());
    let source = if own || words.starts_with("join") || op.object == u32::MAX {
        words
    } else {
        format!("{}.{words}", runtime.names.object(op.object))
    };
    let site = (op.act != Act::Finish).then(|| place(op.site));
    Narration { site, source, effects: told.collect() }
}
