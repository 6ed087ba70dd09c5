//! Measures which constructs, and which pairs of constructs, a program contains.
//!
//! A pair is a construct directly inside another, or a statement directly after another in one
//! block.

use std::collections::BTreeMap;

use preempt_lang::syntax::ast::{
    Block, Expr, ExprKind, File, Item, ItemKind, ObjectArg, Stmt, StmtKind, TypeExpr, TypeKind,
    UnaryOp,
};

/// How the two constructs of a pair are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Relation {
    /// The second is directly inside the first.
    Inside,
    /// The second is the next statement of the same block.
    After,
}

/// The number of occurrences of each construct and each pair.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// Occurrences by construct.
    pub constructs: BTreeMap<String, u64>,
    /// Occurrences by pair.
    pub pairs: BTreeMap<(String, Relation, String), u64>,
}

/// Every construct of docs/language.md that a program can contain.
pub const CONSTRUCTS: &[&str] = &[
    "steps statement",
    "steps access",
    "const",
    "const with type",
    "enum",
    "record",
    "var",
    "atomic var",
    "object",
    "object array",
    "fn",
    "fn with result",
    "thread",
    "thread with parameter",
    "thread with two parameters",
    "init",
    "invariant",
    "named invariant",
    "type int",
    "type bool",
    "type thread",
    "type range",
    "type array",
    "type pointer",
    "type named",
    "mutex",
    "rwlock",
    "condvar",
    "semaphore",
    "event",
    "barrier",
    "barrier of one",
    "barrier of three",
    "channel",
    "rendezvous",
    "local",
    "local without value",
    "shadowing local",
    "assignment",
    "compound +",
    "compound -",
    "compound *",
    "compound /",
    "compound %",
    "compound &",
    "compound |",
    "compound ^",
    "compound <<",
    "compound >>",
    "call statement",
    "method statement",
    "access statement",
    "spawn statement",
    "if",
    "else",
    "while",
    "while constant",
    "loop",
    "for",
    "for to the maximum",
    "match",
    "break",
    "continue",
    "return",
    "return value",
    "assert",
    "assert with message",
    "await",
    "assume",
    "choose blocks",
    "skip",
    "yield",
    "atomic",
    "join",
    "end",
    "block",
    "empty block",
    "condition with a thread parameter",
    "wait for a plain variable",
    "choice in an atomic block",
    "number",
    "bool",
    "null",
    "name",
    "array",
    "index",
    "field",
    "not",
    "minus",
    "address",
    "deref",
    "+",
    "-",
    "*",
    "/",
    "%",
    "==",
    "!=",
    "<",
    "<=",
    ">",
    ">=",
    "&&",
    "||",
    "&",
    "|",
    "^",
    "<<",
    ">>",
    "if value",
    "call",
    "cas",
    "swap",
    "fetch_add",
    "fetch_sub",
    "fetch_and",
    "fetch_or",
    "fetch_xor",
    "lock",
    "try_lock",
    "unlock",
    "read",
    "try_read",
    "unlock_read",
    "write",
    "try_write",
    "unlock_write",
    "wait",
    "notify_one",
    "notify_all",
    "acquire",
    "try_acquire",
    "release",
    "set",
    "reset",
    "send",
    "try_send",
    "recv",
    "len",
    "spawn",
    "new",
    "choose value",
    "all",
    "any",
    "count",
];

impl Coverage {
    /// Adds the constructs of a program.
    pub fn add(&mut self, file: &File) {
        let variables = || {
            file.items.iter().filter_map(|item| match &item.kind {
                ItemKind::Var { atomic, name, .. } => Some((*atomic, name.text.as_str())),
                _ => None,
            })
        };
        let globals = variables().map(|(_, name)| name).collect();
        let plain = variables().filter(|(atomic, _)| !atomic).map(|(_, name)| name).collect();
        let functions = file.items.iter().filter_map(|item| match &item.kind {
            ItemKind::Fn { name, .. } => Some(name.text.as_str()),
            _ => None,
        });
        let functions = functions.collect();
        let (parameters, atomic) = (Vec::new(), false);
        let mut walk = Walk { coverage: self, globals, plain, functions, parameters, atomic };
        file.items.iter().for_each(|item| walk.item(item));
    }

    /// Whether a program has weak memory or accesses with memory orderings, which the reference
    /// does not interpret.
    pub fn has_orderings(&self) -> bool {
        ["memory weak", ORDERING].iter().any(|name| self.constructs.contains_key(*name))
    }

