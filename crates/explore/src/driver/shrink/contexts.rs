//! Simplifies a schedule by removing parts of it.
//!
//! A *context* is a sequence of steps of one thread. A changed list of contexts need not be a
//! schedule, so it is executed leniently: a thread takes the steps of its context as far as it can,
//! with other alternatives if necessary. After the last context, the running thread continues, or
//! the first enabled one if it cannot. The execution ends when the error shows. If it is simpler
//! than the best schedule so far, it replaces it.
//!
//! Three changes are tried in turn until none of them helps: remove sequences of contexts, the
//! longest first; join a context with the next one of its thread, at the position of either; remove
//! the last steps of a context, as many as possible first.

use std::time::Instant;

use preempt_system::{Choice, Failure, Finding, Program, Schedule, System, ThreadId};

use super::{LONGER, Sought, begin};
use crate::driver::replay;
use crate::engine::cursor::Cursor;
use crate::engine::observer::Observer;
use crate::engine::race;
use crate::plan::{Points, ResolvedPlan};

/// A thread and the alternatives of its steps.
type Context = (ThreadId, Vec<u32>);

/// A schedule that is being simplified.
pub(super) struct Contexts<'a, P: Program> {
    program: &'a P,
    plan: &'a ResolvedPlan,
    sought: Sought<'a>,
    best: Finding,
    better: bool,
    cursor: Option<Cursor<P::System<'a>>>,
    executions: u64,
    budget: Budget<'a>,
}

/// The limits of the simplification.
pub(super) struct Budget<'a> {
    /// The most executions.
    pub(super) executions: u64,
    pub(super) deadline: Option<Instant>,
    pub(super) observer: &'a dyn Observer,
}

impl<'a, P: Program> Contexts<'a, P> {
    pub(super) fn new(
        program: &'a P,
        plan: &'a ResolvedPlan,
        sought: Sought<'a>,
        found: &Finding,
        budget: Budget<'a>,
    ) -> Self {
        Contexts {
            program,
            plan,
            sought,
            best: found.clone(),
            better: false,
            cursor: None,
            executions: 0,
            budget,
        }
    }

    /// The number of executions made.
    pub(super) fn executions(&self) -> u64 {
        self.executions
    }

    /// A simpler schedule, if one was found.
    pub(super) fn shrink(&mut self) -> Option<Finding> {
        loop {
            let before = self.rank();
            self.remove_contexts();
            self.join_contexts();
            self.shorten_contexts();
            if self.rank() == before || self.is_spent() {
                break;
            }
        }
        self.better.then(|| self.best.clone())
    }

    fn rank(&self) -> (u32, usize) {
        (self.best.preemptions, self.best.schedule.steps().len())
    }

    fn is_spent(&self) -> bool {
        self.executions >= self.budget.executions
            || self.budget.deadline.is_some_and(|deadline| Instant::now() >= deadline)
            || self.budget.observer.interrupted()
    }

    fn contexts(&self) -> Vec<Context> {
        let runs = self.best.schedule.steps().chunk_by(|a, b| a.thread == b.thread);
        runs.map(|steps| (steps[0].thread, steps.iter().map(|step| step.alternative).collect()))
            .collect()
    }

    /// Removes sequences of contexts.
    fn remove_contexts(&mut self) {
        let mut size = self.contexts().len() / 2;
        while size > 0 && !self.is_spent() {
            let mut at = 0;
            let mut contexts = self.contexts();
            while at < contexts.len() {
                let end = contexts.len().min(at + size);
                let rest = [&contexts[..at], &contexts[end..]].concat();
                if self.attempt(&rest) {
                    contexts = self.contexts();
                } else {
                    at += size;
                }
            }
            size /= 2;
        }
    }

    /// Joins a context with the next one of its thread.
    fn join_contexts(&mut self) {
        let (mut at, mut contexts) = (0, self.contexts());
        while at < contexts.len() {
            let next =
                contexts.iter().skip(at + 1).position(|(thread, _)| *thread == contexts[at].0);
            let helped = next.is_some_and(|distance| {
                let next = at + 1 + distance;
                let mut earlier = contexts.clone();
                let (_, steps) = earlier.remove(next);
                earlier[at].1.extend(&steps);
                let mut later = contexts.clone();
                let (_, steps) = later.remove(at);
                later[next - 1].1.splice(0..0, steps);
                self.attempt(&earlier) || self.attempt(&later)
            });
            if helped {
                contexts = self.contexts();
            } else {
                at += 1;
            }
        }
    }

    /// Removes the last steps of contexts.
    fn shorten_contexts(&mut self) {
        let mut contexts = self.contexts();
        let mut at = contexts.len();
        while at > 0 {
            at = (at - 1).min(contexts.len().saturating_sub(1));
            let mut cut = contexts[at].1.len();
            while cut > 0 {
                let mut shorter = contexts.clone();
                let left = shorter[at].1.len().saturating_sub(cut);
                shorter[at].1.truncate(left);
                if self.attempt(&shorter) {
                    contexts = self.contexts();
                    if at >= contexts.len() {
                        break;
                    }
                    cut = cut.min(contexts[at].1.len());
                } else {
                    cut /= 2;
                }
            }
        }
    }

