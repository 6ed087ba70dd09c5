//! Straight-line threads: whether every thread takes the same steps in every execution, and what
//! each of them accesses.
//!
//! The code of a thread is read once from its start to its end. It is a straight line if only
//! values depend on values that are not constant: no jump and no address does. So the accesses are
//! the same in every execution; a failing step makes fewer of them and is the thread's last. A
//! thread that fails before its first access has one step, which fails and accesses nothing: this
//! depends on its own computation alone, so it is the same in every execution.

use preempt_system::{
    Access, Footprint, Location, Model as _, NotStraight, Stepper as _, ThreadId,
};

use super::Machine;
use super::code::{Address, Cell, Code, Instr, Reg};
use super::record::{Accesses, Recorder as _};
use crate::arith;

/// The accesses of every thread, step by step.
pub(super) fn lines(machine: &Machine) -> Result<Vec<Vec<Footprint>>, NotStraight> {
    let code = &machine.code;
    // A thread or an `init` block that starts threads is found before the slots that are empty
    // without it.
    if let Some(at) = code.instrs.iter().position(|instr| matches!(instr, Instr::Spawn { .. })) {
        return Err(not_straight(machine, at, "it starts threads"));
    }
    let mut state = vec![0; machine.shape().words];
    machine.stepper().initial(&mut state);
    let fails_first = |slot: usize| {
        let start = code.slots[slot].starts.first().copied().flatten();
        start.is_some_and(|start| {
            machine.rest_point(&state, ThreadId::new(slot)) == Some(start as usize)
        })
    };
    let line = |slot: usize| match code.slots[slot].entries.first() {
        Some(_) if !code.slots[slot].spare && fails_first(slot) => Ok(vec![Footprint::new()]),
        Some(&(_, entry)) if !code.slots[slot].spare => Line::new(machine, slot).follow(entry),
        _ => Ok(Vec::new()),
    };
    (0..machine.shape().threads).map(line).collect()
}

fn not_straight(machine: &Machine, at: usize, why: &'static str) -> NotStraight {
    NotStraight { why, site: Some(machine.program.source.site(machine.code.spans[at])) }
}

/// A thread that is read.
struct Line<'m> {
    machine: &'m Machine,
    slot: usize,
    /// The registers that have the same value in every execution. They do not survive a step, and
    /// hold addresses and indices.
    regs: [Option<i64>; 256],
    steps: Vec<Footprint>,
    /// The accesses of the current step.
    step: Footprint,
}

