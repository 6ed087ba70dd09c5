//! One execution of a closure: its threads as coroutines on one OS thread, the recording of their
//! operations, and their memory.
//!
//! The mirrors of std's types find the execution that runs them by a thread-local pointer. A mirror
//! arrives at a scheduling point ([`Runtime::arrive`]), its coroutine is suspended, and when the
//! search resumes it, it performs its operation and all local code up to the next point. No other
//! code of the program runs meanwhile, so the mirrors need no synchronisation of their own.
//!
//! # Invariants
//!
//! - The pointer is set exactly while a coroutine runs.
//! - A reference to the runtime never lives across a suspension or a call of the program's code.

pub(crate) mod arena;
pub(crate) mod blocks;
pub(crate) mod channels;
pub(crate) mod coroutine;
pub(crate) mod creation;
mod current;
pub(crate) mod exits;
pub(crate) mod freed;
pub(crate) mod harness;
pub(crate) mod hook;
pub(crate) mod identity;
pub(crate) mod interrupt;
mod lives;
pub(crate) mod notes;
pub(crate) mod orderings;
pub(crate) mod overflow;
pub(crate) mod place;
pub(crate) mod restart;
pub(crate) mod site;
pub(crate) mod stale_watch;
mod verdict;

use std::alloc::Layout;
use std::any::Any;
use std::backtrace::Backtrace;
use std::collections::BTreeMap;
use std::panic::Location as Site;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use preempt_replay::{Divergence, EarlyWake, NO_OBJECT, Names, Op, Outcome, Recording, SiteId};
use preempt_system::memory::{Memory, MemoryModel, Sc, Weak as WeakMemory};
use preempt_system::race::RaceDetector;
use preempt_system::{Failure, FailureKind, Site as Position, ThreadId, ThreadSet};

pub(crate) use current::{
    accounts, act, allocates, changes, describe, inside, is_interruptible, is_programs_own, is_set,
    look, op, outside, pause, point, show, unobserved, with, with_quietly,
};

use crate::caveats::{Used, Weak};
use crate::cell::LastingAccesses;
use crate::foreign_threads::{ForeignThreads, LiveExecution};
use crate::lazy::Statics;
use crate::thread::local::Locals;
use crate::watchdog::Heartbeat;

use self::arena::{Arena, Escapes, Free, Freed, Placement, Users};
use self::blocks::BlockNames;
use self::channels::Channels;
use self::coroutine::{Coroutines, Job};
use self::creation::CreationTimes;
use self::exits::{Exit, Exits};
use self::harness::Harness;
use self::interrupt::Stuck;
use self::notes::Notes;
use self::orderings::Orderings;
use self::place::Place;
use self::restart::{Requirements, RestartReason};
use self::stale_watch::StaleWatch;
use self::verdict::Verdict;

/// The options of a check that concern executions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Whether waits may end without a notification.
    pub(crate) spurious_wakeups: bool,
    /// The memory model.
    pub(crate) memory: MemoryModel,
    /// Whether the check explores weak memory instead if that makes a difference: see
    /// [`stale_watch`].
    pub(crate) may_switch: bool,
    /// Whether weak compare-and-exchanges may fail spuriously.
    pub(crate) weak_cas_failures: bool,
    /// Whether panics of threads are results of `join`.
    pub(crate) allow_panics: bool,
    /// Whether to refuse a test in which all threads spin, because the search cannot handle that.
    pub(crate) refuse_spinning: bool,
    /// The size of a thread's stack.
    pub(crate) stack_size: usize,
    /// The step limit; an execution that reaches it fails.
    pub(crate) max_steps: usize,
    /// The most threads, the first one included.
    pub(crate) max_threads: usize,
    /// The first execution that may be one of this check.
    pub(crate) since: u64,
    /// Whether the code under test may start threads that the search does not control.
    pub(crate) allow_uncontrolled: bool,
    /// The place of the check.
    pub(crate) place: Option<&'static Site<'static>>,
}

impl Options {
    /// Whether a wait without a timeout may end early.
    pub(crate) fn spurious_wakeups(&self) -> EarlyWake {
        if self.spurious_wakeups { EarlyWake::Spurious } else { EarlyWake::Never }
    }
}

