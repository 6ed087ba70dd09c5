//! Levels of visibility: which operations of a program the runtime observes.
//!
//! An unmodified program calls functions to synchronise its threads, and these are replaced.
//! Accesses to atomic variables and plain memory make no calls, so they cannot be observed. A
//! program that was built with the instrumentation of ThreadSanitizer calls a function for each
//! atomic operation and, depending on the flags, for each plain access. The functions that an
//! executable imports show how it was built. On request, the atomic instructions of an unmodified
//! program that can be recognised are replaced ([`crate::locked`]).

use std::path::Path;

use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

use crate::entries::Functions;

/// Which operations of a program are visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Function calls: the program was built without instrumentation.
    Calls,
    /// Also locked instructions, which are replaced: [`crate::Executable::patch_atomics`].
    Locked,
    /// Also atomic operations.
    Atomics,
    /// Also plain accesses to memory.
    Memory,
}

/// Whether data races are detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Races {
    /// They are reported.
    Detected,
    /// The program is assumed to have none.
    Assumed,
}

/// The prefix of all functions of the instrumentation.
const INSTRUMENTATION: &str = "__tsan_";

/// The prefixes of functions for plain accesses.
const PLAIN: [&str; 4] = ["__tsan_read", "__tsan_write", "__tsan_unaligned_", "__tsan_volatile_"];

/// The beginning of the name of ThreadSanitizer's own library.
const SANITIZER: &str = "libtsan.so";

/// Sections that the Go linker adds to every executable.
const GO: [&str; 2] = [".go.buildinfo", ".note.go.buildid"];

/// The names of the libraries that a file needs (`DT_NEEDED`).
fn needed(file: &object::File<'_>) -> Vec<String> {
    const NEEDED: u64 = 1;
    let data = |name| file.section_by_name(name).and_then(|section| section.data().ok());
    let (Some(entries), Some(names)) = (data(".dynamic"), data(".dynstr")) else {
        return Vec::new();
    };
    let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte));
    let entries = entries.chunks_exact(16).map(|entry| (number(&entry[..8]), number(&entry[8..])));
    entries
        .filter(|&(tag, _)| tag == NEEDED)
        .filter_map(|(_, at)| names.get(usize::try_from(at).ok()?..))
        .filter_map(|name| name.split(|&byte| byte == 0).next())
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect()
}

impl Level {
    /// The level of an executable and its precompiled functions. `Err` says why it cannot be
    /// explored.
    pub(crate) fn of(path: &Path) -> Result<(Level, Functions), String> {
        let unreadable = |why: String| format!("cannot read {}: {why}", path.display());
        let bytes = std::fs::read(path).map_err(|error| unreadable(error.to_string()))?;
        let file = object::File::parse(&*bytes).map_err(|error| unreadable(error.to_string()))?;
        if GO.iter().any(|section| file.section_by_name(section).is_some()) {
            return Err(format!(
                "{} is a Go program: goroutines are scheduled by Go's runtime, which cannot be \
                 controlled; check the algorithm as a model (`preempt check`)",
                path.display()
            ));
        }
        let has_own = |symbol: object::Symbol<'_, '_>| {
            symbol.is_definition()
                && symbol.name().is_ok_and(|name| name.starts_with(INSTRUMENTATION))
        };
        let loads_own = needed(&file).iter().any(|library| library.starts_with(SANITIZER));
        if loads_own || file.symbols().chain(file.dynamic_symbols()).any(has_own) {
            return Err(format!(
                "{} contains ThreadSanitizer itself: link it with the flags that `preempt flags` \
                 prints instead",
                path.display()
            ));
        }
        let imports = file.dynamic_symbols().filter(|symbol| symbol.is_undefined());
        let level = imports
            .filter_map(|symbol| symbol.name().ok().map(Level::of_import))
            .max()
            .unwrap_or(Level::Calls);
        let functions = match level {
            Level::Calls | Level::Locked => Functions::default(),
            Level::Atomics | Level::Memory => Functions::of(&file),
        };
        Ok((level, functions))
    }

    /// The level that a program has at least if it imports the function `name`.
    fn of_import(name: &str) -> Level {
        if PLAIN.iter().any(|plain| name.starts_with(plain)) {
            Level::Memory
        } else if name.starts_with(INSTRUMENTATION) {
            Level::Atomics
        } else {
            Level::Calls
        }
    }

    /// The assumption of every result, as the end of a sentence that begins with "assuming".
    pub(crate) fn assumption(self, races: Races) -> &'static str {
        match (self, races) {
            (Level::Calls, _) => {
                "that threads synchronise by calls and not by atomic variables, and that there are \
                 no data races"
            }
            (Level::Locked, _) => {
                "that threads synchronise by calls and by the patched instructions and not by \
                 ordinary loads and stores, and that there are no data races"
            }
            (Level::Atomics | Level::Memory, Races::Assumed) => {
                "that code which was not built with this instrumentation is not disturbed between \
                 two scheduling points, and that there are no data races"
            }
            (Level::Atomics | Level::Memory, Races::Detected) => {
                "that code which was not built with this instrumentation is not disturbed between \
                 two scheduling points, and has no data races (such code includes memcpy, memset, \
                 free and other functions of the C library, whose accesses are not seen)"
            }
        }
    }

    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Level::Calls => "calls",
            Level::Locked => "locked",
            Level::Atomics => "atomics",
            Level::Memory => "memory",
        }
    }

    /// Which operations were visible to a search and which were not: one sentence.
    pub fn visibility(self) -> &'static str {
        match self {
            Level::Locked => {
                "locked instructions of the executable, calls of pthread, C11 threads, semaphores, \
                 futexes, sleep and yield, descriptors that can block, and the start and end of \
                 threads; ordinary loads and stores, also those of atomic variables, and atomic \
                 instructions of libraries are not scheduling points"
            }
            Level::Calls => {
                "calls of pthread, C11 threads, semaphores, futexes, sleep and yield, descriptors \
                 that can block, and the start and end of threads; atomic variables and plain \
                 memory are not scheduling points"
            }
            Level::Memory => {
                "atomic operations, calls of pthread, C11 threads, semaphores, futexes, sleep and \
                 yield, descriptors that can block, and the start and end of threads; plain memory \
                 is examined for data races; precompiled code, such as parts of the standard \
                 library of Rust, is not visible"
            }
            Level::Atomics => {
                "atomic operations, calls of pthread, C11 threads, semaphores, futexes, sleep and \
                 yield, descriptors that can block, and the start and end of threads; plain memory \
                 and precompiled code, such as parts of the standard library of Rust, are not \
                 scheduling points"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_show_the_level() {
        let of = |names: &[&str]| names.iter().map(|name| Level::of_import(name)).max();
        assert_eq!(of(&["malloc", "pthread_create"]), Some(Level::Calls));
        assert_eq!(of(&["malloc", "__tsan_init"]), Some(Level::Atomics));
        assert_eq!(of(&["__tsan_atomic32_load", "__tsan_init"]), Some(Level::Atomics));
        assert_eq!(of(&["__tsan_atomic32_load", "__tsan_unaligned_read8"]), Some(Level::Memory));
        assert_eq!(of(&["__tsan_init", "__tsan_write1"]), Some(Level::Memory));
    }
}
