//! The checked program: names resolved, types known, constants folded. What the step machine is
//! made from.

use crate::source::{Source, Span};

/// Index into [`Program::globals`].
pub type GlobalId = usize;
/// Index into [`Function::locals`].
pub type LocalId = usize;
/// Index into [`Program::functions`].
pub type FunctionId = usize;
/// Index into [`Program::records`].
pub type RecordId = usize;
/// Index into [`Program::enums`].
pub type EnumId = usize;

/// A program that has passed all checks.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its text.
    pub source: Source,
    /// What one step is.
    pub granularity: Granularity,
    /// The enums.
    pub enums: Vec<Enum>,
    /// The records.
    pub records: Vec<Record>,
    /// Shared variables and synchronisation objects, in the order of their declaration.
    pub globals: Vec<Global>,
    /// All functions: declared ones, the bodies of threads, the `init` block.
    pub functions: Vec<Function>,
    /// The threads that start at once.
    pub threads: Vec<Thread>,
    /// The function that runs before the first step, if any.
    pub init: Option<FunctionId>,
    /// What holds in every state.
    pub invariants: Vec<Invariant>,
}

/// What one step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// One access to shared state and the local computation after it.
    Access,
    /// One statement.
    Statement,
}

/// An enum: its values are 0, 1, … in the order of the variants.
#[derive(Clone, Debug)]
pub struct Enum {
    /// Its name.
    pub name: String,
    /// Its variants.
    pub variants: Vec<String>,
}

/// A record type.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its name.
    pub name: String,
    /// Its fields.
    pub fields: Vec<(String, Type)>,
}

/// A type. Aggregates are made of cells that hold one number each; sizes are finite by
/// construction.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// 32-bit integers; leaving the range is an error of the program under test.
    Int,
    /// `false` = 0, `true` = 1.
    Bool,
    /// The integers from `lo` to `hi`, both included; leaving the range is an error of the program
    /// under test.
    Range { lo: i64, hi: i64 },
    /// The variants of an enum.
    Enum(EnumId),
    /// Null (0) or the place of a value of this type.
    Pointer(Box<Type>),
    /// None (0) or a thread (its slot + 1).
    Thread,
    /// A record.
    Record(RecordId),
    /// An array: element type and length, at least 1.
    Array(Box<Type>, usize),
    /// A synchronisation object.
    Object(ObjectType),
}

/// The synchronisation objects of the language.
#[derive(Clone, Debug, PartialEq)]
pub enum ObjectType {
    /// `mutex`
    Mutex,
    /// `rwlock`
    RwLock,
    /// `condvar`
    Condvar,
    /// `semaphore(initial)`
    Semaphore { initial: u32 },
    /// `event`, `event(auto)`, `event(set)`, `event(auto, set)`
    Event { auto: bool, set: bool },
    /// `barrier(parties)`
    Barrier { parties: u32 },
    /// `channel(capacity, element)`; capacity 0 is a rendezvous.
    Channel { capacity: u32, element: Box<Type> },
}

/// A shared variable or object.
#[derive(Clone, Debug)]
pub struct Global {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
    /// Declared with `atomic`: meant for lock-free use, so never part of a data race.
    pub atomic: bool,
    /// The initial values of its cells, in the order of the cells, for types without objects; empty
    /// means all zero (for a range that does not contain 0: its lowest value). Objects have the
    /// initial state of their type.
    pub init: Vec<i64>,
    /// The place of its name.
    pub span: Span,
}

/// A local variable. Locals of aggregate type are allowed; objects are not.
#[derive(Clone, Debug)]
pub struct Local {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name; the thread's for the body of a thread, `init` for the `init` block.
    pub name: String,
    /// How many of the first `locals` are parameters. They have scalar types.
    pub params: usize,
    /// All local variables of all its blocks; every declaration has one of its own.
    pub locals: Vec<Local>,
    /// The type of its result: scalar.
    pub result: Option<Type>,
    /// What it does.
    pub body: Block,
    /// The place of its name.
    pub span: Span,
}

/// A thread that starts at once, or a family of them.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its body; parameter `i` of the function is the `i`-th parameter of the thread.
    pub function: FunctionId,
    /// One thread for each combination of values: for each parameter its lowest value and the value
    /// after its highest.
    pub params: Vec<(i64, i64)>,
}

