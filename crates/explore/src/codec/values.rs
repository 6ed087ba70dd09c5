//! How values are written and read.

use std::sync::Arc;
use std::time::Duration;

use preempt_system::hb::NumberedAccess;
use preempt_system::thread::MAX_THREADS;
use preempt_system::{
    Access, Capacity, Choice, Failure, FailureKind, Finding, Fingerprint, Footprint, HbAction,
    Location, Schedule, Shrunk, Site, ThreadId, ThreadSet,
};
use smallvec::{Array, SmallVec};

use super::{Damaged, Reader, Save, Writer, save_fields};

impl Save for u64 {
    /// Seven bits in a byte, the lowest first; the highest bit says that there are more.
    fn save(&self, to: &mut Writer<'_>) {
        let (mut bytes, mut length, mut rest) = ([0; 10], 0, *self);
        loop {
            bytes[length] = rest as u8 & 0x7f;
            rest >>= 7;
            if rest == 0 {
                return to.bytes(&bytes[..=length]);
            }
            bytes[length] |= 0x80;
            length += 1;
        }
    }

    fn load(from: &mut Reader) -> Result<u64, Damaged> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let mut byte = [0];
            from.bytes(&mut byte)?;
            let bits = u64::from(byte[0] & 0x7f);
            if bits << shift >> shift != bits {
                return Err(Damaged);
            }
            value |= bits << shift;
            if byte[0] & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Damaged)
    }
}

impl Save for u32 {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&u64::from(*self));
    }

    fn load(from: &mut Reader) -> Result<u32, Damaged> {
        u32::try_from(from.get::<u64>()?).map_err(|_| Damaged)
    }
}

impl Save for u8 {
    fn save(&self, to: &mut Writer<'_>) {
        to.bytes(&[*self]);
    }

    fn load(from: &mut Reader) -> Result<u8, Damaged> {
        let mut byte = [0];
        from.bytes(&mut byte)?;
        Ok(byte[0])
    }
}

impl Save for usize {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&(*self as u64));
    }

    fn load(from: &mut Reader) -> Result<usize, Damaged> {
        usize::try_from(from.get::<u64>()?).map_err(|_| Damaged)
    }
}

impl Save for f64 {
    fn save(&self, to: &mut Writer<'_>) {
        to.word(self.to_bits());
    }

    fn load(from: &mut Reader) -> Result<f64, Damaged> {
        from.word().map(f64::from_bits)
    }
}

impl Save for bool {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&u8::from(*self));
    }

    fn load(from: &mut Reader) -> Result<bool, Damaged> {
        match from.get::<u8>()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Damaged),
        }
    }
}

impl Save for () {
    fn save(&self, _: &mut Writer<'_>) {}

    fn load(_: &mut Reader) -> Result<(), Damaged> {
        Ok(())
    }
}

impl<T: Save> Save for Option<T> {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.is_some());
        self.iter().for_each(|value| to.put(value));
    }

    fn load(from: &mut Reader) -> Result<Option<T>, Damaged> {
        from.get::<bool>()?.then(|| from.get()).transpose()
    }
}

impl<T: Save> Save for Vec<T> {
    fn save(&self, to: &mut Writer<'_>) {
        to.put_all(self.iter());
    }

    fn load(from: &mut Reader) -> Result<Vec<T>, Damaged> {
        (0..from.count()?).map(|_| from.get()).collect()
    }
}

impl<A: Save, B: Save> Save for (A, B) {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.0);
        to.put(&self.1);
    }

    fn load(from: &mut Reader) -> Result<(A, B), Damaged> {
        Ok((from.get()?, from.get()?))
    }
}

impl Save for String {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.len());
        to.bytes(self.as_bytes());
    }

    fn load(from: &mut Reader) -> Result<String, Damaged> {
        let mut bytes = vec![0; from.count()?];
        from.bytes(&mut bytes)?;
        String::from_utf8(bytes).map_err(|_| Damaged)
    }
}

impl Save for Duration {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&(self.as_nanos() as u64));
    }

    fn load(from: &mut Reader) -> Result<Duration, Damaged> {
        from.get().map(Duration::from_nanos)
    }
}

