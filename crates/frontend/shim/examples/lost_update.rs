//! Two threads add 1 to a counter, but not in one step.
//!
//! `cargo run -p preempt --example lost_update`

use preempt::sync::Arc;
use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use preempt::thread;

fn main() {
    preempt::check(|| {
        let n = Arc::new(AtomicUsize::new(0));
        let add = |n: &AtomicUsize| {
            let old = n.load(SeqCst);
            n.store(old + 1, SeqCst);
        };
        let t = thread::spawn({
            let n = n.clone();
            move || add(&n)
        });
        add(&n);
        t.join().unwrap();
        assert_eq!(n.load(SeqCst), 2);
    });
}
