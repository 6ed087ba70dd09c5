//! Values, places, objects and threads: everything that a state consists of.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use preempt_lang::syntax::ast::{Block, Expr, Stmt};

use crate::run::Failure;
use crate::types::TypeId;

/// A scalar.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// A 32-bit integer.
    Int(i64),
    /// A truth value.
    Bool(bool),
    /// A variant: the number of its enum, and its own number.
    Variant(usize, usize),
    /// A null pointer, or no thread.
    Null,
    /// The address of a place.
    Pointer(Place),
    /// The thread with this number.
    Thread(usize),
}

impl Value {
    /// The integer. The product's checker guarantees that the value is one.
    pub fn int(&self) -> i64 {
        match self {
            Value::Int(n) => *n,
            other => panic!("a number is needed, not {other:?}"),
        }
    }

    /// The truth value. The product's checker guarantees that the value is one.
    pub fn bool(&self) -> bool {
        match self {
            Value::Bool(b) => *b,
            other => panic!("a bool is needed, not {other:?}"),
        }
    }
}

/// The variable or record that contains a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Root {
    /// The shared variable with this number.
    Global(usize),
    /// A record on the heap: the thread that allocated it, and how many records that thread had
    /// allocated before.
    Heap(usize, usize),
    /// A local variable: its frame, its scope and its number there.
    Local(usize, usize, usize),
    /// The target of a null pointer.
    Nowhere,
}

/// A place: the indices and field numbers that lead to it from its root. Every access checks the
/// indices.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The variable or record that the path starts from.
    pub root: Root,
    /// Indices and field numbers.
    pub path: Vec<i64>,
    /// The type of the data there.
    pub ty: TypeId,
}

/// The data at a place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Data {
    /// A scalar.
    Scalar(Value),
    /// A synchronisation object.
    Object(Object),
    /// The elements of an array or the fields of a record.
    Parts(Vec<Data>),
}

/// The state of a synchronisation object. Threads are represented by their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    /// The owner.
    Mutex(Option<usize>),
    /// The threads that hold the lock.
    RwLock {
        /// The threads that hold it for reading.
        readers: BTreeSet<usize>,
        /// The thread that holds it for writing.
        writer: Option<usize>,
    },
    /// The threads that wait and have not been notified.
    Condvar(BTreeSet<usize>),
    /// The count.
    Semaphore(i64),
    /// Whether it is set.
    Event(bool),
    /// The threads that have arrived and have not been released.
    Barrier(BTreeSet<usize>),
    /// The values in it, oldest first.
    Channel(Vec<Value>),
    /// The sending thread, and its value until a receiver has taken it.
    Rendezvous(Option<(usize, Option<Value>)>),
}

/// A node of the syntax tree, compared by identity: the same text elsewhere is a different
/// position.
pub struct At<'p, T: ?Sized>(pub &'p T);

impl<T: ?Sized> Clone for At<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T: ?Sized> Copy for At<'_, T> {}
impl<T: ?Sized> PartialEq for At<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}
impl<T: ?Sized> Eq for At<'_, T> {}
impl<T: ?Sized> Hash for At<'_, T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.0 as *const T).hash(state);
    }
}
impl<T: ?Sized> std::fmt::Debug for At<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("…")
    }
}

