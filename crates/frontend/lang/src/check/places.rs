//! Checks places: variables, their parts, and targets of pointers.

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::program::{Base, Expr, ExprKind, Place, Projection, RecordId, Type};
use preempt_machine::source::Span;
use preempt_system::text::nearest;

use super::Checker;
use super::expected::mix;
use super::names::Symbol;
use super::scopes::{Purity, Role};
use super::types::aggregate;
use crate::syntax::ast;

impl<'a> Checker<'a> {
    /// The place that an expression denotes.
    pub(super) fn place(&mut self, expr: &'a ast::Expr) -> Option<Place> {
        let span = expr.span;
        match &expr.kind {
            ast::ExprKind::Name(name) => self.variable(name, span),
            ast::ExprKind::Index(array, index) => {
                let array = self.place(array);
                let index = self.int(index, "an index");
                self.element(array?, index?, span)
            }
            ast::ExprKind::Field(record, field) => {
                let record = self.pointee_or_self(record)?;
                self.field(record, field, span)
            }
            ast::ExprKind::Deref(pointer) => {
                let pointer = self.value(pointer, None)?;
                if matches!(pointer.ty, Type::Pointer(_)) {
                    return Some(deref(pointer, span));
                }
                let ty = self.name_of(&pointer.ty);
                self.refuse(
                    Diagnostic::new(pointer.span, format!("`*` needs a pointer, not `{ty}`"))
                        .label(format!("this is of type `{ty}`"))
                        .hint("a pointer to a shared variable `x` is `&x`"),
                )
            }
            ast::ExprKind::Error => None,
            _ => self.refuse(
                Diagnostic::new(
                    span,
                    format!("`{}` is a value, not a variable", self.excerpt(span)),
                )
                .label("a variable, an element, a field or `*p` is needed here"),
            ),
        }
    }

    fn variable(&mut self, name: &'a str, span: Span) -> Option<Place> {
        if let Some(local) = self.frame.find(name) {
            self.not_in_constants(name, span)?;
            let ty = self.frame.ty(local)?;
            return Some(Place { base: Base::Local(local), path: Vec::new(), ty, span });
        }
        match self.symbols.find(name) {
            Some(Symbol::Global(global)) => {
                self.not_in_constants(name, span)?;
                let ty = self.shared[global].ty.clone()?;
                Some(Place { base: Base::Global(global), path: Vec::new(), ty, span })
            }
            Some(symbol) => {
                let hint = match symbol {
                    Symbol::Function(_) => format!("to call it, write `{name}(…)`"),
                    Symbol::Enum(id) if !self.enums[id].variants.is_empty() => {
                        format!(
                            "write its variants without its name: `{}`",
                            self.enums[id].variants[0]
                        )
                    }
                    Symbol::Record(_) => {
                        format!("allocate one on the heap with `new {name} {{ … }}`")
                    }
                    Symbol::Const(_) | Symbol::Variant(..) => {
                        format!("declare a variable: `var x = {name};`")
                    }
                    _ => String::new(),
                };
                self.wrong_symbol(name, span, "a variable", &hint);
                None
            }
            None => {
                self.unknown(name, span, "name", |checker| {
                    checker.symbols.names(Symbol::is_value).chain(checker.frame.names()).collect()
                });
                None
            }
        }
    }

    fn not_in_constants(&mut self, name: &str, span: Span) -> Option<()> {
        if self.frame.purity != Purity::Constant {
            return Some(());
        }
        let hint = match self.frame.find(name) {
            Some(_) => "constants are declared outside of functions: `const N = 3;`".to_owned(),
            None => format!("if it never changes, declare it as a constant: `const {name} = …;`"),
        };
        let message = format!("`{name}` is a variable, not a constant");
        self.refuse(Diagnostic::new(span, message).label("a constant is needed here").hint(hint))
    }

