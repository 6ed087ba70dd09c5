//! Which plans make sense and lose nothing, and what is said about the others.

use std::time::Duration;

use crate::driver::search::Search;
use crate::plan::Reduction;
use crate::plan::growth::Sampling;
use crate::plan::{Cache, Order, Plan, Points, Refusal, StoreKind};

impl Plan {
    /// The search, or why there can be none.
    pub fn build(self) -> Result<Search, Refusal> {
        let refuse = |message: String| Err(Refusal::because(&message));
        if self.jobs == 0 {
            return refuse("a search needs at least 1 worker: ask for 1 job or more".into());
        }
        if self.jobs > MOST_JOBS {
            return refuse(format!(
                "{} jobs are more than the {MOST_JOBS} that are possible: ask for fewer",
                self.jobs
            ));
        }
        if let StoreKind::Bitstate { bytes } = self.store {
            if bytes < LEAST_BITSTATE {
                return refuse(format!(
                    "a bitstate array of {bytes} bytes is full at once: give it {LEAST_BITSTATE} bytes or more, about 4 for \
                     every state that you expect"
                ));
            }
            if self.limits.memory.is_some_and(|memory| memory <= bytes) {
                return refuse(format!(
                    "the bitstate array of {bytes} bytes does not fit the memory limit: raise the limit or make the array \
                     smaller"
                ));
            }
        }
        if self.limits.states == Some(0) {
            return refuse(
                "a limit of 0 states leaves nothing to search: allow 1 state or more, or drop the limit".into(),
            );
        }
        if self.limits.executions == Some(0) {
            return refuse(
                "a limit of 0 executions leaves nothing to search: allow 1 execution or more, or drop the limit".into(),
            );
        }
        if self.limits.executions.is_some() && !self.order.is_of_executions() {
            return refuse(
                "a search of states takes no executions that could be limited: drop the limit, or use icb or another order of \
                 executions"
                    .into(),
            );
        }
        if self.past_bound.is_some()
            && (self.bound.is_none() || !matches!(self.order, Order::Icb { .. }))
        {
            return refuse(
                "only iterative context bounding can continue past its bound: use icb with a bound, or do not continue"
                    .into(),
            );
        }
        if self.first && (self.jobs == 1 || self.keep_going || !self.order.is_of_executions()) {
            return refuse(
                "only a search over executions by several workers that stops at a finding is done again by one: ask for 2 jobs or more and an \
                 order of executions, and do not keep going, or leave `first` out"
                    .into(),
            );
        }
        if self.sampling != Sampling::Off && (self.jobs > 1 || !self.order.is_of_executions()) {
            return refuse(
                "how coverage grows from execution to execution is seen by one worker that takes them one after the other: ask for \
                 1 job and an order of executions"
                    .into(),
            );
        }
        if self.sampling == Sampling::Every(0) {
            return refuse(
                "coverage can be looked at after every execution, but not more often: sample every 1".into(),
            );
        }
        if self.limits.time == Some(Duration::ZERO) {
            return refuse(
                "a limit of no time leaves nothing to search: allow some time, or drop the limit"
                    .into(),
            );
        }
        if self.promote && self.points == Points::All {
            return refuse(
                "races are looked for with points at synchronisation: add these points, or promote nothing".into(),
            );
        }
        let checked = self
            .check_reduction()
            .and_then(|()| self.check_order())
            .and_then(|()| self.check_jobs());
        checked.map_err(|message| Refusal::because(&message))?;
        Ok(Search::new(self))
    }

    /// The search of a [`Program`](preempt_system::Program), whose states can neither be copied nor
    /// compared, or why there can be none.
    pub fn build_for_program(self) -> Result<Search, Refusal> {
        let refuse = |message: &str| Err(Refusal::because(message));
        match (self.order, self.reduction) {
            (Order::BreadthFirst | Order::DepthFirst, _) => refuse(
                "the states of a closure can neither be copied nor compared: explore its executions, by `Order::Icb { cache: Cache::Hb }`, \
                 `Order::Executions` or another order of executions",
            ),
            (Order::Icb { cache: Cache::State }, _) => refuse(
                "the states of a closure cannot be compared: use `Cache::Hb`, which compares happens-before graphs, or `Cache::None`",
            ),
            (_, Reduction::Blocks | Reduction::BlocksPaper) => refuse(
                "blocks has to know all steps beforehand, and what a closure does is only known when it runs: use \
                 `Reduction::Optimal`",
            ),
            (_, Reduction::Cartesian { .. }) => refuse(
                "cartesian compares states, and those of a closure cannot be: use `Reduction::Optimal`",
            ),
            (_, reduction) if reduction.is_by_transactions() => refuse(
                "transactions compare states, and those of a closure cannot be: use `Reduction::Optimal`",
            ),
            _ => self.build(),
        }
    }

