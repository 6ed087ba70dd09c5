//! The cases: `corpus/real/cases.toml`.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Deserialize;

/// A known bug.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// The folder of its test.
    pub name: String,
    /// The crate.
    #[serde(rename = "crate")]
    pub krate: String,
    /// A version with the error.
    pub affected: String,
    /// A version without it.
    pub fixed: String,
    /// The publication: an advisory, an issue, a changelog.
    pub source: String,
    /// Its effect.
    pub error: String,
    /// Options of the search, if the default does not find it.
    #[serde(default)]
    pub search: Vec<String>,
    /// Whether it is expected to be found.
    #[serde(default)]
    pub expected: Expected,
}

/// Whether a search is expected to find an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expected {
    /// A search finds the error.
    #[default]
    Found,
    /// No search finds it: the error does not exist in sequentially consistent executions.
    OutOfReach,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
}

/// The folder of all cases.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../corpus/real")
}

/// All cases.
pub fn cases() -> Result<Vec<Case>> {
    let path = folder().join("cases.toml");
    let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let file: File = toml::from_str(&text).with_context(|| path.display().to_string())?;
    Ok(file.case)
}

impl Case {
    /// The crate whose test depends on the affected version. That with the fixed one is the folder
    /// `fixed` in it.
    pub fn folder(&self) -> PathBuf {
        folder().join(&self.name)
    }
}
