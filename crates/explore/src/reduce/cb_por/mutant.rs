//! Errors put in on purpose, to see that the tests notice them. Not part of the interface.

use preempt_system::{HbAction, ThreadId};

use super::log::Log;

/// What is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// Nothing.
    #[default]
    None,
    /// In a cut of the execution, a thread without a later action there counts as not enabled.
    PendingIgnored,
    /// Every switch of threads counts, also away from one that cannot go on.
    EverySwitchCounts,
    /// Mark goes back over steps beyond the bound.
    MarkBeyondBound,
    /// Mark asks only for the successors by threads that have a later action.
    MarkAsksLaterOnly,
    /// Mark asks for nothing.
    MarkAsksNothing,
    /// The name of an action does not say which write it makes or sees.
    WithoutWriteNumbers,
    /// The name of an action does not say which of its thread's it is.
    WithoutTime,
}

impl Mutant {
    /// All that are wrong.
    pub const ALL: [Mutant; 7] = [
        Mutant::PendingIgnored,
        Mutant::EverySwitchCounts,
        Mutant::MarkBeyondBound,
        Mutant::MarkAsksLaterOnly,
        Mutant::MarkAsksNothing,
        Mutant::WithoutWriteNumbers,
        Mutant::WithoutTime,
    ];

    /// Whether a thread counts as not enabled though it is.
    pub(super) fn overlooks(self, log: &Log, cut: &[u32], thread: ThreadId) -> bool {
        self == Mutant::PendingIgnored && !log.goes_on(cut, thread) && log.all().as_slice() != cut
    }

    /// The action as it enters names.
    pub(super) fn distort(self, mut action: HbAction) -> HbAction {
        match self {
            Mutant::WithoutWriteNumbers => {
                action.accesses.iter_mut().for_each(|access| access.write = 0)
            }
            Mutant::WithoutTime => action.time = 0,
            _ => {}
        }
        action
    }
}
