//! Two threads add to a counter. The argument `in-turn` makes them take turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

fn main() {
    let counter = Arc::new(AtomicU32::new(0));
    let other = counter.clone();
    let adding = thread::spawn(move || gate::add_carelessly(&other));
    let adding = if std::env::args().any(|arg| arg == "in-turn") {
        adding.join().unwrap();
        None
    } else {
        Some(adding)
    };
    gate::add_carelessly(&counter);
    adding.map(|adding| adding.join().unwrap());
    assert_eq!(counter.load(Ordering::SeqCst), 2);
}
