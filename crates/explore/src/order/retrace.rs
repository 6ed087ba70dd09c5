//! The paths to the findings of a breadth-first search: a second search that keeps parent links.
//!
//! Of all failures it reports the one with the fewest steps, of these the one whose last state was
//! found first, then the lowest thread and alternative. It ends with the level in which everything
//! wanted was found.
//!
//! **Memory.** The second search has the store and the levels of the first one, and 12 bytes for
//! every state, its *link* to its parent. A limit of memory that was enough for the first search
//! may not be enough for all links. So only the links of the last levels are kept, as many as there
//! is room for, but at least those of two levels. They lead back to a state of an earlier level. It
//! is known by its level and its number there, which are the same in every search, since one worker
//! finds states in one order: the next search goes only up to that state, and so on until the
//! initial state is reached.
//!
//! **Cost.** The time of the first search up to the findings, once for every such part of the path.

use std::collections::VecDeque;

use preempt_system::{Choice, Failure, Model, Schedule};

use super::bfs::{Trail, Worker};
use super::frontier::Frontier;
use crate::engine::control::SearchControl;
use crate::engine::distinct_failures::DistinctFailures;
use crate::engine::retrace;
use crate::plan::{Limits, ResolvedPlan};

/// The step by which a state of a level was reached.
#[derive(Clone, Copy)]
struct Link {
    /// The number of its parent in the previous level.
    parent: u32,
    choice: Choice,
}

/// The place of a failure: a state, or a step from it.
#[derive(Clone, Copy)]
struct Place {
    level: usize,
    state: u32,
    choice: Option<Choice>,
    /// Lower ranks are reported first: by the number of steps, then by the last step.
    rank: (usize, u32, usize, u32),
}

/// The end of the path to a failure.
struct PartialPath {
    failure: Failure,
    /// The state, by its level and its number there, from which `steps` lead to the failure.
    level: usize,
    state: u32,
    /// The last one first.
    steps: Vec<Choice>,
}

/// The parents of the states of some consecutive levels.
struct Links {
    /// The links of every level's states from the level `first` on. The last level is still
    /// growing.
    levels: VecDeque<Vec<Link>>,
    first: usize,
    /// The number of links in `levels`.
    kept: usize,
    /// If more links than this are kept, the oldest levels are dropped.
    most: usize,
    /// The number of the state that is being expanded, in the level before the last.
    current: u32,
    /// The parents of the successors in the batch.
    parents: Vec<u32>,
    failures: DistinctFailures<Place>,
}

impl Links {
    fn new(most: usize) -> Links {
        Links {
            levels: VecDeque::from([Vec::new()]),
            first: 0,
            kept: 0,
            most,
            current: 0,
            parents: Vec::new(),
            failures: DistinctFailures::default(),
        }
    }

    fn new_level(&mut self) {
        self.levels.push_back(Vec::new());
        self.current = 0;
    }

    /// The level that is growing.
    fn last(&self) -> usize {
        self.first + self.levels.len() - 1
    }

    /// Drops the oldest levels if there are too many links. The last two levels stay: they say how
    /// a state was reached that is being expanded, or was just found.
    fn trim(&mut self) {
        while self.kept > self.most && self.levels.len() > 2 {
            let oldest = self.levels.pop_front().expect("there are more than two levels");
            self.kept -= oldest.len();
            self.first += 1;
        }
    }

    fn link(&self, level: usize, state: u32) -> Link {
        self.levels[level - self.first][state as usize]
    }

    fn record(&mut self, failure: Failure, level: usize, state: u32, choice: Option<Choice>) {
        let last =
            choice.map_or_else(|| self.link(level, state), |choice| Link { parent: state, choice });
        let rank = (
            level + usize::from(choice.is_some()),
            last.parent,
            last.choice.thread.index(),
            last.choice.alternative,
        );
        let place = Place { level, state, choice, rank };
        self.failures.record(failure, place, |new, old| new.rank < old.rank);
    }

    /// The paths to the failures, the best first, as far back as the links lead.
    fn paths(mut self) -> Vec<PartialPath> {
        let mut found = std::mem::take(&mut self.failures).into_vec();
        found.sort_by_key(|(_, place)| place.rank);
        let path = |(failure, Place { level, state, choice, .. })| {
            let mut path =
                PartialPath { failure, level, state, steps: choice.into_iter().collect() };
            self.extend(&mut path);
            path
        };
        found.into_iter().map(path).collect()
    }

