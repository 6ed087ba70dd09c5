//! The flags with which the compiler makes atomic operations visible, and how cargo gets them.
//!
//! LLVM's instrumentation for ThreadSanitizer replaces every atomic operation by a call. Stable
//! `rustc` runs that pass if it is asked to (`-C passes=tsan`), and the runtime of Preempt defines
//! the functions that are called, so that nothing of ThreadSanitizer itself is linked.
//!
//! Cargo takes flags from one of several places (`RUSTFLAGS`, `target.*.rustflags`,
//! `build.rustflags`): using one of these hides what the user has set in another. So the flags are
//! added by a wrapper of the compiler (`RUSTC_WRAPPER`), which is this program itself. It adds them
//! where cargo passes `--target`: not to build scripts and procedural macros, which run on the
//! host.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use preempt_native::{Compiler, Level};

use super::build::rustc;
use crate::{Exit, Refused, screen};

/// The only target that is supported.
const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// The variable with the flags, separated by [`SEPARATOR`].
const FLAGS: &str = "PREEMPT_RUSTC_FLAGS";

/// The variable with the user's own wrapper.
const INNER_WRAPPER: &str = "PREEMPT_RUSTC_WRAPPER";

/// The separator of flags, as in `CARGO_ENCODED_RUSTFLAGS`.
const SEPARATOR: char = '\x1f';

/// An instrumented build.
pub(super) struct Instrumentation {
    folder: PathBuf,
    flags: Vec<String>,
}

impl Instrumentation {
    /// Prepares a folder in the target directory of the workspace.
    pub(super) fn prepare(target: &Path, level: Level) -> Result<Instrumentation, Refused> {
        check_host()?;
        let folder = target.join(match level {
            Level::Memory => "preempt-races",
            Level::Atomics | Level::Calls | Level::Locked => "preempt",
        });
        let library = preempt_native::install_runtime(&folder.join("lib")).map_err(|error| {
            Refused::because(format!("cannot write to {}: {error}", folder.display()))
        })?;
        let flags = flags(&library, level)?;
        let instrumentation = Instrumentation { folder, flags };
        instrumentation.discard_other_builds()?;
        Ok(instrumentation)
    }

    /// The target for which cargo builds.
    pub(super) fn triple(&self) -> &'static str {
        TRIPLE
    }

    /// The target directory of the build.
    pub(super) fn target_directory(&self) -> &Path {
        &self.folder
    }

    /// Asks cargo to call the wrapper.
    pub(super) fn apply(&self, command: &mut Command) -> Result<(), Refused> {
        let own = env::current_exe()
            .map_err(|error| Refused::because(format!("cannot find cargo-preempt: {error}")))?;
        if let Some(inner) = env::var_os("RUSTC_WRAPPER").filter(|inner| !inner.is_empty()) {
            command.env(INNER_WRAPPER, inner);
        }
        command.env("RUSTC_WRAPPER", own).env(FLAGS, self.flags.join(&SEPARATOR.to_string()));
        Ok(())
    }

    /// Cargo does not know the flags, so it would take what was built with others for up to date.
    fn discard_other_builds(&self) -> Result<(), Refused> {
        let (stamp, flags) = (self.folder.join("flags"), self.flags.join("\n"));
        if fs::read_to_string(&stamp).is_ok_and(|before| before == flags) {
            return Ok(());
        }
        let built = self.folder.join(TRIPLE);
        let discarded = if built.exists() { fs::remove_dir_all(&built) } else { Ok(()) };
        discarded.and_then(|()| fs::write(&stamp, flags)).map_err(|error| {
            Refused::because(format!("cannot write to {}: {error}", self.folder.display()))
        })
    }
}

/// The flags for code that is linked with the runtime at this path.
pub(crate) fn flags(library: &Path, level: Level) -> Result<Vec<String>, Refused> {
    let unusable = || {
        Refused::because(format!(
            "the path {} is not valid UTF-8, which cargo requires",
            library.display()
        ))
    };
    let folder = library.parent().filter(|_| library.to_str().is_some()).ok_or_else(unusable)?;
    // The executable can be run alone, too; the runtime does nothing then.
    Ok(preempt_native::flags(Compiler::Rustc, level, folder))
}

/// Refuses other hosts.
fn check_host() -> Result<(), Refused> {
    let output = rustc().arg("-vV").output();
    let output = output.map_err(|error| Refused::because(format!("cannot run rustc: {error}")))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let host = text.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or("unknown");
    if host != TRIPLE {
        return Err(Refused::because(format!(
            "the host is {host}: tests can be explored on {TRIPLE} only"
        )));
    }
    Ok(())
}

/// If cargo has called this program as the wrapper of the compiler, becomes the compiler. Returns
/// only if that fails.
pub(super) fn as_wrapper() -> Option<ExitCode> {
    let flags = env::var(FLAGS).ok()?;
    let mut words = env::args_os().skip(1);
    let compiler = words.next().filter(|word| Path::new(word).file_name().is_some())?;
    if compiler == "preempt" {
        // A test that calls `cargo preempt` itself.
        return None;
    }
    let args: Vec<OsString> = words.collect();
    let inner = env::var_os(INNER_WRAPPER);
    let mut command = match &inner {
        Some(inner) => {
            let mut command = Command::new(inner);
            command.arg(&compiler);
            command
        }
        None => Command::new(&compiler),
    };
    command.args(&args);
    if is_for_target(&args) {
        command.args(flags.split(SEPARATOR));
    }
    let error = command.env_remove(FLAGS).env_remove(INNER_WRAPPER).exec();
    screen::complain(&format!("cannot run {}: {error}\n", compiler.display()));
    Some(ExitCode::from(Exit::Refused as u8))
}

/// Whether the compiler compiles for the target and not for the host.
fn is_for_target(args: &[OsString]) -> bool {
    let is = |arg: &OsString| {
        arg == "--target" || arg.to_str().is_some_and(|a| a.starts_with("--target="))
    };
    args.iter().any(is) && !args.iter().any(|arg| arg == OsStr::new("-vV"))
}

#[cfg(test)]
mod instrument_tests {
    use super::*;

    #[test]
    fn only_code_for_the_target_is_instrumented() {
        let args = |words: &str| -> Vec<OsString> { words.split(' ').map(Into::into).collect() };
        assert!(is_for_target(&args("--crate-name a --target x86_64-unknown-linux-gnu")));
        assert!(is_for_target(&args("--crate-name a --target=x86_64-unknown-linux-gnu")));
        assert!(!is_for_target(&args("--crate-name build_script_build")));
        assert!(!is_for_target(&args("-vV")));
    }
}
