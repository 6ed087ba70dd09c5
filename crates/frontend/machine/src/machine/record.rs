//! Recorders of a step's accesses; without one, recording costs nothing.

use std::sync::atomic::Ordering;

use preempt_system::{
    Access, Action, Allocation, Footprint, Kind, Location, ObjectAccess, StepLog, ThreadId,
};

use super::Machine;
use super::code::{Address, Cell};

/// Records accesses to shared state.
pub(super) trait Recorder {
    /// An access to a cell; private cells are ignored.
    fn cell(&mut self, cell: Cell, access: Access);
    /// An action on an object, which is enabled.
    fn act(&mut self, cell: Cell, kind: Kind, action: Action);
    /// An action on an object, on which the thread blocks.
    fn waits(&mut self, cell: Cell, kind: Kind, action: Action);
    /// An action on the life cycle of a thread.
    fn life(&mut self, thread: ThreadId, action: Action);
    /// A read of an empty slot: a step that starts a thread there changes it.
    fn vacant(&mut self, _thread: ThreadId) {}
    /// The allocation of a record; the cell counts the records of its type.
    fn take(&mut self, cell: Cell, _supply: Allocation) {
        self.cell(cell, Access::Write);
    }
    /// The instruction at this address comes next.
    #[inline(always)]
    fn at(&mut self, _address: Address) {}
    /// The value with which the compare-and-exchange that comes next writes.
    #[inline(always)]
    fn expects(&mut self, _value: i64) {}
    /// A cell has got a value.
    #[inline(always)]
    fn wrote(&mut self, _cell: Cell, _value: i64) {}
    /// The reply of the last action.
    #[inline(always)]
    fn replied(&mut self, _reply: i64) {}
    /// A fence.
    #[inline(always)]
    fn fence(&mut self, _order: Ordering) {}
    /// The step has failed: removes accesses to cells that did not exist in the state `before` it.
    fn fails(&mut self, _before: &[u64]) {}
}

/// Records nothing.
pub(super) struct Off;

impl Recorder for Off {
    #[inline(always)]
    fn cell(&mut self, _: Cell, _: Access) {}
    #[inline(always)]
    fn act(&mut self, _: Cell, _: Kind, _: Action) {}
    #[inline(always)]
    fn waits(&mut self, _: Cell, _: Kind, _: Action) {}
    #[inline(always)]
    fn life(&mut self, _: ThreadId, _: Action) {}
}

/// Writes accesses to a footprint.
pub(super) struct Accesses<'a> {
    /// The footprint to which they are added.
    pub(super) footprint: &'a mut Footprint,
    /// The thread that takes the steps.
    pub(super) machine: &'a Machine,
}

impl Recorder for Accesses<'_> {
    fn cell(&mut self, cell: Cell, access: Access) {
        if cell < self.machine.cells.shared {
            self.footprint.add(Location(cell), access);
        }
    }
    fn act(&mut self, cell: Cell, kind: Kind, action: Action) {
        self.cell(cell, kind.access(action));
    }
    fn waits(&mut self, cell: Cell, kind: Kind, action: Action) {
        self.cell(cell, kind.waiting(action));
    }
    fn life(&mut self, thread: ThreadId, action: Action) {
        let cell = self.machine.slots[thread.index()].cell;
        self.footprint.add(Location(cell), Kind::Thread.access(action));
    }
    fn vacant(&mut self, thread: ThreadId) {
        self.footprint.add(Location(self.machine.slots[thread.index()].cell), Access::Read);
    }
    /// A failing step is undone, together with the records that it allocated. Their cells are free
    /// again, and the next record that a thread allocates gets them: it would seem to race with the
    /// step that failed. No other thread can have accessed the undone records, so no conflict is
    /// lost. All other accesses count: what the step has read decided that it fails, and what it
    /// has written was written when it failed.
    fn fails(&mut self, before: &[u64]) {
        let machine = self.machine;
        let exists = |Location(cell): Location| match machine.heap.record_of(cell) {
            Some((pool, record)) => {
                i64::from(record) < machine.layout.fields[pool.live as usize].get(before)
            }
            None => true,
        };
        if !machine.heap.is_empty() {
            self.footprint.retain(exists);
        }
    }
}

/// Logs the actions of a step, for reductions by movers.
pub(super) struct Acts<'a> {
    /// The log to which it is added.
    pub(super) log: &'a mut StepLog,
    /// The thread that takes the steps.
    pub(super) machine: &'a Machine,
}

impl Recorder for Acts<'_> {
    #[inline(always)]
    fn cell(&mut self, cell: Cell, access: Access) {
        if cell < self.machine.cells.shared {
            self.log.push(ObjectAccess::Access(self.machine.place(cell), access));
        }
    }
    fn act(&mut self, cell: Cell, kind: Kind, action: Action) {
        self.log.push(ObjectAccess::Act(self.machine.place(cell), kind, action));
    }
    /// States are equal up to the names of records, so the order of allocations does not matter.
    fn take(&mut self, cell: Cell, supply: Allocation) {
        self.log.push(ObjectAccess::Take(Location(cell), supply));
    }
    /// A failing attempt is not an action, and the object itself defines when it is enabled.
    fn waits(&mut self, _: Cell, _: Kind, _: Action) {}
    /// A thread that starts with the program has no handle, so no thread waits for its end. The
    /// start of a thread need not be logged: it cannot run before.
    fn life(&mut self, thread: ThreadId, action: Action) {
        let seen = self.machine.code.slots[thread.index()].spare && action != Action::Begin;
        if seen {
            let cell = self.machine.slots[thread.index()].cell;
            self.log.push(ObjectAccess::Act(Location(cell).into(), Kind::Thread, action));
        }
    }
}
