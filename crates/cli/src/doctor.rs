//! `preempt doctor`: tests whether this machine can explore executables, and gives advice.
//!
//! Versions prove little, so everything is tried: a program is run under control, and each compiler
//! builds a program of five lines that loses an update of an atomic variable. A search finds that
//! only if the instrumentation works.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{fs, io};

use preempt_explore::{Cache, Order, Plan};
use preempt_native::{Executable, Native};
use preempt_report::Style;
use preempt_system::Verdict;

use crate::cargo::instrument;
use crate::{Exit, Refused, screen};

/// A program that loses an update, in Rust.
const RUST: &str = "\
use std::{sync::atomic::{AtomicU32, Ordering::SeqCst}, thread};
static N: AtomicU32 = AtomicU32::new(0);
fn add() { let seen = N.load(SeqCst); N.store(seen + 1, SeqCst) }
fn main() { let other = thread::spawn(add); add(); other.join().unwrap(); assert_eq!(N.load(SeqCst), 2) }
";

/// The same in C.
const C: &str = "\
#include <assert.h>
#include <pthread.h>
static _Atomic int n;
static void *add(void *p) { int seen = n; n = seen + 1; return p; }
int main(void) { pthread_t t; pthread_create(&t, 0, add, 0); add(0); pthread_join(t, 0); assert(n == 2); }
";

/// The result of one examination.
struct Row {
    what: &'static str,
    state: State,
    /// The result, for the user.
    found: String,
    /// Advice, if there is something to do.
    advice: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// It works.
    Works,
    /// It does not, and something else does instead.
    Limited,
    /// It does not, and executables cannot be explored without it.
    Broken,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            State::Works => "ok",
            State::Limited => "limited",
            State::Broken => "broken",
        }
    }
}

fn works(what: &'static str, found: impl Into<String>) -> Row {
    Row { what, state: State::Works, found: found.into(), advice: None }
}

