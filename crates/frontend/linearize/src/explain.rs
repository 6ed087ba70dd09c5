//! Why no serial execution explains a history, as text: the longest one that fits, and how it
//! would continue.

use crate::history::{Answer, History};
use crate::serial::CallOutcome;
use crate::witness::Unexplained;

/// The texts of calls and results.
pub trait Texts {
    /// The name of a call: `A's push(1)`.
    fn call(&self, call: usize) -> String;

    /// The text of the result with this number. The observer is the call after the last.
    fn result(&self, call: usize, number: u32) -> String;
}

/// One or two sentences about a history that has no witness.
pub fn explanation(history: &History, why: &Unexplained, texts: &impl Texts) -> String {
    let start = match &placed(history, why, texts)[..] {
        [] => "Serially, at first".to_owned(),
        placed => format!("Serially, after {}", placed.join(", then ")),
    };
    let next = continuations(why, texts);
    if next.is_empty() {
        let seen = why.observed.iter().map(|&seen| texts.result(history.calls(), seen));
        return format!("{start}, the observer sees {}.", seen.collect::<Vec<_>>().join(" or "));
    }
    let head = match why.pending {
        Some(call) => {
            format!("{} never returns, and there is no serial reason. ", texts.call(call))
        }
        None => "No serial order gives these results. ".to_owned(),
    };
    format!("{head}{start}: {}.", next.join(", and "))
}

/// The longest sequence of calls that a serial execution makes with the same results.
fn placed(history: &History, why: &Unexplained, texts: &impl Texts) -> Vec<String> {
    let done = |&call: &usize| match history.answer(call) {
        Answer::Returned(number) => {
            format!("{} = {}", texts.call(call), texts.result(call, number))
        }
        _ => texts.call(call),
    };
    why.longest.iter().map(done).collect()
}

/// What the calls that could come next return serially.
fn continuations(why: &Unexplained, texts: &impl Texts) -> Vec<String> {
    let text = |(call, outcomes): &(usize, Vec<CallOutcome>)| {
        let name = texts.call(*call);
        let results = outcomes.iter().map(|outcome| match outcome {
            CallOutcome::Returned(number) => texts.result(*call, *number),
            CallOutcome::Blocks => "does not return".to_owned(),
        });
        let results: Vec<String> = results.collect();
        match (&outcomes[..], &results[..]) {
            ([], _) => format!("{name} was never made"),
            ([CallOutcome::Blocks], _) => format!("{name} does not return"),
            (_, results) => format!("{name} = {}", results.join(" or ")),
        }
    };
    why.next.iter().map(text).collect()
}
