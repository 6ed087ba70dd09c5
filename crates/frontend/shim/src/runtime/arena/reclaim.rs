//! Releases the memory of executions that could not end, like a conservative garbage collector.
//!
//! The threads of such an execution lose their stacks, and no destructor runs
//! (`system/finish.rs`). What they owned cannot be freed at once: parts of it may have been passed
//! to code outside, which still uses it. So the memory is kept until nothing refers to it, as a
//! conservative garbage collector does: a *scan* reads all writable memory of the process, and
//! every word that may be an address in a part of an abandoned execution keeps the whole part, and
//! what is referred to from there. Blocks that came from the allocator below are kept one by one.
//!
//! # Why released memory is not used any more
//!
//! Code can use a block only if it has a pointer into it. The scan reads every place where there
//! may be one:
//!
//! - Static and thread-local variables, the heaps of all allocators, the stacks of all OS threads
//!   and coroutines, the windows of other checks, and memory that is shared or was made read-only
//!   are mappings of the process. All pages that were ever written are read; nothing has to be
//!   known about them. A page that cannot be read makes the scan worthless, and memory of a device
//!   that the process can write makes all scans worthless.
//! - A register may contain the only copy of a pointer. The scanning thread stores its registers
//!   on its stack before it reads that, and so do threads that wait for the end of a scan.
//! - Another OS thread may move a pointer from memory that was not yet read to memory that was. So
//!   a scan counts only if no other thread of the process has run meanwhile: each one slept in the
//!   kernel, before and after, and has not been scheduled in between. Threads that run checks wait
//!   between two executions while a scan is due. If another thread does not stop, nothing is
//!   released, and the next attempt is made later.
//! - The registers of another thread that sleeps are in the kernel. What it waits in has saved the
//!   registers of its callers on the stack, except those that no function up to the system call
//!   uses. Such a thread gets pointers into an execution only through synchronisation that Preempt
//!   does not control; a check fails because of that, unless it allows it
//!   (`Check::allow_uncontrolled`). What executions of such checks leave behind is never released.
//!   Besides, memory is released only after [`SCANS`] scans in a row without a reference.
//!
//! As with every conservative collector, a pointer must be recognisable: eight bytes at a multiple
//! of four whose lower 48 bits are the address, with any tag in the upper and lower bits. Pointers
//! that a program combines (XOR lists) or compresses and has nowhere else are not seen, and neither
//! are those that only the kernel has (the data of an epoll entry, the contents of a pipe) or
//! another process.
//!
//! # Cost
//!
//! A scan is due when as much was retained since the last one as a fixed fraction of what that one
//! read, so the time for scans is proportional to the memory of abandoned executions. A stale word
//! that happens to look like a pointer keeps one part and nothing else. Where the memory of the
//! process cannot be read (only Linux has `/proc/self/mem`), nothing is released.
//! An attempt that other threads make worthless costs [`PATIENCE`], and doubles what has to be
//! retained before the next one.

use std::alloc::Layout;
use std::hint::black_box;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::parts::{self, Part, RETAINED};
use super::scan::{self, Quiet, Scan};
use super::window::{self, Window};

/// The number of consecutive scans without a reference after which memory is released.
const SCANS: u8 = 2;

/// The least number of bytes that are retained between two scans.
const LEAST: usize = 1 << 20;

/// A scan is due when as many bytes were retained as the last one has read, divided by this.
const FRACTION: usize = 4;

/// The most bytes that are retained between two attempts because the last ones were worthless.
const MOST: usize = 64 << 20;

/// How long a scan waits until no other thread runs.
const PATIENCE: Duration = Duration::from_millis(50);

/// The lower bits of a word that are compared with addresses.
const ADDRESS: usize = (1 << 48) - 1;

/// The retained bytes at which the next scan is due.
static DUE: AtomicUsize = AtomicUsize::new(LEAST);

/// Held during a scan.
static SCANNING: Mutex<()> = Mutex::new(());

/// Whether threads that run checks have to wait until [`SCANNING`] is free.
static PAUSE: AtomicBool = AtomicBool::new(false);

/// The bytes to be retained before the next attempt, after one that was worthless.
static BACKOFF: AtomicUsize = AtomicUsize::new(LEAST);

/// Blocks of abandoned executions that came from the allocator below, and their number.
static BLOCKS: Mutex<Vec<Block>> = Mutex::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// An address in a table of this module. It is stored as its complement, which does not look like
/// a reference.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hidden(usize);

impl Hidden {
    pub(super) fn new(address: usize) -> Hidden {
        Hidden(!address)
    }

    pub(super) fn get(self) -> usize {
        !self.0
    }
}

