//! Steps 1 and 2: the shared variables, and the blocks.
//!
//! A block is a list of consecutive steps of a thread, of which one at most touches a shared
//! variable. A thread's first block begins with its first step; every further shared step begins
//! another; steps that touch nothing shared belong to the block before them.

use std::collections::BTreeMap;
use std::ops::Range;

use preempt_system::{Access, Footprint, Location};

use crate::engine::mutants::seeded;
use crate::plan::Dependence;

/// The number of a block. The blocks of a thread have consecutive numbers.
pub(super) type BlockId = usize;

/// Consecutive steps of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The thread.
    pub thread: usize,
    /// The position among the thread's blocks, from 0.
    pub position: usize,
    /// The steps of the thread.
    pub steps: Range<usize>,
    /// The accesses of its shared step to shared variables, under the dependence. Empty if it has
    /// no shared step.
    pub shared: Footprint,
}

/// A shared variable: the blocks that access it, for each thread in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// The location of the variable.
    pub location: Location,
    /// For each thread, its blocks that access the variable, and how.
    pub accesses: Vec<Vec<(usize, Access)>>,
}

/// The minimum block list of a program with straight-line threads, and its shared variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// All blocks, thread by thread.
    pub all: Vec<Block>,
    /// The range of each thread's blocks.
    pub threads: Vec<Range<usize>>,
    /// The shared variables.
    pub variables: Vec<Variable>,
    /// The number of steps of each thread.
    pub steps: Vec<usize>,
}

impl Blocks {
    /// The blocks of threads whose steps have these footprints.
    pub fn new(lines: &[Vec<Footprint>], dependence: Dependence) -> Blocks {
        let lines: Vec<Vec<Footprint>> = lines
            .iter()
            .map(|line| line.iter().map(|step| dependence.apply(step).into_owned()).collect())
            .collect();
        let shared = shared(&lines);
        let (mut all, mut threads) = (Vec::new(), Vec::new());
        for (thread, line) in lines.iter().enumerate() {
            let first = all.len();
            for (at, step) in line.iter().enumerate() {
                let ours = step.accesses().iter().filter(|(location, _)| shared.contains(location));
                let ours: Footprint = ours.copied().collect();
                match all[first..].last_mut() {
                    None => all.push(Block { thread, position: 0, steps: 0..1, shared: ours }),
                    // A block takes steps up to, not including, its second shared one.
                    Some(block) if ours.accesses().is_empty() => block.steps.end += 1,
                    Some(block) if block.shared.accesses().is_empty() => {
                        (block.steps.end, block.shared) = (at + 1, ours);
                    }
                    Some(_) => {
                        all.push(Block {
                            thread,
                            position: all.len() - first,
                            steps: at..at + 1,
                            shared: ours,
                        });
                    }
                }
            }
            if seeded!(LocalThreadHasNoBlock)
                && all[first..].iter().all(|b| b.shared.accesses().is_empty())
            {
                all.truncate(first);
            }
            threads.push(first..all.len());
        }
        let variable = |location| variable(&all, threads.len(), location);
        let variables = shared.into_iter().map(variable).collect();
        Blocks { variables, all, threads, steps: lines.iter().map(Vec::len).collect() }
    }

    /// The number of blocks of each thread.
    pub fn per_thread(&self) -> Vec<usize> {
        self.threads.iter().map(Range::len).collect()
    }
}

/// The locations that more than one thread accesses, one of them in conflict with the others: where
/// reads commute, a location that no thread writes needs no order.
fn shared(lines: &[Vec<Footprint>]) -> Vec<Location> {
    let mut seen: BTreeMap<Location, (usize, Access, bool)> = BTreeMap::new();
    for (thread, line) in lines.iter().enumerate() {
        for &(location, access) in line.iter().flat_map(Footprint::accesses) {
            let (first, strongest, several) =
                seen.entry(location).or_insert((thread, access, false));
            *strongest = (*strongest).max(access);
            *several |= *first != thread;
        }
    }
    let is_shared = |&(_, (_, strongest, several)): &(_, (usize, Access, bool))| {
        several && strongest == Access::Write
    };
    seen.into_iter().filter(is_shared).map(|(location, _)| location).collect()
}

fn variable(all: &[Block], threads: usize, location: Location) -> Variable {
    let mut accesses = vec![Vec::new(); threads];
    for (id, block) in all.iter().enumerate() {
        let access = block.shared.accesses().iter().find(|&&(other, _)| other == location);
        for (thread, list) in accesses.iter_mut().enumerate() {
            let belongs = (thread == block.thread) != seeded!(BlocksOfOthers);
            list.extend(access.filter(|_| belongs).map(|&(_, access)| (id, access)));
        }
    }
    Variable { location, accesses }
}

#[cfg(test)]
mod tests {
    use super::*;
    use preempt_system::Access::{Read, Write};

    fn line(steps: &[&[(u32, Access)]]) -> Vec<Footprint> {
        steps.iter().map(|step| step.iter().map(|&(l, a)| (Location(l), a)).collect()).collect()
    }

    #[test]
    fn local_steps_belong_to_the_block_before_and_leading_ones_to_the_first() {
        // 1 and 2 are shared; 7, 8, 9 belong to one thread each.
        let lines = [
            line(&[
                &[(7, Write)],
                &[(1, Write)],
                &[(7, Read)],
                &[(2, Write), (7, Write)],
                &[(7, Read)],
            ]),
            line(&[&[(1, Read)], &[(2, Read)], &[(8, Write)]]),
            line(&[&[(9, Write)], &[(9, Write)]]),
            line(&[]),
        ];
        let blocks = Blocks::new(&lines, Dependence::ReadWrite);
        assert_eq!(blocks.per_thread(), [2, 2, 1, 0]);
        let steps: Vec<_> = blocks.all.iter().map(|block| block.steps.clone()).collect();
        assert_eq!(steps, [0..3, 3..5, 0..1, 1..3, 0..2]);
        assert_eq!(blocks.variables.len(), 2);
        assert_eq!(
            blocks.variables[1].accesses,
            [vec![(1, Write)], vec![(3, Read)], vec![], vec![]]
        );
    }

    #[test]
    fn what_is_only_read_is_shared_where_reads_conflict() {
        let lines = [line(&[&[(1, Read)], &[(1, Read)]]), line(&[&[(1, Read)]])];
        assert_eq!(Blocks::new(&lines, Dependence::ReadWrite).per_thread(), [1, 1]);
        assert_eq!(Blocks::new(&lines, Dependence::All).per_thread(), [2, 1]);
    }
}
