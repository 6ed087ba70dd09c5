//! Allocations whose leaks are found: mirrors of [`std::alloc`], and values that must be dropped.

use std::alloc::{GlobalAlloc, System};
use std::panic::Location as Site;
use std::sync::OnceLock;

use crate::runtime::arena::{self, Outside, Placement};
use crate::runtime::identity::Shared;
use crate::runtime::{accounts, allocates, inside, look, with, with_quietly};

pub use std::alloc::Layout;

/// The global allocator of test programs. Inside a check it gives out memory at addresses that are
/// the same in every execution, and objects in a `Box` or a `Vec` are known by the thread that
/// allocated them. Everything else goes to the allocator `A` below it.
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
    /// Uses the allocator `below` for what no check gives out.
    pub const fn wrapping(below: A) -> Allocator<A> {
        Allocator { below }
    }
}

/// Whether the global allocator of this process is an [`Allocator`]. Where that is not known when
/// the library is compiled, `probe` finds it out, once.
pub(crate) fn is_global(probe: impl FnOnce() -> bool) -> bool {
    static FOUND: OnceLock<bool> = OnceLock::new();
    cfg!(feature = "allocator") || *FOUND.get_or_init(probe)
}

impl<A: GlobalAlloc> Allocator<A> {
    /// Allocates for a thread of an execution. The rest is a call at the very end: so this one
    /// needs no frame.
    #[inline(never)]
    unsafe fn alloc_inside(&self, layout: Layout) -> *mut u8 {
        let memory = with_quietly(|runtime| runtime.allocate_small(layout));
        // SAFETY: the caller's.
        if memory.is_null() { unsafe { self.alloc_otherwise(layout) } } else { memory }
    }

    #[cold]
    #[inline(never)]
    unsafe fn alloc_otherwise(&self, layout: Layout) -> *mut u8 {
        match with(|runtime| runtime.allocate(layout)) {
            Placement::Window(memory) => memory,
            // SAFETY: the caller's.
            Placement::Elsewhere(outside) => unsafe { self.alloc_elsewhere(layout, outside) },
        }
    }

    /// Frees memory for a thread of an execution.
    #[inline(never)]
    unsafe fn dealloc_inside(&self, memory: *mut u8, layout: Layout) {
        match with_quietly(|runtime| runtime.free_plain(memory.addr())) {
            // SAFETY: the block of a window was freed, and is as large.
            Some(size) => unsafe { arena::poison_place(memory.addr(), size) },
            // SAFETY: the caller's.
            None => unsafe { self.dealloc_otherwise(memory, layout) },
        }
    }

    #[cold]
    #[inline(never)]
    unsafe fn dealloc_otherwise(&self, memory: *mut u8, layout: Layout) {
        match with(|runtime| runtime.free(memory.addr(), layout.size())) {
            // SAFETY: the block was freed, and is at least as large.
            Some(size) => unsafe { arena::poison(memory.addr(), size) },
            // SAFETY: the caller's; it is not of a window.
            None => unsafe { self.below.dealloc(memory, layout) },
        }
    }

    /// Allocates a block that comes from the allocator below.
    #[cold]
    #[inline(never)]
    unsafe fn alloc_elsewhere(&self, layout: Layout, outside: Outside) -> *mut u8 {
        // SAFETY: the caller's.
        let memory = unsafe { self.below.alloc(layout) };
        if !memory.is_null() {
            with(|runtime| runtime.arena.enter(memory.expose_provenance(), layout, outside));
        }
        memory
    }
}

// SAFETY: memory is that of the allocator below, or of a window, where a block is given to one
// owner at a time. Notes about it are not in it, and making them allocates from the allocator
// below.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Allocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's.
        unsafe { if allocates() { self.alloc_inside(layout) } else { self.below.alloc(layout) } }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if !allocates() {
            // SAFETY: the caller's.
            return unsafe { self.below.alloc_zeroed(layout) };
        }
        // SAFETY: the caller's.
        let memory = unsafe { self.alloc_inside(layout) };
        if !memory.is_null() {
            // SAFETY: so much was allocated.
            unsafe { memory.write_bytes(0, layout.size()) };
        }
        memory
    }

    #[inline]
    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's.
        unsafe {
            if allocates() {
                self.dealloc_inside(memory, layout);
            } else if !arena::free(memory.addr()) {
                self.below.dealloc(memory, layout);
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let ours = arena::contains(memory.addr())
            || allocates() && look(|runtime| runtime.arena.knows(memory.addr()));
        if !ours {
            // What is not of this execution stays where it was allocated: a collection of somebody
            // outside, which grows here. SAFETY: the caller's.
            return unsafe { self.below.realloc(memory, layout, size) };
        }
        // SAFETY: the caller's: the size is not zero and does not overflow; the old block is as
        // large as its layout says.
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

/// Allocates memory. Inside a check it has to be given back by [`dealloc`] before all threads have
/// ended.
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
