//! Plain memory, with the interface that checks need.
#![allow(unsafe_code)]

pub use std::cell::{BorrowError, BorrowMutError, Cell, LazyCell, OnceCell, Ref, RefCell, RefMut};

/// [`std::cell::UnsafeCell`] whose value is reached through closures, or through pointers that
/// record their uses in a check.
#[derive(Debug, Default)]
pub struct UnsafeCell<T: ?Sized>(std::cell::UnsafeCell<T>);

impl<T> UnsafeCell<T> {
    /// A cell with this value.
    pub const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T> From<T> for UnsafeCell<T> {
    fn from(value: T) -> UnsafeCell<T> {
        UnsafeCell::new(value)
    }
}

impl<T: ?Sized> UnsafeCell<T> {
    /// Reads the value.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Writes the value.
    #[inline(always)]
    pub fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }

    /// A pointer to the value, which is read.
    #[inline(always)]
    pub fn get(&self) -> ConstPtr<T> {
        ConstPtr(self.0.get())
    }

    /// A pointer to the value, which is written.
    #[inline(always)]
    pub fn get_mut(&self) -> MutPtr<T> {
        MutPtr(self.0.get())
    }

    /// A mutable reference to the value.
    pub fn exclusive(&mut self) -> &mut T {
        self.0.get_mut()
    }
}

/// A pointer through which a cell is read.
#[derive(Debug)]
pub struct ConstPtr<T: ?Sized>(*const T);

impl<T: ?Sized> ConstPtr<T> {
    /// Lends the pointer.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0)
    }

    /// The value.
    ///
    /// # Safety
    ///
    /// The cell must outlive the reference, and no thread may write it meanwhile.
    #[allow(clippy::should_implement_trait)]
    #[inline(always)]
    pub unsafe fn deref(&self) -> &T {
        // SAFETY: the caller upholds the contract.
        unsafe { &*self.0 }
    }
}

/// A pointer through which a cell is written.
#[derive(Debug)]
pub struct MutPtr<T: ?Sized>(*mut T);

impl<T: ?Sized> MutPtr<T> {
    /// Lends the pointer.
    #[inline(always)]
    pub fn with<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0)
    }

    /// The value.
    ///
    /// # Safety
    ///
    /// The cell must outlive the reference, and no other access may happen meanwhile.
    #[allow(clippy::should_implement_trait, clippy::mut_from_ref)]
    #[inline(always)]
    pub unsafe fn deref(&self) -> &mut T {
        // SAFETY: the caller upholds the contract.
        unsafe { &mut *self.0 }
    }
}
