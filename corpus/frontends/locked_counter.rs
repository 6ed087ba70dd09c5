//! Two threads increment under a lock: nothing is lost.

use super::{sync, thread};
use sync::{Arc, Mutex};

pub fn run() {
    let n = Arc::new(Mutex::new(0));
    let increment = |n: Arc<Mutex<usize>>| move || *n.lock().unwrap() += 1;
    let a = thread::spawn(increment(n.clone()));
    let b = thread::spawn(increment(n.clone()));
    a.join().unwrap();
    b.join().unwrap();
    assert_eq!(*n.lock().unwrap(), 2, "no increment is lost");
}
