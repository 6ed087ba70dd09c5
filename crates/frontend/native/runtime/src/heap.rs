//! The memory that the program allocates while it is explored.
//!
//! Every thread has a region of its own, at an address that follows from its slot, and allocates
//! from its beginning to its end: no memory is used twice in an execution. So
//!
//! - the address of a block follows from the thread's own allocations alone, and an object has the
//!   same name in every schedule in which its thread has the same past, and
//! - freed memory stays freed: a use, or a second free, is detected.
//!
//! ```text
//! region   | header | block ... | header | block ... |        one header before each block
//! shadow   one byte for 16 bytes of the region: 0 in use, FREED, or FIRST at the start of a block
//! ```
//!
//! A freed block is overwritten, so that code without instrumentation is likely to fail. Memory
//! from before `main` and from other allocators is not known here.

use core::ptr::addr_of_mut;

use crate::block::{MAX_THREADS, Misuse};
use crate::schedule::{block, full, log_memory};
use crate::sys;
use crate::threads::{NOBODY, me};

/// Where the region of the first slot begins.
const BASE: usize = 0x2000_0000_0000;

/// The size of a region.
const REGION: usize = 1 << 36;

/// Where the shadow begins.
const SHADOW: usize = 0x3000_0000_0000;

/// The bytes for which there is one byte of shadow. Blocks begin at multiples of it.
const GRAIN: usize = 16;

/// What is mapped at a time.
const CHUNK: usize = 1 << 20;

/// The shadow of memory that was freed, and of the beginning of a block that was.
const FREED: u8 = 1;
const FIRST: u8 = 2;

/// What freed memory is overwritten with.
const POISON: u8 = 0xDE;

/// Before each block.
#[derive(Clone, Copy)]
struct Header {
    size: usize,
    /// [`LIVE`], or the thread that freed the block and the position: the slot above the address.
    state: u64,
}

const LIVE: u64 = 0x4C49_5645_0000_0000;

/// The bits of an address in the state of a block that was freed.
const ADDRESS: u64 = (1 << 48) - 1;

/// The state of a block that was freed by the thread in `slot`, at `pc`.
fn freed_by(slot: usize, pc: usize) -> u64 {
    0xDEAD_0000_0000_0000 ^ (slot as u64) << 48 | pc as u64 & ADDRESS
}

/// The slot and the place in such a state.
fn freed_state(state: u64) -> (usize, u64) {
    (((state ^ 0xDEAD_0000_0000_0000) >> 48) as usize, state & ADDRESS)
}

/// The used and the mapped bytes of each region.
static mut USED: [[usize; 2]; MAX_THREADS] = [[0; 2]; MAX_THREADS];

fn used(slot: usize) -> &'static mut [usize; 2] {
    // SAFETY: only the running thread calls this; the reference ends before another thread runs.
    unsafe { &mut (*addr_of_mut!(USED))[slot] }
}

/// Whether the calling thread allocates here.
pub fn is_on() -> bool {
    me() != NOBODY && block().system_heap.load(core::sync::atomic::Ordering::Relaxed) == 0
}

/// Whether an address is in one of the regions.
#[inline]
pub fn contains(address: usize) -> bool {
    address.wrapping_sub(BASE) < REGION * MAX_THREADS
}

fn map(address: usize, size: usize) -> bool {
    const READ_WRITE: usize = 3;
    // Private, anonymous, at this address, and without taking memory that may never be used.
    const FLAGS: usize = 0x2 | 0x20 | 0x10_0000 | 0x4000;
    let args = [address, size, READ_WRITE, FLAGS, usize::MAX, 0];
    // SAFETY: nothing else is at these addresses: the kernel would refuse.
    let mapped = unsafe { sys::call(sys::MMAP, args) };
    mapped as usize == address
}

/// Allocates a block of zeros. Returns 0 if there is no memory.
pub fn allocate(size: usize, alignment: usize) -> usize {
    let slot = me();
    let (region, [used, mapped]) = (BASE + slot * REGION, used(slot));
    let alignment = alignment.max(GRAIN);
    let start = (region + *used + size_of::<Header>()).next_multiple_of(alignment);
    // A block of no bytes has an address of its own too.
    let Some(end) = start.checked_add(size.max(1)).map(|end| end.next_multiple_of(GRAIN)) else {
        return 0;
    };
    if end - region > REGION {
        full(
            "a thread has allocated more than 64 GiB in one execution: memory is not used twice, \
             so that use after free is found; --allocator system uses it again",
        );
    }
    if end - region > *mapped {
        let more = (end - region - *mapped).next_multiple_of(CHUNK);
        let shadow = SHADOW + (region - BASE + *mapped) / GRAIN;
        if !map(region + *mapped, more) || !map(shadow, more / GRAIN) {
            return 0;
        }
        *mapped += more;
    }
    *used = end - region;
    // SAFETY: the block and its header are mapped, and no other block overlaps them.
    unsafe { *header(start) = Header { size, state: LIVE } };
    start
}

fn header(block: usize) -> *mut Header {
    (block - size_of::<Header>()) as *mut Header
}

fn shadow(address: usize) -> *mut u8 {
    (SHADOW + (address - BASE) / GRAIN) as *mut u8
}

/// The size of a block.
pub fn size(block: usize) -> usize {
    // SAFETY: the program passes a block.
    unsafe { (*header(block)).size }
}

/// Whether an address lies in the used part of a region.
fn is_used(address: usize) -> bool {
    contains(address) && (address - BASE) % REGION < used((address - BASE) / REGION)[0]
}

/// Frees a block, at `pc`.
pub fn release(block: usize, pc: usize) {
    if !block.is_multiple_of(GRAIN) || !is_used(block) {
        return log_memory(Misuse::BadFree, block as u64, pc, (0, 0));
    }
    // SAFETY: a block is preceded by a header; elsewhere the words are mapped as well.
    let Header { size, state } = unsafe { *header(block) };
    if state != LIVE {
        // SAFETY: the address is in use, so its shadow is mapped.
        let was_freed = unsafe { *shadow(block) } == FIRST;
        let (misuse, before) = match was_freed {
            true => (Misuse::DoubleFree, freed_state(state)),
            false => (Misuse::BadFree, (0, 0)),
        };
        return log_memory(misuse, block as u64, pc, before);
    }
    // SAFETY: the block is in use, and the program has just freed it.
    unsafe {
        (*header(block)).state = freed_by(me(), pc);
        core::ptr::write_bytes(block as *mut u8, POISON, size);
        core::ptr::write_bytes(shadow(block), FREED, size.div_ceil(GRAIN).max(1));
        *shadow(block) = FIRST;
    }
}

/// Reports the use, at `pc`, of memory that was freed. Returns whether it was.
#[inline]
pub fn check(address: usize, pc: usize) -> bool {
    contains(address) && check_region(address, pc)
}

#[cold]
fn check_region(address: usize, pc: usize) -> bool {
    // SAFETY: the shadow of the used part is mapped.
    if !is_used(address) || unsafe { *shadow(address) } == 0 {
        return false;
    }
    let mut first = address & !(GRAIN - 1);
    // SAFETY: a block that was freed has a beginning before it.
    while unsafe { *shadow(first) } != FIRST {
        first -= GRAIN;
    }
    // SAFETY: a block is preceded by a header.
    let state = unsafe { (*header(first)).state };
    log_memory(Misuse::UseAfterFree, address as u64, pc, freed_state(state));
    true
}
