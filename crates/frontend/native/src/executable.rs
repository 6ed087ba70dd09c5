//! What is explored: an executable with its arguments, and the limits of one execution.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::elf;
use crate::entries::Functions;
use crate::level::Level;

/// What runs the code under test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Harness {
    /// The program itself: its `main` is under test, and a panic of any thread is an error.
    #[default]
    Program,
    /// libtest, the harness of Rust, which runs one test. Whether a panic is an error is for the
    /// test to decide: it may expect one, or handle the error of a thread that it joins. So a panic
    /// counts if the test fails.
    ///
    /// The thread that runs `main` belongs to libtest. It creates the thread of the test, waits
    /// for its result and joins it; here it joins first. No behaviour of the test is lost: the two
    /// share nothing but the channel of the result, which the test's code cannot reach.
    Libtest,
    /// Another harness that runs one test, perhaps in the main thread. Panics count as with
    /// libtest.
    Other,
}

/// The allocator of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Allocator {
    /// The runtime: no memory is used twice in an execution, so addresses do not depend on the
    /// schedule, and the use of memory that was freed is found.
    #[default]
    Runtime,
    /// The C library.
    System,
}

/// An executable under test.
#[derive(Clone, Debug)]
pub struct Executable {
    pub(crate) path: PathBuf,
    pub(crate) args: Vec<OsString>,
    /// The working directory; without one it is that of the controller.
    pub directory: Option<PathBuf>,
    /// Variables that are added to the environment.
    pub environment: Vec<(OsString, OsString)>,
    /// What runs the code under test.
    pub harness: Harness,
    /// What can be seen of it.
    pub(crate) level: Level,
    /// Its precompiled functions whose beginnings become scheduling points.
    pub(crate) functions: Functions,
    /// The allocator of the program.
    pub allocator: Allocator,
    /// Whether to detect data races, if plain accesses are visible.
    pub races: bool,
    /// The exit status of a good execution.
    pub expected_exit: i32,
    /// The file that is the standard input; without one the input is empty.
    pub stdin: Option<PathBuf>,
    /// The most steps of one execution.
    pub max_steps: u32,
    /// Whether all executions have to print the same.
    pub same_output: bool,
    /// Whether every execution gets an empty directory for temporary files.
    pub temp_dir: bool,
    /// The longest time that a thread may take between two scheduling points.
    pub max_turn: Duration,
    /// The longest virtual time by which a thread that can run is delayed while others sleep or
    /// wait with a time limit: see [`preempt_native_block::may_expire`].
    pub max_delay: Duration,
    /// The longest time that one execution may take; without one there is no limit.
    pub max_time: Option<Duration>,
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
        let (level, functions) = Level::of(&path)?;
        Ok(Executable {
            path,
            args,
            directory: None,
            environment: Vec::new(),
            harness: Harness::Program,
            level,
            functions,
            allocator: Allocator::Runtime,
            races: true,
            expected_exit: 0,
            stdin: None,
            max_steps: 20_000,
            same_output: false,
            temp_dir: false,
            max_turn: Duration::from_secs(10),
            max_delay: Duration::from_millis(1),
            max_time: None,
            max_memory: None,
            max_output: 64 << 20,
        })
    }

    /// Whether data races are detected: where plain accesses are visible, and memory is not used
    /// twice in an execution, so that accesses to the same address are accesses to the same thing.
    pub(crate) fn detects_races(&self) -> bool {
        self.races && self.level == Level::Memory && self.allocator == Allocator::Runtime
    }

    /// The longest delay in nanoseconds.
    pub(crate) fn max_delay(&self) -> u64 {
        u64::try_from(self.max_delay.as_nanos()).unwrap_or(u64::MAX)
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
