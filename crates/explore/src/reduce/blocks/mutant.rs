//! Wrong readings of the paper, to see that the tests notice them. Not part of the interface.

/// What is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mutant {
    /// Nothing.
    #[default]
    None,
    /// `INTERLEAVE_REC`, line 8, as printed: the heads of all lists are removed, not only the one
    /// that was taken.
    AllHeadsRemoved,
    /// `GENERATECOMBINATIONS_REC` with one variable too few: the loop is written for variables from
    /// 0, they are numbered from 1.
    FirstVariableSkipped,
    /// A program without shared variables has no combination, as `GENERATECOMBINATIONS_REC` says,
    /// and nothing is run.
    NoVariableNoGraph,
    /// Section 3: only statements that access two or more shared variables lead to contradictions.
    SingleAccessesNeverContradict,
    /// a(v, t) as printed: the blocks that access v and belong to *other* threads.
    BlocksOfOthers,
    /// A thread without shared statement has no block, and does not run.
    LocalThreadHasNoBlock,
    /// Where reads commute, they commute with writes too.
    ReadsUnordered,
}

impl Mutant {
    /// All that are wrong.
    pub const ALL: [Mutant; 7] = [
        Mutant::AllHeadsRemoved,
        Mutant::FirstVariableSkipped,
        Mutant::NoVariableNoGraph,
        Mutant::SingleAccessesNeverContradict,
        Mutant::BlocksOfOthers,
        Mutant::LocalThreadHasNoBlock,
        Mutant::ReadsUnordered,
    ];
}
