//! One execution, decoded from the log of a child: the result of each step, and how it ended.

use std::collections::{BTreeSet, HashMap};

use preempt_native_block::{
    Event, Misuse, NEVER, ObjectKind, Op as OpKind, Outcome as End, Record,
};
use preempt_system::{Choice, ThreadId, ThreadSet};

use crate::names::{DESCRIPTORS, NOTHING, Names, ObjectName};
use crate::server::{Output, Run};
use crate::state::{Detail, Op, Outcome};
use crate::weak;

/// One step: an operation, and the code after it up to the thread's next operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) choice: Choice,
    pub(crate) outcome: Outcome,
    /// The next operation of the thread, unless the thread or the process has ended.
    pub(crate) next: Option<Op>,
    /// The threads that wait for descriptors which are ready after the step.
    pub(crate) ready: ThreadSet,
    /// The threads that the step created, with their first operations.
    pub(crate) started: Vec<(ThreadId, Op)>,
}

impl Step {
    /// The operations that the step made known: the next one of its thread and the first ones of
    /// the threads that it created.
    pub(crate) fn announced(&self) -> impl Iterator<Item = (ThreadId, Op)> {
        let next = self.next.map(|op| (self.choice.thread, op));
        next.into_iter().chain(self.started.iter().copied())
    }
}

/// An error in the code after a step, after which the execution continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incident {
    /// A Rust panic.
    Panic { thread: ThreadId },
    /// The misuse of an object by the call that returns to `pc`.
    Misuse { misuse: Misuse, object: u32, pc: u64 },
    /// A data race on the memory at an address.
    Race { address: u64, first: Access, second: Access },
    /// The misuse of memory by the call that returns to `pc`. `freed` is the thread that freed the
    /// memory, and the return address of that call.
    Memory { misuse: Misuse, pc: u64, freed: (ThreadId, u64) },
}

/// A plain access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) thread: ThreadId,
    pub(crate) pc: u64,
    pub(crate) writes: bool,
}

/// An execution.
#[derive(Clone, Debug)]
pub(crate) struct Trace {
    /// The threads that exist before the first step, with their first operations: the main thread,
    /// unless the process ended before its first operation, and threads that it had created by
    /// then.
    pub(crate) initial: Vec<(ThreadId, Op)>,
    /// The threads of `initial` that wait for descriptors which are ready.
    pub(crate) initially_ready: ThreadSet,
    pub(crate) steps: Vec<Step>,
    /// The first incident that is not a panic, and the number of steps before it.
    pub(crate) incident: Option<(usize, Incident)>,
    /// The first panic, and the number of steps before it.
    pub(crate) panic: Option<(usize, Incident)>,
    /// The run, without its events.
    pub(crate) run: Run,
    /// If call stacks were recorded: for a thread and the number of its operation, the return
    /// addresses of the callers, innermost first.
    pub(crate) frames: HashMap<(ThreadId, usize), Vec<u64>>,
    /// Under weak memory, the [opaque](crate::weak) variables of this execution.
    pub(crate) opaque: BTreeSet<u32>,
    /// The entry points of threads.
    pub(crate) entries: HashMap<ThreadId, u64>,
    /// For each thread in the order in which they were started, the number of steps before it
    /// existed, and its slot. The main thread is the first, even if it created others before its
    /// first operation.
    pub(crate) starts: Vec<(usize, usize)>,
}

/// Computes [`Trace::starts`].
fn starts(trace: &Trace) -> Vec<(usize, usize)> {
    let initial = trace.initial.iter().map(|(thread, _)| (0, thread.index()));
    let mut starts: Vec<_> = initial.collect();
    starts.sort_by_key(|&(_, slot)| slot != 0);
    let steps = trace.steps.iter().enumerate();
    starts.extend(
        steps.flat_map(|(nth, step)| step.started.iter().map(move |(t, _)| (nth + 1, t.index()))),
    );
    starts
}

impl Trace {
    /// Decodes a run. New objects get a name. `Err` is the address of atomic variables that
    /// overlap: see [`Names::locate_atomic`].
    pub(crate) fn decode(mut run: Run, names: &mut Names) -> Result<Trace, u64> {
        let events = std::mem::take(&mut run.events);
        let mut decoder = Decoder {
            trace: Trace {
                initial: Vec::new(),
                initially_ready: ThreadSet::EMPTY,
                steps: Vec::new(),
                incident: None,
                panic: None,
                run,
                frames: HashMap::new(),
                opaque: BTreeSet::new(),
                entries: HashMap::new(),
                starts: Vec::new(),
            },
            names,
            lives: HashMap::new(),
            announced: Vec::new(),
            last: None,
            mixed: None,
            deadline: NEVER,
            expected: 0,
        };
        events.iter().for_each(|event| decoder.event(event));
        decoder.trace.starts = starts(&decoder.trace);
        decoder.mixed.map_or(Ok(decoder.trace), Err)
    }

    /// The threads that wait for descriptors which are ready after the first `steps` steps.
    pub(crate) fn ready_after(&self, steps: usize) -> ThreadSet {
        match steps.checked_sub(1).and_then(|last| self.steps.get(last)) {
            Some(step) => step.ready,
            None => self.initially_ready,
        }
    }
}

