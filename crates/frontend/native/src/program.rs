//! An executable as a program whose executions can be explored.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use preempt_explore::{Cache, Order, Plan, Reduction};
use preempt_native_block::Slot;
use preempt_report::number::counted;
use preempt_system::{MAX_THREADS, MemoryModel, Program, Restart};

use crate::describe::duration;
use crate::executable::{Allocator, Executable, Harness};
use crate::level::{Level, Races};
use crate::names::Names;
use crate::opaque::{self, Origin};
use crate::server::{Output, Run, RunError, Server, Stacks};
use crate::source::in_package;
use crate::state::Needs;
use crate::symbols::Symbols;
use crate::system::Execution;
use crate::trace::{Difference, Reference, Trace};

/// The number of thread slots of the first search; a search restarts with more if a run needs them.
const INITIAL_SLOTS: usize = 4;

/// What a run can need that the search did not provide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// This many thread slots.
    Slots(usize),
    /// Another order of this many threads: see [`crate::names`].
    Order(usize),
    /// Steps must depend on the end of the process, on yields and on deadlines.
    Process,
    /// Mixed-size accesses: atomic variables that overlap in the 16 bytes at this address must
    /// count as one object.
    Mixed(u64),
    /// This many [opaque](crate::weak) variables under weak memory.
    Opaque(usize),
    /// Something that cannot be provided: see [`Native::refusal`].
    Refused,
}

/// An assumption under which a search holds a thread back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Assumption {
    /// A yield or a timeout lets other threads run.
    Yield,
    /// A loop that has changed nothing so far does not end by itself.
    Loop,
    /// A loop that has read old values for some rounds reads the newest ones next.
    Visible,
}

impl Assumption {
    /// The assumption with this number.
    pub(crate) fn of(number: u8) -> Option<Assumption> {
        let all = [Assumption::Yield, Assumption::Loop, Assumption::Visible];
        all.into_iter().find(|&assumption| assumption as u8 == number)
    }
}

/// Checks that executables can be explored by `plan`. `Err` says why not.
pub fn suits(plan: &Plan) -> Result<(), String> {
    if plan.keep_going && plan.reduction != Reduction::None {
        return Err(
            "--keep-going cannot be combined with --reduce: a failure ends the process, and a \
             reduction would need the further steps of the other threads; leave out --keep-going \
             or --reduce"
                .to_owned(),
        );
    }
    Ok(())
}

impl Executable {
    /// Whether executions with the same happens-before graph may differ, so that none of them may
    /// be left out: if their outputs are compared, or if ordinary loads and stores of atomic
    /// variables are expected but not visible.
    pub fn differs_within_graphs(&self) -> bool {
        self.same_output || self.level == Level::Locked
    }

    /// Checks that this executable can be explored by `plan`. `Err` says why not.
    pub fn suits(&self, plan: &Plan) -> Result<(), String> {
        // Threads print without synchronisation, so happens-before does not order their output.
        let compares_graphs = plan.order.cache() == Some(Cache::Hb) || plan.order == Order::DfsHb;
        if self.same_output && (compares_graphs || plan.reduction != Reduction::None) {
            return Err(
                "--same-output cannot be combined with a reduction or a cache: executions that \
                 differ only in the order of independent steps may print in another order; leave \
                 out --reduce, --cache and --order dfs-hb, or --same-output"
                    .to_owned(),
            );
        }
        if self.level == Level::Locked && plan.reduction != Reduction::None {
            return Err(
                "a reduction could miss errors with --atomics: the ordinary loads and stores of \
                 atomic variables are not visible; leave out --reduce, or build the program with \
                 the flags that `preempt flags` prints"
                    .to_owned(),
            );
        }
        if self.level == Level::Locked && compares_graphs {
            return Err(
                "--atomics cannot be combined with --cache hb or --order dfs-hb: executions with \
                 the same happens-before graph may differ, because ordinary loads and stores are \
                 not part of it; leave out --cache and --order"
                    .to_owned(),
            );
        }
        // A reduction must know everything that a step reads and writes. Precompiled functions of
        // Rust's standard library (`Once`, `park`, `Condvar`) synchronise by operations that are
        // not visible at any level: cb-por missed the deadlock of
        // `corpus/native/instrumented/once_park_lost.rs`. A search that takes every step does not
        // depend on that, and the cache of happens-before graphs also compares the values that
        // threads found.
        if self.has_invisible_operations() && plan.reduction != Reduction::None {
            return Err(
                "a reduction could miss errors of this executable: the precompiled code of Rust's \
                 standard library synchronises threads by operations that are not visible; leave \
                 out --reduce"
                    .to_owned(),
            );
        }
        self.suits_memory(plan)?;
        suits(plan)
    }

