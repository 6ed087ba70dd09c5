//! An execution of an executable as a [`System`]: it can be stepped, queried and rewound.
//!
//! A child process runs a whole execution: the requested steps, then the rest without preemptions.
//! Its trace contains the next operation of every thread after every step. While a search follows
//! the trace, no process runs; only a step that deviates from it starts a child. Systematic
//! searches continue with the running thread, as the child does, so they need about one child per
//! execution.
//!
//! # Why a step to a known state is executed
//!
//! Searches with a cache of happens-before graphs take every step from every state once. Most
//! deviating steps lead to a state that another order of independent steps has already reached: on
//! the programs of `corpus/native`, such a search runs 18 children per new graph, and would run 2
//! without these steps. The effect of such a step seems to be known already: if there are no data
//! races and all synchronisation is visible, what a thread does up to its next operation is a
//! function of what happens before its step. We tried to predict these steps and to compare every
//! later child with the prediction. That loses errors, because the search backtracks before any
//! child shows that a prediction is wrong. One of them was the error of `panics.rs`, whose atomic
//! instructions are not visible. It is found because the child is run and the operation that a
//! thread then reaches is part of the cached name ([`System::announced`]). For programs that are
//! known to have no data races there is `--reduce cb-por`, which relies on the same assumption and
//! needs 2 children per graph.

use std::cell::{RefCell, RefMut};
use std::collections::HashMap;
use std::sync::atomic::Ordering::Relaxed;

use preempt_native_block::{Choice as BlockChoice, ExecutionEnd, Op as OpKind};
use preempt_report::number::counted;
use preempt_system::fingerprint::Mixer;
use preempt_system::memory::Stored;
use preempt_system::pending::NEVER_STALE;
use preempt_system::{
    Choice, Failure, FailureKind, Fingerprint, Location, LocationKind, MemoryModel, Pending, Stale,
    Status, System, ThreadId, ThreadSet,
};

use crate::level::Level;
use crate::names::Names;
use crate::opaque;
use crate::program::{Assumption, Native, Need};
use crate::server::{Request, Server, Stacks};
use crate::source::Sources;
use crate::state::{Context, History, Op, Outcome, State};
use crate::trace::{Difference, Step, Trace};
use crate::unsupported;
use crate::verdict;
use crate::weak::{Performed, WeakMemory};

/// What the description of a step needs from before the step.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) op: Op,
    /// The number of operations that the thread had performed.
    pub(crate) nth: usize,
    /// The fields of all objects.
    pub(crate) before: Vec<u64>,
    /// The newest store of the operation's variable, if the step does not see it.
    pub(crate) unseen: Option<Stored>,
    /// The same for the picture of the execution.
    pub(crate) stale: Option<Stale>,
}

/// An execution of an executable: see the module documentation.
pub struct Execution<'p> {
    program: &'p Native,
    /// `None` once a run has failed and its server was killed.
    server: Option<Server>,
    histories: Vec<History>,
    state: State,
    /// The threads that exist before the first step.
    initial_threads: ThreadSet,
    /// The steps taken so far.
    path: Vec<Choice>,
    /// The last run of a child. It agrees with `path` up to the step at which a search deviates.
    trace: Trace,
    /// The failure of `trace`, and the number of steps after which it occurs.
    failure: Option<(usize, Box<Failure>)>,
    /// A failure before the first step.
    initial_failure: Option<Box<Failure>>,
    /// Set when a repeated step led to something else; the execution cannot continue.
    broken: bool,
    /// Whether children record call stacks.
    stacks: Stacks,
    prepared: Option<Prepared>,
    /// The objects that described steps have used, sorted.
    used: Vec<u32>,
    /// The results of [`ready_after`](Execution::ready_after).
    ready_cache: HashMap<Vec<Choice>, ThreadSet>,
    /// The values of atomic variables after the described steps.
    values: HashMap<u32, String>,
    /// A cache of object names: looking one up takes long.
    object_names: RefCell<HashMap<u32, String>>,
    sources: Sources,
    /// The memory machine after `path`, under weak memory.
    weak: Option<WeakMemory>,
}

