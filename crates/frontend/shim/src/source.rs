//! The text of the program under test, as far as it can be read when a report is made: the line of
//! a step, and what the program calls an object where it makes it.
//!
//! The places that the compiler knows are relative to the folder in which it was called. A test
//! runs in the folder of its package, so the folders above it are looked into as well. Where
//! nothing is found, a report does without.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;

use preempt_system::Site;

/// The most bytes of a file that are read.
const LONGEST: u64 = 1 << 20;

/// The files that were read so far, by name.
#[derive(Debug, Default)]
pub(crate) struct Sources(RefCell<HashMap<String, Option<Vec<String>>>>);

impl Sources {
    /// The text of a line, without the space around it and without a comment behind it.
    pub(crate) fn line(&self, site: &Site) -> Option<String> {
        let line = self.text(site)?;
        let code = line.split(" // ").next().unwrap_or(&line).trim();
        (!code.is_empty()).then(|| code.to_owned())
    }

    /// What the program calls the object that it makes at this place: the variable that it is bound
    /// to there, or the field.
    pub(crate) fn name(&self, site: &Site) -> Option<String> {
        let line = self.text(site)?;
        let before: String = line.chars().take((site.column as usize).saturating_sub(1)).collect();
        bound(&before).map(str::to_owned)
    }

    fn text(&self, site: &Site) -> Option<String> {
        let mut files = self.0.borrow_mut();
        let lines =
            files.entry(site.file.to_string()).or_insert_with(|| lines(&site.file)).as_ref()?;
        lines.get((site.line as usize).checked_sub(1)?).cloned()
    }
}

/// The text of a file, unless it is too long for one that a person has written.
pub(crate) fn text(file: &str) -> Option<String> {
    let here = std::env::current_dir().ok()?;
    let path = here.ancestors().map(|folder| folder.join(file)).find(|path| path.is_file())?;
    let short = fs::metadata(&path).is_ok_and(|about| about.len() <= LONGEST);
    if short { fs::read_to_string(path).ok() } else { None }
}

fn lines(file: &str) -> Option<Vec<String>> {
    text(file).map(|text| text.lines().map(str::to_owned).collect())
}

/// The name at the end of `let name = Arc::new(`, `static NAME: Type =` or `field: `.
fn bound(before: &str) -> Option<&str> {
    let mut rest = before.trim_end();
    // What it is wrapped into: `Arc::new(`, `Box::new(`, `&`.
    while let Some(outer) = rest.strip_suffix(['(', '&']) {
        let path = outer.trim_end_matches(|c: char| is_name(c) || ":<>".contains(c)).trim_end();
        if rest.ends_with('(') && path.len() == outer.len() {
            // A tuple: its parts have no names.
            return None;
        }
        rest = path;
    }
    if let Some(field) = rest.strip_suffix(':').filter(|field| !field.ends_with(':')) {
        return last_name(field);
    }
    let binding = rest.strip_suffix('=')?.trim_end();
    let binding =
        ["let ", "static ", "const "].iter().find_map(|word| binding.split(word).nth(1))?;
    let name = binding.split(':').next()?.trim();
    let name = name.strip_prefix("mut ").unwrap_or(name).trim();
    (!name.is_empty() && name.chars().all(is_name)).then_some(name)
}

fn last_name(text: &str) -> Option<&str> {
    let text = text.trim_end();
    let name = &text[text.trim_end_matches(is_name).len()..];
    (!name.is_empty()).then_some(name)
}

fn is_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_where_they_are_bound() {
        for (before, name) in [
            ("    let n = ", Some("n")),
            ("let mut flag: Arc<AtomicBool> = Arc::new(", Some("flag")),
            ("static READY: AtomicBool = ", Some("READY")),
            ("Slot { value: UnsafeCell::new(0), full: ", Some("full")),
            ("    top: ", Some("top")),
            ("    next: Arc::new(", Some("next")),
            ("let locks = Arc::new((", None),
            ("let pair = (Mutex::new(0), ", None),
            ("Mutex::new(", None),
            ("call(", None),
            ("", None),
            ("x == ", None),
            ("let shared = Box::new(Arc::new(", Some("shared")),
        ] {
            assert_eq!(bound(before), name, "{before}");
        }
    }

    #[test]
    fn lines_of_this_file_are_found() {
        let site = Site { file: file!().into(), line: 1, column: 1 };
        let line = Sources::default().line(&site).expect("the file is there when tests run");
        assert!(line.starts_with("//! The text of the program under test"), "{line}");
        assert_eq!(Sources::default().line(&Site { line: 1_000_000, ..site.clone() }), None);
        assert_eq!(Sources::default().line(&Site { file: "no such file.rs".into(), ..site }), None);
    }
}
