//! One execution of a closure: its threads as coroutines on one OS thread, and the state of all its
//! objects.
//!
//! The mirrors of std's types find the execution that runs them by a thread-local pointer. A mirror
//! arrives at a scheduling point ([`Runtime::arrive`]), its coroutine is suspended, and when the
//! search lets it go on it performs its operation and all local code up to the next point. Nothing
//! else of the program runs meanwhile, so that the mirrors need no synchronisation of their own.
//!
//! # Invariants
//!
//! - The pointer is set exactly while a coroutine runs.
//! - A reference to the runtime never lives across a suspension or a call of the program's code.

pub(crate) mod arena;
pub(crate) mod blocks;
pub(crate) mod coroutine;
mod current;
pub(crate) mod freed;
pub(crate) mod hook;
pub(crate) mod identity;
pub(crate) mod interrupt;
mod lives;
pub(crate) mod names;
pub(crate) mod needs;
pub(crate) mod op;
pub(crate) mod overflow;
pub(crate) mod race;
pub(crate) mod spin;
pub(crate) mod state;
mod verdict;

use std::alloc::Layout;
use std::backtrace::Backtrace;
use std::collections::BTreeMap;
use std::panic::Location as Site;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use preempt_system::{Failure, FailureKind, Site as Place, ThreadId, ThreadSet};

pub(crate) use current::{
    accounts, act, allocates, changes, inside, is_interruptible, is_set, look, pause, point, show,
    tell, unobserved, with,
};

use crate::caveats::{Used, Weak};
use crate::lazy::Statics;
use crate::strangers::{Live, Strangers};
use crate::thread::local::Locals;
use crate::watchdog::Pulse;

use self::arena::{Arena, Escapes, Free, Freed, Placement};
use self::blocks::BlockNames;
use self::coroutine::{Coroutines, Job};
use self::interrupt::Stuck;
use self::names::Names;
use self::needs::{Need, Needs};
use self::op::{NOTHING, Op, Outcome};
use self::state::{History, State};

/// What a user may ask for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options {
    /// Waits may end without a notification.
    pub(crate) spurious_wakeups: bool,
    /// Weak compare-and-exchanges may fail for no reason.
    pub(crate) weak_cas_failures: bool,
    /// Panics of threads are results of `join`.
    pub(crate) allow_panics: bool,
    /// The search cannot follow threads that only spin.
    pub(crate) refuse_spinning: bool,
    /// The size of a thread's stack.
    pub(crate) stack_size: usize,
    /// An execution with more steps has gone wrong.
    pub(crate) max_steps: usize,
    /// The most threads.
    pub(crate) max_threads: usize,
    /// The first execution that may be one of this check.
    pub(crate) since: u64,
}

/// What went wrong in a thread.
#[derive(Clone, Debug)]
pub(crate) struct Panicked {
    pub(crate) thread: usize,
    pub(crate) message: String,
    pub(crate) site: Option<Place>,
    /// How many operations the thread had done.
    pub(crate) done: u32,
    /// Whether somebody has seen it: joined the thread.
    pub(crate) seen: bool,
}

/// A thread of the execution.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    pub(crate) history: History,
    /// Its children so far, and the `Arc`s it has made.
    pub(crate) children: u32,
    pub(crate) created: u32,
    /// The random words it has drawn.
    pub(crate) drawn: u64,
    /// How often it has yielded since its last operation, and the place of the last yield.
    pub(crate) yielded: (u32, Option<&'static Site<'static>>),
    /// Nobody can join it.
    pub(crate) detached: bool,
    /// Where the `Arc` was made whose value it drops, though another thread might have to.
    pub(crate) dropping: Option<usize>,
    /// What its panics said, where, and after how many operations: those that it has caught itself
    /// too.
    pub(crate) said: Vec<(String, Option<Place>, u32)>,
    /// How often it has accessed plain cells.
    pub(crate) cell_accesses: u32,
    /// The threads that have ended before what it does now: those that it has joined, that they had
    /// joined, and that its parent had.
    pub(crate) joined: ThreadSet,
    /// Its own values.
    pub(crate) locals: Locals,
    /// The name it was given.
    pub(crate) name: Option<String>,
}

