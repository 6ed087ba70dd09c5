//! Cartesian reduction: a search over states in which every thread runs ahead as long as it affects
//! no other thread.
//!
//! **Paper.** cartesian, sections 4 to 6: CalcCV (Figure 6, `vector.rs`), the search (Figure 7) and
//! its concurrent variant (Figure 8, `search.rs`, `work.rs`).
//!
//! **Guarantees.** Sound and complete for local properties: every local state of every thread is
//! reached on some prefix (Theorem 1), hence every failed assertion and every run-time error.
//! Deadlocks and invariants too, by the two arguments below, which are not in the paper. Not every
//! state is visited, and schedules are not the shortest.
//!
//! *Deadlocks.* Let *d* be a deadlock reachable from a covered state *s*, and *w* a shortest path
//! from *s* to *d*. If some thread reaches the end of its prefix on *w*, take the first that does:
//! all steps before belong to bodies of prefixes, which are independent of all of this prefix, so
//! that the prefix can be taken first; it leads to a covered state from which *d* is nearer.
//! Otherwise all of *w* belongs to bodies. They are independent of everything in the other
//! prefixes, so that in *d* the next step of every thread is the next one of its own prefix: the
//! thread stands still there, and its prefix is its part of *w* followed by self-loops. So *d* is
//! the state to which all prefixes together lead, and this is visible in *s*: every prefix ends
//! with a thread that stands still, and one of them waits. Conversely, where every prefix ends like
//! this, the last transitions only read and depend on nothing, and the prefixes one after the other
//! are an execution that ends in a deadlock.
//!
//! *Invariants* are checked by the paper's observer, a thread that reads the invariant forever,
//! which the tool adds: its only transition reads what the invariant reads in *s*, so that every
//! prefix ends with the first write to it. If *w* leads from *s* to a state that violates the
//! invariant, and no thread reaches the end of its prefix, then *w* has changed nothing that the
//! observer read: *s* violates the invariant as well.
//!
//! **Map.** CV → `vector::CartesianVector`; prefix → `vector::Prefix`; CoveredSet → the store;
//! WorkSet, ActiveThreads → `work::WorkSet`; dependent → `conflicts::Conflicts`; "marked as
//! infinite" → `Prefix::infinite`; blocked and ended threads' self-loops → `Step::Blocked`,
//! `Step::Ended`.
//!
//! **Deviations.** 1. Braces: the test for cycles and the extension belong to the else-branch of
//! Figure 6; as printed, a transition that depends on the body of another prefix is added. 2.
//! [`Reading::Late`], the default, is what the authors' table shows: the new state is compared with
//! the states that the prefix was extended from, neither with *s* nor with its present end, and a
//! transition that is executed and then not added counts. 3. A prefix that ends in *s* is not put
//! into the WorkSet: *s* is covered. 4. Lemma 1 is not quite true: a prefix that was marked
//! infinite may become dependent in its last transition, which closes the cycle. It stays marked: a
//! cycle can be cut out of any path. 5. A thread that chooses has one prefix for each alternative;
//! these are not extended, and no prefix continues across a choice: the paper's threads are
//! deterministic. 6. The paper's threads all exist from the start. A slot without a thread counts
//! as a waiting thread: it reads the slot's state, which `spawn` writes, so that a spawn is the
//! last transition of its prefix. 7. States are looked up when they are found, not when they are
//! taken.
//!
//! **Cost.** Time proportional to the transitions executed, each with its footprint and the hash of
//! its state. Beside the store, the WorkSet and the states of one vector for each worker.

mod conflicts;
mod passed;
mod search;
mod states;
mod vector;
mod work;

use std::collections::BTreeSet;

use preempt_system::{Capacity, Model};

use crate::engine::control::SearchControl;
use crate::engine::execution::Stop;
use crate::engine::explored::Explored;
use crate::engine::store::{self, Visited};
use crate::plan::coverage::{Coverage, Limit};
use crate::plan::{Plan, ResolvedPlan};

pub use crate::plan::Reading;

/// The configuration of a search, for tests. Not part of the interface.
#[doc(hidden)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The reading of Figure 6.
    pub reading: Reading,
    /// For every thread, the bits of a state that are its own. If given, its local states are
    /// collected.
    pub locals: Vec<Vec<u64>>,
}

/// Results of a search for tests. Not part of the interface.
#[doc(hidden)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Covered {
    /// The local states of every thread that were reached.
    pub locals: Vec<BTreeSet<Vec<u64>>>,
}

/// Searches `model` as `plan` says.
pub(crate) fn explore_vectors<M: Model>(
    plan: &ResolvedPlan,
    model: &M,
    control: &SearchControl,
    reading: Reading,
    store: Box<dyn Visited>,
    explored: &mut Explored,
) {
    explore_with(
        &(plan, &Config { reading, ..Config::default() }, model),
        control,
        store,
        explored,
    );
}

fn explore_with<M: Model>(
    of: &(&ResolvedPlan, &Config, &M),
    control: &SearchControl,
    store: Box<dyn Visited>,
    explored: &mut Explored,
) -> Covered {
    match of.2.shape().words {
        1 => search::search::<M, 1>(*of, control, store, explored),
        2 => search::search::<M, 2>(*of, control, store, explored),
        _ => search::search::<M, 0>(*of, control, store, explored),
    }
}

/// Searches with a changed algorithm, for tests: the names of the failures found, the coverage, and
/// the local states reached. The model must have stable names and be large enough.
#[doc(hidden)]
pub fn cover<M: Model>(
    plan: &Plan,
    config: &Config,
    model: &M,
) -> Result<(Vec<preempt_system::Failure>, Coverage, Covered), Capacity> {
    let plan = plan.resolve().expect("the plan is cartesian");
    let control = SearchControl::unobserved(plan.limits);
    let mut explored = Explored::default();
    let Ok(store) = store::build(plan.strategy.store(), model.shape().words, plan.jobs) else {
        control.stop(Stop::Limit(Limit::Memory));
        return Ok((Vec::new(), explored.seen, Covered::default()));
    };
    let covered = explore_with(&(&plan, config, model), &control, store, &mut explored);
    match control.reason() {
        Some(Stop::Restart(capacity)) => Err(capacity),
        _ => Ok((
            explored.failures.into_iter().map(|(failure, _)| failure).collect(),
            explored.seen,
            covered,
        )),
    }
}
