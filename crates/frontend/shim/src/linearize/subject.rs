//! The structure under test: how it is made, and what can be called.

use std::any::Any;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use preempt_linearize::{Criterion, Instance as InstanceRules, Rules, Symmetry};

use super::arg::{Arg, Domain};
use super::operation::{
    Fresh, Instance, Operation, Run, RunModel, Value, arguments, numbers, value,
};
use crate::Check;
use crate::runtime::harness::Progress;
use crate::runtime::{hook, unobserved};

/// Makes a handle for each thread.
pub(super) type Make<H> = Arc<dyn Fn(usize) -> Vec<H> + Send + Sync>;

/// Changes the initial state, before the threads start.
pub(super) type Prepare<H> = Arc<dyn Fn(&mut H) + Send + Sync>;

/// A structure and its operations.
pub(super) struct Subject<H> {
    pub(super) make: Make<H>,
    /// Whether handles may differ, so that roles belong to certain threads.
    pub(super) has_handles: bool,
    pub(super) before: Vec<Prepare<H>>,
    pub(super) operations: Vec<Operation>,
    pub(super) instances: Vec<Instance<H>>,
    pub(super) observer: Option<Run<H>>,
    /// The observer of the model, if there are both.
    pub(super) model_observer: Option<RunModel>,
    /// Makes the explicit specification, if there is one.
    pub(super) model: Option<Arc<dyn Fn() -> Box<dyn Any> + Send + Sync>>,
    pub(super) criterion: Criterion,
    /// The most steps of an operation, if it has to be wait-free.
    pub(super) most_steps: Option<u32>,
    /// The progress that operations have to make.
    pub(super) progress: Progress,
    pub(super) threads: usize,
    pub(super) calls: usize,
    pub(super) per_thread: usize,
    /// The longest generated prefix.
    pub(super) prefixes: usize,
    pub(super) scenario: Option<String>,
    pub(super) check: Check,
    /// The name of the type under test.
    pub(super) type_name: String,
}

