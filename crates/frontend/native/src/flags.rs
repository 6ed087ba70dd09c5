//! Flags with which compilers instrument a program for this front end.
//!
//! The compilers can insert the calls of ThreadSanitizer without linking ThreadSanitizer. The
//! program is linked with the runtime instead, which defines the called functions. Such a program
//! also runs on its own: outside of an execution the runtime only performs the operations.

use std::io;
use std::path::{Path, PathBuf};

use crate::level::Level;
use crate::server::{LIBRARY, RUNTIME};

/// A compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// gcc and g++.
    Gcc,
    /// clang and clang++.
    Clang,
    /// rustc, without nightly features.
    Rustc,
}

/// Writes the runtime to `folder`, for programs that are linked with it. Returns its path. An
/// existing file is replaced only if it differs, and atomically, so that a linker never reads a
/// partial file.
pub fn install_runtime(folder: &Path) -> io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let library = folder.join(LIBRARY);
    replace(&library, RUNTIME)?;
    // gcc always links `-ltsan` when it instruments, and finds this linker script first.
    let script = format!("INPUT({})\n", library.display());
    replace(&folder.join("libtsan.so"), script.as_bytes())?;
    Ok(library)
}

/// Replaces a file atomically, unless it has the same contents.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if std::fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{name}.{}", std::process::id()));
    std::fs::write(&new, bytes)?;
    std::fs::rename(&new, path)
}

/// The flags for compiling and linking a program so that it has the given level. The runtime must
/// be [installed](install_runtime) in `folder`. [`Level::Calls`] and [`Level::Locked`] need no
/// flags.
pub fn flags(compiler: Compiler, level: Level, folder: &Path) -> Vec<String> {
    if matches!(level, Level::Calls | Level::Locked) {
        return Vec::new();
    }
    let (library, folder) = (folder.join(LIBRARY), folder.display());
    let library = library.display();
    let mut flags: Vec<String> = Vec::new();
    let mut add = |more: &[&str]| flags.extend(more.iter().map(|&flag| flag.to_owned()));
    match compiler {
        // gcc cannot instrument atomic operations alone.
        Compiler::Gcc => add(&["-fsanitize=thread", "-Wno-tsan"]),
        Compiler::Clang => {
            add(&["-fsanitize=thread", "-fno-sanitize-link-runtime"]);
            add(&["-mllvm", "-tsan-instrument-func-entry-exit=0"]);
            if level == Level::Atomics {
                add(&["-mllvm", "-tsan-instrument-memory-accesses=0"]);
            }
        }
        // The pass instruments atomic operations in all functions, and plain accesses in functions
        // with the attribute `sanitize_thread`.
        Compiler::Rustc => match level {
            Level::Memory => add(&[
                "-Cpasses=forceattrs",
                "-Cpasses=function(tsan)",
                "-Cllvm-args=-force-attribute=sanitize_thread",
                "-Cllvm-args=-tsan-instrument-func-entry-exit=0",
                // The optimiser does not know of the instrumentation and may move a read before the
                // condition that guards it, which would be reported as a data race.
                "-Copt-level=0",
            ]),
            _ => add(&["-Cpasses=tsan", "-Cllvm-args=-tsan-instrument-func-entry-exit=0"]),
        },
    }
    let link = match compiler {
        Compiler::Gcc => [format!("-L{folder}"), format!("-Wl,-rpath,{folder}")],
        Compiler::Clang => [library.to_string(), format!("-Wl,-rpath,{folder}")],
        Compiler::Rustc => {
            [format!("-Clink-arg={library}"), format!("-Clink-arg=-Wl,-rpath,{folder}")]
        }
    };
    flags.extend(link);
    flags
}
