//! Explicit models, of shared structures and of handles.

use std::collections::{BTreeMap, VecDeque};

use preempt::linearize::{Key, linearize, linearize_handles};
use preempt::sync::Arc;
use preempt::sync::atomic::{AtomicU32, Ordering::SeqCst};

use super::structures::{Counter, Lagging, LockQueue, Map, Notify};

/// A map, not shared.
type Entries = BTreeMap<u8, u32>;

#[test]
fn two_arguments_and_keys() {
    let map = |is_wrong: bool| {
        linearize(Map::default)
            .model(Entries::new)
            .op2(
                "insert",
                |map, key: Key, value| map.insert(key.0, value),
                |map, key, value| map.insert(key.0, value),
            )
            .op1(
                "get",
                move |map, key: Key| map.get(if is_wrong { 1 } else { key.0 }),
                |map: &mut Entries, key| map.get(&key.0).copied(),
            )
            .op1_in("remove", [2_u8], Map::remove, |map, key| map.remove(&key))
            .observe(Map::len, |map| map.len())
            .operations(2)
    };
    let right = map(false).run();
    assert!(right.is_ok(), "{right}");
    // Five instances: two inserts, two gets and a remove.
    assert_eq!(right.scenarios, 15);
    // Serially wrong, which only a model shows.
    let wrong = map(true).run();
    let failed = wrong.failed.expect("`get` reads another key");
    assert_eq!(failed.scenario, "insert(1, 1) || get(2)");
}

/// What an observer sees has to fit the model as well.
#[test]
fn an_observer_is_compared_with_that_of_the_model() {
    let counter = |add: u32| {
        linearize(|| AtomicU32::new(0))
            .model(|| 0_u32)
            .op(
                "inc",
                move |n| n.fetch_add(add, SeqCst) / add,
                |n| {
                    *n += 1;
                    *n - 1
                },
            )
            .observe(|n| n.load(SeqCst), |n| *n)
            .operations(2)
            .run()
    };
    assert!(counter(1).is_ok());
    let failed = counter(2).failed.expect("it counts in steps of 2");
    assert_eq!(failed.scenario, "inc() || inc()");
    assert!(failed.text.contains("the observer sees 2"), "{}", failed.text);
}

/// The lagging register fails at once if it is compared with a register, and not only with two
/// calls of each thread, as against its own serial behaviour.
#[test]
fn handles_with_a_model() {
    let outcome = linearize_handles(Lagging::handles)
        .model(|| 0_u32)
        .op1("write", Lagging::write, |now, value| *now = value)
        .op("read", Lagging::read, |now| *now)
        .run();
    let failed = outcome.failed.as_ref().expect("a write is not visible");
    assert_eq!((failed.scenario.as_str(), failed.preemptions), ("write(1) || read()", 0));
    // A register that is one atomic passes: handles are interchangeable.
    let right = linearize_handles(|threads| {
        let shared = Arc::new(AtomicU32::new(0));
        (0..threads).map(|_| shared.clone()).collect()
    })
    .model(|| 0_u32)
    .op1("write", |n, value| n.store(value, SeqCst), |now, value| *now = value)
    .op2(
        "replace",
        |n, old: Key, new: u32| n.compare_exchange(old.into(), new, SeqCst, SeqCst).is_ok(),
        |now, old, new| {
            let is_old = *now == u32::from(old);
            if is_old {
                *now = new;
            }
            is_old
        },
    )
    .before(|n| n.store(1, SeqCst))
    .operations(2);
    // The model does not start in that state.
    let failed = right.run().failed.expect("the register holds 1, and the model 0");
    assert_eq!(failed.scenario, "write(1) || replace(1, 2)");
}

#[test]
fn handles_with_a_model_in_the_same_initial_state() {
    let handles = |threads: usize| {
        let shared = Arc::new(Counter::default());
        (0..threads).map(|_| shared.clone()).collect()
    };
    let outcome = linearize_handles(handles)
        .model(|| 1_u32)
        .before(|counter: &mut Arc<Counter>| assert_eq!(counter.inc(), 0))
        .op(
            "inc",
            |counter| counter.inc(),
            |n| {
                *n += 1;
                *n - 1
            },
        )
        .op("get", |counter| counter.get(), |n| *n)
        .observe(|counter| counter.get(), |n| *n)
        .run();
    assert!(outcome.is_ok(), "{outcome}");
    assert_eq!(outcome.scenarios, 53);
}

/// The calls of a prefix are made on the model too.
#[test]
fn prefixes_reach_the_model() {
    let queue = |is_wrong: bool| {
        linearize(LockQueue::default)
            .model(VecDeque::new)
            .op1("push", LockQueue::push, |queue, value: u32| queue.push_back(value))
            .op(
                "pop",
                move |queue| if is_wrong { queue.pop_in_two_steps() } else { queue.pop() },
                VecDeque::pop_front,
            )
            .prefixes(2)
            .operations(2)
            .run()
    };
    let right = queue(false);
    assert!(right.is_ok(), "{right}");
    // Three scenarios after each of 1 + 2 + 4 prefixes.
    assert_eq!(right.scenarios, 21);
    let failed = queue(true).failed.expect("both threads see the element");
    assert_eq!(failed.scenario, "after push(101): pop() || pop()");
}

#[test]
fn asynchronous_operations_of_handles_and_with_a_model() {
    let outcome = linearize_handles(|threads| {
        let shared = Arc::new(Notify::new(false));
        (0..threads).map(|_| shared.clone()).collect::<Vec<_>>()
    })
    .op("notify", |notify| notify.notify())
    .op_async("notified", async |notify: &mut Arc<Notify>| notify.notified().await)
    .operations(3)
    .run();
    assert!(outcome.is_ok(), "{outcome}");
    assert_eq!(outcome.scenarios, 15);
    let queue = linearize(LockQueue::default)
        .model(VecDeque::new)
        .op1("push", LockQueue::push, |queue, value: u32| queue.push_back(value))
        .op_async("pop", async |queue| queue.pop(), |queue| queue.pop_front())
        .operations(3)
        .run();
    assert!(queue.is_ok(), "{queue}");
}
