//! Loops that wait until an atomic is not 0.

use std::future::poll_fn;
use std::sync::PoisonError;
use std::task::Poll;

use preempt::future::block_on;
use preempt::sync::Mutex;
use preempt::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use preempt::sync::atomic::{AtomicBool, AtomicI64};
use preempt::{hint, thread};

use super::shared::Shared;
use crate::program::Wait;

pub(super) fn wait_for(shared: &Shared, atomic: &AtomicI64, wait: Wait) {
    match wait {
        Wait::Spin => {
            while atomic.load(SeqCst) == 0 {
                hint::spin_loop();
            }
        }
        Wait::Yield => {
            while atomic.load(SeqCst) == 0 {
                thread::yield_now();
            }
        }
        Wait::Counting => {
            while atomic.load(SeqCst) == 0 {
                shared.scratch.fetch_add(1, Relaxed);
                thread::yield_now();
            }
        }
        Wait::Flag => {
            let flag = AtomicBool::new(false);
            loop {
                assert!(
                    flag.compare_exchange(false, true, AcqRel, Acquire).is_ok(),
                    "nobody else has the flag"
                );
                let ready = atomic.load(SeqCst) != 0;
                flag.store(false, Release);
                if ready {
                    break;
                }
                thread::yield_now();
            }
        }
        Wait::Locked => {
            let lock = Mutex::new(());
            loop {
                let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
                let ready = atomic.load(SeqCst) != 0;
                drop(guard);
                if ready {
                    break;
                }
                thread::yield_now();
            }
        }
        Wait::Future => block_on(poll_fn(|context| {
            if atomic.load(SeqCst) != 0 {
                return Poll::Ready(());
            }
            context.waker().wake_by_ref();
            Poll::Pending
        })),
    }
}
