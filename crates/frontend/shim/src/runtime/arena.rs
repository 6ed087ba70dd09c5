//! Memory for the program under test, at addresses that are the same in every execution.
//!
//! Programs compare addresses, order locks by them and hash them, and whether a freed block comes
//! back at the same address decides whether a compare-and-exchange of pointers succeeds (ABA). With
//! the system's allocator that depends on what else the process allocates. So each worker has a
//! *window* of address space with one region for each thread slot, and a thread gets
//!
//! 1. the block that it freed last, of those of the size that it asks for (as from the thread cache
//!    of a malloc), or else
//! 2. the next part of its region that was not used before.
//!
//! Both are functions of what the thread did and of pointers that it got from others, that is, of
//! its causal past. So steps that the search takes to be independent stay independent. A block that
//! a thread frees goes to *its* list, even if another thread allocated it.
//!
//! # What outlives an execution
//!
//! A test hands memory to code outside: a collection that gathers results, the buffer of the
//! standard output, a lazy static. Such a block stays where it is, and the next execution begins
//! after it, by whole pages. The *names* of blocks that outlived a complete execution are
//! remembered, and in later executions these come from the system's allocator, while the place that
//! they would have had stays unused: so all others keep their addresses. When the last block of a
//! window that outlived its execution is freed, the window is as good as new.
//!
//! Blocks of executions that could not end (see `system/finish.rs`) may have been handed out too,
//! and stay allocated.
//!
//! # Memory from elsewhere
//!
//! Very large blocks, those that outlive executions, and all of them if the system grants no
//! address space, come from the allocator below. They are freed at the end of the execution, so
//! that no address comes back within one: equality of addresses is deterministic for these too.

mod escapes;
mod places;
mod window;

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use preempt_system::MAX_THREADS;
use preempt_system::fingerprint::Mixer;

pub(crate) use self::escapes::Escapes;
use self::places::{Blocks, FINE, GRAIN, PlaceId, room_of};
pub(crate) use self::places::{CLASSES, class_of};
pub(crate) use self::window::contains;
use self::window::{Window, token, window_of};

use super::blocks::Block;

/// Executions begin at multiples of it, so that addresses within a page are the same also after a
/// block has outlived an execution.
const PAGE: usize = 4096;

/// The pattern with which freed memory is filled, and up to how many bytes.
pub(crate) const POISON: u8 = 0xde;
const POISONED: usize = 1 << 16;

/// The largest block that comes from a window.
const LARGEST: usize = 1 << 18;

/// The thread that freed a block, and how many operations it had performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Freed {
    pub(crate) slot: u8,
    pub(crate) done: u32,
}

/// What became of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Live,
    /// Freed in this execution.
    Freed(Freed),
    /// The place of a block that comes from elsewhere.
    Reserved,
}

/// A block that comes from the allocator below.
#[derive(Clone, Copy, Debug)]
struct Elsewhere {
    layout: Layout,
    block: Block,
    state: Use,
    /// The place that it would have had in a window.
    reserved: Option<PlaceId>,
}

/// Where a block is to come from.
pub(crate) enum Placement {
    Window(*mut u8),
    /// The allocator below; [`Arena::enter`] says where it was then.
    Elsewhere(Outside),
}

/// A block that comes from the allocator below.
pub(crate) struct Outside {
    block: Block,
    reserved: Option<PlaceId>,
}

/// What is at an address.
pub(crate) enum Found {
    /// A block, and how far it is from its beginning.
    Live(Block, usize),
    Freed(Freed),
}

/// The memory of a runtime's executions.
pub(crate) struct Arena {
    window: Option<&'static Window>,
    elsewhere: BTreeMap<usize, Elsewhere>,
    /// No window was granted: it is not tried again.
    refused: bool,
    escapes: Escapes,
}

impl Arena {
    /// The window is taken when the first block is allocated: a test whose allocator is another one
    /// needs none.
    pub(crate) fn new(escapes: Escapes) -> Arena {
        Arena { window: None, elsewhere: BTreeMap::new(), refused: false, escapes }
    }

    /// An execution begins.
    pub(crate) fn begin(&mut self) {
        if self.window.is_some_and(|window| !window.make_room()) {
            self.release();
        }
    }