impl<'p> Execution<'p> {
    pub(crate) fn new(program: &'p Native, stacks: Stacks) -> Result<Execution<'p>, Need> {
        let mut server = Some(program.server()?);
        let mut trace = run(program, &mut server, Prefix::default(), stacks)?;
        let mut changed = program.differs_from_first(&trace);
        if program.keep_first(&trace) {
            // A nondeterministic program could go unnoticed without a second run: the steps that a
            // search repeats may be the same in all executions.
            trace = run(program, &mut server, Prefix::default(), stacks)?;
            changed = program.differs_from_first(&trace);
        }
        let initial_threads: ThreadSet = trace.initial.iter().map(|&(thread, _)| thread).collect();
        let mut execution = Execution {
            program,
            server,
            histories: vec![History::default(); program.slots()],
            state: State::new(program.slots(), initial_threads, &program.names()),
            initial_threads,
            path: Vec::new(),
            failure: None,
            initial_failure: None,
            trace,
            broken: false,
            stacks,
            prepared: None,
            used: Vec::new(),
            ready_cache: HashMap::new(),
            values: HashMap::new(),
            object_names: RefCell::default(),
            sources: Sources::default(),
            weak: (program.executable.memory == MemoryModel::Weak)
                .then(|| WeakMemory::new(initial_threads)),
        };
        for (thread, op) in execution.trace.initial.clone() {
            execution.histories[thread.index()].ops.push(op);
        }
        execution.find_failure(0);
        execution.initial_failure =
            execution.failure.take_if(|(at, _)| *at == 0).map(|(_, failure)| failure);
        if let Some(difference) = changed {
            execution.initial_failure = Some(execution.nondeterminism(difference));
        } else if let Some(failure) = execution.changed_output() {
            execution.initial_failure = Some(failure);
        }
        if execution.initial_failure.is_some() {
            execution.state.fail();
        }
        Ok(execution)
    }

    /// The failure of a program that printed something else when the execution without preemptions
    /// was run again.
    fn changed_output(&self) -> Option<Box<Failure>> {
        let expected = self.program.expected_output()?;
        let failure = verdict::output_failure(&self.trace.run.output, &expected)?;
        let message = failure.message.replacen(
            "the output",
            "the same schedule was executed twice, and the output",
            1,
        );
        Some(Box::new(Failure { kind: FailureKind::Nondeterminism, message, ..failure }))
    }

    /// The state after the steps so far.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// The next operation of a thread, and the number of operations that it has performed.
    pub(crate) fn next_op(&self, thread: ThreadId) -> (Option<Op>, usize) {
        let count = self.state.count(thread);
        (self.histories[thread.index()].ops.get(count).copied(), count)
    }

    /// The slots of the threads in the order in which the current execution started them.
    pub(crate) fn start_order(&self) -> impl Iterator<Item = usize> {
        let taken = self.path.len();
        self.trace.starts.iter().take_while(move |(step, _)| *step <= taken).map(|(_, slot)| *slot)
    }

    /// The last run of a child.
    pub(crate) fn trace(&self) -> &Trace {
        &self.trace
    }

    fn context<'c>(&'c self, names: &'c Names, ready: ThreadSet) -> Context<'c> {
        let (histories, needs) = (&self.histories[..], self.program.needs);
        Context { names, histories, needs, max_delay: self.program.executable.max_delay(), ready }
    }

    /// The threads that wait for descriptors which are ready now.
    fn ready(&self) -> ThreadSet {
        self.trace.ready_after(self.path.len())
    }

    /// The steps taken so far.
    pub(crate) fn path(&self) -> &[Choice] {
        &self.path
    }

    /// The `nth` operation of a thread, from 0, if it is known.
    pub(crate) fn op_at(&self, thread: ThreadId, nth: usize) -> Option<Op> {
        self.histories[thread.index()].ops.get(nth).copied()
    }

    /// The number of thread slots.
    pub(crate) fn slot_count(&self) -> usize {
        self.histories.len()
    }

    /// Runs an execution that begins with `steps`. Returns the threads that wait for descriptors
    /// which are ready after these steps.
    pub(crate) fn ready_after(&mut self, steps: Vec<Choice>) -> Result<ThreadSet, Need> {
        if let Some(&known) = self.ready_cache.get(&steps) {
            return Ok(known);
        }
        let prefix = Prefix { steps: &steps, stale_values: &[] };
        let new = run(self.program, &mut self.server, prefix, Stacks::Omitted)?;
        let ready = new.ready_after(steps.len());
        self.ready_cache.insert(steps, ready);
        Ok(ready)
    }

    /// The fields of all objects now.
    pub(crate) fn cells(&self) -> Vec<u64> {
        self.state.cells(&self.program.names())
    }

    /// Writes to `pending` which objects `op` accesses: see [`State::write_pending`].
    pub(crate) fn write_pending(
        &self,
        thread: ThreadId,
        op: &Op,
        names: &Names,
        pending: &mut Pending,
    ) {
        self.state.write_pending(&self.context(names, self.ready()), thread, op, pending);
    }

    pub(crate) fn set_prepared(&mut self, prepared: Option<Prepared>) {
        self.prepared = prepared;
    }

    pub(crate) fn take_prepared(&mut self) -> Option<Prepared> {
        self.prepared.take()
    }

    /// The objects that described steps have used, sorted.
    pub(crate) fn used(&self) -> &[u32] {
        &self.used
    }

    /// Adds an object to [`used`](Execution::used).
    pub(crate) fn use_object(&mut self, object: u32) {
        if let Err(at) = self.used.binary_search(&object) {
            self.used.insert(at, object);
        }
    }

    /// The result of the `nth` operation of a thread.
    pub(crate) fn outcome(&self, thread: ThreadId, nth: usize) -> Outcome {
        self.histories[thread.index()].outcomes.get(nth).copied().unwrap_or_default()
    }

    /// The value of an atomic variable after the described steps, if one of them has used it.
    pub(crate) fn value(&self, object: u32) -> Option<&str> {
        self.values.get(&object).map(String::as_str)
    }

    /// The cached names of objects. The guard must not be held across calls that use it.
    pub(crate) fn object_names(&self) -> RefMut<'_, HashMap<u32, String>> {
        self.object_names.borrow_mut()
    }

