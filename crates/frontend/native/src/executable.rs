//! An executable under test: its path, its arguments, and the limits of one execution.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use preempt_system::MemoryModel;

use crate::elf;
use crate::entries::Functions;
use crate::level::Level;
use crate::locked::LockedInstructions;

/// The harness that runs the code under test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Harness {
    /// None: `main` is under test, and a panic of any thread is a failure.
    #[default]
    Program,
    /// libtest, Rust's test harness, which runs one test. The test decides whether a panic is a
    /// failure: it may expect one, or handle the error of a thread that it joins. So a panic is a
    /// failure only if the test fails.
    ///
    /// The thread that runs `main` belongs to libtest. It creates the thread of the test, waits
    /// for its result and joins it; here it joins first. No behaviour of the test is lost: the two
    /// threads share only the channel for the result, which the test's code cannot reach.
    Libtest,
    /// Another harness that runs one test, perhaps in the main thread. A panic is a failure only if
    /// the test fails, as with libtest.
    Other,
}

/// The allocator of the program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Allocator {
    /// That of the runtime. It never reuses memory within an execution, so addresses do not depend
    /// on the schedule, and uses of freed memory are detected.
    #[default]
    Runtime,
    /// That of the C library.
    System,
}

/// An executable under test.
#[derive(Clone, Debug)]
pub struct Executable {
    pub(crate) path: PathBuf,
    pub(crate) args: Vec<OsString>,
    /// The working directory; `None` is that of the controller.
    pub directory: Option<PathBuf>,
    /// Variables that are added to the environment.
    pub environment: Vec<(OsString, OsString)>,
    /// The harness that runs the code under test.
    pub harness: Harness,
    pub(crate) level: Level,
    pub(crate) functions: Functions,
    /// The instructions that are replaced at [`Level::Locked`].
    pub(crate) locked: LockedInstructions,
    /// The allocator of the program.
    pub allocator: Allocator,
    /// Whether to detect data races, if plain accesses are visible.
    pub races: bool,
    /// The memory model: see [`crate::weak`].
    pub memory: MemoryModel,
    /// The exit status of a passing execution.
    pub expected_exit: i32,
    /// The file that is the standard input; `None` is an empty input.
    pub stdin: Option<PathBuf>,
    /// The maximal number of steps of one execution.
    pub max_steps: u32,
    /// Whether all executions must have the same output.
    pub same_output: bool,
    /// Whether every execution gets an empty directory for temporary files.
    pub temp_dir: bool,
    /// The maximal real time of a thread between two scheduling points.
    pub max_turn: Duration,
    /// The maximal virtual time by which a thread that can run is delayed while others sleep or
    /// wait with a time limit: see [`preempt_native_block::may_expire`].
    pub max_delay: Duration,
    /// The maximal real time of one execution; `None` is no limit.
    pub max_time: Option<Duration>,
    /// The maximal number of bytes of memory of one execution; `None` is no limit.
    pub max_memory: Option<u64>,
    /// The maximal number of bytes that one execution may write to its output or to any file.
    pub max_output: u64,
}

impl Executable {
    /// Finds the executable `program`, looked up in `PATH` as a shell does. `Err` says why it
    /// cannot be explored.
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
            locked: LockedInstructions::default(),
            allocator: Allocator::Runtime,
            races: true,
            memory: MemoryModel::Sc,
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

    /// Makes the locked instructions of the executable scheduling points, by replacing them in the
    /// process that is run. `Err` says why that is not possible.
    pub fn patch_atomics(&mut self) -> Result<(), String> {
        let name = self.path.display();
        if self.level != Level::Calls {
            return Err(format!(
                "{name} was built with instrumentation, so all its atomic operations are scheduling \
                 points already: leave out --atomics"
            ));
        }
        let unreadable = |why: String| format!("cannot read {name}: {why}");
        let bytes = std::fs::read(&self.path).map_err(|error| unreadable(error.to_string()))?;
        let file = object::File::parse(&*bytes).map_err(|error| unreadable(error.to_string()))?;
        self.locked = LockedInstructions::of(&file);
        self.level = Level::Locked;
        Ok(())
    }

    /// Whether data races are detected. Requires that plain accesses are visible, and that memory
    /// is never reused within an execution, so that the same address is always the same object.
    pub(crate) fn detects_races(&self) -> bool {
        self.races && self.level == Level::Memory && self.allocator == Allocator::Runtime
    }

    /// [`max_delay`](Executable::max_delay) in nanoseconds.
    pub(crate) fn max_delay(&self) -> u64 {
        u64::try_from(self.max_delay.as_nanos()).unwrap_or(u64::MAX)
    }

    /// The path of the file that is run.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The arguments, without the name of the program.
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
