//! Two threads set flags of one word and take a value if both flags are set. The value is taken by
//! plain accesses directly after the atomic operation, so the two orders of the operations alone do
//! not show that both threads may find it.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::thread;

static FLAGS: AtomicU32 = AtomicU32::new(0);
static VALUE: Shared = Shared(UnsafeCell::new(Some(1)));

struct Shared(UnsafeCell<Option<u32>>);

// Wrong: nothing keeps threads from using it at the same time.
unsafe impl Sync for Shared {}

fn set_and_take(flag: u32, other: u32) {
    // Wrong: the flag is set although the other side may have finished.
    let before = FLAGS.fetch_or(flag, SeqCst);
    if before & other == 0 {
        let value = unsafe { &mut *VALUE.0.get() };
        assert!(value.is_some(), "the value was not taken");
        if FLAGS.load(SeqCst) & other != 0 {
            *value = None;
        }
    } else {
        *unsafe { &mut *VALUE.0.get() } = None;
    }
}

fn main() {
    let one = thread::spawn(|| set_and_take(1, 2));
    set_and_take(2, 1);
    let _ = one.join();
}
