//! The command line as types.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use preempt_explore::plan::strategies::{Entry, Value};
use preempt_explore::{
    Cache, Limits, Order, Plan, Points, Reduction, Refusal, Requirement, Setting, Shrink,
    StoreKind, Subject, Term, memory,
};

use crate::Refused;
use crate::compare::Compare;
use crate::graph::GraphArgs;
use crate::run::{ProgramArgs, RunArgs};
use crate::values::{self, seconds, setting, size, whole};

/// A model checker for concurrent programs: explores the interleavings of a model's threads, and
/// reports a failing schedule that can be replayed, or what it verified.
#[derive(Debug, Parser)]
#[command(name = "preempt", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// When to use colours: auto (in a terminal, unless NO_COLOR is set), always, never
    #[arg(long, global = true, value_enum, default_value_t = ColorArg::Auto, value_name = "WHEN")]
    #[arg(help_heading = "Output", hide_possible_values = true)]
    pub color: ColorArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorArg {
    Auto,
    Always,
    Never,
}

// A value that begins with a minus is a value: the error is about it and not about an unknown
// option.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Search a model for errors
    #[command(allow_negative_numbers = true)]
    Check(Check),
    /// Explore the schedules of an executable: an unmodified multithreaded program
    #[command(allow_negative_numbers = true)]
    Run(RunArgs),
    /// Replay a schedule of a model or of an executable and print its steps
    #[command(allow_negative_numbers = true)]
    Replay(ReplayArgs),
    /// Run a model once, at random or interactively
    #[command(allow_negative_numbers = true)]
    Simulate(Simulate),
    /// Show how the coverage of several searches grows, as a table and as a chart
    #[command(allow_negative_numbers = true)]
    Compare(Compare),
    /// Write the state graph of a small model, with the part that a search explores highlighted
    #[command(allow_negative_numbers = true)]
    Graph(GraphArgs),
    /// Describe the strategies: what each explores, guarantees and costs
    Strategies,
}

/// The model that a command is about.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// The model
    pub file: PathBuf,
    /// Set a constant of the model
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,
}

