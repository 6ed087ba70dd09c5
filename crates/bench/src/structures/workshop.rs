//! Downloads crates, replaces their atomics in a copy, and builds a driver: a program that checks
//! one structure and prints the outcome as JSON.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::list::{List, Source, Structure};
use super::rewrite::{edited, mirrored};
use crate::package::{self, copy_folder, write_if_changed};

/// The folder for downloads and builds.
pub struct Workshop {
    root: PathBuf,
    /// The folder of the crate `preempt`.
    preempt: PathBuf,
}

impl Workshop {
    /// The folder, which is created if necessary.
    pub fn open() -> Result<Workshop> {
        let preempt = Path::new(env!("CARGO_MANIFEST_DIR")).join("../frontend/shim");
        Ok(Workshop { root: package::folder("structures")?, preempt: preempt.canonicalize()? })
    }

    /// Builds the driver for structures of one crate. The position of a structure in the list is
    /// the argument of the driver.
    pub fn build(&self, structures: &[&Structure], list: &List) -> Result<PathBuf> {
        let name = &structures.first().context("a crate has structures")?.name;
        let mut used: Vec<&String> =
            structures.iter().flat_map(|structure| &structure.with).chain([name]).collect();
        used.sort();
        used.dedup();
        let mut manifest = format!(
            "[package]\nname = \"driver-{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
             [dependencies]\npreempt = {{ path = {:?} }}\n{name} = \"={}\"\n\n\
             [patch.crates-io]\n",
            self.preempt.display().to_string(),
            list.source(name)?.version,
        );
        for used in used {
            let copy = self.replaced(list.source(used)?)?;
            writeln!(manifest, "{used} = {{ path = {:?} }}", copy.display().to_string())?;
        }
        manifest += "\n[workspace]\n";
        let folder = self.root.join(format!("driver-{name}"));
        fs::create_dir_all(folder.join("src"))?;
        write_if_changed(&folder.join("Cargo.toml"), &manifest)?;
        write_if_changed(&folder.join("src/main.rs"), &driver(name, structures))?;
        let mut cargo = Command::new("cargo");
        cargo
            .current_dir(&folder)
            .args(["build", "--release", "--quiet"])
            .env("CARGO_TARGET_DIR", self.root.join("target"))
            // The warnings of other crates are not of interest here.
            .env("RUSTFLAGS", "--cap-lints allow");
        package::build(cargo).with_context(|| format!("the driver of {name} does not build"))
    }

    /// A copy of a crate with Preempt's atomics. Returns its folder.
    fn replaced(&self, source: &Source) -> Result<PathBuf> {
        let original = package::download(&self.root, &source.name, &source.version)?;
        let copy = self.root.join("replaced").join(format!("{}-{}", source.name, source.version));
        if !copy.exists() {
            copy_folder(&original, &copy)?;
        }
        let manifest = fs::read_to_string(original.join("Cargo.toml"))?;
        let preempt = self.preempt.display().to_string();
        write_if_changed(
            &copy.join("Cargo.toml"),
            &format!("{manifest}\n[dependencies.preempt]\npath = {preempt:?}\n"),
        )?;
        let mut edited_only: Vec<&String> = source.edits.iter().map(|edit| &edit.file).collect();
        edited_only.retain(|file| !source.files.contains(file));
        edited_only.dedup();
        for file in source.files.iter().chain(edited_only) {
            let replace = || -> Result<String> {
                let mut text = fs::read_to_string(original.join(file))?;
                if source.files.contains(file) {
                    text = mirrored(&text)?;
                }
                let mut edits = source.edits.iter().filter(|edit| edit.file == *file);
                edits.try_fold(text, |text, edit| edited(&text, edit))
            };
            let text = replace().with_context(|| format!("{file} of {}", source.name))?;
            write_if_changed(&copy.join(file), &text)?;
        }
        Ok(copy)
    }
}

/// The source of a driver.
fn driver(name: &str, structures: &[&Structure]) -> String {
    let path = name.replace('-', "_");
    let mut text = String::new();
    let mut arms = String::new();
    for (number, structure) in structures.iter().enumerate() {
        let Structure { items, .. } = structure;
        let check = structure.check();
        text += &format!(
            "mod structure_{number} {{\nuse {path}::*;\n{items}\n\
             pub fn check() -> std::string::String {{\n{check}\n}}\n}}\n\n"
        );
        arms += &format!("Some(\"{number}\") => structure_{number}::check(),\n");
    }
    text + "fn main() {\nlet outcome = match std::env::args().nth(1).as_deref() {\n"
        + &arms
        + "other => panic!(\"there is no structure {other:?}\"),\n};\n\
           print!(\"{outcome}\");\n}\n"
}