/// A piece of memory, from its first address to the one after its last.
pub(super) type Range = (Hidden, Hidden);

/// A block from the allocator below.
#[derive(Clone, Copy, Debug)]
struct Block {
    address: Hidden,
    layout: Layout,
    unreferenced: u8,
}

impl Block {
    fn address(&self) -> usize {
        self.address.get()
    }

    fn range(&self) -> Range {
        (self.address, Hidden::new(self.address() + self.layout.size()))
    }
}

fn blocks() -> MutexGuard<'static, Vec<Block>> {
    BLOCKS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps blocks of an abandoned execution that came from the allocator below.
///
/// While the blocks are locked nothing may be freed, since that locks them too. So the table is not
/// extended in place: a larger one is allocated before, and the smaller one is freed after.
pub(super) fn keep(left: &[(usize, Layout)]) {
    let mut table = Vec::new();
    let mut blocks = blocks();
    while blocks.capacity() - blocks.len() < left.len() {
        let needed = 2 * (blocks.len() + left.len());
        if table.capacity() < needed {
            drop(blocks);
            table = Vec::with_capacity(needed);
            blocks = self::blocks();
            continue;
        }
        table.extend_from_slice(&blocks);
        std::mem::swap(&mut *blocks, &mut table);
    }
    for &(address, layout) in left {
        let at = blocks.partition_point(|block| block.address() < address);
        blocks.insert(at, Block { address: Hidden::new(address), layout, unreferenced: 0 });
        RETAINED.fetch_add(layout.size(), Relaxed);
    }
    COUNT.store(blocks.len(), Relaxed);
}

/// The program frees or moves a block of the allocator below. If it is kept here, its owner was
/// outside the execution, and it is not to be freed a second time.
#[inline]
pub(crate) fn forget(address: usize) {
    if COUNT.load(Relaxed) > 0 {
        forget_kept(address);
    }
}

#[cold]
fn forget_kept(address: usize) {
    let mut blocks = blocks();
    if let Ok(at) = blocks.binary_search_by_key(&address, Block::address) {
        RETAINED.fetch_sub(blocks.remove(at).layout.size(), Relaxed);
        COUNT.store(blocks.len(), Relaxed);
    }
}

/// Releases what nothing refers to, if a scan is due. Called when no thread of this OS thread's
/// execution is left, and the execution has left something behind.
pub(super) fn reclaim_if_due() {
    if RETAINED.load(Relaxed) >= DUE.load(Relaxed) {
        reclaim();
    }
}

/// Waits while another OS thread scans. Called between two executions.
#[inline]
pub(super) fn wait_for_scan() {
    if PAUSE.load(Relaxed) {
        wait();
    }
}

#[cold]
#[inline(never)]
fn wait() {
    let registers = scan::registers();
    // Poisoned or not: only its release counts.
    drop(SCANNING.lock());
    black_box(&registers);
}

/// Lets the other threads continue when it is dropped.
struct Paused;

impl Paused {
    fn new() -> Paused {
        PAUSE.store(true, SeqCst);
        Paused
    }
}

impl Drop for Paused {
    fn drop(&mut self) {
        PAUSE.store(false, SeqCst);
    }
}

#[cold]
#[inline(never)]
fn reclaim() {
    let Ok(_scanning) = SCANNING.try_lock() else { return };
    let _paused = Paused::new();
    let registers = scan::registers();
    let mut candidates = Candidates::collect();
    let scanned = match quiet() {
        Some(before) => scan::mark(&mut candidates, &before),
        None => Scan::Disturbed,
    };
    black_box(&registers);
    let due = match scanned {
        Scan::Impossible => return DUE.store(usize::MAX, Relaxed),
        Scan::Disturbed => {
            let next = BACKOFF.load(Relaxed);
            BACKOFF.store((2 * next).min(MOST), Relaxed);
            next
        }
        Scan::Complete(read) => {
            candidates.release();
            BACKOFF.store(LEAST, Relaxed);
            LEAST.max(read / FRACTION)
        }
    };
    DUE.store(RETAINED.load(Relaxed) + due, Relaxed);
}

/// Waits until no other thread of the process runs; `None` if one does not stop.
fn quiet() -> Option<Quiet> {
    let started = Instant::now();
    loop {
        let quiet = Quiet::now();
        if quiet.is_some() || started.elapsed() > PATIENCE {
            return quiet;
        }
        std::thread::sleep(PATIENCE / 100);
    }
}

