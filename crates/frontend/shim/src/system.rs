//! An execution of a closure as a system: it can be stepped and queried, and is rewound by starting
//! the closure again.
//!
//! Rewinding only shortens the recorded path. The next step starts the closure again and repeats
//! the recorded steps, without computing what the threads would do.

mod ahead;
mod finish;
mod progress;
mod repeats;
mod weak;
mod witness;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, Location as Site, catch_unwind};
use std::sync::Arc;

use preempt_replay::{Lookahead, Mode, OpKind, Outcome, StartedStep, State};
use preempt_system::memory::GraphStep;
use preempt_system::{
    Choice, Failure, FailureKind, Fingerprint, Location, LocationKind, Pending, Status, Swap,
    System, ThreadId, ThreadSet,
};

use crate::alloc;
use crate::narrator::Narrator;
use crate::program::{Assumption, Closure};
use crate::runtime::restart::RestartReason;
use crate::runtime::{Runtime, coroutine, site, with};
use crate::thread::spawn::end_locals;
use crate::watchdog::Heartbeat;

/// Where the coroutines are, compared with the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// They are at the end of the path.
    Live,
    /// The path was cut back. Before the next step the closure is started again.
    Rewound,
    /// A thread ran ahead of the recording. The closure is started again as well, and its threads
    /// cannot run to their ends before: the recording does not say where they are.
    Adrift,
    /// The test did not repeat its steps, so no thread can step.
    Broken,
}

/// The number of times that a search starts over because addresses have changed while it recorded
/// values of atomics. Then it gives up recording them: a test may leave more memory behind in every
/// execution.
const MOST_MOVES: u32 = 8;

/// The effects of a step on the threads.
struct Performed {
    step: StartedStep,
    /// The threads that it started.
    started: ThreadSet,
    /// Whether the thread spins after it, if the step is new.
    spins: bool,
    /// Whether the code of the thread has ended.
    ended: bool,
}

/// An execution.
pub(crate) struct Execution<'p> {
    program: &'p Closure<'p>,
    body: &'p (dyn Fn() + Sync),
    heartbeat: Arc<Heartbeat>,
    /// Owned by this execution; a pointer, since coroutines reach it too.
    runtime: *mut Runtime,
    /// The steps of the current execution.
    path: Vec<Choice>,
    phase: Phase,
    /// The failure before the first step.
    failure: Option<Box<Failure>>,
    /// The thread that took the last step.
    moved: ThreadId,
    /// The uses of freed memory that were checked.
    tried: witness::CheckedUses,
    /// The number of steps for which an abandoned execution is continued.
    rest: usize,
    /// Whether loops end by themselves, by the pasts of their threads.
    endless: HashMap<Fingerprint, Lookahead>,
    /// The states in which operations took turns.
    turns: progress::TurnStates,
    /// The states that were compared.
    visited: repeats::Visited,
    /// Under weak memory, the names of the execution after each of its steps.
    names: Vec<Fingerprint>,
    /// Whether the memory that the program allocates is known.
    sees_heap: bool,
    pub(crate) narrator: Narrator,
}

