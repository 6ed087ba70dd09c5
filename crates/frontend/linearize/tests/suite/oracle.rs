//! The search for a witness, compared with brute force on random histories: all permutations of
//! the calls that respect the order, each run on a random sequential machine.

use preempt_linearize::{Answer, CallOutcome, Criterion, History, SerialTree, witness};

/// A small generator of random numbers: xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n
    }
}

const STATES: usize = 3;

/// A sequential object: for each state and call, some pairs of a result and a next state. No pair:
/// the call blocks.
struct Machine(Vec<Vec<Vec<(u32, usize)>>>);

impl Machine {
    fn random(random: &mut Random, calls: usize, blocks: bool, choices: u64) -> Machine {
        let mut entry = || {
            let count = if blocks && random.below(4) == 0 { 0 } else { 1 + random.below(choices) };
            (0..count)
                .map(|_| (random.below(2) as u32, random.below(STATES as u64) as usize))
                .collect()
        };
        Machine((0..STATES).map(|_| (0..calls).map(|_| entry()).collect()).collect())
    }

    /// The states after these calls with these results, from the first state.
    fn run(&self, calls: &[(usize, u32)]) -> Vec<usize> {
        let mut states = vec![0];
        for &(call, result) in calls {
            let next = states.iter().flat_map(|&state| &self.0[state][call]);
            let mut next: Vec<usize> =
                next.filter(|(returned, _)| *returned == result).map(|&(_, state)| state).collect();
            next.sort_unstable();
            next.dedup();
            states = next;
        }
        states
    }

    fn blocks(&self, states: &[usize], call: usize) -> bool {
        states.iter().any(|&state| self.0[state][call].is_empty())
    }

    /// All serial executions that keep the order of each thread.
    fn tree(&self, programs: &[Vec<usize>]) -> SerialTree {
        fn grow(
            machine: &Machine,
            programs: &[Vec<usize>],
            (tree, at): (&mut SerialTree, usize),
            done: &mut Vec<usize>,
            state: usize,
        ) {
            let is_over = programs.iter().zip(&*done).all(|(program, &done)| program.len() == done);
            if is_over {
                tree.observe(at, state as u32);
            }
            for thread in 0..programs.len() {
                let Some(&call) = programs[thread].get(done[thread]) else { continue };
                done[thread] += 1;
                if machine.0[state][call].is_empty() {
                    tree.extend(at, call, CallOutcome::Blocks);
                }
                for &(result, next) in &machine.0[state][call] {
                    let after = tree.extend(at, call, CallOutcome::Returned(result));
                    grow(machine, programs, (tree, after), done, next);
                }
                done[thread] -= 1;
            }
        }
        let mut tree = SerialTree::default();
        let root = SerialTree::ROOT;
        grow(self, programs, (&mut tree, root), &mut vec![0; programs.len()], 0);
        tree
    }
}

/// Whether real time orders two calls, from the events of the history: for each call, when it was
/// made and when it returned.
fn is_ordered(
    criterion: Criterion,
    events: &[(u32, u32)],
    threads: &[usize],
    earlier: usize,
    later: usize,
) -> bool {
    let (a, b) = (events[earlier], events[later]);
    match criterion {
        Criterion::Linearizable | Criterion::OutOfOrder(_) => a.1 < b.0,
        Criterion::Sequential => threads[earlier] == threads[later] && a.1 < b.0,
        // A moment between the two at which no call is pending.
        Criterion::Quiescent => (a.1..b.0).any(|moment| {
            events.iter().all(|&(call, returned)| returned <= moment || call > moment)
        }),
    }
}

