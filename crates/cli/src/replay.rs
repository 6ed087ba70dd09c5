//! `preempt replay`: executes one schedule again and reports whether it still fails.

use std::path::Path;

use preempt_machine::Machine;
use preempt_report::number::counted;
use preempt_report::recorder::{Fairness, Misfit, Replayed, replay};
use preempt_report::{Ending, Layout, ScheduleFile, Trace, token};
use preempt_system::{Failure, FailureKind, Model as _};

use crate::args::ReplayArgs;
use crate::{Exit, Refused, input, output, page, replay_executable, screen};

/// Runs the command.
pub fn run(args: &ReplayArgs) -> Result<Exit, Refused> {
    let recorded = read(&args.schedule)?;
    if replay_executable::is_meant(args) {
        return replay_executable::run(args, &recorded);
    }
    if let Some(path) = &args.html {
        output::writable(path, "the page")?;
    }
    // Settings on the command line override those of the file.
    let mut settings = recorded.settings.clone();
    settings.retain(|(name, _)| !args.settings.iter().any(|(given, _)| given == name));
    settings.extend(args.settings.iter().cloned());
    let machine = input::load(&args.file, &settings)?.with_stable_names();
    same_threads(&recorded, &machine)?;
    let choose = |replayed: &Replayed| ending(replayed, &recorded.ending).cloned();
    let (replayed, machine) = replay(machine, &recorded.schedule, Fairness::Respected, choose);
    // Threads for which the model had no slot at first.
    same_threads(&recorded, &machine)?;
    same_steps(&recorded, &replayed.trace)?;
    if let Some(misfit) = &replayed.misfit {
        return Err(does_not_fit(&recorded, misfit));
    }
    let layout = Layout { most_steps: usize::MAX, ..screen::layout() };
    match args.stop_at {
        Some(preemption) => stop(&replayed.trace, preemption, &layout, |steps| {
            let before = recorded.schedule.prefix(steps);
            Ok(replay(machine, &before, Fairness::Respected, |_| None).0.trace)
        }),
        None => finish(&recorded, &replayed, &layout, args.html.as_deref(), |sentence| {
            page::replayed(&machine, &replayed.trace, sentence)
        }),
    }
}

/// Shows the whole execution and how it ends. `page` is the page with a sentence about the end.
pub fn finish(
    recorded: &ScheduleFile,
    replayed: &Replayed,
    layout: &Layout,
    html: Option<&Path>,
    page: impl FnOnce(&str) -> String,
) -> Result<Exit, Refused> {
    let trace = &replayed.trace;
    screen::print(&trace.to_text(layout))?;
    let sentence = comparison(replayed, &recorded.ending);
    screen::print(&format!("\n{sentence}\n"))?;
    // A reader of a race report needs the other races too.
    if trace.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Race) {
        let races = replayed.failures.iter().filter(|failure| failure.kind == FailureKind::Race);
        for other in races.filter(|&other| trace.failure.as_ref() != Some(other)) {
            screen::print(&format!("Another race: {}\n", other.message))?;
        }
    }
    let saved = html.map(|path| output::save(path, "the page", &page(&sentence)));
    let fails = trace.failure.is_some() || !replayed.earlier.is_empty();
    Ok(output::exit(if fails { Exit::Finding } else { Exit::Covered }, saved))
}

/// Shows the execution up to a preemption, counted from 1, and the state before it. `replay`
/// executes the first steps of the schedule again.
pub fn stop(
    all: &Trace,
    preemption: u32,
    layout: &Layout,
    replay: impl FnOnce(usize) -> Result<Trace, Refused>,
) -> Result<Exit, Refused> {
    let mut preemptive = all.steps.iter().enumerate().filter(|(_, step)| step.preempts.is_some());
    let nth = (preemption as usize).checked_sub(1).and_then(|before| preemptive.nth(before));
    let Some((at, step)) = nth else {
        let all = counted(all.preemptions().into(), "preemption");
        return Err(Refused::because(format!(
            "--stop-at {preemption}: the schedule has {all}; they are counted from 1"
        )));
    };
    let trace = replay(at)?;
    let preempted = step.preempts.expect("the step is a preemption");
    screen::print(&format!(
        "{}\nHere, before step {}, {} preempts {}.\n\n{}",
        trace.to_text(layout),
        at + 1,
        all.name(step.thread),
        all.name(preempted),
        trace.state_to_text(layout),
    ))?;
    Ok(Exit::Covered)
}

/// The schedule that is a file or a token.
pub fn read(given: &str) -> Result<ScheduleFile, Refused> {
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
                "the schedule does not fit this model: thread {slot} is `{name}` in the schedule \
                 and `{now}` in the model"
            )));
        }
    }
    Ok(())
}

/// The first steps of contexts are those of the schedule, as far as it could be executed.
fn same_steps(recorded: &ScheduleFile, trace: &Trace) -> Result<(), Refused> {
    for (at, then) in recorded.begins.iter().filter(|(at, _)| *at < trace.steps.len()) {
        let step = &trace.steps[*at];
        if step.label != *then {
            let place = step.narration.site.as_ref().map(|site| format!(" at {site}"));
            return Err(Refused::because(format!(
                "the schedule does not fit this model: step {} is one of `{}`, and was `{then}`\n  \
                 what it would do now{}: {}\n  \
                 the model or its constants (--set) have changed since the schedule was made",
                at + 1,
                trace.name(step.thread),
                place.unwrap_or_default(),
                step.label,
            )));
        }
    }
    Ok(())
}

/// The refusal of a schedule that differs from the model: the expected step, and the actual one.
fn does_not_fit(recorded: &ScheduleFile, misfit: &Misfit) -> Refused {
    let expected = recorded.begins.iter().find(|(at, _)| *at == misfit.step);
    let expected = expected.map(|(_, then)| format!(" that was `{then}`,")).unwrap_or_default();
    Refused::because(format!(
        "the schedule does not fit this model: step {} is{expected} {misfit}\n  \
         threads that can move there: {}\n  \
         the model or its constants (--set) have changed since the schedule was made",
        misfit.step + 1,
        misfit.movers(),
    ))
}

/// The failure at the end that is reported: the recorded one if it still shows, otherwise the
/// first. Races and livelocks are not failures of a state: they are reported only if they were
/// recorded.
pub fn ending<'r>(replayed: &'r Replayed, recorded: &Ending) -> Option<&'r Failure> {
    let mut all = replayed.failures.iter();
    all.find(|failure| recorded.is_same(Some(failure)) == Some(true))
        .or_else(|| replayed.failures_of_state().next())
}

/// Whether the schedule ends as it did when it was recorded.
fn comparison(replayed: &Replayed, recorded: &Ending) -> String {
    let failure = replayed.trace.failure.as_ref();
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
    for (at, failure) in &replayed.earlier {
        text += &format!("\nBefore its end, after step {at}: {}", failure.message);
    }
    text
}
