//! Search: which steps both algorithms take.

use preempt_system::{Choice, System};

use super::cuts::Cuts;
use super::log::Log;
use super::name::Name;
use super::within::Within;
use super::{Config, Counts};
use crate::codec::{Damaged, Reader, Writer, save_fields};
use crate::engine::sharded::Parts;
use crate::reduce::policy::{Entered, Policy};
use crate::reduce::trace::{ReductionStats, Trace};

/// The paper's two algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    /// Algorithm 1: a state is in H as soon as it is visited.
    States,
    /// Algorithm 2: a state is in H when all executions through it are covered.
    Terminals,
}

/// A search in progress.
pub(crate) struct Search<S: System, N: Name> {
    algorithm: Algorithm,
    pub(super) config: Config,
    pub(super) log: Log,
    pub(super) cuts: Cuts<N>,
    /// The cuts of the current execution that are within the bound.
    pub(super) within: Within<S::State, N>,
    /// The paper's H.
    pub(super) visited: Parts<N, (), N::Hashing>,
    pub(super) counts: Counts,
}

/// A call of Search.
pub(crate) struct Call<N> {
    name: N,
    /// The number of possible steps that were tried.
    tried: usize,
    /// Whether one of them was taken, or the state is terminal.
    went_on: bool,
}

save_fields!([N: Name] Call<N> { name, tried, went_on });

impl<S: System, N: Name> Search<S, N> {
    pub(super) fn new(threads: usize, config: &Config, algorithm: Algorithm) -> Self {
        Search {
            log: Log::new(threads),
            cuts: Cuts::new(config.dependence, config.bound),
            within: Within::default(),
            algorithm,
            config: *config,
            visited: Parts::default(),
            counts: Counts::default(),
        }
    }

    /// The counts, given those of the depth-first search.
    pub(super) fn counts(&self, stats: &ReductionStats) -> Counts {
        Counts {
            executions: stats.executions,
            searches: stats.nodes,
            states: self.visited.len() as u64,
            cuts: self.cuts.len() as u64,
            initial: self.visited.contains(&N::default()),
            ..self.counts
        }
    }

    /// Puts a state into H.
    pub(super) fn visit(&mut self, name: &N) {
        self.counts.twice += u64::from(self.visited.insert(name.clone(), ()).is_some());
        let beyond = self.cuts.get(name).possible.iter().filter(|step| !self.is_within(step.bound));
        self.counts.bounded += beyond.count() as u64;
    }

    /// Whether a context bound is within the bound of the search.
    pub(super) fn is_within(&self, bound: u8) -> bool {
        u32::from(bound) <= self.config.bound
    }
}

impl<S: System, N: Name> Policy<S> for Search<S, N> {
    type Node = Call<N>;
    /// The name of the state.
    type Arrival = N;

    fn enter(
        &mut self,
        trace: &mut Trace<'_, S>,
        name: N,
        _: &mut [Call<N>],
        stats: &mut ReductionStats,
    ) -> Entered<Call<N>, S::Need> {
        self.evaluate_all(trace.cursor.system_mut())?;
        if self.algorithm == Algorithm::States {
            self.visit(&name);
        }
        let is_end = trace.cursor.enabled().is_empty();
        if is_end && self.algorithm == Algorithm::Terminals {
            self.mark(self.log.all(), name.clone());
        }
        stats.bounded = self.counts.bounded;
        Ok((Call { name, tried: 0, went_on: is_end }, None))
    }

    fn next(&mut self, _: &Trace<'_, S>, call: &mut Call<N>) -> Option<(Choice, N)> {
        let possible = &self.cuts.get(&call.name).possible;
        while let Some(step) = possible.get(call.tried) {
            call.tried += 1;
            if self.is_within(step.bound) && !self.visited.contains(&step.next) {
                call.went_on = true;
                return Some((step.choice, step.next.clone()));
            }
        }
        None
    }

    fn stepped(&mut self, trace: &Trace<'_, S>) {
        let here = trace.len() - 1;
        let (action, clock) = (trace.graph().step(here), trace.graph().step_clock(here));
        self.log.push(trace.cursor.choice(here), action, clock.into());
    }

    fn leave(&mut self, _: &Trace<'_, S>, call: Call<N>, _: Option<&mut Call<N>>) {
        self.counts.dead_ends += u64::from(!call.went_on);
    }

    fn rewound(&mut self, len: usize) {
        self.log.truncate(len);
        self.within.truncate(len);
    }

    fn bytes(&self) -> usize {
        self.visited.bytes() + self.cuts.bytes() + self.within.bytes()
    }

    fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.visited);
        to.put(&self.counts);
        to.put(&self.within.levels);
        self.cuts.save(to);
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), Damaged> {
        (self.visited, self.counts, self.within.levels) = from.get()?;
        self.cuts.load(from)
    }
}
