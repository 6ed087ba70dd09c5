//! Runs one thread from one rest point to the next.
//!
//! A thread has a list of tasks and a stack of operands; nothing is compiled. Tasks that are
//! accesses (or, with `steps statement`, that begin a statement) are *visible*: a thread rests
//! before them. A step performs the visible task on top and everything after it up to the next
//! visible task.

use preempt_lang::source::Span;
use preempt_lang::syntax::ast::{Block, Expr, StmtKind};

use crate::model::Model;
use crate::types::TypeId;
use crate::value::{
    At, Data, Frame, Life, Local, Operand, Place, Root, State, Task, Thread, Value,
};

/// The kinds of errors in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// A failed `assert`.
    Assertion,
    /// A violated invariant.
    Invariant,
    /// A runtime error.
    Runtime,
    /// A deadlock.
    Deadlock,
    /// A data race.
    Race,
}

/// An error of the program.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Failure {
    /// The kind of error.
    pub kind: Kind,
    /// The line, or 0 for a deadlock, which has none.
    pub line: u32,
    /// The message of the report.
    pub message: String,
}

/// Why a thread did not reach its next rest point.
#[derive(Clone, Debug)]
pub enum Stop {
    /// The thread has to wait.
    Blocked {
        /// Whether it may wait forever.
        resting: bool,
    },
    /// The thread fails.
    Failed(Failure),
}

/// A location of shared state, for the happens-before relation.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Location {
    /// A shared variable, a part of one, an object, or a field on the heap.
    Shared(Root, Vec<i64>),
    /// The lifecycle of a thread: spawned, ended.
    Thread(usize),
    /// The number of threads, which `spawn` increments.
    Threads,
    /// The pool of records of this type, from which `new` allocates.
    Records(TypeId),
}

/// One access to shared state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Access {
    /// The location accessed.
    pub location: Location,
    /// Whether the access may change the location.
    pub write: bool,
    /// Whether it is synchronisation: an access to an object, an `atomic var`, or a thread.
    pub sync: bool,
}

/// A step with more tasks than this counts as endless.
const MOST_TASKS: u32 = 200_000;

/// The error message for an endless step.
const ENDLESS: &str = "this step never ends: a loop without access to shared state";

/// A thread in the middle of a step.
pub struct Run<'m, 'p> {
    /// The program that runs.
    pub model: &'m Model<'p>,
    /// The state, in which the slot of the running thread is empty.
    pub state: State<'p>,
    /// The running thread.
    pub me: Thread<'p>,
    /// The number of the running thread.
    pub number: usize,
    /// For each choice of the step, the alternative taken and the number of alternatives.
    pub choices: Vec<(usize, usize)>,
    /// The number of choices made so far.
    pub chosen: usize,
    /// The accesses so far.
    pub accesses: Vec<Access>,
    /// Whether the thread does not rest at all. Set for `init`.
    pub nonstop: bool,
    /// The failures of spawned threads that would fail before their first access.
    pub unborn: Vec<Failure>,
    /// The tasks performed so far.
    pub tasks: u32,
}

impl<'m, 'p> Run<'m, 'p> {
    /// Starts a step of thread `number` in `state`.
    pub fn of(
        model: &'m Model<'p>,
        state: &State<'p>,
        number: usize,
        choices: Vec<(usize, usize)>,
    ) -> Run<'m, 'p> {
        let mut state = state.clone();
        let me = std::mem::take(&mut state.threads[number]);
        Run { me, number, choices, ..Run::alone(model, state) }
    }

    /// Evaluates in a state in which no thread runs.
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

    /// Puts the thread back into its slot.
    pub fn finish(mut self) -> State<'p> {
        self.state.threads[self.number] = self.me;
        self.state
    }

    /// Takes one step: the task on top, then everything up to the next visible task.
    pub fn step(&mut self) -> Result<(), Stop> {
        self.touch(Location::Thread(self.number), false, true);
        let first = self.me.todo.pop().expect("a running thread has something to do");
        self.perform(first)?;
        self.to_rest()
    }

    /// Continues to the next visible task, or to the end.
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
        } else if let Some(body) = self.me.frames[0].get_mut(1) {
            // A local that was not declared is equal to one without an initial value. The thread
            // has declared the first ones of its body.
            let model = self.model;
            while body.last().is_some_and(|local| local.data == model.zero(local.ty)) {
                body.pop();
            }
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
            Task::Fault(_)
            | Task::Method(_)
            | Task::Spawn(_)
            | Task::New(_)
            | Task::Pick(_)
            | Task::Join(_) => true,
            Task::Exec(stmt) => matches!(
                stmt.0.kind,
                StmtKind::Await(_)
                    | StmtKind::Assume(_)
                    | StmtKind::Choose(_)
                    | StmtKind::Yield
                    | StmtKind::Atomic(_)
            ),
            _ => false,
        }
    }

    /// Whether the operand `below` places below the top of the stack is a shared place.
    fn is_shared(&self, below: usize) -> bool {
        let at = self.me.operands.len() - 1 - below;
        matches!(&self.me.operands[at], Operand::Place(place) if !matches!(place.root, Root::Local(..)))
    }

    fn perform(&mut self, task: Task<'p>) -> Result<(), Stop> {
        self.tasks += 1;
        if self.tasks > MOST_TASKS {
            return Err(Stop::Failed(Failure {
                kind: Kind::Runtime,
                line: 0,
                message: ENDLESS.to_owned(),
            }));
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

    /// A runtime error at this position.
    pub fn fail(&self, span: Span, message: impl Into<String>) -> Stop {
        Stop::Failed(Failure {
            kind: Kind::Runtime,
            line: self.model.line(span),
            message: message.into(),
        })
    }

    /// Chooses one of `of` outcomes. The search tries all of them.
    pub fn choose(&mut self, of: usize) -> usize {
        if self.chosen == self.choices.len() {
            self.choices.push((0, of));
        }
        self.chosen += 1;
        self.choices[self.chosen - 1].0
    }

    /// Evaluates an expression without resting.
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

    /// The data at a place, after checking its indices.
    pub fn data(&mut self, place: &Place, span: Span) -> Result<&mut Data, Stop> {
        self.check(place, span)?;
        let mut data = match place.root {
            Root::Global(number) => &mut self.state.globals[number],
            Root::Heap(thread, number) => {
                &mut self.state.heap.get_mut(&(thread, number)).expect("the record was allocated").1
            }
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

    /// Checks that a place exists.
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
