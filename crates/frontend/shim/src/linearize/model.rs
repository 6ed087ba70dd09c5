//! Structures that are compared with an explicit model instead of with their own serial behaviour.
//!
//! Every operation is given twice. Its code on the model gets the same arguments, fresh ones
//! included, because both are instances of one [`Domain`].

use std::any::Any;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::sync::Arc as StdArc;

use super::arg::{Arg, Domain};
use super::operation::{Fresh, RunModel, arguments, numbers, value};
use super::subject::{Prepare, Subject};
use crate::future::block_on;
use crate::sync::Arc;

/// A structure that threads share, and a model of it: see
/// [`Linearize::model`](super::Linearize::model).
#[must_use = "a structure is checked by `check` or `run`"]
pub struct LinearizeModel<S: 'static, M: 'static> {
    pub(super) subject: Subject<Arc<S>>,
    model: PhantomData<fn() -> M>,
}

/// A structure with a handle for each thread, and a model of it: see
/// [`LinearizeHandles::model`](super::LinearizeHandles::model).
#[must_use = "a structure is checked by `check` or `run`"]
pub struct LinearizeHandlesModel<H: 'static, M: 'static> {
    pub(super) subject: Subject<H>,
    model: PhantomData<fn() -> M>,
}

impl<S: Send + Sync + 'static, M: 'static> LinearizeModel<S, M> {
    pub(super) fn new(subject: Subject<Arc<S>>) -> LinearizeModel<S, M> {
        LinearizeModel { subject, model: PhantomData }
    }

    /// An operation without arguments, on the structure and on the model.
    pub fn op<R>(
        mut self,
        name: &str,
        f: impl Fn(&S) -> R + Send + Sync + 'static,
        model: impl Fn(&mut M) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.op0(name, move |shared: &mut Arc<S>| f(shared));
        self.subject.model_op0(model);
        self
    }

    /// An operation with an argument, on the structure and on the model.
    pub fn op1<A: Arg, R>(
        mut self,
        name: &str,
        f: impl Fn(&S, A) -> R + Send + Sync + 'static,
        model: impl Fn(&mut M, A) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.op1(name, A::domain(), move |shared: &mut Arc<S>, a| f(shared, a));
        self.subject.model_op1(A::domain(), model);
        self
    }

    /// An operation with an argument that takes each of these values, on the structure and on the
    /// model.
    pub fn op1_in<A, R>(
        mut self,
        name: &str,
        values: impl IntoIterator<Item = A>,
        f: impl Fn(&S, A) -> R + Send + Sync + 'static,
        model: impl Fn(&mut M, A) -> R + Send + Sync + 'static,
    ) -> Self
    where
        A: Clone + Debug + Send + Sync + 'static,
        R: PartialEq + Debug + Send + 'static,
    {
        let values = Domain::Values(values.into_iter().collect());
        self.subject.op1(name, values.clone(), move |shared: &mut Arc<S>, a| f(shared, a));
        self.subject.model_op1(values, model);
        self
    }

    /// An operation with two arguments, on the structure and on the model.
    pub fn op2<A: Arg, B: Arg, R>(
        mut self,
        name: &str,
        f: impl Fn(&S, A, B) -> R + Send + Sync + 'static,
        model: impl Fn(&mut M, A, B) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.op2(name, move |shared: &mut Arc<S>, a, b| f(shared, a, b));
        self.subject.model_op2(model);
        self
    }

    /// An operation that is a future, and the same on the model.
    pub fn op_async<R>(
        mut self,
        name: &str,
        f: impl AsyncFn(&S) -> R + Send + Sync + 'static,
        model: impl Fn(&mut M) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.op0(name, move |shared: &mut Arc<S>| block_on(f(shared)));
        self.subject.model_op0(model);
        self
    }

    /// Reads the structure and the model after all threads have ended: see
    /// [`Linearize::observe`](super::Linearize::observe).
    pub fn observe<R>(
        mut self,
        f: impl Fn(&S) -> R + Send + Sync + 'static,
        model: impl Fn(&mut M) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.observer = Some(StdArc::new(move |shared: &mut Arc<S>, _| value(f(shared))));
        self.subject.model_observer = Some(run_of(model));
        self
    }
}

impl<H: 'static, M: 'static> LinearizeHandlesModel<H, M> {
    pub(super) fn new(subject: Subject<H>) -> LinearizeHandlesModel<H, M> {
        LinearizeHandlesModel { subject, model: PhantomData }
    }