impl<H: 'static> Subject<H> {
    pub(super) fn new(make: Make<H>, has_handles: bool, type_name: String) -> Subject<H> {
        Subject {
            make,
            has_handles,
            before: Vec::new(),
            operations: Vec::new(),
            instances: Vec::new(),
            observer: None,
            model_observer: None,
            model: None,
            criterion: Criterion::Linearizable,
            most_steps: None,
            progress: Progress::Any,
            threads: 3,
            calls: 4,
            per_thread: usize::MAX,
            prefixes: 0,
            scenario: None,
            check: Check::new().bound(2),
            type_name,
        }
    }

    /// Adds an operation; its instances follow.
    pub(super) fn add(&mut self, name: &str) {
        self.operations.push(Operation { name: name.to_owned(), ..Operation::default() });
    }

    /// Adds an instance of the last operation.
    pub(super) fn add_instance(
        &mut self,
        label: impl Fn(Fresh) -> String + Send + Sync + 'static,
        run: impl Fn(&mut H, Fresh) -> Box<dyn Value> + Send + Sync + 'static,
    ) {
        let operation = self.operations.len() - 1;
        let (label, run) = (Arc::new(label), Arc::new(run));
        self.instances.push(Instance { operation, label, run, model: None });
    }

    /// Adds an operation without arguments.
    pub(super) fn op0<R>(&mut self, name: &str, f: impl Fn(&mut H) -> R + Send + Sync + 'static)
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.add(name);
        let label = format!("{name}()");
        self.add_instance(move |_| label.clone(), move |handle, _| value(f(handle)));
    }

    /// Adds an operation with an argument.
    pub(super) fn op1<A, R>(
        &mut self,
        name: &str,
        domain: Domain<A>,
        f: impl Fn(&mut H, A) -> R + Send + Sync + 'static,
    ) where
        A: Clone + Debug + Send + Sync + 'static,
        R: PartialEq + Debug + Send + 'static,
    {
        self.add(name);
        let f = Arc::new(f);
        for argument in arguments(domain) {
            let (f, name, argument) = (f.clone(), name.to_owned(), Arc::new(argument));
            let shown = argument.clone();
            self.add_instance(
                move |Fresh([a, _])| format!("{name}({:?})", shown.get(a)),
                move |handle, Fresh([a, _])| value(f(handle, argument.get(a))),
            );
        }
    }

    /// Adds an operation with two arguments.
    pub(super) fn op2<A: Arg, B: Arg, R>(
        &mut self,
        name: &str,
        f: impl Fn(&mut H, A, B) -> R + Send + Sync + 'static,
    ) where
        R: PartialEq + Debug + Send + 'static,
    {
        self.add(name);
        let f = Arc::new(f);
        for first in arguments(A::domain()).into_iter().map(Arc::new) {
            for second in arguments(B::domain()).into_iter().map(Arc::new) {
                let (f, name) = (f.clone(), name.to_owned());
                let (a, b, first) = (first.clone(), second.clone(), first.clone());
                self.add_instance(
                    move |fresh| {
                        let (one, other) = numbers(&a, fresh);
                        format!("{name}({:?}, {:?})", a.get(one), b.get(other))
                    },
                    move |handle, fresh| {
                        let (one, other) = numbers(&first, fresh);
                        value(f(handle, first.get(one), second.get(other)))
                    },
                );
            }
        }
    }

    /// Replaces the serial behaviour of the structure as the specification.
    ///
    /// # Panics
    ///
    /// If operations or an observer were named before: they would have no model.
    #[track_caller]
    pub(super) fn set_model<M: 'static>(&mut self, make: impl Fn() -> M + Send + Sync + 'static) {
        assert!(self.operations.is_empty(), "`model` comes before the operations");
        assert!(self.observer.is_none(), "`model` comes before `observe`");
        self.model = Some(Arc::new(move || Box::new(make()) as Box<dyn Any>));
    }

    /// The operation that was named last.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[track_caller]
    pub(super) fn last(&mut self) -> &mut Operation {
        self.operations.last_mut().expect("`op` comes before what is said about the operation")
    }

    /// The rules by which scenarios are generated.
    pub(super) fn rules(&self) -> Rules {
        let mut roles: Vec<&str> = Vec::new();
        let mut rules = Vec::new();
        for instance in &self.instances {
            let operation = &self.operations[instance.operation];
            let role = operation.role.map(|role| {
                roles.iter().position(|known| *known == role).unwrap_or_else(|| {
                    roles.push(role);
                    roles.len() - 1
                })
            });
            let once = operation.is_once.then_some(instance.operation);
            rules.push(InstanceRules { role, once });
        }
        let has_roles = !roles.is_empty();
        Rules {
            instances: rules,
            // Roles distinguish handles of different kinds.
            symmetry: if self.has_handles && has_roles {
                Symmetry::None
            } else {
                Symmetry::Threads
            },
            threads: self.threads,
            per_thread: self.per_thread,
        }
    }

    /// Makes the structure, brings it to its initial state and calls the prefix.
    pub(super) fn start(&self, threads: usize, prefix: &[(Run<H>, Fresh)]) -> Vec<H> {
        let mut handles = (self.make)(threads);
        assert_eq!(handles.len(), threads, "there is one handle for each thread");
        if let Some(first) = handles.first_mut() {
            self.before.iter().for_each(|before| before(first));
            prefix.iter().for_each(|(run, fresh)| drop(run(first, *fresh)));
        }
        handles
    }
}

/// The result of a call that panicked.
#[derive(Debug, PartialEq)]
struct Panicked(String);

/// Calls an operation; its panic is a result if it may panic.
pub(super) fn perform<H>(
    run: &Run<H>,
    may_panic: bool,
    handle: &mut H,
    fresh: Fresh,
) -> Box<dyn Value> {
    if !may_panic {
        return run(handle, fresh);
    }
    match catch_unwind(AssertUnwindSafe(|| run(handle, fresh))) {
        Ok(value) => value,
        Err(payload) => {
            let text = unobserved(|| hook::text(&*payload));
            value(Panicked(text))
        }
    }
}
