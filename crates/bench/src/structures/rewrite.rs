//! Replaces std's and core's atomics, spin hints and yields in the text of a source file by those
//! of Preempt.
//!
//! Paths are replaced wherever they occur, comments included. Cells are left as they are: a data
//! race on one is not detected.

use anyhow::{Result, ensure};

use super::list::Edit;

/// Paths below `core` or `std` that are replaced by the same path below `preempt`.
const PATHS: [&str; 3] = ["sync::atomic", "hint::spin_loop", "thread::yield_now"];

/// The text with Preempt's items. An error if nothing had to be replaced, or if an import of
/// atomics is not of the form that is replaced: the structure would be checked without them.
pub fn mirrored(text: &str) -> Result<String> {
    let mut result = text.to_owned();
    for path in PATHS {
        for root in ["core", "std"] {
            result = replace_path(&result, root, path);
        }
    }
    ensure!(result != text, "nothing in it is replaced");
    for line in result.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let nested = |at: usize| !line[..at].ends_with("::");
        let is_left = line.match_indices("sync::atomic").any(|(at, _)| nested(at));
        ensure!(!is_left, "this import is not replaced: {}", line.trim());
    }
    Ok(result)
}

/// Replaces `root::path` by `preempt::path` where `root` is a whole word.
fn replace_path(text: &str, root: &str, path: &str) -> String {
    let from = format!("{root}::{path}");
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(&from) {
        let (before, after) = rest.split_at(at);
        result += before;
        let is_word = !result.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        result += if is_word { "preempt" } else { root };
        result += "::";
        result += path;
        rest = &after[from.len()..];
    }
    result + rest
}

/// The text with one replacement. An error if it does not apply exactly once.
pub fn edited(text: &str, Edit { from, to, .. }: &Edit) -> Result<String> {
    let times = text.matches(from.as_str()).count();
    ensure!(times == 1, "{from:?} occurs {times} times in it, not once");
    Ok(text.replace(from.as_str(), to))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomics_hints_and_yields_are_replaced() {
        let text = "use core::sync::atomic::{AtomicU8, Ordering};\n\
                    fn wait() { ::std::thread::yield_now(); std::hint::spin_loop() }\n\
                    use mystd::sync::atomic::A;\nuse std::sync::Arc;\n";
        let expected = "use preempt::sync::atomic::{AtomicU8, Ordering};\n\
                        fn wait() { ::preempt::thread::yield_now(); preempt::hint::spin_loop() }\n\
                        use mystd::sync::atomic::A;\nuse std::sync::Arc;\n";
        assert_eq!(mirrored(text).expect("all forms are known"), expected);
    }

    #[test]
    fn an_import_that_stays_is_refused() {
        let nested = "use core::sync::atomic::fence;\nuse core::{mem, sync::atomic::AtomicU8};\n";
        let error = mirrored(nested).expect_err("an import is nested").to_string();
        assert_eq!(error, "this import is not replaced: use core::{mem, sync::atomic::AtomicU8};");
        assert!(mirrored("fn main() {}").is_err());
        assert!(mirrored("// core::{sync::atomic}\nuse core::sync::atomic;").is_ok());
    }

    #[test]
    fn an_edit_applies_once() {
        let edit = |from: &str| Edit {
            file: "src/lib.rs".to_owned(),
            from: from.to_owned(),
            to: "c".to_owned(),
        };
        assert_eq!(edited("ab", &edit("b")).expect("there is one"), "ac");
        assert!(edited("abb", &edit("b")).is_err());
        assert!(edited("ab", &edit("x")).is_err());
    }
}
