//! Steps as decision diagrams: the effect of most steps is computed before they are taken.
//!
//! The code from one rest point to the next mostly compares a few cells with constants and assigns
//! constants to others. States are packed, so testing several cells of one word is one comparison
//! under a mask, and changing several cells of one word is one addition. For every rest point the
//! [code](super::code) is executed symbolically once, on all its paths ([`follow`]). The result is
//! a diagram: tests of words, whose leaves either block the thread, or change words and complete
//! the step. So a thread that blocks costs only its guard, and nothing is written before the step
//! is known to complete.
//!
//! The code still defines what a step does. Wherever it does something that a diagram cannot
//! express (an error, a value that does not fit, a new record, a product of two unknown cells), or
//! where a diagram would become too large, the diagram ends with [`Node::Interpret`], and the
//! [interpreter](super::run) takes the step from its start: nothing was changed up to there. Only
//! the interpreter records footprints. `bench/tests/suite/diagrams.rs` takes every step of the
//! corpus and of random programs both ways.
//!
//! [`facts`] are what earlier tests imply about cells, [`path`] is one path through the code,
//! [`object`] asks synchronisation objects which of their fields matter, and [`nodes`] shares equal
//! nodes and merges tests of one word.

mod facts;
mod follow;
mod nodes;
mod object;
mod path;
#[cfg(test)]
mod tests;

use std::ops::Range;

use preempt_system::{Batch, BlockedCounts, Choice, Failure, Partial, Step, ThreadId};

use super::Machine;
use super::record::Off;
use super::run::{Halt, Stepper};

/// The number of a node.
type NodeId = u32;

/// The [statements](super::reached) on the path to a node, as a number of [`Diagrams::paths`]. Only
/// the first node that changes a word has one; 0 means none.
type PathId = u32;

/// A node of a diagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Node {
    /// The interpreter takes the step.
    Interpret,
    /// The thread blocks.
    Wait { resting: bool },
    /// The thread has ended.
    Ended,
    /// The slot is empty.
    Vacant,
    /// The step is complete; for an invariant, it holds.
    Done,
    /// Tests whether the bits under `mask` are `value`.
    Equal { word: u16, yes: NodeId, no: NodeId, mask: u64, value: u64 },
    /// Tests whether the bits under `mask` are a number below `limit`.
    Below { word: u16, yes: NodeId, no: NodeId, mask: u64, limit: u64 },
    /// A branch for every value of a cell, in [`Diagrams::branches`] from `base` on.
    Case { word: u16, shift: u8, base: u32, mask: u64 },
    /// A branch for every value of the next digit of the alternative; `plain` if no branch
    /// continues with another test or choice.
    Choose { count: u32, base: u32, plain: bool },
    /// Copies the bits of one cell, plus `add`, to another.
    Copy {
        from: u16,
        from_shift: u8,
        from_bits: u8,
        to: u16,
        to_shift: u8,
        to_bits: u8,
        then: NodeId,
        path: PathId,
        add: u64,
    },
    /// Keeps some bits of a word and adds to it: sets other cells to constants, or increases or
    /// decreases them by constants.
    Change { word: u16, then: NodeId, path: PathId, keep: u64, add: u64 },
    /// The same, and completes the step.
    Last { word: u16, path: PathId, keep: u64, add: u64 },
}

const _: () = assert!(size_of::<Node>() <= 32, "two nodes are one cache line");

/// The start of the diagrams of one thread.
#[derive(Clone, Copy, Debug)]
struct Entry {
    // The program counter.
    word: u32,
    shift: u32,
    mask: u64,
    /// The first of its [`Diagrams::starts`].
    base: u32,
}

/// The diagrams of all threads. Without diagrams everything is interpreted.
#[derive(Clone, Debug, Default)]
pub(super) struct Diagrams {
    nodes: Vec<Node>,
    branches: Vec<NodeId>,
    entries: Vec<Entry>,
    /// The first node for each thread and each value of its program counter.
    starts: Vec<NodeId>,
    /// The first node of the invariants.
    invariants: Option<NodeId>,
    /// The most branches of a plain choice, at least 1.
    most: usize,
    /// The marks of statements, by the number of their path.
    paths: Vec<Vec<u32>>,
}

/// The first nodes of every list: the leaves that change nothing. The thread may move at the first
/// [`MOVES`] of them.
const ENDS: [Node; 6] = [
    Node::Interpret,
    Node::Done,
    Node::Wait { resting: false },
    Node::Wait { resting: true },
    Node::Ended,
    Node::Vacant,
];

/// The diagram does not cover the step.
const INTERPRET: NodeId = 0;

/// Nothing is left to do: a step changes nothing, an invariant holds.
const HOLDS: NodeId = 1;

/// The number of leaves at which the thread may move.
const MOVES: NodeId = 2;

/// The number of an alternative, whose digits are the choices of a step.
struct Digits {
    /// The remaining digits.
    rest: u32,
    /// The product of their bases so far.
    alternatives: u32,
}