impl Save for ThreadId {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&(self.index() as u8));
    }

    fn load(from: &mut Reader) -> Result<ThreadId, Damaged> {
        let slot = usize::from(from.get::<u8>()?);
        if slot < MAX_THREADS { Ok(ThreadId::new(slot)) } else { Err(Damaged) }
    }
}

impl Save for ThreadSet {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.bits());
    }

    fn load(from: &mut Reader) -> Result<ThreadSet, Damaged> {
        from.get().map(ThreadSet::from_bits)
    }
}

impl Save for Location {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.0);
    }

    fn load(from: &mut Reader) -> Result<Location, Damaged> {
        from.get().map(Location)
    }
}

impl Save for Access {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&(*self == Access::Write));
    }

    fn load(from: &mut Reader) -> Result<Access, Damaged> {
        Ok(if from.get()? { Access::Write } else { Access::Read })
    }
}

impl Save for Footprint {
    fn save(&self, to: &mut Writer<'_>) {
        to.put_all(self.accesses().iter());
    }

    fn load(from: &mut Reader) -> Result<Footprint, Damaged> {
        Ok(from.get::<Vec<(Location, Access)>>()?.into_iter().collect())
    }
}

impl Save for Schedule {
    fn save(&self, to: &mut Writer<'_>) {
        to.put_all(self.steps().iter());
        to.put(&self.cycle().len());
    }

    fn load(from: &mut Reader) -> Result<Schedule, Damaged> {
        let (steps, cycle): (Vec<_>, usize) = (from.get()?, from.get()?);
        let fits = cycle <= steps.len();
        fits.then(|| Schedule::new(steps).with_cycle(cycle)).ok_or(Damaged)
    }
}

impl Save for Fingerprint {
    fn save(&self, to: &mut Writer<'_>) {
        to.bytes(&self.0.to_le_bytes());
    }

    fn load(from: &mut Reader) -> Result<Fingerprint, Damaged> {
        let mut bytes = [0; 16];
        from.bytes(&mut bytes)?;
        Ok(Fingerprint(u128::from_le_bytes(bytes)))
    }
}

impl Save for Arc<str> {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&String::from(&**self));
    }

    fn load(from: &mut Reader) -> Result<Arc<str>, Damaged> {
        from.get::<String>().map(Arc::from)
    }
}

impl<A: Array<Item: Save>> Save for SmallVec<A> {
    fn save(&self, to: &mut Writer<'_>) {
        to.put_all(self.iter());
    }

    fn load(from: &mut Reader) -> Result<Self, Damaged> {
        (0..from.count()?).map(|_| from.get()).collect()
    }
}

/// Their places in a checkpoint. A new one is added at the end.
const KINDS: [FailureKind; 10] = [
    FailureKind::Assertion,
    FailureKind::Invariant,
    FailureKind::Runtime,
    FailureKind::Deadlock,
    FailureKind::Race,
    FailureKind::Livelock,
    FailureKind::Panic,
    FailureKind::Leak,
    FailureKind::Nondeterminism,
    FailureKind::StepLimit,
];

impl Save for FailureKind {
    fn save(&self, to: &mut Writer<'_>) {
        let at =
            KINDS.iter().position(|kind| kind == self).expect("every kind of failure has a number");
        to.put(&(at as u8));
    }

    fn load(from: &mut Reader) -> Result<FailureKind, Damaged> {
        KINDS.get(usize::from(from.get::<u8>()?)).copied().ok_or(Damaged)
    }
}

impl Save for Capacity {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.part);
        to.word(self.value as u64);
    }

    fn load(from: &mut Reader) -> Result<Capacity, Damaged> {
        Ok(Capacity { part: from.get()?, value: from.word()? as i64 })
    }
}

save_fields!(HbAction { thread, time, alternative, accesses });
save_fields!(NumberedAccess { location, access, write });
save_fields!(Choice { thread, alternative });
save_fields!(Site { file, line, column });
save_fields!(Failure { kind, message, site });
save_fields!(Shrunk { steps, preemptions, executions, fewest });
save_fields!(Finding { failure, schedule, preemptions, shrunk });
