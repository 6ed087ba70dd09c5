//! The memory that the program allocates while it is explored.
//!
//! Every thread has its own region, at an address that follows from its slot, and allocates from
//! the beginning of the region to its end. No memory is reused within an execution. So
//!
//! - the address of a block follows from the thread's own allocations alone, and an object has the
//!   same name in every schedule in which its thread has the same past, and
//! - freed memory stays freed, so a use or a second free is detected.
//!
//! ```text
//! region   | header | block ... | header | block ... |        one header before each block
//! shadow   one byte for 16 bytes of the region: 0 in use, FREED, or FIRST at the start of a block
//! ```
//!
//! A freed block is overwritten, so that uninstrumented code that uses it is likely to fail. Memory
//! that was allocated before `main` or by other allocators is not tracked.

use core::ptr::addr_of_mut;

use crate::block::{MAX_THREADS, Misuse};
use crate::schedule::{block, full, log_memory};
use crate::sys;
use crate::threads::{NO_THREAD, me};

/// The address of the region of slot 0.
const BASE: usize = 0x2000_0000_0000;

/// The size of a region.
const REGION: usize = 1 << 36;

/// The size of the address space of a process: no allocator provides a block of this size.
const ADDRESS_SPACE: usize = 1 << 47;

/// The address of the shadow.
const SHADOW: usize = 0x3000_0000_0000;

/// The number of bytes per byte of shadow. Blocks begin at multiples of it.
const GRAIN: usize = 16;

/// A region is mapped in multiples of this size.
const CHUNK: usize = 1 << 20;

/// The shadow of freed memory, except for the beginning of a block.
const FREED: u8 = 1;

/// The shadow of the beginning of a freed block.
const FIRST: u8 = 2;

/// Freed memory is overwritten with this byte.
const POISON: u8 = 0xDE;

/// The header before each block.
#[derive(Clone, Copy)]
struct Header {
    size: usize,
    /// [`LIVE`], or the result of [`freed_state`].
    state: u64,
}

const LIVE: u64 = 0x4C49_5645_0000_0000;

/// The upper bits of the state of a freed block, combined with the slot of the thread.
const FREED_STATE: u64 = 0xDEAD_0000_0000_0000;

/// The bits of the state of a freed block that contain an address.
const ADDRESS: u64 = (1 << 48) - 1;

/// The state of a block that the thread in `slot` freed by the call that returns to `pc`.
fn freed_state(slot: usize, pc: usize) -> u64 {
    FREED_STATE ^ (slot as u64) << 48 | pc as u64 & ADDRESS
}

/// The slot and the return address in the state of a freed block.
fn freed_by(state: u64) -> (usize, u64) {
    (((state ^ FREED_STATE) >> 48) as usize, state & ADDRESS)
}

/// The numbers of used and of mapped bytes of each region.
static mut USED: [[usize; 2]; MAX_THREADS] = [[0; 2]; MAX_THREADS];

fn used(slot: usize) -> &'static mut [usize; 2] {
    // SAFETY: only the running thread calls this; the reference ends before another thread runs.
    unsafe { &mut (*addr_of_mut!(USED))[slot] }
}

/// Whether the calling thread allocates from its region.
pub fn is_on() -> bool {
    me() != NO_THREAD && block().system_heap.load(core::sync::atomic::Ordering::Relaxed) == 0
}

/// Whether an address is in one of the regions.
#[inline]
pub fn contains(address: usize) -> bool {
    address.wrapping_sub(BASE) < REGION * MAX_THREADS
}

fn map(address: usize, size: usize) -> bool {
    const READ_WRITE: usize = 3;
    const PRIVATE: usize = 0x2;
    const ANONYMOUS: usize = 0x20;
    const NO_RESERVE: usize = 0x4000;
    const FIXED_NO_REPLACE: usize = 0x10_0000;
    const FLAGS: usize = PRIVATE | ANONYMOUS | NO_RESERVE | FIXED_NO_REPLACE;
    let args = [address, size, READ_WRITE, FLAGS, usize::MAX, 0];
    // SAFETY: the kernel refuses to replace an existing mapping.
    let mapped = unsafe { sys::call(sys::MMAP, args) };
    mapped as usize == address
}

/// Allocates a block of zeros. Returns 0 if there is no memory.
pub fn allocate(size: usize, alignment: usize) -> usize {
    if size >= ADDRESS_SPACE {
        return 0;
    }
    let slot = me();
    let (region, [used, mapped]) = (BASE + slot * REGION, used(slot));
    let alignment = alignment.max(GRAIN);
    let start = (region + *used + size_of::<Header>()).next_multiple_of(alignment);
    // An empty block has its own address too.
    let Some(end) = start.checked_add(size.max(1)).map(|end| end.next_multiple_of(GRAIN)) else {
        return 0;
    };
    if end - region > REGION {
        full(
            "a thread has allocated more than 64 GiB in one execution: memory is never reused, so \
             that uses after free are found; --allocator system reuses it",
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

/// Whether an address is in the used part of a region.
fn is_used(address: usize) -> bool {
    contains(address) && (address - BASE) % REGION < used((address - BASE) / REGION)[0]
}

/// Frees a block by the call that returns to `pc`.
pub fn release(block: usize, pc: usize) {
    if !block.is_multiple_of(GRAIN) || !is_used(block) {
        return log_memory(Misuse::BadFree, block as u64, pc, (0, 0));
    }
    // SAFETY: a block is preceded by a header; at other addresses these words are mapped as well.
    let Header { size, state } = unsafe { *header(block) };
    if state != LIVE {
        // SAFETY: the address is in use, so its shadow is mapped.
        let was_freed = unsafe { *shadow(block) } == FIRST;
        let (misuse, before) = match was_freed {
            true => (Misuse::DoubleFree, freed_by(state)),
            false => (Misuse::BadFree, (0, 0)),
        };
        return log_memory(misuse, block as u64, pc, before);
    }
    // SAFETY: the block is in use, and the program has just freed it.
    unsafe {
        (*header(block)).state = freed_state(me(), pc);
        core::ptr::write_bytes(block as *mut u8, POISON, size);
        core::ptr::write_bytes(shadow(block), FREED, size.div_ceil(GRAIN).max(1));
        *shadow(block) = FIRST;
    }
}

/// Reports a use of freed memory by the call that returns to `pc`. Returns whether the memory was
/// freed.
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
    // SAFETY: the shadow of a freed block begins with `FIRST`, so the loop ends within the block.
    while unsafe { *shadow(first) } != FIRST {
        first -= GRAIN;
    }
    // SAFETY: a block is preceded by a header.
    let state = unsafe { (*header(first)).state };
    log_memory(Misuse::UseAfterFree, address as u64, pc, freed_by(state));
    true
}
