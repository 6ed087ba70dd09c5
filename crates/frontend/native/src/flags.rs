//! Flags with which compilers instrument a program for this front end.
//!
//! The compilers can insert the calls of ThreadSanitizer without linking ThreadSanitizer; the calls
//! are answered by the runtime instead, with which the program is linked. It then runs on its own
//! as well: outside of an execution the runtime performs the operations and nothing else.

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

/// Writes the runtime to `folder`, for programs that are linked with it. Returns its path. A file
/// that is there is replaced at once, so that a linker never reads half of it, and only if it
/// differs.
pub fn install_runtime(folder: &Path) -> io::Result<PathBuf> {
    std::fs::create_dir_all(folder)?;
    let library = folder.join(LIBRARY);
    replace(&library, RUNTIME)?;
    // gcc links `-ltsan` whenever it instruments. It finds this file first: a linker script.
    let script = format!("INPUT({})\n", library.display());
    replace(&folder.join("libtsan.so"), script.as_bytes())?;
    Ok(library)
}

fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if std::fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let new = path.with_file_name(format!(".{name}.{}", std::process::id()));
    std::fs::write(&new, bytes)?;
    std::fs::rename(&new, path)
}

/// The flags for compiling and linking a program, whose runtime was
/// [installed](install_runtime) in `folder`, such that its atomic operations are visible, or also
/// its plain accesses to memory. [`Level::Calls`] needs none.
pub fn flags(compiler: Compiler, level: Level, folder: &Path) -> Vec<String> {
    if level == Level::Calls {
        return Vec::new();
    }
    let (library, folder) = (folder.join(LIBRARY), folder.display());
    let library = library.display();
    let mut flags: Vec<String> = Vec::new();
    let mut add = |more: &[&str]| flags.extend(more.iter().map(|&flag| flag.to_owned()));
    match compiler {
        // gcc has no way of leaving plain accesses out.
        Compiler::Gcc => add(&["-fsanitize=thread", "-Wno-tsan"]),
        Compiler::Clang => {
            add(&["-fsanitize=thread", "-fno-sanitize-link-runtime"]);
            add(&["-mllvm", "-tsan-instrument-func-entry-exit=0"]);
            if level == Level::Atomics {
                add(&["-mllvm", "-tsan-instrument-memory-accesses=0"]);
            }
        }
        // The pass instruments atomic operations of all functions, and plain accesses of those that
        // have the attribute.
        Compiler::Rustc => match level {
            Level::Memory => add(&[
                "-Cpasses=forceattrs",
                "-Cpasses=function(tsan)",
                "-Cllvm-args=-force-attribute=sanitize_thread",
                "-Cllvm-args=-tsan-instrument-func-entry-exit=0",
                // An optimiser that does not know of the instrumentation may read memory ahead of
                // a condition, which would be reported as a data race.
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
