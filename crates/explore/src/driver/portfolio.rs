//! The default search: everything, and simple errors on the way.
//!
//! Most errors need few preemptions, and a schedule with few preemptions is the easiest to
//! understand. For a model, the default search visits all states, breadth first, and runs a
//! *scout* beside it: a search of the executions with at most [`BOUND`] preemptions, by their
//! number of preemptions. The scout runs
//!
//! - when the main search has found an error, because the schedule with the fewest steps seldom has
//!   the fewest preemptions;
//! - while the main search runs, whenever its states have multiplied (see [`Scouts`]), so that a
//!   simple error in a large model is found early;
//! - when the main search has ended without an error but does not prove that there is none: at a
//!   limit of states or memory, or with a store that may omit states. The scout then covers more.
//!
//! A search that visits all states and finds no error pays at most a fraction for its scouts, and
//! nothing if it has fewer than [`FIRST`] states. What is reported does not depend on when scouts
//! run: each begins anew and takes the same steps in the same order, and one with the largest
//! budget follows every finding.
//!
//! A program whose states cannot be compared has no main search. Its executions are explored with
//! one more preemption at a time ([`Plan::choose_with_usual_bound`]).

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use preempt_system::Model;

use crate::driver::outcome::Outcome;
use crate::driver::search::Search;
use crate::engine::lock;
use crate::engine::observer::{Follower, Observer, Progress};
use crate::plan::coverage::Limit;
use crate::plan::{Cache, Limits, Order, Plan, Reduction, Refusal, StoreKind, Subject};

/// The most preemptions of a simple error.
pub const BOUND: u32 = 2;

/// The most states of a model that a scout visits.
pub const STATES: u64 = 200_000;

/// The states of the main search at which the first scout runs beside it.
pub const FIRST: u64 = 1 << 16;

/// The factor by which the states of the main search grow from one scout to the next.
const GROWTH: u64 = 4;

/// The states of the main search for each state that a scout beside it may visit. A state of a
/// scout costs about as much as four to ten states of a breadth-first search. With [`GROWTH`] 4
/// all scouts together visit at most a sixtieth of the states.
const SHARE: u64 = 80;

/// The executions of a closure, in all, up to which a search continues past [`BOUND`]. A budget of
/// executions and not of time, so that the same test has the same outcome everywhere. This many
/// short executions take about as long as it takes to start a test binary.
pub const EXECUTIONS: u64 = 10_000;

impl Plan {
    /// The plan of the scouts of this search over a model. `None` if they would change the result:
    /// this search is already one over executions, or its counts matter because it keeps going or
    /// has a limit of depth.
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

/// A main search and its scouts, if it has any.
#[derive(Clone, Debug)]
pub struct Portfolio {
    scout: Option<Plan>,
    main: Search,
}

/// The result of a [`Portfolio`].
#[derive(Clone, Debug)]
pub struct PortfolioOutcome<M> {
    /// The outcome of the search that decided. Its time is that of all searches.
    pub outcome: Outcome,
    /// The model that its schedules belong to.
    pub model: M,
    /// The search that decided.
    pub search: Search,
    /// The outcome of the last scout, if the main search decided and one ran. Its time is that of
    /// all scouts.
    pub scouted: Option<Outcome>,
}

impl Portfolio {
    /// The searches of these plans, or the reason why one is refused.
    pub fn new(scout: Option<Plan>, main: Plan) -> Result<Portfolio, Refusal> {
        let main = main.build()?;
        scout.map(Plan::build).transpose()?;
        Ok(Portfolio { main, scout })
    }

    /// The main search.
    pub fn main(&self) -> &Search {
        &self.main
    }

    /// The same with a directory for states of the main search that do not fit into memory.
    pub fn spill_to(self, directory: PathBuf) -> Portfolio {
        Portfolio { main: self.main.spill_to(directory), ..self }
    }

    /// Runs the main search by `run`, with an observer that runs the scouts and passes everything
    /// on to `observer`. All times count together in the limit of time.
    pub fn run<M: Model + Clone + Send, E>(
        self,
        model: M,
        observer: &dyn Observer,
        run: impl FnOnce(&Search, M, &dyn Observer) -> Result<(Outcome, M), E>,
    ) -> Result<PortfolioOutcome<M>, E> {
        let Portfolio { scout, main } = self;
        let Some(plan) = scout else {
            let (outcome, model) = run(&main, model, observer)?;
            return Ok(PortfolioOutcome { outcome, model, search: main, scouted: None });
        };
        let scouts = Scouts::new(plan, model, observer);
        let (outcome, model) = run(&main, scouts.model.clone(), &scouts)?;
        Ok(scouts.decide(main, outcome, model))
    }
}

/// The scouts of a main search, whose observer they are: a worker of the main search that reports
/// its progress runs a scout if one is due, while other workers continue.
struct Scouts<'a, M> {
    plan: Plan,
    model: M,
    observer: &'a dyn Observer,
    /// Whether a scout has found an error, which ends the main search.
    found: AtomicBool,
    scouted: Mutex<Scouted<M>>,
}

