//! The schedule of every finding of the corpus replays to the same finding in a process of its own,
//! from its file and from its token.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus")
}

fn preempt(args: &[String]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_preempt"))
        .args(args)
        .output()
        .expect("the binary was built for this test")
}

/// A model with its constants and the options of the check.
struct Case {
    file: String,
    settings: Vec<String>,
}

/// All runs of the corpus that end in a finding.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let mut folders: Vec<PathBuf> = std::fs::read_dir(root())
        .expect("there is a corpus")
        .map(|entry| entry.expect("the file is readable").path())
        .collect();
    folders.sort();
    for folder in folders {
        let Ok(text) = std::fs::read_to_string(folder.join("expect.toml")) else { continue };
        let subject: toml::Table = text.parse().expect("expectations can be read");
        for run in subject.get("run").and_then(toml::Value::as_array).into_iter().flatten() {
            let word = |name: &str| run.get(name).and_then(toml::Value::as_str);
            let big = run.get("big").and_then(toml::Value::as_bool) == Some(true);
            if word("verdict") == Some("ok") || big {
                continue;
            }
            let file = folder.join(word("file").unwrap_or("model.pre")).display().to_string();
            let set = run.get("set").and_then(toml::Value::as_table).into_iter().flatten();
            let settings = set
                .flat_map(|(name, value)| ["--set".to_owned(), format!("{name}={value}")])
                .collect();
            cases.push(Case { file, settings });
        }
    }
    cases
}

/// Runs a check with `options` and replays its finding twice.
fn replays(case: &Case, options: &[&str], number: usize) -> bool {
    let saved = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("corpus-{number}.schedule"))
        .display()
        .to_string();
    let model = [std::slice::from_ref(&case.file), &case.settings].concat();
    let asked =
        [&["--json", "--save-schedule", &saved], options].concat().into_iter().map(str::to_owned);
    let output = preempt(
        &["check".to_owned()].into_iter().chain(model.clone()).chain(asked).collect::<Vec<_>>(),
    );
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    match output.status.code() {
        Some(1) => {}
        Some(0 | 3) => return false,
        code => {
            panic!("{}: {code:?} {stdout}{}", case.file, String::from_utf8_lossy(&output.stderr))
        }
    }
    let value: serde_json::Value = serde_json::from_str(&stdout).expect("--json prints JSON");
    let token = value["finding"]["schedule"].as_str().expect("a finding has a schedule").to_owned();
    for schedule in [token, saved] {
        let again = preempt(
            &["replay".to_owned()]
                .into_iter()
                .chain(model.clone())
                .chain([schedule])
                .collect::<Vec<_>>(),
        );
        let text = String::from_utf8_lossy(&again.stdout).into_owned();
        let name = format!(
            "{} {:?} {options:?}: {text}{}",
            case.file,
            case.settings,
            String::from_utf8_lossy(&again.stderr)
        );
        assert_eq!(again.status.code(), Some(1), "{name}");
        assert!(text.contains("\nThe schedule still fails in the same way.\n"), "{name}");
    }
    true
}

#[test]
fn every_finding_of_the_corpus_is_replayed_in_another_process() {
    let cases = cases();
    let mut number = 0;
    for case in &cases {
        for options in [&[][..], &["--order", "bfs"], &["--order", "dfs", "--no-shrink"]] {
            assert!(
                replays(case, options, number),
                "{}: nothing was found with {options:?}",
                case.file
            );
            number += 1;
        }
    }
    assert!(cases.len() > 35, "only {} runs of the corpus end in a finding", cases.len());
}

/// Races are found with points at synchronisation only.
#[test]
fn every_race_of_the_corpus_is_replayed_in_another_process() {
    let mut raced = 0;
    for number in 1..=7 {
        let file = root().join(format!("races/r{number}.pre")).display().to_string();
        let case = Case { file, settings: Vec::new() };
        raced += usize::from(replays(&case, &["--points", "sync"], 1000 + number));
    }
    assert!(raced > 1, "{raced} programs race");
}