/// The stage of an execution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Operations are scheduled.
    Running,
    /// All threads have ended, and values that outlive them are dropped. Operations are not
    /// scheduled, but frees are recorded.
    Ending,
    /// The execution is abandoned, and a thread that was unwinding unwinds to its end. Operations
    /// are not scheduled.
    Discarded,
}

/// A panic that escaped from the code of a thread.
#[derive(Clone, Debug)]
pub(crate) struct Panicked {
    pub(crate) thread: usize,
    pub(crate) message: String,
    pub(crate) site: Option<Position>,
    /// The number of operations that the thread had performed.
    pub(crate) done: u32,
    /// Whether a thread has joined it.
    pub(crate) seen: bool,
}

/// A thread of the execution.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    /// The number of threads that it has spawned, and of `Arc`s that it has created.
    pub(crate) children: u32,
    pub(crate) created: u32,
    /// The number of histories that it has begun.
    pub(crate) histories: u32,
    /// The number of random words that it has drawn.
    pub(crate) drawn: u64,
    /// The number of yields since its last operation, and the place of the last one.
    pub(crate) yielded: (u32, Option<&'static Site<'static>>),
    /// Whether its handle was dropped, so that it cannot be joined.
    pub(crate) detached: bool,
    /// The creation position of the `Arc` whose value it is dropping, if another thread could have
    /// dropped the last reference.
    pub(crate) dropping: Option<SiteId>,
    /// The messages of its panics, caught ones included, each with its place and the number of
    /// operations before it.
    pub(crate) said: Vec<(String, Option<Position>, u32)>,
    /// The number of its accesses to plain cells.
    pub(crate) cell_accesses: u32,
    /// The threads whose end happens before its next operation: those that it has joined, and
    /// transitively those that they and its parent had joined.
    pub(crate) joined: ThreadSet,
    /// The value that its next compare-and-exchange expects, under weak memory.
    pub(crate) expected: u64,
    /// Its last weak exchange, if that failed spuriously, and how many times in a row it did.
    pub(crate) spurious: Option<(WeakExchange, u32)>,
    /// Its thread-local values.
    pub(crate) locals: Locals,
    /// The state of its end.
    pub(crate) exit: Exit,
    /// The position at which it was started.
    pub(crate) started: Option<&'static Site<'static>>,
    /// The name given by the program.
    pub(crate) name: Option<String>,
}

/// A weak exchange of a thread: the address of the atomic, the expected value and the new one.
pub(crate) type WeakExchange = (usize, u64, u64);

/// How often the same weak exchange of a thread may fail spuriously in a row. A loop that retries
/// it changes nothing meanwhile, and would have infinitely many executions; two rounds are one less
/// than what counts as spinning.
const MOST_SPURIOUS: u32 = 2;

/// The record of an access to a plain cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CellAccess {
    /// The number of operations that the thread had performed.
    pub(crate) done: u32,
    /// The number of accesses to cells that the thread had made.
    pub(crate) nth: u32,
    pub(crate) site: &'static Site<'static>,
}