impl Trace {
    /// Each step of the execution with its thread, the number of that thread's operations before
    /// it, and the operation.
    pub(crate) fn operations(&self) -> impl Iterator<Item = (ThreadId, usize, Op, &Step)> {
        let mut next: HashMap<ThreadId, Op> = self.initial.iter().copied().collect();
        let mut counts: HashMap<ThreadId, usize> = HashMap::new();
        self.steps.iter().filter_map(move |step| {
            let thread = step.choice.thread;
            let op = next.remove(&thread);
            next.extend(step.announced());
            let count = counts.entry(thread).or_default();
            *count += 1;
            Some((thread, *count - 1, op?, step))
        })
    }
}

/// Where two executions of the same schedule differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The number of steps that both have in common.
    pub(crate) steps: usize,
    /// The thread that reaches another operation.
    pub(crate) thread: ThreadId,
    /// The operation that it reached in the earlier execution.
    pub(crate) before: Option<Op>,
    /// The operation that it reached in the later execution.
    pub(crate) now: Option<Op>,
}

/// An execution with which later ones are compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    initial: Vec<(ThreadId, Op)>,
    steps: Vec<Step>,
    pub(crate) output: Output,
    /// Whether the program ended its process itself.
    pub(crate) exited: bool,
}

impl Reference {
    pub(crate) fn of(trace: &Trace) -> Reference {
        Reference {
            initial: trace.initial.clone(),
            steps: trace.steps.clone(),
            output: trace.run.output.clone(),
            exited: trace.run.outcome == End::Exited,
        }
    }

    /// The first difference between this execution and another one of the same schedule.
    pub(crate) fn difference(&self, trace: &Trace) -> Option<Difference> {
        if let Some(difference) = first_difference(0, &self.initial, &trace.initial) {
            return Some(difference);
        }
        let announced = |step: Option<&Step>| -> Vec<(ThreadId, Op)> {
            step.into_iter().flat_map(Step::announced).collect()
        };
        for at in 0..self.steps.len().max(trace.steps.len()) {
            let (before, now) = (self.steps.get(at), trace.steps.get(at));
            if before == now {
                continue;
            }
            let thread = now.or(before)?.choice.thread;
            let same_operations = Difference { steps: at, thread, before: None, now: None };
            let found = first_difference(at + 1, &announced(before), &announced(now));
            return Some(found.unwrap_or(same_operations));
        }
        None
    }
}

/// The first difference between the operations that threads reached after `steps` steps.
fn first_difference(
    steps: usize,
    before: &[(ThreadId, Op)],
    now: &[(ThreadId, Op)],
) -> Option<Difference> {
    let at = (0..before.len().max(now.len())).find(|&at| before.get(at) != now.get(at))?;
    let (before, now) = (before.get(at), now.get(at));
    let thread = now.or(before)?.0;
    let (before, now) = (before.map(|&(_, op)| op), now.map(|&(_, op)| op));
    Some(Difference { steps, thread, before, now })
}

struct Decoder<'n> {
    trace: Trace,
    names: &'n mut Names,
    /// The current object at every address.
    lives: HashMap<(ObjectKind, u64), ObjectName>,
    /// The number of operations that each thread has announced.
    announced: Vec<usize>,
    /// The thread and the number of the operation that was announced last.
    last: Option<(ThreadId, usize)>,
    /// The address of atomic variables that overlap, if there are any.
    mixed: Option<u64>,
    /// The deadline of the operation that is announced next.
    deadline: u64,
    /// The value that the compare-and-exchange which is announced next expects.
    expected: u64,
}

