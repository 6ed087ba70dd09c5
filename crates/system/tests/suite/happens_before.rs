//! Happens-before graphs compared with brute force: equivalence by the order of dependent pairs,
//! order by reachability.

use std::collections::HashMap;

use preempt_system::{Access, Choice, Fingerprint, Footprint, HbGraph, HbKey, Location, ThreadId};
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

/// The steps of each thread: an alternative and its footprint.
type Program = Vec<Vec<(u32, Footprint)>>;

/// The thread of each step of an execution.
type Order = Vec<usize>;

fn footprint() -> impl Strategy<Value = Footprint> {
    let access = prop_oneof![Just(Access::Read), Just(Access::Write)];
    prop::collection::vec((0u32..3, access), 0..3)
        .prop_map(|accesses| accesses.into_iter().map(|(l, a)| (Location(l * 1000), a)).collect())
}

fn program(threads: usize, steps: usize) -> impl Strategy<Value = Program> {
    let thread = prop::collection::vec((0u32..2, footprint()), 0..=steps);
    prop::collection::vec(thread, 2..=threads)
}

/// An interleaving, chosen by picks among the threads that have steps left.
fn interleave(program: &Program, picks: &[Index]) -> Order {
    let mut left: Vec<usize> = program.iter().map(Vec::len).collect();
    let mut order = Order::new();
    for pick in picks.iter().cycle() {
        let ready: Vec<usize> = (0..left.len()).filter(|&t| left[t] > 0).collect();
        if ready.is_empty() {
            break;
        }
        let thread = *pick.get(&ready);
        left[thread] -= 1;
        order.push(thread);
    }
    order
}

fn interleavings(program: &Program) -> Vec<Order> {
    fn extend(left: &mut Vec<usize>, order: &mut Order, all: &mut Vec<Order>) {
        if left.iter().all(|&n| n == 0) {
            all.push(order.clone());
        }
        for thread in (0..left.len()).filter(|&t| left[t] > 0).collect::<Vec<_>>() {
            left[thread] -= 1;
            order.push(thread);
            extend(left, order, all);
            order.pop();
            left[thread] += 1;
        }
    }
    let mut all = Vec::new();
    extend(&mut program.iter().map(Vec::len).collect(), &mut Order::new(), &mut all);
    all
}

/// The steps of an execution: the thread, which of its steps, the alternative and the footprint.
fn steps<'p>(program: &'p Program, order: &Order) -> Vec<(usize, usize, u32, &'p Footprint)> {
    let mut next = vec![0; program.len()];
    let step = |&thread: &usize| {
        let n = next[thread];
        next[thread] += 1;
        let (alternative, footprint) = &program[thread][n];
        (thread, n, *alternative, footprint)
    };
    order.iter().map(step).collect()
}

fn choice(thread: usize, alternative: u32) -> Choice {
    Choice { thread: ThreadId::new(thread), alternative }
}

fn graph(program: &Program, order: &Order) -> HbGraph {
    let mut graph = HbGraph::new();
    for (thread, _, alternative, footprint) in steps(program, order) {
        graph.push(choice(thread, alternative), footprint);
    }
    graph
}

fn names(graph: &HbGraph) -> (HbKey, Fingerprint) {
    (graph.key(), graph.fingerprint())
}

