//! The strength of the operators: what the parser and the printer agree on.

use super::ast::BinaryOp;

/// How strongly an operator binds; more is stronger.
pub(super) type Strength = u8;

/// The strength of the weakest operator between operands.
pub(super) const WEAKEST: Strength = 1;
/// The strength of the signs before an operand.
pub(super) const PREFIX: Strength = 10;
/// The strength of indices, selections and calls, and of what needs no parentheses anywhere.
pub(super) const POSTFIX: Strength = 11;

/// What the text shows of an operator only by where parentheses are needed.
pub(super) trait Precedence {
    /// How strongly it binds its operands.
    fn strength(self) -> Strength;
    /// Whether it compares; comparisons are not chained.
    fn is_comparison(&self) -> bool;
}

impl Precedence for BinaryOp {
    fn strength(self) -> Strength {
        use BinaryOp::*;
        match self {
            Or => WEAKEST,
            And => 2,
            Eq | Ne | Lt | Le | Gt | Ge => 3,
            BitOr => 4,
            BitXor => 5,
            BitAnd => 6,
            Shl | Shr => 7,
            Add | Sub => 8,
            Mul | Div | Rem => 9,
        }
    }

    fn is_comparison(&self) -> bool {
        self.strength() == BinaryOp::Eq.strength()
    }
}