    /// An operation without arguments, on a handle and on the model.
    pub fn op<R>(
        mut self,
        name: &str,
        f: impl Fn(&mut H) -> R + Send + Sync + 'static,
        model: impl Fn(&mut M) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.op0(name, f);
        self.subject.model_op0(model);
        self
    }

    /// An operation with an argument, on a handle and on the model.
    pub fn op1<A: Arg, R>(
        mut self,
        name: &str,
        f: impl Fn(&mut H, A) -> R + Send + Sync + 'static,
        model: impl Fn(&mut M, A) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.op1(name, A::domain(), f);
        self.subject.model_op1(A::domain(), model);
        self
    }

    /// An operation with two arguments, on a handle and on the model.
    pub fn op2<A: Arg, B: Arg, R>(
        mut self,
        name: &str,
        f: impl Fn(&mut H, A, B) -> R + Send + Sync + 'static,
        model: impl Fn(&mut M, A, B) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.op2(name, f);
        self.subject.model_op2(model);
        self
    }

    /// Brings a new structure to its initial state through the first handle. The model is made in
    /// that state.
    pub fn before(mut self, f: impl Fn(&mut H) + Send + Sync + 'static) -> Self {
        let prepare: Prepare<H> = StdArc::new(f);
        self.subject.before.push(prepare);
        self
    }

    /// Reads the structure through the first handle, and the model, after all threads have ended:
    /// see [`Linearize::observe`](super::Linearize::observe).
    pub fn observe<R>(
        mut self,
        f: impl Fn(&mut H) -> R + Send + Sync + 'static,
        model: impl Fn(&mut M) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.observer = Some(StdArc::new(move |handle: &mut H, _| value(f(handle))));
        self.subject.model_observer = Some(run_of(model));
        self
    }
}

impl<H: 'static> Subject<H> {
    /// Adds the model of the last operation, which has no arguments.
    fn model_op0<M: 'static, R>(&mut self, model: impl Fn(&mut M) -> R + Send + Sync + 'static)
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.model_instances(vec![run_of(model)]);
    }

    /// Adds the model of the last operation, which has an argument.
    fn model_op1<M: 'static, A, R>(
        &mut self,
        domain: Domain<A>,
        model: impl Fn(&mut M, A) -> R + Send + Sync + 'static,
    ) where
        A: Clone + Debug + Send + Sync + 'static,
        R: PartialEq + Debug + Send + 'static,
    {
        let model = StdArc::new(model);
        let runs = arguments(domain).into_iter().map(|argument| {
            let model = model.clone();
            let run = move |of: &mut dyn Any, Fresh([number, _]): Fresh| {
                value(model(downcast(of), argument.get(number)))
            };
            StdArc::new(run) as RunModel
        });
        self.model_instances(runs.collect());
    }

    /// Adds the model of the last operation, which has two arguments.
    fn model_op2<M: 'static, A: Arg, B: Arg, R>(
        &mut self,
        model: impl Fn(&mut M, A, B) -> R + Send + Sync + 'static,
    ) where
        R: PartialEq + Debug + Send + 'static,
    {
        let model = StdArc::new(model);
        let mut runs = Vec::new();
        for first in arguments(A::domain()).into_iter().map(StdArc::new) {
            for second in arguments(B::domain()) {
                let (model, first) = (model.clone(), first.clone());
                let run = move |of: &mut dyn Any, fresh: Fresh| {
                    let (one, other) = numbers(&first, fresh);
                    value(model(downcast(of), first.get(one), second.get(other)))
                };
                runs.push(StdArc::new(run) as RunModel);
            }
        }
        self.model_instances(runs);
    }

    /// Adds the models of the instances of the last operation, in their order.
    fn model_instances(&mut self, runs: Vec<RunModel>) {
        let first = self.instances.len() - runs.len();
        for (instance, run) in self.instances[first..].iter_mut().zip(runs) {
            instance.model = Some(run);
        }
    }
}

/// The code of an operation without arguments.
fn run_of<M: 'static, R>(model: impl Fn(&mut M) -> R + Send + Sync + 'static) -> RunModel
where
    R: PartialEq + Debug + Send + 'static,
{
    StdArc::new(move |of, _| value(model(downcast(of))))
}

fn downcast<M: 'static>(model: &mut dyn Any) -> &mut M {
    model.downcast_mut().expect("the model has the type that its constructor returns")
}
