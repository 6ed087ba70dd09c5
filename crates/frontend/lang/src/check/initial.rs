//! Checks the initial values of shared variables.

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::program::Type;

use super::Checker;
use super::types::aggregate;
use crate::syntax::ast::{Expr, ExprKind};

impl<'a> Checker<'a> {
    /// The type of a variable without a declared type: that of its initial value, but `int` for a
    /// value of a range, since the variable may leave the range.
    pub(super) fn type_of_initial(&mut self, init: &'a Expr) -> Option<Type> {
        match &init.kind {
            ExprKind::Array(elements) => match elements.as_slice() {
                [] => self.empty_array(init),
                [first, ..] => {
                    Some(Type::Array(Box::new(self.type_of_initial(first)?), elements.len()))
                }
            },
            _ => {
                self.no_address(init)?;
                Some(widened(self.constant(init, None)?.1))
            }
        }
    }

    /// One value for each cell of a variable, in the order of the cells. Its size was checked.
    pub(super) fn initial_values(&mut self, init: &'a Expr, ty: &Type) -> Option<Vec<i64>> {
        if self.has_objects(ty) || contains_record(ty) {
            let name = self.name_of(ty);
            return self.refuse(
                Diagnostic::new(
                    init.span,
                    format!("a variable of type `{name}` cannot have an initial value"),
                )
                .label(format!("`{name}` is {}", aggregate(ty)))
                .hint(match ty {
                    Type::Object(_) => "leave it out: the type determines the initial state",
                    _ => "leave it out, and assign to its parts in `init { … }`",
                }),
            );
        }
        let mut values = Vec::new();
        self.fill(init, ty, &mut values)?;
        Some(values)
    }

    /// Appends the values of the cells of `ty`.
    fn fill(&mut self, init: &'a Expr, ty: &Type, values: &mut Vec<i64>) -> Option<()> {
        match (ty, &init.kind) {
            (Type::Array(element, length), ExprKind::Array(given)) => {
                if given.len() != *length {
                    self.report(
                        Diagnostic::new(
                            init.span,
                            format!("{} values for an array of {length}", given.len()),
                        )
                        .label(format!("{} given, {length} needed", given.len()))
                        .hint("give one value for each element, or one alone for all"),
                    );
                    return None;
                }
                // All elements, even after an error: every error is reported.
                let filled: Vec<_> =
                    given.iter().map(|value| self.fill(value, element, values)).collect();
                filled.into_iter().collect()
            }
            (_, ExprKind::Array(_)) => {
                let name = self.name_of(ty);
                self.refuse(
                    Diagnostic::new(init.span, format!("an array where one `{name}` is needed"))
                        .label("not an array here")
                        .hint(format!("give one value of type `{name}`")),
                )
            }
            _ => {
                let mut cell = ty;
                while let Type::Array(element, _) = cell {
                    cell = element;
                }
                self.no_address(init)?;
                let (value, found) = self.constant(init, Some(cell))?;
                self.assignable(&found, cell, init, "the initial value")?;
                self.in_range(value, cell, init.span)?;
                let cells = usize::try_from(self.cells(ty))
                    .expect("the size of a shared variable has been checked");
                values.resize(values.len() + cells, value);
                Some(())
            }
        }
    }

    fn no_address(&mut self, init: &Expr) -> Option<()> {
        if !matches!(init.kind, ExprKind::AddressOf(_)) {
            return Some(());
        }
        self.refuse(
            Diagnostic::new(init.span, "an address is not a constant")
                .label("initial values are constant")
                .hint(format!(
                    "declare it with its type and assign it in `init {{ … = {}; }}`",
                    self.source.slice(init.span)
                )),
        )
    }

    fn empty_array<T>(&mut self, init: &Expr) -> Option<T> {
        self.refuse(
            Diagnostic::new(init.span, "an array of length 0")
                .label("no values")
                .hint("an array has at least one element"),
        )
    }
}

/// The type that a variable gets from a value: only a declaration makes it a range.
pub(super) fn widened(ty: Type) -> Type {
    if matches!(ty, Type::Range { .. }) { Type::Int } else { ty }
}

fn contains_record(ty: &Type) -> bool {
    match ty {
        Type::Array(element, _) => contains_record(element),
        Type::Record(_) => true,
        _ => false,
    }
}
