//! Checks `match`: patterns, whether each can be taken, and whether they cover every value.

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::program::{Block, StmtKind, Type};
use preempt_machine::source::Span;

use super::Checker;
use super::expected::is_int;
use super::fold::INT;
use crate::syntax::ast;

/// A set of integers: disjoint inclusive ranges in ascending order, with gaps between them.
#[derive(Default)]
struct Covered(Vec<(i64, i64)>);

impl Covered {
    /// Whether all values from `lo` to `hi` are in the set.
    fn contains(&self, lo: i64, hi: i64) -> bool {
        let after = self.0.partition_point(|&(from, _)| from <= lo);
        after > 0 && hi <= self.0[after - 1].1
    }

    /// Adds all values from `lo` to `hi`.
    fn insert(&mut self, lo: i64, hi: i64) {
        let first = self.0.partition_point(|&(_, to)| to < lo - 1);
        let last = self.0.partition_point(|&(from, _)| from <= hi + 1);
        let touched = &self.0[first..last];
        let from = touched.first().map_or(lo, |range| range.0.min(lo));
        let to = touched.last().map_or(hi, |range| range.1.max(hi));
        self.0.splice(first..last, [(from, to)]);
    }

    /// The first value from `lo` to `hi` that is not in the set.
    fn missing(&self, lo: i64, hi: i64) -> Option<i64> {
        let after = self.0.partition_point(|&(from, _)| from <= lo);
        let next = if after > 0 { lo.max(self.0[after - 1].1 + 1) } else { lo };
        (next <= hi).then_some(next)
    }
}

impl<'a> Checker<'a> {
    /// `match e { … }`; `span` is that of its head.
    pub(super) fn matching(
        &mut self,
        scrutinee: &'a ast::Expr,
        arms: &'a [ast::Arm],
        span: Span,
    ) -> Option<StmtKind> {
        let value = self.value(scrutinee, None);
        let ty = value.as_ref().map(|value| value.ty.clone());
        let ty = ty.filter(|ty| self.matchable(ty, scrutinee));
        let mut covered = Covered::default();
        let mut checked: Vec<(Vec<(i64, i64)>, Block)> = Vec::new();
        let mut otherwise: Option<(Block, Span)> = None;
        let mut wrong = false;
        for arm in arms {
            if let Some((_, first)) = &otherwise {
                let first = *first;
                self.report(
                    Diagnostic::new(arm.span, "this arm is never taken")
                        .label("comes after `_`")
                        .related(first, "takes every other value")
                        .hint("move `_` to the end"),
                );
            }
            let mut ranges = Vec::new();
            for pattern in &arm.patterns {
                match ty.as_ref().and_then(|ty| self.pattern(pattern, ty, &mut covered)) {
                    Some(range) => ranges.push(range),
                    None => wrong = true,
                }
            }
            let body = self.block(&arm.body);
            if arm.patterns.is_empty() {
                otherwise.get_or_insert((body, arm.span));
            } else {
                checked.push((ranges, body));
            }
        }
        if wrong {
            return None;
        }
        if otherwise.is_none() {
            self.exhaustive(&covered, &ty?, span)?;
        }
        Some(StmtKind::Match {
            scrutinee: value?,
            arms: checked,
            otherwise: otherwise.map(|(body, _)| body),
        })
    }

    fn matchable(&mut self, ty: &Type, scrutinee: &ast::Expr) -> bool {
        if is_int(ty) || matches!(ty, Type::Bool | Type::Enum(_)) {
            return true;
        }
        let name = self.name_of(ty);
        self.report(
            Diagnostic::new(scrutinee.span, format!("`match` on a value of type `{name}`"))
                .label("not an integer, a bool or an enum")
                .hint("use `if` with `==`"),
        );
        false
    }

    /// The values of a pattern, both ends included. At least one of them must be new.
    fn pattern(
        &mut self,
        pattern: &'a ast::Pattern,
        ty: &Type,
        covered: &mut Covered,
    ) -> Option<(i64, i64)> {
        let (lo, hi, span) = match pattern {
            ast::Pattern::Value(expr) => {
                let (value, found) = self.constant(expr, Some(ty))?;
                self.assignable(&found, ty, expr, "a pattern of this `match`")?;
                (value, value, expr.span)
            }
            ast::Pattern::Range(range) => {
                if !is_int(ty) {
                    let name = self.name_of(ty);
                    return self.refuse(
                        Diagnostic::new(
                            range.span,
                            format!("a range of numbers does not match a `{name}`"),
                        )
                        .label(format!("a value of type `{name}` is needed here"))
                        .hint("list the values with `|`"),
                    );
                }
                let (lo, end) = self.nonempty_range(range, "it matches nothing")?;
                (lo, end - 1, range.span)
            }
        };
        let (least, most) = self.bounds(ty);
        let hint = if hi < least || lo > most {
            format!("the values of `{}` are {least} to {most}", self.name_of(ty))
        } else if covered.contains(lo, hi) {
            "the first arm that fits is taken: remove this pattern, or move it up".to_owned()
        } else {
            covered.insert(lo, hi);
            return Some((lo, hi));
        };
        let label = if hi < least || lo > most {
            "not a value of this type"
        } else {
            "taken by the patterns before"
        };
        self.refuse(Diagnostic::new(span, "this pattern never matches").label(label).hint(hint))
    }

    /// Checks that every value of a type is covered.
    fn exhaustive(&mut self, covered: &Covered, ty: &Type, span: Span) -> Option<()> {
        let (lo, hi) = self.bounds(ty);
        let Some(missing) = covered.missing(lo, hi) else { return Some(()) };
        let missing = match ty {
            Type::Enum(id) => {
                let variants = self.enums[*id].variants.iter().enumerate();
                let missing =
                    variants.filter(|&(index, _)| !covered.contains(index as i64, index as i64));
                missing.map(|(_, variant)| format!("`{variant}`")).collect::<Vec<_>>().join(", ")
            }
            Type::Bool => format!("`{}`", missing == 1),
            Type::Int => "the other numbers".to_owned(),
            _ => format!("`{missing}`"),
        };
        self.refuse(
            Diagnostic::new(span, "this `match` does not cover every value")
                .label(format!("nothing for {missing}"))
                .hint("add an arm for it, or `_ => { … }` for the rest"),
        )
    }

    /// The values of a type that can be matched.
    fn bounds(&self, ty: &Type) -> (i64, i64) {
        match *ty {
            Type::Bool => (0, 1),
            Type::Range { lo, hi } => (lo, hi),
            Type::Enum(id) => (0, self.enums[id].variants.len() as i64 - 1),
            _ => INT,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Covered;

    #[test]
    fn covered_values() {
        let mut set = Covered::default();
        for (lo, hi) in [(3, 5), (9, 9), (6, 7), (0, 1)] {
            assert!(!set.contains(lo, hi));
            set.insert(lo, hi);
            assert!(set.contains(lo, hi));
        }
        assert_eq!(set.0, [(0, 1), (3, 7), (9, 9)]);
        assert_eq!(
            (set.missing(0, 9), set.missing(3, 7), set.missing(4, 9)),
            (Some(2), None, Some(8))
        );
        set.insert(-5, 20);
        assert_eq!(set.0, [(-5, 20)]);
    }
}