/// One execution.
pub(crate) struct Runtime {
    pub(crate) options: Options,
    pub(crate) names: Names,
    pub(crate) state: State,
    pub(crate) threads: Vec<Thread>,
    pub(crate) coroutines: Coroutines,
    /// Who runs, and how many operations it has done.
    pub(crate) current: usize,
    pub(crate) done: u32,
    /// The number of this execution, unlike that of any other in the process.
    pub(crate) execution: u64,
    /// The execution is over, and what is suspended is being unwound: nothing is scheduled any
    /// more.
    pub(crate) teardown: bool,
    /// The steps are those of an execution that was made before.
    pub(crate) replaying: bool,
    /// What became of the operation that is being performed.
    pub(crate) outcome: Outcome,
    pub(crate) reply: i64,
    /// Threads that were spawned and have not begun.
    pub(crate) fresh: Vec<(usize, Job)>,
    pub(crate) failure: Option<Box<Failure>>,
    pub(crate) panics: Vec<Panicked>,
    /// The threads that unwind.
    pub(crate) panicking: ThreadSet,
    pub(crate) full: Option<Need>,
    /// What happened in the step, in words, if somebody wants to know.
    pub(crate) telling: Option<Vec<String>>,
    /// What objects without cells hold, in words, as far as it was told.
    pub(crate) shown: BTreeMap<u32, String>,
    pub(crate) met: identity::Met,
    pub(crate) block_names: BlockNames,
    pub(crate) arena: Arena,
    /// Whether a thread has yielded, in this execution or in one before: until then no step looks
    /// for loops that yield.
    pub(crate) yields: bool,
    /// Whether states are compared: all threads that could move are held back.
    pub(crate) watches: bool,
    /// A thread has used memory that was freed.
    pub(crate) used_after_free: bool,
    /// The access to a cell before which a thread is to stop: its slot, and which of its accesses
    /// it is.
    pub(crate) stop_before: Option<(usize, u32)>,
    /// Names of blocks were learned that outlive executions: from then on their addresses are
    /// others than before.
    pub(crate) learned: bool,
    pub(crate) needs: Needs,
    pub(crate) races: race::Races,
    /// Threads in the order in which they were started.
    pub(crate) order: Vec<usize>,
    /// See [`System::unaffected`](preempt_system::System::unaffected).
    pub(crate) settled: ThreadSet,
    /// The threads whose next operation stays possible whatever others do.
    pub(crate) steady: ThreadSet,
    /// The addresses that were told.
    pub(crate) pointers: Vec<usize>,
    /// What `lazy_static!` has made.
    pub(crate) statics: Statics,
    /// All threads have ended, and what outlives them is dropped: it counts as given back.
    pub(crate) ending: bool,
    /// What other OS threads see of this execution.
    pub(crate) live: Live,
    pub(crate) pulse: Option<Arc<Pulse>>,
    /// The first operation, of all executions, with an ordering other than `SeqCst`.
    pub(crate) weak: Option<Weak>,
    /// The threads that were taken out of code that blocked them, and the first of them.
    pub(crate) stuck: ThreadSet,
    pub(crate) stuck_at: Option<Box<Stuck>>,
    /// Where a thread was started.
    pub(crate) spawned: Option<&'static Site<'static>>,
}

impl Runtime {
    pub(crate) fn new(
        options: Options,
        names: Names,
        needs: Needs,
        escapes: Escapes,
        strangers: Arc<Strangers>,
    ) -> Runtime {
        let slots = names.slots();
        Runtime {
            options,
            names,
            state: State::default(),
            threads: (0..slots).map(|_| Thread::default()).collect(),
            coroutines: Coroutines::new(slots, options.stack_size),
            current: 0,
            done: 0,
            execution: 0,
            teardown: false,
            replaying: false,
            outcome: Outcome::default(),
            reply: 0,
            fresh: Vec::new(),
            failure: None,
            panics: Vec::new(),
            panicking: ThreadSet::EMPTY,
            full: None,
            telling: None,
            shown: BTreeMap::new(),
            met: identity::Met::default(),
            block_names: BlockNames::default(),
            arena: Arena::new(escapes),
            yields: false,
            watches: false,
            learned: false,
            used_after_free: false,
            stop_before: None,
            needs,
            races: race::Races::default(),
            order: vec![0],
            settled: ThreadSet::EMPTY,
            steady: ThreadSet::EMPTY,
            pointers: Vec::new(),
            statics: Statics::default(),
            ending: false,
            live: Live::new(strangers),
            pulse: None,
            weak: None,
            stuck: ThreadSet::EMPTY,
            stuck_at: None,
            spawned: None,
        }
    }

    /// What the executions so far used.
    pub(crate) fn used(&self) -> Used {
        let objects = self.names.descriptions().count();
        Used {
            threads: self.names.threads(),
            objects,
            weak: self.weak,
            shares: self.shares(),
            spawned: self.spawned,
        }
    }

