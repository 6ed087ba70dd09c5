//! Main reads two variables while a thread writes them: it sees the second without the first.

use super::{sync, thread};
use sync::Arc;
use sync::atomic::{AtomicUsize, Ordering::SeqCst};

pub fn run() {
    let x = Arc::new(AtomicUsize::new(0));
    let y = Arc::new(AtomicUsize::new(0));
    let writer = thread::spawn({
        let (x, y) = (x.clone(), y.clone());
        move || {
            x.store(1, SeqCst);
            y.store(1, SeqCst);
        }
    });
    let x_seen = x.load(SeqCst);
    let y_seen = y.load(SeqCst);
    assert_eq!(x_seen, y_seen, "both or none");
    writer.join().unwrap();
}