/// All ordered pairs of dependent steps of different threads. They are equal for two executions of
/// one program iff the executions are equivalent. The only part of the implementation that this
/// uses is `Footprint::depends`.
fn dependent_pairs(program: &Program, order: &Order) -> Vec<((usize, usize), (usize, usize))> {
    let steps = steps(program, order);
    let mut pairs = Vec::new();
    for (at, &(t, n, _, ours)) in steps.iter().enumerate() {
        for &(u, m, _, theirs) in &steps[at + 1..] {
            if t != u && ours.depends(theirs) {
                pairs.push(((t, n), (u, m)));
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

fn picks() -> impl Strategy<Value = Vec<Index>> {
    prop::collection::vec(any::<Index>(), 1..40)
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(11),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(1000))]

    #[test]
    fn swapping_independent_neighbours_changes_no_name(
        program in program(4, 8), picks in picks(), swaps in prop::collection::vec(any::<Index>(), 0..80),
    ) {
        let mut order = interleave(&program, &picks);
        let expected = names(&graph(&program, &order));
        for swap in swaps.iter().filter(|_| order.len() > 1).map(|s| s.index(order.len() - 1)).collect::<Vec<_>>() {
            let around = steps(&program, &order);
            let ((t, .., ours), (u, .., theirs)) = (around[swap], around[swap + 1]);
            if t != u && !ours.depends(theirs) {
                order.swap(swap, swap + 1);
                prop_assert_eq!(&names(&graph(&program, &order)), &expected, "{:?}", order);
            }
        }
    }

    #[test]
    fn executions_have_one_name_iff_they_are_equivalent(program in program(3, 4)) {
        let mut classes: HashMap<_, (HbKey, Fingerprint)> = HashMap::new();
        let (mut keys, mut fingerprints) = (HashMap::new(), HashMap::new());
        for order in interleavings(&program) {
            let class = dependent_pairs(&program, &order);
            let (key, fingerprint) = names(&graph(&program, &order));
            let known = classes.entry(class.clone()).or_insert_with(|| (key.clone(), fingerprint));
            prop_assert_eq!(&*known, &(key.clone(), fingerprint), "equivalent, but named \
                                                                   differently: {:?}", order);
            let of_key = keys.entry(key).or_insert_with(|| class.clone());
            prop_assert_eq!(&*of_key, &class, "one key for two classes: {:?}", order);
            let of_fingerprint = fingerprints.entry(fingerprint).or_insert_with(|| class.clone());
            prop_assert_eq!(&*of_fingerprint, &class, "one fingerprint for two classes: {:?}", order);
        }
    }

    /// The states of a search are prefixes of executions, so prefixes matter too.
    #[test]
    fn prefixes_have_one_fingerprint_iff_they_have_one_key(program in program(3, 4)) {
        let (mut by_key, mut by_fingerprint) = (HashMap::new(), HashMap::new());
        for order in interleavings(&program) {
            let mut graph = graph(&program, &order);
            loop {
                let (key, fingerprint) = names(&graph);
                prop_assert_eq!(*by_key.entry(key.clone()).or_insert(fingerprint), fingerprint);
                prop_assert_eq!(by_fingerprint.entry(fingerprint).or_insert_with(|| key.clone()), &key);
                if !graph.pop() {
                    break;
                }
            }
        }
    }

    #[test]
    fn taking_back_restores(program in program(4, 8), picks in picks(), detour in picks()) {
        let order = interleave(&program, &picks);
        let mut graph = HbGraph::new();
        let mut past = vec![names(&graph)];
        for (thread, _, alternative, footprint) in steps(&program, &order) {
            // A detour and its removal must leave no trace in later fingerprints.
            for pick in detour.iter().take(5) {
                let other = pick.index(program.len());
                for (alternative, footprint) in &program[other] {
                    graph.push(choice(other, *alternative), footprint);
                }
                graph.truncate(past.len() - 1);
            }
            graph.push(choice(thread, alternative), footprint);
            past.push(names(&graph));
        }
        prop_assert_eq!(names(&graph), names(&self::graph(&program, &order)));
        while let Some(expected) = past.pop() {
            prop_assert_eq!(graph.len(), past.len());
            prop_assert_eq!(names(&graph), expected);
            prop_assert_eq!(graph.pop(), !past.is_empty());
        }
        prop_assert_eq!(graph.fingerprint(), Fingerprint::default());
    }

    #[test]
    fn clocks_are_reachability(program in program(4, 8), picks in picks()) {
        let order = interleave(&program, &picks);
        let graph = graph(&program, &order);
        let steps = steps(&program, &order);
        let mut reaches = vec![vec![false; steps.len()]; steps.len()];
        for later in 0..steps.len() {
            for earlier in (0..later).rev() {
                let ((t, .., ours), (u, .., theirs)) = (steps[earlier], steps[later]);
                let edge = t == u || ours.depends(theirs);
                reaches[earlier][later] = edge || (earlier..later).any(|mid| reaches[earlier][mid] && reaches[mid][later]);
            }
        }
        for (earlier, later) in (0..steps.len()).flat_map(|e| (0..steps.len()).map(move |l| (e, l))) {
            let expected = reaches[earlier][later];
            prop_assert_eq!(graph.happens_before(earlier, later), expected, "{} {} of {:?}", earlier, later, steps);
            let (a, b) = (graph.step_clock(earlier), graph.step_clock(later));
            prop_assert_eq!(a.at_most(b), expected || earlier == later);
        }
    }
}

/// The smallest programs that need deviations 1 to 3 and the step number n.
#[test]
fn the_name_of_an_action_is_complete() {
    let at = |l, access| [(Location(l), access)].into_iter().collect::<Footprint>();
    let (read, write) = (at(0, Access::Read), at(0, Access::Write));
    let name = |steps: &[(usize, u32, &Footprint)]| {
        let mut graph = HbGraph::new();
        steps.iter().for_each(|&(thread, alternative, footprint)| {
            graph.push(choice(thread, alternative), footprint)
        });
        graph.fingerprint()
    };
    assert_ne!(name(&[(0, 0, &read), (0, 0, &read)]), name(&[]), "the number of the step");
    assert_ne!(name(&[(0, 0, &write)]), name(&[(0, 1, &write)]), "the alternative");
    assert_ne!(name(&[(0, 0, &write)]), name(&[(1, 0, &write)]), "the thread");
    assert_ne!(name(&[(0, 0, &write)]), name(&[(0, 0, &read)]), "the access");
    assert_ne!(name(&[(0, 0, &write)]), name(&[(0, 0, &at(1, Access::Write))]), "the location");
    assert_ne!(
        name(&[(0, 0, &write), (1, 0, &write)]),
        name(&[(1, 0, &write), (0, 0, &write)]),
        "the order"
    );
    assert_eq!(
        name(&[(0, 0, &read), (1, 0, &read)]),
        name(&[(1, 0, &read), (0, 0, &read)]),
        "reads have none"
    );
}

/// Stored fingerprints outlive a build. If this fails, raise `fingerprint::VERSION`.
#[test]
fn the_name_of_a_graph_is_fixed() {
    let of = |accesses: &[(u32, Access)]| {
        accesses.iter().map(|&(l, a)| (Location(l), a)).collect::<Footprint>()
    };
    let mut graph = HbGraph::new();
    graph.push(choice(1, 2), &of(&[(5, Access::Read), (7, Access::Write)]));
    graph.push(choice(0, 0), &of(&[(5, Access::Write)]));
    assert_eq!(graph.fingerprint().0, 0x008c_bf76_aa4b_74df_8674_d719_8949_8324);
}
