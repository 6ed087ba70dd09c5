//! Linearizability: checks a concurrent data structure without hand-written tests.
//!
//! Name a constructor and operations. Preempt generates every small concurrent scenario, smallest
//! first, and explores it. The results of each execution must be those of the same calls made one
//! after the other, in an order that preserves the order of calls that did not overlap. Unless a
//! [model](Linearize::model) is given, the specification is the serial behaviour of the structure
//! itself.
//!
//! ```
//! use std::collections::VecDeque;
//!
//! use preempt::linearize;
//! use preempt::sync::Mutex;
//!
//! #[derive(Default)]
//! struct Queue(Mutex<VecDeque<u32>>);
//!
//! impl Queue {
//!     fn push(&self, value: u32) {
//!         self.0.lock().unwrap().push_back(value);
//!     }
//!
//!     fn pop(&self) -> Option<u32> {
//!         self.0.lock().unwrap().pop_front()
//!     }
//! }
//!
//! linearize(Queue::default).op1("push", Queue::push).op("pop", Queue::pop).check();
//! ```
//!
//! If `pop` checks for an element and removes it in two separate critical sections, the check fails
//! at its seventh scenario, `push(1); pop() || pop()`, with the results as a table, the
//! interleaving and a command that replays it.
//!
//! # What is covered
//!
//! By default all scenarios of up to 4 calls by up to 3 threads, each under all schedules with at
//! most 2 preemptions; [`LinearizeOutcome::guarantee`] states this in one sentence, with numbers.
//! Switches between operations are not preemptions. Calls and returns are steps of the search, so
//! every real-time order is explored.
//!
//! # What is compared
//!
//! Results are compared by [`PartialEq`] and shown by [`Debug`]. An operation may block forever if
//! it also blocks after some serial order of the calls that returned; operations that block need no
//! declaration. Errors that need no comparison, such as data races, panics, leaks and use after
//! free, are found as in any check.
//!
//! A structure whose serial behaviour is wrong passes, because it is its own specification. A
//! [model](Linearize::model) detects that too.

mod arg;
mod concurrent;
mod driver;
mod explain;
mod failed;
mod model;
mod operation;
mod outcome;
mod relaxed;
mod scene;
mod serial;
mod subject;

use std::any::type_name;
use std::fmt::Debug;
use std::panic::Location;
use std::sync::Arc as StdArc;

pub use arg::{Arg, Domain, Key};
pub use model::{LinearizeHandlesModel, LinearizeModel};
pub use outcome::{FailedScenario, LinearizeOutcome, ShapeCoverage};
pub use preempt_linearize::Criterion;
pub(crate) use relaxed::relaxed_by;
pub use relaxed::{Fifo, Lifo, out_of_order};

use self::operation::value;
use self::subject::Subject;
use crate::future::block_on;
use crate::runtime::harness::Progress;
use crate::sync::Arc;
use crate::{Check, Refusal, caveats};

/// Checks a structure that threads share: see [the module](mod@crate::linearize).
pub fn linearize<S: Send + Sync + 'static>(
    make: impl Fn() -> S + Send + Sync + 'static,
) -> Linearize<S> {
    let make = move |threads: usize| {
        let shared = Arc::new(make());
        (0..threads).map(|_| shared.clone()).collect()
    };
    Linearize { subject: Subject::new(StdArc::new(make), false, short_name::<S>()) }
}

/// Checks a structure in which every thread has its own handle, such as the ends of a channel, or
/// caches of a thread. `make` gets the number of threads and returns a handle for each.
///
/// Handles are interchangeable unless operations have [roles](LinearizeHandles::only): then the
/// first role belongs to the first handle, and so on. Handles are dropped after all threads have
/// ended; if a drop matters, make it an operation.
///
/// ```
/// use preempt::linearize_handles;
/// use preempt::sync::mpsc::{Receiver, Sender, channel};
///
/// enum End {
///     Receiver(Receiver<u32>),
///     Sender(Sender<u32>),
/// }
///
/// impl End {
///     fn recv(&mut self) -> Option<u32> {
///         let End::Receiver(end) = self else { unreachable!("only the receiver receives") };
///         end.recv().ok()
///     }
///
///     fn send(&mut self, value: u32) -> bool {
///         let End::Sender(end) = self else { return false };
///         end.send(value).is_ok()
///     }
/// }
///
/// fn ends(threads: usize) -> Vec<End> {
///     let (sender, receiver) = channel();
///     let senders = (1..threads).map(|_| End::Sender(sender.clone()));
///     std::iter::once(End::Receiver(receiver)).chain(senders).collect()
/// }
///
/// linearize_handles(ends)
///     .op("recv", End::recv)
///     .only("receiver")
///     .op1("send", End::send)
///     .operations(3)
///     .check();
/// ```
pub fn linearize_handles<H: 'static>(
    make: impl Fn(usize) -> Vec<H> + Send + Sync + 'static,
) -> LinearizeHandles<H> {
    LinearizeHandles { subject: Subject::new(StdArc::new(make), true, short_name::<H>()) }
}

