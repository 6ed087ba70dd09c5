//! An execution of an executable as a system: it can be stepped, asked, and rewound.
//!
//! A child runs a whole execution: the wanted steps, then the rest without preemptions. Its trace
//! says what every thread would do next after every step. As long as a search takes the steps of
//! the trace, nothing runs; only a step that deviates from it starts a child. A search that
//! continues where the running thread does, as all systematic ones do, needs about one child for
//! each execution.
//!
//! # Why a step to a known state is executed
//!
//! Searches with a cache of happens-before graphs take every step from every state once. Most of
//! the steps that deviate lead to a state that another order of independent steps has reached
//! before: over the programs of `corpus/native`, a child is run for 18 of them to find one new
//! graph, and without these children it would be 2. The effect of such a step seems to be known
//! already: what a thread does up to its next operation is a function of what happens before its
//! step, if there are no data races and all synchronisation is visible. Taking the step from memory
//! was tried, and comparing every later child with what had been supposed. It is not done, because
//! the search then goes back before any child shows that the assumption is wrong. Errors were lost,
//! among them that of `panics.rs`, whose atomic instructions are not visible. They are found because
//! the child is run, and the operation that a thread then reaches is part of the cached name
//! ([`System::announced`]). For a program that is known to have no data races there is
//! `--reduce cb-por`, which relies on the same assumption and needs 2 children for a graph.

use std::cell::{RefCell, RefMut};
use std::collections::HashMap;

use preempt_native_block::{Choice as Wanted, Op as OpKind, Outcome as End};
use preempt_report::number::counted;
use preempt_system::fingerprint::Mixer;
use preempt_system::{
    Choice, Failure, FailureKind, Location, LocationKind, Pending, Status, System, ThreadId,
    ThreadSet,
};

use crate::level::Level;
use crate::names::Names;
use crate::program::{Assumption, Native, Need};
use crate::server::{Request, Server, Stacks};
use crate::source::Sources;
use crate::state::{Context, History, Op, Outcome, State};
use crate::trace::{Difference, Step, Trace};
use crate::verdict;

/// What is known before a step, for its description.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) op: Op,
    /// The number of operations that the thread has performed before.
    pub(crate) nth: usize,
    /// The fields of all objects.
    pub(crate) before: Vec<u64>,
}

/// An execution.
pub struct Execution<'p> {
    program: &'p Native,
    server: Option<Server>,
    histories: Vec<History>,
    state: State,
    /// The threads before the first step.
    first: ThreadSet,
    /// The steps of the current execution.
    path: Vec<Choice>,
    /// The execution that was run last; the path is a part of it up to where it deviates.
    trace: Trace,
    /// What goes wrong in that execution, after this many steps.
    failure: Option<(usize, Box<Failure>)>,
    /// The failure before the first step.
    initial_failure: Option<Box<Failure>>,
    /// The execution cannot continue: it is not the one that it was.
    broken: bool,
    /// Whether children record call stacks.
    stacks: Stacks,
    prepared: Option<Prepared>,
    used: Vec<u32>,
    /// What was found ready after steps that were executed to find out: see [`crate::ready`].
    asked: HashMap<Vec<Choice>, ThreadSet>,
    /// The values of atomic variables after the described steps.
    values: HashMap<u32, String>,
    /// The names of the objects that were described.
    object_names: RefCell<HashMap<u32, String>>,
    sources: Sources,
}

