//! The visitor of every search over executions: counts, keeps the findings, and watches the limits.

use std::collections::HashMap;

use preempt_system::{Failure, Preemptions, Schedule};

use crate::cursor::Cursor;
use crate::execution::{Cut, Stop, Visitor};
use crate::expand::{deadlock, livelock};
use crate::names::{Name, Names, table_bytes};
use crate::order::Explored;
use crate::outcome::{Coverage, Limit, Omission};
use crate::plan::{Count, Order, Plan, Points};
use crate::race;
use crate::system::System;
use crate::tally::{BoundCoverage, Tally};
use crate::watch::{Stop as Ended, Watch};

/// Steps between two looks at the limits.
const PATIENCE: u64 = 1 << 10;

/// A failure and the best schedule that shows it: the fewest preemptions, then the fewest steps, then the first.
struct Found {
    failure: Failure,
    preemptions: u32,
    schedule: Schedule,
}

impl Found {
    fn rank(&self) -> (u32, usize) {
        (self.preemptions, self.schedule.steps().len())
    }
}

/// Counts, keeps the findings, and watches the limits.
pub(crate) struct Census<'a> {
    plan: &'a Plan,
    watch: &'a Watch<'a>,
    /// What needs no set is counted here; [`Census::tally`] adds the rest.
    tally: Tally,
    traces: Names,
    ends: Names,
    states: Names,
    graphs: Names,
    failed: u64,
    depth: u32,
    bounds: Vec<BoundCoverage>,
    found: Vec<Found>,
    classes: HashMap<Failure, usize>,
    /// Steps that wait and bytes of the strategy's tables: now, and at most.
    held: (usize, usize),
    most_held: (usize, usize),
    /// The steps that were taken when the limits were looked at last.
    polled: u64,
    /// Whether happens-before graphs are known.
    recorded: bool,
}

