//! Builds the instrumented executables of a crate with cargo, in a separate target directory.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use serde_json::Value;

use preempt_native::Level;

use super::instrument::Instrumentation;
use crate::{Refused, input};

/// Options that select what is built, with the names and meanings of cargo's.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Build, as for cargo")]
pub(super) struct BuildArgs {
    /// Packages to build [default: the one of the working directory]
    #[arg(short, long, value_name = "SPEC")]
    package: Vec<String>,
    /// All packages of the workspace
    #[arg(long)]
    workspace: bool,
    /// Packages to leave out, with --workspace
    #[arg(long, value_name = "SPEC")]
    exclude: Vec<String>,
    /// Only the library
    #[arg(long)]
    lib: bool,
    /// All programs
    #[arg(long)]
    bins: bool,
    /// Only this program
    #[arg(long, value_name = "NAME")]
    bin: Vec<String>,
    /// All integration tests, and the tests of the library and the programs
    #[arg(long)]
    tests: bool,
    /// Only this integration test
    #[arg(long, value_name = "NAME")]
    test: Vec<String>,
    /// All examples
    #[arg(long)]
    examples: bool,
    /// Only this example
    #[arg(long, value_name = "NAME")]
    example: Vec<String>,
    /// Features to enable
    #[arg(short = 'F', long, value_name = "FEATURES")]
    features: Vec<String>,
    /// All features
    #[arg(long)]
    all_features: bool,
    /// Without the default features
    #[arg(long)]
    no_default_features: bool,
    /// With optimisation
    #[arg(short, long)]
    release: bool,
    /// The profile
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Also find data races: makes plain accesses visible and disables optimisation
    #[arg(long)]
    pub(super) races: bool,
    /// The manifest
    #[arg(long, value_name = "PATH")]
    manifest_path: Option<PathBuf>,
    /// Require that Cargo.lock is up to date
    #[arg(long)]
    locked: bool,
    /// Do not use the network
    #[arg(long)]
    offline: bool,
    /// The same as --locked and --offline
    #[arg(long)]
    frozen: bool,
    /// A setting of cargo
    #[arg(long, value_name = "KEY=VALUE")]
    config: Vec<String>,
    /// Number of parallel compiler processes
    #[arg(long, value_name = "N")]
    build_jobs: Option<String>,
    /// Show what cargo builds
    #[arg(short, long)]
    verbose: bool,
}

impl BuildArgs {
    /// The options as cargo takes them.
    fn words(&self) -> Vec<OsString> {
        let mut words = self.general();
        let flags = [
            ("--workspace", self.workspace),
            ("--lib", self.lib),
            ("--bins", self.bins),
            ("--tests", self.tests),
            ("--examples", self.examples),
        ];
        words.extend(given(&flags));
        let lists = [
            ("--package", &self.package),
            ("--exclude", &self.exclude),
            ("--bin", &self.bin),
            ("--test", &self.test),
            ("--example", &self.example),
        ];
        words.extend(repeated(&lists));
        words
    }

    /// The accesses to be made visible.
    fn level(&self) -> Level {
        if self.races { Level::Memory } else { Level::Atomics }
    }

    /// The options that do not say which targets are built.
    fn general(&self) -> Vec<OsString> {
        let flags = [
            ("--all-features", self.all_features),
            ("--no-default-features", self.no_default_features),
            ("--release", self.release),
            ("--locked", self.locked),
            ("--offline", self.offline),
            ("--frozen", self.frozen),
        ];
        let mut words = given(&flags);
        words.extend(repeated(&[("--features", &self.features), ("--config", &self.config)]));
        words.extend(self.profile.iter().flat_map(|name| ["--profile".into(), name.into()]));
        let manifest = self.manifest_path.iter();
        words.extend(manifest.flat_map(|path| ["--manifest-path".into(), path.into()]));
        words
    }

