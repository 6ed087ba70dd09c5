//! Two threads exchange their number for the one that is there: no number is lost.

use super::{sync, thread};
use sync::Arc;
use sync::atomic::{AtomicUsize, Ordering::SeqCst};

pub fn run() {
    let slot = Arc::new(AtomicUsize::new(0));
    let sum = Arc::new(AtomicUsize::new(0));
    let exchange = |mine: usize| {
        let (slot, sum) = (slot.clone(), sum.clone());
        move || {
            let got = slot.swap(mine, SeqCst);
            sum.fetch_add(got, SeqCst);
        }
    };
    let a = thread::spawn(exchange(1));
    let b = thread::spawn(exchange(2));
    a.join().unwrap();
    b.join().unwrap();
    assert_eq!(sum.load(SeqCst) + slot.load(SeqCst), 3, "no number is lost");
}
