//! What executions that cannot end leave behind is released, unless somebody outside still has it.
//!
//! The memory is that of the whole process, so there is one test.
#![cfg(all(feature = "check", target_os = "linux"))]
#![allow(clippy::unwrap_used)]

use std::sync::Mutex as Real;

use preempt::sync::atomic::{AtomicBool, Ordering::SeqCst};
use preempt::sync::{Arc, Mutex};
use preempt::{Check, Order, thread};

/// The resident memory in KiB.
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

/// A thread that waits for a flag that nobody sets.
fn livelock() {
    let (flag, _own) = (Arc::new(AtomicBool::new(false)), vec![0_u8; 100]);
    while !flag.load(SeqCst) {
        thread::yield_now();
    }
}

fn random(runs: u64) -> Check {
    Check::new().order(Order::Random).runs(runs).keep_going().quiet().max_steps(200)
}

/// By how much the process grows while something is done once more, after it was done before. In
/// KiB.
fn growth(what: impl Fn()) -> usize {
    (0..2).for_each(|_| what());
    let before = resident();
    (0..4).for_each(|_| what());
    resident().saturating_sub(before)
}

#[test]
fn what_nobody_refers_to_is_released() {
    // Executions of one check. Each of them leaves three pages or more, without the reclaiming
    // 100 MiB in all.
    let many = growth(|| drop(random(3000).run(|| deadlock(10))));
    assert!(many < 4096, "{many} KiB for deadlocks");
    // Blocks that come from the allocator below: 500 MiB in all.
    let large = growth(|| drop(random(100).run(|| deadlock(300 << 10))));
    assert!(large < 32 << 10, "{large} KiB for large blocks");
    // Checks.
    let checks = growth(|| {
        for _ in 0..200 {
            assert!(!Check::new().quiet().run(|| deadlock(10)).findings.is_empty());
            assert!(!random(1).run(livelock).findings.is_empty());
        }
    });
    assert!(checks < 4096, "{checks} KiB for checks");
    // What is passed to code outside is not released, and nor is what that refers to.
    let seen = Real::new(Vec::new());
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
    // The outside frees them, and then nothing is left.
    let after = growth(|| {
        run();
        seen.lock().unwrap().clear();
    });
    assert!(after < 4096, "{after} KiB with blocks that are passed to code outside");
    // Large blocks are freed by their owner, not a second time.
    let large = Real::new(Vec::new());
    for _ in 0..3 {
        random(60).run(|| {
            large.lock().unwrap().push(vec![5_u8; 300 << 10]);
            deadlock(300 << 10);
        });
        assert!(large.lock().unwrap().iter().flatten().all(|&byte| byte == 5));
        large.lock().unwrap().clear();
    }
}
