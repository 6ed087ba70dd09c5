//! Threads that count: on a shared atomic, under a lock, or separately.

use super::Arc;
use super::sync::Mutex;
use super::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use super::thread;

/// Each thread adds to one atomic.
pub fn atomic(threads: usize, times: usize) {
    let n = Arc::new(AtomicUsize::new(0));
    all(threads, |_| {
        let n = n.clone();
        move || {
            for _ in 0..times {
                n.fetch_add(1, SeqCst);
            }
        }
    });
    assert_eq!(n.load(SeqCst), threads * times);
}

/// Each thread adds to one number under a lock.
pub fn mutex(threads: usize, times: usize) {
    let n = Arc::new(Mutex::new(0));
    all(threads, |_| {
        let n = n.clone();
        move || {
            for _ in 0..times {
                *n.lock().expect("no thread panics") += 1;
            }
        }
    });
    assert_eq!(*n.lock().expect("no thread panics"), threads * times);
}

/// Each thread increments its own atomic: there is nothing to interleave.
pub fn independent<const THREADS: usize>(times: usize) {
    let own: Arc<[AtomicUsize; THREADS]> = Arc::new(std::array::from_fn(|_| AtomicUsize::new(0)));
    all(THREADS, |i| {
        let own = own.clone();
        move || {
            for _ in 0..times {
                own[i].fetch_add(1, SeqCst);
            }
        }
    });
    assert!(own.iter().all(|n| n.load(SeqCst) == times));
}

/// The same in a `Vec`, where a tool cannot identify the atomics by their position in a shared
/// object.
pub fn independent_vec(threads: usize, times: usize) {
    let own: Arc<Vec<AtomicUsize>> = Arc::new((0..threads).map(|_| AtomicUsize::new(0)).collect());
    all(threads, |i| {
        let own = own.clone();
        move || {
            for _ in 0..times {
                own[i].fetch_add(1, SeqCst);
            }
        }
    });
    assert!(own.iter().all(|n| n.load(SeqCst) == times));
}

/// Starts the threads and joins all of them.
fn all<F: FnOnce() + Send + 'static>(threads: usize, body: impl Fn(usize) -> F) {
    let started: Vec<_> = (0..threads).map(|i| thread::spawn(body(i))).collect();
    for thread in started {
        thread.join().expect("no thread panics");
    }
}
