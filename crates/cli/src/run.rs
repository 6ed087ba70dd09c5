//! `preempt run`: explores the schedules of an executable and reports.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use preempt_explore::{Cache, Limits, Outcome, Search, Subject};
use preempt_native::narrate::{Narrated, narrate};
use preempt_native::{Allocator, Executable, Harness, Native, source};
use preempt_report::html::Page;
use preempt_report::json::Value;
use preempt_report::number::grouped;
use preempt_report::recorder::{Numbering, Replayed};
use preempt_report::text_report::row;
use preempt_report::{CheckReport, Folding, Layout, ReplayCommand, ScheduleFile, Trace};
use preempt_system::{Failure, FailureKind, MemoryModel, Verdict};

use crate::checkpoint::CheckpointArgs;
use crate::progress::{Watcher, Wish};
use crate::search::{self, Executables};
use crate::values::{self, seconds, size, whole};
use crate::{Exit, Refused, input, output, screen};

/// The executions, in all, up to which a search continues past the usual bound. A budget of
/// executions and not of time, so that the outcome is the same everywhere. This many take about a
/// second.
const CHEAP: u64 = 1_000;

/// The inputs and limits of every execution of an executable.
#[derive(Debug, Default, PartialEq, Eq, Args)]
pub struct ProgramArgs {
    /// Expected exit status [default: 0]
    #[arg(long, value_name = "N", value_parser = whole::<u8>, help_heading = "Program")]
    pub expect_exit: Option<u8>,
    /// File to use as the standard input of every execution [default: empty]
    #[arg(long, value_name = "FILE", help_heading = "Program")]
    pub stdin: Option<PathBuf>,
    /// Report an error if two executions print different output
    #[arg(long, help_heading = "Program")]
    pub same_output: bool,
    /// Give every execution an empty directory for temporary files, as TMPDIR
    #[arg(long, help_heading = "Program")]
    pub temp_dir: bool,
    /// Step limit of one execution [default: 20000]
    #[arg(long, value_name = "N", value_parser = whole::<u32>, help_heading = "Program")]
    pub max_steps: Option<u32>,
    /// Time limit of a thread between two scheduling points [default: 10]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Program")]
    pub max_turn: Option<Duration>,
    /// Longest delay of a runnable thread while others sleep or wait with a timeout [default:
    /// 0.001]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Program")]
    pub max_delay: Option<Duration>,
    /// Time limit of one execution [default: none]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Program")]
    pub max_time: Option<Duration>,
    /// Memory limit of one execution, such as 500M or 4G [default: none]
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Program")]
    pub max_memory: Option<usize>,
    /// Output limit of one execution, and size limit of each file that it writes [default: 64M]
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Program")]
    pub max_output: Option<usize>,
    /// Make the locked instructions of an unmodified program scheduling points, by patching them
    #[arg(long, help_heading = "Program")]
    pub atomics: bool,
    /// Do not report data races, where plain accesses are visible
    #[arg(long, help_heading = "Program")]
    pub ignore_races: bool,
    /// Allocator of the program [default: runtime]
    #[arg(long, value_enum, value_name = "ALLOCATOR")]
    pub allocator: Option<AllocatorArg>,
}

#[derive(Debug, Args)]
#[command(after_long_help = values::research(Subject::Program))]
pub struct RunArgs {
    #[command(flatten)]
    pub program: ProgramArgs,
    #[command(flatten)]
    pub search: SearchArgs,
    #[command(flatten)]
    pub checkpoints: CheckpointArgs,
    /// The executable and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}

/// The options for exploring and reporting the executions of an executable.
pub type SearchArgs = search::SearchArgs<Executables>;

/// The allocators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum AllocatorArg {
    /// Preempt's: memory is never reused within an execution, so that uses after free are found
    Runtime,
    /// The C library's
    System,
}

impl ProgramArgs {
    /// The executable, or why it cannot be explored.
    pub fn executable(
        &self,
        program: &OsString,
        args: &[OsString],
        memory: MemoryModel,
    ) -> Result<Executable, Refused> {
        let mut found =
            Executable::find(program.as_ref(), args.to_vec()).map_err(Refused::because)?;
        found.memory = memory;
        if let Some(stdin) = self.stdin.as_deref().filter(|path| !path.is_file()) {
            let why = format!("--stdin: there is no file {}", stdin.display());
            return Err(Refused::because(why));
        }
        if self.atomics {
            found.patch_atomics().map_err(Refused::because)?;
        }
        found.expected_exit = self.expect_exit.unwrap_or(0).into();
        found.stdin.clone_from(&self.stdin);
        found.max_steps = self.max_steps.unwrap_or(found.max_steps);
        found.same_output = self.same_output;
        found.temp_dir = self.temp_dir;
        found.races = !self.ignore_races;
        found.max_turn = self.max_turn.unwrap_or(found.max_turn);
        found.max_delay = self.max_delay.unwrap_or(found.max_delay);
        found.max_time = self.max_time;
        found.max_memory = self.max_memory.map(|bytes| bytes as u64);
        if self.allocator == Some(AllocatorArg::System) {
            found.allocator = Allocator::System;
        }
        found.max_output = self.max_output.map_or(found.max_output, |bytes| bytes as u64);
        Ok(found)
    }