    /// The options that build one executable, for a command that can be copied, each with a space
    /// before it.
    pub(super) fn to_shell(&self, built: &Built) -> String {
        let mut words = self.general();
        words.extend(self.races.then(|| OsString::from("--races")));
        if !built.is_only_package {
            words.extend(["--package".into(), OsString::from(&built.package)]);
        }
        match &built.kind[..] {
            "lib" => words.push("--lib".into()),
            kind => words.extend([format!("--{kind}").into(), OsString::from(&built.target)]),
        }
        let word = |word: &OsString| format!(" {}", input::quoted(&word.to_string_lossy()));
        words.iter().map(word).collect()
    }
}

fn given(flags: &[(&str, bool)]) -> Vec<OsString> {
    flags.iter().filter(|(_, given)| *given).map(|(flag, _)| flag.into()).collect()
}

fn repeated(lists: &[(&str, &Vec<String>)]) -> Vec<OsString> {
    let words = |(option, values): &(&str, &Vec<String>)| -> Vec<OsString> {
        values.iter().flat_map(|value| [option.into(), value.into()]).collect()
    };
    lists.iter().flat_map(words).collect()
}

/// The executables to build.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// The executables with tests.
    Tests,
    /// A program.
    Program,
}

/// An executable that cargo has built.
#[derive(Clone, Debug)]
pub(super) struct Built {
    pub(super) path: PathBuf,
    /// The name of the target: that of the library, the program or the integration test.
    pub(super) target: String,
    /// `lib`, `bin`, `test`, `example`.
    pub(super) kind: String,
    /// The name of the package.
    pub(super) package: String,
    /// Whether the workspace has no other package.
    is_only_package: bool,
    /// The folder of the package: the working directory of its tests.
    pub(super) folder: PathBuf,
    /// The environment variables that cargo sets for the tests of the package.
    pub(super) environment: Vec<(OsString, OsString)>,
}

impl Built {
    /// Its description, in cargo's words.
    pub(super) fn title(&self) -> String {
        match &self.kind[..] {
            "lib" => format!("{}, library", self.package),
            kind => format!("{}, {kind} {}", self.package, self.target),
        }
    }
}

/// A command of cargo: of the one that has called this command, if one has.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The compiler that cargo would call.
pub(super) fn rustc() -> Command {
    Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()))
}

/// Builds, and returns the executables in the order in which they were given.
pub(super) fn build(args: &BuildArgs, goal: Goal) -> Result<Vec<Built>, Refused> {
    let metadata = Metadata::read(args)?;
    let instrumentation = Instrumentation::prepare(&metadata.target, args.level())?;
    let mut command = cargo();
    match goal {
        Goal::Tests => command.args(["test", "--no-run"]),
        Goal::Program => command.arg("build"),
    };
    command
        .args(["--message-format", "json-render-diagnostics"])
        .args(["--target", instrumentation.triple()])
        .arg("--target-dir")
        .arg(instrumentation.target_directory())
        .args(args.words());
    if let Some(jobs) = &args.build_jobs {
        command.args(["--jobs", jobs]);
    }
    if !args.verbose {
        command.arg("--quiet");
    }
    instrumentation.apply(&mut command)?;
    let cannot = |error: std::io::Error| Refused::because(format!("cannot run cargo: {error}"));
    let mut process = command.stdout(Stdio::piped()).spawn().map_err(cannot)?;
    let messages = process.stdout.take().expect("the standard output is a pipe");
    let mut found = Vec::new();
    for line in BufReader::new(messages).lines() {
        let line = line.map_err(cannot)?;
        // Other lines are output of build scripts that cargo passes on.
        if let Ok(message) = serde_json::from_str::<Value>(&line) {
            found.extend(metadata.executable(&message, goal));
        }
    }
    if !process.wait().map_err(cannot)?.success() {
        return Err(Refused::because("the build has failed: see above"));
    }
    // Cargo reports them in the order in which they were finished.
    found.sort_by(|a, b| a.sort_key().cmp(&b.sort_key()));
    Ok(found)
}

