//! Mirrors of [`std::sync::atomic`].
//!
//! Inside a check every operation is a scheduling point, and they are sequentially consistent
//! whatever their [`Ordering`]: a load gives the value of the last store. Outside a check they are
//! std's.

mod pointer;

use std::fmt;
use std::panic::Location as Site;

use preempt_replay::OpKind;
use preempt_system::ThreadId;
pub use std::sync::atomic::Ordering;

use crate::runtime::identity::Identity;
use crate::runtime::{inside, op, point, show, tell, with};

use Ordering::Relaxed;

/// How an operation accessed an atomic in the end, with the ordering that counts. A
/// compare-and-exchange decides that only when it finds the value.
#[derive(Clone, Copy, Debug)]
enum Committed {
    Load(Ordering),
    Store(Ordering),
    Update(Ordering),
}

/// Stops before an operation on an atomic. Returns its location.
#[inline]
fn stop(
    identity: &Identity,
    kind: OpKind,
    verb: &'static str,
    site: &'static Site<'static>,
    word: impl FnOnce() -> u64,
) -> u32 {
    let location = identity.locate_holding(None, "atomic", site, word);
    point(op(kind, location, verb, site));
    identity.is_there(location, "atomic", site);
    location
}

/// How an operation that writes, if it did not fail, accessed its atomic.
#[inline]
fn committed(kind: OpKind, wrote: bool) -> Committed {
    match kind {
        OpKind::Store(order) => Committed::Store(order),
        OpKind::Update(order) => Committed::Update(order),
        OpKind::CompareExchange { success, .. } if wrote => Committed::Update(success),
        OpKind::CompareExchange { failure, .. } => Committed::Load(failure),
        _ => unreachable!("an operation that may write an atomic is one of these"),
    }
}

/// Takes note of what an operation on an atomic came to. Returns whether somebody wants to know it
/// in words.
#[inline]
fn note(location: u32, changed: bool, value: u64, committed: Committed) -> bool {
    with(|runtime| {
        runtime.outcome.value = value;
        let (Committed::Load(order) | Committed::Store(order) | Committed::Update(order)) =
            committed;
        if order != Ordering::SeqCst && runtime.weak.is_none() {
            runtime.note_weak(order);
        }
        if runtime.needs.races {
            let thread = ThreadId::new(runtime.current);
            match committed {
                Committed::Load(order) => runtime.races.load(thread, location, order),
                Committed::Store(order) => runtime.races.store(thread, location, order),
                Committed::Update(order) => runtime.races.update(thread, location, order),
            }
        }
        if changed {
            (runtime.outcome.changed, runtime.outcome.progress) = (true, true);
            runtime.recording.change(location);
        }
        runtime.telling.is_some()
    })
}

