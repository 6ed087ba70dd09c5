//! Progress of the operations of a data structure: obstruction-freedom and lock-freedom.
//!
//! **Obstruction-freedom.** An operation must return if its thread runs alone from any state. So
//! in no state may a thread be inside an operation and wait: blocked, or in a loop that it does not
//! leave alone ([look-ahead](super::ahead)). The other direction: let a search visit every state
//! within a bound, and let no thread wait inside an operation in any of them. Take a state in which
//! a thread is inside an operation, and from which it may run alone within the bound. The states of
//! that run are visited too. In none of them is the thread blocked, and it is in no endless loop;
//! the run is finite because the search has ended. So the operation returns. Hence one question
//! about each state suffices, and no thread has to be suspended.
//!
//! This needs a search that visits every *state*, not only an execution of every happens-before
//! graph: a state in which a thread waits for a lock may be a prefix of no execution that a
//! partial-order reduction takes. The caller refuses reductions. A cache of graphs is sound: states
//! with equal graphs are equal.
//!
//! **Lock-freedom** implies that: a thread that waits for a suspended one makes no progress, and
//! neither does anyone else. It also excludes that threads hinder each other forever, each of them
//! able to return alone. That needs infinitely many preemptions, so a bounded search cannot decide
//! it. It is looked for: where a thread inside an operation repeats a step, all threads that are
//! inside operations take turns of a fixed number of steps, and one of them has to return within
//! [`STEPS`] steps. A finding is such an execution. A pass says nothing about turns of changing
//! lengths.
//!
//! **Cost.** The first question costs one look at each thread for each step. Taking turns starts
//! the execution again, up to [`TURNS`] times the number of threads in each state in which an
//! operation repeats a step.

use std::collections::HashSet;

use preempt_replay::{Lookahead, OpKind};
use preempt_system::{Choice, Fingerprint, Status, ThreadId};

use super::{Execution, Phase};
use crate::runtime::harness::Progress;
use crate::runtime::restart::RestartReason;
use crate::runtime::{Runtime, site};

/// The steps in which an operation has to return while threads take turns.
const STEPS: usize = 1_000;

/// The largest number of steps of a turn.
const TURNS: usize = 4;

/// The states in which threads took turns, by the pasts of all threads: what happens then is a
/// function of the state, so a replay finds what the search found.
pub(super) type TurnStates = HashSet<Vec<Fingerprint>>;

/// A thread that is inside an operation.
#[derive(Clone, Copy)]
struct Caller {
    thread: ThreadId,
    /// Its number in the harness.
    number: u8,
    /// The number of operations that it had performed before the call.
    called: usize,
}