    /// Whether two threads of the last execution used the same object. Races are looked for as soon
    /// as there are plain cells.
    fn shares(&self) -> bool {
        let mut users = BTreeMap::new();
        let ops = self
            .threads
            .iter()
            .enumerate()
            .flat_map(|(at, thread)| thread.history.ops.iter().map(move |op| (at, op)));
        let mut objects = ops.flat_map(|(at, op)| [(op.object, at), (op.other, at)]);
        let controlled = |object: u32| object != NOTHING && self.names.thread_of(object).is_none();
        self.needs.races
            || objects
                .any(|(object, at)| controlled(object) && *users.entry(object).or_insert(at) != at)
    }

    /// The running thread blocks, and is suspended for good.
    pub(crate) fn take_out(&mut self, backtrace: Backtrace) {
        let at = self.state.count(self.current).checked_sub(1);
        let op = at.and_then(|at| self.threads[self.current].history.ops.get(at));
        let site = op.map(|op| op.site);
        let thread = self.thread_name(self.current);
        self.stuck.insert(ThreadId::new(self.current));
        self.stuck_at.get_or_insert_with(|| Box::new(Stuck { thread, site, backtrace }));
        self.full = Some(Need::Stuck);
    }

    /// The running thread has performed its operation with a weak ordering.
    #[cold]
    pub(crate) fn note_weak(&mut self, order: Ordering) {
        // The operation is counted already.
        let at = self.state.count(self.current).checked_sub(1);
        let op = at.and_then(|at| self.threads[self.current].history.ops.get(at));
        self.weak = op.map(|op| Weak { order, site: op.site });
    }

    /// Forgets the last execution, except what its threads did.
    pub(crate) fn reset(&mut self) {
        self.execution = identity::next_execution();
        self.live.begin(self.execution);
        self.teardown = false;
        self.failure = None;
        self.panics.clear();
        self.panicking = ThreadSet::EMPTY;
        self.fresh.clear();
        self.met.clear();
        self.used_after_free = false;
        self.block_names.begin();
        self.arena.begin();
        self.watches = false;
        self.coroutines.forget_registers();
        self.names.begin();
        self.pointers.clear();
        self.order.truncate(1);
        if self.needs.races {
            self.races.begin(self.names.slots());
        }
        for thread in &mut self.threads {
            thread.locals.forget();
            (thread.children, thread.created, thread.yielded, thread.drawn) = (0, 0, (0, None), 0);
            thread.said.clear();
            (thread.detached, thread.dropping) = (false, None);
            (thread.joined, thread.cell_accesses) = (ThreadSet::EMPTY, 0);
        }
        self.state.begin(
            self.names.slots(),
            ThreadSet::EMPTY.with(ThreadId::new(0)),
            &self.names.objects,
        );
    }

    /// Forgets what threads own that do not come to their ends: destructors must not run where the
    /// program could not be.
    pub(crate) fn forget_values(&mut self) {
        if !self.fresh.is_empty() {
            self.fresh.drain(..).for_each(std::mem::forget);
        }
        self.statics.forget();
        for thread in &mut self.threads {
            thread.locals.forget();
        }
    }

    /// A step was taken, after which the next operation of its thread is steady or not, and by
    /// which threads have started: decides who need not be asked after it.
    #[inline(always)]
    pub(crate) fn settle(&mut self, moved: ThreadId, steady: bool, started: ThreadSet) {
        self.steady = if steady { self.steady.with(moved) } else { self.steady.without(moved) };
        if !started.is_empty() {
            started.iter().for_each(|thread| self.note_steady(thread));
        }
        let vacant = !self.state.started.bits();
        self.settled = ThreadSet::from_bits((self.steady.bits() | vacant) & !started.bits());
    }

    /// Finds out the same about all threads. All have to be asked.
    pub(crate) fn settle_all(&mut self) {
        let started = self.state.started;
        started.iter().for_each(|thread| self.note_steady(thread));
        self.settled = ThreadSet::from_bits(!started.bits());
    }

    /// Takes note of whether the next operation of a thread stays possible whatever others do.
    fn note_steady(&mut self, thread: ThreadId) {
        let at = self.state.count(thread.index());
        let steady = self.threads[thread.index()].history.is_steady_after(at);
        self.steady = if steady { self.steady.with(thread) } else { self.steady.without(thread) };
    }

    /// The running thread allocates memory. Null if that takes [more](Runtime::allocate).
    #[inline(always)]
    pub(crate) fn allocate_small(&mut self, layout: Layout) -> *mut u8 {
        let (slot, done, names) = (self.current, self.done, &mut self.block_names);
        self.arena.allocate_small(slot, layout, |class| {
            names.next((layout.size(), class), (slot as u8, done))
        })
    }

    /// The running thread allocates memory.
    pub(crate) fn allocate(&mut self, layout: Layout) -> Placement {
        let (slot, class) = (self.current, arena::class_of(layout));
        let block = self.block_names.next((layout.size(), class), (slot as u8, self.done));
        self.arena.allocate(slot, layout, block)
    }