/// Something that holds in every state.
#[derive(Clone, Debug)]
pub struct Invariant {
    /// Its name, or its text.
    pub name: String,
    /// Pure: loads, operators, quantifiers, no local variables but those of quantifiers.
    pub condition: Expr,
    /// Its place.
    pub span: Span,
    /// The variables of its quantifiers.
    pub locals: Vec<Local>,
}

/// Statements in their order.
pub type Block = Vec<Stmt>;

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    /// What it does.
    pub kind: StmtKind,
    /// Its place; for a statement with blocks, its head.
    pub span: Span,
    /// A thread may rest here forever: it stands behind `end:`.
    pub end: bool,
}

/// The kinds of statements.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// A declaration: the variable becomes `init`, or zero (its lowest value) without one.
    Let { local: LocalId, init: Option<Expr> },
    /// `place = value`
    Assign { place: Place, value: Expr },
    /// `place op= value`: reads the place, evaluates the value, writes the place.
    Update { place: Place, op: BinaryOp, value: Expr },
    /// An expression for its effect.
    Expr(Expr),
    /// `if`
    If { condition: Expr, then: Block, otherwise: Block },
    /// `while`
    While { condition: Expr, body: Block },
    /// `loop`
    Loop(Block),
    /// `for local in from..to`, or `from..=to` if `inclusive`: both bounds are evaluated once, at
    /// the start.
    For { local: LocalId, from: Expr, to: Expr, inclusive: bool, body: Block },
    /// `match`: arms of inclusive ranges of values; the first that contains the value is taken.
    /// Without `otherwise` the arms cover all values of the type.
    Match { scrutinee: Expr, arms: Vec<Arm>, otherwise: Option<Block> },
    /// Leaves the innermost loop.
    Break,
    /// Goes on with the next round of the innermost loop.
    Continue,
    /// Leaves the function; in the body of a thread, ends the thread.
    Return(Option<Expr>),
    /// An error unless the condition holds.
    Assert { condition: Expr, message: Option<String> },
    /// Waits until the condition holds: one step that reads all it needs. With `assume` it is no
    /// deadlock to wait forever. The condition is pure.
    Await { condition: Expr, assume: bool },
    /// One of the blocks, nondeterministically.
    Choose(Vec<Block>),
    /// Nothing.
    Skip,
    /// A scheduling point.
    Yield,
    /// One step.
    Atomic(Block),
    /// Waits for the end of a thread.
    Join(Expr),
    /// `{ … }`
    Block(Block),
}

/// An arm of a `match`: inclusive ranges of values, and what to do.
pub type Arm = (Vec<(i64, i64)>, Block);

/// Something that holds a value: a variable or a part of one, or what a pointer points to.
#[derive(Clone, Debug)]
pub struct Place {
    /// Where it begins.
    pub base: Base,
    /// Which part.
    pub path: Vec<Projection>,
    /// Its type, after the path.
    pub ty: Type,
    /// Where it is written.
    pub span: Span,
}

/// The beginning of a place.
#[derive(Clone, Debug)]
pub enum Base {
    /// A shared variable or object.
    Global(GlobalId),
    /// A local variable.
    Local(LocalId),
    /// What a pointer points to; the type of the pointer tells what that is.
    Deref(Box<Expr>),
}

/// One selection of a part.
#[derive(Clone, Debug)]
pub enum Projection {
    /// A field of a record, by its index.
    Field(RecordId, usize),
    /// An element of an array: the index, and the array's length.
    Index(Expr, usize),
}

/// An expression with its type. Values of ranges are integers: `ty` of arithmetic is [`Type::Int`].
#[derive(Clone, Debug)]
pub struct Expr {
    /// Its form.
    pub kind: ExprKind,
    /// Its type: scalar. [`Type::Int`] and any [`Type::Range`] mix freely.
    pub ty: Type,
    /// Its place.
    pub span: Span,
}

