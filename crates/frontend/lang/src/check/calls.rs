//! Calls: functions, `spawn` and `new`.

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::program::{Expr, ExprKind, FunctionId, Type};
use preempt_machine::source::Span;

use super::Checker;
use super::names::{ACCESSES, BUILTINS, Symbol};
use super::scopes::Outcome;
use crate::syntax::ast;

impl<'a> Checker<'a> {
    /// `f(a, b)`, also `cas(x, 0, 1)` and the like, which [`orderings`](super::orderings) checks.
    pub(super) fn call(
        &mut self,
        name: &'a ast::Name,
        args: &'a [ast::Expr],
        span: Span,
    ) -> Option<Expr> {
        self.effect(span, &format!("`{}`", name.text))?;
        match self.atomic_call(name, args, span) {
            Some(access) => access,
            None => self.function_call(name, args, span),
        }
    }

    fn function_call(
        &mut self,
        name: &'a ast::Name,
        args: &'a [ast::Expr],
        span: Span,
    ) -> Option<Expr> {
        let (function, args) = self.function_and_args(name, args, "call")?;
        let ty = match &self.signatures[function].outcome {
            Outcome::Nothing => Type::Int,
            Outcome::Value(ty) => ty.clone()?,
        };
        Some(Expr { kind: ExprKind::Call(function, args), ty, span })
    }

    /// `spawn f(a)`
    pub(super) fn spawn(
        &mut self,
        name: &'a ast::Name,
        args: &'a [ast::Expr],
        span: Span,
    ) -> Option<Expr> {
        self.effect(span, "`spawn`")?;
        let (function, args) = self.function_and_args(name, args, "spawn")?;
        Some(Expr { kind: ExprKind::Spawn(function, args), ty: Type::Thread, span })
    }

    /// The function of a call, and its arguments.
    fn function_and_args(
        &mut self,
        name: &'a ast::Name,
        args: &'a [ast::Expr],
        verb: &str,
    ) -> Option<(FunctionId, Vec<Expr>)> {
        let function = match self.symbols.find(&name.text) {
            Some(Symbol::Function(function)) => function,
            None if is_builtin(&name.text) => {
                return self.refuse(
                    Diagnostic::new(
                        name.span,
                        format!("`{}` is built in and cannot be spawned", name.text),
                    )
                    .label("a function is needed here")
                    .hint("put it into a function of your own"),
                );
            }
            None => {
                self.unknown(&name.text, name.span, "function", |checker| {
                    let declared =
                        checker.symbols.names(|symbol| matches!(symbol, Symbol::Function(_)));
                    declared.chain(BUILTINS).chain(ACCESSES).collect()
                });
                return args.iter().find_map(|arg| self.look_into(arg));
            }
            Some(symbol) => {
                let hint = match symbol {
                    Symbol::Thread(_) => format!(
                        "a thread starts by itself; to {verb} its body, declare it with `fn`"
                    ),
                    _ => String::new(),
                };
                self.wrong_symbol(&name.text, name.span, "a function", &hint);
                return args.iter().find_map(|arg| self.look_into(arg));
            }
        };
        let params = self.signatures[function].params.clone();
        if params.len() != args.len() {
            let signature = self.signature_text(function);
            return self.argument_count(
                name.span,
                &name.text,
                params.len(),
                args.len(),
                &signature,
            );
        }
        let checked: Vec<Option<Expr>> = args
            .iter()
            .zip(&params)
            .map(|(arg, (param, ty))| match ty {
                Some(ty) => {
                    self.typed(arg, ty, &format!("the argument `{param}` of `{}`", name.text))
                }
                None => self.look_into(arg),
            })
            .collect();
        Some((function, checked.into_iter().collect::<Option<_>>()?))
    }

    /// Reports the wrong number of arguments.
    pub(super) fn argument_count<T>(
        &mut self,
        span: Span,
        name: &str,
        needed: usize,
        given: usize,
        signature: &str,
    ) -> Option<T> {
        let arguments = match needed {
            0 => "no arguments".to_owned(),
            1 => "1 argument".to_owned(),
            many => format!("{many} arguments"),
        };
        self.refuse(
            Diagnostic::new(span, format!("`{name}` takes {arguments}, not {given}"))
                .label(format!("{given} given"))
                .hint(format!("it is `{signature}`")),
        )
    }

    /// `new Node { value: 1 }`
    pub(super) fn new_record(
        &mut self,
        name: &'a ast::Name,
        fields: &'a [(ast::Name, ast::Expr)],
        span: Span,
    ) -> Option<Expr> {
        self.effect(span, "`new`")?;
        let id = match self.symbols.find(&name.text) {
            Some(Symbol::Record(id)) => id,
            Some(_) => {
                self.wrong_symbol(
                    &name.text,
                    name.span,
                    "a record",
                    "only records are made with `new`",
                );
                return None;
            }
            None => {
                self.unknown(&name.text, name.span, "record", |checker| {
                    checker.symbols.names(|symbol| matches!(symbol, Symbol::Record(_))).collect()
                });
                return None;
            }
        };
        let mut values: Vec<Option<Expr>> = vec![None; self.records[id].fields.len()];
        let mut places: Vec<Option<Span>> = vec![None; values.len()];
        let mut wrong = false;
        for (field, value) in fields {
            let Some((index, ty)) = self.field_of(id, field) else {
                wrong = true;
                continue;
            };
            if let Some(first) = places[index].replace(field.span) {
                self.report(
                    Diagnostic::new(field.span, format!("field `{}` is given twice", field.text))
                        .label("a second time")
                        .related(first, "first here"),
                );
            }
            values[index] = ty.and_then(|ty| self.new_field(field, value, &ty));
            wrong |= values[index].is_none();
        }
        let ty = Type::Pointer(Box::new(Type::Record(id)));
        (!wrong).then_some(Expr { kind: ExprKind::New(id, values), ty, span })
    }

    fn new_field(&mut self, field: &ast::Name, value: &'a ast::Expr, ty: &Type) -> Option<Expr> {
        if ty.is_scalar() {
            return self.typed(value, ty, &format!("the field `{}`", field.text));
        }
        let name = self.name_of(ty);
        self.refuse(
            Diagnostic::new(field.span, format!("field `{}` cannot be given here", field.text))
                .label(format!("is of type `{name}`"))
                .hint("leave it out: its initial value is zero; then assign to its parts"),
        )
    }
}

/// Whether a name has a meaning before a parenthesis.
fn is_builtin(name: &str) -> bool {
    BUILTINS.contains(&name) || ACCESSES.contains(&name)
}