    /// The constructs that did not occur.
    pub fn missing(&self) -> Vec<&'static str> {
        CONSTRUCTS.iter().copied().filter(|name| !self.constructs.contains_key(*name)).collect()
    }
}

/// The name of an access or a fence that may have a memory ordering.
const ORDERING: &str = "ordering";

struct Walk<'c, 'f> {
    coverage: &'c mut Coverage,
    globals: Vec<&'f str>,
    /// Those that are not atomic.
    plain: Vec<&'f str>,
    functions: Vec<&'f str>,
    /// The parameters of the thread around the current position.
    parameters: Vec<&'f str>,
    /// Whether the current position is inside an `atomic` block.
    atomic: bool,
}

impl<'f> Walk<'_, 'f> {
    fn note(&mut self, parent: &str, name: &str) {
        *self.coverage.constructs.entry(name.to_owned()).or_default() += 1;
        if !parent.is_empty() {
            let pair = (parent.to_owned(), Relation::Inside, name.to_owned());
            *self.coverage.pairs.entry(pair).or_default() += 1;
        }
    }

    /// Whether a call has an ordering, or is an access that only exists with orderings.
    fn has_ordering(&self, name: &str, arguments: usize) -> bool {
        match name {
            "load" | "store" | "fence" | "compare_exchange" => !self.functions.contains(&name),
            "cas" => arguments > 3,
            _ => is_access(name) && arguments > 2,
        }
    }

    fn item(&mut self, item: &'f Item) {
        match &item.kind {
            ItemKind::Steps(word) => self.note("", &format!("steps {}", word.text)),
            ItemKind::Memory(word) => self.note("", &format!("memory {}", word.text)),
            ItemKind::Const { ty, value, .. } => {
                self.note("", if ty.is_some() { "const with type" } else { "const" });
                self.expr("const", value);
            }
            ItemKind::Enum { .. } => self.note("", "enum"),
            ItemKind::Record { fields, .. } => {
                self.note("", "record");
                fields.iter().for_each(|(_, ty)| self.ty("record", ty));
            }
            ItemKind::Var { atomic, ty, init, .. } => {
                self.note("", if *atomic { "atomic var" } else { "var" });
                ty.iter().for_each(|ty| self.ty("var", ty));
                init.iter().for_each(|value| self.expr("var", value));
            }
            ItemKind::Object { ty, declarators } => {
                let array = declarators.iter().any(|d| !d.dimensions.is_empty());
                self.note("", if array { "object array" } else { "object" });
                self.ty("object", ty);
            }
            ItemKind::Fn { params, result, body, .. } => {
                let name = if result.is_some() { "fn with result" } else { "fn" };
                self.note("", name);
                params.iter().for_each(|(_, ty)| self.ty(name, ty));
                self.block(name, body);
            }
            ItemKind::Thread { params, body, .. } => {
                let names = ["thread", "thread with parameter", "thread with two parameters"];
                let name = names[params.len().min(2)];
                self.note("", name);
                self.parameters = params.iter().map(|(name, _)| name.text.as_str()).collect();
                self.block(name, body);
                self.parameters.clear();
            }
            ItemKind::Init(body) => {
                self.note("", "init");
                self.block("init", body);
            }
            ItemKind::Invariant { name, condition } => {
                let name = if name.is_some() { "named invariant" } else { "invariant" };
                self.note("", name);
                self.expr(name, condition);
            }
        }
    }

    fn ty(&mut self, parent: &str, ty: &'f TypeExpr) {
        let name = match &ty.kind {
            TypeKind::Named(name) => match name.as_str() {
                "int" => "type int",
                "bool" => "type bool",
                "thread" => "type thread",
                _ => "type named",
            },
            TypeKind::Range(_) => "type range",
            TypeKind::Array(element, _) => {
                self.ty("type array", element);
                "type array"
            }
            TypeKind::Pointer(to) => {
                self.ty("type pointer", to);
                "type pointer"
            }
            TypeKind::Object(word, arguments) => match (word.as_str(), arguments.first()) {
                ("channel", Some(ObjectArg::Expr(Expr { kind: ExprKind::Int(0), .. }))) => {
                    "rendezvous"
                }
                ("barrier", Some(ObjectArg::Expr(Expr { kind: ExprKind::Int(1), .. }))) => {
                    "barrier of one"
                }
                ("barrier", Some(ObjectArg::Expr(Expr { kind: ExprKind::Int(3), .. }))) => {
                    "barrier of three"
                }
                (word, _) => word,
            },
        };
        self.note(parent, name);
    }

    fn block(&mut self, parent: &str, block: &'f Block) {
        if block.stmts.is_empty() {
            self.note(parent, "empty block");
        }
        let mut last: Option<String> = None;
        for stmt in &block.stmts {
            let name = self.stmt(parent, stmt);
            if let Some(last) = last.replace(name.clone()) {
                *self.coverage.pairs.entry((last, Relation::After, name)).or_default() += 1;
            }
        }
    }

    fn stmt(&mut self, parent: &str, stmt: &'f Stmt) -> String {
        let name = self.name_of(stmt);
        self.note(parent, &name);
        self.note_meaning(stmt);
        let around = self.atomic;
        self.atomic |= matches!(stmt.kind, StmtKind::Atomic(_));
        match &stmt.kind {
            StmtKind::Var { ty, init, .. } => {
                ty.iter().for_each(|ty| self.ty(&name, ty));
                init.iter().for_each(|e| self.expr(&name, e));
            }
            StmtKind::Assign { target, value, .. } => {
                self.expr(&name, target);
                self.expr(&name, value);
            }
            StmtKind::Expr(e)
            | StmtKind::Return(Some(e))
            | StmtKind::Await(e)
            | StmtKind::Assume(e)
            | StmtKind::Join(e)
            | StmtKind::Assert { condition: e, .. } => self.expr(&name, e),
            StmtKind::If { condition, then, otherwise } => {
                self.expr(&name, condition);
                self.block(&name, then);
                if let Some(block) = otherwise {
                    self.note(&name, "else");
                    self.block("else", block);
                }
            }
            StmtKind::While { condition, body } => {
                self.expr(&name, condition);
                self.block(&name, body);
            }
            StmtKind::Loop { body } => self.block(&name, body),
            StmtKind::For { range, body, .. } => {
                self.expr(&name, &range.lo);
                self.expr(&name, &range.hi);
                self.block(&name, body);
            }
            StmtKind::Match { scrutinee, arms } => {
                self.expr(&name, scrutinee);
                arms.iter().for_each(|arm| self.block(&name, &arm.body));
            }
            StmtKind::Choose(blocks) => blocks.iter().for_each(|block| self.block(&name, block)),
            StmtKind::Atomic(block) | StmtKind::Block(block) => self.block(&name, block),
            StmtKind::End(inner) => {
                self.stmt(&name, inner);
            }
            StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(None)
            | StmtKind::Skip
            | StmtKind::Yield => {}
        }
        self.atomic = around;
        name
    }

    /// Notes what a statement depends on, where errors were found that its form does not show.
    fn note_meaning(&mut self, stmt: &'f Stmt) {
        let (condition, waits) = match &stmt.kind {
            StmtKind::Await(condition) | StmtKind::Assume(condition) => (Some(condition), true),
            StmtKind::If { condition, .. } | StmtKind::While { condition, .. } => {
                (Some(condition), false)
            }
            _ => (None, false),
        };
        let mentions = |names: &[&str]| condition.is_some_and(|e| mentions(e, names));
        let (parameter, plain) = (mentions(&self.parameters), waits && mentions(&self.plain));
        if parameter {
            self.note("", "condition with a thread parameter");
        }
        if plain {
            self.note("", "wait for a plain variable");
        }
        if self.atomic && matches!(stmt.kind, StmtKind::Choose(_)) {
            self.note("", "choice in an atomic block");
        }
    }

    fn name_of(&self, stmt: &Stmt) -> String {
        let name = match &stmt.kind {
            StmtKind::Var { name, .. } if self.globals.contains(&name.text.as_str()) => {
                "shadowing local"
            }
            StmtKind::Var { init: None, .. } => "local without value",
            StmtKind::Var { .. } => "local",
            StmtKind::Assign { op: None, .. } => "assignment",
            StmtKind::Assign { op: Some(op), .. } => return format!("compound {}", op.text()),
            StmtKind::Expr(e) => match &e.kind {
                ExprKind::Method(..) => "method statement",
                ExprKind::Spawn(..) => "spawn statement",
                ExprKind::Call(name, _) if is_access(&name.text) => "access statement",
                _ => "call statement",
            },
            StmtKind::If { .. } => "if",
            StmtKind::While { condition, .. } if is_constant(condition) => "while constant",
            StmtKind::While { .. } => "while",
            StmtKind::Loop { .. } => "loop",
            StmtKind::For { range, .. } => match range.hi.kind {
                ExprKind::Int(n) if n == i64::from(i32::MAX) => "for to the maximum",
                _ => "for",
            },
            StmtKind::Match { .. } => "match",
            StmtKind::Break => "break",
            StmtKind::Continue => "continue",
            StmtKind::Return(None) => "return",
            StmtKind::Return(Some(_)) => "return value",
            StmtKind::Assert { message: None, .. } => "assert",
            StmtKind::Assert { .. } => "assert with message",
            StmtKind::Await(_) => "await",
            StmtKind::Assume(_) => "assume",
            StmtKind::Choose(_) => "choose blocks",
            StmtKind::Skip => "skip",
            StmtKind::Yield => "yield",
            StmtKind::Atomic(_) => "atomic",
            StmtKind::Join(_) => "join",
            StmtKind::End(_) => "end",
            StmtKind::Block(_) => "block",
        };
        name.to_owned()
    }

    fn expr(&mut self, parent: &str, e: &'f Expr) {
        let name: String = match &e.kind {
            ExprKind::Int(_) => "number".into(),
            ExprKind::Bool(_) => "bool".into(),
            ExprKind::Null => "null".into(),
            ExprKind::Name(_) | ExprKind::Error => "name".into(),
            ExprKind::Array(_) => "array".into(),
            ExprKind::Index(..) => "index".into(),
            ExprKind::Field(..) => "field".into(),
            ExprKind::Unary(UnaryOp::Not, _) => "not".into(),
            ExprKind::Unary(UnaryOp::Neg, _) => "minus".into(),
            ExprKind::AddressOf(_) => "address".into(),
            ExprKind::Deref(_) => "deref".into(),
            ExprKind::Binary(op, ..) => op.text().to_owned(),
            ExprKind::If(..) => "if value".into(),
            ExprKind::Call(name, arguments) => {
                if self.has_ordering(&name.text, arguments.len()) {
                    self.note(parent, ORDERING);
                }
                if is_access(&name.text) { name.text.clone() } else { "call".into() }
            }
            ExprKind::Method(_, name, _) => name.text.clone(),
            ExprKind::Spawn(..) => "spawn".into(),
            ExprKind::New(..) => "new".into(),
            ExprKind::Choose(_) => "choose value".into(),
            ExprKind::Quantifier(word, ..) => word.text.clone(),
        };
        self.note(parent, &name);
        if self.atomic && matches!(e.kind, ExprKind::Choose(_)) {
            self.note("", "choice in an atomic block");
        }
        parts(e).into_iter().for_each(|part| self.expr(&name, part));
    }
}

