//! Compiles the programs of the corpus.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use preempt_native::{Compiler, Executable, Level, Native, flags, install_runtime};

/// The folder of the corpus.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../corpus/native")
}

/// The programs of the corpus, by name.
pub fn programs() -> Vec<String> {
    let files = std::fs::read_dir(folder()).expect("the corpus can be read");
    let mut names: Vec<String> = files
        .map(|file| file.expect("the corpus can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .map(|path| path.file_stem().expect("a file has a name").to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Compiles a program of the corpus with gcc and these options.
pub fn compiled_with(name: &str, options: &[&str]) -> PathBuf {
    gcc(&folder(), name, options)
}

/// Compiles the C program `name` in `folder`.
pub fn gcc(folder: &Path, name: &str, options: &[&str]) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let suffix = options.concat().replace(|c: char| !c.is_alphanumeric(), "_");
    // A file name has at most 255 bytes.
    let suffix = &suffix[..suffix.len().min(60)];
    let out = target.join(format!("{name}{suffix}"));
    // Relative, so that reports do not depend on where the repository is.
    let mut compiler = Command::new("gcc");
    compiler.args(["-g", "-O1", "-Wall", "-Werror", "-pthread"]).args(options);
    compile_once(compiler.current_dir(folder), Path::new(&format!("{name}.c")), &out);
    out
}

/// Runs `compiler` on `source` unless this process has written `out` before. Tests run in parallel
/// and share programs: two compilers must not write one file, and a program that another test
/// executes must not be replaced.
pub fn compile_once(compiler: &mut Command, source: &Path, out: &Path) {
    static COMPILED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    if compiled.contains(out) {
        return;
    }
    let status = compiler.arg("-o").arg(out).arg(source).status().unwrap_or_else(|error| {
        panic!("{compiler:?}: {error}; scripts/install-test-tools installs what tests need")
    });
    assert!(status.success(), "{} cannot be compiled", source.display());
    compiled.insert(out.to_path_buf());
}

/// Compiles a program of the corpus.
pub fn compiled(name: &str) -> PathBuf {
    compiled_with(name, &[])
}

/// A program of the corpus, with a time limit that is long enough for a busy machine.
pub fn executable(name: &str) -> Executable {
    let mut executable =
        Executable::find(&compiled(name), Vec::new()).expect("the program can be explored");
    executable.max_turn = Duration::from_secs(60);
    executable
}

/// A program of the corpus.
pub fn program(name: &str) -> Native {
    Native::new(executable(name))
}

/// The folder of programs that are built with instrumentation.
pub fn instrumented_folder() -> PathBuf {
    folder().join("instrumented")
}

/// The folder of the runtime with which instrumented programs are linked.
pub fn runtime() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("runtime");
    static INSTALLED: std::sync::Once = std::sync::Once::new();
    INSTALLED.call_once(|| {
        install_runtime(&folder).expect("the target folder can be written");
    });
    folder
}

/// Compiles an instrumented program, in C or in Rust.
pub fn instrumented(name: &str, level: Level) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let runtime = runtime();
    let folder = instrumented_folder();
    if folder.join(format!("{name}.c")).exists() {
        let flags = flags(Compiler::Gcc, level, &runtime);
        return gcc(&folder, name, &flags.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let out = target.join(format!("{name}_{level:?}"));
    let mut compiler = Command::new("rustc");
    compiler.args(["-g", "-O", "--edition", "2024"]).args(flags(Compiler::Rustc, level, &runtime));
    compile_once(compiler.current_dir(folder), Path::new(&format!("{name}.rs")), &out);
    out
}
