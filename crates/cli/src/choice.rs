//! `--reduce auto`: which reduction suits a model and what is asked of it.

use preempt_explore::Reduction;
use preempt_explore::reduce::cartesian::Reading;
use preempt_system::Model;

use crate::args::{Check, OrderArg, PointsArg};

/// A reduction that loses nothing of what is asked for, and why it was taken.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The reduction.
    pub reduction: Reduction,
    /// The reason, in one line.
    pub because: &'static str,
}

/// Chooses. Every answer is sound for the properties asked for: what is not, `Plan::build` and
/// `Search::suits` would refuse.
pub fn choose(args: &Check, model: &impl Model) -> Choice {
    let of = |reduction, because| Choice { reduction, because };
    let executions = args.points == PointsArg::Sync
        || !matches!(args.order, OrderArg::Auto | OrderArg::Bfs | OrderArg::Dfs);
    let explores_executions =
        matches!(args.order, OrderArg::Auto | OrderArg::Executions | OrderArg::CbDfs);
    match (args.bound, executions) {
        _ if args.depth.is_some() => of(
            Reduction::None,
            "none: a reduction follows every execution to its end, and a depth is given",
        ),
        _ if args.jobs > 1 && (executions || args.bound.is_some()) => of(
            Reduction::None,
            "none: what a reduction of executions leaves out depends on those before, and there are several workers",
        ),
        (_, true) if !explores_executions => {
            of(Reduction::None, "none: the order given has no reduction of its own")
        }
        (Some(_), _) if model.has_invariants() => {
            of(Reduction::None, "none: invariants must be checked in every state within the bound")
        }
        (Some(_), _) => {
            of(Reduction::CbPor, "cb-por: one execution for each trace within the bound")
        }
        (None, true) if model.has_invariants() => of(
            Reduction::Sleep,
            "sleep: the states of all executions are visited, for the invariants",
        ),
        (None, true) => of(Reduction::Optimal, "dpor-optimal: one execution for each trace"),
        (None, false)
            if args.no_deadlock
                && !model.has_invariants()
                && args.jobs == 1
                && args.order != OrderArg::Bfs =>
        {
            of(
                Reduction::Transactions,
                "transactions: deadlocks are not asked for, and there are no invariants",
            )
        }
        (None, false) => of(
            Reduction::Cartesian { reading: Reading::Late },
            "cartesian: it keeps assertions, run-time errors, deadlocks and invariants",
        ),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use preempt_lang::source::Source;

    use super::*;
    use crate::args::{Cli, Command, ReduceArg};

    /// What can be asked for without a reduction can be asked for with the one that is chosen.
    #[test]
    fn every_choice_is_allowed() {
        let models =
            ["var x = 0; thread t { x = 1; }", "var x = 0; invariant x < 2; thread t { x = 1; }"];
        let orders = [
            "auto",
            "bfs",
            "dfs",
            "icb",
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
                    assert_eq!(args.reduce, ReduceArg::Auto);
                    let search = args.plan(Some(reduction)).ok().and_then(|plan| plan.build().ok());
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
