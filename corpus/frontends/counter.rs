//! Two threads increment with a read-modify-write: nothing is lost.

use super::{sync, thread};
use sync::Arc;
use sync::atomic::{AtomicUsize, Ordering::SeqCst};

pub fn run() {
    let n = Arc::new(AtomicUsize::new(0));
    let increment = |n: Arc<AtomicUsize>| {
        move || {
            n.fetch_add(1, SeqCst);
        }
    };
    let a = thread::spawn(increment(n.clone()));
    let b = thread::spawn(increment(n.clone()));
    a.join().unwrap();
    b.join().unwrap();
    assert_eq!(n.load(SeqCst), 2, "no increment is lost");
}
