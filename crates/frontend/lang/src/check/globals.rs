//! Checks shared variables and synchronisation objects.

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::program::{Global, Type};
use preempt_machine::source::Span;

use super::Checker;
use super::names::{GlobalDeclaration, GlobalItem};
use super::records::{MAX_SHARED_CELLS, size};
use crate::syntax::ast;

/// A shared variable.
pub(super) struct Shared {
    name: String,
    pub(super) ty: Option<Type>,
    pub(super) atomic: bool,
    init: Option<Vec<i64>>,
    pub(super) span: Span,
}

impl Shared {
    /// For the program; `None` if it has an error.
    pub(super) fn finish(self) -> Option<Global> {
        Some(Global {
            name: self.name,
            ty: self.ty?,
            atomic: self.atomic,
            init: self.init?,
            span: self.span,
        })
    }
}

impl<'a> Checker<'a> {
    /// Determines the types and initial values of all shared variables.
    pub(super) fn resolve_globals(&mut self, items: &[GlobalItem<'a>]) {
        let mut total = 0u128;
        // The type of the current object declaration: its errors are reported with its first
        // declarator only.
        let mut object = None;
        for GlobalItem { name, declaration } in items {
            let mut shared = Shared {
                name: name.text.clone(),
                ty: None,
                atomic: false,
                init: None,
                span: name.span,
            };
            match declaration {
                GlobalDeclaration::Var { atomic, ty, init } => {
                    shared.atomic = *atomic;
                    shared.ty = self.variable_type(name, *ty, *init);
                    shared.ty = shared.ty.filter(|ty| self.has_room(name, ty, &mut total));
                    shared.init = match (&shared.ty, init) {
                        (_, None) => Some(Vec::new()),
                        (Some(ty), Some(init)) => self.initial_values(init, ty),
                        (None, Some(_)) => None,
                    };
                }
                GlobalDeclaration::Object { ty, dimensions, first } => {
                    if *first {
                        object = self.resolve(ty);
                    }
                    shared.ty = self.dimensioned(object.clone(), dimensions);
                    shared.ty = shared.ty.filter(|ty| self.has_room(name, ty, &mut total));
                    shared.init = Some(Vec::new());
                }
            }
            self.shared.push(shared);
        }
    }

    /// The type of a variable that is declared with a type, an initial value, or both.
    fn variable_type(
        &mut self,
        name: &'a ast::Name,
        ty: Option<&'a ast::TypeExpr>,
        init: Option<&'a ast::Expr>,
    ) -> Option<Type> {
        match (ty, init) {
            (Some(ty), _) => self.resolve(ty),
            (None, Some(init)) => self.type_of_initial(init),
            (None, None) => self.untyped(name),
        }
    }

    /// Reports a declaration with neither a type nor an initial value.
    pub(super) fn untyped<T>(&mut self, name: &ast::Name) -> Option<T> {
        self.refuse(
            Diagnostic::new(name.span, format!("the type of `{}` is not known", name.text))
                .label("neither a type nor an initial value")
                .hint(format!("write `var {}: int;` or `var {} = 0;`", name.text, name.text)),
        )
    }

    /// An array of a type, outermost dimension first.
    fn dimensioned(&mut self, element: Option<Type>, dimensions: &'a [ast::Expr]) -> Option<Type> {
        let lengths: Vec<Option<usize>> =
            dimensions.iter().map(|length| self.length(length)).collect();
        lengths
            .into_iter()
            .rev()
            .try_fold(element?, |element, length| Some(Type::Array(Box::new(element), length?)))
    }

    /// Adds the cells of a shared variable to the total, before anything is allocated for it.
    fn has_room(&mut self, name: &ast::Name, ty: &Type, total: &mut u128) -> bool {
        let cells = self.cells(ty);
        let before = *total;
        if before.saturating_add(cells) <= MAX_SHARED_CELLS {
            *total += cells;
            return true;
        }
        let limit = size(MAX_SHARED_CELLS);
        let label = if cells > MAX_SHARED_CELLS {
            format!("has {} cells; at most {limit} are possible", size(cells))
        } else {
            format!(
                "has {} cells, after {} cells of other variables; at most {limit} are possible",
                size(cells),
                size(before)
            )
        };
        self.report(
            Diagnostic::new(name.span, format!("`{}` is too large", name.text))
                .label(label)
                .hint("use shorter arrays: a model checker stores every state it sees"),
        );
        false
    }
}
