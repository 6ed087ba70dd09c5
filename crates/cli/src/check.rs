//! `preempt check`: searches a model and reports.

use std::fs;
use std::time::Instant;

use preempt_explore::portfolio::{Portfolio, PortfolioOutcome};
use preempt_explore::{
    Limit, Order, Outcome, Plan, Reduction, Refusal, Setting, StoreKind, Term, memory,
};
use preempt_machine::Machine;
use preempt_report::{
    CheckReport, ReplayCommand, ScheduleFile, Trace, Unreached, UnreachedPlace, traces,
};
use preempt_system::{MemoryModel, Model as _};

use crate::args::{Check, ModelArgs};
use crate::checkpoint::Checkpointing;
use crate::choice::choose;
#[cfg(feature = "cluster")]
use crate::cluster;
use crate::progress::{Watcher, Wish};
use crate::search::{Pick, needs};
use crate::{Exit, Refused, input, output, page, screen};

/// Runs the command.
pub fn run(args: &Check) -> Result<Exit, Refused> {
    let refuse = |refusal: Refusal| Refused::by_engine(&refusal);
    let load = || {
        let (started, most) =
            (Instant::now(), args.search.memory_limit().or_else(memory::default_limit));
        let machine = input::load_within(&args.model.file, &args.model.settings, most)?;
        Ok((machine, started.elapsed()))
    };
    let build = |memory, reduction| {
        let plan = args.plan(memory, reduction)?;
        let portfolio = Portfolio::new(args.scout(&plan), plan).map_err(refuse)?;
        Ok::<_, Refused>((plan, portfolio))
    };
    // Refusals that depend on the options alone come before the errors of the model, unless the
    // options are for weak memory and the model has it.
    let (machine, loading) = match args.search.reduce {
        Pick::Auto => load()?,
        _ => match (build(MemoryModel::Sc, None), load()) {
            (Err(refused), Ok((machine, _))) if machine.memory_model() == MemoryModel::Sc => {
                return Err(refused);
            }
            (Err(refused), Err(_)) => return Err(refused),
            (_, loaded) => loaded?,
        },
    };
    let chosen = (args.search.reduce == Pick::Auto).then(|| choose(args, &machine));
    let reduction = chosen.map(|choice| choice.reduction);
    let (plan, _) = build(machine.memory_model(), reduction)?;
    let chosen = chosen.map(|choice| choice.because);
    #[cfg(feature = "cluster")]
    let plan = args.cluster.shared(plan, args);
    let mut portfolio = Portfolio::new(args.scout(&plan), plan).map_err(refuse)?;
    #[cfg(feature = "cluster")]
    if args.cluster.are_used() {
        args.cluster.check(args, portfolio.main())?;
        if let Some(position) = args.cluster.position()?.filter(|position| position.process > 0) {
            return cluster::take_part(args, &plan, &position);
        }
    }
    if args.spill.is_some() && !spills(&plan) {
        return Err(needs(Setting::Spill, vec![Term::Strategy("bfs")]));
    }
    let is_sorted = plan.store == StoreKind::Sorted;
    if args.spill.is_some() && args.checkpoints.are_used() && !is_sorted {
        // A search that starts again in files has checkpoints of another kind.
        return Err(needs(Setting::Checkpoint, vec![Term::Sorted]));
    }
    if let Some(directory) = &args.spill {
        output::writable_directory(directory, "--spill")?;
        portfolio = portfolio.spill_to(directory.clone());
    }
    portfolio.main().suits(&machine).map_err(refuse)?;
    if let Some(path) = &args.search.save_schedule {
        output::writable(path, "the schedule")?;
    }
    if let Some(path) = &args.search.html {
        output::writable(path, "the page")?;
    }
    #[cfg(feature = "cluster")]
    let is_alone = !args.cluster.are_used();
    #[cfg(not(feature = "cluster"))]
    let is_alone = true;
    let mut checkpointing = match is_alone {
        true => args.checkpoints.open(|| program(&args.model))?,
        // The session has checkpoints of its own.
        false => None,
    };
    let resumed = checkpointing.as_ref().is_some_and(Checkpointing::is_resuming);
    let watcher = Watcher::new(if args.search.json || args.search.quiet {
        Wish::Quiet
    } else {
        Wish::Progress
    });
    #[cfg(feature = "cluster")]
    let mut session = match is_alone {
        true => None,
        false => match cluster::Session::lead(args, portfolio.main()) {
            Ok(session) => Some(session),
            Err(unstarted) => return unstarted.end(),
        },
    };
    let ran = portfolio.run(machine, &watcher, |search, machine, observer| {
        #[cfg(feature = "cluster")]
        if let Some(session) = &mut session {
            return session.run(search, machine, &watcher);
        }
        match &mut checkpointing {
            Some(checkpointing) => {
                checkpointing.run(|checkpoints| search.run_with(machine, observer, checkpoints))
            }
            None => Ok(search.run(machine, observer)),
        }
    })?;
    let PortfolioOutcome { mut outcome, model: machine, search, scouted } = ran;
    outcome.elapsed += loading;
    watcher.finish();
    #[cfg(feature = "cluster")]
    if let Some(session) = session {
        session.finish(&outcome);
    }
    let traces = traces(&machine, &outcome);
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
        // Each process knows only what it has reached itself.
        unreached: is_alone.then(|| unreached(&machine, &outcome, resumed)),
    };
    let report = if args.search.json {
        format!("{}\n", checked.to_json())
    } else {
        checked.to_text(&screen::layout())
    };
    // If that fails, the files that were asked for are written anyway.
    let printed = screen::print(&report);
    if let Some(checkpointing) = &checkpointing {
        checkpointing.finish(&outcome);
    }
    if outcome.stopped == Some(Limit::Memory) && args.spill.is_none() && spills(search.plan()) {
        screen::complain("To continue on disk when memory runs out: add --spill DIR\n");
    }
    let mut saved = Vec::new();
    if let (Some(path), Some(trace)) = (&args.search.save_schedule, traces.first()) {
        let recorded = recorded(&args.model, trace);
        saved.push(output::save(path, "the schedule", &recorded.to_string()));
    }
    if let Some(path) = &args.search.html {
        saved.push(output::save(path, "the page", &page::checked(&machine, &checked)));
    }
    printed?;
    Ok(output::exit(Exit::of(outcome.verdict), saved))
}

/// Whether the search of a plan can continue in files.
fn spills(plan: &Plan) -> bool {
    use StoreKind::{Exact, Sorted, Tree};
    let is_bfs = plan.order == Order::BreadthFirst && plan.reduction == Reduction::None;
    is_bfs && matches!(plan.store, Exact | Sorted | Tree)
}

/// The hash of a model and its settings.
fn program(model: &ModelArgs) -> Result<u64, Refused> {
    Ok(input::model_hash(&input::read(&model.file)?, &model.settings))
}

/// The unreached lines, if the search was complete and not resumed.
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

/// The peak memory of this process, on Linux.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