impl<'p> Execution<'p> {
    pub(crate) fn new(
        program: &'p Closure<'p>,
        body: &'p (dyn Fn() + Sync),
        runtime: Runtime,
    ) -> Result<Execution<'p>, RestartReason> {
        let heartbeat = program.watched.begin();
        let runtime_steps = runtime.options.max_steps;
        let runtime =
            Box::into_raw(Box::new(Runtime { heartbeat: Some(heartbeat.clone()), ..runtime }));
        let mut execution = Execution {
            program,
            body,
            heartbeat,
            runtime,
            path: Vec::new(),
            phase: Phase::Live,
            failure: None,
            moved: ThreadId::new(0),
            tried: Vec::new(),
            rest: runtime_steps,
            endless: HashMap::new(),
            turns: progress::TurnStates::new(),
            visited: repeats::Visited::default(),
            names: Vec::new(),
            sees_heap: true,
            narrator: Narrator::default(),
        };
        execution.sees_heap = alloc::is_global(|| execution.sees_allocations());
        let sees_heap = execution.sees_heap;
        let runtime = execution.runtime();
        let is_steady = runtime.requirements.moved < MOST_MOVES;
        runtime.can_follow_values = sees_heap && is_steady && runtime.weak_memory.is_none();
        if runtime.weak_memory.is_some() {
            runtime.recording.count_attempts_as_writes();
        }
        runtime.follows_values = runtime.can_follow_values && runtime.requirements.exchanges;
        execution.begin()?;
        execution.runtime().recording.ready();
        execution.failure = execution.runtime().verdict.failure.take();
        Ok(execution)
    }

    /// The runtime, while no coroutine runs.
    pub(crate) fn runtime(&mut self) -> &mut Runtime {
        // SAFETY: it lives as long as the execution; the reference ends before a coroutine runs,
        // which needs `self` too.
        unsafe { &mut *self.runtime }
    }

    pub(crate) fn read(&self) -> &Runtime {
        // SAFETY: as above.
        unsafe { &*self.runtime }
    }

    /// Whether the global allocator of the process hands out memory of this execution, which has
    /// not begun.
    fn sees_allocations(&mut self) -> bool {
        self.runtime().reset();
        let sees = coroutine::sees_allocations(self.runtime);
        // Removes all traces of the trial.
        self.runtime().arena.end(false);
        sees
    }

    /// The number of steps of one period, if the execution is known to repeat from here on.
    fn period(&self) -> Option<usize> {
        self.visited.repeats.filter(|&(at, _)| at == self.path.len()).map(|(_, period)| period)
    }

    /// Starts the closure: all threads arrive at their first operations.
    fn begin(&mut self) -> Result<(), RestartReason> {
        self.runtime().reset();
        // The thread that moved last in the execution before may not be started in this one.
        self.moved = ThreadId::new(0);
        // SAFETY: the coroutine ends before the execution does, and that ends before the closure
        // does.
        let body: &'static (dyn Fn() + Sync) = unsafe {
            std::mem::transmute::<&(dyn Fn() + Sync), &'static (dyn Fn() + Sync)>(self.body)
        };
        let job = move || {
            let result = catch_unwind(AssertUnwindSafe(body));
            if let Err(payload) = &result {
                with(|runtime| runtime.panicked(&**payload));
            }
            end_locals();
        };
        let runtime = self.runtime();
        coroutine::create(runtime, 0, job);
        self.run_local(0, 0, None);
        let started = self.run_spawned();
        let runtime = self.runtime();
        runtime.recording.start(started);
        self.fits()?;
        let runtime = self.read();
        if !runtime.coroutines.has_suspended() || !runtime.verdict.panics.is_empty() {
            self.conclude();
        }
        Ok(())
    }

    /// Lets a thread that has performed `done` operations run to its next one. `site` is that of
    /// its last one. Returns whether its code has ended.
    #[inline(always)]
    fn run_local(
        &mut self,
        slot: usize,
        done: usize,
        site: Option<&'static Site<'static>>,
    ) -> bool {
        self.runtime().done = done as u32;
        self.heartbeat.begin(slot, site);
        let ended = coroutine::resume(self.runtime, slot);
        self.heartbeat.end();
        if ended {
            self.runtime().ended(slot);
        }
        ended
    }

    /// Checks whether the search can continue without starting over.
    #[inline]
    fn fits(&self) -> Result<(), RestartReason> {
        self.read().restart.map_or(Ok(()), Err)
    }

    /// Lets threads that were just spawned run to their first operations. Done even if the search
    /// has to start over, so that all started threads can run to their ends.
    fn run_spawned(&mut self) -> ThreadSet {
        let mut started = ThreadSet::EMPTY;
        // If their parent was taken out, they may wait for it without an end.
        self.report_stuck();
        while let Some((slot, job)) = self.next_spawned() {
            let runtime = self.runtime();
            coroutine::create(runtime, slot, job);
            self.run_local(slot, 0, None);
            started.insert(ThreadId::new(slot));
        }
        started
    }

    fn next_spawned(&mut self) -> Option<(usize, coroutine::Job)> {
        let jobs = &mut self.runtime().spawned_jobs;
        (!jobs.is_empty()).then(|| jobs.remove(0))
    }

    /// Takes a step that was not taken before.
    #[inline(always)]
    fn advance_live(&mut self, choice: Choice) -> Result<(), RestartReason> {
        let Performed { step, started, spins, ended } = self.perform::<false>(choice)?;
        let recording = &self.read().recording;
        let is_stale =
            spins && recording.history(choice.thread).spins_on_stale_values_after(step.count());
        if is_stale {
            self.rely_on_visibility(choice.thread);
        } else if spins {
            self.look_ahead(choice.thread)?;
            self.compare_states()?;
        } else if recording.yields() && recording.history(choice.thread).yields_and_writes() {
            self.rely_on_yield(choice.thread);
        }
        let runtime = self.runtime();
        runtime.recording.note_started(step, started);
        // Leaks are checked when the last thread ends, and then no other one is suspended; before
        // that, only panics matter.
        if ended && !runtime.coroutines.has_suspended() || !runtime.verdict.panics.is_empty() {
            self.conclude();
        }
        if self.read().harness.is_some() {
            self.judge_progress()?;
        }
        let runtime = self.read();
        if runtime.options.refuse_spinning && !runtime.recording.only_spinning().is_empty() {
            return Err(RestartReason::Fairness);
        }
        Ok(())
    }

    /// Takes a step of the coroutines, for the first time or `AGAIN`.
    #[inline(always)]
    fn perform<const AGAIN: bool>(&mut self, choice: Choice) -> Result<Performed, RestartReason> {
        let (slot, alternative) = (choice.thread.index(), choice.alternative);
        self.moved = choice.thread;
        let runtime = self.runtime();
        runtime.outcome = Outcome { alternative, ..Outcome::default() };
        let (step, reply) = if AGAIN {
            runtime.recording.start_repeated_step(choice)
        } else {
            runtime.recording.start_step(choice)
        };
        let site = site::of(step.site());
        match reply {
            Ok(reply) => {
                runtime.reply = reply;
                if runtime.weak_memory.is_some() {
                    weak::synchronise(runtime, choice, step, reply);
                } else if runtime.requirements.races {
                    let op = *runtime.recording.op(step);
                    runtime.synchronise(choice.thread, &op, alternative, reply);
                }
            }
            Err(misuse) => runtime.fail(FailureKind::Runtime, misuse.to_string(), Some(site)),
        }
        // The next step of a thread whose code has returned is its end.
        let ended = !runtime.coroutines.is_suspended(slot)
            || self.run_local(slot, step.count(), Some(site));
        let started =
            if self.read().spawned_jobs.is_empty() { ThreadSet::EMPTY } else { self.run_spawned() };
        let runtime = self.runtime();
        let spins = if AGAIN {
            runtime.recording.end_repeated_step(step, started);
            false
        } else {
            runtime.recording.end_step(step, &mut runtime.outcome, started)
        };
        // The step is complete, so the execution can run to its end even if the search has to
        // start over.
        self.fits()?;
        Ok(Performed { step, started, spins, ended })
    }

    /// Checks, after a step or the start, for errors that show only then: panics that are not
    /// joined, and leaks.
    fn conclude(&mut self) {
        let runtime = self.runtime();
        if runtime.verdict.panics.iter().any(|panic| !panic.seen) {
            runtime.judge_panics();
        }
        if runtime.recording.mode() == Mode::Record
            && runtime.verdict.failure.is_none()
            && runtime.has_all_ended()
        {
            if !runtime.statics.is_empty() {
                coroutine::end_statics(self.runtime);
            }
            self.runtime().judge_leaks();
        }
    }

    /// Starts the closure again and repeats the steps of the path.
    fn catch_up(&mut self) -> Result<(), RestartReason> {
        let telling = self.runtime().notes.step.take();
        self.abandon();
        if !self.read().stuck.0.is_empty() {
            return Err(RestartReason::Stuck);
        }
        if self.read().addresses_changed && self.read().follows_values {
            return Err(RestartReason::Moved(self.read().requirements.moved + 1));
        }
        self.phase = Phase::Rewound;
        self.visited.begin();
        self.runtime().coroutines.clean = self.visited.has_marks();
        self.runtime().recording.set_mode(Mode::Repeat);
        self.begin()?;
        self.runtime().compares_states = self.visited.has_marks();
        for at in 0..self.path.len() {
            if self.read().verdict.is_nondeterministic() {
                break;
            }
            let runtime = self.runtime();
            (runtime.verdict.failure, runtime.step) = (None, at as u32 + 1);
            self.perform::<true>(self.path[at])?;
            if !self.read().verdict.panics.is_empty() {
                self.conclude();
            }
            if self.visited.is_mark(at + 1) {
                self.compare(at + 1);
            }
        }
        let runtime = self.runtime();
        runtime.recording.ask_all();
        runtime.recording.set_mode(Mode::Record);
        runtime.notes.step = telling;
        if !runtime.verdict.is_nondeterministic() {
            runtime.verdict.failure = None;
        }
        self.phase = Phase::Live;
        Ok(())
    }
}

