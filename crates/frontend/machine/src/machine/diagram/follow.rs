//! Symbolic execution of the code on all its paths.

use preempt_system::ThreadId;

use super::super::Machine;
use super::super::code::{Address, Cell, Instr, RestPoint};
use super::super::run::MAX_ALTERNATIVES;
use super::facts::Raws;
use super::nodes::Nodes;
use super::path::{Path, STUCK, Turn, Value};
use super::{Diagrams, Entry, INTERPRET, Node, NodeId};

/// The most instructions that are executed for one diagram, and for all of them: a few
/// milliseconds.
const EACH: usize = 1_000;
const ALL: usize = 40_000;

/// The most forks of a path.
const SPLITS: usize = 100;

/// The most branches of one fork, and the most paths that the forks by values of cells on one path
/// make together.
const MAX_BRANCHES: u32 = 16;
const WIDTH: u32 = 32;

/// The most cells that are cleared at once.
const CLEARED: usize = 64;

/// Builds the diagrams of a machine.
pub(super) fn diagrams(machine: &Machine) -> Diagrams {
    let mut nodes = Nodes::new();
    let mut left = ALL;
    let (mut entries, mut starts) = (Vec::new(), Vec::new());
    for (index, (slot, code)) in machine.slots.iter().zip(&machine.code.slots).enumerate() {
        let counter = &slot.counter;
        entries.push(Entry {
            word: counter.word,
            shift: counter.shift,
            mask: counter.mask,
            base: starts.len() as u32,
        });
        for at in 0..=counter.mask as i64 {
            starts.push(match code.rests.get(at as usize) {
                Some(rest) => {
                    let of = Some((ThreadId::new(index), rest));
                    Following::new(machine, &mut nodes, of, &mut left)
                        .from(rest.address, Some((slot.cell, at)))
                }
                None if at == slot.absent && code.spare => nodes.add(Node::Vacant),
                None => nodes.add(Node::Ended),
            });
        }
    }
    let invariants =
        machine.code.invariants.iter().rev().fold(None, |then: Option<NodeId>, &address| {
            let mut following = Following::new(machine, &mut nodes, None, &mut left);
            if let Some(then) = then {
                following.holds = then;
            }
            Some(following.from(address, None))
        });
    let branches = nodes.nodes.iter().map(|node| match node {
        Node::Choose { count, plain: true, .. } => *count as usize,
        _ => 1,
    });
    let most = branches.max().unwrap_or(1);
    let (paths, branches) = (nodes.paths(), nodes.branches);
    Diagrams { nodes: nodes.nodes, branches, entries, starts, invariants, most, paths }
}

