//! Reads the memory of the process, for [`reclaim`](super::reclaim).
//!
//! Memory is read through the kernel, which is defined for memory that other threads write or unmap
//! meanwhile, and for pages that are not readable now; reading through pointers is not.

/// The result of a scan.
pub(super) enum Scan {
    /// This system does not let a process read its memory, or there is memory whose contents cannot
    /// be known.
    Impossible,
    /// Another thread has run, or something could not be read: nothing follows.
    Disturbed,
    /// All references were found; this many bytes were read.
    Complete(usize),
}

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub(super) use self::linux::{Quiet, mark, registers};
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
pub(super) use self::other::{Quiet, mark, registers};

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod linux {
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::super::PAGE;
    use super::super::reclaim::{Candidates, Range};
    use super::Scan;

    /// The number of pages that are read at once.
    const CHUNK: usize = 256;

    /// The number of pages about which the kernel is asked at once. Windows are large, and nearly
    /// all of their pages were never used.
    const ASKED: usize = 1 << 15;

    /// In the entry of a page in `/proc/self/pagemap`: it is in memory, or in swap space.
    const EXISTS: u64 = 0b11 << 62;

    /// In the same entry: its contents are those of a file, or shared.
    const OF_FILE: u64 = 1 << 61;

    /// The registers that a function has to preserve for its caller. Others contain nothing of the
    /// callers of this function.
    #[inline(never)]
    pub(in super::super) fn registers() -> [usize; 24] {
        let mut registers = [0; 24];
        // SAFETY: stores at most 19 registers to an array of 24.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::asm!(
                "mov [{0}], rbx",
                "mov [{0} + 8], rbp",
                "mov [{0} + 16], r12",
                "mov [{0} + 24], r13",
                "mov [{0} + 32], r14",
                "mov [{0} + 40], r15",
                in(reg) registers.as_mut_ptr(),
                options(nostack, preserves_flags),
            );
        }
        // SAFETY: as above.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            std::arch::asm!(
                "stp x19, x20, [{0}]",
                "stp x21, x22, [{0}, #16]",
                "stp x23, x24, [{0}, #32]",
                "stp x25, x26, [{0}, #48]",
                "stp x27, x28, [{0}, #64]",
                "str x29, [{0}, #80]",
                "stp d8, d9, [{0}, #88]",
                "stp d10, d11, [{0}, #104]",
                "stp d12, d13, [{0}, #120]",
                "stp d14, d15, [{0}, #136]",
                in(reg) registers.as_mut_ptr(),
                options(nostack, preserves_flags),
            );
        }
        registers
    }

    /// A moment in which no other thread of the process runs.
    #[derive(Debug, PartialEq, Eq)]
    pub(in super::super) struct Quiet {
        /// The threads and how often each has been scheduled.
        threads: Vec<(u32, u64)>,
    }

    impl Quiet {
        /// `None` if a thread runs, or nothing is known about one.
        pub(in super::super) fn now() -> Option<Quiet> {
            // SAFETY: has no preconditions.
            let own = unsafe { libc::gettid() } as u32;
            let mut threads = Vec::new();
            for entry in std::fs::read_dir("/proc/self/task").ok()? {
                let number = entry.ok()?.file_name().to_str()?.parse().ok()?;
                if number != own {
                    let status = format!("/proc/self/task/{number}/status");
                    threads.push((number, sleeping(&std::fs::read_to_string(status).ok()?)?));
                }
            }
            threads.sort_unstable();
            Some(Quiet { threads })
        }
    }

    /// How often a thread has been scheduled, if it sleeps according to its status.
    fn sleeping(status: &str) -> Option<u64> {
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        if field("State:")?.trim_start().starts_with('R') {
            return None;
        }
        let count = |name| field(name)?.trim().parse::<u64>().ok();
        Some(count("voluntary_ctxt_switches:")? + count("nonvoluntary_ctxt_switches:")?)
    }

    /// Files by which the process reads its own memory.
    struct Memory {
        contents: File,
        pagemap: File,
        buffer: Vec<u8>,
        entries: Vec<u8>,
        /// The number of bytes that were read.
        read: usize,
        /// Whether something could not be read.
        failed: bool,
        /// The last four bytes that were read, and the address after them: a pointer may begin
        /// there.
        last: (u64, usize),
    }

    /// Marks the candidates to which there are references, if nothing runs since `before`.
    pub(in super::super) fn mark(candidates: &mut Candidates, before: &Quiet) -> Scan {
        let open = |name: &str| File::open(name).ok();
        let files = (open("/proc/self/mem"), open("/proc/self/pagemap"));
        let maps = std::fs::read_to_string("/proc/self/maps");
        let ((Some(contents), Some(pagemap)), Ok(maps)) = (files, maps) else {
            return Scan::Impossible;
        };
        let (buffer, entries) = (vec![0; CHUNK * PAGE], vec![0; ASKED * size_of::<u64>()]);
        let mut memory =
            Memory { contents, pagemap, buffer, entries, read: 0, failed: false, last: (0, 0) };
        let skipped = candidates.ranges();
        for line in maps.lines() {
            match mapping(line) {
                Some(Mapping::Memory { range, unless }) => {
                    without(range, &skipped, |start, end| {
                        memory.visit(start, end, unless, candidates);
                    });
                }
                Some(Mapping::Nothing) => {}
                Some(Mapping::Device) | None => return Scan::Impossible,
            }
        }
        while let Some(ranges) = candidates.next_pending() {
            for (start, end) in ranges {
                memory.visit(start.get(), end.get(), 0, candidates);
            }
        }
        // Copies of pointers must not be found by the next scan.
        memory.buffer.fill(0);
        match Quiet::now() {
            Some(after) if after == *before && !memory.failed => Scan::Complete(memory.read),
            _ => Scan::Disturbed,
        }
    }

    /// What a line of `/proc/self/maps` describes.
    #[derive(Debug, PartialEq, Eq)]
    enum Mapping {
        /// Pages may contain references, except those with the bits `unless` in their entries.
        Memory { range: (usize, usize), unless: u64 },
        /// No page can contain a reference.
        Nothing,
        /// The process can write to a device, whose contents are unknown.
        Device,
    }

    fn mapping(line: &str) -> Option<Mapping> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let permissions = words.next()?;
        let name = words.nth(3).unwrap_or_default();
        let is_writable = permissions.as_bytes().get(1)? == &b'w';
        let is_memory = ["/dev/zero", "/dev/shm/", "/dev/hugepages/"];
        if name.starts_with("/dev/") && !is_memory.iter().any(|memory| name.starts_with(memory)) {
            return Some(if is_writable { Mapping::Device } else { Mapping::Nothing });
        }
        // Pages of the kernel.
        if ["[vvar", "[vdso]", "[vsyscall]"].iter().any(|kernel| name.starts_with(kernel)) {
            return Some(Mapping::Nothing);
        }
        let number = |text| usize::from_str_radix(text, 16).ok();
        // What is not writable may have been. Files that were only mapped to be read contain no
        // pointers.
        let is_shared = permissions.ends_with('s');
        let unless = if is_writable || is_shared { 0 } else { OF_FILE };
        Some(Mapping::Memory { range: (number(start)?, number(end)?), unless })
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
        /// Shows all words of a range to the candidates, except in pages that were never written
        /// or have the bits `unless`.
        fn visit(&mut self, start: usize, end: usize, unless: u64, candidates: &mut Candidates) {
            let mut at = start;
            while at < end {
                let page = at / PAGE;
                let pages = (end.div_ceil(PAGE) - page).min(ASKED);
                let mut entries = std::mem::take(&mut self.entries);
                let asked = &mut entries[..pages * size_of::<u64>()];
                let answer = self.pagemap.read_exact_at(asked, (page * size_of::<u64>()) as u64);
                self.failed |= answer.is_err();
                let asked = if answer.is_ok() { asked.as_chunks::<8>().0 } else { &[] };
                let counts = |&entry: &[u8; 8]| {
                    let entry = u64::from_ne_bytes(entry);
                    entry & EXISTS != 0 && entry & unless == 0
                };
                let mut first = 0;
                while let Some(unused) = asked[first..].iter().position(counts) {
                    first += unused;
                    let rest = asked[first..].iter().take(CHUNK);
                    let run = rest.take_while(|&entry| counts(entry)).count();
                    let from = ((page + first) * PAGE).max(at);
                    let to = ((page + first + run) * PAGE).min(end);
                    self.read(from, to, candidates);
                    first += run;
                }
                self.entries = entries;
                at = (page + pages) * PAGE;
            }
        }

        /// Shows what begins at the multiples of four in these pages, which exist, to the
        /// candidates.
        fn read(&mut self, from: usize, to: usize, candidates: &mut Candidates) {
            let buffer = &mut self.buffer[..to - from];
            if self.contents.read_exact_at(buffer, from as u64).is_err() {
                self.failed = true;
                return;
            }
            self.read += buffer.len();
            let aligned = buffer.get(from.next_multiple_of(8) - from..).unwrap_or_default();
            let mut half = if self.last.1 == from { self.last.0 } else { 0 };
            let (words, rest) = aligned.as_chunks::<8>();
            for &word in words {
                let word = u64::from_ne_bytes(word);
                candidates.see(word as usize);
                candidates.see((half | word << 32) as usize);
                half = word >> 32;
            }
            if let Some(&word) = rest.first_chunk::<4>() {
                candidates.see((half | u64::from(u32::from_ne_bytes(word)) << 32) as usize);
            }
            self.last = (half, to);
        }
    }

    #[cfg(test)]
    mod tests {
        use super::super::super::reclaim::Hidden;
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
        fn memory_is_read_wherever_pointers_may_be() {
            let line =
                |permissions, name| format!("7f00-7f80 {permissions} 00000000 00:00 0 {name}");
            let of = |permissions, name| mapping(&line(permissions, name));
            let memory = |unless| Some(Mapping::Memory { range: (0x7f00, 0x7f80), unless });
            assert_eq!(of("rw-p", "[heap]"), memory(0));
            assert_eq!(of("rw-s", "/dev/zero (deleted)"), memory(0));
            assert_eq!(of("rw-s", "/dev/shm/queue"), memory(0));
            assert_eq!(of("rwxp", ""), memory(0));
            assert_eq!(of("---p", ""), memory(OF_FILE));
            assert_eq!(of("r--p", "/usr/lib/some.so"), memory(OF_FILE));
            assert_eq!(of("rw-s", "/dev/dri/card0"), Some(Mapping::Device));
            assert_eq!(of("r--s", "/dev/dri/card0"), Some(Mapping::Nothing));
            assert_eq!(of("r--p", "[vvar]"), Some(Mapping::Nothing));
            assert_eq!(mapping(""), None);
        }

        #[test]
        fn a_thread_that_runs_is_noticed() {
            let status = |state, times| {
                format!(
                    "Name:\tt\nState:\t{state}\nvoluntary_ctxt_switches:\t{times}\n\
                     nonvoluntary_ctxt_switches:\t2\n"
                )
            };
            assert_eq!(sleeping(&status("S (sleeping)", 5)), Some(7));
            assert_eq!(sleeping(&status("R (running)", 5)), None);
            assert_eq!(sleeping("State:\tS (sleeping)\n"), None);
        }
    }
}

/// Systems on which a process cannot read its own memory by address.
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
mod other {
    use super::super::reclaim::Candidates;
    use super::Scan;

    pub(in super::super) struct Quiet;

    impl Quiet {
        pub(in super::super) fn now() -> Option<Quiet> {
            Some(Quiet)
        }
    }

    pub(in super::super) fn registers() {}

    pub(in super::super) fn mark(candidates: &mut Candidates, _: &Quiet) -> Scan {
        let _ = (candidates.ranges(), candidates.next_pending());
        Scan::Impossible
    }
}
