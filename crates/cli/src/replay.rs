//! `preempt replay`: runs one schedule again and says whether it still fails.

use std::path::Path;

use preempt_explore::cursor::Cursor;
use preempt_explore::replay::end;
use preempt_explore::{Replay, ReplayError, replay};
use preempt_machine::Machine;
use preempt_report::number::counted;
use preempt_report::{Ending, Layout, ScheduleFile, Trace, token};
use preempt_system::{Choice, Failure, FailureKind, Model as _, Narrate as _, Schedule};

use crate::args::ReplayArgs;
use crate::{Exit, Refused, input, output, page, screen};

/// Runs the command.
pub fn run(args: &ReplayArgs) -> Result<Exit, Refused> {
    let recorded = read(&args.schedule)?;
    if let Some(path) = &args.html {
        output::writable(path, "the page")?;
    }
    // What is said on the command line comes last and wins.
    let mut settings = recorded.settings.clone();
    settings.retain(|(name, _)| !args.model.settings.iter().any(|(given, _)| given == name));
    settings.extend(args.model.settings.iter().cloned());
    let machine = input::load(&args.model.file, &settings)?.with_stable_names();
    same_threads(&recorded, &machine)?;
    let (replayed, machine) = match replay(machine.clone(), &recorded.schedule) {
        Ok(replayed) => replayed,
        Err(error) => return Err(misfit(machine, &recorded, error)),
    };
    // Threads that the model had no room for at first.
    same_threads(&recorded, &machine)?;
    same_steps(&recorded, &replayed, &machine)?;
    let replayed = replayed.clone().fair(&machine, &recorded.schedule).unwrap_or(replayed);
    match args.stop_at {
        Some(preemption) => stop(&recorded.schedule, &replayed, machine, preemption),
        None => finish(&recorded, &replayed, &machine, args.html.as_deref()),
    }
}

/// Shows the whole execution and how it ends.
fn finish(
    recorded: &ScheduleFile,
    replayed: &Replay,
    machine: &Machine,
    html: Option<&Path>,
) -> Result<Exit, Refused> {
    // Races and livelocks are no failures of a state: they are looked for where nothing else went
    // wrong.
    let cursor = Cursor::new(machine).ok();
    let ends = cursor
        .and_then(|cursor| end(cursor.fair(), &recorded.schedule).ok())
        .map_or_else(Vec::new, |end| end.0);
    let ended = ends.iter().find(|failure| recorded.ending.is_same(Some(failure)) == Some(true));
    let failure = ending(replayed, &recorded.ending).or(ended);
    let trace = Trace::of(machine, &recorded.schedule, replayed, failure);
    screen::print(&trace.to_text(&Layout { most_steps: usize::MAX, ..screen::layout() }))?;
    let said = comparison(replayed, &recorded.ending, failure);
    screen::print(&format!("\n{said}\n"))?;
    // Who looks at a race wants to know of the others too.
    if failure.is_some_and(|failure| failure.kind == FailureKind::Race) {
        for other in
            ends.iter().filter(|other| other.kind == FailureKind::Race && Some(*other) != failure)
        {
            screen::print(&format!("Another race: {}\n", other.message))?;
        }
    }
    if let Some(path) = html {
        let page = page::replayed(machine, &recorded.schedule, replayed, &trace, &said);
        output::save(path, "the page", &page)?;
    }
    Ok(if failure.is_none() && replayed.failures().is_empty() {
        Exit::Covered
    } else {
        Exit::Finding
    })
}

/// Shows the execution up to a preemption, counted from 1, and where it stands before that.
fn stop(
    schedule: &Schedule,
    replayed: &Replay,
    machine: Machine,
    preemption: u32,
) -> Result<Exit, Refused> {
    let mut preemptive = (0..replayed.steps()).filter(|&at| replayed.is_preemption(at));
    let nth = (preemption as usize).checked_sub(1).and_then(|before| preemptive.nth(before));
    let Some(at) = nth else {
        let all = counted(replayed.preemptions().into(), "preemption");
        return Err(Refused::because(format!(
            "--stop-at {preemption}: the schedule has {all}; they are counted from 1"
        )));
    };
    let before = schedule.prefix(at);
    let (short, machine) = replay(machine, &before).expect("the beginning of a schedule is one");
    let trace = Trace::of(&machine, &before, &short.preempting_as(replayed), None);
    let layout = Layout { most_steps: usize::MAX, ..screen::layout() };
    let (preempts, preempted) = (schedule.steps()[at].thread, schedule.steps()[at - 1].thread);
    screen::print(&format!(
        "{}\nHere, before step {}, {} preempts {}.\n\n{}",
        trace.to_text(&layout),
        at + 1,
        trace.name(preempts),
        trace.name(preempted),
        trace.state_to_text(&layout),
    ))?;
    Ok(Exit::Covered)
}

/// The schedule that is a file or a token.
fn read(given: &str) -> Result<ScheduleFile, Refused> {
    let path = Path::new(given);
    if !path.exists() {
        if token::looks_like_one(given) {
            return token::parse(given).map_err(|why| {
                Refused::because(format!("the token {given} cannot be read: {why}"))
            });
        }
        return Err(Refused::because(format!(
            "there is no file {given}, and it is not a token such as p1-00000012h"
        )));
    }
    let text = input::read(path)?;
    if token::looks_like_one(text.trim()) {
        return token::parse(&text).map_err(|why| {
            Refused::because(format!("the token in {given} cannot be read: {why}"))
        });
    }
    ScheduleFile::parse(&text)
        .map_err(|wrong| Refused::because(format!("{given} is not a schedule: {wrong}")))
}

