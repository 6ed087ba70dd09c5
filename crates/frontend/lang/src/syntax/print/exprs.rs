//! Prints expressions with the fewest parentheses.

use super::bound;
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, RangeExpr, UnaryOp};
use crate::syntax::operator::{POSTFIX, PREFIX, Precedence as _, Strength, WEAKEST};

/// An expression that stands alone.
pub(super) fn expr(expr: &Expr) -> String {
    match &expr.kind {
        ExprKind::Int(number) => number.to_string(),
        ExprKind::Bool(value) => value.to_string(),
        ExprKind::Null => "null".to_owned(),
        ExprKind::Name(name) => name.clone(),
        ExprKind::Array(elements) => format!("[{}]", list(elements)),
        ExprKind::Index(array, index) => {
            format!("{}[{}]", within(array, POSTFIX), self::expr(index))
        }
        ExprKind::Field(record, field) => format!("{}.{}", within(record, POSTFIX), field.text),
        ExprKind::Unary(op, operand) => prefix(op.text(), operand),
        ExprKind::AddressOf(place) => prefix("&", place),
        ExprKind::Deref(pointer) => prefix("*", pointer),
        ExprKind::Binary(op, left, right) => {
            let stronger = op.strength() + 1;
            let left = within(left, if op.is_comparison() { stronger } else { op.strength() });
            format!("{left} {} {}", op.text(), within(right, stronger))
        }
        ExprKind::If(condition, then, otherwise) => {
            format!(
                "if {} {{ {} }} else {{ {} }}",
                operand(condition),
                self::expr(then),
                self::expr(otherwise)
            )
        }
        ExprKind::Call(function, args) => format!("{}({})", function.text, list(args)),
        ExprKind::Method(object, method, args) => {
            format!("{}.{}({})", within(object, POSTFIX), method.text, list(args))
        }
        ExprKind::Spawn(function, args) => format!("spawn {}({})", function.text, list(args)),
        ExprKind::New(record, fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(field, value)| format!("{}: {}", field.text, self::expr(value)))
                .collect();
            format!("new {} {{ {} }}", record.text, fields.join(", "))
        }
        ExprKind::Choose(over) => format!("choose({})", range(over)),
        ExprKind::Quantifier(word, variable, over, body) => {
            format!("{}({}: {})", word.text, bound(variable, over), self::expr(body))
        }
        ExprKind::Error => "/* error */".to_owned(),
    }
}

/// An expression next to others: an `if` is parenthesised, for readability and so that it never
/// starts a statement.
pub(super) fn operand(expr: &Expr) -> String {
    within(expr, WEAKEST)
}

/// A value of a pattern: it binds more tightly than the `|` between patterns.
pub(super) fn pattern_value(expr: &Expr) -> String {
    within(expr, BinaryOp::BitXor.strength())
}

/// An expression where a type is also allowed: it must not start like one.
pub(super) fn leading(expr: &Expr) -> String {
    if begins_like_a_value(expr) { operand(expr) } else { format!("({})", self::expr(expr)) }
}

fn begins_like_a_value(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Int(_) | ExprKind::Bool(_) | ExprKind::Name(_) | ExprKind::Call(..) => true,
        ExprKind::Unary(op, _) => *op == UnaryOp::Neg,
        ExprKind::Binary(_, first, _) | ExprKind::Index(first, _) | ExprKind::Field(first, _) => {
            begins_like_a_value(first)
        }
        _ => false,
    }
}

/// `0..N`
pub(super) fn range(range: &RangeExpr) -> String {
    format!("{}{}{}", operand(&range.lo), dots(range), operand(&range.hi))
}

pub(super) fn dots(range: &RangeExpr) -> &'static str {
    if range.inclusive { "..=" } else { ".." }
}

/// Parenthesised unless its precedence is at least `min`.
fn within(expr: &Expr, min: Strength) -> String {
    let strength = match &expr.kind {
        ExprKind::If(..) => 0,
        ExprKind::Binary(op, ..) => op.strength(),
        ExprKind::Unary(..) | ExprKind::AddressOf(_) | ExprKind::Deref(_) => PREFIX,
        _ => POSTFIX,
    };
    let text = self::expr(expr);
    if strength < min { format!("({text})") } else { text }
}

/// A prefix operator. `--` and `&&` would be other tokens.
fn prefix(sign: &str, operand: &Expr) -> String {
    let text = within(operand, PREFIX);
    if text.starts_with(sign) && sign != "*" {
        format!("{sign}({text})")
    } else {
        format!("{sign}{text}")
    }
}

fn list(elements: &[Expr]) -> String {
    let elements: Vec<String> = elements.iter().map(expr).collect();
    elements.join(", ")
}