/// A pending task of a thread. Earlier tasks have pushed its operands onto the thread's stack.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Task<'p> {
    /// The rest of a block, from this statement on.
    Stmts(At<'p, Block>, usize),
    /// Begins a statement.
    Exec(At<'p, Stmt>),
    /// The end of a block: its variables go out of scope.
    PopScope,
    /// The end of a statement marked `end:`.
    PopMark,
    /// Pushes the value of an expression.
    Eval(At<'p, Expr>),
    /// Pushes a place.
    Place(At<'p, Expr>),
    /// Follows the pointer at the place on top, if there is one.
    AutoDeref(At<'p, Expr>),
    /// Turns the pointer on top into its target place.
    Follow(At<'p, Expr>),
    /// Turns a place and an index into the place of the element.
    Element,
    /// Turns a place into the place of its field.
    Field(At<'p, Expr>),
    /// Turns the place on top into a pointer to it.
    Address(At<'p, Expr>),
    /// Replaces a place by the value there: an access.
    Read(At<'p, Expr>),
    /// Pops a value and a place and writes: an access.
    Write(At<'p, Expr>),
    /// Reads the place on top and leaves it there: the read of `x += e`.
    ReadKept(At<'p, Expr>),
    /// An operator whose operands have been pushed.
    Operate(At<'p, Expr>),
    /// The operator of `x += e`, by its statement.
    Combine(At<'p, Stmt>),
    /// The right side of `&&` and `||`, if it is needed.
    Right(At<'p, Expr>),
    /// One branch of an `if` expression.
    Either(At<'p, Expr>),
    /// `cas`, `swap`, `fetch_…`: an access.
    Modify(At<'p, Expr>),
    /// A method of an object: an access.
    Method(At<'p, Expr>),
    /// The second half of a method that takes two steps.
    LetGo(At<'p, Expr>),
    /// Calls a function whose arguments have been pushed.
    Enter(At<'p, Expr>),
    /// The end of a call.
    Leave(At<'p, Expr>),
    /// Starts a thread.
    Spawn(At<'p, Expr>),
    /// Allocates a record.
    New(At<'p, Expr>),
    /// Chooses a value of a range.
    Pick(At<'p, Expr>),
    /// The next value of a quantifier, and the count so far.
    Quantify(At<'p, Expr>, i64, i64),
    /// Processes the result of a quantifier's body for this value.
    Quantified(At<'p, Expr>, i64, i64),
    /// Initialises a new local variable.
    Declare(At<'p, Stmt>),
    /// Drops the value on top.
    Drop,
    /// Branches on the value on top.
    Branch(At<'p, Stmt>),
    /// The next test of a `while`.
    Again(At<'p, Stmt>),
    /// The start of a `for` whose bounds have been pushed.
    ForBegin(At<'p, Stmt>),
    /// The next iteration of a `for`, up to this last value.
    ForNext(At<'p, Stmt>, i64),
    /// `return e` with `e` on top.
    Return(At<'p, Stmt>),
    /// Checks an assertion.
    Assert(At<'p, Stmt>),
    /// `join` with the thread on top.
    Join(At<'p, Stmt>),
    /// A failed access: one of its operands cannot be evaluated.
    Fault(Failure),
    /// The end of an `atomic` block.
    EndAtomic,
}

/// An operand: a value, or a place that has been evaluated but not yet accessed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A value.
    Value(Value),
    /// A place.
    Place(Place),
}

/// A local variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Local<'p> {
    /// The name as declared.
    pub name: &'p str,
    /// The declared or inferred type.
    pub ty: TypeId,
    /// The current value.
    pub data: Data,
}

/// The local variables of a call, scope by scope, innermost last.
pub type Frame<'p> = Vec<Vec<Local<'p>>>;

/// The stage of a thread's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Life {
    /// The thread has tasks left.
    #[default]
    Running,
    /// The thread has ended.
    Ended,
    /// The thread has failed.
    Failed,
}

/// The state of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Thread<'p> {
    /// Whether the thread still runs.
    pub life: Life,
    /// The pending tasks, next one last.
    pub todo: Vec<Task<'p>>,
    /// The operands of the pending tasks.
    pub operands: Vec<Operand>,
    /// Its local variables, call by call.
    pub frames: Vec<Frame<'p>>,
    /// The number of enclosing `atomic` blocks, and of conditions that are evaluated in one step.
    pub atomic: usize,
    /// The number of enclosing statements marked `end:`.
    pub marks: usize,
    /// Whether the thread was spawned: its body is then a call.
    pub spawned: bool,
    /// The result type of the function that a spawned thread runs.
    pub result: Option<TypeId>,
    /// The number of records that the thread has allocated. Not part of the state's identity.
    pub made: usize,
}

/// A state of the program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State<'p> {
    /// The shared variables and objects.
    pub globals: Vec<Data>,
    /// The records on the heap, with their types.
    pub heap: BTreeMap<(usize, usize), (TypeId, Data)>,
    /// The threads: declared ones first, then spawned ones.
    pub threads: Vec<Thread<'p>>,
}
