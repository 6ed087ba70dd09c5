//! Memory for the program under test, at addresses that are the same in every execution.
//!
//! Programs compare addresses, order locks by them and hash them, and whether a freed block comes back at the same address decides whether a
//! compare-and-exchange of pointers succeeds (ABA). With the system's allocator that depends on what else the process allocates. So each
//! worker has a *window* of address space with one region for each thread slot, and a thread gets
//!
//! 1. the block that it freed last, of those of the size that it asks for (as from the thread cache of a malloc), or else
//! 2. the next part of its region that was not used before.
//!
//! Both are functions of what the thread did and of pointers that it got from others, that is, of its causal past. So steps that the search takes to be
//! independent stay independent. A block that a thread frees goes to *its* list, whoever allocated it.
//!
//! # What outlives an execution
//!
//! A test hands memory to somebody outside: a collection that gathers results, the buffer of the standard output, a lazy static. Such a block
//! stays where it is, and the next execution begins after it, by whole pages. The *names* of blocks that outlived a complete execution are remembered, and in
//! later executions these come from the system's allocator, while the place that they would have had stays unused: so all others keep their addresses.
//! When the last block of a window that outlived its execution is freed, the window is as good as new.
//!
//! Blocks of executions that could not end (see `system/finish.rs`) may have been handed out too, and stay allocated.
//!
//! # Memory from elsewhere
//!
//! Very large blocks, those that outlive executions, and all of them if the system grants no address space, come from the allocator below. They are freed
//! at the end of the execution, so that no address comes back within one: equality of addresses is deterministic for these too.

mod escapes;
mod window;

use std::alloc::Layout;
use std::collections::BTreeMap;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use preempt_system::MAX_THREADS;
use preempt_system::fingerprint::Mixer;

pub(crate) use self::escapes::Escapes;
pub(crate) use self::window::contains;
use self::window::{Window, token, window_of};

use super::blocks::Block;

/// Executions begin at multiples of it, so that addresses within a page are the same also after a block has outlived an execution.
const PAGE: usize = 4096;

/// What freed memory is filled with, up to so many bytes.
pub(crate) const POISON: u8 = 0xde;
const POISONED: usize = 1 << 16;

/// The largest block that comes from a window.
const LARGEST: usize = 1 << 18;

/// Classes of sizes: up to 1 KiB by multiples of 16, then by powers of two.
const FINE: usize = 64;
const CLASSES: usize = FINE + 8;

/// Who freed a block: the thread's slot, and how many operations it had done.
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

/// A place in a region.
#[derive(Clone, Copy, Debug)]
struct Record {
    /// Where it begins, counted from the beginning of the execution's part of the region.
    at: u32,
    size: u32,
    class: Option<u8>,
    block: Block,
    state: Use,
}

/// A block that comes from the allocator below.
#[derive(Clone, Copy, Debug)]
struct Elsewhere {
    layout: Layout,
    block: Block,
    state: Use,
    /// The place that it would have had in a window: its region's slot, and the number there.
    reserved: Option<(u8, u32)>,
}

/// The blocks of a slot's region, sorted by their places, and what the slot's thread freed.
#[derive(Debug, Default)]
struct Region {
    next: usize,
    records: Vec<Record>,
    /// For each class the places that the thread freed, the last one last: their regions' slots, and the numbers there.
    lists: Vec<Vec<(u8, u32)>>,
    touched: u128,
}

/// All blocks of the present execution.
#[derive(Debug, Default)]
struct Blocks {
    /// Where the present execution's part of each region begins.
    start: usize,
    regions: Vec<Region>,
    live: isize,
}

impl Blocks {
    /// The record of the block that contains this offset of a region.
    fn find(&mut self, slot: usize, offset: usize) -> Option<&mut Record> {
        let records = &mut self.regions.get_mut(slot)?.records;
        let after = records.partition_point(|record| record.at as usize <= offset);
        records[..after].last_mut().filter(|record| offset - (record.at as usize) < record.size as usize)
    }
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
    reserved: Option<(u8, u32)>,
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
    /// The window is taken when the first block is allocated: a test whose allocator is another one needs none.
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

