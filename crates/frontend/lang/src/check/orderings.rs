//! Checks the built-in accesses to one variable, with their memory orderings.
//!
//! An ordering is the last argument and may be left out: then it is `seq_cst`. A
//! compare-and-exchange has a second one for the case that it does not assign.

use std::sync::atomic::Ordering;

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::program::{Base, ExchangeResult, Expr, ExprKind, Place, Type};
use preempt_machine::source::Span;

use super::Checker;
use super::expected::is_int;
use crate::syntax::ast::{self, BinaryOp};

/// The memory orderings by their names.
const ORDERINGS: [(&str, Ordering); 5] = [
    ("relaxed", Ordering::Relaxed),
    ("acquire", Ordering::Acquire),
    ("release", Ordering::Release),
    ("acq_rel", Ordering::AcqRel),
    ("seq_cst", Ordering::SeqCst),
];

/// The kind of an access, which decides the orderings that it can have.
#[derive(Clone, Copy, PartialEq)]
enum AccessKind {
    Load,
    Store,
    Update,
    /// A compare-and-exchange that does not assign.
    Failure,
    Fence,
}

impl AccessKind {
    fn noun(self) -> &'static str {
        match self {
            AccessKind::Load => "a load",
            AccessKind::Store => "a store",
            AccessKind::Update => "an access that reads and writes",
            AccessKind::Failure => "an exchange that does not assign",
            AccessKind::Fence => "a fence",
        }
    }

    fn allows(self, order: Ordering) -> bool {
        match self {
            AccessKind::Update => true,
            AccessKind::Store => !matches!(order, Ordering::Acquire | Ordering::AcqRel),
            AccessKind::Load | AccessKind::Failure => {
                !matches!(order, Ordering::Release | Ordering::AcqRel)
            }
            AccessKind::Fence => order != Ordering::Relaxed,
        }
    }
}

impl<'a> Checker<'a> {
    /// A call of a built-in access or fence; `None` if the name is not that of one.
    pub(super) fn atomic_call(
        &mut self,
        name: &'a ast::Name,
        args: &'a [ast::Expr],
        span: Span,
    ) -> Option<Option<Expr>> {
        let op = match name.text.as_str() {
            "cas" => return Some(self.exchange(name, args, span, ExchangeResult::Succeeded)),
            "swap" => return Some(self.swap(name, args, span)),
            "fetch_add" => BinaryOp::Add,
            "fetch_sub" => BinaryOp::Sub,
            "fetch_and" => BinaryOp::BitAnd,
            "fetch_or" => BinaryOp::BitOr,
            "fetch_xor" => BinaryOp::BitXor,
            // A function of the model with one of these names takes precedence.
            other if self.symbols.find(other).is_some() => return None,
            "compare_exchange" => {
                return Some(self.exchange(name, args, span, ExchangeResult::Old));
            }
            "load" => return Some(self.atomic_load(name, args, span)),
            "store" => return Some(self.atomic_store(name, args, span)),
            "fence" => return Some(self.fence(name, args, span)),
            _ => return None,
        };
        Some(self.fetch(name, op, args, span))
    }

    fn fetch(
        &mut self,
        name: &'a ast::Name,
        op: BinaryOp,
        args: &'a [ast::Expr],
        span: Span,
    ) -> Option<Expr> {
        let (place, value, order) = match args {
            [place, value] => (place, value, None),
            [place, value, order] => (place, value, Some(order)),
            _ => {
                let signature = format!("{}(place, value)", name.text);
                return self.argument_count(name.span, &name.text, 2, args.len(), &signature);
            }
        };
        let target = self.target(place);
        let value = self.int(value, &format!("the second argument of `{}`", name.text));
        let target = target?;
        if !is_int(&target.ty) {
            let ty = self.name_of(&target.ty);
            return self.refuse(
                Diagnostic::new(place.span, format!("`{}` works on integers", name.text))
                    .label(format!("this is of type `{ty}`"))
                    .hint("for other types there are `swap` and `cas`"),
            );
        }
        let order = self.order_of(order, AccessKind::Update, &target)?;
        let ty = target.ty.clone();
        let kind = ExprKind::Fetch { place: target, op, value: Box::new(value?), order };
        Some(Expr { kind, ty, span })
    }

    fn exchange(
        &mut self,
        name: &'a ast::Name,
        args: &'a [ast::Expr],
        span: Span,
        result: ExchangeResult,
    ) -> Option<Expr> {
        let ([place, old, new], orders) = match args {
            [place, old, new, orders @ ..] if orders.len() <= 2 => ([place, old, new], orders),
            _ => {
                let signature = format!("{}(place, old, new)", name.text);
                return self.argument_count(name.span, &name.text, 3, args.len(), &signature);
            }
        };
        let place = self.target(place)?;
        let old = self.typed(old, &place.ty, &format!("the second argument of `{}`", name.text));
        let new = self.typed(new, &place.ty, &format!("the third argument of `{}`", name.text));
        let success = self.order_of(orders.first(), AccessKind::Update, &place)?;
        let failure = match orders.get(1) {
            Some(failure) => self.order_of(Some(failure), AccessKind::Failure, &place)?,
            None => without_release(success),
        };
        let ty = match result {
            ExchangeResult::Succeeded => Type::Bool,
            ExchangeResult::Old => place.ty.clone(),
        };
        let (old, new, orders) = (Box::new(old?), Box::new(new?), (success, failure));
        Some(Expr { kind: ExprKind::CompareAndSwap { place, old, new, result, orders }, ty, span })
    }