    /// Sets the value of an atomic variable after the described steps.
    pub(crate) fn set_value(&mut self, object: u32, value: String) {
        self.values.insert(object, value);
    }

    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    pub(crate) fn program(&self) -> &'p Native {
        self.program
    }

    /// Sets `failure` to that of the trace, whose first `taken` steps have not failed.
    fn find_failure(&mut self, taken: usize) {
        let program = self.program;
        let names = program.names();
        let (executable, symbols) = (&program.executable, program.symbols());
        let judge = verdict::Judge { trace: &self.trace, executable, names: &names, symbols };
        let found = judge.failure(taken).or_else(|| {
            let expected = program.expected_output()?;
            let compared =
                Some(&self.trace.run).filter(|run| run.outcome == ExecutionEnd::Exited)?;
            let failure = verdict::output_failure(&compared.output, &expected)?;
            Some((self.trace.steps.len(), failure))
        });
        self.failure = found.map(|(at, failure)| (at, Box::new(failure)));
    }

    /// Runs an execution that begins with `path` and `choice`. Returns a failure if the steps of
    /// `path` did not lead to the same operations as before.
    fn deviate(&mut self, choice: Choice) -> Result<Option<Box<Failure>>, Need> {
        let mut steps = self.path.clone();
        steps.push(choice);
        let stale_values = self.stale_values(Some(choice));
        let prefix = Prefix { steps: &steps, stale_values: &stale_values };
        let new = run(self.program, &mut self.server, prefix, self.stacks)?;
        if let Some(failure) = self.difference(&new, &steps) {
            return Ok(Some(failure));
        }
        self.trace = new;
        self.find_failure(steps.len());
        Ok(None)
    }

    /// Under weak memory, a number for each step so far and for `next`: the value that it reads if
    /// it is stale.
    pub(crate) fn stale_values(&self, next: Option<Choice>) -> Vec<u64> {
        let Some(weak) = &self.weak else { return Vec::new() };
        let mut values: Vec<u64> =
            weak.steps().iter().map(|step| step.outcome.found as u64).collect();
        let stale = next.filter(|choice| choice.alternative != 0).and_then(|choice| {
            let op = self.next_op(choice.thread).0.filter(|op| op.kind.is_atomic())?;
            Some(weak.stored(op.object, choice.alternative).value)
        });
        values.push(stale.unwrap_or(0));
        values
    }

    /// The memory machine, under weak memory.
    pub(crate) fn weak(&self) -> Option<&WeakMemory> {
        self.weak.as_ref()
    }

    /// Adds the alternatives of weak memory to the pending step of a thread.
    fn add_stale_alternatives(&self, thread: ThreadId, pending: &mut Pending) {
        pending.stale_from = NEVER_STALE;
        let Some(weak) = &self.weak else { return };
        let (Some(op), count) = self.next_op(thread) else { return };
        let can_step = matches!(pending.status, Status::Enabled | Status::Spinning);
        if !can_step || !op.kind.is_atomic() || self.trace.opaque.contains(&op.object) {
            return;
        }
        pending.stale_from = 1;
        if self.histories[thread.index()].spins_on_stale_values(count) {
            return self.program.rely_on(Assumption::Visible, op.pc);
        }
        let (_, footprint) = pending.footprints[0].clone();
        let all = weak.alternatives(thread, &op);
        pending.footprints = all.into_iter().map(|nth| (nth, footprint.clone())).collect();
    }

    /// Compares a new execution of `steps` with the operations that these steps led to before.
    fn difference(&self, new: &Trace, steps: &[Choice]) -> Option<Box<Failure>> {
        let mut counts = vec![0; self.histories.len()];
        let recorded =
            |thread: ThreadId, nth: usize| self.histories[thread.index()].ops.get(nth).copied();
        let differs = |steps, thread, before, now| {
            Some(self.nondeterminism(Difference { steps, thread, before, now }))
        };
        for &(thread, op) in &new.initial {
            let before = recorded(thread, 0);
            if before != Some(op) {
                return differs(0, thread, before, Some(op));
            }
        }
        for (at, &choice) in steps.iter().enumerate() {
            let thread = choice.thread;
            let Some(step) = new.steps.get(at).filter(|step| step.choice == choice) else {
                return differs(at, thread, recorded(thread, counts[thread.index()]), None);
            };
            counts[thread.index()] += 1;
            if at == self.path.len() {
                // The operations after the last step are new.
                break;
            }
            for (thread, op) in step.announced() {
                let before = recorded(thread, counts[thread.index()]);
                if before != Some(op) {
                    return differs(at + 1, thread, before, Some(op));
                }
            }
        }
        None
    }

    fn nondeterminism(&self, difference: Difference) -> Box<Failure> {
        let Difference { steps, thread, before, now } = difference;
        let names = self.program.names();
        let symbols = self.program.symbols();
        let who = names.thread_name(thread.index());
        let describe = |op: Option<Op>| match op {
            Some(op) => crate::describe::op(&names, symbols, &op),
            None => "no operation that it can perform".to_owned(),
        };
        let message = format!(
            "the same schedule led to two different executions: after {}, {who} reached {}, but \
             earlier it reached {}; {}",
            counted(steps as u64, "step"),
            describe(now),
            describe(before),
            suspects(&self.program.notes()),
        );
        let site = now.or(before).and_then(|op| symbols.caller(op.pc));
        Box::new(Failure { kind: FailureKind::Nondeterminism, message, site })
    }

    /// Takes the next step of the trace.
    fn follow(&mut self, step: &Step) -> Result<Option<Box<Failure>>, Need> {
        let program = self.program;
        let thread = step.choice.thread;
        let count = self.state.count(thread);
        let op = self.histories[thread.index()].ops[count];
        for &(started, op) in &step.started {
            self.histories[started.index()] = History::starting(op);
        }
        let names = program.names();
        let mut pending = Pending::vacant();
        if self.weak.is_some() {
            self.state.ask(&self.context(&names, self.ready()), thread, &mut pending);
        }
        let result = self.state.step(&names, thread, &op, &step.outcome);
        if let Some(weak) = &mut self.weak {
            let footprint = pending.footprints.pop().map(|(_, footprint)| footprint);
            weak.perform(Performed {
                thread,
                op,
                outcome: step.outcome,
                footprint: footprint.unwrap_or_default(),
                is_opaque: self.trace.opaque.contains(&op.object),
                has_acquired: result == Ok(1),
            });
        }
        let seen = [op.object, op.other].map(|object| self.state.version(object));
        let outcome = Outcome { seen, ..step.outcome };
        self.histories[thread.index()].record(count, outcome, step.next);
        self.path.push(step.choice);
        if self.concerns_process(thread, &op, count) {
            return Err(Need::Process);
        }
        if let Err(misuse) = result {
            let site = program.symbols().caller(op.pc);
            let message = format!(
                "{}: {misuse}",
                crate::describe::object(&names, program.symbols(), op.object)
            );
            self.state.fail();
            return Ok(Some(Box::new(Failure { kind: FailureKind::Runtime, message, site })));
        }
        let failure = self.failure.as_ref().filter(|(at, _)| *at == self.path.len());
        if failure.is_some() {
            self.state.fail();
        }
        Ok(failure.map(|(_, failure)| failure.clone()))
    }

    /// Whether the step `op`, the thread's operation number `count`, shows that steps must depend
    /// on [`PROCESS`](crate::names::PROCESS), and they do not yet: see [`crate::state`].
    fn concerns_process(&self, thread: ThreadId, op: &Op, count: usize) -> bool {
        if self.program.needs.process {
            return false;
        }
        // If atomics are visible, so is the condition for which a loop with a yield waits, unless
        // the loop does nothing but yield.
        let yields = match self.program.executable.level {
            Level::Calls | Level::Locked => op.yields(),
            _ => self.histories[thread.index()].yields_again(count + 1),
        };
        let main_ends = op.kind == OpKind::Finish && thread.index() == 0;
        (op.kind == OpKind::Exit || main_ends || yields) && self.others_live(thread)
    }

    /// Records the assumption under which the search holds a thread back.
    fn rely_on_hold(&self, thread: ThreadId) {
        let (next, count) = self.next_op(thread);
        let history = &self.histories[thread.index()];
        let round = history.round(count);
        if round == 0 {
            return self.program.rely_on(Assumption::Yield, next.map_or(0, |op| op.pc));
        }
        let last = &history.ops[count - round..count];
        match last.iter().find(|op| op.yields()) {
            Some(op) => self.program.rely_on(Assumption::Yield, op.pc),
            None => self.program.rely_on(Assumption::Loop, last[round - 1].pc),
        }
    }

    /// Whether a thread other than `thread` has a next operation.
    fn others_live(&self, thread: ThreadId) -> bool {
        let mut others = self.state.started.without(thread).iter();
        others.any(|other| self.next_op(other).0.is_some())
    }
}

