//! Containers that remove elements out of order.

use std::collections::VecDeque;
use std::sync::atomic::Ordering::SeqCst;

use preempt::linearize::{Criterion, Fifo, Lifo, LinearizeOutcome, linearize};
use preempt::sync::Mutex;
use preempt::sync::atomic::AtomicUsize;
use preempt::{Check, Refusal, Verdict, history};

use super::structures::LockQueue;

/// A container of which the n-th removal takes the element at position n modulo `width`. Elements
/// are in the order in which a strict container removes them.
struct Striped {
    elements: Mutex<VecDeque<u32>>,
    removals: AtomicUsize,
    width: usize,
}

impl Striped {
    fn holding(elements: u32, width: usize) -> Striped {
        let elements = Mutex::new((1..=elements).map(|value| 100 + value).collect());
        Striped { elements, removals: AtomicUsize::new(0), width }
    }

    fn push_back(&self, value: u32) {
        self.elements.lock().unwrap().push_back(value);
    }

    fn push_front(&self, value: u32) {
        self.elements.lock().unwrap().push_front(value);
    }

    fn pop(&self) -> Option<u32> {
        let nth = self.removals.fetch_add(1, SeqCst) % self.width;
        let mut elements = self.elements.lock().unwrap();
        let last = elements.len().checked_sub(1)?;
        elements.remove(nth.min(last))
    }
}

fn queue(width: usize, criterion: Criterion) -> LinearizeOutcome {
    linearize(move || Striped::holding(5, width))
        .model(|| Fifo::from_iter(101..=105))
        .op1("push", Striped::push_back, Fifo::push)
        .op("pop", Striped::pop, Fifo::pop)
        .criterion(criterion)
        .operations(3)
        .run()
}

fn stack(width: usize, criterion: Criterion) -> LinearizeOutcome {
    linearize(move || Striped::holding(5, width))
        .model(|| Lifo::from_iter(101..=105))
        .op1("push", Striped::push_front, Lifo::push)
        .op("pop", Striped::pop, Lifo::pop)
        .criterion(criterion)
        .operations(3)
        .run()
}

/// A container of width w is exactly (w − 1)-out-of-order. Fewer elements passed over fail at the
/// first scenario in which enough removals happen.
#[test]
fn the_width_of_a_container_is_its_relaxation() {
    for of in [queue, stack] {
        for width in 1..=3 {
            for k in 0..=3 {
                let outcome = of(width, Criterion::OutOfOrder(k));
                assert_eq!(outcome.is_ok(), k as usize + 1 >= width, "{width}, {k}: {outcome}");
                let name = format!("{k}-out-of-order linearizable");
                assert!(outcome.guarantee().contains(&name), "{}", outcome.guarantee());
                if outcome.is_ok() {
                    assert_eq!(outcome.scenarios, 15);
                }
            }
        }
        let two = of(2, Criterion::OutOfOrder(0)).failed.map(|failed| failed.scenario);
        assert_eq!(two, Some("pop() || pop()".to_owned()));
        let three = of(3, Criterion::OutOfOrder(1)).failed.map(|failed| failed.scenario);
        assert_eq!(three, Some("pop(); pop() || pop()".to_owned()));
        assert!(of(1, Criterion::Linearizable).is_ok());
        assert!(of(2, Criterion::Linearizable).failed.is_some(), "0-out-of-order is strict");
    }
}

/// An element that is lost or returned twice is wrong however much order is given up.
#[test]
fn relaxation_explains_no_lost_element() {
    let outcome = linearize(LockQueue::default)
        .model(Fifo::new)
        .op1("push", LockQueue::push, Fifo::push)
        .op("pop", LockQueue::pop_in_two_steps, Fifo::pop)
        .criterion(Criterion::OutOfOrder(9))
        .run();
    let failed = outcome.failed.as_ref().expect("both threads get the element");
    assert_eq!((failed.scenario.as_str(), outcome.scenarios), ("push(1); pop() || pop()", 7));
}

#[test]
fn a_relaxed_criterion_needs_a_model() {
    let refused = linearize(LockQueue::default)
        .op1("push", LockQueue::push)
        .criterion(Criterion::OutOfOrder(1))
        .try_run();
    assert!(matches!(refused, Err(Refusal::Test(why)) if why.contains("needs a `model`")));
}

/// The same criterion for a history that a test records.
#[test]
fn a_history_may_be_out_of_order() {
    let run = |k| {
        Check::new().run(move || {
            let queue = Striped::holding(3, 2);
            let model = || Fifo::from_iter(101..=103);
            let (history, [mut a]) = history(model, |queue, (): &()| queue.pop());
            for _ in 0..3 {
                a.call((), || queue.pop());
            }
            history.criterion(Criterion::OutOfOrder(k)).check();
        })
    };
    assert_eq!(run(0).verdict, Verdict::Violation);
    assert_eq!(run(1).verdict, Verdict::Ok);
}
