//! std's allocation, and wrappers of values whose leaks a check would report.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, System};

pub use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};

/// A wrapper without effect around another allocator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator<A = System> {
    below: A,
}

impl<A> Allocator<A> {
    /// Uses the allocator `below`.
    pub const fn wrapping(below: A) -> Allocator<A> {
        Allocator { below }
    }
}

// SAFETY: every call is passed to the allocator below.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Allocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract.
        unsafe { self.below.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract.
        unsafe { self.below.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract.
        unsafe { self.below.dealloc(memory, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller upholds the contract.
        unsafe { self.below.realloc(memory, layout, size) }
    }
}

/// A wrapper whose value a check would report if it leaked. Without the feature `check`, it has no
/// effect.
#[derive(Debug)]
pub struct Track<T>(T);

impl<T> Track<T> {
    /// Holds a value.
    pub fn new(value: T) -> Track<T> {
        Track(value)
    }

    /// The value.
    pub fn get_ref(&self) -> &T {
        &self.0
    }

    /// The value.
    pub fn get_mut(&mut self) -> &mut T {
        &mut self.0
    }

    /// The value.
    pub fn into_inner(self) -> T {
        self.0
    }
}
