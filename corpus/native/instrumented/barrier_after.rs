//! As barrier_leader, but the flag is read after the barrier.

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
    BOTH.wait();
    assert!(FLAG.load(SeqCst), "both threads have arrived");
    other.join().unwrap();
}
