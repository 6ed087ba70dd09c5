//! Allocations that are checked for leaks: mirrors of [`std::alloc`], and values that must be
//! dropped.

use std::alloc::{GlobalAlloc, System};
use std::panic::Location as Site;
use std::sync::OnceLock;

use crate::runtime::arena::{self, Outside, Placement};
use crate::runtime::identity::Shared;
use crate::runtime::{accounts, allocates, inside, look, with, with_quietly};

pub use std::alloc::Layout;

/// The global allocator of test programs. Inside a check it returns memory at addresses that are
/// the same in every execution, and objects in a `Box` or a `Vec` are identified by the thread that
/// allocated them. Everything else is passed to the allocator `A`.
///
/// The feature `allocator`, which is on by default, makes it the global allocator. A program with
/// an allocator of its own turns the feature off and wraps that one:
///
/// ```
/// # #[cfg(not(feature = "allocator"))]
/// #[global_allocator]
/// static ALLOCATOR: preempt::alloc::Allocator<std::alloc::System> =
///     preempt::alloc::Allocator::wrapping(std::alloc::System);
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Allocator<A = System> {
    below: A,
}

#[cfg(feature = "allocator")]
#[global_allocator]
static ALLOCATOR: Allocator = Allocator::wrapping(System);

impl<A> Allocator<A> {
    /// Uses the allocator `below` outside checks, and for what a check does not allocate itself.
    pub const fn wrapping(below: A) -> Allocator<A> {
        Allocator { below }
    }
}

/// Whether the global allocator of this process is an [`Allocator`]. Where that is not known when
/// the library is compiled, `probe` is called once to determine it.
pub(crate) fn is_global(probe: impl FnOnce() -> bool) -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    cfg!(feature = "allocator") || *FOUND.get_or_init(probe)
}

impl<A: GlobalAlloc> Allocator<A> {
    /// Allocates for a thread of an execution. The slow path is a tail call, so this function needs
    /// no stack frame.
    #[inline(never)]
    unsafe fn alloc_inside(&self, layout: Layout) -> *mut u8 {
        let memory = with_quietly(|runtime| runtime.allocate_small(layout));
        // SAFETY: the caller upholds the contract.
        if memory.is_null() { unsafe { self.alloc_otherwise(layout) } } else { memory }
    }

    #[cold]
    #[inline(never)]
    unsafe fn alloc_otherwise(&self, layout: Layout) -> *mut u8 {
        match with(|runtime| runtime.allocate(layout)) {
            Placement::Window(memory) => memory,
            // SAFETY: the caller upholds the contract.
            Placement::Elsewhere(outside) => unsafe { self.alloc_elsewhere(layout, outside) },
        }
    }

    /// Frees memory for a thread of an execution.
    #[inline(never)]
    unsafe fn dealloc_inside(&self, memory: *mut u8, layout: Layout) {
        match with_quietly(|runtime| runtime.free_plain(memory.addr())) {
            // SAFETY: the block of a window was just freed and has this size.
            Some(size) => unsafe { arena::poison_place(memory.addr(), size) },
            // SAFETY: the caller upholds the contract.
            None => unsafe { self.dealloc_otherwise(memory, layout) },
        }
    }

    #[cold]
    #[inline(never)]
    unsafe fn dealloc_otherwise(&self, memory: *mut u8, layout: Layout) {
        match with(|runtime| runtime.free(memory.addr(), layout.size())) {
            // SAFETY: the block was just freed and has at least this size.
            Some(size) => unsafe { arena::poison(memory.addr(), size) },
            None => {
                arena::forget(memory.addr());
                // SAFETY: the caller upholds the contract, and the block is not from a window.
                unsafe { self.below.dealloc(memory, layout) }
            }
        }
    }

