//! Diagrams take the same steps as the interpreter. From every state of small programs, and from
//! the first states of large ones, each step is taken both ways. The interpreter takes every step
//! for which a footprint is requested.

use std::collections::{HashSet, VecDeque};

use preempt_bench::corpus;
use preempt_bench::random::{self, Shape, locked, records};
use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::{
    Batch, BlockedCounts, Capacity, Choice, Footprint, Model, Step, Stepper, ThreadId,
};

/// Counts of comparisons.
#[derive(Default)]
struct Compared {
    moved: usize,
    blocked: usize,
    failed: usize,
    absent: usize,
    violated: usize,
}

/// Takes the steps of up to `most` states both ways. `Err` means that the states are too small.
fn compare(machine: &Machine, most: usize, compared: &mut Compared) -> Result<(), Capacity> {
    let shape = machine.shape();
    let (mut quick, mut careful) = (machine.stepper(), machine.stepper());
    let mut initial = vec![0; shape.words];
    if let Step::Full(capacity) = quick.initial(&mut initial) {
        return Err(capacity);
    }
    let (mut seen, mut todo) = (HashSet::from([initial.clone()]), VecDeque::from([initial]));
    while let Some(state) = todo.pop_front() {
        let (held, holds) = (
            quick.invariant(&state),
            careful.invariant_with_footprint(&state, &mut Footprint::new()),
        );
        assert_eq!(held, holds, "invariants of {state:x?}");
        compared.violated += usize::from(held.is_err());
        let (mut idle, mut after) = (BlockedCounts::default(), Vec::new());
        for thread in (0..shape.threads).map(ThreadId::new) {
            let (mut alternative, mut alternatives) = (0, 1);
            // Also tries two alternatives that do not exist.
            while alternative < alternatives + 2 {
                let choice = Choice { thread, alternative };
                alternative += 1;
                let (mut next, mut other) = (state.clone(), state.clone());
                let step = quick.step(&mut next, choice);
                let same = careful.step_with_footprint(&mut other, choice, &mut Footprint::new());
                assert_eq!(step, same, "{choice:?} in {state:x?}");
                match step {
                    Step::Moved { .. } => compared.moved += 1,
                    Step::Failed(_) => compared.failed += 1,
                    Step::Blocked { resting } => {
                        compared.blocked += 1;
                        let waiting = if resting { &mut idle.resting } else { &mut idle.waiting };
                        *waiting += u64::from(choice.alternative == 0);
                    }
                    Step::Absent => compared.absent += 1,
                    Step::Ended => idle.ended += u64::from(choice.alternative == 0),
                    Step::Vacant => {}
                    Step::Full(capacity) => return Err(capacity),
                }
                if let Step::Absent = step {
                    continue;
                }
                assert_eq!(next, other, "{choice:?} in {state:x?}: {step:?}");
                if let Step::Moved { .. } | Step::Failed(_) = step {
                    assert_eq!(
                        quick.alternatives(),
                        careful.alternatives(),
                        "{choice:?} in {state:x?}"
                    );
                    alternatives = alternatives.max(quick.alternatives());
                    after.push((choice, next.clone()));
                    if seen.len() < most && seen.insert(next.clone()) {
                        todo.push_back(next);
                    }
                }
            }
        }
        assert_eq!(expand(&mut quick, &state, shape.threads), (idle, after), "{state:x?}");
    }
    Ok(())
}

/// All steps of a state, taken together where that is possible.
fn expand(
    stepper: &mut impl Stepper,
    state: &[u64],
    threads: usize,
) -> (BlockedCounts, Vec<(Choice, Vec<u64>)>) {
    let (mut batch, mut idle, mut next) =
        (Batch::<0>::new(state.len()), BlockedCounts::default(), 0);
    while let Some(partial) = stepper.step_all(state, next..threads, &mut batch, &mut idle) {
        next = partial.thread.index() + 1;
        let (mut alternative, mut alternatives) = (0, 1);
        while alternative < alternatives {
            match stepper.finish_step(state, batch.draft(), partial, alternative) {
                Step::Moved { .. } | Step::Failed(_) => {
                    batch.keep(Choice { thread: partial.thread, alternative });
                    alternatives = alternatives.max(stepper.alternatives());
                }
                Step::Blocked { resting: true } if alternative == 0 => idle.resting += 1,
                Step::Blocked { resting: false } if alternative == 0 => idle.waiting += 1,
                Step::Ended => idle.ended += 1,
                _ => {}
            }
            alternative += 1;
        }
    }
    let after = (0..batch.len()).map(|number| (batch.choice(number), batch.state(number).to_vec()));
    (idle, after.collect())
}

/// Compares with states that are large enough, also with the stable names and the owners that some
/// searches request, and with cells that are packed for some of their values.
fn compare_all(machine: Machine, most: usize) -> Compared {
    let mut compared = Compared::default();
    let stable = machine.clone().with_stable_names();
    let narrow = machine.clone().pack_for_observed_values(40);
    for mut machine in [machine.clone().with_owners(), stable, narrow, machine] {
        let mut grown = 0;
        while let Err(capacity) = compare(&machine, most, &mut compared) {
            machine = machine.grow(capacity);
            grown += 1;
            if grown == 12 {
                break;
            }
        }
    }
    compared
}

fn load(text: &str) -> Machine {
    preempt_lang::load(&Source::new("random.pre", text), &[]).expect("random programs are programs")
}

#[test]
fn of_the_corpus() {
    let (mut all, mut models) = (Compared::default(), 0);
    for subject in corpus::subjects().expect("the corpus can be read") {
        for run in &subject.runs {
            let compared =
                compare_all(subject.machine(run).expect("models of the corpus are models"), 400);
            assert!(compared.moved + compared.failed > 0, "{}", subject.name());
            models += 1;
            all.moved += compared.moved;
            all.blocked += compared.blocked;
            all.failed += compared.failed;
            all.absent += compared.absent;
            all.violated += compared.violated;
        }
    }
    assert!(
        models > 100 && all.moved > 50_000 && all.blocked > 10_000 && all.absent > 10_000,
        "{models} models"
    );
    assert!(
        all.failed > 10 && all.violated > 10,
        "{} failed, {} violated",
        all.failed,
        all.violated
    );
}

#[test]
fn of_random_programs() {
    let mut moved = 0;
    for seed in 0..600 {
        let shape = Shape { threads: (2, 4), statements: 5 };
        for text in [random::program(seed, shape), locked::program(seed), records::program(seed)] {
            moved += compare_all(load(&text), 150).moved;
        }
    }
    assert!(moved > 100_000, "only {moved} steps were taken");
}
