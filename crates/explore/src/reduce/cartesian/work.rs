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
use std::thread;

use crate::codec::{Damaged, Reader, Writer};
use crate::engine::execution::Stop;
use crate::engine::watch::Watch;
use crate::plan::Order;

/// States that a worker takes at a time, at most.
const HANDFUL: usize = 64;

/// The states from which the search has to go on.
pub(super) struct WorkSet<'a> {
    /// Words of an item: a state and the number of its link.
    width: usize,
    order: Order,
    workers: usize,
    watch: &'a Watch<'a>,
    desk: Mutex<Desk>,
    news: Condvar,
}

#[derive(Default)]
struct Desk {
    /// Items to be taken, one after the other.
    now: VecDeque<u64>,
    /// Items of the next level.
    next: VecDeque<u64>,
    active: usize,
    level: u32,
    /// Nobody is to begin another level.
    last_level: bool,
    closed: bool,
}

impl<'a> WorkSet<'a> {
    pub(super) fn new(
        width: usize,
        order: Order,
        workers: usize,
        watch: &'a Watch<'a>,
    ) -> WorkSet<'a> {
        WorkSet { width, order, workers, watch, desk: Mutex::default(), news: Condvar::new() }
    }

    /// Adds an item before anybody works.
    pub(super) fn begin(&self, item: &[u64]) {
        self.desk().now.extend(item);
        self.watch.wait(1, size_of_val(item));
    }

    /// Writes all of it. Workers that are active hold items, and write these themselves.
    pub(super) fn save(&self, to: &mut Writer<'_>) {
        let desk = self.desk();
        for items in [&desk.now, &desk.next] {
            to.words(&items.iter().copied().collect::<Vec<_>>());
        }
        to.put(&((desk.active, desk.level), desk.last_level));
    }

    /// Reads it into an empty set. The watch knows of the items already.
    pub(super) fn load(&self, from: &mut Reader) -> Result<(), Damaged> {
        let mut desk = self.desk();
        (desk.now, desk.next) = (from.words()?.into(), from.words()?.into());
        ((desk.active, desk.level), desk.last_level) = from.get()?;
        if desk.now.len() % self.width + desk.next.len() % self.width > 0
            || desk.active > self.workers
        {
            return Err(Damaged);
        }
        Ok(())
    }

    /// Wakes who waits for items: the search pauses, and some are held by workers that put none
    /// back.
    pub(super) fn wake(&self) {
        let _desk = self.desk();
        self.news.notify_all();
    }

    /// Whether there is nothing to go on with.
    pub(super) fn is_closed(&self) -> bool {
        self.desk().closed
    }

    /// Takes a first handful of items. `None` if the work is done; else the level that they belong
    /// to.
    pub(super) fn take(&self, items: &mut Vec<u64>) -> Option<u32> {
        self.taken(self.desk(), items)
    }

    /// Puts back what taken items have led to, and takes others.
    pub(super) fn exchange(&self, items: &mut Vec<u64>, found: &mut Vec<u64>) -> Option<u32> {
        let mut desk = self.desk();
        if !found.is_empty() {
            self.watch.wait((found.len() / self.width) as u64, size_of_val(&**found));
            if self.order == Order::DepthFirst {
                desk.now.extend(&*found)
            } else {
                desk.next.extend(&*found)
            }
            found.clear();
            if self.workers > 1 {
                self.news.notify_all();
            }
        }
        desk.active -= 1;
        self.taken(desk, items)
    }

    fn taken(&self, mut desk: MutexGuard<'_, Desk>, items: &mut Vec<u64>) -> Option<u32> {
        items.clear();
        loop {
            if self.watch.stopped() {
                desk.closed = true;
            }
            if desk.now.is_empty() && desk.active == 0 && !desk.closed {
                self.advance(&mut desk);
            }
            if desk.closed || self.watch.is_pausing() {
                self.news.notify_all();
                return None;
            }
            if !desk.now.is_empty() {
                desk.active += 1;
                let count = self.handful(desk.now.len() / self.width);
                let from = desk.now.len() - count * self.width;
                if self.order == Order::DepthFirst {
                    items.extend(desk.now.drain(from..));
                } else {
                    items.extend(desk.now.drain(..count * self.width));
                }
                self.watch.taken(count as u64, size_of_val(&**items));
                return Some(desk.level);
            }
            desk = self.news.wait(desk).expect("nobody panics at the desk");
        }
    }

    /// Goes on to the next level, or ends the search: all are idle and nothing of this level is
    /// left.
    fn advance(&self, desk: &mut Desk) {
        if desk.last_level {
            self.watch.stop(Stop::Finding);
        }
        if desk.last_level || desk.next.is_empty() {
            desk.closed = true;
        } else {
            let desk = &mut *desk;
            std::mem::swap(&mut desk.now, &mut desk.next);
            desk.level += 1;
            self.news.notify_all();
        }
    }

    fn handful(&self, waiting: usize) -> usize {
        if self.order == Order::DepthFirst {
            1
        } else {
            (waiting / (2 * self.workers)).clamp(1, HANDFUL)
        }
    }

    /// What was looked for is found: breadth first, the level is finished; depth first, nobody goes
    /// on.
    #[cold]
    pub(super) fn finish(&self) {
        if self.order == Order::DepthFirst {
            self.watch.stop(Stop::Finding);
        } else {
            self.desk().last_level = true;
        }
    }

    /// Sends all workers home.
    fn close(&self) {
        self.desk().closed = true;
        self.news.notify_all();
    }

    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().expect("nobody panics at the desk")
    }
}

/// Closes the set if its worker panics, so that the others do not wait for ever.
pub(super) struct AtWork<'a, 'w>(pub(super) &'a WorkSet<'w>);

impl Drop for AtWork<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;
    use crate::plan::Limits;

    #[test]
    fn an_empty_set_is_not_the_end_while_somebody_works() {
        for order in [Order::BreadthFirst, Order::DepthFirst] {
            let watch = Watch::unseen(Limits::default());
            let work = WorkSet::new(1, order, 2, &watch);
            work.begin(&[7]);
            let mut items = Vec::new();
            assert_eq!((work.take(&mut items), &items[..]), (Some(0), &[7][..]));
            thread::scope(|scope| {
                let (tell, told) = channel();
                let work = &work;
                scope.spawn(move || {
                    let mut items = Vec::new();
                    let level = work.take(&mut items);
                    tell.send((level.is_some(), items.clone())).expect("somebody listens");
                    if level.is_some() {
                        work.exchange(&mut items, &mut Vec::new());
                    }
                });
                // The set is empty, and one worker is active: the other one has to wait.
                assert!(
                    told.recv_timeout(Duration::from_millis(50)).is_err(),
                    "it took an empty set for the end"
                );
                // Exactly one of the two gets what is added, and then both are told that all is
                // done.
                let taken = work.exchange(&mut items, &mut vec![8]);
                if taken.is_some() {
                    assert_eq!(
                        (&items[..], work.exchange(&mut items.clone(), &mut Vec::new())),
                        (&[8][..], None)
                    );
                }
                let (other, others) = told.recv().expect("the other one goes on");
                assert_eq!((other, others.len()), (taken.is_none(), usize::from(taken.is_none())));
            });
        }
    }
}
