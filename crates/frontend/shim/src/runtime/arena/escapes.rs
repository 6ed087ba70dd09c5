//! Blocks that outlive executions: they come from the allocator below.

use std::collections::{BTreeMap, BTreeSet};

use crate::runtime::blocks::Block;

/// After this many blocks of one thread and size have outlived executions, all blocks of that
/// thread and size are assumed to.
const MOST_BLOCKS: u32 = 64;

/// Blocks that are known to outlive executions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Escapes {
    blocks: BTreeSet<Block>,
    /// The number of such blocks by slot and size.
    sizes: BTreeMap<(u8, usize), u32>,
}

impl Escapes {
    /// Whether no such block is known, as in most tests.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(super) fn contains(&self, block: &Block) -> bool {
        let all = |count: &u32| *count > MOST_BLOCKS;
        self.blocks.contains(block) || self.sizes.get(&(block.slot, block.size)).is_some_and(all)
    }

    pub(crate) fn insert(&mut self, block: Block) -> bool {
        let new = self.blocks.insert(block);
        *self.sizes.entry((block.slot, block.size)).or_default() += u32::from(new);
        new
    }
}