/// The name of a type without paths, and without its parameters unless it is a tuple, an array or a
/// reference.
fn short_name<T>() -> String {
    let name = type_name::<T>();
    let is_path = name.starts_with(|first: char| first.is_alphabetic());
    let name = name.split_once('<').filter(|_| is_path).map_or(name, |(path, _)| path);
    let ends_path = |c: char| !c.is_alphanumeric() && c != '_' && c != ':';
    name.split_inclusive(ends_path).filter_map(|path| path.rsplit("::").next()).collect()
}

#[test]
fn types_have_short_names() {
    assert_eq!(short_name::<std::sync::Mutex<i32>>(), "Mutex");
    assert_eq!(short_name::<(std::sync::Mutex<i32>, usize)>(), "(Mutex<i32>, usize)");
    assert_eq!(short_name::<[std::cell::Cell<bool>; 2]>(), "[Cell<bool>; 2]");
    assert_eq!(short_name::<u8>(), "u8");
}

/// A structure that threads share, and its operations: see [the module](mod@crate::linearize).
#[must_use = "a structure is checked by `check` or `run`"]
pub struct Linearize<S: 'static> {
    subject: Subject<Arc<S>>,
}

/// A structure with a handle for each thread: see [`linearize_handles`].
#[must_use = "a structure is checked by `check` or `run`"]
pub struct LinearizeHandles<H: 'static> {
    subject: Subject<H>,
}

impl<S: Send + Sync + 'static> Linearize<S> {
    /// An operation without arguments.
    pub fn op<R>(mut self, name: &str, f: impl Fn(&S) -> R + Send + Sync + 'static) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.op0(name, move |shared: &mut Arc<S>| f(shared));
        self
    }

    /// An operation with an argument: see [`Arg`] for its values.
    pub fn op1<A: Arg, R>(self, name: &str, f: impl Fn(&S, A) -> R + Send + Sync + 'static) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.op1_of(name, A::domain(), f)
    }

    /// An operation with an argument that takes each of these values.
    pub fn op1_in<A, R>(
        self,
        name: &str,
        values: impl IntoIterator<Item = A>,
        f: impl Fn(&S, A) -> R + Send + Sync + 'static,
    ) -> Self
    where
        A: Clone + Debug + Send + Sync + 'static,
        R: PartialEq + Debug + Send + 'static,
    {
        self.op1_of(name, Domain::Values(values.into_iter().collect()), f)
    }

    fn op1_of<A, R>(
        mut self,
        name: &str,
        domain: Domain<A>,
        f: impl Fn(&S, A) -> R + Send + Sync + 'static,
    ) -> Self
    where
        A: Clone + Debug + Send + Sync + 'static,
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.op1(name, domain, move |shared: &mut Arc<S>, a| f(shared, a));
        self
    }

    /// An operation with two arguments.
    pub fn op2<A: Arg, B: Arg, R>(
        mut self,
        name: &str,
        f: impl Fn(&S, A, B) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.op2(name, move |shared: &mut Arc<S>, a, b| f(shared, a, b));
        self
    }

    /// An operation that is a future: its thread waits for it. A future that is never ready is an
    /// operation that never returns.
    pub fn op_async<R>(
        mut self,
        name: &str,
        f: impl AsyncFn(&S) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.op0(name, move |shared: &mut Arc<S>| block_on(f(shared)));
        self
    }

    /// An operation with two arguments that is a future.
    pub fn op2_async<A: Arg, B: Arg, R>(
        mut self,
        name: &str,
        f: impl AsyncFn(&S, A, B) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.op2(name, move |shared: &mut Arc<S>, a, b| block_on(f(shared, a, b)));
        self
    }

    /// An operation with an argument that is a future.
    pub fn op1_async<A: Arg, R>(
        mut self,
        name: &str,
        f: impl AsyncFn(&S, A) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.op1(name, A::domain(), move |shared: &mut Arc<S>, a| block_on(f(shared, a)));
        self
    }

    /// Brings a new structure to its initial state. Its calls are not part of a scenario.
    pub fn before(mut self, f: impl Fn(&S) + Send + Sync + 'static) -> Self {
        self.subject.before.push(StdArc::new(move |shared: &mut Arc<S>| f(shared)));
        self
    }

    /// Reads the structure after all threads have ended. Its result has to fit the same serial
    /// order as the results of the calls, so that shorter scenarios show errors.
    pub fn observe<R>(mut self, f: impl Fn(&S) -> R + Send + Sync + 'static) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.observer = Some(StdArc::new(move |shared: &mut Arc<S>, _| value(f(shared))));
        self
    }

    /// Compares with an explicit specification instead of the serial behaviour of the structure.
    /// Each operation is then given twice: on the structure, and on the model.
    ///
    /// The model starts in the state that the structure has after [`before`](Linearize::before). A
    /// model that calls [`choose`](crate::choose()) has several results; declare such an operation
    /// with [`sometimes`](LinearizeModel::sometimes).
    ///
    /// ```
    /// use preempt::linearize;
    /// use preempt::sync::atomic::{AtomicU32, Ordering::SeqCst};
    ///
    /// linearize(|| AtomicU32::new(0))
    ///     .model(|| 0)
    ///     .op("next", |n| n.fetch_add(1, SeqCst), |n: &mut u32| { *n += 1; *n - 1 })
    ///     .check();
    /// ```
    ///
    /// # Panics
    ///
    /// If operations or an observer were named before.
    #[track_caller]
    pub fn model<M: 'static>(
        mut self,
        make: impl Fn() -> M + Send + Sync + 'static,
    ) -> LinearizeModel<S, M> {
        self.subject.set_model(make);
        LinearizeModel::new(self.subject)
    }
}