    /// Allocates a block that comes from the allocator below.
    #[cold]
    #[inline(never)]
    unsafe fn alloc_elsewhere(&self, layout: Layout, outside: Outside) -> *mut u8 {
        // SAFETY: the caller upholds the contract.
        let memory = unsafe { self.below.alloc(layout) };
        if !memory.is_null() {
            with(|runtime| runtime.arena.enter(memory.expose_provenance(), layout, outside));
        }
        memory
    }
}

// SAFETY: memory comes from the allocator below or from a window, where a block has one owner at a
// time. Bookkeeping is kept outside the blocks, and allocates from the allocator below.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Allocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller upholds the contract.
        unsafe { if allocates() { self.alloc_inside(layout) } else { self.below.alloc(layout) } }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !allocates() {
            // SAFETY: the caller upholds the contract.
            return unsafe { self.below.alloc_zeroed(layout) };
        }
        // SAFETY: the caller upholds the contract.
        let memory = unsafe { self.alloc_inside(layout) };
        if !memory.is_null() {
            // SAFETY: this many bytes were just allocated.
            unsafe { memory.write_bytes(0, layout.size()) };
        }
        memory
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract.
        unsafe {
            if allocates() {
                self.dealloc_inside(memory, layout);
            } else if !arena::free(memory.addr()) {
                arena::forget(memory.addr());
                self.below.dealloc(memory, layout);
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let ours = arena::contains(memory.addr())
            || allocates() && look(|runtime| runtime.arena.knows(memory.addr()));
        if !ours {
            // A block that does not belong to this execution stays with the allocator below: a
            // collection from outside that grows here.
            arena::forget(memory.addr());
            // SAFETY: the caller upholds the contract.
            return unsafe { self.below.realloc(memory, layout, size) };
        }
        // SAFETY: the caller guarantees that the size is not zero and does not overflow, and that
        // the old block has its layout.
        unsafe {
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                moved.copy_from_nonoverlapping(memory, layout.size().min(size));
                self.dealloc(memory, layout);
            }
            moved
        }
    }
}

/// Allocates memory. Inside a check it must be freed by [`dealloc`] before all threads have ended;
/// otherwise the check reports a leak.
///
/// # Safety
///
/// Those of [`std::alloc::alloc`].
#[track_caller]
pub unsafe fn alloc(layout: Layout) -> *mut u8 {
    // SAFETY: the caller upholds the contract.
    let memory = unsafe { std::alloc::alloc(layout) };
    made(memory.addr(), layout.size(), Site::caller());
    memory
}

/// Allocates zeroed memory.
///
/// # Safety
///
/// Those of [`std::alloc::alloc_zeroed`].
#[track_caller]
pub unsafe fn alloc_zeroed(layout: Layout) -> *mut u8 {
    // SAFETY: the caller upholds the contract.
    let memory = unsafe { std::alloc::alloc_zeroed(layout) };
    made(memory.addr(), layout.size(), Site::caller());
    memory
}

/// Frees memory.
///
/// # Safety
///
/// Those of [`std::alloc::dealloc`].
pub unsafe fn dealloc(memory: *mut u8, layout: Layout) {
    gone(memory.addr());
    // SAFETY: the caller upholds the contract.
    unsafe { std::alloc::dealloc(memory, layout) };
}

/// A value that must be dropped or taken out before all threads have ended; otherwise the check
/// reports a leak.
#[derive(Debug)]
pub struct Track<T> {
    // Boxed, because its address identifies it.
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
        self.value.as_ref().expect("the value is there until it is taken out")
    }

    /// The value.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("the value is there until it is taken out")
    }

    /// Takes out the value and stops tracking it.
    pub fn into_inner(mut self) -> T {
        let value = self.value.take().expect("the value is taken out once");
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
            let owner = runtime.next_owner();
            let shared = Shared::new("allocation", owner, site);
            runtime.met.shared.push(Shared { address, size, ..shared });
        });
    }
}

fn gone(address: usize) {
    if accounts() {
        with(|runtime| {
            runtime
                .met
                .shared
                .retain(|shared| shared.address != address || shared.noun != "allocation")
        });
    }
}
