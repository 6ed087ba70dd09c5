//! Two threads try to become the leader with a compare-and-swap: exactly one does.

use super::{sync, thread};
use sync::Arc;
use sync::atomic::{AtomicUsize, Ordering::SeqCst};

pub fn run() {
    let leader = Arc::new(AtomicUsize::new(0));
    let leaders = Arc::new(AtomicUsize::new(0));
    let candidate = |me: usize| {
        let (leader, leaders) = (leader.clone(), leaders.clone());
        move || {
            if leader.compare_exchange(0, me, SeqCst, SeqCst).is_ok() {
                leaders.fetch_add(1, SeqCst);
            }
        }
    };
    let a = thread::spawn(candidate(1));
    let b = thread::spawn(candidate(2));
    a.join().unwrap();
    b.join().unwrap();
    assert_eq!(leaders.load(SeqCst), 1, "there is one leader");
}
