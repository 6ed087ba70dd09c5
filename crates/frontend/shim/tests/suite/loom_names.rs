//! Names and rules of loom that published suites need besides the types of std.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use loom::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use loom::sync::{Arc, Notify};
use loom::thread;
use preempt::loom;

#[track_caller]
fn fails(check: impl FnOnce()) -> String {
    *catch_unwind(AssertUnwindSafe(check))
        .expect_err("the check fails")
        .downcast::<String>()
        .expect("a message")
}

#[test]
fn max_threads_of_loom_is_not_a_limit() {
    assert_eq!(loom::MAX_THREADS, 5);
    // The constant is not a limit here.
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(0);
    builder.check(|| {
        let threads: Vec<_> = (0..loom::MAX_THREADS).map(|_| thread::spawn(|| ())).collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

#[test]
fn access_errors_have_one_type() {
    loom::thread_local! {
        static VALUE: usize = 3;
    }
    fn read() -> Result<usize, loom::lazy_static::AccessError> {
        VALUE.try_with(|value| *value)
    }
    loom::model(|| assert_eq!(read().unwrap(), 3));
}

#[test]
fn a_notification_is_stored_for_the_next_wait() {
    let test = |notifies: bool| {
        let shared = Arc::new((Notify::new(), AtomicUsize::new(0)));
        let t = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.1.store(1, SeqCst);
                if notifies {
                    shared.0.notify();
                }
            }
        });
        shared.0.wait();
        assert_eq!(shared.1.load(SeqCst), 1);
        t.join().unwrap();
    };
    loom::model(move || test(true));
    assert!(fails(|| loom::model(move || test(false))).contains("deadlock"));
    // Outside a check it works on std's threads.
    let notify = std::sync::Arc::new(Notify::default());
    let theirs = notify.clone();
    let t = std::thread::spawn(move || theirs.wait());
    notify.notify();
    t.join().unwrap();
}

/// The panic of a thread fails the model, even if the test ignores the result of `join`.
#[test]
fn an_ignored_panic_fails_the_model() {
    let text = fails(|| {
        loom::model(|| {
            let x = Arc::new(AtomicUsize::new(0));
            let t = thread::spawn({
                let x = x.clone();
                move || assert_eq!(x.load(SeqCst), 0, "seen by the other thread")
            });
            x.store(1, SeqCst);
            let _ = t.join();
        });
    });
    assert!(text.contains("seen by the other thread"), "{text}");
}

loom::lazy_static! {
    static ref COUNT: AtomicUsize = AtomicUsize::new(0);
}

/// The steps that initialise a static are shown at the line that uses it.
#[test]
fn steps_of_statics_are_shown_where_they_are_used() {
    let text = fails(|| {
        loom::model(|| {
            let t = thread::spawn(|| COUNT.fetch_add(1, SeqCst));
            let seen = COUNT.fetch_add(1, SeqCst);
            t.join().unwrap();
            assert_eq!(seen, 0, "the other thread came first");
        });
    });
    assert!(text.contains("COUNT.fetch_add(1, SeqCst)"), "{text}");
    assert!(!text.contains("lazy.rs") && !text.contains("get_or_init(self.init)"), "{text}");
}

/// loom's `spawn` does not require `Send`, whatever configuration flag a crate is built with.
#[test]
fn spawned_closures_need_not_be_send() {
    loom::model(|| {
        let count = Rc::new(AtomicUsize::new(0));
        let theirs = count.clone();
        let t = thread::spawn(move || {
            theirs.fetch_add(1, SeqCst);
            theirs
        });
        count.fetch_add(1, SeqCst);
        assert_eq!(t.join().unwrap().load(SeqCst), 2);
        let builder = thread::Builder::new().name("named".to_owned()).stack_size(4096);
        let named = builder.spawn(move || (thread::current().name().map(str::to_owned), count));
        assert_eq!(named.unwrap().join().unwrap().0.as_deref(), Some("named"));
    });
    // Outside a check it would need `Send`.
    let refused = catch_unwind(|| thread::spawn(|| ())).expect_err("it panics");
    assert!(refused.downcast::<&str>().expect("a message").contains("inside a check"));
}
