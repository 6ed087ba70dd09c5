//! Operations on synchronisation objects in packed states.

use preempt_system::object::{Action, Cells};
use preempt_system::{FailureKind, ThreadId};

use super::code::{Cell, Reg};
use super::layout::Field;
use super::record::Recorder;
use super::run::{Halt, Stepper};

/// The fields of an object in a packed state.
pub(super) struct Object<'s> {
    /// The object's fields, from its first one on.
    pub(super) fields: &'s [Field],
    pub(super) state: &'s mut [u64],
    /// A field that could not hold its new value.
    pub(super) misfit: Option<(usize, u64)>,
}

impl Cells for Object<'_> {
    #[inline(always)]
    fn get(&self, field: usize) -> u64 {
        self.fields[field].get(self.state) as u64
    }

    #[inline(always)]
    fn set(&mut self, field: usize, value: u64) {
        if self.fields[field].set(self.state, value as i64) {
            return;
        }
        // An empty place of a channel holds 0, or the lowest value of its element type if 0 is not
        // one.
        if value == 0 {
            return self.fields[field].clear(self.state);
        }
        self.misfit.get_or_insert((field, value));
    }
}

/// The fields of an object in a packed state that is only read.
pub(super) struct Fields<'s> {
    /// The object's fields, from its first one on.
    pub(super) fields: &'s [Field],
    pub(super) state: &'s [u64],
}

impl Cells for Fields<'_> {
    #[inline(always)]
    fn get(&self, field: usize) -> u64 {
        self.fields[field].get(self.state) as u64
    }

    fn set(&mut self, _: usize, _: u64) {
        unreachable!("an object that is only described is not changed");
    }
}

impl Stepper<'_> {
    /// Performs an operation on an object, blocking until it is enabled, and stores its reply.
    pub(super) fn object<R: Recorder>(
        &mut self,
        state: &mut [u64],
        thread: ThreadId,
        recorder: &mut R,
        (dst, arg, operation, addr): (Reg, Reg, u16, Reg),
        at: usize,
    ) -> Result<(), Halt> {
        let machine = self.machine;
        let operation = machine.code.operations[operation as usize];
        let cell = self.regs[addr as usize] as Cell;
        let arg = self.regs[arg as usize];
        let mut object =
            Object { fields: &machine.layout.fields[cell as usize..], state, misfit: None };
        if matches!(operation.action, Action::Send(_) | Action::TrySend(_)) {
            // The first place of a channel determines what it can hold.
            let class = machine.cells.cells[cell as usize + 1];
            let (lo, hi) = machine.cells.classes[class as usize].bounds;
            if !(lo..=hi).contains(&arg) {
                return Err(self.misfit(cell + 1, arg, at));
            }
        }
        let action = match operation.action {
            Action::Send(_) => Action::Send(arg),
            Action::TrySend(_) => Action::TrySend(arg),
            Action::NotifyOne { .. } => {
                let waiting = operation.kind.alternatives(&object, thread, operation.action);
                Action::NotifyOne { nth: self.choose(waiting, at)? }
            }
            action => action,
        };
        if !operation.kind.enabled(&object, thread, action) {
            recorder.waits(cell, operation.kind, action);
            return Err(Halt::Blocked { resting: false });
        }
        recorder.act(cell, operation.kind, action);
        let reply = operation.kind.apply(&mut object, thread, action);
        if let Some((field, value)) = object.misfit {
            return Err(self.misfit(cell + field as Cell, value as i64, at));
        }
        match reply {
            Ok(reply) => {
                recorder.replied(reply);
                self.regs[dst as usize] = reply;
                Ok(())
            }
            Err(misuse) => Err(self.fails(at, FailureKind::Runtime, misuse.to_string())),
        }
    }
}