    /// A place for a block of the thread in this slot.
    pub(crate) fn allocate(&mut self, slot: usize, layout: Layout, block: Block) -> Placement {
        let escapes = self.escapes.contains(&block);
        let placed =
            if layout.size() <= LARGEST && layout.align() <= PAGE { self.place(slot, layout, block) } else { None };
        let Some((window, region, number)) = placed else {
            return Placement::Elsewhere(Outside { block, reserved: None });
        };
        let blocks = blocks(window);
        let record = &mut blocks.regions[region as usize].records[number as usize];
        if escapes {
            record.state = Use::Reserved;
            return Placement::Elsewhere(Outside { block, reserved: Some((region, number)) });
        }
        record.state = Use::Live;
        blocks.live += 1;
        let address = window.base + usize::from(region) * window.region + blocks.start + record.at as usize;
        Placement::Window(std::ptr::with_exposed_provenance_mut(address))
    }

    /// Finds a place in the window: its region's slot, and the number there.
    fn place(&mut self, slot: usize, layout: Layout, block: Block) -> Option<(&'static Window, u8, u32)> {
        let window = self.window()?;
        let blocks = blocks(window);
        if blocks.regions.len() <= slot {
            blocks.regions.resize_with(slot + 1, Region::default);
        }
        let class = class_of(layout);
        let region = &mut blocks.regions[slot];
        let freed = class.and_then(|class| region.lists.get_mut(usize::from(class))?.pop());
        if let Some((of, number)) = freed {
            let record = &mut blocks.regions[usize::from(of)].records[number as usize];
            (record.size, record.block) = (layout.size() as u32, block);
            return Some((window, of, number));
        }
        let at = region.next.next_multiple_of(layout.align().max(16));
        // One byte more than the block has, so that its end is not the beginning of another one.
        let room = class.map_or(layout.size() + 1, |class| room_of(class) + 1);
        if blocks.start + at + room > window.region {
            return None;
        }
        region.next = at + room;
        region.records.push(Record { at: at as u32, size: layout.size() as u32, class, block, state: Use::Reserved });
        Some((window, slot as u8, region.records.len() as u32 - 1))
    }

    /// Whether an address is in the window of this runtime.
    #[inline]
    pub(crate) fn owns(&self, address: usize) -> bool {
        self.window.is_some_and(|window| address.wrapping_sub(window.base) < window.region * MAX_THREADS)
    }

    /// A thread of the execution frees a block; `None` if it is not in a window. It `may_reuse` the place, unless it is chance that this thread frees the block.
    #[inline]
    pub(crate) fn free(&mut self, address: usize, by: Freed, may_reuse: bool) -> Option<Free> {
        if let Some(window) = self.window.filter(|_| self.owns(address)) {
            return Some(free_in(window, address, Some(by), may_reuse));
        }
        // A block of another runtime's execution is nobody's to get again.
        window_of(address).map(|window| free_from_outside(window, address))
    }

    /// A block has come from the allocator below.
    pub(crate) fn enter(&mut self, address: usize, layout: Layout, Outside { block, reserved }: Outside) {
        self.elsewhere.insert(address, Elsewhere { layout, block, state: Use::Live, reserved });
    }

    /// The program frees a block that is not in a window. Returns whether the end of the execution does that.
    pub(crate) fn free_elsewhere(&mut self, address: usize, freed: Freed, may_reuse: bool) -> bool {
        let Some(of) = self.elsewhere.get_mut(&address).filter(|of| of.state == Use::Live) else { return false };
        of.state = Use::Freed(freed);
        // SAFETY: the program has freed it, and the allocator below does not know yet.
        unsafe { poison(address, of.layout.size()) };
        if let (Some((region, number)), Some(window)) = (of.reserved, self.window) {
            list(blocks(window), usize::from(freed.slot), (region, number), may_reuse);
        }
        true
    }