impl<'p> Execution<'p> {
    pub(crate) fn new(program: &'p Native, stacks: Stacks) -> Result<Execution<'p>, Need> {
        let mut server = Some(program.server()?);
        let mut trace = run(program, &mut server, &[], stacks)?;
        let mut changed = program.differs_from_first(&trace);
        if program.keep_first(&trace) {
            // Without a second execution, a program that is never the same could go unnoticed: the
            // steps that a search repeats may be the same in all executions.
            trace = run(program, &mut server, &[], stacks)?;
            changed = program.differs_from_first(&trace);
        }
        let first: ThreadSet = trace.initial.iter().map(|&(thread, _)| thread).collect();
        let mut execution = Execution {
            program,
            server,
            histories: vec![History::default(); program.slots()],
            state: State::new(program.slots(), first, &program.names()),
            first,
            path: Vec::new(),
            failure: None,
            initial_failure: None,
            trace,
            broken: false,
            stacks,
            prepared: None,
            used: Vec::new(),
            asked: HashMap::new(),
            values: HashMap::new(),
            object_names: RefCell::default(),
            sources: Sources::default(),
        };
        for (thread, op) in execution.trace.initial.clone() {
            execution.histories[thread.index()].ops.push(op);
        }
        execution.judge(0);
        execution.initial_failure =
            execution.failure.take_if(|(at, _)| *at == 0).map(|(_, failure)| failure);
        if let Some(difference) = changed {
            execution.initial_failure = Some(execution.nondeterminism(difference));
        } else if let Some(wanted) = program.wanted_output()
            && let Some(other) = verdict::other_output(&execution.trace.run.output, &wanted)
        {
            // It is the execution without preemptions.
            let message = other.message.replacen(
                "the output",
                "the same schedule was executed twice, and the output",
                1,
            );
            execution.initial_failure =
                Some(Box::new(Failure { kind: FailureKind::Nondeterminism, message, ..other }));
        }
        if execution.initial_failure.is_some() {
            execution.state.fail();
        }
        Ok(execution)
    }

    /// The state after the steps so far.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// The next operation of a thread, and how many it has performed.
    pub(crate) fn next_op(&self, thread: ThreadId) -> (Option<Op>, usize) {
        let count = self.state.count(thread);
        (self.histories[thread.index()].ops.get(count).copied(), count)
    }

    /// The slots of the threads in the order in which the current execution starts them.
    pub(crate) fn order(&self) -> impl Iterator<Item = usize> {
        let taken = self.path.len();
        self.trace.starts.iter().take_while(move |(step, _)| *step <= taken).map(|(_, slot)| *slot)
    }

    /// The execution that was run last.
    pub(crate) fn trace(&self) -> &Trace {
        &self.trace
    }

    /// What the state alone does not know.
    fn context<'c>(&'c self, names: &'c Names, ready: ThreadSet) -> Context<'c> {
        let (histories, needs) = (&self.histories[..], self.program.needs);
        Context { names, histories, needs, max_delay: self.program.executable.max_delay(), ready }
    }

    /// The threads that wait for descriptors which are ready now.
    fn ready(&self) -> ThreadSet {
        self.trace.ready_after(self.path.len())
    }

    /// The steps of the current execution.
    pub(crate) fn path(&self) -> &[Choice] {
        &self.path
    }

    /// The operation of a thread after this many others.
    pub(crate) fn op_at(&self, thread: ThreadId, nth: usize) -> Option<Op> {
        self.histories[thread.index()].ops.get(nth).copied()
    }

    /// The number of thread slots.
    pub(crate) fn threads_known(&self) -> usize {
        self.histories.len()
    }

    /// Runs an execution that begins with these steps. Returns the threads that wait for
    /// descriptors which are ready after them.
    pub(crate) fn ready_after(&mut self, steps: Vec<Choice>) -> Result<ThreadSet, Need> {
        if let Some(&known) = self.asked.get(&steps) {
            return Ok(known);
        }
        let new = run(self.program, &mut self.server, &steps, Stacks::Omitted)?;
        let ready = new.ready_after(steps.len());
        self.asked.insert(steps, ready);
        Ok(ready)
    }

    /// The fields of all objects now.
    pub(crate) fn cells(&self) -> Vec<u64> {
        self.state.cells(&self.program.names())
    }

    /// What an operation of a thread touches.
    pub(crate) fn offer(&self, thread: ThreadId, op: &Op, names: &Names, pending: &mut Pending) {
        self.state.offer(&self.context(names, self.ready()), thread, op, pending);
    }

    /// Keeps what the description of the next step needs.
    pub(crate) fn set_prepared(&mut self, prepared: Option<Prepared>) {
        self.prepared = prepared;
    }

    /// What was kept before the last step.
    pub(crate) fn take_prepared(&mut self) -> Option<Prepared> {
        self.prepared.take()
    }

    /// The objects that described steps have used.
    pub(crate) fn used(&self) -> &[u32] {
        &self.used
    }

    /// Adds an object to these.
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

    /// The names of the objects that were described. They must not be borrowed across calls.
    pub(crate) fn object_names(&self) -> RefMut<'_, HashMap<u32, String>> {
        self.object_names.borrow_mut()
    }

    /// Keeps the value of an atomic variable.
    pub(crate) fn set_value(&mut self, object: u32, value: String) {
        self.values.insert(object, value);
    }

    /// The text of the program.
    pub(crate) fn sources(&self) -> &Sources {
        &self.sources
    }

