//! The encodings of values of std and of `preempt_system`.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut, Range};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use preempt_system::hb::NumberedAccess;
use preempt_system::thread::MAX_THREADS;
use preempt_system::{
    Access, Capacity, Choice, Failure, FailureKind, Finding, Fingerprint, Footprint, HbAction,
    Location, Schedule, Shrunk, Site, ThreadId, ThreadSet,
};
use smallvec::{Array, SmallVec};

use super::{Damaged, Reader, Save, SaveInPlace, Writer, save_as, save_fields};

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

impl Save for f64 {
    fn save(&self, to: &mut Writer<'_>) {
        to.word(self.to_bits());
    }

    fn load(from: &mut Reader) -> Result<f64, Damaged> {
        from.word().map(f64::from_bits)
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

macro_rules! save_tuple {
    ($($type:ident $at:tt),*) => {
        impl<$($type: Save),*> Save for ($($type,)*) {
            fn save(&self, to: &mut Writer<'_>) {
                $(to.put(&self.$at);)*
            }

            fn load(from: &mut Reader) -> Result<Self, Damaged> {
                Ok(($(from.get::<$type>()?,)*))
            }
        }
    };
}

save_tuple!(A 0, B 1);
save_tuple!(A 0, B 1, C 2);

/// Sequences. A vector is read element by element, and so grows as one does to which elements are
/// pushed: searches count the memory of some vectors by their capacity.
macro_rules! save_sequence {
    ([$($generics:tt)*] $type:ty) => {
        impl<$($generics)*> Save for $type {
            fn save(&self, to: &mut Writer<'_>) {
                to.put(&self.len());
                self.iter().for_each(|value| to.put(value));
            }

            fn load(from: &mut Reader) -> Result<Self, Damaged> {
                (0..from.count()?).map(|_| from.get()).collect()
            }
        }
    };
}

save_sequence!([T: Save] Vec<T>);
save_sequence!([T: Save] VecDeque<T>);
save_sequence!([T: Save] Box<[T]>);
save_sequence!([A: Array<Item: Save>] SmallVec<A>);

/// A vector that is read with the capacity that it had, for vectors that shrink and grow again, and
/// whose capacity is counted as memory.
#[derive(Debug)]
pub(crate) struct Reserved<T>(pub(crate) Vec<T>);

impl<T> Default for Reserved<T> {
    fn default() -> Self {
        Reserved(Vec::new())
    }
}

impl<T> Deref for Reserved<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T> DerefMut for Reserved<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T: Save> Save for Reserved<T> {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.capacity());
        to.put(&self.0);
    }

    fn load(from: &mut Reader) -> Result<Self, Damaged> {
        let (capacity, values): (usize, Vec<T>) = from.get()?;
        let mut reserved = Vec::new();
        reserved.try_reserve_exact(capacity.max(values.len())).map_err(|_| Damaged)?;
        reserved.extend(values);
        Ok(Reserved(reserved))
    }
}

save_as!(u32 as u64, |&value| value.into(), |form| form.try_into().ok());
save_as!(usize as u64, |&value| value as u64, |form| form.try_into().ok());
save_as!(i64 as u64, |&value| value as u64, |form| Some(form as i64));
save_as!(bool as u8, |&value| value.into(), |form| [false, true].get(form as usize).copied());
save_as!(Arc<str> as String, |text| String::from(&**text), |form| Some(form.into()));
save_as!(Duration as u64, |value| value.as_nanos() as u64, |form| Some(Duration::from_nanos(form)));
save_as!(Range<usize> as (usize, usize), |range| (range.start, range.end), |(start, end)| {
    Some(start..end)
});
save_as!(ThreadId as u8, |thread| thread.index() as u8, |slot| {
    Some(slot.into()).filter(|&slot| slot < MAX_THREADS).map(ThreadId::new)
});
save_as!(
    Schedule as (Vec<Choice>, usize),
    |schedule| (schedule.steps().to_vec(), schedule.cycle().len()),
    |(steps, cycle)| (cycle <= steps.len()).then(|| Schedule::new(steps).with_cycle(cycle))
);
save_as!(ThreadSet as u64, |set| set.bits(), |bits| Some(ThreadSet::from_bits(bits)));
save_as!(Access as bool, |&access| access == Access::Write, |is_write| {
    Some(if is_write { Access::Write } else { Access::Read })
});
save_as!(Footprint as Vec<(Location, Access)>, |footprint| footprint.accesses().to_vec(), |form| {
    Some(form.into_iter().collect())
});
save_as!(
    FailureKind as u8,
    |kind| KINDS.iter().position(|other| other == kind).expect("every kind has a number") as u8,
    |number| KINDS.get(usize::from(number)).copied()
);

/// Each kind is written as its position. A new kind is added at the end.
const KINDS: [FailureKind; 11] = [
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
    FailureKind::Linearizability,
];

save_fields!(Capacity { part, value });
save_fields!(Location { 0 });
save_fields!(HbAction { thread, time, alternative, accesses });
save_fields!(NumberedAccess { location, access, write });
save_fields!(Choice { thread, alternative });
save_fields!(Site { file, line, column });
save_fields!(Failure { kind, message, site });
save_fields!(Shrunk { steps, preemptions, executions, fewest });
save_fields!(Finding { failure, schedule, preemptions, shrunk });

/// Shared values: what is inside an atomic or a lock, by value and in place. All workers have
/// paused when they are written and read, so the order of memory accesses does not matter.
macro_rules! save_shared {
    ([$($generics:tt)*] $type:ty, |$shared:ident| $get:expr, |$value:ident| $set:expr) => {
        impl<$($generics)*> Save for $type {
            fn save(&self, to: &mut Writer<'_>) {
                let $shared = self;
                to.put(&$get);
            }

            fn load(from: &mut Reader) -> Result<Self, Damaged> {
                Ok(Self::new(from.get()?))
            }
        }

        impl<$($generics)*> SaveInPlace for $type {
            fn save_contents(&self, to: &mut Writer<'_>) {
                self.save(to);
            }

            fn load_contents(&self, from: &mut Reader) -> Result<(), Damaged> {
                let ($shared, $value) = (self, from.get()?);
                $set;
                Ok(())
            }
        }
    };
}

save_shared!([] AtomicU32, |shared| shared.load(Relaxed), |value| shared.store(value, Relaxed));
save_shared!([] AtomicU64, |shared| shared.load(Relaxed), |value| shared.store(value, Relaxed));
save_shared!([] AtomicUsize, |shared| shared.load(Relaxed), |value| shared.store(value, Relaxed));
save_shared!(
    [T: Save] Mutex<T>,
    |shared| *shared.lock().expect("mutex poisoned"),
    |value| *shared.lock().expect("mutex poisoned") = value
);
save_shared!(
    [T: Save] RwLock<T>,
    |shared| *shared.read().expect("lock poisoned"),
    |value| *shared.write().expect("lock poisoned") = value
);
