//! Evaluates constant expressions.

use preempt_machine::arith;
use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::program::{BinaryOp, Expr, ExprKind, Type};

use super::Checker;
use super::scopes::Purity;
use crate::syntax::ast;

/// The values of `int`.
pub(super) const INT: (i64, i64) = (i32::MIN as i64, i32::MAX as i64);

impl<'a> Checker<'a> {
    /// The value of a constant expression and its type.
    pub(super) fn constant(
        &mut self,
        expr: &'a ast::Expr,
        want: Option<&Type>,
    ) -> Option<(i64, Type)> {
        let expr = self.with_purity(Purity::Constant, |checker| checker.value(expr, want))?;
        match fold(&expr) {
            Ok(value) => Some((value, expr.ty)),
            Err(diagnostic) => self.refuse(diagnostic),
        }
    }

    /// The value of a constant integer expression.
    pub(super) fn constant_int(&mut self, expr: &'a ast::Expr, role: &str) -> Option<i64> {
        let expr = self.with_purity(Purity::Constant, |checker| checker.int(expr, role))?;
        fold(&expr).map_or_else(|diagnostic| self.refuse(diagnostic), Some)
    }

    /// A constant range: its first value and the value after its last. It may be empty.
    pub(super) fn constant_range(&mut self, range: &'a ast::RangeExpr) -> Option<(i64, i64)> {
        let lo = self.constant_int(&range.lo, "the end of a range");
        let hi = self.constant_int(&range.hi, "the end of a range");
        Some((lo?, hi? + i64::from(range.inclusive)))
    }
}

/// The value of an expression without loads and effects.
fn fold(expr: &Expr) -> Result<i64, Diagnostic> {
    let value = match &expr.kind {
        ExprKind::Const(value) => *value,
        ExprKind::Unary(op, operand) => {
            arith::unary(*op, fold(operand)?).map_err(|_| overflow(expr))?
        }
        ExprKind::Binary(BinaryOp::And, left, right) if fold(left)? == 1 => fold(right)?,
        ExprKind::Binary(BinaryOp::And, ..) => 0,
        ExprKind::Binary(BinaryOp::Or, left, right) if fold(left)? == 0 => fold(right)?,
        ExprKind::Binary(BinaryOp::Or, ..) => 1,
        ExprKind::Binary(op, left, right) => {
            let (left, value) = (fold(left)?, fold(right)?);
            arith::binary(*op, left, value).map_err(|error| match error {
                arith::Error::Overflow => overflow(expr),
                error => Diagnostic::new(right.span, format!("{} in a constant", error.message()))
                    .label(format!("this is {value}")),
            })?
        }
        ExprKind::If(condition, then, _) if fold(condition)? == 1 => fold(then)?,
        ExprKind::If(_, _, otherwise) => fold(otherwise)?,
        _ => unreachable!("a constant expression consists of constants and operators"),
    };
    if (INT.0..=INT.1).contains(&value) { Ok(value) } else { Err(overflow(expr)) }
}

fn overflow(expr: &Expr) -> Diagnostic {
    Diagnostic::new(expr.span, "this constant does not fit into 32 bits")
        .label("integer overflow")
        .hint(format!("an int is at least {} and at most {}", INT.0, INT.1))
}
