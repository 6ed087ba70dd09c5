//! Builds nodes from the leaves of a diagram to its root. Equal nodes are shared.

use std::collections::{BTreeMap, HashMap};

use super::super::code::Cell;
use super::super::layout::Field;
use super::facts::{Condition, Question, Raws};
use super::path::{Path, Value};
use super::{ENDS, HOLDS, INTERPRET, Node, NodeId, PathId};

/// All nodes so far.
pub(super) struct Nodes {
    pub(super) nodes: Vec<Node>,
    pub(super) branches: Vec<NodeId>,
    known: HashMap<Node, NodeId>,
    known_branches: HashMap<Vec<NodeId>, u32>,
    /// The marks on the paths to the nodes that change words.
    known_paths: HashMap<Vec<u32>, PathId>,
}

impl Nodes {
    /// Starts with the leaves.
    pub(super) fn new() -> Nodes {
        let mut nodes = Nodes {
            nodes: Vec::new(),
            branches: Vec::new(),
            known: HashMap::new(),
            known_branches: HashMap::new(),
            known_paths: HashMap::from([(Vec::new(), 0)]),
        };
        for (at, end) in ENDS.into_iter().enumerate() {
            let number = nodes.add(end);
            debug_assert_eq!(number as usize, at, "ends are numbered in their order");
        }
        nodes
    }

