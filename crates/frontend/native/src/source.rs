//! The text of the program under test, as far as it can be read when a report is made.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;

use preempt_system::Site;

/// The most bytes of a file that are read: more than a person writes.
const LONGEST: u64 = 1 << 20;

/// The files that were read so far, by name.
#[derive(Debug, Default)]
pub(crate) struct Sources(RefCell<HashMap<String, Option<Vec<String>>>>);

impl Sources {
    /// The text of a line, trimmed and without a trailing comment.
    pub(crate) fn line(&self, site: &Site) -> Option<String> {
        let mut files = self.0.borrow_mut();
        let lines = files
            .entry(site.file.to_string())
            .or_insert_with(|| Some(text(&site.file)?.lines().map(str::to_owned).collect()))
            .as_ref()?;
        let line = lines.get((site.line as usize).checked_sub(1)?)?;
        let code = line.split(" // ").next().unwrap_or(line).trim();
        (!code.is_empty()).then(|| code.to_owned())
    }
}

/// Whether a position is in the standard library of Rust.
pub(crate) fn is_std(site: &Site) -> bool {
    site.file.starts_with("/rustc/") || site.file.contains("/lib/rustlib/src/rust/")
}

/// Whether a position is in a crate that cargo has downloaded.
pub(crate) fn is_dependency(site: &Site) -> bool {
    ["/registry/src/", "/git/checkouts/"].iter().any(|folder| site.file.contains(folder))
}

/// The name of a file, from its package on if cargo has downloaded it: `spin-0.9.8/src/once.rs`.
pub(crate) fn in_package(file: &str) -> &str {
    let below = file.split_once("/registry/src/").map(|(_, below)| below);
    below.and_then(|below| below.split_once('/')).map_or(file, |(_, path)| path)
}

/// The text of a file, if it can be read.
pub fn text(file: &str) -> Option<String> {
    let short = fs::metadata(file).is_ok_and(|about| about.len() <= LONGEST);
    if short { fs::read_to_string(file).ok() } else { None }
}
