//! The paths of what a breadth-first search has found: a second search that keeps its way.
//!
//! Of all failures it reports the one with the fewest steps, of these the one whose last state was
//! found first, then the lowest thread and alternative. It ends with the level in which everything
//! wanted was found.
//!
//! **Cost.** The time of the first search up to the findings, and 12 more bytes for every state.

use preempt_system::{Choice, Failure, Model, Schedule};

use super::bfs::{Trail, Worker};
use super::frontier::Frontier;
use crate::engine::control::SearchControl;
use crate::engine::distinct_failures::DistinctFailures;
use crate::engine::retrace::{self, path};
use crate::plan::ResolvedPlan;

/// How a state of a level was reached.
#[derive(Clone, Copy)]
struct Link {
    /// The number of its parent in the previous level.
    parent: u32,
    choice: Choice,
}

/// Where a failure was found: in a state, or in a step from it.
#[derive(Clone, Copy)]
struct Place {
    level: usize,
    state: u32,
    choice: Option<Choice>,
}

/// The parents of all states.
#[derive(Default)]
struct Links {
    /// The links of every level's states. The last level is still growing.
    levels: Vec<Vec<Link>>,
    /// The number of the state that is being expanded, in the level before the last.
    current: u32,
    /// The parents of the successors in the batch.
    parents: Vec<u32>,
    failures: DistinctFailures<Place>,
}

impl Links {
    fn new_level(&mut self) {
        self.levels.push(Vec::new());
        self.current = 0;
    }

    fn record(&mut self, failure: Failure, place: Place) {
        let levels = &self.levels;
        self.failures.record(failure, place, |new, old| rank(levels, new) < rank(levels, old));
    }

    /// The failures with their schedules, the best first.
    fn schedules(self) -> Vec<(Failure, Schedule)> {
        let mut found = self.failures.into_vec();
        found.sort_by_key(|(_, place)| rank(&self.levels, place));
        let schedule = |place: Place| {
            let steps = path((place.level, place.state), |&(level, state)| {
                let above = level.checked_sub(1)?;
                let Link { parent, choice } = self.levels[level][state as usize];
                Some(((above, parent), choice))
            });
            Schedule::new(steps.into_iter().chain(place.choice).collect())
        };
        found.into_iter().map(|(failure, place)| (failure, schedule(place))).collect()
    }
}

/// Lower ranks are reported first.
fn rank(levels: &[Vec<Link>], place: &Place) -> (usize, u32, usize, u32) {
    let last = match place.choice {
        Some(choice) => Link { parent: place.state, choice },
        None => levels[place.level][place.state as usize],
    };
    (
        place.level + usize::from(place.choice.is_some()),
        last.parent,
        last.choice.thread.index(),
        last.choice.alternative,
    )
}

impl Trail for Links {
    fn expanded(&mut self, successors: usize) {
        self.parents.resize(successors, self.current);
        self.current += 1;
    }

    fn fresh(&mut self, number: usize, choice: Choice) {
        let parent = self.parents.get(number).copied().unwrap_or(0);
        self.levels.last_mut().expect("a level is growing").push(Link { parent, choice });
    }

    fn flushed(&mut self) {
        self.parents.clear();
    }

    fn failed(&mut self, choice: Option<Choice>, failure: Failure) {
        let (level, state) = (self.levels.len() - 2, self.current);
        self.record(failure, Place { level, state, choice });
    }

    fn fresh_failed(&mut self, failure: Failure) {
        let level = self.levels.len() - 1;
        let state = u32::try_from(self.levels[level].len() - 1)
            .expect("a level has fewer than 2^32 states");
        self.record(failure, Place { level, state, choice: None });
    }
}

/// A schedule for each of the failures in `wanted`: the best of them only, unless the plan keeps
/// going.
pub(crate) fn retrace<M: Model>(
    plan: &ResolvedPlan,
    model: &M,
    wanted: &DistinctFailures<()>,
    control: &SearchControl,
) -> Vec<(Failure, Schedule)> {
    let words = model.shape().words;
    retrace::retrace(plan, words, wanted, control, |plan, store, control| {
        let frontier = Frontier::new(words, control);
        let mut worker =
            Worker::<_, _, 0>::new((plan, model), store, control, &frontier, Links::default());
        worker.trail.new_level();
        worker.begin(plan.keep_going);
        let is_done = |failures: &DistinctFailures<Place>| match plan.keep_going {
            true => failures.contain_all(wanted),
            false => !failures.is_empty(),
        };
        while frontier.advance() > 0 && !is_done(&worker.trail.failures) && !control.stopped() {
            worker.trail.new_level();
            worker.expand_level();
        }
        worker.trail.schedules()
    })
}