    fn swap(&mut self, name: &'a ast::Name, args: &'a [ast::Expr], span: Span) -> Option<Expr> {
        let (place, value, order) = match args {
            [place, value] => (place, value, None),
            [place, value, order] => (place, value, Some(order)),
            _ => {
                return self.argument_count(name.span, "swap", 2, args.len(), "swap(place, value)");
            }
        };
        let place = self.target(place)?;
        let ty = place.ty.clone();
        let value = self.typed(value, &ty, "the second argument of `swap`")?;
        let order = self.order_of(order, AccessKind::Update, &place)?;
        Some(Expr { kind: ExprKind::Swap { place, value: Box::new(value), order }, ty, span })
    }

    fn atomic_load(
        &mut self,
        name: &'a ast::Name,
        args: &'a [ast::Expr],
        span: Span,
    ) -> Option<Expr> {
        let (place, order) = match args {
            [place] => (place, None),
            [place, order] => (place, Some(order)),
            _ => {
                let signature = "load(place, acquire)";
                return self.argument_count(name.span, "load", 2, args.len(), signature);
            }
        };
        let place = self.target(place)?;
        let order = self.order_of(order, AccessKind::Load, &place)?;
        let ty = place.ty.clone();
        Some(Expr { kind: ExprKind::AtomicLoad { place, order }, ty, span })
    }

    fn atomic_store(
        &mut self,
        name: &'a ast::Name,
        args: &'a [ast::Expr],
        span: Span,
    ) -> Option<Expr> {
        let (place, value, order) = match args {
            [place, value] => (place, value, None),
            [place, value, order] => (place, value, Some(order)),
            _ => {
                let signature = "store(place, value, release)";
                return self.argument_count(name.span, "store", 3, args.len(), signature);
            }
        };
        let place = self.target(place)?;
        let value = self.typed(value, &place.ty, "the second argument of `store`")?;
        let order = self.order_of(order, AccessKind::Store, &place)?;
        let kind = ExprKind::AtomicStore { place, value: Box::new(value), order };
        Some(Expr { kind, ty: Type::Int, span })
    }

    fn fence(&mut self, name: &'a ast::Name, args: &'a [ast::Expr], span: Span) -> Option<Expr> {
        let order = match args {
            [] => Ordering::SeqCst,
            [order] => self.ordering(order, AccessKind::Fence)?,
            _ => {
                return self.argument_count(name.span, "fence", 1, args.len(), "fence(seq_cst)");
            }
        };
        Some(Expr { kind: ExprKind::Fence(order), ty: Type::Int, span })
    }

    /// The ordering of an access to `place`. One that is written needs an atomic variable.
    fn order_of(
        &mut self,
        order: Option<&'a ast::Expr>,
        kind: AccessKind,
        place: &Place,
    ) -> Option<Ordering> {
        let Some(written) = order else { return Some(Ordering::SeqCst) };
        let order = self.ordering(written, kind)?;
        let (what, declared) = match place.base {
            Base::Deref(_) => return Some(order),
            Base::Local(_) => ("a local variable", None),
            Base::Global(id) if self.shared[id].atomic => return Some(order),
            Base::Global(id) => ("not atomic", Some(self.shared[id].span)),
        };
        let text = self.excerpt(place.span);
        let mut diagnostic =
            Diagnostic::new(place.span, format!("an access with an ordering: `{text}` is {what}"))
                .label("only atomic variables have orderings")
                .hint("declare a shared variable with `atomic var`, or leave the ordering out");
        if let Some(declared) = declared {
            diagnostic = diagnostic.related(declared, "declared here");
        }
        self.refuse(diagnostic)
    }

    /// `acquire`
    fn ordering(&mut self, expr: &'a ast::Expr, kind: AccessKind) -> Option<Ordering> {
        let known = match &expr.kind {
            ast::ExprKind::Name(name) => ORDERINGS.iter().find(|(known, _)| known == name),
            _ => None,
        };
        let allowed: Vec<String> = ORDERINGS
            .iter()
            .filter(|(_, order)| kind.allows(*order))
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        let hint = format!("use one of {}", allowed.join(", "));
        match known {
            Some(&(_, order)) if kind.allows(order) => Some(order),
            Some((name, _)) => self.refuse(
                Diagnostic::new(expr.span, format!("{} cannot be `{name}`", kind.noun()))
                    .label("not here")
                    .hint(hint),
            ),
            None => self.refuse(
                Diagnostic::new(expr.span, "this is not a memory ordering")
                    .label("an ordering is needed here")
                    .hint(hint),
            ),
        }
    }
}

/// The ordering of an exchange that does not assign, if none is given: it releases nothing.
fn without_release(order: Ordering) -> Ordering {
    match order {
        Ordering::Release => Ordering::Relaxed,
        Ordering::AcqRel => Ordering::Acquire,
        other => other,
    }
}
