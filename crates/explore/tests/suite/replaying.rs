//! Replays, and the oracle's counts of preemptions and executions compared with numbers computed by
//! hand.

use std::collections::BTreeMap;

use crate::toy::{Op, Toy, grid, philosophers, random};
use preempt_explore::cursor::Cursor;
use preempt_explore::model::ModelExecution;
use preempt_explore::replay::end;
use preempt_explore::{Order, Plan, Silent, oracle};
use preempt_system::{Choice, FailureKind, Schedule, System as _, ThreadId, ThreadSet};

fn schedule(threads: &[usize]) -> Schedule {
    Schedule::new(threads.iter().map(|&thread| Choice::of(ThreadId::new(thread))).collect())
}

fn begin(toy: &Toy) -> Cursor<ModelExecution<'_, Toy>> {
    Cursor::new(toy).expect("states of a toy have room")
}

#[test]
fn a_replay_ends_with_its_failures_and_preemptions() {
    let lock = |cell| Op::Lock { cell };
    let toy = Toy::new(2, vec![vec![lock(0), lock(1)], vec![lock(1), lock(0)]]);
    let ended = end(begin(&toy), &schedule(&[0, 1])).expect("a schedule of this program");
    let kinds: Vec<FailureKind> = ended.failures.iter().map(|failure| failure.kind).collect();
    assert_eq!(kinds, [FailureKind::Deadlock]);
    assert_eq!((ended.preemptions, ended.cycle), (1, 0));
}

#[test]
fn a_schedule_that_does_not_fit_says_where() {
    let lock = Op::Lock { cell: 0 };
    let toy = Toy::new(1, vec![vec![lock], vec![lock, lock]]);
    let step = |schedule: &Schedule| end(begin(&toy), schedule).err().map(|misfit| misfit.step);
    assert_eq!(step(&schedule(&[0, 1])), Some(1), "the thread is blocked");
    assert_eq!(step(&schedule(&[0, 0])), Some(1), "it has ended");
    assert_eq!(step(&schedule(&[2])), Some(0), "there is no such thread");
    let absent = Choice { thread: ThreadId::new(0), alternative: 1 };
    assert_eq!(step(&Schedule::new(vec![absent])), Some(0), "there is no such alternative");
    assert_eq!(step(&schedule(&[0])), None);
}

/// Two threads that spin until the other one sets a cell, which neither does.
#[test]
fn a_livelock_ends_in_a_cycle_that_can_be_repeated() {
    let spin = |cell| vec![Op::JumpIf { cell, value: 0, to: 0 }];
    let toy = Toy::new(2, vec![spin(0), spin(1)]);
    let plan = Plan::new().order(Order::Random).runs(1);
    let (outcome, _) = plan.build().expect("the plan is valid").run(toy.clone(), &Silent);
    let [finding] = &outcome.findings[..] else { panic!("{outcome:?}") };
    assert_eq!(finding.failure.kind, FailureKind::Livelock);
    let (stem, cycle) = (finding.schedule.stem(), finding.schedule.cycle());
    let movers: ThreadSet = cycle.iter().map(|choice| choice.thread).collect();
    assert_eq!(movers, ThreadSet::first(2), "every thread moves in it: {finding:?}");
    let mut cursor = begin(&toy);
    let mut take = |steps: &[Choice]| {
        steps.iter().for_each(|&choice| {
            assert!(cursor.can(choice));
            assert_eq!(cursor.step(choice), Ok(None));
        });
        cursor.system().words().expect("states are known").to_vec()
    };
    let start = take(stem);
    assert_eq!([take(cycle), take(cycle)], [start.clone(), start], "it leads back");
}

#[test]
fn findings_need_at_least_the_preemptions_of_the_oracle() {
    let mut least_met = 0;
    for seed in 0..300 {
        let toy = random(seed);
        let least = oracle::least_preemptions(&toy);
        let (outcome, _) =
            Plan::new().keep_going().build().expect("the plan is valid").run(toy, &Silent);
        assert_eq!(outcome.findings.len(), least.len());
        for finding in &outcome.findings {
            let least = least[&oracle::name(&finding.failure)];
            assert!(least <= finding.preemptions, "seed {seed}: {finding:?}");
            least_met += u32::from(least == finding.preemptions);
        }
    }
    assert!(
        least_met > 100,
        "short schedules often have few preemptions, but not in {least_met} cases only"
    );
}

