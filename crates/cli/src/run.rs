//! `preempt run`: explores the schedules of an executable and reports.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use preempt_explore::{Cache, Limits, Order, Outcome, Plan, Reduction, Search, Shrink, memory};
use preempt_native::narrate::{Told, tell};
use preempt_native::{Executable, Native, source};
use preempt_report::html::Page;
use preempt_report::recorder::{Numbering, Replayed};
use preempt_report::text_report::row;
use preempt_report::{CheckReport, ReplayCommand, ScheduleFile, Trace};
use preempt_system::{Failure, FailureKind, Verdict};

use crate::progress::{Watcher, Wish};
use crate::values::{seconds, size, whole};
use crate::{Exit, Refused, input, output, screen};

/// The preemptions of an execution, unless another number is given. Most known errors need no more.
const BOUND: u32 = 2;

/// The executions, in all, up to which a search continues past the usual bound. A budget of
/// executions and not of time, so that the outcome is the same everywhere. This many take about a
/// second.
const CHEAP: u64 = 1_000;

/// The depth of the errors that pct looks for, unless another one is given.
const PCT_DEPTH: u32 = 3;

/// What every execution of an executable gets, and its limits.
#[derive(Debug, Default, PartialEq, Eq, Args)]
pub struct ProgramArgs {
    /// The exit status of a good execution, 0 unless given
    #[arg(long, value_name = "N", value_parser = whole::<u8>)]
    pub expect_exit: Option<u8>,
    /// A file that is the standard input of every execution; without one it is empty
    #[arg(long, value_name = "FILE")]
    pub stdin: Option<PathBuf>,
    /// The most steps of one execution, 20000 unless given
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    pub max_steps: Option<u32>,
    /// The longest time that a thread may take between two scheduling points, 10 unless given
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub max_turn: Option<Duration>,
    /// The most memory of one execution, such as 500M or 4G; no limit unless given
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_memory: Option<usize>,
    /// The most output of one execution, and the largest file that it may write; 64M unless given
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub max_output: Option<usize>,
}

#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub program: ProgramArgs,
    #[command(flatten)]
    pub search: SearchArgs,
    /// The executable and its arguments, after `--`
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    pub command: Vec<OsString>,
}

/// How the executions of an executable are explored and reported.
#[derive(Debug, Args)]
pub struct SearchArgs {
    /// In which order executions are taken
    #[arg(long, value_enum, default_value_t = RunOrder::Auto)]
    pub order: RunOrder,
    /// The most preemptions of an execution, with icb, cb-dfs, dfs-hb and cb-por; 2 unless given,
    /// and then more as long as that is cheap
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    pub bound: Option<u32>,
    /// Partial-order reduction: executions are left out that differ from others only in the order
    /// of independent steps
    #[arg(long, value_enum, default_value_t = RunReduce::None)]
    pub reduce: RunReduce,
    /// The depth of the errors that pct looks for, 3 unless given
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    pub pct_depth: Option<u32>,
    /// The number of executions that random, pct and urw draw, 1000 unless given
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    pub runs: Option<u64>,
    /// The random seed of random, pct and urw, 0 unless given
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    pub seed: Option<u64>,
    /// Stop when there are more executions than these
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    pub executions: Option<u64>,
    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub time: Option<Duration>,
    /// Stop when the search needs more memory, such as 500M or 4G; three quarters of what is free
    /// unless given
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<usize>,
    /// Search on after an error, and report every distinct one
    #[arg(long)]
    pub keep_going: bool,
    /// Do not report deadlocks
    #[arg(long)]
    pub no_deadlock: bool,
    /// Look for a simpler schedule of each error, for this many seconds in all; 5 unless given
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "no_shrink")]
    pub shrink: Option<Duration>,
    /// Report the schedules as they were found
    #[arg(long)]
    pub no_shrink: bool,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// Show no progress
    #[arg(long)]
    pub quiet: bool,
    /// Write the schedule of the first error to this file
    #[arg(long, value_name = "FILE")]
    pub save_schedule: Option<PathBuf>,
    /// Write a page to this file in which the errors can be stepped through
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// The orders in which executions can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RunOrder {
    /// icb, or what the reduction needs
    Auto,
    /// Iterative context bounding, with a cache of happens-before graphs
    Icb,
    /// Depth first within a bound on preemptions
    CbDfs,
    /// The same with a cache of happens-before graphs
    DfsHb,
    /// All executions, depth first
    Executions,
    /// Uniform choices
    Random,
    /// Random priorities
    Pct,
    /// Weighted random choices
    Urw,
}

/// The reductions of executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RunReduce {
    None,
    Sleep,
    Dpor,
    DporOptimal,
    CbPor,
}

