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
    /// The text of a line, without the space around it and without a comment behind it.
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

/// The text of a file, if it can be read.
pub fn text(file: &str) -> Option<String> {
    let short = fs::metadata(file).is_ok_and(|about| about.len() <= LONGEST);
    if short { fs::read_to_string(file).ok() } else { None }
}
