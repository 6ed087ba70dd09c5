//! The text of a failed scenario: its results as a table, and why no serial order gives them.

use preempt_linearize::table::{self, Labels};
use preempt_linearize::{Answer, History, Outcome};

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

/// Why no serial execution explains a history: the longest one that fits, and how it continues.
pub(super) fn explanation<H: 'static>(scene: &Scene<H>, violation: &Violation) -> String {
    let Violation { history, kind } = violation;
    let ViolationKind::Unexplained(why) = kind else { return String::new() };
    let name = |call: usize| {
        format!("{}'s {}", thread_name(scene.calls[call].thread), scene.calls[call].label)
    };
    let outcome = |call: usize, outcome: &Outcome| match outcome {
        Outcome::Returned(number) => scene.result(call, *number),
        Outcome::Blocks => "does not return".to_owned(),
    };
    let done = |call: usize| match history.answer(call) {
        Answer::Returned(number) => format!("{} = {}", name(call), scene.result(call, number)),
        _ => name(call),
    };
    let placed: Vec<String> = why.longest.iter().map(|&call| done(call)).collect();
    let start = match &placed[..] {
        [] => "Serially, at first".to_owned(),
        placed => format!("Serially, after {}", placed.join(", then ")),
    };
    let next: Vec<String> = why
        .next
        .iter()
        .map(|(call, outcomes)| {
            let outcomes: Vec<String> = outcomes.iter().map(|of| outcome(*call, of)).collect();
            match &outcomes[..] {
                [] => format!("{} was never made", name(*call)),
                [one] if one == "does not return" => format!("{} does not return", name(*call)),
                outcomes => format!("{} = {}", name(*call), outcomes.join(" or ")),
            }
        })
        .collect();
    if next.is_empty() {
        let seen: Vec<String> =
            why.observed.iter().map(|&seen| scene.result(scene.calls.len(), seen)).collect();
        return format!("{start}, the observer sees {}.", seen.join(" or "));
    }
    let head = match why.pending {
        Some(call) => format!("{} never returns, and there is no serial reason. ", name(call)),
        None => "No serial order gives these results. ".to_owned(),
    };
    format!("{head}{start}: {}.", next.join(", and "))
}
