//! The recorded calls and returns, and their judgement.

use std::fmt::Debug;

use preempt_linearize::witness::{self, Unexplained};
use preempt_linearize::{Answer, Criterion, History, MAX_CALLS, explain};

use super::specification::{OnDemand, Run};
use crate::linearize::relaxed_by;
use crate::runtime::hook;

/// A call of a log.
struct Call<C, R> {
    call: C,
    /// The name of the thread that made it.
    thread: String,
    result: Option<R>,
}

/// The calls of each log, and all events in their order.
pub(super) struct Record<C, R> {
    logs: Vec<Vec<Call<C, R>>>,
    /// The log of each event: of the first, third, … event of a log a call begins, otherwise it
    /// returns.
    events: Vec<usize>,
}

impl<C, R> Default for Record<C, R> {
    fn default() -> Record<C, R> {
        Record { logs: Vec::new(), events: Vec::new() }
    }
}

impl<C, R> Record<C, R> {
    pub(super) fn new(logs: usize) -> Record<C, R> {
        Record { logs: (0..logs).map(|_| Vec::new()).collect(), events: Vec::new() }
    }

    /// Records a call. Returns whether the log had no open call.
    pub(super) fn begin(&mut self, log: usize, call: C, thread: String) -> bool {
        let Some(calls) = self.logs.get_mut(log) else { return false };
        if calls.last().is_some_and(|last| last.result.is_none()) {
            return false;
        }
        calls.push(Call { call, thread, result: None });
        self.events.push(log);
        true
    }

    /// Records the result of the open call of a log. Returns whether there was one.
    pub(super) fn end(&mut self, log: usize, result: R) -> bool {
        let last = self.logs.get_mut(log).and_then(|calls| calls.last_mut());
        let Some(open) = last.filter(|last| last.result.is_none()) else { return false };
        open.result = Some(result);
        self.events.push(log);
        true
    }

    /// Why the record cannot be judged.
    pub(super) fn obstacle(&self) -> Option<String> {
        let calls = || self.logs.iter().flatten();
        if calls().any(|call| call.result.is_none()) {
            return Some(
                "a call of the history has not returned: join its thread before `check`".to_owned(),
            );
        }
        let number = calls().count();
        (number > MAX_CALLS).then(|| {
            format!("the history has {number} calls, and at most {MAX_CALLS} are possible")
        })
    }
}

impl<C: Debug, R: Debug> Record<C, R> {
    /// The open call of a log with its result, for traces.
    pub(super) fn label(&self, log: usize, result: &R) -> String {
        let last = self.logs.get(log).and_then(|calls| calls.last());
        last.map_or_else(|| format!("= {result:?}"), |last| format!("{:?} = {result:?}", last.call))
    }
}

impl<C: Debug, R: PartialEq + Debug> Record<C, R> {
    /// What is wrong with the history, or the text with which the model panicked.
    pub(super) fn judge(
        self,
        run: &Run<C, R>,
        criterion: Criterion,
    ) -> Result<Option<String>, String> {
        let history = self.history();
        let (mut calls, mut names) = (Vec::new(), Vec::new());
        let mut results = Vec::new();
        for Call { call, thread, result } in self.logs.into_iter().flatten() {
            names.push(format!("{thread}'s {call:?}"));
            calls.push(call);
            results.push(Vec::from_iter(result));
        }
        let mut specification = OnDemand::new(run, calls, results);
        let k = criterion.out_of_order();
        let search = || relaxed_by(k, || witness::search(&history, &mut specification, criterion));
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(search));
        match found {
            Ok(Ok(_)) => Ok(None),
            Ok(Err(why)) => {
                let texts = Texts { names, results: specification.results() };
                Ok(Some(message(&history, &why, &texts, criterion)))
            }
            Err(payload) => Err(hook::text(&*payload)),
        }
    }

    /// The history, with calls numbered log by log. The actual result of each call has number 0.
    fn history(&self) -> History {
        let logs = self.logs.iter().enumerate();
        let threads: Vec<usize> =
            logs.flat_map(|(log, calls)| calls.iter().map(move |_| log)).collect();
        let first = |log: usize| self.logs[..log].iter().map(Vec::len).sum::<usize>();
        let mut history = History::new(&threads);
        let mut events = vec![0; self.logs.len()];
        for &log in &self.events {
            let call = first(log) + events[log] / 2;
            match events[log] % 2 {
                0 => history.call(call),
                _ => history.returned(call, 0),
            }
            events[log] += 1;
        }
        history
    }
}

/// The texts of the calls and of the results that each has.
struct Texts {
    names: Vec<String>,
    results: Vec<Vec<String>>,
}

impl explain::Texts for Texts {
    fn call(&self, call: usize) -> String {
        self.names[call].clone()
    }

    fn result(&self, call: usize, number: u32) -> String {
        self.results[call][number as usize].clone()
    }
}

/// The calls with their results, and why no serial order gives them.
fn message(history: &History, why: &Unexplained, texts: &Texts, criterion: Criterion) -> String {
    use explain::Texts as _;
    let calls = (0..history.calls()).filter_map(|call| match history.answer(call) {
        Answer::Returned(number) => {
            Some(format!("{} = {}", texts.call(call), texts.result(call, number)))
        }
        _ => None,
    });
    let calls: Vec<String> = calls.collect();
    let why = explain::explanation(history, why, texts);
    format!("not {}: {}. {why}", criterion.word(), calls.join(", "))
}
