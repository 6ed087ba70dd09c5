//! Exact numbers of executions and histories: all real-time orders are explored, and nothing else.

use preempt::linearize::{LinearizeOutcome, linearize};
use preempt::{Check, sync::atomic::AtomicU32};

use super::structures::{Counter, LockQueue};

/// The histories of each shape, or the executions.
fn by_shape(outcome: &LinearizeOutcome) -> Vec<(Vec<usize>, u64, u64)> {
    let shapes = outcome.shapes.iter();
    shapes.map(|shape| (shape.shape.clone(), shape.histories, shape.executions)).collect()
}

/// Operations without effects: the histories are all interval orders, and each is one execution.
#[test]
fn operations_without_effects_have_one_execution_for_each_real_time_order() {
    let outcome = linearize(|| AtomicU32::new(0))
        .op("nothing", |_| ())
        .threads(4)
        .explore(Check::new().unbounded().allow_uncontrolled())
        .run();
    let expected: [(&[usize], u64); 7] = [
        (&[1, 1], 3),
        (&[2, 1], 6),
        (&[1, 1, 1], 19),
        (&[2, 2], 19),
        (&[3, 1], 10),
        (&[2, 1, 1], 64),
        (&[1, 1, 1, 1], 207),
    ];
    let expected: Vec<(Vec<usize>, u64, u64)> =
        expected.into_iter().map(|(shape, count)| (shape.to_vec(), count, count)).collect();
    assert_eq!(by_shape(&outcome), expected);
    assert_eq!(outcome.exhaustive, outcome.scenarios);
}

/// Without preemptions exactly the serial executions are explored.
#[test]
fn bound_zero_gives_the_serial_executions() {
    let serial = |operations: usize| {
        let queue = linearize(LockQueue::default)
            .op1("push", LockQueue::push)
            .op("pop", LockQueue::pop)
            .explore(Check::new().bound(0));
        let queue = if operations > 2 { queue.op("len", LockQueue::len) } else { queue };
        let queue = if operations > 3 { queue.op("front", LockQueue::front) } else { queue };
        let queue = if operations > 4 { queue.op("clear", LockQueue::clear) } else { queue };
        let outcome = queue.run();
        assert!(outcome.is_ok(), "{outcome}");
        (outcome.scenarios, outcome.serial_executions, outcome.executions)
    };
    assert_eq!(serial(2), (53, 322, 322));
    assert_eq!(serial(3), (223, 1_395, 1_395));
    assert_eq!(serial(4), (646, 4_092, 4_092));
    assert_eq!(serial(5), (1_500, 9_565, 9_565));
}

