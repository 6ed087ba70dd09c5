//! From a plan to a strategy: checks the ranges of the settings, and their combination against the
//! table of [strategies].

use std::time::Duration;

use preempt_system::memory::MemoryModel;

use super::growth::Sampling;
use super::property::{Property, Soundness};
use super::strategies::{self, Conflict, Entry};
use super::strategy::ResolvedPlan;
use super::{
    Cache, Order, Plan, Points, Reduction, Refusal, Requirement, Setting, StoreKind, Term,
};

impl Plan {
    /// The plan with its strategy, or the reason why it is refused.
    pub fn resolve(&self) -> Result<ResolvedPlan, Refusal> {
        self.check_ranges()?;
        self.check_requirements()?;
        let entry = self.entry();
        self.check_strategy(entry)?;
        let strategy = (entry.construct)(self).ok_or(Refusal::NeedsBound {
            strategy: entry.name,
            instead: entry.needs_bound.unwrap_or("executions"),
        })?;
        let Plan { memory, count, sampling, jobs, limits, .. } = *self;
        let Plan { keep_going, first, promote, deadlock, shrink, .. } = *self;
        Ok(ResolvedPlan {
            strategy,
            memory,
            count,
            sampling,
            jobs,
            limits,
            keep_going,
            first,
            promote,
            deadlock,
            shrink,
        })
    }

    /// The same for a [`Program`](preempt_system::Program), whose states can neither be copied nor
    /// compared.
    pub fn resolve_for_program(&self) -> Result<ResolvedPlan, Refusal> {
        let entry = self.entry();
        if let Some(why) = entry.not_for_programs {
            return Err(Refusal::RealCode { strategy: entry.name, why });
        }
        if self.order.cache() == Some(Cache::State) {
            return Err(Refusal::CacheOfRealCode);
        }
        if matches!(self.order, Order::Delay { .. }) && self.jobs > 1 {
            let conflict = &strategies::JOBS_AND_ROUND_ROBIN;
            return Err(Refusal::Conflict { strategy: entry.name, conflict });
        }
        self.resolve()
    }

