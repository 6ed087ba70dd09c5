//! Mirrors of [`std::sync::atomic`].
//!
//! Inside a check every operation is a scheduling point, and the values are in the
//! [memory](preempt_system::memory) of the execution. [`Check::memory`](crate::Check::memory) says
//! which stores a load may read. Outside a check the types are std's.

mod access;
mod ordering;
mod pointer;

use std::convert::identity;
use std::fmt;
use std::panic::Location as Site;

use preempt_replay::{NO_OBJECT, OpKind};
use preempt_system::ThreadId;
use preempt_system::memory::Memory;
use preempt_system::memory::explain::{Unseen, rust_name};
pub use std::sync::atomic::Ordering;

use self::access::{Done, Stale, are_plain, commit, exclusive, expect, stop};
use crate::runtime::identity::Identity;
use crate::runtime::orderings::OrderingRole;
use crate::runtime::{describe, inside, is_programs_own, op, point, show, with};

use Ordering::Relaxed;

/// Defines an atomic type and the methods that all atomics have. Given are the value type, std's
/// atomic, and functions from a value to bits and back, to a word that can be compared between
/// executions, and to the text in a report.
macro_rules! atomic {
    (
        $(#[$doc:meta])* $name:ident $([$param:ident])?, $value:ty, $std:ty,
        $bits:expr, $of_bits:expr, $word:expr, $shown:expr
    ) => {
        $(#[$doc])*
        pub struct $name $(<$param>)? {
            /// A copy of the newest value: see [`access`].
            inner: $std,
            identity: Identity,
        }

        impl $(<$param>)? $name $(<$param>)? {
            /// Creates an atomic with this value.
            #[track_caller]
            pub const fn new(value: $value) -> Self {
                Self { inner: <$std>::new(value), identity: Identity::new() }
            }

            /// The value, through the only reference.
            #[track_caller]
            pub fn get_mut(&mut self) -> &mut $value {
                exclusive(&self.identity, Site::caller());
                self.inner.get_mut()
            }

            /// The value.
            #[track_caller]
            pub fn into_inner(self) -> $value {
                exclusive(&self.identity, Site::caller());
                self.inner.into_inner()
            }

            /// A pointer to the value. A check does not observe accesses through it.
            pub const fn as_ptr(&self) -> *mut $value {
                self.inner.as_ptr()
            }

            /// The value, read without a scheduling point.
            ///
            /// # Safety
            ///
            /// No other thread writes the value at the same time.
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
                ordering::check_load(order);
                let kind = OpKind::Load(order);
                let words = |value, _| format!("load() = {}", $shown(value));
                let (Ok(value) | Err(value)) = self.access("load", kind, Site::caller(), |_| None, words);
                value
            }

            /// Replaces the value.
            #[track_caller]
            #[inline]
            pub fn store(&self, value: $value, order: Ordering) {
                if !self.identity.inside() {
                    return self.inner.store(value, order);
                }
                ordering::check_store(order);
                let words = |old, _| format!("store({}), was {}", $shown(value), $shown(old));
                let _ = self.access("store", OpKind::Store(order), Site::caller(), |_| Some(value), words);
            }

            /// Replaces the value and returns the old one.
            #[track_caller]
            #[inline]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                if !self.identity.inside() {
                    return self.inner.swap(value, order);
                }
                let words = |old, _| format!("swap({}) = {}", $shown(value), $shown(old));
                let kind = OpKind::Update(order);
                let (Ok(old) | Err(old)) = self.access("swap", kind, Site::caller(), |_| Some(value), words);
                old
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
                ordering::check_failure(failure);
                let verb = "compare_exchange";
                let kind = OpKind::CompareExchange { success, failure };
                self.exchange(verb, kind, Site::caller(), current, new)
            }

            /// Replaces the value if it is `current`. Inside a check it fails spuriously only with
            /// [`Check::weak_cas_failures`](crate::Check::weak_cas_failures), and the same exchange
            /// of a thread at most twice in a row.
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
                ordering::check_failure(failure);
                let (verb, site) = ("compare_exchange_weak", Site::caller());
                let exchange = (std::ptr::from_ref(self).addr(), $bits(current), $bits(new));
                let kind = if with(|runtime| runtime.may_fail_spuriously(exchange, site)) {
                    OpKind::WeakCompareExchange { success, failure }
                } else {
                    OpKind::CompareExchange { success, failure }
                };
                let result = self.exchange(verb, kind, site, current, new);
                let failed = result == Err(current);
                with(|runtime| runtime.note_weak_exchange(exchange, failed));
                result
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

            /// Accesses the value through the only reference, like loom's.
            #[track_caller]
            pub fn with_mut<R>(&mut self, f: impl FnOnce(&mut $value) -> R) -> R {
                exclusive(&self.identity, Site::caller());
                f(self.inner.get_mut())
            }

            #[inline]
            fn exchange(
                &self,
                verb: &'static str,
                kind: OpKind,
                site: &'static Site<'static>,
                current: $value,
                new: $value,
            ) -> Result<$value, $value> {
                let words = |old, wrote| {
                    let result = if wrote { "Ok" } else { "Err" };
                    format!("{verb}({}, {}) = {result}({})", $shown(current), $shown(new), $shown(old))
                };
                expect($bits(current));
                self.access(verb, kind, site, |old| (old == current).then_some(new), words)
            }

            /// Writes the value that `new` returns for the old one, if it returns one. Returns the
            /// old value: `Ok` if a value was written, `Err` if not.
            #[inline(always)]
            fn access(
                &self,
                verb: &'static str,
                kind: OpKind,
                site: &'static Site<'static>,
                new: impl FnOnce($value) -> Option<$value>,
                words: impl FnOnce($value, bool) -> String,
            ) -> Result<$value, $value> {
                if are_plain() {
                    self.access_as::<true>(verb, kind, site, new, words)
                } else {
                    self.access_apart(verb, kind, site, new, words)
                }
            }

            /// Any access. Not inlined, so that it costs the plain ones no registers.
            #[inline(never)]
            fn access_apart(
                &self,
                verb: &'static str,
                kind: OpKind,
                site: &'static Site<'static>,
                new: impl FnOnce($value) -> Option<$value>,
                words: impl FnOnce($value, bool) -> String,
            ) -> Result<$value, $value> {
                self.access_as::<false>(verb, kind, site, new, words)
            }

            #[inline(always)]
            fn access_as<const PLAIN: bool>(
                &self,
                verb: &'static str,
                kind: OpKind,
                site: &'static Site<'static>,
                new: impl FnOnce($value) -> Option<$value>,
                words: impl FnOnce($value, bool) -> String,
            ) -> Result<$value, $value> {
                let copy = || self.inner.load(Relaxed);
                let (location, kind) = stop::<PLAIN>(&self.identity, kind, verb, site, || $word(copy()), || $bits(copy()));
                let new = |old| new($of_bits(old)).map($bits);
                let done = commit::<PLAIN>(location, kind, $bits(copy()), new, |old| $word($of_bits(old)));
                if let Some(newest) = done.copy {
                    self.inner.store($of_bits(newest), Relaxed);
                }
                let (old, wrote) = ($of_bits(done.old), done.written.is_some());
                if done.is_narrated {
                    self.report(kind, &done, || words(old, wrote));
                }
                if wrote { Ok(old) } else { Err(old) }
            }

            /// Reports an access of a step that is narrated.
            #[cold]
            fn report(&self, kind: OpKind, done: &Done, words: impl FnOnce() -> String) {
                let shown = |bits| { let value: $value = $of_bits(bits); $shown(value).to_string() };
                describe(|| words() + &unseen(kind, done, shown));
                show(&self.identity, || format!("{:?}", self.inner.load(Relaxed)));
            }
        }

        impl $(<$param>)? fmt::Debug for $name $(<$param>)? {
            /// Like std's, this is a relaxed load, and so a scheduling point inside a check. While
            /// the text of a panic is made, no other thread can run.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                if !inside() || !is_programs_own() || std::thread::panicking() {
                    return self.inner.fmt(f);
                }
                let words = |value, _| format!("{{:?}} = {}", $shown(value));
                let site = self.identity.site();
                let (Ok(value) | Err(value)) = self.access("fmt", OpKind::Load(Relaxed), site, |_| None, words);
                fmt::Debug::fmt(&value, f)
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

/// Defines the read-modify-write methods of an atomic.
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
                    let words = |old, _| format!("{verb}({:?}) = {old:?}", $operand);
                    let kind = OpKind::Update(order);
                    let (Ok(old) | Err(old)) = self.access(verb, kind, Site::caller(), |$old| Some($new), words);
                    old
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
            $name, $value, std::sync::atomic::$name,
            |value: $value| value as u64, |bits: u64| bits as $value, |value: $value| value as u64, identity
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
            /// Stores the maximum; returns the old value.
            fetch_max(old, operand) => old.max(operand);
            /// Stores the minimum; returns the old value.
            fetch_min(old, operand) => old.min(operand);
        );
    )*};
}