    /// Extends a path backwards as far as the links lead.
    fn extend(&self, path: &mut PartialPath) {
        while (self.first.max(1)..=self.last()).contains(&path.level) {
            let Link { parent, choice } = self.link(path.level, path.state);
            path.steps.push(choice);
            (path.level, path.state) = (path.level - 1, parent);
        }
    }
}

impl Trail for Links {
    fn expanded(&mut self, successors: usize) {
        self.parents.resize(successors, self.current);
        self.current += 1;
    }

    fn fresh(&mut self, number: usize, choice: Choice) {
        let parent = self.parents.get(number).copied().unwrap_or(0);
        self.levels.back_mut().expect("a level is growing").push(Link { parent, choice });
        self.kept += 1;
    }

    fn flushed(&mut self) {
        self.parents.clear();
        self.trim();
    }

    fn failed(&mut self, choice: Option<Choice>, failure: Failure) {
        self.record(failure, self.last() - 1, self.current, choice);
    }

    fn fresh_failed(&mut self, failure: Failure) {
        let states = self.levels.back().expect("a level is growing").len();
        let state = u32::try_from(states - 1).expect("a level has fewer than 2^32 states");
        self.record(failure, self.last(), state, None);
    }
}

/// Searches level by level until `is_done`, and keeps about `most` links.
fn search<M: Model>(
    plan: &ResolvedPlan,
    model: &M,
    control: &SearchControl,
    most: usize,
    is_done: impl Fn(&Links) -> bool,
) -> Links {
    let words = model.shape().words;
    let store = retrace::store(plan, words);
    let frontier = Frontier::new(words, control);
    let mut worker =
        Worker::<_, _, 0>::new((plan, model), &*store, control, &frontier, Links::new(most));
    worker.begin(plan.keep_going);
    while frontier.advance() > 0 && !is_done(&worker.trail) && !control.stopped() {
        worker.trail.new_level();
        worker.expand_level();
    }
    worker.trail
}

/// A schedule for each of the failures in `wanted`: the best of them only, unless the plan keeps
/// going. The first search needed `first_bytes`.
pub(crate) fn retrace<M: Model>(
    plan: &ResolvedPlan,
    model: &M,
    wanted: &DistinctFailures<()>,
    control: &SearchControl,
    first_bytes: usize,
) -> Vec<(Failure, Schedule)> {
    let most = retrace::room(&control.limits, first_bytes) / size_of::<Link>();
    retrace::retrace(plan, wanted, control, |plan, control| {
        let links = search(plan, model, control, most, |links| match plan.keep_going {
            true => links.failures.contain_all(wanted),
            false => !links.failures.is_empty(),
        });
        let mut paths = links.paths();
        paths.truncate(if plan.keep_going { usize::MAX } else { 1 });
        let farthest = |paths: &[PartialPath]| paths.iter().map(|path| path.level).max();
        while let Some(level @ 1..) = farthest(&paths) {
            let control = SearchControl::unobserved(Limits::default());
            let links = search(plan, model, &control, most, |links| links.last() == level);
            paths.iter_mut().for_each(|path| links.extend(path));
        }
        let schedule = |mut path: PartialPath| {
            path.steps.reverse();
            (path.failure, Schedule::new(path.steps))
        };
        paths.into_iter().map(schedule).collect()
    })
}

#[cfg(test)]
mod tests {
    use preempt_system::ThreadId;

    use super::*;

    #[test]
    fn the_oldest_levels_are_dropped_only_if_there_is_no_room() {
        let mut links = Links::new(4);
        let mut add_level = |states: usize| {
            links.new_level();
            (0..states).for_each(|_| links.fresh(0, Choice::of(ThreadId::new(0))));
            links.flushed();
            (links.first, links.levels.len(), links.kept)
        };
        assert_eq!(add_level(2), (0, 2, 2));
        assert_eq!(add_level(2), (0, 3, 4), "there is room for four links");
        assert_eq!(add_level(1), (2, 2, 3), "the first level was empty");
        assert_eq!(add_level(9), (3, 2, 10), "two levels stay");
    }
}
