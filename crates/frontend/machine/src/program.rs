//! The checked program, from which the step machine is built: names are resolved, types are known,
//! constants are folded.

use std::sync::atomic::Ordering;

use preempt_system::MemoryModel;

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
    pub source: Source,
    /// The granularity of steps.
    pub granularity: Granularity,
    /// The memory model. Under weak memory, steps are accesses, and there are no invariants, no
    /// `atomic` blocks and no waits for variables.
    pub memory: MemoryModel,
    pub enums: Vec<Enum>,
    pub records: Vec<Record>,
    /// Shared variables and synchronisation objects, in the order of their declaration.
    pub globals: Vec<Global>,
    /// All functions: declared ones, the bodies of threads, the `init` block.
    pub functions: Vec<Function>,
    /// The threads that start at once.
    pub threads: Vec<Thread>,
    /// The function that runs before the first step, if there is one.
    pub init: Option<FunctionId>,
    pub invariants: Vec<Invariant>,
}

/// The granularity of steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// A step is one access to shared state and the local computation after it.
    Access,
    /// A step is one statement.
    Statement,
}

/// An enum: its values are 0, 1, … in the order of the variants.
#[derive(Clone, Debug)]
pub struct Enum {
    pub name: String,
    pub variants: Vec<String>,
}

/// A record type.
#[derive(Clone, Debug)]
pub struct Record {
    pub name: String,
    pub fields: Vec<(String, Type)>,
}

/// A type. Aggregates consist of cells that hold one number each; sizes are finite by construction.
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

/// A shared variable or synchronisation object.
#[derive(Clone, Debug)]
pub struct Global {
    pub name: String,
    pub ty: Type,
    /// Declared with `atomic`: for lock-free use, so it has no data races.
    pub atomic: bool,
    /// The initial values of its cells, for types without objects. Empty means all zero (for a
    /// range without 0, its lowest value). Objects have the initial state of their type.
    pub init: Vec<i64>,
    /// The span of its name.
    pub span: Span,
}

/// A local variable. Locals of aggregate type are allowed; objects are not.
#[derive(Clone, Debug)]
pub struct Local {
    pub name: String,
    pub ty: Type,
}

/// A function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name; for the body of a thread the name of the thread, for the `init` block `init`.
    pub name: String,
    /// The number of parameters, which are the first `locals`. They have scalar types.
    pub params: usize,
    /// The local variables of all its blocks; every declaration has its own.
    pub locals: Vec<Local>,
    /// The type of its result, which is scalar.
    pub result: Option<Type>,
    pub body: Block,
    /// The span of its name.
    pub span: Span,
}

/// A thread that starts with the program, or a family of such threads.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Its body; the parameters of the thread are those of the function.
    pub function: FunctionId,
    /// One thread for each combination of values: for each parameter the lowest value, and the
    /// value after the highest.
    pub params: Vec<(i64, i64)>,
}

/// An invariant: a condition that holds in every state.
#[derive(Clone, Debug)]
pub struct Invariant {
    /// Its name, or its source text.
    pub name: String,
    /// A pure expression: loads, operators, quantifiers, and no local variables except those of
    /// quantifiers.
    pub condition: Expr,
    pub span: Span,
    /// The variables of its quantifiers.
    pub locals: Vec<Local>,
}

/// A sequence of statements.
pub type Block = Vec<Stmt>;

/// A statement.
#[derive(Clone, Debug)]
pub struct Stmt {
    pub kind: StmtKind,
    /// Its span; for a statement with blocks, the span of its head.
    pub span: Span,
    /// Labelled with `end:`: a thread may stay here forever.
    pub end: bool,
}

/// The kinds of statements.
#[derive(Clone, Debug)]
pub enum StmtKind {
    /// A declaration: assigns `init` to the variable, or zero (its lowest value) without one.
    Let { local: LocalId, init: Option<Expr> },
    /// `place = value`
    Assign { place: Place, value: Expr },
    /// `place op= value`: reads the place, evaluates the value, writes the place.
    Update { place: Place, op: BinaryOp, value: Expr },
    /// An expression that is evaluated for its effect.
    Expr(Expr),
    /// `if`
    If { condition: Expr, then: Block, otherwise: Block },
    /// `while`
    While { condition: Expr, body: Block },
    /// `loop`
    Loop(Block),
    /// `for local in from..to`, or `from..=to` if `inclusive`. Both bounds are evaluated once, at
    /// the start.
    For { local: LocalId, from: Expr, to: Expr, inclusive: bool, body: Block },
    /// `match`: arms with inclusive ranges of values; the first that contains the value is taken.
    /// Without `otherwise` the arms cover all values of the type.
    Match { scrutinee: Expr, arms: Vec<Arm>, otherwise: Option<Block> },
    /// `break`: leaves the innermost loop.
    Break,
    /// `continue`: starts the next iteration of the innermost loop.
    Continue,
    /// `return`: leaves the function; in the body of a thread, ends the thread.
    Return(Option<Expr>),
    /// `assert`: fails unless the condition holds.
    Assert { condition: Expr, message: Option<String> },
    /// `await`: blocks until the condition holds; one step reads everything that it needs. With
    /// `assume`, waiting forever is not a deadlock. The condition is pure.
    Await { condition: Expr, assume: bool },
    /// `choose`: one of the blocks, nondeterministically.
    Choose(Vec<Block>),
    /// `skip`: does nothing.
    Skip,
    /// `yield`: a scheduling point.
    Yield,
    /// `atomic`: one step.
    Atomic(Block),
    /// `join`: blocks until a thread has ended.
    Join(Expr),
    /// `{ … }`
    Block(Block),
}

