//! A mirror of [`std::cell::Cell`].

use std::cmp::Ordering;
use std::fmt;

use super::UnsafeCell;

/// A mirror of [`std::cell::Cell`] whose accesses are checked for races: a type that contains one
/// may claim to be `Sync`.
#[derive(Default)]
pub struct Cell<T>(UnsafeCell<T>);

impl<T> Cell<T> {
    /// A cell with this value.
    #[track_caller]
    pub const fn new(value: T) -> Cell<T> {
        Cell(UnsafeCell::new(value))
    }

    /// Replaces the value.
    #[track_caller]
    pub fn set(&self, value: T) {
        drop(self.replace(value));
    }

    /// Replaces the value and returns the old one.
    #[track_caller]
    pub fn replace(&self, value: T) -> T {
        // SAFETY: the cell is not shared between threads, and no reference to the value is ever
        // returned.
        self.0.with_mut(|current| unsafe { std::mem::replace(&mut *current, value) })
    }

    /// Exchanges the values of two cells.
    #[track_caller]
    pub fn swap(&self, other: &Cell<T>) {
        if !std::ptr::eq(self, other) {
            // SAFETY: as above; the two cells are distinct.
            self.0.with_mut(|ours| {
                other.0.with_mut(|theirs| unsafe { std::ptr::swap(ours, theirs) })
            });
        }
    }

    /// Takes the value and leaves the default.
    #[track_caller]
    pub fn take(&self) -> T
    where
        T: Default,
    {
        self.replace(T::default())
    }

    /// A copy of the value.
    #[track_caller]
    pub fn get(&self) -> T
    where
        T: Copy,
    {
        // SAFETY: as above.
        self.0.with(|current| unsafe { *current })
    }

    /// Changes the value by a function.
    #[track_caller]
    pub fn update(&self, f: impl FnOnce(T) -> T)
    where
        T: Copy,
    {
        self.set(f(self.get()));
    }

    /// The value, through the only reference.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.exclusive()
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: Copy> Clone for Cell<T> {
    #[track_caller]
    fn clone(&self) -> Cell<T> {
        Cell::new(self.get())
    }
}

impl<T> From<T> for Cell<T> {
    #[track_caller]
    fn from(value: T) -> Cell<T> {
        Cell::new(value)
    }
}

impl<T: Copy + PartialEq> PartialEq for Cell<T> {
    #[track_caller]
    fn eq(&self, other: &Cell<T>) -> bool {
        self.get() == other.get()
    }
}

impl<T: Copy + Eq> Eq for Cell<T> {}

impl<T: Copy + PartialOrd> PartialOrd for Cell<T> {
    #[track_caller]
    fn partial_cmp(&self, other: &Cell<T>) -> Option<Ordering> {
        self.get().partial_cmp(&other.get())
    }
}

impl<T: Copy + Ord> Ord for Cell<T> {
    #[track_caller]
    fn cmp(&self, other: &Cell<T>) -> Ordering {
        self.get().cmp(&other.get())
    }
}

impl<T: Copy + fmt::Debug> fmt::Debug for Cell<T> {
    #[track_caller]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cell").field("value", &self.get()).finish()
    }
}