/// One execution.
pub(crate) struct Runtime {
    pub(crate) options: Options,
    pub(crate) recording: Recording<Place>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) coroutines: Coroutines,
    /// The running thread, and how many operations it has performed.
    pub(crate) current: usize,
    pub(crate) done: u32,
    /// The number of this execution, unique in the process.
    pub(crate) execution: u64,
    pub(crate) stage: Stage,
    /// The outcome of the operation that is being performed.
    pub(crate) outcome: Outcome,
    pub(crate) reply: i64,
    /// Threads that were spawned and have not run yet.
    pub(crate) spawned_jobs: Vec<(usize, Job)>,
    pub(crate) verdict: Verdict,
    /// Why the search has to start over, if it has to.
    pub(crate) restart: Option<RestartReason>,
    pub(crate) notes: Notes,
    pub(crate) met: identity::Met,
    pub(crate) block_names: BlockNames,
    pub(crate) arena: Arena,
    /// Whether states are compared, so that threads save their registers when they are suspended.
    pub(crate) compares_states: bool,
    /// The access before which a thread has to stop: its slot, and the number of its accesses to
    /// cells before.
    pub(crate) stop_before: Option<(usize, u32)>,
    /// Whether blocks were found to outlive executions. From then on addresses differ from those
    /// before.
    pub(crate) addresses_changed: bool,
    pub(crate) requirements: Requirements,
    /// Whether the values of atomics can be followed step by step, and whether they are: see
    /// `sync/atomic/access.rs`.
    pub(crate) can_follow_values: bool,
    pub(crate) follows_values: bool,
    /// Whether accesses to atomics only read and write a value of sequentially consistent memory:
    /// no weak memory and no watch for it, all orderings are the program's, no atomics are
    /// distinguished by the order of their first uses, and values are not followed. The same
    /// throughout an execution.
    pub(crate) plain_atomics: bool,
    pub(crate) races: RaceDetector<CellAccess>,
    /// The accesses to plain cells that have not ended.
    pub(crate) lasting: LastingAccesses,
    /// Whether the order of the end of a thread and of its destructors was seen to matter.
    pub(crate) exits: Exits,
    /// The clocks that channels pass on.
    pub(crate) channels: Channels,
    /// The values of the atomics.
    pub(crate) memory: Sc,
    /// The memory instead of that, if the check explores weak memory.
    pub(crate) weak_memory: Option<Box<WeakMemory>>,
    /// When the running execution has allocated memory: see [`creation`].
    pub(crate) creation_times: CreationTimes,
    /// Follows the execution, to detect the first access that weak memory might allow to be stale.
    pub(crate) stale_watch: Option<Box<StaleWatch>>,
    /// Records and replaces orderings, for a check that tries others.
    pub(crate) orderings: Option<Arc<Orderings>>,
    /// The number of the current step, from 1.
    pub(crate) step: u32,
    /// Threads in the order in which they were started.
    pub(crate) order: Vec<usize>,
    /// The values of `lazy_static!` variables.
    pub(crate) statics: Statics,
    /// The entry by which other OS threads find this execution.
    pub(crate) live: LiveExecution,
    pub(crate) heartbeat: Option<Arc<Heartbeat>>,
    /// The first operation, of all executions, with an ordering other than `SeqCst`.
    pub(crate) weak: Option<Weak>,
    /// Whether this execution has performed such an operation.
    pub(crate) is_weak: bool,
    /// A weak exchange that was not allowed to fail spuriously once more.
    pub(crate) limited_exchange: Option<&'static Site<'static>>,
    /// The place where a thread locked for reading while another one waited to write.
    pub(crate) overtaking: Option<&'static Site<'static>>,
    /// The threads that were suspended in code that blocked them, and the first of them.
    pub(crate) stuck: (ThreadSet, Option<Box<Stuck>>),
    /// The position at which a thread was started.
    pub(crate) spawned: Option<&'static Site<'static>>,
    /// The harness of a test of a data structure.
    pub(crate) harness: Option<Arc<dyn Harness>>,
    /// The number of elements that a removal of a relaxed model may pass over.
    pub(crate) out_of_order: u32,
    /// Histories that the program records. Stacks of threads that never end are not dropped, so
    /// threads only refer to them.
    pub(crate) histories: Vec<Arc<dyn Any + Send + Sync>>,
}

impl Runtime {
    pub(crate) fn new(
        options: Options,
        names: Names<Place>,
        requirements: Requirements,
        escapes: Escapes,
        foreign_threads: Arc<ForeignThreads>,
    ) -> Runtime {
        let slots = names.slots();
        let watches_stale = requirements.stale_watch;
        let users = if options.allow_uncontrolled { Users::Any } else { Users::Controlled };
        Runtime {
            options,
            recording: Recording::new(names, requirements.rounds.clone()),
            threads: (0..slots).map(|_| Thread::default()).collect(),
            coroutines: Coroutines::new(slots, options.stack_size),
            current: 0,
            done: 0,
            execution: 0,
            stage: Stage::Running,
            outcome: Outcome::default(),
            reply: 0,
            spawned_jobs: Vec::new(),
            verdict: Verdict::default(),
            restart: None,
            notes: Notes::default(),
            met: identity::Met::default(),
            block_names: BlockNames::default(),
            arena: Arena::new(escapes, users),
            compares_states: false,
            addresses_changed: false,
            stop_before: None,
            requirements,
            can_follow_values: false,
            follows_values: false,
            plain_atomics: false,
            races: RaceDetector::default(),
            lasting: LastingAccesses::default(),
            exits: Exits::default(),
            channels: Channels::default(),
            memory: Sc::default(),
            weak_memory: (options.memory == MemoryModel::Weak).then(Box::default),
            creation_times: CreationTimes::default(),
            stale_watch: watches_stale.then(Box::default),
            orderings: None,
            step: 0,
            order: vec![0],
            statics: Statics::default(),
            live: LiveExecution::new(foreign_threads),
            heartbeat: None,
            weak: None,
            is_weak: false,
            limited_exchange: None,
            overtaking: None,
            stuck: (ThreadSet::EMPTY, None),
            spawned: None,
            harness: None,
            out_of_order: 0,
            histories: Vec::new(),
        }
    }

