//! Two threads use a cell that only claims to be shareable. With the argument `relaxed`, the second
//! one waits for a flag whose memory orders publish nothing; with `acquire`, for one that does.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{env, hint, thread};

struct Shared(UnsafeCell<u32>);

// Wrong, unless the threads take turns.
unsafe impl Sync for Shared {}

static CELL: Shared = Shared(UnsafeCell::new(0));
static READY: AtomicBool = AtomicBool::new(false);

fn main() {
    let argument = env::args().nth(1);
    let (store, load) = match argument.as_deref() {
        Some("acquire") => (Ordering::Release, Ordering::Acquire),
        _ => (Ordering::Relaxed, Ordering::Relaxed),
    };
    let writer = thread::spawn(move || {
        unsafe { *CELL.0.get() = 1 };
        READY.store(true, store);
    });
    while argument.is_some() && !READY.load(load) {
        hint::spin_loop();
    }
    let seen = unsafe { *CELL.0.get() };
    writer.join().unwrap();
    assert!(seen <= 1);
}
