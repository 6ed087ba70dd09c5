//! `preempt flags`: compiler flags that make atomic operations visible to `preempt run`.

use std::env;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use preempt_native::{Compiler, Level, flags, install_runtime};

use crate::{Exit, Refused, screen};

#[derive(Debug, Args)]
pub struct FlagsArgs {
    /// The compiler
    #[arg(value_enum)]
    pub compiler: CompilerArg,
    /// Also make plain accesses visible, so that data races are found; rustc then does not optimise
    #[arg(long)]
    pub races: bool,
    /// Directory for the library that programs are linked with [default: `preempt` in the user's
    /// cache directory]
    #[arg(long, value_name = "DIRECTORY")]
    pub dir: Option<PathBuf>,
}

/// The compilers.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum CompilerArg {
    /// gcc and g++
    Gcc,
    /// clang and clang++
    Clang,
    /// rustc (stable)
    Rustc,
}

/// The cache directory of the user.
fn cache() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))
}

/// Writes the library and prints the flags.
pub fn run(args: &FlagsArgs) -> Result<Exit, Refused> {
    let folder = match &args.dir {
        Some(folder) => folder.clone(),
        None => cache().map(|cache| cache.join("preempt")).ok_or_else(|| {
            Refused::because(
                "neither XDG_CACHE_HOME nor HOME is set: choose a directory with --dir",
            )
        })?,
    };
    let unwritable =
        |error| Refused::because(format!("cannot write to {}: {error}", folder.display()));
    let folder = std::path::absolute(&folder).map_err(unwritable)?;
    // A shell splits the output of a command at spaces, and ignores quotes in it.
    if folder.to_string_lossy().contains(char::is_whitespace) {
        return Err(Refused::because(format!(
            "the path {} has spaces, which a shell would split: choose another directory with \
             --dir",
            folder.display()
        )));
    }
    install_runtime(&folder).map_err(unwritable)?;
    let compiler = match args.compiler {
        CompilerArg::Gcc => Compiler::Gcc,
        CompilerArg::Clang => Compiler::Clang,
        CompilerArg::Rustc => Compiler::Rustc,
    };
    let level = if args.races { Level::Memory } else { Level::Atomics };
    screen::print(&format!("{}\n", flags(compiler, level, &folder).join(" ")))?;
    Ok(Exit::Covered)
}
