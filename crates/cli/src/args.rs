//! The command line as types.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use preempt_explore::reduce::cartesian::Reading;
use preempt_explore::{Cache, Limits, Order, Plan, Points, Reduction, Shrink, StoreKind, memory};

use crate::Refused;
use crate::compare::Compare;
use crate::graph::GraphArgs;
use crate::run::{ProgramArgs, RunArgs};
use crate::values::{seconds, setting, size, whole};

/// A model checker for concurrent programs: runs a model under every schedule, and ends with a
/// failing schedule that can be replayed, or with a sentence that says what was covered.
#[derive(Debug, Parser)]
#[command(name = "preempt", version, max_term_width = 100, arg_required_else_help = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
    /// Whether to use colours; `auto` asks the terminal, and NO_COLOR and CLICOLOR_FORCE
    #[arg(long, global = true, value_enum, default_value_t = ColorArg::Auto, value_name = "WHEN")]
    pub color: ColorArg,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ColorArg {
    Auto,
    Always,
    Never,
}

// A value that begins with a minus is taken for a value, so that what is said is about it and not
// about an unknown option.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Search a model for errors
    #[command(allow_negative_numbers = true)]
    Check(Check),
    /// Explore the schedules of an executable: an unmodified multithreaded program
    #[command(allow_negative_numbers = true)]
    Run(RunArgs),
    /// Run one schedule of a model or of an executable again and print what happens
    #[command(allow_negative_numbers = true)]
    Replay(ReplayArgs),
    /// Run a model once, at random or step by step as you choose
    #[command(allow_negative_numbers = true)]
    Simulate(Simulate),
    /// Show how the coverage of several searches grows, as a table and as a chart
    #[command(allow_negative_numbers = true)]
    Compare(Compare),
    /// Write the states of a small model as a graph, with what a search explores highlighted
    #[command(allow_negative_numbers = true)]
    Graph(GraphArgs),
    /// List the strategies: what each one is, guarantees and costs
    Strategies,
}

/// The model that a command is about.
#[derive(Debug, Args)]
pub struct ModelArgs {
    /// The model, a text in Preempt's modelling language
    pub file: PathBuf,
    /// Give a constant of the model another value
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    pub settings: Vec<(String, String)>,
}