    fn element(&mut self, array: Place, index: Expr, span: Span) -> Option<Place> {
        let Type::Array(element, length) = array.ty else {
            let name = self.name_of(&array.ty);
            let text = self.excerpt(array.span);
            let mut diagnostic = Diagnostic::new(array.span, format!("`{text}` is not an array"))
                .label(format!("this is of type `{name}`"));
            if matches!(&array.ty, Type::Pointer(pointee) if matches!(**pointee, Type::Array(..))) {
                diagnostic = diagnostic
                    .hint(format!("write `(*{text})[…]` for the array that it points to"));
            }
            return self.refuse(diagnostic);
        };
        let mut path = array.path;
        path.push(Projection::Index(index, length));
        Some(Place { base: array.base, path, ty: *element, span })
    }

    fn field(&mut self, record: Place, field: &'a ast::Name, span: Span) -> Option<Place> {
        let Type::Record(id) = record.ty else {
            let name = self.name_of(&record.ty);
            // If only the pointer is written, the type is that of its target.
            let is = match &record.base {
                Base::Deref(pointer) if pointer.span == record.span => "this points to a value",
                _ => "this is",
            };
            return self.refuse(
                Diagnostic::new(
                    field.span,
                    format!("`{}` has no fields", self.excerpt(record.span)),
                )
                .label("no such field")
                .related(record.span, format!("{is} of type `{name}`")),
            );
        };
        let (index, ty) = self.field_of(id, field)?;
        let mut path = record.path;
        path.push(Projection::Field(id, index));
        Some(Place { base: record.base, path, ty: ty?, span })
    }

