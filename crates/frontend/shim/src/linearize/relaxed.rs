//! Models of relaxed containers: *k-out-of-order* (Henzinger, Kirsch, Payer, Sezgin and Sokolova,
//! *Quantitative relaxation of concurrent data structures*, POPL 2013).
//!
//! A removal from a k-out-of-order queue returns one of the k + 1 oldest elements, and one from a
//! k-out-of-order stack one of the k + 1 newest. A container is linearizable in that sense if every
//! history has a witness in the relaxed model; the real-time order is that of linearizability.
//!
//! **Deviation.** The paper derives the relaxed specification from costs of transitions. Here the
//! model asks [`out_of_order`] which element to remove, and takes every answer: so the criterion
//! applies to any model that removes elements in an order. A removal fails only if the container is
//! empty, as in the strict model.

use std::cell::Cell;
use std::collections::VecDeque;

use crate::choose;
use crate::runtime::{inside, look};

thread_local! {
    /// The relaxation outside executions, for the model of a history.
    static OUTSIDE: Cell<u32> = const { Cell::new(0) };
}

/// Runs the model of a history, in which removals may pass over `k` elements.
pub(crate) fn relaxed_by<T>(k: u32, f: impl FnOnce() -> T) -> T {
    struct Clear;
    impl Drop for Clear {
        fn drop(&mut self) {
            OUTSIDE.set(0);
        }
    }
    OUTSIDE.set(k);
    let _clear = Clear;
    f()
}

/// The position of the element that a model removes, of `elements` in the order in which a strict
/// model would remove them.
///
/// Under [`Criterion::OutOfOrder(k)`](super::Criterion::OutOfOrder) each of the first k + 1
/// positions is tried, otherwise it is 0. [`Fifo`] and [`Lifo`] call this.
pub fn out_of_order(elements: usize) -> usize {
    let most = if inside() { look(|runtime| runtime.out_of_order) } else { OUTSIDE.get() };
    let choices = elements.min(most as usize + 1).max(1);
    choose(u32::try_from(choices).expect("it is at most k + 1")) as usize
}

/// A queue, as a model: see [`Linearize::model`](super::Linearize::model).
///
/// ```
/// use std::collections::VecDeque;
///
/// use preempt::linearize::{Criterion, Fifo, linearize};
/// use preempt::sync::Mutex;
///
/// #[derive(Default)]
/// struct Queue(Mutex<VecDeque<u32>>);
///
/// linearize(Queue::default)
///     .model(Fifo::new)
///     .op1("push", |queue, value| queue.0.lock().unwrap().push_back(value), Fifo::push)
///     // The second oldest element, if there is one.
///     .op("pop", |queue| {
///         let mut queue = queue.0.lock().unwrap();
///         let second = queue.remove(1);
///         second.or_else(|| queue.pop_front())
///     }, Fifo::pop)
///     .criterion(Criterion::OutOfOrder(1))
///     .operations(3)
///     .check();
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fifo<T>(VecDeque<T>);

impl<T> Fifo<T> {
    /// An empty queue.
    pub fn new() -> Fifo<T> {
        Fifo(VecDeque::new())
    }

    /// Adds an element.
    pub fn push(&mut self, value: T) {
        self.0.push_back(value);
    }

    /// Removes the oldest element, or one that is [out of order](out_of_order).
    pub fn pop(&mut self) -> Option<T> {
        self.0.remove(out_of_order(self.0.len()))
    }

    /// The number of elements.
    pub fn len(&mut self) -> usize {
        self.0.len()
    }

    /// Whether there is no element.
    pub fn is_empty(&mut self) -> bool {
        self.0.is_empty()
    }
}

impl<T> FromIterator<T> for Fifo<T> {
    /// The first element is the oldest.
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Fifo<T> {
        Fifo(values.into_iter().collect())
    }
}

/// A stack, as a model: see [`Linearize::model`](super::Linearize::model).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lifo<T>(VecDeque<T>);

impl<T> Lifo<T> {
    /// An empty stack.
    pub fn new() -> Lifo<T> {
        Lifo(VecDeque::new())
    }

    /// Adds an element.
    pub fn push(&mut self, value: T) {
        self.0.push_front(value);
    }

    /// Removes the newest element, or one that is [out of order](out_of_order).
    pub fn pop(&mut self) -> Option<T> {
        self.0.remove(out_of_order(self.0.len()))
    }

    /// The number of elements.
    pub fn len(&mut self) -> usize {
        self.0.len()
    }

    /// Whether there is no element.
    pub fn is_empty(&mut self) -> bool {
        self.0.is_empty()
    }
}

impl<T> FromIterator<T> for Lifo<T> {
    /// The first element is the newest.
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Lifo<T> {
        Lifo(values.into_iter().collect())
    }
}
