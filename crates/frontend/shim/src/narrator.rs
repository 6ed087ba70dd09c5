//! Describes the steps of a closure's execution: the source line, the operation and its object, and
//! the values that it read or changed.

use std::collections::BTreeSet;

use preempt_replay::{NO_OBJECT, Op, OpKind, State};
use preempt_system::{
    Action, Choice, Explanation, Failure, FailureKind, Location, Narrate, Narration, Site,
    StepNarration, ThreadId, Use, VariableValue,
};

use crate::runtime::{Runtime, site};
use crate::source::Sources;
use crate::system::Execution;

/// The data for descriptions of an execution, in addition to the runtime.
#[derive(Debug, Default)]
pub(crate) struct Narrator {
    /// The program's text, where it can be read.
    sources: Sources,
    /// The objects that the described steps have used; only these are shown.
    used: BTreeSet<u32>,
    /// The step that comes next: its operation, and the objects before it.
    next: Option<(Option<Op>, State)>,
}

impl Narrate for Execution<'_> {
    fn thread_name(&self, thread: ThreadId) -> String {
        self.read().thread_name(thread.index())
    }

    /// Slots are assigned in the order in which a search meets threads. The order in which this
    /// execution started them does not depend on the search.
    fn number(&self, thread: ThreadId) -> ThreadId {
        let nth = self.read().order.iter().position(|&slot| slot == thread.index());
        ThreadId::new(nth.expect("a thread that steps was started"))
    }

    fn numbered(&self, number: ThreadId) -> Option<ThreadId> {
        self.read().order.get(number.index()).map(|&slot| ThreadId::new(slot))
    }

    fn prepare(&mut self, choice: Choice) {
        let runtime = self.runtime();
        let op = next_op(runtime, choice.thread);
        let before = runtime.recording.state().clone();
        runtime.notes.step = Some(Vec::new());
        (runtime.notes.read_from, runtime.notes.stale) = (None, None);
        self.narrator.next = Some((op, before));
    }

    fn narrate(&mut self, choice: Choice) -> StepNarration {
        let mut narrator = std::mem::take(&mut self.narrator);
        let runtime = self.runtime();
        let reported = runtime.notes.step.take().unwrap_or_default();
        let (read_from, stale) = (runtime.notes.read_from.take(), runtime.notes.stale.take());
        let (op, before) = narrator.next.take().expect("a step is announced before it is taken");
        let narration = narrator.step(runtime, choice.thread, op, &before, reported);
        let uses = narrator.uses(runtime, op, &before, &narration).into_iter().collect();
        narrator.used.extend(op.iter().flat_map(|op| op.objects()).map(|(_, object)| object));
        self.narrator = narrator;
        let label = op.map_or(String::new(), |op| op.verb.to_owned());
        StepNarration { narration, label, uses, read_from, stale, ..StepNarration::default() }
    }

    fn narrate_next(&mut self, choice: Choice) -> Narration {
        let narrator = std::mem::take(&mut self.narrator);
        let runtime = self.runtime();
        let op = next_op(runtime, choice.thread);
        let narration = narrator.next(runtime, choice.thread, op);
        self.narrator = narrator;
        narration
    }

    fn values(&mut self) -> Vec<VariableValue> {
        let (narrator, runtime) = (&self.narrator, self.read());
        let known = narrator.used.iter().filter_map(|&object| {
            let name = narrator.name(runtime, object);
            Some(VariableValue { owner: None, name, value: held(runtime, object)? })
        });
        known.collect()
    }

    /// A panic is explained by what its thread read before it. Operations during unwinding are
    /// ignored.
    fn explanation(&mut self, failure: &Failure) -> Explanation {
        match self.read().verdict.panics.first() {
            Some(panic) if failure.kind == FailureKind::Panic => Explanation::FirstSteps {
                thread: ThreadId::new(panic.thread),
                steps: panic.done as usize,
            },
            _ => Explanation::Nothing,
        }
    }
}

