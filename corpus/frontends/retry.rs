//! Two threads increment with a compare-and-swap that is repeated until it succeeds.

use super::{sync, thread};
use sync::Arc;
use sync::atomic::{AtomicUsize, Ordering::SeqCst};

pub fn run() {
    let n = Arc::new(AtomicUsize::new(0));
    let increment = |n: Arc<AtomicUsize>| {
        move || {
            loop {
                let seen = n.load(SeqCst);
                if n.compare_exchange(seen, seen + 1, SeqCst, SeqCst).is_ok() {
                    return;
                }
            }
        }
    };
    let a = thread::spawn(increment(n.clone()));
    let b = thread::spawn(increment(n.clone()));
    a.join().unwrap();
    b.join().unwrap();
    assert_eq!(n.load(SeqCst), 2, "no increment is lost");
}
