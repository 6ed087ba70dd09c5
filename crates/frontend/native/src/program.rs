//! An executable as a program whose executions can be explored.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use preempt_explore::{Cache, Order, Plan, Reduction};
use preempt_native_block::Slot;
use preempt_system::{MAX_THREADS, Program, Restart};

use crate::describe::duration;
use crate::executable::{Executable, Harness};
use crate::level::{Level, Races};
use crate::names::Names;
use crate::server::{Output, Server, Stacks, Stuck};
use crate::state::Needs;
use crate::symbols::Symbols;
use crate::system::Execution;
use crate::trace::{Difference, Reference, Trace};

/// Thread slots at the beginning; more are made when a run needs them.
const FEW: usize = 4;

/// What a run can need that the search did not provide for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// This many thread slots.
    Slots(usize),
    /// This many threads in another order: see [`crate::names`].
    Order(usize),
    /// Steps must depend on the end of the process, on yields and on deadlines.
    Process,
    /// Atomic variables that overlap in the 16 bytes at this address must count as one.
    Mixed(u64),
    /// Something that cannot be provided: see [`Native::refusal`].
    Refused,
}

/// What a search relies on when it holds a thread back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Assumption {
    /// A yield or a timeout lets other threads run.
    Yield,
    /// A loop that has changed nothing so far does not end by itself.
    Loop,
}

/// Whether executables can be explored in this way, or why not.
pub fn suits(plan: &Plan) -> Result<(), String> {
    if plan.keep_going && plan.reduction != Reduction::None {
        return Err(
            "to search on after an error does not go together with a reduction: a process that \
             fails ends, and with it the steps of other threads that the reduction would have to \
             see; leave out --keep-going or --reduce"
                .to_owned(),
        );
    }
    Ok(())
}

impl Executable {
    /// Whether this executable can be explored in this way, or why not.
    pub fn suits(&self, plan: &Plan) -> Result<(), String> {
        // Threads print without synchronisation, so happens-before does not order what they print.
        let compares_graphs = matches!(plan.order, Order::Icb { cache: Cache::Hb } | Order::DfsHb);
        if self.same_output && (compares_graphs || plan.reduction != Reduction::None) {
            return Err(
                "to compare the output of all executions does not go together with a reduction or \
                 with a cache: executions that differ only in the order of independent steps may \
                 print in another order; leave out --reduce, --cache and --order dfs-hb, or \
                 --same-output"
                    .to_owned(),
            );
        }
        // A reduction must know all that a step reads and writes. Precompiled functions of the
        // standard library of Rust (`Once`, `park`, `Condvar`) synchronise by operations that no
        // level shows: cb-por has missed the deadlock of
        // `corpus/native/instrumented/once_park_lost.rs`. A search that takes every step does not
        // depend on that, and the cache of happens-before graphs also compares what threads found.
        let hides = !self.functions.found.is_empty()
            || self.functions.stripped && self.level != Level::Calls;
        if hides && plan.reduction != Reduction::None {
            return Err(
                "a reduction could miss errors of this executable: the precompiled code of \
                        Rust's standard library synchronises threads by operations that are not \
                        visible; leave out --reduce"
                    .to_owned(),
            );
        }
        suits(plan)
    }
}

/// An executable under test.
pub struct Native {
    pub(crate) executable: Executable,
    pub(crate) slots: usize,
    pub(crate) needs: Needs,
    /// Where atomic variables overlap: see [`Names::locate_atomic`].
    pub(crate) mixed: Vec<u64>,
    names: Mutex<Names>,
    /// The slots of all threads in their order, once an execution has shown them in another one.
    order: Mutex<Option<Vec<Slot>>>,
    /// The first execution without preemptions, with which all others are compared.
    first: Mutex<Option<Reference>>,
    /// Fork servers that no execution uses now.
    idle: Mutex<Vec<Server>>,
    symbols: OnceLock<Symbols>,
    refusal: Mutex<Option<String>>,
    /// What the search relied on when it held threads back, and the places of the calls.
    pub(crate) assumed: Mutex<BTreeSet<(Assumption, u64)>>,
    /// Whether a thread had to wait because another one cannot be delayed for longer.
    pub(crate) delays: AtomicBool,
    /// The number of processes that were run.
    pub(crate) children: AtomicU64,
    /// Which of the executable's functions begin with scheduling points, a bit for each.
    entered: AtomicU32,
    /// Whether data races are detected.
    races: AtomicBool,
    /// How often, in all executions, threads were ordered by what precompiled code may have done.
    pub(crate) oversynchronised: AtomicU64,
    /// Whether system calls that the program makes without libc are trapped.
    traps: AtomicBool,
    /// How many were trapped, in all executions.
    trapped: AtomicU64,
    /// What executions have done that depends on the world outside.
    noted: Mutex<BTreeSet<String>>,
}

