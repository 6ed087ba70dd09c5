//! Explores the ordinary tests of popular crates with `cargo preempt test`, to find false alarms.
//!
//! `data/crates.toml` lists crates that use threads, with exact versions. Their packages contain
//! their tests, which were not written for Preempt. Each test is explored within one preemption and
//! a time limit. A test that fails is a false alarm, unless the list names the published error of
//! the crate or the property of the test that explains it.
//!
//! tokio's own tests do not test its runtimes in this way. Correct and faulty programs on these
//! runtimes are in `corpus/tokio`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::package;
use crate::real::cargo_preempt;
use crate::table::{Table, grouped};

/// A crate whose tests are explored.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Its name.
    #[serde(rename = "crate")]
    pub name: String,
    /// Its exact version.
    pub version: String,
    /// The folder of the repository that has the tests, if they are not those of the package.
    #[serde(default)]
    pub folder: Option<String>,
    /// The most seconds for each test, if it differs.
    #[serde(default)]
    pub seconds: Option<u32>,
    /// Tests with an error that has to be found, and its verdict.
    #[serde(default)]
    pub errors: BTreeMap<String, String>,
    /// Options of `cargo preempt test`, which select what is built and explored.
    #[serde(default)]
    pub options: Vec<String>,
    /// Whether its tests have fewer iterations under Miri. Then they are built with that flag:
    /// loops of 25,000 iterations exceed the step limit, and show nothing that 50 iterations do
    /// not.
    #[serde(default)]
    pub small: bool,
    /// Tests that fail for a known reason that is not an error of the crate, and the reason.
    #[serde(default)]
    pub explained: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    package: Vec<Package>,
}

/// The crates to explore, and the limits.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Only the crates with these names; all if there are none.
    pub only: Vec<String>,
    /// The most preemptions.
    pub bound: u32,
    /// The most seconds for each test.
    pub seconds: u32,
}

/// All crates of the list.
pub fn packages() -> Result<Vec<Package>> {
    let file: File =
        toml::from_str(include_str!("../data/crates.toml")).context("data/crates.toml")?;
    Ok(file.package)
}

/// Explores the tests of the crates and prints the table. Returns whether there was no false alarm,
/// and no error was missed.
pub fn run(ask: &Ask) -> Result<bool> {
    let mut all = packages()?;
    if let Some(name) = ask.only.iter().find(|name| all.iter().all(|one| one.name != **name)) {
        anyhow::bail!("there is no crate {name} in data/crates.toml");
    }
    all.retain(|one| ask.only.is_empty() || ask.only.contains(&one.name));
    let heads = [
        "crate",
        "version",
        "tests",
        "threads",
        "covered",
        "limited",
        "refused",
        "executions",
        "errors",
        "false alarms",
    ];
    let mut table = Table::new(heads);
    let mut sum = Counts::default();
    for package in &all {
        // A package that cannot be built says nothing about the others.
        let counts = explore(package, ask).unwrap_or_else(|why| {
            let line = format!("{}: {why:#}", package.name);
            Counts { broken: BTreeSet::from([line]), ..Counts::default() }
        });
        let cells = counts.cells(&package.name, &package.version);
        // Searches take long, so intermediate results are shown.
        eprintln!("{}", cells.join("  "));
        table.row(cells);
        sum.add(counts);
    }
    table.row(sum.cells("all", ""));
    println!(
        "Tests of published crates within {} preemption(s), at most {} s each: those with threads, \
         those of them\nwhose schedules were all covered, that reached the limit, that were \
         refused; errors that had to be found",
        ask.bound, ask.seconds
    );
    print!("{}", table.to_text());
    for (heading, lines) in [
        ("false alarms", &sum.alarms),
        ("missed", &sum.missed),
        ("explained", &sum.explained),
        ("refused", &sum.reasons),
    ] {
        if !lines.is_empty() {
            println!("\n{heading}:");
            lines.iter().for_each(|line| println!("{line}"));
        }
    }
    Ok(sum.alarms.is_empty() && sum.missed.is_empty() && sum.broken.is_empty())
}

