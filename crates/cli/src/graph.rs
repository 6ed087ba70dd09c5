//! `preempt graph`: the states of a small model as a picture, and which part of it a search
//! explores.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser};
use preempt_explore::graph::Graph;
use preempt_explore::{Plan, Search};
use preempt_report::dot::{Highlight, dot};
use preempt_report::number::counted;
use preempt_report::words;
use preempt_system::Model as _;

use crate::args::{Check, ModelArgs, OrderArg, ReduceArg};
use crate::compare::title;
use crate::values::whole;
use crate::{Exit, Refused, input, output, screen};

#[derive(Debug, Args)]
pub struct GraphArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Write the graph into this file, else print it
    #[arg(long, value_name = "FILE")]
    pub dot: Option<PathBuf>,
    /// Refuse models with more states
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = whole::<usize>)]
    pub states: usize,
    /// Highlight what this reduction explores
    #[arg(long, value_enum)]
    pub reduce: Option<ReduceArg>,
    /// Highlight what this order of executions explores, such as icb
    #[arg(long, value_enum)]
    pub order: Option<OrderArg>,
    /// The most preemptions, where the highlighted search has a bound
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    pub bound: Option<u32>,
    /// The most steps of an execution, with --order depth
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    pub depth: Option<u32>,
    /// The most executions that the highlighted search takes
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = whole::<u64>)]
    pub executions: u64,
}

/// So long the highlighted search is let go on.
const PATIENCE: Duration = Duration::from_secs(60);

/// A check with every option left out.
#[derive(Parser)]
struct Plain {
    #[command(flatten)]
    check: Check,
}

/// Runs the command.
pub fn run(args: &GraphArgs) -> Result<Exit, Refused> {
    let search = args.search()?;
    let machine = input::load(&args.model.file, &args.model.settings)?;
    if let Some(search) = &search {
        search.suits(&machine).map_err(|refusal| Refused::because(refusal.to_string()))?;
    }
    if let Some(path) = &args.dot {
        output::writable(path, "the graph")?;
    }
    let (mut graph, machine) = Graph::of(machine, search.as_ref(), args.states).map_err(|too_large| {
        Refused::because(format!(
            "{too_large}, and nobody could read the picture: raise --states, or make it smaller with --set"
        ))
    })?;
    let mut about = format!(
        "{}: {}, {}",
        title(&args.model),
        counted(graph.nodes.len() as u64, "state"),
        counted(graph.edges.len() as u64, "step")
    );
    let mut highlight = Highlight::None;
    if let Some(search) = &search {
        let outcome = graph.follow(search, machine.clone());
        let nodes = graph.nodes.iter().filter(|node| node.explored).count() as u64;
        let edges = graph.edges.iter().filter(|edge| edge.explored).count() as u64;
        let cut = if outcome.stopped.is_some() { ", as far as it was let" } else { "" };
        let steps = counted(edges, "step");
        about += &format!(
            "; {} explores {} by {steps}{cut}",
            name(search.plan()),
            counted(nodes, "state")
        );
        highlight = Highlight::Explored;
    }
    let text = dot(&graph, &mut machine.stepper(), &about, highlight);
    match &args.dot {
        Some(path) => {
            output::save(path, "the graph", &text)?;
            let picture = path.with_extension("svg");
            screen::print(&format!(
                "{about}\ndraw it with: dot -Tsvg {} -o {}\n",
                input::quoted(&path.display().to_string()),
                input::quoted(&picture.display().to_string())
            ))?;
        }
        None => screen::print(&text)?,
    }
    Ok(Exit::Covered)
}

/// The search in a few words.
fn name(plan: &Plan) -> String {
    let word = match plan.reduction {
        preempt_explore::Reduction::None => words::order(plan.order),
        reduction => words::reduction(reduction),
    };
    plan.bound.map_or(word.to_owned(), |bound| {
        format!("{word} within {}", counted(bound.into(), "preemption"))
    })
}

impl GraphArgs {
    /// The search that is highlighted, if one is asked for.
    fn search(&self) -> Result<Option<Search>, Refused> {
        if self.reduce.is_none() && self.order.is_none() {
            return match self.bound.is_some() || self.depth.is_some() {
                true => Err(Refused::because(
                    "a bound or a depth belongs to a search: add --order icb, or --reduce",
                )),
                false => Ok(None),
            };
        }
        if self.reduce == Some(ReduceArg::Auto) {
            return Err(Refused::because(
                "--reduce auto highlights nothing by itself: name the reduction",
            ));
        }
        let mut check = Plain::parse_from(["preempt", "model"]).check;
        check.order = self.order.unwrap_or(OrderArg::Auto);
        check.reduce = self.reduce.unwrap_or(ReduceArg::None);
        check.bound = self.bound;
        check.depth = self.depth;
        let mut plan = check.plan(None)?.keep_going();
        // What a look for simpler schedules visits is no part of the search.
        plan.shrink = None;
        if plan.order.is_of_executions() {
            plan.limits.executions = Some(self.executions);
        }
        // An execution of a reduction need not end.
        plan.limits.time = Some(PATIENCE);
        // Transactions keep no deadlocks, and nobody asks for a verdict here.
        plan.deadlock = !plan.reduction.is_by_transactions();
        let search = plan.build().map_err(|refusal| Refused::because(refusal.to_string()))?;
        if search.plan().reduction == preempt_explore::Reduction::None
            && !search.plan().order.is_of_executions()
        {
            return Err(Refused::because(
                "a full search explores the whole graph: name a reduction, or an order of executions",
            ));
        }
        Ok(Some(search))
    }
}