impl Native {
    /// Prepares to explore an executable.
    pub fn new(executable: Executable) -> Native {
        let names = Mutex::new(Names::new(executable.harness, Vec::new()));
        Native {
            executable,
            slots: FEW,
            needs: Needs::default(),
            names,
            order: Mutex::default(),
            mixed: Vec::new(),
            first: Mutex::default(),
            idle: Mutex::default(),
            symbols: OnceLock::new(),
            refusal: Mutex::default(),
            assumed: Mutex::default(),
            delays: AtomicBool::new(false),
            children: AtomicU64::new(0),
            entered: AtomicU32::new(0),
            races: AtomicBool::new(false),
            oversynchronised: AtomicU64::new(0),
            traps: AtomicBool::new(true),
            trapped: AtomicU64::new(0),
            noted: Mutex::default(),
        }
    }

    /// Why the executable cannot be explored, if it cannot.
    pub fn refusal(&self) -> Option<String> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The assumptions under which the result holds, each as the end of a sentence that begins with
    /// "assuming".
    pub fn assumptions(&self) -> Vec<String> {
        let assumed = self.assumed.lock().unwrap_or_else(PoisonError::into_inner);
        let place = |pc: u64| self.symbols.get().and_then(|symbols| symbols.own_caller(pc));
        let mut words: Vec<String> = assumed
            .iter()
            .map(|&(assumption, pc)| match (assumption, place(pc)) {
                (Assumption::Yield, Some(site)) => {
                    format!("that the yield at {site} lets other threads run")
                }
                (Assumption::Yield, None) => "that a yield lets other threads run".to_owned(),
                (Assumption::Loop, Some(site)) => {
                    format!("that the loop at {site} waits for another thread")
                }
                (Assumption::Loop, None) => "that a loop waits for another thread".to_owned(),
            })
            .collect();
        words.sort();
        words.dedup();
        if self.delays.load(Relaxed) {
            let limit = duration(self.executable.max_delay());
            words.push(format!(
                "that no thread is delayed by more than {limit} while others sleep or wait with a \
                 timeout (--max-delay)"
            ));
        }
        words.extend(self.unseen());
        if !self.traps.load(Relaxed) {
            words.push(
                "that no code makes a futex system call except through libc (this kernel does not \
                 permit seccomp filters, by which such calls are controlled)"
                    .to_owned(),
            );
        }
        let races = match self.races.load(Relaxed) {
            true => Races::Detected,
            false => Races::Assumed,
        };
        words.insert(0, self.executable.level.assumption(races).to_owned());
        words
    }

    /// What is assumed of precompiled functions whose beginnings are not scheduling points although
    /// they should be.
    fn unseen(&self) -> Option<String> {
        let functions = &self.executable.functions;
        if functions.stripped {
            return Some(
                "that no thread is interrupted before a call of `Condvar::wait`, `Barrier::wait` \
                 or `thread::park` of the standard library (the executable has no symbols: build \
                 it without stripping them)"
                    .to_owned(),
            );
        }
        let entered = self.entered.load(Relaxed);
        let is_unseen = |nth: &usize| entered & 1 << nth == 0;
        let unseen: BTreeSet<&str> = (0..functions.found.len())
            .filter(is_unseen)
            .map(|nth| &*functions.found[nth].name)
            .collect();
        let unseen: Vec<String> = unseen.iter().map(|name| format!("`{name}`")).collect();
        (!unseen.is_empty()).then(|| {
            format!("that no thread is interrupted before a call of {}", unseen.join(", "))
        })
    }

    /// What the search can see of the program.
    pub fn level(&self) -> Level {
        self.executable.level
    }

    /// What a search could see of the program, and what not: one sentence.
    pub fn visibility(&self) -> String {
        let visible = self.level().visibility();
        match self.trapped.load(Relaxed) {
            0 => visible.to_owned(),
            _ => format!(
                "futex system calls made without the C library, which are trapped; {visible}"
            ),
        }
    }

    /// Whether system calls that the program makes without libc are controlled, by trapping them.
    /// It is known once an execution has run.
    pub fn traps_system_calls(&self) -> bool {
        self.traps.load(Relaxed)
    }

    /// The most threads of an execution so far, the main thread included.
    pub fn threads(&self) -> usize {
        self.names().slots.len() + 1
    }

    /// What runs the code under test.
    pub fn harness(&self) -> Harness {
        self.executable.harness
    }

    /// The number of processes that were run for the search so far.
    pub fn children(&self) -> u64 {
        self.children.load(Relaxed)
    }

    pub(crate) fn count_child(&self) {
        self.children.fetch_add(1, Relaxed);
    }

    /// Counts how often an execution has ordered threads by what precompiled code may have done.
    pub(crate) fn count_oversynchronised(&self, times: u32) {
        self.oversynchronised.fetch_add(times.into(), Relaxed);
    }

    /// Counts how many system calls of an execution were trapped.
    pub(crate) fn count_trapped(&self, times: u32) {
        self.trapped.fetch_add(times.into(), Relaxed);
    }

    /// Keeps what an execution has done that depends on the world outside.
    pub(crate) fn keep_notes(&self, notes: &[String]) {
        if !notes.is_empty() {
            let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
            noted.extend(notes.iter().cloned());
        }
    }

