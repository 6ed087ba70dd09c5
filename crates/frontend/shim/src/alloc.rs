//! Allocations whose leaks are found: mirrors of [`std::alloc`], and values that must be dropped.

use std::alloc::{GlobalAlloc, System};
use std::panic::Location as Site;

use crate::runtime::identity::Shared;
use crate::runtime::{accounts, allocates, inside, with};

pub use std::alloc::Layout;

/// The system's allocator, which tells a check what a thread allocates. A test that has it needs fewer executions: objects in a `Box` or in a `Vec` are
/// then known by who made them, and need not be told apart by the order of their first uses.
///
/// ```
/// #[global_allocator]
/// static ALLOCATOR: preempt::alloc::Allocator = preempt::alloc::Allocator;
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator;

// SAFETY: all memory is the system's. What is noted of it is not in it, and to note it allocates from the system too, unseen.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        let memory = unsafe { System.alloc(layout) };
        enter(memory, layout.size());
        memory
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        let memory = unsafe { System.alloc_zeroed(layout) };
        enter(memory, layout.size());
        memory
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        leave(memory);
        // SAFETY: the caller's.
        unsafe { System.dealloc(memory, layout) };
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        leave(memory);
        // SAFETY: the caller's.
        let moved = unsafe { System.realloc(memory, layout, size) };
        // If there is no room the old one stays.
        if moved.is_null() {
            enter(memory, layout.size());
        } else {
            enter(moved, size);
        }
        moved
    }
}

#[inline]
fn enter(memory: *mut u8, size: usize) {
    if allocates() {
        with(|runtime| runtime.allocated(memory.addr(), size));
    }
}

#[inline]
fn leave(memory: *mut u8) {
    if allocates() {
        with(|runtime| runtime.blocks.leave(memory.addr()));
    }
}

/// Allocates memory. Inside a check it has to be given back by [`dealloc`] before all threads have ended.
///
/// # Safety
///
/// As of [`std::alloc::alloc`].
#[track_caller]
pub unsafe fn alloc(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's.
    let memory = unsafe { std::alloc::alloc(layout) };
    made(memory.addr(), layout.size(), Site::caller());
    memory
}

/// Allocates memory that is 0.
///
/// # Safety
///
/// As of [`std::alloc::alloc_zeroed`].
#[track_caller]
pub unsafe fn alloc_zeroed(layout: Layout) -> *mut u8 {
    // SAFETY: the caller's.
    let memory = unsafe { std::alloc::alloc_zeroed(layout) };
    made(memory.addr(), layout.size(), Site::caller());
    memory
}

/// Gives memory back.
///
/// # Safety
///
/// As of [`std::alloc::dealloc`].
pub unsafe fn dealloc(memory: *mut u8, layout: Layout) {
    gone(memory.addr());
    // SAFETY: the caller's.
    unsafe { std::alloc::dealloc(memory, layout) };
}

/// A value that has to be dropped, or taken out, before all threads have ended.
#[derive(Debug)]
pub struct Track<T> {
    // Its address names it.
    value: Option<Box<T>>,
}

impl<T> Track<T> {
    /// Tracks a value.
    #[track_caller]
    pub fn new(value: T) -> Track<T> {
        let value = Box::new(value);
        made(address(&value), size_of::<T>(), Site::caller());
        Track { value: Some(value) }
    }

    /// The value.
    pub fn get_ref(&self) -> &T {
        self.value.as_ref().expect("it is there until it is taken out")
    }

    /// The value.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("it is there until it is taken out")
    }

    /// The value, which is not tracked any more.
    pub fn into_inner(mut self) -> T {
        let value = self.value.take().expect("it is taken out once");
        gone(address(&value));
        *value
    }
}

impl<T> Drop for Track<T> {
    fn drop(&mut self) {
        if let Some(value) = &self.value {
            gone(address(value));
        }
    }
}

#[allow(clippy::borrowed_box)]
fn address<T>(value: &Box<T>) -> usize {
    std::ptr::from_ref::<T>(value).addr()
}

fn made(address: usize, size: usize, site: &'static Site<'static>) {
    if inside() {
        with(|runtime| {
            let slot = runtime.current;
            let created = &mut runtime.threads[slot].created;
            let nth = *created;
            *created += 1;
            runtime.met.shared.push(Shared { address, size, slot: slot as u8, nth, ..Shared::new("allocation", site) });
        });
    }
}

fn gone(address: usize) {
    if accounts() {
        with(|runtime| runtime.met.shared.retain(|shared| shared.address != address || shared.noun != "allocation"));
    }
}
