//! The paths of what a breadth-first search has found: a second search that keeps its way.
//!
//! It is done by one worker in one fixed order, whoever searched first, so that the schedules
//! reported do not depend on the number of workers: of all failures the one with the fewest steps,
//! of these the one whose last state was found first, then the lowest thread and alternative. It
//! ends with the level in which everything wanted was found.
//!
//! The hash is fixed, so that a store that may omit states omits the same ones when one worker
//! searches again. After several workers a bitstate may have omitted others; what does not turn up
//! is then looked for with an exact store, in which it must.
//!
//! **Cost.** The time of the first search up to the findings, and 12 bytes for every state more
//! than it needed.

use std::collections::HashMap;
use std::mem;

use preempt_system::{Capacity, Choice, Failure, Model, Schedule};

use super::bfs::{Classes, Trail, Worker};
use super::frontier::Frontier;
use crate::engine::execution::Stop;
use crate::engine::store;
use crate::engine::watch::Watch;
use crate::plan::{Limits, Plan, StoreKind};

/// Where a state of a level came from.
#[derive(Clone, Copy)]
struct Link {
    /// The number of its parent in the level before.
    parent: u32,
    /// The step that led to it.
    choice: Choice,
}

/// A failure: of a state, or of a step from it.
struct Found {
    failure: Failure,
    level: usize,
    state: u32,
    choice: Option<Choice>,
}

/// The way of the search.
#[derive(Default)]
struct Links {
    /// For every level, where each of its states came from. The last one is still being found.
    levels: Vec<Vec<Link>>,
    /// The number of the state that is being expanded, in the level before the last.
    current: u32,
    /// The parents of the successors in the batch.
    parents: Vec<u32>,
    found: Vec<Found>,
    /// Where in `found` a failure is.
    classes: HashMap<Failure, usize>,
}

impl Links {
    fn new_level(&mut self) {
        self.levels.push(Vec::new());
        self.current = 0;
    }

    fn note(&mut self, found: Found) {
        match self.classes.get(&found.failure) {
            None => {
                self.classes.insert(found.failure.clone(), self.found.len());
                self.found.push(found);
            }
            Some(&at) if self.rank(&found) < self.rank(&self.found[at]) => self.found[at] = found,
            Some(_) => {}
        }
    }

    /// Lower ranks are reported first.
    fn rank(&self, found: &Found) -> (usize, u32, usize, u32) {
        let (parent, choice) = match found.choice {
            Some(choice) => (found.state, choice),
            None => {
                let link = self.levels[found.level][found.state as usize];
                (link.parent, link.choice)
            }
        };
        (
            found.level + usize::from(found.choice.is_some()),
            parent,
            choice.thread.index(),
            choice.alternative,
        )
    }

    fn schedule(&self, found: &Found) -> Schedule {
        let mut steps: Vec<Choice> = found.choice.into_iter().collect();
        let mut state = found.state;
        for level in self.levels[1..=found.level].iter().rev() {
            let link = level[state as usize];
            steps.push(link.choice);
            state = link.parent;
        }
        steps.reverse();
        Schedule(steps)
    }
}

impl Trail for Links {
    fn expanded(&mut self, successors: usize) {
        self.parents.resize(successors, self.current);
        self.current += 1;
    }

    fn fresh(&mut self, number: usize, choice: Choice) {
        let parent = self.parents.get(number).copied().unwrap_or(0);
        self.levels.last_mut().expect("there is a level to find").push(Link { parent, choice });
    }

    fn flushed(&mut self) {
        self.parents.clear();
    }

    fn failed(&mut self, choice: Option<Choice>, failure: Failure) {
        self.note(Found { failure, level: self.levels.len() - 2, state: self.current, choice });
    }

    fn fresh_failed(&mut self, failure: Failure) {
        let level = self.levels.len() - 1;
        let state = u32::try_from(self.levels[level].len() - 1)
            .expect("a level has fewer than 2^32 states");
        self.note(Found { failure, level, state, choice: None });
    }
}

/// A schedule for each of the failures in `wanted`: the first of them only, unless the plan keeps
/// going. The schedules show failures that the first search did not meet, if a store that omits
/// states has now omitted others.
pub(crate) fn retrace<M: Model>(
    plan: &Plan,
    model: &M,
    wanted: &Classes,
    watch: &Watch,
) -> Vec<(Failure, Schedule)> {
    for plan in [*plan, plan.store(StoreKind::Exact)] {
        let mut attempt = Attempt::new(&plan, wanted);
        let full = attempt.search(model);
        if attempt.is_done() {
            return attempt.schedules();
        }
        if let Some(capacity) = full {
            // Only states that the first search did not meet can be too large. It has to begin
            // anew.
            watch.stop(Stop::Restart(capacity));
            return attempt.schedules();
        }
    }
    panic!("what was found once is found by an exact search")
}

/// One search for the paths.
struct Attempt<'a> {
    plan: &'a Plan,
    wanted: &'a Classes,
    links: Links,
}

impl<'a> Attempt<'a> {
    fn new(plan: &'a Plan, wanted: &'a Classes) -> Attempt<'a> {
        Attempt { plan, wanted, links: Links::default() }
    }

    /// Searches until everything wanted was found. The capacity by which that failed, if it did.
    fn search<M: Model>(&mut self, model: &M) -> Option<Capacity> {
        let watch = Watch::unseen(Limits::default());
        let Ok(store) = store::build(self.plan.store, model.shape().words, 1) else {
            panic!("the memory of a search that has ended is there again");
        };
        let frontier = Frontier::new(model.shape().words, &watch);
        let links = mem::take(&mut self.links);
        let mut worker =
            Worker::<_, _, 0>::new((self.plan, model), &*store, &watch, &frontier, links);
        worker.trail.new_level();
        worker.begin(self.plan.keep_going);
        while frontier.advance() > 0
            && !is_done(self.plan, self.wanted, &worker.trail)
            && !watch.stopped()
        {
            worker.trail.new_level();
            worker.expand_level();
        }
        self.links = worker.trail;
        match watch.reason() {
            Some(Stop::Restart(capacity)) => Some(capacity),
            Some(_) => panic!("there is memory for the path of a finding"),
            None => None,
        }
    }

    fn is_done(&self) -> bool {
        is_done(self.plan, self.wanted, &self.links)
    }

    fn schedules(&self) -> Vec<(Failure, Schedule)> {
        let mut found: Vec<&Found> = self.links.found.iter().collect();
        found.sort_by_key(|found| self.links.rank(found));
        found.truncate(if self.plan.keep_going { usize::MAX } else { 1 });
        found.into_iter().map(|found| (found.failure.clone(), self.links.schedule(found))).collect()
    }
}

/// Whether everything wanted was found.
fn is_done(plan: &Plan, wanted: &Classes, links: &Links) -> bool {
    if plan.keep_going {
        wanted.iter().all(|failure| links.classes.contains_key(failure))
    } else {
        !links.found.is_empty()
    }
}
