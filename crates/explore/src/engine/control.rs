//! The shared control of a search's workers: when to stop, when to pause, and progress.
//!
//! Counters are atomics with relaxed ordering: they are only summed and compared with limits. A
//! limit may therefore be passed by what the workers do between two polls.

use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use preempt_system::{Capacity, Failure};

use crate::codec::{Damaged, Reader, SaveInPlace as _, Writer, save_in_place};
use crate::engine::checkpoint::Pauses;
use crate::engine::estimate::{Estimator, Round};
use crate::engine::execution::Stop;
use crate::engine::lock;
use crate::engine::memory::Pace;
use crate::engine::observer::{Follower, Observer, Progress, Silent};
use crate::engine::store::Visited;
use crate::plan::Limits;
use crate::plan::coverage::Limit;

/// The time that a search has taken, over all its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    started: Instant,
    /// The time before it was resumed.
    before: Duration,
}

impl Clock {
    /// Starts the clock of a search that has already taken `before`.
    pub(crate) fn after(before: Duration) -> Clock {
        Clock { started: Instant::now(), before }
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.before + self.started.elapsed()
    }
}

/// Writes what the program has learned to a checkpoint.
pub(crate) type Learned<'a> = &'a (dyn Fn(&mut Writer<'_>) + Sync);

/// The shared part of a search.
pub(crate) struct SearchControl<'a, N = Capacity> {
    pub(crate) limits: Limits,
    observer: &'a dyn Observer,
    clock: Clock,
    restarts: u32,
    /// The only error that counts, if not all of them do.
    sought: Option<Sought<'a>>,
    pauses: Option<&'a Pauses<'a>>,
    /// The directory for states that do not fit into memory.
    pub(crate) spill: Option<&'a Path>,
    /// Writes what the program has learned.
    learned: Learned<'a>,
    pausing: AtomicBool,
    stopped: AtomicBool,
    reason: Mutex<Option<Stop<N>>>,
    states: AtomicU64,
    transitions: AtomicU64,
    /// States that wait to be expanded, and their bytes.
    waiting: AtomicU64,
    waiting_bytes: AtomicUsize,
    waiting_most: AtomicU64,
    waiting_bytes_most: AtomicUsize,
    depth: AtomicU32,
    failures: AtomicU64,
    /// Executions that ended or were cut; counted only if there is a limit.
    executions: AtomicU64,
    /// Their limit; `u64::MAX` without one.
    most_executions: AtomicU64,
    /// Executions that workers have reported.
    reported_executions: AtomicU64,
    estimator: Mutex<Estimator>,
    pace: Pace,
}

save_in_place!(['a, N] SearchControl<'a, N> {
    states, transitions, waiting, waiting_most, failures, executions, waiting_bytes,
    waiting_bytes_most, depth, reported_executions, estimator,
});

impl<'a, N: Copy> SearchControl<'a, N> {
    pub(crate) fn new(
        limits: Limits,
        observer: &'a dyn Observer,
        clock: Clock,
        restarts: u32,
    ) -> SearchControl<'a, N> {
        observer.follower().into_iter().for_each(Follower::restart);
        SearchControl {
            limits,
            observer,
            clock,
            restarts,
            sought: None,
            pauses: None,
            spill: None,
            learned: &|_| (),
            pausing: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            reason: Mutex::new(None),
            states: AtomicU64::new(0),
            transitions: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            waiting_bytes: AtomicUsize::new(0),
            waiting_most: AtomicU64::new(0),
            waiting_bytes_most: AtomicUsize::new(0),
            depth: AtomicU32::new(0),
            failures: AtomicU64::new(0),
            executions: AtomicU64::new(0),
            most_executions: AtomicU64::new(limits.executions.unwrap_or(u64::MAX)),
            reported_executions: AtomicU64::new(0),
            estimator: Mutex::default(),
            pace: Pace::default(),
        }
    }

    /// The follower that sees every step, if there is one.
    pub(crate) fn follower(&self) -> Option<&'a dyn Follower> {
        self.observer.follower()
    }

    /// Whether the remaining work is to be estimated.
    pub(crate) fn wants_estimates(&self) -> bool {
        self.observer.wants_estimates()
    }

    /// A part of a search over executions starts.
    pub(crate) fn begin(&self, round: Round) {
        self.estimator().begin(round);
    }

    /// Records `executions` that covered `weight` of the tree and deferred `queued` steps to the
    /// next round.
    pub(crate) fn add_progress(&self, executions: u64, weight: f64, queued: u64) {
        self.reported_executions.fetch_add(executions, Relaxed);
        self.estimator().record(executions, weight, queued);
    }

    fn estimator(&self) -> MutexGuard<'_, Estimator> {
        lock(&self.estimator)
    }

    /// A control without an observer.
    pub(crate) fn unobserved(limits: Limits) -> SearchControl<'static, N> {
        SearchControl::new(limits, &Silent, Clock::after(Duration::ZERO), 0)
    }

    /// A new control for the same search from the beginning. Its clock continues.
    pub(crate) fn restarted(&self) -> SearchControl<'a, N> {
        let sought = self.sought;
        let control = SearchControl::new(self.limits, self.observer, self.clock, self.restarts)
            .pausing(self.pauses, self.learned)
            .spilling(self.spill);
        SearchControl { sought, ..control }
    }

    /// Writes states that do not fit into memory to files in this directory.
    pub(crate) fn spilling(self, spill: Option<&'a Path>) -> SearchControl<'a, N> {
        SearchControl { spill, ..self }
    }

    /// Ignores all other failures.
    pub(crate) fn seeking(self, sought: Sought<'a>) -> SearchControl<'a, N> {
        SearchControl { sought: Some(sought), ..self }
    }

    /// Whether a failure counts.
    pub(crate) fn is_sought(&self, failure: &Failure) -> bool {
        self.sought.is_none_or(|sought| sought.is(failure))
    }

    /// Lets the search pause, and continue from a checkpoint.
    pub(crate) fn pausing(
        self,
        pauses: Option<&'a Pauses<'a>>,
        learned: Learned<'a>,
    ) -> SearchControl<'a, N> {
        let control = SearchControl { pauses, learned, ..self };
        if pauses.is_some_and(Pauses::is_damaged) {
            // What it finds would be discarded.
            control.stop(Stop::Limit(Limit::Interrupt));
        }
        control
    }

    /// Ends the search. The first reason stays, except that a restart replaces all others: then the
    /// results of this attempt are discarded.
    #[cold]
    pub(crate) fn stop(&self, stop: Stop<N>) {
        let mut reason = lock(&self.reason);
        match (*reason, stop) {
            (None, _) => *reason = Some(stop),
            (Some(Stop::Restart(_)), _) => {}
            (Some(_), Stop::Restart(_)) => *reason = Some(stop),
            (Some(_), _) => {}
        }
        self.stopped.store(true, Relaxed);
    }

    /// Takes over the reason why `other`, a repetition of this search, ended.
    pub(crate) fn adopt_reason(&self, other: &SearchControl<'_, N>) {
        *lock(&self.reason) = other.reason();
    }

    /// Ends the search for the reason on which all processes agreed, instead of its own.
    pub(crate) fn agree(&self, stop: Stop<N>) {
        *lock(&self.reason) = Some(stop);
        self.stopped.store(true, Relaxed);
    }

    /// Whether all workers have to end.
    #[inline(always)]
    pub(crate) fn stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// Why the search ended early, if it did.
    pub(crate) fn reason(&self) -> Option<Stop<N>> {
        *lock(&self.reason)
    }

    /// Counts `states` new states.
    #[inline]
    pub(crate) fn add_states(&self, states: u64) {
        let all = self.states.fetch_add(states, Relaxed) + states;
        if self.limits.states.is_some_and(|limit| all > limit) {
            self.stop(Stop::Limit(Limit::States));
        }
    }

    /// Sets the totals of all processes.
    pub(crate) fn set_totals(&self, states: u64, transitions: u64) {
        self.states.store(states, Relaxed);
        self.transitions.store(transitions, Relaxed);
    }

    /// `states` states are discarded: the search starts again, although the model has not grown.
    pub(crate) fn discard_states(&self, states: u64) {
        self.states.fetch_sub(states, Relaxed);
        self.follower().into_iter().for_each(Follower::restart);
    }

    /// Counts an execution that ended or was cut. Returns whether it is within the limit.
    #[inline]
    pub(crate) fn count_execution(&self) -> bool {
        let most = self.most_executions.load(Relaxed);
        most == u64::MAX || self.executions.fetch_add(1, Relaxed) < most
    }

    /// Sets a limit of `most` executions, of which `taken` were taken before, unless there is a
    /// lower limit. No worker may be running.
    pub(crate) fn limit_executions(&self, taken: u64, most: u64) {
        if most < self.most_executions.load(Relaxed) {
            self.executions.store(taken, Relaxed);
            self.most_executions.store(most, Relaxed);
        }
    }

    /// Whether the limit of executions is reached.
    #[inline(always)]
    pub(crate) fn has_all_executions(&self) -> bool {
        self.executions.load(Relaxed) >= self.most_executions.load(Relaxed)
    }

    /// `states` more states wait to be expanded, in `bytes` bytes.
    pub(crate) fn add_waiting(&self, states: u64, bytes: usize) {
        let waiting = self.waiting.fetch_add(states, Relaxed) + states;
        let held = self.waiting_bytes.fetch_add(bytes, Relaxed) + bytes;
        self.waiting_most.fetch_max(waiting, Relaxed);
        self.waiting_bytes_most.fetch_max(held, Relaxed);
    }

    /// `states` states, in `bytes` bytes, no longer wait.
    pub(crate) fn remove_waiting(&self, states: u64, bytes: usize) {
        self.waiting.fetch_sub(states, Relaxed);
        self.waiting_bytes.fetch_sub(bytes, Relaxed);
    }

    /// The most states that waited at one time, and the most bytes.
    pub(crate) fn most_waiting(&self) -> (u64, usize) {
        (self.waiting_most.load(Relaxed), self.waiting_bytes_most.load(Relaxed))
    }

    /// Counts a distinct failure.
    pub(crate) fn count_failure(&self) {
        self.failures.fetch_add(1, Relaxed);
    }

    /// Records a depth that was reached.
    pub(crate) fn reach_depth(&self, depth: u32) {
        self.depth.fetch_max(depth, Relaxed);
    }

    /// The steps or states between two polls: at most `most`, less if the keeper of checkpoints
    /// asks for it.
    pub(crate) fn poll_interval(&self, most: u64) -> u64 {
        self.pauses.map_or(most, |pauses| pauses.keeper().poll_interval().clamp(1, most))
    }

    /// Whether all workers have to pause: to stop where their remaining work is plain data.
    #[inline(always)]
    pub(crate) fn is_pausing(&self) -> bool {
        self.pausing.load(Relaxed)
    }

    /// Writes a checkpoint when all workers have paused; `rest` writes their remaining work. The
    /// workers continue unless the search is stopped now.
    #[cold]
    pub(crate) fn pause(&self, rest: impl Fn(&mut Writer<'_>)) {
        let pauses = self.pauses.expect("a search pauses if it was asked to");
        self.pausing.store(false, Relaxed);
        let limit = pauses.limit();
        pauses.keep(self.clock.elapsed(), self.learned, &|to| {
            self.save_contents(to);
            rest(to);
        });
        if let Some(limit) = limit {
            self.stop(Stop::Limit(limit));
        }
    }

    /// Whether the search continues from a checkpoint that it has not read yet.
    pub(crate) fn is_resuming(&self) -> bool {
        self.pauses.is_some_and(Pauses::is_resuming)
    }

    /// Pauses the workers of this process because another process asks for it.
    pub(crate) fn request_pause(&self) {
        self.pausing.store(true, Relaxed);
    }

    /// The workers of this process continue after a pause.
    pub(crate) fn end_pause(&self) {
        self.pausing.store(false, Relaxed);
        self.pauses.and_then(Pauses::limit);
    }

    /// The limit at which this process wants to end when it has paused.
    pub(crate) fn pending_limit(&self) -> Option<Limit> {
        self.pauses.and_then(Pauses::pending_limit)
    }

    /// Completes a checkpoint of several processes when all `shards` are kept; `rest` writes the
    /// sums of all processes.
    pub(crate) fn commit(&self, epoch: u64, shards: usize, rest: impl Fn(&mut Writer<'_>)) {
        let pauses = self.pauses.expect("a search pauses if it was asked to");
        pauses.commit((epoch, shards), self.clock.elapsed(), self.learned, &rest);
    }

    /// If the search continues from a checkpoint, `read` reads what [`SearchControl::pause`] has
    /// written. Stops the search if the data is damaged.
    pub(crate) fn resume<T>(
        &self,
        read: impl FnOnce(&mut Reader) -> Result<T, Damaged>,
    ) -> Option<T> {
        let rest = self.resume_part(|from| {
            self.load_contents(from)?;
            read(from)
        });
        rest.filter(|_| self.is_resumed())
    }

    /// Reads a part of what was written. [`SaveInPlace::load_contents`](crate::codec::SaveInPlace)
    /// must be called first, [`SearchControl::is_resumed`] last.
    pub(crate) fn resume_part<T>(
        &self,
        read: impl FnOnce(&mut Reader) -> Result<T, Damaged>,
    ) -> Option<T> {
        let pauses = self.pauses.filter(|pauses| pauses.is_resuming())?;
        let part = pauses.read(read);
        if part.is_none() {
            self.stop(Stop::Limit(Limit::Interrupt));
        }
        part
    }

    /// Whether the whole checkpoint was read and is not damaged.
    pub(crate) fn is_resumed(&self) -> bool {
        let whole = self.pauses.is_some_and(|pauses| {
            pauses.is_read();
            !pauses.is_damaged()
        });
        if !whole {
            self.stop(Stop::Limit(Limit::Interrupt));
        }
        whole
    }

    /// Whether the search ends after this pause.
    pub(crate) fn is_ending(&self) -> bool {
        self.is_pausing() && self.pauses.is_some_and(Pauses::is_ending)
    }

    /// Checkpoints of the layers around the search.
    pub(crate) fn pauses(&self) -> Option<&'a Pauses<'a>> {
        self.pauses
    }

    /// Ends the search now if it was to end at its next pause.
    pub(crate) fn end_now(&self) {
        if let Some(limit) = self.pauses.and_then(Pauses::limit) {
            self.stop(Stop::Limit(limit));
        }
    }

    /// Checks the limits and reports to the observer. Every worker calls this every few thousand
    /// states.
    #[cold]
    pub(crate) fn poll(&self, transitions: u64, store: &dyn Visited) {
        self.poll_bytes(transitions, store.bytes());
    }

    /// The same for a search whose tables need `store_bytes`.
    #[cold]
    pub(crate) fn poll_bytes(&self, transitions: u64, store_bytes: usize) {
        let transitions = self.transitions.fetch_add(transitions, Relaxed) + transitions;
        let elapsed = self.clock.elapsed();
        let (round, estimate) = {
            let estimator = self.estimator();
            (estimator.round(), estimator.estimate())
        };
        let executions = self.reported_executions.load(Relaxed);
        let allowed = self.limits.executions.map(|limit| limit.saturating_sub(executions));
        let estimate =
            estimate.map(|estimate| allowed.map_or(estimate, |allowed| estimate.at_most(allowed)));
        self.observer.progress(&Progress {
            executions,
            bound: if let Round::Tree { bound, .. } = round { bound } else { None },
            estimate,
            states: self.states.load(Relaxed),
            transitions,
            depth: self.depth.load(Relaxed),
            frontier: self.waiting.load(Relaxed),
            failures: self.failures.load(Relaxed),
            store_bytes,
            elapsed,
            restarts: self.restarts,
        });
        let tables = store_bytes + self.waiting_bytes.load(Relaxed);
        let limit = if self.observer.interrupted() {
            Some(Limit::Interrupt)
        } else if self.limits.time.is_some_and(|limit| elapsed >= limit) {
            Some(Limit::Time)
        } else if self.limits.memory.is_some_and(|limit| tables > limit)
            || self.limits.resident.is_some_and(|limit| self.pace.exceeds(limit, elapsed))
        {
            Some(Limit::Memory)
        } else {
            None
        };
        match (self.pauses, limit) {
            (None, None) => {}
            (None, Some(limit)) => self.stop(Stop::Limit(limit)),
            // The search pauses before it ends, so that the last checkpoint is from its end.
            (Some(pauses), Some(limit)) => {
                pauses.end_at(limit);
                self.pausing.store(true, Relaxed);
            }
            (Some(pauses), None) if pauses.keeper().is_due() => self.pausing.store(true, Relaxed),
            (Some(_), None) => {}
        }
    }
}

/// Decides when a worker [polls](SearchControl::poll).
pub(crate) struct PollTimer {
    expanded: u64,
    transitions: u64,
    poll_interval: u64,
}

/// States that a worker expands between two polls.
const POLL_INTERVAL: u64 = 1 << 12;

impl PollTimer {
    /// A timer of a worker that has already expanded `expanded` states and taken `transitions`
    /// steps.
    pub(crate) fn new(control: &SearchControl, expanded: u64, transitions: u64) -> PollTimer {
        PollTimer { expanded, transitions, poll_interval: control.poll_interval(POLL_INTERVAL) }
    }

    /// Whether a poll is due.
    #[inline(always)]
    pub(crate) fn is_due(&self, expanded: u64) -> bool {
        expanded - self.expanded >= self.poll_interval
    }

    /// The poll is done. Returns the number of steps since the last one.
    pub(crate) fn restart(&mut self, expanded: u64, transitions: u64) -> u64 {
        let steps = transitions - self.transitions;
        *self = PollTimer { expanded, transitions, ..*self };
        steps
    }

    /// Polls if it is due. `expanded` and `transitions` are the worker's totals.
    #[inline(always)]
    pub(crate) fn poll_if_due(
        &mut self,
        expanded: u64,
        transitions: u64,
        control: &SearchControl,
        store: &dyn Visited,
    ) {
        if self.is_due(expanded) {
            self.poll(expanded, transitions, control, store);
        }
    }

    /// Polls now. A worker calls this when it has
    /// [seen](crate::engine::store::Lookup::take_growth) the store grow: the parts of a store grow
    /// at about the same time, so that all of them could double between two polls.
    #[cold]
    pub(crate) fn poll(
        &mut self,
        expanded: u64,
        transitions: u64,
        control: &SearchControl,
        store: &dyn Visited,
    ) {
        control.poll(self.restart(expanded, transitions), store);
    }
}

/// The failure that a simpler schedule has to show.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Sought<'a> {
    /// The same error as this failure.
    Error(&'a Failure),
    /// This failure: other failures of the same error are separate findings.
    Exactly(&'a Failure),
}

impl Sought<'_> {
    /// Whether `failure` shows it.
    pub(crate) fn is(self, failure: &Failure) -> bool {
        match self {
            Sought::Error(error) => failure.is_same_error(error),
            Sought::Exactly(sought) => failure == sought,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_memory_is_for_the_store_and_for_what_waits() {
        let limits = Limits { memory: Some(1000), ..Limits::default() };
        let stops = |waiting: usize, taken: usize, store: usize| {
            let control: SearchControl<'_> = SearchControl::unobserved(limits);
            control.add_waiting(1, waiting);
            control.remove_waiting(1, taken);
            control.poll_bytes(0, store);
            control.reason() == Some(Stop::Limit(Limit::Memory))
        };
        assert!(!stops(0, 0, 1000) && !stops(600, 0, 400) && !stops(1000, 0, 0));
        assert!(stops(0, 0, 1001) && stops(601, 0, 400) && stops(1001, 0, 0));
        assert!(!stops(2000, 1600, 600), "taken states no longer wait");
    }
}
