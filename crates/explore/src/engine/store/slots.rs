//! The memory of the stores, and their unsafe code: zeroed words in huge pages, and prefetching.
//!
//! A look-up in a large table misses the cache, and with 4 KiB pages it misses the address
//! translation too. Large tables therefore ask for 2 MiB pages: they are mapped directly, begin at
//! a multiple of 2 MiB, and consist of whole huge pages, so that no part of one is paid for and not
//! used ([`Slots::words_for`]). They go back to the operating system at once when they are dropped,
//! which an allocator does not promise; a table that grows needs that.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ops::Deref;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::AtomicU64;

/// The size of a huge page.
const HUGE: usize = 2 << 20;

/// The size of a word.
const WORD: usize = size_of::<AtomicU64>();

/// An array of words, all 0 at first. It dereferences to a slice.
pub(super) struct Slots {
    first: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: `Slots` owns its memory exclusively, and all that it hands out is `&[AtomicU64]`, which
// threads may share.
unsafe impl Send for Slots {}
// SAFETY: as above.
unsafe impl Sync for Slots {}

impl Slots {
    /// The number of words, at least `words`, that wastes no memory.
    pub(super) fn words_for(words: usize) -> usize {
        if words * WORD < HUGE { words } else { (words * WORD).next_multiple_of(HUGE) / WORD }
    }

    /// The number of words nearest to `words` that wastes no memory.
    pub(super) fn words_near(words: usize) -> usize {
        if words * WORD < 2 * HUGE {
            Self::words_for(words)
        } else {
            (words * WORD + HUGE / 2) / HUGE * HUGE / WORD
        }
    }

    /// `words` zeros, at least 1. `None` if there is no memory.
    pub(super) fn zeroed(words: usize) -> Option<Slots> {
        let layout = Self::layout(words)?;
        let first = if Self::is_mapped(layout) {
            mapping::map(layout.size())
        } else {
            Self::allocate(layout)
        };
        first.map(|first| Slots { first: first.cast(), words })
    }

    /// The bytes of `words` words.
    fn layout(words: usize) -> Option<Layout> {
        assert!(words > 0, "a table has at least one word");
        // Aligned to cache lines, so that a state of up to 8 words is in one or two of them.
        Layout::array::<AtomicU64>(words).and_then(|l| l.align_to(64)).ok()
    }

    /// Whether memory of this size is mapped directly. Depends only on the size: `drop` calls this
    /// again.
    fn is_mapped(layout: Layout) -> bool {
        mapping::POSSIBLE && layout.size() >= HUGE && layout.size().is_multiple_of(HUGE)
    }

    fn allocate(layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: `layout` is not empty, since a table has at least one word.
        NonNull::new(unsafe { alloc_zeroed(layout) })
    }
}

impl Deref for Slots {
    type Target = [AtomicU64];

    #[inline]
    fn deref(&self) -> &[AtomicU64] {
        // SAFETY: `first` points to `words` aligned words that live as long as `self`; any bits are
        // a valid `AtomicU64`; the memory was zeroed when it was obtained.
        unsafe { slice::from_raw_parts(self.first.as_ptr(), self.words) }
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        let layout =
            Self::layout(self.words).expect("the layout was valid when the memory was obtained");
        if Self::is_mapped(layout) {
            mapping::unmap(self.first.cast(), layout.size());
        } else {
            // SAFETY: the memory was obtained by `allocate` with this layout, and nothing borrows
            // it any more.
            unsafe { dealloc(self.first.as_ptr().cast(), layout) }
        }
    }
}

/// Asks for the cache line of `slot`, which will soon be read and perhaps written.
#[inline(always)]
pub(super) fn prefetch(slot: &AtomicU64) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch reads nothing that the program can observe, and does not fault whatever
    // the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(slot).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = slot;
}

/// Memory from the operating system, in huge pages if it has them.
#[cfg(all(unix, not(miri)))]
mod mapping {
    use std::ptr::{NonNull, null_mut};

    use super::HUGE;

    pub(super) const POSSIBLE: bool = true;

    /// `bytes` zero bytes, a multiple of [`HUGE`], that begin at a multiple of [`HUGE`].
    pub(super) fn map(bytes: usize) -> Option<NonNull<u8>> {
        let wide = bytes.checked_add(HUGE)?;
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new anonymous mapping at an address of the kernel's choice touches no memory
        // that is in use.
        let start = unsafe {
            libc::mmap(null_mut(), wide, access, libc::MAP_PRIVATE | libc::MAP_ANON, -1, 0)
        };
        if start == libc::MAP_FAILED {
            return None;
        }
        let start: NonNull<u8> = NonNull::new(start.cast())?;
        let before = start.align_offset(HUGE);
        let after = HUGE - before;
        // SAFETY: `before` is at most HUGE, so that all three parts are within the mapping of
        // `bytes + HUGE`: the one before the boundary, the one of `bytes` that is kept, and the one
        // after it.
        let (first, end) = unsafe { (start.add(before), start.add(before + bytes)) };
        if before > 0 {
            unmap(start, before);
        }
        if after > 0 {
            unmap(end, after);
        }
        #[cfg(target_os = "linux")]
        // SAFETY: the range is mapped and ours. A refusal only means small pages.
        unsafe {
            libc::madvise(first.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE);
        }
        Some(first)
    }

    /// Gives back a part of a mapping that nothing borrows any more.
    pub(super) fn unmap(first: NonNull<u8>, bytes: usize) {
        // SAFETY: only called by this file, with whole pages of a mapping that it made and does not
        // use any more.
        let done = unsafe { libc::munmap(first.as_ptr().cast(), bytes) };
        debug_assert_eq!(done, 0, "mapped pages can be unmapped");
    }
}

#[cfg(not(all(unix, not(miri))))]
mod mapping {
    use std::ptr::NonNull;

    pub(super) const POSSIBLE: bool = false;

    pub(super) fn map(_: usize) -> Option<NonNull<u8>> {
        None
    }

    pub(super) fn unmap(_: NonNull<u8>, _: usize) {}
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use super::*;

    #[test]
    fn memory_is_zero_aligned_and_writable_to_its_end() {
        let large = [HUGE / WORD, 3 * HUGE / WORD, HUGE / WORD + 1];
        // Miri takes minutes for a huge page.
        let large = if cfg!(miri) { &[][..] } else { &large };
        for &words in [1, 7, 4096].iter().chain(large) {
            let slots = Slots::zeroed(words).expect("a small allocation succeeds");
            assert_eq!(slots.len(), words);
            assert!(slots.iter().all(|slot| slot.load(Relaxed) == 0));
            assert_eq!(slots.as_ptr() as usize % 64, 0);
            slots[words - 1].store(u64::MAX, Relaxed);
        }
        assert_eq!(Slots::words_for(5), 5);
        assert_eq!(Slots::words_for(HUGE / WORD + 1), 2 * HUGE / WORD);
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri ends the program where an allocator would refuse")]
    fn impossible_sizes_are_refused() {
        assert!(Slots::zeroed(usize::MAX / 4).is_none());
        assert!(Slots::zeroed((1 << 55) / WORD).is_none());
    }
}