impl Diagrams {
    /// Builds the diagrams of a machine.
    pub(super) fn new(machine: &Machine) -> Diagrams {
        follow::diagrams(machine)
    }

    /// The number of nodes.
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The marks of the statements on the paths to these nodes.
    pub(super) fn marks(&self, taken: &[bool]) -> impl Iterator<Item = u32> {
        let paths =
            self.nodes.iter().zip(taken).filter(|&(_, &taken)| taken).filter_map(|(node, _)| {
                match *node {
                    Node::Copy { path, .. }
                    | Node::Change { path, .. }
                    | Node::Last { path, .. } => Some(path),
                    _ => None,
                }
            });
        paths.flat_map(|path| self.paths[path as usize].iter().copied())
    }

    #[inline(always)]
    fn view(&self) -> View<'_> {
        View { nodes: &self.nodes, branches: &self.branches, starts: &self.starts }
    }
}

/// The data of a walk. A copy, so that it stays in registers whatever is written to states.
#[derive(Clone, Copy)]
struct View<'d> {
    nodes: &'d [Node],
    branches: &'d [NodeId],
    starts: &'d [NodeId],
}

impl View<'_> {
    /// Follows tests to a leaf, to the first choice, or to the first node that changes a word.
    #[inline(always)]
    fn test(self, mut at: NodeId, state: &[u64]) -> NodeId {
        while at >= ENDS.len() as NodeId {
            at = match self.nodes[at as usize] {
                Node::Equal { word, yes, no, mask, value } => {
                    if state[word as usize] & mask == value { yes } else { no }
                }
                Node::Below { word, yes, no, mask, limit } => {
                    if state[word as usize] & mask < limit { yes } else { no }
                }
                Node::Case { word, shift, base, mask } => {
                    self.branches[base as usize + (state[word as usize] >> shift & mask) as usize]
                }
                _ => break,
            }
        }
        at
    }

    /// The first node of the diagram of a thread.
    #[inline(always)]
    fn start(self, entry: &Entry, state: &[u64]) -> NodeId {
        let counter = state[entry.word as usize] >> entry.shift & entry.mask;
        self.starts[entry.base as usize + counter as usize]
    }

    /// The node to which the tests of a thread lead.
    #[inline(always)]
    fn look(self, entry: &Entry, state: &[u64]) -> NodeId {
        self.test(self.start(entry, state), state)
    }

    /// Follows choices by the digits of an alternative, up to a leaf or to a node that changes a
    /// word.
    #[inline(always)]
    fn choose(self, mut at: NodeId, state: &[u64], digits: &mut Digits) -> NodeId {
        while let Node::Choose { count, base, .. } = self.nodes[at as usize] {
            let branch = self.branches[base as usize + (digits.rest % count) as usize];
            digits.rest /= count;
            digits.alternatives *= count;
            at = self.test(branch, state);
        }
        at
    }

    /// Changes words, from this node on.
    #[inline(always)]
    fn change(self, mut at: NodeId, state: &mut [u64]) {
        loop {
            let node = self.nodes[at as usize];
            // Usually it is the only one.
            if let Node::Last { word, keep, add, .. } = node {
                let word = &mut state[word as usize];
                *word = (*word & keep).wrapping_add(add);
                return;
            }
            match node {
                Node::Change { word, then, keep, add, .. } => {
                    let word = &mut state[word as usize];
                    *word = (*word & keep).wrapping_add(add);
                    at = then;
                }
                Node::Copy {
                    from,
                    from_shift,
                    from_bits,
                    to,
                    to_shift,
                    to_bits,
                    then,
                    add,
                    ..
                } => {
                    let raw =
                        (state[from as usize] >> from_shift & ones(from_bits)).wrapping_add(add);
                    let to = &mut state[to as usize];
                    *to = *to & !(ones(to_bits) << to_shift) | raw << to_shift;
                    at = then;
                }
                _ => return,
            }
        }
    }
}

/// The lowest `bits` bits; `bits` is at least 1.
#[inline(always)]
fn ones(bits: u8) -> u64 {
    u64::MAX >> (64 - bits)
}

