//! Histories that a test records itself: calls and returns of operations inside an ordinary
//! [`check`](fn@crate::check), compared with a serial model.
//!
//! [`linearize`](mod@crate::linearize) generates scenarios and records their histories. Where a
//! test has a scenario of its own, [`history()`] records its calls:
//!
//! ```
//! use std::collections::VecDeque;
//!
//! use preempt::sync::Mutex;
//! use preempt::{history, thread};
//!
//! #[derive(Debug)]
//! enum Call {
//!     Push(u32),
//!     Pop,
//! }
//!
//! fn serial(queue: &mut VecDeque<u32>, call: &Call) -> Option<u32> {
//!     match call {
//!         Call::Push(value) => {
//!             queue.push_back(*value);
//!             None
//!         }
//!         Call::Pop => queue.pop_front(),
//!     }
//! }
//!
//! preempt::check(|| {
//!     let queue = Mutex::new(VecDeque::new());
//!     let (history, [mut a, mut b]) = history(VecDeque::new, serial);
//!     thread::scope(|scope| {
//!         scope.spawn(|| {
//!             a.call(Call::Push(1), || {
//!                 queue.lock().unwrap().push_back(1);
//!                 None
//!             });
//!         });
//!         scope.spawn(|| {
//!             b.call(Call::Pop, || queue.lock().unwrap().pop_front());
//!         });
//!     });
//!     history.check();
//! });
//! ```
//!
//! # What is checked
//!
//! Every call and every return is a step of the search. A return writes an object of its [`Log`],
//! and a call reads those of all other logs, so the happens-before graph of an execution determines
//! which calls had returned before which others were made. A search that executes one schedule of
//! each graph therefore executes every real-time order. [`History::check`] searches for an order of
//! the calls in which the model returns the same results, and which keeps the order of calls that
//! did not overlap. If there is none, the check fails with [`FailureKind::Linearizability`].
//!
//! **Do not record real time with a clock of your own**, such as a counter that is read before and
//! after an operation. If the counter is not one of Preempt's objects, it shows the order of the
//! one schedule that the search happens to execute for a graph, and errors are missed. If it is
//! one, such as an `AtomicU64`, it orders all events and multiplies the schedules.
//!
//! # The model
//!
//! The model runs outside the schedule, one call after the other. It may be the structure under
//! test itself: then its own serial behaviour is the specification. It must not wait. It may call
//! [`choose`](crate::choose()): then each of its results is correct.
//!
//! An execution in which a thread waits forever is a deadlock, as in any check. For operations that
//! may block, use [`linearize`](mod@crate::linearize).

mod record;
mod specification;

use std::array;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use preempt_linearize::Criterion;
use preempt_replay::{NO_OBJECT, Returns};

use self::record::Record;
use self::specification::Run;
use crate::FailureKind;
use crate::runtime::{harness, inside, outside, unobserved, with};

/// Begins a history: `make` makes a model, and `serial` performs a call on it. Each of the `N` logs
/// records the calls of one thread.
///
/// See [the module](mod@crate::history). Outside a check, calls are recorded as well, in the order
/// in which they happen.
///
/// # Panics
///
/// If there are more than 255 logs.
#[must_use = "a history is checked by `History::check`"]
pub fn history<M, C, R, const N: usize>(
    make: impl Fn() -> M + Send + Sync + 'static,
    serial: impl Fn(&mut M, &C) -> R + Send + Sync + 'static,
) -> (History<C, R>, [Log<C, R>; N])
where
    M: 'static,
    C: Debug + Send + 'static,
    R: Clone + PartialEq + Debug + Send + 'static,
{
    let threads = u8::try_from(N).expect("a history has at most 255 logs");
    let run = move |calls: &[&C]| {
        let mut model = make();
        let (last, before) = calls.split_last().expect("a sequence of calls is not empty");
        before.iter().for_each(|call| drop(serial(&mut model, call)));
        serial(&mut model, last)
    };
    let shared = unobserved(|| {
        let run: Run<C, R> = Box::new(run);
        Arc::new(Shared { run, record: Mutex::new(Record::new(N)) })
    });
    let weak = Arc::downgrade(&shared);
    let (first, owner) = if inside() {
        let first = with(|runtime| {
            runtime.histories.push(shared);
            runtime.begin_returns(threads)
        });
        (first, None)
    } else {
        (NO_OBJECT, Some(shared))
    };
    let log = |caller: usize| Log {
        shared: weak.clone(),
        returns: Returns { first, threads, caller: caller as u8 },
        not_shared: PhantomData,
    };
    let logs = array::from_fn(log);
    (History { shared: weak, owner, criterion: Criterion::Linearizable }, logs)
}

