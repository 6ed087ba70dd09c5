//! Probabilistic concurrency testing: threads have priorities, which change at few random steps.
//!
//! **Paper.** Burckhardt, Kothari, Musuvathi, Nagarakatte, *A Randomized Scheduler with
//! Probabilistic Guarantees of Finding Bugs*, ASPLOS 2010, section 2.
//!
//! **Guarantees.** None beyond the executions that were drawn; but an error of depth d, one that
//! shows whenever d steps come in a certain order, shows in each with a probability of at least 1 /
//! (n·kᵈ⁻¹), for n threads and k steps, if k is known.
//!
//! **Map.**
//!
//! | paper | here |
//! | --- | --- |
//! | d | `depth` |
//! | initial priorities d … d + n - 1 | `priorities`, from 2·`depth` up |
//! | priorities 1 … d - 1 of change points | `depth` + 1 … 2·`depth` - 1 |
//! | change points k₁ … k_(d-1) in 1 … k | `changes`: step → new priority |
//! | k | `longest` |
//!
//! **Deviations.**
//!
//! 1. k is learned: it is the greatest number of steps of the executions so far. The first one has
//!    no change points.
//! 2. Only steps at which a change can make a difference count, for k and for change points:
//!    - More than one thread is enabled.
//!    - The thread has moved since its priority was last set. A second change before it moves has
//!      the effect of a first one to the lower priority, and a change before its first step that of
//!      another initial priority: nothing depends on the priority of a thread until it is chosen.
//!    - The step is not merely the end of the thread. A delayed end only delays the threads that
//!      join it, and a change of their priorities does the same.
//! 3. Threads that start later have an initial priority from the beginning, never below one that
//!    was demoted.
//! 4. A change after which the thread would still move gives it the lowest priority instead, so
//!    that another thread moves. In the paper the priority of a change point does not depend on
//!    when it is reached: of two threads that were both demoted, the later one has the higher
//!    priority in half of the executions, and where the two are alone its change is wasted. This
//!    loses no execution. Take the changes of an execution of the paper's scheduler. One that never
//!    makes a difference can be left out. Any other one makes its first difference at some step,
//!    where its thread would move without it and does not move with it; a change at that step
//!    instead leads to the same execution, and deviation 4 does not apply to it.
//!
//! **Cost.** Nothing is kept but priorities. A thread that spins with the highest priority is never
//! interrupted: its execution is cut.

use preempt_system::{System, ThreadId, ThreadSet};

use super::walk::Chooser;
use crate::codec::save_fields;
use crate::engine::cursor::Cursor;
use crate::engine::pcg::Pcg;

/// Chooses the enabled thread with the highest priority.
pub(crate) struct Priorities {
    depth: u32,
    /// The priority of every thread slot. No two are equal.
    priorities: Vec<u32>,
    /// The steps at which the thread that would move gets a new priority, and which.
    changes: Vec<(u32, u32)>,
    /// The threads that have moved since their priority was set.
    moved: ThreadSet,
    /// Steps of this execution that counted.
    steps: u32,
    longest: u32,
    /// The lowest priority so far; those below it are free.
    lowest: u32,
}

save_fields!(Priorities { depth, priorities, changes, moved, steps, longest, lowest });

impl Priorities {
    pub(crate) fn new(depth: u32, threads: usize) -> Priorities {
        Priorities {
            depth,
            priorities: vec![0; threads],
            changes: Vec::new(),
            moved: ThreadSet::EMPTY,
            steps: 0,
            longest: 0,
            lowest: 0,
        }
    }

    /// Whether a change of the priority of `chosen`, which would move, can make a difference:
    /// deviation 2.
    fn can_differ<S: System>(&self, cursor: &Cursor<S>, chosen: ThreadId) -> bool {
        !cursor.enabled().without(chosen).is_empty()
            && self.moved.contains(chosen)
            && !cursor.system().is_ending(chosen)
    }

    fn highest<S: System>(&self, cursor: &Cursor<S>) -> ThreadId {
        let enabled = cursor.enabled();
        enabled
            .iter()
            .max_by_key(|thread| self.priorities[thread.index()])
            .expect("some thread is enabled")
    }
}

impl<S: System> Chooser<S> for Priorities {
    fn fits(&self, fresh: &Priorities) -> bool {
        (self.depth, self.priorities.len()) == (fresh.depth, fresh.priorities.len())
            && self.longest < u32::MAX
    }

    fn begin(&mut self, random: &mut Pcg) {
        self.priorities
            .iter_mut()
            .zip(2 * self.depth..)
            .for_each(|(priority, initial)| *priority = initial);
        random.shuffle(&mut self.priorities);
        self.changes.clear();
        for priority in 1..self.depth.min(self.longest + 1) {
            // There are fewer changes than steps, so a step without a change remains.
            let step = loop {
                let step = 1 + random.below(self.longest);
                if self.changes.iter().all(|&(other, _)| other != step) {
                    break step;
                }
            };
            self.changes.push((step, self.depth + priority));
        }
        (self.moved, self.steps, self.lowest) = (ThreadSet::EMPTY, 0, self.depth);
    }

