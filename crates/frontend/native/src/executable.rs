//! What is explored: an executable with its arguments, and the limits of one execution.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::elf;

/// An executable under test.
#[derive(Clone, Debug)]
pub struct Executable {
    pub(crate) path: PathBuf,
    pub(crate) args: Vec<OsString>,
    /// The exit status of a good execution.
    pub expected_exit: i32,
    /// The file that is the standard input; without one the input is empty.
    pub stdin: Option<PathBuf>,
    /// The most steps of one execution.
    pub max_steps: u32,
    /// The longest time that a thread may take between two scheduling points.
    pub max_turn: Duration,
    /// The most bytes of memory of one execution; without one there is no limit.
    pub max_memory: Option<u64>,
    /// The most bytes of output, or of any file, that one execution may write.
    pub max_output: u64,
}

impl Executable {
    /// The executable with this name, looked up in `PATH` like a shell does, or why it cannot be
    /// explored.
    pub fn find(program: &Path, args: Vec<OsString>) -> Result<Executable, String> {
        if !cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu")) {
            return Err("executables can be explored on Linux on x86-64 only".to_owned());
        }
        let path = lookup(program)?;
        elf::inspect(&path)?;
        Ok(Executable {
            path,
            args,
            expected_exit: 0,
            stdin: None,
            max_steps: 20_000,
            max_turn: Duration::from_secs(10),
            max_memory: None,
            max_output: 64 << 20,
        })
    }

    /// The file that is run.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The arguments.
    pub fn args(&self) -> &[OsString] {
        &self.args
    }
}

fn lookup(program: &Path) -> Result<PathBuf, String> {
    if program.components().count() > 1 || program.is_absolute() || program.exists() {
        let found = std::path::absolute(program);
        return found.map_err(|error| format!("cannot run {}: {error}", program.display()));
    }
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file())
        .ok_or_else(|| {
            format!("there is no executable {}, neither here nor in PATH", program.display())
        })
}
