//! WorkSet and ActiveThreads of Figures 7 and 8: a [`Queue`] of levels.
//!
//! Breadth first, the states of a level are taken before those that they lead to, so a search that
//! ends at a finding has the same numbers for any number of workers: its level is finished. Depth
//! first, the newest state is taken first.

use std::collections::VecDeque;

use crate::codec::save_fields;
use crate::engine::queue::{Items, Queue};

/// The states from which the search has to continue.
pub(super) type WorkSet = Queue<Levels>;

/// The most states that a worker takes at a time.
const MOST_TAKEN: usize = 64;

/// States in their order.
#[derive(Default)]
pub(super) struct Levels {
    /// Words of an item: a state and the number of its link.
    width: usize,
    workers: usize,
    /// Whether the newest state is taken first, without regard to levels.
    depth_first: bool,
    /// Items to be taken, one after the other.
    now: VecDeque<u64>,
    /// Items of the next level.
    next: VecDeque<u64>,
    level: u32,
    /// Whether the search ends with the current level.
    pub(super) is_last: bool,
}

save_fields!(Levels { width, workers, depth_first, now, next, level, is_last });

impl Levels {
    pub(super) fn new(width: usize, workers: usize, depth_first: bool) -> Levels {
        Levels { width, workers, depth_first, ..Levels::default() }
    }

    /// Whether all items have `width` words. Checked for what a checkpoint contains.
    pub(super) fn fit(&self, width: usize) -> bool {
        let whole = |items: &VecDeque<u64>| items.len().is_multiple_of(width);
        self.width == width && self.workers > 0 && whole(&self.now) && whole(&self.next)
    }

    /// Adds the first item.
    pub(super) fn begin(&mut self, item: &[u64]) {
        self.now.extend(item);
    }

    /// Moves items here that the items taken before have led to. Returns whether there are any.
    pub(super) fn give(&mut self, found: &mut Vec<u64>) -> bool {
        let level = if self.depth_first { &mut self.now } else { &mut self.next };
        level.extend(found.iter());
        let any = !found.is_empty();
        found.clear();
        any
    }
}

/// The items that a worker has taken, and their level.
pub(super) type Taken = (Vec<u64>, u32);

impl Items for Levels {
    type Taken = Taken;

    fn take(&mut self, (items, level): &mut Taken) -> bool {
        let waiting = self.count();
        if waiting == 0 {
            return false;
        }
        items.clear();
        if self.depth_first {
            items.extend(self.now.drain((waiting - 1) * self.width..));
        } else {
            let count = (waiting / (2 * self.workers)).clamp(1, MOST_TAKEN);
            items.extend(self.now.drain(..count * self.width));
        }
        *level = self.level;
        true
    }

    fn count(&self) -> usize {
        self.now.len() / self.width
    }

    fn is_empty(&self) -> bool {
        self.now.is_empty() && (self.next.is_empty() || self.is_last)
    }

    /// Moves to the next level.
    fn refill(&mut self) -> bool {
        if self.is_empty() {
            return false;
        }
        std::mem::swap(&mut self.now, &mut self.next);
        self.level += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_empty_set_is_not_the_end_while_a_worker_is_active() {
        for depth_first in [false, true] {
            let work = WorkSet::new(2, Levels::new(1, 2, depth_first));
            work.with(|levels| levels.begin(&[7]));
            let exchange = |found: &[u64]| {
                let mut taken = Taken::default();
                let more = work.exchange(|levels| levels.give(&mut found.to_vec()), &mut taken);
                (more, taken.0)
            };
            assert_eq!(exchange(&[]), (true, vec![7]));
            thread::scope(|scope| {
                let (send, receive) = channel();
                scope.spawn(move || {
                    let (more, items) = exchange(&[]);
                    send.send((more, items)).expect("the test receives");
                    if more {
                        exchange(&[]);
                    }
                });
                // The set is empty, and one worker is active: the other one has to wait.
                assert!(
                    receive.recv_timeout(Duration::from_millis(50)).is_err(),
                    "a worker mistook an empty set for the end"
                );
                // Exactly one of the two gets the added item, and then both see that the work is
                // done.
                let (more, items) = exchange(&[8]);
                if more {
                    assert_eq!((items, exchange(&[]).0), (vec![8], false));
                }
                let (other, items) = receive.recv().expect("the other worker continues");
                assert_eq!((other, items.len()), (!more, usize::from(!more)));
            });
        }
    }
}
