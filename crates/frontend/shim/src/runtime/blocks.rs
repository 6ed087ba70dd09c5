//! Names of memory blocks that the program allocates.
//!
//! A block is named by the thread that allocated it: its slot, how many operations it had done, the size, and the how-manieth of that size it was since.
//! All of that follows from what the thread did and saw, so it is the same in every execution in which the thread came to the same place, and it does
//! not change when something else is allocated there.

use super::identity::once_more;

/// The name of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Block {
    pub(super) slot: u8,
    /// How many operations the thread had done.
    pub(super) done: u32,
    pub(super) size: usize,
    pub(super) nth: u32,
}

/// Gives names to blocks.
#[derive(Debug, Default)]
pub(crate) struct BlockNames {
    /// What the thread in this slot has allocated since it had done so many operations: sizes, and how often.
    turn: (u8, u32),
    made: Vec<(usize, u32)>,
}

impl BlockNames {
    /// An execution begins.
    pub(crate) fn begin(&mut self) {
        self.made.clear();
    }

    /// The name of the next block of this size of the thread in `turn.0`, which has done `turn.1` operations.
    pub(crate) fn next(&mut self, size: usize, turn: (u8, u32)) -> Block {
        if self.turn != turn {
            self.turn = turn;
            self.made.clear();
        }
        let (nth, (slot, done)) = (once_more(&mut self.made, size), turn);
        Block { slot, done, size, nth }
    }
}
