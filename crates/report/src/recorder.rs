//! Executes a schedule once and records everything that reports show of it.
//!
//! [`record`] moves a cursor along a schedule. At every step it asks the execution under the cursor
//! ([`Narrate`]) for the description, the values and the objects used, and the cursor for the
//! enabled threads; from these it derives preemptions, happens-before arrows, and the origins of
//! the values that a failing step read. All formats are made from the resulting [`Trace`]; none of
//! them executes anything.

use std::fmt;

use preempt_explore::cursor::Cursor;
use preempt_explore::replay::failures_at_end;
use preempt_system::{
    Capacity, Choice, Describe, Explanation, Failure, FailureKind, HbGraph, Location, Model,
    Narrate, Narration, Pending, Schedule, Status, ThreadId, Use,
};

use crate::origin::Origin;
use crate::trace::{NarratedStep, ThreadPosition, Trace};
use crate::value_history::Recorder;

/// The meaning of the thread numbers of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbering {
    /// Thread slots, as in the findings of a search.
    Slots,
    /// Numbers that do not depend on a search ([`Narrate::number`]), as in files and tokens.
    Portable,
}

/// Whether a switch away from a thread that spins counts as a preemption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fairness {
    /// It counts if the thread could have moved.
    Ignored,
    /// It does not count: [`Cursor::fair`].
    Respected,
}

/// The execution of a schedule.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// The steps that were taken. Its failure and its origins are added by
    /// [`Replayed::explain`].
    pub trace: Trace,
    /// The failures that show at the end; a failed step comes first.
    pub failures: Vec<Failure>,
    /// The failures before the end, each with the number of steps after which it shows.
    pub earlier: Vec<(usize, Failure)>,
    /// The first step that could not be taken, if there is one. The trace ends before it.
    pub misfit: Option<Misfit>,
    /// The shared variables and objects that each step used.
    uses: Vec<Vec<Use>>,
    /// For each step, the location and the store that it read under weak memory.
    read_from: Vec<Option<(Location, Option<usize>)>>,
}

/// A step of a schedule that the program cannot take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misfit {
    /// The number of the step, from 0.
    pub step: usize,
    /// The step, with the thread as the schedule numbers it.
    pub choice: Choice,
    /// The name of the thread, if there is such a thread.
    pub thread: Option<String>,
    /// Why its step cannot be taken.
    pub reason: Reason,
    /// The names of the threads that can move instead.
    pub movers: Vec<String>,
}

/// Why a thread cannot take a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The execution has no such thread.
    NoThread,
    /// The thread has ended or was not started.
    Ended,
    /// The thread is blocked in this operation.
    Blocked(Narration),
    /// The thread has fewer alternatives in this operation.
    NoAlternative(Narration),
}

impl fmt::Display for Misfit {
    /// The end of a sentence that names the step: "one of `t1`, which has ended".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.thread {
            Some(name) => write!(f, "one of `{name}`, which ")?,
            None => write!(f, "one of thread {}, which ", self.choice.thread.index())?,
        }
        let described = |f: &mut fmt::Formatter<'_>, next: &Narration| {
            if let Some(site) = &next.site {
                write!(f, " at {site}")?;
            }
            write!(f, ": {}", next.source)?;
            match &next.effects[..] {
                [] => Ok(()),
                effects => write!(f, " // {}", effects.join(", ")),
            }
        };
        match &self.reason {
            Reason::NoThread => f.write_str("does not exist"),
            Reason::Ended => f.write_str("has ended or was not started"),
            Reason::Blocked(next) => {
                f.write_str("has to wait")?;
                described(f, next)
            }
            Reason::NoAlternative(next) => {
                write!(f, "has no alternative {}", self.choice.alternative)?;
                described(f, next)
            }
        }
    }
}

impl Misfit {
    /// The names of the threads that can move instead, as a list.
    pub fn movers(&self) -> String {
        if self.movers.is_empty() { "none".to_owned() } else { self.movers.join(", ") }
    }
}