    /// The features that the executions used so far, for caveats.
    pub(crate) fn used(&self) -> Used {
        let names = self.recording.names();
        let objects = names.descriptions().filter(|object| object.noun != harness::NOUN).count();
        Used {
            threads: names.threads(),
            objects,
            weak: self.weak,
            is_watched: self.stale_watch.is_some(),
            shares: self.shares(),
            spawned: self.spawned,
        }
    }

    /// Whether two threads of the last execution used the same object. Plain cells count as shared:
    /// races on them are detected.
    fn shares(&self) -> bool {
        let mut users = BTreeMap::new();
        let histories = self.recording.histories().iter().enumerate();
        let ops = histories.flat_map(|(at, history)| history.ops().iter().map(move |op| (at, op)));
        let mut objects =
            ops.flat_map(|(at, op)| op.objects().map(move |(_, object)| (object, at)));
        let controlled = |object: u32| {
            self.recording.names().thread_of(object).is_none() && !self.is_of_harness(object)
        };
        // Under weak memory, and to decide whether to switch to it, clocks are always kept.
        let uses_cells = match self.weak_memory.is_some() || self.stale_watch.is_some() {
            true => self.races.variables() > 0,
            false => self.requirements.races,
        };
        uses_cells
            || objects
                .any(|(object, at)| controlled(object) && *users.entry(object).or_insert(at) != at)
    }

    /// Suspends the running thread forever, because it blocks in uncontrolled code.
    pub(crate) fn take_out(&mut self, backtrace: Backtrace) {
        let current = ThreadId::new(self.current);
        let site = self.recording.last_op(current).map(|op| site::of(op.site));
        let (thread, check) = (self.thread_name(self.current), self.options.place);
        self.stuck.0.insert(current);
        self.stuck.1.get_or_insert_with(|| Box::new(Stuck { thread, site, check, backtrace }));
        self.restart = Some(RestartReason::Stuck);
    }

    /// Whether a weak exchange of the running thread may fail spuriously. It depends on what the
    /// thread itself has done and seen, so it is the same in every schedule with that past.
    pub(crate) fn may_fail_spuriously(
        &mut self,
        exchange: WeakExchange,
        site: &'static Site<'static>,
    ) -> bool {
        let may = self.threads[self.current].spurious != Some((exchange, MOST_SPURIOUS));
        if !may {
            self.limited_exchange = Some(site);
        }
        may
    }

    /// The running thread has performed a weak exchange.
    pub(crate) fn note_weak_exchange(&mut self, exchange: WeakExchange, failed: bool) {
        let last = &mut self.threads[self.current].spurious;
        let before = last.filter(|known| known.0 == exchange).map_or(0, |(_, times)| times);
        *last = failed.then_some((exchange, before + 1));
    }

    /// The value that the operation of the running thread left in its atomic when it was recorded.
    pub(crate) fn recorded_newest(&self) -> Option<u64> {
        let last = (self.done as usize).checked_sub(1)?;
        self.recording.history(ThreadId::new(self.current)).outcomes().get(last)?.newest
    }

    /// Records that the running thread has performed its operation with a weak ordering.
    #[cold]
    pub(crate) fn note_weak(&mut self, order: Ordering) {
        if self.weak.is_none() {
            let op = self.recording.last_op(ThreadId::new(self.current));
            self.weak = op.map(|op| Weak { order, site: site::of(op.site) });
        }
        self.is_weak = true;
        self.watch_weak_orderings();
    }

    /// Starts the search over with a watch if this execution has several threads and has used a
    /// weak ordering, and the search may switch to weak memory.
    #[inline]
    pub(crate) fn watch_weak_orderings(&mut self) {
        let is_needed = self.is_weak && self.options.may_switch && self.order.len() > 1;
        if is_needed && self.stale_watch.is_none() {
            self.restart.get_or_insert(RestartReason::WeakOrdering);
        }
    }