#[derive(Debug, Args)]
pub struct Check {
    #[command(flatten)]
    pub model: ModelArgs,
    /// In which order states are expanded, or executions are taken
    #[arg(long, value_enum, default_value_t = OrderArg::Auto)]
    pub order: OrderArg,
    /// The most preemptions of an execution; with icb, cb-dfs, dfs-hb, cb-por, cb-por-states and
    /// budgeted-sleep
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    pub bound: Option<u32>,
    /// Which steps icb does not take again, `state` unless given
    #[arg(long, value_enum)]
    pub cache: Option<CacheArg>,
    /// The depth of the errors that pct looks for, 3 unless given
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    pub pct_depth: Option<u32>,
    /// How many executions random, pct and urw draw, 1000 unless given
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    pub runs: Option<u64>,
    /// What the executions of random, pct and urw depend on, 0 unless given
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    pub seed: Option<u64>,
    /// Which steps are left out because others show the same
    #[arg(long, value_enum, default_value_t = ReduceArg::None)]
    pub reduce: ReduceArg,
    /// Where threads may be switched
    #[arg(long, value_enum, default_value_t = PointsArg::All)]
    pub points: PointsArg,
    /// After a data race, search on with the variable treated as synchronisation; only with
    /// --points sync
    #[arg(long)]
    pub promote: bool,
    /// How visited states are remembered
    #[arg(long, value_enum, default_value_t = StoreArg::Exact)]
    pub store: StoreArg,
    /// The size of the bitstate array, 64M unless given; only with --store bitstate
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub bitstate_size: Option<usize>,
    /// Stop when more states than these were found
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    pub states: Option<u64>,
    /// Stop when there are more executions than these; with orders of executions
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    pub executions: Option<u64>,
    /// Take no step from a state that is this many steps from the beginning
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    pub depth: Option<u32>,
    /// Stop after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub time: Option<Duration>,
    /// Stop when the process needs more memory, such as 500M or 4G; three quarters of what is free
    /// unless given
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<usize>,
    /// How many threads search
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole::<usize>)]
    pub jobs: usize,
    /// Search on after an error, and report every distinct one
    #[arg(long)]
    pub keep_going: bool,
    /// Report whichever error is found first; without this, after --jobs N one thread searches
    /// again, so that the report is the same for every N
    #[arg(long)]
    pub first: bool,
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
    /// Write to this file now and then, and at an interrupt, from where the search can go on
    #[arg(long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
    /// The seconds between two checkpoints, 5 unless given, and more where writing one takes long
    #[arg(long, value_name = "S", value_parser = seconds)]
    pub checkpoint_every: Option<Duration>,
    /// Go on from a file that --checkpoint wrote, with the same model and the same options
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct ReplayArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// The token of a schedule, or a file that --save-schedule wrote
    pub schedule: String,
    /// An argument of the executable; may be given several times
    #[arg(long = "arg", value_name = "ARG", allow_hyphen_values = true)]
    pub args: Vec<OsString>,
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Stop before the preemption of this number, counted from 1, and show where each thread stands
    #[arg(long, value_name = "K", value_parser = whole::<u32>)]
    pub stop_at: Option<u32>,
    /// Write a page to this file in which the execution can be stepped through
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct Simulate {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Decides a random run
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<u64>, conflicts_with = "interactive")]
    pub seed: u64,
    /// Stop after this many steps
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = whole::<usize>)]
    pub steps: usize,
    /// Choose every step by hand
    #[arg(long)]
    pub interactive: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OrderArg {
    Auto,
    Bfs,
    Dfs,
    Icb,
    CbDfs,
    DfsHb,
    Executions,
    Depth,
    Idfs,
    Random,
    Pct,
    Urw,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CacheArg {
    None,
    State,
    Hb,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReduceArg {
    Auto,
    None,
    Sleep,
    Dpor,
    DporOptimal,
    DporFg,
    BudgetedSleep,
    CbPor,
    CbPorStates,
    Blocks,
    BlocksPaper,
    Cartesian,
    CartesianLiteral,
    Transactions,
    TransactionsCycle,
    TransactionsUnsound,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PointsArg {
    All,
    Sync,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StoreArg {
    Exact,
    Tree,
    Fingerprint,
    Bitstate,
}

/// How far the simplest executions are searched before all states are: preemptions, and states.
const SCOUTED_BOUND: u32 = 2;
const SCOUTED_STATES: u64 = 200_000;

/// The depth of the errors that pct looks for, where nobody has said it: most errors have a smaller
/// one.
const PCT_DEPTH: u32 = 3;

/// The bitstate array, where nobody has said how large it shall be.
const BITSTATE_BYTES: usize = 64 << 20;

impl Check {
    /// The search that the options describe, or why they describe none.
    pub fn plan(&self, chosen: Option<Reduction>) -> Result<Plan, Refused> {
        if self.bitstate_size.is_some() && self.store != StoreArg::Bitstate {
            let why = "--bitstate-size is the size of a bitstate array: add --store bitstate, or leave it out";
            return Err(Refused::because(why));
        }
        let reduction = self.reduction(chosen);
        let order = self.order(reduction)?;
        let store = match self.store {
            StoreArg::Exact => StoreKind::Exact,
            StoreArg::Tree => StoreKind::Tree,
            StoreArg::Fingerprint => StoreKind::Fingerprint,
            StoreArg::Bitstate => {
                StoreKind::Bitstate { bytes: self.bitstate_size.unwrap_or(BITSTATE_BYTES) }
            }
        };
        // The number of steps of the order depth is no limit: it is what was asked for.
        let depth = self.depth.filter(|_| self.order != OrderArg::Depth);
        let memory = self.memory.or_else(memory::most_of_what_is_free);
        let limits = Limits {
            states: self.states,
            executions: self.executions,
            depth,
            memory,
            // What the user sees is the process, not our tables.
            resident: memory,
            time: self.time,
        };
        let mut plan = Plan::new()
            .order(order)
            .reduction(reduction)
            .store(store)
            .jobs(self.jobs)
            .limits(limits);
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
        Ok(if self.html.is_some() { plan.with_growth() } else { plan })
    }

    /// What is searched before the search proper, if the choice of the order is ours: the simplest
    /// executions, which have the simplest errors.
    pub fn scout(&self, plan: &Plan) -> Option<Plan> {
        let reduces = plan.reduction != Reduction::None && self.reduce != ReduceArg::Auto;
        let ours = self.order == OrderArg::Auto && !plan.order.is_of_executions() && !reduces;
        // Who asks for all errors or for a depth wants the numbers of one search.
        if !ours || self.keep_going || self.depth.is_some() {
            return None;
        }
        let states = self.states.map_or(SCOUTED_STATES, |states| states.min(SCOUTED_STATES));
        let limits = Limits { states: Some(states), ..plan.limits };
        let order = Order::Icb { cache: Cache::State };
        let plan = Plan {
            order,
            reduction: Reduction::None,
            bound: Some(SCOUTED_BOUND),
            limits,
            jobs: 1,
            store: StoreKind::Exact,
            ..*plan
        };
        Some(if self.html.is_some() { plan.with_growth() } else { plan })
    }

    fn reduction(&self, chosen: Option<Reduction>) -> Reduction {
        match self.reduce {
            ReduceArg::Auto => chosen.expect("a reduction is chosen where that is asked for"),
            ReduceArg::None => Reduction::None,
            ReduceArg::Sleep => Reduction::Sleep,
            ReduceArg::Dpor => Reduction::Source,
            ReduceArg::DporOptimal => Reduction::Optimal,
            ReduceArg::DporFg => Reduction::FlanaganGodefroid,
            ReduceArg::BudgetedSleep => Reduction::BudgetedSleep,
            ReduceArg::CbPor => Reduction::CbPor,
            ReduceArg::CbPorStates => Reduction::CbPorStates,
            ReduceArg::Blocks => Reduction::Blocks,
            ReduceArg::BlocksPaper => Reduction::BlocksPaper,
            ReduceArg::Cartesian => Reduction::Cartesian { reading: Reading::Late },
            ReduceArg::CartesianLiteral => Reduction::Cartesian { reading: Reading::Literal },
            ReduceArg::Transactions => Reduction::Transactions,
            ReduceArg::TransactionsCycle => Reduction::TransactionsCycle,
            ReduceArg::TransactionsUnsound => Reduction::TransactionsUnsound,
        }
    }

    /// The order where nobody has said one.
    fn fitting_order(&self, reduction: Reduction) -> Order {
        match reduction {
            Reduction::None if self.points == PointsArg::Sync => Order::Icb { cache: Cache::Hb },
            Reduction::None if self.bound.is_some() => Order::Icb { cache: Cache::State },
            Reduction::None => Order::BreadthFirst,
            Reduction::Cartesian { .. } => Order::BreadthFirst,
            reduction if reduction.is_bounded() => Order::ContextBounded,
            reduction if reduction.is_by_transactions() => Order::DepthFirst,
            _ => Order::Executions,
        }
    }

    /// The order, unless there are options that belong to another one.
    fn order(&self, reduction: Reduction) -> Result<Order, Refused> {
        let order = match self.order {
            OrderArg::Auto => self.fitting_order(reduction),
            OrderArg::Bfs => Order::BreadthFirst,
            OrderArg::Dfs => Order::DepthFirst,
            OrderArg::Icb => Order::Icb {
                cache: match self.cache.unwrap_or(CacheArg::State) {
                    CacheArg::None => Cache::None,
                    CacheArg::State => Cache::State,
                    CacheArg::Hb => Cache::Hb,
                },
            },
            OrderArg::CbDfs => Order::ContextBounded,
            OrderArg::DfsHb => Order::DfsHb,
            OrderArg::Executions => Order::Executions,
            OrderArg::Depth => match self.depth {
                Some(steps) => Order::Depth { steps },
                None => {
                    return Err(Refused::because(
                        "--order depth needs a number of steps: add --depth N",
                    ));
                }
            },
            OrderArg::Idfs => Order::IterativeDepth { by: 1 },
            OrderArg::Random => Order::Random,
            OrderArg::Pct => Order::Pct { depth: self.pct_depth.unwrap_or(PCT_DEPTH) },
            OrderArg::Urw => Order::Urw,
        };
        let stray = [
            ("--cache", self.cache.is_some() && self.order != OrderArg::Icb, "icb"),
            ("--pct-depth", self.pct_depth.is_some() && self.order != OrderArg::Pct, "pct"),
            ("--runs", self.runs.is_some() && !order.samples(), "random, pct or urw"),
            ("--seed", self.seed.is_some() && !order.samples(), "random, pct or urw"),
        ];
        match stray.into_iter().find(|&(_, stray, _)| stray) {
            Some((option, _, orders)) => Err(Refused::because(format!(
                "{option} belongs to --order {orders}: add that, or leave it out"
            ))),
            None => Ok(order),
        }
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