fn limited(what: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Row {
    Row { what, state: State::Limited, found: found.into(), advice: Some(advice.into()) }
}

fn broken(what: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Row {
    Row { what, state: State::Broken, found: found.into(), advice: Some(advice.into()) }
}

/// Runs the command.
pub fn run() -> Result<Exit, Refused> {
    let folder = Folder::new().map_err(|error| {
        Refused::because(format!("cannot write to the temporary folder: {error}"))
    })?;
    let mut rows = vec![system(), libc()];
    rows.extend(control());
    rows.extend([addresses(), cargo(), rust(&folder), c("gcc", &folder), c("clang", &folder)]);
    let layout = screen::layout();
    let text: String = rows.iter().map(|row| row.to_text(&layout.style)).collect();
    screen::print(&format!("{text}\n{}\n", conclusion(&rows)))?;
    let is_broken = rows.iter().any(|row| row.state == State::Broken);
    Ok(if is_broken { Exit::Refused } else { Exit::Covered })
}

impl Row {
    fn to_text(&self, style: &Style) -> String {
        let colour = match self.state {
            State::Works => style.good,
            State::Limited => style.alert,
            State::Broken => style.bad,
        };
        let (word, name) = (self.state.word(), style.name);
        let mut text =
            format!("{colour}{word:8}{colour:#} {name}{:10}{name:#} {}\n", self.what, self.found);
        if let Some(advice) = &self.advice {
            text += &format!("{:20}{}\n", "", advice.replace('\n', &format!("\n{:20}", "")));
        }
        text
    }
}

fn conclusion(rows: &[Row]) -> &'static str {
    let has = |state| rows.iter().any(|row| row.state == state);
    if has(State::Broken) {
        "Executables cannot be explored here: see above. Models and Rust tests with the library \
         can."
    } else if has(State::Limited) {
        "Executables can be explored, with the limits above."
    } else {
        "Everything works."
    }
}

/// The first line that a command prints, if it can be run and succeeds.
fn first_line(program: &str, args: &[&str]) -> Option<String> {
    let output = Command::new(program).args(args).stderr(Stdio::null()).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().next().filter(|_| output.status.success())?.trim().to_owned();
    (!line.is_empty()).then_some(line)
}

fn system() -> Row {
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    let found = format!("{os} {} on {arch}", kernel.trim());
    match (os, arch) {
        ("linux", "x86_64") => works("system", found),
        _ => broken("system", found, "Preempt explores executables only on Linux on x86-64"),
    }
}

fn libc() -> Row {
    match first_line("getconf", &["GNU_LIBC_VERSION"]) {
        Some(version) => works("libc", version),
        None => broken(
            "libc",
            "not glibc",
            "programs must be built for glibc (x86_64-unknown-linux-gnu), not for musl",
        ),
    }
}

/// Runs this program itself under control: a fork server, shared anonymous memory, the runtime.
fn control() -> Vec<Row> {
    let tried = std::env::current_exe().map_err(|error| error.to_string()).and_then(|own| {
        let executable = Executable::find(&own, vec!["--version".into()])?;
        explore(executable).map(|(_, native)| native)
    });
    match tried {
        Ok(native) => vec![
            works("control", "a program was run by the fork server"),
            atomics(),
            match native.traps_system_calls() {
                true => works("traps", "futex system calls made without libc are controlled"),
                false => limited(
                    "traps",
                    "futex system calls made without libc are not controlled (seccomp filters are \
                     not permitted)",
                    "reports say that such calls are assumed not to occur (libgomp makes them);\n\
                     in a container: docker run --security-opt seccomp=unconfined",
                ),
            },
        ],
        Err(why) => vec![broken(
            "control",
            why,
            "the system must permit LD_PRELOAD, memfd_create and programs from anonymous files;\n\
             in a container: docker run --security-opt seccomp=unconfined",
        )],
    }
}

/// Runs this program itself with its locked instructions replaced.
fn atomics() -> Row {
    let patched = std::env::current_exe().map_err(|error| error.to_string()).and_then(|own| {
        let mut executable = Executable::find(&own, vec!["--version".into()])?;
        executable.patch_atomics()?;
        explore(executable).map(|(_, native)| native.patched())
    });
    let advice = "`preempt run --atomics` sees no atomic instructions of unmodified programs:\n\
                  build them with the flags that `preempt flags` prints";
    match patched {
        Ok(0) => limited("atomics", "code cannot be made writable (mprotect)", advice),
        Ok(count) => works(
            "atomics",
            format!("{count} locked instructions of a program were patched (run --atomics)"),
        ),
        Err(why) => limited("atomics", why, advice),
    }
}

/// Explores a program with one preemption. Returns whether it has an error.
fn explore(executable: Executable) -> Result<(bool, Native), String> {
    let cache = if executable.differs_within_graphs() { Cache::None } else { Cache::Hb };
    let plan = Plan { order: Order::Icb { cache }, bound: Some(1), ..Plan::new() };
    let search = plan.build_for_program().map_err(|refusal| refusal.to_string())?;
    let (outcome, native) = search.run_program(Native::new(executable), &());
    match native.refusal() {
        Some(why) => Err(why),
        None => Ok((!matches!(outcome.verdict, Verdict::Ok | Verdict::Incomplete), native)),
    }
}

fn addresses() -> Row {
    let fixed = Command::new("setarch").args(["--addr-no-randomize", "true"]).output();
    match fixed {
        Ok(output) if output.status.success() => {
            works("addresses", "randomisation can be switched off")
        }
        Ok(_) => limited(
            "addresses",
            "randomisation cannot be switched off (personality is not permitted)",
            "the names of objects may differ when a schedule is replayed;\n\
             in a container: docker run --security-opt seccomp=unconfined",
        ),
        Err(_) => limited(
            "addresses",
            "unknown: setarch is not installed, which is needed to test it",
            "apt install util-linux, or dnf install util-linux",
        ),
    }
}

fn cargo() -> Row {
    match first_line("cargo", &["--version"]) {
        Some(version) => works("cargo", version),
        None => limited("cargo", "not found", "`cargo preempt` needs it: see https://rustup.rs"),
    }
}

/// The visibility of atomic operations in a program that a compiler has built.
enum Built {
    /// The lost update was found.
    Visible,
    /// It was not.
    Invisible,
    /// There is no program to explore.
    Failed(String),
}

fn rust(folder: &Folder) -> Row {
    let Some(version) = first_line("rustc", &["--version"]) else {
        return limited("rustc", "not found", "see https://rustup.rs");
    };
    let visible = format!("{version}: atomic operations are visible");
    let flags = folder.library().map_err(|why| why.to_string()).and_then(|library| {
        instrument::flags(&library, preempt_native::Level::Atomics).map_err(|Refused(why)| why)
    });
    let compile = |name: &str, variables: &[(&str, &str)], flags: &[String]| {
        let source = folder.source(&format!("{name}.rs"), RUST)?;
        let mut command = Command::new("rustc");
        command.envs(variables.iter().copied()).args(["-g", "--edition", "2021"]).args(flags);
        folder.build(command.arg(source), name)
    };
    let flags = match flags {
        Ok(flags) => flags,
        Err(why) => return limited("rustc", version, why),
    };
    let why = match tried(compile("rust", &[], &flags)) {
        Built::Visible => return works("rustc", visible),
        Built::Invisible => "the flags have no effect".to_owned(),
        Built::Failed(why) => why,
    };
    // The flags of the sanitizer itself are unstable.
    let unstable =
        ["-Zsanitizer=thread", "-Zexternal-clangrt", "-Cunsafe-allow-abi-mismatch=sanitizer"];
    let linked = flags.iter().filter(|flag| flag.starts_with("-Clink-arg"));
    let fallback: Vec<String> =
        unstable.iter().map(|&flag| flag.to_owned()).chain(linked.cloned()).collect();
    if let Built::Visible = tried(compile("fallback", &[("RUSTC_BOOTSTRAP", "1")], &fallback)) {
        let advice = format!(
            "`cargo preempt` cannot instrument with this compiler ({why});\n\
             build with RUSTC_BOOTSTRAP=1 and {}, and explore with `preempt run`",
            unstable.join(" ")
        );
        return limited("rustc", version, advice);
    }
    let advice = format!(
        "atomic operations cannot be made visible ({why}): `preempt run` controls only calls;\n\
         update the toolchain (rustup update stable)"
    );
    limited("rustc", version, advice)
}

fn c(compiler: &'static str, folder: &Folder) -> Row {
    let Some(version) = first_line(compiler, &["--version"]) else {
        let advice = format!(
            "only needed to instrument programs in C and C++: apt install {compiler}, or dnf \
             install {compiler}"
        );
        return limited(compiler, "not found", advice);
    };
    let visible = format!("{version}: atomic operations are visible");
    let built = (|| {
        let source = folder.source(&format!("{compiler}.c"), C)?;
        let object = folder.0.join(format!("{compiler}.o"));
        // Compiled and linked separately: with the sanitizer's flag the linker would add its
        // runtime.
        let mut compile = Command::new(compiler);
        compile.args(["-g", "-pthread", "-fsanitize=thread", "-c"]).arg(&source);
        folder.run(compile.arg("-o").arg(&object))?;
        let library = folder.library()?;
        let mut link = Command::new(compiler);
        link.arg("-pthread").arg(&object).arg(&library);
        folder.build(link.arg(format!("-Wl,-rpath,{}", folder.0.display())), compiler)
    })();
    let why = match tried(built) {
        Built::Visible => return works(compiler, visible),
        Built::Invisible => "-fsanitize=thread has no effect".to_owned(),
        Built::Failed(why) => why,
    };
    let advice = format!(
        "atomic operations cannot be made visible ({why}): `preempt run` controls only calls"
    );
    limited(compiler, version, advice)
}

/// Whether a search finds the lost update of a program that was built.
fn tried(built: io::Result<PathBuf>) -> Built {
    let found = built.map_err(|error| error.to_string());
    match found.and_then(|path| explore(Executable::find(&path, Vec::new())?)) {
        Ok((true, _)) => Built::Visible,
        Ok((false, _)) => Built::Invisible,
        Err(why) => Built::Failed(why),
    }
}

/// A temporary folder, which is removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Folder> {
        let path = std::env::temp_dir().join(format!("preempt-doctor-{}", std::process::id()));
        fs::create_dir(&path)?;
        Ok(Folder(path))
    }

    /// The runtime.
    fn library(&self) -> io::Result<PathBuf> {
        preempt_native::install_runtime(&self.0)
    }

    /// Writes a file.
    fn source(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        fs::write(&path, text)?;
        Ok(path)
    }

    /// Runs a compiler, which writes the executable `name`.
    fn build(&self, command: &mut Command, name: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        self.run(command.arg("-o").arg(&path))?;
        Ok(path)
    }

    /// Runs a command. The error is the first line that it prints about one.
    fn run(&self, command: &mut Command) -> io::Result<()> {
        let output = command.current_dir(&self.0).output()?;
        if output.status.success() {
            return Ok(());
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let line = text.lines().find(|line| line.contains("error")).unwrap_or("it fails");
        Err(io::Error::other(line.to_owned()))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If this fails, the rest stays in the system's temporary folder.
        let _ = fs::remove_dir_all(Path::new(&self.0));
    }
}
