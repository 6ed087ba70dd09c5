//! The rest of std's interface, inside a check and outside: code written for std compiles and means
//! the same.

use std::collections::{BTreeSet, HashSet};
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Mutex as StdMutex;

use preempt::cell::{Cell, RefCell, UnsafeCell};
use preempt::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst,
};
use preempt::sync::mpsc::{channel, sync_channel};
use preempt::sync::{Arc, LazyLock, Mutex, Once, OnceLock, RwLock, RwLockWriteGuard, Weak};
use preempt::{Check, FailureKind, Outcome, thread};

/// Runs once outside a check, and under all schedules inside.
#[track_caller]
fn both(body: impl Fn() + Sync) -> Outcome {
    body();
    inside(body)
}

#[track_caller]
fn inside(body: impl Fn() + Sync) -> Outcome {
    let outcome = Check::new().unbounded().run(body);
    assert!(outcome.complete && outcome.findings.is_empty(), "{:?}", outcome.findings);
    outcome
}

/// All results under all schedules.
#[track_caller]
fn results<T: Ord + Send>(body: impl Fn() -> T + Sync) -> BTreeSet<T> {
    let seen = StdMutex::new(BTreeSet::new());
    inside(|| {
        let result = body();
        seen.lock().unwrap().insert(result);
    });
    seen.into_inner().unwrap()
}

#[test]
fn an_arc_has_the_conversions_of_std() {
    both(|| {
        assert_eq!(*Arc::<[i32]>::from(vec![1, 2]), [1, 2]);
        assert_eq!(*Arc::<[i32]>::from([1, 2]), [1, 2]);
        assert_eq!(*Arc::<[i32]>::from(&[1, 2][..]), [1, 2]);
        assert_eq!(*(0..3).collect::<Arc<[i32]>>(), [0, 1, 2]);
        assert_eq!(&*Arc::<str>::from("text"), "text");
        assert_eq!(&*Arc::<str>::from(String::from("text")), "text");
        assert_eq!(&*Arc::<str>::from(std::borrow::Cow::Borrowed("text")), "text");
        assert_eq!(*Arc::<[u8]>::from(Arc::<str>::from("ab")), *b"ab");
        assert_eq!(
            &*Arc::<std::path::Path>::from(std::path::PathBuf::from("p")),
            std::path::Path::new("p")
        );
        assert_eq!(*Arc::<[i32; 2]>::try_from(Arc::<[i32]>::from(vec![1, 2])).unwrap(), [1, 2]);
        assert!(Arc::<[i32; 3]>::try_from(Arc::<[i32]>::from(vec![1, 2])).is_err());
        assert!(Arc::<str>::default().is_empty() && Arc::<[i32]>::default().is_empty());
        assert_eq!(*Arc::<i32>::from(Box::new(1)), 1);
        // A trait object: from a box or from std's `Arc`, with the same syntax as in std.
        let words: Arc<dyn std::fmt::Display> =
            Arc::from(Box::new(1) as Box<dyn std::fmt::Display>);
        assert_eq!(words.to_string(), "1");
        let words: Arc<dyn std::fmt::Display> =
            Arc::from(std::sync::Arc::new(2) as std::sync::Arc<dyn std::fmt::Display>);
        assert_eq!(Arc::clone(&words).to_string(), "2");
    });
}

#[test]
fn an_arc_implements_the_traits_of_its_value() {
    fn is_error<E: std::error::Error>(error: &E) -> String {
        error.to_string()
    }
    both(|| {
        let (one, two) = (Arc::new(1), Arc::new(2));
        assert!(one < two && one.max(two) == Arc::new(2));
        let set: HashSet<Arc<str>> = ["a", "b", "a"].into_iter().map(Arc::from).collect();
        assert!(set.len() == 2 && set.contains("a"));
        assert_eq!(is_error(&Arc::new(std::fmt::Error)), std::fmt::Error.to_string());
        assert!(format!("{:p}", Arc::new(1)).starts_with("0x"));
        let mut shared = Arc::new(5);
        *Arc::make_mut(&mut shared) += 1;
        let other = shared.clone();
        *Arc::make_mut(&mut shared) += 1;
        assert_eq!((*shared, *other, Arc::unwrap_or_clone(other)), (7, 6, 6));
        let raw = Arc::into_raw(shared);
        // SAFETY: a pointer from `into_raw`; the increment and the decrement are balanced.
        let back = unsafe {
            Arc::increment_strong_count(raw);
            Arc::decrement_strong_count(raw);
            Arc::from_raw(raw)
        };
        assert_eq!((*back, Arc::strong_count(&back)), (7, 1));
        assert_eq!(Arc::into_inner(back), Some(7));
    });
}