impl ProgramArgs {
    /// The executable, or why it cannot be explored.
    pub fn executable(&self, program: &OsString, args: &[OsString]) -> Result<Executable, Refused> {
        let mut found =
            Executable::find(program.as_ref(), args.to_vec()).map_err(Refused::because)?;
        if let Some(stdin) = self.stdin.as_deref().filter(|path| !path.is_file()) {
            let why = format!("--stdin: there is no file {}", stdin.display());
            return Err(Refused::because(why));
        }
        found.expected_exit = self.expect_exit.unwrap_or(0).into();
        found.stdin.clone_from(&self.stdin);
        found.max_steps = self.max_steps.unwrap_or(found.max_steps);
        found.max_turn = self.max_turn.unwrap_or(found.max_turn);
        found.max_memory = self.max_memory.map(|bytes| bytes as u64);
        found.max_output = self.max_output.map_or(found.max_output, |bytes| bytes as u64);
        Ok(found)
    }

    /// The options as they were given, for a command that can be copied.
    pub fn words(&self) -> String {
        let quoted = |path: &PathBuf| input::quoted(&path.display().to_string());
        let all = [
            self.expect_exit.map(|code| format!(" --expect-exit {code}")),
            self.stdin.as_ref().map(|path| format!(" --stdin {}", quoted(path))),
            self.max_steps.map(|steps| format!(" --max-steps {steps}")),
            self.max_turn.map(|time| format!(" --max-turn {}", time.as_secs_f64())),
            self.max_memory.map(|bytes| format!(" --max-memory {bytes}")),
            self.max_output.map(|bytes| format!(" --max-output {bytes}")),
        ];
        all.into_iter().flatten().collect()
    }
}

impl SearchArgs {
    fn plan(&self) -> Result<Plan, Refused> {
        let reduction = match self.reduce {
            RunReduce::None => Reduction::None,
            RunReduce::Sleep => Reduction::Sleep,
            RunReduce::Dpor => Reduction::Source,
            RunReduce::DporOptimal => Reduction::Optimal,
            RunReduce::CbPor => Reduction::CbPor,
        };
        let icb = Order::Icb { cache: Cache::Hb };
        let order = match self.order {
            RunOrder::Auto if reduction == Reduction::None => icb,
            RunOrder::Auto if reduction.is_bounded() => Order::ContextBounded,
            RunOrder::Auto | RunOrder::Executions => Order::Executions,
            RunOrder::Icb => icb,
            RunOrder::CbDfs => Order::ContextBounded,
            RunOrder::DfsHb => Order::DfsHb,
            RunOrder::Random => Order::Random,
            RunOrder::Pct => Order::Pct { depth: self.pct_depth.unwrap_or(PCT_DEPTH) },
            RunOrder::Urw => Order::Urw,
        };
        let refuse = |option: &str, with: &str| {
            Refused::because(format!(
                "{option} is for {with}: choose one of these, or leave it out"
            ))
        };
        if self.pct_depth.is_some() && self.order != RunOrder::Pct {
            return Err(refuse("--pct-depth", "--order pct"));
        }
        if self.runs.is_some() && !order.samples() {
            return Err(refuse("--runs", "the orders random, pct and urw"));
        }
        if self.seed.is_some() && !order.samples() {
            return Err(refuse("--seed", "the orders random, pct and urw"));
        }
        let counts = matches!(order, Order::Icb { .. } | Order::ContextBounded | Order::DfsHb);
        let usual = counts && self.bound.is_none();
        let memory = self.memory.or_else(memory::most_of_what_is_free);
        let limits = Limits {
            executions: self.executions,
            memory,
            resident: memory,
            time: self.time,
            ..Limits::default()
        };
        let mut plan = Plan { order, reduction, limits, ..Plan::new() };
        plan.bound = if usual { Some(BOUND) } else { self.bound };
        plan.past_bound = (usual && order == icb).then_some(CHEAP);
        plan.keep_going = self.keep_going;
        plan.deadlock = !self.no_deadlock;
        plan.runs = self.runs.unwrap_or(plan.runs);
        plan.seed = self.seed.unwrap_or(plan.seed);
        plan.shrink = match self.shrink {
            _ if self.no_shrink => None,
            Some(time) => Some(Shrink::within(time)),
            None => Some(Shrink::default()),
        };
        Ok(if self.html.is_some() { plan.with_growth() } else { plan })
    }
}

/// Runs the command.
pub fn run(args: &RunArgs) -> Result<Exit, Refused> {
    let [program, rest @ ..] = &args.command[..] else {
        return Err(Refused::because("name an executable after `--`"));
    };
    let search = args.search.search()?;
    let executable = args.program.executable(program, rest)?;
    args.search.check_files()?;
    let watcher = args.search.watcher();
    let explored = Explored::new(&search, Native::new(executable), &watcher);
    watcher.finish();
    let replay = ReplayCommand { before: replay_command(args) + " ", after: String::new() };
    report(&explored?, &args.search, &program.to_string_lossy(), &replay)
}

