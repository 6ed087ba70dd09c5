//! A queue whose `pop` looks and takes in two critical sections: `push(1); pop() || pop()` is not
//! linearizable.

use std::collections::VecDeque;

use preempt::linearize;
use preempt::sync::Mutex;

#[derive(Default)]
struct Queue(Mutex<VecDeque<u32>>);

impl Queue {
    fn push(&self, value: u32) {
        self.0.lock().expect("no thread panics").push_back(value);
    }

    fn pop(&self) -> Option<u32> {
        if self.0.lock().expect("no thread panics").is_empty() {
            return None;
        }
        // Another thread may have taken the element meanwhile.
        Some(self.0.lock().expect("no thread panics").pop_front().unwrap_or(0))
    }
}

fn main() {
    let outcome = linearize(Queue::default).op1("push", Queue::push).op("pop", Queue::pop).run();
    println!("{outcome}");
    println!("{}", outcome.guarantee());
}