#[derive(Debug, Args)]
#[command(after_long_help = values::research())]
pub struct Check {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Search order
    #[arg(long, value_parser = values::strategies(Setting::Order), default_value = "auto")]
    #[arg(help_heading = "Search", hide_default_value = true)]
    pub order: Pick,
    /// Partial-order reduction
    #[arg(long, value_parser = values::strategies(Setting::Reduction), default_value = "none")]
    #[arg(help_heading = "Search", hide_default_value = true)]
    pub reduce: Pick,
    /// Explore executions with at most N preemptions
    #[arg(long, value_name = "N", value_parser = whole::<u32>, help_heading = "Search")]
    pub bound: Option<u32>,
    /// Which steps icb does not repeat [default: state]
    #[arg(long, value_enum, help_heading = "Search")]
    pub cache: Option<CacheArg>,
    /// Where threads may be switched
    #[arg(long, value_enum, default_value_t = PointsArg::All, help_heading = "Search")]
    #[arg(hide_default_value = true)]
    pub points: PointsArg,
    /// After a data race, search again with the variable treated as synchronisation; needs
    /// --points sync
    #[arg(long, help_heading = "Search")]
    pub promote: bool,
    /// How visited states are stored
    #[arg(long, value_enum, default_value_t = StoreArg::Exact, help_heading = "Search")]
    #[arg(hide_default_value = true)]
    pub store: StoreArg,
    /// Size of the bitstate array [default: 64M]
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Search")]
    pub bitstate_size: Option<usize>,
    /// Number of random executions [default: 1000]
    #[arg(long, value_name = "N", value_parser = whole::<u64>, help_heading = "Search")]
    pub runs: Option<u64>,
    /// Random seed [default: 0]
    #[arg(long, value_name = "N", value_parser = whole::<u64>, help_heading = "Search")]
    pub seed: Option<u64>,
    /// Depth of the errors that pct looks for [default: 3]
    #[arg(long, value_name = "N", value_parser = whole::<u32>, help_heading = "Search")]
    pub pct_depth: Option<u32>,
    /// Number of worker threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<usize>)]
    #[arg(help_heading = "Search")]
    pub jobs: usize,
    /// Continue after an error, and report every distinct one
    #[arg(long, help_heading = "Search")]
    pub keep_going: bool,
    /// With --jobs, report whichever error is found first, instead of searching again with one
    /// worker for a report that is the same for every number of workers
    #[arg(long, help_heading = "Search")]
    pub first: bool,
    /// Do not report deadlocks
    #[arg(long, help_heading = "Search")]
    pub no_deadlock: bool,
    /// Stop after N states
    #[arg(long, value_name = "N", value_parser = whole::<u64>, help_heading = "Limits")]
    pub states: Option<u64>,
    /// Stop after N executions
    #[arg(long, value_name = "N", value_parser = whole::<u64>, help_heading = "Limits")]
    pub executions: Option<u64>,
    /// Do not follow executions beyond N steps
    #[arg(long, value_name = "N", value_parser = whole::<u32>, help_heading = "Limits")]
    pub depth: Option<u32>,
    /// Stop after this time
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Limits")]
    pub time: Option<Duration>,
    /// Stop when the process needs more memory, such as 500M or 4G [default: three quarters of the
    /// free memory]
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Limits")]
    pub memory: Option<usize>,
    /// Seconds for finding simpler schedules of the errors [default: 5]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, conflicts_with = "no_shrink")]
    #[arg(help_heading = "Output")]
    pub shrink: Option<Duration>,
    /// Report schedules as they were found
    #[arg(long, help_heading = "Output")]
    pub no_shrink: bool,
    /// Print one JSON object instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Do not show progress
    #[arg(long, help_heading = "Output")]
    pub quiet: bool,
    /// Write the schedule of the first error to this file
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub save_schedule: Option<PathBuf>,
    /// Write an HTML page to this file, in which the errors can be stepped through
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub html: Option<PathBuf>,
    /// Write checkpoints to this file
    #[arg(long, value_name = "FILE", help_heading = "Checkpoints")]
    pub checkpoint: Option<PathBuf>,
    /// Seconds between two checkpoints; more if writing one takes long [default: 5]
    #[arg(long, value_name = "SECONDS", value_parser = seconds, help_heading = "Checkpoints")]
    pub checkpoint_every: Option<Duration>,
    /// Resume from a checkpoint, with the same model and the same options
    #[arg(long, value_name = "FILE", help_heading = "Checkpoints")]
    pub resume: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ReplayArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// A schedule token, or a file that --save-schedule wrote
    pub schedule: String,
    /// An argument of the executable; may be given several times
    #[arg(long = "arg", value_name = "ARG", allow_hyphen_values = true)]
    pub args: Vec<OsString>,
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Stop before the K-th preemption, and show where each thread is
    #[arg(long, value_name = "K", value_parser = whole::<u32>)]
    pub stop_at: Option<u32>,
    /// Write an HTML page to this file, in which the execution can be stepped through
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Simulate {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<u64>, conflicts_with = "interactive")]
    pub seed: u64,
    /// Stop after N steps
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = whole::<usize>)]
    pub steps: usize,
    /// Choose every step
    #[arg(long)]
    pub interactive: bool,
}

/// The value of `--order` or `--reduce`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    Auto,
    /// No reduction.
    None,
    Strategy(&'static Entry),
}

