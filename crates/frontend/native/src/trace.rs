//! One execution, decoded from the log of a child: what each step did, and how it ended.

use std::collections::HashMap;

use preempt_native_block::{
    Event, Misuse, NEVER, ObjectKind, Op as OpKind, Outcome as End, Record,
};
use preempt_system::{Choice, ThreadId, ThreadSet};

use crate::names::{DESCRIPTORS, NOTHING, Names, ObjectName};
use crate::server::{Output, Run};
use crate::state::{Detail, Op, Outcome};

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) choice: Choice,
    pub(crate) outcome: Outcome,
    /// The next operation of the thread, unless it has ended or the process has.
    pub(crate) next: Option<Op>,
    /// The threads that wait for descriptors which are ready after it.
    pub(crate) ready: ThreadSet,
    /// The threads that it created, with their first operations.
    pub(crate) started: Vec<(ThreadId, Op)>,
}

/// Something that goes wrong in the code after a step, while the execution continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Incident {
    /// A Rust panic.
    Panic { thread: ThreadId },
    /// The misuse of the object at a location, at a place.
    Misuse { misuse: Misuse, object: u32, pc: u64 },
    /// A data race on the memory at an address.
    Race { address: u64, first: Access, second: Access },
    /// The misuse of memory, at a place; `freed` is the thread and the place that have freed it.
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
    /// The threads before the first step with their first operations: the main thread, unless the
    /// process ended before it had one, and threads that it created before.
    pub(crate) initial: Vec<(ThreadId, Op)>,
    /// Those that wait for descriptors which are ready.
    pub(crate) initially_ready: ThreadSet,
    pub(crate) steps: Vec<Step>,
    /// The first incident that is not a panic, and the number of steps before it.
    pub(crate) incident: Option<(usize, Incident)>,
    /// The first panic, and the number of steps before it.
    pub(crate) panic: Option<(usize, Incident)>,
    /// How the process ended; the events are taken.
    pub(crate) run: Run,
    /// The callers of every operation, innermost first, if they were recorded: by thread and the
    /// number of its operation.
    pub(crate) frames: HashMap<(ThreadId, usize), Vec<u64>>,
    /// The entry points of threads.
    pub(crate) entries: HashMap<ThreadId, u64>,
    /// The slots of the threads in the order in which they were started, and the number of steps
    /// after which each existed. The main thread is the first, also if it created others before its
    /// first operation.
    pub(crate) starts: Vec<(usize, usize)>,
}

/// See [`Trace::starts`].
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
    /// Decodes a run. Objects that are new get a name. `Err` is the place of atomic variables that
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
                entries: HashMap::new(),
                starts: Vec::new(),
            },
            names,
            lives: HashMap::new(),
            announced: Vec::new(),
            last: None,
            mixed: None,
            deadline: NEVER,
        };
        events.iter().for_each(|event| decoder.event(event));
        decoder.trace.starts = starts(&decoder.trace);
        decoder.mixed.map_or(Ok(decoder.trace), Err)
    }
}

impl Trace {
    /// The threads that wait for descriptors which are ready after this many steps.
    pub(crate) fn ready_after(&self, steps: usize) -> ThreadSet {
        match steps.checked_sub(1).and_then(|last| self.steps.get(last)) {
            Some(step) => step.ready,
            None => self.initially_ready,
        }
    }
}

/// Where two executions of the same schedule differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// The number of steps after which they do.
    pub(crate) steps: usize,
    /// The thread that arrives at another operation.
    pub(crate) thread: ThreadId,
    /// The operation at which it arrived before.
    pub(crate) before: Option<Op>,
    /// The operation at which it arrives now.
    pub(crate) now: Option<Op>,
}

/// The operations of an execution, to be compared with another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reference {
    initial: Vec<(ThreadId, Op)>,
    steps: Vec<Step>,
    /// What it printed.
    pub(crate) output: Output,
    /// Whether the program ended its process.
    pub(crate) exited: bool,
}

impl Reference {
    /// Those of an execution.
    pub(crate) fn of(trace: &Trace) -> Reference {
        Reference {
            initial: trace.initial.clone(),
            steps: trace.steps.clone(),
            output: trace.run.output.clone(),
            exited: trace.run.outcome == End::Exited,
        }
    }

