//! Diagnostics of faulty models: every `bad/*.pre` is refused with exactly the text of its
//! `.stderr`.
//!
//! After a change of messages, `BLESS=1 cargo test -p preempt-lang bad` rewrites the texts; read
//! the difference.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use preempt_lang::diagnostic::{Style, render};
use preempt_lang::source::Source;

/// The names of the files of `bad/` with this extension.
fn stems(ending: &str) -> BTreeSet<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bad");
    let files = std::fs::read_dir(directory)
        .expect("tests/bad is part of the crate")
        .flatten()
        .map(|file| file.path());
    files
        .filter(|path| path.extension().is_some_and(|e| e == ending))
        .map(|path| path.with_extension(""))
        .collect()
}

/// The diagnostics of a model; empty if it is accepted.
fn refusal(stem: &Path) -> String {
    let path = stem.with_extension("pre");
    let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
    let source = Source::new(name, std::fs::read_to_string(&path).expect("models are text"));
    match preempt_lang::load(&source, &[]) {
        Ok(_) => String::new(),
        Err(diagnostics) => render(&source, &diagnostics, Style::Plain),
    }
}

#[test]
fn every_bad_model_is_refused_with_its_text() {
    let bless = std::env::var_os("BLESS").is_some();
    let mut wrong = Vec::new();
    for stem in stems("pre") {
        let said = refusal(&stem);
        let golden = stem.with_extension("stderr");
        if said.is_empty() {
            wrong.push(format!("{}: accepted, but it is among the bad models", stem.display()));
        } else if bless {
            std::fs::write(&golden, &said).unwrap();
        } else {
            let expected = std::fs::read_to_string(&golden).unwrap_or_default();
            if said != expected {
                wrong.push(format!(
                    "{}:\n--- expected\n{expected}\n--- said\n{said}",
                    golden.display()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}\nif this is better, run with BLESS=1", wrong.join("\n"));
}

#[test]
fn every_text_has_its_model() {
    let orphans: Vec<_> = stems("stderr").difference(&stems("pre")).cloned().collect();
    assert!(orphans.is_empty(), "no model for {orphans:?}");
    assert!(stems("pre").len() >= 30, "the models have been moved?");
}

#[test]
fn texts_are_helpful() {
    for stem in stems("pre") {
        let said = refusal(&stem);
        let place =
            format!("--> {}.pre:", stem.file_name().expect("a file has a name").to_string_lossy());
        let errors: Vec<&str> = said.split("\nerror: ").collect();
        for error in &errors {
            assert!(error.contains(&place) && error.contains('^'), "without a place: {error}");
        }
        // One mistake must not cause many messages: each model has at most a dozen mistakes.
        assert!(errors.len() <= 12, "{} messages about {}", errors.len(), stem.display());
    }
}
