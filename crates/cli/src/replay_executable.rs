//! `preempt replay` for an executable.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use preempt_native::Native;
use preempt_native::narrate::{Narrated, debug, narrate};
use preempt_report::recorder::{Numbering, Replayed};
use preempt_report::{Folding, Layout, ScheduleFile, Trace};
use preempt_system::{Program as _, Restart, Schedule};

use crate::args::ReplayArgs;
use crate::replay::{ending, finish, stop};
use crate::run::{ProgramArgs, page};
use crate::{Exit, Refused, output, screen};

/// Whether the file is an executable, or an option is given that only executables have.
pub fn is_meant(args: &ReplayArgs) -> bool {
    let mut start = [0; 4];
    let read = File::open(&args.file).and_then(|mut file| file.read_exact(&mut start));
    let is_elf = read.is_ok() && start == *b"\x7fELF";
    let is_program = args.program != ProgramArgs::default() || args.memory.is_some();
    is_elf || !args.args.is_empty() || is_program
}

/// Executes the schedule and reports how it ends.
pub fn run(args: &ReplayArgs, recorded: &ScheduleFile) -> Result<Exit, Refused> {
    if let Some((name, _)) = args.settings.first() {
        let why =
            format!("--set {name}: an executable has no constants; give arguments with --arg");
        return Err(Refused::because(why));
    }
    if let Some(path) = &args.html {
        output::writable(path, "the page")?;
    }
    let program = OsString::from(&args.file);
    let memory = args.memory.unwrap_or_default();
    let executable = args.program.executable(&program, &args.args, memory)?;
    let name = args.file.display().to_string();
    let showing = Showing {
        name: &name,
        folding: if args.all_steps { Folding::Repetitions } else { Folding::Statements },
        stop_at: args.stop_at,
        html: args.html.as_deref(),
        debugger: args.gdb.then(|| Debugger { step: args.step, commands: &args.gdb_command }),
    };
    show(Native::new(executable), recorded, &showing)
}

/// The presentation of a schedule.
pub struct Showing<'s> {
    /// The name of the program.
    pub name: &'s str,
    /// The steps that have their own lines.
    pub folding: Folding,
    /// Stop before this preemption.
    pub stop_at: Option<u32>,
    /// The file for a page.
    pub html: Option<&'s Path>,
    /// Run it under gdb instead.
    pub debugger: Option<Debugger<'s>>,
}

/// The step at which gdb stops, and the commands that it executes there.
pub struct Debugger<'s> {
    /// The number of the step, from 1; the last one unless given.
    pub step: Option<u32>,
    /// Commands of gdb.
    pub commands: &'s [String],
}

/// Runs a schedule of an executable, and says how it ends.
pub fn show(
    mut native: Native,
    recorded: &ScheduleFile,
    showing: &Showing<'_>,
) -> Result<Exit, Refused> {
    let narrated = replay(&mut native, recorded, &recorded.schedule)?;
    let replayed = &narrated.replayed;
    let trace = &replayed.trace;
    if let Some(why) = difference(recorded, replayed) {
        return Err(Refused::because(format!(
            "the schedule does not fit this program: {why}\n  \
             the program, its arguments or its input have changed since the schedule was made"
        )));
    }
    if let Some(debugger) = &showing.debugger {
        let steps = trace.steps.len() as u32;
        let step = debugger.step.unwrap_or(steps);
        if !(1..=steps).contains(&step) {
            let why = format!("--step {step}: the schedule has the steps 1 to {steps}");
            return Err(Refused::because(why));
        }
        debug(&native, &narrated, step, debugger.commands).map_err(Refused::because)?;
        return Ok(Exit::Covered);
    }
    let layout = Layout { most_steps: usize::MAX, folding: showing.folding, ..screen::layout() };
    match showing.stop_at {
        Some(preemption) => stop(trace, preemption, &layout, |steps| {
            let before = recorded.schedule.prefix(steps);
            let trace = replay(&mut native, recorded, &before)?.replayed.trace;
            Ok(Trace { failure: None, ..trace })
        }),
        None => finish(recorded, replayed, &layout, showing.html, |sentence| {
            page(showing.name, None, Some(sentence), std::slice::from_ref(trace))
        }),
    }
}

/// Executes a schedule, again with more resources if the program needs them.
fn replay(
    native: &mut Native,
    recorded: &ScheduleFile,
    schedule: &Schedule,
) -> Result<Narrated, Refused> {
    loop {
        let choose = |replayed: &Replayed| ending(replayed, &recorded.ending).cloned();
        match narrate(native, schedule, Numbering::Portable, choose) {
            Ok(narrated) => return Ok(narrated),
            Err(need) if native.grow(need) == Restart::Again => {}
            Err(_) => {
                let why = native
                    .refusal()
                    .unwrap_or_else(|| "it needs more resources than Preempt provides".to_owned());
                return Err(Refused::because(why));
            }
        }
    }
}

/// The first difference between an execution and the recorded one, if there is one.
fn difference(recorded: &ScheduleFile, replayed: &Replayed) -> Option<String> {
    let trace = &replayed.trace;
    for (at, then) in recorded.begins.iter().filter(|(at, _)| *at < trace.steps.len()) {
        let step = &trace.steps[*at];
        if step.label != *then {
            let (name, now) = (trace.name(step.thread), &step.label);
            return Some(format!("step {} of {name} was `{then}`, and is `{now}` now", at + 1));
        }
    }
    let misfit = replayed.misfit.as_ref()?;
    Some(format!("step {} is {misfit}", misfit.step + 1))
}
