//! Futures and tasks under every schedule.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::Mutex as StdMutex;
use std::task::Poll;

use preempt::future::{AtomicWaker, JoinError, block_on, spawn, yield_now};
use preempt::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use preempt::sync::{Arc, Mutex};
use preempt::{Check, FailureKind, thread};

#[track_caller]
fn results<T: Ord + Send>(body: impl Fn() -> T + Sync) -> BTreeSet<T> {
    body();
    let seen = StdMutex::new(BTreeSet::new());
    let outcome = Check::new().unbounded().run(|| {
        let result = body();
        seen.lock().unwrap().insert(result);
    });
    assert!(outcome.complete && outcome.findings.is_empty(), "{:?}", outcome.findings);
    seen.into_inner().unwrap()
}

/// A gate that one task opens and another waits for.
#[derive(Default)]
struct Gate {
    open: AtomicBool,
    waker: AtomicWaker,
}

impl Gate {
    fn open(&self) {
        self.open.store(true, SeqCst);
        self.waker.wake();
    }

    async fn wait(&self) {
        poll_fn(|context| {
            self.waker.register_by_ref(context.waker());
            if self.open.load(SeqCst) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await
    }

    /// Checks the flag before it registers its waker, so that it may miss the wake.
    async fn wait_wrongly(&self) {
        poll_fn(|context| {
            if self.open.load(SeqCst) {
                return Poll::Ready(());
            }
            self.waker.register(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

#[test]
fn a_wake_is_never_lost() {
    let seen = results(|| {
        let gate = Arc::new(Gate::default());
        let t = thread::spawn({
            let gate = gate.clone();
            move || gate.open()
        });
        block_on(gate.wait());
        t.join().unwrap();
    });
    assert_eq!(seen.len(), 1);
}

#[test]
fn a_lost_wake_is_a_deadlock() {
    let outcome = Check::new().run(|| {
        let gate = Arc::new(Gate::default());
        let t = thread::spawn({
            let gate = gate.clone();
            move || gate.open()
        });
        block_on(gate.wait_wrongly());
        t.join().unwrap();
    });
    assert_eq!(outcome.findings[0].failure.kind, FailureKind::Deadlock);
}

#[test]
fn tasks_run_in_every_order() {
    let seen = results(|| {
        let log = Arc::new(Mutex::new(Vec::new()));
        let tasks: Vec<_> = (0..2)
            .map(|at| {
                let log = log.clone();
                spawn(async move { log.lock().unwrap().push(at) })
            })
            .collect();
        block_on(async {
            for task in tasks {
                task.await.unwrap();
            }
        });
        Arc::into_inner(log).unwrap().into_inner().unwrap()
    });
    assert!(seen.contains(&vec![0, 1]) && seen.contains(&vec![1, 0]), "{seen:?}");
}

#[test]
fn a_task_may_be_aborted_or_not() {
    let body = || {
        let gate = Arc::new(Gate::default());
        let task = spawn({
            let gate = gate.clone();
            async move {
                gate.wait().await;
                1
            }
        });
        task.abort();
        gate.open();
        let result = block_on(task);
        result.map_err(|why| why == JoinError::Cancelled)
    };
    assert_eq!(results(body), BTreeSet::from([Ok(1), Err(true)]));
}

#[test]
fn yielding_lets_others_run() {
    let seen = results(|| {
        let n = Arc::new(AtomicUsize::new(0));
        let task = spawn({
            let n = n.clone();
            async move {
                n.store(1, SeqCst);
                yield_now().await;
                n.store(2, SeqCst);
            }
        });
        let seen = n.load(SeqCst);
        block_on(task).unwrap();
        seen
    });
    assert_eq!(seen.into_iter().filter(|seen| *seen <= 2).count(), 3);
}

#[test]
fn the_panic_of_a_task_is_found() {
    let outcome = Check::new().run(|| {
        let task = spawn(async { panic!("in a task") });
        let _: Result<(), _> = block_on(task);
    });
    assert!(outcome.findings[0].failure.message.contains("in a task"), "{:?}", outcome.findings);
}
