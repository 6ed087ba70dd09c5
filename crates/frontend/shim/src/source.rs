//! The source text of the program under test, if it is available when a report is made: the line of
//! a step, and the name of the variable or field in which an object was created.
//!
//! Positions are relative to the folder in which the compiler ran. A test runs in the folder of its
//! package, so parent folders are searched as well. A report does without source text that is not
//! found.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;

use preempt_system::Site;

/// The most bytes of a file that are read.
const LONGEST: u64 = 1 << 20;

/// The most characters of a line that is shown as a whole.
const LONGEST_LINE: usize = 72;

/// The files that were read so far, by name.
#[derive(Debug, Default)]
pub(crate) struct Sources(RefCell<HashMap<String, Option<Vec<String>>>>);

impl Sources {
    /// The text of a line, trimmed and without a trailing comment.
    pub(crate) fn line(&self, site: &Site) -> Option<String> {
        let line = self.text(site)?;
        let code = line.split(" // ").next().unwrap_or(&line).trim();
        (!code.is_empty()).then(|| code.to_owned())
    }

    /// The code of an operation at this place: its line, or the expression alone if the line is
    /// long or has several statements.
    pub(crate) fn code(&self, site: &Site) -> Option<String> {
        let line = self.line(site)?;
        let statements = line.trim_end_matches([';', '}', ' ']);
        if line.chars().count() <= LONGEST_LINE && !statements.contains("; ") {
            return Some(line);
        }
        let text = self.text(site)?;
        let at = text.char_indices().nth((site.column as usize).checked_sub(1)?).map(|(at, _)| at);
        Some(at.and_then(|at| expression(&text, at)).map_or(line, str::to_owned))
    }

    /// The name of the object that the program creates at this position: the variable or the field
    /// to which it is bound there.
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

/// The text of a file, unless it is longer than any handwritten source file.
pub(crate) fn text(file: &str) -> Option<String> {
    let here = std::env::current_dir().ok()?;
    let path = here.ancestors().map(|folder| folder.join(file)).find(|path| path.is_file())?;
    let short = fs::metadata(&path).is_ok_and(|about| about.len() <= LONGEST);
    if short { fs::read_to_string(path).ok() } else { None }
}

fn lines(file: &str) -> Option<Vec<String>> {
    text(file).map(|text| text.lines().map(str::to_owned).collect())
}

/// The call whose name begins at byte `at` of a line, with its receiver: `n.load(SeqCst)`. `None`
/// if there is no name at `at`, or if the call does not end on the line.
fn expression(line: &str, at: usize) -> Option<&str> {
    let (before, after) = (&line[..at], &line[at..]);
    let name = after.len() - after.trim_start_matches(is_name).len();
    if name == 0 {
        return None;
    }
    // A macro, or the arguments.
    let bang = usize::from(after[name..].starts_with('!'));
    let arguments = closing(&after[name + bang..])?;
    let end = at + name + bang + arguments;
    let mut start = at;
    // Backwards over `a.b[i].c().`, `Type::` and the like.
    loop {
        let rest = &before[..start];
        let last = rest.chars().next_back();
        start = match last {
            Some(c) if is_name(c) || c == '.' || c == ':' || c == '?' => start - c.len_utf8(),
            Some(')' | ']') => opening(rest)?,
            _ => break,
        };
    }
    let expression = line[start..end].trim_start_matches(['.', ':', '?']);
    (!expression.is_empty()).then_some(expression)
}

/// The length of the parentheses with which a text begins; 0 if it begins with something else.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ if depth == 0 => return Some(at),
            _ => {}
        }
        if depth == 0 {
            return Some(at + c.len_utf8());
        }
    }
    (depth == 0).then_some(text.len())
}

/// The position at which the parentheses at the end of a text begin.
fn opening(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (at, c) in text.char_indices().rev() {
        match c {
            ')' | ']' | '}' => depth += 1,
            '(' | '[' | '{' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The name at the end of `let name = Arc::new(`, `static NAME: Type =` or `field: `.
fn bound(before: &str) -> Option<&str> {
    let mut rest = before.trim_end();
    // Skip wrappers: `Arc::new(`, `Box::new(`, `&`.
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
    fn a_call_is_found_by_the_column_of_its_name() {
        let line = "let t = spawn(move || { let v = n.load(SeqCst); a[i].get().store(v + f(1), \
                    SeqCst); });";
        for (name, call) in [
            ("load", Some("n.load(SeqCst)")),
            ("store", Some("a[i].get().store(v + f(1), SeqCst)")),
            (
                "spawn",
                Some(
                    "spawn(move || { let v = n.load(SeqCst); a[i].get().store(v + f(1), SeqCst); \
                     })",
                ),
            ),
            ("= n", None),
        ] {
            let at = line.find(name).expect("the name occurs");
            assert_eq!(expression(line, at), call, "{name}");
        }
        let macros = "assert_eq!(*total.lock().unwrap(), 2);";
        assert_eq!(expression(macros, 0), Some("assert_eq!(*total.lock().unwrap(), 2)"));
        let lock = macros.find("lock").expect("the name occurs");
        assert_eq!(expression(macros, lock), Some("total.lock()"));
        let long = "queue.push(first,";
        assert_eq!(expression(long, 6), None, "it ends on another line");
    }

    #[test]
    fn lines_of_this_file_are_found() {
        let site = Site { file: file!().into(), line: 1, column: 1 };
        let line = Sources::default().line(&site).expect("the file is there when tests run");
        assert!(line.starts_with("//! The source text of the program under test"), "{line}");
        assert_eq!(Sources::default().line(&Site { line: 1_000_000, ..site.clone() }), None);
        assert_eq!(Sources::default().line(&Site { file: "no such file.rs".into(), ..site }), None);
    }
}