/// Which newer store an access does not see, for a report.
fn unseen(kind: OpKind, done: &Done, shown: impl Fn(u64) -> String) -> String {
    let Some(Stale { by, value, step, missed }) = &done.stale else { return String::new() };
    let (by, missed) = (by.clone(), missed.clone());
    let unseen = Unseen { by, value: shown(*value), step: *step, missed };
    match kind {
        OpKind::Store(_) => unseen.after_store(),
        _ => unseen.after_load(rust_name),
    }
}

/// A mirror of [`std::sync::atomic::fence`]. Inside a check it orders plain accesses, as far as the
/// race detector is concerned, and under [weak memory](crate::Check::memory) all accesses. A
/// `SeqCst` fence is a scheduling point there.
#[inline]
#[track_caller]
pub fn fence(order: Ordering) {
    if !inside() {
        return std::sync::atomic::fence(order);
    }
    ordering::check_fence(order);
    let site = Site::caller();
    let replaced = with(|runtime| match &runtime.orderings {
        None => Some(order),
        Some(orderings) => orderings.apply((site, OrderingRole::Fence), "fence", order),
    });
    let Some(order) = replaced else { return };
    if order == Ordering::SeqCst && with(|runtime| runtime.weak_memory.is_some()) {
        point(op(OpKind::Fence, NO_OBJECT, "fence", site));
    }
    with(|runtime| {
        let thread = ThreadId::new(runtime.current);
        let clocks = &mut runtime.races.clocks;
        match &mut runtime.weak_memory {
            Some(memory) => memory.fence(clocks, thread, order),
            None if runtime.requirements.races => drop(clocks.fence(thread, order)),
            None => {}
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
    AtomicBool, bool, std::sync::atomic::AtomicBool, u64::from, |bits: u64| bits != 0, u64::from, identity
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

// Addresses mean nothing in another execution: only whether a pointer is null can be compared.
atomic!(
    /// A mirror of [`std::sync::atomic::AtomicPtr`].
    AtomicPtr[T], *mut T, std::sync::atomic::AtomicPtr<T>,
    pointer::bits, pointer::of_bits, |value: *mut T| u64::from(value.is_null()), pointer::shown
);
