//! Wrong readings of the paper's figures, to see that the tests notice them. Not part of the
//! interface.

/// What is read wrongly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// Nothing.
    #[default]
    None,
    /// L22 fails on an empty stack, and the search is over.
    EmptyStackEnds,
    /// Only the action by which a transaction commits makes a commit point, no later left mover.
    CommitsOnce,
    /// `Update` forgets that all threads are to be scheduled.
    UpdateForgets,
    /// A state on the stack counts as complete.
    StackCompletes,
    /// A transaction goes on for ever where its thread cannot.
    StuckGoesOn,
    /// A local step moves nowhere, being in neither LM nor RM. Sound, and of little use.
    LocalsMoveNowhere,
    /// Table and stack have copies of the flags, so that L11 finds none that was set later. Sound,
    /// and costs states.
    TableCopies,
    /// L11 believes only records whose thread is the one that moves. Sound, and costs states.
    SameThreadOnly,
    /// Threads begin in the right mover part of a transaction. Sound, and saves states.
    StartsRight,
    /// Whatever is on the heap counts as private.
    HeapIsPrivate,
    /// A thread counts as alone although others run.
    AlwaysAlone,
    /// A location that proves not to be protected is given up from then on, and what was left out
    /// before stays left out.
    BreachGoesOn,
}