    fn choose(&mut self, cursor: &Cursor<S>, _: &mut Pcg) -> ThreadId {
        let chosen = self.highest(cursor);
        if !self.can_differ(cursor, chosen) {
            return chosen;
        }
        self.steps += 1;
        match self.changes.iter().find(|&&(step, _)| step == self.steps) {
            Some(&(_, priority)) => {
                self.priorities[chosen.index()] = priority;
                self.moved.remove(chosen);
                if self.highest(cursor) == chosen {
                    self.lowest -= 1;
                    self.priorities[chosen.index()] = self.lowest;
                }
                self.highest(cursor)
            }
            None => chosen,
        }
    }

    fn moved(&mut self, _: &Cursor<S>, thread: ThreadId) {
        self.moved.insert(thread);
    }

    fn end(&mut self) {
        self.longest = self.longest.max(self.steps);
    }
}

#[cfg(test)]
mod tests {
    use preempt_system::Choice;

    use super::*;
    use crate::engine::model::ModelExecution;
    use crate::toy::{self, Toy};

    type Execution = ModelExecution<'static, Toy>;

    /// Priorities of two threads, after executions of at most `longest` steps.
    fn priorities(depth: u32, longest: u32) -> Priorities {
        Priorities { longest, ..Priorities::new(depth, 2) }
    }

    #[test]
    fn every_order_of_priorities_and_every_change_point_is_drawn() {
        let (mut orders, mut points) = ([0; 2], [0; 3]);
        for run in 0..600 {
            let mut drawn = priorities(3, 3);
            Chooser::<Execution>::begin(&mut drawn, &mut Pcg::new(0, run));
            assert_eq!(drawn.priorities.iter().sum::<u32>(), 6 + 7, "initial ones are the highest");
            orders[usize::from(drawn.priorities[0] == 6)] += 1;
            let [(one, 4), (other, 5)] = drawn.changes[..] else { panic!("{:?}", drawn.changes) };
            assert_ne!(one, other);
            points[one as usize - 1] += 1;
        }
        assert!(orders.iter().all(|order| (250..350).contains(order)), "{orders:?}");
        assert!(points.iter().all(|point| (150..250).contains(point)), "{points:?}");
    }

    #[test]
    fn there_are_as_many_change_points_as_steps_at_most() {
        for (depth, longest, changes) in [(1, 9, 0), (4, 0, 0), (4, 1, 1), (4, 3, 3), (4, 4, 3)] {
            let mut drawn = priorities(depth, longest);
            Chooser::<Execution>::begin(&mut drawn, &mut Pcg::new(0, 0));
            assert_eq!(drawn.changes.len(), changes, "depth {depth}, {longest} steps");
        }
    }

    /// Lets threads of three steps each run to their ends. Returns the thread of each step.
    fn run(drawn: &mut Priorities) -> Vec<usize> {
        let toy = toy::grid(drawn.priorities.len(), 3);
        let mut cursor = Cursor::new(&toy).expect("the states are large enough");
        let mut threads = Vec::new();
        while !cursor.enabled().is_empty() {
            let thread = drawn.choose(&cursor, &mut Pcg::new(0, 0));
            cursor.step(Choice::of(thread)).expect("the states are large enough");
            drawn.moved(&cursor, thread);
            threads.push(thread.index());
        }
        threads
    }

    #[test]
    fn neither_the_first_step_of_a_thread_nor_those_of_the_last_thread_count() {
        let mut drawn = Priorities { priorities: vec![6, 7], ..priorities(3, 0) };
        assert_eq!(run(&mut drawn), [1, 1, 1, 0, 0, 0]);
        assert_eq!(drawn.steps, 2);
    }

    #[test]
    fn the_next_step_of_a_demoted_thread_does_not_count() {
        let (priorities, changes) = (vec![9, 8, 7], vec![(1, 4), (2, 5)]);
        let mut drawn = Priorities { priorities, changes, lowest: 4, ..Priorities::new(3, 3) };
        assert_eq!(run(&mut drawn), [0, 1, 2, 2, 2, 1, 1, 0, 0]);
        // The second steps of 0 and 1, where they are demoted; two of 2, and the last of 1.
        assert_eq!(drawn.steps, 5);
    }

    #[test]
    fn priorities_of_another_search_do_not_fit() {
        let fresh = Priorities::new(3, 2);
        let fits = |drawn: &Priorities| Chooser::<Execution>::fits(drawn, &fresh);
        assert!(fits(&priorities(3, 7)));
        assert!(!fits(&priorities(2, 7)) && !fits(&Priorities::new(3, 4)));
        assert!(!fits(&priorities(3, u32::MAX)), "one step more must be a number");
    }
}
