//! The syntax tree, before names and types are resolved.

pub use preempt_machine::program::{BinaryOp, UnaryOp};
use preempt_machine::source::Span;

/// A model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct File {
    /// The declarations, in the order of the text.
    pub items: Vec<Item>,
}

/// An identifier.
#[derive(Clone, Debug, PartialEq)]
pub struct Name {
    pub text: String,
    pub span: Span,
}

/// A declaration.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    pub kind: ItemKind,
    pub span: Span,
}

/// The kinds of declarations.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemKind {
    /// `steps statement;` or `steps access;`
    Steps(Name),
    /// `memory weak;` or `memory sc;`
    Memory(Name),
    /// `const N: int = 3;`
    Const { name: Name, ty: Option<TypeExpr>, value: Expr },
    /// `enum Color { Red, Green }`
    Enum { name: Name, variants: Vec<Name> },
    /// `record Node { value: int, next: *Node }`
    Record { name: Name, fields: Vec<(Name, TypeExpr)> },
    /// `var x: int = 0;`, `atomic var y = 1;`
    Var { atomic: bool, name: Name, ty: Option<TypeExpr>, init: Option<Expr> },
    /// `mutex a, forks[N];`, `semaphore(3) free;`, `channel(2, int) c[4];`
    Object { ty: TypeExpr, declarators: Vec<Declarator> },
    /// `fn max(a: int, b: int) -> int { … }`
    Fn { name: Name, params: Vec<(Name, TypeExpr)>, result: Option<TypeExpr>, body: Block },
    /// `thread worker(i in 0..N) { … }`
    Thread { name: Name, params: Vec<(Name, RangeExpr)>, body: Block },
    /// `init { … }`
    Init(Block),
    /// `invariant name: e;` or `invariant e;`
    Invariant { name: Option<Name>, condition: Expr },
}

/// A name of an object declaration, with its array dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Declarator {
    pub name: Name,
    /// The dimensions, outermost first; none for a single object.
    pub dimensions: Vec<Expr>,
}

/// `lo..hi` or `lo..=hi`
#[derive(Clone, Debug, PartialEq)]
pub struct RangeExpr {
    /// The first value.
    pub lo: Box<Expr>,
    /// The value after the last, or the last if `inclusive`.
    pub hi: Box<Expr>,
    /// Written with `..=`.
    pub inclusive: bool,
    pub span: Span,
}

/// A type as written.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeExpr {
    pub kind: TypeKind,
    pub span: Span,
}

/// The kinds of types.
#[derive(Clone, Debug, PartialEq)]
pub enum TypeKind {
    /// `int`, `bool`, `thread`, or the name of an enum or record.
    Named(String),
    /// `0..N`
    Range(RangeExpr),
    /// `[T; n]`
    Array(Box<TypeExpr>, Box<Expr>),
    /// `*T`
    Pointer(Box<TypeExpr>),
    /// `mutex`, `rwlock`, `condvar`, `semaphore(3)`, `event(auto, set)`, `barrier(2)`, `channel(4,
    /// int)`: the keyword and the arguments in parentheses.
    Object(String, Vec<ObjectArg>),
}

/// An argument of an object type.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectArg {
    /// A number, or a word such as `auto`.
    Expr(Expr),
    /// The element type of a channel that is not also an expression (`int`, `bool`, `[…]`, `*T`, a
    /// range).
    Type(TypeExpr),
}

/// `{ … }`
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub stmts: Vec<Stmt>,
    /// Its span, including the braces.
    pub span: Span,
}

/// A statement.
#[derive(Clone, Debug, PartialEq)]
pub struct Stmt {
    pub kind: StmtKind,
    /// Its span. For a statement with blocks, that of its head (`while e`), which traces show.
    pub span: Span,
}

/// The kinds of statements.
#[derive(Clone, Debug, PartialEq)]
pub enum StmtKind {
    /// `var t: int = x;`
    Var { name: Name, ty: Option<TypeExpr>, init: Option<Expr> },
    /// `x = e;`, or with an operator `x += e;`
    Assign { target: Expr, op: Option<BinaryOp>, value: Expr },
    /// `f(x);`, `m.lock();`, `spawn f();`
    Expr(Expr),
    /// `if e { … } else { … }`; `else if` is an else block with one statement.
    If { condition: Expr, then: Block, otherwise: Option<Block> },
    /// `while e { … }`
    While { condition: Expr, body: Block },
    /// `loop { … }`
    Loop { body: Block },
    /// `for i in a..b { … }`
    For { name: Name, range: RangeExpr, body: Block },
    /// `match e { 0 => { … } 1 | 2..=4 => { … } _ => { … } }`
    Match { scrutinee: Expr, arms: Vec<Arm> },
    /// `break;`
    Break,
    /// `continue;`
    Continue,
    /// `return;` or `return e;`
    Return(Option<Expr>),
    /// `assert e;` or `assert e, "message";`
    Assert { condition: Expr, message: Option<String> },
    /// `await e;`
    Await(Expr),
    /// `assume e;`
    Assume(Expr),
    /// `choose { … } or { … }`
    Choose(Vec<Block>),
    /// `skip;`
    Skip,
    /// `yield;`
    Yield,
    /// `atomic { … }`
    Atomic(Block),
    /// `join t;`
    Join(Expr),
    /// `end: s`
    End(Box<Stmt>),
    /// `{ … }`
    Block(Block),
}

/// One arm of a `match`.
#[derive(Clone, Debug, PartialEq)]
pub struct Arm {
    /// The patterns; none for `_`.
    pub patterns: Vec<Pattern>,
    pub body: Block,
    /// The span of the patterns.
    pub span: Span,
}

/// A pattern: a constant expression (a number, `true`, a variant, a constant) or a range of them.
#[derive(Clone, Debug, PartialEq)]
pub enum Pattern {
    /// A single value.
    Value(Expr),
    /// A range.
    Range(RangeExpr),
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

/// The kinds of expressions.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// `42`
    Int(i64),
    /// `true`, `false`
    Bool(bool),
    /// `null`
    Null,
    /// `x`; also a constant or a variant.
    Name(String),
    /// `[1, 2, 3]`, only as the initial value of an array.
    Array(Vec<Expr>),
    /// `a[i]`
    Index(Box<Expr>, Box<Expr>),
    /// `r.f`
    Field(Box<Expr>, Name),
    /// `!e`, `-e`
    Unary(UnaryOp, Box<Expr>),
    /// `&x`
    AddressOf(Box<Expr>),
    /// `*p`
    Deref(Box<Expr>),
    /// `a + b`
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `if c { a } else { b }`
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// `f(a, b)`; also `cas(x, 0, 1)`, `fetch_add(x, 1)`, `swap(x, 1)`.
    Call(Name, Vec<Expr>),
    /// `m.lock()`
    Method(Box<Expr>, Name, Vec<Expr>),
    /// `spawn f(a)`
    Spawn(Name, Vec<Expr>),
    /// `new Node { value: 1 }`
    New(Name, Vec<(Name, Expr)>),
    /// `choose(a..b)`
    Choose(RangeExpr),
    /// `all(i in 0..N: e)`, `any(…)`, `count(…)`: the keyword, the variable, its range, the body.
    Quantifier(Name, Name, RangeExpr, Box<Expr>),
    /// A placeholder for an expression that could not be parsed; a diagnostic was reported.
    Error,
}
