//! Checks that use the threads, locks and channels of other crates: each fails in the same way in
//! every run, with the position and advice. The other tests of this kind imitate such crates; these
//! use the crates themselves.
//!
//! A binary of its own, because the pool of rayon belongs to the process.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use std::sync::Arc as StdArc;

use preempt::sync::Arc;
use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use preempt::{Check, thread};

/// Checks that `body` is refused with a message that contains all `words` and a position in this
/// file.
#[track_caller]
fn refused(body: impl Fn() + Sync, words: &[&str]) {
    let why = match Check::new().try_run(body) {
        Ok(outcome) => panic!("{:?}, {}", outcome.verdict, outcome.guarantee()),
        Err(why) => why.to_string(),
    };
    assert!(why.contains("foreign_crates.rs:") && why.contains("allow_uncontrolled"), "{why}");
    assert!(words.iter().all(|word| why.contains(word)), "{why}");
}

/// Two threads that change a number with the lock `with`, and switch while they hold it.
fn two_users<L: Send + Sync + 'static>(lock: L, with: fn(&L, &dyn Fn())) {
    let shared = Arc::new((lock, AtomicUsize::new(0)));
    let t = thread::spawn({
        let shared = shared.clone();
        move || {
            with(&shared.0, &|| {
                shared.1.fetch_add(1, SeqCst);
            })
        }
    });
    with(&shared.0, &|| {
        shared.1.fetch_add(1, SeqCst);
    });
    t.join().expect("the thread does not panic");
}

/// Uses rayon as a crate under test may do: the test itself does not name it.
#[inline(never)]
fn sum(n: usize) -> usize {
    let (a, b) = rayon::join(|| n + 1, || n + 2);
    a + b
}

#[test]
fn rayon() {
    // The source of the test decides, whether or not the pool is already running.
    refused(
        || {
            rayon::join(|| 1, || 2);
        },
        &[],
    );
    refused(|| rayon::scope(|scope| scope.spawn(|_| ())), &[]);
    let pool = || {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads");
        assert_eq!(pool.install(|| sum(1)), 5);
    };
    refused(pool, &["main starts a thread", "of rayon"]);
    refused(
        || {
            use rayon::prelude::*;
            assert_eq!((0..9usize).into_par_iter().sum::<usize>(), 36);
        },
        &["rayon"],
    );
    // The pool is running by now. Work that code elsewhere passes to it is not detected.
    let outcome = Check::new().allow_uncontrolled().run(|| assert_eq!(sum(1), 5));
    assert!(outcome.findings.is_empty() && outcome.complete, "{}", outcome.guarantee());
}

#[test]
fn tokio_threads() {
    let several = || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build();
        let runtime = runtime.expect("threads");
        assert_eq!(runtime.block_on(async { tokio::spawn(async { 1 }).await.ok() }), Some(1));
    };
    refused(several, &["main starts a thread", "of tokio"]);
    let blocking = || {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let task = async { tokio::task::spawn_blocking(|| 1).await.ok() };
        assert_eq!(runtime.block_on(task), Some(1));
    };
    refused(blocking, &["main starts a thread", "of tokio"]);
    // A single-threaded runtime is part of its thread.
    let outcome = Check::new().run(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        assert_eq!(runtime.block_on(async { tokio::spawn(async { 1 }).await.ok() }), Some(1));
    });
    assert!(outcome.findings.is_empty() && outcome.complete, "{}", outcome.guarantee());
}

#[test]
fn a_lock_of_parking_lot_that_blocks() {
    let body = || {
        two_users(parking_lot::Mutex::new(()), |lock, f| {
            let _guard = lock.lock();
            f();
        })
    };
    refused(body, &[" blocks at ", "of lock_api"]);
}

#[test]
fn a_reader_writer_lock_of_parking_lot_that_blocks() {
    let body = || {
        two_users(parking_lot::RwLock::new(()), |lock, f| {
            let _guard = lock.write();
            f();
        })
    };
    refused(body, &[" blocks at ", "of lock_api"]);
}

#[test]
fn a_lock_of_tokio_that_blocks() {
    let body = || {
        two_users(tokio::sync::Mutex::new(()), |lock, f| {
            let _guard = lock.blocking_lock();
            f();
        })
    };
    refused(body, &[" blocks at ", "of tokio"]);
}

#[test]
fn a_channel_of_crossbeam_that_blocks() {
    let body = || {
        let (sender, receiver) = crossbeam_channel::unbounded();
        let t = thread::spawn(move || sender.send(1).expect("the receiver exists"));
        assert_eq!(receiver.recv(), Ok(1));
        t.join().expect("the thread does not panic");
    };
    refused(body, &["main blocks at ", "of crossbeam-channel"]);
}

#[test]
fn a_channel_of_tokio_that_blocks() {
    let body = || {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let t = thread::spawn(move || sender.send(1).expect("the receiver exists"));
        assert_eq!(receiver.blocking_recv(), Ok(1));
        t.join().expect("the thread does not panic");
    };
    refused(body, &["main blocks at ", "of tokio"]);
}

/// Nothing blocks and no controlled object is shared; the source of the test shows the reason.
#[test]
fn threads_that_share_only_foreign_locks_and_channels() {
    let lock = || {
        let n = StdArc::new(parking_lot::Mutex::new(0));
        let t = thread::spawn({
            let n = n.clone();
            move || *n.lock() += 1
        });
        *n.lock() += 1;
        t.join().expect("the thread does not panic");
    };
    refused(lock, &["only one schedule", "`parking_lot::Mutex`"]);
    let channel = || {
        let (sender, receiver) = crossbeam_channel::unbounded();
        let t = thread::spawn(move || sender.send(1).expect("the receiver exists"));
        let _ = receiver.try_recv();
        t.join().expect("the thread does not panic");
    };
    refused(channel, &["only one schedule", "`crossbeam_channel::unbounded`"]);
}