/// The forms of expressions. Operands are evaluated from left to right.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A constant: a number, 0 or 1 for a bool, the index of a variant, 0 for `null`.
    Const(i64),
    /// The value of a place of scalar type.
    Load(Place),
    /// A pointer to a place, never to a local variable.
    AddressOf(Place),
    /// An operator before an operand.
    Unary(UnaryOp, Box<Expr>),
    /// An operator between operands; `&&` and `||` evaluate the right one only if needed.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// Evaluates one of two, after a condition.
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A call. Arguments are scalars.
    Call(FunctionId, Vec<Expr>),
    /// An operation on a synchronisation object.
    Method { object: Place, method: Method, args: Vec<Expr> },
    /// A condvar wait: the condvar and the mutex.
    CondWait { condvar: Place, mutex: Place },
    /// `cas(place, old, new)`: whether it was `old` and is now `new`.
    CompareAndSwap { place: Place, old: Box<Expr>, new: Box<Expr> },
    /// `swap(place, e)`: the old value.
    Swap { place: Place, value: Box<Expr> },
    /// `fetch_add(place, e)` and the like: the old value.
    Fetch { place: Place, op: BinaryOp, value: Box<Expr> },
    /// A new thread that runs a function; its handle.
    Spawn(FunctionId, Vec<Expr>),
    /// A new record on the heap: for each field, in the order of the declaration, its initial value
    /// if given. Aggregate and object fields are never given.
    New(RecordId, Vec<Option<Expr>>),
    /// Any value of `lo..hi`, or of `lo..=hi` if `inclusive`; an error if there is none.
    Choose { lo: Box<Expr>, hi: Box<Expr>, inclusive: bool },
    /// A quantifier over `local` from a constant to before a constant; the body is pure.
    Quantifier { kind: Quantifier, local: LocalId, lo: i64, hi: i64, body: Box<Expr> },
}

/// The quantifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// Whether all bodies hold.
    All,
    /// Whether any body holds.
    Any,
    /// How many bodies hold.
    Count,
}

/// Operations on synchronisation objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `m.lock()`: blocks.
    Lock,
    /// `m.try_lock()`: bool.
    TryLock,
    /// `m.unlock()`
    Unlock,
    /// `rw.read()`: blocks.
    ReadLock,
    /// `rw.try_read()`: bool.
    TryReadLock,
    /// `rw.unlock_read()`
    ReadUnlock,
    /// `rw.write()`: blocks.
    WriteLock,
    /// `rw.try_write()`: bool.
    TryWriteLock,
    /// `rw.unlock_write()`
    WriteUnlock,
    /// `c.notify_one()`
    NotifyOne,
    /// `c.notify_all()`
    NotifyAll,
    /// `s.acquire()`: blocks.
    Acquire,
    /// `s.try_acquire()`: bool.
    TryAcquire,
    /// `s.release()`
    Release,
    /// `e.set()`
    Set,
    /// `e.reset()`
    Reset,
    /// `e.wait()`: blocks.
    EventWait,
    /// `b.wait()`: blocks.
    BarrierWait,
    /// `ch.send(v)`: blocks.
    Send,
    /// `ch.try_send(v)`: bool; not on a rendezvous.
    TrySend,
    /// `ch.recv()`: blocks; the value.
    Recv,
    /// `ch.len()`: how many values wait in the channel.
    Len,
}

impl Type {
    /// Whether a value of this type is one number.
    pub fn is_scalar(&self) -> bool {
        !matches!(self, Type::Record(_) | Type::Array(..) | Type::Object(_))
    }

    /// The values that a cell of this scalar type can hold by its declaration, both ends included.
    pub fn bounds(&self, program: &Program) -> (i64, i64) {
        match *self {
            Type::Int => (i64::from(i32::MIN), i64::from(i32::MAX)),
            Type::Bool => (0, 1),
            Type::Range { lo, hi } => (lo, hi),
            Type::Enum(id) => (0, program.enums[id].variants.len() as i64 - 1),
            Type::Pointer(_) => (0, i64::from(i32::MAX)),
            Type::Thread => (0, preempt_system::MAX_THREADS as i64),
            Type::Record(_) | Type::Array(..) | Type::Object(_) => {
                unreachable!("only scalars have bounds")
            }
        }
    }
}

/// Operators before an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `!`
    Not,
    /// `-`
    Neg,
}

/// Operators between operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Rem,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `<<`
    Shl,
    /// `>>`
    Shr,
}

impl BinaryOp {
    /// How it is written.
    pub fn text(self) -> &'static str {
        use BinaryOp::*;
        match self {
            Add => "+",
            Sub => "-",
            Mul => "*",
            Div => "/",
            Rem => "%",
            Eq => "==",
            Ne => "!=",
            Lt => "<",
            Le => "<=",
            Gt => ">",
            Ge => ">=",
            And => "&&",
            Or => "||",
            BitAnd => "&",
            BitOr => "|",
            BitXor => "^",
            Shl => "<<",
            Shr => ">>",
        }
    }
}

impl UnaryOp {
    /// How it is written.
    pub fn text(self) -> &'static str {
        match self {
            UnaryOp::Not => "!",
            UnaryOp::Neg => "-",
        }
    }
}