impl Execution<'_> {
    /// Fails the current step if an operation makes no progress in the state after it.
    pub(super) fn judge_progress(&mut self) -> Result<(), RestartReason> {
        let Some(harness) = self.read().harness.clone() else { return Ok(()) };
        let demanded = harness.progress();
        let is_over = |runtime: &Runtime| {
            runtime.verdict.failure.is_some() || runtime.recording.is_discarded()
        };
        if demanded == Progress::Any || is_over(self.read()) {
            return Ok(());
        }
        let callers = self.callers();
        for caller in &callers {
            if let Some(how) = self.waits(caller.thread) {
                let failure = harness.judge_waiting(caller.number, &how);
                self.runtime().verdict.failure.get_or_insert(Box::new(failure));
                return Ok(());
            }
        }
        if demanded != Progress::LockFree || callers.len() < 2 {
            return Ok(());
        }
        if let Some(turn) = self.hinder_each_other(&callers)? {
            // The harness of the present state, which has not seen the turns.
            self.be_live()?;
            let harness = self.read().harness.clone().expect("every execution has a harness");
            let how = format!("no operation returned in {STEPS} steps with turns of {turn}");
            let failure = harness.judge_waiting(callers[0].number, &how);
            self.runtime().verdict.failure.get_or_insert(Box::new(failure));
        }
        Ok(())
    }

    /// Starts the execution again if threads took turns.
    fn be_live(&mut self) -> Result<(), RestartReason> {
        if self.phase != Phase::Live {
            self.catch_up()?;
            // Suspects of repeated steps were checked when the steps were new.
            self.runtime().met.suspects.clear();
        }
        Ok(())
    }

    /// The threads that are inside operations.
    fn callers(&self) -> Vec<Caller> {
        let recording = &self.read().recording;
        let started = recording.state().started().iter();
        let caller = |thread: ThreadId| {
            let done = recording.state().count(thread.index());
            let mut ops = recording.history(thread).ops()[..done].iter().enumerate().rev();
            ops.find_map(|(at, op)| match op.kind {
                OpKind::Return => Some(None),
                OpKind::Call(returns) => {
                    Some(Some(Caller { thread, number: returns.caller, called: at }))
                }
                _ => None,
            })
            .flatten()
        };
        started.filter_map(caller).collect()
    }

    /// How a thread waits for others, if it does.
    fn waits(&self, thread: ThreadId) -> Option<String> {
        let recording = &self.read().recording;
        let op = recording.next_op(thread)?;
        let place = site::of(op.site);
        match recording.ask(thread).status {
            Status::Blocked => Some(format!("it waits for another thread: {} at {place}", op.verb)),
            Status::Spinning => {
                let lookahead = recording.history(thread).outcomes().last()?.lookahead;
                let how = match lookahead {
                    Lookahead::Skipped => return None,
                    Lookahead::Repeats => "its state repeats",
                    Lookahead::Undecided => "100 rounds alone do not end it",
                };
                Some(format!("it waits for another thread in a loop at {place}: {how}"))
            }
            _ => None,
        }
    }

    /// The length of the turns in which threads hinder each other, if one is found.
    fn hinder_each_other(&mut self, callers: &[Caller]) -> Result<Option<usize>, RestartReason> {
        let repeats = callers.iter().any(|caller| self.repeats_step(caller));
        if !repeats || !self.read().met.suspects.is_empty() {
            return Ok(None);
        }
        let recording = &self.read().recording;
        let threads = recording.state().started().iter();
        let state: Vec<Fingerprint> =
            threads.map(|thread| recording.past(thread, &self.path)).collect();
        if !self.turns.insert(state) {
            return Ok(None);
        }
        let telling = self.runtime().notes.step.take();
        let mut found = None;
        for turn in 1..=TURNS {
            for first in 0..callers.len() {
                let order: Vec<ThreadId> = (0..callers.len())
                    .map(|nth| callers[(first + nth) % callers.len()].thread)
                    .collect();
                if found.is_none() && !self.returns_in_turns(&order, turn)? {
                    found = Some(turn);
                }
            }
        }
        self.runtime().notes.step = telling;
        Ok(found)
    }

    /// Whether a thread is about to repeat a step of its operation.
    fn repeats_step(&self, caller: &Caller) -> bool {
        let recording = &self.read().recording;
        let done = recording.state().count(caller.thread.index());
        let own = &recording.history(caller.thread).ops()[caller.called + 1..done];
        let next = recording.next_op(caller.thread);
        next.is_some_and(|next| own.iter().any(|op| op.is_again(next)))
    }

    /// Whether an operation returns if threads take `turn` steps each, in this order, over and
    /// over. The steps are taken back: the execution has to be started again.
    fn returns_in_turns(&mut self, order: &[ThreadId], turn: usize) -> Result<bool, RestartReason> {
        self.be_live()?;
        let state = self.read().recording.state().clone();
        let mut returns = false;
        for step in 0..STEPS {
            let thread = order[step / turn % order.len()];
            let pending = self.read().recording.ask(thread);
            let is_able = matches!(pending.status, Status::Enabled | Status::Spinning);
            let alternative = pending.footprints.first().map(|&(alternative, _)| alternative);
            let Some(alternative) = alternative.filter(|_| is_able) else {
                // Another check concerns threads that wait.
                returns = true;
                break;
            };
            self.perform::<false>(Choice { thread, alternative })?;
            let runtime = self.read();
            let last = runtime.recording.last_op(thread);
            let is_return = last.is_some_and(|op| matches!(op.kind, OpKind::Return));
            if is_return || runtime.verdict.failure.is_some() || !runtime.verdict.panics.is_empty()
            {
                returns = true;
                break;
            }
        }
        let runtime = self.runtime();
        for &thread in order {
            runtime.recording.take_back(state.clone(), thread);
        }
        runtime.verdict.failure = None;
        runtime.verdict.panics.clear();
        self.phase = Phase::Adrift;
        Ok(returns)
    }
}
