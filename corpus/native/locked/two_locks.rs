// Two threads read a number and write its successor in two critical sections: an update is lost.
// The fast paths of the standard library's mutex are locked instructions.
use std::sync::{Arc, Mutex};
use std::thread;

fn increment(number: &Mutex<u32>) {
    let seen = *number.lock().unwrap();
    *number.lock().unwrap() = seen + 1;
}

fn main() {
    let number = Arc::new(Mutex::new(0));
    let other = number.clone();
    let thread = thread::spawn(move || increment(&other));
    increment(&number);
    thread.join().unwrap();
    assert_eq!(*number.lock().unwrap(), 2);
}