    /// Executes contexts leniently. Returns whether the execution became the new best schedule.
    fn attempt(&mut self, contexts: &[Context]) -> bool {
        if self.is_spent() {
            return false;
        }
        self.executions += 1;
        let mut cursor = match self.cursor.take() {
            Some(mut cursor) => {
                cursor.rewind(0);
                cursor
            }
            None => match begin(self.program, self.plan) {
                Some(cursor) => cursor,
                None => return false,
            },
        };
        // A system without room for the execution cannot be used again.
        let Some(reached) = self.run(&mut cursor, contexts) else { return false };
        self.cursor = Some(cursor);
        let Some(simpler) = reached.and_then(|simpler| self.confirm(simpler)) else { return false };
        self.best = simpler;
        self.better = true;
        true
    }

    /// The simpler schedule, confirmed by executing it from the beginning.
    fn confirm(&self, found: Finding) -> Option<Finding> {
        let cursor = begin(self.program, self.plan)?;
        let end = replay::end(cursor, &found.schedule).ok()?;
        let same = end.failures.contains(&found.failure) && end.preemptions == found.preemptions;
        assert!(
            same || !self.program.is_deterministic(),
            "the same schedule ends in the same failure: in {:?}, not in {:?}",
            found.failure,
            end.failures
        );
        same.then(|| end.finding(found.failure, found.schedule))
    }

    /// The schedule of the execution that follows `contexts`, if it ends in the error and is
    /// simpler; `None` if the system has no room for it.
    fn run(
        &self,
        cursor: &mut Cursor<P::System<'a>>,
        contexts: &[Context],
    ) -> Option<Option<Finding>> {
        for (thread, alternatives) in contexts {
            for &alternative in alternatives {
                let choice = Choice { thread: *thread, alternative };
                let possible = Some(choice).filter(|&choice| cursor.can(choice));
                let Some(choice) = possible.or_else(|| cursor.choices(*thread).next()) else {
                    break;
                };
                if let Some(found) = self.step(cursor, choice)? {
                    return Some(Some(found));
                }
                if !self.is_simpler(cursor) {
                    return Some(None);
                }
            }
        }
        while self.is_simpler(cursor) {
            let continues = cursor.running().filter(|&running| cursor.enabled().contains(running));
            let Some(thread) = continues.or_else(|| cursor.enabled().iter().next()) else { break };
            let choice = cursor.choices(thread).next()?;
            if let Some(found) = self.step(cursor, choice)? {
                return Some(Some(found));
            }
        }
        Some(self.raced(cursor))
    }

    /// Takes a step. `None` if the system has no room for it, otherwise the finding if the error
    /// shows.
    fn step(&self, cursor: &mut Cursor<P::System<'a>>, choice: Choice) -> Option<Option<Finding>> {
        let failure = cursor.step(choice).ok()?;
        let ended = |cursor: &mut Cursor<P::System<'a>>| {
            let is_sought = self.plan.deadlock || !cursor.is_deadlock();
            is_sought.then(|| cursor.stuck()).flatten()
        };
        let sought = |failure: Option<Failure>| failure.filter(|failure| self.sought.is(failure));
        let broken =
            |cursor: &mut Cursor<P::System<'a>>| cursor.invariant().err().map(|failure| *failure);
        let failure = sought(failure.map(|failure| *failure))
            .or_else(|| sought(broken(cursor)))
            .or_else(|| sought(ended(cursor)));
        Some(failure.and_then(|failure| {
            self.simpler(failure, cursor.schedule(), cursor.preemptions().count())
        }))
    }

    /// The execution up to its first race, if races are errors.
    fn raced(&self, cursor: &Cursor<P::System<'a>>) -> Option<Finding> {
        if self.plan.strategy.points() == Points::All {
            return None;
        }
        let race = race::at(cursor, |location| cursor.system().location_kind(location))?;
        let failure =
            Some(race::failure(cursor, race)).filter(|failure| self.sought.is(failure))?;
        let schedule = Schedule::new((0..=race.later).map(|at| cursor.choice(at)).collect());
        let preemptions = cursor.preemptions_with_at(race.later, cursor.choice(race.later).thread);
        self.simpler(failure, schedule, preemptions)
    }

    fn simpler(&self, failure: Failure, schedule: Schedule, preemptions: u32) -> Option<Finding> {
        let simpler = (preemptions, schedule.steps().len()) < self.rank();
        simpler.then_some(Finding { failure, schedule, preemptions, shrunk: None })
    }

    /// Whether an execution that begins like this can still be simpler than the best schedule.
    fn is_simpler(&self, cursor: &Cursor<P::System<'a>>) -> bool {
        let (preemptions, steps) = self.rank();
        let now = cursor.preemptions().count();
        // At least one more step follows.
        now == preemptions && cursor.len() + 1 < steps
            || now < preemptions && cursor.len() < 2 * steps + LONGER
    }
}
