//! Checks expressions.

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::program::{Expr, ExprKind, Method, Quantifier, Type};
use preempt_machine::source::Span;

use super::Checker;
use super::fold::INT;
use super::names::Symbol;
use super::records::size;
use super::scopes::{Outcome, Purity, Role};
use crate::syntax::ast::{self, UnaryOp};

/// The most values of a quantifier: it is evaluated in every state.
const MAX_QUANTIFIED: i64 = 1_000_000;

impl<'a> Checker<'a> {
    /// Checks an expression that has a value. `want` is the expected type, which determines the
    /// type of `null`.
    pub(super) fn value(&mut self, expr: &'a ast::Expr, want: Option<&Type>) -> Option<Expr> {
        let checked = self.expr(expr, want)?;
        if self.has_value(&checked) {
            return Some(checked);
        }
        self.refuse(
            Diagnostic::new(expr.span, format!("`{}` has no value", self.excerpt(expr.span)))
                .label("a value is needed here")
                .hint(match checked.kind {
                    ExprKind::Call(..) => "give the function a result: `fn f(…) -> int`",
                    _ => "put it into a statement of its own",
                }),
        )
    }

    /// Whether an expression has a value. Operations and calls without a value have the type `int`
    /// because every expression has a type.
    fn has_value(&self, expr: &Expr) -> bool {
        match &expr.kind {
            ExprKind::Call(function, _) => self.signatures[*function].outcome != Outcome::Nothing,
            ExprKind::CondWait { .. } | ExprKind::AtomicStore { .. } | ExprKind::Fence(_) => false,
            ExprKind::Method { method, .. } => matches!(
                method,
                Method::TryLock
                    | Method::TryReadLock
                    | Method::TryWriteLock
                    | Method::TryAcquire
                    | Method::TrySend
                    | Method::Recv
                    | Method::Len
            ),
            _ => true,
        }
    }

    /// Checks an expression that may have no value.
    pub(super) fn expr(&mut self, expr: &'a ast::Expr, want: Option<&Type>) -> Option<Expr> {
        let span = expr.span;
        let typed = |kind, ty| Some(Expr { kind, ty, span });
        match &expr.kind {
            ast::ExprKind::Int(value) => {
                typed(ExprKind::Const(self.literal(*value, span)?), Type::Int)
            }
            ast::ExprKind::Bool(value) => typed(ExprKind::Const(i64::from(*value)), Type::Bool),
            ast::ExprKind::Null => typed(ExprKind::Const(0), self.type_of_null(want, span)?),
            ast::ExprKind::Name(name) => match self.constant_name(name) {
                Some(constant) => {
                    constant.map(|(value, ty)| Expr { kind: ExprKind::Const(value), ty, span })
                }
                None => self.load(expr),
            },
            ast::ExprKind::Index(..) | ast::ExprKind::Field(..) | ast::ExprKind::Deref(_) => {
                self.load(expr)
            }
            ast::ExprKind::Array(_) => self.refuse(
                Diagnostic::new(span, "an array where a single value is needed")
                    .label("not here")
                    .hint(
                        "only a shared variable can begin with an array: `var a: [int; 3] = [1, \
                           2, 3];`",
                    ),
            ),
            ast::ExprKind::AddressOf(place) => {
                let place = self.addressable(place)?;
                let ty = Type::Pointer(Box::new(place.ty.clone()));
                typed(ExprKind::AddressOf(place), ty)
            }
            // The least int has no positive counterpart, so the literal and its sign belong
            // together.
            ast::ExprKind::Unary(UnaryOp::Neg, operand)
                if operand.kind == ast::ExprKind::Int(-INT.0) =>
            {
                typed(ExprKind::Const(INT.0), Type::Int)
            }
            ast::ExprKind::Unary(op, operand) => self.unary(*op, operand, span),
            ast::ExprKind::Binary(op, left, right) => self.binary(*op, left, right, span),
            ast::ExprKind::If(condition, then, otherwise) => {
                self.choice(condition, then, otherwise, want, span)
            }
            ast::ExprKind::Call(name, args) => self.call(name, args, span),
            ast::ExprKind::Method(object, name, args) => self.method(object, name, args, span),
            ast::ExprKind::Spawn(name, args) => self.spawn(name, args, span),
            ast::ExprKind::New(name, fields) => self.new_record(name, fields, span),
            ast::ExprKind::Choose(range) => {
                self.effect(span, "`choose`")?;
                let (lo, hi) = self.range(range);
                let (lo, hi) = (Box::new(lo?), Box::new(hi?));
                typed(ExprKind::Choose { lo, hi, inclusive: range.inclusive }, Type::Int)
            }
            ast::ExprKind::Quantifier(word, variable, range, body) => {
                self.quantifier(word, variable, range, body, span)
            }
            ast::ExprKind::Error => None,
        }
    }

