//! The values that the threads of a program share and own.
#![allow(unsafe_code)]

use preempt::cell::UnsafeCell;
use preempt::future::AtomicWaker;
use preempt::sync::atomic::Ordering::SeqCst;
use preempt::sync::atomic::{AtomicI64, AtomicPtr};
use preempt::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use preempt::sync::{Arc, Barrier, Condvar, Mutex, Once, OnceLock, RwLock, Weak};

use crate::program::{ATOMICS, PAIR, Program};

/// Cells that threads share. The checker decides whether their accesses are ordered.
pub(super) struct Cells(pub(super) [UnsafeCell<i64>; PAIR]);

// SAFETY: inside a check only one thread runs at a time, and the value is never accessed: only the
// access is announced.
unsafe impl Sync for Cells {}

/// Everything that threads share.
pub(super) struct Shared {
    pub(super) atomics: [AtomicI64; 2],
    pub(super) listed: Vec<AtomicI64>,
    pub(super) boxed: Box<AtomicI64>,
    pub(super) mutexes: [Mutex<i64>; PAIR],
    pub(super) locks: [RwLock<i64>; PAIR],
    pub(super) condvars: [Condvar; PAIR],
    pub(super) barriers: [Barrier; PAIR],
    pub(super) cells: Cells,
    pub(super) onces: [Once; PAIR],
    pub(super) values: [OnceLock<i64>; PAIR],
    pub(super) wakers: [AtomicWaker; PAIR],
    pub(super) pointer: AtomicPtr<Node>,
    /// Written in loops and never read.
    pub(super) scratch: AtomicI64,
}

impl Shared {
    pub(super) fn new() -> Shared {
        Shared {
            atomics: Default::default(),
            listed: (0..2).map(|_| AtomicI64::new(0)).collect(),
            boxed: Box::new(AtomicI64::new(0)),
            mutexes: Default::default(),
            locks: Default::default(),
            condvars: Default::default(),
            barriers: [Barrier::new(2), Barrier::new(2)],
            cells: Cells(Default::default()),
            onces: Default::default(),
            values: Default::default(),
            wakers: Default::default(),
            pointer: AtomicPtr::new(std::ptr::null_mut()),
            scratch: AtomicI64::new(0),
        }
    }

    pub(super) fn atomic(&self, at: usize) -> &AtomicI64 {
        const { assert!(ATOMICS == 5) };
        match at {
            0 | 1 => &self.atomics[at],
            2 | 3 => &self.listed[at - 2],
            _ => &self.boxed,
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        free(*self.pointer.get_mut());
    }
}

/// The target of the shared pointer. No other allocation of a thread has its size, so only nodes
/// reuse the memory of nodes.
pub(super) struct Node {
    value: i64,
    uses: AtomicI64,
    _unlike_others: [u64; 21],
}

impl Node {
    /// Allocates a node.
    pub(super) fn make(value: i64) -> *mut Node {
        Box::into_raw(Box::new(Node { value, uses: AtomicI64::new(0), _unlike_others: [0; 21] }))
    }
}

/// Frees a node that no other thread can reach; returns its value, or 0.
pub(super) fn free(node: *mut Node) -> i64 {
    if node.is_null() {
        return 0;
    }
    // SAFETY: `Box::into_raw` made the pointer, and only the thread that took it out of the shared
    // pointer frees it.
    unsafe { Box::from_raw(node) }.value
}

/// Increments the count in a node, which another thread may have freed; returns the old count, or
/// -1 without a node.
pub(super) fn use_node(node: *mut Node) -> i64 {
    // SAFETY: the node was there when the pointer was loaded. If it is freed before the increment,
    // which is a bug that programs have on purpose, the check suspends the thread for good instead.
    unsafe { node.as_ref() }.map_or(-1, |node| node.uses.fetch_add(1, SeqCst))
}

/// The content of the counted `Arc`: its destructor changes atomic 1.
pub(super) struct Counted(Arc<Shared>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.atomic(1).fetch_add(1, SeqCst);
    }
}

/// A value of a thread: its destructor changes atomic 0.
pub(super) struct Guard(pub(super) Arc<Shared>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.atomic(0).fetch_add(1, SeqCst);
    }
}

/// One end of the channel.
pub(super) enum End {
    Sender(Sender<i64>),
    SyncSender(SyncSender<i64>),
    Receiver(Receiver<i64>),
}

/// The values that a thread owns from its start. Fields are dropped in this order.
pub(super) struct Kit {
    pub(super) arc: Option<Arc<Counted>>,
    pub(super) weak: Option<Weak<Counted>>,
    pub(super) end: Option<End>,
}

pub(super) fn kits(program: &Program, shared: &Arc<Shared>) -> Vec<Option<Kit>> {
    let arc = program.has_arc().then(|| Arc::new(Counted(shared.clone())));
    let threads = 0..program.threads.len();
    let mut ends: Vec<Option<End>> = threads.clone().map(|_| None).collect();
    if program.has_channel() {
        let senders = threads.clone().filter(|&thread| thread != program.receiver);
        let receiver = match program.capacity {
            None => {
                let (sender, receiver) = channel();
                senders.for_each(|thread| ends[thread] = Some(End::Sender(sender.clone())));
                receiver
            }
            Some(capacity) => {
                let (sender, receiver) = sync_channel(capacity);
                senders.for_each(|thread| ends[thread] = Some(End::SyncSender(sender.clone())));
                receiver
            }
        };
        ends[program.receiver] = Some(End::Receiver(receiver));
    }
    let weak = arc.as_ref().map(Arc::downgrade);
    let kit = |end| Some(Kit { arc: arc.clone(), weak: weak.clone(), end });
    let kits = ends.into_iter().map(kit).collect();
    drop(arc);
    kits
}
