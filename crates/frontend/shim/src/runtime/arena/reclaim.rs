//! Releases what executions that could not end have left behind.
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
//! - static and thread-local variables, the heap, and the stacks of all OS threads are writable
//!   mappings, and all of these are read; so are the stacks of coroutines and the windows of other
//!   checks. Nothing has to be known about them.
//! - A register may contain the only copy of a pointer. The registers of the scanning thread are
//!   saved on its stack by the functions that called the scan. Threads that Preempt does not
//!   control get pointers into an execution only through synchronisation that it does not control
//!   either; a check fails because of that, unless it allows it (`Check::allow_uncontrolled`). What
//!   executions of such checks leave behind is never released.
//! - Another OS thread may move a pointer during a scan, from memory that was not yet read to
//!   memory that was. So a part is released only after [`SCANS`] scans in a row without a
//!   reference, between which much other work is done.
//!
//! As with every conservative collector, a pointer must be recognisable: an aligned word whose
//! lower 48 bits are the address, with any tag in the upper and lower bits. Pointers that a program
//! combines (XOR lists), compresses, or stores unaligned and nowhere else are not seen.
//!
//! # Cost
//!
//! A scan is due when as much was retained since the last one as a fixed fraction of what that one
//! read, so the time for scans is proportional to the memory of abandoned executions. A stale word
//! that happens to look like a pointer keeps one part and nothing else. Where the memory of the
//! process cannot be read (only Linux has `/proc/self/mem`), nothing is released.

use std::alloc::Layout;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::PAGE;
use super::parts::{self, Part, RETAINED};
use super::window::{self, Window};

/// The number of consecutive scans without a reference after which memory is released.
const SCANS: u8 = 2;

/// The least number of bytes that are retained between two scans.
const LEAST: usize = 1 << 20;

/// A scan is due when as many bytes were retained as the last one has read, divided by this.
const FRACTION: usize = 4;

/// The lower bits of a word that are compared with addresses.
const ADDRESS: usize = (1 << 48) - 1;

/// The retained bytes at which the next scan is due.
static DUE: AtomicUsize = AtomicUsize::new(LEAST);

/// Blocks of abandoned executions that came from the allocator below, and their number.
static BLOCKS: Mutex<Vec<Block>> = Mutex::new(Vec::new());
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// An address in a table of this module. It is stored as its complement, which does not look like
/// a reference.
#[derive(Clone, Copy, Debug)]
struct Hidden(usize);

impl Hidden {
    fn new(address: usize) -> Hidden {
        Hidden(!address)
    }

    fn get(self) -> usize {
        !self.0
    }
}

/// A piece of memory, from its first address to the one after its last.
type Range = (Hidden, Hidden);

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
/// outside of the execution, and it is not to be freed a second time.
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
/// execution is left.
pub(super) fn reclaim_if_due() {
    if RETAINED.load(Relaxed) >= DUE.load(Relaxed) {
        reclaim();
    }
}

#[cold]
#[inline(never)]
fn reclaim() {
    static SCANNING: Mutex<()> = Mutex::new(());
    let Ok(_scanning) = SCANNING.try_lock() else { return };
    let mut candidates = Candidates::collect();
    let Some(read) = scan::mark(&mut candidates) else {
        DUE.store(usize::MAX, Relaxed);
        return;
    };
    candidates.release();
    DUE.store(RETAINED.load(Relaxed) + LEAST.max(read / FRACTION), Relaxed);
}

/// What a scan may find to be without references.
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

/// The number that stands for the window of blocks from the allocator below.
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
    fn see(&mut self, word: usize) {
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
    fn next_pending(&mut self) -> Option<Vec<Range>> {
        let (number, at) = self.pending.pop()?;
        Some(if number == BELOW {
            vec![self.blocks[at].0.range()]
        } else {
            let (window, parts) = &self.windows[number];
            ranges(window, &parts[at].0).collect()
        })
    }

    /// The memory that is read only if there is a reference to it, sorted.
    fn ranges(&self) -> Vec<Range> {
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
            // pointer to it, so nobody else has freed it or will.
            unsafe { std::alloc::dealloc(memory, block.layout) };
        }
    }
}

/// Reads the writable memory of the process.
#[cfg(target_os = "linux")]
mod scan {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::{Candidates, PAGE, Range};

    /// The number of pages that are read at once.
    const CHUNK: usize = 256;

    /// The number of pages about which the kernel is asked at once. Windows are large, and nearly
    /// all of their pages were never used.
    const ASKED: usize = 1 << 15;

    /// The entry of a page in `/proc/self/pagemap` that is in memory, or in swap space.
    const EXISTS: u64 = 0b11 << 62;

    /// Files by which the process reads its own memory. Reading through the kernel is defined for
    /// memory that other threads write or unmap meanwhile, which reading through pointers is not.
    struct Memory {
        contents: File,
        pagemap: File,
        buffer: Vec<u8>,
        entries: Vec<u8>,
        /// The number of bytes that were read.
        read: usize,
    }

