//! Errors put in on purpose, to see that the tests notice them. Not part of the interface.

use preempt_system::Footprint;

use super::vector::Stutter;

/// What is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// Nothing.
    #[default]
    None,
    /// A transition that depends on the body of another prefix is added all the same: the braces of
    /// Figure 6 as they are printed.
    AddsWhatDepends,
    /// A thread that waits looks at nothing.
    WaitsBlindly,
    /// The test for cycles compares the local states of the thread, not the states.
    LocalCycles,
    /// The first transitions are not compared with each other.
    WithoutFirstCheck,
    /// When two last transitions depend on each other, only the prefix that was being extended
    /// ends.
    OnlyExtendingEnds,
    /// A deadlock is one only in a state from which the search goes on.
    DeadlocksWhereMet,
    /// Of a choice only the first alternative is followed, and a prefix goes on across it.
    AcrossChoices,
    /// A slot in which no thread was started looks at nothing.
    VacantBlindly,
    /// The observer of the invariants looks at nothing.
    ObservesBlindly,
}

impl Mutant {
    /// All that are wrong.
    pub const ALL: [Mutant; 9] = [
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

    /// Hides what a thread that stands still has looked at.
    #[inline(always)]
    pub(super) fn blind(self, stutter: Stutter, footprint: &mut Footprint) {
        match (self, stutter) {
            (Mutant::WaitsBlindly, Stutter::Waiting | Stutter::Resting)
            | (Mutant::VacantBlindly, Stutter::Vacant) => {
                footprint.clear();
            }
            _ => {}
        }
    }
}
