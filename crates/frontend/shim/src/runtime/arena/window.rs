//! The address space of an arena: which runtime uses which window.

use std::cell::{Cell, UnsafeCell};
use std::ptr::null_mut;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicIsize, AtomicPtr, AtomicUsize};

use preempt_system::MAX_THREADS;

use super::places::Blocks;

/// The sizes of a slot's region that are tried: address space may be limited.
const REGIONS: [usize; 2] = [16 << 20, 1 << 20];

/// The most windows in a process.
const MOST: usize = 1024;

static WINDOWS: [AtomicPtr<Window>; MOST] = [const { AtomicPtr::new(null_mut()) }; MOST];
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// All windows lie between these.
static LOW: AtomicUsize = AtomicUsize::new(usize::MAX);
static HIGH: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// Its address stands for the OS thread.
    static TOKEN: Cell<u8> = const { Cell::new(0) };
}

pub(super) fn token() -> usize {
    TOKEN.try_with(|token| std::ptr::from_ref(token).addr()).unwrap_or(1)
}

/// A part of the address space, used by one runtime at a time. It is never unmapped: others may
/// have blocks in it.
pub(super) struct Window {
    pub(super) base: usize,
    /// The size of a region, a power of two, and which one.
    pub(super) region: usize,
    pub(super) bits: u32,
    /// The OS thread whose runtime uses it; 0 if none does.
    pub(super) owner: AtomicUsize,
    /// Blocks that have outlived their executions and were not freed.
    pub(super) escaped: AtomicIsize,
    pub(super) blocks: UnsafeCell<Blocks>,
}

// SAFETY: `blocks` is used by the owner's OS thread only, see `free`.
unsafe impl Sync for Window {}

/// The window that an address is in.
#[inline]
pub(super) fn window_of(address: usize) -> Option<&'static Window> {
    if address < LOW.load(Relaxed) || address >= HIGH.load(Relaxed) {
        return None;
    }
    WINDOWS[..COUNT.load(Acquire).min(MOST)].iter().find_map(|window| {
        // SAFETY: windows are leaked boxes.
        let window = unsafe { window.load(Acquire).as_ref() }?;
        (address.wrapping_sub(window.base) < window.region * MAX_THREADS).then_some(window)
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
        for window in &WINDOWS[..COUNT.load(Acquire).min(MOST)] {
            // SAFETY: windows are leaked boxes.
            let Some(window) = (unsafe { window.load(Acquire).as_ref() }) else { continue };
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
        let (owner, escaped) = (AtomicUsize::new(own), AtomicIsize::new(0));
        let bits = region.trailing_zeros();
        let window: &'static Window =
            Box::leak(Box::new(Window { base, region, bits, owner, escaped, blocks }));
        let at = COUNT.fetch_add(1, AcqRel);
        WINDOWS.get(at)?.store(std::ptr::from_ref(window).cast_mut(), Release);
        LOW.fetch_min(base, AcqRel);
        HIGH.fetch_max(base + region * MAX_THREADS, AcqRel);
        Some(window)
    }

    /// Lets the next execution begin behind the blocks that have outlived theirs; false if there is
    /// little room behind them.
    ///
    /// An execution that deadlocks never frees its blocks, so a process with many failing checks
    /// would need a window for each if these were not shared.
    pub(super) fn make_room(&self) -> bool {
        let blocks = super::blocks(self);
        if self.escaped.load(Acquire) == 0 {
            blocks.start = 0;
        }
        blocks.start <= self.region / 2
    }
}

/// Address space of `size` bytes, aligned to as many. Untouched pages cost nothing.
#[cfg(unix)]
fn reserve(size: usize) -> Option<usize> {
    let (access, flags) = (
        libc::PROT_READ | libc::PROT_WRITE,
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
    );
    // SAFETY: a new mapping, of which nothing is used before it is known to exist.
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
