//! Mirrors of [`std::sync::Arc`] and [`std::sync::Weak`].
//!
//! An `Arc` gives the objects in it names that are the same in every schedule, orders its last drop
//! after all others for the race detector, and is a leak if it outlives the execution in which it
//! was made.
//!
//! Clones and drops are scheduling points only where they can matter: if the program reads the
//! counts, or if the destructor of the value synchronises, so that it matters which thread drops it
//! last. When an execution shows this, the search starts over.
//!
//! Unlike std's, these cannot be coerced to `Arc<dyn Trait>`.
//! `Arc::from(Box::new(value) as Box<dyn Trait>)` works with both.

mod count;
mod make;
mod traits;
mod weak;

use std::mem::ManuallyDrop;
use std::panic::Location as Site;
use std::sync::Arc as Std;

use self::count::{Owners, address, count, counted, forget, observe_counts, register};
use crate::foreign_threads;
use crate::runtime::{accounts, inside, with};

pub use self::weak::Weak;

/// A mirror of [`std::sync::Arc`].
pub struct Arc<T: ?Sized> {
    std: ManuallyDrop<Std<T>>,
    /// The execution in which it was made; 0 outside all.
    execution: u64,
}

impl<T> Arc<T> {
    /// The value, if there is no other reference to it.
    #[track_caller]
    pub fn try_unwrap(this: Arc<T>) -> Result<T, Arc<T>> {
        let observed = observe_counts(&this, "try_unwrap", Site::caller());
        let execution = this.execution;
        let std = this.into_std();
        let (address, weak) = (address(&std), Std::weak_count(&std));
        Std::try_unwrap(std)
            .inspect(|_| {
                observed.acquire();
                forget(address, weak);
            })
            .map_err(|std| Arc { std: ManuallyDrop::new(std), execution })
    }

    /// The value, if this is the last reference.
    #[track_caller]
    pub fn into_inner(this: Arc<T>) -> Option<T> {
        let observed = observe_counts(&this, "into_inner", Site::caller());
        let std = this.into_std();
        let (address, weak) = (address(&std), Std::weak_count(&std));
        if inside() {
            // Whoever gets the value is ordered after this thread. No destructor runs here.
            with(|runtime| _ = runtime.drop_reference(address, false));
        }
        Std::into_inner(std).inspect(|_| {
            observed.acquire();
            forget(address, weak);
        })
    }
}

impl<T: ?Sized> Arc<T> {
    /// The pointer that [`Arc::from_raw`] takes back.
    #[must_use = "the reference is lost with its pointer"]
    pub fn into_raw(this: Arc<T>) -> *const T {
        Std::into_raw(this.into_std())
    }

    /// The `Arc` from which [`Arc::into_raw`] made the pointer.
    ///
    /// # Safety
    ///
    /// Those of [`std::sync::Arc::from_raw`].
    pub unsafe fn from_raw(pointer: *const T) -> Arc<T> {
        // SAFETY: the caller upholds the contract.
        Arc { std: ManuallyDrop::new(unsafe { Std::from_raw(pointer) }), execution: 0 }
    }

    /// Adds a reference to the `Arc` from which [`Arc::into_raw`] made the pointer.
    ///
    /// # Safety
    ///
    /// Those of [`std::sync::Arc::increment_strong_count`].
    #[track_caller]
    pub unsafe fn increment_strong_count(pointer: *const T) {
        // SAFETY: the caller upholds the contract; neither the existing nor the new reference is
        // dropped.
        let this = ManuallyDrop::new(unsafe { Arc::from_raw(pointer) });
        std::mem::forget(Arc::clone(&this));
    }

    /// Drops a reference to the `Arc` from which [`Arc::into_raw`] made the pointer.
    ///
    /// # Safety
    ///
    /// Those of [`std::sync::Arc::decrement_strong_count`].
    pub unsafe fn decrement_strong_count(pointer: *const T) {
        // SAFETY: the caller upholds the contract.
        drop(unsafe { Arc::from_raw(pointer) });
    }