    /// The options as they were given, for a command that can be copied.
    pub fn words(&self) -> String {
        let quoted = |path: &PathBuf| input::quoted(&path.display().to_string());
        let all = [
            self.expect_exit.map(|code| format!(" --expect-exit {code}")),
            self.stdin.as_ref().map(|path| format!(" --stdin {}", quoted(path))),
            self.same_output.then(|| " --same-output".to_owned()),
            self.temp_dir.then(|| " --temp-dir".to_owned()),
            self.atomics.then(|| " --atomics".to_owned()),
            self.ignore_races.then(|| " --ignore-races".to_owned()),
            self.max_steps.map(|steps| format!(" --max-steps {steps}")),
            self.max_turn.map(|time| format!(" --max-turn {}", time.as_secs_f64())),
            self.max_delay.map(|time| format!(" --max-delay {}", time.as_secs_f64())),
            self.max_time.map(|time| format!(" --max-time {}", time.as_secs_f64())),
            self.max_memory.map(|bytes| format!(" --max-memory {bytes}")),
            self.max_output.map(|bytes| format!(" --max-output {bytes}")),
            self.allocator.map(|allocator| match allocator {
                AllocatorArg::Runtime => " --allocator runtime".to_owned(),
                AllocatorArg::System => " --allocator system".to_owned(),
            }),
        ];
        all.into_iter().flatten().collect()
    }
}

/// Runs the command.
pub fn run(args: &RunArgs) -> Result<Exit, Refused> {
    let [program, rest @ ..] = &args.command[..] else {
        return Err(Refused::because("name an executable after `--`"));
    };
    // Refusals that depend on the options alone come before the program is looked up.
    args.search.search()?;
    let executable = args.program.executable(program, rest, args.search.memory_model())?;
    let search = args.search.search_of(&executable, args.search.limits())?;
    args.search.check_files()?;
    let mut checkpointing = args.checkpoints.open(|| {
        let identity = executable.identity();
        identity.map_err(|error| {
            let program = program.to_string_lossy();
            Refused::because(format!("cannot read {program} or its input: {error}"))
        })
    })?;
    let watcher = args.search.watcher();
    let native = Native::new(executable);
    let explored = match &mut checkpointing {
        Some(checkpointing) => checkpointing
            .run(|checkpoints| search.run_program_with(native, &watcher, checkpoints))
            .and_then(|(outcome, native)| Explored::of(search, outcome, native)),
        None => Explored::new(search, native, &watcher),
    };
    watcher.finish();
    let explored = explored?;
    let replay = ReplayCommand { before: replay_command(args) + " ", after: String::new() };
    let exit = report(&explored, &args.search, &program.to_string_lossy(), &replay);
    if let Some(checkpointing) = &checkpointing {
        checkpointing.finish(&explored.outcome);
    }
    exit
}

impl SearchArgs {
    /// The search, or the reason why these options are refused.
    pub fn search(&self) -> Result<Search, Refused> {
        let plan = self.plan(CHEAP)?;
        let search =
            plan.build_for_program().map_err(|refusal| Refused::of_executable(&refusal))?;
        preempt_native::suits(search.plan()).map_err(Refused::because)?;
        Ok(search)
    }

    /// The same for this executable, within these limits. If executions that differ only in the
    /// order of independent steps may not be left out, all are run.
    pub fn search_of(&self, executable: &Executable, limits: Limits) -> Result<Search, Refused> {
        let mut plan = self.plan(CHEAP)?.limits(limits);
        if executable.differs_within_graphs() && self.cache.is_none() {
            plan.order = plan.order.with_cache(Cache::None);
        }
        executable.suits(&plan).map_err(Refused::because)?;
        plan.build_for_program().map_err(|refusal| Refused::of_executable(&refusal))
    }

    /// Refuses files that cannot be written, before a long search.
    pub fn check_files(&self) -> Result<(), Refused> {
        if let Some(path) = &self.save_schedule {
            output::writable(path, "the schedule")?;
        }
        if let Some(path) = &self.html {
            output::writable(path, "the page")?;
        }
        Ok(())
    }

    /// Watches the search as the options ask for.
    pub fn watcher(&self) -> Watcher {
        Watcher::new(if self.json || self.quiet { Wish::Quiet } else { Wish::Progress })
    }
}

