//! The source of the program under test, if it can be read when a report is made.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;

use preempt_system::Site;

/// Longer files, which are probably generated, are not read.
const MAX_BYTES: u64 = 1 << 20;

/// A cache of the lines of source files.
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

/// Whether a position is in Rust's standard library.
pub(crate) fn is_std(site: &Site) -> bool {
    site.file.starts_with("/rustc/") || site.file.contains("/lib/rustlib/src/rust/")
}

/// Whether a position is in a crate that cargo downloaded.
pub(crate) fn is_dependency(site: &Site) -> bool {
    ["/registry/src/", "/git/checkouts/"].iter().any(|folder| site.file.contains(folder))
}

/// The path of a file, starting at its package if cargo downloaded it (`spin-0.9.8/src/once.rs`) or
/// if it belongs to Rust's standard library (`core/src/sync/atomic.rs`).
pub(crate) fn in_package(file: &str) -> &str {
    if let Some((_, below)) = file.strip_prefix("/rustc/").and_then(|f| f.split_once("/library/")) {
        return below;
    }
    let below = file.split_once("/registry/src/").map(|(_, below)| below);
    below.and_then(|below| below.split_once('/')).map_or(file, |(_, path)| path)
}

/// The text of a file, if it can be read and is not too long.
pub fn text(file: &str) -> Option<String> {
    let short = fs::metadata(file).is_ok_and(|metadata| metadata.len() <= MAX_BYTES);
    if short { fs::read_to_string(file).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::in_package;

    #[test]
    fn paths_start_at_the_package() {
        let std = "/rustc/59807616e1fa2540724b/library/core/src/sync/atomic.rs";
        assert_eq!(in_package(std), "core/src/sync/atomic.rs");
        let dependency =
            "/home/me/.cargo/registry/src/index-1949cf8c6b5b557f/spin-0.9.8/src/lib.rs";
        assert_eq!(in_package(dependency), "spin-0.9.8/src/lib.rs");
        assert_eq!(in_package("src/library/lib.rs"), "src/library/lib.rs");
    }
}
