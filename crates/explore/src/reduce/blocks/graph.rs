//! Steps 4 and 5: a PO graph that grows edge by edge, and its topological sort.
//!
//! The blocks of a thread are totally ordered. So the blocks before a block are given by the number
//! of blocks of each thread: a vector clock. Whether there is a path is one comparison. An edge is
//! added by raising the clocks of all blocks after it; the old clocks are pushed onto a trail, so
//! that edges can be removed in the reverse order.

use super::block::{BlockId, Blocks};

/// A partial order of blocks.
#[derive(Clone, Debug)]
pub struct PoGraph<'b> {
    blocks: &'b Blocks,
    /// The number of threads, which is the length of a clock.
    width: usize,
    /// For each block, how many blocks of each thread come before it or are it.
    clocks: Vec<u32>,
    /// Clocks as they were: the block and where they begin in `old`.
    trail: Vec<BlockId>,
    old: Vec<u32>,
}

impl<'b> PoGraph<'b> {
    /// The intra-thread orders.
    pub(super) fn new(blocks: &'b Blocks) -> PoGraph<'b> {
        let width = blocks.threads.len();
        let mut clocks = vec![0; blocks.all.len() * width];
        for (id, block) in blocks.all.iter().enumerate() {
            clocks[id * width + block.thread] = block.position as u32 + 1;
        }
        PoGraph { blocks, width, clocks, trail: Vec::new(), old: Vec::new() }
    }

    fn clock(&self, block: BlockId) -> &[u32] {
        &self.clocks[block * self.width..][..self.width]
    }

    /// Whether there is a path from one block to another, or they are the same.
    pub fn reaches(&self, from: BlockId, to: BlockId) -> bool {
        let block = &self.blocks.all[from];
        self.clock(to)[block.thread] > block.position as u32
    }

    /// Adds an edge, if it is not implied. It must not close a cycle.
    pub(super) fn add(&mut self, from: BlockId, to: BlockId) {
        if self.reaches(from, to) {
            return;
        }
        let width = self.width;
        let before: Vec<u32> = self.clock(from).to_vec();
        for id in 0..self.blocks.all.len() {
            if self.reaches(to, id) {
                self.trail.push(id);
                self.old.extend_from_slice(&self.clocks[id * width..][..width]);
                let clock = &mut self.clocks[id * width..][..width];
                clock
                    .iter_mut()
                    .zip(&before)
                    .for_each(|(ours, &theirs)| *ours = (*ours).max(theirs));
            }
        }
    }

    /// A mark for [`PoGraph::take_back`].
    pub(super) fn mark(&self) -> usize {
        self.trail.len()
    }

    /// Removes all edges that were added since the mark.
    pub(super) fn take_back(&mut self, mark: usize) {
        while self.trail.len() > mark {
            let id = self.trail.pop().expect("the trail is longer than the mark");
            let from = self.old.len() - self.width;
            self.clocks[id * self.width..][..self.width].copy_from_slice(&self.old[from..]);
            self.old.truncate(from);
        }
    }

    /// One order of the blocks that respects all edges, or `None` if they contradict each other.
    /// The running thread continues while it can, else the first ready thread follows: this keeps
    /// preemptions few.
    pub fn sort(&self) -> Option<Vec<BlockId>> {
        let mut done = vec![0; self.width];
        let mut order = Vec::with_capacity(self.blocks.all.len());
        let mut running = 0;
        while order.len() < self.blocks.all.len() {
            let threads = std::iter::once(running).chain(0..self.width);
            let mut next = threads
                .map(|thread| (thread, self.blocks.threads[thread].start + done[thread] as usize));
            let ready = next.find(|&(thread, id)| {
                id < self.blocks.threads[thread].end && self.is_ready(id, &done)
            });
            let (thread, id) = ready?;
            order.push(id);
            done[thread] += 1;
            running = thread;
        }
        Some(order)
    }

    /// Whether all blocks before a block are done.
    fn is_ready(&self, id: BlockId, done: &[u32]) -> bool {
        let own = self.blocks.all[id].thread;
        let before = self.clock(id).iter().zip(done).enumerate();
        before
            .into_iter()
            .all(|(thread, (&before, &done))| before <= done + u32::from(thread == own))
    }
}
