//! WorkSet and ActiveThreads of Figures 7 and 8, behind one lock.
//!
//! "WorkSet is empty and ActiveThreads = 0" is one question here. Asked as two, one after the
//! other, a worker may add a state and retire in between, and the search would end early.
//!
//! Breadth first, the states of a level are taken before those that they lead to, so that a search
//! that ends at a finding has the same numbers for any number of workers: its level is finished.
//! Depth first, the newest state is taken first.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};

use crate::codec::{save_fields, save_in_place};
use crate::engine::control::SearchControl;
use crate::engine::execution::Stop;
use crate::engine::lock;
use crate::plan::Order;

/// States that a worker takes at a time, at most.
const HANDFUL: usize = 64;

/// The states from which the search has to go on.
pub(super) struct WorkSet<'a> {
    /// Words of an item: a state and the number of its link.
    width: usize,
    order: Order,
    workers: usize,
    control: &'a SearchControl<'a>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Items to be taken, one after the other.
    now: VecDeque<u64>,
    /// Items of the next level.
    next: VecDeque<u64>,
    active: usize,
    level: u32,
    /// No worker may begin another level.
    last_level: bool,
    closed: bool,
}

save_fields!(State { now, next, active, level, last_level, closed });
save_in_place!(['a] WorkSet<'a> { state });

impl<'a> WorkSet<'a> {
    pub(super) fn new(
        width: usize,
        order: Order,
        workers: usize,
        control: &'a SearchControl<'a>,
    ) -> WorkSet<'a> {
        WorkSet { width, order, workers, control, state: Mutex::default(), changed: Condvar::new() }
    }

    /// Adds an item before the workers start.
    pub(super) fn begin(&self, item: &[u64]) {
        lock(&self.state).now.extend(item);
        self.control.add_waiting(1, size_of_val(item));
    }

    /// The words of a state.
    pub(super) fn words(&self) -> usize {
        self.width - 1
    }

    /// Wakes the workers that wait for items: the search pauses, and the workers that hold items put
    /// none back.
    pub(super) fn wake(&self) {
        let _state = lock(&self.state);
        self.changed.notify_all();
    }

    /// Whether there is nothing to go on with.
    pub(super) fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    /// Takes a first handful of items. `None` if the work is done; else the level that they belong
    /// to.
    pub(super) fn take(&self, items: &mut Vec<u64>) -> Option<u32> {
        self.taken(lock(&self.state), items)
    }

    /// Puts back what taken items have led to, and takes others.
    pub(super) fn exchange(&self, items: &mut Vec<u64>, found: &mut Vec<u64>) -> Option<u32> {
        let mut state = lock(&self.state);
        if !found.is_empty() {
            self.control.add_waiting((found.len() / self.width) as u64, size_of_val(&**found));
            if self.order == Order::DepthFirst {
                state.now.extend(&*found)
            } else {
                state.next.extend(&*found)
            }
            found.clear();
            if self.workers > 1 {
                self.changed.notify_all();
            }
        }
        state.active -= 1;
        self.taken(state, items)
    }

    fn taken(&self, mut state: MutexGuard<'_, State>, items: &mut Vec<u64>) -> Option<u32> {
        items.clear();
        loop {
            if self.control.stopped() {
                state.closed = true;
            }
            if state.now.is_empty() && state.active == 0 && !state.closed {
                self.advance(&mut state);
            }
            if state.closed || self.control.is_pausing() {
                self.changed.notify_all();
                return None;
            }
            if !state.now.is_empty() {
                state.active += 1;
                let count = self.handful(state.now.len() / self.width);
                let from = state.now.len() - count * self.width;
                if self.order == Order::DepthFirst {
                    items.extend(state.now.drain(from..));
                } else {
                    items.extend(state.now.drain(..count * self.width));
                }
                self.control.remove_waiting(count as u64, size_of_val(&**items));
                return Some(state.level);
            }
            state = self.changed.wait(state).expect("mutex poisoned");
        }
    }

    /// Goes on to the next level, or ends the search: all are idle and nothing of this level is
    /// left.
    fn advance(&self, state: &mut State) {
        if state.last_level {
            self.control.stop(Stop::Finding);
        }
        if state.last_level || state.next.is_empty() {
            state.closed = true;
        } else {
            let state = &mut *state;
            std::mem::swap(&mut state.now, &mut state.next);
            state.level += 1;
            self.changed.notify_all();
        }
    }

    fn handful(&self, waiting: usize) -> usize {
        if self.order == Order::DepthFirst {
            1
        } else {
            (waiting / (2 * self.workers)).clamp(1, HANDFUL)
        }
    }

    /// The wanted failures are found: breadth first, the level is finished; depth first, the search
    /// stops.
    #[cold]
    pub(super) fn finish(&self) {
        if self.order == Order::DepthFirst {
            self.control.stop(Stop::Finding);
        } else {
            lock(&self.state).last_level = true;
        }
    }

    /// Closes the set: no worker takes an item any more.
    pub(super) fn close(&self) {
        lock(&self.state).closed = true;
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::plan::Limits;

    #[test]
    fn an_empty_set_is_not_the_end_while_a_worker_is_active() {
        for order in [Order::BreadthFirst, Order::DepthFirst] {
            let control = SearchControl::unseen(Limits::default());
            let work = WorkSet::new(1, order, 2, &control);
            work.begin(&[7]);
            let mut items = Vec::new();
            assert_eq!((work.take(&mut items), &items[..]), (Some(0), &[7][..]));
            thread::scope(|scope| {
                let (send, receive) = channel();
                let work = &work;
                scope.spawn(move || {
                    let mut items = Vec::new();
                    let level = work.take(&mut items);
                    send.send((level.is_some(), items.clone())).expect("the test receives");
                    if level.is_some() {
                        work.exchange(&mut items, &mut Vec::new());
                    }
                });
                // The set is empty, and one worker is active: the other one has to wait.
                assert!(
                    receive.recv_timeout(Duration::from_millis(50)).is_err(),
                    "it took an empty set for the end"
                );
                // Exactly one of the two gets the added item, and then both see that the work is
                // done.
                let taken = work.exchange(&mut items, &mut vec![8]);
                if taken.is_some() {
                    assert_eq!(
                        (&items[..], work.exchange(&mut items.clone(), &mut Vec::new())),
                        (&[8][..], None)
                    );
                }
                let (other, others) = receive.recv().expect("the other worker goes on");
                assert_eq!((other, others.len()), (taken.is_none(), usize::from(taken.is_none())));
            });
        }
    }
}
