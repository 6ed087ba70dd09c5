//! Objects and operations in words.

use preempt_native_block::{ObjectKind, Op as OpKind};

use crate::names::{ENDS, Names, PROCESS};
use crate::state::Op;
use crate::symbols::Symbols;

/// The size of an object of the C library in bytes.
fn size(which: ObjectKind) -> u64 {
    match which {
        ObjectKind::Mutex => 40,
        ObjectKind::RwLock => 56,
        ObjectKind::Condvar => 48,
        ObjectKind::Semaphore | ObjectKind::Barrier => 32,
        ObjectKind::Once | ObjectKind::Futex | ObjectKind::Atomic => 4,
    }
}

/// The name of an object: that of the global variable that it is, or what it is and its number.
pub(crate) fn object(names: &Names, symbols: &Symbols, location: u32) -> String {
    match location {
        PROCESS => return "the process".to_owned(),
        ENDS => return "the ends of threads".to_owned(),
        _ => {}
    }
    let Some(name) = names.object(location) else {
        return names.thread_name(location as usize);
    };
    symbols.variable(name.address, size(name.which)).unwrap_or_else(|| {
        let same = |other: &u32| names.object(*other).is_some_and(|o| o.which == name.which);
        let nth = (ENDS + 1..location).filter(same).count() + 1;
        format!("{}#{nth}", name.noun())
    })
}

/// The word for an operation.
pub(crate) fn verb(kind: OpKind) -> &'static str {
    match kind {
        OpKind::Begin => "begins",
        OpKind::Finish => "ends",
        OpKind::Exit => "ends the process",
        OpKind::Join => "join",
        OpKind::Created => "created",
        OpKind::Yield => "yield",
        OpKind::Sleep => "sleep",
        OpKind::Lock => "lock",
        OpKind::TryLock => "trylock",
        OpKind::TimedLock => "timedlock",
        OpKind::Unlock => "unlock",
        OpKind::ReadLock => "rdlock",
        OpKind::TryReadLock => "tryrdlock",
        OpKind::TimedReadLock => "timedrdlock",
        OpKind::ReadUnlock | OpKind::WriteUnlock => "unlock",
        OpKind::WriteLock => "wrlock",
        OpKind::TryWriteLock => "trywrlock",
        OpKind::TimedWriteLock => "timedwrlock",
        OpKind::Wait => "wait",
        OpKind::Wake => "wake",
        OpKind::TimedWake => "wake or time out",
        OpKind::NotifyOne => "signal",
        OpKind::NotifyAll => "broadcast",
        OpKind::Acquire => "wait",
        OpKind::TryAcquire => "trywait",
        OpKind::TimedAcquire => "timedwait",
        OpKind::Release => "post",
        OpKind::Count => "getvalue",
        OpKind::Arrive => "arrive",
        OpKind::Leave => "leave",
        OpKind::EnterOnce => "enter",
        OpKind::LeaveOnce => "leave",
        OpKind::FutexWait => "wait",
        OpKind::FutexWoken => "wake",
        OpKind::TimedFutexWoken => "wake or time out",
        OpKind::FutexWakeOne => "wake one",
        OpKind::FutexWakeAll => "wake all",
        OpKind::Load => "load",
        OpKind::Update => "update",
    }
}

/// An operation: `m.lock()`, `join t1`, `yield`.
pub(crate) fn op(names: &Names, symbols: &Symbols, op: &Op) -> String {
    let verb = verb(op.kind);
    match op.kind {
        OpKind::Join | OpKind::Created => {
            format!("{verb} {}", names.thread_name(op.object as usize))
        }
        kind if kind.object_kind().is_some() => {
            format!("{}.{verb}()", object(names, symbols, op.object))
        }
        _ => verb.to_owned(),
    }
}