    /// The index and the type of a field, if they are known.
    pub(super) fn field_of(
        &mut self,
        id: RecordId,
        field: &ast::Name,
    ) -> Option<(usize, Option<Type>)> {
        let fields = &self.records[id].fields;
        if let Some(index) = fields.iter().position(|known| known.name == field.text) {
            return Some((index, fields[index].ty.clone()));
        }
        let names = || fields.iter().map(|known| known.name.as_str());
        let hint = match nearest(&field.text, names()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                format!(
                    "its fields are {}",
                    names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
                )
            }
        };
        let record = &self.records[id].name;
        let message = format!("record `{record}` has no field `{}`", field.text);
        self.refuse(Diagnostic::new(field.span, message).label("no such field").hint(hint))
    }

    /// The object before a dot, or its target if it is a pointer.
    pub(super) fn pointee_or_self(&mut self, expr: &'a ast::Expr) -> Option<Place> {
        use ast::ExprKind::{Deref, Field, Index, Name};
        let span = expr.span;
        let is_place = match &expr.kind {
            Name(name) => self.constant_name(name).is_none(),
            kind => matches!(kind, Index(..) | Field(..) | Deref(_)),
        };
        let pointer = if is_place {
            let place = self.place(expr)?;
            if !matches!(place.ty, Type::Pointer(_)) {
                return Some(place);
            }
            let ty = place.ty.clone();
            Expr { kind: ExprKind::Load(place), ty, span }
        } else {
            self.value(expr, None)?
        };
        if matches!(pointer.ty, Type::Pointer(_)) {
            return Some(deref(pointer, span));
        }
        let ty = self.name_of(&pointer.ty);
        self.refuse(
            Diagnostic::new(span, format!("a value of type `{ty}` has no parts"))
                .label(format!("this is of type `{ty}`")),
        )
    }

    /// The value of a place.
    pub(super) fn load(&mut self, expr: &'a ast::Expr) -> Option<Expr> {
        let place = self.place(expr)?;
        self.one_number(&place, "used")?;
        let ty = place.ty.clone();
        Some(Expr { kind: ExprKind::Load(place), ty, span: expr.span })
    }

    /// A place to which a value can be assigned.
    pub(super) fn target(&mut self, expr: &'a ast::Expr) -> Option<Place> {
        if let ast::ExprKind::Name(name) = &expr.kind
            && self.constant_name(name).is_some()
        {
            let (symbol, declared) = self.symbols.declaration(name)?;
            return self.refuse(
                Diagnostic::new(
                    expr.span,
                    format!("`{name}` is {} and cannot be assigned", symbol.noun()),
                )
                .label("never changes")
                .related(declared, "declared here")
                .hint(match symbol {
                    Symbol::Const(_) => {
                        format!("to change it, declare it as a variable: `var {name} = …;`")
                    }
                    _ => "assign to a variable of its type instead".to_owned(),
                }),
            );
        }
        let place = self.place(expr)?;
        self.one_number(&place, "assigned")?;
        if let Base::Local(local) = place.base {
            let name = self.frame.name(local);
            let (what, hint) = match self.frame.role(local) {
                Role::Variable => return Some(place),
                Role::ThreadParam => {
                    ("a parameter of a thread", format!("copy it first: `var my_{name} = {name};`"))
                }
                Role::Loop => (
                    "the variable of a `for`",
                    format!(
                        "use a `while` with a variable of your own, or copy it: `var my_{name} = \
                         {name};`"
                    ),
                ),
                Role::Quantified => {
                    ("the variable of a quantifier", "it takes all values of its range".to_owned())
                }
            };
            let message = format!("`{name}` is {what} and cannot be assigned");
            return self.refuse(
                Diagnostic::new(expr.span, message).label("cannot be assigned").hint(hint),
            );
        }
        Some(place)
    }

    /// A place that has an address.
    pub(super) fn addressable(&mut self, expr: &'a ast::Expr) -> Option<Place> {
        let place = self.place(expr)?;
        let Base::Local(local) = place.base else { return Some(place) };
        let name = self.frame.name(local);
        let diagnostic =
            Diagnostic::new(expr.span, format!("local variable `{name}` has no address"))
                .label("only shared variables have one")
                .hint(
                    "declare it outside of the function, or put the value on the heap with `new`",
                );
        self.refuse(diagnostic)
    }

    /// Refuses an aggregate or an object where a number is required.
    fn one_number(&mut self, place: &Place, verb: &str) -> Option<()> {
        if place.ty.is_scalar() {
            return Some(());
        }
        let (text, name) = (self.excerpt(place.span), self.name_of(&place.ty));
        let hint = match &place.ty {
            Type::Array(..) => format!("use one element: `{text}[i]`"),
            Type::Record(id) => match self.records[*id].fields.first() {
                Some(field) => format!(
                    "use one field, such as `{text}.{}`, or a pointer: `&{text}`",
                    field.name
                ),
                None => format!("use a pointer: `&{text}`"),
            },
            Type::Object(object) => {
                format!(
                    "call one of its methods ({}), or use a pointer: `&{text}`",
                    super::methods::list(object)
                )
            }
            _ => unreachable!("a scalar is one number"),
        };
        self.refuse(
            Diagnostic::new(
                place.span,
                format!("{} cannot be {verb} as a whole", aggregate(&place.ty)),
            )
            .label(format!("this is of type `{name}`"))
            .hint(hint),
        )
    }

    /// A mutex, or the target of a pointer to one.
    pub(super) fn object_argument(
        &mut self,
        expr: &'a ast::Expr,
        needed: &Type,
        role: &str,
    ) -> Option<Place> {
        let place = match &expr.kind {
            // `&m` for `m`, as in C.
            ast::ExprKind::AddressOf(object) => self.place(object)?,
            _ => self.pointee_or_self(expr)?,
        };
        if mix(&place.ty, needed) {
            return Some(place);
        }
        let (found, needed) = (self.name_of(&place.ty), self.name_of(needed));
        self.refuse(
            Diagnostic::new(
                expr.span,
                format!("{role} needs a `{needed}`, not a value of type `{found}`"),
            )
            .label(format!("this is of type `{found}`")),
        )
    }
}

/// The target of `pointer`.
fn deref(pointer: Expr, span: Span) -> Place {
    let Type::Pointer(pointee) = &pointer.ty else {
        unreachable!("only pointers are dereferenced")
    };
    let ty = (**pointee).clone();
    Place { base: Base::Deref(Box::new(pointer)), path: Vec::new(), ty, span }
}
