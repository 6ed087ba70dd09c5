//! A thread reads a flag and then waits at a barrier. It assumes that it has seen the flag set if
//! it is the last to arrive; the other thread can set the flag and arrive in between.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::{sync::LazyLock, thread};

static FLAG: AtomicBool = AtomicBool::new(false);
static BOTH: LazyLock<Barrier> = LazyLock::new(|| Barrier::new(2));

fn main() {
    LazyLock::force(&BOTH);
    let other = thread::spawn(|| {
        FLAG.store(true, SeqCst);
        BOTH.wait();
    });
    let seen = FLAG.load(SeqCst);
    if BOTH.wait().is_leader() {
        assert!(seen, "the other thread was first");
    }
    other.join().unwrap();
}
