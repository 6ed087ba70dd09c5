//! The history of one execution: the results of its calls, and which calls had returned before
//! which others were made.
//!
//! The order of returns among each other and of calls among each other is not part of a history:
//! no criterion depends on it. So executions that differ only in it have equal histories.

use std::borrow::Cow;

/// The result of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Answer {
    /// It was not made.
    #[default]
    NotCalled,
    /// It has not returned.
    Pending,
    /// It returned this result. Equal numbers are equal results of that call.
    Returned(u32),
}

/// The correctness condition: which part of the real-time order a witness has to keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Criterion {
    /// A call that returned before another was made comes first.
    #[default]
    Linearizable,
    /// The calls of each thread keep their order.
    Sequential,
    /// Calls keep their order if there was a moment between them at which no call was pending. The
    /// calls of one thread may be exchanged otherwise, so the serial executions of a scenario have
    /// to include all orders of its calls.
    Quiescent,
    /// Like [`Linearizable`](Criterion::Linearizable), against a relaxed specification: a removal
    /// may pass over this number of elements. The serial executions of a scenario have to include
    /// those of the relaxed specification.
    OutOfOrder(u32),
}

impl Criterion {
    /// The adjective of a structure that satisfies it.
    pub fn word(self) -> Cow<'static, str> {
        match self {
            Criterion::Linearizable => "linearizable".into(),
            Criterion::Sequential => "sequentially consistent".into(),
            Criterion::Quiescent => "quiescently consistent".into(),
            Criterion::OutOfOrder(k) => format!("{k}-out-of-order linearizable").into(),
        }
    }

    /// The number of elements that a removal may pass over.
    pub fn out_of_order(self) -> u32 {
        match self {
            Criterion::OutOfOrder(k) => k,
            _ => 0,
        }
    }
}

/// A history. Calls are numbered thread by thread, at most [`MAX_CALLS`](crate::MAX_CALLS).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct History {
    /// The thread of each call.
    threads: Vec<u8>,
    answers: Vec<Answer>,
    /// For each call, the set of calls that had returned before it was made.
    before: Vec<u64>,
    /// The set of calls that have returned.
    done: u64,
    observed: Option<u32>,
}

impl History {
    /// A history in which no call was made yet; `threads` has the thread of each call.
    ///
    /// # Panics
    ///
    /// If there are too many calls.
    pub fn new(threads: &[usize]) -> History {
        let calls = threads.len();
        assert!(calls <= crate::MAX_CALLS, "a history has at most {} calls", crate::MAX_CALLS);
        History {
            threads: threads.iter().map(|&thread| thread as u8).collect(),
            answers: vec![Answer::NotCalled; calls],
            before: vec![0; calls],
            done: 0,
            observed: None,
        }
    }

    /// The number of calls.
    pub fn calls(&self) -> usize {
        self.answers.len()
    }

    /// The thread of a call.
    pub fn thread(&self, call: usize) -> usize {
        self.threads[call].into()
    }

    /// Records that a call is made.
    pub fn call(&mut self, call: usize) {
        self.answers[call] = Answer::Pending;
        self.before[call] = self.done;
    }

    /// Records that a call returns.
    pub fn returned(&mut self, call: usize, result: u32) {
        self.answers[call] = Answer::Returned(result);
        self.done |= 1 << call;
    }

    /// Records the result of an observer after all calls.
    pub fn observe(&mut self, result: u32) {
        self.observed = Some(result);
    }

    /// The result of an observer after all calls, if there was one.
    pub fn observed(&self) -> Option<u32> {
        self.observed
    }

    /// The result of a call.
    pub fn answer(&self, call: usize) -> Answer {
        self.answers[call]
    }

    /// The calls that were made and have not returned.
    pub fn pending(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.calls()).filter(|&call| self.answers[call] == Answer::Pending)
    }

    /// The set of calls that have returned.
    pub fn complete(&self) -> u64 {
        self.done
    }

    /// Whether a call had returned before another was made.
    pub fn precedes(&self, earlier: usize, later: usize) -> bool {
        self.before[later] >> earlier & 1 == 1
    }

    /// Whether no two calls overlapped.
    pub fn is_serial(&self) -> bool {
        let pairs = (0..self.calls()).flat_map(|a| (0..a).map(move |b| (a, b)));
        pairs.into_iter().all(|(a, b)| self.precedes(a, b) || self.precedes(b, a))
    }

    /// For each call, the calls that a witness has to place before it.
    pub fn order(&self, criterion: Criterion) -> Vec<u64> {
        match criterion {
            Criterion::Linearizable | Criterion::OutOfOrder(_) => self.before.clone(),
            Criterion::Sequential => {
                (0..self.calls()).map(|call| self.program_order(call)).collect()
            }
            Criterion::Quiescent => self.quiescent_order(),
        }
    }

    /// The earlier calls of the same thread.
    fn program_order(&self, call: usize) -> u64 {
        let earlier = (0..call).filter(|&other| self.threads[other] == self.threads[call]);
        earlier.fold(0, |set, other| set | 1 << other)
    }

    /// The calls before the last moment, before each call, at which none was pending.
    ///
    /// There is such a moment between a set of calls and all others that were made iff each of the
    /// others was made after all of the set had returned: before the first of the others is made,
    /// nothing else than the set was called, and all of it has returned. A set with that property
    /// is what preceded some call.
    fn quiescent_order(&self) -> Vec<u64> {
        let made = (0..self.calls()).filter(|&call| self.answers[call] != Answer::NotCalled);
        let made: Vec<usize> = made.collect();
        let is_quiet = |set: u64| {
            let mut others = made.iter().filter(|&&call| set >> call & 1 == 0);
            others.all(|&call| self.before[call] & set == set)
        };
        let mut order = vec![0; self.calls()];
        for set in self.before.iter().copied().filter(|&set| is_quiet(set)) {
            for &call in made.iter().filter(|&&call| set >> call & 1 == 0) {
                order[call] |= set;
            }
        }
        order
    }
}
