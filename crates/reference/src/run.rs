//! Runs one thread from one place where it can rest to the next.
//!
//! A thread has a list of tasks and a stack of operands; nothing is translated beforehand. Tasks that are
//! accesses (or, with `steps statement`, that begin a statement) are *visible*: a thread rests before
//! them. A step takes the visible task on top and everything after it up to the next.

use preempt_lang::source::Span;
use preempt_lang::syntax::ast::{Block, Expr, StmtKind};

use crate::model::Model;
use crate::types::TypeId;
use crate::value::{At, Data, Frame, Life, Local, Operand, Place, Root, State, Task, Thread, Value};

/// The kinds of failures that a program can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A failed `assert`.
    Assertion,
    /// A violated invariant.
    Invariant,
    /// A run-time error.
    Runtime,
    /// A deadlock.
    Deadlock,
    /// A data race.
    Race,
}

/// An error of the program: its kind and its line (0 for a deadlock, which has none), and the message.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Failure {
    /// The kind.
    pub kind: Kind,
    /// The line.
    pub line: u32,
    /// The words of the report.
    pub message: String,
}

/// Why a thread did not come to its next rest.
#[derive(Clone, Debug)]
pub enum Stop {
    /// It has to wait.
    Blocked {
        /// It may wait forever.
        resting: bool,
    },
    /// It fails.
    Failed(Failure),
}

/// A location of shared state, as happens-before sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Location {
    /// A shared variable, a part of one, an object, or a field on the heap.
    Shared(Root, Vec<i64>),
    /// The life of a thread: spawned, ended.
    Thread(usize),
    /// The number of threads, which `spawn` changes.
    Threads,
    /// The records of this type, one more of which `new` makes.
    Records(TypeId),
}

/// An access: to what, whether it writes, and whether it is one to synchronisation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Access {
    /// What is accessed.
    pub location: Location,
    /// Whether it may change it.
    pub write: bool,
    /// An object, an `atomic var`, or a thread.
    pub sync: bool,
}

/// More tasks in one step than these: the step never ends.
const MOST_TASKS: u32 = 200_000;

/// The message for it.
const ENDLESS: &str = "this step never ends: a loop without access to shared state";

/// A thread while it runs.
pub struct Run<'m, 'p> {
    /// The program.
    pub model: &'m Model<'p>,
    /// The state, in which the place of `me` is empty.
    pub state: State<'p>,
    /// The thread that runs.
    pub me: Thread<'p>,
    /// Its number.
    pub number: usize,
    /// What was chosen, and from how many.
    pub choices: Vec<(usize, usize)>,
    /// How many choices were made so far.
    pub chosen: usize,
    /// What was accessed.
    pub accesses: Vec<Access>,
    /// Whether all rests are passed over: `init`.
    pub nonstop: bool,
    /// The failures of threads that were spawned and would fail before their first access.
    pub unborn: Vec<Failure>,
    tasks: u32,
}

impl<'m, 'p> Run<'m, 'p> {
    /// Takes a thread out of a state.
    pub fn of(model: &'m Model<'p>, state: &State<'p>, number: usize, choices: Vec<(usize, usize)>) -> Run<'m, 'p> {
        let mut state = state.clone();
        let me = std::mem::take(&mut state.threads[number]);
        Run { me, number, choices, ..Run::alone(model, state) }
    }

    /// Nobody runs in this state.
    pub fn alone(model: &'m Model<'p>, state: State<'p>) -> Run<'m, 'p> {
        Run {
            model,
            state,
            me: Thread::default(),
            number: usize::MAX,
            choices: Vec::new(),
            chosen: 0,
            accesses: Vec::new(),
            nonstop: false,
            unborn: Vec::new(),
            tasks: 0,
        }
    }