impl<'a> Census<'a> {
    pub(crate) fn new(plan: &'a Plan, watch: &'a Watch<'a>) -> Census<'a> {
        Census {
            plan,
            watch,
            tally: Tally::default(),
            traces: Names::default(),
            ends: Names::default(),
            states: Names::default(),
            graphs: Names::default(),
            failed: 0,
            depth: 0,
            bounds: Vec::new(),
            found: Vec::new(),
            classes: HashMap::new(),
            held: (0, 0),
            most_held: (0, 0),
            polled: 0,
            recorded: false,
        }
    }

    /// Looks at the initial state.
    pub(crate) fn begin<S: System>(&mut self, cursor: &mut Cursor<S>) -> Result<(), Stop> {
        self.recorded = cursor.graph().is_some();
        if let Some(failure) = cursor.system().failure() {
            self.note(failure.clone(), 0, Schedule::default())?;
        }
        self.arrive(cursor)
    }

    /// Counts the present state and checks it.
    fn arrive<S: System>(&mut self, cursor: &mut Cursor<S>) -> Result<(), Stop> {
        if self.plan.count == Count::States {
            let graph = cursor.graph().map(|graph| Name::from(graph.fingerprint()));
            // Where states are not known, happens-before graphs stand for them.
            let state = cursor.system().words().map(Name::of_state).or(graph);
            if state.is_some_and(|state| self.states.insert(state)) {
                self.watch.found(1);
            }
            self.graphs.extend(graph);
        }
        match cursor.invariant() {
            Ok(()) => Ok(()),
            Err(failure) => self.fail(cursor, *failure),
        }
    }

    #[cold]
    fn fail<S: System>(&mut self, cursor: &Cursor<S>, failure: Failure) -> Result<(), Stop> {
        self.note(failure, cursor.preemptions().count(), cursor.schedule())
    }

    /// An execution shows all races of its beginnings, so it is enough to look at its end.
    fn look_for_races<S: System>(&mut self, cursor: &Cursor<S>) -> Result<(), Stop> {
        if self.plan.points == Points::All {
            return Ok(());
        }
        let Some(race) = race::at(cursor) else { return Ok(()) };
        let mut preemptions = Preemptions::default();
        for at in 0..=race.later {
            preemptions.step(cursor.choice(at).thread, cursor.enabled_before(at));
        }
        let steps = (0..=race.later).map(|at| cursor.choice(at)).collect();
        self.note(race::failure(cursor.system(), race), preemptions.count(), Schedule(steps))
    }

    fn note(&mut self, failure: Failure, preemptions: u32, schedule: Schedule) -> Result<(), Stop> {
        self.failed += 1;
        let found = Found { failure, preemptions, schedule };
        match self.classes.get(&found.failure) {
            Some(&at) if found.rank() < self.found[at].rank() => self.found[at] = found,
            Some(_) => {}
            None => {
                self.classes.insert(found.failure.clone(), self.found.len());
                self.found.push(found);
                self.watch.failed();
            }
        }
        if self.plan.keep_going { Ok(()) } else { self.stop(Ended::Finding) }
    }

    fn stop(&self, why: Ended) -> Result<(), Stop> {
        self.watch.stop(why);
        Err(Stop::Enough)
    }

    /// Looks at the limits now and then.
    fn poll(&mut self) -> Result<(), Stop> {
        if self.tally.steps - self.polled >= PATIENCE {
            self.watch.poll_bytes(self.tally.steps - self.polled, self.bytes());
            self.polled = self.tally.steps;
        }
        if self.watch.stopped() { Err(Stop::Enough) } else { Ok(()) }
    }

    /// The memory of all tables.
    fn bytes(&self) -> usize {
        let sets = [&self.traces, &self.ends, &self.states, &self.graphs];
        self.held.1 + sets.iter().map(|set| table_bytes::<Name>(set.capacity())).sum::<usize>()
    }

    fn tally(&self) -> Tally {
        let counted = |what: Count, set: &Names| (self.plan.count >= what).then_some(set.len() as u64);
        Tally {
            traces: counted(Count::Traces, &self.traces).filter(|_| self.recorded),
            ends: counted(Count::Traces, &self.ends),
            states: counted(Count::States, &self.states),
            graphs: counted(Count::States, &self.graphs).filter(|_| self.recorded),
            ..self.tally
        }
    }

    /// What was seen.
    pub(crate) fn explored(mut self) -> Explored {
        let limited = !matches!(self.plan.order, Order::Depth { .. } | Order::IterativeDepth { .. });
        if limited && self.tally.cut > 0 {
            self.watch.stop(Ended::Limit(Limit::Depth));
        }
        let (tally, store_bytes) = (self.tally(), self.bytes() - self.held.1 + self.most_held.1);
        self.found.sort_by_key(Found::rank);
        Explored {
            seen: Coverage {
                states: tally.states.unwrap_or(0),
                expanded: tally.states.unwrap_or(0),
                transitions: tally.steps,
                failed: self.failed,
                depth: self.depth,
                frontier: self.most_held.0 as u64,
                ..Coverage::default()
            },
            failures: self.found.into_iter().map(|found| (found.failure, found.schedule)).collect(),
            omission: Omission::Never,
            store_bytes,
            frontier_bytes: 0,
            tally: Some(tally),
            bounds: self.bounds,
        }
    }
}

impl<S: System> Visitor<S> for Census<'_> {
    fn step(&mut self, cursor: &mut Cursor<S>, failure: Option<Box<Failure>>) -> Result<(), Stop> {
        if self.plan.limits.executions.is_some_and(|most| self.tally.executions >= most) {
            return self.stop(Ended::Limit(Limit::Executions));
        }
        self.tally.steps += 1;
        if cursor.len() as u32 > self.depth {
            self.depth = cursor.len() as u32;
            self.watch.deepen(self.depth);
        }
        if let Some(failure) = failure {
            self.fail(cursor, *failure)?;
        }
        self.arrive(cursor)?;
        self.poll()
    }

    fn end(&mut self, cursor: &mut Cursor<S>) -> Result<(), Stop> {
        self.tally.executions += 1;
        if self.plan.count >= Count::Traces {
            self.ends.extend(cursor.system().words().map(Name::of_state));
            self.traces.extend(cursor.graph().map(|graph| Name::from(graph.fingerprint())));
        }
        if self.plan.deadlock && cursor.is_deadlock() {
            self.fail(cursor, deadlock())?;
        }
        if cursor.is_livelock() {
            self.fail(cursor, livelock())?;
        }
        self.look_for_races(cursor)
    }

    fn cut(&mut self, cursor: &mut Cursor<S>, why: Cut) -> Result<(), Stop> {
        match why {
            Cut::Covered => self.tally.pruned += 1,
            Cut::Steps => {
                self.tally.cut += 1;
                self.look_for_races(cursor)?;
            }
            Cut::Bound => {}
        }
        Ok(())
    }

    fn bound(&mut self, bound: u32, cut: bool) {
        let all = self.tally();
        let before = self.bounds.last().map_or_else(Tally::default, |bound| bound.all);
        self.bounds.push(BoundCoverage { bound, all, new: all.since(&before), cut });
    }

    fn covered(&mut self, steps: usize) {
        self.tally.pruned += steps as u64;
    }

    fn holds(&mut self, waiting: usize, bytes: usize) {
        self.held = (waiting, bytes);
        self.most_held = (self.most_held.0.max(waiting), self.most_held.1.max(bytes));
    }
}
