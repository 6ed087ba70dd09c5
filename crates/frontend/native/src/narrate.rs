//! The execution of a schedule in words: the line of the source, what was done to which object, and
//! what came of it.

use preempt_explore::cursor::Cursor;
use preempt_explore::replay::deadlock;
use preempt_native_block::{Choice as Wanted, ObjectKind, Op as OpKind};
use preempt_report::recorder::{Numbering, Replayed, record};
use preempt_report::trace::Trace;
use preempt_system::{
    Access, Choice, Explanation, Failure, FailureKind, Narrate, Narration, Nesting, Pending,
    Schedule, Site, StepNarration, ThreadId, Use, VariableValue,
};

use crate::describe;
use crate::executable::Harness;
use crate::names::{NOTHING, Names, PROCESS};
use crate::program::{Native, Need};
use crate::server::{self, Request, Stacks};
use crate::source;
use crate::state::{Op, Outcome};
use crate::symbols::Symbols;
use crate::system::{Execution, Prepared, wanted};

/// An execution in words.
#[derive(Clone, Debug)]
pub struct Narrated {
    /// The steps, and the failures at its end.
    pub replayed: Replayed,
    /// What the program printed.
    pub output: String,
    /// The steps by the slots of threads.
    path: Vec<Choice>,
}

/// Runs a recorded execution again under gdb, which stops before the step with this number,
/// from 1, in the thread that takes it, and then executes `commands`. Returns when the user leaves
/// gdb. `Err` is why gdb does not run.
pub fn debug(
    program: &Native,
    narrated: &Narrated,
    step: u32,
    commands: &[String],
) -> Result<(), String> {
    let prefix: Vec<Wanted> = narrated.path.iter().map(|&choice| wanted(choice)).collect();
    let slots = program.names().slots.clone();
    let request = Request { prefix: &prefix, slots: &slots, stacks: Stacks::Omitted };
    server::debug(&program.executable, request, step, commands).map_err(|error| {
        format!("cannot run gdb: {error}; it is a package of that name in most distributions")
    })
}

/// Runs a schedule and describes it. `choose` selects the failure that the trace shows.
pub fn narrate(
    program: &Native,
    schedule: &Schedule,
    numbering: Numbering,
    choose: impl Fn(&Replayed) -> Option<Failure>,
) -> Result<Narrated, Need> {
    let mut cursor = Cursor::over(program.start_with_stacks()?)?;
    let mut replayed = record(&mut cursor, schedule, numbering)?;
    if program.executable.harness == Harness::Libtest {
        // It only waits for the test.
        replayed.trace.waiting.retain(|waiting| waiting.thread.index() != 0);
    }
    for failure in &mut replayed.failures {
        // The search does not say which threads wait.
        if failure.kind == FailureKind::Deadlock {
            *failure = who_waits(&replayed.trace);
        }
    }
    if let Some(failure) = choose(&replayed) {
        replayed.explain(&mut cursor, failure);
    }
    let system = cursor.system();
    let (output, path) = (system.trace().run.output.text.clone(), system.path().to_vec());
    Ok(Narrated { replayed, output, path })
}

/// A deadlock, with the threads that are part of it.
fn who_waits(trace: &Trace) -> Failure {
    let who: Vec<&str> = trace.waiting.iter().map(|waiting| trace.name(waiting.thread)).collect();
    let who = match &who[..] {
        [] => return deadlock(),
        [one] => format!("{one} waits"),
        [others @ .., last] => format!("{} and {last} wait", others.join(", ")),
    };
    Failure { message: format!("no thread can move: {who} forever"), ..deadlock() }
}

