//! Memory of the program under test: addresses are the same in every execution, and heap objects
//! are identified without annotations.
#![cfg(feature = "allocator")]
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeSet, HashMap};
use std::sync::Mutex as StdMutex;
use std::sync::atomic::AtomicUsize as Plain;
use std::sync::atomic::Ordering::Relaxed;

use preempt::sync::atomic::Ordering::{AcqRel, Acquire, SeqCst};
use preempt::sync::atomic::{AtomicI64, AtomicPtr, AtomicUsize};
use preempt::sync::{Arc, Mutex};
use preempt::{Check, Outcome, thread};

/// The benchmark lastzero: a reader searches an array for its last zero, from the end. Writer `at`
/// stores into element `at` the value of the element before it plus one.
fn lastzero(n: usize) {
    let array: Arc<Vec<AtomicI64>> = Arc::new((0..=n).map(|_| AtomicI64::new(0)).collect());
    let mut handles = vec![thread::spawn({
        let array = array.clone();
        move || {
            let mut at = n;
            while array[at].load(SeqCst) != 0 {
                at -= 1;
            }
        }
    })];
    handles.extend((1..=n).map(|at| {
        let array = array.clone();
        thread::spawn(move || array[at].store(array[at - 1].load(SeqCst) + 1, SeqCst))
    }));
    handles.into_iter().for_each(|handle| handle.join().unwrap());
}

#[track_caller]
fn complete(outcome: &Outcome) -> u64 {
    assert!(
        outcome.complete && outcome.findings.is_empty(),
        "{:?} {}",
        outcome.findings,
        outcome.guarantee()
    );
    outcome.executions().unwrap()
}

const LASTZERO: [(usize, u64); 4] = [(2, 5), (3, 12), (4, 28), (5, 64)];

#[test]
fn elements_of_a_vec_are_identified() {
    for (n, executions) in LASTZERO {
        assert_eq!(complete(&Check::new().unbounded().run(|| lastzero(n))), executions);
        let several = Check::new().bound(64).jobs(2).run(|| lastzero(n));
        assert_eq!((several.complete, several.traces()), (true, Some(executions)), "two workers");
    }
}

#[test]
fn memory_that_outlives_executions_changes_nothing() {
    for (n, executions) in LASTZERO {
        let seen = StdMutex::new(Vec::new());
        let collects = Check::new().unbounded().run(|| {
            let others = seen.lock().unwrap().len();
            seen.lock().unwrap().push(format!("begins, after {others} others"));
            lastzero(n);
            seen.lock().unwrap().push("ends".to_owned());
        });
        assert_eq!(complete(&collects), executions);
        let seen = seen.into_inner().unwrap();
        assert!(seen.len() >= 2 * executions as usize);
        assert!(seen.iter().all(|text| text == "ends" || text.starts_with("begins, after ")));

        let (first, outer) = (Plain::new(0), StdMutex::new(Vec::<AtomicI64>::new()));
        let grows = Check::new().unbounded().run(|| {
            if first.fetch_add(1, Relaxed) == 0 {
                // As large as the array of the test, allocated by the same thread.
                outer.lock().unwrap().extend((0..=n).map(|_| AtomicI64::new(7)));
            }
            lastzero(n);
            println!("the buffer of stdout outlives executions too");
        });
        assert_eq!(complete(&grows), executions);
        let outer = outer.into_inner().unwrap();
        assert!(outer.into_iter().all(|value| value.into_inner() == 7));
    }
}

/// Two threads install new nodes and free the old ones: whether an exchange succeeds depends on
/// whether the allocator reuses an address.
fn exchange<const SIZE: usize>() {
    let head = Arc::new(AtomicPtr::<[u8; SIZE]>::new(std::ptr::null_mut()));
    let put = |head: &AtomicPtr<[u8; SIZE]>| {
        for _ in 0..3 {
            let new = Box::into_raw(Box::new([0; SIZE]));
            let mut current = head.load(Acquire);
            let old = loop {
                match head.compare_exchange(current, new, AcqRel, Acquire) {
                    Ok(old) => break old,
                    Err(now) => current = now,
                }
            };
            if !old.is_null() {
                // SAFETY: it came from a box, and the thread that swapped it out owns it.
                drop(unsafe { Box::from_raw(old) });
            }
        }
    };
    let t = thread::spawn({
        let head = head.clone();
        move || put(&head)
    });
    put(&head);
    t.join().unwrap();
    // SAFETY: as above.
    drop(unsafe { Box::from_raw(head.load(Acquire)) });
}

