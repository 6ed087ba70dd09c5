//! Compiles the programs of the corpus.

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

/// Compiles a program of the corpus with these options of gcc.
pub fn compiled_with(name: &str, options: &[&str]) -> PathBuf {
    gcc(&folder(), name, options)
}

fn gcc(folder: &Path, name: &str, options: &[&str]) -> PathBuf {
    static LOCK: Mutex<()> = Mutex::new(());
    let _one_at_a_time = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let suffix = options.concat().replace(|c: char| !c.is_alphanumeric(), "_");
    // A file name has at most 255 bytes.
    let suffix = &suffix[..suffix.len().min(60)];
    let out = target.join(format!("{name}{suffix}"));
    // Relative, so that reports do not depend on where the repository is.
    let status = Command::new("gcc")
        .current_dir(folder)
        .args(["-g", "-O1", "-Wall", "-Werror", "-pthread"])
        .args(options)
        .arg("-o")
        .arg(&out)
        .arg(format!("{name}.c"))
        .status()
        .expect("gcc can be started: scripts/install-test-tools installs it");
    assert!(status.success(), "{name}.c cannot be compiled");
    out
}

/// Compiles a program of the corpus.
pub fn compiled(name: &str) -> PathBuf {
    compiled_with(name, &[])
}

/// A program of the corpus, with patience for a machine that does much else.
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

/// The folder of programs that are built such that more than calls is visible.
pub fn instrumented_folder() -> PathBuf {
    folder().join("instrumented")
}

/// Compiles one of these, in C or in Rust, such that atomic operations, or also plain accesses, are
/// visible.
pub fn instrumented(name: &str, level: Level) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let runtime = target.join("runtime");
    static INSTALLED: std::sync::Once = std::sync::Once::new();
    INSTALLED.call_once(|| {
        install_runtime(&runtime).expect("the target folder can be written");
    });
    let folder = instrumented_folder();
    if folder.join(format!("{name}.c")).exists() {
        let flags = flags(Compiler::Gcc, level, &runtime);
        return gcc(&folder, name, &flags.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let out = target.join(format!("{name}_{level:?}"));
    let status = Command::new("rustc")
        .current_dir(folder)
        .args(["-g", "-O", "--edition", "2024"])
        .args(flags(Compiler::Rustc, level, &runtime))
        .arg(format!("{name}.rs"))
        .arg("-o")
        .arg(&out)
        .status()
        .expect("rustc can be started");
    assert!(status.success(), "{name}.rs cannot be compiled");
    out
}