impl Narrate for Execution<'_> {
    fn thread_name(&self, thread: ThreadId) -> String {
        self.program().names().thread_name(thread.index())
    }

    /// The number of the thread among those that the execution has started. Alternatives of a
    /// notification stay numbered by slots; a replay begins, as a search does, with the execution
    /// without preemptions, and gives its threads the same slots.
    fn number(&self, thread: ThreadId) -> ThreadId {
        let nth = self.order().position(|slot| slot == thread.index());
        ThreadId::new(nth.expect("a thread that steps was started"))
    }

    fn numbered(&self, number: ThreadId) -> Option<ThreadId> {
        self.order().nth(number.index()).map(ThreadId::new)
    }

    fn prepare(&mut self, choice: Choice) {
        let (op, nth) = self.next_op(choice.thread);
        let before = self.cells();
        self.set_prepared(op.map(|op| Prepared { op, nth, before }));
    }

    fn narrate(&mut self, choice: Choice) -> StepNarration {
        let Some(Prepared { op, nth, before }) = self.take_prepared() else {
            return StepNarration::default();
        };
        let after = self.cells();
        self.use_object(op.object);
        self.use_object(op.other);
        let outcome = self.outcome(choice.thread, nth);
        if op.kind.is_atomic() {
            self.set_value(op.object, describe::value(outcome.left, op.detail.size));
        }
        let names = self.program().names();
        let words = Words { system: self, names: &names, symbols: self.program().symbols() };
        StepNarration {
            narration: words.step(choice, nth, &op, &outcome, (&before, &after)),
            label: describe::verb(op.kind).to_owned(),
            uses: words.uses(choice.thread, &op, &after),
            nesting: words.nesting(choice.thread, nth, &op),
        }
    }

    fn narrate_next(&mut self, choice: Choice) -> Narration {
        let names = self.program().names();
        let words = Words { system: self, names: &names, symbols: self.program().symbols() };
        words.next(choice.thread)
    }

    fn values(&mut self) -> Vec<VariableValue> {
        let cells = self.cells();
        let names = self.program().names();
        let words = Words { system: self, names: &names, symbols: self.program().symbols() };
        let known = self.used().iter().filter_map(|&object| words.value(object, &cells));
        known.map(|(name, value)| VariableValue { owner: None, name, value }).collect()
    }

    /// What a thread read from plain memory is not known.
    fn explanation(&mut self, _: &Failure) -> Explanation {
        Explanation::Nothing
    }
}

/// Finds the words.
struct Words<'a> {
    system: &'a Execution<'a>,
    names: &'a Names,
    symbols: &'a Symbols,
}

