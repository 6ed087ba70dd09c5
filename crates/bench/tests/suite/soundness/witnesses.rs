//! Combinations that are unsound, and the smallest programs that show it.

use std::collections::{HashSet, VecDeque};

use preempt_bench::corpus;
use preempt_explore::cursor::Cursor;
use preempt_explore::execution::{Stop, Visitor};
use preempt_explore::model::ModelExecution;
use preempt_explore::reduce::dpor::Sleep;
use preempt_explore::reduce::{Dependence, cb_por, dpor};
use preempt_explore::{Cache, Order, Plan, Silent};
use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::{Choice, Schedule, System as _};

use crate::reductions::watch::{Collect, again};

fn zoo(letter: char) -> Machine {
    corpus::machine(&corpus::root().join(format!("zoo/{letter}.pre")), &[])
        .expect("the corpus is well")
}

/// Flanagan and Godefroid's reduction considers the last race only. With sleep sets that is not
/// enough.
pub fn the_last_race_is_not_enough_with_sleep_sets() {
    let by = |sleep| {
        let strategy = |cursor: &mut Cursor<ModelExecution<'_, Machine>>, collect: &mut Collect| {
            dpor::flanagan_godefroid(cursor, collect, Dependence::ReadWrite, sleep)
        };
        again(zoo('n'), strategy).0.1.seen.traces.len()
    };
    assert_eq!((by(Sleep::Never), by(Sleep::Incomplete)), (4, 3));
}

/// Plain sleep sets, where executions with too many preemptions are left out.
fn naive(
    cursor: &mut Cursor<ModelExecution<'_, Machine>>,
    collect: &mut Collect,
    bound: u32,
    sleep: &[Choice],
) -> Result<(), Stop> {
    if cursor.enabled().is_empty() {
        return collect.end(cursor);
    }
    let mut asleep = sleep.to_vec();
    for choice in cursor.enabled().iter().map(Choice::of) {
        let preempts = cursor.preemptions().would_preempt(choice.thread, cursor.enabled());
        if asleep.contains(&choice) || cursor.preemptions().count() + u32::from(preempts) > bound {
            continue;
        }
        let taken = cursor.footprint(choice);
        let stays = |other: &&Choice| {
            other.thread != choice.thread && !cursor.footprint(**other).depends(taken)
        };
        let inherited: Vec<Choice> = asleep.iter().filter(stays).copied().collect();
        cursor.step(choice)?;
        naive(cursor, collect, bound, &inherited)?;
        cursor.rewind(cursor.len() - 1);
        asleep.push(choice);
    }
    Ok(())
}

pub fn sleep_sets_and_a_bound_lose_a_trace() {
    for (letter, bound, expected, found) in [('x', 0, 2, 1), ('a', 0, 2, 1), ('h', 1, 4, 3)] {
        let (((), naive), machine) =
            again(zoo(letter), |cursor, collect| naive(cursor, collect, bound, &[]));
        assert_eq!(
            (traces(machine, bound), naive.seen.traces.len()),
            (expected, found),
            "program {letter}"
        );
    }
}

/// The traces of a program within a bound.
fn traces(machine: Machine, bound: u32) -> u64 {
    let config = cb_por::Config { bound, ..cb_por::Config::default() };
    again(machine, |cursor, collect| cb_por::terminals(cursor, collect, &config)).0.0.executions
}

/// Dynamic reduction of program X, keeping only its executions without a preemption. A search that
/// abandons the others early would see even less.
pub fn dynamic_reduction_and_a_bound_lose_a_trace(reduction: Dynamic) {
    let ((_, all), machine) = again(zoo('x'), |cursor, collect| {
        let by = Dependence::ReadWrite;
        match reduction {
            Dynamic::Source => dpor::source(cursor, collect, by),
            Dynamic::Optimal => dpor::optimal(cursor, collect, by),
            Dynamic::FlanaganGodefroid => {
                dpor::flanagan_godefroid(cursor, collect, by, Sleep::Never)
            }
        }
    });
    let within = all.seen.traces.values().filter(|&&preemptions| preemptions == 0).count();
    assert_eq!((traces(machine, 0), all.seen.traces.len(), within), (2, 2, 1), "{reduction:?}");
}

/// The dynamic reductions without a bound.
#[derive(Clone, Copy, Debug)]
pub enum Dynamic {
    Source,
    Optimal,
    FlanaganGodefroid,
}

/// The threads of the page's program. The error needs one preemption: `U` writes, then `T` runs.
/// The state after the first step of each is lost if it is reached first with `T` interrupted,
/// because then `T` cannot continue.
const T: &str = "thread t { y = 1; assert x != 1; }";
const U: &str = "thread u { x = 1; x = 0; }";

/// Whether a search over states that abandons executions with more preemptions finds a failure.
fn finds_with_a_set_of_states(
    machine: &Machine,
    bound: u32,
    take: fn(&mut VecDeque<Schedule>) -> Option<Schedule>,
) -> bool {
    let mut cursor = Cursor::new(machine).expect("the program starts");
    let (mut seen, mut waiting) = (
        HashSet::from([cursor.system().words().map(<[u64]>::to_vec)]),
        VecDeque::from([Schedule::default()]),
    );
    while let Some(schedule) = take(&mut waiting) {
        cursor.rewind(0);
        for &choice in schedule.steps() {
            cursor.step(choice).expect("states are large enough");
        }
        for choice in cursor.enabled().iter().map(Choice::of) {
            if cursor.preemptions_with(choice.thread) > bound {
                continue;
            }
            if cursor.step(choice).expect("states are large enough").is_some() {
                return true;
            }
            if seen.insert(cursor.system().words().map(<[u64]>::to_vec)) {
                waiting.push_back(cursor.schedule());
            }
            cursor.rewind(cursor.len() - 1);
        }
    }
    false
}

pub fn a_set_of_states_and_a_bound_lose_an_error() {
    // The search takes T first, in either order: the first of a queue, the last of a stack.
    type Take = fn(&mut VecDeque<Schedule>) -> Option<Schedule>;
    let cases: [(Take, [&str; 2]); 2] =
        [(VecDeque::pop_front, [T, U]), (VecDeque::pop_back, [U, T])];
    for (take, [first, second]) in cases {
        let text = format!("atomic var x = 0; atomic var y = 0; {first} {second}");
        let machine =
            preempt_lang::load(&Source::new("visited.pre", text.as_str()), &[]).expect("a model");
        let icb = Plan::new()
            .order(Order::Icb { cache: Cache::Hb })
            .bound(1)
            .build()
            .expect("the plan is valid");
        let (outcome, machine) = icb.run(machine, &Silent);
        assert_eq!(outcome.findings.len(), 1, "icb finds it within the bound: {text}");
        let finds = |bound| finds_with_a_set_of_states(&machine, bound, take);
        assert_eq!((finds(1), finds(2)), (false, true), "within bounds 1 and 2: {text}");
    }
}
