//! Two locks taken in opposite orders: a deadlock.

use super::{sync, thread};
use sync::{Arc, Mutex};

pub fn run() {
    let left = Arc::new(Mutex::new(()));
    let right = Arc::new(Mutex::new(()));
    let both = |first: &Arc<Mutex<()>>, second: &Arc<Mutex<()>>| {
        let (first, second) = (first.clone(), second.clone());
        move || {
            let _first = first.lock().unwrap();
            let _second = second.lock().unwrap();
        }
    };
    let a = thread::spawn(both(&left, &right));
    let b = thread::spawn(both(&right, &left));
    a.join().unwrap();
    b.join().unwrap();
}