/// An arm of a `match`: inclusive ranges of values, and a block.
pub type Arm = (Vec<(i64, i64)>, Block);

/// A memory location: a variable or a part of one, or the target of a pointer.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its start.
    pub base: Base,
    /// The selected part.
    pub path: Vec<Projection>,
    /// The type of the selected part.
    pub ty: Type,
    pub span: Span,
}

/// The start of a place.
#[derive(Clone, Debug)]
pub enum Base {
    /// A shared variable or object.
    Global(GlobalId),
    /// A local variable.
    Local(LocalId),
    /// The target of a pointer; the type of the pointer determines its type.
    Deref(Box<Expr>),
}

/// The selection of a part.
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
    pub kind: ExprKind,
    /// Its type, which is scalar. [`Type::Int`] and [`Type::Range`] can be mixed.
    pub ty: Type,
    pub span: Span,
}

/// The kinds of expressions. Operands are evaluated from left to right.
#[derive(Clone, Debug)]
pub enum ExprKind {
    /// A constant: a number, 0 or 1 for a bool, the index of a variant, 0 for `null`.
    Const(i64),
    /// The value of a place of scalar type.
    Load(Place),
    /// A pointer to a place, never to a local variable.
    AddressOf(Place),
    /// A prefix operator.
    Unary(UnaryOp, Box<Expr>),
    /// An infix operator; `&&` and `||` evaluate the right operand only if needed.
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    /// `if`: evaluates one of two expressions.
    If(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A call. Arguments are scalars.
    Call(FunctionId, Vec<Expr>),
    /// An operation on a synchronisation object.
    Method { object: Place, method: Method, args: Vec<Expr> },
    /// `c.wait(m)`: the condvar and the mutex.
    CondWait { condvar: Place, mutex: Place },
    /// `load(place, order)`: the value of a place of scalar type.
    AtomicLoad { place: Place, order: Ordering },
    /// `store(place, e, order)`: assigns `e`; has no value.
    AtomicStore { place: Place, value: Box<Expr>, order: Ordering },
    /// `cas(place, old, new)` and `compare_exchange(place, old, new)`: if the place has the value
    /// `old`, assigns `new`.
    CompareAndSwap {
        place: Place,
        old: Box<Expr>,
        new: Box<Expr>,
        result: ExchangeResult,
        /// The orderings if it assigns and if it does not.
        orders: (Ordering, Ordering),
    },
    /// `swap(place, e)`: assigns `e`; the result is the old value.
    Swap { place: Place, value: Box<Expr>, order: Ordering },
    /// `fetch_add(place, e)` and the like: the result is the old value.
    Fetch { place: Place, op: BinaryOp, value: Box<Expr>, order: Ordering },
    /// `fence(order)`: has no value.
    Fence(Ordering),
    /// `spawn`: a new thread that runs a function; the result is its handle.
    Spawn(FunctionId, Vec<Expr>),
    /// `new`: allocates a record on the heap. For each field, in the order of the declaration, its
    /// initial value if there is one. Aggregates and objects never have one.
    New(RecordId, Vec<Option<Expr>>),
    /// `choose(lo..hi)`, or `lo..=hi` if `inclusive`: any value of the range; fails if it is empty.
    Choose { lo: Box<Expr>, hi: Box<Expr>, inclusive: bool },
    /// A quantifier over `local`, which ranges over constants; the body is pure.
    Quantifier { kind: Quantifier, local: LocalId, lo: i64, hi: i64, body: Box<Expr> },
}

/// The result of a compare-and-exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeResult {
    /// `cas`: whether it assigned.
    Succeeded,
    /// `compare_exchange`: the old value.
    Old,
}

/// The quantifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantifier {
    /// `all`: whether the body holds for all values.
    All,
    /// `any`: whether it holds for some value.
    Any,
    /// `count`: the number of values for which it holds.
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
    /// `ch.len()`: the number of values in the channel.
    Len,
}

impl Type {
    /// Whether a value of this type is a single number.
    pub fn is_scalar(&self) -> bool {
        !matches!(self, Type::Record(_) | Type::Array(..) | Type::Object(_))
    }

    /// The values that the declaration of a scalar type allows, both ends included.
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

/// Prefix operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// `!`
    Not,
    /// `-`
    Neg,
}

/// Infix operators.
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
    /// Its spelling.
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
    /// Its spelling.
    pub fn text(self) -> &'static str {
        match self {
            UnaryOp::Not => "!",
            UnaryOp::Neg => "-",
        }
    }
}
