//! `preempt compare`: how the coverage of several searches grows on one model.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use preempt_explore::plan::strategies::{self, Class, NotAStrategy, ParameterKind, Value};
use preempt_explore::{Cache, Count, Limits, Order, Plan, Reduction, Refusal, Sampling};
use preempt_report::curves::{self, Covered, Curve};
use preempt_report::plot::Chart;
use preempt_system::Model as _;

use crate::args::ModelArgs;
use crate::progress::{Watcher, Wish};
use crate::terms::Flags;
use crate::values::whole;
use crate::{Exit, Refused, input, output, screen};

#[derive(Debug, Args)]
pub struct Compare {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Strategies over executions, separated by commas, such as icb, icb:hb, executions, cb-dfs:2,
    /// depth:20, random, pct:3, dpor
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = named)]
    pub orders: Vec<Named>,
    /// What coverage is plotted against
    #[arg(long, value_enum, default_value_t = By::Executions)]
    pub by: By,
    /// What is counted
    #[arg(long, value_enum, default_value_t = What::States)]
    pub count: What,
    /// Stop each search after N executions [default: 10000; with --by bound, none]
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    pub executions: Option<u64>,
    /// With --by bound, the largest bound
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    pub bound: Option<u32>,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<u64>)]
    pub seed: u64,
    /// Write a chart to this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Do not show progress
    #[arg(long)]
    pub quiet: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum By {
    Bound,
    Executions,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum What {
    States,
    Traces,
}

/// A search and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    name: String,
    order: Order,
    reduction: Reduction,
    bound: Option<u32>,
}

/// The most executions of each search, unless given.
const EXECUTIONS: u64 = 10_000;
/// The searches that icb's Figure 2 compares.
const USUAL: [&str; 5] = ["icb", "executions", "random", "depth:20", "depth:40"];
/// The search whose bounds are compared: every state is counted once, at its least bound.
const BY_BOUND: [&str; 1] = ["icb:state"];
/// The same for traces.
const BY_BOUND_TRACES: [&str; 1] = ["icb:hb"];

/// Runs the command.
pub fn run(args: &Compare) -> Result<Exit, Refused> {
    let searches = args.searches()?;
    let covered = match args.count {
        What::States => Covered::States,
        What::Traces => Covered::Traces,
    };
    if let Some(path) = &args.svg {
        output::writable(path, "the chart")?;
    }
    let mut machine = input::load(&args.model.file, &args.model.settings)?;
    if args.count == What::Traces {
        // Traces are compared by the names of what they touch.
        machine = machine.with_stable_names();
    }
    let watcher = Watcher::new(if args.quiet { Wish::Quiet } else { Wish::Progress });
    let mut compared = Vec::new();
    for (name, plan) in searches {
        let refuse =
            |refusal: Refusal| Refused::because(format!("{name}: {}", refusal.in_terms_of(&Flags)));
        let search = plan.build().map_err(refuse)?;
        search.suits(&machine).map_err(refuse)?;
        let (outcome, _) = search.run(machine.clone(), &watcher);
        compared.push(Curve { name, outcome });
        if watcher.is_interrupted() {
            break;
        }
    }
    watcher.finish();
    let (text, chart) = drawn(args, &compared, covered);
    let printed = screen::print(&text);
    if let Some(path) = &args.svg {
        output::save(path, "the chart", &chart.to_svg())?;
    }
    printed?;
    Ok(if watcher.is_interrupted() { Exit::Incomplete } else { Exit::Covered })
}

fn drawn(args: &Compare, curves: &[Curve], covered: Covered) -> (String, Chart) {
    let title = title(&args.model);
    match args.by {
        By::Executions => (
            curves::table_by_executions(curves, covered),
            curves::chart_by_executions(
                &format!("{title}: coverage by executions"),
                curves,
                covered,
            ),
        ),
        By::Bound => (
            curves::table_by_bound(curves, covered),
            curves::chart_by_bound(&format!("{title}: coverage by bound"), curves, covered),
        ),
    }
}

/// The name of the model in titles.
pub fn title(model: &ModelArgs) -> String {
    let settings: Vec<String> =
        model.settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let folder = model
        .file
        .parent()
        .and_then(Path::file_name)
        .map(|name| name.to_string_lossy().into_owned());
    let file =
        model.file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let file = folder.map_or(file.clone(), |folder| format!("{folder}/{file}"));
    [vec![file], settings].concat().join(" ")
}

impl Compare {
    /// The searches, each with its plan.
    fn searches(&self) -> Result<Vec<(String, Plan)>, Refused> {
        if self.by == By::Executions && self.bound.is_some() {
            return Err(Refused::because("--bound needs --by bound; or compare cb-dfs:N"));
        }
        let usual: &[&str] = match (self.by, self.count) {
            (By::Executions, _) => &USUAL,
            (By::Bound, What::States) => &BY_BOUND,
            (By::Bound, What::Traces) => &BY_BOUND_TRACES,
        };
        let named = match &self.orders[..] {
            [] => {
                usual.iter().map(|name| named(name).expect("the usual orders have names")).collect()
            }
            given => given.to_vec(),
        };
        named.into_iter().map(|named| self.plan(named)).collect()
    }