/// What a history and its logs share.
struct Shared<C, R> {
    run: Run<C, R>,
    record: Mutex<Record<C, R>>,
}

impl<C, R> Shared<C, R> {
    fn record(&self) -> MutexGuard<'_, Record<C, R>> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Calls `f` with what a history and its logs share.
///
/// # Panics
///
/// If the history belongs to an execution that is over.
fn with_shared<C, R, T>(shared: &Weak<Shared<C, R>>, f: impl FnOnce(&Shared<C, R>) -> T) -> T {
    unobserved(|| f(&shared.upgrade().expect("a history is used in the execution that began it")))
}

/// A history that is being recorded: see [`history()`].
#[must_use = "a history is checked by `History::check`"]
pub struct History<C, R> {
    /// Owned by the execution, or by `owner` outside a check.
    shared: Weak<Shared<C, R>>,
    owner: Option<Arc<Shared<C, R>>>,
    criterion: Criterion,
}

impl<C: Debug + 'static, R: PartialEq + Debug + 'static> History<C, R> {
    /// Checks this condition instead of linearizability.
    pub fn criterion(mut self, criterion: Criterion) -> History<C, R> {
        self.criterion = criterion;
        self
    }

    /// Fails the check unless a serial execution of the model explains the results. All calls must
    /// have returned: join the threads first.
    ///
    /// # Panics
    ///
    /// If a call has not returned, if there are more than 64 calls, or if the model panics. Outside
    /// a check, also if no serial execution explains the results.
    #[track_caller]
    pub fn check(self) {
        let place = Location::caller();
        let refusal = with_shared(&self.shared, |shared| shared.record().obstacle());
        if let Some(refusal) = refusal {
            panic!("{refusal}");
        }
        let judged = with_shared(&self.shared, |shared| {
            let record = std::mem::take(&mut *shared.record());
            outside(|| record.judge(&shared.run, self.criterion))
        });
        let wrong = match judged {
            Ok(wrong) => wrong,
            Err(panic) => panic!("the model of a history panicked: {panic}"),
        };
        drop(self.owner);
        let Some(message) = wrong else { return };
        if !inside() {
            panic!("{message}");
        }
        with(|runtime| runtime.fail(FailureKind::Linearizability, message, Some(place)));
    }
}

/// Records the calls of one thread: see [`history()`].
pub struct Log<C, R> {
    shared: Weak<Shared<C, R>>,
    returns: Returns,
    /// A log records one call at a time.
    not_shared: PhantomData<std::cell::Cell<()>>,
}

impl<C: Debug + 'static, R: Clone + Debug + 'static> Log<C, R> {
    /// Records the call, performs it, and records its result.
    #[track_caller]
    pub fn call(&mut self, call: C, f: impl FnOnce() -> R) -> R {
        self.begin(call);
        let result = f();
        self.end(&result);
        result
    }

    /// Records that an operation is called. [`Log::end`] follows.
    ///
    /// # Panics
    ///
    /// If the last call of this log has not returned.
    #[track_caller]
    pub fn begin(&mut self, call: C) {
        let caller = self.returns.caller.into();
        if inside() {
            harness::call(self.returns, || format!("{call:?}"));
        }
        let is_open = with_shared(&self.shared, |shared| {
            shared.record().begin(caller, call, thread_name(caller))
        });
        assert!(is_open, "a log records one call at a time: `end` comes before the next `begin`");
    }

    /// Records that the last call returns `result`.
    ///
    /// # Panics
    ///
    /// If there is no call that has not returned.
    #[track_caller]
    pub fn end(&mut self, result: &R) {
        let caller = self.returns.caller.into();
        if inside() {
            harness::returned(self.returns, || {
                with_shared(&self.shared, |shared| shared.record().label(caller, result))
            });
        }
        let was_open =
            with_shared(&self.shared, |shared| shared.record().end(caller, result.clone()));
        assert!(was_open, "there is no call that has not returned: `begin` comes before `end`");
    }
}

/// The name of the running thread; outside a check, a letter for the log.
fn thread_name(log: usize) -> String {
    if inside() {
        return with(|runtime| runtime.thread_name(runtime.current));
    }
    char::from_u32('A' as u32 + log as u32).unwrap_or('?').to_string()
}