impl Pick {
    /// Whether it is the strategy of this name.
    pub fn is(self, name: &str) -> bool {
        matches!(self, Pick::Strategy(entry) if entry.name == name)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CacheArg {
    /// none: every execution is taken
    None,
    /// steps from the same state
    State,
    /// steps after the same happens-before graph
    Hb,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PointsArg {
    /// before every access to shared state (default)
    All,
    /// before synchronisation only; a data race is an error then
    Sync,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StoreArg {
    /// whole states (default)
    Exact,
    /// whole states, with equal parts stored once
    Tree,
    /// 64-bit hashes; states with equal hashes are taken for one
    Fingerprint,
    /// a few bits per state in a fixed array; misses states
    Bitstate,
}

/// The size of the bitstate array without `--bitstate-size`.
const BITSTATE_BYTES: usize = 64 << 20;

impl Check {
    /// The plan that the options describe.
    pub fn plan(&self, chosen: Option<Reduction>) -> Result<Plan, Refused> {
        if self.bitstate_size.is_some() && self.store != StoreArg::Bitstate {
            return Err(needs(Setting::BitstateSize, vec![Term::Bitstate]));
        }
        let store = match self.store {
            StoreArg::Exact => StoreKind::Exact,
            StoreArg::Tree => StoreKind::Tree,
            StoreArg::Fingerprint => StoreKind::Fingerprint,
            StoreArg::Bitstate => {
                StoreKind::Bitstate { bytes: self.bitstate_size.unwrap_or(BITSTATE_BYTES) }
            }
        };
        // With the order depth, the number of steps is a parameter and not a limit.
        let depth = self.depth.filter(|_| !self.order.is("depth"));
        let memory = self.memory.or_else(memory::most_of_what_is_free);
        let limits = Limits {
            states: self.states,
            executions: self.executions,
            depth,
            memory,
            // Users watch the memory of the process, not that of our tables.
            resident: memory,
            time: self.time,
        };
        let mut plan = Plan::new().store(store).jobs(self.jobs).limits(limits);
        plan.keep_going = self.keep_going;
        plan.first = self.first;
        plan.deadlock = !self.no_deadlock;
        plan.promote = self.promote;
        plan.bound = self.bound;
        plan.shrink = match self.shrink {
            _ if self.no_shrink => None,
            Some(time) => Some(Shrink::within(time)),
            None => Some(Shrink::default()),
        };
        plan.points = match self.points {
            PointsArg::All => Points::All,
            PointsArg::Sync => Points::Sync,
        };
        plan.runs = self.runs.unwrap_or(plan.runs);
        plan.seed = self.seed.unwrap_or(plan.seed);
        plan = plan.choose(self.order()?, self.reduction(chosen), Subject::Model);
        self.check_parameters(plan.order)?;
        Ok(if self.html.is_some() { plan.with_growth() } else { plan })
    }

    /// The plan of the search for simple errors that comes first, if neither an order nor a
    /// reduction was given.
    pub fn scout(&self, plan: &Plan) -> Option<Plan> {
        let given = !matches!(self.reduce, Pick::Auto | Pick::None);
        let scout = plan.scout().filter(|_| self.order == Pick::Auto && !given)?;
        Some(if self.html.is_some() { scout.with_growth() } else { scout })
    }

    fn reduction(&self, chosen: Option<Reduction>) -> Option<Reduction> {
        match self.reduce {
            Pick::Auto => chosen,
            Pick::Strategy(Entry { value: Value::Reduction(reduction), .. }) => Some(*reduction),
            Pick::None | Pick::Strategy(_) => None,
        }
    }

    /// The order that was given, with its parameter.
    fn order(&self) -> Result<Option<Order>, Refused> {
        let Pick::Strategy(Entry { value: Value::Order(order), .. }) = self.order else {
            return Ok(None);
        };
        Ok(Some(match (*order, self.depth) {
            (Order::Icb { cache }, _) => {
                Order::Icb { cache: self.cache.map_or(cache, CacheArg::cache) }
            }
            (Order::Pct { depth }, _) => Order::Pct { depth: self.pct_depth.unwrap_or(depth) },
            (Order::Depth { .. }, Some(steps)) => Order::Depth { steps },
            (Order::Depth { .. }, None) => {
                return Err(Refused::because("--order depth needs --depth"));
            }
            (order, _) => order,
        }))
    }

    /// Refuses options that belong to another order.
    fn check_parameters(&self, order: Order) -> Result<(), Refused> {
        let stray = [
            (Setting::Cache, self.cache.is_some() && !self.order.is("icb"), &["icb"][..]),
            (Setting::PctDepth, self.pct_depth.is_some() && !self.order.is("pct"), &["pct"]),
            (Setting::Runs, self.runs.is_some() && !order.samples(), &["random", "pct", "urw"]),
            (Setting::Seed, self.seed.is_some() && !order.samples(), &["random", "pct", "urw"]),
        ];
        match stray.into_iter().find(|&(_, stray, _)| stray) {
            Some((setting, _, orders)) => {
                Err(needs(setting, orders.iter().map(|&name| Term::Strategy(name)).collect()))
            }
            None => Ok(()),
        }
    }
}

impl CacheArg {
    fn cache(self) -> Cache {
        match self {
            CacheArg::None => Cache::None,
            CacheArg::State => Cache::State,
            CacheArg::Hb => Cache::Hb,
        }
    }
}

/// The refusal of an option that has a meaning only with one of `terms`.
fn needs(setting: Setting, terms: Vec<Term>) -> Refused {
    let requirement = Requirement::OneOf(terms);
    Refused::by_engine(&Refusal::Requires { setting, requirement })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        use clap::CommandFactory as _;
        Cli::command().debug_assert();
    }

    #[test]
    fn a_negative_value_is_a_value() {
        for option in ["--time", "--bound", "--shrink", "--runs", "--jobs", "--memory", "--depth"] {
            let error = Cli::try_parse_from(["preempt", "check", "a.pre", option, "-1"])
                .expect_err("no such value");
            assert!(error.to_string().contains("`-1` is not a"), "{option}: {error}");
        }
    }
}