    /// Whether precompiled code of Rust's standard library may synchronise threads.
    fn has_invisible_operations(&self) -> bool {
        !self.functions.found.is_empty() || self.functions.stripped && self.level != Level::Calls
    }

    /// Checks that the memory model can be explored.
    fn suits_memory(&self, plan: &Plan) -> Result<(), String> {
        debug_assert_eq!(plan.memory, self.memory, "the plan is for this executable");
        if self.memory == MemoryModel::Sc {
            return Ok(());
        }
        if matches!(self.level, Level::Calls | Level::Locked) {
            return Err(format!(
                "--memory weak: the atomic operations of {} and their orderings are not visible; \
                 build it with the flags that `preempt flags` prints, or use `cargo preempt test`",
                self.path.display()
            ));
        }
        if self.allocator == Allocator::System {
            return Err(
                "--memory weak cannot be combined with --allocator system: memory that is reused \
                 would seem to have old values; leave out --allocator"
                    .to_owned(),
            );
        }
        if plan.reduction == Reduction::Graphs {
            return Err(
                "--reduce graphs is for closures: it has to know the steps of executions that \
                 never ran; leave out --reduce"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

/// An executable under test, with everything that its executions share.
pub struct Native {
    pub(crate) executable: Executable,
    pub(crate) slots: usize,
    pub(crate) needs: Needs,
    /// The 16-byte ranges in which atomic variables overlap: see [`Names::locate_atomic`].
    pub(crate) mixed: Vec<u64>,
    /// The addresses of variables that are [opaque](crate::weak) in every execution.
    pub(crate) opaque: BTreeSet<u64>,
    /// The maximal number of opaque variables of an execution.
    pub(crate) opaque_variables: AtomicUsize,
    /// Those that an execution of this search has shown, for the next one.
    new_opaque: Mutex<BTreeSet<u64>>,
    names: Mutex<Names>,
    /// The slots for the next search, if an execution has shown threads in another order.
    order: Mutex<Option<Vec<Slot>>>,
    /// The first execution without preemptions, with which all others are compared.
    first: Mutex<Option<Reference>>,
    /// Fork servers that no execution uses now.
    idle: Mutex<Vec<Server>>,
    symbols: OnceLock<Symbols>,
    /// The origins of operations, by the return addresses of their callers.
    origins: Mutex<HashMap<Vec<u64>, Origin>>,
    refusal: Mutex<Option<String>>,
    /// The assumptions under which the search held threads back, and the addresses of the calls.
    pub(crate) assumed: Mutex<BTreeSet<(Assumption, u64)>>,
    /// Whether a thread had to wait because another one cannot be delayed for longer.
    pub(crate) relies_on_max_delay: AtomicBool,
    /// The number of processes that were run.
    pub(crate) children: AtomicU64,
    /// Which of the executable's functions begin with scheduling points, a bit for each.
    entered: AtomicU32,
    /// The number of locked instructions that were replaced.
    patched: AtomicU32,
    /// Whether data races are detected.
    races: AtomicBool,
    /// How often the race detector ordered threads because precompiled code may have synchronised
    /// them, in all executions.
    pub(crate) oversynchronised: AtomicU64,
    /// Whether system calls that the program makes without libc are trapped.
    traps: AtomicBool,
    /// The number of trapped system calls in all executions.
    trapped: AtomicU64,
    /// Actions of executions that depend on the world outside of the process.
    notes: Mutex<BTreeSet<String>>,
}

/// Locks a mutex whose data is valid even if another thread has panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Native {
    /// Prepares to explore an executable.
    pub fn new(executable: Executable) -> Native {
        let names = Mutex::new(Names::new(executable.harness, Vec::new()));
        Native {
            executable,
            slots: INITIAL_SLOTS,
            needs: Needs::default(),
            names,
            order: Mutex::default(),
            mixed: Vec::new(),
            opaque: BTreeSet::new(),
            opaque_variables: AtomicUsize::new(0),
            new_opaque: Mutex::default(),
            first: Mutex::default(),
            idle: Mutex::default(),
            symbols: OnceLock::new(),
            origins: Mutex::default(),
            refusal: Mutex::default(),
            assumed: Mutex::default(),
            relies_on_max_delay: AtomicBool::new(false),
            children: AtomicU64::new(0),
            entered: AtomicU32::new(0),
            patched: AtomicU32::new(0),
            races: AtomicBool::new(false),
            oversynchronised: AtomicU64::new(0),
            traps: AtomicBool::new(true),
            trapped: AtomicU64::new(0),
            notes: Mutex::default(),
        }
    }

    /// Why the executable cannot be explored, if it cannot.
    pub fn refusal(&self) -> Option<String> {
        lock(&self.refusal).clone()
    }

    /// The assumptions under which the result holds, each as the end of a sentence that begins with
    /// "assuming".
    pub fn assumptions(&self) -> Vec<String> {
        let races = match self.races.load(Relaxed) {
            true => Races::Detected,
            false => Races::Assumed,
        };
        let mut all = vec![self.executable.level.assumption(races).to_owned()];
        all.extend(self.hold_assumptions());
        if self.relies_on_max_delay.load(Relaxed) {
            let limit = duration(self.executable.max_delay());
            all.push(format!(
                "that no thread is delayed by more than {limit} while others sleep or wait with a \
                 timeout (--max-delay)"
            ));
        }
        all.extend(self.entry_assumption());
        let unpatched = self.unpatched().filter(|_| self.level() == Level::Locked);
        all.extend(unpatched.map(|code| {
            format!(
                "that threads do not synchronise by code of the executable that could not be \
                 patched ({code})"
            )
        }));
        if !self.traps.load(Relaxed) {
            all.push(
                "that no code makes a futex system call except through libc (this kernel does not \
                 permit seccomp filters, by which such calls are controlled)"
                    .to_owned(),
            );
        }
        all
    }

    /// The assumptions under which threads were held back, sorted.
    fn hold_assumptions(&self) -> BTreeSet<String> {
        let site = |pc: u64| {
            let site = self.symbols.get()?.own_caller(pc)?;
            Some(format!("{}:{}", in_package(&site.file), site.line))
        };
        lock(&self.assumed)
            .iter()
            .map(|&(assumption, pc)| match (assumption, site(pc)) {
                (Assumption::Yield, Some(site)) => {
                    format!("that the yield at {site} lets other threads run")
                }
                (Assumption::Yield, None) => "that a yield lets other threads run".to_owned(),
                (Assumption::Loop, Some(site)) => {
                    format!("that the loop at {site} waits for another thread")
                }
                (Assumption::Loop, None) => "that a loop waits for another thread".to_owned(),
                (Assumption::Visible, Some(site)) => {
                    format!("that the loop at {site} reads old values for a few rounds only")
                }
                (Assumption::Visible, None) => {
                    "that a loop reads old values for a few rounds only".to_owned()
                }
            })
            .collect()
    }

    /// The assumption about precompiled functions that should begin with a scheduling point and do
    /// not, if there are any.
    fn entry_assumption(&self) -> Option<String> {
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
        let is_missing = |nth: &usize| entered & 1 << nth == 0;
        let missing: BTreeSet<&str> = (0..functions.found.len())
            .filter(is_missing)
            .map(|nth| &*functions.found[nth].name)
            .collect();
        let missing: Vec<String> = missing.iter().map(|name| format!("`{name}`")).collect();
        (!missing.is_empty()).then(|| {
            format!("that no thread is interrupted before a call of {}", missing.join(", "))
        })
    }

    /// Which operations of the program are visible.
    pub fn level(&self) -> Level {
        self.executable.level
    }

    /// Which operations were visible to a search and which were not: one sentence.
    pub fn visibility(&self) -> String {
        let mut visible = self.level().visibility().to_owned();
        if self.level() == Level::Locked {
            let others = match self.unpatched() {
                Some(code) => format!("; left alone: {code}"),
                None => String::new(),
            };
            let counts = format!("of the executable ({} patched{others})", self.patched());
            visible = visible.replacen("of the executable", &counts, 1);
        }
        match self.trapped.load(Relaxed) {
            0 => visible,
            _ => format!(
                "futex system calls made without the C library, which are trapped; {visible}"
            ),
        }
    }

    /// The number of locked instructions of the executable that are scheduling points: 0 unless
    /// they were [requested](Executable::patch_atomics).
    pub fn patched(&self) -> u32 {
        self.patched.load(Relaxed)
    }

    /// Code of the executable that was left alone although it was to be patched, in words.
    fn unpatched(&self) -> Option<String> {
        let locked = &self.executable.locked;
        let failed = locked.found.len().saturating_sub(self.patched() as usize);
        let parts = [(locked.left + failed, "instruction"), (locked.undecoded, "function")];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|&(count, what)| counted(count as u64, what))
            .collect();
        (!parts.is_empty()).then(|| parts.join(" and "))
    }

    /// Which memory model was explored, if the program's atomic operations are visible.
    pub fn memory_words(&self) -> Option<String> {
        let opaque = self.opaque_variables.load(Relaxed);
        Some(match (self.level(), self.executable.memory) {
            (Level::Calls | Level::Locked, _) => return None,
            (_, MemoryModel::Weak) => {
                let all = "weak: what the orderings of atomics allow, except load buffering";
                match opaque {
                    0 => all.to_owned(),
                    _ => format!(
                        "{all}; {}, which precompiled code may access too or operations of \
                         different sizes access, explored as sequentially consistent",
                        counted(opaque as u64, "variable")
                    ),
                }
            }
            _ => "sequentially consistent: what weaker orderings of atomics allow was not \
                  explored (--memory weak)"
                .to_owned(),
        })
    }

    /// Whether system calls that the program makes without libc are controlled, by trapping them.
    /// Known once an execution has run.
    pub fn traps_system_calls(&self) -> bool {
        self.traps.load(Relaxed)
    }

    /// The maximal number of threads of an execution so far, the main thread included.
    pub fn threads(&self) -> usize {
        self.names().slots.len() + 1
    }

    /// The harness that runs the code under test.
    pub fn harness(&self) -> Harness {
        self.executable.harness
    }

    /// The number of processes that were run for the search so far.
    pub fn children(&self) -> u64 {
        self.children.load(Relaxed)
    }

    /// Adds a run of a child to the counts and notes.
    pub(crate) fn count_run(&self, run: &Run) {
        self.children.fetch_add(1, Relaxed);
        self.oversynchronised.fetch_add(run.oversynchronised.into(), Relaxed);
        self.trapped.fetch_add(run.trapped.into(), Relaxed);
        if !run.notes.is_empty() {
            lock(&self.notes).extend(run.notes.iter().cloned());
        }
    }

    /// Actions of executions so far that depend on the world outside of the process, such as "reads
    /// the file x", in alphabetical order.
    pub fn notes(&self) -> Vec<String> {
        lock(&self.notes).iter().cloned().collect()
    }

    /// If data races are detected: how often, in all processes that were run, a thread was taken
    /// to be ordered after all others because precompiled code may have synchronised them.
    pub fn oversynchronised(&self) -> Option<u64> {
        let is_on = self.races.load(Relaxed);
        is_on.then(|| self.oversynchronised.load(Relaxed))
    }

    /// Records the assumption under which the search holds back a thread at `pc`.
    pub(crate) fn rely_on(&self, assumption: Assumption, pc: u64) {
        lock(&self.assumed).insert((assumption, pc));
    }

    /// Whether the search may have omitted executions of a fair scheduler: those in which a loop
    /// that was taken for a wait ends by itself.
    pub fn omits_executions(&self) -> bool {
        lock(&self.assumed).iter().any(|(assumption, _)| *assumption == Assumption::Loop)
    }

    /// Stores the slots for the next search. This search has assigned the threads other slots.
    pub(crate) fn reorder(&self, slots: Vec<Slot>) -> Need {
        let need = Need::Order(slots.len());
        *lock(&self.order) = Some(slots);
        need
    }

    /// Records that a thread had to wait for its deadline because others could run.
    pub(crate) fn rely_on_max_delay(&self) {
        self.relies_on_max_delay.store(true, Relaxed);
    }

    /// The code to which an operation belongs, in a call that returns to `pc`; `frames` are the
    /// return addresses of its callers, if they were recorded.
    pub(crate) fn origin(&self, pc: u64, frames: &[u64]) -> Origin {
        let callers = || frames.iter().copied().chain(frames.is_empty().then_some(pc));
        let key: Vec<u64> = callers().collect();
        if let Some(&known) = lock(&self.origins).get(&key) {
            return known;
        }
        let (symbols, path) = (self.symbols(), self.executable.path());
        let own = callers().filter(|&pc| symbols.is_own(pc, path));
        let mut origin = opaque::origin(own.flat_map(|pc| symbols.places(pc.saturating_sub(1))));
        if origin == Origin::Unknown && !self.executable.has_invisible_operations() {
            origin = Origin::Instrumented;
        }
        lock(&self.origins).insert(key, origin);
        origin
    }

    /// Refuses an executable of Rust without line tables.
    pub(crate) fn refuse_without_lines(&self) -> Need {
        self.refuse(
            "--memory weak needs line tables: without them it is not known which atomic variables \
             belong to Rust's standard library, parts of which are precompiled and synchronise \
             invisibly; build the program with -g (in Cargo.toml, debug = \"line-tables-only\") \
             and do not strip it"
                .to_owned(),
        )
    }

    /// Stores the addresses of variables that are opaque in the next search.
    pub(crate) fn hide(&self, addresses: impl Iterator<Item = u64>) -> Need {
        let mut new = lock(&self.new_opaque);
        new.extend(addresses);
        Need::Opaque(self.opaque.union(&new).count())
    }

    pub(crate) fn refuse(&self, why: String) -> Need {
        *lock(&self.refusal) = Some(why);
        Need::Refused
    }

    /// Where an execution without preemptions differs from the first one, if there was one.
    pub(crate) fn differs_from_first(&self, trace: &Trace) -> Option<Difference> {
        lock(&self.first).as_ref()?.difference(trace)
    }

    /// The output that every execution must have, if all must have the same: that of the first one,
    /// unless it failed.
    pub(crate) fn expected_output(&self) -> Option<Output> {
        let first = lock(&self.first);
        let compared = first.as_ref().filter(|first| self.executable.same_output && first.exited);
        compared.map(|first| first.output.clone())
    }

    /// The beginning of the output that every execution must have, if all must have the same.
    pub fn reference_output(&self) -> Option<String> {
        Some(self.expected_output()?.text)
    }

    /// Keeps the first execution without preemptions. Returns whether `trace` is the first.
    pub(crate) fn keep_first(&self, trace: &Trace) -> bool {
        let mut first = lock(&self.first);
        let is_first = first.is_none();
        first.get_or_insert_with(|| Reference::of(trace));
        is_first
    }

    pub(crate) fn slots(&self) -> usize {
        self.slots
    }

    /// The names, which all executions share.
    pub(crate) fn names(&self) -> MutexGuard<'_, Names> {
        lock(&self.names)
    }

    /// Begins an execution whose children record call stacks.
    pub(crate) fn start_with_stacks(&self) -> Result<Execution<'_>, Need> {
        Execution::new(self, Stacks::Recorded)
    }