/// What all atomics have, given a type, std's atomic, how a value becomes a word, and how it is
/// shown.
macro_rules! atomic {
    ($(#[$doc:meta])* $name:ident $([$param:ident])?, $value:ty, $std:ty, $word:expr, $shown:expr) => {
        $(#[$doc])*
        pub struct $name $(<$param>)? {
            inner: $std,
            identity: Identity,
        }

        impl $(<$param>)? $name $(<$param>)? {
            /// A new one with this value.
            #[track_caller]
            pub const fn new(value: $value) -> Self {
                Self { inner: <$std>::new(value), identity: Identity::new() }
            }

            /// The value, if this is the only reference.
            pub fn get_mut(&mut self) -> &mut $value {
                self.inner.get_mut()
            }

            /// The value, of one that nobody else has.
            pub fn into_inner(self) -> $value {
                self.inner.into_inner()
            }

            /// A pointer to the value. What is done through it is not seen by a check.
            pub const fn as_ptr(&self) -> *mut $value {
                self.inner.as_ptr()
            }

            /// The value, read without a scheduling point: only sound where nobody can change it.
            ///
            /// # Safety
            ///
            /// Nobody changes the value at the same time.
            pub unsafe fn unsync_load(&self) -> $value {
                self.inner.load(Relaxed)
            }

            /// The value.
            #[track_caller]
            #[inline]
            pub fn load(&self, order: Ordering) -> $value {
                if !self.identity.inside() {
                    return self.inner.load(order);
                }
                let word = || $word(self.inner.load(Relaxed));
                let location = stop(&self.identity, OpKind::Load(order), "load", Site::caller(), word);
                let value = self.inner.load(Relaxed);
                if note(location, false, $word(value), Committed::Load(order)) {
                    tell(|| format!("load() = {}", $shown(value)));
                    show(&self.identity, || format!("{value:?}"));
                }
                value
            }

            /// Replaces the value.
            #[track_caller]
            #[inline]
            pub fn store(&self, value: $value, order: Ordering) {
                if !self.identity.inside() {
                    return self.inner.store(value, order);
                }
                self.change("store", OpKind::Store(order), Site::caller(), |_| Some(value), |old| format!("store({}), was {}", $shown(value), $shown(old)));
            }

            /// Replaces the value and returns the old one.
            #[track_caller]
            #[inline]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                if !self.identity.inside() {
                    return self.inner.swap(value, order);
                }
                self.change("swap", OpKind::Update(order), Site::caller(), |_| Some(value), |old| format!("swap({}) = {}", $shown(value), $shown(old)))
            }

            /// Replaces the value if it is `current`.
            #[track_caller]
            #[inline]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                if !self.identity.inside() {
                    return self.inner.compare_exchange(current, new, success, failure);
                }
                let found = self.change(
                    "compare_exchange",
                    OpKind::CompareExchange { success, failure },
                    Site::caller(),
                    |old| (old == current).then_some(new),
                    |old| {
                        let worked = if old == current { "Ok" } else { "Err" };
                        format!("compare_exchange({}, {}) = {worked}({})", $shown(current), $shown(new), $shown(old))
                    },
                );
                if found == current { Ok(found) } else { Err(found) }
            }

            /// Replaces the value if it is `current`, and if the hardware feels like it: inside a
            /// check it fails for no reason only if
            /// [`Check::weak_cas_failures`](crate::Check::weak_cas_failures) was asked for.
            #[track_caller]
            #[inline]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                if !self.identity.inside() {
                    return self.inner.compare_exchange_weak(current, new, success, failure);
                }
                if !with(|runtime| runtime.options.weak_cas_failures) {
                    return self.compare_exchange(current, new, success, failure);
                }
                let word = || $word(self.inner.load(Relaxed));
                let kind = OpKind::WeakCompareExchange { success, failure };
                let location = stop(&self.identity, kind, "compare_exchange_weak", Site::caller(), word);
                let fails = with(|runtime| runtime.outcome.alternative == 1);
                let old = self.inner.load(Relaxed);
                let works = old == current && !fails;
                if works {
                    self.inner.store(new, Relaxed);
                }
                let committed = if works { Committed::Update(success) } else { Committed::Load(failure) };
                if note(location, works && old != new, $word(old), committed) {
                    tell(|| {
                        let worked = if works { "Ok" } else { "Err" };
                        format!("compare_exchange_weak({}, {}) = {worked}({})", $shown(current), $shown(new), $shown(old))
                    });
                    show(&self.identity, || format!("{:?}", if works { new } else { old }));
                }
                if works { Ok(old) } else { Err(old) }
            }

            /// Changes the value by a function, which may be called several times.
            #[track_caller]
            #[inline]
            pub fn fetch_update(
                &self,
                set_order: Ordering,
                fetch_order: Ordering,
                mut f: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                let mut old = self.load(fetch_order);
                while let Some(new) = f(old) {
                    match self.compare_exchange_weak(old, new, set_order, fetch_order) {
                        Ok(old) => return Ok(old),
                        Err(found) => old = found,
                    }
                }
                Err(old)
            }

            /// Changes the value by a function, which may be called several times; the same as
            /// [`fetch_update`](Self::fetch_update).
            #[track_caller]
            #[inline]
            pub fn try_update(
                &self,
                set_order: Ordering,
                fetch_order: Ordering,
                f: impl FnMut($value) -> Option<$value>,
            ) -> Result<$value, $value> {
                self.fetch_update(set_order, fetch_order, f)
            }

            /// Changes the value by a function, which may be called several times; returns the old
            /// value.
            #[track_caller]
            #[inline]
            pub fn update(&self, set_order: Ordering, fetch_order: Ordering, mut f: impl FnMut($value) -> $value) -> $value {
                match self.fetch_update(set_order, fetch_order, |value| Some(f(value))) {
                    Ok(old) | Err(old) => old,
                }
            }

            /// Uses the value of one that nobody else has: as loom's.
            pub fn with_mut<R>(&mut self, f: impl FnOnce(&mut $value) -> R) -> R {
                f(self.inner.get_mut())
            }

            /// Changes the value if `new` says so; returns the old one.
            #[inline]
            fn change(
                &self,
                verb: &'static str,
                kind: OpKind,
                site: &'static Site<'static>,
                new: impl FnOnce($value) -> Option<$value>,
                words: impl FnOnce($value) -> String,
            ) -> $value {
                let location = stop(&self.identity, kind, verb, site, || $word(self.inner.load(Relaxed)));
                let old = self.inner.load(Relaxed);
                let new = new(old);
                if let Some(new) = new {
                    self.inner.store(new, Relaxed);
                }
                let committed = committed(kind, new.is_some());
                if note(location, new.is_some_and(|new| new != old), $word(old), committed) {
                    tell(|| words(old));
                    show(&self.identity, || format!("{:?}", new.unwrap_or(old)));
                }
                old
            }
        }

        impl $(<$param>)? fmt::Debug for $name $(<$param>)? {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.inner.fmt(f)
            }
        }

        impl $(<$param>)? From<$value> for $name $(<$param>)? {
            #[track_caller]
            fn from(value: $value) -> Self {
                Self::new(value)
            }
        }
    };
}

