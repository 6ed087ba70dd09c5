//! Downloads a suite's source, and builds it with loom or with Preempt in loom's place.
//!
//! Nothing is vendored: the published package is downloaded into a folder below `target`, and a
//! copy of it is built. Preempt replaces loom by a patch: a crate named `loom` whose only line is
//! `pub use preempt::loom::*;`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::Tool;
use super::suite::Suite;
use crate::package;

/// The folder for downloads and builds.
pub struct Workshop {
    root: PathBuf,
}

impl Workshop {
    /// The folder, which is created if necessary.
    pub fn open() -> Result<Workshop> {
        Ok(Workshop { root: package::folder("suites")? })
    }

    /// Builds the test binary of a suite for one tool. Returns its path.
    pub fn build(&self, suite: &Suite, tool: Tool) -> Result<PathBuf> {
        let source = package::download(&self.root, &suite.name, &suite.version)?;
        // A lock file for one tool does not fit the other, so each has its own copy of the source.
        let copy = self.root.join(tool.name()).join(format!("{}-{}", suite.name, suite.version));
        if !copy.exists() {
            copy_folder(&source, &copy)?;
        }
        let mut cargo = Command::new("cargo");
        cargo.current_dir(&copy).args([
            "test",
            "--release",
            "--no-run",
            "--message-format",
            "json",
        ]);
        cargo.args(suite.selection()).env("RUSTFLAGS", suite.flags());
        cargo.env("CARGO_TARGET_DIR", self.root.join(tool.name()).join("target"));
        if tool == Tool::Preempt {
            let replacement = self.replacement(&suite.loom)?;
            cargo
                .arg("--config")
                .arg(format!("patch.crates-io.loom.path={:?}", replacement.display().to_string()));
        }
        let output = cargo.output().context("running cargo")?;
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "{} {} does not build with {}:\n{}",
            suite.name,
            suite.version,
            tool.name(),
            compiler_errors(&text, &errors)
        );
        executable(&text).with_context(|| format!("cargo names no test binary of {}", suite.name))
    }

    /// A crate named `loom` of this version that re-exports Preempt. Returns its folder.
    fn replacement(&self, version: &str) -> Result<PathBuf> {
        let folder = self.root.join(format!("loom-{version}"));
        fs::create_dir_all(folder.join("src"))?;
        let preempt = repository().join("crates/frontend/shim").canonicalize()?;
        let manifest = format!(
            "[package]\nname = \"loom\"\nversion = \"{version}\"\nedition = \"2024\"\n\n[features]\nfutures = []\ncheckpoint = []\n\n\
             [dependencies]\npreempt = {{ path = {:?} }}\n\n[workspace]\n",
            preempt.display().to_string()
        );
        write_if_changed(&folder.join("Cargo.toml"), &manifest)?;
        write_if_changed(&folder.join("src/lib.rs"), "pub use preempt::loom::*;\n")?;
        Ok(folder)
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Writes a file unless it already has this text, so that cargo does not rebuild it.
fn write_if_changed(file: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(file).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::write(file, text).with_context(|| format!("writing {}", file.display()))
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

/// The test binary in cargo's messages, which are JSON, one per line.
fn executable(messages: &str) -> Option<PathBuf> {
    messages.lines().rev().find_map(|line| text_field(line, "executable")).map(PathBuf::from)
}

/// The compiler's errors in readable form.
fn compiler_errors(messages: &str, stderr: &str) -> String {
    let rendered = messages.lines().filter(|line| line.contains("\"level\":\"error\""));
    let mut text: Vec<String> =
        rendered.filter_map(|line| text_field(line, "rendered")).take(5).collect();
    if text.is_empty() {
        text.push(stderr.to_owned());
    }
    text.join("\n")
}

/// A string field of a message.
fn text_field(line: &str, name: &str) -> Option<String> {
    fn find(value: &serde_json::Value, name: &str) -> Option<String> {
        let object = value.as_object()?;
        let own = object.get(name).and_then(|text| text.as_str()).map(str::to_owned);
        own.or_else(|| object.values().find_map(|inner| find(inner, name)))
    }
    find(&serde_json::from_str(line).ok()?, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_binary_is_found_in_the_messages_of_cargo() {
        let messages = "{\"reason\":\"compiler-artifact\",\"executable\":null}\n\
                        {\"reason\":\"compiler-artifact\",\"executable\":\"deps/loom-1\"}\n{\"reason\":\"build-finished\"}\n";
        assert_eq!(executable(messages), Some(PathBuf::from("deps/loom-1")));
        assert_eq!(executable("{\"reason\":\"build-finished\"}"), None);
    }

    #[test]
    fn the_compiler_is_quoted() {
        let messages = "{\"message\":{\"level\":\"error\",\"rendered\":\"error: no such thing\"}}";
        assert_eq!(compiler_errors(messages, "nothing"), "error: no such thing");
        assert_eq!(compiler_errors("", "could not resolve"), "could not resolve");
    }
}