    /// Whether the reduction is sound together with the rest.
    fn check_reduction(&self) -> Result<(), String> {
        let refuse = |message: &str| Err(message.to_owned());
        match (self.reduction, self.order) {
            (Reduction::None, _) => Ok(()),
            (reduction, _) if reduction.is_by_transactions() => {
                self.check_transactions().map_err(str::to_owned)
            }
            (_, _) if self.limits.depth.is_some() => refuse(
                "a reduction follows every execution to its end: drop the limit of depth, or the reduction",
            ),
            (reduction, _) if self.bound.is_some() && reduction.blocks().is_some() => refuse(
                "blocks runs one execution of each PO graph, with as many preemptions as it comes to have: drop the bound, or use \
                 cb-por or budgeted sleep sets",
            ),
            (reduction, _) if self.points == Points::Sync && reduction.blocks().is_some() => {
                refuse(
                    "blocks has to know all steps beforehand, and points at synchronisation merge them as they are taken: drop the points, or \
                 use dpor",
                )
            }
            (Reduction::Cartesian { .. }, _) if self.bound.is_some() => {
                refuse("cartesian compares states, not preemptions: drop the bound, or use cb-por")
            }
            (Reduction::Cartesian { .. }, Order::BreadthFirst | Order::DepthFirst) => Ok(()),
            (Reduction::Cartesian { .. }, _) => {
                refuse("cartesian is a search over states: use bfs or dfs, or leave the order out")
            }
            (reduction, _) if self.bound.is_some() && !reduction.is_bounded() => refuse(
                "sleep sets and dynamic reduction lose executions within a bound on preemptions: what covers the one left out \
                 may need a preemption more (smallest program: corpus/zoo/x.pre, bound 0); use cb-por or budgeted sleep sets, \
                 or drop the bound",
            ),
            (reduction, _) if self.bound.is_none() && reduction.is_bounded() => {
                refuse("this reduction works within a bound on preemptions: give one, or use dpor")
            }
            (reduction, Order::ContextBounded) if reduction.is_bounded() => Ok(()),
            (reduction, Order::Executions) if !reduction.is_bounded() => Ok(()),
            _ => refuse(
                "a reduction over executions has its own order: use `cb-dfs` with a bounded one, `executions` with the others, or \
                 leave the order out",
            ),
        }
    }