    /// What executions have done so far that depends on the world outside, such as "reads the file
    /// x", in the order of the alphabet.
    pub fn notes(&self) -> Vec<String> {
        let noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        noted.iter().cloned().collect()
    }

    /// If data races are detected: how often, in all processes that were run, a thread was taken
    /// to be ordered after all others because precompiled code may have synchronised them.
    pub fn oversynchronised(&self) -> Option<u64> {
        let is_on = self.races.load(Relaxed);
        is_on.then(|| self.oversynchronised.load(Relaxed))
    }

    /// Records what the search relied on when it held back a thread at this place.
    pub(crate) fn rely_on(&self, assumption: Assumption, pc: u64) {
        let mut assumed = self.assumed.lock().unwrap_or_else(PoisonError::into_inner);
        assumed.insert((assumption, pc));
    }

    /// Whether the search may have left out executions of a fair scheduler: those in which a loop
    /// that was taken for a wait ends by itself.
    pub fn leaves_out(&self) -> bool {
        let assumed = self.assumed.lock().unwrap_or_else(PoisonError::into_inner);
        assumed.iter().any(|(assumption, _)| *assumption == Assumption::Loop)
    }

    /// Keeps these slots for the next search. This one has given the threads other ones.
    pub(crate) fn reorder(&self, slots: Vec<Slot>) -> Need {
        let need = Need::Order(slots.len());
        *self.order.lock().unwrap_or_else(PoisonError::into_inner) = Some(slots);
        need
    }

    /// Records that a thread had to wait for its deadline because others could run.
    pub(crate) fn rely_on_max_delay(&self) {
        self.delays.store(true, Relaxed);
    }

    pub(crate) fn refuse(&self, why: String) -> Need {
        *self.refusal.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
        Need::Refused
    }

    /// Where an execution without preemptions differs from the first one, if there was one.
    pub(crate) fn differs_from_first(&self, trace: &Trace) -> Option<Difference> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        first.as_ref()?.difference(trace)
    }

    /// What all executions have to print, if they have to print the same: what the first one has
    /// printed, unless it failed.
    pub(crate) fn wanted_output(&self) -> Option<Output> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let compared = first.as_ref().filter(|first| self.executable.same_output && first.exited);
        compared.map(|first| first.output.clone())
    }

    /// The beginning of what all executions have to print, if they have to print the same.
    pub fn reference_output(&self) -> Option<String> {
        Some(self.wanted_output()?.text)
    }

    /// Keeps the first execution without preemptions. Returns whether it is the first.
    pub(crate) fn keep_first(&self, trace: &Trace) -> bool {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let is_first = first.is_none();
        first.get_or_insert_with(|| Reference::of(trace));
        is_first
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// The names, which all executions share.
    pub(crate) fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins an execution whose children record call stacks.
    pub(crate) fn start_with_stacks(&self) -> Result<Execution<'_>, Need> {
        Execution::new(self, Stacks::Recorded)
    }

    /// A fork server: an idle one, or a new one.
    pub(crate) fn server(&self) -> Result<Server, Need> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        if let Some(server) = idle {
            return Ok(server);
        }
        let server = Server::start(&self.executable).map_err(|stuck| self.refuse_stuck(stuck))?;
        self.entered.store(server.entered(), Relaxed);
        self.races.store(server.detects_races(), Relaxed);
        self.traps.store(server.traps(), Relaxed);
        self.symbols.get_or_init(|| Symbols::of(server.process_id(), &self.executable.path));
        Ok(server)
    }

    /// Keeps a fork server for the next execution.
    pub(crate) fn release(&self, server: Server) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(server);
    }

    pub(crate) fn refuse_stuck(&self, stuck: Stuck) -> Need {
        let (Stuck::NotStarted(why) | Stuck::NoProgress(why)) = stuck;
        self.refuse(why)
    }

    /// The symbols of the executable. There is a server once an execution exists.
    pub(crate) fn symbols(&self) -> &Symbols {
        self.symbols.get().expect("a server was started")
    }
}

impl Program for Native {
    type Need = Need;
    type System<'p> = Execution<'p>;

    fn start(&self) -> Result<Execution<'_>, Need> {
        Execution::new(self, Stacks::Omitted)
    }

    fn is_deterministic(&self) -> bool {
        false
    }

    fn grow(&mut self, need: Need) -> Restart {
        match need {
            Need::Slots(slots) if slots > MAX_THREADS => return Restart::Refused,
            Need::Slots(slots) => {
                while self.slots < slots {
                    self.slots = (2 * self.slots).min(MAX_THREADS);
                }
            }
            Need::Order(_) => {}
            Need::Process => self.needs.process = true,
            Need::Mixed(around) => self.mixed.push(around),
            Need::Refused => return Restart::Refused,
        }
        let order = self.order.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let slots = order.unwrap_or_else(|| self.names().slots.clone());
        let names = Names::new(self.executable.harness, slots).with_mixed(self.mixed.clone());
        self.names = Mutex::new(names);
        self.first = Mutex::default();
        self.assumed = Mutex::default();
        self.delays = AtomicBool::new(false);
        Restart::Again
    }
}
