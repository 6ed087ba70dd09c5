//! The spelling and the strength of the operators: what the parser and the printer agree on.

use super::ast::{BinaryOp, UnaryOp};

/// How strongly an operator binds; more is stronger.
pub type Strength = u8;

/// The strength of the weakest operator between operands.
pub const WEAKEST: Strength = 1;
/// The strength of the signs before an operand.
pub const PREFIX: Strength = 10;
/// The strength of indices, selections and calls, and of what needs no parentheses anywhere.
pub const POSTFIX: Strength = 11;

impl BinaryOp {
    /// How strongly it binds its operands.
    pub fn strength(self) -> Strength {
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

    /// Whether it compares; comparisons are not chained.
    pub fn is_comparison(self) -> bool {
        self.strength() == BinaryOp::Eq.strength()
    }

    /// How it is written.
    pub fn text(self) -> &'static str {
        use BinaryOp::*;
        match self {
            Add => "+",
            Sub => "-",
            Mul => "*",
            Div => "/",
            Rem => "%",
            Eq => "==",
            Ne => "!=",
            Lt => "<",
            Le => "<=",
            Gt => ">",
            Ge => ">=",
            And => "&&",
            Or => "||",
            BitAnd => "&",
            BitOr => "|",
            BitXor => "^",
            Shl => "<<",
            Shr => ">>",
        }
    }
}

impl UnaryOp {
    /// How it is written.
    pub fn text(self) -> &'static str {
        match self {
            UnaryOp::Not => "!",
            UnaryOp::Neg => "-",
        }
    }
}
