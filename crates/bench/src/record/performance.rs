//! `docs/performance.md`, made from the records.
//!
//! The page is written by hand except for its tables, which are between two lines:
//!
//! ```text
//! <!-- run NAME: FIRST LINE -->
//! <!-- end -->
//! ```
//!
//! They show the newest record of that name: the part whose first line starts like this, or all of
//! it if no first line is given. If there is no record of the whole run, that with `--quick` is
//! used.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::Record;

const BEGIN: &str = "<!-- run ";
const END: &str = "<!-- end -->";

/// The path of the page.
pub fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/performance.md")
}

/// The page with its tables regenerated from the records in `runs`.
pub fn page(text: &str, runs: &Path) -> Result<String> {
    let mut made = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        made += line;
        made.push('\n');
        let Some(what) = line.strip_prefix(BEGIN) else { continue };
        let what = what.strip_suffix(" -->").with_context(|| format!("{line:?} is not closed"))?;
        made += &shown(what, runs)?;
        lines.find(|line| *line == END).with_context(|| format!("no {END} after {line:?}"))?;
        made += END;
        made.push('\n');
    }
    Ok(made)
}

/// The content below such a line.
fn shown(what: &str, runs: &Path) -> Result<String> {
    let (name, first_line) = what.split_once(": ").unwrap_or((what, ""));
    let record = Record::newest(runs, name)
        .or_else(|missing| Record::newest(runs, &format!("{name}-quick")).map_err(|_| missing))?;
    let parts: Vec<&str> = record.parts().filter(|part| part.starts_with(first_line)).collect();
    ensure!(!parts.is_empty(), "no part of the run {name:?} begins with {first_line:?}");
    Ok(format!("```text\n{}\n```\n\n{}\n", parts.join("\n\n"), record.origin()))
}

/// Regenerates the page. Returns whether it was up to date.
pub fn update() -> Result<bool> {
    let text = std::fs::read_to_string(file())?;
    let made = page(&text, &super::runs())?;
    let same = made == text;
    if !same {
        std::fs::write(file(), made)?;
    }
    println!("docs/performance.md {}", if same { "is up to date" } else { "was rewritten" });
    Ok(true)
}