    /// The window, which is taken if there is none.
    #[inline]
    fn window(&mut self) -> Option<&'static Window> {
        if self.window.is_none() && !self.refused {
            self.window = Window::take();
            self.refused = self.window.is_none();
        }
        self.window
    }

    /// Memory for a block of the thread in this slot that is small and for which nothing has to be
    /// made ready first, as nearly all are; else null, and nothing is changed. `name` is called if
    /// there is memory.
    #[inline(always)]
    pub(crate) fn allocate_small(
        &mut self,
        slot: usize,
        layout: Layout,
        name: impl FnOnce(usize) -> Block,
    ) -> *mut u8 {
        let class = class_of(layout);
        let Some(window) = self.window.filter(|_| class < FINE && self.escapes.is_empty()) else {
            return null_mut();
        };
        let blocks = blocks(window);
        let start = window.base + blocks.start;
        let Some((place, record)) =
            blocks.take(slot, class, (room_of(class, layout.size()), window.region))
        else {
            return null_mut();
        };
        (record.block, record.state, record.holds_objects) = (name(class), Use::Live, false);
        let at = record.at as usize;
        blocks.live += 1;
        std::ptr::with_exposed_provenance_mut(start + (place.slot() << window.bits) + at)
    }

    /// A place for any block of the thread in this slot.
    pub(crate) fn allocate(&mut self, slot: usize, layout: Layout, block: Block) -> Placement {
        let escapes = self.escapes.contains(&block);
        let window = self.window().filter(|_| layout.size() <= LARGEST && layout.align() <= PAGE);
        let Some(window) = window else {
            return Placement::Elsewhere(Outside { block, reserved: None });
        };
        let blocks = blocks(window);
        let start = window.base + blocks.start;
        let Some((place, record)) = blocks.place(slot, layout, window.region) else {
            return Placement::Elsewhere(Outside { block, reserved: None });
        };
        (record.block, record.holds_objects) = (block, false);
        if escapes {
            record.state = Use::Reserved;
            return Placement::Elsewhere(Outside { block, reserved: Some(place) });
        }
        record.state = Use::Live;
        let address = start + (place.slot() << window.bits) + record.at as usize;
        blocks.live += 1;
        Placement::Window(std::ptr::with_exposed_provenance_mut(address))
    }

    /// A thread of the execution frees a block for which nothing else has to be done, as most are.
    /// Returns its size; nothing is changed if it is another one. The thread gets the place again.
    #[inline(always)]
    pub(crate) fn free_plain(&mut self, address: usize, by: Freed) -> Option<usize> {
        let window = self.window?;
        let (slot, offset) = place_in(window, address)?;
        let blocks = blocks(window);
        blocks.free_plain(slot, offset.checked_sub(blocks.start)?, by)
    }

    /// A thread of the execution frees a block; `None` if it is not in a window. It `may_reuse` the
    /// place, unless it is chance that this thread frees the block.
    pub(crate) fn free(&mut self, address: usize, by: Freed, may_reuse: bool) -> Option<Free> {
        if let Some(window) = self.window
            && let Some(place) = place_in(window, address)
        {
            return Some(free_in(window, place, Some(by), may_reuse));
        }
        // A block of another runtime's execution is never reused.
        window_of(address).map(|window| free_from_outside(window, address))
    }

    /// Whether an address is in memory of this runtime's executions.
    #[inline]
    pub(crate) fn owns(&self, address: usize) -> bool {
        self.window.is_some_and(|window| place_in(window, address).is_some())
            || !self.elsewhere.is_empty() && self.find_elsewhere(address).is_some()
    }

    /// A block has come from the allocator below.
    pub(crate) fn enter(
        &mut self,
        address: usize,
        layout: Layout,
        Outside { block, reserved }: Outside,
    ) {
        self.elsewhere.insert(address, Elsewhere { layout, block, state: Use::Live, reserved });
    }

    /// The program frees a block that is not in a window; `None` if it is not of this execution.
    /// The end of the execution gives it back: until then nothing else has its address, and uses of
    /// it are noticed.
    #[cold]
    pub(crate) fn free_elsewhere(
        &mut self,
        address: usize,
        freed: Freed,
        may_reuse: bool,
    ) -> Option<Free> {
        let of = self.elsewhere.get_mut(&address)?;
        if let Use::Freed(first) = of.state {
            return Some(Free::Twice(first));
        }
        of.state = Use::Freed(freed);
        // SAFETY: the program has freed it, and the allocator below does not know yet.
        unsafe { poison(address, of.layout.size()) };
        if let (Some(place), Some(window), true) = (of.reserved, self.window, may_reuse) {
            blocks(window).list(freed.slot.into(), place);
        }
        Some(Free::WithObjects(0))
    }

    /// Whether a block that is not in a window is one of this execution.
    #[inline]
    pub(crate) fn knows(&self, address: usize) -> bool {
        !self.elsewhere.is_empty() && self.elsewhere.contains_key(&address)
    }

    /// What is known of an address at which the check meets an object.
    pub(crate) fn find(&self, address: usize) -> Option<Found> {
        let found = |state: Use, block: Block, offset: usize| match state {
            Use::Live => Some(Found::Live(block, offset)),
            Use::Freed(freed) => Some(Found::Freed(freed)),
            Use::Reserved => None,
        };
        if let Some(window) = self.window
            && let Some((slot, offset)) = place_in(window, address)
        {
            let blocks = blocks(window);
            let offset = offset.checked_sub(blocks.start)?;
            let record = blocks.find(slot, offset)?;
            record.holds_objects = true;
            return found(record.state, record.block, offset - record.at as usize);
        }
        let (of, offset) = self.find_elsewhere(address)?;
        found(of.state, of.block, offset)
    }

    /// The block outside of the window that an address is in, and where in it.
    fn find_elsewhere(&self, address: usize) -> Option<(&Elsewhere, usize)> {
        let (&start, of) = self.elsewhere.range(..=address).next_back()?;
        let offset = address - start;
        (offset < of.layout.size()).then_some((of, offset))
    }

    /// The execution is over. Returns the names of blocks that outlive it, if it is `complete` and
    /// they were not known.
    pub(crate) fn end(&mut self, complete: bool) -> Vec<Block> {
        let mut learned = Vec::new();
        if !self.elsewhere.is_empty() {
            self.free_rest(complete, &mut learned);
        }
        if let Some(window) = self.window {
            let blocks = blocks(window);
            if blocks.live > 0 {
                if complete {
                    let live = blocks.records().filter(|(_, record)| record.state == Use::Live);
                    learned.extend(live.map(|(_, record)| record.block));
                }
                window.escaped.fetch_add(blocks.live, AcqRel);
                blocks.start += blocks.most().next_multiple_of(PAGE);
            }
            blocks.clear();
        }
        learned.retain(|&block| self.escapes.insert(block));
        learned
    }

    /// Frees the blocks that come from elsewhere, as far as the program has.
    #[cold]
    fn free_rest(&mut self, complete: bool, learned: &mut Vec<Block>) {
        for (address, of) in std::mem::take(&mut self.elsewhere) {
            match of.state {
                // SAFETY: it was allocated with this layout, and the program's free never reached
                // this allocator.
                Use::Freed(_) => unsafe {
                    std::alloc::dealloc(std::ptr::with_exposed_provenance_mut(address), of.layout);
                },
                _ if complete => learned.push(of.block),
                _ => {}
            }
        }
    }

    /// Adds all blocks and their contents to `mixer`, and which places the next allocations get.
    /// Parts of a block that were never written, as between fields, count too.
    pub(crate) fn absorb(&self, mixer: &mut Mixer) {
        if let Some(window) = self.window {
            let blocks = blocks(window);
            blocks.absorb_places(mixer);
            for (slot, record) in blocks.records().filter(|(_, record)| record.state == Use::Live) {
                let address =
                    window.base + slot * window.region + blocks.start + record.at as usize;
                // SAFETY: it is a live block of the window.
                unsafe { absorb_memory(mixer, address, record.block.size) };
            }
        }
        for (&address, of) in self.elsewhere.iter().filter(|(_, of)| of.state == Use::Live) {
            // SAFETY: it was allocated with this size, and the program has not freed it.
            unsafe { absorb_memory(mixer, address, of.layout.size()) };
        }
    }

    /// Leaves the window to others.
    fn release(&mut self) {
        if let Some(window) = self.window.take() {
            window.owner.store(0, Release);
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        self.end(false);
        self.release();
    }
}

