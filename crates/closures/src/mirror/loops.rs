//! Loops that wait until an atomic is not 0, or for some time.

use std::cell::Cell;
use std::future::poll_fn;
use std::hint::black_box;
use std::sync::PoisonError;
use std::task::Poll;

use preempt::future::block_on;
use preempt::sync::Mutex;
use preempt::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use preempt::sync::atomic::{AtomicBool, AtomicI64};
use preempt::{hint, thread};

use super::shared::Shared;
use crate::program::{Counter, Wait};

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
        Wait::Bare => while atomic.load(SeqCst) == 0 {},
        Wait::Allocating => {
            while atomic.load(SeqCst) == 0 {
                drop(black_box(Box::new(0)));
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
                    "no other thread has the flag"
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

preempt::thread_local! {
    static ROUNDS: Cell<u32> = const { Cell::new(0) };
}

/// Loads until the value is not 0, at most `rounds` times. Returns how often, and the last value.
pub(super) fn poll(atomic: &AtomicI64, rounds: u32, counter: Counter) -> (u32, i64) {
    match counter {
        Counter::Stack => {
            let mut count = 0;
            loop {
                count += 1;
                let value = atomic.load(SeqCst);
                if value != 0 || count == rounds {
                    return (count, value);
                }
            }
        }
        Counter::Heap => {
            let mut count = Box::new(0);
            loop {
                *black_box(&mut *count) += 1;
                let value = atomic.load(SeqCst);
                if value != 0 || *count == rounds {
                    return (*count, value);
                }
            }
        }
        Counter::Local => {
            ROUNDS.with(|count| count.set(0));
            loop {
                let count = ROUNDS.with(|count| {
                    count.set(count.get() + 1);
                    count.get()
                });
                let value = atomic.load(SeqCst);
                if value != 0 || count == rounds {
                    return (count, value);
                }
            }
        }
    }
}
