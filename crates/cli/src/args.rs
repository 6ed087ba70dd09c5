//! The command line as types.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use preempt_explore::{Limits, Plan, Points, Reduction, Setting, StoreKind, Subject, Term};
use preempt_system::MemoryModel;

use crate::Refused;
use crate::checkpoint::CheckpointArgs;
#[cfg(feature = "cluster")]
use crate::cluster::{ClusterArgs, WorkerArgs};
use crate::compare::Compare;
use crate::flags::FlagsArgs;
use crate::graph::GraphArgs;
use crate::run::{ProgramArgs, RunArgs};
use crate::search::{Models, Pick, SearchArgs, needs};
use crate::values::{self, setting, size, whole};

/// A model checker for concurrent programs: explores the thread interleavings of a model or an
/// executable, and reports a failing schedule that can be replayed, or what it verified.
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

// An argument such as `-1` is parsed as a value, so that the error message is about the value and
// not about an unknown option.
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
    /// Test whether this machine and its compilers can explore executables, and give advice
    Doctor,
    /// Print compiler flags that make atomic operations visible to `preempt run`, as in `gcc
    /// $(preempt flags gcc) program.c`
    Flags(FlagsArgs),
    /// Take part in a search that another process begins with --cluster
    #[cfg(feature = "cluster")]
    Worker(WorkerArgs),
}

/// The model that a command works on.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// The model
    pub file: PathBuf,
    /// Set a constant of the model
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,
}

#[derive(Debug, Args)]
#[command(after_long_help = values::research(Subject::Model))]
pub struct Check {
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub search: SearchArgs<Models>,
    /// Scheduling points: where threads may be switched
    #[arg(long, value_enum, default_value_t = PointsArg::All, help_heading = "Search")]
    #[arg(hide_default_value = true)]
    pub points: PointsArg,
    /// After a data race, search again with the variable treated as synchronisation; needs
    /// --points sync
    #[arg(long, help_heading = "Search")]
    pub promote: bool,
    /// Store of visited states
    #[arg(long, value_enum, default_value_t = StoreArg::Exact, help_heading = "Search")]
    #[arg(hide_default_value = true)]
    pub store: StoreArg,
    /// Directory for states that do not fit into memory: a breadth-first search that reaches
    /// --memory continues there
    #[arg(long, value_name = "DIR", help_heading = "Search")]
    pub spill: Option<PathBuf>,
    /// Size of the bitstate array [default: 64M]
    #[arg(long, value_name = "SIZE", value_parser = size, help_heading = "Search")]
    pub bitstate_size: Option<usize>,
    /// Stop after N states
    #[arg(long, value_name = "N", value_parser = whole::<u64>, help_heading = "Limits")]
    pub states: Option<u64>,
    #[command(flatten)]
    pub checkpoints: CheckpointArgs,
    #[cfg(feature = "cluster")]
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

#[derive(Debug, Args)]
pub struct ReplayArgs {
    /// The model or executable
    pub file: PathBuf,
    /// Set a constant of the model
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,
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
    /// Run the schedule of an executable under gdb, and stop before the failing step
    #[arg(long, conflicts_with_all = ["stop_at", "html"])]
    pub gdb: bool,
    /// With --gdb, stop before the N-th step
    #[arg(long, value_name = "N", value_parser = whole::<u32>, requires = "gdb")]
    pub step: Option<u32>,
    /// With --gdb, a command for gdb at that point; may be given several times
    #[arg(long, value_name = "COMMAND", requires = "gdb")]
    pub gdb_command: Vec<String>,
    /// For an executable, show every step instead of one line per statement
    #[arg(long)]
    pub all_steps: bool,
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
    /// whole states in sorted runs: one or two bytes for most states, breadth first only
    Sorted,
    /// 64-bit hashes; states with equal hashes count as one
    Fingerprint,
    /// a few bits per state in a fixed array; misses states
    Bitstate,
}

/// The size of the bitstate array without `--bitstate-size`.
const BITSTATE_BYTES: usize = 64 << 20;

impl Check {
    /// The plan that the options describe, for a model with this memory model.
    pub fn plan(&self, memory: MemoryModel, chosen: Option<Reduction>) -> Result<Plan, Refused> {
        if self.bitstate_size.is_some() && self.store != StoreArg::Bitstate {
            return Err(needs(Setting::BitstateSize, vec![Term::Bitstate]));
        }
        let store = match self.store {
            StoreArg::Exact => StoreKind::Exact,
            StoreArg::Tree => StoreKind::Tree,
            StoreArg::Sorted => StoreKind::Sorted,
            StoreArg::Fingerprint => StoreKind::Fingerprint,
            StoreArg::Bitstate => {
                StoreKind::Bitstate { bytes: self.bitstate_size.unwrap_or(BITSTATE_BYTES) }
            }
        };
        let limits = Limits { states: self.states, ..self.search.limits() };
        let plan = Plan {
            memory,
            store,
            limits,
            promote: self.promote,
            points: match self.points {
                PointsArg::All => Points::All,
                PointsArg::Sync => Points::Sync,
            },
            ..Plan::new()
        };
        self.search.plan(plan, chosen)
    }

    /// The plan of the search for simple errors that comes first, if neither an order nor a
    /// reduction was given.
    pub fn scout(&self, plan: &Plan) -> Option<Plan> {
        let given = !matches!(self.search.reduce, Pick::Auto | Pick::None);
        let scout = plan.scout().filter(|_| self.search.order == Pick::Auto && !given)?;
        Some(if self.search.html.is_some() { scout.with_growth() } else { scout })
    }
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