struct Node {
    me: Weak<Node>,
    value: AtomicUsize,
}

#[test]
fn a_value_may_refer_to_itself() {
    both(|| {
        let node = Arc::new_cyclic(|me: &Weak<Node>| {
            assert!(me.upgrade().is_none());
            Node { me: me.clone(), value: AtomicUsize::new(1) }
        });
        let again = node.me.upgrade().unwrap();
        assert!(Arc::ptr_eq(&node, &again));
        let t = thread::spawn(move || again.value.fetch_add(1, SeqCst));
        node.value.fetch_add(1, SeqCst);
        t.join().unwrap();
        assert_eq!(node.value.load(SeqCst), 3);
        assert_eq!(
            (Arc::weak_count(&node), node.me.weak_count(), node.me.strong_count()),
            (1, 1, 1)
        );
    });
    // The thread that upgrades is ordered after the construction of the value.
    let shared = || {
        let slot = Arc::new(Mutex::new(Weak::new()));
        let made = Arc::new_cyclic(|me: &Weak<Checked>| {
            let t = thread::spawn({
                let (slot, me) = (slot.clone(), me.clone());
                move || *slot.lock().unwrap() = me
            });
            t.join().unwrap();
            let checked = Checked(UnsafeCell::new(0));
            checked.0.with_mut(|value| unsafe { *value = 1 });
            checked
        });
        let t = thread::spawn(move || {
            let found: Weak<Checked> = slot.lock().unwrap().clone();
            found.upgrade().map(|found| found.0.with(|value| unsafe { *value }))
        });
        drop(made);
        t.join().unwrap()
    };
    assert_eq!(results(shared), BTreeSet::from([None, Some(1)]));
}

struct Checked(UnsafeCell<u32>);
// SAFETY: the check reports unordered accesses.
unsafe impl Sync for Checked {}
// SAFETY: as above.
unsafe impl Send for Checked {}

#[test]
fn a_writer_becomes_a_reader_without_a_gap() {
    let body = || {
        let lock = Arc::new(RwLock::new(0));
        let t = thread::spawn({
            let lock = lock.clone();
            move || *lock.write().unwrap() += 10
        });
        let mut writing = lock.write().unwrap();
        *writing += 1;
        let mine = *writing;
        let reading = RwLockWriteGuard::downgrade(writing);
        assert_eq!(*reading, mine, "no thread writes in between");
        drop(reading);
        t.join().unwrap();
        assert_eq!(*lock.read().unwrap(), 11);
        mine
    };
    body();
    assert_eq!(results(body), BTreeSet::from([1, 11]));
    // Readers enter as soon as the guard is downgraded, and earlier writes are ordered before them.
    let seen = results(|| {
        let shared =
            Arc::new((RwLock::new(()), Checked(UnsafeCell::new(0)), AtomicBool::new(false)));
        let writing = shared.0.write().unwrap();
        let t = thread::spawn({
            let shared = shared.clone();
            move || {
                let _reading = shared.0.read().unwrap();
                assert_eq!(shared.1.0.with(|value| unsafe { *value }), 1);
                shared.2.store(true, Relaxed);
            }
        });
        shared.1.0.with_mut(|value| unsafe { *value = 1 });
        let reading = RwLockWriteGuard::downgrade(writing);
        let together = shared.2.load(Relaxed);
        drop(reading);
        t.join().unwrap();
        together
    });
    assert_eq!(seen, BTreeSet::from([false, true]));
}

#[test]
fn once_and_once_lock_can_be_waited_for() {
    both(|| {
        let shared = Arc::new((OnceLock::new(), Once::new()));
        let t = thread::spawn({
            let shared = shared.clone();
            move || {
                shared.1.wait();
                *shared.0.wait()
            }
        });
        shared.0.set(1).unwrap();
        shared.1.call_once(|| ());
        assert_eq!(t.join().unwrap(), 1);
    });
    both(|| {
        let lock = OnceLock::from(1);
        assert_eq!(
            (lock.clone(), format!("{lock:?}")),
            (OnceLock::from(1), "OnceLock(1)".to_owned())
        );
        assert_eq!(format!("{:?}", OnceLock::<u32>::new()), "OnceLock(<uninit>)");
        let mut lazy: LazyLock<u32> = LazyLock::new(|| 1);
        assert!(LazyLock::get(&lazy).is_none());
        *LazyLock::force_mut(&mut lazy) += 1;
        assert_eq!((*lazy, LazyLock::get_mut(&mut lazy).copied()), (2, Some(2)));
        assert_eq!(*LazyLock::<u32>::default(), 0);
    });
}