    /// Resets to the beginning of an execution. The recorded operations stay.
    pub(crate) fn reset(&mut self) {
        self.execution = identity::next_execution();
        self.live.begin(self.execution);
        self.stage = Stage::Running;
        self.harness = None;
        self.histories.clear();
        self.out_of_order = 0;
        self.verdict.clear();
        self.spawned_jobs.clear();
        self.met.clear();
        self.block_names.begin();
        self.arena.begin();
        self.compares_states = false;
        self.coroutines.forget_registers();
        self.notes.pointers.clear();
        self.notes.accesses.clear();
        self.order.truncate(1);
        if self.requirements.races {
            self.races = RaceDetector::new();
            self.lasting.clear();
            self.channels.clear();
        }
        for thread in &mut self.threads {
            thread.locals.forget();
            (thread.children, thread.created, thread.yielded, thread.drawn) = (0, 0, (0, None), 0);
            thread.said.clear();
            thread.histories = 0;
            (thread.detached, thread.dropping, thread.spurious) = (false, None, None);
            (thread.joined, thread.cell_accesses) = (ThreadSet::EMPTY, 0);
            thread.exit = Exit::default();
        }
        self.memory.clear();
        if let Some(memory) = &mut self.weak_memory {
            memory.clear();
            self.creation_times.clear();
        }
        if let Some(watch) = &mut self.stale_watch {
            watch.clear();
        }
        self.is_weak = false;
        self.plain_atomics = self.weak_memory.is_none()
            && self.stale_watch.is_none()
            && self.orderings.is_none()
            && self.requirements.ordered.is_empty()
            && !self.follows_values;
        self.recording.begin();
    }

    /// Leaks the values of threads that will not end: destructors must not run in states that the
    /// program cannot reach.
    pub(crate) fn forget_values(&mut self) {
        if !self.spawned_jobs.is_empty() {
            self.spawned_jobs.drain(..).for_each(std::mem::forget);
        }
        self.statics.forget();
        for thread in &mut self.threads {
            thread.locals.forget();
        }
    }

    /// Allocates memory for the running thread. Null if the [slow path](Runtime::allocate) is
    /// needed.
    #[inline(always)]
    pub(crate) fn allocate_small(&mut self, layout: Layout) -> *mut u8 {
        let (slot, done, names) = (self.current, self.done, &mut self.block_names);
        self.arena.allocate_small(slot, layout, |class| {
            names.next((layout.size(), class), (slot as u8, done))
        })
    }

    /// Allocates memory for the running thread.
    pub(crate) fn allocate(&mut self, layout: Layout) -> Placement {
        let (slot, class) = (self.current, arena::class_of(layout));
        let block = self.block_names.next((layout.size(), class), (slot as u8, self.done));
        self.arena.allocate(slot, layout, block)
    }

    /// Frees memory for the running thread. Returns the number of bytes to be
    /// [poisoned](arena::poison); `None` if the [slow path](Runtime::free) is needed.
    #[inline(always)]
    pub(crate) fn free_plain(&mut self, address: usize) -> Option<usize> {
        let by = Freed { slot: self.current as u8, done: self.done };
        if self.may_reuse() { self.arena.free_plain(address, by) } else { None }
    }

    /// Whether the running thread may reuse the memory that it frees. Which of several threads
    /// drops the last reference to an `Arc` is not part of a schedule unless its counts are steps.
    /// Addresses must not depend on it.
    #[inline(always)]
    fn may_reuse(&self) -> bool {
        self.threads[self.current].dropping.is_none()
    }

    /// Frees memory of this size for the running thread. Returns the number of bytes to be
    /// poisoned; `None` if it was not allocated here.
    pub(crate) fn free(&mut self, address: usize, size: usize) -> Option<usize> {
        let by = Freed { slot: self.current as u8, done: self.done };
        let may_reuse = self.may_reuse();
        let freed = self.arena.free(address, by, may_reuse);
        match freed.or_else(|| self.arena.free_elsewhere(address, by, may_reuse)) {
            Some(Free::Done(used)) => Some(used),
            Some(Free::WithObjects(used)) => {
                self.note_free(address, size);
                Some(used)
            }
            Some(Free::Twice(first)) => {
                self.fail_double_free(first);
                Some(0)
            }
            None => None,
        }
    }