/// The fewest preemptions of each failure, by trying schedules until none is a cheaper path to a
/// pair of state and last thread.
fn least_by_relaxation(toy: &Toy) -> BTreeMap<oracle::FailureName, u32> {
    let mut least = BTreeMap::new();
    let mut known = BTreeMap::new();
    let mut queue: Vec<(Schedule, u32)> = vec![(Schedule::default(), 0)];
    while let Some((schedule, cost)) = queue.pop() {
        let mut cursor = begin(toy);
        for &choice in schedule.steps() {
            cursor.step(choice).expect("states of a toy have room");
        }
        let ended = end(begin(toy), &schedule).expect("a schedule of this program");
        assert_eq!(ended.preemptions, cost);
        for failure in ended.failures.iter().filter(|of| of.kind != FailureKind::Race) {
            let least = least.entry(oracle::name(failure)).or_insert(cost);
            *least = cost.min(*least);
        }
        let last = schedule.steps().last().map(|choice| choice.thread);
        let position = (cursor.system().words().expect("states are known").to_vec(), last);
        if known.get(&position).is_some_and(|&known| known <= cost) {
            continue;
        }
        known.insert(position, cost);
        for thread in cursor.enabled().iter() {
            for step in cursor.choices(thread) {
                let longer = schedule.steps().iter().copied().chain([step]).collect();
                queue.push((Schedule::new(longer), cursor.preemptions_with(thread)));
            }
        }
    }
    least
}

#[test]
fn the_oracle_finds_the_least_preemptions() {
    let mut preempting = 0;
    for seed in 0..50 {
        let toy = random(seed);
        let least = oracle::least_preemptions(&toy);
        assert_eq!(least, least_by_relaxation(&toy), "seed {seed}");
        preempting += least.values().filter(|&&least| least > 0).count();
    }
    assert!(preempting >= 10, "some failures need preemptions, not only {preempting}");
}

#[test]
fn the_oracle_counts_preemptions() {
    // The last philosopher takes a fork and is preempted; the one before it takes its own and waits
    // for that one, and so on.
    assert_eq!(oracle::least_preemptions(&philosophers(3)).into_values().collect::<Vec<_>>(), [1]);
    // A lock hides the middle of each thread; waiting for it is free.
    let thread =
        || vec![Op::Lock { cell: 0 }, Op::Set { cell: 1, value: 1 }, Op::Unlock { cell: 0 }];
    assert!(oracle::least_preemptions(&Toy::new(2, vec![thread(), thread()])).is_empty());
}

#[test]
fn the_oracle_counts_executions_by_preemptions() {
    // Two threads of k steps: schedules are words of k zeros and k ones. A change of letter is a
    // preemption unless the thread before it has ended.
    for k in 1..6 {
        let mut by_hand: BTreeMap<u32, u128> = BTreeMap::new();
        for word in 0u32..1 << (2 * k) {
            if word.count_ones() != k {
                continue;
            }
            let (mut left, mut last, mut preemptions) = ([k, k], None, 0);
            for i in 0..2 * k {
                let thread = (word >> i & 1) as usize;
                preemptions += u32::from(last.is_some_and(|last| last != thread && left[last] > 0));
                left[thread] -= 1;
                last = Some(thread);
            }
            *by_hand.entry(preemptions).or_default() += 1;
        }
        assert_eq!(oracle::executions(&grid(2, k as usize)), Some(by_hand));
    }
    // 3 threads of 2 steps: 6! / 2!³ = 90.
    let all = oracle::executions(&grid(3, 2)).expect("an end");
    assert_eq!(all.values().sum::<u128>(), 90);
    assert_eq!(all[&0], 6, "one order of the threads each");
}

#[test]
fn a_program_that_runs_forever_has_no_count() {
    let forever = Toy::new(1, vec![vec![Op::JumpIf { cell: 0, value: 0, to: 0 }]]);
    assert_eq!(oracle::executions(&forever), None);
    let choice = Toy::new(1, vec![vec![Op::Choose { cell: 0, count: 4, absent: 2 }]]);
    assert_eq!(oracle::executions(&choice), Some(BTreeMap::from([(0, 2)])));
}
