//! The initial state.

use preempt_system::ThreadId;

use super::Machine;
use super::cells::{kind, size};
use super::layout::Field;
use super::new_thread::NewThread;
use super::record::Off;
use super::run::{Halt, Stepper};
use crate::program::{Program, Type};

impl Stepper<'_> {
    /// Writes the initial state: initial values, the effects of the `init` block, and every thread
    /// at its first rest point. If `init` fails, no thread takes a step.
    pub(super) fn write_initial(&mut self, state: &mut [u64]) -> Result<(), Halt> {
        let machine = self.machine;
        let fields = &machine.layout.fields;
        let mut full = machine.initial_values();
        for pool in machine.cells.pools.values() {
            debug_assert_eq!(
                fields[pool.live as usize].get(&full),
                0,
                "the heap is empty at first"
            );
        }
        for (slot, code) in machine.slots.iter().zip(&machine.code.slots) {
            if code.spare {
                slot.counter.set(&mut full, slot.absent);
            }
        }
        self.alternative = 0;
        self.spawned.clear();
        let mut done = Ok(());
        if let Some(init) = machine.code.init {
            done = self
                .interpret(&mut full, None, init, &mut Off)
                .and_then(|()| self.start_spawned(&mut full, &mut Off));
        }
        state.copy_from_slice(&full[..state.len()]);
        if let Err(halt) = done {
            if let Halt::Failed(_) = halt {
                self.spawned.clear();
                (0..machine.slots.len())
                    .for_each(|slot| self.mark_failed(state, ThreadId::new(slot)));
            }
            return Err(halt);
        }
        for (slot, code) in machine.code.slots.iter().enumerate().filter(|(_, code)| !code.spare) {
            let (_, entry) = code.entries[0];
            self.run_to_first_rest(
                state,
                NewThread { slot, entry, start: code.starts[0] },
                &mut Off,
            )?;
        }
        self.settle(state)
    }
}

impl Machine {
    /// The state before the `init` block, with room for the block's variables: declared values, and
    /// zeros. No thread has started.
    pub(super) fn initial_values(&self) -> Vec<u64> {
        let fields = &self.layout.fields;
        let mut full = vec![0; self.layout.init_words];
        full[0] = 1;
        fields.iter().for_each(|field| field.clear(&mut full));
        for (global, &cell) in self.program.globals.iter().zip(&self.cells.globals) {
            let fields = &fields[cell as usize..];
            write_values(&self.program, &global.ty, &global.init, fields, &mut full);
        }
        full
    }
}

/// Writes the initial values of a variable of type `ty` into the fields from its first cell on.
fn write_values(program: &Program, ty: &Type, init: &[i64], fields: &[Field], state: &mut [u64]) {
    if !init.is_empty() {
        for (field, &value) in fields.iter().zip(init) {
            let fits = field.set(state, value);
            debug_assert!(fits, "initial values are in the first range of their class");
        }
        return;
    }
    match ty {
        Type::Object(object) => {
            for (field, slot) in fields[..kind(object).fields()].iter().enumerate() {
                // An empty place of a channel holds 0, or the lowest value of its element type if 0
                // is not one.
                slot.set(state, kind(object).initial(field) as i64);
            }
        }
        Type::Array(element, length) => {
            let stride = size(program, element) as usize;
            (0..*length)
                .for_each(|i| write_values(program, element, &[], &fields[i * stride..], state));
        }
        Type::Record(id) => {
            let mut at = 0;
            for (_, ty) in &program.records[*id].fields {
                write_values(program, ty, &[], &fields[at..], state);
                at += size(program, ty) as usize;
            }
        }
        _ => {}
    }
}
