//! Iterative context bounding: all executions without preemptions, then all with one, and so on.
//!
//! **Paper.** icb, Algorithm 1, with the work-item cache of lines 28 to 35 (ZING's, of states) or one of happens-before graphs (CHESS's).
//!
//! **Guarantees.** When a level is done, all executions with at most so many preemptions are covered, and so any failure that is not
//! known yet needs more. The first finding therefore has the least number of preemptions of all. Without a cache the
//! executions of level c are exactly those with c preemptions; with [`Cache::Hb`] every happens-before graph is reached first
//! at its least number, with [`Cache::State`] every state. Assertions, invariants and deadlocks survive all three. The search is
//! complete when nothing is left for the next level.
//!
//! **Map.**
//!
//! | paper | here |
//! | --- | --- |
//! | workItem (state, tid) | [`Item`]: prefix, choice |
//! | workQueue, nextWorkQueue | [`Queue`] of the level and of the next one |
//! | currBound | `bound` |
//! | Search(w) | [`Tree::explore_step`] |
//! | table (line 29) | [`Table`] |
//!
//! **Deviations.**
//!
//! 1. An initial state in which no thread can move is an execution with no preemption; the paper never reports it.
//! 2. A thread that may choose has one item for each of its alternatives. None of them is a preemption for being another.
//! 3. Items hold the way to a state instead of the state: so a program that can only be started again is explored in the same
//!    way. Items of one execution follow each other in the queue, and getting from one to the next is one step.
//! 4. An item that the cache covers by the time its level ends is dropped there, so that the search may end levels earlier
//!    than the paper's, whose queue is not empty then.
//!
//! **Cost.** 32 bytes for an item, 12 for a step of a prefix that items share, 27 for a step in the cache. At most
//! C(nk, c)·(nb + c)! executions in level c of n threads of k steps, of which b may block, ending included (Theorem 1).

use std::mem;

use preempt_system::Choice;

use super::cache::Table;
use super::tree::{Beyond, Extent, Tree};
use crate::cursor::Cursor;
use crate::execution::{Stop, Visitor};
use crate::names::Name;
use crate::plan::Cache;
use crate::system::System;

/// A beginning of an execution, as a number. 0 is the empty one.
type Prefix = u32;

/// All prefixes that items need: each is one step longer than another one.
#[derive(Default)]
struct Prefixes(Vec<(Prefix, Choice)>);

impl Prefixes {
    fn add(&mut self, before: Prefix, choice: Choice) -> Prefix {
        self.0.push((before, choice));
        Prefix::try_from(self.0.len()).expect("fewer than 2³² prefixes fit into memory")
    }

    /// The steps of a prefix.
    fn steps(&self, mut prefix: Prefix, steps: &mut Vec<(Prefix, Choice)>) {
        steps.clear();
        while prefix > 0 {
            let (before, choice) = self.0[prefix as usize - 1];
            steps.push((prefix, choice));
            prefix = before;
        }
        steps.reverse();
    }
}

/// A step that waits for the next level.
struct Item {
    prefix: Prefix,
    choice: Choice,
    step: Option<Name>,
}

/// The items of the next level, and the way to where the cursor stands.
#[derive(Default)]
struct Queue {
    next: Vec<Item>,
    /// Items of this level that were not taken yet.
    rest: usize,
    prefixes: Prefixes,
    /// The prefixes of the present execution by their number of steps, from 1, as far as they have a number.
    path: Vec<Prefix>,
    /// There will be no next level: all that matters is whether there could be one.
    last: bool,
}

impl<S: System> Beyond<S> for Queue {
    fn beyond(&mut self, cursor: &Cursor<S>, choice: Choice, step: Option<Name>) {
        if self.last {
            // Without names nothing can be covered later, and one item says as much as many.
            if step.is_some() || self.next.is_empty() {
                self.next.push(Item { prefix: 0, choice, step });
            }
            return;
        }
        while self.path.len() < cursor.len() {
            let before = self.path.last().copied().unwrap_or(0);
            self.path.push(self.prefixes.add(before, cursor.choice(self.path.len())));
        }
        self.next.push(Item { prefix: self.path.last().copied().unwrap_or(0), choice, step });
    }

    fn rewound(&mut self, len: usize) {
        self.path.truncate(len);
    }

    fn holds(&self) -> (usize, usize) {
        let bytes = (self.rest + self.next.capacity()) * size_of::<Item>();
        (self.rest + self.next.len(), bytes + self.prefixes.0.capacity() * size_of::<(Prefix, Choice)>())
    }
}

/// Explores level by level, up to `extent.preemptions` if that is given.
pub(super) fn explore<S: System>(
    cursor: &mut Cursor<S>,
    extent: Extent,
    cache: Cache,
    visitor: &mut impl Visitor<S>,
) -> Result<(), Stop> {
    let mut table = Table::new(cache);
    let level = Extent { preemptions: Some(0), ..extent };
    let is_last = |bound: u32| extent.preemptions.is_some_and(|most| bound >= most);
    let mut tree = Tree::new(level, &mut table, Queue { last: is_last(0), ..Queue::default() });
    tree.explore(cursor, visitor)?;
    let mut steps = Vec::new();
    for bound in 0.. {
        let (table, next) = (&tree.table, &mut tree.beyond.next);
        let waiting = next.len();
        next.retain(|item| !table.covers(item.step, bound + 1));
        visitor.covered(waiting - next.len());
        let done = next.is_empty();
        visitor.bound(bound, !done);
        if done || is_last(bound) {
            break;
        }
        tree.extent.preemptions = Some(bound + 1);
        tree.beyond.last = is_last(bound + 1);
        let items = mem::take(&mut tree.beyond.next);
        tree.beyond.rest = items.len();
        for item in items {
            tree.beyond.rest -= 1;
            if tree.table.covers(item.step, bound + 1) {
                visitor.covered(1);
                continue;
            }
            tree.beyond.prefixes.steps(item.prefix, &mut steps);
            go(cursor, &steps, &mut tree.beyond.path)?;
            tree.explore_step(cursor, item.choice, visitor)?;
        }
    }
    Ok(())
}

/// Moves the cursor to the end of a prefix. `path` numbers the prefixes of where it stands, and of where it gets.
fn go<S: System>(cursor: &mut Cursor<S>, steps: &[(Prefix, Choice)], path: &mut Vec<Prefix>) -> Result<(), Stop> {
    let common = steps.iter().zip(path.iter()).take_while(|((prefix, _), here)| prefix == *here).count();
    cursor.rewind(common);
    path.truncate(common);
    for &(prefix, choice) in &steps[common..] {
        // What the step may show was told when it was taken for the first time.
        cursor.step(choice)?;
        path.push(prefix);
    }
    Ok(())
}