/// An executable whose schedules were explored.
pub struct Explored {
    search: Search,
    pub outcome: Outcome,
    pub native: Native,
    narrated: Vec<Narrated>,
    traces: Vec<Trace>,
}

impl Explored {
    /// Explores an executable.
    pub fn new(search: Search, native: Native, watcher: &Watcher) -> Result<Explored, Refused> {
        let (outcome, native) = search.run_program(native, watcher);
        Explored::of(search, outcome, native)
    }

    /// The same for one of many tests: executions that only reached the step limit are not
    /// described. Their traces have as many steps as the limit allows, and recording the values of
    /// all objects after each step takes longer than the search.
    pub fn of_test(search: Search, native: Native, watcher: &Watcher) -> Result<Explored, Refused> {
        let (outcome, native) = search.run_program(native, watcher);
        match outcome.verdict {
            Verdict::Incomplete => {
                let outcome = qualified(outcome, &native)?;
                Ok(Explored { search, outcome, native, narrated: Vec::new(), traces: Vec::new() })
            }
            _ => Explored::of(search, outcome, native),
        }
    }

    /// An executable that was explored with this outcome, unless it could not be.
    fn of(search: Search, outcome: Outcome, native: Native) -> Result<Explored, Refused> {
        let mut outcome = qualified(outcome, &native)?;
        let narrated = narrate_all(&mut outcome, &native)?;
        let traces = narrated.iter().map(|narrated| narrated.replayed.trace.clone()).collect();
        Ok(Explored { search, outcome, native, narrated, traces })
    }

    /// The report, whose schedules are replayed by this command.
    pub fn report<'e>(&'e self, replay: &'e ReplayCommand) -> CheckReport<'e> {
        CheckReport {
            plan: self.search.plan(),
            chosen: None,
            outcome: &self.outcome,
            scouted: None,
            traces: &self.traces,
            peak_memory: None,
            replay,
            first: "--first",
            unreached: None,
        }
    }

    /// The report as text, with what was visible and what the program printed.
    pub fn to_text(&self, replay: &ReplayCommand) -> String {
        self.report(replay).to_text(&layout()) + &notes(&self.native, &self.narrated)
    }

    /// The report as JSON, with what was visible.
    pub fn to_json(&self, replay: &ReplayCommand) -> Value {
        let mut report = self.report(replay).to_json();
        if let Value::Object(fields) = &mut report {
            fields.push(("level", self.native.level().name().into()));
            fields.push(("visible", self.native.visibility().into()));
        }
        report
    }

    /// Writes the files that the options ask for.
    pub fn save(
        &self,
        args: &SearchArgs,
        name: &str,
        replay: &ReplayCommand,
    ) -> Vec<Result<(), Refused>> {
        let mut saved = Vec::new();
        if let (Some(path), Some(trace)) = (&args.save_schedule, self.traces.first()) {
            let file = ScheduleFile { model: Some(name.to_owned()), ..trace.schedule_file() };
            saved.push(output::save(path, "the schedule", &file.to_string()));
        }
        if let Some(path) = &args.html {
            let page = page(name, Some(&self.report(replay)), None, &self.traces);
            saved.push(output::save(path, "the page", &page));
        }
        saved
    }

    /// The exit code for the verdict.
    pub fn exit(&self) -> Exit {
        Exit::of(self.outcome.verdict)
    }
}

/// The outcome with what it relies on, unless the executable could not be explored.
fn qualified(outcome: Outcome, native: &Native) -> Result<Outcome, Refused> {
    match native.refusal() {
        Some(why) => Err(Refused::because(why)),
        None => Ok(Outcome {
            assumptions: native.assumptions(),
            complete: outcome.complete && !native.omits_executions(),
            ..outcome
        }),
    }
}

/// Prints the report and writes the files of one executable.
pub fn report(
    explored: &Explored,
    args: &SearchArgs,
    name: &str,
    replay: &ReplayCommand,
) -> Result<Exit, Refused> {
    let text = match args.json {
        true => format!("{}\n", explored.to_json(replay)),
        false => explored.to_text(replay),
    };
    // If that fails, the files that were asked for are written anyway.
    let printed = screen::print(&text);
    let saved = explored.save(args, name, replay);
    printed?;
    Ok(output::exit(explored.exit(), saved))
}