#[test]
fn counts_do_not_depend_on_the_size_of_freed_nodes() {
    let check = Check::new().bound(3);
    let counts = [
        check.run(exchange::<16>),
        check.run(exchange::<24>),
        check.run(exchange::<40>),
        check.run(exchange::<56>),
        check.run(exchange::<72>),
        check.run(exchange::<104>),
        check.run(exchange::<136>),
        check.run(exchange::<264>),
        check.run(exchange::<520>),
        check.run(exchange::<2000>),
    ];
    let counts = counts.map(|outcome| {
        assert!(outcome.findings.is_empty(), "{:?}", outcome.findings);
        outcome.traces()
    });
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
}

/// The ABA problem: a stack whose pop reads `next` and then exchanges the head. If the head was
/// freed and its address allocated again, the exchange installs a stale `next`.
#[test]
fn reuse_of_a_freed_address_is_explored() {
    struct Node {
        next: *mut Node,
        value: usize,
    }
    let outcome = Check::new().unbounded().run(|| {
        let node = |value, next| Box::into_raw(Box::new(Node { next, value }));
        let head = Arc::new(AtomicPtr::new(node(1, node(2, std::ptr::null_mut()))));
        let pop = |head: &AtomicPtr<Node>, first: *mut Node| {
            // SAFETY: the test frees only nodes that it popped; popping one twice is the error
            // under test.
            let next = unsafe { (*first).next };
            head.compare_exchange(first, next, SeqCst, SeqCst).ok().map(|_| first)
        };
        let t = thread::spawn({
            let head = head.clone();
            move || {
                // Pops both, frees them and pushes a new one at the address of the first.
                for _ in 0..2 {
                    let first = head.load(SeqCst);
                    if let Some(popped) = (!first.is_null()).then(|| pop(&head, first)).flatten() {
                        // SAFETY: as above.
                        drop(unsafe { Box::from_raw(popped) });
                    }
                }
                head.store(node(3, std::ptr::null_mut()), SeqCst);
            }
        });
        let first = head.load(SeqCst);
        if !first.is_null() {
            // SAFETY: as above.
            let next = unsafe { (*first).next };
            thread::yield_now();
            if head.compare_exchange(first, next, SeqCst, SeqCst).is_ok() {
                // SAFETY: as above.
                assert_ne!(
                    unsafe { (*first).value },
                    3,
                    "a new node at a reused address was taken for the old one"
                );
            }
        }
        t.join().unwrap();
        std::mem::forget(head);
    });
    assert!(!outcome.findings.is_empty(), "{}", outcome.guarantee());
}

#[test]
fn addresses_are_the_same_in_every_execution() {
    let seen = StdMutex::new(BTreeSet::new());
    let outcome = Check::new().unbounded().run(|| {
        let n = Arc::new(AtomicUsize::new(0));
        let handles: Vec<_> = (0..2)
            .map(|_| {
                let n = n.clone();
                thread::spawn(move || {
                    let own = Box::new(n.fetch_add(1, SeqCst));
                    let freed = std::ptr::from_ref(&*own).addr();
                    drop(own);
                    let again = Box::new(0_usize);
                    (freed, std::ptr::from_ref(&*again).addr())
                })
            })
            .collect();
        let addresses: Vec<_> = handles.into_iter().map(|handle| handle.join().unwrap()).collect();
        assert!(
            addresses.iter().all(|(freed, again)| freed == again),
            "a thread reuses the block that it freed last"
        );
        let within_a_page: Vec<_> = addresses.iter().map(|(address, _)| address % 4096).collect();
        assert_ne!(addresses[0].0, addresses[1].0);
        seen.lock().unwrap().insert(within_a_page);
    });
    assert_eq!(complete(&outcome), 2);
    assert_eq!(seen.into_inner().unwrap().len(), 1);
}