    /// Where an execution of the same schedule differs first.
    pub(crate) fn difference(&self, trace: &Trace) -> Option<Difference> {
        fn first(
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
        if let Some(difference) = first(0, &self.initial, &trace.initial) {
            return Some(difference);
        }
        let arrived = |step: Option<&Step>| -> Vec<(ThreadId, Op)> {
            let Some(step) = step else { return Vec::new() };
            let next = step.next.map(|op| (step.choice.thread, op));
            next.into_iter().chain(step.started.iter().copied()).collect()
        };
        for at in 0..self.steps.len().max(trace.steps.len()) {
            let (before, now) = (self.steps.get(at), trace.steps.get(at));
            if before == now {
                continue;
            }
            let thread = now.or(before)?.choice.thread;
            let same_thread = Difference { steps: at, thread, before: None, now: None };
            let found = first(at + 1, &arrived(before), &arrived(now));
            return Some(found.unwrap_or(same_thread));
        }
        None
    }
}

struct Decoder<'n> {
    trace: Trace,
    names: &'n mut Names,
    /// The present life of every object, and the number of lives before.
    lives: HashMap<(ObjectKind, u64), ObjectName>,
    /// The number of operations that each thread has announced.
    announced: Vec<usize>,
    /// The operation that was announced last.
    last: Option<(ThreadId, usize)>,
    /// Where atomic variables overlap, if they do.
    mixed: Option<u64>,
    /// The deadline of the operation that is announced next.
    deadline: u64,
}

impl Decoder<'_> {
    fn event(&mut self, event: &Event) {
        let thread = ThreadId::new(event.thread as usize);
        let record = Record::of(event.record).expect("the runtime writes records of this version");
        match record {
            Record::Next => self.announce(thread, event),
            Record::Step => {
                // The thread that steps no longer waits.
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
            Record::Values | Record::UpperValues => {
                let shift = if record == Record::Values { 0 } else { 64 };
                if let Some(step) = self.trace.steps.last_mut() {
                    step.outcome.found |= u128::from(event.object) << shift;
                    step.outcome.left |= u128::from(event.other) << shift;
                }
            }
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
                let misuse = Misuse::of(event.value).expect("the runtime writes known misuses");
                let which = match misuse {
                    Misuse::UseAfterFree | Misuse::DoubleFree | Misuse::BadFree => {
                        let freed = (ThreadId::new(event.what.into()), event.other);
                        self.incident(Incident::Memory { misuse, pc: event.pc, freed });
                        return;
                    }
                    Misuse::Race => {
                        let first = ThreadId::new(event.what.into());
                        let access = |thread, pc, bit| {
                            let writes = event.size & bit != 0;
                            Access { thread, pc, writes }
                        };
                        self.incident(Incident::Race {
                            address: event.object,
                            first: access(first, event.other, 2),
                            second: access(thread, event.pc, 1),
                        });
                        return;
                    }
                    Misuse::DestroyHeldMutex | Misuse::UseDestroyedMutex => ObjectKind::Mutex,
                    Misuse::DestroyHeldRwLock => ObjectKind::RwLock,
                    Misuse::DestroyAwaitedCondvar => ObjectKind::Condvar,
                    Misuse::DestroyAwaitedBarrier => ObjectKind::Barrier,
                };
                let object = self.locate(Some(which), event.object, 0);
                self.incident(Incident::Misuse { misuse, object, pc: event.pc });
            }
        }
    }

    fn incident(&mut self, incident: Incident) {
        let at = self.trace.steps.len();
        self.trace.incident.get_or_insert((at, incident));
    }

    fn create(&mut self, event: &Event) {
        let which = ObjectKind::of(event.what).expect("the runtime writes known kinds");
        let key = (which, event.object);
        let life = self.lives.get(&key).map_or(0, |before| before.life + 1);
        let name = ObjectName { which, address: event.object, parameter: event.value, life };
        self.lives.insert(key, name);
    }

    fn locate(&mut self, which: Option<ObjectKind>, address: u64, size: u8) -> u32 {
        let Some(which) = which else { return NOTHING };
        if which == ObjectKind::Atomic {
            return self.names.locate_atomic(address, size).unwrap_or_else(|around| {
                self.mixed = Some(around);
                NOTHING
            });
        }
        let name = self.lives.get(&(which, address)).copied();
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
        /// A futex word.
        const WORD: u8 = 4;
        let other = self.locate(kind.other_kind(), event.other, WORD);
        let is_io = matches!(kind, OpKind::Io | OpKind::IoWait);
        let operands = if kind.is_atomic() || is_io { event.other } else { 0 };
        let detail = Detail { size: event.size, number: event.value, operands };
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
