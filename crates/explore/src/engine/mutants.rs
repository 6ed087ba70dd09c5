//! Errors that tests seed into the reductions, to see that the tests notice them.
//!
//! Only a build with the feature `mutants` contains them, and only development dependencies enable
//! it. A normal build has no seeded errors and no check for one: there `seeded!` is `false`.

/// Whether a test has seeded this error.
#[cfg(feature = "mutants")]
macro_rules! seeded {
    ($error:ident) => {
        $crate::engine::mutants::is_seeded($crate::engine::mutants::Mutant::$error)
    };
}

#[cfg(not(feature = "mutants"))]
macro_rules! seeded {
    ($error:ident) => {
        $crate::engine::mutants::is_seeded(stringify!($error))
    };
}

/// No error is seeded. A function, because lints complain about conditions with a literal.
#[cfg(not(feature = "mutants"))]
#[inline(always)]
pub(crate) const fn is_seeded(_: &str) -> bool {
    false
}

pub(crate) use seeded;

#[cfg(feature = "mutants")]
pub use with_feature::*;

#[cfg(feature = "mutants")]
mod with_feature {
    use std::cell::Cell;

    thread_local! {
        static SEEDED: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// The error that is seeded in this thread.
    pub fn seeded_error() -> Option<Mutant> {
        SEEDED.get()
    }

    /// Calls `run` with an error seeded in this thread, or with none. The workers of a search
    /// inherit it.
    pub fn with<R>(error: Option<Mutant>, run: impl FnOnce() -> R) -> R {
        struct Restore(Option<Mutant>);
        impl Drop for Restore {
            fn drop(&mut self) {
                SEEDED.set(self.0);
            }
        }
        let _restore = Restore(SEEDED.replace(error));
        run()
    }

    #[inline(always)]
    pub(crate) fn is_seeded(error: Mutant) -> bool {
        SEEDED.get() == Some(error)
    }

    /// The seeded errors.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Mutant {
        /// Blocks: `INTERLEAVE_REC`, line 8, as printed: the heads of all lists are removed, not
        /// only the one that was taken.
        AllHeadsRemoved,
        /// Blocks: `GENERATECOMBINATIONS_REC` with one variable too few: the loop is written for
        /// variables from 0, they are numbered from 1.
        FirstVariableSkipped,
        /// Blocks: a program without shared variables has no combination, as
        /// `GENERATECOMBINATIONS_REC` says, and nothing is run.
        NoVariableNoGraph,
        /// Blocks, section 3: only statements that access two or more shared variables lead to
        /// contradictions.
        SingleAccessesNeverContradict,
        /// Blocks: a(v, t) as printed: the blocks that access v and belong to *other* threads.
        BlocksOfOthers,
        /// Blocks: a thread without shared statement has no block, and does not run.
        LocalThreadHasNoBlock,
        /// Blocks: where reads commute, they commute with writes too.
        ReadsUnordered,
        /// Cartesian: a transition that depends on the body of another prefix is added anyway: the
        /// braces of Figure 6 as they are printed.
        AddsWhatDepends,
        /// Cartesian: the footprint of a waiting thread is empty.
        WaitsBlindly,
        /// Cartesian: the test for cycles compares the local states of the thread, not the states.
        LocalCycles,
        /// Cartesian: the first transitions are not compared with each other.
        WithoutFirstCheck,
        /// Cartesian: when two last transitions depend on each other, only the prefix that was
        /// being extended ends.
        OnlyExtendingEnds,
        /// Cartesian: a deadlock is reported only in a state from which the search continues.
        DeadlocksWhereMet,
        /// Cartesian: only the first alternative of a choice is followed, and a prefix continues
        /// across it.
        AcrossChoices,
        /// Cartesian: a slot in which no thread was started reads nothing.
        VacantBlindly,
        /// Cartesian: the observer of the invariants reads nothing.
        ObservesBlindly,
        /// cb-por: in a cut of the execution, a thread without a later action there counts as not
        /// enabled.
        PendingIgnored,
        /// cb-por: every switch of threads counts, even away from a thread that cannot continue.
        EverySwitchCounts,
        /// cb-por: Mark goes back over steps beyond the bound.
        MarkBeyondBound,
        /// cb-por: Mark asks only for the successors by threads that have a later action.
        MarkAsksLaterOnly,
        /// cb-por: Mark asks for nothing.
        MarkAsksNothing,
        /// cb-por: the name of an action does not say which write it makes or sees.
        WithoutWriteNumbers,
        /// cb-por: the name of an action does not say which action of its thread it is.
        WithoutTime,
        /// cpc: L22 fails on an empty stack, and the search is over.
        EmptyStackEnds,
        /// cpc: only the action by which a transaction commits makes a commit point, no later left
        /// mover.
        CommitsOnce,
        /// cpc: `Update` loses the flag that all threads are to be scheduled.
        UpdateForgets,
        /// cpc: a state on the stack counts as complete.
        StackCompletes,
        /// cpc: a transaction stays open forever where its thread cannot continue.
        StuckGoesOn,
        /// cpc: a local step moves nowhere, being in neither LM nor RM. Sound, and of little use.
        LocalsMoveNowhere,
        /// cpc: table and stack have copies of the flags, so that L11 finds none that was set
        /// later. Sound, and costs states.
        TableCopies,
        /// cpc: L11 uses only records whose thread is the one that moves. Sound, and costs states.
        SameThreadOnly,
        /// cpc: threads begin in the right mover part of a transaction. Sound, and saves states.
        StartsRight,
        /// cpc: everything on the heap counts as private.
        HeapIsPrivate,
        /// cpc: a thread counts as alone although others run.
        AlwaysAlone,
        /// cpc: a location that turns out not to be protected is given up without a restart, so
        /// executions skipped before stay skipped.
        BreachGoesOn,
    }

    impl Mutant {
        /// The errors of the reduction by blocks.
        pub const BLOCKS: [Mutant; 7] = [
            Mutant::AllHeadsRemoved,
            Mutant::FirstVariableSkipped,
            Mutant::NoVariableNoGraph,
            Mutant::SingleAccessesNeverContradict,
            Mutant::BlocksOfOthers,
            Mutant::LocalThreadHasNoBlock,
            Mutant::ReadsUnordered,
        ];

        /// The errors of cartesian reduction.
        pub const CARTESIAN: [Mutant; 9] = [
            Mutant::AddsWhatDepends,
            Mutant::WaitsBlindly,
            Mutant::LocalCycles,
            Mutant::WithoutFirstCheck,
            Mutant::OnlyExtendingEnds,
            Mutant::DeadlocksWhereMet,
            Mutant::AcrossChoices,
            Mutant::VacantBlindly,
            Mutant::ObservesBlindly,
        ];

        /// The errors of cb-por.
        pub const CB_POR: [Mutant; 7] = [
            Mutant::PendingIgnored,
            Mutant::EverySwitchCounts,
            Mutant::MarkBeyondBound,
            Mutant::MarkAsksLaterOnly,
            Mutant::MarkAsksNothing,
            Mutant::WithoutWriteNumbers,
            Mutant::WithoutTime,
        ];
    }
}
