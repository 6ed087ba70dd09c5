// A spawned thread may run before its creator continues, which the creator takes for impossible.
use std::sync::{Arc, Mutex};
use std::thread;

fn main() {
    let count = Arc::new(Mutex::new(0));
    let other = count.clone();
    let thread = thread::spawn(move || *other.lock().expect("not poisoned") += 1);
    let seen = *count.lock().expect("not poisoned");
    assert_eq!(seen, 0, "the thread was first");
    thread.join().expect("it does not panic");
}
