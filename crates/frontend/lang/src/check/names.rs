//! Declares the names of a file: one namespace for items and the variants of enums.

use std::collections::HashMap;

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::program::{Enum, EnumId, FunctionId, GlobalId, RecordId};
use preempt_machine::source::Span;
use preempt_system::text::nearest;

use super::Checker;
use crate::syntax::ast::{self, ItemKind, Name};

/// Names with a meaning before a parenthesis, which no function can have.
pub(super) const BUILTINS: [&str; 11] = [
    "all",
    "any",
    "cas",
    "choose",
    "count",
    "fetch_add",
    "fetch_and",
    "fetch_or",
    "fetch_sub",
    "fetch_xor",
    "swap",
];

/// Names with a meaning before a parenthesis, unless the model declares a function with the name.
pub(super) const ACCESSES: [&str; 4] = ["compare_exchange", "fence", "load", "store"];

/// Names with a meaning as types.
const TYPES: [&str; 10] = [
    "barrier",
    "bool",
    "channel",
    "condvar",
    "event",
    "int",
    "mutex",
    "rwlock",
    "semaphore",
    "thread",
];

/// After this many unknown names no more suggestions are made: each costs a comparison with every
/// name of the file.
const SUGGESTIONS: usize = 50;

/// The meaning of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    Const(usize),
    Enum(EnumId),
    Variant(EnumId, usize),
    Record(RecordId),
    Global(GlobalId),
    Function(FunctionId),
    Thread(FunctionId),
}

impl Symbol {
    /// Its description in messages.
    pub(super) fn noun(self) -> &'static str {
        match self {
            Symbol::Const(_) => "a constant",
            Symbol::Enum(_) => "an enum",
            Symbol::Variant(..) => "a variant",
            Symbol::Record(_) => "a record",
            Symbol::Global(_) => "a shared variable",
            Symbol::Function(_) => "a function",
            Symbol::Thread(_) => "a thread",
        }
    }

    /// Whether it can be used in an expression.
    pub(super) fn is_value(self) -> bool {
        matches!(self, Symbol::Const(_) | Symbol::Variant(..) | Symbol::Global(_))
    }
}

/// The symbols of the file, with the spans of their declarations.
#[derive(Default)]
pub(super) struct Symbols<'a>(HashMap<&'a str, (Symbol, Span)>);

impl<'a> Symbols<'a> {
    /// The meaning of a name that is not a local variable.
    pub(super) fn find(&self, name: &str) -> Option<Symbol> {
        self.0.get(name).map(|&(symbol, _)| symbol)
    }

    /// The meaning of a name, and the span of its declaration.
    pub(super) fn declaration(&self, name: &str) -> Option<(Symbol, Span)> {
        self.0.get(name).copied()
    }

    /// The names of the symbols that satisfy `pass`.
    pub(super) fn names(&self, pass: impl Fn(Symbol) -> bool) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(_, (symbol, _))| pass(*symbol)).map(|(name, _)| *name)
    }
}

/// The declarations of the file by kind, each in the order of its ids.
#[derive(Default)]
pub(super) struct Items<'a> {
    pub(super) steps: Vec<&'a Name>,
    pub(super) memory: Vec<&'a Name>,
    pub(super) constants: Vec<ConstItem<'a>>,
    pub(super) records: Vec<RecordItem<'a>>,
    pub(super) globals: Vec<GlobalItem<'a>>,
    pub(super) functions: Vec<FunctionItem<'a>>,
    pub(super) invariants: Vec<InvariantItem<'a>>,
}

/// `const N: int = 3;`
pub(super) struct ConstItem<'a> {
    pub(super) name: &'a Name,
    pub(super) ty: Option<&'a ast::TypeExpr>,
    pub(super) value: &'a ast::Expr,
}

/// `record R { … }`
pub(super) struct RecordItem<'a> {
    pub(super) name: &'a Name,
    pub(super) fields: &'a [(Name, ast::TypeExpr)],
}