impl<'m> Line<'m> {
    fn new(machine: &'m Machine, slot: usize) -> Line<'m> {
        Line { machine, slot, regs: [None; 256], steps: Vec::new(), step: Footprint::new() }
    }

    /// Reads from `entry` to the end. The code before the first rest point runs before the first
    /// step, and accesses nothing shared.
    fn follow(mut self, entry: Address) -> Result<Vec<Footprint>, NotStraight> {
        let (machine, mut at, mut begun) = (self.machine, entry as usize, false);
        loop {
            let refuse = |why| Err(not_straight(machine, at, why));
            let instr = machine.code.instrs[at];
            match instr {
                Instr::Rest(_) => {
                    let step = std::mem::take(&mut self.step);
                    self.regs = [None; 256];
                    if std::mem::replace(&mut begun, true) {
                        self.steps.push(step);
                    }
                }
                Instr::End => {
                    if begun {
                        self.step.add(Location(machine.slots[self.slot].cell), Access::Write);
                        self.steps.push(self.step);
                    }
                    return Ok(self.steps);
                }
                Instr::Jump(_) if is_call(&machine.code, at) => {
                    return refuse("it calls a function");
                }
                Instr::Jump(to) if to as usize <= at => return refuse("it loops"),
                Instr::Jump(to) => {
                    at = to as usize;
                    continue;
                }
                _ => match obstacle(instr) {
                    Some(why) => return refuse(why),
                    None => match self.pass(instr) {
                        Some(fused) => at += fused,
                        None => {
                            return refuse("it uses an index or a pointer that is not constant");
                        }
                    },
                },
            }
            at += 1;
        }
    }

    /// Records what an instruction accesses and the constants that it computes; returns how many of
    /// the following instructions belong to it. `None` if its accesses are unknown.
    fn pass(&mut self, instr: Instr) -> Option<usize> {
        let known = |reg: Reg| self.regs[reg as usize];
        let (dst, value) = match instr {
            Instr::Const { dst, value } => (dst, Some(value)),
            Instr::Move { dst, src } => (dst, known(src)),
            Instr::Offset { addr, offset } => {
                (addr, known(addr).map(|base| base + i64::from(offset)))
            }
            Instr::Index { addr, index, stride, len } => {
                let index = known(index).filter(|&index| (0..i64::from(len)).contains(&index));
                (addr, known(addr).zip(index).map(|(base, index)| base + index * i64::from(stride)))
            }
            Instr::Unary { op, dst, src } => {
                (dst, known(src).and_then(|value| arith::unary(op, value).ok()))
            }
            Instr::Binary { op, dst, a, b } => {
                (dst, known(a).zip(known(b)).and_then(|(a, b)| arith::binary(op, a, b).ok()))
            }
            Instr::BinaryConst { op, dst, a, b } => {
                (dst, known(a).and_then(|a| arith::binary(op, a, i64::from(b)).ok()))
            }
            Instr::Load { dst, cell } => {
                self.touch(cell, Access::Read);
                (dst, None)
            }
            Instr::LoadAt { dst, addr } => {
                self.touch(known(addr)? as Cell, Access::Read);
                (dst, None)
            }
            Instr::Swap { dst, addr, .. }
            | Instr::CompareAndSwap { dst, addr, .. }
            | Instr::CompareExchange { dst, addr, .. }
            | Instr::Fetch { dst, addr, .. } => {
                self.touch(known(addr)? as Cell, Access::Write);
                (dst, None)
            }
            Instr::Store { cell, .. } => return self.write(cell, 0),
            Instr::StoreAt { addr, .. } => return self.write(known(addr)? as Cell, 0),
            Instr::StoreConst { cell, .. } => return self.write(cell, 1),
            Instr::UpdateCell { cell, .. } => return self.write(cell, 2),
            Instr::CopyCell { from, to } => {
                self.touch(from, Access::Read);
                return self.write(to, 1);
            }
            Instr::Clear { .. } | Instr::Assert { .. } | Instr::Mark(_) => return Some(0),
            other => unreachable!("{other:?} is in the way of a straight line"),
        };
        self.regs[dst as usize] = value;
        Some(0)
    }

    fn write(&mut self, cell: Cell, fused: usize) -> Option<usize> {
        self.touch(cell, Access::Write);
        Some(fused)
    }

    fn touch(&mut self, cell: Cell, access: Access) {
        Accesses { footprint: &mut self.step, machine: self.machine }.cell(cell, access);
    }
}

/// Why a thread is not a straight line at this instruction, if it is not.
fn obstacle(instr: Instr) -> Option<&'static str> {
    Some(match instr {
        Instr::JumpIf { .. }
        | Instr::JumpUnless { .. }
        | Instr::JumpUnlessWithin { .. }
        | Instr::JumpUnlessCell { .. }
        | Instr::JumpTable { .. } => "it branches or loops",
        Instr::Await { .. } | Instr::AwaitCell { .. } => "it waits for a condition",
        Instr::Object { .. } | Instr::Guard { .. } => "it uses a synchronisation object",
        Instr::Choose { .. } => "it chooses",
        Instr::Join { .. } => "it waits for a thread",
        Instr::New { .. } => "it makes records",
        Instr::Deref { .. } => "it follows a pointer",
        Instr::Save(_) | Instr::Result { .. } | Instr::TakeResult { .. } | Instr::Return(_) => {
            "it calls a function"
        }
        _ => return None,
    })
}

/// Whether the jump calls a function that returns to the instruction after it.
fn is_call(code: &Code, at: usize) -> bool {
    code.frames.iter().any(|frame| frame.sites.contains(&(at as Address + 1)))
}
