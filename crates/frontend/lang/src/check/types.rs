//! Checks types, and writes them for messages.

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::program::{ObjectType, Type};
use preempt_machine::source::Span;
use preempt_system::MAX_THREADS;

use super::Checker;
use super::names::Symbol;
use crate::syntax::ast::{Expr, ExprKind, ObjectArg, RangeExpr, TypeExpr, TypeKind};

/// The types with which a name can be confused.
const SIMPLE: [&str; 3] = ["int", "bool", "thread"];

impl<'a> Checker<'a> {
    /// The type that is written.
    pub(super) fn resolve(&mut self, written: &'a TypeExpr) -> Option<Type> {
        match &written.kind {
            TypeKind::Named(name) => self.named_type(name, written.span),
            TypeKind::Range(range) => self.range_type(range),
            TypeKind::Array(element, length) => {
                let element = self.resolve(element);
                let length = self.length(length);
                Some(Type::Array(Box::new(element?), length?))
            }
            TypeKind::Pointer(pointee) => Some(Type::Pointer(Box::new(self.resolve(pointee)?))),
            TypeKind::Object(word, args) => {
                self.object_type(word, args, written.span).map(Type::Object)
            }
        }
    }

    fn named_type(&mut self, name: &'a str, span: Span) -> Option<Type> {
        match (name, self.symbols.find(name)) {
            ("int", _) => Some(Type::Int),
            ("bool", _) => Some(Type::Bool),
            ("thread", _) => Some(Type::Thread),
            (_, Some(Symbol::Enum(id))) => Some(Type::Enum(id)),
            (_, Some(Symbol::Record(id))) => Some(Type::Record(id)),
            (_, Some(Symbol::Const(_))) => {
                self.wrong_symbol(
                    name,
                    span,
                    "a type",
                    &format!("for the numbers below it write `0..{name}`"),
                );
                None
            }
            (_, Some(Symbol::Variant(id, _))) => {
                let hint = format!("its type is `{}`", self.enums[id].name);
                self.wrong_symbol(name, span, "a type", &hint);
                None
            }
            (_, Some(_)) => {
                self.wrong_symbol(name, span, "a type", "");
                None
            }
            (_, None) => {
                self.unknown(name, span, "type", |checker| {
                    let is_type = |symbol| matches!(symbol, Symbol::Enum(_) | Symbol::Record(_));
                    checker.symbols.names(is_type).chain(SIMPLE).collect()
                });
                None
            }
        }
    }

    fn range_type(&mut self, range: &'a RangeExpr) -> Option<Type> {
        let (lo, end) = self.nonempty_range(range, "a type needs at least one value")?;
        Some(Type::Range { lo, hi: end - 1 })
    }

    /// A constant range that must not be empty, and the reason.
    pub(super) fn nonempty_range(&mut self, range: &'a RangeExpr, why: &str) -> Option<(i64, i64)> {
        let (lo, end) = self.constant_range(range)?;
        if lo < end {
            return Some((lo, end));
        }
        let hint = if lo == end && !range.inclusive {
            "the upper end of `..` is excluded; with `..=` it is included"
        } else {
            "the lower end comes first"
        };
        let bounds = if range.inclusive {
            format!("{lo} to {}", end - 1)
        } else {
            format!("{lo} to below {end}")
        };
        self.refuse(
            Diagnostic::new(range.span, "this range is empty")
                .label(format!("{bounds}: {why}"))
                .hint(hint),
        )
    }

    /// The length of an array: at least 1.
    pub(super) fn length(&mut self, length: &'a Expr) -> Option<usize> {
        let value = self.constant_int(length, "the length of an array")?;
        match usize::try_from(value) {
            Ok(length) if length > 0 => Some(length),
            _ => self.refuse(
                Diagnostic::new(length.span, format!("an array of length {value}"))
                    .label(format!("this is {value}"))
                    .hint("an array has at least one element"),
            ),
        }
    }

    fn object_type(&mut self, word: &str, args: &'a [ObjectArg], span: Span) -> Option<ObjectType> {
        match (word, args) {
            ("mutex", []) => Some(ObjectType::Mutex),
            ("rwlock", []) => Some(ObjectType::RwLock),
            ("condvar", []) => Some(ObjectType::Condvar),
            ("semaphore", [ObjectArg::Expr(initial)]) => {
                let initial =
                    self.object_number(initial, "the count of a semaphore", 0, i32::MAX as u32)?;
                Some(ObjectType::Semaphore { initial })
            }
            ("barrier", [ObjectArg::Expr(parties)]) => {
                let parties = self.object_number(
                    parties,
                    "the number of threads of a barrier",
                    1,
                    MAX_THREADS as u32,
                )?;
                Some(ObjectType::Barrier { parties })
            }
            ("channel", [ObjectArg::Expr(capacity), element]) => {
                let capacity =
                    self.object_number(capacity, "the capacity of a channel", 0, i32::MAX as u32);
                let element = self.channel_element(element);
                Some(ObjectType::Channel { capacity: capacity?, element: Box::new(element?) })
            }
            ("event", words) => self.event_type(words),
            _ => {
                let hint = match word {
                    "semaphore" => "give its initial count: `semaphore(3)`",
                    "barrier" => "give the number of threads it waits for: `barrier(3)`",
                    "channel" => "give its capacity and the type of its values: `channel(4, int)`",
                    _ => "it has no arguments",
                };
                self.refuse(
                    Diagnostic::new(span, format!("a {word} is not written like this"))
                        .label("wrong arguments")
                        .hint(hint),
                )
            }
        }
    }

