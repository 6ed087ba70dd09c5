//! The structures to check, as `data/structures.toml` lists them.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// A crate whose atomics are replaced.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    /// The crate.
    #[serde(rename = "crate")]
    pub name: String,
    /// Its exact version.
    pub version: String,
    /// The files in which std's items are replaced.
    pub files: Vec<String>,
    /// Further replacements.
    #[serde(default)]
    pub edits: Vec<Edit>,
}

/// A text that occurs once in a file, and its replacement.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Edit {
    /// The file.
    pub file: String,
    /// The text.
    pub from: String,
    /// Its replacement.
    pub to: String,
}

/// The verdict that is known to be correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Expected {
    /// No scenario fails.
    #[serde(rename = "linearizable")]
    Linearizable,
    /// A scenario has results that no serial order explains.
    #[serde(rename = "not linearizable")]
    Violation,
}

/// A structure and its operations.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Structure {
    /// The crate that defines it.
    #[serde(rename = "crate")]
    pub name: String,
    /// Further crates whose atomics are replaced.
    #[serde(default)]
    pub with: Vec<String>,
    /// Rust items that the following use.
    #[serde(default)]
    pub items: String,
    /// An expression that makes it.
    #[serde(default)]
    make: Option<String>,
    /// A function that makes a handle for each thread.
    #[serde(default)]
    handles: Option<String>,
    /// Calls of methods of `preempt::Linearize`.
    operations: Vec<String>,
    /// The most calls of a scenario.
    #[serde(default = "four")]
    pub calls: usize,
    /// The most threads of a scenario.
    #[serde(default = "three")]
    pub threads: usize,
    /// The correct verdict, if it is known.
    #[serde(default)]
    pub expect: Option<Expected>,
    /// The smallest scenario that fails.
    #[serde(default)]
    pub smallest: Option<String>,
    /// The public report of the error.
    #[serde(default)]
    pub report: Option<String>,
}

fn four() -> usize {
    4
}

fn three() -> usize {
    3
}

/// The whole list.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct List {
    /// The crates.
    #[serde(rename = "source")]
    pub sources: Vec<Source>,
    /// The structures.
    #[serde(rename = "structure")]
    pub structures: Vec<Structure>,
}

impl List {
    /// The list in `data/structures.toml`.
    pub fn read() -> Result<List> {
        toml::from_str(include_str!("../../data/structures.toml")).context("data/structures.toml")
    }

    /// A crate of the list.
    pub fn source(&self, name: &str) -> Result<&Source> {
        self.sources
            .iter()
            .find(|source| source.name == name)
            .with_context(|| format!("data/structures.toml has no source {name}"))
    }

    /// Keeps only the structures of these crates; all if no crate is named.
    pub fn retain(&mut self, crates: &[String]) -> Result<()> {
        for name in crates {
            ensure!(
                self.structures.iter().any(|structure| structure.name == *name),
                "there is no structure of {name:?} in data/structures.toml"
            );
        }
        self.structures.retain(|structure| crates.is_empty() || crates.contains(&structure.name));
        Ok(())
    }
}

impl Structure {
    /// Its constructor.
    pub fn constructor(&self) -> &str {
        self.make.as_deref().or(self.handles.as_deref()).unwrap_or_default()
    }

    /// The names of its operations.
    pub fn operations(&self) -> String {
        let names = self.operations.iter().filter_map(|call| call.split('"').nth(1));
        names.collect::<Vec<_>>().join(", ")
    }

    /// The call of `preempt` that checks it.
    pub fn check(&self) -> String {
        let begin = match (&self.make, &self.handles) {
            (Some(make), _) => format!("preempt::linearize(|| {make})"),
            (None, handles) => {
                format!("preempt::linearize_handles({})", handles.as_deref().unwrap_or_default())
            }
        };
        let calls = self.operations.iter().map(|call| format!(".{call}"));
        std::iter::once(begin).chain(calls).chain([".run().json()".to_owned()]).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_expected_only_where_it_was_reported() {
        let list = List::read().expect("the list is well-formed");
        for structure in &list.structures {
            let error = structure.expect == Some(Expected::Violation);
            let Structure { name, report, smallest, make, handles, .. } = structure;
            assert_eq!((report.is_some(), smallest.is_some()), (error, error), "{name}");
            assert!(make.is_some() != handles.is_some(), "{name} has one constructor");
            for used in structure.with.iter().chain([name]) {
                let source = list.source(used).expect("the crate is listed");
                assert_eq!(source.version.split('.').count(), 3, "the version is exact");
            }
        }
    }

    #[test]
    fn only_structures_of_named_crates_are_checked() {
        let mut list = List::read().expect("the list is well-formed");
        list.retain(&["rtrb".to_owned()]).expect("it is listed");
        let [ring] = &list.structures[..] else { panic!("one structure of rtrb") };
        assert_eq!((ring.constructor(), &*ring.operations()), ("ring_of_one", "push, pop"));
        assert_eq!(
            ring.check(),
            "preempt::linearize_handles(ring_of_one)\
             .op1(\"push\", End::push).only(\"producer\")\
             .op(\"pop\", End::pop).only(\"consumer\").run().json()"
        );
        assert!(list.retain(&["rtbr".to_owned()]).is_err());
    }
}