/// Executes `schedule` as far as possible from the beginning, where `cursor` must be. Afterwards
/// the cursor is at the end.
pub fn record<S: Narrate>(
    cursor: &mut Cursor<S>,
    schedule: &Schedule,
    numbering: Numbering,
) -> Result<Replayed, S::Need> {
    assert!(cursor.is_empty(), "a schedule begins at the beginning");
    let (mut steps, mut uses, mut earlier) = (Vec::new(), Vec::new(), Vec::new());
    let mut read_from = Vec::new();
    let (mut history, mut happens_before) = (Recorder::default(), HappensBefore::new(cursor));
    let mut failed = cursor.system().failure().cloned().map(Box::new);
    let mut misfit = None;
    let mut values = cursor.system_mut().values();
    history.note(&values);
    for &asked in schedule.steps() {
        let thread = match numbering {
            Numbering::Slots => Some(asked.thread).filter(|at| at.index() < cursor.threads()),
            Numbering::Portable => cursor.system().numbered(asked.thread),
        };
        let choice = thread.map(|thread| Choice { thread, ..asked });
        let Some(choice) = choice.filter(|&choice| cursor.can(choice)) else {
            misfit = Some(misfit_of(cursor, steps.len(), asked, thread));
            break;
        };
        let mut found: Vec<Failure> = failed.take().into_iter().map(|failure| *failure).collect();
        found.extend(cursor.invariant().err().map(|failure| *failure));
        earlier.extend(found.into_iter().map(|failure| (steps.len(), failure)));
        // A fair cursor widens the footprint of a thread that spins; the system does not.
        let mut pending = Pending::vacant();
        cursor.system_mut().ask(choice.thread, &mut pending)?;
        let has_choice = choice.alternative > 0 || pending.footprints.len() > 1;
        let enabled = cursor.enabled();
        let preempts =
            cursor.running().filter(|_| cursor.preemptions().would_preempt(choice.thread, enabled));
        cursor.system_mut().prepare(choice);
        failed = cursor.step(choice)?;
        let narrated = cursor.system_mut().narrate(choice);
        happens_before.step(cursor, choice, &pending);
        values = cursor.system_mut().values();
        history.note(&values);
        steps.push(NarratedStep {
            thread: choice.thread,
            number: cursor.system().number(choice.thread),
            alternative: has_choice.then_some(choice.alternative),
            narration: narrated.narration,
            label: narrated.label,
            nesting: narrated.nesting,
            preempts,
            stale: narrated.stale,
        });
        uses.push(narrated.uses);
        read_from.push(narrated.read_from);
    }
    let failures = failures_at_end(cursor, failed);
    let (mut waiting, mut next) = (Vec::new(), Vec::new());
    for thread in (0..cursor.threads()).map(ThreadId::new) {
        let list = match cursor.pending(thread).status {
            Status::Blocked | Status::Resting => &mut waiting,
            Status::Enabled | Status::Spinning => &mut next,
            Status::Vacant | Status::Ended => continue,
        };
        let narration = cursor.system_mut().narrate_next(Choice::of(thread));
        list.push(ThreadPosition { thread, narration });
    }
    let cycle = if misfit.is_none() { schedule.cycle().len() } else { 0 };
    let names = (0..cursor.threads()).map(|slot| cursor.system().thread_name(ThreadId::new(slot)));
    let shared = values.into_iter().filter(|variable| variable.owner.is_none());
    let trace = Trace {
        names: names.collect(),
        steps,
        cycle,
        arrows: happens_before.graph.arrows(),
        values: history.finish(),
        failure: None,
        waiting,
        next,
        origins: Vec::new(),
        variables: shared.map(|variable| (variable.name, variable.value)).collect(),
    };
    Ok(Replayed { trace, failures, earlier, misfit, uses, read_from })
}

fn misfit_of<S: Narrate>(
    cursor: &mut Cursor<S>,
    step: usize,
    asked: Choice,
    thread: Option<ThreadId>,
) -> Misfit {
    let status = thread.map(|thread| cursor.pending(thread).status);
    let movers: Vec<ThreadId> = cursor.enabled().iter().collect();
    let system = cursor.system_mut();
    let mut next = |thread: Option<ThreadId>| {
        let thread = thread.expect("a thread with a status exists");
        system.narrate_next(Choice::of(thread))
    };
    let reason = match status {
        None => Reason::NoThread,
        Some(Status::Ended | Status::Vacant) => Reason::Ended,
        Some(Status::Blocked | Status::Resting) => Reason::Blocked(next(thread)),
        Some(Status::Enabled | Status::Spinning) => Reason::NoAlternative(next(thread)),
    };
    let name = |thread| cursor.system().thread_name(thread);
    Misfit {
        step,
        choice: asked,
        thread: thread.map(name),
        reason,
        movers: movers.into_iter().map(name).collect(),
    }
}

impl Replayed {
    /// Makes `failure` the failure of the trace, with the origins of the values that explain it.
    /// The cursor is at the end of the execution.
    pub fn explain<S: Narrate>(&mut self, cursor: &mut Cursor<S>, failure: Failure) {
        let steps = &self.trace.steps;
        let own = |thread: ThreadId| {
            let own = steps.iter().enumerate().filter(move |(_, step)| step.thread == thread);
            own.map(|(at, _)| at)
        };
        let mut reading: Vec<usize> = Vec::new();
        let mut state: Vec<Use> = Vec::new();
        match cursor.system_mut().explanation(&failure) {
            Explanation::Nothing => {}
            Explanation::LastStep => {
                reading.extend(steps.last().into_iter().flat_map(|s| own(s.thread)))
            }
            Explanation::FirstSteps { thread, steps } => reading.extend(own(thread).take(steps)),
            Explanation::State(uses) => state = uses,
        }
        let read = |used: &Use| used.reads;
        let last = reading.into_iter().rev().find(|&at| self.uses[at].iter().any(read));
        let of = last.map_or(&state, |at| &self.uses[at]);
        let before = last.unwrap_or(self.trace.steps.len());
        let origins = of.iter().filter(|used| used.reads).map(|used| Origin {
            variable: used.name.clone(),
            value: used.value.clone(),
            read: last,
            written: match last.and_then(|at| self.read_from[at]) {
                Some((location, store)) if location == used.location => store,
                _ => self.last_write(used.location, before),
            },
        });
        self.trace.origins = origins.collect();
        self.trace.failure = Some(failure);
    }

