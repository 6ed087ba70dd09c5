//! What channels synchronise, and what they do not: one pair of operations at a time.

use std::cell::RefCell;
use std::time::Duration;

use preempt::cell::UnsafeCell;
use preempt::sync::atomic::AtomicUsize;
use preempt::sync::atomic::Ordering::Relaxed;
use preempt::sync::mpsc::{Receiver, SyncSender, TryRecvError, TrySendError, sync_channel};
use preempt::sync::{Arc, mpsc};
use preempt::{Check, FailureKind, Memory, thread};

/// Both ends of a channel, shared by the threads of a test.
struct Ends {
    sender: RefCell<Option<SyncSender<u32>>>,
    receiver: RefCell<Option<Receiver<u32>>>,
    clones: RefCell<Vec<SyncSender<u32>>>,
    cell: UnsafeCell<u32>,
    flag: AtomicUsize,
}

// SAFETY: inside a check one thread runs at a time, and no borrow lasts while another thread uses
// the same end.
unsafe impl Sync for Ends {}
// SAFETY: as above.
unsafe impl Send for Ends {}

impl Ends {
    fn new(capacity: usize) -> Arc<Ends> {
        let (sender, receiver) = sync_channel(capacity);
        Arc::new(Ends {
            sender: RefCell::new(Some(sender)),
            receiver: RefCell::new(Some(receiver)),
            clones: RefCell::default(),
            cell: UnsafeCell::new(0),
            flag: AtomicUsize::new(0),
        })
    }

    fn write(&self) {
        self.cell.with_mut(|_| ());
    }

    fn send(&self) {
        self.sender.borrow().as_ref().unwrap().send(7).unwrap();
    }

    fn receive(&self) {
        self.receiver.borrow().as_ref().unwrap().recv().unwrap();
    }

    fn clone_sender(&self) {
        let clone = self.sender.borrow().as_ref().unwrap().clone();
        self.clones.borrow_mut().push(clone);
    }

    fn drop_sender(&self) {
        drop(self.sender.take());
    }

    fn drop_receiver(&self) {
        drop(self.receiver.take());
    }
}

/// Whether a data race is found. Asserts that nothing else is.
fn races(check: &Check, test: impl Fn() + Sync) -> bool {
    let outcome = check.clone().unbounded().keep_going().run(test);
    let kinds: Vec<_> = outcome.findings.iter().map(|finding| finding.failure.kind).collect();
    assert!(kinds.iter().all(|&kind| kind == FailureKind::Race), "{:?}", outcome.findings);
    assert!(outcome.complete);
    !kinds.is_empty()
}

/// Whether `first` happens before `then`, where the latter comes later. A relaxed flag lets the
/// second thread know that.
fn orders(capacity: usize, before: fn(&Ends), first: fn(&Ends), then: fn(&Ends)) -> bool {
    let test = move || {
        let ends = Ends::new(capacity);
        before(&ends);
        let other = ends.clone();
        let t = thread::spawn(move || {
            other.write();
            first(&other);
            other.flag.store(1, Relaxed);
        });
        if ends.flag.load(Relaxed) == 1 {
            then(&ends);
            ends.write();
        }
        t.join().unwrap();
    };
    let ordered =
        [Memory::Sc, Memory::Weak].map(|memory| !races(&Check::new().memory(memory), test));
    assert_eq!(ordered[0], ordered[1]);
    ordered[0]
}

#[test]
fn a_send_orders_the_receive_of_its_value() {
    let none: fn(&Ends) = |_| ();
    assert!(orders(2, none, Ends::send, Ends::receive));
    assert!(orders(2, none, Ends::send, |ends| {
        assert_eq!(ends.receiver.borrow().as_ref().unwrap().try_recv(), Ok(7));
    }));
    assert!(orders(2, none, Ends::send, |ends| {
        let receiver = ends.receiver.borrow();
        assert_eq!(receiver.as_ref().unwrap().recv_timeout(Duration::from_secs(1)), Ok(7));
    }));
    assert!(orders(2, none, Ends::send, Ends::drop_receiver), "the value is dropped");
    // The receive of an earlier value does not.
    assert!(!orders(2, Ends::send, Ends::send, Ends::receive));
}

#[test]
fn other_operations_of_a_channel_order_nothing() {
    let none: fn(&Ends) = |_| ();
    let empty: fn(&Ends) = |ends| {
        let found = ends.receiver.borrow().as_ref().unwrap().try_recv();
        assert_eq!(found, Err(TryRecvError::Empty));
    };
    let full: fn(&Ends) = |ends| {
        let found = ends.sender.borrow().as_ref().unwrap().try_send(8);
        assert_eq!(found, Err(TrySendError::Full(8)));
    };
    assert!(!orders(2, none, Ends::clone_sender, Ends::clone_sender));
    assert!(!orders(2, none, Ends::send, Ends::send));
    assert!(!orders(2, none, empty, Ends::send));
    assert!(!orders(1, Ends::send, Ends::receive, Ends::send), "a slot is used again");
    assert!(!orders(1, Ends::send, full, Ends::receive));
    assert!(!orders(2, Ends::clone_sender, Ends::drop_sender, empty), "a sender is left");
}

#[test]
fn the_end_of_one_side_orders_what_reports_it() {
    let none: fn(&Ends) = |_| ();
    assert!(orders(1, none, Ends::drop_sender, |ends| {
        ends.receiver.borrow().as_ref().unwrap().recv().unwrap_err();
    }));
    assert!(orders(1, none, Ends::drop_sender, |ends| {
        let found = ends.receiver.borrow().as_ref().unwrap().try_recv();
        assert_eq!(found, Err(TryRecvError::Disconnected));
    }));
    assert!(orders(1, none, Ends::drop_receiver, |ends| {
        ends.sender.borrow().as_ref().unwrap().send(1).unwrap_err();
    }));
    assert!(orders(1, none, Ends::drop_receiver, |ends| {
        let found = ends.sender.borrow().as_ref().unwrap().try_send(1);
        assert_eq!(found, Err(TrySendError::Disconnected(1)));
    }));
}

/// All senders happen before the receiver learns that there are none left, not only the last.
#[test]
fn every_sender_is_ordered_before_the_end_of_all() {
    assert!(!races(&Check::new(), || {
        let (sender, receiver) = mpsc::channel::<u32>();
        let ends = [Ends::new(1), Ends::new(1)];
        let threads = ends.clone().map(|ends| {
            let sender = sender.clone();
            thread::spawn(move || {
                ends.write();
                drop(sender);
            })
        });
        drop(sender);
        receiver.recv().unwrap_err();
        ends.iter().for_each(|ends| ends.write());
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    }));
}

/// In a channel without capacity a receive orders the completion of the send; with a buffer it does
/// not.
#[test]
fn a_rendezvous_orders_both_sides() {
    for (capacity, expected) in [(0, false), (1, true)] {
        for polls in [false, true] {
            let raced = races(&Check::new(), || {
                let ends = Ends::new(capacity);
                let other = ends.clone();
                let t = thread::spawn(move || {
                    other.write();
                    other.receive();
                });
                while polls && ends.sender.borrow().as_ref().unwrap().try_send(1).is_err() {
                    thread::yield_now();
                }
                if !polls {
                    ends.send();
                }
                ends.write();
                t.join().unwrap();
            });
            assert_eq!(raced, expected, "{capacity} {polls}");
        }
    }
}
