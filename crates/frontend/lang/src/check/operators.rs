//! Checks operators and conditional expressions.

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::program::{Expr, ExprKind, Type};
use preempt_machine::source::Span;

use super::Checker;
use super::expected::{is_int, mix};
use crate::syntax::ast::{self, BinaryOp, UnaryOp};

impl<'a> Checker<'a> {
    pub(super) fn unary(
        &mut self,
        op: UnaryOp,
        operand: &'a ast::Expr,
        span: Span,
    ) -> Option<Expr> {
        let (ty, role) = match op {
            UnaryOp::Not => (Type::Bool, "the operand of `!`"),
            UnaryOp::Neg => (Type::Int, "the operand of `-`"),
        };
        let operand = self.typed(operand, &ty, role)?;
        Some(Expr { kind: ExprKind::Unary(op, Box::new(operand)), ty, span })
    }

    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        span: Span,
    ) -> Option<Expr> {
        let (operand, result) = match op {
            BinaryOp::Eq | BinaryOp::Ne => return self.comparison(op, left, right, span),
            BinaryOp::And | BinaryOp::Or => (Type::Bool, Type::Bool),
            BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge => (Type::Int, Type::Bool),
            _ => (Type::Int, Type::Int),
        };
        let role = format!("the operand of `{}`", op.text());
        let left = self.typed(left, &operand, &role);
        let right = self.typed(right, &operand, &role);
        Some(Expr {
            kind: ExprKind::Binary(op, Box::new(left?), Box::new(right?)),
            ty: result,
            span,
        })
    }

    /// `==` and `!=`, for scalars of one type.
    fn comparison(
        &mut self,
        op: BinaryOp,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        span: Span,
    ) -> Option<Expr> {
        let (left, right) = self.alike(left, right, None);
        let (left, right) = (left?, right?);
        if !mix(&left.ty, &right.ty) {
            let (a, b) = (self.name_of(&left.ty), self.name_of(&right.ty));
            let hint = match (&left.ty, &right.ty) {
                (Type::Pointer(pointee), other) | (other, Type::Pointer(pointee))
                    if mix(pointee, other) =>
                {
                    "the target of a pointer `p` is `*p`".to_owned()
                }
                (Type::Bool, other) | (other, Type::Bool) if is_int(other) => {
                    "there is no conversion: `true` is not 1".to_owned()
                }
                _ => format!("`{}` compares two values of one type", op.text()),
            };
            return self.refuse(
                Diagnostic::new(span, format!("`{a}` cannot be compared with `{b}`"))
                    .label(format!("left `{a}`, right `{b}`"))
                    .hint(hint),
            );
        }
        Some(Expr {
            kind: ExprKind::Binary(op, Box::new(left), Box::new(right)),
            ty: Type::Bool,
            span,
        })
    }

    /// Two expressions of one type; each may determine the type of a `null` in the other.
    fn alike(
        &mut self,
        left: &'a ast::Expr,
        right: &'a ast::Expr,
        want: Option<&Type>,
    ) -> (Option<Expr>, Option<Expr>) {
        let (first, second, swapped) = if left.kind == ast::ExprKind::Null {
            (right, left, true)
        } else {
            (left, right, false)
        };
        let first = self.value(first, want);
        let second = match (&first, want) {
            (Some(known), None) => self.value(second, Some(&known.ty.clone())),
            // The first has an error, so the type of a `null` is unknown.
            (None, None) if second.kind == ast::ExprKind::Null => None,
            _ => self.value(second, want),
        };
        if swapped { (second, first) } else { (first, second) }
    }

    /// `if c { a } else { b }`
    pub(super) fn choice(
        &mut self,
        condition: &'a ast::Expr,
        then: &'a ast::Expr,
        otherwise: &'a ast::Expr,
        want: Option<&Type>,
        span: Span,
    ) -> Option<Expr> {
        let condition = self.condition(condition);
        let (then, otherwise) = self.alike(then, otherwise, want);
        let (condition, then, otherwise) = (condition?, then?, otherwise?);
        if !mix(&then.ty, &otherwise.ty) {
            let (a, b) = (self.name_of(&then.ty), self.name_of(&otherwise.ty));
            return self.refuse(
                Diagnostic::new(
                    otherwise.span,
                    format!("the two values of an `if` are of types `{a}` and `{b}`"),
                )
                .label(format!("this is of type `{b}`"))
                .related(then.span, format!("and this is of type `{a}`"))
                .hint("both must be of one type"),
            );
        }
        let ty = if then.ty == otherwise.ty { then.ty.clone() } else { Type::Int };
        Some(Expr {
            kind: ExprKind::If(Box::new(condition), Box::new(then), Box::new(otherwise)),
            ty,
            span,
        })
    }
}
