//! Without the feature `check`, the same code compiles to std's types.
#![cfg(not(feature = "check"))]
// `preempt::sync::Arc` is std's here; with the feature it is not, and the paths matter.
#![allow(unused_qualifications, clippy::useless_conversion)]

use preempt::cell::UnsafeCell;
use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use preempt::sync::{Arc, Mutex};
use preempt::thread;

preempt::thread_local! {
    static COUNT: std::cell::Cell<u32> = const { std::cell::Cell::new(1) };
}

#[test]
fn the_same_imports_work_without_the_feature() {
    let n = Arc::new((AtomicUsize::new(0), Mutex::new(0)));
    let t = thread::spawn({
        let n = n.clone();
        move || {
            n.0.fetch_add(1, SeqCst);
            *n.1.lock().expect("mutex poisoned") += COUNT.get();
        }
    });
    t.join().expect("the thread does not panic");
    assert_eq!((n.0.load(SeqCst), *n.1.lock().expect("mutex poisoned")), (1, 1));
    let cell = UnsafeCell::new(1);
    // SAFETY: there is one thread.
    cell.with_mut(|value| unsafe { *value += 1 });
    assert_eq!(cell.into_inner(), 2);
}

preempt::lazy_static! {
    static ref LAZY: AtomicUsize = AtomicUsize::new(7);
}

preempt::test! {
    fn tests_run_once(preempt_is_not_asked()) {
        assert_eq!(LAZY.fetch_add(1, SeqCst), 7);
    }
}

#[test]
fn the_rest_of_the_interface_exists() {
    let cell = UnsafeCell::from(1);
    // SAFETY: there is one thread.
    unsafe { *cell.get_mut().deref() += 1 };
    assert_eq!(cell.get().with(|value| unsafe { *value }), 2);
    let dynamic: Arc<dyn std::fmt::Display> =
        Arc::from(std::sync::Arc::new(1) as std::sync::Arc<dyn std::fmt::Display>);
    assert_eq!(dynamic.to_string(), "1");
    let answer = preempt::future::block_on(async { preempt::future::spawn(async { 42 }).await });
    assert_eq!(answer, Ok(42));
    preempt::future::AtomicWaker::new().wake();
    assert_eq!(preempt::alloc::Track::new(1).into_inner(), 1);
    preempt::hint::spin_loop();
}
