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
use crate::values::{self, MemoryArg, seconds, whole};

/// The subject of a command's searches, as a type: it decides which strategies there are.
pub trait Searched {
    const SUBJECT: Subject;
    /// The name of a value of `--memory`.
    const MEMORY: &str = "SIZE";
    /// The help of `--memory`.
    const MEMORY_HELP: &str = "Stop when the process needs more memory, such as 500M or 4G \
                               [default: three quarters of the free memory]";
    /// The heading of `--memory`.
    const MEMORY_HEADING: &str = "Limits";
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
    const MEMORY: &str = "MODEL|SIZE";
    const MEMORY_HELP: &str = "Memory model of the program: sc, or weak for everything that the \
                               orderings of its atomic operations allow except load buffering \
                               [default: sc]. With a size such as 500M or 4G, stop when the \
                               process needs more memory [default: three quarters of the free \
                               memory]. May be given twice";
    const MEMORY_HEADING: &str = "Search";
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
    /// Explore executions with at most N preemptions (with --order delay, N delays)
    #[arg(long, value_name = "N", value_parser = whole::<u32>, help_heading = "Search")]
    pub bound: Option<u32>,
    /// Cache of icb and delay: the steps that they do not repeat [default: state; for executables hb]
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
    #[arg(long, value_name = S::MEMORY, value_parser = values::memory(S::SUBJECT))]
    #[arg(help = S::MEMORY_HELP, help_heading = S::MEMORY_HEADING)]
    pub memory: Vec<MemoryArg>,
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
    /// every execution is explored
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
        let memory = self.memory_limit().or_else(memory::default_limit);
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

    /// The memory limit that was given last.
    pub fn memory_limit(&self) -> Option<usize> {
        self.memory.iter().rev().find_map(|given| match given {
            MemoryArg::Limit(bytes) => Some(*bytes),
            MemoryArg::Model(_) => None,
        })
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
            (order @ (Order::Icb { .. } | Order::Delay { .. }), _) => {
                self.cache.map_or(order, |cache| order.with_cache(cache.cache()))
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
        let has_cache = self.order.is("icb") || self.order.is("delay");
        let stray = [
            (Setting::Cache, self.cache.is_some() && !has_cache, &["icb", "delay"][..]),
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
    /// and icb and delay continue past it up to `cheap` executions.
    pub fn plan(&self, cheap: u64) -> Result<Plan, Refused> {
        let (order, reduction) = (self.order(Subject::Program)?, self.reduce.reduction(None));
        let plan = Plan { memory: self.memory_model(), ..Plan::new() }.limits(self.limits());
        self.completed(match self.bound {
            Some(bound) => plan.bound(bound).choose(order, reduction, Subject::Program),
            None => plan.choose_with_usual_bound(order, reduction, cheap),
        })
    }
}

impl SearchArgs<Executables> {
    /// The memory model of the executable: the one that was given last.
    pub fn memory_model(&self) -> MemoryModel {
        let given = self.memory.iter().rev().find_map(|given| match given {
            MemoryArg::Model(model) => Some(*model),
            MemoryArg::Limit(_) => None,
        });
        given.unwrap_or_default()
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
pub fn needs(setting: impl Into<Term>, terms: Vec<Term>) -> Refused {
    let requirement = Requirement::OneOf(terms);
    Refused::by_engine(&Refusal::Requires { term: setting.into(), requirement })
}