    /// A fork server: an idle one, or a new one.
    pub(crate) fn server(&self) -> Result<Server, Need> {
        let idle = lock(&self.idle).pop();
        if let Some(server) = idle {
            return Ok(server);
        }
        let server = Server::start(&self.executable).map_err(|error| self.refuse_run(error))?;
        self.entered.store(server.entered(), Relaxed);
        self.patched.store(server.patched(), Relaxed);
        self.races.store(server.detects_races(), Relaxed);
        self.traps.store(server.traps(), Relaxed);
        self.symbols.get_or_init(|| Symbols::of(server.process_id(), &self.executable.path));
        Ok(server)
    }

    /// Keeps a fork server for the next execution.
    pub(crate) fn release(&self, server: Server) {
        lock(&self.idle).push(server);
    }

    pub(crate) fn refuse_run(&self, RunError(why): RunError) -> Need {
        self.refuse(why)
    }

    /// The symbols of the executable. They are read when the first server is started, which is
    /// before any execution exists.
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
            Need::Mixed(range) => self.mixed.push(range),
            Need::Opaque(_) => {
                let new = self.new_opaque.get_mut().unwrap_or_else(PoisonError::into_inner);
                self.opaque.append(new);
            }
            Need::Refused => return Restart::Refused,
        }
        let order = self.order.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let slots = order.unwrap_or_else(|| self.names().slots.clone());
        let names = Names::new(self.executable.harness, slots).with_mixed(self.mixed.clone());
        self.names = Mutex::new(names);
        self.first = Mutex::default();
        self.assumed = Mutex::default();
        self.relies_on_max_delay = AtomicBool::new(false);
        Restart::Again
    }
}
