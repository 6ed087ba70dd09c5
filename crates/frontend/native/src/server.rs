//! The controller's side of the fork server of an executable.
//!
//! The process is started once, with the runtime loaded into it, and forks a child for every
//! execution. It dies with the controller, its children die with it, and the shared memory is an
//! anonymous file that disappears with the last of them. So nothing is left behind, even if the
//! controller is killed.
//!
//! Each worker of a search has its own server. All servers of an executable have the same
//! arguments, an environment of the same size and the same open files, so that objects have the
//! same addresses in all of them.

use std::collections::BTreeMap;
use std::ffi::{CString, OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use preempt_explore::program_hash;
use preempt_native_block::{
    BLOCK_FD, Block, Choice, Event, ExecutionEnd, FD_VARIABLE, LIBRARY_FD, MAX_STEPS,
    PADDING_VARIABLE, Slot, TEMP_FD, VERSION,
};

use preempt_system::MemoryModel;

use crate::executable::{Allocator, Executable, Harness};
use crate::temporary::TemporaryDirectory;

/// The runtime, compiled by `build.rs`.
pub(crate) static RUNTIME: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/runtime.so"));

/// The name by which programs that are linked with the runtime refer to it.
pub(crate) const LIBRARY: &str = "libpreempt_native.so";

/// The time within which the program must reach its `main`.
const START_TIMEOUT: Duration = Duration::from_secs(20);

/// How often the controller checks whether a process makes progress.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The maximal number of bytes of output that a report shows.
const MAX_SHOWN_OUTPUT: u64 = 1 << 16;

/// A request for one execution.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'r> {
    /// The choices to take first.
    pub(crate) prefix: &'r [Choice],
    /// The values that stale accesses of the prefix read: one number for each choice, or none.
    pub(crate) stale_values: &'r [u64],
    /// The slots of the threads that are known so far.
    pub(crate) slots: &'r [Slot],
    pub(crate) stacks: Stacks,
}

/// Whether call stacks are recorded, which takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stacks {
    /// Only the call site of each operation.
    Omitted,
    /// All callers of each operation.
    Recorded,
}

/// The log of one execution. [`Block`] documents fields of the same names.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) outcome: ExecutionEnd,
    pub(crate) detail: u32,
    pub(crate) text: Vec<u8>,
    pub(crate) status: i32,
    pub(crate) oversynchronised: u32,
    pub(crate) trapped: u32,
    pub(crate) notes: Vec<String>,
    pub(crate) fault: u64,
    pub(crate) events: Vec<Event>,
    pub(crate) slots: Vec<Slot>,
    /// The standard output and the standard error.
    pub(crate) output: Output,
}

impl Run {
    /// Whether the kernel killed the process because it could not deliver a signal by which the
    /// runtime controls it: `SIGSYS` for a trapped system call, or `SIGTRAP` for a replaced
    /// instruction. If the program sends this signal to itself, the runtime records a fault.
    pub(crate) fn dies_of_trap(&self, signal: i32) -> bool {
        libc::WIFSIGNALED(self.status) && libc::WTERMSIG(self.status) == signal && self.fault == 0
    }
}

/// The output of an execution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Output {
    /// The first [`MAX_SHOWN_OUTPUT`] bytes.
    pub(crate) text: String,
    /// A hash of the whole output if outputs are compared; otherwise 0.
    pub(crate) hash: u64,
}

/// Why a server could not be started, or could not run an execution to its end.
#[derive(Clone, Debug)]
pub(crate) struct RunError(pub(crate) String);

/// A mapped block.
struct Shared {
    block: *mut Block,
    file: OwnedFd,
}

// SAFETY: in this process, only the owner uses the mapping.
unsafe impl Send for Shared {}

