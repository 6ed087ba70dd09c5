//! The memory of this process, as the operating system counts it.
//!
//! A search adds up the bytes of its tables and of the work that waits. This sum is the same on
//! every machine, but it is not what a user sees: it excludes the program's own pages, the
//! allocator's free blocks, and the old block from which a growing vector is copied. So a limit on
//! memory can also be compared with the resident set ([`Limits::resident`]).
//!
//! **Why comparing now and then is enough.** Memory becomes resident when it is first written, and
//! a core clears pages at some gigabytes per second. [`Pace`] therefore measures again before the
//! remaining bytes can have been filled at that rate. The condition is that nothing grows in one
//! large step between two polls: hash tables are cut into parts that grow one by one
//! ([`sharded`](crate::engine::sharded), [`store`](crate::engine::store)), and large vectors are
//! moved by the kernel without a copy ([`map_large_blocks`]).
//!
//! [`Limits::resident`]: crate::Limits::resident
#![allow(unsafe_code)]

use std::fs;
#[cfg(unix)]
use std::os::unix::fs::FileExt as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// The file that holds the sizes of this process in pages, kept open, and the size of a page.
type Statm = Option<(fs::File, usize)>;

/// The bytes of this process that are in main memory. `None` if the operating system does not
/// report them.
#[cfg(unix)]
pub fn resident() -> Option<usize> {
    static STATM: OnceLock<Statm> = OnceLock::new();
    let (file, page) = STATM
        .get_or_init(|| Some((fs::File::open("/proc/self/statm").ok()?, page_size()?)))
        .as_ref()?;
    let mut text = [0; 128];
    let len = file.read_at(&mut text, 0).ok()?;
    let pages = std::str::from_utf8(&text[..len]).ok()?.split(' ').nth(1)?;
    Some(pages.parse::<usize>().ok()? * page)
}

/// The bytes of this process that are in main memory. `None` if the operating system does not
/// report them.
#[cfg(not(unix))]
pub fn resident() -> Option<usize> {
    None
}

/// The size of a page, from the auxiliary vector: pairs of words, of which the entry 6 is this
/// size.
#[cfg(unix)]
fn page_size() -> Option<usize> {
    const WORD: usize = size_of::<usize>();
    const AT_PAGESZ: usize = 6;
    let vector = fs::read("/proc/self/auxv").ok()?;
    let word = |bytes: &[u8]| bytes.try_into().ok().map(usize::from_ne_bytes);
    vector
        .chunks_exact(2 * WORD)
        .find(|pair| word(&pair[..WORD]) == Some(AT_PAGESZ))
        .and_then(|pair| word(&pair[WORD..]))
}

/// The limit if the user sets none: three quarters of the free memory, if the operating system
/// reports it. A search that needed more would make the machine swap, or be killed.
pub fn default_limit() -> Option<usize> {
    let info = fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kilobytes: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes / 4 * 3 * 1024)
}

/// Returns the allocator's free blocks to the operating system, so that a search begins with what
/// is really in use.
pub fn release_free_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    // SAFETY: `malloc_trim` may be called at any time by any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

/// Makes the allocator map every block of a megabyte or more separately. Such a block grows without
/// a copy and goes back to the operating system at once. By default glibc stops mapping blocks of a
/// size that was freed once, up to 32 MiB: a vector or table that grows then leaves holes as large
/// as itself.
///
/// For programs that search and do little else; a library should not change its user's allocator.
pub fn map_large_blocks() {
    #[cfg(all(target_os = "linux", target_env = "gnu", not(miri)))]
    // SAFETY: `mallopt` may be called at any time; it is called before there are other threads, so
    // that no other thread allocates at the same time.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, 1 << 20);
    }
}

/// Schedules the measurements.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    /// The earliest time of the next measurement, in nanoseconds since the search began.
    next: AtomicU64,
}

/// Bytes that a process fills in a nanosecond at most, all workers together.
const RATE: u64 = 4;

/// The least and the greatest time between two measurements, in nanoseconds. The least bounds their
/// cost to a percent or so.
const LEAST: u64 = 300_000;
const GREATEST: u64 = 100_000_000;

impl Pace {
    /// Whether the search must end, at the time `now` since it began, so that the resident bytes
    /// stay within `limit`. Measures only if that can be the case.
    ///
    /// Free blocks of the allocator, such as those that an earlier search of the process has left,
    /// are released before this counts as true. It still counts as true if this frees less than a
    /// sixteenth of the limit: otherwise the search would reach the limit again almost at once.
    pub(crate) fn exceeds(&self, limit: usize, now: Duration) -> bool {
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        if now < self.next.load(Relaxed) {
            return false;
        }
        let Some(mut all) = resident() else { return false };
        // Finishing the current step and ending the search need memory too.
        let limit = limit - limit / 16;
        let mut most = limit;
        if all > limit {
            release_free_blocks();
            all = resident().unwrap_or(all);
            most -= limit / 16;
        }
        let left = limit.saturating_sub(all) as u64;
        self.next.store(now.saturating_add((left / RATE).clamp(LEAST, GREATEST)), Relaxed);
        all > most
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_resident() {
        let before = resident().expect("Linux reports it");
        let block = vec![1u8; 64 << 20];
        let after = resident().expect("Linux reports it");
        // Other tests of this process may free memory meanwhile, but not so much.
        assert!(after > before + (block.len() / 2), "{before} {after}");
    }

    #[test]
    fn far_from_the_limit_nothing_is_measured_for_a_while() {
        let pace = Pace::default();
        assert!(!pace.exceeds(usize::MAX, Duration::ZERO));
        assert!(
            !pace.exceeds(1, Duration::from_millis(99)),
            "within 100 ms no machine fills its memory"
        );
        assert!(pace.exceeds(1, Duration::from_millis(100)));
        assert!(!pace.exceeds(1, Duration::from_nanos(100_000_001)), "not at once again");
    }
}