/// The results of tests.
#[derive(Clone, Debug, Default)]
struct Counts {
    tests: u64,
    /// Tests with threads, that were explored.
    threads: u64,
    covered: u64,
    limited: u64,
    refused: u64,
    executions: u64,
    /// Errors that were found where they had to be.
    errors: u64,
    /// Errors that were not found although they had to be.
    missed: BTreeSet<String>,
    /// Packages whose tests could not be explored.
    broken: BTreeSet<String>,
    /// The failing tests.
    alarms: BTreeSet<String>,
    /// The failing tests whose reason is known.
    explained: BTreeSet<String>,
    /// The reasons of refusals.
    reasons: BTreeSet<String>,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.tests += other.tests;
        self.threads += other.threads;
        self.covered += other.covered;
        self.limited += other.limited;
        self.refused += other.refused;
        self.executions += other.executions;
        self.errors += other.errors;
        self.missed.extend(other.missed);
        self.broken.extend(other.broken);
        self.alarms.extend(other.alarms);
        self.explained.extend(other.explained);
        self.reasons.extend(other.reasons);
    }

    fn cells(&self, name: &str, version: &str) -> Vec<String> {
        let numbers =
            [self.tests, self.threads, self.covered, self.limited, self.refused, self.executions];
        let mut cells = vec![name.to_owned(), version.to_owned()];
        cells.extend(numbers.map(grouped));
        cells.push(grouped(self.errors));
        cells.push(grouped(self.alarms.len() as u64));
        cells
    }

    /// Counts one test of a crate, as the summary of `cargo preempt test` describes it.
    fn count(&mut self, package: &Package, test: &Value) {
        let text = |name: &str| test[name].as_str().unwrap_or_default();
        let (name, verdict, error) = (text("test"), text("verdict"), text("error"));
        if verdict == "ignored" {
            return;
        }
        self.tests += 1;
        let report = &test["report"];
        self.executions += report["executions"].as_u64().unwrap_or_default();
        let has_threads = text("covered") != "no threads";
        let line = |why: &str| {
            let why: Vec<&str> = why.lines().map(str::trim).collect();
            format!("{} {}, {name}: {}", package.name, text("target"), why.join(" "))
        };
        let expected = package.errors.get(name);
        match verdict {
            _ if expected.is_some_and(|expected| expected == verdict) => {
                self.threads += 1;
                self.errors += 1;
            }
            _ if expected.is_some() => {
                self.threads += 1;
                self.missed.insert(line(&format!("{verdict}: {error}")));
            }
            "refused" | "not run" => {
                self.refused += 1;
                self.reasons.insert(line(error));
            }
            "ok" if has_threads => {
                self.threads += 1;
                self.covered += 1;
            }
            "ok" => {}
            "incomplete" => {
                self.threads += 1;
                self.limited += 1;
            }
            _ => {
                self.threads += 1;
                let message = report["finding"]["message"].as_str().unwrap_or_default();
                match package.explained.get(name) {
                    Some(why) => self.explained.insert(line(why)),
                    None => self.alarms.insert(line(&format!("{verdict}: {message}"))),
                };
            }
        }
    }
}

fn explore(package: &Package, ask: &Ask) -> Result<Counts> {
    let root = package::folder("crates")?;
    let folder = match &package.folder {
        Some(folder) => Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder),
        None => package::download(&root, &package.name, &package.version)?,
    };
    let json = test(&folder, &root.join("target"), package, ask)?;
    let tests = json["tests"].as_array().context("a list of tests")?;
    ensure!(!tests.is_empty(), "no tests were found");
    let mut counts = Counts::default();
    tests.iter().for_each(|test| counts.count(package, test));
    Ok(counts)
}

/// Calls `cargo preempt test` in a folder.
fn test(folder: &Path, target: &Path, package: &Package, ask: &Ask) -> Result<Value> {
    let seconds = package.seconds.unwrap_or(ask.seconds);
    let mut command = cargo_preempt()?;
    if package.small {
        command.env("RUSTFLAGS", "--cfg miri -Aexplicit_builtin_cfgs_in_flags");
    }
    let output = command
        .current_dir(folder)
        .env("CARGO_TARGET_DIR", target)
        .args(["preempt", "test", "--json", "--no-shrink"])
        .args(["--bound", &ask.bound.to_string(), "--test-time", &seconds.to_string()])
        .args(package.folder.is_some().then_some("--locked"))
        .args(&package.options)
        .output()
        .context("cargo-preempt can be started")?;
    let why = || String::from_utf8_lossy(&output.stderr).into_owned();
    let json: Value = serde_json::from_slice(&output.stdout).with_context(why)?;
    ensure!(json["tests"].is_array(), "{}{}", json["error"], why());
    Ok(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_at_least_six_crates_with_exact_versions() {
        let all = packages().expect("the list is well-formed");
        assert!(all.len() >= 6);
        assert!(all.iter().all(|one| one.version.split('.').count() == 3));
    }

    #[test]
    fn a_failing_test_is_an_alarm_unless_it_is_explained() {
        let mut package = Package {
            name: "queue".to_owned(),
            version: "1.0.0".to_owned(),
            folder: None,
            seconds: None,
            errors: BTreeMap::new(),
            options: Vec::new(),
            small: false,
            explained: BTreeMap::new(),
        };
        let test = |verdict: &str, covered: &str| {
            serde_json::json!({
                "target": "library", "test": "pops", "verdict": verdict, "covered": covered,
                "error": null, "report": { "executions": 3, "finding": { "message": "lost" } },
            })
        };
        let mut counts = Counts::default();
        counts.count(&package, &test("deadlock", "1"));
        assert_eq!(
            counts.alarms.first().map(String::as_str),
            Some("queue library, pops: deadlock: lost")
        );
        package.explained.insert("pops".to_owned(), "it relies on time".to_owned());
        let mut counts = Counts::default();
        counts.count(&package, &test("deadlock", "1"));
        counts.count(&package, &test("ok", "no threads"));
        counts.count(&package, &test("ok", "≤ 1"));
        counts.count(&package, &test("incomplete", "≤ 0"));
        counts.count(&package, &test("ignored", ""));
        assert!(counts.alarms.is_empty());
        package.errors.insert("pops".to_owned(), "deadlock".to_owned());
        let mut found = Counts::default();
        found.count(&package, &test("deadlock", "1"));
        assert_eq!((found.errors, found.missed.len()), (1, 0));
        found.count(&package, &test("ok", "≤ 1"));
        assert_eq!((found.errors, found.missed.len()), (1, 1));
        let Counts { tests, threads, covered, limited, executions, .. } = counts;
        assert_eq!((tests, threads, covered, limited, executions), (4, 3, 1, 1, 12));
    }
}