    fn object_number(&mut self, expr: &'a Expr, role: &str, lo: u32, hi: u32) -> Option<u32> {
        let value = self.constant_int(expr, role)?;
        match u32::try_from(value) {
            Ok(number) if (lo..=hi).contains(&number) => Some(number),
            _ => self.refuse(
                Diagnostic::new(expr.span, format!("{role} cannot be {value}"))
                    .label(format!("this is {value}"))
                    .hint(format!("it is at least {lo} and at most {hi}")),
            ),
        }
    }

    fn channel_element(&mut self, arg: &'a ObjectArg) -> Option<Type> {
        let (element, span) = match arg {
            ObjectArg::Type(ty) => (self.resolve(ty)?, ty.span),
            ObjectArg::Expr(Expr { kind: ExprKind::Name(name), span }) => {
                (self.named_type(name, *span)?, *span)
            }
            ObjectArg::Expr(other) => {
                return self.refuse(
                    Diagnostic::new(
                        other.span,
                        "the second argument of a channel is the type of its values",
                    )
                    .label("not a type")
                    .hint("write, for example, `channel(4, int)`"),
                );
            }
        };
        self.scalar(&element, span, "a channel carries")?;
        Some(element)
    }

    fn event_type(&mut self, words: &'a [ObjectArg]) -> Option<ObjectType> {
        let (mut auto, mut set) = (false, false);
        for word in words {
            match word {
                ObjectArg::Expr(Expr { kind: ExprKind::Name(name), .. })
                    if name == "auto" && !auto =>
                {
                    auto = true
                }
                ObjectArg::Expr(Expr { kind: ExprKind::Name(name), .. })
                    if name == "set" && !set =>
                {
                    set = true
                }
                ObjectArg::Expr(Expr { span, .. }) | ObjectArg::Type(TypeExpr { span, .. }) => {
                    return self.refuse(
                        Diagnostic::new(*span, "an event is not written like this")
                            .label("neither `auto` nor `set`, or twice")
                            .hint(
                                "write `event`, `event(auto)`, `event(set)` or `event(auto, set)`",
                            ),
                    );
                }
            }
        }
        Some(ObjectType::Event { auto, set })
    }

    /// Refuses a type that is not scalar. `what` says what requires a scalar: "a parameter is".
    pub(super) fn scalar(&mut self, ty: &Type, span: Span, what: &str) -> Option<()> {
        if ty.is_scalar() {
            return Some(());
        }
        let name = self.name_of(ty);
        self.refuse(
            Diagnostic::new(
                span,
                format!("{what} a number, a bool, a variant, a pointer or a thread"),
            )
            .label(format!("`{name}` is {}", aggregate(ty)))
            .hint(format!("use a pointer: `*{name}`")),
        )
    }

    /// A type as the user would write it.
    pub(super) fn name_of(&self, ty: &Type) -> String {
        match ty {
            Type::Int => "int".into(),
            Type::Bool => "bool".into(),
            Type::Range { lo, hi } => format!("{lo}..{}", hi + 1),
            Type::Enum(id) => self.enums[*id].name.clone(),
            Type::Pointer(pointee) => format!("*{}", self.name_of(pointee)),
            Type::Thread => "thread".into(),
            Type::Record(id) => self.records[*id].name.clone(),
            Type::Array(element, length) => format!("[{}; {length}]", self.name_of(element)),
            Type::Object(object) => match object {
                ObjectType::Semaphore { initial } => format!("semaphore({initial})"),
                ObjectType::Event { auto: true, set: false } => "event(auto)".into(),
                ObjectType::Event { auto: false, set: true } => "event(set)".into(),
                ObjectType::Event { auto: true, set: true } => "event(auto, set)".into(),
                ObjectType::Barrier { parties } => format!("barrier({parties})"),
                ObjectType::Channel { capacity, element } => {
                    format!("channel({capacity}, {})", self.name_of(element))
                }
                plain => noun(plain).into(),
            },
        }
    }
}

/// The keyword of a kind of objects.
pub(super) fn noun(object: &ObjectType) -> &'static str {
    match object {
        ObjectType::Mutex => "mutex",
        ObjectType::RwLock => "rwlock",
        ObjectType::Condvar => "condvar",
        ObjectType::Semaphore { .. } => "semaphore",
        ObjectType::Event { .. } => "event",
        ObjectType::Barrier { .. } => "barrier",
        ObjectType::Channel { .. } => "channel",
    }
}

/// The description of a type that is not scalar.
pub(super) fn aggregate(ty: &Type) -> &'static str {
    match ty {
        Type::Record(_) => "a record",
        Type::Array(..) => "an array",
        Type::Object(_) => "a synchronisation object",
        _ => "one value",
    }
}