    /// A number literal.
    fn literal(&mut self, value: i64, span: Span) -> Option<i64> {
        if (INT.0..=INT.1).contains(&value) {
            return Some(value);
        }
        self.refuse(
            Diagnostic::new(span, "this number does not fit into 32 bits")
                .label("too large")
                .hint(format!("an int is at least {} and at most {}", INT.0, INT.1)),
        )
    }

    fn type_of_null(&mut self, want: Option<&Type>, span: Span) -> Option<Type> {
        match want {
            Some(ty @ (Type::Pointer(_) | Type::Thread)) => Some(ty.clone()),
            Some(other) => {
                let name = self.name_of(other);
                self.refuse(
                    Diagnostic::new(span, format!("`null` is not a value of type `{name}`"))
                        .label(format!("`{name}` is needed here"))
                        .hint("only pointers and threads can be `null`"),
                )
            }
            None => self.refuse(
                Diagnostic::new(span, "the type of this `null` is not known")
                    .label("null of which type?")
                    .hint("give the type: `var p: *Node = null;`"),
            ),
        }
    }

    /// The value of a name that denotes a constant: `None` if it does not, `Some(None)` if the
    /// constant has no value.
    pub(super) fn constant_name(&self, name: &str) -> Option<Option<(i64, Type)>> {
        if self.frame.find(name).is_some() {
            return None;
        }
        match self.symbols.find(name)? {
            Symbol::Const(id) => Some(
                self.constants[id].as_ref().map(|constant| (constant.value, constant.ty.clone())),
            ),
            Symbol::Variant(id, index) => Some(Some((index as i64, Type::Enum(id)))),
            _ => None,
        }
    }

    /// Both ends of a range, as written.
    pub(super) fn range(&mut self, range: &'a ast::RangeExpr) -> (Option<Expr>, Option<Expr>) {
        let lo = self.int(&range.lo, "the end of a range");
        let hi = self.int(&range.hi, "the end of a range");
        (lo, hi)
    }

    fn quantifier(
        &mut self,
        word: &'a ast::Name,
        variable: &'a ast::Name,
        range: &'a ast::RangeExpr,
        body: &'a ast::Expr,
        span: Span,
    ) -> Option<Expr> {
        let (kind, context) = match word.text.as_str() {
            "all" => (Quantifier::All, "the body of `all`"),
            "any" => (Quantifier::Any, "the body of `any`"),
            _ => (Quantifier::Count, "the body of `count`"),
        };
        if self.frame.purity == Purity::Constant {
            return self.refuse(
                Diagnostic::new(span, format!("`{}` is not constant", word.text))
                    .label("a constant is needed here")
                    .hint(
                        "constants are made of numbers, bools, variants, other constants and \
                           operators",
                    ),
            );
        }
        let bounds = self.constant_range(range);
        self.frame.open();
        let ty = bounds.map(|_| Type::Int);
        let (local, _) = self.frame.declare(&variable.text, variable.span, ty, Role::Quantified);
        let body = self.pure_condition(body, context);
        self.frame.close();
        let (lo, hi) = bounds?;
        if hi - lo > MAX_QUANTIFIED {
            let values = size((hi - lo) as u128);
            return self.refuse(
                Diagnostic::new(range.span, format!("a quantifier over {values} values"))
                    .label(format!("at most {} are possible", size(MAX_QUANTIFIED as u128)))
                    .hint("choose a smaller range"),
            );
        }
        let ty = if kind == Quantifier::Count { Type::Int } else { Type::Bool };
        Some(Expr {
            kind: ExprKind::Quantifier { kind, local, lo, hi, body: Box::new(body?) },
            ty,
            span,
        })
    }

    /// Refuses an effect in a pure expression.
    pub(super) fn effect(&mut self, span: Span, what: &str) -> Option<()> {
        match self.frame.purity {
            Purity::Effects => Some(()),
            Purity::Pure(context) => self.refuse(
                Diagnostic::new(span, format!("{context} cannot use {what}"))
                    .label("this has effects, or may wait")
                    .hint(
                        "only variables, constants, operators and `len()` of a channel are \
                           allowed here",
                    ),
            ),
            Purity::Constant => self.refuse(
                Diagnostic::new(span, format!("{what} is not constant"))
                    .label("a constant is needed here")
                    .hint(
                        "constants are made of numbers, bools, variants, other constants and \
                           operators",
                    ),
            ),
        }
    }

    /// The text of a span, if it is short.
    pub(super) fn excerpt(&self, span: Span) -> &'a str {
        let text = self.source.slice(span);
        if text.len() <= 40 && !text.contains('\n') { text } else { "…" }
    }
}