/// A shared variable, or one declarator of an object declaration.
pub(super) struct GlobalItem<'a> {
    pub(super) name: &'a Name,
    pub(super) declaration: GlobalDeclaration<'a>,
}

/// The declaration of a shared variable.
pub(super) enum GlobalDeclaration<'a> {
    /// `atomic var x: int = 0;`
    Var { atomic: bool, ty: Option<&'a ast::TypeExpr>, init: Option<&'a ast::Expr> },
    /// `mutex a, forks[N];`; the type is checked with the first declarator.
    Object { ty: &'a ast::TypeExpr, dimensions: &'a [ast::Expr], first: bool },
}

/// A declaration with a body.
pub(super) enum FunctionItem<'a> {
    Fn {
        name: &'a Name,
        params: &'a [(Name, ast::TypeExpr)],
        result: Option<&'a ast::TypeExpr>,
        body: &'a ast::Block,
    },
    Thread {
        name: &'a Name,
        params: &'a [(Name, ast::RangeExpr)],
        body: &'a ast::Block,
    },
    Init {
        body: &'a ast::Block,
        span: Span,
    },
}

impl FunctionItem<'_> {
    pub(super) fn is_init(&self) -> bool {
        matches!(self, FunctionItem::Init { .. })
    }
}

/// `invariant name: e;`
pub(super) struct InvariantItem<'a> {
    pub(super) name: Option<&'a Name>,
    pub(super) condition: &'a ast::Expr,
}