    /// Marks the candidates to which there are references. Returns how many bytes were read;
    /// `None` if the memory of the process cannot be read.
    pub(super) fn mark(candidates: &mut Candidates) -> Option<usize> {
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        let open = |name: &str| File::open(name).ok();
        let (contents, pagemap) = (open("/proc/self/mem")?, open("/proc/self/pagemap")?);
        let (buffer, entries) = (vec![0; CHUNK * PAGE], vec![0; ASKED * size_of::<u64>()]);
        let mut memory = Memory { contents, pagemap, buffer, entries, read: 0 };
        let skipped = candidates.ranges();
        let mut is_readable = false;
        for (start, end) in maps.lines().filter_map(writable) {
            without((start, end), &skipped, |start, end| {
                is_readable |= memory.visit(start, end, candidates);
            });
        }
        while let Some(ranges) = candidates.next_pending() {
            for (start, end) in ranges {
                memory.visit(start.get(), end.get(), candidates);
            }
        }
        // Copies of pointers must not be found by the next scan.
        memory.buffer.fill(0);
        is_readable.then_some(memory.read)
    }

    /// The range of a line of `/proc/self/maps`, if it is a writable mapping of memory.
    fn writable(line: &str) -> Option<(usize, usize)> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let is_writable = words.next()?.starts_with("rw");
        let number = |text| usize::from_str_radix(text, 16).ok();
        Some((number(start)?, number(end)?)).filter(|_| is_writable && !line.contains(" /dev/"))
    }

    /// Visits the parts of a range that are not in the `skipped` ones, which are sorted.
    fn without(
        (mut start, end): (usize, usize),
        skipped: &[Range],
        mut visit: impl FnMut(usize, usize),
    ) {
        let first = skipped.partition_point(|(_, after)| after.get() <= start);
        let skipped = skipped[first..].iter().map(|(from, to)| (from.get(), to.get()));
        for (from, to) in skipped.take_while(|&(from, _)| from < end) {
            if from > start {
                visit(start, from);
            }
            start = start.max(to);
        }
        if start < end {
            visit(start, end);
        }
    }

    impl Memory {
        /// Shows all words of a range to the candidates, except in pages that were never written.
        /// Returns whether any were read.
        fn visit(&mut self, start: usize, end: usize, candidates: &mut Candidates) -> bool {
            let mut is_readable = false;
            let mut at = start;
            while at < end {
                let page = at / PAGE;
                let pages = (end.div_ceil(PAGE) - page).min(ASKED);
                let mut entries = std::mem::take(&mut self.entries);
                let asked = &mut entries[..pages * size_of::<u64>()];
                let answer = self.pagemap.read_exact_at(asked, (page * size_of::<u64>()) as u64);
                let asked = if answer.is_ok() { asked.as_chunks::<8>().0 } else { &[] };
                let exists = |&entry: &[u8; 8]| u64::from_ne_bytes(entry) & EXISTS != 0;
                let mut first = 0;
                while let Some(unused) = asked[first..].iter().position(exists) {
                    first += unused;
                    let rest = asked[first..].iter().take(CHUNK);
                    let run = rest.take_while(|&entry| exists(entry)).count();
                    let from = ((page + first) * PAGE).max(at);
                    let to = ((page + first + run) * PAGE).min(end);
                    is_readable |= self.read(from, to, candidates);
                    first += run;
                }
                self.entries = entries;
                at = (page + pages) * PAGE;
            }
            is_readable
        }

        /// Shows the words of pages that exist to the candidates. Returns whether they were read.
        fn read(&mut self, from: usize, to: usize, candidates: &mut Candidates) -> bool {
            let buffer = &mut self.buffer[..to - from];
            // Another thread may have unmapped the memory; then it contains no references.
            if self.contents.read_exact_at(buffer, from as u64).is_err() {
                return false;
            }
            self.read += buffer.len();
            let aligned = &buffer[from.next_multiple_of(8) - from..];
            for &word in aligned.as_chunks::<8>().0 {
                candidates.see(usize::from_ne_bytes(word));
            }
            true
        }
    }

    #[cfg(test)]
    mod tests {
        use super::super::Hidden;
        use super::*;

        #[test]
        fn ranges_are_subtracted() {
            let hidden = |(from, to)| (Hidden::new(from), Hidden::new(to));
            let skipped = [(10, 20), (20, 30), (40, 50)].map(hidden);
            for (range, expected) in [
                ((0, 10), vec![(0, 10)]),
                ((0, 15), vec![(0, 10)]),
                ((12, 28), vec![]),
                ((15, 60), vec![(30, 40), (50, 60)]),
                ((45, 47), vec![]),
                ((50, 60), vec![(50, 60)]),
            ] {
                let mut parts = Vec::new();
                without(range, &skipped, |start, end| parts.push((start, end)));
                assert_eq!(parts, expected, "{range:?}");
            }
        }

        #[test]
        fn only_writable_memory_is_read() {
            let line =
                |permissions, name| format!("7f00-7f80 {permissions} 00000000 00:00 0 {name}");
            assert_eq!(writable(&line("rw-p", "[heap]")), Some((0x7f00, 0x7f80)));
            assert_eq!(writable(&line("r--p", "/usr/lib/some.so")), None);
            assert_eq!(writable(&line("rw-s", "/dev/dri/card0")), None);
            assert_eq!(writable(""), None);
        }
    }
}

/// Platforms on which a process cannot read its own memory by address.
#[cfg(not(target_os = "linux"))]
mod scan {
    pub(super) fn mark(candidates: &mut super::Candidates) -> Option<usize> {
        let _ = (candidates.ranges(), candidates.next_pending());
        None
    }
}
