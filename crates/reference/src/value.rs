//! Values, places, objects and the state of a thread: everything that a state is made of.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

use preempt_lang::syntax::ast::{Block, Expr, Stmt};

use crate::run::Failure;
use crate::types::TypeId;

/// A scalar.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Value {
    /// A number of 32 bits.
    Int(i64),
    /// A bool.
    Bool(bool),
    /// A variant: the number of its enum and its own.
    Variant(usize, usize),
    /// No pointer, or no thread.
    Null,
    /// The address of a place.
    Pointer(Place),
    /// The thread with this number.
    Thread(usize),
}

impl Value {
    /// The number. Checked models use only numbers where numbers are needed.
    pub fn int(&self) -> i64 {
        match self {
            Value::Int(n) => *n,
            other => panic!("a number is needed, not {other:?}"),
        }
    }

    /// The bool.
    pub fn bool(&self) -> bool {
        match self {
            Value::Bool(b) => *b,
            other => panic!("a bool is needed, not {other:?}"),
        }
    }
}

/// What contains a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Root {
    /// The shared variable with this number.
    Global(usize),
    /// A record on the heap: the thread that made it, and how many it had made before.
    Heap(usize, usize),
    /// A local variable: its frame, scope and number there.
    Local(usize, usize, usize),
    /// What a null pointer points to.
    Nowhere,
}

/// A place: the indices and field numbers that lead to it from its root. Indices are checked on access.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// Where the path begins.
    pub root: Root,
    /// Indices and numbers of fields.
    pub path: Vec<i64>,
    /// The type of what is there.
    pub ty: TypeId,
}

/// What is at a place.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Data {
    /// A scalar.
    Scalar(Value),
    /// A synchronisation object.
    Object(Object),
    /// The elements of an array or the fields of a record.
    Parts(Vec<Data>),
}

/// The state of a synchronisation object. Threads are their numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Object {
    /// The thread that holds it.
    Mutex(Option<usize>),
    /// The threads that hold it.
    RwLock {
        /// For reading.
        readers: BTreeSet<usize>,
        /// For writing.
        writer: Option<usize>,
    },
    /// The threads that wait and were not notified.
    Condvar(BTreeSet<usize>),
    /// Its count.
    Semaphore(i64),
    /// Whether it is set.
    Event(bool),
    /// The threads that have come and were not let go.
    Barrier(BTreeSet<usize>),
    /// The values in it, the oldest first.
    Channel(Vec<Value>),
    /// The thread that sends, and its value until somebody has taken it.
    Rendezvous(Option<(usize, Option<Value>)>),
}

/// A part of the syntax tree, compared by identity: the same text at another place is another position.
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

/// What a thread has to do next. Values that it needs were pushed onto the thread's stack of operands.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Task<'p> {
    /// The rest of a block, from this statement.
    Stmts(At<'p, Block>, usize),
    /// A statement.
    Exec(At<'p, Stmt>),
    /// The end of a block: its variables vanish.
    PopScope,
    /// The end of a statement marked `end:`.
    PopMark,
    /// Pushes the value of an expression.
    Eval(At<'p, Expr>),
    /// Pushes a place.
    Place(At<'p, Expr>),
    /// Follows the pointer at the place on top, if what is there is a pointer.
    AutoDeref(At<'p, Expr>),
    /// Turns the pointer on top into the place that it points to.
    Follow(At<'p, Expr>),
    /// Turns place and index into the place of the element.
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
    /// An operator whose operands were pushed.
    Operate(At<'p, Expr>),
    /// The operator of `x += e`, by its statement.
    Combine(At<'p, Stmt>),
    /// The right side of `&&` and `||`, if it is needed.
    Right(At<'p, Expr>),
    /// One side of an `if` with values.
    Either(At<'p, Expr>),
    /// `cas`, `swap`, `fetch_…`: an access.
    Modify(At<'p, Expr>),
    /// A method of an object: an access.
    Method(At<'p, Expr>),
    /// The second half of a method that takes two steps.
    LetGo(At<'p, Expr>),
    /// The call of a function whose arguments were pushed.
    Enter(At<'p, Expr>),
    /// The end of a call.
    Leave(At<'p, Expr>),
    /// Starts a thread.
    Spawn(At<'p, Expr>),
    /// Makes a record.
    New(At<'p, Expr>),
    /// One value of a range.
    Pick(At<'p, Expr>),
    /// The next value of a quantifier, and the count so far.
    Quantify(At<'p, Expr>, i64, i64),
    /// What the body of a quantifier has given for this value.
    Quantified(At<'p, Expr>, i64, i64),
    /// Gives a new local variable its value.
    Declare(At<'p, Stmt>),
    /// Drops a value.
    Drop,
    /// Branches on the value on top.
    Branch(At<'p, Stmt>),
    /// The test of a `while`, again.
    Again(At<'p, Stmt>),
    /// The beginning of a `for` whose bounds were pushed.
    ForBegin(At<'p, Stmt>),
    /// The next round of a `for`, of which this is the last value.
    ForNext(At<'p, Stmt>, i64),
    /// `return e` with `e` on top.
    Return(At<'p, Stmt>),
    /// Checks an assertion.
    Assert(At<'p, Stmt>),
    /// `join` with the thread on top.
    Join(At<'p, Stmt>),
    /// An access whose operands cannot be evaluated.
    Fault(Failure),
    /// The end of an `atomic` block.
    EndAtomic,
}

/// An operand: a value, or a place that was evaluated and not yet accessed.
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
    /// Its name.
    pub name: &'p str,
    /// Its type.
    pub ty: TypeId,
    /// Its value.
    pub data: Data,
}

/// The local variables of a call, scope by scope, the innermost last.
pub type Frame<'p> = Vec<Vec<Local<'p>>>;

/// Where a thread is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Life {
    /// It has something left to do.
    #[default]
    Running,
    /// It has ended.
    Ended,
    /// It has gone wrong.
    Failed,
}

/// The state of a thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Thread<'p> {
    /// Whether it runs.
    pub life: Life,
    /// What it has to do, the next last.
    pub todo: Vec<Task<'p>>,
    /// The operands of what it has to do.
    pub operands: Vec<Operand>,
    /// Its local variables, call by call.
    pub frames: Vec<Frame<'p>>,
    /// How many `atomic` blocks, or conditions that are evaluated at once, it is in.
    pub atomic: usize,
    /// How many statements marked `end:` it is in.
    pub marks: usize,
    /// Whether it was spawned, so that its body is a call.
    pub spawned: bool,
    /// The type of the result of the function that a spawned thread runs.
    pub result: Option<TypeId>,
    /// The records that it has made. Not part of the state's identity.
    pub made: usize,
}

/// A state of the program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct State<'p> {
    /// The shared variables and objects.
    pub globals: Vec<Data>,
    /// The records on the heap, with their types.
    pub heap: BTreeMap<(usize, usize), (TypeId, Data)>,
    /// The threads: those declared, then those spawned.
    pub threads: Vec<Thread<'p>>,
}
