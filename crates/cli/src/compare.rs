//! `preempt compare`: how the coverage of several searches grows on one model.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use preempt_explore::{Cache, Count, Limits, Order, Plan, Reduction, Sampling};
use preempt_report::curves::{self, Covered, Curve};
use preempt_report::plot::Chart;
use preempt_system::Model as _;

use crate::args::ModelArgs;
use crate::progress::{Watcher, Wish};
use crate::values::whole;
use crate::{Exit, Refused, input, output, screen};

#[derive(Debug, Args)]
pub struct Compare {
    #[command(flatten)]
    pub model: ModelArgs,
    /// The searches, separated by commas: icb, icb:state, icb:hb, dfs, cb-dfs:N, depth:N, idfs:N,
    /// random, pct:N, urw, sleep, dpor, dpor-optimal
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = named)]
    pub orders: Vec<Named>,
    /// What coverage is drawn against
    #[arg(long, value_enum, default_value_t = By::Executions)]
    pub by: By,
    /// What is covered
    #[arg(long, value_enum, default_value_t = What::States)]
    pub count: What,
    /// The most executions of each search; with --by bound there is no limit unless given
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    pub executions: Option<u64>,
    /// The most preemptions; with --by bound
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    pub bound: Option<u32>,
    /// What random executions depend on
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = whole::<u64>)]
    pub seed: u64,
    /// Draw the curves into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
    /// Show no progress
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

/// A search and what it was called.
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
const USUAL: [&str; 5] = ["icb", "dfs", "random", "depth:20", "depth:40"];
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
    let refuse = |why: String| Refused::because(why);
    let mut machine = input::load(&args.model.file, &args.model.settings)?;
    if args.count == What::Traces {
        // Traces are compared by the names of what they touch.
        machine = machine.with_stable_names();
    }
    let watcher = Watcher::new(if args.quiet { Wish::Quiet } else { Wish::Progress });
    let mut compared = Vec::new();
    for (name, plan) in searches {
        let search = plan.build().map_err(|refusal| refuse(format!("{name}: {refusal}")))?;
        search.suits(&machine).map_err(|refusal| refuse(format!("{name}: {refusal}")))?;
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

/// The model in a few words.
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
            return Err(Refused::because(
                "--bound belongs to --by bound: add that, or compare cb-dfs:N",
            ));
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
        let levels = matches!(order, Order::Icb { .. });
        if self.by == By::Bound && !levels {
            let why = format!(
                "{name} does not go from bound to bound: compare icb, icb:state or icb:hb, or use --by executions"
            );
            return Err(Refused::because(why));
        }
        if self.count == What::Traces && order == (Order::Icb { cache: Cache::State }) {
            let why = "icb:state covers states, not traces: use icb or icb:hb, or --count states";
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

/// The search of a name, such as `depth:20`.
fn named(text: &str) -> Result<Named, String> {
    let (word, number) =
        text.split_once(':').map_or((text, None), |(word, number)| (word, Some(number)));
    let plain = |order, reduction| match number {
        None => Ok((order, reduction, None)),
        Some(_) => Err(format!("`{word}` has no number")),
    };
    let counted = |default: Option<u32>| match number.map(str::parse) {
        Some(Ok(n)) if n > 0 || word == "cb-dfs" => Ok(n),
        Some(_) => Err(format!("`{text}` needs a number after the colon")),
        None => default.ok_or_else(|| format!("`{word}` needs a number, such as {word}:20")),
    };
    let icb = |cache| Ok((Order::Icb { cache }, Reduction::None, None));
    let found = match (word, number) {
        ("icb", None | Some("none")) => icb(Cache::None),
        ("icb", Some("state")) => icb(Cache::State),
        ("icb", Some("hb")) => icb(Cache::Hb),
        ("icb", Some(other)) => {
            Err(format!("icb has no cache `{other}`: icb, icb:state or icb:hb"))
        }
        ("dfs" | "executions", _) => plain(Order::Executions, Reduction::None),
        ("random", _) => plain(Order::Random, Reduction::None),
        ("urw", _) => plain(Order::Urw, Reduction::None),
        ("sleep", _) => plain(Order::Executions, Reduction::Sleep),
        ("dpor", _) => plain(Order::Executions, Reduction::Source),
        ("dpor-optimal", _) => plain(Order::Executions, Reduction::Optimal),
        ("cb-dfs", _) => {
            counted(None).map(|bound| (Order::ContextBounded, Reduction::None, Some(bound)))
        }
        ("depth" | "db", _) => {
            counted(None).map(|steps| (Order::Depth { steps }, Reduction::None, None))
        }
        ("idfs", _) => {
            counted(Some(1)).map(|by| (Order::IterativeDepth { by }, Reduction::None, None))
        }
        ("pct", _) => counted(Some(3)).map(|depth| (Order::Pct { depth }, Reduction::None, None)),
        _ => Err(format!(
            "no search `{word}` can be compared: it has to be one over executions, such as icb, dfs or random"
        )),
    };
    found.map(|(order, reduction, bound)| Named { name: text.to_owned(), order, reduction, bound })
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
        for text in ["", "bfs", "depth", "depth:0", "depth:x", "dfs:3", "icb:x", "cartesian"] {
            assert!(named(text).is_err(), "{text}");
        }
        USUAL
            .iter()
            .chain(&BY_BOUND)
            .chain(&BY_BOUND_TRACES)
            .for_each(|name| assert!(named(name).is_ok(), "{name}"));
    }
}
