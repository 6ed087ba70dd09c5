//! Correct uses of the standard library, by name: every access to plain memory is ordered, in part by
//! code that is precompiled.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Barrier, Condvar, LazyLock, Mutex, Once, OnceLock, RwLock, mpsc};
use std::time::Duration;
use std::{env, thread};

/// Plain memory that threads share; the argument of the program decides how they synchronise.
#[derive(Default)]
struct Plain(UnsafeCell<u32>);

unsafe impl Sync for Plain {}

impl Plain {
    fn add(&self) {
        unsafe { *self.0.get() += 1 };
    }

    fn get(&self) -> u32 {
        unsafe { *self.0.get() }
    }
}

fn two(each: impl Fn() + Sync) {
    thread::scope(|scope| {
        scope.spawn(&each);
        each();
    });
}

fn mutex() {
    let (lock, plain) = (Mutex::new(()), Plain::default());
    two(|| {
        let _guard = lock.lock().unwrap();
        plain.add();
    });
    assert_eq!(plain.get(), 2);
}

fn condvar() {
    let (lock, changed, plain) = (Mutex::new(false), Condvar::new(), Plain::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut guard = lock.lock().unwrap();
            plain.add();
            *guard = true;
            changed.notify_one();
        });
        let mut guard = lock.lock().unwrap();
        while !*guard {
            guard = changed.wait(guard).unwrap();
        }
        plain.add();
    });
    assert_eq!(plain.get(), 2);
}

fn condvar_timeout() {
    let (lock, changed, plain) = (Mutex::new(()), Condvar::new(), Plain::default());
    two(|| {
        let guard = lock.lock().unwrap();
        plain.add();
        let (_guard, _) = changed.wait_timeout(guard, Duration::from_micros(1)).unwrap();
        plain.add();
        changed.notify_all();
    });
    assert_eq!(plain.get(), 4);
}

fn rwlock() {
    let (lock, plain) = (RwLock::new(()), Plain::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            let _guard = lock.read().unwrap();
            assert!(plain.get() <= 1);
        });
        scope.spawn(|| {
            let _guard = lock.write().unwrap();
            plain.add();
        });
        let _guard = lock.read().unwrap();
        assert!(plain.get() <= 1);
    });
    assert_eq!(plain.get(), 1);
}

fn channel() {
    let (sender, receiver) = mpsc::channel();
    let sending = thread::spawn(move || {
        sender.send(Box::new(1)).unwrap();
        sender.send(Box::new(2)).unwrap();
    });
    let sum: u32 = receiver.iter().map(|boxed| *boxed).sum();
    sending.join().unwrap();
    assert_eq!(sum, 3);
}

fn rendezvous() {
    let (sender, receiver) = mpsc::sync_channel(0);
    let sending = thread::spawn(move || sender.send(vec![1]).unwrap());
    assert_eq!(receiver.recv().unwrap(), [1]);
    sending.join().unwrap();
}

fn arc() {
    let shared = Arc::new(Plain::default());
    let other = shared.clone();
    let dropping = thread::spawn(move || {
        assert_eq!(other.get(), 0);
        drop(other);
    });
    if let Ok(mut only) = Arc::try_unwrap(shared) {
        *only.0.get_mut() = 1;
    }
    dropping.join().unwrap();
}

fn once() {
    let (once, plain) = (Once::new(), Plain::default());
    two(|| {
        once.call_once(|| plain.add());
        assert_eq!(plain.get(), 1);
    });
}

fn cells() {
    static LAZY: LazyLock<Vec<u32>> = LazyLock::new(|| vec![1]);
    let cell = OnceLock::new();
    two(|| {
        assert_eq!(cell.get_or_init(|| vec![2])[0], 2);
        assert_eq!(LAZY[0], 1);
    });
}

fn barrier() {
    let (barrier, plain, other) = (Barrier::new(2), Plain::default(), Plain::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            plain.add();
            barrier.wait();
            assert_eq!(other.get(), 1);
        });
        other.add();
        barrier.wait();
        assert_eq!(plain.get(), 1);
    });
}

fn park() {
    static READY: AtomicBool = AtomicBool::new(false);
    static PLAIN: Plain = Plain(UnsafeCell::new(0));
    let parked = thread::spawn(|| {
        while !READY.load(Ordering::Acquire) {
            thread::park();
        }
        PLAIN.add();
    });
    PLAIN.add();
    READY.store(true, Ordering::Release);
    parked.thread().unpark();
    parked.join().unwrap();
    assert_eq!(PLAIN.get(), 2);
}

fn scope() {
    let (mut first, mut second) = (0, 0);
    thread::scope(|scope| {
        scope.spawn(|| first += 1);
        scope.spawn(|| second += 1);
    });
    first += second;
    assert_eq!(first, 2);
}

fn fences() {
    let (ready, plain) = (AtomicUsize::new(0), Plain::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            plain.add();
            fence(Ordering::Release);
            ready.store(1, Ordering::Relaxed);
        });
        if ready.load(Ordering::Relaxed) == 1 {
            fence(Ordering::Acquire);
            assert_eq!(plain.get(), 1);
        }
    });
}

fn main() {
    match env::args().nth(1).as_deref() {
        Some("mutex") => mutex(),
        Some("condvar") => condvar(),
        Some("condvar_timeout") => condvar_timeout(),
        Some("rwlock") => rwlock(),
        Some("channel") => channel(),
        Some("rendezvous") => rendezvous(),
        Some("arc") => arc(),
        Some("once") => once(),
        Some("cells") => cells(),
        Some("barrier") => barrier(),
        Some("park") => park(),
        Some("scope") => scope(),
        Some("fences") => fences(),
        other => panic!("there is no {other:?}"),
    }
}
