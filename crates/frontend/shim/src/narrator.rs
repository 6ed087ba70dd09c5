//! The steps of an execution in the words of the program: the line of the source, what was done to
//! which object, what came of it.

use std::collections::BTreeSet;

use preempt_explore::cursor::Cursor;
use preempt_replay::{NO_OBJECT, Op, OpKind, State};
use preempt_report::Origin;
use preempt_system::{Action, Choice, Narration, Status, ThreadId};

use crate::report::next_op;
use crate::runtime::{Runtime, site};
use crate::source::Sources;
use crate::system::Execution;

/// What a step did to which object.
#[derive(Clone, Debug)]
pub(crate) struct Touched {
    thread: usize,
    object: u32,
    name: String,
    /// What was read of it, if that can be said.
    words: String,
    /// Whether the thread learned something from it.
    reads: bool,
    /// Whether others may learn something new from it.
    writes: bool,
}

/// Tells steps, with the program's text where it can be read.
#[derive(Debug, Default)]
pub(crate) struct Narrator(Sources);

impl Narrator {
    /// A step that was taken from `before`, with what its operation said about itself.
    pub(crate) fn step(
        &self,
        runtime: &Runtime,
        thread: ThreadId,
        op: Option<Op>,
        before: &State,
        told: Vec<String>,
    ) -> Narration {
        let Some(op) = op else { return Narration::default() };
        let mut told = told.into_iter();
        let words = if op.kind == OpKind::Finish { None } else { told.next() };
        let mut effects = self.changes(runtime, &op, before);
        let words = words.unwrap_or_else(|| op.verb.to_owned());
        // The change of a lock says what was done to it.
        let said =
            matches!(op.kind, OpKind::Object(Action::Lock | Action::Unlock)) && !effects.is_empty();
        if !said {
            effects.insert(0, self.done(runtime, thread, &op, words));
        }
        effects.extend(told);
        self.narration(op, effects)
    }

    /// What a thread would do next, and what that depends on.
    pub(crate) fn next(&self, runtime: &Runtime, thread: ThreadId, op: Option<Op>) -> Narration {
        let Some(op) = op else { return Narration::default() };
        let done = self.done(runtime, thread, &op, op.verb.to_owned());
        let mut states: Vec<String> =
            [op.object, op.other].into_iter().filter_map(|o| self.state(runtime, o)).collect();
        if op.verb == "join" && !runtime.has_ended(op.object as usize) {
            states.push(format!("{} has not ended", runtime.thread_name(op.object as usize)));
        }
        let Narration { site, source, effects } = self.narration(op, vec![done]);
        // The state of an object says enough where the source can be read.
        let effects = if effects.is_empty() || states.is_empty() {
            [effects, states].concat()
        } else {
            states
        };
        Narration { site, source, effects }
    }

    /// With the line of the source in front if there is one.
    fn narration(&self, op: Op, mut effects: Vec<String>) -> Narration {
        if op.kind == OpKind::Finish {
            return Narration { site: None, source: effects.remove(0), effects };
        }
        let site = site::position(site::of(op.site));
        let source = self.0.line(&site).unwrap_or_else(|| effects.remove(0));
        Narration { site: Some(site), source, effects }
    }

    /// What a thread does to an object: `n.load() = 0`.
    fn done(&self, runtime: &Runtime, thread: ThreadId, op: &Op, words: String) -> String {
        let own = op.object as usize == thread.index() || op.object == NO_OBJECT;
        match op.verb {
            "join" => format!("join {}", runtime.thread_name(op.object as usize)),
            _ if own => words,
            _ => format!("{}.{words}", self.name(runtime, op.object)),
        }
    }

    /// What an object is called in the source, or else by what it is and where it was made.
    pub(crate) fn name(&self, runtime: &Runtime, object: u32) -> String {
        let names = runtime.recording.names();
        if let Some(thread) = names.thread_of(object) {
            return runtime.thread_name(thread.index());
        }
        let plain = || runtime.object_name(object);
        let Some(described) = names.description(object) else { return plain() };
        let position = |site| site::position(site::of(site));
        let Some(name) = self.0.name(&position(described.site)) else { return plain() };
        // One name for two things would be worse than none.
        let mut others = names.descriptions();
        let shared = others.any(|other| {
            other.site != described.site
                && self.0.name(&position(other.site)).as_ref() == Some(&name)
        });
        let line =
            if shared { format!("@{}", site::of(described.site).line()) } else { String::new() };
        let number =
            if described.nth == 0 { String::new() } else { format!("#{}", described.nth + 1) };
        format!("{name}{line}{number}")
    }

    /// The state of an object in words, if it is one that has states.
    fn shown(&self, runtime: &Runtime, object: u32, state: &State) -> Option<String> {
        if object == NO_OBJECT || runtime.recording.names().thread_of(object).is_some() {
            return None;
        }
        state.show(runtime.recording.names().objects(), object, |thread| {
            runtime.thread_name(thread.index())
        })
    }

