//! Replaces frequent sequences of instructions by one instruction.
//!
//! The first instruction of a group is replaced by one that does the work of all and continues
//! after the last; the others stay where they are and are skipped, so that no address changes. A
//! group that contains the target of a jump is not fused. A fused group does not set its registers:
//! the compiler uses the value of an expression only once.

use std::collections::HashSet;

use super::code::{Address, Code, Instr};
use crate::program::{BinaryOp, UnaryOp};

/// Fuses all groups.
pub(super) fn fuse(code: &mut Code) {
    let targets = targets(code);
    for at in 0..code.instrs.len() {
        let (fused, length) = match code.instrs[at..] {
            [
                Instr::Load { dst, cell },
                Instr::BinaryConst { op, dst: sum, a, b },
                Instr::Store { cell: to, src },
                ..,
            ] if a == dst && src == sum && to == cell => (Instr::UpdateCell { op, cell, b }, 3),
            [
                Instr::Load { dst, cell },
                Instr::BinaryConst { op, dst: c, a, b },
                Instr::JumpUnless { condition, to },
                ..,
            ] if a == dst && condition == c => {
                let Ok(b) = i16::try_from(b) else { continue };
                (Instr::JumpUnlessCell { op, cell, b, to, length: 3 }, 3)
            }
            [
                Instr::Load { dst, cell },
                Instr::BinaryConst { op, dst: c, a, b },
                Instr::JumpIf { condition, to },
                ..,
            ] if a == dst && condition == c => {
                let (Ok(b), Some(op)) = (i16::try_from(b), negated(op)) else { continue };
                (Instr::JumpUnlessCell { op, cell, b, to, length: 3 }, 3)
            }
            [
                Instr::Load { dst, cell },
                Instr::BinaryConst { op, dst: c, a, b },
                Instr::Await { condition, resting },
                ..,
            ] if a == dst && condition == c => (Instr::AwaitCell { op, cell, b, resting }, 3),
            [
                Instr::Load { dst, cell },
                Instr::Unary { op: UnaryOp::Not, dst: c, src },
                Instr::Await { condition, resting },
                ..,
            ] if src == dst && condition == c => {
                (Instr::AwaitCell { op: BinaryOp::Eq, cell, b: 0, resting }, 3)
            }
            [Instr::Load { dst, cell }, Instr::JumpUnless { condition, to }, ..]
                if condition == dst =>
            {
                (Instr::JumpUnlessCell { op: BinaryOp::Ne, cell, b: 0, to, length: 2 }, 2)
            }
            [Instr::Load { dst, cell }, Instr::Store { cell: to, src }, ..] if src == dst => {
                (Instr::CopyCell { from: cell, to }, 2)
            }
            [Instr::Const { dst, value }, Instr::Store { cell, src }, ..] if src == dst => {
                (Instr::StoreConst { cell, value }, 2)
            }
            _ => continue,
        };
        if (at + 1..at + length).all(|inner| !targets.contains(&(inner as Address))) {
            code.instrs[at] = fused;
        }
    }
}

/// The comparison that holds when `op` does not.
fn negated(op: BinaryOp) -> Option<BinaryOp> {
    Some(match op {
        BinaryOp::Eq => BinaryOp::Ne,
        BinaryOp::Ne => BinaryOp::Eq,
        BinaryOp::Lt => BinaryOp::Ge,
        BinaryOp::Ge => BinaryOp::Lt,
        BinaryOp::Gt => BinaryOp::Le,
        BinaryOp::Le => BinaryOp::Gt,
        _ => return None,
    })
}

/// The targets of jumps.
fn targets(code: &Code) -> HashSet<Address> {
    let jumps = code.instrs.iter().filter_map(|instr| match *instr {
        Instr::Jump(to)
        | Instr::JumpIf { to, .. }
        | Instr::JumpUnless { to, .. }
        | Instr::JumpUnlessWithin { to, .. } => Some(to),
        _ => None,
    });
    let slots = code.slots.iter().flat_map(|slot| {
        slot.rests
            .iter()
            .map(|rest| rest.address)
            .chain(slot.entries.iter().map(|&(_, address)| address))
    });
    jumps
        .chain(slots)
        .chain(code.tables.iter().flatten().copied())
        .chain(code.frames.iter().flat_map(|frame| frame.sites.iter().copied()))
        .chain(code.init)
        .chain(code.invariants.iter().copied())
        .collect()
}
