//! Structures with known verdicts: the smallest failing scenario, its number, and the preemptions
//! that it needs. Correct structures pass.

use preempt::linearize::{Criterion, Key, LinearizeOutcome, linearize, linearize_handles};
use preempt::sync::mpsc;
use preempt::{Check, FailureKind};

use super::structures::*;

/// Asserts that scenario `number` fails, with `preemptions` preemptions.
#[track_caller]
fn fails(outcome: &LinearizeOutcome, number: u64, scenario: &str, preemptions: u32) {
    let Some(failed) = &outcome.failed else { panic!("{}", outcome.guarantee()) };
    let found = (failed.scenario.as_str(), outcome.scenarios, failed.preemptions);
    assert_eq!(found, (scenario, number, preemptions), "{outcome}");
    assert_eq!(failed.kind, FailureKind::Linearizability);
}

#[track_caller]
fn passes(outcome: &LinearizeOutcome, scenarios: u64) {
    assert!(outcome.is_ok(), "{outcome}");
    assert_eq!(outcome.scenarios, scenarios, "{}", outcome.guarantee());
}

#[test]
fn queues_with_locks() {
    let wrong = || {
        linearize(LockQueue::default)
            .op1("push", LockQueue::push)
            .op("pop", LockQueue::pop_in_two_steps)
    };
    fails(&wrong().run(), 7, "push(1); pop() || pop()", 1);
    let filled = linearize(|| LockQueue::holding(9)).op1("push", LockQueue::push);
    fails(&filled.op("pop", LockQueue::pop_in_two_steps).run(), 3, "pop() || pop()", 1);
    let before = linearize(LockQueue::default).before(|queue| queue.push(9));
    let before = before.op1("push", LockQueue::push).op("pop", LockQueue::pop_in_two_steps);
    fails(&before.run(), 3, "pop() || pop()", 1);
    let right =
        linearize(LockQueue::default).op1("push", LockQueue::push).op("pop", LockQueue::pop);
    passes(&right.run(), 53);
    let early = linearize(TwoLockQueue::new).op1("push", TwoLockQueue::push_early);
    fails(&early.op("pop", TwoLockQueue::pop).run(), 2, "push(1) || pop()", 1);
    let right = linearize(TwoLockQueue::new).op1("push", TwoLockQueue::push);
    passes(&right.op("pop", TwoLockQueue::pop).run(), 53);
}

#[test]
fn a_separate_length_is_named_as_the_culprit() {
    let outcome = linearize(TwoLockQueue::new)
        .op1("push", TwoLockQueue::push_counted)
        .op("pop", TwoLockQueue::pop_counted)
        .op("len", TwoLockQueue::len)
        .run();
    fails(&outcome, 22, "pop(); len() || push(3)", 1);
    assert_eq!(outcome.failed.as_ref().unwrap().without, ["len"]);
    assert!(outcome.to_string().contains("linearizable without `len`"), "{outcome}");
}

#[test]
fn lock_free_queues_and_stacks() {
    let store = linearize(MichaelScott::new).op1("push", MichaelScott::push);
    fails(&store.op("pop", MichaelScott::pop_by_store).run(), 7, "push(1); pop() || pop()", 1);
    let store = linearize(Treiber::new).op1("push", Treiber::push);
    fails(&store.op("pop", Treiber::pop_by_store).run(), 7, "push(1); pop() || pop()", 1);
    let right = linearize(MichaelScott::new).op1("push", MichaelScott::push);
    passes(&right.op("pop", MichaelScott::pop).operations(3).run(), 15);
    let right = linearize(Treiber::new).op1("push", Treiber::push).op("pop", Treiber::pop);
    passes(&right.run(), 53);
}

/// Switches between operations are free, so one preemption is enough.
#[test]
fn the_aba_problem() {
    let filled = |tagged| {
        linearize(move || Reusing::new(tagged))
            .before(|stack| [8, 9].into_iter().for_each(|value| stack.push(value)))
            .op1("push", Reusing::push)
            .op("pop", Reusing::pop)
            .threads(2)
            .operations(5)
    };
    fails(&filled(false).run(), 65, "pop(); pop(); push(3) || pop(); pop()", 1);
    let observed = filled(false).observe(Reusing::drain).run();
    fails(&observed, 35, "pop(); pop(); push(3) || pop()", 1);
    assert!(observed.to_string().contains("afterwards: ["), "{observed}");
    passes(&filled(true).operations(4).observe(Reusing::drain).run(), 37);
}

#[test]
fn generated_prefixes_find_the_aba_problem_without_an_initial_state() {
    let prefixed = |tagged| {
        linearize(move || Reusing::new(tagged))
            .op1("push", Reusing::push)
            .op("pop", Reusing::pop)
            .observe(Reusing::drain)
            .prefixes(2)
            .threads(2)
            .explore(Check::new().bound(1))
    };
    let outcome = prefixed(false).run();
    let scenario = "after push(101); push(102): pop(); pop(); push(3) || pop()";
    assert_eq!(outcome.failed.as_ref().map(|failed| &failed.scenario[..]), Some(scenario));
    passes(&prefixed(true).run(), 259);
    let again = prefixed(false).scenario(scenario).run();
    assert!(again.failed.is_some(), "the text of a scenario with a prefix can be read");
}

