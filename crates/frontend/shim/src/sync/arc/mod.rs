//! Mirrors of [`std::sync::Arc`] and [`std::sync::Weak`].
//!
//! An `Arc` gives what is in it a name that is the same in every schedule, orders its last drop
//! after all others for the race detector, and is a leak if it outlives the execution in which it
//! was made.
//!
//! To clone and to drop is no scheduling point unless it can matter: where the program looks at the
//! counts, or where the destructor of the value synchronises, so that it matters who drops it last.
//! Whether it does is found out; the search then starts over.
//!
//! The one thing that std's can and these cannot is to become an `Arc<dyn Trait>` by itself:
//! `Arc::from(Box::new(value) as Box<dyn Trait>)` makes one, with these and with std's.

mod count;
mod make;
mod traits;
mod weak;

use std::mem::ManuallyDrop;
use std::panic::Location as Site;
use std::sync::Arc as Std;

use self::count::{address, count, counted, forget, look};
use crate::foreign_threads;
use crate::runtime::{accounts, inside, with};

pub use self::weak::Weak;

/// A mirror of [`std::sync::Arc`].
pub struct Arc<T: ?Sized> {
    std: ManuallyDrop<Std<T>>,
    /// The execution in which it was made; 0 outside of all.
    execution: u64,
}

impl<T> Arc<T> {
    /// The value, if there is no other reference to it.
    #[track_caller]
    pub fn try_unwrap(this: Arc<T>) -> Result<T, Arc<T>> {
        let looked = look(&this, "try_unwrap", Site::caller());
        let execution = this.execution;
        let std = this.into_std();
        let (address, weak) = (address(&std), Std::weak_count(&std));
        Std::try_unwrap(std)
            .inspect(|_| {
                looked.alone();
                forget(address, weak);
            })
            .map_err(|std| Arc { std: ManuallyDrop::new(std), execution })
    }

    /// The value, if this is the last reference.
    #[track_caller]
    pub fn into_inner(this: Arc<T>) -> Option<T> {
        let looked = look(&this, "into_inner", Site::caller());
        let std = this.into_std();
        let (address, weak) = (address(&std), Std::weak_count(&std));
        Std::into_inner(std).inspect(|_| {
            looked.alone();
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

    /// Takes back what [`Arc::into_raw`] gave.
    ///
    /// # Safety
    ///
    /// As of [`std::sync::Arc::from_raw`].
    pub unsafe fn from_raw(pointer: *const T) -> Arc<T> {
        // SAFETY: the caller's.
        Arc { std: ManuallyDrop::new(unsafe { Std::from_raw(pointer) }), execution: 0 }
    }

    /// One reference more to what [`Arc::into_raw`] gave.
    ///
    /// # Safety
    ///
    /// As of [`std::sync::Arc::increment_strong_count`].
    #[track_caller]
    pub unsafe fn increment_strong_count(pointer: *const T) {
        // SAFETY: the caller's; neither the reference that there was nor the new one is dropped.
        let this = ManuallyDrop::new(unsafe { Arc::from_raw(pointer) });
        std::mem::forget(Arc::clone(&this));
    }

    /// One reference less to what [`Arc::into_raw`] gave.
    ///
    /// # Safety
    ///
    /// As of [`std::sync::Arc::decrement_strong_count`].
    pub unsafe fn decrement_strong_count(pointer: *const T) {
        // SAFETY: the caller's.
        drop(unsafe { Arc::from_raw(pointer) });
    }

    /// std's, which a check does not see any more.
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

    /// How many references there are. As in std, that says nothing about what those did who have
    /// dropped theirs.
    #[track_caller]
    pub fn strong_count(this: &Arc<T>) -> usize {
        let _ = look(this, "strong_count", Site::caller());
        Std::strong_count(&this.std)
    }

    /// How many weak references there are.
    #[track_caller]
    pub fn weak_count(this: &Arc<T>) -> usize {
        let _ = look(this, "weak_count", Site::caller());
        Std::weak_count(&this.std)
    }

    /// The value, if there is no other reference.
    #[track_caller]
    pub fn get_mut(this: &mut Arc<T>) -> Option<&mut T> {
        let looked = look(this, "get_mut", Site::caller());
        let value = Std::get_mut(&mut this.std);
        if value.is_some() {
            looked.alone();
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
    /// The value, of which a copy is made if there are other references.
    #[track_caller]
    pub fn make_mut(this: &mut Arc<T>) -> &mut T {
        let looked = look(this, "make_mut", Site::caller());
        if Std::get_mut(&mut this.std).is_none() {
            *this = Arc::new((**this).clone());
        } else {
            looked.alone();
        }
        Std::get_mut(&mut this.std).expect("the only reference")
    }

    /// The value, or a copy of it.
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
            // SAFETY: this is the drop of what holds it.
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
