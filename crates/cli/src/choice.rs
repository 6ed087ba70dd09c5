//! `--reduce auto`: chooses a reduction for a model and the other options.

use preempt_explore::Reduction;
use preempt_explore::plan::strategies::Class;
use preempt_explore::reduce::cartesian::Reading;
use preempt_system::{MemoryModel, Model};

use crate::args::{Check, PointsArg};
use crate::search::Pick;

/// A reduction that is sound for the properties looked for, and the reason for it.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    pub reduction: Reduction,
    /// One line for the report.
    pub because: &'static str,
}

/// Chooses a reduction. `Plan::build` and `Search::suits` would refuse an unsound one.
pub fn choose(args: &Check, model: &impl Model) -> Choice {
    let of = |reduction, because| Choice { reduction, because };
    if model.memory_model() == MemoryModel::Weak {
        return choose_for_weak_memory(args, model);
    }
    let executions = args.points == PointsArg::Sync
        || matches!(args.search.order, Pick::Strategy(entry) if entry.class != Class::States);
    let explores_executions = args.search.order == Pick::Auto
        || args.search.order.is("executions")
        || args.search.order.is("cb-dfs");
    match (args.search.bound, executions) {
        _ if args.search.depth.is_some() => of(
            Reduction::None,
            "none: a reduction follows every execution to its end, and a depth is given",
        ),
        _ if args.search.jobs > 1 && (executions || args.search.bound.is_some()) => of(
            Reduction::None,
            "none: which steps a reduction skips depends on the executions explored earlier, and \
             there are several workers",
        ),
        (_, true) if !explores_executions => {
            of(Reduction::None, "none: no reduction can be combined with this order")
        }
        (Some(_), _) if model.has_invariants() => {
            of(Reduction::None, "none: invariants must be checked in every state within the bound")
        }
        (Some(_), _) => of(Reduction::CbPor, "cb-por: one execution per trace within the bound"),
        (None, true) if model.has_invariants() => {
            of(Reduction::Sleep, "sleep: it visits every state, for the invariants")
        }
        (None, true) => of(Reduction::Optimal, "dpor-optimal: one execution per trace"),
        (None, false)
            if args.search.no_deadlock
                && !model.has_invariants()
                && args.search.jobs == 1
                && !args.search.order.is("bfs") =>
        {
            of(
                Reduction::Transactions,
                "transactions: deadlocks are not looked for, and there are no invariants",
            )
        }
        (None, false) => of(
            Reduction::Cartesian { reading: Reading::Late },
            "cartesian: it keeps assertions, runtime errors, deadlocks and invariants",
        ),
    }
}

/// The same for a model with weak memory.
fn choose_for_weak_memory(args: &Check, model: &impl Model) -> Choice {
    let Check { search, .. } = args;
    let explores_executions = search.order == Pick::Auto || search.order.is("executions");
    let is_plain = search.bound.is_none() && search.depth.is_none() && search.jobs == 1;
    if explores_executions && is_plain && model.graph_obstacle().is_none() {
        let because = "graphs: one execution per execution graph of weak memory";
        return Choice { reduction: Reduction::Graphs, because };
    }
    let because = "none: no other reduction is sound under weak memory";
    Choice { reduction: Reduction::None, because }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use preempt_lang::source::Source;

    use super::*;
    use crate::args::{Cli, Command};

    /// Every plan that is accepted without a reduction is accepted with the chosen one.
    #[test]
    fn every_choice_is_allowed() {
        let models = [
            "var x = 0; thread t { x = 1; }",
            "var x = 0; invariant x < 2; thread t { x = 1; }",
            "memory weak; atomic var x = 0; thread t { x = 1; }",
            "memory weak; atomic var x = 0; thread t { while x == 0 { x = 1; } }",
        ];
        let orders = [
            "auto",
            "bfs",
            "dfs",
            "icb",
            "delay",
            "cb-dfs",
            "dfs-hb",
            "executions",
            "idfs",
            "random",
            "pct",
            "urw",
        ];
        let options: [&[&str]; 7] = [
            &[],
            &["--bound", "1"],
            &["--no-deadlock"],
            &["--points", "sync"],
            &["--bound", "1", "--points", "sync"],
            &["--jobs", "2", "--no-deadlock"],
            &["--depth", "3"],
        ];
        let mut allowed = 0;
        for (order, options) in
            orders.iter().flat_map(|order| options.iter().map(move |options| (order, *options)))
        {
            let line = ["preempt", "check", "model.pre", "--reduce", "auto", "--order", order];
            let Command::Check(args) =
                Cli::parse_from(line.into_iter().chain(options.iter().copied())).command
            else {
                panic!("it is a check")
            };
            for model in models {
                let machine =
                    preempt_lang::load(&Source::new("model.pre", model), &[]).expect("a model");
                let suits = |reduction| {
                    assert_eq!(args.search.reduce, Pick::Auto);
                    let search = args
                        .plan(machine.memory_model(), Some(reduction))
                        .ok()
                        .and_then(|plan| plan.build().ok());
                    search.is_some_and(|search| search.suits(&machine).is_ok())
                };
                if suits(Reduction::None) {
                    let choice = choose(&args, &machine);
                    assert!(
                        suits(choice.reduction),
                        "--order {order} {options:?}, {model}: {choice:?}"
                    );
                    allowed += 1;
                }
            }
        }
        assert!(allowed > 60, "only {allowed} combinations");
    }
}
