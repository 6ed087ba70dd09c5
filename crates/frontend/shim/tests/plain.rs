//! Without the feature `check` the same code runs on std's types.
#![cfg(not(feature = "check"))]

use preempt::cell::UnsafeCell;
use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use preempt::sync::{Arc, Mutex};
use preempt::thread;

preempt::thread_local! {
    static COUNT: std::cell::Cell<u32> = const { std::cell::Cell::new(1) };
}

#[test]
fn one_use_serves_both() {
    let n: std::sync::Arc<(AtomicUsize, Mutex<u32>)> = Arc::new((AtomicUsize::new(0), Mutex::new(0)));
    let t = thread::spawn({
        let n = n.clone();
        move || {
            n.0.fetch_add(1, SeqCst);
            *n.1.lock().expect("nobody panics") += COUNT.get();
        }
    });
    t.join().expect("it does not panic");
    assert_eq!((n.0.load(SeqCst), *n.1.lock().expect("nobody panics")), (1, 1));
    let cell = UnsafeCell::new(1);
    // SAFETY: there is one thread.
    cell.with_mut(|value| unsafe { *value += 1 });
    assert_eq!(cell.into_inner(), 2);
}