/// The expressions directly inside an expression.
fn parts(e: &Expr) -> Vec<&Expr> {
    match &e.kind {
        ExprKind::Int(_)
        | ExprKind::Bool(_)
        | ExprKind::Null
        | ExprKind::Name(_)
        | ExprKind::Error => vec![],
        ExprKind::Array(values) => values.iter().collect(),
        ExprKind::Field(e, _)
        | ExprKind::Unary(_, e)
        | ExprKind::AddressOf(e)
        | ExprKind::Deref(e)
        | ExprKind::Quantifier(_, _, _, e) => vec![e],
        ExprKind::Index(a, b) | ExprKind::Binary(_, a, b) => vec![a, b],
        ExprKind::If(c, a, b) => vec![c, a, b],
        ExprKind::Call(_, arguments) | ExprKind::Spawn(_, arguments) => arguments.iter().collect(),
        ExprKind::Method(object, _, arguments) => {
            std::iter::once(&**object).chain(arguments).collect()
        }
        ExprKind::New(_, fields) => fields.iter().map(|(_, e)| e).collect(),
        ExprKind::Choose(range) => vec![&range.lo, &range.hi],
    }
}

/// Whether one of these names occurs in an expression.
fn mentions(e: &Expr, names: &[&str]) -> bool {
    matches!(&e.kind, ExprKind::Name(name) if names.contains(&name.as_str()))
        || parts(e).into_iter().any(|part| mentions(part, names))
}

fn is_access(name: &str) -> bool {
    name == "cas" || name == "swap" || name.starts_with("fetch_")
}

/// Whether a condition consists of constants. Constants have names in capitals.
fn is_constant(e: &Expr) -> bool {
    match &e.kind {
        ExprKind::Int(_) | ExprKind::Bool(_) => true,
        ExprKind::Name(name) => name.chars().all(|c| c.is_ascii_uppercase()),
        ExprKind::Unary(_, e) => is_constant(e),
        ExprKind::Binary(_, l, r) => is_constant(l) && is_constant(r),
        _ => false,
    }
}
