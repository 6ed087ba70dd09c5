//! The part of a checkpoint that belongs to an executable: the names of threads and objects, and
//! what the search has turned out to need. A checkpoint can be resumed only with the same
//! executable, arguments and input ([`Executable::identity`]).

use std::fs;
use std::io;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::Relaxed;

use preempt_explore::codec::{Damaged, Reader, Save, Writer};
use preempt_explore::{Resumable, program_hash};
use preempt_native_block::{ObjectKind, Slot};
use preempt_system::MAX_THREADS;

use crate::executable::Executable;
use crate::names::{Names, ObjectName};
use crate::program::{Assumption, Native};

impl Executable {
    /// A hash of what is run: the contents of the executable and of its standard input, its
    /// arguments, and the options on which the outcome of an execution depends. Libraries, other
    /// files and inherited environment variables are not part of it.
    pub fn identity(&self) -> io::Result<u64> {
        let input = self.stdin.as_ref().map(fs::read).transpose()?;
        let limits = (self.max_steps, self.max_delay, self.max_memory, self.max_output);
        let run = (self.harness, self.allocator, self.races, self.level, self.memory);
        let run = (run, &self.environment);
        let options = (self.expected_exit, self.same_output, run, limits);
        let options = format!("{options:?}");
        let mut parts =
            vec![fs::read(&self.path)?, input.unwrap_or_default(), options.into_bytes()];
        parts.extend(self.args.iter().map(|arg| arg.as_encoded_bytes().to_vec()));
        Ok(program_hash(parts))
    }
}

impl Save for ObjectName {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&(self.kind as u8));
        to.put(&self.address);
        to.put(&(self.parameter, self.life));
    }

    fn load(from: &mut Reader) -> Result<ObjectName, Damaged> {
        let kind = ObjectKind::of(from.get()?).ok_or(Damaged)?;
        let address = from.get()?;
        let (parameter, life) = from.get()?;
        Ok(ObjectName { kind, address, parameter, life })
    }
}

impl Resumable for Native {
    fn save(&self, to: &mut Writer<'_>) {
        let names = self.names();
        let slots: Vec<(u32, u32)> =
            names.slots.iter().map(|slot| (slot.creator, slot.nth)).collect();
        let assumed = self.assumed.lock().unwrap_or_else(PoisonError::into_inner);
        let assumed: Vec<(u8, u64)> = assumed.iter().map(|&(what, pc)| (what as u8, pc)).collect();
        to.put(&self.slots);
        to.put(&self.needs.process);
        to.put(&slots);
        to.put(&self.mixed);
        to.put(&self.opaque.iter().copied().collect::<Vec<u64>>());
        to.put(&names.objects().to_vec());
        to.put(&names.atomics());
        to.put(&assumed);
        to.put(&self.relies_on_max_delay.load(Relaxed));
        to.put(&self.children.load(Relaxed));
        to.put(&self.oversynchronised.load(Relaxed));
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), Damaged> {
        self.slots = from.get()?;
        self.needs.process = from.get()?;
        let slots: Vec<(u32, u32)> = from.get()?;
        let slots: Vec<Slot> =
            slots.into_iter().map(|(creator, nth)| Slot { creator, nth }).collect();
        let after_creators = slots.iter().zip(1..).all(|(slot, at)| slot.creator < at);
        if self.slots > MAX_THREADS || slots.len() >= self.slots || !after_creators {
            return Err(Damaged);
        }
        self.mixed = from.get()?;
        self.opaque = from.get::<Vec<u64>>()?.into_iter().collect();
        let mut names = Names::new(self.executable.harness, slots).with_mixed(self.mixed.clone());
        for object in from.get::<Vec<ObjectName>>()? {
            names.locate(object);
        }
        for (address, size) in from.get::<Vec<(u64, u8)>>()? {
            names.locate_atomic(address, size).map_err(|_| Damaged)?;
        }
        *self.names() = names;
        let assumed = from
            .get::<Vec<(u8, u64)>>()?
            .into_iter()
            .map(|(number, pc)| Ok((Assumption::of(number).ok_or(Damaged)?, pc)));
        *self.assumed.get_mut().unwrap_or_else(PoisonError::into_inner) =
            assumed.collect::<Result<_, Damaged>>()?;
        *self.relies_on_max_delay.get_mut() = from.get()?;
        *self.children.get_mut() = from.get()?;
        *self.oversynchronised.get_mut() = from.get()?;
        Ok(())
    }
}
