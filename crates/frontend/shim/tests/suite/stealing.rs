//! The work-stealing queue of CHESS, with the numbers of traces that CHESS publishes for each bound
//! on preemptions.
//!
//! One owner pushes and pops four items, one thief tries to steal twice. The queue begins with two
//! slots and grows. As in CHESS, interlocked operations read head and tail, so that two reads
//! of one of them are dependent. Whether the first switch away from the owner, after it has
//! started the thief, counts as a preemption decides all of these numbers.

use std::sync::Mutex as Uncontrolled;

use preempt::sync::atomic::{AtomicIsize, Ordering::SeqCst};
use preempt::sync::{Arc, Mutex};
use preempt::{Cache, Check, Order, Reduction, thread};

/// The slots; their number is always a power of two.
struct Slots(Vec<usize>);

impl Slots {
    fn mask(&self) -> isize {
        self.0.len() as isize - 1
    }

    fn at(&mut self, index: isize) -> &mut usize {
        let slot = (index & self.mask()) as usize;
        &mut self.0[slot]
    }
}

/// Items are stored from `head` to `tail`. The owner works at the tail without the lock while there
/// is room, and thieves at the head.
struct Queue {
    head: AtomicIsize,
    tail: AtomicIsize,
    lock: Mutex<()>,
    /// Head and tail order the accesses, which are not steps.
    slots: Uncontrolled<Slots>,
}

/// Reads by an interlocked operation.
fn read(index: &AtomicIsize) -> isize {
    index.fetch_add(0, SeqCst)
}

impl Queue {
    fn new() -> Queue {
        Queue {
            head: AtomicIsize::new(0),
            tail: AtomicIsize::new(0),
            lock: Mutex::new(()),
            slots: Uncontrolled::new(Slots(vec![0; 2])),
        }
    }

    fn item(&self, index: isize) -> usize {
        *self.slots.lock().unwrap().at(index)
    }

    fn append(&self, tail: isize, item: usize) {
        *self.slots.lock().unwrap().at(tail) = item;
        self.tail.store(tail + 1, SeqCst);
    }

    /// Adds an item. One slot stays empty, since a thief that has moved the head may still be
    /// reading there.
    fn push(&self, item: usize) {
        let tail = read(&self.tail);
        let mask = self.slots.lock().unwrap().mask();
        if tail < read(&self.head) + mask {
            return self.append(tail, item);
        }
        let _guard = self.lock.lock().unwrap();
        let head = read(&self.head);
        let count = read(&self.tail) - head;
        self.head.store(head & mask, SeqCst);
        self.tail.store((head & mask) + count, SeqCst);
        if count >= mask {
            let mut slots = self.slots.lock().unwrap();
            let mut items: Vec<usize> =
                (head..head + count).map(|index| *slots.at(index)).collect();
            items.resize(2 * slots.0.len(), 0);
            *slots = Slots(items);
            drop(slots);
            self.head.store(0, SeqCst);
            self.tail.store(count, SeqCst);
        }
        self.append(read(&self.tail), item);
    }

    /// Decrements the tail and takes the item there, unless a thief may be taking it too.
    fn try_pop(&self) -> Option<usize> {
        let tail = read(&self.tail) - 1;
        self.tail.store(tail, SeqCst);
        if read(&self.head) <= tail {
            return Some(self.item(tail));
        }
        self.tail.store(tail + 1, SeqCst);
        None
    }

    fn pop(&self) -> Option<usize> {
        self.try_pop().or_else(|| {
            let _guard = self.lock.lock().unwrap();
            self.try_pop()
        })
    }

    fn steal(&self) -> Option<usize> {
        let _guard = self.lock.lock().unwrap();
        let head = read(&self.head);
        self.head.store(head + 1, SeqCst);
        if head < read(&self.tail) {
            return Some(self.item(head));
        }
        self.head.store(head, SeqCst);
        None
    }
}

/// Every item is taken at most once.
fn steal_twice() {
    let queue = Arc::new(Queue::new());
    let thief = thread::spawn({
        let queue = queue.clone();
        move || [queue.steal(), queue.steal()]
    });
    let mut taken = Vec::new();
    for items in [[1, 2], [3, 4]] {
        items.into_iter().for_each(|item| queue.push(item));
        taken.extend(queue.pop());
    }
    (0..2).for_each(|_| taken.extend(queue.pop()));
    taken.extend(thief.join().unwrap().into_iter().flatten());
    taken.sort_unstable();
    assert_eq!(taken, [1, 2, 3, 4]);
}

#[test]
fn the_published_traces_of_each_bound() {
    let published = [1, 25, 150, 886, 1903, 4714];
    let icb = Check::new().order(Order::Icb { cache: Cache::Hb }).bound(5).run(steal_twice);
    let traces: Vec<_> = icb.bounds.iter().filter_map(|bound| bound.all.traces).collect();
    assert_eq!(traces, published, "{}", icb.guarantee());
    for (bound, &traces) in published.iter().enumerate() {
        let cb_por = Check::new().reduce(Reduction::CbPor).bound(bound as u32).run(steal_twice);
        let counts = (cb_por.traces(), cb_por.executions());
        assert_eq!(counts, (Some(traces), Some(traces)), "{}", cb_por.guarantee());
    }
    let all = Check::new().unbounded().run(steal_twice);
    assert!(all.complete && all.findings.is_empty(), "{}", all.guarantee());
    assert_eq!((all.traces(), all.executions()), (Some(11_052), Some(11_052)));
}