impl Shared {
    fn new() -> io::Result<Shared> {
        let file = memory_file("preempt-block")?;
        File::from(file.try_clone()?).set_len(size_of::<Block>() as u64)?;
        // SAFETY: a new mapping of a file of this size.
        let block = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size_of::<Block>(),
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if block == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Shared { block: block.cast(), file })
    }

    /// Writes the settings that the runtime reads before `main`.
    fn configure(&self, executable: &Executable) {
        let functions = &executable.functions.found;
        for (nth, function) in functions.iter().enumerate() {
            // SAFETY: the process does not exist yet.
            unsafe { (*self.block).entries[nth] = function.entry };
        }
        self.get().entries_len.store(functions.len() as u32, Relaxed);
        let locked = &executable.locked.found;
        // SAFETY: the process does not exist yet.
        unsafe { (&mut (*self.block).locked)[..locked.len()].copy_from_slice(locked) };
        self.get().locked_len.store(locked.len() as u32, Relaxed);
        self.get().races.store(u32::from(executable.detects_races()), Relaxed);
        self.get().weak.store(u32::from(executable.memory == MemoryModel::Weak), Relaxed);
    }

    /// Writes a request. Must be called while no child runs.
    fn write_request(&self, request: Request<'_>, settings: &Settings) {
        let prefix = &request.prefix[..request.prefix.len().min(MAX_STEPS)];
        // SAFETY: no child runs, so this process owns the whole block.
        unsafe {
            (&mut (*self.block).prefix)[..prefix.len()].copy_from_slice(prefix);
            let values = &request.stale_values[..request.stale_values.len().min(MAX_STEPS)];
            (&mut (*self.block).stale_values)[..values.len()].copy_from_slice(values);
            (&mut (*self.block).slots)[..request.slots.len()].copy_from_slice(request.slots);
        }
        let shared = self.get();
        shared.slots_len.store(request.slots.len() as u32, Relaxed);
        shared.prefix_len.store(prefix.len() as u32, Relaxed);
        shared.max_steps.store(settings.max_steps, Relaxed);
        shared.max_delay.store(settings.max_delay, Relaxed);
        shared.stacks.store(u32::from(request.stacks == Stacks::Recorded), Relaxed);
        shared.system_heap.store(u32::from(settings.allocator == Allocator::System), Relaxed);
        shared.join_first.store(u32::from(settings.harness == Harness::Libtest), Relaxed);
        for zeroed in [
            &shared.outcome,
            &shared.detail,
            &shared.steps,
            &shared.events,
            &shared.text_len,
            &shared.notes_len,
            &shared.oversynchronised,
            &shared.trapped,
        ] {
            zeroed.store(0, Relaxed);
        }
        shared.fault.store(0, Relaxed);
    }

    fn get(&self) -> &Block {
        // SAFETY: the block is mapped until `self` is dropped. The fields that the child writes
        // while this process reads are atomic; the rest is read after the child has ended.
        unsafe { &*self.block }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and no reference outlives this.
        unsafe { libc::munmap(self.block.cast(), size_of::<Block>()) };
    }
}

/// A new anonymous file.
fn memory_file(name: &str) -> io::Result<OwnedFd> {
    let name = CString::new(name).expect("the name has no zero byte");
    // SAFETY: the name is a string; the descriptor is new.
    unsafe {
        let fd = libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC);
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(fd)) }
    }
}

/// An anonymous file with the runtime, which all servers share.
fn runtime() -> io::Result<&'static OwnedFd> {
    static FILE: OnceLock<OwnedFd> = OnceLock::new();
    if let Some(file) = FILE.get() {
        return Ok(file);
    }
    let file = memory_file("preempt-runtime")?;
    io::Write::write_all(&mut File::from(file.try_clone()?), RUNTIME)?;
    Ok(FILE.get_or_init(|| file))
}

/// The settings that every request repeats.
struct Settings {
    max_steps: u32,
    harness: Harness,
    allocator: Allocator,
    /// In nanoseconds of virtual time.
    max_delay: u64,
}

impl Settings {
    fn of(executable: &Executable) -> Settings {
        Settings {
            max_steps: executable.max_steps,
            harness: executable.harness,
            allocator: executable.allocator,
            max_delay: executable.max_delay(),
        }
    }
}

/// Splits the notes of a block, each of which ends with a zero byte.
fn split_notes(bytes: &[u8]) -> Vec<String> {
    let texts = bytes.split(|&byte| byte == 0).filter(|text| !text.is_empty());
    texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect()
}