    fn plan(&self, named: Named) -> Result<(String, Plan), Refused> {
        let Named { name, order, reduction, bound } = named;
        let levels = order.cache().is_some();
        if self.by == By::Bound && !levels {
            let why = format!(
                "{name} has no levels of bounds: compare icb or delay, icb:state or icb:hb, or use \
                 --by executions"
            );
            return Err(Refused::because(why));
        }
        if self.count == What::Traces && order.cache() == Some(Cache::State) {
            let kind = strategies::of_order(order).name;
            let why = format!(
                "{kind}:state covers states, not traces: use {kind} or {kind}:hb, or --count states"
            );
            return Err(Refused::because(why));
        }
        let (executions, sampling) = match self.by {
            By::Executions => (Some(self.executions.unwrap_or(EXECUTIONS)), Sampling::Decades),
            By::Bound => (self.executions, Sampling::Off),
        };
        let limits = Limits { executions, ..Limits::default() };
        let mut plan = Plan::new()
            .order(order)
            .reduction(reduction)
            .limits(limits)
            .sampling(sampling)
            .keep_going();
        plan.count = Count::States;
        plan.seed = self.seed;
        plan.runs = executions.unwrap_or(EXECUTIONS);
        plan.bound = bound.or(self.bound);
        Ok((name, plan))
    }
}

/// The search of a name, such as `depth:20`. `icb` and `delay` have no cache here: with one, a
/// path that ends at a covered step is not an execution, and its curve would not be comparable.
/// `cb-dfs` has its bound for a parameter.
fn named(text: &str) -> Result<Named, String> {
    let name = text.to_owned();
    if let Some(bound) = text.strip_prefix("cb-dfs") {
        let bound = bound.strip_prefix(':').and_then(|bound| bound.parse().ok());
        let bound = bound.ok_or_else(|| format!("`{text}` needs a bound, such as cb-dfs:2"))?;
        let (order, reduction) = (Order::ContextBounded, Reduction::None);
        return Ok(Named { name, order, reduction, bound: Some(bound) });
    }
    let written = strategies::parse(text).map_err(|wrong| match wrong {
        NotAStrategy::Unknown => {
            format!("`{text}` is not a strategy: try icb, executions or random")
        }
        NotAStrategy::NoParameter(entry) => format!("`{}` has no parameter", entry.name),
        NotAStrategy::Parameter(entry) if entry.parameter == ParameterKind::Cache => {
            format!("`{text}` has an unknown cache: use {0}, {0}:state or {0}:hb", entry.name)
        }
        NotAStrategy::Parameter(entry) => {
            format!("`{}` needs a number, such as {0}:20", entry.name)
        }
    })?;
    if written.entry.class == Class::States {
        let instead = match written.entry.name {
            "dfs" => "executions for all executions",
            _ => "icb, executions or random",
        };
        return Err(format!(
            "`{text}` searches states, and compare shows searches over executions: use {instead}"
        ));
    }
    if written.entry.needs_bound.is_some() {
        return Err(format!("`{text}` needs a bound, which compare does not have: use dpor"));
    }
    let (order, reduction) = match written.value {
        // For most orders this changes nothing.
        Value::Order(order) if !written.has_parameter => {
            (order.with_cache(Cache::None), Reduction::None)
        }
        Value::Order(order) => (order, Reduction::None),
        Value::Reduction(reduction) => (Order::Executions, reduction),
    };
    match order {
        Order::Depth { steps: 0 } | Order::IterativeDepth { by: 0 } | Order::Pct { depth: 0 } => {
            Err(format!("`{text}` needs a number of at least 1"))
        }
        _ => Ok(Named { name, order, reduction, bound: None }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn searches_have_names() {
        let plan =
            |text: &str| named(text).map(|named| (named.order, named.reduction, named.bound));
        assert_eq!(plan("icb"), Ok((Order::Icb { cache: Cache::None }, Reduction::None, None)));
        assert_eq!(plan("depth:20"), Ok((Order::Depth { steps: 20 }, Reduction::None, None)));
        assert_eq!(plan("cb-dfs:0"), Ok((Order::ContextBounded, Reduction::None, Some(0))));
        assert_eq!(plan("dpor"), Ok((Order::Executions, Reduction::Source, None)));
        assert_eq!(plan("idfs").map(|plan| plan.0), Ok(Order::IterativeDepth { by: 1 }));
        for text in ["", "bfs", "depth", "depth:0", "depth:x", "urw:3", "icb:x", "cartesian"] {
            assert!(named(text).is_err(), "{text}");
        }
        let states = named("dfs").expect_err("dfs is a search over states");
        assert!(states.ends_with("use executions for all executions"), "{states}");
        USUAL
            .iter()
            .chain(&BY_BOUND)
            .chain(&BY_BOUND_TRACES)
            .for_each(|name| assert!(named(name).is_ok(), "{name}"));
    }
}