/// Whether a position is in the source of this library.
fn is_own(site: &Site) -> bool {
    // Paths are relative to the same folder in all files of a crate.
    let folder =
        file!().strip_suffix("narrator.rs").expect("`file!()` ends with the name of this file");
    site.file.starts_with(folder)
}

/// The operation that a thread is about to perform.
fn next_op(runtime: &Runtime, thread: ThreadId) -> Option<Op> {
    runtime.recording.next_op(thread).copied()
}

impl Narrator {
    /// Describes a step that was taken from `before`; `reported` is what its operation reported.
    fn step(
        &self,
        runtime: &Runtime,
        thread: ThreadId,
        op: Option<Op>,
        before: &State,
        reported: Vec<String>,
    ) -> Narration {
        let Some(op) = op else { return Narration::default() };
        let mut reported = reported.into_iter();
        let words = if op.kind == OpKind::Finish { None } else { reported.next() };
        let mut effects = self.changes(runtime, &op, before);
        let words = words.unwrap_or_else(|| op.verb.to_owned());
        // The change of a lock implies the operation.
        let said =
            matches!(op.kind, OpKind::Object(Action::Lock | Action::Unlock)) && !effects.is_empty();
        if !said {
            effects.insert(0, self.done(runtime, thread, &op, words));
        }
        effects.extend(reported);
        self.narration(op, effects)
    }

    /// Describes the operation that a thread would perform next, and the objects it depends on.
    fn next(&self, runtime: &Runtime, thread: ThreadId, op: Option<Op>) -> Narration {
        let Some(op) = op else { return Narration::default() };
        let done = self.done(runtime, thread, &op, op.verb.to_owned());
        let mut states: Vec<String> =
            [op.object, op.other].into_iter().filter_map(|o| self.state(runtime, o)).collect();
        if op.verb == "join" && !runtime.has_ended(op.object as usize) {
            states.push(format!("{} has not ended", runtime.thread_name(op.object as usize)));
        }
        let Narration { site, source, effects } = self.narration(op, vec![done]);
        // Where the source can be read, the state of the object is enough.
        let effects = if effects.is_empty() || states.is_empty() {
            [effects, states].concat()
        } else {
            states
        };
        Narration { site, source, effects }
    }

    /// Puts the source line before the effects, if it can be read.
    fn narration(&self, op: Op, mut effects: Vec<String>) -> Narration {
        if op.kind == OpKind::Finish {
            return Narration { site: None, source: effects.remove(0), effects };
        }
        let site = site::position(site::of(op.site));
        if is_own(&site) {
            // A destructor or an iterator of this library, whose source would not help a user.
            return Narration { site: None, source: effects.remove(0), effects };
        }
        let source = match self.sources.code(&site) {
            // A guard knows where it was made, not where it is dropped.
            Some(code) if op.verb == "unlock" => format!("unlock: {code}"),
            Some(code) => code,
            None => effects.remove(0),
        };
        Narration { site: Some(site), source, effects }
    }

    /// The operation of a thread on an object: `n.load() = 0`.
    fn done(&self, runtime: &Runtime, thread: ThreadId, op: &Op, words: String) -> String {
        let own = op.object as usize == thread.index() || op.object == NO_OBJECT;
        match op.verb {
            "join" => format!("join {}", runtime.thread_name(op.object as usize)),
            _ if own || runtime.is_of_harness(op.object) => words,
            _ => format!("{}.{words}", self.name(runtime, op.object)),
        }
    }