/// The memory that a scan may find to be unreferenced.
pub(super) struct Candidates {
    /// The abandoned parts of each window, by their beginnings, and whether there is a reference.
    windows: Vec<(&'static Window, Vec<(Part, bool)>)>,
    /// Sorted by address.
    blocks: Vec<(Block, bool)>,
    /// From the first block to the last.
    below: Range,
    /// Numbers of parts and blocks with references that were not followed yet.
    pending: Vec<(usize, usize)>,
}

fn ranges(window: &Window, part: &Part) -> impl Iterator<Item = Range> + use<> {
    window.ranges(part).map(|(start, end)| (Hidden::new(start), Hidden::new(end)))
}

/// The window number that represents blocks from the allocator below.
const BELOW: usize = usize::MAX;

impl Candidates {
    fn collect() -> Candidates {
        let of = |window: &'static Window| {
            let parts = parts::lock(&window.parts);
            let abandoned = parts.all().iter().filter(|part| part.abandoned);
            (window, abandoned.map(|&part| (part, false)).collect())
        };
        let windows = window::all().map(of).collect();
        // One allocation, see `keep`.
        let blocks = blocks().to_vec();
        let below = match (blocks.first(), blocks.last()) {
            (Some(first), Some(last)) => (first.range().0, last.range().1),
            _ => (Hidden::new(0), Hidden::new(0)),
        };
        let blocks = blocks.into_iter().map(|block| (block, false)).collect();
        Candidates { windows, blocks, below, pending: Vec::new() }
    }

    /// Records a word of memory, which may be a reference.
    #[inline]
    pub(super) fn see(&mut self, word: usize) {
        let address = word & ADDRESS;
        let (low, high) = self.below;
        // Most words are something else.
        if window::may_contain(address) || low.get() <= address && address <= high.get() {
            self.find(address);
        }
    }

    fn find(&mut self, address: usize) {
        for (number, (window, parts)) in self.windows.iter_mut().enumerate() {
            let Some((slot, offset)) = window.place_of(address) else { continue };
            let at = parts.partition_point(|(part, _)| part.end <= offset);
            let found = parts.get_mut(at).filter(|(part, referenced)| {
                !referenced && part.start <= offset && part.regions.contains(slot)
            });
            if let Some((_, referenced)) = found {
                *referenced = true;
                self.pending.push((number, at));
            }
            return;
        }
        let after = self.blocks.partition_point(|(block, _)| block.address() <= address);
        let Some(at) = after.checked_sub(1) else { return };
        let (block, referenced) = &mut self.blocks[at];
        // The end of a block is an address of its owner too.
        if !*referenced && address - block.address() <= block.layout.size() {
            *referenced = true;
            self.pending.push((BELOW, at));
        }
    }

    /// The memory of a part or block with a reference that was not read yet.
    pub(super) fn next_pending(&mut self) -> Option<Vec<Range>> {
        let (number, at) = self.pending.pop()?;
        Some(if number == BELOW {
            vec![self.blocks[at].0.range()]
        } else {
            let (window, parts) = &self.windows[number];
            ranges(window, &parts[at].0).collect()
        })
    }

    /// The memory that is read only if there is a reference to it, sorted.
    pub(super) fn ranges(&self) -> Vec<Range> {
        let parts = self
            .windows
            .iter()
            .flat_map(|(window, parts)| parts.iter().flat_map(|(part, _)| ranges(window, part)));
        let blocks = self.blocks.iter().map(|(block, _)| block.range());
        let mut all: Vec<_> = parts.chain(blocks).collect();
        all.sort_unstable_by_key(|(start, _)| start.get());
        all
    }

    /// Releases what has had no reference for long enough.
    fn release(self) {
        for (window, found) in self.windows {
            let known: Vec<_> = found.iter().map(|&(part, found)| (part.start, found)).collect();
            parts::lock(&window.parts).note_scan(&known, SCANS, |part| window.release_part(part));
        }
        let mut freed = Vec::with_capacity(self.blocks.len());
        let mut kept = blocks();
        kept.retain_mut(|block| {
            let known = self.blocks.binary_search_by_key(&block.address(), |(of, _)| of.address());
            match known.map(|at| self.blocks[at].1) {
                Ok(true) => block.unreferenced = 0,
                Ok(false) => block.unreferenced += 1,
                Err(_) => {}
            }
            let keep = block.unreferenced < SCANS;
            if !keep {
                freed.push(*block);
            }
            keep
        });
        COUNT.store(kept.len(), Relaxed);
        drop(kept);
        for block in freed {
            RETAINED.fetch_sub(block.layout.size(), Relaxed);
            let memory = std::ptr::with_exposed_provenance_mut(block.address());
            // SAFETY: it was allocated with this layout. By the argument above no code has a
            // pointer to it, so no other code has freed it or will.
            unsafe { std::alloc::dealloc(memory, block.layout) };
        }
    }
}