    /// The number of a node.
    pub(super) fn add(&mut self, node: Node) -> NodeId {
        *self.known.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            self.nodes.len() as NodeId - 1
        })
    }

    fn add_branches(&mut self, branches: Vec<NodeId>) -> u32 {
        if let Some(&base) = self.known_branches.get(&branches) {
            return base;
        }
        let base = self.branches.len() as u32;
        self.branches.extend(&branches);
        self.known_branches.insert(branches, base);
        base
    }

    /// A test of a cell with the possible bits `raws`, which do not decide it.
    pub(super) fn ask(
        &mut self,
        condition: Condition,
        (field, raws): (&Field, Raws),
        yes: NodeId,
        no: NodeId,
    ) -> NodeId {
        if yes == no {
            return yes;
        }
        let single = |set: u64| (set.count_ones() == 1).then(|| u64::from(set.trailing_zeros()));
        // The bits for yes and the bits for no, where there is only one possibility.
        let (is, is_not) = match (raws, condition.question) {
            (Raws::Few(set), question) => {
                (single(set & question.set()), single(set & !question.set()))
            }
            (_, Question::Is(raw)) => (Some(raw), None),
            (_, Question::Below(_)) => (None, None),
        };
        let either =
            [is.map(|raw| (raw, yes, no)), is_not.map(|raw| (raw, no, yes))].into_iter().flatten();
        // A test that is followed by another test of the same word, with the same node if it fails,
        // is merged with it.
        let joined = either.clone().find_map(|(raw, yes, no)| match self.nodes[yes as usize] {
            Node::Equal { word, yes, no: same, mask, value }
                if same == no && u32::from(word) == field.word =>
            {
                let (own, bits) = (field.mask << field.shift, raw << field.shift);
                debug_assert_eq!(mask & own, 0, "a cell is asked once");
                Some(Node::Equal { word, yes, no, mask: mask | own, value: value | bits })
            }
            _ => None,
        });
        let mask = field.mask << field.shift;
        let node = joined.or_else(|| {
            let (raw, yes, no) = either.clone().next()?;
            Some(Node::Equal { word: field.word as u16, yes, no, mask, value: raw << field.shift })
        });
        let node = node.unwrap_or_else(|| {
            let Question::Below(limit) = condition.question else {
                unreachable!("equality is a question for one value")
            };
            Node::Below { word: field.word as u16, yes, no, mask, limit: limit << field.shift }
        });
        self.add(node)
    }

    /// A branch for each possible value of a cell.
    pub(super) fn case(
        &mut self,
        cell: Cell,
        (field, raws): (&Field, Raws),
        branches: &[(u64, NodeId)],
    ) -> NodeId {
        let ends = |end: NodeId| branches.iter().filter(move |&&(_, branch)| branch == end);
        if ends(branches[0].1).count() == branches.len() {
            return branches[0].1;
        }
        // One value with its own branch, and one branch for all others.
        for &(raw, branch) in branches {
            let other = branches.iter().map(|&(_, branch)| branch).find(|&other| other != branch);
            let other = other.expect("not all of them are the same");
            if ends(other).count() == branches.len() - 1 {
                return self.ask(
                    Condition { cell, question: Question::Is(raw) },
                    (field, raws),
                    branch,
                    other,
                );
            }
        }
        self.table(field, branches)
    }

    /// A branch for some values of a cell. With another one, the interpreter takes the step.
    pub(super) fn case_of_some(&mut self, field: &Field, branches: &[(u64, NodeId)]) -> NodeId {
        if branches.iter().all(|&(_, branch)| branch == INTERPRET) {
            return INTERPRET;
        }
        self.table(field, branches)
    }

    /// A table of the branches for all values of a cell; the interpreter for those without one.
    fn table(&mut self, field: &Field, branches: &[(u64, NodeId)]) -> NodeId {
        let mut table = vec![INTERPRET; field.mask as usize + 1];
        branches.iter().for_each(|&(raw, branch)| table[raw as usize] = branch);
        let base = self.add_branches(table);
        self.add(Node::Case {
            word: field.word as u16,
            shift: field.shift as u8,
            base,
            mask: field.mask,
        })
    }

    /// A branch for each value of a digit of the alternative.
    pub(super) fn choose(&mut self, branches: Vec<NodeId>) -> NodeId {
        if let [branch] = branches[..] {
            return branch;
        }
        let plain = branches.iter().all(|&branch| {
            branch == HOLDS
                || matches!(
                    self.nodes[branch as usize],
                    Node::Copy { .. } | Node::Change { .. } | Node::Last { .. }
                )
        });
        let count = branches.len() as u32;
        let base = self.add_branches(branches);
        self.add(Node::Choose { count, base, plain })
    }

    /// The marks of all paths, by number.
    pub(super) fn paths(&self) -> Vec<Vec<u32>> {
        let mut paths = vec![Vec::new(); self.known_paths.len()];
        self.known_paths.iter().for_each(|(marks, &path)| paths[path as usize].clone_from(marks));
        paths
    }

    /// The writes of a path, and the end of the step. Paths that reach different statements end at
    /// different nodes, even if they write the same.
    pub(super) fn change(&mut self, path: &Path<'_>) -> NodeId {
        let (mut copies, mut changes) = (Vec::new(), BTreeMap::new());
        for &(cell, value) in &path.written {
            let field = path.field(cell);
            if field.mask == 0 {
                continue;
            }
            let (keep, add) = changes.entry(field.word).or_insert((u64::MAX, 0u64));
            match (path.simplify(value), path.simplify(Value::Cell { cell, add: 0 })) {
                (Value::Const(new), Value::Const(old)) => {
                    *add = add.wrapping_add((new.wrapping_sub(old) as u64) << field.shift);
                }
                (Value::Const(new), _) => {
                    *keep &= !(field.mask << field.shift);
                    *add = add.wrapping_add((new.wrapping_sub(field.lo) as u64) << field.shift);
                }
                (Value::Cell { cell: same, add: by }, _) if same == cell => {
                    *add = add.wrapping_add((by as u64) << field.shift);
                }
                (Value::Cell { cell: from, add: by }, _) => copies.push((from, cell, by)),
                (Value::Answer { .. }, _) => {
                    unreachable!("an answer is a number before it is written")
                }
            }
        }
        let Some(copies) = in_order(copies) else { return INTERPRET };
        changes.retain(|_, change| *change != (u64::MAX, 0));
        let number = self.known_paths.len() as PathId;
        let marks = *self.known_paths.entry(path.marks.clone()).or_insert(number);
        if changes.is_empty() && copies.is_empty() && marks != 0 {
            return self.add(Node::Last { word: 0, path: marks, keep: u64::MAX, add: 0 });
        }
        // The last node to be added is the first to be executed.
        let mut left = changes.len() + copies.len();
        let mut then = self.add(Node::Done);
        for (at, (word, (keep, add))) in changes.into_iter().enumerate() {
            left -= 1;
            let (word, path) = (word as u16, if left == 0 { marks } else { 0 });
            then = self.add(match at {
                0 => Node::Last { word, path, keep, add },
                _ => Node::Change { word, then, path, keep, add },
            });
        }
        for (from, to, by) in copies.into_iter().rev() {
            let (from, to) = (path.field(from), path.field(to));
            left -= 1;
            then = self.add(Node::Copy {
                from: from.word as u16,
                from_shift: from.shift as u8,
                from_bits: from.mask.count_ones() as u8,
                to: to.word as u16,
                to_shift: to.shift as u8,
                to_bits: to.mask.count_ones() as u8,
                then,
                path: if left == 0 { marks } else { 0 },
                add: by.wrapping_add(from.lo).wrapping_sub(to.lo) as u64,
            });
        }
        then
    }
}

/// Orders copies so that each reads the old value of its source; `None` if there is a cycle.
fn in_order(mut copies: Vec<(Cell, Cell, i64)>) -> Option<Vec<(Cell, Cell, i64)>> {
    let mut ordered = Vec::new();
    while !copies.is_empty() {
        let next =
            copies.iter().position(|&(_, to, _)| copies.iter().all(|&(from, _, _)| from != to))?;
        ordered.push(copies.swap_remove(next));
    }
    Some(ordered)
}
