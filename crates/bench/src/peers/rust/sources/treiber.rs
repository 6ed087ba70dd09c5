//! Treiber's stack, with nodes in an array that are never freed, so that there is no ABA problem.

use super::Arc;
use super::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use super::thread;

/// The end of the list; nodes are numbered from 1.
const NIL: usize = 0;

struct Stack {
    head: AtomicUsize,
    next: [AtomicUsize; 3],
}

impl Stack {
    fn new() -> Stack {
        Stack { head: AtomicUsize::new(NIL), next: std::array::from_fn(|_| AtomicUsize::new(NIL)) }
    }

    fn push(&self, node: usize) {
        loop {
            let head = self.head.load(SeqCst);
            self.next[node].store(head, SeqCst);
            if self.head.compare_exchange(head, node, SeqCst, SeqCst).is_ok() {
                return;
            }
        }
    }

    fn pop(&self) -> Option<usize> {
        loop {
            let head = self.head.load(SeqCst);
            if head == NIL {
                return None;
            }
            let next = self.next[head].load(SeqCst);
            if self.head.compare_exchange(head, next, SeqCst, SeqCst).is_ok() {
                return Some(head);
            }
        }
    }
}

/// Two threads push a node each, a third pops once: a node is either popped or still on the stack.
pub fn two_push_one_pops() {
    let stack = Arc::new(Stack::new());
    let pushes: Vec<_> = [1, 2]
        .map(|node| {
            let stack = stack.clone();
            thread::spawn(move || stack.push(node))
        })
        .into();
    let pop = thread::spawn({
        let stack = stack.clone();
        move || stack.pop()
    });
    for push in pushes {
        push.join().expect("no thread panics");
    }
    let mut nodes: Vec<usize> = pop.join().expect("no thread panics").into_iter().collect();
    let mut node = stack.head.load(SeqCst);
    while node != NIL {
        nodes.push(node);
        node = stack.next[node].load(SeqCst);
    }
    nodes.sort_unstable();
    assert_eq!(nodes, [1, 2]);
}