#[test]
fn maps_and_sets() {
    let unchecked = linearize(Map::default)
        .op1("get_or_insert", |map, value| map.get_or_insert_unchecked(1, value))
        .op("get", |map| map.get(1))
        .op("remove", |map| map.remove(1));
    fails(&unchecked.run(), 1, "get_or_insert(1) || get_or_insert(2)", 1);
    let counted = linearize(Map::default)
        .op1("insert", |map, key: Key| map.insert_counted(key.0, 5))
        .op1("remove", |map, key: Key| map.remove_counted(key.0))
        .op("size", Map::size);
    fails(&counted.run(), 36, "insert(1); size() || insert(1)", 1);
    let right = linearize(Map::default)
        .op1("get_or_insert", |map, key: Key| map.get_or_insert(key.0, 10 + u32::from(key.0)))
        .op1("remove", |map, key: Key| map.remove(key.0))
        .operations(3);
    passes(&right.run(), 10 + 64 + 20);
    let all = linearize(Map::default)
        .op2("insert", |map, key: Key, value| map.insert(key.0, value))
        .op1("get", |map, key: Key| map.get(key.0))
        .op1("remove", |map, key: Key| map.remove(key.0))
        .op("len", Map::len);
    passes(&all.operations(2).run(), 7 * 8 / 2);
    let list = |validates, marks| {
        linearize(move || LazyList::new(validates, marks))
            .op1("add", |list, key: Key| list.add(key.into()))
            .op1("remove", |list, key: Key| list.remove(key.into()))
    };
    fails(&list(false, true).run(), 1, "add(1) || add(1)", 1);
    let unmarked = list(true, false).observe(|list| [list.contains(1), list.contains(2)]);
    fails(&unmarked.run(), 17, "add(1); add(2) || remove(1)", 1);
    let right = list(true, true).op1_in("contains", [1], LazyList::contains).operations(2);
    passes(&right.run(), 15);
}

#[test]
fn rings_and_roles() {
    let ring = |early| {
        linearize(move || Ring::new(early))
            .op1("push", Ring::push)
            .only("producer")
            .op("pop", Ring::pop)
            .only("consumer")
    };
    let outcome = ring(true).run();
    let failed = outcome.failed.as_ref().unwrap();
    assert_eq!((failed.kind, outcome.scenarios), (FailureKind::Race, 1), "{outcome}");
    assert_eq!(failed.scenario, "push(1) || pop()");
    assert!(ring(false).operations(5).run().is_ok());
}

#[test]
fn registers_counters_and_criteria() {
    let wrong = linearize(Counter::default).op("inc", Counter::inc_in_two_steps);
    fails(&wrong.op("get", Counter::get).run(), 1, "inc() || inc()", 1);
    let right = linearize(Counter::default).op("inc", Counter::inc).op("get", Counter::get);
    passes(&right.run(), 53);
    let pair = linearize(Pair::default).op1("a", Pair::a).op1("b", Pair::b).op("both", Pair::both);
    fails(&pair.run(), 12, "a(1); b(2) || both()", 1);
    let lagging = || {
        linearize_handles(Lagging::handles).op1("write", Lagging::write).op("read", Lagging::read)
    };
    fails(&lagging().run(), 20, "write(1); read() || write(3); read()", 1);
    let network = || linearize(Network::new).op("next", Network::next);
    fails(&network().run(), 2, "next(); next() || next()", 1);
    fails(&network().per_thread(1).run(), 2, "next() || next() || next()", 1);
    passes(&network().criterion(Criterion::Quiescent).run(), 6);
    let sequential = network().criterion(Criterion::Sequential).run();
    fails(&sequential, 2, "next(); next() || next()", 1);
}

#[test]
fn a_wrong_pair_is_wrong_for_weaker_criteria_as_well() {
    let pair =
        || linearize(Pair::default).op1("a", Pair::a).op1("b", Pair::b).op("both", Pair::both);
    let scenario = "a(1); b(2) || both()";
    for (criterion, word) in
        [(Criterion::Sequential, "sequentially"), (Criterion::Quiescent, "quiescently")]
    {
        let outcome = pair().criterion(criterion).scenario(scenario).run();
        // b may come before a only if program order does not count.
        let is_ok = criterion == Criterion::Quiescent;
        assert_eq!(outcome.is_ok(), is_ok, "{outcome}");
        assert!(outcome.guarantee().contains(&format!("{word} consistent")), "{outcome}");
    }
}

