//! Packages of the registry, downloaded on demand into folders below `target`, and builds of copies
//! of them. Nothing is vendored.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// A folder below the target directory, which is created if necessary.
pub fn folder(name: &str) -> Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = target.unwrap_or_else(|| repository.join("target")).join(name);
    fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    Ok(folder.canonicalize()?)
}

/// Downloads a package, unless this was done before. Returns its folder in `root`.
pub fn download(root: &Path, name: &str, version: &str) -> Result<PathBuf> {
    let folder = root.join(format!("{name}-{version}"));
    if folder.join("Cargo.toml").exists() {
        return Ok(folder);
    }
    let asks = root.join("download");
    let _ = fs::remove_dir_all(&asks);
    fs::create_dir_all(asks.join("src"))?;
    fs::write(asks.join("src/lib.rs"), "")?;
    let manifest = format!(
        "[package]\nname = \"download\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
         [dependencies]\n{name} = \"={version}\"\n\n[workspace]\n"
    );
    fs::write(asks.join("Cargo.toml"), manifest)?;
    let mut cargo = Command::new("cargo");
    cargo.current_dir(&asks).args(["vendor", "--quiet", "packages"]);
    let output = cargo.output().context("running cargo")?;
    let why = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "downloading {name} {version}: {why}");
    fs::rename(asks.join("packages").join(name), &folder)?;
    // Old lock files have dependencies that newer compilers reject.
    let _ = fs::remove_file(folder.join("Cargo.lock"));
    // The package is built by itself, wherever the folder is.
    let manifest = folder.join("Cargo.toml");
    let text = fs::read_to_string(&manifest)?;
    fs::write(&manifest, format!("{text}\n[workspace]\n"))?;
    Ok(folder)
}

/// Copies a folder with all that it contains.
pub fn copy_folder(from: &Path, to: &Path) -> Result<()> {
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

/// Writes a file unless it already has this text, so that cargo does not rebuild it.
pub fn write_if_changed(file: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(file).is_ok_and(|old| old == text) {
        return Ok(());
    }
    fs::write(file, text).with_context(|| format!("writing {}", file.display()))
}

/// Runs a call of cargo that builds one binary, whose path it returns. The error has the compiler's
/// messages.
pub fn build(mut cargo: Command) -> Result<PathBuf> {
    let output = cargo.args(["--message-format", "json"]).output().context("running cargo")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", compiler_errors(&text, &errors));
    executable(&text).context("cargo names no binary")
}

/// The binary in cargo's messages, which are JSON, one per line.
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
    fn the_binary_is_found_in_the_messages_of_cargo() {
        let messages = "{\"reason\":\"compiler-artifact\",\"executable\":null}\n\
                        {\"reason\":\"compiler-artifact\",\"executable\":\"deps/loom-1\"}\n\
                        {\"reason\":\"build-finished\"}\n";
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