    /// Whether a reduction by transactions is sound together with the rest.
    fn check_transactions(&self) -> Result<(), &'static str> {
        let wrong = [
            (
                self.deadlock,
                "transactions keep failing steps, not deadlocks: a thread that waits inside its transaction is left there (smallest \
                 program: corpus/abba/model.pre); say that deadlocks are not looked for (--no-deadlock), or use no reduction",
            ),
            (
                self.bound.is_some(),
                "a set of visited states is unsound with a bound on preemptions: drop the bound, or use cb-por",
            ),
            (
                self.limits.depth.is_some(),
                "transactions are followed to their end: drop the limit of depth, or the reduction",
            ),
            (
                self.points == Points::Sync,
                "transactions choose their own points: leave the points out, or drop the reduction",
            ),
            (self.jobs > 1, "transactions are searched by one worker: ask for 1 job"),
            (
                self.store != StoreKind::Exact,
                "transactions keep a table of their own, which is exact: drop the store",
            ),
            (
                self.order != Order::DepthFirst,
                "transactions are searched depth first: use the order `dfs`, or leave the order out",
            ),
        ];
        wrong.into_iter().find(|&(wrong, _)| wrong).map_or(Ok(()), |(_, why)| Err(why))
    }

    /// Whether the order makes sense together with the rest.
    fn check_order(&self) -> Result<(), String> {
        let refuse = |message: &str| Err(message.to_owned());
        match self.order {
            Order::BreadthFirst | Order::DepthFirst if self.bound.is_some() => refuse(
                "a set of visited states is unsound with a bound on preemptions: a state that was reached with the last \
                 preemption is not explored again when it is reached with fewer, and errors are lost (smallest program: \
                 `y = 1; assert x != 1` beside `x = 1; x = 0`, bound 1); use icb or dfs-hb, which compare preemptions, or \
                 drop the bound",
            ),
            Order::ContextBounded if self.bound.is_none() => refuse(
                "cb-dfs searches within a bound: give one, or use the order of all executions",
            ),
            Order::Executions | Order::Depth { .. } | Order::IterativeDepth { .. }
                if self.bound.is_some() =>
            {
                refuse(
                    "this order does not count preemptions: drop the bound, or use icb, cb-dfs or dfs-hb",
                )
            }
            Order::Random | Order::Pct { .. } | Order::Urw if self.bound.is_some() => refuse(
                "random executions have as many preemptions as they come to have: drop the bound, or use icb (the depth of \
                 pct is no bound on preemptions)",
            ),
            Order::Depth { steps: 0 } | Order::IterativeDepth { by: 0 } => {
                refuse("executions of 0 steps show nothing: allow 1 step or more")
            }
            order if order.is_of_executions() && self.limits.depth == Some(0) => refuse(
                "a limit of 0 steps leaves nothing to search: allow 1 step or more, or drop the limit",
            ),
            Order::Depth { .. } if self.limits.depth.is_some() => {
                refuse("this order has its own number of steps: drop the limit of depth")
            }
            Order::Pct { depth: 0 } => {
                refuse("an error has a depth of at least 1: give pct a depth of 1 or more")
            }
            Order::Pct { depth: MOST_PCT_DEPTH.. } => refuse(
                "no execution has so many steps that the order of all of them could matter: give pct a smaller depth",
            ),
            order if order.samples() && self.runs == 0 => {
                refuse("no executions show nothing: ask for 1 run or more")
            }
            Order::BreadthFirst | Order::DepthFirst | Order::Icb { cache: Cache::State }
                if self.points == Points::Sync =>
            {
                refuse(
                    "points at synchronisation only are sound if there are no data races, and whether an execution has one \
                 depends on how its states were reached, not on the states: use icb with the cache `hb` or `none`, dfs-hb or \
                 another order of executions",
                )
            }
            order if order.is_of_executions() && self.store != StoreKind::Exact => refuse(
                "a search over executions keeps no set of states to be stored in another way: drop the store",
            ),
            _ => Ok(()),
        }
    }

    /// Whether several workers would see what one sees.
    fn check_jobs(&self) -> Result<(), String> {
        let refuse = |message: &str| Err(message.to_owned());
        match self.order {
            order if self.jobs == 1 || !order.is_of_executions() => Ok(()),
            _ if self.reduction != Reduction::None => refuse(
                "a reduction leaves out what the executions before it cover, so that workers would have to wait for each other: ask \
                 for 1 job, or use icb with the cache `hb`",
            ),
            Order::DfsHb if self.bound.is_some() => refuse(
                "within a bound dfs-hb takes a step again when it comes to it with fewer preemptions, so that several workers would take \
                 other executions than one: ask for 1 job, or use icb with the cache `hb`",
            ),
            Order::Icb { cache: Cache::Hb } | Order::DfsHb if self.points == Points::Sync => {
                refuse(
                    "which races an execution shows depends on the order of its reads too, and only the first execution of each \
                 happens-before graph is taken, so that several workers might show others than one: ask for 1 job, or use the cache \
                 `none`",
                )
            }
            Order::Icb { cache: Cache::State | Cache::Hb } | Order::DfsHb
                if self.limits.depth.is_some() =>
            {
                refuse(
                    "how many steps lead to a state, and whether a thread spins there, depends on the way, so that several workers would cut \
                 other executions than one: ask for 1 job, drop the limit of depth, or use the cache `none`",
                )
            }
            Order::Pct { .. } | Order::Urw => {
                refuse("pct and urw learn from the executions before: ask for 1 job, or use random")
            }
            _ => Ok(()),
        }
    }
}

/// More workers than anybody has cores: a slip of the finger.
const MOST_JOBS: usize = 1024;

/// A depth of errors from which on pct is refused.
const MOST_PCT_DEPTH: u32 = 1_000_000;

/// The smallest bitstate array that makes any sense.
const LEAST_BITSTATE: usize = 1024;
