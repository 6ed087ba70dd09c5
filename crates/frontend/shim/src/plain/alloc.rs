//! std's, and values that a check would track.

pub use std::alloc::{Layout, System as Allocator, alloc, alloc_zeroed, dealloc};

/// A value that has to be dropped, or taken out: nobody looks here.
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
