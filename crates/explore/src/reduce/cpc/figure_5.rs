//! The unsound reduction of the paper's Figure 5, as printed: a thread takes a step only where
//! every other is outside its transaction.
//!
//! **Paper.** cpc, section 3: the sets R(t), L(t), N(t) and the rules INIT and STEP.
//!
//! **Guarantees.** None: a transaction that commits and never ends hides everything that other
//! threads could do. It serves as a comparison, and it is not the lower bound of the paper's Table
//! 1: N(t) contains the initial store of t, so that it may visit more than the sound search.
//!
//! **Deviations.** 1. A model does not say whether the local store of a thread is its initial one.
//! It is assumed to be as long as the thread has not moved, which is the same in programs that
//! never return to it.
//!
//! **Cost.** Every thread is tried in every state.

use preempt_system::{Choice, Failure, Model, Schedule, Step, StepLog, Stepper, ThreadId};

use super::Found;
use super::discipline::{Breach, Discipline};
use super::random_walks::observe_random_walks;
use super::table::Table;
use crate::engine::control::SearchControl;
use crate::engine::distinct_failures::DistinctFailures;
use crate::engine::execution::Stop;

/// A step from a state.
struct Successor {
    choice: Choice,
    key: Vec<u64>,
    /// A left mover or local.
    left: bool,
    failure: Option<Failure>,
}

/// The states that the rules derive. The result is meaningless if the control has stopped the
/// search.
pub(super) fn least_fixpoint<M: Model>(model: &M, control: &SearchControl<'_>) -> Found {
    let mut discipline = Discipline::new(model.shape().threads);
    observe_random_walks(model, &mut discipline);
    let mut breaches = 0;
    loop {
        match attempt(model, control, &mut discipline) {
            Ok(found) => return Found { breaches, ..found },
            Err(Breach) => {
                breaches += 1;
                discipline.restart();
            }
        }
    }
}

fn attempt<M: Model>(
    model: &M,
    control: &SearchControl<'_>,
    discipline: &mut Discipline,
) -> Result<Found, Breach> {
    let shape = model.shape();
    let (words, threads) = (shape.words, shape.threads);
    let mut stepper = model.stepper();
    // The state, the phases, and which threads have moved.
    let mut initial = vec![0; words + 2];
    let _ = stepper.initial(&mut initial[..words]);
    let mut table = Table::<0>::new(words + 2);
    let mut found =
        Found { states: 1, transitions: 0, forced: Vec::new(), breaches: 0, failures: Vec::new() };
    let mut failures = DistinctFailures::default();
    let mut waiting = vec![(initial.clone(), Vec::new())];
    table.insert(&initial).expect("a small table can be allocated");
    while let Some((key, path)) = waiting.pop() {
        let mut all = Vec::new();
        for thread in (0..threads).map(ThreadId::new) {
            match successors(&mut stepper, discipline, &key, words, thread)? {
                Ok(successors) => all.push(successors),
                Err(capacity) => {
                    control.stop(Stop::Restart(capacity));
                    return Ok(found);
                }
            }
        }
        let bit = |word: usize, thread: usize| key[word] >> thread & 1 == 1;
        let outside = |thread: usize| {
            let committed =
                !bit(words, thread) && all[thread].iter().any(|successor| successor.left);
            !bit(words + 1, thread) || !(bit(words, thread) || committed)
        };
        for thread in (0..threads).filter(|&t| (0..threads).all(|u| u == t || outside(u))) {
            for successor in &all[thread] {
                found.transitions += 1;
                let path: Vec<Choice> = path.iter().copied().chain([successor.choice]).collect();
                if let Some(failure) = &successor.failure {
                    failures.record_shortest(failure.clone(), Schedule::new(path.clone()));
                }
                if table.insert(&successor.key).expect("there is memory").1 {
                    waiting.push((successor.key.clone(), path));
                }
            }
        }
    }
    Ok(Found { states: table.len(), failures: failures.into_vec(), ..found })
}

/// The steps of a thread from a state.
fn successors<S: Stepper>(
    stepper: &mut S,
    discipline: &mut Discipline,
    key: &[u64],
    words: usize,
    thread: ThreadId,
) -> Result<Result<Vec<Successor>, preempt_system::Capacity>, Breach> {
    let (mut successors, mut log) = (Vec::new(), StepLog::new());
    let (mut alternative, mut alternatives) = (0, 1);
    while alternative < alternatives {
        let choice = Choice { thread, alternative };
        alternative += 1;
        let mut next = key.to_vec();
        log.clear();
        let step = stepper.step_with_log(&mut next[..words], choice, &mut log);
        if step == Step::Absent {
            continue;
        }
        let class = discipline.class(stepper, &key[..words], thread, &log)?;
        let failure = match step {
            Step::Moved { .. } => None,
            Step::Failed(failure) => Some(*failure),
            Step::Full(capacity) => return Ok(Err(capacity)),
            Step::Blocked { .. } | Step::Ended | Step::Vacant | Step::Absent => continue,
        };
        alternatives = alternatives.max(stepper.alternatives());
        let before = key[words] >> thread.index() & 1 == 1;
        let after = class.is_right() && (before || !class.is_left());
        next[words] = next[words] & !(1 << thread.index()) | u64::from(after) << thread.index();
        next[words + 1] |= 1 << thread.index();
        successors.push(Successor { choice, key: next, left: class.is_left(), failure });
    }
    Ok(Ok(successors))
}
