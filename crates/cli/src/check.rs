//! `preempt check`: searches a model and reports.

use std::fs;
use std::time::Instant;

use preempt_explore::{Limit, Outcome, Refusal, Search, memory};
use preempt_machine::Machine;
use preempt_report::{
    CheckReport, ReplayCommand, ScheduleFile, Trace, Unreached, UnreachedPlace, traces,
};
use preempt_system::Verdict;

use crate::args::{Check, ModelArgs, ReduceArg};
use crate::checkpoint::Checkpointing;
use crate::choice::choose;
use crate::progress::{Watcher, Wish};
use crate::{Exit, Refused, input, output, page, screen};

/// Runs the command.
pub fn run(args: &Check) -> Result<Exit, Refused> {
    let refuse = |refusal: Refusal| Refused::because(refusal.to_string());
    let load = || {
        let (started, most) = (Instant::now(), args.memory.or_else(memory::most_of_what_is_free));
        let machine = input::load_within(&args.model.file, &args.model.settings, most)?;
        Ok((machine, started.elapsed()))
    };
    // What the options alone decide is refused before the model is read.
    let (plan, machine, chosen) = if args.reduce == ReduceArg::Auto {
        let loaded = load()?;
        let choice = choose(args, &loaded.0);
        (args.plan(Some(choice.reduction))?, Some(loaded), Some(choice.because))
    } else {
        (args.plan(None)?, None, None)
    };
    let mut search = plan.build().map_err(refuse)?;
    let (machine, loading) = machine.map_or_else(load, Ok)?;
    search.suits(&machine).map_err(refuse)?;
    if let Some(path) = &args.save_schedule {
        output::writable(path, "the schedule")?;
    }
    if let Some(path) = &args.html {
        output::writable(path, "the page")?;
    }
    let mut checkpointing = Checkpointing::of(args)?;
    let resumed = checkpointing.as_ref().is_some_and(Checkpointing::is_resuming);
    // Who goes on with the search proper has scouted before.
    let scouts = match (&checkpointing, args.scout(&plan)) {
        (Some(checkpointing), Some(scout)) => {
            !checkpointing.is_resuming() || checkpointing.resumes(&scout)
        }
        _ => true,
    };
    let watcher = Watcher::new(if args.json || args.quiet { Wish::Quiet } else { Wish::Progress });
    let mut run = |search: &Search, machine| match &mut checkpointing {
        Some(checkpointing) => checkpointing.run(search, machine, &watcher),
        None => Ok(search.run(machine, &watcher)),
    };
    let (mut ended, mut scouted) = (None, None);
    if let Some(plan) = args.scout(&plan).filter(|_| scouts) {
        let scout = plan.build().map_err(refuse)?;
        let (outcome, grown) = run(&scout, machine.clone())?;
        if !outcome.findings.is_empty()
            || matches!(outcome.stopped, Some(Limit::Interrupt | Limit::Time))
        {
            ended = Some((outcome, grown));
            search = scout;
        } else {
            // The time is for both.
            search = search.after(outcome.elapsed);
            scouted = Some(outcome);
        }
    }
    let (mut outcome, machine) = ended.map_or_else(|| run(&search, machine), Ok)?;
    outcome.elapsed += loading;
    watcher.finish();
    let traces = traces(&machine, search.plan(), &outcome);
    let checked = CheckReport {
        plan: search.plan(),
        outcome: &outcome,
        scouted: scouted.as_ref(),
        chosen: chosen.filter(|_| search.plan().reduction == plan.reduction),
        traces: &traces,
        peak_memory: peak_memory(),
        replay: &ReplayCommand {
            before: input::replay_command(&args.model) + " ",
            after: String::new(),
        },
        first: "--first",
        unreached: Some(unreached(&machine, &outcome, resumed)),
    };
    let report = if args.json {
        format!("{}\n", checked.to_json())
    } else {
        checked.to_text(&screen::layout())
    };
    // If that fails, the files that were asked for are written anyway.
    let printed = screen::print(&report);
    if let Some(checkpointing) = &checkpointing {
        checkpointing.finish(&outcome);
    }
    let mut saved = Vec::new();
    if let (Some(path), Some(trace)) = (&args.save_schedule, traces.first()) {
        let recorded = recorded(&args.model, trace);
        saved.push(output::save(path, "the schedule", &recorded.to_string()));
    }
    if let Some(path) = &args.html {
        saved.push(output::save(path, "the page", &page::checked(&machine, &checked)));
    }
    printed?;
    let unsaved: Vec<Refused> = saved.into_iter().filter_map(Result::err).collect();
    unsaved.iter().for_each(|Refused(why)| screen::complain(why));
    Ok(match outcome.verdict {
        // A finding counts more than a file that cannot be written.
        verdict if !matches!(verdict, Verdict::Ok | Verdict::Incomplete) => Exit::Finding,
        _ if !unsaved.is_empty() => Exit::Refused,
        Verdict::Ok => Exit::Covered,
        _ => Exit::Incomplete,
    })
}

/// What was never reached, if the search has covered everything from its beginning.
fn unreached(machine: &Machine, outcome: &Outcome, resumed: bool) -> Unreached {
    if !outcome.complete {
        return Unreached::Open;
    }
    if resumed {
        return Unreached::Resumed;
    }
    let place = |lines: preempt_machine::Unreached| UnreachedPlace {
        first: lines.first,
        last: lines.last,
        outcome: lines.outcome,
    };
    let places = machine.unreached().into_iter().map(place).collect();
    Unreached::Lines { file: machine.program().source.name.to_string(), places }
}

/// The schedule of a finding, with the data that help to replay it.
fn recorded(model: &ModelArgs, trace: &Trace) -> ScheduleFile {
    ScheduleFile {
        model: Some(model.file.display().to_string()),
        settings: model.settings.clone(),
        ..trace.schedule_file()
    }
}

/// The most memory that this process had so far, where the system tells.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
