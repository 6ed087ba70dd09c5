//! The text of a failed scenario: its results as a table, and why no serial order gives them.

use preempt_linearize::table::{self, Labels};
use preempt_linearize::{Answer, History, explain};

use super::concurrent::thread_name;
use super::scene::{Scene, Violation, ViolationKind};

/// The table of a history, with what an observer saw below it.
pub(super) fn table<H: 'static>(scene: &Scene<H>, history: &History) -> String {
    let threads: Vec<String> = (0..scene.programs.len()).map(thread_name).collect();
    let calls: Vec<String> = scene.calls.iter().map(|call| call.label.clone()).collect();
    let results: Vec<Option<String>> = (0..calls.len())
        .map(|call| match history.answer(call) {
            Answer::Returned(number) => Some(scene.result(call, number)),
            _ => None,
        })
        .collect();
    let labels = Labels { threads: &threads, calls: &calls, results: &results };
    let mut lines = table::lines(history, labels);
    if let Some(seen) = history.observed() {
        lines.push(format!("afterwards: {}", scene.result(scene.calls.len(), seen)));
    }
    lines.join("\n")
}

/// Why no serial execution explains a history. Empty if something else is wrong with it.
pub(super) fn explanation<H: 'static>(scene: &Scene<H>, violation: &Violation) -> String {
    let ViolationKind::Unexplained(why) = &violation.kind else { return String::new() };
    explain::explanation(&violation.history, why, scene)
}

impl<H: 'static> explain::Texts for Scene<H> {
    fn call(&self, call: usize) -> String {
        let call = &self.calls[call];
        format!("{}'s {}", thread_name(call.thread), call.label)
    }

    fn result(&self, call: usize, number: u32) -> String {
        Scene::result(self, call, number)
    }
}
