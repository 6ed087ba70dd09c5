//! The interface of the machine for searches.

use std::ops::Range;

use preempt_system::memory::MemoryLog;
use preempt_system::{
    Batch, BlockedCounts, Choice, Failure, Footprint, Location, LockMode, Partial, Place, Step,
    StepLog, ThreadId,
};

use super::Slot;
use super::code::SlotCode;
use super::record::{Accesses, Acts, Off};
use super::run::{Halt, Stepper};
use super::weak::MemoryRecorder;

impl preempt_system::Stepper for Stepper<'_> {
    fn initial(&mut self, state: &mut [u64]) -> Step {
        match self.write_initial(state) {
            Ok(()) => Step::Moved { alternatives: 1 },
            Err(Halt::Failed(failure)) => Step::Failed(failure),
            Err(Halt::Full(capacity)) => Step::Full(capacity),
            Err(Halt::Blocked { .. }) => unreachable!("nothing waits before the first step"),
        }
    }

    #[inline(always)]
    fn step(&mut self, state: &mut [u64], choice: Choice) -> Step {
        self.quick_step(state, choice)
    }

    fn step_with_effects(&mut self, state: &mut [u64], choice: Choice) -> Step {
        self.take_step_with_effects(state, choice, &mut Off)
    }

    fn has_failed(&self, state: &[u64]) -> bool {
        let machine = self.machine;
        let failed =
            |(slot, code): (&Slot, &SlotCode)| code.fails && slot.counter.get(state) == slot.wrong;
        machine.slots.iter().zip(&machine.code.slots).any(failed)
    }

    #[inline]
    fn step_all<const W: usize>(
        &mut self,
        state: &[u64],
        threads: Range<usize>,
        batch: &mut Batch<W>,
        idle: &mut BlockedCounts,
    ) -> Option<Partial> {
        self.quick_step_all(state, threads, batch, idle)
    }

    #[inline(always)]
    fn finish_step(
        &mut self,
        state: &[u64],
        next: &mut [u64],
        partial: Partial,
        alternative: u32,
    ) -> Step {
        self.quick_finish_step(state, next, partial, alternative)
    }

    fn alternatives(&self) -> u32 {
        self.alternatives
    }

    #[inline]
    fn invariant(&mut self, state: &[u64]) -> Result<(), Box<Failure>> {
        self.quick_invariants(state)
    }

    fn invariant_with_footprint(
        &mut self,
        state: &[u64],
        footprint: &mut Footprint,
    ) -> Result<(), Box<Failure>> {
        self.invariants(state, &mut Accesses { footprint, machine: self.machine })
    }

    fn step_with_footprint(
        &mut self,
        state: &mut [u64],
        choice: Choice,
        footprint: &mut Footprint,
    ) -> Step {
        self.take_step(state, choice, &mut Accesses { footprint, machine: self.machine })
    }

    fn step_with_log(&mut self, state: &mut [u64], choice: Choice, log: &mut StepLog) -> Step {
        self.take_step(state, choice, &mut Acts { log, machine: self.machine })
    }

    fn step_with_memory(&mut self, state: &mut [u64], choice: Choice, log: &mut MemoryLog) -> Step {
        log.clear();
        self.take_step(state, choice, &mut MemoryRecorder::new(self.machine, log))
    }

    fn atomic(&self, state: &[u64], location: Location) -> i64 {
        self.machine.layout.fields[location.0 as usize].get(state)
    }

    fn set_atomic(&self, state: &mut [u64], location: Location, value: i64) {
        let fits = self.machine.layout.fields[location.0 as usize].set(state, value);
        debug_assert!(fits, "a variable holds a value that it has had");
    }

    #[inline]
    fn holds(&self, state: &[u64], thread: ThreadId, lock: Place) -> Option<LockMode> {
        self.machine.holds(state, thread, lock)
    }

    fn held(
        &self,
        state: &[u64],
        thread: ThreadId,
        place: Place,
        held: &mut Vec<(Place, LockMode)>,
    ) {
        let locks = self.machine.locks_for(place);
        held.extend(
            locks.filter_map(|lock| Some((lock, self.machine.holds(state, thread, lock)?))),
        );
    }

    #[inline]
    fn is_private(&self, state: &[u64], place: Place) -> bool {
        self.machine.is_private(state, place)
    }

    #[inline]
    fn is_alone(&self, state: &[u64], thread: ThreadId) -> bool {
        self.machine.is_alone(state, thread)
    }
}
