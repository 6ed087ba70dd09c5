//! The address space of an arena: which runtime uses which window.

use std::cell::{Cell, UnsafeCell};
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicPtr, AtomicUsize};

use preempt_system::{MAX_THREADS, ThreadId, ThreadSet};

use super::parts::{self, FIRST, Part, Parts};
use super::places::Blocks;

/// The sizes of a slot's region, the largest that the system grants: address space may be limited.
const REGIONS: [usize; 2] = [16 << 20, 1 << 20];

/// The most windows in a process.
const MOST: usize = 1024;

static WINDOWS: [AtomicPtr<Window>; MOST] = [const { AtomicPtr::new(null_mut()) }; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// All windows are between these addresses.
static LOW: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGH: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Its address identifies the OS thread.
    static TOKEN: Cell<u8> = const { Cell::new(0) };
}

pub(super) fn token() -> usize {
    TOKEN.try_with(|token| std::ptr::from_ref(token).addr()).unwrap_or(1)
}

/// A part of the address space, used by one runtime at a time. It is never unmapped, because code
/// outside may have blocks in it.
pub(super) struct Window {
    pub(super) base: usize,
    /// The size of a region, a power of two, and which one.
    pub(super) region: usize,
    pub(super) bits: u32,
    /// The OS thread whose runtime uses it; 0 if none does.
    pub(super) owner: AtomicUsize,
    /// The parts that executions have left.
    pub(super) parts: Mutex<Parts>,
    pub(super) blocks: UnsafeCell<Blocks>,
}

// SAFETY: `blocks` is used by the owner's OS thread only, see `free`.
unsafe impl Sync for Window {}

/// The window that contains an address.
#[inline]
pub(super) fn window_of(address: usize) -> Option<&'static Window> {
    if !may_contain(address) {
        return None;
    }
    all().find(|window| address.wrapping_sub(window.base) < window.region * MAX_THREADS)
}

/// Whether an address is between the first window and the last.
#[inline]
pub(super) fn may_contain(address: usize) -> bool {
    address >= LOW.load(Relaxed) && address < HIGH.load(Relaxed)
}

/// All windows of the process.
pub(super) fn all() -> impl Iterator<Item = &'static Window> {
    WINDOWS[..COUNT.load(Acquire).min(MOST)].iter().filter_map(|window| {
        // SAFETY: windows are leaked boxes.
        unsafe { window.load(Acquire).as_ref() }
    })
}

/// Whether an address is in a window.
#[inline]
pub(crate) fn contains(address: usize) -> bool {
    window_of(address).is_some()
}

impl Window {
    /// An unused window that has room, or a new one.
    pub(super) fn take() -> Option<&'static Window> {
        let own = token();
        for window in all() {
            let free = window.owner.load(Acquire) == 0;
            if free && window.owner.compare_exchange(0, own, AcqRel, Relaxed).is_ok() {
                if window.make_room() {
                    return Some(window);
                }
                window.owner.store(0, Release);
            }
        }
        if COUNT.load(Relaxed) >= MOST {
            return None;
        }
        let (base, region) =
            REGIONS.iter().find_map(|&region| Some((reserve(region * MAX_THREADS)?, region)))?;
        let blocks = UnsafeCell::new(Blocks::default());
        let (owner, parts) = (AtomicUsize::new(own), Mutex::default());
        let bits = region.trailing_zeros();
        let window: &'static Window =
            Box::leak(Box::new(Window { base, region, bits, owner, parts, blocks }));
        let at = COUNT.fetch_add(1, AcqRel);
        WINDOWS.get(at)?.store(std::ptr::from_ref(window).cast_mut(), Release);
        LOW.fetch_min(base, AcqRel);
        HIGH.fetch_max(base + region * MAX_THREADS, AcqRel);
        Some(window)
    }

    /// Lets the next execution begin after what earlier ones have left behind; false if there is
    /// too little room after it.
    #[inline]
    pub(super) fn make_room(&self) -> bool {
        let blocks = super::blocks(self);
        if blocks.start != FIRST {
            let start = parts::lock(&self.parts).begin();
            if start < blocks.start {
                // Parts were released. What executions after them have used is not needed either.
                let regions = blocks.used();
                self.release_pages(start, self.region, regions);
            }
            blocks.start = start;
        }
        blocks.start <= self.region / 2
    }

    /// The slot whose region contains an address, and the offset in it.
    pub(super) fn place_of(&self, address: usize) -> Option<(ThreadId, usize)> {
        let (slot, offset) = super::place_in(self, address)?;
        Some((ThreadId::new(slot), offset))
    }

    /// The memory of a part.
    pub(super) fn ranges(&self, part: &Part) -> impl Iterator<Item = (usize, usize)> + use<> {
        self.ranges_in(part.start, part.end, part.regions)
    }

    /// The memory between two offsets in these slots' regions.
    fn ranges_in(
        &self,
        start: usize,
        end: usize,
        regions: ThreadSet,
    ) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (base, region) = (self.base, self.region);
        regions.iter().map(move |thread| {
            let region = base + thread.index() * region;
            (region + start, region + end)
        })
    }

    /// Returns the pages of a part, in which no block is used, to the system.
    pub(super) fn release_part(&self, part: &Part) {
        self.release_pages(part.start, part.end, part.regions);
    }

    fn release_pages(&self, start: usize, end: usize, regions: ThreadSet) {
        for (start, end) in self.ranges_in(start, end, regions) {
            release(start, end - start);
        }
    }
}

/// Returns pages of a window to the system. They stay reserved, and are zero when they are used
/// again.
#[cfg(unix)]
fn release(start: usize, size: usize) {
    let start = std::ptr::with_exposed_provenance_mut(start);
    // SAFETY: whole pages of a window, in which no block is used. If the call fails, the pages keep
    // their contents, on which no code relies.
    unsafe { libc::madvise(start, size, libc::MADV_DONTNEED) };
}

#[cfg(not(unix))]
fn release(_start: usize, _size: usize) {}

/// Address space of `size` bytes, aligned to as many. Untouched pages cost nothing.
#[cfg(unix)]
fn reserve(size: usize) -> Option<usize> {
    let (access, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
    );
    // SAFETY: a new mapping touches no memory in use; the result is checked before use.
    let start = unsafe { libc::mmap(null_mut(), 2 * size, access, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    let start = start.expose_provenance();
    let base = start.next_multiple_of(size);
    for (from, to) in [(start, base), (base + size, start + 2 * size)] {
        if from < to {
            // SAFETY: the parts before and after the window, which are unused.
            unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(from), to - from) };
        }
    }
    Some(base)
}

#[cfg(not(unix))]
fn reserve(_size: usize) -> Option<usize> {
    None
}
