//! What the cases share: a loop that runs a scenario natively, and the smallest executor.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

/// Runs the scenario again and again for `STRESS_SECONDS` and prints how often it ran and panicked.
/// A crash ends the process. So does a hang of `STRESS_SECONDS`, with the exit status 86.
pub fn stress(scenario: fn()) {
    let seconds = std::env::var("STRESS_SECONDS").ok().and_then(|text| text.parse().ok());
    let limit = Duration::from_secs_f64(seconds.unwrap_or(10.0));
    static RAN: AtomicU64 = AtomicU64::new(0);
    std::panic::set_hook(Box::new(|_| {}));
    thread::spawn(move || {
        let mut before = u64::MAX;
        loop {
            let now = RAN.load(Relaxed);
            if now == before {
                println!("hangs after {now}");
                std::process::exit(86);
            }
            before = now;
            thread::sleep(limit.max(Duration::from_secs(2)));
        }
    });
    let (started, mut failed) = (Instant::now(), 0);
    while started.elapsed() < limit {
        failed += u64::from(catch_unwind(AssertUnwindSafe(scenario)).is_err());
        RAN.fetch_add(1, Relaxed);
    }
    println!("stress: {} runs, {failed} failed", RAN.load(Relaxed));
    std::process::exit(0);
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Runs a future to its end in the calling thread, which is parked while the future waits.
pub fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        thread::park();
    }
}

/// Polls a future once. Its waker wakes no thread.
pub fn poll_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
