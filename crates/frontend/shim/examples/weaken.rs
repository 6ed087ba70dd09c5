//! Which orderings does a spin lock need? `cargo run --example weaken`

use preempt::cell::UnsafeCell;
use preempt::sync::atomic::{AtomicBool, Ordering::SeqCst};
use preempt::{Check, hint, thread};

struct SpinLock {
    locked: AtomicBool,
    data: UnsafeCell<u32>,
}

// SAFETY: the lock protects the data, which the check examines.
unsafe impl Sync for SpinLock {}

impl SpinLock {
    fn add(&self) {
        while self.locked.swap(true, SeqCst) {
            hint::spin_loop();
        }
        // SAFETY: as above.
        self.data.with_mut(|data| unsafe { *data += 1 });
        self.locked.store(false, SeqCst);
    }
}

fn main() {
    let orderings = Check::new().unbounded().weaken(|| {
        let lock = SpinLock { locked: AtomicBool::new(false), data: UnsafeCell::new(0) };
        thread::scope(|s| {
            s.spawn(|| lock.add());
            lock.add();
        });
    });
    println!("{orderings}");
}
