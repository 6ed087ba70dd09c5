//! Two relaxed atomics that are changed together under some kind of synchronisation. A thread that
//! synchronises finds them equal in every execution that weak memory allows. `wrong_spin` and
//! `wrong_arc` have an ordering that is too weak.

use std::env;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Barrier, Condvar, Mutex, Once, OnceLock, RwLock, mpsc};
use std::thread;

static FIRST: AtomicU32 = AtomicU32::new(0);
static SECOND: AtomicU32 = AtomicU32::new(0);

fn write() {
    FIRST.store(FIRST.load(Relaxed) + 1, Relaxed);
    SECOND.store(SECOND.load(Relaxed) + 1, Relaxed);
}

fn read() -> u32 {
    let (second, first) = (SECOND.load(Relaxed), FIRST.load(Relaxed));
    assert_eq!(first, second, "the two are changed together");
    first
}

fn mutex() {
    let lock = Arc::new(Mutex::new(()));
    let other = lock.clone();
    let writing = thread::spawn(move || {
        let _guard = other.lock().unwrap();
        write();
    });
    {
        let _guard = lock.lock().unwrap();
        read();
    }
    writing.join().unwrap();
    assert_eq!(read(), 1);
}

fn rwlock() {
    let lock = Arc::new(RwLock::new(()));
    let other = lock.clone();
    let writing = thread::spawn(move || {
        let _guard = other.write().unwrap();
        write();
    });
    {
        let _guard = lock.read().unwrap();
        read();
    }
    writing.join().unwrap();
}

fn condvar() {
    let shared = Arc::new((Mutex::new(false), Condvar::new()));
    let other = shared.clone();
    let writing = thread::spawn(move || {
        write();
        *other.0.lock().unwrap() = true;
        other.1.notify_one();
    });
    let mut is_ready = shared.0.lock().unwrap();
    while !*is_ready {
        is_ready = shared.1.wait(is_ready).unwrap();
    }
    drop(is_ready);
    assert_eq!(read(), 1);
    writing.join().unwrap();
}

fn channel() {
    let (send, receive) = mpsc::channel();
    let writing = thread::spawn(move || {
        write();
        send.send(()).unwrap();
    });
    receive.recv().unwrap();
    assert_eq!(read(), 1);
    writing.join().unwrap();
}

fn once() {
    static ONCE: Once = Once::new();
    static CELL: OnceLock<u32> = OnceLock::new();
    let first = thread::spawn(|| {
        ONCE.call_once(write);
        assert_eq!(read(), 1);
    });
    ONCE.call_once(write);
    assert_eq!(read(), 1);
    assert_eq!(*CELL.get_or_init(read), 1);
    first.join().unwrap();
}

fn barrier() {
    let barrier = Arc::new(Barrier::new(2));
    let other = barrier.clone();
    let writing = thread::spawn(move || {
        write();
        other.wait();
    });
    barrier.wait();
    assert_eq!(read(), 1);
    writing.join().unwrap();
}

fn park() {
    static READY: AtomicBool = AtomicBool::new(false);
    let main = thread::current();
    let writing = thread::spawn(move || {
        write();
        READY.store(true, Release);
        main.unpark();
    });
    while !READY.load(Acquire) {
        thread::park();
    }
    assert_eq!(read(), 1);
    writing.join().unwrap();
}

fn scope() {
    thread::scope(|scope| {
        scope.spawn(write);
    });
    assert_eq!(read(), 1);
}

/// A lock of one flag.
fn spin(unlock: Ordering) {
    static LOCKED: AtomicBool = AtomicBool::new(false);
    let locked = move |run: fn()| {
        while LOCKED.compare_exchange(false, true, Acquire, Relaxed).is_err() {
            thread::yield_now();
        }
        run();
        LOCKED.store(false, unlock);
    };
    let writing = thread::spawn(move || locked(write));
    locked(|| _ = read());
    writing.join().unwrap();
}

/// The last owner of a reference count changes what all owners have read or written.
fn arc(drop: Ordering) {
    static OWNERS: AtomicUsize = AtomicUsize::new(2);
    let release = move || {
        if OWNERS.fetch_sub(1, drop) == 1 {
            fence(Acquire);
            assert_eq!(read(), 1);
        }
    };
    let writing = thread::spawn(move || {
        write();
        release();
    });
    release();
    writing.join().unwrap();
}

/// The counts of std's `Arc`: the thread that drops last comes after the other one.
fn std_arc() {
    struct Last;
    impl Drop for Last {
        fn drop(&mut self) {
            assert_eq!(read(), 1);
        }
    }
    let shared = Arc::new(Last);
    let other = shared.clone();
    let writing = thread::spawn(move || {
        write();
        drop(other);
    });
    drop(shared);
    writing.join().unwrap();
}

fn main() {
    match env::args().nth(1).as_deref() {
        Some("mutex") => mutex(),
        Some("rwlock") => rwlock(),
        Some("condvar") => condvar(),
        Some("channel") => channel(),
        Some("once") => once(),
        Some("barrier") => barrier(),
        Some("park") => park(),
        Some("scope") => scope(),
        Some("spin") => spin(Release),
        Some("wrong_spin") => spin(Relaxed),
        Some("arc") => arc(Release),
        Some("wrong_arc") => arc(Relaxed),
        Some("std_arc") => std_arc(),
        other => panic!("there is no {other:?}"),
    }
}