/// The names of the schedule are those of the model.
fn same_threads(recorded: &ScheduleFile, machine: &Machine) -> Result<(), Refused> {
    for (thread, name) in &recorded.names {
        if thread.index() < machine.shape().threads && machine.thread_name(*thread) != *name {
            let (slot, now) = (thread.index(), machine.thread_name(*thread));
            return Err(Refused::because(format!(
                "the schedule does not fit this model: thread {slot} is `{name}` in the schedule and `{now}` in the model"
            )));
        }
    }
    Ok(())
}

/// The steps with which contexts begin are those of the schedule, as far as `replayed` goes.
fn same_steps(
    recorded: &ScheduleFile,
    replayed: &Replay,
    machine: &Machine,
) -> Result<(), Refused> {
    let mut stepper = machine.stepper();
    for (at, then) in recorded.begins.iter().filter(|(at, _)| *at < replayed.steps()) {
        let choice = recorded.schedule.steps()[*at];
        let told = stepper.narrate(replayed.state(*at), choice);
        if told.source != *then {
            let place = told.site.map(|site| format!(" at {site}")).unwrap_or_default();
            return Err(Refused::because(format!(
                "the schedule does not fit this model: step {} is one of `{}`, and was `{then}`\n  \
                 what it would do now{place}: {}\n  \
                 the model or its constants (--set) have changed since the schedule was made",
                at + 1,
                machine.thread_name(choice.thread),
                told.source,
            )));
        }
    }
    Ok(())
}

/// What the schedule expects and the model does instead.
fn misfit(machine: Machine, recorded: &ScheduleFile, error: ReplayError) -> Refused {
    let (ReplayError::NoThread { step, choice }
    | ReplayError::Absent { step, choice }
    | ReplayError::Blocked { step, choice }
    | ReplayError::Ended { step, choice }) = error
    else {
        unreachable!("a model grows until a schedule fits: {error}");
    };
    let before = recorded.schedule.prefix(step);
    let (replayed, machine) =
        replay(machine, &before).expect("the steps before the first that differs can be taken");
    // Something before it may have been different already.
    if let Err(refused) = same_steps(recorded, &replayed, &machine) {
        return refused;
    }
    let (state, mut stepper) = (replayed.state(step), machine.stepper());
    let name = |choice: Choice| match choice.thread.index() < machine.shape().threads {
        true => format!("`{}`", machine.thread_name(choice.thread)),
        false => format!("thread {}", choice.thread.index()),
    };
    let why = match error {
        ReplayError::NoThread { .. } => "of which the model has none".to_owned(),
        ReplayError::Ended { .. } => "which has ended or was not started".to_owned(),
        ReplayError::Absent { .. } => format!("which has no alternative {}", choice.alternative),
        _ => {
            let told = stepper.waits_for(state, choice.thread).unwrap_or_default();
            let place = told.site.map(|site| format!(" at {site}")).unwrap_or_default();
            format!("which has to wait{place}: {} // {}", told.source, told.effects.join(", "))
        }
    };
    let expected = recorded.begins.iter().find(|(at, _)| *at == step);
    let expected = expected.map(|(_, then)| format!(" that was `{then}`")).unwrap_or_default();
    let others: Vec<String> =
        replayed.enabled(step).iter().map(|thread| name(Choice::of(thread))).collect();
    let others = if others.is_empty() { "nobody".into() } else { others.join(", ") };
    Refused::because(format!(
        "the schedule does not fit this model: step {} is one of {}{expected}, {why}\n  \
         who can move there: {others}\n  \
         the model or its constants (--set) have changed since the schedule was made",
        step + 1,
        name(choice),
    ))
}

/// The failure at the end that is to be told: the recorded one if it is still there.
fn ending<'r>(replayed: &'r Replay, recorded: &Ending) -> Option<&'r Failure> {
    let at_end = || {
        replayed
            .failures()
            .iter()
            .filter(|(at, _)| *at == replayed.steps())
            .map(|(_, failure)| failure)
    };
    at_end()
        .find(|failure| recorded.is_same(Some(failure)) == Some(true))
        .or_else(|| at_end().next())
}

/// Whether it is the same as it was.
fn comparison(replayed: &Replay, recorded: &Ending, failure: Option<&Failure>) -> String {
    let then = match recorded {
        Ending::Described(then) => format!("When it was recorded: {then}"),
        _ => "When it was recorded, it failed.".to_owned(),
    };
    let mut text = match (recorded.is_same(failure), failure) {
        (Some(true), _) => "The schedule still fails in the same way.".to_owned(),
        (Some(false), Some(_)) => format!("The schedule fails in another way.\n{then}"),
        (Some(false), None) => format!("The schedule does not fail any more.\n{then}"),
        (None, Some(_)) => "The schedule fails.".to_owned(),
        (None, None) => "The schedule does not fail.".to_owned(),
    };
    for (at, failure) in replayed.failures().iter().filter(|(at, _)| *at < replayed.steps()) {
        text += &format!("\nBefore its end, after step {at}: {}", failure.message);
    }
    text
}