    /// The failures of the last step and of the last state. Races and livelocks are failures of the
    /// whole execution.
    pub fn failures_of_state(&self) -> impl Iterator<Item = &Failure> {
        let whole = |kind| matches!(kind, FailureKind::Race | FailureKind::Livelock);
        self.failures.iter().filter(move |failure| !whole(failure.kind))
    }

    /// The last of the first `steps` steps that wrote to a location.
    fn last_write(&self, location: Location, steps: usize) -> Option<usize> {
        let writes = |used: &Use| used.location == location && used.writes;
        self.uses[..steps].iter().rposition(|uses| uses.iter().any(writes))
    }
}

/// The happens-before graph of the recorded execution.
struct HappensBefore {
    graph: HbGraph,
    /// For each thread slot, the step that started the thread; `None` for a thread that exists from
    /// the beginning, and for one that has not been started.
    started: Vec<Option<usize>>,
    vacant: Vec<bool>,
}

impl HappensBefore {
    fn new<S: Narrate>(cursor: &Cursor<S>) -> HappensBefore {
        let started = vec![None; cursor.threads()];
        HappensBefore { graph: HbGraph::new(), started, vacant: vacant(cursor) }
    }

    /// Adds the step `choice`, which was just taken; `pending` is what its thread was about to do.
    fn step<S: Narrate>(&mut self, cursor: &Cursor<S>, choice: Choice, pending: &Pending) {
        let alternatives = pending.footprints.iter();
        let mut taken = alternatives.filter(|(alternative, _)| *alternative == choice.alternative);
        let (_, footprint) = taken.next().expect("a step that was taken is an alternative");
        let at = self.graph.len();
        let is_first = self.graph.clock(choice.thread).is_none();
        match self.started[choice.thread.index()].filter(|_| is_first) {
            Some(start) => self.graph.push_first(choice, footprint, start),
            None => self.graph.push(choice, footprint),
        }
        let vacant = vacant(cursor);
        for (slot, (before, now)) in self.vacant.iter().zip(&vacant).enumerate() {
            if *before && !*now {
                self.started[slot] = Some(at);
            }
        }
        self.vacant = vacant;
    }
}

/// For each thread slot, whether it has no thread.
fn vacant<S: Narrate>(cursor: &Cursor<S>) -> Vec<bool> {
    let slots = (0..cursor.threads()).map(ThreadId::new);
    slots.map(|thread| cursor.pending(thread).status == Status::Vacant).collect()
}

/// Executes `schedule` on `model`, or on what it has to [grow](Model::grow) into, and explains the
/// failure that `choose` selects. Also returns the model that was executed.
pub fn replay<M>(
    mut model: M,
    schedule: &Schedule,
    fairness: Fairness,
    choose: impl Fn(&Replayed) -> Option<Failure>,
) -> (Replayed, M)
where
    M: Model,
    for<'m> M::Stepper<'m>: Describe,
{
    let mut before = None;
    loop {
        match replay_within(&model, schedule, fairness, &choose) {
            Ok(replayed) => return (replayed, model),
            // Growing did not help: records that are gone keep their names, and states cannot hold
            // more of them. Whether the program has too many live ones shows if they do not.
            Err(capacity) if before == Some(capacity) => model = model.without_stable_names(),
            Err(capacity) => {
                model = model.grow(capacity);
                before = Some(capacity);
            }
        }
    }
}

/// The same, if the states of the model have room for the execution.
fn replay_within<'m, M>(
    model: &'m M,
    schedule: &Schedule,
    fairness: Fairness,
    choose: impl Fn(&Replayed) -> Option<Failure>,
) -> Result<Replayed, Capacity>
where
    M: Model<Stepper<'m>: Describe>,
{
    let mut cursor = Cursor::new(model)?;
    if fairness == Fairness::Respected {
        cursor = cursor.fair();
    }
    let mut replayed = record(&mut cursor, schedule, Numbering::Portable)?;
    if let Some(failure) = choose(&replayed) {
        replayed.explain(&mut cursor, failure);
    }
    Ok(replayed)
}