impl<H: 'static> LinearizeHandles<H> {
    /// An operation without arguments.
    pub fn op<R>(mut self, name: &str, f: impl Fn(&mut H) -> R + Send + Sync + 'static) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.op0(name, f);
        self
    }

    /// An operation with an argument: see [`Arg`] for its values.
    pub fn op1<A: Arg, R>(
        mut self,
        name: &str,
        f: impl Fn(&mut H, A) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.op1(name, A::domain(), f);
        self
    }

    /// An operation with two arguments.
    pub fn op2<A: Arg, B: Arg, R>(
        mut self,
        name: &str,
        f: impl Fn(&mut H, A, B) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.op2(name, f);
        self
    }

    /// An operation with an argument that takes each of these values.
    pub fn op1_in<A, R>(
        mut self,
        name: &str,
        values: impl IntoIterator<Item = A>,
        f: impl Fn(&mut H, A) -> R + Send + Sync + 'static,
    ) -> Self
    where
        A: Clone + Debug + Send + Sync + 'static,
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.op1(name, Domain::Values(values.into_iter().collect()), f);
        self
    }

    /// An operation that is a future: see [`Linearize::op_async`].
    pub fn op_async<R>(
        mut self,
        name: &str,
        f: impl AsyncFn(&mut H) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.op0(name, move |handle: &mut H| block_on(f(handle)));
        self
    }

    /// An operation with an argument that is a future.
    pub fn op1_async<A: Arg, R>(
        mut self,
        name: &str,
        f: impl AsyncFn(&mut H, A) -> R + Send + Sync + 'static,
    ) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.op1(name, A::domain(), move |handle: &mut H, a| block_on(f(handle, a)));
        self
    }

    /// Compares with an explicit specification: see [`Linearize::model`]. There is one model for
    /// all handles.
    ///
    /// # Panics
    ///
    /// If operations or an observer were named before.
    #[track_caller]
    pub fn model<M: 'static>(
        mut self,
        make: impl Fn() -> M + Send + Sync + 'static,
    ) -> LinearizeHandlesModel<H, M> {
        self.subject.set_model(make);
        LinearizeHandlesModel::new(self.subject)
    }

    /// Brings a new structure to its initial state through the first handle.
    pub fn before(mut self, f: impl Fn(&mut H) + Send + Sync + 'static) -> Self {
        self.subject.before.push(StdArc::new(f));
        self
    }

    /// Reads the structure through the first handle after all threads have ended: see
    /// [`Linearize::observe`].
    pub fn observe<R>(mut self, f: impl Fn(&mut H) -> R + Send + Sync + 'static) -> Self
    where
        R: PartialEq + Debug + Send + 'static,
    {
        self.subject.observer = Some(StdArc::new(move |handle: &mut H, _| value(f(handle))));
        self
    }
}

