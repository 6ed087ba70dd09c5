//! The options that `preempt check` and `preempt run` have in common, and the plan that they
//! describe.

use std::marker::PhantomData;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use preempt_explore::plan::strategies::{Entry, Value};
use preempt_explore::{
    Cache, Limits, Order, Plan, Reduction, Refusal, Requirement, Setting, Shrink, Subject, Term,
    memory,
};
use preempt_system::MemoryModel;

use crate::Refused;
use crate::values::{self, seconds, size, whole};

/// The subject of a command's searches, as a type: it decides which strategies there are.
pub trait Searched {
    const SUBJECT: Subject;
}

/// Models.
#[derive(Debug)]
pub struct Models;

/// Executables.
#[derive(Debug)]
pub struct Executables;

impl Searched for Models {
    const SUBJECT: Subject = Subject::Model;
}

impl Searched for Executables {
    const SUBJECT: Subject = Subject::Program;
}

#[derive(Debug, Args)]
pub struct SearchArgs<S: Searched> {
    /// Search order
    #[arg(long, value_parser = values::strategies(Setting::Order, S::SUBJECT))]
    #[arg(default_value = "auto", help_heading = "Search", hide_default_value = true)]
    pub order: Pick,
    /// Partial-order reduction
    #[arg(long, value_parser = values::strategies(Setting::Reduction, S::SUBJECT))]
    #[arg(default_value = "none", help_heading = "Search", hide_default_value = true)]
    pub reduce: Pick,
    /// Explore executions with at most N preemptions
    #[arg(long, value_name = "N", value_parser = whole::<u32>, help_heading = "Search")]
    pub bound: Option<u32>,
    /// Cache of icb: the steps that it does not repeat [default: state; for executables hb]
    #[arg(long, value_enum, help_heading = "Search")]
    pub cache: Option<CacheArg>,
    /// Number of random executions [default: 1000]
    #[arg(long, value_name = "N", value_parser = whole::<u64>, help_heading = "Search")]
    pub runs: Option<u64>,
    /// Random seed [default: 0]
    #[arg(long, value_name = "N", value_parser = whole::<u64>, help_heading = "Search")]
    pub seed: Option<u64>,
    /// Depth of the errors that pct looks for [default: 3]
    #[arg(long, value_name = "N", value_parser = whole::<u32>, help_heading = "Search")]
    pub pct_depth: Option<u32>,
    /// Number of workers
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
    #[arg(skip)]
    pub subject: PhantomData<S>,
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

    /// The reduction, `auto` being the one that was chosen before.
    pub fn reduction(self, chosen: Option<Reduction>) -> Option<Reduction> {
        match self {
            Pick::Auto => chosen,
            Pick::Strategy(Entry { value: Value::Reduction(reduction), .. }) => Some(*reduction),
            Pick::None | Pick::Strategy(_) => None,
        }
    }
}

impl<S: Searched> SearchArgs<S> {
    /// The limits of a search.
    pub fn limits(&self) -> Limits {
        let memory = self.memory.or_else(memory::default_limit);
        Limits {
            states: None,
            executions: self.executions,
            // With the order depth, the number of steps is a parameter and not a limit.
            depth: self.depth.filter(|_| !self.order.is("depth")),
            memory,
            // Users watch the memory of the process, not that of our tables.
            resident: memory,
            time: self.time,
        }
    }

    /// The plan with the settings that do not depend on its strategy.
    fn completed(&self, plan: Plan) -> Result<Plan, Refused> {
        self.check_parameters(plan.order)?;
        let plan = Plan {
            jobs: self.jobs,
            keep_going: self.keep_going,
            first: self.first,
            deadlock: !self.no_deadlock,
            runs: self.runs.unwrap_or(plan.runs),
            seed: self.seed.unwrap_or(plan.seed),
            shrink: match self.shrink {
                _ if self.no_shrink => None,
                Some(time) => Some(Shrink::within(time)),
                None => Some(Shrink::default()),
            },
            ..plan
        };
        Ok(if self.html.is_some() { plan.with_growth() } else { plan })
    }

    /// The order that was given, with its parameter.
    fn order(&self, subject: Subject) -> Result<Option<Order>, Refused> {
        let Pick::Strategy(entry) = self.order else { return Ok(None) };
        let Value::Order(order) = entry.value_for(subject) else { return Ok(None) };
        Ok(Some(match (order, self.depth) {
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

impl SearchArgs<Models> {
    /// The plan of the search, with the settings of `plan` that are not here. `chosen` is what
    /// `--reduce auto` chooses.
    pub fn plan(&self, plan: Plan, chosen: Option<Reduction>) -> Result<Plan, Refused> {
        let reduction = self.reduce.reduction(chosen);
        let plan = Plan { bound: self.bound, ..plan };
        let subject = match plan.memory {
            MemoryModel::Weak => Subject::WeakModel,
            _ => Subject::Model,
        };
        self.completed(plan.choose(self.order(subject)?, reduction, subject))
    }
}

impl SearchArgs<Executables> {
    /// The plan of the search. Without a bound the usual one is used by strategies that have one,
    /// and icb continues past it up to `cheap` executions.
    pub fn plan(&self, cheap: u64) -> Result<Plan, Refused> {
        let (order, reduction) = (self.order(Subject::Program)?, self.reduce.reduction(None));
        let plan = Plan::new().limits(self.limits());
        self.completed(match self.bound {
            Some(bound) => plan.bound(bound).choose(order, reduction, Subject::Program),
            None => plan.choose_with_usual_bound(order, reduction, cheap),
        })
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
pub fn needs(setting: Setting, terms: Vec<Term>) -> Refused {
    let requirement = Requirement::OneOf(terms);
    Refused::by_engine(&Refusal::Requires { setting, requirement })
}