fn permutations(items: &[usize]) -> Vec<Vec<usize>> {
    if items.is_empty() {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for (at, &first) in items.iter().enumerate() {
        let rest: Vec<usize> =
            items.iter().enumerate().filter(|(other, _)| *other != at).map(|(_, &i)| i).collect();
        for mut order in permutations(&rest) {
            order.insert(0, first);
            all.push(order);
        }
    }
    all
}

struct Case {
    threads: Vec<usize>,
    programs: Vec<Vec<usize>>,
    history: History,
    /// When each call was made and when it returned; `u32::MAX` if never.
    events: Vec<(u32, u32)>,
    observed: Option<u32>,
}

impl Case {
    /// A random history of up to five calls of three threads. `stuck`: it ends at a random moment.
    fn random(random: &mut Random, stuck: bool) -> Case {
        let mut programs = vec![Vec::new(); 3];
        let calls = 2 + random.below(4) as usize;
        let mut threads: Vec<usize> = (0..calls).map(|_| random.below(3) as usize).collect();
        threads.sort_unstable();
        threads.iter().enumerate().for_each(|(call, &thread)| programs[thread].push(call));
        let mut history = History::new(&threads);
        let mut events = vec![(u32::MAX, u32::MAX); calls];
        let (mut at, mut now) = (vec![0; 3], 0);
        loop {
            let open: Vec<usize> =
                (0..3).filter(|&thread| at[thread] < 2 * programs[thread].len()).collect();
            if open.is_empty() || stuck && now > 1 && random.below(6) == 0 {
                break;
            }
            let thread = open[random.below(open.len() as u64) as usize];
            let call = programs[thread][at[thread] / 2];
            if at[thread] % 2 == 0 {
                history.call(call);
                events[call].0 = now;
            } else {
                history.returned(call, random.below(2) as u32);
                events[call].1 = now;
            }
            at[thread] += 1;
            now += 1;
        }
        let is_complete = history.complete().count_ones() as usize == calls;
        let observed = (is_complete && random.below(2) == 0).then(|| random.below(3) as u32);
        observed.into_iter().for_each(|seen| history.observe(seen));
        Case { threads, programs, history, events, observed }
    }

    fn brute(&self, machine: &Machine, criterion: Criterion) -> bool {
        let returned = |call: usize| match self.history.answer(call) {
            Answer::Returned(result) => Some(result),
            _ => None,
        };
        let complete: Vec<usize> =
            (0..self.threads.len()).filter(|&call| returned(call).is_some()).collect();
        let orders: Vec<Vec<usize>> = permutations(&complete)
            .into_iter()
            .filter(|order| {
                let pairs =
                    (0..order.len()).flat_map(|b| (0..b).map(move |a| (order[a], order[b])));
                pairs.into_iter().all(|(first, second)| {
                    !is_ordered(criterion, &self.events, &self.threads, second, first)
                })
            })
            .collect();
        let ends = |order: &Vec<usize>| {
            let calls: Vec<(usize, u32)> = order
                .iter()
                .map(|&call| (call, returned(call).expect("complete calls have returned")))
                .collect();
            machine.run(&calls)
        };
        let pending: Vec<usize> = (0..self.threads.len())
            .filter(|&call| self.history.answer(call) == Answer::Pending)
            .collect();
        if pending.is_empty() {
            return orders.iter().map(ends).any(|states| match self.observed {
                Some(seen) => states.contains(&(seen as usize)),
                None => !states.is_empty(),
            });
        }
        pending
            .iter()
            .all(|&call| orders.iter().map(ends).any(|states| machine.blocks(&states, call)))
    }
}

fn compare(seed: u64, stuck: bool, choices: u64) -> [u32; 2] {
    let mut random = Random(seed);
    let mut verdicts = [0; 2];
    for _ in 0..4_000 {
        let case = Case::random(&mut random, stuck);
        let calls = case.threads.len();
        let machine = Machine::random(&mut random, calls, stuck, choices);
        // Quiescent consistency does not keep the order of a thread's calls.
        let apart: Vec<Vec<usize>> = (0..calls).map(|call| vec![call]).collect();
        let trees = [machine.tree(&case.programs), machine.tree(&apart)];
        // An incomplete history that is not stuck has an observer that never ran.
        if !stuck && case.history.pending().next().is_some() {
            continue;
        }
        for criterion in [Criterion::Linearizable, Criterion::Sequential, Criterion::Quiescent] {
            let tree = &trees[usize::from(criterion == Criterion::Quiescent)];
            let found = witness::search(&case.history, tree, criterion);
            let expected = case.brute(&machine, criterion);
            assert_eq!(found.is_ok(), expected, "{criterion:?}: {:?}\n{found:?}", case.history);
            verdicts[usize::from(expected)] += 1;
        }
    }
    verdicts
}

#[test]
fn the_search_agrees_with_brute_force_on_complete_histories() {
    let [bad, good] = compare(1, false, 1);
    assert!(bad > 1_000 && good > 1_000, "{bad} without a witness, {good} with one");
}

#[test]
fn the_search_agrees_with_brute_force_if_specifications_have_choices() {
    let [bad, good] = compare(2, false, 2);
    assert!(bad > 1_000 && good > 1_000, "{bad} without a witness, {good} with one");
}

#[test]
fn the_search_agrees_with_brute_force_on_stuck_histories() {
    let [bad, good] = compare(3, true, 1);
    assert!(bad > 1_000 && good > 1_000, "{bad} without a witness, {good} with one");
}