impl<'a> Checker<'a> {
    /// Gives every item an id and every name its symbol. The second of two declarations of a name
    /// gets an id, so that it is checked too, but the name refers to the first.
    pub(super) fn declare(&mut self, file: &'a ast::File) -> Items<'a> {
        let mut items = Items::default();
        for item in &file.items {
            match &item.kind {
                ItemKind::Steps(granularity) => items.steps.push(granularity),
                ItemKind::Memory(model) => items.memory.push(model),
                ItemKind::Const { name, ty, value } => {
                    self.symbol(name, Symbol::Const(items.constants.len()));
                    items.constants.push(ConstItem { name, ty: ty.as_ref(), value });
                }
                ItemKind::Enum { name, variants } => self.declare_enum(name, variants),
                ItemKind::Record { name, fields } => {
                    self.type_symbol(name, Symbol::Record(items.records.len()));
                    items.records.push(RecordItem { name, fields });
                }
                ItemKind::Var { atomic, name, ty, init } => {
                    self.symbol(name, Symbol::Global(items.globals.len()));
                    let (ty, init) = (ty.as_ref(), init.as_ref());
                    let declaration = GlobalDeclaration::Var { atomic: *atomic, ty, init };
                    items.globals.push(GlobalItem { name, declaration });
                }
                ItemKind::Object { ty, declarators } => {
                    for (index, ast::Declarator { name, dimensions }) in
                        declarators.iter().enumerate()
                    {
                        self.symbol(name, Symbol::Global(items.globals.len()));
                        let declaration =
                            GlobalDeclaration::Object { ty, dimensions, first: index == 0 };
                        items.globals.push(GlobalItem { name, declaration });
                    }
                }
                ItemKind::Fn { name, params, result, body } => {
                    self.function_symbol(name, Symbol::Function(items.functions.len()));
                    items.functions.push(FunctionItem::Fn {
                        name,
                        params,
                        result: result.as_ref(),
                        body,
                    });
                }
                ItemKind::Thread { name, params, body } => {
                    self.symbol(name, Symbol::Thread(items.functions.len()));
                    items.functions.push(FunctionItem::Thread { name, params, body });
                }
                ItemKind::Init(body) => self.declare_init(&mut items.functions, body, item.span),
                ItemKind::Invariant { name, condition } => {
                    items.invariants.push(InvariantItem { name: name.as_ref(), condition });
                }
            }
        }
        items
    }

    fn declare_enum(&mut self, name: &'a Name, variants: &'a [Name]) {
        let id = self.enums.len();
        self.type_symbol(name, Symbol::Enum(id));
        for (index, variant) in variants.iter().enumerate() {
            self.symbol(variant, Symbol::Variant(id, index));
        }
        if variants.is_empty() {
            self.report(
                Diagnostic::new(name.span, format!("enum `{}` has no variants", name.text))
                    .label("a variable of this type could have no value")
                    .hint(format!("name at least one: `enum {} {{ First }}`", name.text)),
            );
        }
        let variants = variants.iter().map(|variant| variant.text.clone()).collect();
        self.enums.push(Enum { name: name.text.clone(), variants });
    }

    fn declare_init(
        &mut self,
        functions: &mut Vec<FunctionItem<'a>>,
        body: &'a ast::Block,
        item: Span,
    ) {
        // Only the keyword: carets under the whole block would fill a page.
        let span =
            Span { start: item.start, end: body.span.start.min(item.start + "init".len() as u32) };
        let first = functions.iter().find_map(|function| match function {
            FunctionItem::Init { span, .. } => Some(*span),
            _ => None,
        });
        if let Some(first) = first {
            self.report(
                Diagnostic::new(span, "there are two `init` blocks")
                    .label("a second time")
                    .related(first, "first here")
                    .hint("put the statements of both into one block"),
            );
        }
        functions.push(FunctionItem::Init { body, span });
    }

    fn symbol(&mut self, name: &'a Name, symbol: Symbol) {
        let Some(&(_, first)) = self.symbols.0.get(name.text.as_str()) else {
            self.symbols.0.insert(&name.text, (symbol, name.span));
            return;
        };
        self.duplicate(name, first);
    }

    fn type_symbol(&mut self, name: &'a Name, symbol: Symbol) {
        if TYPES.contains(&name.text.as_str()) {
            return self.report(
                Diagnostic::new(name.span, format!("`{}` is a type of the language", name.text))
                    .label("cannot be declared")
                    .hint("choose another name"),
            );
        }
        self.symbol(name, symbol);
    }

    fn function_symbol(&mut self, name: &'a Name, symbol: Symbol) {
        if BUILTINS.contains(&name.text.as_str()) {
            return self.report(
                Diagnostic::new(name.span, format!("`{}` is built in", name.text))
                    .label("cannot be declared as a function")
                    .hint(format!(
                        "`{}(…)` always means the built-in one: choose another name",
                        name.text
                    )),
            );
        }
        self.symbol(name, symbol);
    }

    /// Reports the second of two declarations of a name.
    pub(super) fn duplicate(&mut self, name: &Name, first: Span) {
        self.report(
            Diagnostic::new(name.span, format!("`{}` is declared twice", name.text))
                .label("a second time")
                .related(first, "first here")
                .hint("rename one of the two"),
        );
    }

    /// Reports an undeclared name, once for each name.
    pub(super) fn unknown(
        &mut self,
        name: &'a str,
        span: Span,
        noun: &str,
        candidates: impl FnOnce(&Self) -> Vec<&'a str>,
    ) {
        if !self.unknown.insert(name) {
            return;
        }
        let mut diagnostic =
            Diagnostic::new(span, format!("unknown {noun} `{name}`")).label("not declared");
        if self.unknown.len() <= SUGGESTIONS {
            // They come from hash tables; sorting makes the choice between equally near names
            // deterministic.
            let mut candidates = candidates(self);
            candidates.sort_unstable();
            if let Some(near) = nearest(name, candidates) {
                diagnostic = diagnostic.hint(format!("did you mean `{near}`?"));
            }
        }
        self.report(diagnostic);
    }

    /// Reports a name with another meaning than the one required here.
    pub(super) fn wrong_symbol(&mut self, name: &str, span: Span, needed: &str, hint: &str) {
        let Some((symbol, declared)) = self.symbols.declaration(name) else { return };
        let mut diagnostic =
            Diagnostic::new(span, format!("`{name}` is {}, not {needed}", symbol.noun()))
                .label(format!("{needed} is needed here"))
                .related(declared, "declared here");
        if !hint.is_empty() {
            diagnostic = diagnostic.hint(hint);
        }
        self.report(diagnostic);
    }
}