/// Converts a choice to the runtime's type.
pub(crate) fn block_choice(choice: Choice) -> BlockChoice {
    BlockChoice { thread: choice.thread.index() as u32, alternative: choice.alternative }
}

/// Where to look for the reason why executions differ.
fn suspects(notes: &[String]) -> String {
    if notes.is_empty() {
        return "look for input that changes between executions: the program has opened no file \
                and asked for no process id, so it may depend on addresses, on the processor's \
                clock, or on other processes"
            .to_owned();
    }
    format!("look for input that changes between executions: the program {}", notes.join(", "))
}

/// The beginning of an execution.
#[derive(Clone, Copy, Default)]
struct Prefix<'a> {
    steps: &'a [Choice],
    /// As in [`Request`].
    stale_values: &'a [u64],
}

/// Runs one execution that begins with a prefix.
fn run(
    program: &Native,
    server: &mut Option<Server>,
    Prefix { steps, stale_values }: Prefix<'_>,
    stacks: Stacks,
) -> Result<Trace, Need> {
    let prefix: Vec<BlockChoice> = steps.iter().map(|&step| block_choice(step)).collect();
    loop {
        let slots = program.names().slots.clone();
        let running = server.as_mut().expect("an execution has a server until it is dropped");
        let request = Request { prefix: &prefix, stale_values, slots: &slots, stacks };
        let run = running.run(request).map_err(|error| {
            // The server was killed.
            *server = None;
            program.refuse_run(error)
        })?;
        program.count_run(&run);
        if program.level() == Level::Locked && run.dies_of_trap(libc::SIGTRAP) {
            return Err(program.refuse(
                "the program executes an atomic instruction while it blocks the signal SIGTRAP, or \
                 has replaced its handler, so that the instruction cannot be controlled: leave out \
                 --atomics"
                    .to_owned(),
            ));
        }
        if run.dies_of_trap(libc::SIGSYS) {
            return Err(program.refuse(
                "the program makes a system call without the C library while it blocks the signal \
                 SIGSYS, or has replaced its handler, so that the call cannot be controlled"
                    .to_owned(),
            ));
        }
        let mut names = program.names();
        if names.slots != slots {
            // Another worker has assigned slots in the meantime, perhaps to the same threads.
            continue;
        }
        if let Some(order) = crate::names::sorted(&run.slots) {
            return Err(program.reorder(order));
        }
        names.slots.clone_from(&run.slots);
        if names.slots.len() + 1 > program.slots() {
            return Err(Need::Slots(names.slots.len() + 1));
        }
        let text = String::from_utf8_lossy(&run.text).into_owned();
        return match run.outcome {
            ExecutionEnd::Unsupported => Err(program.refuse(unsupported::refusal(&text))),
            ExecutionEnd::Full => Err(program.refuse(text)),
            ExecutionEnd::Fault => panic!("an invariant of the runtime is violated: {text}"),
            _ => {
                let mut trace = Trace::decode(run, &mut names).map_err(Need::Mixed)?;
                if program.executable.memory == MemoryModel::Weak {
                    trace.opaque = opaque::find(program, &trace, &names)?;
                    program.opaque_variables.fetch_max(trace.opaque.len(), Relaxed);
                }
                Ok(trace)
            }
        };
    }
}