    /// The name of an object in the source, or else its kind and the position where it was created.
    fn name(&self, runtime: &Runtime, object: u32) -> String {
        let names = runtime.recording.names();
        if let Some(thread) = names.thread_of(object) {
            return runtime.thread_name(thread.index());
        }
        let plain = || runtime.object_name(object);
        let Some(described) = names.description(object) else { return plain() };
        let position = |site| site::position(site::of(site));
        let Some(name) = self.sources.name(&position(described.site)) else { return plain() };
        // The same name for objects of two positions would be ambiguous.
        let mut others = names.descriptions();
        let shared = others.any(|other| {
            other.site != described.site
                && self.sources.name(&position(other.site)).as_ref() == Some(&name)
        });
        let line =
            if shared { format!("@{}", site::of(described.site).line()) } else { String::new() };
        let number =
            if described.nth == 0 { String::new() } else { format!("#{}", described.nth + 1) };
        format!("{name}{line}{number}")
    }

    /// The state of an object as text, if it is of a kind that has states.
    fn shown(&self, runtime: &Runtime, object: u32, state: &State) -> Option<String> {
        let names = runtime.recording.names();
        if object == NO_OBJECT || names.thread_of(object).is_some() {
            return None;
        }
        state.show(names.objects(), object, |thread| runtime.thread_name(thread.index()))
    }

    fn state(&self, runtime: &Runtime, object: u32) -> Option<String> {
        let shown = self.shown(runtime, object, runtime.recording.state())?;
        Some(format!("{} = {shown}", self.name(runtime, object)))
    }

    /// How a step changed its objects: `m: free → held by main`.
    fn changes(&self, runtime: &Runtime, op: &Op, before: &State) -> Vec<String> {
        let change = |object: u32| {
            let (old, new) = (
                self.shown(runtime, object, before)?,
                self.shown(runtime, object, runtime.recording.state())?,
            );
            (old != new).then(|| format!("{}: {old} → {new}", self.name(runtime, object)))
        };
        [op.object, op.other].into_iter().filter_map(change).collect()
    }

    /// How a step used its object, if reports show values of such objects.
    fn uses(
        &self,
        runtime: &Runtime,
        op: Option<Op>,
        before: &State,
        narration: &Narration,
    ) -> Option<Use> {
        let recording = &runtime.recording;
        let is_value =
            |op: &Op| op.object != NO_OBJECT && recording.names().thread_of(op.object).is_none();
        let op = op.filter(is_value)?;
        let changed = recording.state().version(op.object) != before.version(op.object);
        let (reads, writes) = match op.kind {
            OpKind::Load(_) | OpKind::Peek => (true, false),
            OpKind::Store(_) => (false, true),
            // The new value may be the old one.
            OpKind::Update(_) => (true, true),
            OpKind::CompareExchange { .. } | OpKind::WeakCompareExchange { .. } => (true, changed),
            OpKind::Touch => (true, changed),
            // Protected data are read after the lock was taken, and may have been written before it
            // was released.
            OpKind::Object(Action::Unlock | Action::WriteUnlock) => (false, true),
            OpKind::Object(action) => (true, kind_writes(action)),
            _ => return None,
        };
        let name = self.name(runtime, op.object);
        // The source may begin with the same name.
        let mut all = narration.effects.iter().chain([&narration.source]);
        let words = all.find(|words| words.starts_with(&name));
        // `n.load() = 1` ends with the value.
        let value = words.and_then(|words| words.rsplit_once(" = "));
        let value = value.map(|(_, value)| value.to_owned());
        Some(Use { location: Location(op.object), name, value, reads, writes })
    }
}

/// The value or state of an object, if it is known.
fn held(runtime: &Runtime, object: u32) -> Option<String> {
    let name = |thread: ThreadId| runtime.thread_name(thread.index());
    let recording = &runtime.recording;
    recording
        .state()
        .show(recording.names().objects(), object, name)
        .or_else(|| runtime.notes.values.get(&object).cloned())
}

/// Whether other threads may learn something from an action.
fn kind_writes(action: Action) -> bool {
    matches!(
        action,
        Action::Send(_)
            | Action::Unpark
            | Action::NotifyAll
            | Action::NotifyOne { .. }
            | Action::Set
    )
}
