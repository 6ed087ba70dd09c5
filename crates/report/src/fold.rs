//! Folding of repetitions: the iterations of a thread that spins are shown once.

use crate::trace::NarratedStep;

/// A part of a folded execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The step of this number, counted from 0.
    Step(usize),
    /// The last `length` steps happen `times` times more.
    Again {
        /// The number of steps that repeat.
        length: usize,
        /// The number of repetitions besides the one that is shown.
        times: usize,
    },
}

impl Part {
    /// The same part in an execution with `steps` more steps before it.
    pub fn later_by(self, steps: usize) -> Part {
        match self {
            Part::Step(number) => Part::Step(number + steps),
            again => again,
        }
    }
}

/// The longest repetition that is recognised.
const LONGEST: usize = 24;

/// The steps without immediate repetitions, where that saves lines. Steps repeat only if their
/// descriptions are equal: an iteration that changes a value is not a repetition.
pub fn fold(steps: &[NarratedStep]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut at = 0;
    while at < steps.len() {
        let rest = &steps[at..];
        let periods = 1..=LONGEST.min(rest.len() / 2);
        let best = periods
            .map(|length| (length, repetitions(rest, length)))
            .filter(|(length, times)| length * times >= 2)
            .max_by_key(|(length, times)| (length * times, usize::MAX - length));
        let (length, times) = best.unwrap_or((1, 0));
        parts.extend((at..at + length).map(Part::Step));
        if times > 0 {
            parts.push(Part::Again { length, times });
        }
        at += length * (times + 1);
    }
    parts
}

/// The number of times that the first `length` steps are repeated immediately.
fn repetitions(steps: &[NarratedStep], length: usize) -> usize {
    let (first, rest) = steps.split_at(length);
    rest.chunks_exact(length).take_while(|chunk| *chunk == first).count()
}

#[cfg(test)]
mod tests {
    use preempt_system::{Narration, Nesting, ThreadId};

    use super::*;

    fn steps(words: &str) -> Vec<NarratedStep> {
        let narrated = |word: &str| NarratedStep {
            thread: ThreadId::new(0),
            number: ThreadId::new(0),
            alternative: None,
            label: word.to_owned(),
            narration: Narration { source: word.to_owned(), ..Narration::default() },
            nesting: Nesting::Own,
            preempts: None,
            stale: None,
        };
        words.split_whitespace().map(narrated).collect()
    }

    fn folded(words: &str) -> String {
        let steps = steps(words);
        let part = |part| match part {
            Part::Step(at) => steps[at].narration.source.clone(),
            Part::Again { length, times } => format!("({length} again {times}x)"),
        };
        fold(&steps).into_iter().map(part).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn repetitions_are_shown_once() {
        assert_eq!(folded("a b c"), "a b c");
        assert_eq!(folded("a a b"), "a a b", "a line about a line saves nothing");
        assert_eq!(folded("a a a b"), "a (1 again 2x) b");
        assert_eq!(folded("x a b a b a b y"), "x a b (2 again 2x) y");
        assert_eq!(folded("a b a c"), "a b a c");
        assert_eq!(folded("a b a b"), "a b (2 again 1x)");
        assert_eq!(folded(""), "");
    }
}
