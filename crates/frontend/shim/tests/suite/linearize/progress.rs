//! Obstruction-freedom and lock-freedom.

use preempt::linearize::{Linearize, LinearizeOutcome, linearize};
use preempt::{Check, Memory, Refusal};

use super::structures::{
    Claimed, Counter, LockQueue, MichaelScott, Semaphore, SpinCounter, Treiber,
};

type Demand<S> = fn(Linearize<S>) -> Linearize<S>;

/// Checks a structure with each demand.
fn both<S: Send + Sync + 'static>(of: impl Fn() -> Linearize<S>) -> [LinearizeOutcome; 2] {
    let demands: [Demand<S>; 2] = [Linearize::obstruction_free, Linearize::lock_free];
    demands.map(|demand| demand(of()).run())
}

#[track_caller]
fn fails(outcome: &LinearizeOutcome, condition: &str, scenario: &str, preemptions: u32, why: &str) {
    let Some(failed) = &outcome.failed else { panic!("{}", outcome.guarantee()) };
    let found = (&failed.condition[..], &failed.scenario[..], failed.preemptions);
    assert_eq!(found, (condition, scenario, preemptions), "{outcome}");
    assert!(failed.text.starts_with(&format!("not {condition}: in {scenario}, ")), "{outcome}");
    assert!(failed.text.contains(why), "{outcome}");
    assert_eq!(failed.without, [""; 0]);
}

/// The demand changes neither the executions nor the histories of structures that satisfy it.
#[test]
fn lock_free_structures_pass() {
    let counter = || linearize(Counter::default).op("inc", Counter::inc).op("get", Counter::get);
    let treiber = || {
        linearize(Treiber::new)
            .op1("push", Treiber::push)
            .op("pop", Treiber::pop)
            .threads(2)
            .operations(3)
    };
    let queue = || {
        let queue = linearize(MichaelScott::new).op1("push", MichaelScott::push);
        queue.op("pop", MichaelScott::pop).threads(2).operations(3)
    };
    let numbers = |of: &LinearizeOutcome| (of.scenarios, of.executions, of.histories);
    let [free, lock] = both(counter);
    assert_eq!([numbers(&free), numbers(&lock)], [numbers(&counter().run()); 2]);
    assert!(free.guarantee().starts_with("linearizable and obstruction-free: all 53 scenarios"));
    assert!(
        lock.guarantee().starts_with("linearizable and lock-free in all explored executions: all")
    );
    for ([free, lock], plain) in [(both(treiber), treiber().run()), (both(queue), queue().run())] {
        assert!(free.is_ok() && lock.is_ok(), "{free}\n{lock}");
        assert_eq!([numbers(&free), numbers(&lock)], [numbers(&plain); 2]);
    }
}

#[test]
fn operations_that_wait_for_a_lock() {
    let queue = || linearize(LockQueue::default).op1("push", LockQueue::push);
    let outcomes = both(queue);
    let why = "it waits for another thread: lock at ";
    for (outcome, condition) in outcomes.iter().zip(["obstruction-free", "lock-free"]) {
        fails(outcome, condition, "push(1) || push(2)", 1, why);
        assert!(outcome.guarantee().starts_with(&format!("not {condition}: ")), "{outcome}");
    }
    let text = outcomes[0].to_string();
    let token = text.split("PREEMPT_REPLAY=").nth(1).unwrap().split_whitespace().next().unwrap();
    let again = queue().obstruction_free().scenario("push(1) || push(2)");
    let again = again.explore(Check::new().replay(token)).run();
    assert_eq!(again.failed.map(|of| of.condition), Some("obstruction-free".to_owned()));
    // Without the demand it passes.
    assert!(queue().run().is_ok());
}

#[test]
fn operations_that_wait_in_a_loop() {
    let spins = || linearize(SpinCounter::default).op("inc", SpinCounter::inc).operations(2);
    let why = "it waits for another thread in a loop at ";
    for (outcome, condition) in both(spins).iter().zip(["obstruction-free", "lock-free"]) {
        fails(outcome, condition, "inc() || inc()", 1, why);
    }
    assert!(spins().run().is_ok());
}

#[test]
fn operations_that_block() {
    let semaphore = || {
        linearize(|| Semaphore::new(super::structures::Mistake::None))
            .op("acquire", Semaphore::acquire)
            .op("release", Semaphore::release)
            .operations(2)
    };
    let [free, _] = both(semaphore);
    let failed = free.failed.as_ref().expect("`acquire` waits");
    assert_eq!((failed.scenario.as_str(), failed.preemptions), ("acquire() || acquire()", 0));
}

/// A thread that runs alone returns, and two that take turns never do.
#[test]
fn operations_that_hinder_each_other() {
    let claimed = || linearize(Claimed::default).op("inc", Claimed::inc).operations(2);
    let [free, lock] = both(claimed);
    assert!(free.is_ok(), "{free}");
    let why = "no operation returned in 1000 steps with turns of 3";
    fails(&lock, "lock-free", "inc() || inc()", 2, why);
    // One preemption does not lead to a state from which turns go on forever.
    let one = claimed().lock_free().explore(Check::new().bound(1)).run();
    assert!(one.is_ok(), "{one}");
}

#[test]
fn searches_that_do_not_visit_every_state_are_refused() {
    let counter = |check| {
        let counter = linearize(Counter::default).op("inc", Counter::inc);
        counter.obstruction_free().operations(2).explore(check).try_run()
    };
    assert!(counter(Check::new().bound(9)).is_ok_and(|outcome| outcome.is_ok()));
    let refused = |check, words: &str| {
        let refusal = counter(check).err();
        assert!(matches!(&refusal, Some(Refusal::Test(why)) if why.contains(words)), "{refusal:?}");
    };
    refused(Check::new().unbounded(), "visits every state");
    refused(Check::new().bound(2).memory(Memory::Weak), "sequentially consistent memory only");
}
