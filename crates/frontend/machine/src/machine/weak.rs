//! Weak memory: what a step does to it, and which programs a search over execution graphs explores.
//!
//! The machine itself has one value per variable. Whoever executes a program with weak memory
//! writes the value that an access is to read into the state before the step; see
//! [`preempt_system::memory::MemoryLog`]. The checker makes sure that a step has at most one access
//! to an atomic variable: steps are accesses, and nothing reads several variables in one step.

use std::sync::atomic::Ordering;

use preempt_system::memory::{MemoryAccess, MemoryEvent, MemoryLog};
use preempt_system::{Access, Action, GraphObstacle, Kind, Location, ThreadId};

use super::Machine;
use super::code::{Address, Cell, Instr};
use super::record::Recorder;
use crate::program::{Block, ExprKind, FunctionId, Method, Program, Stmt, StmtKind};
use crate::source::Span;
use crate::walk;

/// Writes what a step does to a [`MemoryLog`].
pub(super) struct MemoryRecorder<'a> {
    machine: &'a Machine,
    log: &'a mut MemoryLog,
    /// The address of the current instruction.
    at: Address,
    /// The value with which the current compare-and-exchange writes.
    expected: i64,
}

impl<'a> MemoryRecorder<'a> {
    pub(super) fn new(machine: &'a Machine, log: &'a mut MemoryLog) -> MemoryRecorder<'a> {
        MemoryRecorder { machine, log, at: 0, expected: 0 }
    }

    fn atomic_access(&self, access: Access) -> MemoryAccess {
        let code = &self.machine.code;
        let default = (Ordering::SeqCst, Ordering::SeqCst);
        let (success, failure) = code.orders.get(&self.at).copied().unwrap_or(default);
        match (code.instrs[self.at as usize], access) {
            (Instr::Swap { .. } | Instr::Fetch { .. }, _) => MemoryAccess::Update(success),
            (Instr::CompareAndSwap { .. } | Instr::CompareExchange { .. }, _) => {
                MemoryAccess::Exchange { expected: self.expected as u64, success, failure }
            }
            (_, Access::Read) => MemoryAccess::Load(success),
            (_, Access::Write) => MemoryAccess::Store(success),
        }
    }

    fn is_spare(&self, thread: ThreadId) -> bool {
        self.machine.code.slots[thread.index()].spare
    }
}

impl Recorder for MemoryRecorder<'_> {
    fn at(&mut self, address: Address) {
        self.at = address;
    }

    fn expects(&mut self, value: i64) {
        self.expected = value;
    }

    fn cell(&mut self, cell: Cell, access: Access) {
        let location = Location(cell);
        if cell >= self.machine.cells.shared {
            return;
        }
        if self.machine.atomics[cell as usize] {
            let access = self.atomic_access(access);
            debug_assert_eq!(self.log.event, None, "a step has one event in the memory");
            self.log.event = Some(MemoryEvent::Access { location, access, written: None });
            return;
        }
        if self.machine.data[cell as usize] {
            self.log.data.push((location, access));
        }
        self.log.footprint.add(location, access);
    }

    fn wrote(&mut self, cell: Cell, value: i64) {
        if let Some(MemoryEvent::Access { location, written, .. }) = &mut self.log.event
            && location.0 == cell
        {
            *written = Some(value);
        }
    }

    fn fence(&mut self, order: Ordering) {
        self.log.event = Some(MemoryEvent::Fence(order));
    }

    fn act(&mut self, cell: Cell, kind: Kind, action: Action) {
        self.log.footprint.add(Location(cell), kind.access(action));
        self.log.actions.push((Location(cell), action, 0));
    }

    fn replied(&mut self, reply: i64) {
        if let Some((_, _, last)) = self.log.actions.last_mut() {
            *last = reply;
        }
    }

    fn waits(&mut self, cell: Cell, kind: Kind, action: Action) {
        self.log.footprint.add(Location(cell), kind.access(action));
    }

    /// A thread that starts with the program has no handle, so its end concerns no other thread.
    /// The start of a thread need not be logged by the thread itself: it cannot run before.
    fn life(&mut self, thread: ThreadId, action: Action) {
        let location = Location(self.machine.slots[thread.index()].cell);
        match action {
            Action::Start => self.log.started.push(thread),
            Action::Join => self.log.actions.push((location, action, 0)),
            Action::Finish if self.is_spare(thread) => {
                self.log.actions.push((location, action, 0));
            }
            _ => return,
        }
        self.log.footprint.add(location, Kind::Thread.access(action));
    }
}

/// The first construct that a search over execution graphs does not handle. A step of such a search
/// must not depend on anything but the graph: the slot of a spawned thread depends on the order of
/// spawns, so only one thread may spawn; a loop may repeat without an end.
pub(super) fn graph_obstacle(program: &Program) -> Option<GraphObstacle> {
    let found = program
        .functions
        .iter()
        .enumerate()
        .find_map(|(id, function)| in_block(&function.body).or_else(|| in_exprs(program, id)));
    let (what, span) = found?;
    Some(GraphObstacle { what, site: Some(program.source.site(span)) })
}

fn in_block(block: &Block) -> Option<(&'static str, Span)> {
    block.iter().find_map(in_stmt)
}

fn in_stmt(stmt: &Stmt) -> Option<(&'static str, Span)> {
    match &stmt.kind {
        StmtKind::While { .. } | StmtKind::Loop(_) => {
            Some(("a loop that may repeat forever", stmt.span))
        }
        StmtKind::If { then, otherwise, .. } => in_block(then).or_else(|| in_block(otherwise)),
        StmtKind::For { body, .. } | StmtKind::Block(body) | StmtKind::Atomic(body) => {
            in_block(body)
        }
        StmtKind::Match { arms, otherwise, .. } => {
            let mut blocks = arms.iter().map(|(_, block)| block).chain(otherwise);
            blocks.find_map(in_block)
        }
        StmtKind::Choose(blocks) => blocks.iter().find_map(in_block),
        _ => None,
    }
}

fn in_exprs(program: &Program, function: FunctionId) -> Option<(&'static str, Span)> {
    let mut found = None;
    let is_main = spawner(program) == Some(function) || program.init == Some(function);
    walk::exprs(&program.functions[function].body, &mut |expr| {
        let what = match expr.kind {
            ExprKind::CondWait { .. } => "a condition variable",
            ExprKind::Method { method, .. } => match object_obstacle(method) {
                Some(what) => what,
                None => return,
            },
            ExprKind::New(..) => "a record on the heap",
            ExprKind::Spawn(..) if !is_main => "a thread that another thread than the first spawns",
            _ => return,
        };
        found = found.or(Some((what, expr.span)));
    });
    found
}

/// The object of a method, if a search over execution graphs does not handle it. A thread that
/// waits on a condition variable waits for its mutex too, but its footprint has only the object for
/// which it waits now.
fn object_obstacle(method: Method) -> Option<&'static str> {
    match method {
        Method::NotifyOne | Method::NotifyAll => Some("a condition variable"),
        _ => None,
    }
}

/// The body of the first thread, if it runs once: the only one that may spawn.
fn spawner(program: &Program) -> Option<FunctionId> {
    let first = program.threads.first()?;
    let mut same = program.threads.iter().filter(|thread| thread.function == first.function);
    (first.params.is_empty() && same.next().is_some() && same.next().is_none())
        .then_some(first.function)
}
