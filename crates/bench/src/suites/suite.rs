//! A loom suite of a published crate, as `data/suites.toml` lists it.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// One suite.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Suite {
    /// The crate.
    #[serde(rename = "crate")]
    pub name: String,
    /// Its exact version.
    pub version: String,
    /// The version of loom that the crate accepts.
    pub loom: String,
    /// Configuration flags that enable the loom tests.
    pub cfg: Vec<String>,
    /// Features of the crate.
    #[serde(default)]
    pub features: Vec<String>,
    /// Whether only the crate itself is built with debug assertions.
    #[serde(default)]
    pub assertions: bool,
    /// `lib`, or the name of an integration test.
    pub target: String,
    /// Only tests whose names contain this.
    #[serde(default)]
    pub filter: String,
    /// Tests that fail with Preempt because the crate is wrong, and where the bug was reported.
    #[serde(default)]
    pub bugs: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    suite: Vec<Suite>,
}

impl Suite {
    /// All suites.
    pub fn all() -> Result<Vec<Suite>> {
        let file: File =
            toml::from_str(include_str!("../../data/suites.toml")).context("data/suites.toml")?;
        Ok(file.suite)
    }

    /// The suites of these crates, or all if no crate is named.
    pub fn named(crates: &[String]) -> Result<Vec<Suite>> {
        let all = Suite::all()?;
        for name in crates {
            let known: Vec<&str> = all.iter().map(|suite| &*suite.name).collect();
            ensure!(
                known.contains(&&**name),
                "no suite of {name:?} is known: there are {}",
                known.join(", ")
            );
        }
        Ok(all
            .into_iter()
            .filter(|suite| crates.is_empty() || crates.contains(&suite.name))
            .collect())
    }

    /// The compiler's flags.
    pub fn flags(&self) -> String {
        let flags: Vec<String> = self.cfg.iter().map(|cfg| format!("--cfg {cfg}")).collect();
        // The crate's own warnings are not of interest here.
        format!("{} --cap-lints allow", flags.join(" "))
    }

    /// cargo's arguments that select the test binary and its profile.
    pub fn selection(&self) -> Vec<String> {
        let mut arguments = match &*self.target {
            "lib" => vec!["--lib".to_owned()],
            name => vec!["--test".to_owned(), name.to_owned()],
        };
        if !self.features.is_empty() {
            arguments.extend(["--features".to_owned(), self.features.join(",")]);
        }
        if self.assertions {
            let package = format!("{}@{}", self.name, self.version);
            let setting = format!("profile.release.package.\"{package}\".debug-assertions=true");
            arguments.extend(["--config".to_owned(), setting]);
        }
        arguments
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_and_unknown_crates_are_refused() {
        let all = Suite::all().expect("the list is well-formed");
        assert!(all.iter().any(|suite| suite.name == "concurrent-queue"));
        assert_eq!(Suite::named(&["parking".to_owned()]).expect("the suite is listed").len(), 1);
        let refusal =
            Suite::named(&["parkin".to_owned()]).expect_err("there is no such crate").to_string();
        assert!(refusal.contains("there are concurrent-queue, parking,"), "{refusal}");
    }

    #[test]
    fn a_suite_knows_its_flags() {
        let all = Suite::all().expect("the list is well-formed");
        let tokio = all.iter().find(|suite| suite.name == "tokio").expect("the suite is listed");
        assert_eq!(tokio.flags(), "--cfg loom --cfg tokio_unstable --cap-lints allow");
        let setting = "profile.release.package.\"tokio@1.47.1\".debug-assertions=true";
        assert_eq!(
            tokio.selection(),
            ["--lib", "--features", "full,test-util", "--config", setting]
        );
    }
}
