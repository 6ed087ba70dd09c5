//! Names of memory blocks that the program allocates.
//!
//! A block is named by the thread that allocated it: its slot, the number of operations that it had
//! performed, the size, and a number among the blocks of that size class since then. All of this
//! follows from what the thread did and read, so it is the same in every execution in which the
//! thread reached the same point, and it does not depend on what else is allocated.

use super::arena::CLASSES;

/// The name of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Block {
    pub(super) slot: u8,
    /// The number of operations that the thread had performed.
    pub(super) done: u32,
    pub(super) size: usize,
    pub(super) nth: u32,
}

/// Assigns names to blocks.
#[derive(Debug)]
pub(crate) struct BlockNames {
    /// The current thread and the number of its operations; `time` is a number for this turn that
    /// no earlier turn has.
    turn: (u8, u32),
    time: u64,
    /// For each size class, the turn of the last allocation and the number of blocks in that turn.
    made: [(u64, u32); CLASSES],
}

impl Default for BlockNames {
    fn default() -> BlockNames {
        BlockNames { turn: (0, 0), time: 1, made: [(0, 0); CLASSES] }
    }
}

impl BlockNames {
    /// An execution begins.
    pub(crate) fn begin(&mut self) {
        self.time += 1;
    }

    /// The name of the next block of this size and class, of the thread in slot `turn.0` after
    /// `turn.1` operations.
    #[inline(always)]
    pub(crate) fn next(&mut self, (size, class): (usize, usize), turn: (u8, u32)) -> Block {
        if self.turn != turn {
            self.turn = turn;
            self.time += 1;
        }
        let (since, made) = &mut self.made[class];
        if *since != self.time {
            (*since, *made) = (self.time, 0);
        }
        let (nth, (slot, done)) = (*made, turn);
        *made += 1;
        Block { slot, done, size, nth }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unlike_within_an_execution_and_the_same_in_the_next() {
        let mut names = BlockNames::default();
        let wanted = [(16, 0), (16, 0), (9, 0), (40, 2), (16, 0)];
        let turn = |names: &mut BlockNames, turn| wanted.map(|of| names.next(of, turn));
        let mut execution = || {
            names.begin();
            [(0, 0), (1, 0), (0, 0), (0, 1)].map(|at| turn(&mut names, at))
        };
        let (first, second) = (execution(), execution());
        assert_eq!(first, second);
        let nth = |names: [Block; 5]| names.map(|name| name.nth);
        assert_eq!(first.map(nth), [[0, 1, 2, 0, 3]; 4]);
    }
}
