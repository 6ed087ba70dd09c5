//! The default search: simple errors first, then everything.
//!
//! Most errors need few preemptions, and a schedule with few preemptions is the easiest to
//! understand. So the default search first explores executions with at most [`BOUND`] preemptions
//! within a small budget, and continues with everything if it finds nothing: a model with all of
//! its states ([`Portfolio`]), a program whose states cannot be compared with one more preemption
//! at a time ([`Plan::choose_with_usual_bound`]).

use std::path::PathBuf;

use preempt_system::Model;

use crate::driver::outcome::Outcome;
use crate::driver::search::Search;
use crate::plan::coverage::Limit;
use crate::plan::{Cache, Limits, Order, Plan, Reduction, Refusal, StoreKind, Subject};

/// The most preemptions of a simple error.
pub const BOUND: u32 = 2;

/// The most states of a model that are visited in the search for simple errors.
pub const STATES: u64 = 200_000;

/// The executions of a closure, in all, up to which a search continues past [`BOUND`]. A budget of
/// executions and not of time, so that the same test has the same outcome everywhere. This many
/// short executions take about as long as it takes to start a test binary.
pub const EXECUTIONS: u64 = 10_000;

impl Plan {
    /// The plan of the search for simple errors that comes before this one, for a model. `None` if
    /// it would change the result: this search is already one over executions, or its counts matter
    /// because it keeps going or has a limit of depth.
    pub fn scout(&self) -> Option<Plan> {
        if self.order.is_of_executions() || self.keep_going || self.limits.depth.is_some() {
            return None;
        }
        let states = self.limits.states.map_or(STATES, |states| states.min(STATES));
        Some(Plan {
            order: Order::Icb { cache: Cache::State },
            reduction: Reduction::None,
            bound: Some(BOUND),
            limits: Limits { states: Some(states), ..self.limits },
            jobs: 1,
            store: StoreKind::Exact,
            ..*self
        })
    }

    /// [Chooses](Plan::choose) the order and the reduction for a program without a given bound:
    /// strategies that take a bound get [`BOUND`], and those by levels continue past it up
    /// to `executions` in all.
    pub fn choose_with_usual_bound(
        self,
        order: Option<Order>,
        reduction: Option<Reduction>,
        executions: u64,
    ) -> Plan {
        let plan = self.bound(BOUND).choose(order, reduction, Subject::Program);
        match plan.order {
            Order::Icb { .. } | Order::Delay { .. } => plan.past_bound(executions),
            _ => Plan { bound: plan.bound.filter(|_| plan.entry().takes_bound()), ..plan },
        }
    }
}

/// A search for simple errors, if there is one, and the search proper.
#[derive(Clone, Debug)]
pub struct Portfolio {
    scout: Option<Search>,
    main: Search,
}

/// The result of a [`Portfolio`].
#[derive(Clone, Debug)]
pub struct PortfolioOutcome<M> {
    /// The outcome of the search that decided.
    pub outcome: Outcome,
    /// The model that its schedules belong to.
    pub model: M,
    /// The search that decided.
    pub search: Search,
    /// The outcome of the search for simple errors, if it found none and was not interrupted.
    pub scouted: Option<Outcome>,
}

impl Portfolio {
    /// The searches of these plans, or the reason why one is refused.
    pub fn new(scout: Option<Plan>, main: Plan) -> Result<Portfolio, Refusal> {
        Ok(Portfolio { main: main.build()?, scout: scout.map(Plan::build).transpose()? })
    }

    /// The search proper.
    pub fn main(&self) -> &Search {
        &self.main
    }

    /// The plan of the search for simple errors.
    pub fn scout(&self) -> Option<&Plan> {
        self.scout.as_ref().map(Search::plan)
    }

    /// The same with a directory for states of the search proper that do not fit into memory.
    pub fn spill_to(self, directory: PathBuf) -> Portfolio {
        Portfolio { main: self.main.spill_to(directory), ..self }
    }

    /// The search proper alone: for resuming a checkpoint of it.
    pub fn without_scout(self) -> Portfolio {
        Portfolio { scout: None, ..self }
    }

    /// Runs the searches by `run`, one after the other, until one decides. Their times count
    /// together in the limit of time.
    pub fn run<M: Model + Clone, E>(
        self,
        model: M,
        mut run: impl FnMut(&Search, M) -> Result<(Outcome, M), E>,
    ) -> Result<PortfolioOutcome<M>, E> {
        let Portfolio { scout, main } = self;
        let Some(scout) = scout else {
            let (outcome, model) = run(&main, model)?;
            return Ok(PortfolioOutcome { outcome, model, search: main, scouted: None });
        };
        let (outcome, grown) = run(&scout, model.clone())?;
        let ended = matches!(outcome.stopped, Some(Limit::Interrupt | Limit::Time));
        if ended || !outcome.findings.is_empty() {
            return Ok(PortfolioOutcome { outcome, model: grown, search: scout, scouted: None });
        }
        let search = main.after(outcome.elapsed);
        let scouted = Some(outcome);
        let (outcome, model) = run(&search, model)?;
        Ok(PortfolioOutcome { outcome, model, search, scouted })
    }
}
