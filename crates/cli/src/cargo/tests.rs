//! The tests of an executable, as libtest lists them.

use std::ffi::OsString;
use std::process::{Command, Output};

use preempt_native::Harness;

use super::build::Built;
use crate::Refused;

/// One test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Test {
    pub(super) name: String,
    /// Whether it is marked `#[ignore]` and was not asked for.
    pub(super) ignored: bool,
}

/// The options after `--`, as far as they select tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    filters: Vec<String>,
    skip: Vec<String>,
    exact: bool,
    ignored: Ignored,
}

/// The selection of tests by their attribute `#[ignore]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Ignored {
    /// Tests without the attribute.
    #[default]
    No,
    /// Tests with the attribute.
    Only,
    /// All tests.
    Included,
}

impl Selection {
    /// Reads the filter before `--` and the options after it.
    pub(super) fn new(filter: Option<&str>, words: &[String]) -> Result<Selection, Refused> {
        let mut selection = Selection {
            filters: filter.map(str::to_owned).into_iter().collect(),
            ..Selection::default()
        };
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let (option, value) = match word.split_once('=') {
                Some((option, value)) if option.starts_with("--") => (option, Some(value)),
                _ => (&word[..], None),
            };
            match option {
                "--exact" => selection.exact = true,
                "--ignored" => selection.ignored = Ignored::Only,
                "--include-ignored" => selection.ignored = Ignored::Included,
                "--skip" => {
                    let value = value.map(str::to_owned).or_else(|| words.next().cloned());
                    let value = value.ok_or_else(|| Refused::because("--skip needs a name"))?;
                    selection.skip.push(value);
                }
                "--test-threads" | "--nocapture" | "--no-capture" | "--show-output" => {
                    return Err(Refused::because(format!(
                        "remove {option}: each test runs alone, and its output is shown if it fails"
                    )));
                }
                _ if option.starts_with('-') => {
                    return Err(Refused::because(format!(
                        "{option} is not supported; after `--`, use --exact, --skip, --ignored or \
                         --include-ignored"
                    )));
                }
                _ => selection.filters.push(word.clone()),
            }
        }
        Ok(selection)
    }

    /// Only the test with this name.
    pub(super) fn only(name: &str) -> Selection {
        Selection {
            filters: vec![name.to_owned()],
            exact: true,
            ignored: Ignored::Included,
            ..Selection::default()
        }
    }

    /// The arguments with which an executable lists the tests, marked with `#[ignore]` or all.
    fn words(&self, only_ignored: bool) -> Vec<&str> {
        let mut words = vec!["--list", "--format", "terse"];
        words.extend(self.exact.then_some("--exact"));
        words.extend(only_ignored.then_some("--ignored"));
        words.extend(self.skip.iter().flat_map(|name| ["--skip", name]));
        words.extend(self.filters.iter().map(String::as_str));
        words
    }
}

/// The selected tests of an executable; `None` if it has a harness of its own, which does not list
/// them.
pub(super) fn list(built: &Built, selection: &Selection) -> Result<Option<Vec<Test>>, Refused> {
    let Some(all) = names(built, &selection.words(false))? else { return Ok(None) };
    let marked =
        if all.is_empty() { Some(Vec::new()) } else { names(built, &selection.words(true))? };
    let Some(marked) = marked else { return Ok(None) };
    let tests = all.into_iter().map(|name| {
        let is_marked = marked.contains(&name);
        match selection.ignored {
            Ignored::No => Some(Test { name, ignored: is_marked }),
            Ignored::Only => is_marked.then_some(Test { name, ignored: false }),
            Ignored::Included => Some(Test { name, ignored: false }),
        }
    });
    Ok(Some(tests.flatten().collect()))
}

fn names(built: &Built, words: &[&str]) -> Result<Option<Vec<String>>, Refused> {
    let Output { status, stdout, .. } =
        Command::new(&built.path).args(words).current_dir(&built.folder).output().map_err(
            |error| Refused::because(format!("cannot run {}: {error}", built.path.display())),
        )?;
    let text = String::from_utf8_lossy(&stdout);
    Ok(if status.success() { parse(&text) } else { None })
}

/// The names in a list of tests; benchmarks are left out. `None` if the text is not such a list.
fn parse(text: &str) -> Option<Vec<String>> {
    let mut names = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.rsplit_once(": ")? {
            (name, "test") => names.push(name.to_owned()),
            (_, "benchmark") => {}
            _ => return None,
        }
    }
    Some(names)
}

/// The arguments with which an executable runs one test.
pub(super) fn arguments(name: &str) -> Vec<OsString> {
    [name, "--exact", "--include-ignored", "--nocapture", "--test-threads=1"]
        .map(Into::into)
        .to_vec()
}

/// The test harness of an executable. A harness that is not libtest may run a test in the main
/// thread, so that the main thread is part of the test.
pub(super) fn harness(built: &Built) -> Harness {
    // The function by which every test executable enters libtest, in both manglings.
    const ENTRY: &[u8] = b"4test16test_main_static";
    let bytes = std::fs::read(&built.path).unwrap_or_default();
    let is_libtest = bytes.windows(ENTRY.len()).any(|part| part == ENTRY);
    if is_libtest { Harness::Libtest } else { Harness::Other }
}

#[cfg(test)]
mod list_tests {
    use super::*;

    #[test]
    fn a_list_has_names_and_kinds() {
        let text = "tests::one: test\nwith: colon: test\nfast: benchmark\n";
        assert_eq!(parse(text), Some(vec!["tests::one".to_owned(), "with: colon".to_owned()]));
        assert_eq!(parse(""), Some(Vec::new()));
        assert_eq!(parse("running 3 cases\n"), None);
    }

    #[test]
    fn options_that_select_are_kept_and_others_are_refused() {
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let selection = Selection::new(Some("a"), &words("--skip b --exact c --skip=d"))
            .expect("these select tests");
        assert_eq!(
            selection.words(true),
            words("--list --format terse --exact --ignored --skip b --skip d a c")
        );
        for refused in ["--test-threads=4", "--nocapture", "--shuffle", "--skip"] {
            assert!(Selection::new(None, &words(refused)).is_err(), "{refused}");
        }
    }
}