/// Threads acquire locks in the order of their addresses, so no deadlock is possible.
#[test]
fn locks_can_be_ordered_by_address() {
    let outcome = Check::new().unbounded().run(|| {
        let locks: Vec<_> = (0..3).map(|_| std::sync::Arc::new(Box::new(Mutex::new(0)))).collect();
        let handles: Vec<_> = (0..3)
            .map(|at| {
                let mut two = [locks[at].clone(), locks[(at + 1) % 3].clone()];
                two.sort_by_key(|lock| std::ptr::from_ref::<Mutex<i32>>(lock).addr());
                thread::spawn(move || {
                    let mut first = two[0].lock().unwrap();
                    let mut second = two[1].lock().unwrap();
                    *first += 1;
                    *second += 1;
                })
            })
            .collect();
        handles.into_iter().for_each(|handle| handle.join().unwrap());
    });
    complete(&outcome);
}

/// Leaked nodes stay allocated, and the next execution still has the same addresses.
#[test]
fn leaked_nodes_change_nothing() {
    let counts = [false, true].map(|leaks| {
        let outcome = Check::new().unbounded().run(move || {
            let head = Arc::new(AtomicPtr::<AtomicUsize>::new(std::ptr::null_mut()));
            let put = move |head: &AtomicPtr<AtomicUsize>| {
                let new = Box::into_raw(Box::new(AtomicUsize::new(1)));
                let old = head.swap(new, SeqCst);
                if !old.is_null() {
                    // SAFETY: the thread that swapped it out owns it.
                    unsafe { (*old).fetch_add(1, SeqCst) };
                    if !leaks {
                        // SAFETY: as above.
                        drop(unsafe { Box::from_raw(old) });
                    }
                }
            };
            let t = thread::spawn({
                let head = head.clone();
                move || put(&head)
            });
            put(&head);
            t.join().unwrap();
            let last = head.load(SeqCst);
            if !leaks {
                // SAFETY: as above.
                drop(unsafe { Box::from_raw(last) });
            }
        });
        complete(&outcome)
    });
    assert_eq!(counts[0], counts[1]);
}

/// Collections that are created in one execution, grow in others, and are dropped after the check.
#[test]
fn collections_outside_the_check_keep_their_elements() {
    let all: StdMutex<HashMap<usize, Vec<String>>> = StdMutex::default();
    let outcome = Check::new().unbounded().run(|| {
        let n = Arc::new(AtomicUsize::new(0));
        let handles: Vec<_> = (0..3)
            .map(|at| {
                let n = n.clone();
                thread::spawn(move || n.fetch_add(1, SeqCst) * 10 + at)
            })
            .collect();
        for handle in handles {
            let value = handle.join().unwrap();
            let mut all = all.lock().unwrap();
            let texts = all.entry(value).or_default();
            texts.push(format!("value {value}"));
            if texts.len() > 3 {
                texts.remove(0);
            }
        }
    });
    assert_eq!(complete(&outcome), 6);
    let all = all.into_inner().unwrap();
    assert_eq!(all.len(), 9);
    for (value, texts) in all {
        assert!(texts.iter().all(|text| *text == format!("value {value}")), "{texts:?}");
    }
}

/// Checks also work where the address space is too small for the arenas' windows.
#[cfg(target_os = "linux")]
#[test]
fn checks_work_with_limited_address_space() {
    if std::env::var_os("ADDRESS_SPACE_IS_LIMITED").is_some() {
        return;
    }
    let program = std::env::current_exe().unwrap();
    let tests = "elements_of_a_vec_are_identified counts_do_not_depend_on_the_size_of_freed_nodes";
    let script =
        format!("ulimit -v 400000 && exec {} --exact --test-threads 1 {tests}", program.display());
    let status = std::process::Command::new("sh")
        .args(["-c", &script])
        .env("ADDRESS_SPACE_IS_LIMITED", "1")
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
}