/// The blocks of a window that the caller's runtime uses.
#[allow(clippy::mut_from_ref)]
fn blocks(window: &Window) -> &mut Blocks {
    // SAFETY: the owner's OS thread is the only one that gets here. Functions of this module that
    // have the reference call nothing but the allocator below, for their own vectors, and `poison`:
    // no second one is made while it lives.
    unsafe { &mut *window.blocks.get() }
}

/// In which slot's region an address is, and where.
#[inline]
fn place_in(window: &Window, address: usize) -> Option<(usize, usize)> {
    let offset = address.wrapping_sub(window.base);
    let slot = offset >> window.bits;
    (slot < MAX_THREADS).then(|| (slot, offset & (window.region - 1)))
}

/// Adds the contents of a piece of memory to `mixer`.
///
/// # Safety
///
/// `size` bytes can be read from `address`, and no other thread writes to them during the call.
pub(crate) unsafe fn absorb_memory(mixer: &mut Mixer, address: usize, size: usize) {
    mixer.absorb(address as u64);
    mixer.absorb(size as u64);
    let words = if address.is_multiple_of(align_of::<u64>()) { size / 8 } else { 0 };
    for at in 0..words {
        // SAFETY: the caller's, and it is aligned. Volatile, since the memory may be uninitialised.
        mixer.absorb(unsafe {
            std::ptr::with_exposed_provenance::<u64>(address + 8 * at).read_volatile()
        });
    }
    for at in 8 * words..size {
        // SAFETY: as above.
        let byte = unsafe { std::ptr::with_exposed_provenance::<u8>(address + at).read_volatile() };
        mixer.absorb(byte.into());
    }
}