#[test]
fn locks_show_their_values() {
    both(|| {
        let (mutex, lock) = (Mutex::new(1), RwLock::new(2));
        assert_eq!(format!("{mutex:?}"), "Mutex { data: 1, poisoned: false, .. }");
        assert_eq!(format!("{lock:?}"), "RwLock { data: 2, poisoned: false, .. }");
        let _guards = (mutex.lock(), lock.write());
        assert_eq!(format!("{mutex:?}"), "Mutex { data: <locked>, poisoned: false, .. }");
        assert_eq!(format!("{lock:?}"), "RwLock { data: <locked>, poisoned: false, .. }");
    });
}

#[test]
fn types_are_unwind_safe_as_in_std() {
    fn safe<T: UnwindSafe + RefUnwindSafe>() {}
    safe::<Mutex<Cell<u32>>>();
    safe::<RwLock<Cell<u32>>>();
    safe::<AtomicUsize>();
    safe::<OnceLock<u32>>();
    safe::<LazyLock<u32>>();
    safe::<preempt::sync::Condvar>();
    safe::<Once>();
    safe::<Arc<u32>>();
}

#[test]
fn atomics_update() {
    both(|| {
        let n = AtomicUsize::new(1);
        assert_eq!(n.update(SeqCst, SeqCst, |value| value + 1), 1);
        assert_eq!(n.try_update(SeqCst, SeqCst, |value| (value > 5).then_some(0)), Err(2));
        let mut values = [1, 2, 3];
        let first = values.as_mut_ptr();
        let p = AtomicPtr::new(first);
        assert_eq!(p.fetch_ptr_add(2, SeqCst), first);
        assert_eq!(p.fetch_byte_sub(size_of::<i32>(), SeqCst), first.wrapping_add(2));
        assert_eq!(p.fetch_or(1, SeqCst), first.wrapping_add(1));
        assert_eq!(p.fetch_and(!1, SeqCst).addr(), first.wrapping_add(1).addr() | 1);
        assert_eq!(p.load(SeqCst), first.wrapping_add(1));
        let mut n = n;
        n.with_mut(|value| *value = 9);
        assert_eq!(n.into_inner(), 9);
    });
}

#[test]
fn cell_behaves_as_in_std() {
    both(|| {
        let cell = Cell::new(1);
        cell.update(|value| value + 1);
        let other = Cell::from(5);
        cell.swap(&other);
        assert_eq!((cell.get(), other.take(), other.get()), (5, 2, 0));
        assert!(cell > other && cell.clone() == cell && format!("{cell:?}") == "Cell { value: 5 }");
        let shared = RefCell::new(1);
        *shared.borrow_mut() += 1;
        assert_eq!(shared.into_inner(), 2);
    });
}

#[test]
fn accesses_through_cell_pointers_are_checked_at_each_use() {
    both(|| {
        let mut cell = UnsafeCell::from(1);
        // SAFETY: no other thread has access.
        unsafe { *cell.get_mut().deref() += 1 };
        assert_eq!(cell.get().with(|value| unsafe { *value }), 2);
        *cell.exclusive() += 1;
        assert_eq!(unsafe { *cell.get().deref() }, 3);
    });
    // The flag orders accesses before it with the write, not accesses after it. Dropping the
    // pointer is not an access: guards that unlock in their destructor drop their fields later.
    type After = fn(preempt::cell::ConstPtr<u32>);
    let test = |after: After| {
        Check::new().run(move || {
            let shared = Arc::new((Checked(UnsafeCell::new(0)), AtomicBool::new(false)));
            let t = thread::spawn({
                let shared = shared.clone();
                move || {
                    let reading = shared.0.0.get();
                    shared.1.store(true, SeqCst);
                    after(reading);
                }
            });
            if shared.1.load(SeqCst) {
                shared.0.0.with_mut(|value| unsafe { *value = 1 });
            }
            t.join().unwrap();
        })
    };
    assert!(test(drop).findings.is_empty());
    let uses: [After; 2] = [
        // SAFETY: one thread runs at a time.
        |reading| assert!(unsafe { *reading.deref() } < 2),
        |reading| reading.with(drop),
    ];
    for after in uses {
        assert_eq!(test(after).findings[0].failure.kind, FailureKind::Race);
    }
}

#[test]
fn thread_locals_are_taken_and_replaced() {
    preempt::thread_local! {
        static COUNT: std::cell::Cell<u32> = const { std::cell::Cell::new(1) };
        static NAMES: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    }
    both(|| {
        COUNT.set(1);
        assert_eq!((COUNT.replace(5), COUNT.take(), COUNT.get()), (1, 5, 0));
        NAMES.set(vec![1]);
        assert_eq!((NAMES.replace(vec![2]), NAMES.take()), (vec![1], vec![2]));
        assert!(NAMES.with_borrow(Vec::is_empty));
    });
}