impl Stepper<'_> {
    /// Takes a step in place: by its diagram, or by the interpreter if the diagram does not cover
    /// it.
    #[inline(always)]
    pub(super) fn quick_step(&mut self, state: &mut [u64], choice: Choice) -> Step {
        let diagrams = &self.machine.diagrams;
        let Some(entry) = diagrams.entries.get(choice.thread.index()) else {
            return self.take_step(state, choice, &mut Off);
        };
        let end = diagrams.view().look(entry, state);
        let chooses = matches!(diagrams.nodes[end as usize], Node::Choose { .. });
        if end < ENDS.len() as NodeId || chooses {
            return self.quick_step_from(end, state, choice);
        }
        self.finish(state, end, Digits { rest: choice.alternative, alternatives: 1 })
    }

    /// The step whose tests led to a leaf or to a choice.
    #[inline(never)]
    fn quick_step_from(&mut self, at: NodeId, state: &mut [u64], choice: Choice) -> Step {
        let mut digits = Digits { rest: choice.alternative, alternatives: 1 };
        let end = self.machine.diagrams.view().choose(at, state, &mut digits);
        match ENDS.get(end as usize) {
            Some(Node::Interpret) => self.take_step(state, choice, &mut Off),
            Some(Node::Wait { resting }) => Step::Blocked { resting: *resting },
            Some(Node::Ended) => Step::Ended,
            Some(Node::Vacant) => Step::Vacant,
            _ => self.finish(state, end, digits),
        }
    }

    /// Takes the steps of `threads` that consist only of tests and changes of words.
    #[inline]
    pub(super) fn quick_step_all<const W: usize>(
        &mut self,
        state: &[u64],
        threads: Range<usize>,
        batch: &mut Batch<W>,
        idle: &mut BlockedCounts,
    ) -> Option<Partial> {
        let (machine, taken) = (self.machine, &mut self.taken[..]);
        let diagrams = &machine.diagrams;
        let entries = diagrams
            .entries
            .get(threads.clone())
            .expect("a machine that is searched has its diagrams");
        // Records are renamed after every step.
        let named = !machine.heap.is_empty();
        let state = &state[..batch.words()];
        let view = diagrams.view();
        if view.start(entries.first()?, state) == INTERPRET {
            return Some(Partial { thread: ThreadId::new(threads.start), known: INTERPRET });
        }
        batch.fill(entries.len() * diagrams.most, |mut drafts, choices| {
            let (mut filled, mut ends) = (0, [0; ENDS.len()]);
            let mut partial = None;
            for (entry, thread) in entries.iter().zip(threads.start..) {
                let end = view.look(entry, state);
                if end < ENDS.len() as NodeId && end >= MOVES {
                    ends[end as usize] += 1;
                    continue;
                }
                let (thread, one) = (ThreadId::new(thread), [end]);
                let branches = match view.nodes[end as usize] {
                    Node::Choose { count, base, plain: true } => {
                        &view.branches[base as usize..][..count as usize]
                    }
                    Node::Choose { .. } | Node::Interpret => &[],
                    _ => &one[..],
                };
                if branches.is_empty() || named {
                    partial = Some(Partial { thread, known: end });
                    break;
                }
                for (alternative, &branch) in (0..).zip(branches) {
                    let next = drafts.next().expect("there is room for all steps of every thread");
                    next.copy_from_slice(state);
                    view.change(branch, next);
                    taken[branch as usize] = true;
                    choices[filled] = Choice { thread, alternative };
                    filled += 1;
                }
            }
            let [_, _, waiting, resting, ended, _] = ends;
            idle.waiting += waiting;
            idle.resting += resting;
            idle.ended += ended;
            (filled, partial)
        })
    }

    /// Continues from the node to which the tests of a thread led.
    #[inline(always)]
    pub(super) fn quick_finish_step(
        &mut self,
        state: &[u64],
        next: &mut [u64],
        partial: Partial,
        alternative: u32,
    ) -> Step {
        let mut digits = Digits { rest: alternative, alternatives: 1 };
        let end = self.machine.diagrams.view().choose(partial.known, state, &mut digits);
        next.copy_from_slice(state);
        match end {
            MOVES.. if (end as usize) < ENDS.len() => self.waits_after_choice(end),
            INTERPRET => {
                self.take_step(next, Choice { thread: partial.thread, alternative }, &mut Off)
            }
            _ => self.finish(next, end, digits),
        }
    }

    #[cold]
    fn waits_after_choice(&self, end: NodeId) -> Step {
        match ENDS[end as usize] {
            Node::Wait { resting } => Step::Blocked { resting },
            other => unreachable!("a thread that chooses is there, and not {other:?}"),
        }
    }

    #[inline(always)]
    fn finish(&mut self, state: &mut [u64], from: NodeId, digits: Digits) -> Step {
        self.machine.diagrams.view().change(from, state);
        self.taken[from as usize] = true;
        if !self.machine.heap.is_empty()
            && let Some(step) = self.settle_or_full(state)
        {
            return step;
        }
        let Digits { rest, alternatives } = digits;
        self.alternatives = alternatives;
        if rest == 0 { Step::Moved { alternatives } } else { Step::Absent }
    }

    #[inline(never)]
    fn settle_or_full(&mut self, state: &mut [u64]) -> Option<Step> {
        match self.settle(state) {
            Ok(()) => None,
            Err(Halt::Full(capacity)) => Some(Step::Full(capacity)),
            Err(_) => unreachable!("nothing but room can be missing at the end of a step"),
        }
    }

    /// Evaluates all invariants by their diagram, or by the interpreter if the diagram does not
    /// cover them.
    #[inline]
    pub(super) fn quick_invariants(&mut self, state: &[u64]) -> Result<(), Box<Failure>> {
        let diagrams = &self.machine.diagrams;
        match diagrams.invariants.map(|start| diagrams.view().test(start, state)) {
            Some(HOLDS) => Ok(()),
            _ => self.invariants(state, &mut Off),
        }
    }
}
