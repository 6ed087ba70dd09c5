//! What a step touches, noted while it runs, or not noted at no cost.

use preempt_system::{
    Access, Action, Allocation, Footprint, Kind, Location, ObjectAccess, StepLog, ThreadId,
};

use super::Machine;
use super::code::Cell;

/// Takes note of accesses to shared state.
pub(super) trait Recorder {
    /// An access to a cell; cells that are not shared do not count.
    fn cell(&mut self, cell: Cell, access: Access);
    /// An action on an object, which is possible.
    fn act(&mut self, cell: Cell, kind: Kind, action: Action);
    /// An action on an object, for which the thread has to wait.
    fn waits(&mut self, cell: Cell, kind: Kind, action: Action);
    /// An action on the life of a thread.
    fn life(&mut self, thread: ThreadId, action: Action);
    /// A look at a slot without thread: until a step puts one there.
    fn vacant(&mut self, _thread: ThreadId) {}
    /// A record is asked for; the cell counts those of its type.
    fn take(&mut self, cell: Cell, _supply: Allocation) {
        self.cell(cell, Access::Write);
    }
    /// The step has failed: forgets accesses to cells that did not exist in the state `before` it.
    fn fails(&mut self, _before: &[u64]) {}
}

/// Takes no notes.
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

/// Writes accesses into a footprint.
pub(super) struct Accesses<'a> {
    /// Where they go.
    pub(super) footprint: &'a mut Footprint,
    /// Whose steps these are.
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
    /// A step that fails is undone, and the records that it made with it. Their cells are free
    /// again, and the next record that a thread makes gets them: it would seem to race with the
    /// step that failed. No other thread can have accessed the records that were undone, so no
    /// conflict is lost. All other accesses count: what the step has read decided that it fails,
    /// and what it has written was written when it failed.
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

/// Writes down what is done, for the sake of movers.
pub(super) struct Acts<'a> {
    /// Where it goes.
    pub(super) log: &'a mut StepLog,
    /// Whose steps these are.
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
    /// States are equal up to the names of records, so that it does not matter which was made
    /// first.
    fn take(&mut self, cell: Cell, supply: Allocation) {
        self.log.push(ObjectAccess::Take(Location(cell), supply));
    }
    /// An attempt that fails is no action, and the object itself says when it is possible.
    fn waits(&mut self, _: Cell, _: Kind, _: Action) {}
    /// A thread that starts with the program has no handle, so nobody waits for its end. That a
    /// thread has begun needs no note: nobody can run it before.
    fn life(&mut self, thread: ThreadId, action: Action) {
        let seen = self.machine.code.slots[thread.index()].spare && action != Action::Begin;
        if seen {
            let cell = self.machine.slots[thread.index()].cell;
            self.log.push(ObjectAccess::Act(Location(cell).into(), Kind::Thread, action));
        }
    }
}
