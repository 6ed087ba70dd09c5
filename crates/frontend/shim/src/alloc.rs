//! Allocations whose leaks are found: mirrors of [`std::alloc`], and values that must be dropped.

use std::panic::Location as Site;

use crate::runtime::identity::Shared;
use crate::runtime::{accounts, inside, with};

pub use std::alloc::Layout;

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
