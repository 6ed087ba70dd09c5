//! Arithmetic of the language: 32-bit integers that never wrap.

use crate::program::{BinaryOp, UnaryOp};

/// An error of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Division or remainder by zero.
    DivisionByZero,
    /// The result does not fit 32 bits.
    Overflow,
    /// A shift by less than 0 or more than 31.
    Shift,
}

impl Error {
    /// The error as one sentence.
    pub const fn message(self) -> &'static str {
        match self {
            Error::DivisionByZero => "division by zero",
            Error::Overflow => "integer overflow: the result does not fit 32 bits",
            Error::Shift => "shift by less than 0 or more than 31",
        }
    }
}

/// Whether the operator can fail for some operands.
pub fn may_fail(op: BinaryOp) -> bool {
    use BinaryOp::*;
    matches!(op, Add | Sub | Mul | Div | Rem | Shl | Shr)
}

/// `op a`
#[inline(always)]
pub fn unary(op: UnaryOp, a: i64) -> Result<i64, Error> {
    match op {
        UnaryOp::Not => Ok(i64::from(a == 0)),
        UnaryOp::Neg if a == i64::from(i32::MIN) => Err(Error::Overflow),
        UnaryOp::Neg => Ok(-a),
    }
}

/// `a op b`
#[inline(always)]
pub fn binary(op: BinaryOp, a: i64, b: i64) -> Result<i64, Error> {
    let result = match op {
        // Operands fit 32 bits, so none of these wraps.
        BinaryOp::Add => a + b,
        BinaryOp::Sub => a - b,
        BinaryOp::Mul => a * b,
        BinaryOp::Div if b != 0 => a / b,
        BinaryOp::Rem if b != 0 => a % b,
        BinaryOp::Div | BinaryOp::Rem => return Err(Error::DivisionByZero),
        BinaryOp::Shl if (0..32).contains(&b) => a << b,
        BinaryOp::Shr if (0..32).contains(&b) => a >> b,
        BinaryOp::Shl | BinaryOp::Shr => return Err(Error::Shift),
        BinaryOp::Eq => return Ok(i64::from(a == b)),
        BinaryOp::Ne => return Ok(i64::from(a != b)),
        BinaryOp::Lt => return Ok(i64::from(a < b)),
        BinaryOp::Le => return Ok(i64::from(a <= b)),
        BinaryOp::Gt => return Ok(i64::from(a > b)),
        BinaryOp::Ge => return Ok(i64::from(a >= b)),
        BinaryOp::And | BinaryOp::BitAnd => return Ok(a & b),
        BinaryOp::Or | BinaryOp::BitOr => return Ok(a | b),
        BinaryOp::BitXor => return Ok(a ^ b),
    };
    if i64::from(result as i32) == result { Ok(result) } else { Err(Error::Overflow) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_wraps() {
        let max = i64::from(i32::MAX);
        let min = i64::from(i32::MIN);
        assert_eq!(unary(UnaryOp::Neg, min), Err(Error::Overflow));
        assert_eq!(unary(UnaryOp::Neg, max), Ok(min + 1));
        assert_eq!(binary(BinaryOp::Add, max, 1), Err(Error::Overflow));
        assert_eq!(binary(BinaryOp::Div, min, -1), Err(Error::Overflow));
        assert_eq!(binary(BinaryOp::Rem, min, -1), Ok(0));
        assert_eq!(binary(BinaryOp::Rem, -7, 3), Ok(-1));
        assert_eq!(binary(BinaryOp::Mul, min, min), Err(Error::Overflow));
        assert_eq!(binary(BinaryOp::Shl, 1, 31), Err(Error::Overflow));
        assert_eq!(binary(BinaryOp::Shl, 1, 32), Err(Error::Shift));
        assert_eq!(binary(BinaryOp::Div, 1, 0), Err(Error::DivisionByZero));
    }
}
