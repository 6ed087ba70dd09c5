//! Exact numbers of scenarios, serial orders and histories.

use std::collections::BTreeSet;

use preempt_linearize::{Criterion, History, Instance, Rules, Scenario, Symmetry};

fn rules(instances: usize) -> Rules {
    Rules {
        instances: vec![Instance::default(); instances],
        symmetry: Symmetry::Threads,
        threads: 3,
        per_thread: usize::MAX,
    }
}

fn all(rules: &Rules, calls: usize) -> Vec<Scenario> {
    let shapes = (2..=calls).flat_map(|calls| rules.shapes(calls));
    shapes.flat_map(|shape| rules.scenarios(&shape)).collect()
}

#[test]
fn shapes_are_ordered_by_calls_threads_and_longest_thread() {
    let shapes: Vec<Vec<usize>> = (2..=4).flat_map(|calls| rules(1).shapes(calls)).collect();
    let expected: [&[usize]; 6] = [&[1, 1], &[2, 1], &[1, 1, 1], &[2, 2], &[3, 1], &[2, 1, 1]];
    assert_eq!(shapes, expected);
    let most = Rules { per_thread: 2, threads: 2, ..rules(1) };
    assert_eq!(most.shapes(4), [[2, 2]]);
    let handles = Rules { symmetry: Symmetry::None, ..rules(1) };
    let expected: [&[usize]; 3] = [&[2, 1], &[1, 2], &[1, 1, 1]];
    assert_eq!(handles.shapes(3), expected, "compositions");
}

/// With k instances: 1+1: k(k+1)/2, 2+1: k³, 1+1+1: C(k+2, 3), 2+2: C(k²+1, 2), 3+1: k⁴, 2+1+1:
/// k²·k(k+1)/2.
#[test]
fn the_number_of_scenarios_of_each_shape() {
    for k in 1..=5_usize {
        let expected = [
            (vec![1, 1], k * (k + 1) / 2),
            (vec![2, 1], k.pow(3)),
            (vec![1, 1, 1], (k + 2) * (k + 1) * k / 6),
            (vec![2, 2], (k * k + 1) * k * k / 2),
            (vec![3, 1], k.pow(4)),
            (vec![2, 1, 1], k * k * k * (k + 1) / 2),
        ];
        for (shape, count) in expected {
            assert_eq!(rules(k).scenarios(&shape).len(), count, "{shape:?}, {k} instances");
        }
    }
    let sums = [2, 3, 4, 5].map(|k| all(&rules(k), 4).len());
    assert_eq!(sums, [53, 223, 646, 1_500]);
    let k = rules(3);
    assert_eq!(k.scenarios(&[2, 2]).len(), 45, "push, pop over two values");
    let apart = Rules { symmetry: Symmetry::None, ..k };
    assert_eq!(apart.scenarios(&[2, 2]).len(), 81, "without symmetry");
    assert_eq!(all(&rules(2), 5).len(), 161);
}

#[test]
fn the_number_of_serial_executions() {
    let serial =
        |scenarios: &[Scenario]| -> u64 { scenarios.iter().map(Scenario::serial_orders).sum() };
    let by_shape: Vec<u64> = (2..=4)
        .flat_map(|calls| rules(2).shapes(calls))
        .map(|shape| serial(&rules(2).scenarios(&shape)))
        .collect();
    assert_eq!(by_shape, [6, 24, 24, 60, 64, 144]);
    let sums = [2, 3, 4, 5].map(|k| serial(&all(&rules(k), 4)));
    assert_eq!(sums, [322, 1_395, 4_092, 9_565]);
}

#[test]
fn scenarios_are_distinct_up_to_the_order_of_threads() {
    let scenarios = all(&rules(3), 4);
    let canonical = scenarios.iter().map(|scenario| {
        let mut threads = scenario.0.clone();
        threads.sort();
        threads
    });
    let distinct: BTreeSet<Vec<Vec<usize>>> = canonical.collect();
    assert_eq!(distinct.len(), scenarios.len());
}

#[test]
fn roles_and_single_calls_are_respected() {
    // push by the producer, pop by the consumer: one thread may be both.
    let role = |role| Instance { role: Some(role), ..Instance::default() };
    let ring = Rules { instances: vec![role(0), role(1)], ..rules(2) };
    let two = ring.scenarios(&[1, 1]);
    assert_eq!(two, [Scenario(vec![vec![0], vec![1]])]);
    assert_eq!(ring.scenarios(&[1, 1, 1]), []);
    // A receiver with its own handle, and senders: 10 scenarios of up to 3 calls.
    let channel = Rules {
        instances: vec![role(0), Instance::default()],
        symmetry: Symmetry::None,
        ..rules(2)
    };
    assert_eq!(all(&channel, 3).len(), 10);
    let once = Instance { once: Some(0), ..Instance::default() };
    let closing = Rules { instances: vec![Instance::default(), once], ..rules(2) };
    for Scenario(threads) in all(&closing, 4) {
        assert!(threads.iter().flatten().filter(|&&instance| instance == 1).count() <= 1);
    }
    assert_eq!(closing.scenarios(&[1, 1]).len(), 2);
}

/// The histories of calls without results are interval orders.
#[test]
fn the_number_of_histories_of_each_shape() {
    let shapes: [&[usize]; 7] =
        [&[1, 1], &[2, 1], &[1, 1, 1], &[2, 2], &[3, 1], &[2, 1, 1], &[1, 1, 1, 1]];
    let counts = shapes.map(|shape| histories(shape).len());
    assert_eq!(counts, [3, 6, 19, 19, 10, 64, 207]);
}

/// All histories of a shape, by all interleavings of its calls and returns.
pub fn histories(shape: &[usize]) -> BTreeSet<History> {
    fn extend(
        programs: &[Vec<usize>],
        at: &mut Vec<usize>,
        history: &History,
        all: &mut BTreeSet<History>,
    ) {
        let mut is_over = true;
        for thread in 0..programs.len() {
            let (nth, returns) = (at[thread] / 2, at[thread] % 2 == 1);
            let Some(&call) = programs[thread].get(nth) else { continue };
            is_over = false;
            let mut next = history.clone();
            if returns {
                next.returned(call, 0);
            } else {
                next.call(call);
            }
            at[thread] += 1;
            extend(programs, at, &next, all);
            at[thread] -= 1;
        }
        if is_over {
            all.insert(history.clone());
        }
    }
    let scenario = Scenario(shape.iter().map(|&calls| vec![0; calls]).collect());
    let threads = scenario.thread_of_calls();
    let mut programs = vec![Vec::new(); shape.len()];
    threads.iter().enumerate().for_each(|(call, &thread)| programs[thread].push(call));
    let mut all = BTreeSet::new();
    extend(&programs, &mut vec![0; shape.len()], &History::new(&threads), &mut all);
    all
}

#[test]
fn weaker_criteria_keep_less_order() {
    for history in histories(&[2, 2]) {
        let [real, program, quiet] =
            [Criterion::Linearizable, Criterion::Sequential, Criterion::Quiescent]
                .map(|criterion| history.order(criterion));
        for call in 0..4 {
            assert_eq!(program[call] & !real[call], 0, "program order is part of real time");
            assert_eq!(quiet[call] & !real[call], 0, "so is the order across quiet moments");
        }
    }
    let mut serial = History::new(&[0, 1]);
    serial.call(0);
    serial.returned(0, 0);
    serial.call(1);
    serial.returned(1, 0);
    assert!(serial.is_serial());
    assert_eq!(serial.order(Criterion::Quiescent), [0, 1]);
    assert_eq!(serial.order(Criterion::Sequential), [0, 0]);
}