/// What the scouts of a search have done so far.
struct Scouted<M> {
    /// The states of the main search at which the next scout is due. `None` after a scout that saw
    /// all executions within its bound, or had the largest budget: another one would see no more.
    due: Option<u64>,
    /// The time of all scouts.
    took: Duration,
    /// The last scout, its outcome, and the model that its schedules belong to.
    last: Option<(Search, Outcome, M)>,
}

impl<'a, M: Model + Clone> Scouts<'a, M> {
    fn new(plan: Plan, model: M, observer: &'a dyn Observer) -> Scouts<'a, M> {
        let scouted = Scouted { due: Some(FIRST), took: Duration::ZERO, last: None };
        let (found, scouted) = (AtomicBool::new(false), Mutex::new(scouted));
        Scouts { plan, model, observer, found, scouted }
    }

    /// Runs a scout that may visit `budget` states, when all searches together have taken `before`.
    fn scout(&self, scouted: &mut Scouted<M>, budget: u64, before: Duration) {
        let most = self.plan.limits.states.unwrap_or(STATES);
        let limits = Limits { states: Some(budget.min(most)), ..self.plan.limits };
        let search = Plan { limits, ..self.plan }.build();
        let search = search.expect("a limit of states suits every plan").after(before);
        let (outcome, model) = search.run(self.model.clone(), &InterruptedBy(self.observer));
        scouted.took += outcome.elapsed.saturating_sub(before);
        scouted.due = match outcome.stopped {
            Some(_) if budget < most => scouted.due.map(|states| states.saturating_mul(GROWTH)),
            _ => None,
        };
        self.found.fetch_or(!outcome.findings.is_empty(), Relaxed);
        scouted.last = Some((search, outcome, model));
    }

    /// The result, after the main search has ended with `outcome`. A last scout runs if the main
    /// search found an error or is incomplete, and if there is time for it.
    fn decide(self, main: Search, mut outcome: Outcome, model: M) -> PortfolioOutcome<M> {
        let mut scouted = std::mem::replace(
            &mut *lock(&self.scouted),
            Scouted { due: None, took: Duration::ZERO, last: None },
        );
        let has_time = !matches!(outcome.stopped, Some(Limit::Interrupt | Limit::Time));
        let is_proof = outcome.findings.is_empty() && outcome.complete;
        if scouted.due.is_some() && has_time && !is_proof {
            let before = scouted.took;
            self.scout(&mut scouted, STATES, outcome.elapsed);
            outcome.elapsed += scouted.took - before;
        }
        let Scouted { took, last, .. } = scouted;
        match last {
            Some((search, outcome, model)) if !outcome.findings.is_empty() => {
                PortfolioOutcome { outcome, model, search, scouted: None }
            }
            last => {
                let scouted = last.map(|(_, outcome, _)| Outcome { elapsed: took, ..outcome });
                PortfolioOutcome { outcome, model, search: main, scouted }
            }
        }
    }
}

impl<M: Model + Clone + Send> Observer for Scouts<'_, M> {
    fn progress(&self, progress: &Progress) {
        self.observer.progress(progress);
        // While one worker runs a scout, the others search.
        let Ok(mut scouted) = self.scouted.try_lock() else { return };
        // A resumed search may have passed several numbers at which a scout would have been due.
        while let Some(due) =
            scouted.due.filter(|due| due.saturating_mul(GROWTH) <= progress.states)
        {
            scouted.due = Some(due * GROWTH);
        }
        if scouted.due.is_some_and(|due| due <= progress.states) {
            self.scout(&mut scouted, (progress.states / SHARE).min(STATES), progress.elapsed);
        }
    }

    fn wants_estimates(&self) -> bool {
        self.observer.wants_estimates()
    }

    fn follower(&self) -> Option<&dyn Follower> {
        self.observer.follower()
    }

    fn interrupted(&self) -> bool {
        self.found.load(Relaxed) || self.observer.interrupted()
    }
}

/// Observes a scout beside the main search, whose progress is the one to show.
struct InterruptedBy<'a>(&'a dyn Observer);

impl Observer for InterruptedBy<'_> {
    fn progress(&self, _: &Progress) {}

    fn interrupted(&self) -> bool {
        self.0.interrupted()
    }
}