/// Fills freed memory.
///
/// # Safety
///
/// There are `size` bytes, and they are not used any more.
#[inline]
pub(crate) unsafe fn poison(address: usize, size: usize) {
    // SAFETY: the caller's.
    unsafe {
        std::ptr::with_exposed_provenance_mut::<u8>(address).write_bytes(POISON, size.min(POISONED))
    };
}

/// Fills a freed block of a window. Most are a few words, for which the call of a function takes
/// longer than the stores.
///
/// # Safety
///
/// As of [`poison`], and the block is in a window: a place is a multiple of [`GRAIN`] long.
#[inline(always)]
pub(crate) unsafe fn poison_place(address: usize, size: usize) {
    if size > 4 * GRAIN {
        // SAFETY: the caller's.
        return unsafe { poison(address, size) };
    }
    let memory = std::ptr::with_exposed_provenance_mut::<u8>(address);
    for grain in 0..4 {
        if grain == 0 || size > grain * GRAIN {
            // SAFETY: the caller's; the last grain may begin in the block and end behind it, where
            // the place goes on.
            unsafe { memory.add(grain * GRAIN).write_bytes(POISON, GRAIN) };
        }
    }
}

/// How a block in a window was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Free {
    /// It was a block of this size, which is to be [poisoned](poison).
    Done(usize),
    /// The same, and the check may have met objects in it.
    WithObjects(usize),
    /// It was free.
    Twice(Freed),
}

/// Frees a block if it is in a window, by code that is not a thread of an execution. Returns
/// whether it is.
#[inline]
pub(crate) fn free(address: usize) -> bool {
    window_of(address).is_some_and(|window| {
        if let Free::Done(size) | Free::WithObjects(size) = free_from_outside(window, address) {
            // SAFETY: the block is in the window, and was freed.
            unsafe { poison(address, size) };
        }
        true
    })
}

/// Frees a block in a window by code that is not a thread of the window's execution.
#[cold]
fn free_from_outside(window: &'static Window, address: usize) -> Free {
    // Another OS thread, or one without a runtime of its own: the block has outlived its execution,
    // or was given to a thread of std.
    if window.owner.load(Acquire) != token() {
        window.escaped.fetch_sub(1, AcqRel);
        return Free::Done(0);
    }
    free_in(window, place_in(window, address).expect("the address is in the window"), None, false)
}

/// Frees the block at this offset of a slot's region in a window of the caller's OS thread.
fn free_in(
    window: &'static Window,
    (slot, offset): (usize, usize),
    by: Option<Freed>,
    may_reuse: bool,
) -> Free {
    let blocks = blocks(window);
    let Some(offset) = offset.checked_sub(blocks.start) else {
        // It has outlived an earlier execution, and there is no record of it.
        window.escaped.fetch_sub(1, AcqRel);
        return Free::WithObjects(0);
    };
    let Some((place, record)) = blocks.at(slot, offset) else { return Free::Done(0) };
    match record.state {
        Use::Live => {}
        Use::Freed(freed) => return Free::Twice(freed),
        Use::Reserved => return Free::Done(0),
    }
    record.state = Use::Freed(by.unwrap_or(Freed { slot: slot as u8, done: 0 }));
    let (size, holds_objects) = (record.block.size, record.holds_objects);
    if let (Some(by), true) = (by, may_reuse) {
        blocks.list(by.slot.into(), place);
    }
    blocks.live -= 1;
    if holds_objects { Free::WithObjects(size) } else { Free::Done(size) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where there is no address space for a window, freed memory is watched anyway.
    #[test]
    fn blocks_outside_of_windows_are_freed_once() {
        let mut arena = Arena::new(Escapes::default());
        arena.refused = true;
        let (layout, block) = (Layout::new::<[u64; 4]>(), Block::default());
        let Placement::Elsewhere(outside) = arena.allocate(0, layout, block) else {
            panic!("there is no window")
        };
        // SAFETY: its size is not zero. The end of the execution frees it.
        let address = unsafe { std::alloc::alloc(layout) }.expose_provenance();
        arena.enter(address, layout, outside);
        assert!(arena.owns(address) && arena.owns(address + 31) && !arena.owns(address + 32));
        assert!(matches!(arena.find(address + 8), Some(Found::Live(_, 8))));
        let by = Freed { slot: 1, done: 2 };
        assert_eq!(arena.free_elsewhere(address, by, false), Some(Free::WithObjects(0)));
        assert!(
            arena.owns(address)
                && matches!(arena.find(address + 8), Some(Found::Freed(freed)) if freed == by)
        );
        assert_eq!(
            arena.free_elsewhere(address, Freed { slot: 0, done: 3 }, false),
            Some(Free::Twice(by))
        );
        assert_eq!(arena.free_elsewhere(address + 8, by, false), None);
        arena.end(true);
        assert!(!arena.owns(address));
    }
}
