//! Texts that no user would write: none makes the language or the search panic.
//!
//! The seeds are fixed, so that failures are reproducible, and the message of a failure has the
//! text. The number of texts keeps the whole below a quarter of a minute in the dev profile;
//! `fuzz/` runs the same without limit.

#[allow(dead_code, reason = "random expressions are of use to the parser's own tests only")]
#[path = "../../../frontend/lang/tests/suite/fuzz/mod.rs"]
mod texts;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use preempt_explore::{Limits, Plan, Silent};
use preempt_lang::diagnostic::{Style, render};
use preempt_lang::source::Source;
use preempt_system::MemoryModel;
use texts::Random;

/// The maximal number of states that are visited.
const STATES: u64 = 2_000;

/// The maximal number and length of the executions that are taken under weak memory.
const EXECUTIONS: u64 = 200;
const DEPTH: u32 = 100;

/// How far a text was processed.
#[derive(PartialEq)]
enum End {
    Refused,
    Searched,
}

/// Loads and searches a model, or renders the diagnostics.
fn run(text: &str) -> End {
    let source = Source::new("fuzz.pre", text);
    let machine = match preempt_lang::load(&source, &[]) {
        Ok(machine) => machine,
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty(), "a refusal has a reason");
            assert!(!render(&source, &diagnostics, Style::Plain).is_empty(), "and says it");
            return End::Refused;
        }
    };
    let plan = Plan::for_model(&machine).keep_going();
    let limits = match plan.memory {
        MemoryModel::Weak => {
            Limits { executions: Some(EXECUTIONS), depth: Some(DEPTH), ..Limits::default() }
        }
        _ => Limits { states: Some(STATES), ..Limits::default() },
    };
    let search = plan.limits(limits).build().expect("a full search is always possible");
    search.run(machine, &Silent);
    End::Searched
}

/// Runs a text. If that panics, the message contains the text.
fn survives(text: &str) -> End {
    let survived = catch_unwind(AssertUnwindSafe(|| run(text)));
    survived.unwrap_or_else(|_| panic!("this text made it panic:\n{text}"))
}

#[test]
fn random_bytes_cause_no_panic() {
    let mut random = Random::new(1);
    for _ in 0..2_000 {
        let length = random.below(200);
        let bytes: Vec<u8> = (0..length).map(|_| random.below(256) as u8).collect();
        survives(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn random_tokens_cause_no_panic() {
    let mut random = Random::new(2);
    for _ in 0..3_000 {
        survives(&texts::soup(&mut random, 60));
    }
}

/// All models of the corpus, in the order of their names, and the examples of the language
/// reference, which leave out nothing.
fn models() -> Vec<String> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let entries = folder.read_dir().into_iter().flatten();
        entries.map(|entry| entry.expect("the corpus can be read").path()).collect()
    };
    let mut files: Vec<PathBuf> =
        entries(&root.join("corpus")).iter().flat_map(|folder| entries(folder)).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "pre"));
    files.sort();
    let text =
        |file: &Path| std::fs::read_to_string(file).expect("models and their reference are text");
    let mut models: Vec<String> = files.iter().map(|file| text(file)).collect();
    let reference = text(&root.join("docs/language.md"));
    let examples = reference
        .split("\n```pre ")
        .skip(1)
        .filter_map(|block| block.split_once('\n')?.1.split("\n```").next());
    models.extend(examples.map(str::to_owned));
    assert!(models.len() > 150, "only {} models", models.len());
    models
}

#[test]
fn models_with_edited_tokens_cause_no_panic() {
    let mut random = Random::new(3);
    let models = models();
    for round in 0..1_000 {
        let tokens = texts::tokens(&models[round % models.len()]);
        survives(&texts::edited(&tokens, 1 + round % 3, &mut random));
    }
}

/// The kind of a token. A token can usually be replaced by another one of its kind.
fn kind(token: &str) -> Option<usize> {
    const ALIKE: &[&[&str]] = &[
        &["+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"],
        &["==", "!=", "<", "<=", ">", ">="],
        &["=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="],
        &["&&", "||"],
        &["..", "..="],
        &["await", "assume", "assert"],
        &["true", "false"],
        &["break", "continue", "return", "skip", "yield"],
        &["lock", "unlock", "try_lock"],
        &["fetch_add", "fetch_sub", "fetch_and", "fetch_or", "fetch_xor", "swap"],
        &["int", "bool", "thread"],
        &["access", "statement"],
    ];
    let fixed = ALIKE.iter().position(|alike| alike.contains(&token));
    let first = token.chars().next()?;
    match fixed {
        None if first.is_ascii_digit() => Some(ALIKE.len()),
        None if first.is_ascii_alphabetic() => Some(ALIKE.len() + 1),
        fixed => fixed,
    }
}

/// The model with one token replaced by one of its kind from elsewhere in the model, or one line
/// removed, doubled or moved.
fn altered(model: &str, words: &[&str], random: &mut Random) -> String {
    let mut lines: Vec<&str> = model.lines().collect();
    if lines.is_empty() {
        return String::new();
    }
    let at = random.below(lines.len());
    match random.below(8) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at]),
        2 => lines.swap(at, (at + 1) % model.lines().count()),
        _ => {
            let mut tokens = texts::tokens(model);
            let at = random.below(tokens.len());
            let old = tokens[at].trim();
            let alike: Vec<&str> =
                words.iter().copied().filter(|word| kind(word) == kind(old)).collect();
            let new = if alike.is_empty() { old } else { alike[random.below(alike.len())] };
            let replaced = tokens[at].replacen(old, new, 1);
            tokens[at] = &replaced;
            return tokens.concat();
        }
    }
    lines.join("\n")
}

#[test]
fn altered_models_cause_no_panic() {
    const ROUNDS: usize = 15;
    let models = models();
    let mut searched = 0;
    for model in &models {
        // The changes to a model depend on nothing else, so that adding a model does not change the
        // tests of others.
        let mut random = Random::new(
            model
                .bytes()
                .fold(4, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(byte))),
        );
        let words: Vec<&str> = texts::tokens(model).into_iter().map(str::trim).collect();
        for _ in 0..ROUNDS {
            let mut text = model.clone();
            for _ in 0..1 + random.below(3) {
                text = altered(&text, &words, &mut random);
            }
            searched += usize::from(survives(&text) == End::Searched);
        }
    }
    let altered = ROUNDS * models.len();
    assert!(
        searched > altered / 10,
        "only {searched} of {altered} altered models could be searched"
    );
}