    /// Whether a block that is not in a window is one of this execution.
    #[inline]
    pub(crate) fn knows(&self, address: usize) -> bool {
        !self.elsewhere.is_empty() && self.elsewhere.contains_key(&address)
    }

    /// What is known of an address.
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
            return found(record.state, record.block, offset - record.at as usize);
        }
        let (&start, of) = self.elsewhere.range(..=address).next_back()?;
        let offset = address - start;
        if offset < of.layout.size() { found(of.state, of.block, offset) } else { None }
    }

    /// The execution is over. Returns the names of blocks that outlive it, if it is `complete` and they were not known.
    pub(crate) fn end(&mut self, complete: bool) -> Vec<Block> {
        let mut learned = Vec::new();
        for (address, of) in std::mem::take(&mut self.elsewhere) {
            match of.state {
                // SAFETY: it was allocated with this layout, and nobody has freed it but the program.
                Use::Freed(_) => unsafe {
                    std::alloc::dealloc(std::ptr::with_exposed_provenance_mut(address), of.layout);
                },
                _ if complete => learned.push(of.block),
                _ => {}
            }
        }
        if let Some(window) = self.window {
            let blocks = blocks(window);
            if blocks.live > 0 {
                if complete {
                    let records = blocks.regions.iter().flat_map(|region| &region.records);
                    learned.extend(records.filter(|record| record.state == Use::Live).map(|record| record.block));
                }
                window.escaped.fetch_add(blocks.live, AcqRel);
                let most = blocks.regions.iter().map(|region| region.next).max().unwrap_or(0);
                blocks.start += most.next_multiple_of(PAGE);
            }
            blocks.live = 0;
            for region in &mut blocks.regions {
                region.next = 0;
                region.records.clear();
                let mut touched = std::mem::take(&mut region.touched);
                while touched != 0 {
                    region.lists[touched.trailing_zeros() as usize].clear();
                    touched &= touched - 1;
                }
            }
        }
        learned.retain(|&block| self.escapes.insert(block));
        learned
    }

    /// Adds all blocks and their contents to `mixer`, and which places the next allocations get.
    /// Parts of a block that were never written, as between fields, count too.
    pub(crate) fn absorb(&self, mixer: &mut Mixer) {
        if let Some(window) = self.window {
            let blocks = blocks(window);
            for (slot, region) in blocks.regions.iter().enumerate() {
                mixer.absorb(region.next as u64);
                for record in region.records.iter().filter(|record| record.state == Use::Live) {
                    let address = window.base + slot * window.region + blocks.start + record.at as usize;
                    // SAFETY: it is a live block of the window.
                    unsafe { absorb_memory(mixer, address, record.size as usize) };
                }
                for &(region, number) in region.lists.iter().flatten() {
                    mixer.absorb(u64::from(region) << 32 | u64::from(number));
                }
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
    // SAFETY: the owner's OS thread is the only one that gets here. Functions of this module that have the reference call nothing but the allocator
    // below, for their own vectors, and `poison`: no second one is made while it lives.
    unsafe { &mut *window.blocks.get() }
}

/// In which slot's region an address is, and where.
fn place_in(window: &Window, address: usize) -> Option<(usize, usize)> {
    let offset = address.wrapping_sub(window.base);
    // The size of a region is a power of two, and so is the number of regions.
    let bits = window.region.trailing_zeros();
    (offset >> bits < MAX_THREADS).then(|| (offset >> bits, offset & (window.region - 1)))
}

/// The class of blocks that can take each other's places.
fn class_of(layout: Layout) -> Option<u8> {
    let size = layout.size();
    if layout.align() > 16 || size > LARGEST {
        return None;
    }
    let class = if size <= 16 * FINE {
        size.div_ceil(16).max(1) - 1
    } else {
        FINE + size.next_power_of_two().ilog2() as usize - 11
    };
    Some(class as u8)
}

/// The size of the largest block of a class.
fn room_of(class: u8) -> usize {
    let class = usize::from(class);
    if class < FINE { 16 * (class + 1) } else { 1 << (class - FINE + 11) }
}

/// Adds the contents of a piece of memory to `mixer`.
///
/// # Safety
///
/// There are `size` bytes that can be read, and nobody writes to them meanwhile.
pub(crate) unsafe fn absorb_memory(mixer: &mut Mixer, address: usize, size: usize) {
    mixer.absorb(address as u64);
    mixer.absorb(size as u64);
    let words = if address.is_multiple_of(align_of::<u64>()) { size / 8 } else { 0 };
    for at in 0..words {
        // SAFETY: the caller's, and it is aligned. Volatile, since nobody says that it was written.
        mixer.absorb(unsafe { std::ptr::with_exposed_provenance::<u64>(address + 8 * at).read_volatile() });
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
/// There are `size` bytes, and nobody uses them any more.
unsafe fn poison(address: usize, size: usize) {
    // SAFETY: the caller's.
    unsafe { std::ptr::with_exposed_provenance_mut::<u8>(address).write_bytes(POISON, size.min(POISONED)) };
}

/// A thread has freed a place.
fn list(blocks: &mut Blocks, slot: usize, (region, number): (u8, u32), may_reuse: bool) {
    let Some(class) = blocks.regions[usize::from(region)].records[number as usize].class.filter(|_| may_reuse) else {
        return;
    };
    if blocks.regions.len() <= slot {
        blocks.regions.resize_with(slot + 1, Region::default);
    }
    let region_of_thread = &mut blocks.regions[slot];
    if region_of_thread.lists.is_empty() {
        region_of_thread.lists.resize_with(CLASSES, Vec::new);
    }
    region_of_thread.lists[usize::from(class)].push((region, number));
    region_of_thread.touched |= 1 << class;
}

/// How a block in a window was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Free {
    Done,
    /// It was free.
    Twice(Freed),
}

/// Frees a block if it is in a window, by code that is not a thread of an execution. Returns whether it is.
#[inline]
pub(crate) fn free(address: usize) -> bool {
    window_of(address).is_some_and(|window| {
        free_from_outside(window, address);
        true
    })
}

/// Frees a block in a window by code that is not a thread of the window's execution.
fn free_from_outside(window: &'static Window, address: usize) -> Free {
    // Another OS thread, or one without a runtime of its own: the block has outlived its execution, or was given to a thread of std's.
    if window.owner.load(Acquire) != token() {
        window.escaped.fetch_sub(1, AcqRel);
        return Free::Done;
    }
    free_in(window, address, None, false)
}

/// Frees a block in a window of the caller's OS thread.
fn free_in(window: &'static Window, address: usize, by: Option<Freed>, may_reuse: bool) -> Free {
    let blocks = blocks(window);
    let (slot, offset) = place_in(window, address).expect("the address is in the window");
    let Some(offset) = offset.checked_sub(blocks.start) else {
        window.escaped.fetch_sub(1, AcqRel);
        return Free::Done;
    };
    let Some(Region { records, .. }) = blocks.regions.get_mut(slot) else { return Free::Done };
    let Ok(number) = records.binary_search_by_key(&(offset as u32), |record| record.at) else { return Free::Done };
    let record = &mut records[number];
    match record.state {
        Use::Live => {}
        Use::Freed(freed) => return Free::Twice(freed),
        Use::Reserved => return Free::Done,
    }
    let size = record.size as usize;
    record.state = Use::Freed(by.unwrap_or(Freed { slot: slot as u8, done: 0 }));
    blocks.live -= 1;
    // SAFETY: the block is in the window, and the program has freed it.
    unsafe { poison(address, size) };
    if let Some(by) = by {
        list(blocks, usize::from(by.slot), (slot as u8, number as u32), may_reuse);
    }
    Free::Done
}
