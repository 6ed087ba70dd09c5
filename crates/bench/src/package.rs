//! Packages of the registry, downloaded on demand into folders below `target`. Nothing is vendored.

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
