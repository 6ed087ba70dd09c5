//! Memory for the program under test, at addresses that are the same in every execution.
//!
//! Programs compare addresses, order locks by them and hash them, and whether a new block gets the
//! address of a freed one decides whether a compare-and-exchange of pointers succeeds (ABA). With
//! the system's allocator that depends on the other allocations of the process. So each worker has
//! a *window* of address space with one region for each thread slot, and a thread gets
//!
//! 1. of the blocks of the requested size, the one that it freed last (like the thread cache of a
//!    malloc), or else
//! 2. the next part of its region that was not used before.
//!
//! Both are functions of what the thread did and of pointers that it got from others, that is, of
//! its causal past. So independent steps stay independent. A block that a thread frees goes to
//! *its* list, even if another thread allocated it.
//!
//! # What outlives an execution
//!
//! A test passes memory to code outside: a collection that gathers results, the buffer of the
//! standard output, a lazy static. Such a block stays where it is, and the next execution begins
//! after it, by whole pages (`parts`). The *names* of blocks that outlived a complete execution are
//! recorded. In later executions such blocks come from the system's allocator, while the places
//! that they would have had stay unused, so all others keep their addresses. When the last such
//! block is freed, its pages are used again.
//!
//! Blocks of executions that could not end (see `system/finish.rs`) may have been passed to code
//! outside too. They are released when nothing refers to them any more (`reclaim`).
//!
//! # Memory from elsewhere
//!
//! Very large blocks, those that outlive executions, and all of them if the system grants no
//! address space, come from the allocator below. They are freed at the end of the execution, so no
//! address is reused within it: equality of addresses is deterministic for these too.

mod escapes;
mod parts;
mod places;
mod reclaim;
mod scan;
mod window;

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{Acquire, Release};

use preempt_system::MAX_THREADS;
use preempt_system::fingerprint::Mixer;

pub(crate) use self::escapes::Escapes;
use self::places::{Blocks, GRAIN, PlaceId, fine_class_of, room_of};
pub(crate) use self::places::{CLASSES, class_of};
pub(crate) use self::reclaim::forget;
pub(crate) use self::window::contains;
use self::window::{Window, token, window_of};

use super::blocks::Block;

/// Executions begin at multiples of it, so that offsets within a page are the same even after a
/// block has outlived an execution.
const PAGE: usize = 4096;

/// The pattern with which freed memory is filled, and the maximum number of bytes that are filled.
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

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Live,
    /// Freed in this execution.
    Freed(Freed),
    /// The place of a block that comes from elsewhere.
    Reserved,
    /// A live block of which only the memory counts, see [`Arena::set_apart`].
    Apart,
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

/// The source of a new block.
pub(crate) enum Placement {
    Window(*mut u8),
    /// The allocator below; [`Arena::enter`] then records the address.
    Elsewhere(Outside),
}

/// A block that comes from the allocator below.
pub(crate) struct Outside {
    block: Block,
    reserved: Option<PlaceId>,
}

/// The block at an address.
pub(crate) enum Found {
    /// A live block, and the offset of the address in it.
    Live(Block, usize),
    Freed(Freed),
}

/// The threads that may have pointers into the memory of executions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Users {
    /// Those of the execution.
    Controlled,
    /// Also OS threads that the check does not control.
    Any,
}

/// The memory of a runtime's executions.
pub(crate) struct Arena {
    window: Option<&'static Window>,
    /// The window, if no block is known to outlive executions, so that a name decides nothing.
    plain: Option<&'static Window>,
    elsewhere: BTreeMap<usize, Elsewhere>,
    /// Whether the system refused a window; it is not tried again.
    refused: bool,
    escapes: Escapes,
    users: Users,
}

impl Arena {
    /// The window is reserved when the first block is allocated: a test with another allocator
    /// needs none.
    pub(crate) fn new(escapes: Escapes, users: Users) -> Arena {
        let elsewhere = BTreeMap::new();
        Arena { window: None, plain: None, elsewhere, refused: false, escapes, users }
    }

    /// An execution begins.
    pub(crate) fn begin(&mut self) {
        if self.window.is_some_and(|window| !window.make_room()) {
            self.release();
        }
    }

