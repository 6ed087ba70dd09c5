//! As once_park_lost, but the thread takes part in the initialisation instead of waiting for it.

use std::sync::OnceLock;
use std::thread;

static CELL: OnceLock<u32> = OnceLock::new();

fn main() {
    let other = thread::spawn(|| *CELL.get_or_init(|| 3));
    assert_eq!(*CELL.get_or_init(|| 3), 3);
    assert_eq!(other.join().unwrap(), 3);
}
