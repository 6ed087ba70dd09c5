//! Store buffering: with sequential consistency one thread sees the other's store.

use super::{sync, thread};
use sync::Arc;
use sync::atomic::{AtomicUsize, Ordering::SeqCst};

pub fn run() {
    let shared = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
    let seen = Arc::new(AtomicUsize::new(0));
    let side = |mine: usize| {
        let (shared, seen) = (shared.clone(), seen.clone());
        move || {
            shared[mine].store(1, SeqCst);
            let other = shared[1 - mine].load(SeqCst);
            seen.fetch_add(other, SeqCst);
        }
    };
    let a = thread::spawn(side(0));
    let b = thread::spawn(side(1));
    a.join().unwrap();
    b.join().unwrap();
    assert!(seen.load(SeqCst) > 0, "one of them sees the other's store");
}
