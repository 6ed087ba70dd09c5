//! Depth first over executions within a bound: cb-dfs, dfs-hb, and the search of all executions.
//!
//! **Paper.** cb-por, section 4: cb-dfs, the search that its Table 1 compares with. dfs-hb is ours.
//!
//! **Guarantees.** cb-dfs takes every execution with at most `bound` preemptions, each once; without a bound, every execution.
//! dfs-hb takes every happens-before graph of these at least once, so that no failure and no end of an execution is
//! lost. Both are complete if the bound kept them from nothing. Schedules are not the simplest: icb's are.
//!
//! **Map.**
//!
//! | paper | here |
//! | --- | --- |
//! | csb | `Extent::preemptions` |
//! | table\[fp(s)\]\[t\] | [`Table`] |
//!
//! **Deviations.**
//!
//! 1. A thread that may choose has several steps in a state. They cost the same.
//! 2. Without a bound every way to a state is as good as any other, so that dfs-hb then compares no preemptions.
//!
//! **Cost.** cb-dfs keeps nothing but the current execution. dfs-hb keeps 27 bytes for every step with at most `bound`
//! preemptions, and takes some of them again when it reaches them with fewer: some 3 % of them in the work-stealing queue.

use super::cache::Table;
use super::tree::{Extent, Forget, Tree};
use crate::cursor::Cursor;
use crate::execution::{Stop, Visitor};
use crate::plan::Cache;
use crate::system::System;

/// Explores all executions within `extent`.
pub(super) fn explore<S: System>(
    cursor: &mut Cursor<S>,
    extent: Extent,
    cache: Cache,
    visitor: &mut impl Visitor<S>,
) -> Result<(), Stop> {
    let mut table = Table::new(cache);
    let mut tree = Tree::new(extent, &mut table, Forget::default());
    tree.explore(cursor, visitor)?;
    if let Some(bound) = extent.preemptions {
        visitor.bound(bound, tree.beyond.any);
    }
    Ok(())
}