/// Environment variables that load the runtime and tell it that there is a controller.
fn runtime_variables() -> [(&'static str, String); 3] {
    [
        ("LD_PRELOAD", format!("/proc/self/fd/{LIBRARY_FD}")),
        ("LD_BIND_NOW", "1".to_owned()),
        (FD_VARIABLE, BLOCK_FD.to_string()),
    ]
}

/// Runs an execution under gdb, which stops in the thread that is about to take the step `step`,
/// counted from 1, and then executes `commands`. Returns when the user leaves gdb.
pub(crate) fn debug(
    executable: &Executable,
    request: Request<'_>,
    step: u32,
    commands: &[String],
) -> io::Result<()> {
    let shared = Shared::new()?;
    shared.configure(executable);
    shared.write_request(request, &Settings::of(executable));
    shared.get().no_fork.store(1, Relaxed);
    shared.get().stop_before.store(step, Relaxed);
    let descriptors = [
        (Some(runtime()?.as_raw_fd()), LIBRARY_FD),
        (Some(shared.file.as_raw_fd()), BLOCK_FD),
        (None, TEMP_FD),
    ];
    let mut command = Command::new("gdb");
    command.arg("-q");
    gdb_commands(executable, commands).iter().for_each(|line| _ = command.args(["-ex", line]));
    command.arg("--args").arg(&executable.path).args(&executable.args);
    if let Some(directory) = &executable.directory {
        command.current_dir(directory);
    }
    // SAFETY: only system calls between fork and exec, and no allocation.
    unsafe { command.pre_exec(move || install_descriptors(descriptors)) };
    command.status().map(drop)
}

/// The commands that start the program in gdb and stop at the requested step, then `commands`.
fn gdb_commands(executable: &Executable, commands: &[String]) -> Vec<String> {
    let settings = [
        "set startup-with-shell off",
        "set disable-randomization on",
        "set breakpoint pending on",
        "set print thread-events off",
        // The runtime traps system calls: see its module `trap`.
        "handle SIGSYS nostop noprint pass",
    ];
    // Set by commands, so that gdb itself does not load the runtime.
    let runtime = runtime_variables().map(|(name, value)| (name.to_owned(), value));
    let added = executable.environment.iter().map(|(name, value)| {
        (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
    });
    let variables = runtime.into_iter().chain(added);
    let mut all: Vec<String> = settings.map(str::to_owned).to_vec();
    all.extend(variables.map(|(name, value)| format!("set environment {name} {value}")));
    all.extend(["break preempt_step", "run"].map(str::to_owned));
    all.extend(commands.iter().cloned());
    all
}

/// A fork server.
pub(crate) struct Server {
    shared: Shared,
    process: Child,
    output: File,
    /// Whether `output` may still contain the output of an earlier execution.
    has_output: bool,
    /// Whether the hash of the output is needed.
    compares_output: bool,
    directory: Option<TemporaryDirectory>,
    request: u32,
    settings: Settings,
    /// The maximal time without a scheduling point.
    max_turn: Duration,
    /// The maximal time of an execution.
    max_time: Option<Duration>,
}

impl Server {
    /// Starts the executable up to its `main`.
    pub(crate) fn start(executable: &Executable) -> Result<Server, RunError> {
        let failed = |error: io::Error| {
            RunError(format!("cannot start {}: {error}", executable.path.display()))
        };
        let shared = Shared::new().map_err(failed)?;
        let output = File::from(memory_file("preempt-output").map_err(failed)?);
        // Every process of the program appends, and the controller truncates the file between
        // executions.
        // SAFETY: the descriptor is ours.
        unsafe { libc::fcntl(output.as_raw_fd(), libc::F_SETFL, libc::O_APPEND) };
        let directory = match executable.temp_dir {
            true => Some(TemporaryDirectory::new().map_err(failed)?),
            false => None,
        };
        shared.configure(executable);
        let process = spawn(executable, &shared, &output, directory.as_ref()).map_err(failed)?;
        let mut server = Server {
            shared,
            process,
            output,
            has_output: true,
            compares_output: executable.same_output,
            directory,
            request: 0,
            settings: Settings::of(executable),
            max_turn: executable.max_turn,
            max_time: executable.max_time,
        };
        server.await_start(executable)?;
        Ok(server)
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Which of the executable's functions begin with scheduling points, a bit for each.
    pub(crate) fn entered(&self) -> u32 {
        self.shared.get().entered.load(Relaxed)
    }

    /// The number of locked instructions that were replaced.
    pub(crate) fn patched(&self) -> u32 {
        self.shared.get().patched.load(Relaxed)
    }

    /// Whether data races are detected.
    pub(crate) fn detects_races(&self) -> bool {
        self.shared.get().races.load(Relaxed) != 0
    }

    /// Whether system calls that the program makes without libc are trapped.
    pub(crate) fn traps(&self) -> bool {
        self.shared.get().traps.load(Relaxed) != 0
    }

    fn await_start(&mut self, executable: &Executable) -> Result<(), RunError> {
        let started = Instant::now();
        let name = executable.path.display();
        loop {
            let ready = self.shared.get().ready.load(Acquire);
            if ready == VERSION {
                return Ok(());
            }
            if let Ok(Some(status)) = self.process.try_wait() {
                let output = self.take_output().text;
                return Err(RunError(format!(
                    "{name} ended before its main ({status}), or the runtime could not be loaded \
                     into it\n{output}"
                )));
            }
            if started.elapsed() > START_TIMEOUT {
                return Err(RunError(format!(
                    "{name} did not reach its main within {} seconds",
                    START_TIMEOUT.as_secs()
                )));
            }
            wait(&self.shared.get().ready, ready, POLL_INTERVAL);
        }
    }

    /// Runs one execution.
    pub(crate) fn run(&mut self, request: Request<'_>) -> Result<Run, RunError> {
        self.shared.write_request(request, &self.settings);
        let shared = self.shared.get();
        if self.has_output {
            self.output.set_len(0).expect("an anonymous file can be truncated");
        }
        if let Some(directory) = &self.directory {
            directory.empty().map_err(|error| {
                RunError(format!("the temporary files of an execution cannot be removed: {error}"))
            })?;
        }
        self.request += 1;
        shared.request.store(self.request, Release);
        wake(&shared.request);
        self.await_end()?;
        Ok(self.read())
    }

    /// Waits until the requested execution has ended. Kills the server if the child exceeds a limit
    /// or makes no progress.
    fn await_end(&mut self) -> Result<(), RunError> {
        let started = Instant::now();
        let interval = self.max_time.map_or(POLL_INTERVAL, |limit| limit.min(POLL_INTERVAL));
        // The number of steps so far, and when it was first observed.
        let mut progress = (0, started);
        loop {
            let block = self.shared.get();
            let done = block.done.load(Acquire);
            if done == self.request {
                return Ok(());
            }
            wait(&block.done, done, interval);
            if block.done.load(Acquire) == self.request {
                return Ok(());
            }
            let steps = block.steps.load(Relaxed);
            if steps != progress.0 {
                progress = (steps, Instant::now());
            }
            if let Ok(Some(status)) = self.process.try_wait() {
                return Err(RunError(format!("the fork server ended ({status})")));
            }
            if let Some(limit) = self.max_time.filter(|&limit| started.elapsed() > limit) {
                self.kill();
                return Err(RunError(format!(
                    "an execution has taken more than {} seconds ({steps} steps): raise the limit \
                     with --max-time",
                    limit.as_secs_f64(),
                )));
            }
            if progress.1.elapsed() > self.max_turn {
                let why = self.describe_stall();
                self.kill();
                return Err(RunError(why));
            }
        }
    }

    /// Describes what the running thread of a child without progress does, according to the kernel.
    fn describe_stall(&self) -> String {
        let child = self.shared.get().child.load(Relaxed);
        let seconds = self.max_turn.as_secs();
        let tasks = std::fs::read_dir(format!("/proc/{child}/task")).into_iter().flatten();
        const FUTEX: &str = "202";
        let calls: Vec<String> = tasks
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("syscall")).ok())
            .filter_map(|call| call.split(' ').next().map(str::trim).map(str::to_owned))
            .collect();
        // Threads that wait for the baton are in a futex call.
        match calls.iter().find(|call| *call != FUTEX) {
            Some(call) if call == "running" => format!(
                "a thread has computed for {seconds} seconds without a scheduling point: it may \
                 wait in a loop for plain memory to change; raise the limit with --max-turn, or \
                 let the loop call sched_yield"
            ),
            Some(call) => format!(
                "a thread has been blocked for {seconds} seconds in the system call {call}, which \
                 is not controlled: pipes, sockets and eventfds are, but neither through stdio \
                 (FILE) nor to other processes"
            ),
            None => format!(
                "a thread has been blocked for {seconds} seconds in a futex call of the C library \
                 that is not controlled"
            ),
        }
    }

    fn read(&mut self) -> Run {
        let block = self.shared.get();
        // The program can overwrite the block, so lengths are not trusted.
        let count = |len: &AtomicU32, capacity: usize| (len.load(Acquire) as usize).min(capacity);
        Run {
            outcome: ExecutionEnd::of(block.outcome.load(Acquire)).unwrap_or(ExecutionEnd::Fault),
            detail: block.detail.load(Relaxed),
            text: block.text[..count(&block.text_len, block.text.len())].to_vec(),
            status: block.status.load(Relaxed) as i32,
            fault: block.fault.load(Relaxed),
            oversynchronised: block.oversynchronised.load(Relaxed),
            trapped: block.trapped.load(Relaxed),
            notes: split_notes(&block.notes[..count(&block.notes_len, block.notes.len())]),
            events: block.log[..count(&block.events, block.log.len())].to_vec(),
            slots: block.slots[..count(&block.slots_len, block.slots.len())].to_vec(),
            output: self.take_output(),
        }
    }

    fn take_output(&mut self) -> Output {
        let mut bytes = Vec::new();
        let mut part = [0; 1 << 12];
        let limit = if self.compares_output { u64::MAX } else { MAX_SHOWN_OUTPUT };
        while (bytes.len() as u64) < limit {
            let read = self.output.read_at(&mut part, bytes.len() as u64);
            match read.expect("an anonymous file can be read") {
                0 => break,
                read => bytes.extend_from_slice(&part[..read]),
            }
        }
        self.has_output = !bytes.is_empty();
        let hash = if self.compares_output { program_hash([&bytes]) } else { 0 };
        let shown = &bytes[..bytes.len().min(MAX_SHOWN_OUTPUT as usize)];
        Output { text: String::from_utf8_lossy(shown).into_owned(), hash }
    }

    fn kill(&mut self) {
        // The child of the server dies with it. An error means that the server has ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Starts the executable with the runtime loaded into it.
fn spawn(
    executable: &Executable,
    shared: &Shared,
    output: &File,
    directory: Option<&TemporaryDirectory>,
) -> io::Result<Child> {
    let (library, block) = (runtime()?.as_raw_fd(), shared.file.as_raw_fd());
    let directory = directory.map(|directory| directory.file().as_raw_fd());
    let stdin = match &executable.stdin {
        Some(path) => Stdio::from(File::open(path)?),
        None => Stdio::null(),
    };
    let (memory, output_limit) = (executable.max_memory, executable.max_output);
    let controller = std::process::id() as libc::pid_t;
    let mut command = Command::new(&executable.path);
    command
        .args(&executable.args)
        .env_clear()
        .envs(environment(executable))
        .stdin(stdin)
        .stdout(output.try_clone()?)
        .stderr(output.try_clone()?);
    if let Some(directory) = &executable.directory {
        command.current_dir(directory);
    }
    // SAFETY: only system calls between fork and exec, and no allocation.
    unsafe {
        command.pre_exec(move || {
            // Signals from the terminal, such as Ctrl-C, must reach only the controller.
            libc::setsid();
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            if libc::getppid() != controller {
                libc::_exit(1);
            }
            libc::personality(libc::ADDR_NO_RANDOMIZE as libc::c_ulong);
            limit(libc::RLIMIT_FSIZE, output_limit);
            limit(libc::RLIMIT_CORE, 0);
            if let Some(memory) = memory {
                limit(libc::RLIMIT_AS, memory);
            }
            install_descriptors([
                (Some(library), LIBRARY_FD),
                (Some(block), BLOCK_FD),
                (directory, TEMP_FD),
            ])
        });
    }
    spawn_from_lasting_thread(command)
}

/// Duplicates each descriptor to its number in the program, without close-on-exec. Runs between
/// fork and exec.
fn install_descriptors(descriptors: [(Option<i32>, i32); 3]) -> io::Result<()> {
    // Copied above all target numbers first: one descriptor may have the target number of another.
    const ABOVE: i32 = 200;
    const _: () = assert!(LIBRARY_FD < ABOVE && BLOCK_FD < ABOVE && TEMP_FD < ABOVE);
    let copies = descriptors.map(|(given, target)| {
        // SAFETY: no memory is involved.
        let copy = |given| unsafe { libc::fcntl(given, libc::F_DUPFD_CLOEXEC, ABOVE) };
        (given.map(copy), target)
    });
    for (copy, target) in copies {
        // SAFETY: no memory is involved.
        if copy.is_some_and(|copy| unsafe { libc::dup2(copy, target) } < 0) {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Starts a process from a thread that lives as long as the controller. The kernel kills the
/// process when the *thread* that started it ends, and a worker of a search may end before its
/// server.
fn spawn_from_lasting_thread(command: Command) -> io::Result<Child> {
    type Order = (Command, Sender<io::Result<Child>>);
    static STARTER: OnceLock<Mutex<Sender<Order>>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (orders, incoming) = channel::<Order>();
        std::thread::spawn(move || {
            for (mut command, reply) in incoming {
                // If the worker has panicked, no thread waits for the reply.
                let _ = reply.send(command.spawn());
            }
        });
        Mutex::new(orders)
    });
    let (reply, answer) = channel();
    let ended = "the thread that starts processes lives as long as the controller";
    starter.lock().unwrap_or_else(PoisonError::into_inner).send((command, reply)).expect(ended);
    answer.recv().expect(ended)
}

/// The size of arguments and environment is rounded up to a multiple of this.
const ENVIRONMENT_UNIT: usize = 1 << 15;

/// The environment of the program: that of the controller, the variables that the user added, and
/// those of the runtime. Arguments and environment lie above the stack of the main thread, so their
/// size decides where the stack begins. It is rounded up, so that objects on the stack have the
/// same addresses in another shell.
fn environment(executable: &Executable) -> BTreeMap<OsString, OsString> {
    let mut all: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    all.extend(executable.environment.iter().cloned());
    all.extend(runtime_variables().map(|(name, value)| (name.into(), value.into())));
    if executable.temp_dir {
        all.insert("TMPDIR".into(), format!("/proc/self/fd/{TEMP_FD}").into());
    }
    all.remove(OsStr::new(PADDING_VARIABLE));
    // For each string, its final zero byte and the pointer to it.
    let each = 1 + size_of::<usize>();
    let variables: usize =
        all.iter().map(|(name, value)| name.len() + 1 + value.len() + each).sum();
    let args: usize = executable.args.iter().map(|arg| arg.len() + each).sum();
    let used = variables + args + PADDING_VARIABLE.len() + 1 + each;
    let padding = "x".repeat(used.next_multiple_of(ENVIRONMENT_UNIT) - used);
    all.insert(PADDING_VARIABLE.into(), padding.into());
    all
}

/// Sets the soft and the hard limit of a resource.
fn limit(resource: libc::__rlimit_resource_t, maximum: u64) {
    let limit = libc::rlimit { rlim_cur: maximum, rlim_max: maximum };
    // SAFETY: the limit is valid.
    unsafe { libc::setrlimit(resource, &limit) };
}

/// Waits for at most `timeout` while `word` has the value `value`.
fn wait(word: &AtomicU32, value: u32, timeout: Duration) {
    let timeout = libc::timespec {
        tv_sec: timeout.as_secs() as libc::time_t,
        tv_nsec: timeout.subsec_nanos().into(),
    };
    // SAFETY: the word and the time are valid.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &timeout) };
}

fn wake(word: &AtomicU32) {
    // SAFETY: the word is valid.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
}
