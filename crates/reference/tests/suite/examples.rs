//! The examples of docs/language.md and the models of the corpus: the reference agrees with the
//! text of the page, and the searches agree with the reference.

use std::path::Path;

use preempt_reference::compare::{Selection, Verdict, compare};

#[test]
fn the_examples_of_the_language_reference_agree() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/language.md");
    let page = std::fs::read_to_string(page).expect("the page can be read");
    let mut wrong = Vec::new();
    for (number, example) in page.split("\n```pre ").skip(1).enumerate() {
        let (head, text) = example.split_once('\n').expect("an example has a head");
        let text = text.split("\n```").next().expect("an example has an end");
        match compare(text, Selection::Some(number as u64)) {
            Verdict::Refused(message) if head != "error" => {
                wrong.push(format!("refused: {message}\n{text}"))
            }
            Verdict::Disagree(disagreement) => wrong.push(format!("{disagreement}\n{text}")),
            _ => {}
        }
    }
    assert!(wrong.is_empty(), "{} examples:\n{}", wrong.len(), wrong.join("\n\n"));
}