    fn state(&self, runtime: &Runtime, object: u32) -> Option<String> {
        let shown = self.shown(runtime, object, runtime.recording.state())?;
        Some(format!("{} = {shown}", self.name(runtime, object)))
    }

    /// What became of the objects of a step: `m: free → held by main`.
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

    /// What a step did to its object.
    pub(crate) fn touched(
        &self,
        runtime: &Runtime,
        thread: ThreadId,
        op: Option<Op>,
        before: &State,
        narration: &Narration,
    ) -> Option<Touched> {
        let op = op.filter(|op| {
            op.object != NO_OBJECT && runtime.recording.names().thread_of(op.object).is_none()
        })?;
        let changed = runtime.recording.state().version(op.object) != before.version(op.object);
        let (reads, writes) = match op.kind {
            OpKind::Load(_) | OpKind::Peek => (true, false),
            OpKind::Store(_) => (false, true),
            // The new value may be the old one.
            OpKind::Update(_) => (true, true),
            OpKind::CompareExchange { .. } | OpKind::WeakCompareExchange { .. } => (true, changed),
            OpKind::Touch => (true, changed),
            // What a lock protects is read after it was taken, and may have been written before it
            // was given back.
            OpKind::Object(Action::Unlock | Action::WriteUnlock) => (false, true),
            OpKind::Object(action) => (true, kind_writes(action)),
            _ => return None,
        };
        // The source may begin with the same name.
        let mut all = narration.effects.iter().chain([&narration.source]);
        let name = self.name(runtime, op.object);
        let words = all.find(|words| words.starts_with(&name)).cloned().unwrap_or_default();
        Some(Touched { thread: thread.index(), object: op.object, name, words, reads, writes })
    }

    /// The objects that were used so far, and what they hold as far as that is known.
    pub(crate) fn variables(
        &self,
        runtime: &Runtime,
        ops: &[Option<Touched>],
    ) -> Vec<(String, String)> {
        let used: BTreeSet<u32> = ops.iter().flatten().map(|touched| touched.object).collect();
        used.into_iter()
            .filter_map(|object| Some((self.name(runtime, object), held(runtime, object)?)))
            .collect()
    }

    /// Why a step of a schedule cannot be taken, and what could be done instead.
    pub(crate) fn misfit(
        &self,
        cursor: &mut Cursor<Execution<'_>>,
        asked: Choice,
        thread: Option<ThreadId>,
    ) -> String {
        let movers: Vec<ThreadId> = cursor.enabled().iter().collect();
        let status = thread.map(|thread| cursor.pending(thread).status);
        let runtime = cursor.system_mut().runtime();
        let told = |runtime: &mut Runtime, thread: ThreadId| {
            let op = next_op(runtime, thread);
            let Narration { site, source, effects } = self.next(runtime, thread, op);
            let place = site.map(|site| format!(" at {site}")).unwrap_or_default();
            format!("{place}: {source} // {}", effects.join(", "))
        };
        let seen = match (thread, status) {
            (None, _) => {
                format!("it is one of thread {}, and fewer were started", asked.thread.index())
            }
            (Some(thread), Some(Status::Blocked | Status::Resting)) => {
                let name = runtime.thread_name(thread.index());
                format!("it is one of {name}, which has to wait{}", told(runtime, thread))
            }
            (Some(thread), Some(Status::Ended | Status::Vacant)) => {
                format!("it is one of {}, which has ended", runtime.thread_name(thread.index()))
            }
            (Some(thread), _) => {
                let name = runtime.thread_name(thread.index());
                let at = told(runtime, thread);
                format!(
                    "it is alternative {} of {name}, which it does not have{at}",
                    asked.alternative
                )
            }
        };
        let names: Vec<String> =
            movers.iter().map(|thread| runtime.thread_name(thread.index())).collect();
        let movers = if names.is_empty() { "nobody".to_owned() } else { names.join(", ") };
        format!("{seen}; who can move there: {movers}")
    }
}

/// What an object holds, if that is known.
pub(crate) fn held(runtime: &Runtime, object: u32) -> Option<String> {
    let name = |thread: ThreadId| runtime.thread_name(thread.index());
    let recording = &runtime.recording;
    recording
        .state()
        .show(recording.names().objects(), object, name)
        .or_else(|| runtime.shown.get(&object).cloned())
}

/// Whether an action may give others something new.
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

/// What a thread has read last in the first `steps` steps, and who wrote it.
pub(crate) fn origin(ops: &[Option<Touched>], thread: usize, steps: usize) -> Option<Origin> {
    let own = |touched: &Touched| touched.thread == thread && touched.reads;
    let read = ops[..steps].iter().rposition(|touched| touched.as_ref().is_some_and(own))?;
    let of = ops[read].as_ref()?;
    let wrote = |touched: &Option<Touched>| {
        touched.as_ref().is_some_and(|t| t.object == of.object && t.writes)
    };
    let written = ops[..read].iter().rposition(wrote);
    // `n.load() = 1` has the value behind it.
    let value = of.words.rsplit_once(" = ").map(|(_, value)| value.to_owned());
    Some(Origin { variable: of.name.clone(), value, read: Some(read), written })
}
