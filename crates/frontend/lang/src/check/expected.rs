//! Expressions where a certain type is expected.

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::program::{Expr, Type};

use super::Checker;
use super::names::Symbol;
use super::scopes::Purity;
use crate::syntax::ast::{self, ExprKind};

impl<'a> Checker<'a> {
    /// Checks a value that must be assignable to `needed`. `role` names it in messages: "the
    /// argument `x` of `f`".
    pub(super) fn typed(&mut self, expr: &'a ast::Expr, needed: &Type, role: &str) -> Option<Expr> {
        let value = self.value(expr, Some(needed))?;
        self.assignable(&value.ty, needed, expr, role)?;
        Some(value)
    }

    /// Checks an integer.
    pub(super) fn int(&mut self, expr: &'a ast::Expr, role: &str) -> Option<Expr> {
        self.typed(expr, &Type::Int, role)
    }

    /// Checks a condition.
    pub(super) fn condition(&mut self, expr: &'a ast::Expr) -> Option<Expr> {
        self.typed(expr, &Type::Bool, "a condition")
    }

    /// Checks a condition without effects; `context` says what requires that: ``an `await` ``.
    pub(super) fn pure_condition(
        &mut self,
        expr: &'a ast::Expr,
        context: &'static str,
    ) -> Option<Expr> {
        self.with_purity(Purity::Pure(context), |checker| checker.condition(expr))
    }

    /// Reports the errors inside an expression whose expected type is unknown because of another
    /// error.
    pub(super) fn look_into<T>(&mut self, expr: &'a ast::Expr) -> Option<T> {
        match &expr.kind {
            ExprKind::Null | ExprKind::Array(_) => {}
            ExprKind::Name(name) if self.constant_name(name).is_some() => {}
            ExprKind::Name(_) | ExprKind::Index(..) | ExprKind::Field(..) | ExprKind::Deref(_) => {
                _ = self.place(expr)
            }
            _ => _ = self.expr(expr, None),
        }
        None
    }

    /// Runs `check` with expressions restricted to `purity`.
    pub(super) fn with_purity<T>(
        &mut self,
        purity: Purity,
        check: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let outer = std::mem::replace(&mut self.frame.purity, purity);
        let result = check(self);
        self.frame.purity = outer;
        result
    }

    /// Checks that a value of type `found` can be stored in a place of type `needed`.
    pub(super) fn assignable(
        &mut self,
        found: &Type,
        needed: &Type,
        expr: &ast::Expr,
        role: &str,
    ) -> Option<()> {
        if mix(found, needed) {
            return Some(());
        }
        let (found_name, needed_name) = (self.name_of(found), self.name_of(needed));
        let mut diagnostic = Diagnostic::new(
            expr.span,
            format!("{role} needs a value of type `{needed_name}`, not `{found_name}`"),
        )
        .label(format!("this is of type `{found_name}`"));
        if let Some(hint) = self.conversion(found, needed, expr) {
            diagnostic = diagnostic.hint(hint);
        }
        self.refuse(diagnostic)
    }

    /// A hint on converting one type to the other.
    fn conversion(&self, found: &Type, needed: &Type, expr: &ast::Expr) -> Option<String> {
        let text = self.excerpt(expr.span);
        let text = if matches!(expr.kind, ExprKind::Binary(..)) {
            format!("({text})")
        } else {
            text.to_owned()
        };
        match (found, needed) {
            (Type::Int | Type::Range { .. }, Type::Bool) => {
                Some(format!("there is no conversion: write `{text} != 0`"))
            }
            (Type::Bool, Type::Int | Type::Range { .. }) => {
                Some(format!("there is no conversion: write `if {text} {{ 1 }} else {{ 0 }}`"))
            }
            (Type::Pointer(pointee), needed) if mix(pointee, needed) => {
                Some(format!("its target is `*{text}`"))
            }
            (found, Type::Pointer(pointee)) if **pointee == *found && self.is_shared(expr) => {
                Some(format!("a pointer to it is `&{text}`"))
            }
            (Type::Pointer(found), Type::Pointer(needed)) if mix(found, needed) => Some(
                "pointers to different types cannot be mixed: a value written through a pointer \
                 must fit its target"
                    .into(),
            ),
            (_, Type::Enum(id)) => {
                let variants: Vec<String> =
                    self.enums[*id].variants.iter().map(|name| format!("`{name}`")).collect();
                (variants.len() <= 8).then(|| format!("its values are {}", variants.join(", ")))
            }
            _ => None,
        }
    }

    /// Whether an expression is the name of a shared variable.
    fn is_shared(&self, expr: &ast::Expr) -> bool {
        let ExprKind::Name(name) = &expr.kind else { return false };
        self.frame.find(name).is_none()
            && matches!(self.symbols.find(name), Some(Symbol::Global(_)))
    }
}

/// Whether values of two types are interchangeable: integers of any range are; other types only
/// with themselves.
pub(super) fn mix(a: &Type, b: &Type) -> bool {
    is_int(a) && is_int(b) || a == b
}

/// `int` or a range.
pub(super) fn is_int(ty: &Type) -> bool {
    matches!(ty, Type::Int | Type::Range { .. })
}
