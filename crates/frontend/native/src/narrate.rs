//! Describes the execution of a schedule: for each step its source line, its operation and the
//! effects on objects.

use preempt_explore::cursor::Cursor;
use preempt_explore::replay::deadlock;
use preempt_native_block::{Choice as BlockChoice, ObjectKind, Op as OpKind};
use preempt_report::recorder::{Numbering, Replayed, record};
use preempt_report::trace::Trace;
use preempt_system::memory::Stored;
use preempt_system::{
    Access, Choice, Explanation, Failure, FailureKind, Narrate, Narration, Nesting, Pending,
    Schedule, Site, StepNarration, ThreadId, Use, VariableValue,
};

use crate::describe;
use crate::executable::Harness;
use crate::level::Level;
use crate::names::{NOTHING, Names, PROCESS};
use crate::program::{Native, Need};
use crate::server::{self, Request, Stacks};
use crate::source;
use crate::state::{Op, Outcome};
use crate::symbols::Symbols;
use crate::system::{Execution, Prepared, block_choice};
use crate::weak::{self, MissedOrder};

/// The description of an execution.
#[derive(Clone, Debug)]
pub struct Narrated {
    /// The steps, and the failures at the end.
    pub replayed: Replayed,
    /// The beginning of the program's output.
    pub output: String,
    /// The steps, with threads as slots.
    path: Vec<Choice>,
    /// The values that stale steps read.
    stale_values: Vec<u64>,
}

