//! Operations without their types: a name, instances, and code that returns a value which can be
//! compared and shown.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use super::arg::Domain;
use crate::runtime::unobserved;

/// The result of an operation.
pub(super) trait Value: Any + Send {
    fn equals(&self, other: &dyn Value) -> bool;
    fn text(&self) -> String;
    fn as_any(&self) -> &dyn Any;
}

impl<T: PartialEq + Debug + Send + 'static> Value for T {
    fn equals(&self, other: &dyn Value) -> bool {
        other.as_any().downcast_ref::<T>().is_some_and(|other| self == other)
    }

    fn text(&self) -> String {
        format!("{self:?}")
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A result as a value. Its memory is not the program's.
pub(super) fn value<R: PartialEq + Debug + Send + 'static>(result: R) -> Box<dyn Value> {
    unobserved(|| Box::new(result) as Box<dyn Value>)
}

/// The numbers from which the [fresh](Domain::Fresh) arguments of a call are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fresh(pub(super) [u32; 2]);

/// The code of an operation on a handle.
pub(super) type Run<H> = Arc<dyn Fn(&mut H, Fresh) -> Box<dyn Value> + Send + Sync>;

/// The code of an operation on a model.
pub(super) type RunModel = Arc<dyn Fn(&mut dyn Any, Fresh) -> Box<dyn Value> + Send + Sync>;

/// An operation with one choice of its arguments, fresh ones excepted.
pub(super) struct Instance<H> {
    /// The operation, as an index.
    pub(super) operation: usize,
    pub(super) label: Arc<dyn Fn(Fresh) -> String + Send + Sync>,
    pub(super) run: Run<H>,
    pub(super) model: Option<RunModel>,
}

/// An operation.
#[derive(Clone, Debug, Default)]
pub(super) struct Operation {
    pub(super) name: String,
    pub(super) role: Option<&'static str>,
    pub(super) is_once: bool,
    /// A panic is a result.
    pub(super) may_panic: bool,
    /// It may have several results after the same calls.
    pub(super) is_nondeterministic: bool,
}

/// The value of an argument in one instance.
pub(super) enum Argument<A> {
    Fresh(fn(u32) -> A),
    Value(A),
}

impl<A: Clone> Argument<A> {
    pub(super) fn get(&self, number: u32) -> A {
        match self {
            Argument::Fresh(make) => make(number),
            Argument::Value(value) => value.clone(),
        }
    }
}

/// The numbers of two arguments of a call: the first fresh one is made from the position of the
/// call.
pub(super) fn numbers<A>(first: &Argument<A>, Fresh([one, other]): Fresh) -> (u32, u32) {
    match first {
        Argument::Fresh(_) => (one, other),
        Argument::Value(_) => (one, one),
    }
}

/// The arguments of all instances.
pub(super) fn arguments<A>(domain: Domain<A>) -> Vec<Argument<A>> {
    match domain {
        Domain::Fresh(make) => vec![Argument::Fresh(make)],
        Domain::Values(values) => values.into_iter().map(Argument::Value).collect(),
    }
}