    /// The row of the strategy that the plan asks for.
    pub fn entry(&self) -> &'static Entry {
        strategies::of_reduction(self.reduction).unwrap_or_else(|| strategies::of_order(self.order))
    }

    fn check_ranges(&self) -> Result<(), Refusal> {
        let is_executions = self.order.is_of_executions();
        let at_least = |setting, value: Option<u64>, least| match value {
            Some(value) if value < least => Err(Refusal::TooSmall { setting, least }),
            _ => Ok(()),
        };
        let at_most = |setting, value: u64, most| {
            if value > most { Err(Refusal::TooLarge { setting, most }) } else { Ok(()) }
        };
        at_least(Setting::Jobs, Some(self.jobs as u64), 1)?;
        at_most(Setting::Jobs, self.jobs as u64, MOST_JOBS)?;
        at_least(Setting::States, self.limits.states, 1)?;
        at_least(Setting::Executions, self.limits.executions, 1)?;
        if self.limits.time == Some(Duration::ZERO) {
            return Err(Refusal::Zero(Setting::Time));
        }
        if self.sampling == Sampling::Every(0) {
            return Err(Refusal::TooSmall { setting: Setting::Sampling, least: 1 });
        }
        let depth = self.limits.depth.filter(|_| is_executions).map(u64::from);
        at_least(Setting::Depth, depth, 1)?;
        at_least(Setting::Runs, self.order.samples().then_some(self.runs), 1)?;
        match self.order {
            Order::Depth { steps: 0 } | Order::IterativeDepth { by: 0 } => {
                return Err(Refusal::TooSmall { setting: Setting::Depth, least: 1 });
            }
            Order::Pct { depth } => {
                at_least(Setting::PctDepth, Some(depth.into()), 1)?;
                at_most(Setting::PctDepth, depth.into(), MOST_PCT_DEPTH)?;
            }
            _ => {}
        }
        if let StoreKind::Bitstate { bytes } = self.store {
            at_least(Setting::BitstateSize, Some(bytes as u64), LEAST_BITSTATE)?;
            if self.limits.memory.is_some_and(|memory| memory <= bytes) {
                return Err(Refusal::BitstateExceedsMemory { bytes });
            }
        }
        Ok(())
    }

    /// Whether every setting has a meaning in this plan.
    fn check_requirements(&self) -> Result<(), Refusal> {
        let is_executions = self.order.is_of_executions();
        let has_levels = matches!(self.order, Order::Icb { .. } | Order::Delay { .. });
        let sync = || Requirement::OneOf(vec![Term::Points(Points::Sync)]);
        let sampled = self.sampling != Sampling::Off;
        let is_bfs = self.order == Order::BreadthFirst && self.reduction == Reduction::None;
        let missing = [
            (Term::Sorted, self.store == StoreKind::Sorted && !is_bfs, {
                Requirement::OneOf(vec![Term::Strategy("bfs")])
            }),
            (Setting::Executions.into(), self.limits.executions.is_some() && !is_executions, {
                Requirement::Executions
            }),
            (
                Setting::PastBound.into(),
                { self.past_bound.is_some() && !(has_levels && self.bound.is_some()) },
                { Requirement::Bound },
            ),
            (Setting::First.into(), self.first && self.jobs == 1, Requirement::SeveralJobs),
            (Setting::First.into(), self.first && self.keep_going, {
                Requirement::Without(Setting::KeepGoing)
            }),
            (Setting::First.into(), self.first && !is_executions, Requirement::Executions),
            (Setting::Sampling.into(), sampled && self.jobs > 1, Requirement::OneJob),
            (Setting::Sampling.into(), sampled && !is_executions, Requirement::Executions),
            (Setting::Promote.into(), self.promote && self.points == Points::All, sync()),
        ];
        match missing.into_iter().find(|&(_, missing, _)| missing) {
            Some((term, _, requirement)) => Err(Refusal::Requires { term, requirement }),
            None => Ok(()),
        }
    }

    /// Whether the strategy is sound together with the other settings, as its row says.
    fn check_strategy(&self, entry: &'static Entry) -> Result<(), Refusal> {
        let strategy = entry.name;
        if !entry.memory_models.contains(&self.memory) {
            return Err(Refusal::Memory { strategy, memory: self.memory });
        }
        if self.memory == MemoryModel::Weak && self.order == (Order::Icb { cache: Cache::State }) {
            return Err(Refusal::CacheUnderWeakMemory);
        }
        if self.deadlock {
            entry.check(Property::Deadlock)?;
        }
        if let Some(conflict) = entry.conflicts.iter().find(|conflict| self.has(conflict)) {
            return Err(Refusal::Conflict { strategy, conflict });
        }
        if self.points == Points::Sync {
            entry.check(Property::Race)?;
        }
        if self.reduction != Reduction::None && !entry.orders.contains(&self.order) {
            let orders =
                entry.orders.iter().map(|&order| strategies::of_order(order).name).collect();
            return Err(Refusal::Order { strategy, orders });
        }
        Ok(())
    }

    /// Whether all settings of a conflict are used.
    fn has(&self, conflict: &Conflict) -> bool {
        let cached = match self.order.cache() {
            Some(cache) if !conflict.caches.is_empty() => conflict.caches.contains(&cache),
            _ => true,
        };
        cached
            && conflict.with.iter().all(|setting| match setting {
                Setting::Bound => self.bound.is_some(),
                Setting::Depth => self.limits.depth.is_some(),
                Setting::Jobs => self.jobs > 1,
                Setting::Points => self.points == Points::Sync,
                Setting::Store => self.store != StoreKind::Exact,
                other => unreachable!("no strategy has a conflict with {other:?}"),
            })
    }
}

impl Entry {
    /// Whether errors of a class can be looked for. A class without meaning for the strategy is
    /// refused only if the plan asks for it explicitly.
    pub(crate) fn check(&self, property: Property) -> Result<(), Refusal> {
        let soundness = self.properties.of(property);
        let refused = match soundness {
            Soundness::Sound | Soundness::Sampled => false,
            Soundness::Unsound(_) | Soundness::Unproved(_) => true,
            Soundness::NotApplicable(_) => property == Property::Race,
        };
        if refused {
            return Err(Refusal::Property { strategy: self.name, property, soundness });
        }
        Ok(())
    }
}

/// More workers than any machine has cores: surely a typing error.
const MOST_JOBS: u64 = 1024;

/// No execution has this many steps whose order could matter.
const MOST_PCT_DEPTH: u64 = 999_999;

/// The smallest bitstate array, in bytes. A smaller one is full at once.
const LEAST_BITSTATE: u64 = 1024;