    #[cold]
    fn fail_double_free(&mut self, first: Freed) {
        let message = format!(
            "double free: {} frees memory that was freed before, by {}",
            self.thread_name(self.current),
            self.freed_by(first)
        );
        self.fail(FailureKind::Runtime, message, None);
    }

    /// The thread that freed memory, and its last operation before that.
    pub(crate) fn freed_by(&self, Freed { slot, done }: Freed) -> String {
        let name = self.thread_name(slot.into());
        let ops = self.recording.history(ThreadId::new(slot.into())).ops();
        match (done as usize).checked_sub(1).and_then(|last| ops.get(last)) {
            Some(op) => {
                let site = site::of(op.site);
                format!("{name} after `{}` at {}:{}", op.verb, site.file(), site.line())
            }
            None => format!("{name} before its first operation"),
        }
    }

    /// The running thread does what may depend on which thread it is. If it drops a value whose
    /// last reference another thread could have dropped, that has to be a step.
    #[inline]
    pub(crate) fn depends_on_thread(&mut self) {
        if let Some(site) = self.threads[self.current].dropping {
            self.restart.get_or_insert(RestartReason::Counted(site));
        }
    }

    /// Records that the running thread yields. Returns whether the yield has to be a step of its
    /// own, because the thread has yielded often since its last operation.
    pub(crate) fn yields(&mut self, site: &'static Site<'static>) -> bool {
        self.recording.note_yield();
        let (times, place) = &mut self.threads[self.current].yielded;
        (*times, *place) = (*times + 1, Some(site));
        times.is_multiple_of(64)
    }

    /// The running thread arrives at its next operation, which records the yields before it.
    #[inline(always)]
    pub(crate) fn arrive(&mut self, op: &mut Op) {
        // From here on other threads run, even if this one is unwinding and is in a destructor.
        self.note_unwinding();
        let current = self.current;
        let thread = &mut self.threads[current];
        if thread.yielded.0 > 0 {
            op.yielded = std::mem::take(&mut thread.yielded).1.map(site::id);
        }
        if thread.exit == Exit::DropsLocals {
            self.operates_late();
        }
        self.depends_on_thread();
        let (thread, done) = (ThreadId::new(current), self.done as usize);
        if let Err(divergence) = self.recording.arrive_after(done, thread, op) {
            self.differs(&divergence);
        }
    }

    #[cold]
    fn differs(&mut self, divergence: &Divergence) {
        let &Divergence { thread, at, recorded, found } = divergence;
        if self.addresses_changed {
            // Changed addresses may be the reason; they are the same in all executions after the
            // search starts over.
            self.restart.get_or_insert(RestartReason::Addresses);
            return;
        }
        let (known, now) = (site::of(recorded.site), site::of(found.site));
        let message = format!(
            "the test is not deterministic: under the same schedule, operation {} of {} was `{}` \
             on {} at {}:{}, and now it is `{}` on {} at {}:{}; whatever a test depends on has to \
             be made inside it, and must not depend on time, addresses or random numbers",
            at + 1,
            self.thread_name(thread.index()),
            recorded.verb,
            self.object_name(recorded.object),
            known.file(),
            known.line(),
            found.verb,
            self.object_name(found.object),
            now.file(),
            now.line(),
        );
        self.fail(FailureKind::Nondeterminism, message, Some(now));
    }

    /// Records a failure. The first of a step counts.
    pub(crate) fn fail(
        &mut self,
        kind: FailureKind,
        message: String,
        site: Option<&'static Site<'static>>,
    ) {
        let site = site.map(site::position);
        self.verdict.failure.get_or_insert_with(|| Box::new(Failure { kind, message, site }));
    }

    /// The name of a thread.
    pub(crate) fn thread_name(&self, slot: usize) -> String {
        self.threads[slot].name.clone().unwrap_or_else(|| self.recording.names().thread(slot))
    }

    /// Passes the name of a thread to the watchdog.
    #[cold]
    fn show_name(&self, slot: usize) {
        if let Some(heartbeat) = &self.heartbeat {
            heartbeat.name(slot, &self.thread_name(slot));
        }
    }

    /// The name of an object in reports that have no source text.
    pub(crate) fn object_name(&self, object: u32) -> String {
        if object == NO_OBJECT {
            return "nothing".to_owned();
        }
        self.recording.names().object(object, |site| site::position(site::of(site)))
    }
}