/// Runs a described execution again under gdb, which stops before step `step`, counted from 1, in
/// the thread that takes it, and then executes `commands`. Returns when the user leaves gdb. `Err`
/// says why gdb cannot be run.
pub fn debug(
    program: &Native,
    narrated: &Narrated,
    step: u32,
    commands: &[String],
) -> Result<(), String> {
    if program.level() == Level::Locked {
        return Err(
            "--gdb cannot be combined with --atomics: gdb and the patched instructions both need \
             the signal SIGTRAP"
                .to_owned(),
        );
    }
    let prefix: Vec<BlockChoice> =
        narrated.path.iter().map(|&choice| block_choice(choice)).collect();
    let slots = program.names().slots.clone();
    let stale_values = &narrated.stale_values;
    let stacks = Stacks::Omitted;
    let request = Request { prefix: &prefix, stale_values, slots: &slots, stacks };
    server::debug(&program.executable, request, step, commands).map_err(|error| {
        format!("cannot run gdb: {error}; most distributions have a package of that name")
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
        // The main thread belongs to libtest and only waits for the test.
        replayed.trace.waiting.retain(|waiting| waiting.thread.index() != 0);
    }
    for failure in &mut replayed.failures {
        // The search does not say which threads wait.
        if failure.kind == FailureKind::Deadlock {
            *failure = deadlock_of(&replayed.trace);
        }
    }
    if let Some(failure) = choose(&replayed) {
        replayed.explain(&mut cursor, failure);
    }
    let system = cursor.system();
    let (output, path) = (system.trace().run.output.text.clone(), system.path().to_vec());
    let stale_values = system.stale_values(None);
    Ok(Narrated { replayed, output, path, stale_values })
}

/// A deadlock whose message names the threads that wait.
fn deadlock_of(trace: &Trace) -> Failure {
    let names: Vec<&str> = trace.waiting.iter().map(|waiting| trace.name(waiting.thread)).collect();
    let threads_wait = match &names[..] {
        [] => return deadlock(),
        [one] => format!("{one} waits"),
        [others @ .., last] => format!("{} and {last} wait", others.join(", ")),
    };
    Failure { message: format!("no thread can move: {threads_wait} forever"), ..deadlock() }
}

impl Narrate for Execution<'_> {
    fn thread_name(&self, thread: ThreadId) -> String {
        self.program().names().thread_name(thread.index())
    }

    /// The number of the thread in the order in which the execution started its threads. The
    /// alternatives of a notification are still numbered by slots: like a search, a replay begins
    /// with the execution without preemptions, so its threads get the same slots.
    fn number(&self, thread: ThreadId) -> ThreadId {
        let nth = self.start_order().position(|slot| slot == thread.index());
        ThreadId::new(nth.expect("a thread that steps was started"))
    }

    fn numbered(&self, number: ThreadId) -> Option<ThreadId> {
        self.start_order().nth(number.index()).map(ThreadId::new)
    }

    fn prepare(&mut self, choice: Choice) {
        let (op, nth) = self.next_op(choice.thread);
        let before = self.cells();
        let is_stale = |op: &Op| choice.alternative != 0 && op.kind.is_atomic();
        let stale = self.weak().zip(op.filter(is_stale));
        let unseen = stale.map(|(weak, op)| weak.stored(op.object, 0));
        let stale = stale.and_then(|(weak, op)| weak.stale(&op, choice.alternative));
        self.set_prepared(op.map(|op| Prepared { op, nth, before, unseen, stale }));
    }

    fn narrate(&mut self, choice: Choice) -> StepNarration {
        let Some(Prepared { op, nth, before, unseen, stale }) = self.take_prepared() else {
            return StepNarration::default();
        };
        let after = self.cells();
        self.use_object(op.object);
        self.use_object(op.other);
        let outcome = self.outcome(choice.thread, nth);
        if op.kind.is_atomic() {
            // A stale access leaves the newest value as it is.
            let newest = if unseen.is_some() { outcome.memory } else { outcome.left };
            self.set_value(op.object, describe::value(newest, op.detail.size));
        }
        let names = self.program().names();
        let narrator = Narrator { system: self, names: &names, symbols: self.program().symbols() };
        let mut narration = narrator.step(choice, nth, &op, &outcome, (&before, &after));
        if let Some(newest) = unseen {
            narration.effects.push(narrator.unseen(choice.thread, &op, &newest));
        }
        StepNarration {
            narration,
            label: describe::verb(op.kind).to_owned(),
            uses: narrator.uses(choice.thread, &op, &after),
            nesting: narrator.nesting(choice.thread, nth, &op),
            read_from: self.weak().and_then(|weak| weak.last_read()),
            stale,
        }
    }

    fn narrate_next(&mut self, choice: Choice) -> Narration {
        let names = self.program().names();
        let narrator = Narrator { system: self, names: &names, symbols: self.program().symbols() };
        narrator.next(choice.thread)
    }

    fn values(&mut self) -> Vec<VariableValue> {
        let cells = self.cells();
        let names = self.program().names();
        let narrator = Narrator { system: self, names: &names, symbols: self.program().symbols() };
        let known = self.used().iter().filter_map(|&object| narrator.value(object, &cells));
        known.map(|(name, value)| VariableValue { owner: None, name, value }).collect()
    }

    /// The values that a thread read from plain memory are not known.
    fn explanation(&mut self, _: &Failure) -> Explanation {
        Explanation::Nothing
    }
}

/// Describes operations, objects and their values.
struct Narrator<'a> {
    system: &'a Execution<'a>,
    names: &'a Names,
    symbols: &'a Symbols,
}