impl Built {
    /// The order of `cargo test`: by package; its library, its programs, its tests.
    fn sort_key(&self) -> (&str, usize, &str) {
        let kinds = ["lib", "bin", "test", "example"];
        let kind = kinds.iter().position(|kind| *kind == self.kind).unwrap_or(kinds.len());
        (&self.package, kind, &self.target)
    }
}

/// The workspace, as `cargo metadata` describes it.
struct Metadata {
    /// The target directory of the workspace.
    target: PathBuf,
    packages: Vec<Value>,
}

impl Metadata {
    fn read(args: &BuildArgs) -> Result<Metadata, Refused> {
        let mut command = cargo();
        command.args(["metadata", "--no-deps", "--format-version", "1"]);
        if let Some(path) = &args.manifest_path {
            command.arg("--manifest-path").arg(path);
        }
        for (flag, given) in
            [("--locked", args.locked), ("--offline", args.offline), ("--frozen", args.frozen)]
        {
            command.args(given.then_some(flag));
        }
        let output = command
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| Refused::because(format!("cannot run cargo: {error}")))?;
        if !output.status.success() {
            return Err(Refused::because("there is no crate to build: see above"));
        }
        let unreadable = || Refused::because("the output of `cargo metadata` cannot be read");
        let mut all: Value = serde_json::from_slice(&output.stdout).map_err(|_| unreadable())?;
        let target = all["target_directory"].as_str().map(PathBuf::from).ok_or_else(unreadable)?;
        let packages = all["packages"].as_array_mut().map(std::mem::take).unwrap_or_default();
        Ok(Metadata { target, packages })
    }

    /// The executable that a message of cargo announces, if it is one to be explored.
    fn executable(&self, message: &Value, goal: Goal) -> Option<Built> {
        if message["reason"] != "compiler-artifact" {
            return None;
        }
        let is_test = message["profile"]["test"].as_bool()?;
        if is_test != (goal == Goal::Tests) {
            return None;
        }
        let path = PathBuf::from(message["executable"].as_str()?);
        let package = self.packages.iter().find(|p| p["id"] == message["package_id"])?;
        let text = |name: &str| package[name].as_str().unwrap_or_default().to_owned();
        let folder = Path::new(&text("manifest_path")).parent()?.to_owned();
        let target = &message["target"];
        let kind = match target["kind"][0].as_str()? {
            kind @ ("bin" | "test" | "example" | "bench") => kind,
            _ => "lib",
        };
        Some(Built {
            environment: environment(&text, &folder),
            path,
            target: target["name"].as_str()?.to_owned(),
            kind: kind.to_owned(),
            package: text("name"),
            is_only_package: self.packages.len() == 1,
            folder,
        })
    }
}

/// The variables that cargo sets when it runs a test.
fn environment(text: &dyn Fn(&str) -> String, folder: &Path) -> Vec<(OsString, OsString)> {
    let version = text("version");
    let (numbers, pre) = version.split_once('-').unwrap_or((&version, ""));
    let numbers = numbers.split('+').next().unwrap_or_default();
    let mut parts = numbers.split('.');
    let mut part = || parts.next().unwrap_or_default().to_owned();
    [
        ("CARGO_MANIFEST_DIR", folder.display().to_string()),
        ("CARGO_MANIFEST_PATH", text("manifest_path")),
        ("CARGO_PKG_NAME", text("name")),
        ("CARGO_PKG_VERSION", version.clone()),
        ("CARGO_PKG_VERSION_MAJOR", part()),
        ("CARGO_PKG_VERSION_MINOR", part()),
        ("CARGO_PKG_VERSION_PATCH", part()),
        ("CARGO_PKG_VERSION_PRE", pre.to_owned()),
        ("CARGO_PKG_DESCRIPTION", text("description")),
        ("CARGO_PKG_HOMEPAGE", text("homepage")),
        ("CARGO_PKG_REPOSITORY", text("repository")),
        ("CARGO_PKG_LICENSE", text("license")),
        ("CARGO_PKG_RUST_VERSION", text("rust_version")),
    ]
    .into_iter()
    .map(|(name, value)| (name.into(), value.into()))
    .collect()
}
