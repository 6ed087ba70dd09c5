//! Evaluates constants in the order of their dependencies, without recursion: a long chain of them
//! must not overflow the stack.

use std::collections::HashMap;

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::program::Type;

use super::Checker;
use super::fold::INT;
use super::names::{ConstItem, Symbol};
use crate::syntax::ast::{Expr, ExprKind, RangeExpr, TypeExpr, TypeKind};

/// The value of a constant.
#[derive(Clone, Debug)]
pub(super) struct Constant {
    pub(super) value: i64,
    pub(super) ty: Type,
}

/// The progress of the search at a constant.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Visit {
    New,
    /// On the path from the root of the search to the current constant.
    Open,
    Done,
}

impl<'a> Checker<'a> {
    /// Evaluates all constants.
    pub(super) fn evaluate_constants(&mut self, items: &[ConstItem<'a>]) {
        self.constants = vec![None; items.len()];
        let uses: Vec<Vec<usize>> = items.iter().map(|item| self.constants_in(item)).collect();
        let mut visits = vec![Visit::New; items.len()];
        for root in 0..items.len() {
            // The path from the root; for each constant, how many of its uses were followed.
            let mut path = if visits[root] == Visit::New { vec![(root, 0)] } else { vec![] };
            while let Some((id, followed)) = path.last_mut() {
                let id = *id;
                visits[id] = Visit::Open;
                let Some(&next) = uses[id].get(*followed) else {
                    visits[id] = Visit::Done;
                    path.pop();
                    self.constants[id] = self.evaluate(&items[id]);
                    continue;
                };
                *followed += 1;
                match visits[next] {
                    Visit::New => path.push((next, 0)),
                    Visit::Done => {}
                    Visit::Open => {
                        let start = path
                            .iter()
                            .position(|&(id, _)| id == next)
                            .expect("what is open is on the path");
                        self.constant_cycle(
                            path[start..].iter().map(|&(id, _)| &items[id]).collect(),
                        );
                    }
                }
            }
        }
    }

    /// Reports constants that depend on themselves. They have no value, so their uses report
    /// nothing.
    fn constant_cycle(&mut self, cycle: Vec<&ConstItem<'a>>) {
        let [first, rest @ ..] = cycle.as_slice() else { return };
        let names: Vec<&str> =
            cycle.iter().chain([first]).map(|item| item.name.text.as_str()).collect();
        let mut diagnostic =
            Diagnostic::new(first.name.span, format!("constant `{}` depends on itself", names[0]))
                .label(format!("{} is circular", names.join(" → ")))
                .hint("give one of them a value that does not depend on the others");
        for item in rest {
            diagnostic =
                diagnostic.related(item.name.span, format!("`{}` is part of it", item.name.text));
        }
        self.report(diagnostic);
    }

    fn evaluate(&mut self, item: &ConstItem<'a>) -> Option<Constant> {
        let ty = match item.ty {
            None => None,
            Some(written) => match self.resolve(written)? {
                ty @ (Type::Int | Type::Bool | Type::Range { .. } | Type::Enum(_)) => Some(ty),
                other => return self.not_a_constant_type(written, &other),
            },
        };
        let (value, found) = self.constant(item.value, ty.as_ref())?;
        let Some(ty) = ty else { return Some(Constant { value, ty: found }) };
        self.assignable(&found, &ty, item.value, "the constant")?;
        self.in_range(value, &ty, item.value.span)?;
        Some(Constant { value, ty })
    }

    fn not_a_constant_type<T>(&mut self, written: &TypeExpr, ty: &Type) -> Option<T> {
        let found = self.name_of(ty);
        self.refuse(
            Diagnostic::new(written.span, format!("a constant cannot be of type `{found}`"))
                .label("not an int, a bool or an enum")
                .hint("declare a shared variable instead: `var …`"),
        )
    }

    /// Checks that a constant value is in the range of a type to which it is assignable.
    pub(super) fn in_range(
        &mut self,
        value: i64,
        ty: &Type,
        span: preempt_machine::source::Span,
    ) -> Option<()> {
        let (lo, hi) = match *ty {
            Type::Range { lo, hi } => (lo, hi),
            Type::Int => INT,
            _ => return Some(()),
        };
        if (lo..=hi).contains(&value) {
            return Some(());
        }
        let name = self.name_of(ty);
        self.refuse(
            Diagnostic::new(span, format!("{value} is not in `{name}`"))
                .label(format!("this is {value}"))
                .hint(format!("the values of `{name}` are {lo} to {hi}")),
        )
    }

    /// The constants that a constant uses.
    fn constants_in(&self, item: &ConstItem<'a>) -> Vec<usize> {
        let mut names = HashMap::new();
        mentioned(item.value, &mut names);
        if let Some(ty) = item.ty {
            mentioned_in_type(ty, &mut names);
        }
        let mut uses: Vec<(u32, usize)> = names
            .into_iter()
            .filter_map(|(name, at)| match self.symbols.find(name)? {
                Symbol::Const(id) => Some((at, id)),
                _ => None,
            })
            .collect();
        uses.sort_unstable();
        uses.into_iter().map(|(_, id)| id).collect()
    }
}

/// Collects the names in an expression of a kind that constants can have, each with its first span.
fn mentioned<'a>(expr: &'a Expr, names: &mut HashMap<&'a str, u32>) {
    match &expr.kind {
        ExprKind::Name(name) => {
            names.entry(name).or_insert(expr.span.start);
        }
        ExprKind::Unary(_, operand) => mentioned(operand, names),
        ExprKind::Binary(_, left, right) => {
            mentioned(left, names);
            mentioned(right, names);
        }
        ExprKind::If(condition, then, otherwise) => {
            mentioned(condition, names);
            mentioned(then, names);
            mentioned(otherwise, names);
        }
        _ => {}
    }
}

fn mentioned_in_type<'a>(ty: &'a TypeExpr, names: &mut HashMap<&'a str, u32>) {
    if let TypeKind::Range(RangeExpr { lo, hi, .. }) = &ty.kind {
        mentioned(lo, names);
        mentioned(hi, names);
    }
}