impl Words<'_> {
    /// The name of an object. Finding one takes long, and every step mentions all objects.
    fn object(&self, location: u32) -> String {
        let find = || describe::object(self.names, self.symbols, location);
        self.system.object_names().entry(location).or_insert_with(find).clone()
    }

    /// Where the `nth` operation of a thread is called: the innermost place outside of the standard
    /// library of Rust.
    fn site(&self, thread: ThreadId, nth: usize, op: &Op) -> Option<Site> {
        if matches!(op.kind, OpKind::Finish | OpKind::Exit) {
            return None;
        }
        if op.kind == OpKind::Begin {
            return self.symbols.site(op.pc).filter(|site| !source::is_std(site));
        }
        let found = self.places(thread, nth, op).find(|site| !source::is_std(site));
        found.or_else(|| self.symbols.caller(op.pc))
    }

    /// The positions of the `nth` operation of a thread in the executable, the innermost first.
    fn places(&self, thread: ThreadId, nth: usize, op: &Op) -> impl Iterator<Item = Site> {
        let frames = self.system.trace().frames.get(&(thread, nth));
        let callers = frames.into_iter().flatten().copied().chain([op.pc]);
        let executable = self.system.program().executable.path();
        callers
            .filter(|&pc| self.symbols.is_own(pc, executable))
            .flat_map(|pc| self.symbols.places(pc.saturating_sub(1)))
    }

    /// How the `nth` operation of a thread relates to the program's own code.
    fn nesting(&self, thread: ThreadId, nth: usize, op: &Op) -> Nesting {
        let is_library = |site: &Site| source::is_std(site) || source::is_dependency(site);
        match op.kind {
            // These say what happens to threads, wherever the functions are.
            OpKind::Created | OpKind::Join => return Nesting::Own,
            OpKind::Begin if self.site(thread, nth, op).is_some() => return Nesting::Own,
            OpKind::Begin | OpKind::Finish | OpKind::Exit => return Nesting::Apart,
            _ => {}
        }
        // An operation on an atomic variable is that of its caller.
        let mut places = self
            .places(thread, nth, op)
            .skip_while(|site| site.file.ends_with("core/src/sync/atomic.rs"))
            .peekable();
        match places.peek() {
            // Without information about lines, everything is the program's own.
            None => return Nesting::Own,
            Some(site) if !is_library(site) => return Nesting::Own,
            Some(_) => {}
        }
        let own = places.find(|site| !is_library(site));
        let source = |site: &Site| self.system.sources().line(site);
        match own.map(|site| (source(&site), site)) {
            Some((Some(source), site)) => Nesting::Called { site, source },
            _ => Nesting::Apart,
        }
    }

    fn narration(
        &self,
        thread: ThreadId,
        nth: usize,
        op: &Op,
        mut effects: Vec<String>,
    ) -> Narration {
        let site = self.site(thread, nth, op);
        let line = site.as_ref().and_then(|site| self.system.sources().line(site));
        let source = line.unwrap_or_else(|| effects.remove(0));
        Narration { site, source, effects }
    }

    fn step(
        &self,
        choice: Choice,
        nth: usize,
        op: &Op,
        outcome: &Outcome,
        (before, after): (&[u64], &[u64]),
    ) -> Narration {
        if op.kind.is_atomic() {
            return self.narration(choice.thread, nth, op, self.atomic(op, outcome));
        }
        let mut effects: Vec<String> = [op.object, op.other]
            .into_iter()
            .filter_map(|object| {
                let (name, old) = self.value(object, before)?;
                let (_, new) = self.value(object, after)?;
                (old != new).then(|| format!("{name}: {old} → {new}"))
            })
            .collect();
        // The change of a lock says what was done to it.
        let said = matches!(op.kind, OpKind::Lock | OpKind::Unlock) && !effects.is_empty();
        if !said {
            let mut done = describe::op(self.names, self.symbols, op);
            if choice.alternative == 1 && op.is_timed() {
                done += " times out";
            }
            effects.insert(0, done);
        }
        self.narration(choice.thread, nth, op, effects)
    }

    /// What an atomic operation found and left: `x.load() = 1`, or `x: 0 → 1`.
    fn atomic(&self, op: &Op, outcome: &Outcome) -> Vec<String> {
        let name = self.object(op.object);
        let show = |value| describe::value(value, op.detail.size);
        let done = describe::op(self.names, self.symbols, op);
        let (found, left) = (show(outcome.found), show(outcome.left));
        match op.kind {
            OpKind::Load => vec![format!("{done} = {found}")],
            OpKind::CompareExchange if outcome.found == outcome.left => {
                vec![format!("{done} fails: {name} = {found}")]
            }
            _ => vec![done, format!("{name}: {found} → {left}")],
        }
    }

    /// What a thread would do next, and what that depends on.
    fn next(&self, thread: ThreadId) -> Narration {
        let (Some(op), nth) = self.system.next_op(thread) else { return Narration::default() };
        let cells = self.system.state().cells(self.names);
        let mut effects = vec![describe::op(self.names, self.symbols, &op)];
        let states = [op.object, op.other]
            .into_iter()
            .filter_map(|object| self.value(object, &cells))
            .map(|(name, value)| format!("{name} = {value}"));
        effects.extend(states);
        if op.kind == OpKind::Join {
            effects.push(format!("{} has not ended", self.names.thread_name(op.object as usize)));
        }
        let mut narration = self.narration(thread, nth, &op, effects);
        if let Nesting::Called { site, source } = self.nesting(thread, nth, &op) {
            let inner = narration.site.replace(site);
            let inner = inner.filter(|inner| Some(inner) != narration.site.as_ref());
            narration.effects.extend(inner.map(|inner| format!("in {inner}")));
            narration.source = source;
        }
        narration
    }

    /// The objects that an operation uses.
    fn uses(&self, thread: ThreadId, op: &Op, cells: &[u64]) -> Vec<Use> {
        let mut pending = Pending::vacant();
        // What an operation touches does not depend on the state.
        self.system.offer(thread, op, self.names, &mut pending);
        let footprint = pending.footprints.first().map(|(_, footprint)| footprint);
        let accesses = footprint.into_iter().flat_map(|footprint| footprint.accesses());
        accesses
            .filter(|(location, _)| self.names.object(location.0).is_some())
            .map(|&(location, access)| Use {
                location,
                name: self.object(location.0),
                value: self.value(location.0, cells).map(|(_, value)| value),
                reads: true,
                writes: access == Access::Write,
            })
            .collect()
    }

    /// The name of an object and its state in words, if it is one that has states.
    fn value(&self, object: u32, cells: &[u64]) -> Option<(String, String)> {
        if object == NOTHING || object == PROCESS {
            return None;
        }
        if self.names.object(object)?.which == ObjectKind::Atomic {
            let value = self.system.value(object)?.to_owned();
            return Some((self.object(object), value));
        }
        let (kind, cells) = self.names.shown(object, cells)?;
        let thread = |thread: ThreadId| self.names.thread_name(thread.index());
        let value = kind.show(cells, thread, |value| value.to_string());
        Some((self.object(object), value))
    }
}