/// The methods that all kinds have.
macro_rules! settings {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> $type {
            /// The operation that was named last is called by one thread only, together with the
            /// other operations of this role: the producer, the owner of a deque.
            #[track_caller]
            pub fn only(mut self, role: &'static str) -> Self {
                self.subject.last().role = Some(role);
                self
            }

            /// The operation that was named last is called at most once in a scenario.
            #[track_caller]
            pub fn once(mut self) -> Self {
                self.subject.last().is_once = true;
                self
            }

            /// A panic of the operation that was named last is a result, not an error.
            #[track_caller]
            pub fn panics(mut self) -> Self {
                self.subject.last().may_panic = true;
                self
            }

            /// The operation that was named last may have several results after the same calls, for
            /// example because its serial executions call [`choose`](crate::choose()). Each of them
            /// is correct.
            #[track_caller]
            pub fn sometimes(mut self) -> Self {
                self.subject.last().is_nondeterministic = true;
                self
            }

            /// The maximum number of threads of a scenario: 3 by default. `PREEMPT_THREADS=n`.
            pub fn threads(mut self, threads: usize) -> Self {
                self.subject.threads = threads;
                self
            }

            /// The maximum number of calls of a scenario, over all threads: 4 by default.
            /// `PREEMPT_OPERATIONS=n`.
            pub fn operations(mut self, calls: usize) -> Self {
                self.subject.calls = calls;
                self
            }

            /// The maximum number of calls of one thread: by default that of the scenario.
            pub fn per_thread(mut self, calls: usize) -> Self {
                self.subject.per_thread = calls;
                self
            }

            /// Checks every scenario also after each sequence of up to this many calls, made by the
            /// first handle before the threads start. This finds errors that need a state which
            /// short scenarios do not reach, such as the ABA problem.
            pub fn prefixes(mut self, calls: usize) -> Self {
                self.subject.prefixes = calls;
                self
            }

            /// Checks this scenario only: `push(1); pop() || pop()`. `PREEMPT_SCENARIO=…`.
            pub fn scenario(mut self, scenario: &str) -> Self {
                self.subject.scenario = Some(scenario.to_owned());
                self
            }

            /// The correctness condition: linearizability by default.
            pub fn criterion(mut self, criterion: Criterion) -> Self {
                self.subject.criterion = criterion;
                self
            }

            /// Fails if an operation takes more than `steps` steps of its own, whatever other
            /// threads do: an upper bound on its accesses to shared objects.
            pub fn wait_free(mut self, steps: u32) -> Self {
                self.subject.most_steps = Some(steps);
                self
            }

            /// Fails if an operation waits for another thread: if there is a state from which it
            /// does not return although its thread runs alone, because it is blocked or repeats a
            /// loop. Such an operation is not obstruction-free.
            ///
            /// A pass covers all states that the bound reaches. This needs a search without a
            /// reduction, such as the default one.
            pub fn obstruction_free(mut self) -> Self {
                self.subject.progress = Progress::ObstructionFree;
                self
            }

            /// Fails if operations are not [obstruction-free](Self::obstruction_free), or if
            /// operations that hinder each other are found of which none returns. Such operations
            /// are not lock-free.
            ///
            /// A pass excludes that a suspended thread stops the others, in all states that the
            /// bound reaches. It does not exclude a livelock: that has infinitely many preemptions.
            /// It is looked for by letting threads take turns of up to 4 steps wherever an
            /// operation repeats a step.
            pub fn lock_free(mut self) -> Self {
                self.subject.progress = Progress::LockFree;
                self
            }

            /// Uses the bound, the memory model and the limits of this check. A time limit applies
            /// to all scenarios together, and [`Check::jobs`] is the number of scenarios that are
            /// checked in parallel. The default is [`Check::bound`] 2.
            pub fn explore(mut self, check: Check) -> Self {
                self.subject.check = check;
                self
            }

            /// Checks all scenarios, or returns why that is not possible.
            #[track_caller]
            pub fn try_run(self) -> Result<LinearizeOutcome, Refusal> {
                driver::run(self.subject, Location::caller())
            }

            /// Checks all scenarios.
            ///
            /// # Panics
            ///
            /// If the check is not possible: see `try_run`.
            #[track_caller]
            pub fn run(self) -> LinearizeOutcome {
                match self.try_run() {
                    Ok(outcome) => outcome,
                    Err(refusal) => panic!("this check cannot be made: {refusal}"),
                }
            }

            /// Checks all scenarios and prints one line that states what was covered.
            ///
            /// # Panics
            ///
            /// With a report if a scenario fails, or if a limit was reached.
            #[track_caller]
            pub fn check(self) {
                let check = self.subject.check.clone();
                let place = Location::caller();
                let outcome = self.run();
                finish(&outcome, check, place);
            }
        }
    };
}

settings!([S: Send + Sync + 'static] Linearize<S>);
settings!([H: 'static] LinearizeHandles<H>);
settings!([S: Send + Sync + 'static, M: 'static] LinearizeModel<S, M>);
settings!([H: 'static, M: 'static] LinearizeHandlesModel<H, M>);

/// Panics with the report of a failure; prints what a pass covers.
#[track_caller]
fn finish(outcome: &LinearizeOutcome, check: Check, place: &'static Location<'static>) {
    let check = crate::settings::of_environment(check).expect("the settings were read before");
    let is_cut = outcome.stopped.is_some() && !check.allow_incomplete;
    if outcome.failed.is_some() || is_cut {
        panic!("{outcome}");
    }
    if !check.quiet {
        caveats::print(&outcome.guarantee(), place);
    }
}