#[test]
fn operations_that_block() {
    let semaphore = |mistake| {
        linearize(move || Semaphore::new(mistake))
            .op("acquire", Semaphore::acquire)
            .op("release", Semaphore::release)
    };
    let lost = semaphore(Mistake::LostWakeup).operations(3).run();
    fails(&lost, 2, "acquire() || release()", 1);
    assert!(lost.to_string().contains("acquire() never returns"), "{lost}");
    let right = semaphore(Mistake::None).op("try_acquire", Semaphore::try_acquire).operations(2);
    let outcome = right.run();
    passes(&outcome, 6);
    assert!(outcome.stuck_histories > 0, "two threads that acquire wait forever");
    passes(&semaphore(Mistake::None).operations(3).run(), 15);
    let put = |one_condvar| {
        linearize(move || Bounded::new(one_condvar))
            .op1("put", Bounded::put)
            .op("take", Bounded::take)
    };
    passes(&put(false).operations(3).run(), 15);
    let one = put(true).scenario("put(1); put(2) || take() || take()").run();
    assert!(one.to_string().contains("never returns"), "{one}");
}

/// A thread that spins forever is treated as one that waits.
#[test]
fn operations_that_spin() {
    let outcome = linearize(Spinning::default)
        .op1("put", Spinning::put)
        .op("take", Spinning::take)
        .operations(2)
        .run();
    passes(&outcome, 3);
    if cfg!(feature = "allocator") {
        assert!(outcome.stuck_histories > 0, "{}", outcome.guarantee());
    }
}

#[test]
fn semaphores_that_notify_too_rarely() {
    let seldom = linearize(|| Semaphore::new(Mistake::NotifiesFirst))
        .op("acquire", Semaphore::acquire)
        .op("release", Semaphore::release)
        .scenario("release(); release() || acquire() || acquire()")
        .run();
    let failed = seldom.failed.as_ref().unwrap();
    assert_eq!((failed.kind, failed.preemptions), (FailureKind::Linearizability, 0), "{seldom}");
}

#[test]
fn panics_as_results() {
    let boxed = || linearize(OneValue::new).op("take", OneValue::take);
    let outcome = boxed().panics().run();
    fails(&outcome, 1, "take() || take()", 1);
    assert!(outcome.to_string().contains("Panicked(\"there is a value\")"), "{outcome}");
    let undeclared = boxed().run();
    assert_eq!(undeclared.failed.unwrap().kind, FailureKind::Panic);
}

#[test]
fn asynchronous_operations() {
    let notify = |early| {
        linearize(move || Notify::new(early))
            .op("notify", Notify::notify)
            .op_async("notified", Notify::notified)
            .operations(3)
    };
    passes(&notify(false).run(), 15);
    fails(&notify(true).run(), 2, "notify() || notified()", 1);
}

#[test]
fn a_channel_with_handles() {
    enum End {
        Receiver(mpsc::Receiver<u32>),
        Sender(mpsc::Sender<u32>),
    }
    let ends = |threads| {
        let (sender, receiver) = mpsc::channel();
        let senders = (1..threads).map(move |_| End::Sender(sender.clone()));
        std::iter::once(End::Receiver(receiver)).chain(senders).collect()
    };
    let outcome = linearize_handles(ends)
        .op("recv", |end| match end {
            End::Receiver(end) => end.recv().ok(),
            End::Sender(_) => unreachable!("only the receiver receives"),
        })
        .only("receiver")
        .op1("send", |end, value| match end {
            End::Sender(end) => end.send(value).is_ok(),
            End::Receiver(_) => false,
        })
        .operations(3)
        .run();
    passes(&outcome, 10);
}

#[test]
fn bounded_queues_that_answer_too_early() {
    let vyukov =
        linearize(Vyukov::new).op1("enqueue", Vyukov::enqueue).op("dequeue", Vyukov::dequeue);
    let outcome = vyukov.run();
    let failed = outcome.failed.as_ref().unwrap();
    assert_eq!(failed.scenario, "enqueue(1); dequeue() || enqueue(3)", "{outcome}");
    let slot = || linearize(OneSlot::default).op1("push", OneSlot::push).op("pop", OneSlot::pop);
    let outcome = slot().run();
    let failed = outcome.failed.as_ref().unwrap();
    assert_eq!(failed.scenario, "push(1); pop() || pop(); push(4)", "{outcome}");
    // The order of the threads does not matter.
    let swapped = slot().scenario("pop(); push(2) || push(3); pop()").run();
    assert_eq!(swapped.failed.map(|of| of.kind), Some(FailureKind::Linearizability));
}

#[test]
fn weak_memory_is_explored_on_request() {
    let published =
        || linearize(Published::default).op("set", Published::set).op("get", Published::get);
    let strong = published().operations(3).run();
    assert!(strong.is_ok(), "{strong}");
    let weak = Check::new().memory(preempt::Memory::Weak).bound(2);
    let outcome = published().operations(3).explore(weak).run();
    let failed = outcome.failed.as_ref().expect("the flag is seen before the value");
    assert_eq!(failed.scenario, "set() || get()");
    assert!(outcome.guarantee().contains("weak memory"), "{outcome}");
}