    /// The running thread frees memory. Returns how much of it is to be [poisoned](arena::poison)
    /// then; `None` if that takes [more](Runtime::free).
    #[inline(always)]
    pub(crate) fn free_plain(&mut self, address: usize) -> Option<usize> {
        let by = Freed { slot: self.current as u8, done: self.done };
        if self.may_reuse() { self.arena.free_plain(address, by) } else { None }
    }

    /// Whether the running thread gets the memory again that it frees. Which of several threads
    /// drops the last reference to an `Arc` is not part of a schedule unless its counts are steps.
    /// Addresses must not depend on it.
    #[inline(always)]
    fn may_reuse(&self) -> bool {
        self.threads[self.current].dropping.is_none()
    }

    /// The running thread frees memory of this size. Returns how much of it is to be poisoned then;
    /// `None` if it was not allocated here.
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

    /// Who freed memory, and where, as far as it is known: the thread's last operation before it.
    pub(crate) fn freed_by(&self, Freed { slot, done }: Freed) -> String {
        let name = self.thread_name(slot.into());
        let ops = &self.threads[usize::from(slot)].history.ops;
        match (done as usize).checked_sub(1).and_then(|last| ops.get(last)) {
            Some(op) => {
                format!("{name} after `{}` at {}:{}", op.verb, op.site.file(), op.site.line())
            }
            None => format!("{name} before its first operation"),
        }
    }

    /// Records that the running thread lets others run. Returns whether it has done so often since
    /// its last operation.
    pub(crate) fn yields(&mut self, site: &'static Site<'static>) -> bool {
        self.yields = true;
        let (times, place) = &mut self.threads[self.current].yielded;
        (*times, *place) = (*times + 1, Some(site));
        times.is_multiple_of(64)
    }

    /// The running thread comes to its next operation.
    #[inline]
    pub(crate) fn arrive(&mut self, mut op: Op) {
        let current = self.current;
        let thread = &mut self.threads[current];
        if thread.yielded.0 > 0 {
            op.yielded = std::mem::take(&mut thread.yielded).1;
        }
        if let Some(site) = thread.dropping {
            self.full.get_or_insert(Need::Counted(site));
        }
        let at = self.done as usize;
        debug_assert_eq!(
            at,
            self.state.count(current),
            "the running thread has done as much as the state says"
        );
        let history = &mut thread.history;
        match history.ops.get(at) {
            Some(known) if self.replaying => {
                if !known.is_same(&op) {
                    self.differs(current, at, op);
                }
            }
            Some(_) => {
                history.ops.truncate(at);
                history.ops.push(op);
            }
            None => history.ops.push(op),
        }
    }

    #[cold]
    fn differs(&mut self, thread: usize, at: usize, op: Op) {
        if self.learned {
            // The addresses may be the reason, and they are the same in all executions if the
            // search begins anew.
            self.full.get_or_insert(Need::Addresses);
            return;
        }
        let known = self.threads[thread].history.ops[at];
        let message = format!(
            "the test is not deterministic: under the same schedule, operation {} of {} was `{}` on {} at {}:{}, and now it is `{}` on \
             {} at {}:{}; whatever a test depends on has to be made inside it, and must not depend on time, addresses or random numbers",
            at + 1,
            self.thread_name(thread),
            known.verb,
            self.object_name(known.object),
            known.site.file(),
            known.site.line(),
            op.verb,
            self.object_name(op.object),
            op.site.file(),
            op.site.line(),
        );
        self.fail(FailureKind::Nondeterminism, message, Some(op.site));
    }

    /// Takes note of a failure. The first of a step counts.
    pub(crate) fn fail(
        &mut self,
        kind: FailureKind,
        message: String,
        site: Option<&'static Site<'static>>,
    ) {
        let site = site.map(place);
        self.failure.get_or_insert_with(|| Box::new(Failure { kind, message, site }));
    }

    /// The name of a thread.
    pub(crate) fn thread_name(&self, slot: usize) -> String {
        self.threads[slot].name.clone().unwrap_or_else(|| self.names.thread(slot))
    }

    /// Lets the watchdog know what a thread is called.
    #[cold]
    fn show_name(&self, slot: usize) {
        if let Some(pulse) = &self.pulse {
            pulse.name(slot, &self.thread_name(slot));
        }
    }

    fn object_name(&self, object: u32) -> String {
        if object == NOTHING { "nothing".to_owned() } else { self.names.object(object) }
    }
}

/// A place in the program.
pub(crate) fn place(site: &Site<'_>) -> Place {
    Place { file: site.file().into(), line: site.line(), column: site.column() }
}
