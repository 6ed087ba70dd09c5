//! Checks functions, threads and invariants.

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::program::{Function, FunctionId, Invariant, Local, Thread, Type};
use preempt_machine::source::Span;
use preempt_system::MAX_THREADS;

use super::Checker;
use super::flow::falls_through;
use super::names::{FunctionItem, InvariantItem};
use super::records::{MAX_LOCAL_CELLS, size};
use super::scopes::{Frame, Outcome, Role};
use crate::syntax::ast;

/// The signature of a function.
pub(super) struct Signature {
    name: String,
    /// The names of the parameters, and their types if these are known.
    pub(super) params: Vec<(String, Option<Type>)>,
    pub(super) outcome: Outcome,
    span: Span,
}

impl<'a> Checker<'a> {
    /// Collects the signatures of all functions, threads and `init`.
    pub(super) fn resolve_signatures(&mut self, items: &[FunctionItem<'a>]) {
        for item in items {
            let signature = match item {
                FunctionItem::Fn { name, params, result, .. } => {
                    let params = params
                        .iter()
                        .map(|(param, ty)| (param.text.clone(), self.parameter(ty)))
                        .collect();
                    let outcome = match result {
                        None => Outcome::Nothing,
                        Some(written) => Outcome::Value(self.resolve(written).filter(|ty| {
                            self.scalar(ty, written.span, "a function returns").is_some()
                        })),
                    };
                    Signature { name: name.text.clone(), params, outcome, span: name.span }
                }
                FunctionItem::Thread { name, params, .. } => {
                    let why = "no such thread would start";
                    let params = params.iter().map(|(param, range)| {
                        let range = self
                            .nonempty_range(range, why)
                            .map(|(lo, end)| Type::Range { lo, hi: end - 1 });
                        (param.text.clone(), range)
                    });
                    let params = params.collect();
                    Signature {
                        name: name.text.clone(),
                        params,
                        outcome: Outcome::Nothing,
                        span: name.span,
                    }
                }
                FunctionItem::Init { span, .. } => Signature {
                    name: "init".into(),
                    params: Vec::new(),
                    outcome: Outcome::Nothing,
                    span: *span,
                },
            };
            self.signatures.push(signature);
        }
    }

    fn parameter(&mut self, written: &'a ast::TypeExpr) -> Option<Type> {
        let ty = self.resolve(written)?;
        self.scalar(&ty, written.span, "a parameter is")?;
        Some(ty)
    }

    /// A function's signature as the user would write it.
    pub(super) fn signature_text(&self, function: FunctionId) -> String {
        let Signature { name, params, outcome, .. } = &self.signatures[function];
        let ty = |ty: &Option<Type>| ty.as_ref().map_or_else(|| "…".into(), |ty| self.name_of(ty));
        let params: Vec<String> =
            params.iter().map(|(name, param)| format!("{name}: {}", ty(param))).collect();
        let result = match outcome {
            Outcome::Nothing => String::new(),
            Outcome::Value(result) => format!(" -> {}", ty(result)),
        };
        format!("fn {name}({}){result}", params.join(", "))
    }

    /// The threads that start with the program. Their number is computed, not counted: a range may
    /// have millions of values.
    pub(super) fn threads(&mut self, items: &[FunctionItem<'a>]) -> Vec<Option<Thread>> {
        let mut threads = Vec::new();
        let mut total = 0u128;
        for (function, item) in items.iter().enumerate() {
            let FunctionItem::Thread { name, .. } = item else { continue };
            let params: Option<Vec<(i64, i64)>> = self.signatures[function]
                .params
                .iter()
                .map(|(_, ty)| match ty {
                    Some(Type::Range { lo, hi }) => Some((*lo, hi + 1)),
                    _ => None,
                })
                .collect();
            let Some(params) = params else {
                threads.push(None);
                continue;
            };
            let count = params
                .iter()
                .fold(1u128, |product, (lo, end)| product.saturating_mul((end - lo) as u128));
            let (before, limit) = (total, MAX_THREADS as u128);
            total = total.saturating_add(count);
            if before <= limit && total > limit {
                let others =
                    if before > 0 { format!(", and {before} before") } else { String::new() };
                self.report(
                    Diagnostic::new(
                        name.span,
                        format!("too many threads: at most {limit} can run"),
                    )
                    .label(format!("{} of these{others}", size(count)))
                    .hint("choose a smaller range; most errors show with two or three threads"),
                );
            }
            threads.push(Some(Thread { function, params }));
        }
        threads
    }

    /// Translates the body of a function, a thread or `init`.
    pub(super) fn function(
        &mut self,
        item: &FunctionItem<'a>,
        function: FunctionId,
    ) -> Option<Function> {
        self.frame = Frame::default();
        self.frame.outcome = self.signatures[function].outcome.clone();
        let (names, role, body): (Vec<&'a ast::Name>, _, &'a ast::Block) = match item {
            FunctionItem::Fn { params, body, .. } => {
                (params.iter().map(|(name, _)| name).collect(), Role::Variable, body)
            }
            FunctionItem::Thread { params, body, .. } => {
                (params.iter().map(|(name, _)| name).collect(), Role::ThreadParam, body)
            }
            FunctionItem::Init { body, .. } => (Vec::new(), Role::Variable, body),
        };
        for (index, name) in names.iter().enumerate() {
            let ty = self.signatures[function].params[index].1.clone();
            self.local(name, ty, role);
        }
        let block = self.block(body);
        let Signature { name, outcome, span, .. } = &self.signatures[function];
        let (name, span) = (name.clone(), *span);
        if *outcome != Outcome::Nothing && falls_through(body) {
            self.missing_return(&name, span, body);
        }
        let result = match self.frame.outcome.clone() {
            Outcome::Nothing => None,
            Outcome::Value(ty) => Some(ty?),
        };
        let locals = self.finish_locals(&name, span)?;
        Some(Function { name, params: names.len(), locals, result, body: block, span })
    }

    fn missing_return(&mut self, name: &str, span: Span, body: &ast::Block) {
        let brace = Span { start: body.span.end.saturating_sub(1), end: body.span.end };
        self.report(
            Diagnostic::new(brace, format!("`{name}` may end without a result"))
                .label("a path ends here without `return`")
                .related(span, "has a result")
                .hint("every path through a function with a result must end with `return e;`"),
        );
    }

    /// Declares a local variable.
    pub(super) fn local(&mut self, name: &'a ast::Name, ty: Option<Type>, role: Role) -> usize {
        let (local, first) = self.frame.declare(&name.text, name.span, ty, role);
        if let Some(first) = first {
            self.duplicate(name, first);
        }
        local
    }

    /// The variables of the function that was translated.
    fn finish_locals(&mut self, name: &str, span: Span) -> Option<Vec<Local>> {
        let locals = std::mem::take(&mut self.frame).finish()?;
        let cells =
            locals.iter().fold(0u128, |sum, local| sum.saturating_add(self.cells(&local.ty)));
        if cells <= MAX_LOCAL_CELLS {
            return Some(locals);
        }
        self.refuse(
            Diagnostic::new(span, format!("the local variables of `{name}` are too large"))
                .label(format!(
                    "they have {} cells; at most {} are possible",
                    size(cells),
                    size(MAX_LOCAL_CELLS)
                ))
                .hint("use shorter arrays: a model checker stores every state it sees"),
        )
    }

    /// Checks that no two invariants have the same name.
    pub(super) fn invariant_names(&mut self, items: &[InvariantItem<'a>]) {
        let mut seen = std::collections::HashMap::new();
        for name in items.iter().filter_map(|item| item.name) {
            if let Some(first) = seen.insert(&name.text, name.span) {
                self.duplicate(name, first);
            }
        }
    }

    /// Translates an invariant.
    pub(super) fn invariant(&mut self, item: &InvariantItem<'a>) -> Option<Invariant> {
        self.frame = Frame::default();
        let span = item.condition.span;
        let condition = self.pure_condition(item.condition, "an invariant");
        let name =
            item.name.map_or_else(|| self.source.slice(span).to_owned(), |name| name.text.clone());
        let locals = self.finish_locals(&name, span)?;
        Some(Invariant { name, condition: condition?, span, locals })
    }
}
