//! Search: the depth-first loop of both algorithms.

use preempt_system::{Choice, System};

use super::cuts::Cuts;
use super::log::Log;
use super::name::Name;
use super::{Config, Counts};
use crate::codec::{Damaged, Reader, Save, Writer};
use crate::engine::cursor::Cursor;
use crate::engine::execution::{Stop, Visitor};
use crate::engine::sharded::Parts;
use crate::reduce::trace::Trace;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Algorithm {
    /// Algorithm 1: a state is in H as soon as it is visited.
    States,
    /// Algorithm 2: a state is in H when all executions through it are covered.
    Terminals,
}

/// A search in progress.
pub(super) struct Search<'c, S: System, N: Name> {
    trace: Trace<'c, S>,
    algorithm: Algorithm,
    pub(super) config: Config,
    pub(super) log: Log,
    pub(super) cuts: Cuts<S, N>,
    /// The paper's H.
    pub(super) visited: Parts<N, (), N::Hashing>,
    pub(super) counts: Counts,
}

/// A call of Search.
struct Call<N> {
    name: N,
    /// How many of the steps that are possible here were looked at.
    tried: usize,
    /// Whether one of them was taken.
    went_on: bool,
}

impl<N: Name> Save for Call<N> {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.name);
        to.put(&(self.tried, self.went_on));
    }

    fn load(from: &mut Reader) -> Result<Self, Damaged> {
        let (name, (tried, went_on)) = from.get()?;
        Ok(Call { name, tried, went_on })
    }
}

impl<'c, S: System, N: Name> Search<'c, S, N> {
    pub(super) fn new(cursor: &'c mut Cursor<S>, config: &Config, algorithm: Algorithm) -> Self {
        Search {
            log: Log::new(cursor.threads(), config.mutant),
            cuts: Cuts::new(config.dependence, config.bound, config.mutant),
            trace: Trace::new(cursor, config.dependence),
            algorithm,
            config: *config,
            visited: Parts::default(),
            counts: Counts::default(),
        }
    }

    /// Explores.
    pub(super) fn run(mut self, visitor: &mut impl Visitor<S>) -> Result<Counts, Stop<S::Need>> {
        let mut calls = match visitor.resume(|from| self.load(from)) {
            Some((steps, calls)) => {
                for choice in steps {
                    self.trace.go(&[choice], visitor)?;
                    self.note(choice);
                }
                calls
            }
            None => vec![self.enter(N::default(), visitor)?],
        };
        loop {
            if visitor.is_pausing() {
                visitor.pause(|to| self.save(&calls, to))?;
            }
            let Some(call) = calls.last_mut() else { break };
            let Some((choice, next)) = self.next(call) else {
                let call = calls.pop().expect("there is a call");
                self.leave(&call, calls.len());
                continue;
            };
            call.went_on = true;
            let failure = self.trace.step(choice)?;
            self.note(choice);
            visitor.holds(0, self.bytes());
            visitor.step(self.trace.cursor, failure)?;
            calls.push(self.enter(next, visitor)?);
        }
        self.counts.states = self.visited.len() as u64;
        self.counts.cuts = self.cuts.len() as u64;
        self.counts.initial = self.visited.contains(&N::default());
        Ok(self.counts)
    }

    /// The memory of the tables.
    fn bytes(&self) -> usize {
        self.visited.bytes() + self.cuts.bytes()
    }

    /// Takes note of the step that the trace has just taken.
    fn note(&mut self, choice: Choice) {
        let here = self.trace.len() - 1;
        let (action, clock) = (self.trace.graph().step(here), self.trace.graph().step_clock(here));
        self.log.push(choice, action, clock.into());
    }

    /// Writes what is left: the execution with the calls on the way, and all tables.
    fn save(&self, calls: &Vec<Call<N>>, to: &mut Writer<'_>) {
        to.put_all(self.trace.cursor.schedule().steps().iter());
        to.put(calls);
        to.put(&self.visited.len());
        self.visited.iter().for_each(|(name, ())| to.put(name));
        to.put(&self.counts);
        self.cuts.save(to);
    }

    fn load(&mut self, from: &mut Reader) -> Result<(Vec<Choice>, Vec<Call<N>>), Damaged> {
        let (steps, calls) = (from.get()?, from.get()?);
        for _ in 0..from.count()? {
            self.visited.insert(from.get()?, ());
        }
        self.counts = from.get()?;
        self.cuts.load(from)?;
        Ok((steps, calls))
    }

    fn enter(&mut self, name: N, visitor: &mut impl Visitor<S>) -> Result<Call<N>, Stop<S::Need>> {
        self.counts.searches += 1;
        let cut = self.log.all();
        self.cuts.look(self.trace.cursor.system_mut(), &self.log, &cut, &name)?;
        if self.algorithm == Algorithm::States {
            self.visit(&name);
        }
        let ends = self.trace.cursor.enabled().is_empty();
        if ends {
            self.counts.executions += 1;
            visitor.end(self.trace.cursor)?;
            if self.algorithm == Algorithm::Terminals {
                self.mark(cut, name.clone());
            }
        }
        Ok(Call { name, tried: 0, went_on: ends })
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

    fn next(&self, call: &mut Call<N>) -> Option<(Choice, N)> {
        let possible = &self.cuts.get(&call.name).possible;
        while let Some(step) = possible.get(call.tried) {
            call.tried += 1;
            if self.is_within(step.bound) && !self.visited.contains(&step.next) {
                return Some((step.choice, step.next.clone()));
            }
        }
        None
    }

    fn leave(&mut self, call: &Call<N>, depth: usize) {
        self.counts.dead_ends += u64::from(!call.went_on);
        let len = depth.saturating_sub(1);
        self.trace.rewind(len);
        self.log.truncate(len);
    }
}