/// The arithmetic of integers, or of truth values.
macro_rules! fetch {
    ($name:ident, $value:ty, $($(#[$doc:meta])* $method:ident($old:ident, $operand:ident) => $new:expr;)*) => {
        impl $name {
            $(
                $(#[$doc])*
                #[track_caller]
                #[inline]
                pub fn $method(&self, $operand: $value, order: Ordering) -> $value {
                    if !self.identity.inside() {
                        return self.inner.$method($operand, order);
                    }
                    let verb = stringify!($method);
                    let words = |old| format!("{verb}({:?}) = {old:?}", $operand);
                    self.change(verb, OpKind::Update(order), Site::caller(), |$old| Some($new), words)
                }
            )*
        }

        impl Default for $name {
            #[track_caller]
            fn default() -> Self {
                Self::new(<$value>::default())
            }
        }
    };
}

macro_rules! integer {
    ($($name:ident, $value:ident;)*) => {$(
        atomic!(
            #[doc = concat!("A mirror of [`std::sync::atomic::", stringify!($name), "`].")]
            $name, $value, std::sync::atomic::$name, |value: $value| value as u64, std::convert::identity
        );
        fetch!($name, $value,
            /// Adds, and returns the old value.
            fetch_add(old, operand) => old.wrapping_add(operand);
            /// Subtracts, and returns the old value.
            fetch_sub(old, operand) => old.wrapping_sub(operand);
            /// Bitwise and; returns the old value.
            fetch_and(old, operand) => old & operand;
            /// Bitwise not of and; returns the old value.
            fetch_nand(old, operand) => !(old & operand);
            /// Bitwise or; returns the old value.
            fetch_or(old, operand) => old | operand;
            /// Bitwise exclusive or; returns the old value.
            fetch_xor(old, operand) => old ^ operand;
            /// The greater of both; returns the old value.
            fetch_max(old, operand) => old.max(operand);
            /// The smaller of both; returns the old value.
            fetch_min(old, operand) => old.min(operand);
        );
    )*};
}

/// A mirror of [`std::sync::atomic::fence`]. Inside a check it orders plain accesses, as far as the
/// race detector is concerned.
#[inline]
pub fn fence(order: Ordering) {
    if !inside() {
        return std::sync::atomic::fence(order);
    }
    with(|runtime| {
        if runtime.needs.races {
            runtime.races.fence(ThreadId::new(runtime.current), order);
        }
    });
}

pub use std::sync::atomic::compiler_fence;

/// The old name of [`hint::spin_loop`](crate::hint::spin_loop).
#[track_caller]
pub fn spin_loop_hint() {
    crate::hint::spin_loop();
}

integer! {
    AtomicI8, i8;
    AtomicI16, i16;
    AtomicI32, i32;
    AtomicI64, i64;
    AtomicIsize, isize;
    AtomicU8, u8;
    AtomicU16, u16;
    AtomicU32, u32;
    AtomicU64, u64;
    AtomicUsize, usize;
}

atomic!(
    /// A mirror of [`std::sync::atomic::AtomicBool`].
    AtomicBool, bool, std::sync::atomic::AtomicBool, u64::from, std::convert::identity
);
fetch!(AtomicBool, bool,
    /// And; returns the old value.
    fetch_and(old, operand) => old & operand;
    /// Not of and; returns the old value.
    fetch_nand(old, operand) => !(old & operand);
    /// Or; returns the old value.
    fetch_or(old, operand) => old | operand;
    /// Exclusive or; returns the old value.
    fetch_xor(old, operand) => old ^ operand;
);

impl AtomicBool {
    /// Not; returns the old value.
    #[track_caller]
    #[inline]
    pub fn fetch_not(&self, order: Ordering) -> bool {
        self.fetch_xor(true, order)
    }
}

// An address says nothing in another execution: of a pointer it only counts whether it changed.
atomic!(
    /// A mirror of [`std::sync::atomic::AtomicPtr`].
    AtomicPtr[T], *mut T, std::sync::atomic::AtomicPtr<T>, |value: *mut T| u64::from(value.is_null()), pointer::shown
);