    /// The window, which is reserved if there is none.
    #[inline]
    fn window(&mut self) -> Option<&'static Window> {
        if self.window.is_none() && !self.refused {
            self.window = Window::take();
            self.refused = self.window.is_none();
            self.note_plain();
        }
        self.window
    }

    /// Sets `plain` after a change of what it depends on.
    fn note_plain(&mut self) {
        self.plain = self.window.filter(|_| self.escapes.is_empty());
    }

    /// The fast path of an allocation by the thread in this slot: for a small block whose place is
    /// ready, as nearly all are. Otherwise returns null and changes nothing. `name` is called if
    /// there is memory.
    #[inline(always)]
    pub(crate) fn allocate_small(
        &mut self,
        slot: usize,
        layout: Layout,
        name: impl FnOnce(usize) -> Block,
    ) -> *mut u8 {
        let (Some(class), Some(window)) = (fine_class_of(layout), self.plain) else {
            return null_mut();
        };
        let blocks = blocks(window);
        let start = window.base + blocks.start;
        let room = room_of(class, layout.size());
        let Some((place, record)) = blocks.take(slot, class, (room, window.region)) else {
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

    /// The fast path of a free by a thread of the execution: for a block without recorded objects,
    /// as most are. Returns its size, and the thread can reuse the place; otherwise changes
    /// nothing.
    #[inline(always)]
    pub(crate) fn free_plain(&mut self, address: usize, by: Freed) -> Option<usize> {
        let window = self.window?;
        let (slot, offset) = place_in(window, address)?;
        let blocks = blocks(window);
        blocks.free_plain(slot, offset.checked_sub(blocks.start)?, by)
    }

    /// A thread of the execution frees a block; `None` if it is not in a window. It `may_reuse` the
    /// place, unless which thread frees the block is not determined by the schedule.
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

    /// Records a block that came from the allocator below.
    pub(crate) fn enter(
        &mut self,
        address: usize,
        layout: Layout,
        Outside { block, reserved }: Outside,
    ) {
        self.elsewhere.insert(address, Elsewhere { layout, block, state: Use::Live, reserved });
    }

    /// The program frees a block that is not in a window; `None` if it is not of this execution. It
    /// is freed at the end of the execution: until then its address is not reused, and uses of it
    /// are detected.
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
        // SAFETY: the program has freed it, and it was not yet returned to the allocator below.
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

    /// The block at an address at which the check finds an object.
    pub(crate) fn find(&self, address: usize) -> Option<Found> {
        let found = |state: Use, block: Block, offset: usize| match state {
            Use::Live => Some(Found::Live(block, offset)),
            Use::Freed(freed) => Some(Found::Freed(freed)),
            Use::Reserved | Use::Apart => None,
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

    /// The block that contains this address is the runtime's own: it has no objects of the program,
    /// and which thread frees it is not determined by the schedule, so its place is not reused. It
    /// lasts as long as the other memory of the execution.
    pub(crate) fn set_apart(&mut self, address: usize) {
        if let Some(window) = self.window
            && let Some((slot, offset)) = place_in(window, address)
        {
            let blocks = blocks(window);
            let record = offset.checked_sub(blocks.start).and_then(|at| blocks.find(slot, at));
            record.into_iter().for_each(|record| record.state = Use::Apart);
        } else if let Some((&start, _)) = self.elsewhere.range(..=address).next_back() {
            self.elsewhere.remove(&start);
        }
    }

    /// The block outside the window that contains an address, and the offset in it.
    fn find_elsewhere(&self, address: usize) -> Option<(&Elsewhere, usize)> {
        let (&start, of) = self.elsewhere.range(..=address).next_back()?;
        let offset = address - start;
        (offset < of.layout.size()).then_some((of, offset))
    }

    /// Ends an execution. Returns the names of blocks that outlive it, if it is `complete` and they
    /// were not known before.
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
                let (size, regions) = (blocks.most(), blocks.used());
                let reclaims = !complete && self.users == Users::Controlled;
                let mut parts = parts::lock(&window.parts);
                parts.end(blocks.live, size, regions, reclaims);
                blocks.start = parts.begin();
            }
            blocks.clear();
        }
        reclaim::wait_for_scan();
        if !complete {
            reclaim::reclaim_if_due();
        }
        if !learned.is_empty() {
            learned.retain(|&block| self.escapes.insert(block));
            self.note_plain();
        }
        learned
    }

    /// Frees the blocks from the allocator below that the program has freed.
    #[cold]
    fn free_rest(&mut self, complete: bool, learned: &mut Vec<Block>) {
        let mut left = Vec::new();
        for (address, of) in std::mem::take(&mut self.elsewhere) {
            match of.state {
                // SAFETY: it was allocated with this layout, and the program's free never reached
                // this allocator.
                Use::Freed(_) => unsafe {
                    std::alloc::dealloc(std::ptr::with_exposed_provenance_mut(address), of.layout);
                },
                _ if complete => learned.push(of.block),
                _ => left.push((address, of.layout)),
            }
        }
        if !left.is_empty() && self.users == Users::Controlled {
            reclaim::keep(&left);
        }
    }

    /// Adds all blocks, their contents, and the places of the next allocations to `mixer`. Parts of
    /// a block that were never written, such as padding, count too.
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

    /// Releases the window.
    fn release(&mut self) {
        self.plain = None;
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
    // hold the reference call only the allocator below, for their own vectors, and `poison`, so no
    // second reference is made while it lives.
    unsafe { &mut *window.blocks.get() }
}

/// The slot whose region contains an address, and the offset in it.
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
        // SAFETY: the caller upholds the contract, and the address is aligned. Volatile, since the
        // memory may be uninitialised.
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
/// `size` bytes at `address` are allocated and no longer used.
#[inline]
pub(crate) unsafe fn poison(address: usize, size: usize) {
    // SAFETY: the caller upholds the contract.
    unsafe {
        std::ptr::with_exposed_provenance_mut::<u8>(address).write_bytes(POISON, size.min(POISONED))
    };
}

/// Fills a freed block of a window. Most blocks are a few words, for which a function call would
/// take longer than the stores.
///
/// # Safety
///
/// Those of [`poison`], and the block is in a window: a place is a multiple of [`GRAIN`] long.
#[inline(always)]
pub(crate) unsafe fn poison_place(address: usize, size: usize) {
    if size > 4 * GRAIN {
        // SAFETY: the caller upholds the contract.
        return unsafe { poison(address, size) };
    }
    let memory = std::ptr::with_exposed_provenance_mut::<u8>(address);
    for grain in 0..4 {
        if grain == 0 || size > grain * GRAIN {
            // SAFETY: the caller upholds the contract; the last grain may begin in the block and
            // end after it, which is still inside the place.
            unsafe { memory.add(grain * GRAIN).write_bytes(POISON, GRAIN) };
        }
    }
}

/// How a block in a window was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Free {
    /// It was a block of this size, which is to be [poisoned](poison).
    Done(usize),
    /// Like `Done`, for a block that may contain objects of the check.
    WithObjects(usize),
    /// The block was free already.
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
    // or was passed to a thread of std.
    let place = place_in(window, address).expect("the address is in the window");
    if window.owner.load(Acquire) != token() {
        free_in_parts(window, place.1);
        return Free::Done(0);
    }
    free_in(window, place, None, false)
}

