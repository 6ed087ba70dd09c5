//! The serial behaviour of a model, computed where the search for a witness asks for it.
//!
//! A model cannot be copied, so every question makes a new one and repeats the calls that lead to
//! the point. Histories of a test are short, and their results leave the search little choice: it
//! visits about as many points as there are calls.

use std::collections::HashMap;
use std::fmt::Debug;

use preempt_linearize::{CallOutcome, Specification};

use crate::choice::{Choices, next_script, scripted};

/// Makes a model, performs these calls on it, and returns the result of the last.
pub(super) type Run<C, R> = Box<dyn Fn(&[&C]) -> R + Send + Sync>;

/// A point: the calls that lead there, and the choices that the model made in them.
#[derive(Clone, Default)]
struct Point {
    calls: Vec<usize>,
    choices: Choices,
}

/// The serial executions of a model, as far as they were asked for.
pub(super) struct OnDemand<'a, C, R> {
    run: &'a Run<C, R>,
    calls: Vec<C>,
    /// The distinct results of each call. The first one is that of the history.
    results: Vec<Vec<R>>,
    points: Vec<Point>,
    /// The outcomes of a call at a point, with the points after it.
    known: HashMap<(usize, usize), Vec<(CallOutcome, usize)>>,
}

impl<'a, C, R: PartialEq + Debug> OnDemand<'a, C, R> {
    pub(super) fn new(run: &'a Run<C, R>, calls: Vec<C>, results: Vec<Vec<R>>) -> Self {
        OnDemand { run, calls, results, points: vec![Point::default()], known: HashMap::new() }
    }

    /// The texts of the results of each call.
    pub(super) fn results(&self) -> Vec<Vec<String>> {
        let texts = |results: &Vec<R>| results.iter().map(|of| format!("{of:?}")).collect();
        self.results.iter().map(texts).collect()
    }

    /// The number of a result of a call.
    fn number(&mut self, call: usize, result: R) -> u32 {
        let results = &mut self.results[call];
        let known = results.iter().position(|known| *known == result);
        known.unwrap_or_else(|| {
            results.push(result);
            results.len() - 1
        }) as u32
    }
}

impl<C, R: PartialEq + Debug> Specification for &mut OnDemand<'_, C, R> {
    fn outcomes(&mut self, from: usize, call: usize) -> Vec<(CallOutcome, usize)> {
        if let Some(known) = self.known.get(&(from, call)) {
            return known.clone();
        }
        let Point { mut calls, choices } = self.points[from].clone();
        calls.push(call);
        let fixed = choices.len();
        let mut script = Some(choices);
        let mut outcomes = Vec::new();
        // Every combination of choices that the call makes.
        while let Some(choices) = script {
            let made: Vec<&C> = calls.iter().map(|&call| &self.calls[call]).collect();
            let (result, choices) = scripted(choices, || (self.run)(&made));
            let number = self.number(call, result);
            outcomes.push((CallOutcome::Returned(number), self.points.len()));
            self.points.push(Point { calls: calls.clone(), choices: choices.clone() });
            script = next_script(choices, fixed);
        }
        self.known.insert((from, call), outcomes.clone());
        outcomes
    }

    fn observed(&mut self, _: usize) -> Vec<u32> {
        Vec::new()
    }
}
