//! Calls of recursive functions, returns, and new threads.

use preempt_system::ThreadId;

use super::code::{Address, Reg};
use super::new_thread::NewThread;
use super::run::{Halt, Stepper};
use super::{Machine, Part};

impl Machine {
    /// Clears the locals of a thread and of all its calls.
    pub(super) fn clear_frames(&self, state: &mut [u64], thread: ThreadId) {
        let fields = &self.layout.fields;
        for frame in self.cells.slots[thread.index()].frames.values() {
            frame.cells.clone().for_each(|cell| fields[cell as usize].clear(state));
            if let Some((count, base)) = frame.stack {
                let saved = self.capacities.depth * frame.cells.len();
                fields[count as usize].clear(state);
                fields[base as usize..][..saved].iter().for_each(|field| field.clear(state));
            }
        }
    }
}

impl Stepper<'_> {
    /// Pushes the cells of a frame on its stack before the function is entered again.
    pub(super) fn save(&mut self, state: &mut [u64], frame: u32, at: usize) -> Result<(), Halt> {
        let machine = self.machine;
        let fields = &machine.layout.fields;
        let frame = &machine.code.frames[frame as usize].frame;
        let (count, base) = frame.stack.expect("a function that calls itself has a stack");
        let depth = fields[count as usize].get(state);
        if depth == machine.capacities.depth as i64 {
            return Err(self.full(Part::Depth, at));
        }
        fields[count as usize].set(state, depth + 1);
        let to = base as usize + depth as usize * frame.cells.len();
        for (from, to) in frame.cells.clone().zip(to..) {
            let value = fields[from as usize].get(state);
            fields[to].set(state, value);
            fields[from as usize].clear(state);
        }
        Ok(())
    }

    /// Drops a frame and returns where its caller continues.
    pub(super) fn unwind(&mut self, state: &mut [u64], frame: u32) -> Address {
        let machine = self.machine;
        let fields = &machine.layout.fields;
        let code = &machine.code.frames[frame as usize];
        let site = code.frame.selector.map_or(0, |cell| fields[cell as usize].get(state));
        match code.frame.stack {
            Some((count, base)) if fields[count as usize].get(state) > 0 => {
                let depth = fields[count as usize].get(state) - 1;
                fields[count as usize].set(state, depth);
                let from = base as usize + depth as usize * code.frame.cells.len();
                for (to, from) in code.frame.cells.clone().zip(from..) {
                    let value = fields[from].get(state);
                    fields[to as usize].set(state, value);
                    fields[from].clear(state);
                }
            }
            _ => code.frame.cells.clone().for_each(|cell| fields[cell as usize].clear(state)),
        }
        code.sites[site as usize]
    }

    /// Puts a new thread into a free slot, which it returns.
    pub(super) fn spawn(
        &mut self,
        state: &mut [u64],
        function: usize,
        args: Reg,
        at: usize,
    ) -> Result<usize, Halt> {
        let machine = self.machine;
        let free = (0..machine.slots.len()).find(|&slot| {
            machine.code.slots[slot].spare
                && machine.slots[slot].counter.get(state) == machine.slots[slot].absent
        });
        let Some(slot) = free else { return Err(self.full(Part::Threads, at)) };
        let frame = &machine.cells.slots[slot].frames[&function];
        for param in 0..machine.program.functions[function].params {
            let (cell, value) = (frame.locals[param], self.regs[args as usize + param]);
            if !machine.layout.fields[cell as usize].set(state, value) {
                return Err(self.misfit(cell, value, at));
            }
        }
        let code = &machine.code.slots[slot];
        let entry = code
            .entries
            .iter()
            .position(|&(f, _)| f == function)
            .expect("every spawned function has an entry");
        // Until it runs, the slot must not look empty to the next spawn of the same step.
        machine.slots[slot].counter.set(state, machine.slots[slot].ended);
        self.spawned.push(NewThread {
            slot,
            entry: code.entries[entry].1,
            start: code.starts[entry],
        });
        Ok(slot)
    }
}