/// Frees the block at this offset of a region that its owner's current execution does not free.
fn free_in_parts(window: &Window, offset: usize) {
    parts::lock(&window.parts).free(offset, |part| window.release_part(part));
}

/// Frees the block at this offset of a slot's region in a window of the caller's OS thread.
fn free_in(
    window: &'static Window,
    (slot, offset): (usize, usize),
    by: Option<Freed>,
    may_reuse: bool,
) -> Free {
    let blocks = blocks(window);
    if offset < blocks.start {
        // The block has outlived an earlier execution, whose records are gone.
        free_in_parts(window, offset);
        return Free::WithObjects(0);
    }
    let offset = offset - blocks.start;
    let Some((place, record)) = blocks.at(slot, offset) else { return Free::Done(0) };
    match record.state {
        Use::Live => {}
        Use::Apart => {
            record.state = Use::Reserved;
            let size = record.block.size;
            blocks.live -= 1;
            return Free::Done(size);
        }
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

    /// Without address space for a window, uses of freed memory are still detected.
    #[test]
    fn blocks_outside_of_windows_are_freed_once() {
        let mut arena = Arena::new(Escapes::default(), Users::Controlled);
        arena.refused = true;
        let (layout, block) = (Layout::new::<[u64; 4]>(), Block::default());
        let Placement::Elsewhere(outside) = arena.allocate(0, layout, block) else {
            panic!("there is no window")
        };
        // SAFETY: its size is not zero. It is freed at the end of the execution.
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
