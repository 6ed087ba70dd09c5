//! `preempt graph`: the states of a small model as a picture, and which part of it a search
//! explores.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser};
use preempt_explore::graph::Graph;
use preempt_explore::plan::property::Soundness;
use preempt_explore::plan::strategies::Class;
use preempt_explore::{Plan, Search, Setting, Subject};
use preempt_report::dot::{Highlight, dot};
use preempt_report::number::counted;
use preempt_system::{MemoryModel, Model as _};

use crate::args::ModelArgs;
use crate::compare::title;
use crate::search::{Models, Pick, SearchArgs};
use crate::values::{self, whole};
use crate::{Exit, Refused, input, output, screen};

#[derive(Debug, Args)]
pub struct GraphArgs {
    #[command(flatten)]
    pub model: ModelArgs,
    /// Write the graph to this file instead of printing it
    #[arg(long, value_name = "FILE")]
    pub dot: Option<PathBuf>,
    /// Refuse models with more states
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = whole::<usize>)]
    pub states: usize,
    /// Highlight the part that this reduction explores
    #[arg(long, value_parser = values::strategies(Setting::Reduction, Subject::Model))]
    pub reduce: Option<Pick>,
    /// Highlight the part that this order of executions explores, such as icb
    #[arg(long, value_parser = values::strategies(Setting::Order, Subject::Model))]
    pub order: Option<Pick>,
    /// Bound of the highlighted search
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    pub bound: Option<u32>,
    /// Steps of an execution, with --order depth
    #[arg(long, value_name = "N", value_parser = whole::<u32>)]
    pub depth: Option<u32>,
    /// Stop the highlighted search after N executions
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = whole::<u64>)]
    pub executions: u64,
}

/// The time limit of the highlighted search.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A search with every option left out.
#[derive(Parser)]
struct Plain {
    #[command(flatten)]
    search: SearchArgs<Models>,
}

/// Runs the command.
pub fn run(args: &GraphArgs) -> Result<Exit, Refused> {
    let search = args.search()?;
    let machine = input::load(&args.model.file, &args.model.settings)?;
    if machine.memory_model() == MemoryModel::Weak {
        return Err(Refused::because(
            "a model with weak memory has no graph of states: two threads may read different \
             values of one variable in the same state",
        ));
    }
    if let Some(search) = &search {
        search.suits(&machine).map_err(|refusal| Refused::by_engine(&refusal))?;
    }
    if let Some(path) = &args.dot {
        output::writable(path, "the graph")?;
    }
    let (mut graph, machine) =
        Graph::of(machine, search.as_ref(), args.states).map_err(|too_large| {
            Refused::because(format!(
                "{too_large}: raise --states, or make the model smaller with --set"
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
        let cut = if outcome.stopped.is_some() { " within its limits" } else { "" };
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
    let word = plan.entry().name;
    plan.bound.map_or(word.to_owned(), |bound| {
        format!("{word} within {}", counted(bound.into(), "preemption"))
    })
}

impl GraphArgs {
    /// The search that is highlighted, if one is asked for.
    fn search(&self) -> Result<Option<Search>, Refused> {
        if self.reduce.is_none() && self.order.is_none() {
            return match self.bound.is_some() || self.depth.is_some() {
                true => Err(Refused::because("--bound and --depth need --order or --reduce")),
                false => Ok(None),
            };
        }
        if self.reduce == Some(Pick::Auto) {
            return Err(Refused::because("--reduce auto chooses no reduction here: name one"));
        }
        let mut options = Plain::parse_from(["preempt"]).search;
        options.order = self.order.unwrap_or(Pick::Auto);
        options.reduce = self.reduce.unwrap_or(Pick::None);
        (options.bound, options.depth) = (self.bound, self.depth);
        let plan = Plan::new().limits(options.limits());
        let mut plan = options.plan(plan, None)?.keep_going();
        // States visited while shrinking are not part of the search.
        plan.shrink = None;
        let entry = plan.entry();
        if entry.class != Class::States {
            plan.limits.executions = Some(self.executions);
        }
        // An execution of a reduction may not end.
        plan.limits.time = Some(TIME_LIMIT);
        // The picture has no verdict, so a strategy that misses deadlocks is welcome.
        plan.deadlock = !matches!(entry.properties.deadlock, Soundness::Unsound(_));
        let search = plan.build().map_err(|refusal| Refused::by_engine(&refusal))?;
        if search.strategy().is_full_search_of_states() {
            return Err(Refused::because(
                "a full search explores the whole graph: use --reduce, or an order of executions",
            ));
        }
        Ok(Some(search))
    }
}