/// A diagram under construction.
struct Following<'f, 'm> {
    machine: &'m Machine,
    nodes: &'f mut Nodes,
    /// The thread and its rest point; `None` for an invariant.
    of: Option<(ThreadId, &'m RestPoint)>,
    /// The address at which an invariant that holds continues.
    holds: NodeId,
    /// The nodes for a thread that blocks, and for one that may stay blocked forever.
    waits: [NodeId; 2],
    /// The instructions that may still be executed for this diagram, and for all.
    each: usize,
    all: &'f mut usize,
}

impl<'f, 'm> Following<'f, 'm> {
    fn new(
        machine: &'m Machine,
        nodes: &'f mut Nodes,
        of: Option<(ThreadId, &'m RestPoint)>,
        all: &'f mut usize,
    ) -> Following<'f, 'm> {
        let end = of.is_some_and(|(_, rest)| rest.end);
        let waits = [false, true].map(|resting| nodes.add(Node::Wait { resting: resting || end }));
        Following { machine, holds: nodes.add(Node::Done), nodes, of, waits, each: EACH, all }
    }

    /// Builds the diagram of the code from `address` on, where the program counter is known.
    fn from(&mut self, address: Address, counter: Option<(Cell, i64)>) -> NodeId {
        let mut path = Path::new(self.machine, address as usize);
        if let Some((cell, at)) = counter {
            path.know(cell, at as u64);
        }
        self.follow(path)
    }

    /// Builds the diagram of the rest of a path.
    fn follow(&mut self, mut path: Path<'m>) -> NodeId {
        let turn = loop {
            if self.each == 0 || *self.all == 0 || path.splits > SPLITS {
                return INTERPRET;
            }
            self.each -= 1;
            *self.all -= 1;
            match self.pass(&mut path) {
                Ok(next) => path.at = next,
                Err(turn) => break turn,
            }
        };
        match turn {
            Turn::End(end) => end,
            Turn::Fork(condition) => {
                let about = (path.field(condition.cell), path.raws(condition.cell));
                let [yes, no] =
                    [true, false].map(|answer| self.follow(path.assuming(condition, answer)));
                self.nodes.ask(condition, about, yes, no)
            }
            Turn::Split(cell) => match path.raws(cell) {
                Raws::Few(set)
                    if set.count_ones() <= MAX_BRANCHES
                        && path.width * set.count_ones() <= WIDTH =>
                {
                    path.width *= set.count_ones();
                    let raws = (0..64).filter(|raw| set >> raw & 1 == 1);
                    let branches: Vec<(u64, NodeId)> =
                        raws.map(|raw| (raw, self.follow(path.knowing(cell, raw)))).collect();
                    self.nodes.case(cell, (path.field(cell), path.raws(cell)), &branches)
                }
                _ => INTERPRET,
            },
            Turn::Choose(count) => {
                let alternatives = path.alternatives.saturating_mul(count);
                if count == 0 || count > MAX_BRANCHES || alternatives > MAX_ALTERNATIVES {
                    return INTERPRET;
                }
                let branches = (0..count)
                    .map(|digit| self.follow(path.choosing(digit, alternatives)))
                    .collect();
                self.nodes.choose(branches)
            }
        }
    }

    /// The end of a step that leaves the thread at this value of its program counter.
    fn arrive(&mut self, path: &mut Path<'m>, counter: i64) -> Turn {
        let Some((thread, _)) = self.of else { return STUCK };
        match path.store(self.machine.slots[thread.index()].cell, Value::Const(counter)) {
            Ok(()) => Turn::End(self.nodes.change(path)),
            Err(turn) => turn,
        }
    }

    /// Executes one instruction and returns where the path continues. It changes nothing unless the
    /// instruction completes.
    fn pass(&mut self, path: &mut Path<'m>) -> Result<usize, Turn> {
        let machine = self.machine;
        let code = &machine.code;
        let (at, next) = (path.at, Ok(path.at + 1));
        let on = |holds: bool, to: Address, next: usize| Ok(if holds { next } else { to as usize });
        match code.instrs[at] {
            Instr::Rest(number) => return Err(self.arrive(path, i64::from(number))),
            Instr::End => {
                return Err(match self.of {
                    Some((thread, _)) => self.arrive(path, machine.slots[thread.index()].ended),
                    None => Turn::End(self.holds),
                });
            }
            Instr::Mark(line) => {
                code.marks[line as usize].iter().for_each(|&mark| path.reach(mark))
            }
            Instr::Const { dst, value } => path.set(dst, Value::Const(value)),
            Instr::Move { dst, src } => path.set(dst, path.reg(src)?),
            Instr::Load { dst, cell } => path.set(dst, path.load(cell)),
            Instr::LoadAt { dst, addr } => path.set(dst, path.load(path.cell(addr)?)),
            Instr::Store { cell, src } => path.store(cell, path.reg(src)?)?,
            Instr::StoreAt { addr, src } => path.store(path.cell(addr)?, path.reg(src)?)?,
            Instr::Clear { from, to } if (to - from) as usize <= CLEARED => {
                (from..to).for_each(|cell| path.clear(cell));
            }
            Instr::Index { addr, index, stride, len } => {
                let (base, index) = (path.number(path.reg(addr)?)?, path.number(path.reg(index)?)?);
                if index as u64 >= u64::from(len) {
                    return Err(STUCK);
                }
                path.set(addr, Value::Const(base + index * i64::from(stride)));
            }
            Instr::Deref { addr, .. } => match path.number(path.reg(addr)?)? {
                0 => return Err(STUCK),
                pointer => {
                    path.dereferenced = true;
                    path.set(addr, Value::Const(pointer - 1));
                }
            },
            Instr::Offset { addr, offset } => {
                path.set(addr, Value::Const(path.number(path.reg(addr)?)? + i64::from(offset)));
            }
            Instr::Unary { op, dst, src } => path.set(dst, path.unary(op, path.reg(src)?)?),
            Instr::Binary { op, dst, a, b } => {
                path.set(dst, path.binary(op, path.reg(a)?, path.reg(b)?)?)
            }
            Instr::BinaryConst { op, dst, a, b } => {
                path.set(dst, path.binary(op, path.reg(a)?, Value::Const(b.into()))?);
            }
            Instr::Jump(to) => return Ok(to as usize),
            Instr::JumpIf { condition, to } => {
                return on(!path.truth(path.reg(condition)?)?, to, at + 1);
            }
            Instr::JumpUnless { condition, to } => {
                return on(path.truth(path.reg(condition)?)?, to, at + 1);
            }
            Instr::JumpUnlessWithin { value, range, to } => {
                return on(
                    path.is_within(path.reg(value)?, code.ranges[range as usize])?,
                    to,
                    at + 1,
                );
            }
            Instr::JumpTable { index, table } => {
                let index = path.number(path.reg(index)?)? as usize;
                return code.tables[table as usize].get(index).map(|&to| to as usize).ok_or(STUCK);
            }
            Instr::Await { condition, resting } => {
                if !path.truth(path.reg(condition)?)? {
                    return Err(Turn::End(self.waits[usize::from(resting)]));
                }
            }
            Instr::Assert { condition, .. } => {
                if !path.truth(path.reg(condition)?)? {
                    return Err(STUCK);
                }
            }
            Instr::Choose { dst, lo, hi } => {
                let (lo, hi) = (path.number(path.reg(lo)?)?, path.number(path.reg(hi)?)?);
                if lo >= hi {
                    return Err(STUCK);
                }
                let count = u32::try_from(hi - lo).unwrap_or(u32::MAX);
                let digit = path.digit.ok_or(Turn::Choose(count))?;
                path.digit = None;
                path.set(dst, Value::Const(lo + i64::from(digit)));
            }
            Instr::Object { dst, arg, operation, addr } => {
                let thread = self.of.map_or(ThreadId::new(0), |(thread, _)| thread);
                let operation = code.operations[operation as usize];
                path.object(machine, operation, thread, (dst, arg, addr), self.waits[0])?;
            }
            Instr::Guard { operation, addr } => {
                let (thread, _) = self.of.ok_or(STUCK)?;
                if !path.guard(code.operations[operation as usize], addr, thread)? {
                    return Err(Turn::End(self.waits[0]));
                }
            }
            Instr::Swap { dst, addr, src } => {
                let cell = path.cell(addr)?;
                let (old, new) = (path.load(cell), path.reg(src)?);
                path.store(cell, new)?;
                path.set(dst, old);
            }
            Instr::CompareAndSwap { dst, addr, old, new } => {
                let cell = path.cell(addr)?;
                let equal =
                    path.binary(crate::program::BinaryOp::Eq, path.load(cell), path.reg(old)?)?;
                let equal = path.truth(equal)?;
                if equal {
                    path.store(cell, path.reg(new)?)?;
                }
                path.set(dst, Value::Const(equal.into()));
            }
            Instr::CompareExchange { dst, addr, old, new } => {
                let cell = path.cell(addr)?;
                let value = path.load(cell);
                let equal = path.binary(crate::program::BinaryOp::Eq, value, path.reg(old)?)?;
                if path.truth(equal)? {
                    path.store(cell, path.reg(new)?)?;
                }
                path.set(dst, value);
            }
            Instr::Fetch { op, dst, addr, src } => {
                let cell = path.cell(addr)?;
                let old = path.load(cell);
                path.store(cell, path.binary(op, old, path.reg(src)?)?)?;
                path.set(dst, old);
            }
            Instr::Result { src, range } => {
                let value = path.reg(src)?;
                if !path.is_within(value, code.ranges[range as usize])? {
                    return Err(STUCK);
                }
                path.result = Some(value);
            }
            Instr::TakeResult { dst } => path.set(dst, path.result.ok_or(STUCK)?),
            Instr::Return(frame) => return self.leave(path, frame),
            Instr::Join { thread } => self.join(path, thread)?,
            Instr::UpdateCell { op, cell, b } => {
                path.store(cell, path.binary(op, path.load(cell), Value::Const(b.into()))?)?;
                return Ok(at + 3);
            }
            Instr::JumpUnlessCell { op, cell, b, to, length } => {
                let holds =
                    path.truth(path.binary(op, path.load(cell), Value::Const(b.into()))?)?;
                return on(holds, to, at + length as usize);
            }
            Instr::AwaitCell { op, cell, b, resting } => {
                if !path.truth(path.binary(op, path.load(cell), Value::Const(b.into()))?)? {
                    return Err(Turn::End(self.waits[usize::from(resting)]));
                }
                return Ok(at + 3);
            }
            Instr::CopyCell { from, to } => {
                path.store(to, path.load(from))?;
                return Ok(at + 2);
            }
            Instr::StoreConst { cell, value } => {
                path.store(cell, Value::Const(value))?;
                return Ok(at + 2);
            }
            Instr::Fence(_)
            | Instr::Clear { .. }
            | Instr::Save(_)
            | Instr::Spawn { .. }
            | Instr::New { .. } => {
                return Err(STUCK);
            }
        }
        next
    }

    /// Drops the frame of a function that is not recursive and returns where its caller continues.
    fn leave(&self, path: &mut Path<'m>, frame: u32) -> Result<usize, Turn> {
        let code = &self.machine.code.frames[frame as usize];
        if code.frame.stack.is_some() || code.frame.cells.len() > CLEARED {
            return Err(STUCK);
        }
        let site = code.frame.selector.map_or(Ok(0), |cell| path.number(path.load(cell)))?;
        code.frame.cells.clone().for_each(|cell| path.clear(cell));
        code.sites.get(site as usize).map(|&to| to as usize).ok_or(STUCK)
    }

    /// Waits for the end of a thread.
    fn join(&self, path: &mut Path<'m>, thread: u8) -> Result<(), Turn> {
        let handle = path.number(path.reg(thread)?)?;
        let slot = usize::try_from(handle - 1).map_err(|_| STUCK)?;
        let of = self.machine.slots.get(slot).ok_or(STUCK)?;
        let ended =
            path.binary(crate::program::BinaryOp::Eq, path.load(of.cell), Value::Const(of.ended))?;
        if !path.truth(ended)? {
            return Err(Turn::End(self.waits[0]));
        }
        match self.machine.cells.slots[slot].joined {
            Some(cell) => path.store(cell, Value::Const(1)),
            None => Ok(()),
        }
    }
}