impl Decoder<'_> {
    fn event(&mut self, event: &Event) {
        let thread = ThreadId::new(event.thread as usize);
        let record = Record::of(event.record).expect("the runtime writes records of this version");
        match record {
            Record::Next => self.announce(thread, event),
            Record::Step => {
                // A thread that takes a step does not wait any more.
                let ready = self.trace.ready_after(self.trace.steps.len()).without(thread);
                self.trace.steps.push(Step {
                    choice: Choice { thread, alternative: event.value },
                    outcome: Outcome { alternative: event.value, ..Outcome::default() },
                    next: None,
                    ready,
                    started: Vec::new(),
                });
            }
            Record::Ready => {
                let last = self.trace.steps.last_mut().map(|step| &mut step.ready);
                let ready = last.unwrap_or(&mut self.trace.initially_ready);
                *ready = match event.value {
                    0 => ready.without(thread),
                    _ => ready.with(thread),
                };
            }
            Record::Learn => {
                if let Some(step) = self.trace.steps.last_mut() {
                    step.outcome.learned = event.value;
                }
            }
            Record::Spin => {
                if let Some(step) = self.trace.steps.last_mut() {
                    step.outcome.round = event.value as u16;
                }
            }
            Record::Idle => {
                if let Some(step) = self.trace.steps.last_mut() {
                    step.outcome.idle = true;
                }
            }
            Record::Values | Record::UpperValues => {
                let shift = if record == Record::Values { 0 } else { 64 };
                if let Some(step) = self.trace.steps.last_mut() {
                    step.outcome.found |= u128::from(event.object) << shift;
                    step.outcome.left |= u128::from(event.other) << shift;
                    step.outcome.memory = step.outcome.found;
                    step.outcome.wrote |= record == Record::Values && event.value != 0;
                }
            }
            Record::Stale => {
                if let Some(step) = self.trace.steps.last_mut() {
                    step.outcome.memory = event.object.into();
                }
            }
            Record::Fence => {
                if let Some(step) = self.trace.steps.last_mut() {
                    step.outcome.fences = step.outcome.fences.and(weak::order(event.value));
                }
            }
            Record::Expected => self.expected = event.object,
            Record::Start => {
                let started = ThreadId::new(event.object as usize);
                self.trace.entries.insert(started, event.pc);
            }
            Record::Deadline => self.deadline = event.object,
            Record::Create => self.create(event),
            Record::Frame => {
                if let Some(last) = self.last {
                    self.trace.frames.entry(last).or_default().push(event.pc);
                }
            }
            Record::Panic => {
                let at = self.trace.steps.len();
                self.trace.panic.get_or_insert((at, Incident::Panic { thread }));
            }
            Record::Misuse => {
                let incident = self.misuse(thread, event);
                let at = self.trace.steps.len();
                self.trace.incident.get_or_insert((at, incident));
            }
        }
    }

    fn misuse(&mut self, thread: ThreadId, event: &Event) -> Incident {
        let misuse = Misuse::of(event.value).expect("the runtime writes known misuses");
        let pc = event.pc;
        let kind = match misuse {
            Misuse::UseAfterFree | Misuse::DoubleFree | Misuse::BadFree => {
                let freed = (ThreadId::new(event.what.into()), event.other);
                return Incident::Memory { misuse, pc, freed };
            }
            Misuse::Race => {
                let first = ThreadId::new(event.what.into());
                let access = |thread, pc, bit| Access { thread, pc, writes: event.size & bit != 0 };
                return Incident::Race {
                    address: event.object,
                    first: access(first, event.other, 2),
                    second: access(thread, pc, 1),
                };
            }
            Misuse::DestroyHeldMutex | Misuse::UseDestroyedMutex => ObjectKind::Mutex,
            Misuse::DestroyHeldRwLock => ObjectKind::RwLock,
            Misuse::DestroyAwaitedCondvar => ObjectKind::Condvar,
            Misuse::DestroyAwaitedBarrier => ObjectKind::Barrier,
        };
        let object = self.locate(Some(kind), event.object, 0);
        Incident::Misuse { misuse, object, pc }
    }

    fn create(&mut self, event: &Event) {
        let kind = ObjectKind::of(event.what).expect("the runtime writes known kinds");
        let key = (kind, event.object);
        let life = self.lives.get(&key).map_or(0, |before| before.life + 1);
        let name = ObjectName { kind, address: event.object, parameter: event.value, life };
        self.lives.insert(key, name);
    }

    fn locate(&mut self, kind: Option<ObjectKind>, address: u64, size: u8) -> u32 {
        let Some(kind) = kind else { return NOTHING };
        if kind == ObjectKind::Atomic {
            return self.names.locate_atomic(address, size).unwrap_or_else(|range| {
                self.mixed = Some(range);
                NOTHING
            });
        }
        let name = self.lives.get(&(kind, address)).copied();
        let name = name.expect("the runtime creates an object before it mentions it");
        self.names.locate(name)
    }

    fn announce(&mut self, thread: ThreadId, event: &Event) {
        let kind = OpKind::of(event.what).expect("the runtime writes known operations");
        let object = match kind {
            OpKind::Begin | OpKind::Finish | OpKind::Join | OpKind::Created => event.object as u32,
            OpKind::Io | OpKind::IoWait => DESCRIPTORS,
            kind => self.locate(kind.object_kind(), event.object, event.size),
        };
        const FUTEX_WORD: u8 = 4;
        let other = self.locate(kind.other_kind(event.other), event.other, FUTEX_WORD);
        let is_io = matches!(kind, OpKind::Io | OpKind::IoWait);
        let operands = if kind.is_atomic() || is_io { event.other } else { 0 };
        let expected = std::mem::take(&mut self.expected);
        let detail = Detail { size: event.size, number: event.value, operands, expected };
        let deadline = std::mem::replace(&mut self.deadline, NEVER);
        let time = event.time;
        let op = Op { kind, object, other, pc: event.pc, detail, time, deadline };
        let slot = thread.index();
        if self.announced.len() <= slot {
            self.announced.resize(slot + 1, 0);
        }
        self.last = Some((thread, self.announced[slot]));
        self.announced[slot] += 1;
        match self.trace.steps.last_mut() {
            None => self.trace.initial.push((thread, op)),
            Some(step) if step.choice.thread == thread => step.next = Some(op),
            Some(step) => {
                step.started.push((thread, op));
                step.outcome.started = step.outcome.started.with(thread);
            }
        }
    }
}
