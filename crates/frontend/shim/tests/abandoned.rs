//! The check frees the memory of executions that cannot end, except what outside code refers to.
//!
//! The tests measure the memory of the whole process, so all of them are one test function.
#![cfg(all(feature = "check", target_os = "linux"))]
#![allow(clippy::unwrap_used)]

use std::sync::Mutex as StdMutex;

use preempt::sync::atomic::{AtomicBool, Ordering::SeqCst};
use preempt::sync::{Arc, Mutex};
use preempt::{Check, Order, thread};

/// The resident set size of the process, in KiB.
fn resident() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = text.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4
}

/// Two threads that wait for each other in most schedules, and own a buffer of `size` bytes each.
fn deadlock(size: usize) {
    let locks = Arc::new((Mutex::new(vec![1_u8; size]), Mutex::new(vec![2_u8; size])));
    let other = locks.clone();
    let thread = thread::spawn(move || {
        let own = vec![3_u8; size];
        let _second = other.1.lock().unwrap();
        let _first = other.0.lock().unwrap();
        drop(own);
    });
    let _first = locks.0.lock().unwrap();
    let _second = locks.1.lock().unwrap();
    drop((_first, _second));
    thread.join().unwrap();
}

/// Main spins on a flag that no thread sets.
fn livelock() {
    let (flag, _own) = (Arc::new(AtomicBool::new(false)), vec![0_u8; 100]);
    while !flag.load(SeqCst) {
        thread::yield_now();
    }
}

fn random(runs: u64) -> Check {
    Check::new().order(Order::Random).runs(runs).keep_going().quiet().max_steps(200)
}

/// The growth of the process, in KiB, over four calls of `what` after two calls that warm it up.
fn growth(what: impl Fn()) -> usize {
    (0..2).for_each(|_| what());
    let before = resident();
    (0..4).for_each(|_| what());
    resident().saturating_sub(before)
}

/// A shared page that can be made inaccessible; it holds pointers at odd multiples of four bytes.
struct Page(*mut u8);

// SAFETY: used while the threads of executions run one at a time.
unsafe impl Sync for Page {}

impl Page {
    const SIZE: usize = 4 << 10;

    fn new() -> Page {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping touches no memory in use.
        let page = unsafe { libc::mmap(std::ptr::null_mut(), Page::SIZE, access, flags, -1, 0) };
        assert_ne!(page, libc::MAP_FAILED);
        Page(page.cast())
    }

    fn pointer(&self, at: usize) -> *mut *mut [u64; 40] {
        // SAFETY: inside the page, because the test uses `at` below 100.
        unsafe { self.0.add(4 + 8 * at).cast() }
    }

    fn protect(&self, access: i32) {
        // SAFETY: `new` mapped this many bytes.
        assert_eq!(unsafe { libc::mprotect(self.0.cast(), Page::SIZE, access) }, 0);
    }
}

/// A scan also finds pointers in memory that only the kernel can read while the scan runs.
fn pointers_in_protected_memory_keep_their_blocks() {
    let (page, kept) = (Page::new(), 100);
    let count = std::sync::atomic::AtomicUsize::new(0);
    random(kept as u64).run(|| {
        let at = count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if at < kept {
            // SAFETY: see `Page`.
            unsafe { page.pointer(at).write_unaligned(Box::into_raw(Box::new([at as u64; 40]))) };
        }
        deadlock(10);
    });
    page.protect(libc::PROT_NONE);
    (0..3).for_each(|_| drop(random(1500).run(|| deadlock(10))));
    page.protect(libc::PROT_READ);
    for at in 0..kept {
        // SAFETY: the box was leaked, so the block is still there.
        let block = unsafe { *page.pointer(at).read_unaligned() };
        assert_eq!(block, [at as u64; 40]);
    }
}

#[test]
fn memory_of_executions_that_cannot_end_is_released() {
    pointers_in_protected_memory_keep_their_blocks();
    // Many executions of one check. Each leaves at least three pages: 100 MiB if none were freed.
    let many = growth(|| drop(random(3000).run(|| deadlock(10))));
    assert!(many < 4096, "{many} KiB for deadlocks");
    // With two workers: each waits for the other's scan.
    let workers = growth(|| drop(random(3000).jobs(2).run(|| deadlock(10))));
    assert!(workers < 32 << 10, "{workers} KiB for deadlocks of two workers");
    // A thread that never stops running invalidates every scan, so nothing is released.
    let (stop, runs) = (std::sync::atomic::AtomicBool::new(false), 3000);
    let disturbed = std::thread::scope(|scope| {
        use std::sync::atomic::Ordering::Relaxed;
        let runs_always = scope.spawn(|| {
            while !stop.load(Relaxed) {
                std::hint::spin_loop();
            }
        });
        let before = resident();
        random(runs).run(|| deadlock(10));
        let grown = resident().saturating_sub(before);
        stop.store(true, Relaxed);
        runs_always.join().unwrap();
        grown
    });
    assert!(disturbed > 4096, "{disturbed} KiB beside a running thread");
    // Large blocks, which come from the underlying allocator: 500 MiB in all.
    let large = growth(|| drop(random(100).run(|| deadlock(300 << 10))));
    assert!(large < 32 << 10, "{large} KiB for large blocks");
    // Many checks with one execution each.
    let checks = growth(|| {
        for _ in 0..200 {
            assert!(!Check::new().quiet().run(|| deadlock(10)).findings.is_empty());
            assert!(!random(1).run(livelock).findings.is_empty());
        }
    });
    assert!(checks < 4096, "{checks} KiB for checks");
    // Blocks passed to outside code are kept, and so are the blocks that they refer to.
    let seen = StdMutex::new(Vec::new());
    let run = || {
        random(1500).run(|| {
            let text = Box::new((String::from("a text of this execution"), Box::new([7_u64; 40])));
            seen.lock().unwrap().push(text);
            deadlock(10);
        });
    };
    (0..2).for_each(|_| run());
    let texts = seen.lock().unwrap();
    assert!(texts.len() >= 3000, "{}", texts.len());
    for text in texts.iter() {
        assert_eq!((&*text.0, *text.1), ("a text of this execution", [7; 40]));
    }
    drop(texts);
    // When the outside code frees them, nothing remains.
    let after = growth(|| {
        run();
        seen.lock().unwrap().clear();
    });
    assert!(after < 4096, "{after} KiB with blocks passed to outside code");
    // Large blocks that outside code owns are freed once, by their owner.
    let large = StdMutex::new(Vec::new());
    for _ in 0..3 {
        random(60).run(|| {
            large.lock().unwrap().push(vec![5_u8; 300 << 10]);
            deadlock(300 << 10);
        });
        assert!(large.lock().unwrap().iter().flatten().all(|&byte| byte == 5));
        large.lock().unwrap().clear();
    }
}
