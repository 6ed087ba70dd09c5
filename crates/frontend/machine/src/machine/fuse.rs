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

#[cfg(test)]
mod tests {
    use super::super::code::Reg;
    use super::*;

    /// The first instruction of `group` after fusing, if `also` follows it.
    fn first(group: &[Instr], also: &[Instr]) -> Instr {
        let mut code = Code { instrs: [group, also].concat(), ..Code::default() };
        fuse(&mut code);
        assert_eq!(code.instrs.len(), group.len() + also.len(), "no address changes");
        code.instrs[0]
    }

    /// Fuses a group that `make` builds from the registers that its instructions use: each of them
    /// has to be the one that the instruction before has set.
    fn check<const N: usize>(make: impl Fn([Reg; N]) -> Vec<Instr>, set: [Reg; N], fused: Instr) {
        let group = make(set);
        assert_eq!(first(&group, &[]), fused);
        for used in 0..N {
            let mut other = set;
            other[used] = 9;
            assert_eq!(first(&make(other), &[]), group[0], "{used} of {group:?}");
        }
        for inner in 1..group.len() {
            assert_eq!(first(&group, &[Instr::Jump(inner as Address)]), group[0], "{group:?}");
        }
        assert_eq!(first(&group, &[Instr::Jump(0)]), fused, "a jump to its start");
        assert_eq!(first(&group, &[Instr::Jump(group.len() as Address)]), fused, "or its end");
    }

    #[test]
    fn groups_are_fused_if_they_pass_on_a_value() {
        let load = Instr::Load { dst: 1, cell: 7 };
        let lt = |a| Instr::BinaryConst { op: BinaryOp::Lt, dst: 2, a, b: 5 };
        let jump = |op| Instr::JumpUnlessCell { op, cell: 7, b: 5, to: 0, length: 3 };
        check(
            |[a, src]| {
                let add = Instr::BinaryConst { op: BinaryOp::Add, dst: 2, a, b: 5 };
                vec![load, add, Instr::Store { cell: 7, src }]
            },
            [1, 2],
            Instr::UpdateCell { op: BinaryOp::Add, cell: 7, b: 5 },
        );
        check(
            |[a, condition]| vec![load, lt(a), Instr::JumpUnless { condition, to: 0 }],
            [1, 2],
            jump(BinaryOp::Lt),
        );
        check(
            |[a, condition]| vec![load, lt(a), Instr::JumpIf { condition, to: 0 }],
            [1, 2],
            jump(BinaryOp::Ge),
        );
        check(
            |[a, condition]| vec![load, lt(a), Instr::Await { condition, resting: true }],
            [1, 2],
            Instr::AwaitCell { op: BinaryOp::Lt, cell: 7, b: 5, resting: true },
        );
        check(
            |[src, condition]| {
                let not = Instr::Unary { op: UnaryOp::Not, dst: 2, src };
                vec![load, not, Instr::Await { condition, resting: false }]
            },
            [1, 2],
            Instr::AwaitCell { op: BinaryOp::Eq, cell: 7, b: 0, resting: false },
        );
        check(
            |[condition]| vec![load, Instr::JumpUnless { condition, to: 0 }],
            [1],
            Instr::JumpUnlessCell { op: BinaryOp::Ne, cell: 7, b: 0, to: 0, length: 2 },
        );
        check(
            |[src]| vec![load, Instr::Store { cell: 8, src }],
            [1],
            Instr::CopyCell { from: 7, to: 8 },
        );
        check(
            |[src]| vec![Instr::Const { dst: 1, value: 3 }, Instr::Store { cell: 8, src }],
            [1],
            Instr::StoreConst { cell: 8, value: 3 },
        );
    }

    #[test]
    fn a_sum_that_is_stored_elsewhere_is_not_an_update() {
        let load = Instr::Load { dst: 1, cell: 7 };
        let add = Instr::BinaryConst { op: BinaryOp::Add, dst: 2, a: 1, b: 5 };
        assert_eq!(first(&[load, add, Instr::Store { cell: 8, src: 2 }], &[]), load);
    }

    #[test]
    fn every_comparison_has_an_opposite() {
        use BinaryOp::*;
        for (op, opposite) in [(Eq, Ne), (Lt, Ge), (Gt, Le)] {
            assert_eq!((negated(op), negated(opposite)), (Some(opposite), Some(op)));
        }
        assert_eq!(negated(Add), None);
    }
}
