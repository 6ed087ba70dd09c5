//! A Treiber stack: two threads push, one pops. Every schedule is explored, each happens-before
//! graph once.
//!
//! `cargo run -p preempt --example treiber`
#![allow(clippy::unwrap_used)]

use preempt::sync::Arc;
use preempt::sync::atomic::{AtomicPtr, Ordering::SeqCst};
use preempt::{Check, thread};
use std::ptr::null_mut;

struct Node {
    value: u32,
    next: *mut Node,
}

/// A stack of which one thread at a time may pop.
pub struct Stack {
    head: AtomicPtr<Node>,
}

impl Stack {
    /// An empty one.
    pub fn new() -> Stack {
        Stack { head: AtomicPtr::new(null_mut()) }
    }

    /// Puts a value on top.
    pub fn push(&self, value: u32) {
        let node = Box::into_raw(Box::new(Node { value, next: null_mut() }));
        loop {
            let head = self.head.load(SeqCst);
            // SAFETY: no other thread has the node yet.
            unsafe { (*node).next = head };
            if self.head.compare_exchange(head, node, SeqCst, SeqCst).is_ok() {
                return;
            }
        }
    }

    /// Takes the value from the top.
    pub fn pop(&self) -> Option<u32> {
        loop {
            let head = self.head.load(SeqCst);
            if head.is_null() {
                return None;
            }
            // SAFETY: only the popping thread frees nodes.
            let next = unsafe { (*head).next };
            if self.head.compare_exchange(head, next, SeqCst, SeqCst).is_ok() {
                // SAFETY: the node was removed, and no other thread reads the values of nodes.
                return Some(unsafe { Box::from_raw(head) }.value);
            }
        }
    }
}

impl Default for Stack {
    fn default() -> Stack {
        Stack::new()
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let mut head = *self.head.get_mut();
        while !head.is_null() {
            // SAFETY: no other thread has the stack.
            head = unsafe { Box::from_raw(head) }.next;
        }
    }
}

/// Two threads push, one pops.
pub fn test() {
    let stack = Arc::new(Stack::new());
    let pushers: Vec<_> = [1, 2]
        .map(|value| {
            let stack = stack.clone();
            thread::spawn(move || stack.push(value))
        })
        .into();
    let popper = thread::spawn({
        let stack = stack.clone();
        move || stack.pop()
    });
    pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
    let popped = popper.join().unwrap();
    let mut seen: Vec<u32> = popped.into_iter().chain(std::iter::from_fn(|| stack.pop())).collect();
    seen.sort_unstable();
    assert_eq!(seen, [1, 2]);
}

#[allow(dead_code)]
fn main() {
    let outcome = Check::new().unbounded().run(test);
    println!("{}", outcome.guarantee());
}
