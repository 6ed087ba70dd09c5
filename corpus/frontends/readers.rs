//! Two threads read under a reader-writer lock while main writes.

use super::{sync, thread};
use sync::{Arc, RwLock};

pub fn run() {
    let lock = Arc::new(RwLock::new((0, 0)));
    let reader = |lock: Arc<RwLock<(u32, u32)>>| {
        move || {
            let seen = lock.read().unwrap();
            assert_eq!(seen.0, seen.1, "a reader sees both or none");
        }
    };
    let a = thread::spawn(reader(lock.clone()));
    let b = thread::spawn(reader(lock.clone()));
    let mut guard = lock.write().unwrap();
    guard.0 = 1;
    guard.1 = 1;
    drop(guard);
    a.join().unwrap();
    b.join().unwrap();
}
