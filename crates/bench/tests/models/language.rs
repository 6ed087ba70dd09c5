//! Every example of the language reference is run: a code block marked `pre` is a model, and the
//! words after the mark say how it ends: `ok`, `violation`, `deadlock`, `race`, or `error` for a
//! model that is refused.

use libtest_mimic::Trial;
use preempt_explore::{Plan, Silent};
use preempt_lang::source::Source;

pub fn trials() -> Vec<Trial> {
    let reference = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/language.md");
    let text = std::fs::read_to_string(reference).expect("the language reference is there");
    let mut trials = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let Some(expected) = line.strip_prefix("```pre") else { continue };
        let expected = expected.trim().to_owned();
        let model: String = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| *line != "```")
            .flat_map(|line| [line, "\n"])
            .collect();
        let name = format!("language.md:{} {expected}", number + 1);
        trials.push(Trial::test(name, move || check(&model, &expected).map_err(Into::into)));
    }
    assert!(trials.len() > 20, "the reference has examples");
    trials
}

fn check(model: &str, expected: &str) -> Result<(), String> {
    let source = Source::new("example.pre", model);
    let machine = match preempt_lang::load(&source, &[]) {
        Ok(machine) => machine,
        Err(_) if expected == "error" => return Ok(()),
        Err(diagnostics) => {
            return Err(diagnostics.iter().map(|d| format!("{}\n", d.message)).collect());
        }
    };
    let search = Plan::for_model(&machine).build().map_err(|refusal| refusal.to_string())?;
    let (outcome, _) = search.run(machine, &Silent);
    let found = outcome.verdict.word();
    if found == expected {
        Ok(())
    } else {
        Err(format!("expected {expected}, found {found}: {:?}", outcome.findings))
    }
}