    /// The `Arc` of std, which a check no longer observes.
    fn into_std(self) -> Std<T> {
        let mut this = ManuallyDrop::new(self);
        // SAFETY: `this` is not used again, and not dropped.
        unsafe { ManuallyDrop::take(&mut this.std) }
    }

    /// A weak reference.
    #[track_caller]
    pub fn downgrade(this: &Arc<T>) -> Weak<T> {
        if inside()
            && let Some(shared) = counted(address(&this.std))
        {
            count(&shared, "downgrade", Site::caller());
        }
        Weak::of(Std::downgrade(&this.std), this.execution)
    }

    /// The number of references. As in std, reading it does not synchronise with threads that have
    /// dropped theirs.
    #[track_caller]
    pub fn strong_count(this: &Arc<T>) -> usize {
        let _ = observe_counts(this, "strong_count", Site::caller());
        Std::strong_count(&this.std)
    }

    /// The number of weak references.
    #[track_caller]
    pub fn weak_count(this: &Arc<T>) -> usize {
        let _ = observe_counts(this, "weak_count", Site::caller());
        Std::weak_count(&this.std)
    }

    /// A mutable reference to the value, if there is no other reference.
    #[track_caller]
    pub fn get_mut(this: &mut Arc<T>) -> Option<&mut T> {
        let observed = observe_counts(this, "get_mut", Site::caller());
        let value = Std::get_mut(&mut this.std);
        if value.is_some() {
            observed.acquire();
        }
        value
    }

    /// Whether both are references to the same value.
    pub fn ptr_eq(this: &Arc<T>, other: &Arc<T>) -> bool {
        Std::ptr_eq(&this.std, &other.std)
    }

    /// A pointer to the value.
    pub fn as_ptr(this: &Arc<T>) -> *const T {
        Std::as_ptr(&this.std)
    }
}

impl<T: Clone> Arc<T> {
    /// A mutable reference to the value, which is cloned if there are other references.
    #[track_caller]
    pub fn make_mut(this: &mut Arc<T>) -> &mut T {
        let site = Site::caller();
        let observed = observe_counts(this, "make_mut", site);
        if Std::get_mut(&mut this.std).is_some() {
            observed.acquire();
        } else if Std::strong_count(&this.std) > 1 {
            *this = Arc::new((**this).clone());
        } else {
            // Only weak references are left: std moves the value, and they lose it.
            observed.acquire();
            forget(address(&this.std), Std::weak_count(&this.std));
            Std::make_mut(&mut this.std);
            this.execution = register(address(&this.std), size_of::<T>(), Owners::Ours, site);
        }
        Std::get_mut(&mut this.std).expect("the reference is the only one")
    }

    /// The value, or a clone of it if there are other references.
    #[track_caller]
    pub fn unwrap_or_clone(this: Arc<T>) -> T {
        Arc::try_unwrap(this).unwrap_or_else(|this| (*this).clone())
    }
}

impl<T: ?Sized> Clone for Arc<T> {
    #[track_caller]
    fn clone(&self) -> Arc<T> {
        if foreign_threads::belongs(self.execution, "an `Arc`", Site::caller())
            && let Some(shared) = counted(address(&self.std))
        {
            count(&shared, "clone", Site::caller());
        }
        Arc { std: self.std.clone(), execution: self.execution }
    }
}

impl<T: ?Sized> Drop for Arc<T> {
    fn drop(&mut self) {
        let std = &mut self.std;
        if !inside() {
            if accounts() && Std::strong_count(std) == 1 {
                forget(address(std), Std::weak_count(std));
            }
            // SAFETY: called once, by the drop of its owner.
            return unsafe { ManuallyDrop::drop(std) };
        }
        let address = address(std);
        if let Some(shared) = counted(address) {
            count(&shared, "drop", shared.site);
        }
        let (last, weak) = (Std::strong_count(std) == 1, Std::weak_count(std));
        let before = with(|runtime| runtime.drop_reference(address, last));
        // SAFETY: as above.
        unsafe { ManuallyDrop::drop(std) };
        if last && inside() {
            forget(address, weak);
            with(|runtime| runtime.threads[runtime.current].dropping = before);
        }
    }
}