impl Narrator<'_> {
    /// The name of an object, from the cache: looking one up takes long, and every step mentions
    /// all objects.
    fn object(&self, location: u32) -> String {
        let find = || describe::object(self.names, self.symbols, location);
        self.system.object_names().entry(location).or_insert_with(find).clone()
    }

    /// The position of the `nth` operation of a thread: the innermost call outside of Rust's
    /// standard library.
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

    /// The positions of the `nth` operation of a thread and of its callers in the executable, the
    /// innermost first.
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
            // These concern the program's threads, even if a library makes the call.
            OpKind::Created | OpKind::Join => return Nesting::Own,
            OpKind::Begin if self.site(thread, nth, op).is_some() => return Nesting::Own,
            OpKind::Begin | OpKind::Finish | OpKind::Exit => return Nesting::Apart,
            _ => {}
        }
        // An atomic operation belongs to the caller of the method in the standard library.
        let mut places = self
            .places(thread, nth, op)
            .skip_while(|site| site.file.ends_with("core/src/sync/atomic.rs"))
            .peekable();
        match places.peek() {
            // Without line tables, everything counts as the program's own code.
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
        // A change of a lock already shows whether it was locked or unlocked.
        let implied = matches!(op.kind, OpKind::Lock | OpKind::Unlock) && !effects.is_empty();
        if !implied {
            let mut operation = describe::op(self.names, self.symbols, op);
            if choice.alternative == 1 && op.is_timed() {
                operation += " times out";
            }
            effects.insert(0, operation);
        }
        self.narration(choice.thread, nth, op, effects)
    }

    /// The values before and after an atomic operation: `x.load() = 1`, or `x: 0 → 1`.
    fn atomic(&self, op: &Op, outcome: &Outcome) -> Vec<String> {
        let name = self.object(op.object);
        let show = |value| describe::value(value, op.detail.size);
        let operation = describe::op(self.names, self.symbols, op);
        let (found, left) = (show(outcome.found), show(outcome.left));
        match op.kind {
            OpKind::Load => vec![format!("{operation} = {found}")],
            OpKind::CompareExchange if outcome.found == outcome.left => {
                vec![format!("{operation} fails: {name} = {found}")]
            }
            _ => vec![operation, format!("{name}: {found} → {left}")],
        }
    }

    /// Why a stale access need not see the newest store of its variable.
    fn unseen(&self, thread: ThreadId, op: &Op, newest: &Stored) -> String {
        let value = describe::value(newest.value.into(), op.detail.size);
        let by = newest.event.thread.map(|by| self.names.thread_name(by.index()));
        let by = by.unwrap_or_else(|| "the initial value".to_owned());
        let step = newest.step;
        if op.kind == OpKind::Store {
            let name = self.object(op.object);
            return format!(
                "this store comes before {by}'s {name} = {value} of step {step} in modification \
                 order"
            );
        }
        let missed = self.system.weak().and_then(|weak| weak.missed_order(thread, newest));
        let hint = missed.map(|missed| self.hint(&missed, &value)).unwrap_or_default();
        format!("although {by} stored {value} in step {step}: nothing orders the two{hint}")
    }

    /// Which stronger orderings would make a stale load return `value`.
    fn hint(&self, missed: &MissedOrder, value: &str) -> String {
        let MissedOrder { location, store: (stored, store), load: (loaded, load) } = *missed;
        let name = self.object(location);
        let (accesses, orderings) = match (weak::releases(store), weak::acquires(load)) {
            (false, false) => (
                format!(
                    "stored in step {stored} with {store:?} and loaded in step {loaded} with \
                     {load:?}"
                ),
                "Release and Acquire",
            ),
            (false, true) => (format!("stored in step {stored} with {store:?}"), "Release"),
            (true, _) => (format!("loaded in step {loaded} with {load:?}"), "Acquire"),
        };
        format!(". {name} is {accesses}: with {orderings} this would be {value}")
    }

    /// The next operation of a thread, and the state of the objects on which it depends.
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
        // Which objects an operation accesses does not depend on the state.
        self.system.write_pending(thread, op, self.names, &mut pending);
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

    /// The name of an object and a text for its state, if it has one.
    fn value(&self, object: u32, cells: &[u64]) -> Option<(String, String)> {
        if object == NOTHING || object == PROCESS {
            return None;
        }
        if self.names.object(object)?.kind == ObjectKind::Atomic {
            let value = self.system.value(object)?.to_owned();
            return Some((self.object(object), value));
        }
        let (kind, fields) = self.names.fields(object, cells)?;
        let thread = |thread: ThreadId| self.names.thread_name(thread.index());
        let value = kind.show(fields, thread, |value| value.to_string());
        Some((self.object(object), value))
    }
}
