//! The precedence of operators, for the parser and the printer.

use super::ast::BinaryOp;

/// A precedence; operators with a greater one bind more tightly.
pub(super) type Strength = u8;

/// The precedence of the loosest infix operator.
pub(super) const WEAKEST: Strength = 1;
/// The precedence of prefix operators.
pub(super) const PREFIX: Strength = 10;
/// The precedence of indexing, selection and calls, and of expressions that never need parentheses.
pub(super) const POSTFIX: Strength = 11;

/// Properties of an operator that show only in where parentheses are needed.
pub(super) trait Precedence {
    /// Its precedence.
    fn strength(self) -> Strength;
    /// Whether it is a comparison; comparisons cannot be chained.
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
