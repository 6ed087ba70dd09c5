//! Downloads a suite's source, and builds it with loom or with Preempt in loom's place.
//!
//! Nothing is vendored: the published package is downloaded into a folder below `target`, and a
//! copy of it is built. Preempt replaces loom by a patch: a crate named `loom` whose only line is
//! `pub use preempt::loom::*;`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::Tool;
use super::suite::Suite;
use crate::package::{self, copy_folder, write_if_changed};

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
        cargo.current_dir(&copy).args(["test", "--release", "--no-run"]);
        cargo.args(suite.selection()).env("RUSTFLAGS", suite.flags());
        cargo.env("CARGO_TARGET_DIR", self.root.join(tool.name()).join("target"));
        if tool == Tool::Preempt {
            let replacement = self.replacement(&suite.loom)?;
            cargo
                .arg("--config")
                .arg(format!("patch.crates-io.loom.path={:?}", replacement.display().to_string()));
        }
        package::build(cargo).with_context(|| {
            format!("{} {} does not build with {}", suite.name, suite.version, tool.name())
        })
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
