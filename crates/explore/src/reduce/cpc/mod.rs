//! Reduction by transactions: a thread continues until other threads can observe what it did, and
//! only then are other threads run.
//!
//! **Paper.** cpc: Figures 6 and 7 ([`Variant::Repaired`] and its neighbours), section 3 (phases),
//! Figure 5 ([`figure_5`]), the baselines of Table 1 ([`Variant::Unsound`],
//! [`Variant::CycleDetection`]).
//!
//! **Guarantees.** Theorem 3: every failing step of every thread that any execution has is found
//! (assertions and run-time errors, each place by itself). Deadlocks are **not** kept: a thread
//! that waits before its transaction has committed is not resumed. Not all states are visited, so
//! invariants cannot be checked. Terminates and is complete where the full search is.
//! [`Variant::Unsound`] and [`Variant::Printed`] miss errors.
//!
//! **Map.**
//!
//! | paper | here |
//! | --- | --- |
//! | LM, RM | [`Mover`](preempt_system::Mover) of a step, by [`discipline`] |
//! | the phase p of a thread | a bit in the last word of a key of the `table` |
//! | `TraversalInfo` | `search::Entry`, and the record of its state in the table |
//! | CPC | `Table::is_complete` |
//! | Xend | `Entry::ends` |
//! | tid, numTids, choice, RM | `Entry::{thread, scheduled, alternative, right}` |
//! | Enabled, Execute, Update | `search::Search::{step, retire}` |
//! | commit point | a state entered by a step that is not a right mover |
//!
//! **Deviations.** Each is a place where the figures are wrong or say too little;
//! `bench/tests/suite/transactions` has a program for each.
//!
//! 1. *A thread has as many choices as its step has alternatives*, none if it waits, has ended or
//!    went wrong. As printed a global step exists for every choice, and the loop at L5 never leaves
//!    a state.
//! 2. *Local steps move both ways.* They are in neither LM nor RM as printed.
//! 3. *L22 does nothing on an empty stack*, which it meets each time the first state is done with
//!    one thread.
//! 4. *L19 keeps a transaction open only where its thread can continue.* As printed it also does so
//!    where the thread waits or has ended: another alternative completes the commit point, and no
//!    other thread is run while this one waits (`corpus/cpc/l19-*.pre`).
//! 5. *Table and stack share records*, so that L11 sees flags that were set late. Copies are sound
//!    and cost states.
//! 6. *CPC is propagated down the stack at once* ([`Propagation::AtOnce`]), not only at L23. From
//!    every entry below, up to the last that was complete, the stack itself is a path of left
//!    movers to the state that ends the transaction, so the flag is true when it is set. As
//!    printed, returning to an entry whose transaction has ended further up forces a needless end.
//! 7. A step may do several things (`atomic`): it moves in a direction if all of them do. It may be
//!    global and have alternatives: each is classed by itself, and one that waits while another
//!    moves counts as a thread that waits.
//! 8. Threads can be started. All slots are scheduled in turn, empty ones do nothing. The first
//!    step of a thread need not be ordered after its start: it is the first of its transaction, and
//!    only later ones are ever moved left.
//! 9. Whether a location is protected is assumed and checked: [`discipline`].
//! 10. An explicit stack; the paper's is one too.
//! 11. States record which thread owns what ([`Model::with_owners`]): additional bits, which may
//!     distinguish states that are equal in the full search.
//! 12. The limit on heap records is ours, not the program's: an execution that reaches it is missed
//!     if the reduced search never reaches it.
//!
//! **Cost.** A state needs its words, one word of phases, one byte and a slot of 8 bytes; the stack
//! 16 bytes for every step. A step costs as much as in the full depth-first search, plus the check
//! of its log.

mod discipline;
mod figure_5;
mod random_walks;
mod search;
mod table;

use preempt_system::{Failure, Model, Schedule};

use crate::engine::control::SearchControl;
use crate::engine::execution::Stop;
use crate::engine::explored::Explored;
use crate::plan::strategy::Transactions;
use crate::plan::{Limits, ResolvedPlan};

/// The variants: each schedules all threads in the middle of a transaction at other states.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Variant {
    /// Figure 6 without L19: where no state after the commit is complete.
    WithoutL19,
    /// Figure 6 with L19 as printed: at commit points only. **Misses errors.**
    Printed,
    /// Figure 6 with L19 repaired: at commit points, and where the thread cannot continue.
    #[default]
    Repaired,
    /// Where a cycle closes after the commit, and where the thread cannot continue.
    CycleDetection,
    /// Only where the thread cannot continue. **Misses errors.**
    Unsound,
}

impl Variant {
    /// Whether it keeps CPC.
    fn completes(self) -> bool {
        matches!(self, Variant::WithoutL19 | Variant::Printed | Variant::Repaired)
    }
}

/// The time at which the end of a transaction is propagated to the entries below.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Propagation {
    /// When the one above is popped: L23.
    AtPop,
    /// At once.
    #[default]
    AtOnce,
}

/// The configuration of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// When transactions are ended by force.
    pub variant: Variant,
    /// When the end is propagated to the entries below.
    pub propagation: Propagation,
}

impl Config {
    fn of(transactions: Transactions) -> Config {
        let variant = match transactions {
            Transactions::CommitPoints => Variant::Repaired,
            Transactions::Cycles => Variant::CycleDetection,
            Transactions::Unsound => Variant::Unsound,
        };
        Config { variant, ..Config::default() }
    }
}

/// The result of a search outside a [`Plan`](crate::Plan), for tables and tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// States together with their phases.
    pub states: u64,
    /// Steps taken.
    pub transitions: u64,
    /// The paths to the first few states at which a transaction was ended by force: not because its
    /// thread cannot continue, nor because it is about to begin another one.
    pub forced: Vec<Schedule>,
    /// Restarts because a location turned out not to be protected.
    pub breaches: u64,
    /// The distinct failures.
    pub failures: Vec<(Failure, Schedule)>,
}

/// Searches `model` by transactions.
pub(crate) fn explore_transactions<M: Model>(
    plan: &ResolvedPlan,
    transactions: Transactions,
    model: &M,
    control: &SearchControl<'_>,
) -> Explored {
    search::search(model, Config::of(transactions), plan.keep_going, control).0
}

/// Searches a model completely, and continues after failures. The model grows as necessary.
pub fn run<M: Model>(model: M, config: Config) -> Found {
    drive(model, |model, control| {
        let (explored, forced, breaches) = search::search(model, config, true, control);
        let (states, transitions) = (explored.seen.states, explored.seen.transitions);
        Found { states, transitions, forced, breaches, failures: explored.failures }
    })
}

/// The least fixpoint of the paper's Figure 5, which runs a thread only where no other is inside a
/// transaction. **Misses errors.**
pub fn figure_5<M: Model>(model: M) -> Found {
    drive(model, figure_5::least_fixpoint)
}

fn drive<M: Model>(model: M, explore: impl Fn(&M, &SearchControl<'_>) -> Found) -> Found {
    let mut model = model.with_owners();
    loop {
        let control = SearchControl::unobserved(Limits::default());
        let found = explore(&model, &control);
        match control.reason() {
            Some(Stop::Restart(capacity)) => model = model.grow(capacity),
            None => return found,
            Some(stop) => panic!("a search without limits stopped: {stop:?}"),
        }
    }
}