    /// Puts the thread back.
    pub fn finish(mut self) -> State<'p> {
        self.state.threads[self.number] = self.me;
        self.state
    }

    /// Takes one step: the task on top, then all up to the next visible one.
    pub fn step(&mut self) -> Result<(), Stop> {
        self.touch(Location::Thread(self.number), false, true);
        let first = self.me.todo.pop().expect("a running thread has something to do");
        self.perform(first)?;
        self.to_rest()
    }

    /// Goes on to the next visible task, or to the end.
    pub fn to_rest(&mut self) -> Result<(), Stop> {
        while let Some(task) = self.me.todo.last() {
            if self.is_visible(task) {
                return Ok(());
            }
            let task = self.me.todo.pop().expect("there was one");
            self.perform(task)?;
        }
        self.me.life = Life::Ended;
        if self.me.spawned {
            self.me.frames.clear();
            self.me.result = None;
        }
        self.touch(Location::Thread(self.number), true, true);
        Ok(())
    }

    /// Whether the thread rests before this task.
    fn is_visible(&self, task: &Task<'p>) -> bool {
        if matches!(task, Task::LetGo(_)) {
            return true;
        }
        if self.me.atomic > 0 || self.nonstop {
            return false;
        }
        if self.model.by_statement {
            return match task {
                Task::Exec(stmt) => !matches!(
                    stmt.0.kind,
                    StmtKind::Var { init: None, .. }
                        | StmtKind::Loop { .. }
                        | StmtKind::While { .. }
                        | StmtKind::Break
                        | StmtKind::Continue
                        | StmtKind::Return(None)
                        | StmtKind::End(_)
                        | StmtKind::Block(_)
                ),
                Task::ForNext(..) => true,
                Task::Again(stmt) => matches!(stmt.0.kind, StmtKind::While { .. }),
                _ => false,
            };
        }
        match task {
            Task::Read(_) | Task::ReadKept(_) => self.is_shared(0),
            Task::Write(_) => self.is_shared(1),
            Task::Modify(e) => self.is_shared(crate::eval::arguments(e.0).len() - 1),
            Task::Fault(_) | Task::Method(_) | Task::Spawn(_) | Task::New(_) | Task::Pick(_) | Task::Join(_) => true,
            Task::Exec(stmt) => matches!(
                stmt.0.kind,
                StmtKind::Await(_) | StmtKind::Assume(_) | StmtKind::Choose(_) | StmtKind::Yield | StmtKind::Atomic(_)
            ),
            _ => false,
        }
    }

    /// Whether the operand so many below the top is a shared place.
    fn is_shared(&self, below: usize) -> bool {
        let at = self.me.operands.len() - 1 - below;
        matches!(&self.me.operands[at], Operand::Place(place) if !matches!(place.root, Root::Local(..)))
    }

    fn perform(&mut self, task: Task<'p>) -> Result<(), Stop> {
        self.tasks += 1;
        if self.tasks > MOST_TASKS {
            return Err(Stop::Failed(Failure { kind: Kind::Runtime, line: 0, message: ENDLESS.to_owned() }));
        }
        match task {
            Task::Stmts(block, at) => {
                if let Some(stmt) = block.0.stmts.get(at) {
                    self.me.todo.push(Task::Stmts(block, at + 1));
                    self.me.todo.push(Task::Exec(At(stmt)));
                }
                Ok(())
            }
            Task::Exec(stmt) => self.exec(stmt.0),
            Task::PopScope => {
                self.frame().pop();
                Ok(())
            }
            Task::PopMark => {
                self.me.marks -= 1;
                Ok(())
            }
            Task::EndAtomic => {
                self.me.atomic -= 1;
                Ok(())
            }
            Task::Drop => {
                self.pop();
                Ok(())
            }
            Task::Declare(_)
            | Task::Branch(_)
            | Task::Again(_)
            | Task::ForBegin(_)
            | Task::ForNext(..)
            | Task::Return(_)
            | Task::Assert(_)
            | Task::Combine(_)
            | Task::Join(_) => self.go_on(task),
            _ => self.evaluate(task),
        }
    }

    /// Enters a block.
    pub fn block(&mut self, block: &'p Block) {
        self.frame().push(Vec::new());
        self.me.todo.push(Task::PopScope);
        self.me.todo.push(Task::Stmts(At(block), 0));
    }

    /// The variables of the innermost call.
    pub fn frame(&mut self) -> &mut Frame<'p> {
        self.me.frames.last_mut().expect("a thread that runs has a frame")
    }

    /// Declares a local variable in the innermost scope.
    pub fn bind(&mut self, local: Local<'p>) {
        self.frame().last_mut().expect("a frame has a scope").push(local);
    }

    /// Pops an operand.
    pub fn pop(&mut self) -> Operand {
        self.me.operands.pop().expect("the operand was pushed")
    }

    /// Pops a value.
    pub fn value(&mut self) -> Value {
        match self.pop() {
            Operand::Value(value) => value,
            Operand::Place(place) => panic!("a value is needed, not {place:?}"),
        }
    }

    /// Pops a place.
    pub fn place(&mut self) -> Place {
        match self.pop() {
            Operand::Place(place) => place,
            Operand::Value(value) => panic!("a place is needed, not {value:?}"),
        }
    }

    /// Pushes a value.
    pub fn push(&mut self, value: Value) {
        self.me.operands.push(Operand::Value(value));
    }

    /// A run-time error at this place.
    pub fn fail(&self, span: Span, message: impl Into<String>) -> Stop {
        Stop::Failed(Failure { kind: Kind::Runtime, line: self.model.line(span), message: message.into() })
    }

    /// One of so many outcomes, all of which are tried.
    pub fn choose(&mut self, of: usize) -> usize {
        if self.chosen == self.choices.len() {
            self.choices.push((0, of));
        }
        self.chosen += 1;
        self.choices[self.chosen - 1].0
    }

    /// The value of an expression, evaluated at once.
    pub fn at_once(&mut self, e: &'p Expr) -> Result<Value, Stop> {
        let todo = std::mem::replace(&mut self.me.todo, vec![Task::Eval(At(e))]);
        self.me.atomic += 1;
        while let Some(task) = self.me.todo.pop() {
            self.perform(task)?;
        }
        self.me.atomic -= 1;
        self.me.todo = todo;
        Ok(self.value())
    }

    /// Records an access.
    pub fn touch(&mut self, location: Location, write: bool, sync: bool) {
        self.accesses.push(Access { location, write, sync });
    }

    /// Records an access to a place.
    pub fn touch_place(&mut self, place: &Place, write: bool) {
        let sync = match place.root {
            Root::Local(..) | Root::Nowhere => return,
            Root::Global(number) => self.model.globals[number].atomic,
            Root::Heap(..) => false,
        };
        self.touch(Location::Shared(place.root, place.path.clone()), write, sync);
    }

    /// What is at a place, after its indices were checked.
    pub fn data(&mut self, place: &Place, span: Span) -> Result<&mut Data, Stop> {
        self.check(place, span)?;
        let mut data = match place.root {
            Root::Global(number) => &mut self.state.globals[number],
            Root::Heap(thread, number) => &mut self.state.heap.get_mut(&(thread, number)).expect("it was made").1,
            Root::Local(frame, scope, number) => &mut self.me.frames[frame][scope][number].data,
            Root::Nowhere => unreachable!("checked before"),
        };
        for &index in &place.path {
            data = match data {
                Data::Parts(parts) => &mut parts[index as usize],
                other => panic!("{other:?} has no parts"),
            };
        }
        Ok(data)
    }

    /// Whether a place exists.
    pub fn check(&self, place: &Place, span: Span) -> Result<(), Stop> {
        let mut data = match place.root {
            Root::Nowhere => return Err(self.fail(span, "a null pointer is used")),
            Root::Global(number) => &self.state.globals[number],
            Root::Heap(thread, number) => &self.state.heap[&(thread, number)].1,
            Root::Local(frame, scope, number) => &self.me.frames[frame][scope][number].data,
        };
        for &index in &place.path {
            let Data::Parts(parts) = data else { panic!("{data:?} has no parts") };
            let Some(part) = usize::try_from(index).ok().and_then(|index| parts.get(index)) else {
                let length = parts.len();
                let message = format!("index {index} is out of range: the length is {length}");
                return Err(self.fail(span, message));
            };
            data = part;
        }
        Ok(())
    }
}
