//! Memory that the program has allocated itself, where it [tells](crate::alloc::Allocator).
//!
//! A block is named by its maker: the thread, how many operations it had done, the size, and the how-manieth of that size it was since. All of
//! that follows from what the thread did and saw, so it is the same in every execution in which the thread came to the same place.

use std::collections::BTreeMap;

use super::identity::once_more;

/// The name of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Block {
    slot: u8,
    /// How many operations the thread had done.
    done: u32,
    size: usize,
    nth: u32,
}

/// The blocks that there are.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    /// By their addresses.
    live: BTreeMap<usize, Block>,
    /// What the thread in this slot has allocated since it had done so many operations: sizes, and how often.
    turn: (u8, u32),
    made: Vec<(usize, u32)>,
}

impl Blocks {
    /// Nothing is there.
    pub(crate) fn clear(&mut self) {
        self.live.clear();
        self.made.clear();
    }

    /// A thread that has done so many operations has got a block.
    pub(crate) fn enter(&mut self, address: usize, size: usize, turn: (u8, u32)) {
        if self.turn != turn {
            self.turn = turn;
            self.made.clear();
        }
        let (nth, (slot, done)) = (once_more(&mut self.made, size), turn);
        self.live.insert(address, Block { slot, done, size, nth });
    }

    /// A block was given back.
    pub(crate) fn leave(&mut self, address: usize) {
        self.live.remove(&address);
    }

    /// In which block an address is, and where in it.
    pub(crate) fn find(&self, address: usize) -> Option<(Block, usize)> {
        let (&start, &block) = self.live.range(..=address).next_back()?;
        (address - start < block.size).then_some((block, address - start))
    }
}
