//! Texts for objects, operations, values and durations.

use preempt_native_block::{Call, ObjectKind, Op as OpKind};

use crate::names::{DESCRIPTORS, ENDS, FIRST_OBJECT, Names, PROCESS};
use crate::state::Op;
use crate::symbols::Symbols;

/// The size in bytes of an object of the C library.
fn size(kind: ObjectKind) -> u64 {
    match kind {
        ObjectKind::Mutex => 40,
        ObjectKind::RwLock => 56,
        ObjectKind::Condvar => 48,
        ObjectKind::Semaphore | ObjectKind::Barrier => 32,
        ObjectKind::Once | ObjectKind::Futex => 4,
        // Sizes of atomic variables differ: see `Names::atomic_size`.
        ObjectKind::Atomic => 1,
    }
}

/// The name of an object: that of its global variable, or the noun for its kind and a number.
pub(crate) fn object(names: &Names, symbols: &Symbols, location: u32) -> String {
    match location {
        PROCESS => return "the process".to_owned(),
        ENDS => return "the ends of threads".to_owned(),
        DESCRIPTORS => return "descriptors".to_owned(),
        _ => {}
    }
    let Some(name) = names.object(location) else {
        return names.thread_name(location as usize);
    };
    let size = match name.kind {
        ObjectKind::Atomic => names.atomic_size(name.address).unwrap_or(1).into(),
        kind => size(kind),
    };
    symbols.variable(name.address, size).unwrap_or_else(|| {
        let same = |other: &u32| names.object(*other).is_some_and(|o| o.kind == name.kind);
        let nth = (FIRST_OBJECT..location).filter(same).count() + 1;
        format!("{}#{nth}", name.noun())
    })
}

/// The verb for an operation.
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
        OpKind::TimedWake => "wake",
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
        OpKind::TimedFutexWoken => "wake",
        OpKind::FutexWakeOne => "wake one",
        OpKind::FutexWakeAll => "wake all",
        OpKind::Load => "load",
        OpKind::Store => "store",
        OpKind::Exchange => "exchange",
        OpKind::FetchAdd => "fetch_add",
        OpKind::FetchSub => "fetch_sub",
        OpKind::FetchAnd => "fetch_and",
        OpKind::FetchOr => "fetch_or",
        OpKind::FetchXor => "fetch_xor",
        OpKind::FetchNand => "fetch_nand",
        OpKind::CompareExchange => "compare_exchange",
        OpKind::Io | OpKind::IoWait => "input or output",
        OpKind::AfterWrite => "continues",
        OpKind::EnterWait => "wait",
        OpKind::EnterWrite => "change",
        OpKind::Enter => "calls the standard library",
        OpKind::Relock => "lock",
    }
}

/// The name of a call on descriptors.
fn call(call: Call) -> &'static str {
    match call {
        Call::Read => "read",
        Call::Write => "write",
        Call::Receive => "recv",
        Call::Send => "send",
        Call::Accept => "accept",
        Call::Connect => "connect",
        Call::Close => "close",
        Call::Shutdown => "shutdown",
        Call::Poll => "poll",
        Call::Select => "select",
        Call::EpollWait => "epoll_wait",
        Call::EpollControl => "epoll_ctl",
        Call::Create => "a new descriptor",
        Call::Bind => "bind",
        Call::Listen => "listen",
    }
}

/// A virtual time: `5 ms`, `1.5 s`, `1 h`.
pub(crate) fn duration(nanoseconds: u64) -> String {
    const UNITS: [(u64, &str); 5] = [
        (3_600_000_000_000, "h"),
        (1_000_000_000, "s"),
        (1_000_000, "ms"),
        (1_000, "µs"),
        (1, "ns"),
    ];
    // Four digits: reading a clock takes a microsecond of virtual time, which would be noise.
    let resolution = 10_u64.pow(nanoseconds.checked_ilog10().unwrap_or(0).saturating_sub(3));
    let nanoseconds = nanoseconds.saturating_add(resolution / 2) / resolution * resolution;
    let fits = |(size, _): &&(u64, &str)| nanoseconds >= *size;
    let (size, unit) = UNITS.iter().find(fits).unwrap_or(&UNITS[4]);
    let thousandths = (u128::from(nanoseconds) * 1_000 / u128::from(*size)) as u64;
    let decimals = format!("{:03}", thousandths % 1_000);
    match decimals.trim_end_matches('0') {
        "" => format!("{} {unit}", thousandths / 1_000),
        decimals => format!("{}.{decimals} {unit}", thousandths / 1_000),
    }
}

/// An operation: `m.lock()`, `join t1`, `sleep for 5 ms`.
pub(crate) fn op(names: &Names, symbols: &Symbols, op: &Op) -> String {
    let mut text = untimed(names, symbols, op);
    if op.is_timed() {
        let limit = duration(op.deadline.saturating_sub(op.time));
        let preposition = if op.kind == OpKind::Sleep { "for" } else { "for at most" };
        text += &format!(" {preposition} {limit}");
    }
    text
}

/// An operation without its time limit.
fn untimed(names: &Names, symbols: &Symbols, op: &Op) -> String {
    let verb = verb(op.kind);
    match op.kind {
        OpKind::Join | OpKind::Created => {
            format!("{verb} {}", names.thread_name(op.object as usize))
        }
        OpKind::Io | OpKind::IoWait => {
            let call = Call::of(op.detail.number).map_or("io", call);
            match op.detail.operands as u32 as i32 {
                ..0 => call.to_owned(),
                fd => format!("{call}({fd})"),
            }
        }
        OpKind::AfterWrite => {
            format!("{verb} after writing {}", object(names, symbols, op.object))
        }
        // The source line shows the call. Of the objects, only the address of a word is known.
        OpKind::EnterWait | OpKind::EnterWrite | OpKind::Enter => {
            self::verb(OpKind::Enter).to_owned()
        }
        OpKind::Relock => "locks the mutex again".to_owned(),
        kind if kind.object_kind().is_some() => {
            format!("{}.{verb}()", object(names, symbols, op.object))
        }
        _ => verb.to_owned(),
    }
}

/// The value of an atomic variable of `size` bytes. Types are not known: values that look like
/// small negative numbers are shown as such, and large ones, such as addresses, in hexadecimal.
pub(crate) fn value(value: u128, size: u8) -> String {
    let bits = 8 * u32::from(size).clamp(1, 16);
    let signed = (value << (128 - bits)) as i128 >> (128 - bits);
    match signed {
        -0x1_0000..=-1 if size >= 4 => signed.to_string(),
        _ if value <= 0xffff_ffff => value.to_string(),
        _ => format!("{value:#x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_shown_as_what_they_probably_are() {
        assert_eq!(value(0, 1), "0");
        assert_eq!(value(255, 1), "255");
        assert_eq!(value(255, 4), "255");
        assert_eq!(value(0xffff_fffe, 4), "-2");
        assert_eq!(value(0x7fff_ffff, 4), "2147483647");
        assert_eq!(value(0x7fff_f7d0_0010, 8), "0x7ffff7d00010");
        assert_eq!(value(u128::MAX, 16), "-1");
    }

    #[test]
    fn durations_have_four_digits_and_a_unit() {
        let all = [0, 1, 999, 1_500, 1_000_000, 4_999_996, 3_599_999_998_997];
        let words = all.map(duration);
        let expected = ["0 ns", "1 ns", "999 ns", "1.5 µs", "1 ms", "5 ms", "1 h"];
        assert_eq!(words, expected);
    }
}