impl System for Execution<'_> {
    type Need = RestartReason;
    type State = State;

    fn threads(&self) -> usize {
        self.read().threads.len()
    }

    #[inline]
    fn ask(&mut self, thread: ThreadId, pending: &mut Pending) -> Result<(), RestartReason> {
        if self.phase == Phase::Broken {
            pending.set_nothing(Status::Ended);
            return Ok(());
        }
        if self.read().weak_memory.is_some() {
            return self.ask_weak(thread, pending);
        }
        self.read().recording.ask_into(thread, pending);
        Ok(())
    }

    fn step(&mut self, choice: Choice) -> Result<Option<Box<Failure>>, RestartReason> {
        if self.phase != Phase::Live {
            self.catch_up()?;
            // Suspects of repeated steps were checked when the steps were new.
            self.runtime().met.suspects.clear();
        }
        self.path.push(choice);
        self.runtime().step = self.path.len() as u32;
        if self.read().verdict.failure.is_none() {
            self.advance_live(choice)?;
            if !self.read().met.suspects.is_empty() {
                self.judge_frees()?;
            }
            if self.path.len() >= self.read().options.max_steps {
                self.runtime().judge_length();
            }
        }
        let failure = self.runtime().verdict.failure.take();
        if failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Nondeterminism) {
            self.phase = Phase::Broken;
        }
        if self.read().weak_memory.is_some() {
            self.record_name()?;
        }
        Ok(failure)
    }

    fn unaffected(&self) -> ThreadSet {
        match self.phase {
            Phase::Broken => ThreadSet::EMPTY,
            // A step may change the alternatives of any thread.
            _ if self.read().weak_memory.is_some() => ThreadSet::EMPTY,
            _ => self.read().recording.unaffected(),
        }
    }

    fn failure(&self) -> Option<&Failure> {
        self.failure.as_deref()
    }

    fn has_failed(&self) -> bool {
        self.is_cut()
    }

    fn is_cut(&self) -> bool {
        self.path.len() >= self.read().options.max_steps
    }

    fn rewind(&mut self, len: usize) {
        self.path.truncate(len);
        self.names.truncate(len);
        self.visited.rewind(len);
        if self.phase == Phase::Live {
            self.phase = Phase::Rewound;
        }
    }

    fn words(&self) -> Option<&[u64]> {
        None
    }

    fn name(&self) -> Option<Fingerprint> {
        self.read().weak_memory.as_ref()?;
        Some(
            self.path
                .len()
                .checked_sub(1)
                .map_or_else(Fingerprint::default, |last| self.names[last]),
        )
    }

    fn graph_step(&mut self, thread: ThreadId) -> Result<GraphStep, RestartReason> {
        self.describe_step(thread)
    }

    fn affects_all(&self) -> bool {
        self.read().weak_memory.is_some()
    }

    fn returns_to(&self, len: usize) -> bool {
        self.period().is_some_and(|period| len + period == self.path.len())
    }

    fn initially_running(&self) -> Option<ThreadId> {
        Some(ThreadId::new(0))
    }

    fn livelock_rounds(&self) -> u32 {
        // A thread that is held back gets turns until its state repeats.
        if self.period().is_some() { 0 } else { u32::MAX }
    }

    fn is_ending(&self, thread: ThreadId) -> bool {
        self.read().recording.next_op(thread).is_some_and(|op| matches!(op.kind, OpKind::Finish))
    }

    fn is_between_operations(&self, thread: ThreadId) -> bool {
        self.read().recording.last_op(thread).is_some_and(|op| matches!(op.kind, OpKind::Return))
    }

    fn is_discarded(&self) -> bool {
        self.read().recording.is_discarded()
    }

    fn judge_stuck(&mut self, failure: Failure) -> Option<Failure> {
        if self.is_discarded() {
            return None;
        }
        match self.read().harness.clone() {
            Some(harness) => harness.judge_stuck(failure),
            None => Some(failure),
        }
    }

    fn location_kind(&self, location: Location) -> LocationKind {
        self.read().recording.location_kind(location)
    }

    fn location_name(&self, location: Location) -> String {
        self.read().object_name(location.0)
    }

    fn initial(&self) -> State {
        self.read().recording.initial()
    }

    fn advance(&mut self, state: &mut State, choice: Choice) -> Result<(), RestartReason> {
        self.read().recording.advance(state, choice);
        Ok(())
    }

    fn swap(&self, earlier: (ThreadId, usize), later: (ThreadId, usize)) -> Swap {
        self.read().recording.swap(earlier, later)
    }

    fn ask_at(&mut self, state: &State, thread: ThreadId) -> Result<Pending, RestartReason> {
        Ok(self.read().recording.ask_at(state, thread))
    }
}

impl Drop for Execution<'_> {
    fn drop(&mut self) {
        self.abandon();
        // SAFETY: it came from a box, and no coroutine runs any more.
        let runtime = unsafe { Box::from_raw(self.runtime) };
        self.program.watched.end(&self.heartbeat);
        if let Some(site) = runtime.limited_exchange {
            self.program.assumptions.add(Assumption::SteadyExchange(site));
        }
        if let Some(site) = runtime.overtaking {
            self.program.assumptions.add(Assumption::ReadersFirst(site));
        }
        self.program.record_used(runtime.used());
        self.program.keep(runtime.recording.into_names());
    }
}