#[test]
fn channels_iterate() {
    both(|| {
        let (sender, receiver) = channel();
        (0..3).for_each(|value| sender.send(value).unwrap());
        assert_eq!(receiver.try_iter().collect::<Vec<_>>(), [0, 1, 2]);
        let (bounded, other) = sync_channel(1);
        let t = thread::spawn(move || {
            for value in &other {
                sender.send(value).unwrap();
            }
        });
        bounded.send(7).unwrap();
        drop(bounded);
        assert_eq!(receiver.into_iter().collect::<Vec<_>>(), [7]);
        t.join().unwrap();
    });
}

#[test]
fn objects_in_a_shared_slice_have_names() {
    let outcome = inside(|| {
        let locks: Arc<[Mutex<usize>]> = (0..2).map(Mutex::new).collect();
        let handles: Vec<_> = (0..2)
            .map(|at| {
                let locks = locks.clone();
                thread::spawn(move || *locks[at].lock().unwrap() += 1)
            })
            .collect();
        handles.into_iter().for_each(|handle| handle.join().unwrap());
    });
    assert_eq!(outcome.executions(), Some(1), "the order of first uses does not matter");
}

#[test]
fn the_number_of_processors_is_the_same_everywhere() {
    inside(|| assert_eq!(thread::available_parallelism().unwrap().get(), 2));
    assert!(thread::available_parallelism().is_ok());
}

#[test]
fn all_values_of_choose_are_explored() {
    let seen = results(|| (preempt::choose(3), preempt::choose(2)));
    assert_eq!(seen.len(), 6);
    assert_eq!(preempt::choose(3), 0);
    for check in
        [Check::new(), Check::new().unbounded(), Check::new().reduce(preempt::Reduction::Source)]
    {
        // A choice accesses no object: it multiplies the executions but adds no interleavings.
        let outcome = check.run(|| {
            let t = thread::spawn(|| preempt::choose(2));
            preempt::choose(3);
            t.join().unwrap();
        });
        assert_eq!((outcome.executions(), outcome.complete), (Some(6), true), "{check:?}");
        let failing =
            check.run(|| assert_ne!((preempt::choose(3), preempt::choose(3)), (2, 1), "found"));
        assert!(failing.findings[0].failure.message.contains("found"));
    }
}

#[test]
fn a_report_numbers_pointers() {
    let body = || {
        let mut values = [1, 2];
        let [first, second] = &mut values;
        let p = AtomicPtr::new(&raw mut *first);
        p.swap(&raw mut *second, SeqCst);
        p.store(std::ptr::null_mut(), SeqCst);
        panic!("to see the report");
    };
    let text = Check::new().report(body);
    assert!(text.contains("swap(ptr1) = ptr2") && text.contains("store(null), was ptr1"), "{text}");
    assert_eq!(text.split("cost").next(), Check::new().report(body).split("cost").next());
}

#[test]
fn a_pointer_has_one_name_in_all_threads() {
    let text = Check::new().report(|| {
        let p = Arc::new(AtomicPtr::<u32>::new(std::ptr::null_mut()));
        let t = thread::spawn({
            let p = p.clone();
            move || p.store(Box::into_raw(Box::new(1)), SeqCst)
        });
        t.join().unwrap();
        // SAFETY: no other thread has access.
        drop(unsafe { Box::from_raw(p.load(SeqCst)) });
        panic!("to see the report");
    });
    assert!(text.contains("store(ptr1), was null") && text.contains("load() = ptr1"), "{text}");
    assert!(!text.contains("ptr2"), "{text}");
}

preempt::test! {
    /// The macro expands to a test.
    fn a_test_of_the_macro() {
        let n = Arc::new(AtomicUsize::new(0));
        let t = thread::spawn({ let n = n.clone(); move || n.fetch_add(1, SeqCst) });
        n.fetch_add(1, SeqCst);
        t.join().unwrap();
        assert_eq!(n.load(SeqCst), 2);
    }

    #[should_panic(expected = "lost")]
    fn a_test_of_the_macro_that_fails(Check::new().bound(1)) {
        let n = Arc::new(AtomicUsize::new(0));
        let t = thread::spawn({ let n = n.clone(); move || n.store(n.load(SeqCst) + 1, SeqCst) });
        n.store(n.load(SeqCst) + 1, SeqCst);
        t.join().unwrap();
        assert_eq!(n.load(SeqCst), 2, "lost");
    }
}