/// The numbers of histories by brute force: all interleavings of the calls, effects and returns of
/// operations that take effect in one step.
fn brute(threads: &[Vec<&'static str>], apply: fn(&mut Vec<u32>, &str, u32) -> Option<u32>) -> u64 {
    #[derive(Clone)]
    struct State {
        /// For each thread, the number of its past calls, effects and returns.
        at: Vec<usize>,
        object: Vec<u32>,
        results: Vec<Option<u32>>,
        before: Vec<Vec<usize>>,
    }
    type Apply = fn(&mut Vec<u32>, &str, u32) -> Option<u32>;
    type Histories = std::collections::BTreeSet<(Vec<Option<u32>>, Vec<Vec<usize>>)>;
    fn follow(threads: &[Vec<&'static str>], apply: Apply, state: &State, all: &mut Histories) {
        let mut is_over = true;
        for (thread, program) in threads.iter().enumerate() {
            let (nth, part) = (state.at[thread] / 3, state.at[thread] % 3);
            let Some(name) = program.get(nth) else { continue };
            is_over = false;
            let first = |of: usize| threads[..of].iter().map(Vec::len).sum::<usize>();
            let call = first(thread) + nth;
            let mut next = state.clone();
            match part {
                0 => {
                    let returned = (0..threads.len())
                        .flat_map(|of| (0..state.at[of] / 3).map(move |nth| first(of) + nth));
                    next.before[call] = returned.collect();
                }
                1 => next.results[call] = apply(&mut next.object, name, call as u32 + 1),
                _ => {}
            }
            next.at[thread] += 1;
            follow(threads, apply, &next, all);
        }
        if is_over {
            all.insert((state.results.clone(), state.before.clone()));
        }
    }
    let calls = threads.iter().map(Vec::len).sum();
    let start = State {
        at: vec![0; threads.len()],
        object: Vec::new(),
        results: vec![None; calls],
        before: vec![Vec::new(); calls],
    };
    let mut all = Histories::new();
    follow(threads, apply, &start, &mut all);
    all.len() as u64
}

/// The sum over all scenarios of a shape of two operations, for threads of at most two calls.
fn brute_shape(
    shape: &[usize],
    names: [&'static str; 2],
    apply: fn(&mut Vec<u32>, &str, u32) -> Option<u32>,
) -> u64 {
    let mut scenarios: Vec<Vec<Vec<&'static str>>> = vec![Vec::new()];
    for &calls in shape {
        let mut longer = Vec::new();
        for threads in &scenarios {
            for choice in 0..1_usize << calls {
                let program: Vec<&str> =
                    (0..calls).rev().map(|bit| names[choice >> bit & 1]).collect();
                longer.push(threads.iter().cloned().chain([program]).collect());
            }
        }
        scenarios = longer;
    }
    // One of the scenarios that differ only in the order of threads.
    let mut seen = std::collections::BTreeSet::new();
    scenarios.retain(|threads| {
        let mut threads = threads.clone();
        threads.sort();
        seen.insert(threads)
    });
    scenarios.iter().map(|threads| brute(threads, apply)).sum()
}

/// With three threads the queue has 102 histories. If calls read the flags of the other threads one
/// after the other, there would be 114, and some of them have no real-time order.
#[test]
fn histories_agree_with_brute_force() {
    let queue = |queue: &mut Vec<u32>, name: &str, value: u32| match name {
        "push" => {
            queue.push(value);
            None
        }
        _ => Some(if queue.is_empty() { 0 } else { queue.remove(0) }),
    };
    let shapes: [&[usize]; 3] = [&[1, 1], &[2, 1], &[1, 1, 1]];
    assert_eq!(shapes.map(|shape| brute_shape(shape, ["push", "pop"], queue)), [10, 63, 102]);
    let counter = |counter: &mut Vec<u32>, name: &str, _: u32| {
        let value = counter.len() as u32;
        if name == "inc" {
            counter.push(0);
        }
        Some(value)
    };
    let shapes: [&[usize]; 3] = [&[1, 1], &[2, 1], &[2, 2]];
    assert_eq!(shapes.map(|shape| brute_shape(shape, ["inc", "get"], counter)), [11, 72, 363]);
}

#[test]
fn histories_of_a_counter_and_of_a_queue() {
    let counter = linearize(Counter::default)
        .op("inc", Counter::inc)
        .op("get", Counter::get)
        .threads(2)
        .explore(Check::new().unbounded())
        .run();
    let histories: Vec<u64> = by_shape(&counter).into_iter().map(|(_, count, _)| count).collect();
    assert_eq!(histories, [11, 72, 363, 280]);
    let queue = linearize(LockQueue::default)
        .op1("push", LockQueue::push)
        .op("pop", LockQueue::pop)
        .operations(3)
        .explore(Check::new().unbounded())
        .run();
    let histories: Vec<u64> = by_shape(&queue).into_iter().map(|(_, count, _)| count).collect();
    assert_eq!(histories, [10, 63, 102]);
}

#[test]
fn scenarios_in_parallel_have_the_same_result() {
    let run = |jobs: usize| {
        let outcome = linearize(LockQueue::default)
            .op1("push", LockQueue::push)
            .op("pop", LockQueue::pop_in_two_steps)
            .explore(Check::new().bound(2).jobs(jobs))
            .run();
        let failed = outcome.failed.as_ref().map(|failed| failed.scenario.clone());
        (outcome.guarantee(), failed, outcome.executions)
    };
    assert_eq!(run(1), run(3));
}