impl SearchArgs {
    /// The search, or why there is none for these options.
    pub fn search(&self) -> Result<Search, Refused> {
        let search =
            self.plan()?.build_for_program().map_err(|refusal| Refused::by_engine(&refusal))?;
        preempt_native::suits(search.plan()).map_err(Refused::because)?;
        Ok(search)
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
pub struct Explored<'s> {
    search: &'s Search,
    pub outcome: Outcome,
    pub native: Native,
    told: Vec<Told>,
    traces: Vec<Trace>,
}

impl<'s> Explored<'s> {
    /// Explores an executable.
    pub fn new(
        search: &'s Search,
        native: Native,
        watcher: &Watcher,
    ) -> Result<Explored<'s>, Refused> {
        let (mut outcome, native) = search.run_program(native, watcher);
        if let Some(why) = native.refusal() {
            return Err(Refused::because(why));
        }
        outcome.assumptions = native.assumptions();
        let told = tell_all(&mut outcome, &native)?;
        let traces = told.iter().map(|told| told.replayed.trace.clone()).collect();
        Ok(Explored { search, outcome, native, told, traces })
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
        self.report(replay).to_text(&screen::layout()) + &notes(&self.native, &self.told)
    }

    /// Writes the files that the options ask for. Returns those that could not be written.
    pub fn save(&self, args: &SearchArgs, name: &str, replay: &ReplayCommand) -> Vec<Refused> {
        let mut saved = Vec::new();
        if let (Some(path), Some(trace)) = (&args.save_schedule, self.traces.first()) {
            let file = ScheduleFile { model: Some(name.to_owned()), ..trace.schedule_file() };
            saved.push(output::save(path, "the schedule", &file.to_string()));
        }
        if let Some(path) = &args.html {
            let page = page(name, Some(&self.report(replay)), None, &self.traces);
            saved.push(output::save(path, "the page", &page));
        }
        saved.into_iter().filter_map(Result::err).collect()
    }

    /// The exit code for the verdict.
    pub fn exit(&self) -> Exit {
        match self.outcome.verdict {
            Verdict::Ok => Exit::Covered,
            Verdict::Incomplete => Exit::Incomplete,
            _ => Exit::Finding,
        }
    }
}

/// Prints the report and writes the files of one executable.
pub fn report(
    explored: &Explored<'_>,
    args: &SearchArgs,
    name: &str,
    replay: &ReplayCommand,
) -> Result<Exit, Refused> {
    let text = match args.json {
        true => format!("{}\n", explored.report(replay).to_json()),
        false => explored.to_text(replay),
    };
    // If that fails, the files that were asked for are written anyway.
    let printed = screen::print(&text);
    let unsaved = explored.save(args, name, replay);
    printed?;
    unsaved.iter().for_each(|Refused(why)| screen::complain(why));
    Ok(match explored.exit() {
        // A finding counts more than a file that cannot be written.
        Exit::Finding => Exit::Finding,
        _ if !unsaved.is_empty() => Exit::Refused,
        exit => exit,
    })
}

/// Describes the executions of all findings. Their schedules have portable thread numbers
/// afterwards, so that another process can replay them.
fn tell_all(outcome: &mut Outcome, native: &Native) -> Result<Vec<Told>, Refused> {
    let mut all = Vec::new();
    for finding in &mut outcome.findings {
        let found = finding.failure.clone();
        let told = tell(native, &finding.schedule, Numbering::Slots, |replayed| {
            Some(described(replayed, &found).clone())
        });
        let told = told.map_err(|_| {
            let why = native.refusal().unwrap_or_else(|| "it needs more than before".to_owned());
            Refused::because(format!("the schedule of a finding cannot be executed again: {why}"))
        })?;
        finding.failure = described(&told.replayed, &found).clone();
        if told.replayed.misfit.is_none() {
            finding.schedule = told.replayed.trace.schedule();
        }
        all.push(told);
    }
    Ok(all)
}

/// The failure of a finding with all that is known about it: a search does not say who waits.
fn described<'a>(replayed: &'a Replayed, found: &'a Failure) -> &'a Failure {
    let deadlock = |failure: &&Failure| failure.kind == FailureKind::Deadlock;
    let more = replayed.failures.iter().find(deadlock);
    more.filter(|_| found.kind == FailureKind::Deadlock).unwrap_or(found)
}

/// What the report of an executable says besides: what was visible, and what the program printed.
fn notes(native: &Native, told: &[Told]) -> String {
    let layout = screen::layout();
    let mut text = row("visible", native.visibility(), &layout);
    for told in told.iter().filter(|told| !told.output.trim().is_empty()).take(1) {
        text += "\n  output of the failing execution:\n";
        text.extend(told.output.lines().take(20).map(|line| format!("    {line}\n")));
    }
    text
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

/// The command that replays a schedule of this program, but for the schedule.
fn replay_command(args: &RunArgs) -> String {
    let word = |word: &OsString| input::quoted(&word.to_string_lossy());
    let arguments = args.command.iter().skip(1).map(|arg| format!(" --arg={}", word(arg)));
    let program = args.command.first().map(word).unwrap_or_default();
    let options: String = [args.program.words()].into_iter().chain(arguments).collect();
    format!("preempt replay{options} {program}")
}