    /// The program.
    pub(crate) fn program(&self) -> &'p Native {
        self.program
    }

    /// Determines what goes wrong in the trace after its first `settled` steps.
    fn judge(&mut self, settled: usize) {
        let program = self.program;
        let names = program.names();
        let found = verdict::failure(
            &self.trace,
            settled,
            (program.executable.expected_exit, program.executable.harness),
            program.symbols(),
            |location| crate::describe::object(&names, program.symbols(), location),
            |slot| names.thread_name(slot),
        );
        let found = found.or_else(|| {
            let wanted = program.wanted_output()?;
            let compared = Some(&self.trace.run).filter(|run| run.outcome == End::Exited)?;
            Some((self.trace.steps.len(), verdict::other_output(&compared.output, &wanted)?))
        });
        self.failure = found.map(|(at, failure)| (at, Box::new(failure)));
    }

    /// Runs an execution that begins with the path and `choice`. A failure means that the steps of
    /// the path did not lead to where they led before.
    fn deviate(&mut self, choice: Choice) -> Result<Option<Box<Failure>>, Need> {
        let mut wanted = self.path.clone();
        wanted.push(choice);
        let new = run(self.program, &mut self.server, &wanted, self.stacks)?;
        if let Some(failure) = self.difference(&new, &wanted) {
            return Ok(Some(failure));
        }
        self.trace = new;
        self.judge(wanted.len());
        Ok(None)
    }

    /// Where a new execution of the wanted steps differs from what they led to before.
    fn difference(&self, new: &Trace, wanted: &[Choice]) -> Option<Box<Failure>> {
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
        for (at, &choice) in wanted.iter().enumerate() {
            let thread = choice.thread;
            let Some(step) = new.steps.get(at).filter(|step| step.choice == choice) else {
                return differs(at, thread, recorded(thread, counts[thread.index()]), None);
            };
            counts[thread.index()] += 1;
            if at == self.path.len() {
                // What follows is new.
                break;
            }
            let arrived = step.next.map(|op| (thread, op)).into_iter().chain(step.started.clone());
            for (thread, op) in arrived {
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
            "the same schedule does not lead to the same execution: after {}, {who} arrives at {}, \
             and arrived at {} before; {}",
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
        let done = self.state.step(&names, thread, &op, &step.outcome);
        let seen = [op.object, op.other].map(|object| self.state.version(object));
        let outcome = Outcome { seen, ..step.outcome };
        self.histories[thread.index()].record(count, outcome, step.next);
        self.path.push(step.choice);
        if !program.needs.process {
            // If atomics are visible, so is what a loop with a yield waits for, unless it does
            // nothing but yield.
            let yields = match program.executable.level {
                Level::Calls => op.yields(),
                _ => self.histories[thread.index()].yields_again(count + 1),
            };
            let leaves = op.kind == OpKind::Finish && thread.index() == 0;
            let concerns_all = op.kind == OpKind::Exit || leaves || yields;
            if concerns_all && self.others_live(thread) {
                return Err(Need::Process);
            }
        }
        if let Err(misuse) = done {
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

    /// Records what the search relies on when it holds a thread back.
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

    fn others_live(&self, thread: ThreadId) -> bool {
        let mut others = self.state.started.without(thread).iter();
        others.any(|other| self.next_op(other).0.is_some())
    }
}

/// A choice as the runtime takes it.
pub(crate) fn wanted(choice: Choice) -> Wanted {
    Wanted { thread: choice.thread.index() as u32, alternative: choice.alternative }
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

/// Runs one execution that begins with these steps, if it can be run.
fn run(
    program: &Native,
    server: &mut Option<Server>,
    steps: &[Choice],
    stacks: Stacks,
) -> Result<Trace, Need> {
    let prefix: Vec<Wanted> = steps.iter().map(|&step| wanted(step)).collect();
    loop {
        let slots = program.names().slots.clone();
        let running = server.as_mut().expect("an execution has a server until it is dropped");
        let request = Request { prefix: &prefix, slots: &slots, stacks };
        program.count_child();
        let done = running.run(request).map_err(|stuck| {
            // The server was ended.
            *server = None;
            program.refuse_stuck(stuck)
        })?;
        program.count_oversynchronised(done.oversynchronised);
        program.keep_notes(&done.notes);
        program.count_trapped(done.trapped);
        if done.dies_of_trap() {
            return Err(program.refuse(
                "the program makes a system call without the C library while it blocks the signal \
                 SIGSYS, or has replaced its handler, so that the call cannot be controlled"
                    .to_owned(),
            ));
        }
        let mut names = program.names();
        if names.slots != slots {
            // Another worker has given slots in the meantime, perhaps the same ones.
            continue;
        }
        if let Some(order) = crate::names::sorted(&done.slots) {
            return Err(program.reorder(order));
        }
        names.slots.clone_from(&done.slots);
        if names.slots.len() + 1 > program.slots() {
            return Err(Need::Slots(names.slots.len() + 1));
        }
        let text = String::from_utf8_lossy(&done.text).into_owned();
        match done.outcome {
            End::Unsupported => {
                let why = format!(
                    "the program uses {text}, which is not supported: see docs/guide/executables.md"
                );
                return Err(program.refuse(why));
            }
            End::Full => return Err(program.refuse(text)),
            End::Fault => panic!("the runtime keeps its rules: {text}"),
            _ => return Trace::decode(done, &mut names).map_err(Need::Mixed),
        }
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
            // It waits although it would not if others could be delayed for any time.
            if pending.status == Status::Blocked {
                program.rely_on_max_delay();
            }
        }
        if pending.status == Status::Spinning {
            self.rely_on_hold(thread);
        }
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
    }

    fn words(&self) -> Option<&[u64]> {
        None
    }

    fn initially_running(&self) -> Option<ThreadId> {
        Some(ThreadId::new(0))
    }

    /// Whether a program that only yields runs forever cannot be observed from outside: the limit
    /// of steps decides.
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

    /// Code that is not visible may read or write what others write: an execution is then another
    /// one, although it has the same graph. It shows in what threads have found so far, and in what
    /// they are about to do.
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
        State::new(self.program.slots(), self.first, &self.program.names())
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
