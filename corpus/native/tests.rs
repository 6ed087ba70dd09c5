// Tests of Rust, which libtest runs: panics that a test expects, and one that it does not.
use std::sync::{Arc, Mutex};
use std::thread;

#[test]
#[should_panic(expected = "on purpose")]
fn expects_a_panic() {
    panic!("on purpose");
}

#[test]
fn handles_a_panic() {
    let failed = thread::spawn(|| panic!("handled")).join();
    assert!(failed.is_err());
}

#[test]
fn is_first() {
    let count = Arc::new(Mutex::new(0));
    let other = count.clone();
    let thread = thread::spawn(move || *other.lock().expect("not poisoned") += 1);
    assert_eq!(*count.lock().expect("not poisoned"), 0, "the thread was first");
    thread.join().expect("it does not panic");
}