/// Describes the executions of all findings. Their schedules have portable thread numbers
/// afterwards, so that another process can replay them.
fn narrate_all(outcome: &mut Outcome, native: &Native) -> Result<Vec<Narrated>, Refused> {
    let mut all = Vec::new();
    for finding in &mut outcome.findings {
        let found = finding.failure.clone();
        let narrated = narrate(native, &finding.schedule, Numbering::Slots, |replayed| {
            Some(described(replayed, &found).clone())
        });
        let narrated = narrated.map_err(|_| {
            let why = native
                .refusal()
                .unwrap_or_else(|| "it needs more resources than during the search".to_owned());
            Refused::because(format!("the schedule of a finding cannot be executed again: {why}"))
        })?;
        finding.failure = described(&narrated.replayed, &found).clone();
        if narrated.replayed.misfit.is_none() {
            finding.schedule = narrated.replayed.trace.schedule();
        }
        all.push(narrated);
    }
    Ok(all)
}

/// The failure of a finding with everything known about it: a search does not say which threads
/// wait.
fn described<'a>(replayed: &'a Replayed, found: &'a Failure) -> &'a Failure {
    let deadlock = |failure: &&Failure| failure.kind == FailureKind::Deadlock;
    let more = replayed.failures.iter().find(deadlock);
    more.filter(|_| found.kind == FailureKind::Deadlock).unwrap_or(found)
}

/// The layout of reports about executables: what a statement does in libraries is folded.
pub fn layout() -> Layout {
    Layout { folding: Folding::Statements, ..screen::layout() }
}

/// The additional lines of an executable's report: what was visible, and what the program printed.
fn notes(native: &Native, narrated: &[Narrated]) -> String {
    let layout = screen::layout();
    // A process may only show that its execution was explored before.
    let mut text = row("children", &format!("{} processes", grouped(native.children())), &layout);
    text += &row("visible", &native.visibility(), &layout);
    if let Some(words) = native.memory_words() {
        text += &row("memory", &words, &layout);
    }
    if let Some(times) = native.oversynchronised() {
        let words = format!(
            "detected in instrumented code; {} times, what precompiled code may have synchronised \
             was taken to be ordered",
            grouped(times)
        );
        text += &row("races", &words, &layout);
    }
    let output =
        narrated.first().map(|narrated| output(native, &narrated.output)).unwrap_or_default();
    if !output.is_empty() {
        text += "\n  output of the failing execution:\n";
        text += &shown(&output);
    }
    if let Some(reference) = native.reference_output().filter(|_| !narrated.is_empty()) {
        text += "\n  output of the execution without preemptions:\n";
        text += &shown(&reference.lines().collect::<Vec<_>>());
    }
    text
}

/// The lines that the program printed, without those of the test harness.
fn output<'t>(native: &Native, text: &'t str) -> Vec<&'t str> {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    if native.harness() != Harness::Libtest {
        return lines.collect();
    }
    let is_head = |line: &&str| {
        let begins = line.starts_with("test ") && line.trim_end().ends_with("...");
        *line == "running 1 test" || begins || line.starts_with("note: run with `RUST_BACKTRACE")
    };
    lines.filter(|line| !is_head(line)).take_while(|line| *line != "FAILED").collect()
}

/// The first of these lines.
fn shown(lines: &[&str]) -> String {
    lines.iter().take(20).map(|line| format!("    {line}\n")).collect()
}

/// A page with these executions.
pub fn page(
    name: &str,
    checked: Option<&CheckReport<'_>>,
    replayed: Option<&str>,
    traces: &[Trace],
) -> String {
    let sources = sources(traces);
    Page { subject: name, checked, replayed, traces, sources: &sources }.to_html()
}

/// The texts of all files that the executions name, as far as they can be read.
fn sources(traces: &[Trace]) -> Vec<(String, String)> {
    let mut files = BTreeSet::new();
    for trace in traces {
        let steps = trace.steps.iter().map(|step| &step.narration.site);
        let waiting = trace.waiting.iter().map(|waiting| &waiting.narration.site);
        let failure = trace.failure.iter().map(|failure| &failure.site);
        let sites = steps.chain(waiting).chain(failure).flatten();
        files.extend(sites.map(|site| site.file.to_string()));
    }
    files.into_iter().filter_map(|file| source::text(&file).map(|text| (file, text))).collect()
}

/// The option of a replay under this memory model.
pub fn memory_words(memory: MemoryModel) -> &'static str {
    match memory {
        MemoryModel::Weak => " --memory weak",
        _ => "",
    }
}

/// The command that replays a schedule of this program, but for the schedule.
fn replay_command(args: &RunArgs) -> String {
    let word = |word: &OsString| input::quoted(&word.to_string_lossy());
    let arguments = args.command.iter().skip(1).map(|arg| format!(" --arg={}", word(arg)));
    let program = args.command.first().map(word).unwrap_or_default();
    let options = args.program.words() + memory_words(args.search.memory_model());
    let options: String = [options].into_iter().chain(arguments).collect();
    format!("preempt replay{options} {program}")
}