impl System for Execution<'_> {
    type Need = Need;
    type State = State;

    fn threads(&self) -> usize {
        self.program.slots()
    }

    fn ask(&mut self, thread: ThreadId, pending: &mut Pending) -> Result<(), Need> {
        if self.broken {
            pending.set_nothing(Status::Ended);
            return Ok(());
        }
        let program = self.program;
        self.state.ask(&self.context(&program.names(), self.ready()), thread, pending);
        let timed = self.next_op(thread).0.is_some_and(|op| op.is_timed());
        if timed && self.others_live(thread) {
            if !program.needs.process {
                return Err(Need::Process);
            }
            // It would not have to wait if other threads could be delayed for any time.
            if pending.status == Status::Blocked {
                program.rely_on_max_delay();
            }
        }
        if pending.status == Status::Spinning {
            self.rely_on_hold(thread);
        }
        self.add_stale_alternatives(thread, pending);
        Ok(())
    }

    fn step(&mut self, choice: Choice) -> Result<Option<Box<Failure>>, Need> {
        let at = self.path.len();
        if self.trace.steps.get(at).is_none_or(|step| step.choice != choice)
            && let Some(failure) = self.deviate(choice)?
        {
            self.path.push(choice);
            self.broken = true;
            return Ok(Some(failure));
        }
        let step = self.trace.steps[at].clone();
        self.follow(&step)
    }

    fn failure(&self) -> Option<&Failure> {
        self.initial_failure.as_deref()
    }

    fn has_failed(&self) -> bool {
        self.state.has_failed()
    }

    fn rewind(&mut self, len: usize) {
        self.path.truncate(len);
        self.broken = false;
        let mut state = self.initial();
        let names = self.program.names();
        for &choice in &self.path {
            state.advance(&names, choice.thread, &self.histories[choice.thread.index()]);
        }
        self.state = state;
        if let Some(weak) = &mut self.weak {
            weak.rewind(len, self.initial_threads);
        }
    }

    fn name(&self) -> Option<Fingerprint> {
        self.weak.as_ref().map(WeakMemory::name)
    }

    fn affects_all(&self) -> bool {
        self.weak.is_some()
    }

    fn words(&self) -> Option<&[u64]> {
        None
    }

    fn initially_running(&self) -> Option<ThreadId> {
        Some(ThreadId::new(0))
    }

    /// The end of the main thread ends the process, which other threads notice.
    fn is_ending(&self, thread: ThreadId) -> bool {
        thread.index() != 0 && self.next_op(thread).0.is_some_and(|op| op.kind == OpKind::Finish)
    }

    /// It cannot be observed from outside whether a program that only yields runs forever: the step
    /// limit decides.
    fn livelock_rounds(&self) -> u32 {
        u32::MAX
    }

    fn location_kind(&self, location: Location) -> LocationKind {
        match Names::thread(location) {
            Some(thread) => LocationKind::Life(thread),
            None => LocationKind::Synchronisation,
        }
    }

    fn location_name(&self, location: Location) -> String {
        let names = self.program.names();
        match Names::thread(location) {
            Some(thread) => names.thread_name(thread.index()),
            None => crate::describe::object(&names, self.program.symbols(), location.0),
        }
    }

    /// Invisible code may read or write what other threads write. Two executions can then differ
    /// although they have the same graph. The difference shows in the values that threads have
    /// found so far and in their next operations.
    fn announced(&self) -> u64 {
        let mut mixer = Mixer::new();
        for thread in self.state.started.iter() {
            mixer.absorb(self.histories[thread.index()].digest(self.state.count(thread)));
            if let Some(op) = self.next_op(thread).0 {
                mixer.absorb(op.pc);
                mixer.absorb(u64::from(op.object) << 32 | u64::from(op.detail.number));
                mixer.absorb(op.detail.operands);
            }
        }
        mixer.finish().0 as u64
    }

    fn initial(&self) -> State {
        State::new(self.program.slots(), self.initial_threads, &self.program.names())
    }

    fn advance(&mut self, state: &mut State, choice: Choice) -> Result<(), Need> {
        let history = &self.histories[choice.thread.index()];
        state.advance(&self.program.names(), choice.thread, history);
        Ok(())
    }

    fn ask_at(&mut self, state: &State, thread: ThreadId) -> Result<Pending, Need> {
        let mut pending = Pending::vacant();
        let ready = self.ready_at(state, thread)?;
        state.ask(&self.context(&self.program.names(), ready), thread, &mut pending);
        Ok(pending)
    }
}

impl Drop for Execution<'_> {
    fn drop(&mut self) {
        if let Some(server) = self.server.take() {
            self.program.release(server);
        }
    }
}
