//! Checks: what to search, how, and what to do with the outcome.

use std::panic::Location;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use preempt_explore::{
    Cache, Count, Limits, Order, Outcome, Plan, Reduction, Search, Shrink, Subject, portfolio,
};
use preempt_system::{MAX_THREADS, MemoryModel, Verdict};

use crate::Refusal;
use crate::caveats::DefaultMemory;
use crate::foreign_threads::creation;
use crate::page::Page;
use crate::program::{Closure, Learned};
use crate::report::Format;
use crate::runtime::orderings::Orderings;
use crate::runtime::{Options, hook, identity, is_set, overflow};
use crate::stderr::ProgressObserver;
use crate::watchdog::{Timeouts, Watchdog, WatchedCheck};
use crate::{caveats, possible, replaying, report, settings, uncontrolled};

/// Checks a closure under all schedules with at most two preemptions, and under all others too
/// while that is cheap.
///
/// It continues past two preemptions, one more at a time, as long as there are at most 10,000
/// executions in all. A pass that does not cover every schedule prints one line on the standard
/// error that says what it covers; see [`Check::check`].
///
/// Panics with the whole trace if a schedule fails: by a panic, a deadlock, a data race, a livelock
/// or a leak. See [`Check`] for settings, which can also be `PREEMPT_…` variables.
///
/// ```should_panic
/// use preempt::sync::Arc;
/// use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
/// use preempt::thread;
///
/// preempt::check(|| {
///     let n = Arc::new(AtomicUsize::new(0));
///     let add = |n: &AtomicUsize| n.store(n.load(SeqCst) + 1, SeqCst); // not atomic
///     let t = thread::spawn({ let n = n.clone(); move || add(&n) });
///     add(&n);
///     t.join().unwrap();
///     assert_eq!(n.load(SeqCst), 2);
/// });
/// ```
#[track_caller]
pub fn check<F: Fn() + Sync>(f: F) {
    Check::new().check(f);
}

/// The bound on the preemptions of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// 2, where the strategy is bounded; more where it can continue past that at little cost.
    Usual,
    At(u32),
    None,
}

/// The most steps of an execution unless [`Check::max_steps`] says otherwise.
pub(crate) const LONGEST: usize = 20_000;

/// The settings of a check.
///
/// Without an [order](Check::order) and a [reduction](Check::reduce), the schedules within the
/// bound are explored by their number of preemptions, every happens-before graph once, and with
/// more preemptions as long as there are at most 10,000 executions in all, unless a
/// [bound](Check::bound) is given; without a bound, by optimal dynamic partial-order reduction.
/// Each setting has a variable `PREEMPT_…` of the same name, which takes precedence over the code.
///
/// ```
/// use preempt::{Check, thread};
/// use std::time::Duration;
///
/// let outcome = Check::new().bound(3).time(Duration::from_secs(60)).run(|| {
///     let t = thread::spawn(|| 1);
///     assert_eq!(t.join().unwrap(), 1);
/// });
/// assert!(outcome.complete);
/// ```
#[derive(Clone, Debug)]
#[must_use = "a check is made by `check` or `run`"]
pub struct Check {
    pub(crate) order: Option<Order>,
    pub(crate) reduction: Option<Reduction>,
    pub(crate) bound: Bound,
    /// The memory model; `None` for the default: see [`Check::memory`].
    pub(crate) memory: Option<MemoryModel>,
    pub(crate) count: Count,
    pub(crate) limits: Limits,
    pub(crate) jobs: usize,
    pub(crate) seed: u64,
    pub(crate) runs: u64,
    pub(crate) keep_going: bool,
    pub(crate) first: bool,
    pub(crate) allow_incomplete: bool,
    pub(crate) options: Options,
    pub(crate) replay: Option<String>,
    pub(crate) stop_at: Option<u32>,
    pub(crate) save_schedule: Option<PathBuf>,
    pub(crate) shrink: Option<Duration>,
    pub(crate) html: Option<PathBuf>,
    pub(crate) quiet: bool,
    pub(crate) allow_uncontrolled: bool,
    pub(crate) max_turn: Duration,
    /// Records and replaces orderings: see [`Check::weaken`].
    pub(crate) orderings: Option<Arc<Orderings>>,
}

impl Default for Check {
    fn default() -> Check {
        Check {
            order: None,
            reduction: None,
            bound: Bound::Usual,
            memory: None,
            count: Count::Traces,
            limits: Limits::default(),
            jobs: 1,
            seed: 0,
            runs: 1000,
            keep_going: false,
            first: false,
            allow_incomplete: false,
            options: Options {
                memory: MemoryModel::Sc,
                may_switch: false,
                spurious_wakeups: false,
                weak_cas_failures: false,
                allow_panics: false,
                refuse_spinning: false,
                stack_size: 256 << 10,
                max_steps: LONGEST,
                max_threads: MAX_THREADS,
                since: 0,
                allow_uncontrolled: false,
                place: None,
            },
            replay: None,
            stop_at: None,
            save_schedule: None,
            shrink: Some(Shrink::default().time),
            html: None,
            quiet: false,
            allow_uncontrolled: false,
            max_turn: Duration::from_secs(60),
            orderings: None,
        }
    }
}

impl Check {
    /// Explores all schedules with at most 2 preemptions, and more while that is cheap, until one
    /// fails.
    pub fn new() -> Check {
        Check::default()
    }

    /// Explores schedules with at most `bound` preemptions, and none with more. A switch away from
    /// a thread that waits, has ended or spins is not a preemption. `PREEMPT_BOUND=n`.
    pub fn bound(self, bound: u32) -> Check {
        Check { bound: Bound::At(bound), ..self }
    }

    /// Explores all schedules. `PREEMPT_BOUND=none`.
    pub fn unbounded(self) -> Check {
        Check { bound: Bound::None, ..self }
    }

    /// Explores executions in this order, without a reduction unless one is set.
    /// `PREEMPT_ORDER=icb|delay|cb-dfs|dfs-hb|executions|depth:n|idfs:n|random|pct:n|urw`.
    pub fn order(self, order: Order) -> Check {
        Check { order: Some(order), ..self }
    }

    /// Skips equivalent executions with this partial-order reduction.
    /// `PREEMPT_REDUCE=none|sleep|dpor|dpor-optimal|graphs|budgeted-sleep|cb-por|cb-por-states` or
    /// `dpor-fg`.
    pub fn reduce(self, reduction: Reduction) -> Check {
        Check { reduction: Some(reduction), ..self }
    }

    /// Sets what is counted: traces by default; counting only executions is faster.
    /// `PREEMPT_COUNT=executions|traces|states`.
    pub fn count(self, count: Count) -> Check {
        Check { count, ..self }
    }

    /// Time limit; a check that reaches it is incomplete. `PREEMPT_TIME=seconds`.
    pub fn time(mut self, time: Duration) -> Check {
        self.limits.time = Some(time);
        self
    }

    /// Execution limit; a check that reaches it is incomplete. `PREEMPT_EXECUTIONS=n`.
    pub fn executions(mut self, executions: u64) -> Check {
        self.limits.executions = Some(executions);
        self
    }

    /// Stops when the process has grown by more than `bytes` since the check began, or when the
    /// tables of the search need as much: incomplete, with what was covered. Without it a check
    /// stops before it has used three quarters of the memory that was free when the first check of
    /// the process began. Checks that run at the same time, as tests do, count together.
    /// `PREEMPT_MEMORY_LIMIT=500M`.
    pub fn memory_limit(mut self, bytes: usize) -> Check {
        self.limits.memory = Some(bytes);
        self
    }

    /// Step limit per execution; a check with a longer execution is incomplete. `PREEMPT_STEPS=n`.
    pub fn steps(mut self, steps: u32) -> Check {
        self.limits.depth = Some(steps);
        self
    }

    /// An execution with more steps than this is a finding: 20,000 by default. Without this limit a
    /// loop that never ends and changes something each time would be followed forever.
    /// `PREEMPT_MAX_STEPS=n`.
    pub fn max_steps(mut self, steps: usize) -> Check {
        self.options.max_steps = steps;
        self
    }

    /// Refuses a test with more threads than this, the first one included: 64 by default, which is
    /// also the maximum. `PREEMPT_MAX_THREADS=n`.
    pub fn max_threads(mut self, threads: usize) -> Check {
        self.options.max_threads = threads.clamp(1, MAX_THREADS);
        self
    }

    /// Ends the process with a report if a thread performs no operation for this long: 60 seconds
    /// by default. The thread computes, loops without an operation, or waits for something that is
    /// not controlled, while all other threads wait for it. `PREEMPT_MAX_TURN=seconds`.
    pub fn max_turn(self, time: Duration) -> Check {
        Check { max_turn: time, ..self }
    }

    /// Does not print progress. By default a long check prints a line to the standard error every
    /// ten seconds. `PREEMPT_QUIET=1`.
    pub fn quiet(self) -> Check {
        Check { quiet: true, ..self }
    }

    /// Number of workers. `PREEMPT_JOBS=n`.
    pub fn jobs(self, jobs: usize) -> Check {
        Check { jobs, ..self }
    }

    /// Random seed. `PREEMPT_SEED=n`.
    pub fn seed(self, seed: u64) -> Check {
        Check { seed, ..self }
    }

    /// Number of random schedules. `PREEMPT_RUNS=n`.
    pub fn runs(self, runs: u64) -> Check {
        Check { runs, ..self }
    }

    /// Continues after a finding, and reports every distinct one. `PREEMPT_KEEP_GOING=1`.
    pub fn keep_going(self) -> Check {
        Check { keep_going: true, ..self }
    }

    /// Reports whichever finding several [jobs](Check::jobs) reach first. Without this, one worker
    /// then searches again, so that the report is the same for every number of jobs.
    /// `PREEMPT_FIRST=1`.
    pub fn first(self) -> Check {
        Check { first: true, ..self }
    }

    /// Does not fail if nothing was found before a limit was reached. `PREEMPT_ALLOW_INCOMPLETE=1`.
    pub fn allow_incomplete(self) -> Check {
        Check { allow_incomplete: true, ..self }
    }

    /// Explores spurious wakeups of condition variables and `park`, which std allows.
    /// `PREEMPT_SPURIOUS_WAKEUPS=1`.
    pub fn spurious_wakeups(mut self) -> Check {
        self.options.spurious_wakeups = true;
        self
    }

    /// Sets the memory model. By default a check explores weak memory if the orderings of the
    /// program allow more than sequentially consistent executions, and if its order and reduction
    /// can search these; otherwise it explores sequential consistency,
    /// [`Memory::Sc`](crate::Memory), and costs no more than with that setting.
    ///
    /// Under [`Memory::Weak`](crate::Memory) a load may read an older store than the newest one,
    /// and a store may come before newer ones in modification order, wherever the memory model of
    /// Rust and C++20 allows it for the orderings in the program; only load buffering is not
    /// explored. The bound then counts preemptions and such stale accesses together, and data races
    /// are determined by the happens-before relation of that execution. Partial-order reductions
    /// are refused, except [`Reduction::Graphs`], which explores every execution graph once.
    /// `PREEMPT_MEMORY=weak|sc`.
    ///
    /// ```
    /// use preempt::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
    /// use preempt::{Check, Memory, thread};
    ///
    /// let outcome = Check::new().memory(Memory::Weak).quiet().run(|| {
    ///     let (data, ready) = (AtomicU32::new(0), AtomicBool::new(false));
    ///     thread::scope(|s| {
    ///         s.spawn(|| {
    ///             data.store(7, Relaxed);
    ///             ready.store(true, Relaxed); // should be `Release`
    ///         });
    ///         s.spawn(|| {
    ///             if ready.load(Relaxed) { // should be `Acquire`
    ///                 assert_eq!(data.load(Relaxed), 7);
    ///             }
    ///         });
    ///     });
    /// });
    /// assert_eq!(outcome.findings.len(), 1);
    /// ```
    pub fn memory(mut self, memory: MemoryModel) -> Check {
        (self.memory, self.options.memory) = (Some(memory), memory);
        self
    }

    /// The same check, starting with the memory model that it names. One that names none starts
    /// under sequential consistency and may switch to weak memory, if its strategy can search both.
    fn with_initial_memory(mut self) -> Check {
        let under = |check: &Check, memory| {
            let options = Options { memory, ..check.options };
            Check { options, ..check.clone() }.plan().build_for_program()
        };
        if self.memory.is_none() {
            let needs_weak = under(&self, MemoryModel::Sc)
                .is_err_and(|refusal| matches!(refusal, preempt_explore::Refusal::Memory { .. }));
            self.options.memory = if needs_weak { MemoryModel::Weak } else { MemoryModel::Sc };
            self.options.may_switch = !needs_weak && under(&self, MemoryModel::Weak).is_ok();
        }
        self
    }

    /// Explores spurious failures of `compare_exchange_weak`, which std allows. The same exchange
    /// of a thread, with the same values, fails spuriously at most twice in a row: a loop that
    /// retries would have infinitely many executions otherwise. Where that matters, the coverage
    /// says so. `PREEMPT_WEAK_CAS_FAILURES=1`.
    pub fn weak_cas_failures(mut self) -> Check {
        self.options.weak_cas_failures = true;
        self
    }

    /// Makes the panic of a spawned thread a result that `join` returns, as std does. Without this
    /// every panic that a thread does not catch itself fails the check, joined or not: a check
    /// cannot know whether `let _ = t.join()` or `assert!(t.join().is_err())` follows. A panic of a
    /// thread that is never joined is always a failure. `PREEMPT_ALLOW_PANICS=1`.
    pub fn allow_panics(mut self) -> Check {
        self.options.allow_panics = true;
        self
    }

    /// Accepts synchronisation that is not controlled. Without this, a test fails if it has only
    /// one schedule because its threads share types of std or of crates built on them, or if a
    /// thread blocks in such a type; a test of several schedules that names such a type passes with
    /// a warning. In any case the interleavings of these types are not explored, and threads of std
    /// must not use objects of the check. `PREEMPT_ALLOW_UNCONTROLLED=1`.
    pub fn allow_uncontrolled(self) -> Check {
        Check { allow_uncontrolled: true, ..self }
    }

    /// Stack size of each thread in bytes: 256 KiB by default.
    /// `PREEMPT_STACK_SIZE=n`.
    pub fn stack_size(mut self, size: usize) -> Check {
        self.options.stack_size = size;
        self
    }

    /// Replays one schedule, given as the token of a report or as a file. `PREEMPT_REPLAY=token`.
    pub fn replay(mut self, schedule: &str) -> Check {
        self.replay = Some(schedule.to_owned());
        self
    }

    /// Stops the [replay](Check::replay) before this preemption, counted from 1, and shows where
    /// each thread is. `PREEMPT_STOP_AT=n`.
    pub fn stop_at(self, preemption: u32) -> Check {
        Check { stop_at: Some(preemption), ..self }
    }

    /// Writes the schedule of the first finding to this file, in the readable form.
    /// `PREEMPT_SAVE_SCHEDULE=file`.
    pub fn save_schedule(self, file: impl Into<PathBuf>) -> Check {
        Check { save_schedule: Some(file.into()), ..self }
    }

    /// Time for finding simpler schedules of the findings: 5 seconds by default, none if it is
    /// zero. `PREEMPT_SHRINK=seconds`.
    pub fn shrink(self, time: Duration) -> Check {
        Check { shrink: Some(time).filter(|time| !time.is_zero()), ..self }
    }

    /// Writes an HTML page to this file, in which the failing executions can be stepped through. It
    /// is written even if nothing was found, and shows the coverage.
    /// `PREEMPT_HTML=out.html`.
    pub fn html(mut self, path: impl Into<PathBuf>) -> Check {
        self.html = Some(path.into());
        self
    }

    /// Explores the schedules of `f`, and returns findings and coverage, or the reason why the
    /// check is refused: settings that cannot be combined, or a test that the library does not
    /// support.
    ///
    /// ```
    /// use preempt::{Check, Order};
    ///
    /// let refusal = Check::new().order(Order::BreadthFirst).try_run(|| ()).err();
    /// assert!(refusal.is_some_and(|why| why.to_string().contains("cannot search real code")));
    /// ```
    #[track_caller]
    pub fn try_run<F: Fn() + Sync>(&self, f: F) -> Result<Outcome, Refusal> {
        Ok(self.try_explore(&f, Format::Failure)?.outcome)
    }

    /// Explores the schedules of `f`, and returns findings and coverage. Panics if the check is
    /// refused: see [`Check::try_run`].
    #[track_caller]
    pub fn run<F: Fn() + Sync>(&self, f: F) -> Outcome {
        self.explore(&f, Format::Failure).outcome
    }

    /// Explores the schedules of `f`, and returns the whole report, even if nothing was found, with
    /// a note if there was nothing to explore.
    #[track_caller]
    pub fn report<F: Fn() + Sync>(&self, f: F) -> String {
        self.explore(&f, Format::Text).text
    }

    /// Explores the schedules of `f`, and returns the outcome as one JSON object, in the format of
    /// `preempt check --json`.
    #[track_caller]
    pub fn json<F: Fn() + Sync>(&self, f: F) -> String {
        self.explore(&f, Format::Json).text
    }

    /// Explores the schedules of `f`, and panics with the whole trace if one of them fails, or if a
    /// limit was reached.
    ///
    /// A pass that is not exhaustive, or whose program uses orderings weaker than `SeqCst` that the
    /// chosen strategy cannot explore, or types of std, which are not controlled, prints one line
    /// on the standard error: what was covered, how many preemptions any remaining error needs, and
    /// how to cover more. It is printed once for each test and place. It is visible under
    /// `cargo test` without `--nocapture`, and [`quiet`](Check::quiet) silences it.
    #[track_caller]
    pub fn check<F: Fn() + Sync>(&self, f: F) {
        let explored = self.explore(&f, Format::Failure);
        if self.is_bad(&explored.outcome) {
            panic!("{}", explored.text);
        }
        explored.print_caveat();
    }

    /// Whether a check with this outcome has failed.
    pub(crate) fn is_bad(&self, outcome: &Outcome) -> bool {
        match outcome.verdict {
            Verdict::Ok => false,
            Verdict::Incomplete => {
                !settings::of_environment(self.clone()).is_ok_and(|check| check.allow_incomplete)
            }
            _ => true,
        }
    }

    /// The search under weak memory of a check that names no memory model.
    fn under_weak_memory(&self) -> Result<Search, Refusal> {
        let options = Options { memory: MemoryModel::Weak, ..self.options };
        let check = Check { options, ..self.clone() };
        Ok(possible::within_memory(check.plan()).build_for_program()?)
    }

    /// The plan of the search.
    pub(crate) fn plan(&self) -> Plan {
        let (plan, order, reduction) = (Plan::new(), self.order, self.reduction);
        let plan = match self.bound {
            Bound::Usual => plan.choose_with_usual_bound(order, reduction, portfolio::EXECUTIONS),
            Bound::At(bound) => plan.bound(bound).choose(order, reduction, Subject::Program),
            // No reduction over executions is sound there, but a cache of execution graphs is.
            Bound::None
                if self.options.memory == MemoryModel::Weak
                    && (order, reduction) == (None, None) =>
            {
                plan.choose(Some(Order::Icb { cache: Cache::Hb }), None, Subject::Program)
            }
            Bound::None => plan.choose(order, reduction, Subject::Program),
        };
        let mut limits = self.limits;
        if plan.order.samples() && self.options.max_steps > LONGEST {
            limits.depth = limits.depth.or(u32::try_from(self.options.max_steps).ok());
        }
        let plan = Plan {
            memory: self.options.memory,
            count: self.count,
            limits,
            jobs: self.jobs,
            seed: self.seed,
            runs: self.runs,
            keep_going: self.keep_going,
            first: self.first,
            shrink: self.shrink.map(Shrink::within),
            ..plan
        };
        if self.html.is_some() { plan.with_growth() } else { plan }
    }

    /// Explores the schedules of `f`; panics with the reason if the check is refused.
    #[track_caller]
    pub(crate) fn explore(&self, f: &(dyn Fn() + Sync), format: Format) -> Explored {
        self.explore_at(f, format, Location::caller())
    }

    /// The same for a check at `place`.
    pub(crate) fn explore_at(
        &self,
        f: &(dyn Fn() + Sync),
        format: Format,
        place: &'static Location<'static>,
    ) -> Explored {
        match self.try_explore_at(f, format, place) {
            Ok(explored) => explored,
            Err(refusal) => panic!("this check cannot be made: {refusal}"),
        }
    }

    /// Explores the schedules of `f`.
    #[track_caller]
    fn try_explore(&self, f: &(dyn Fn() + Sync), format: Format) -> Result<Explored, Refusal> {
        self.try_explore_at(f, format, Location::caller())
    }

    /// Explores the schedules of `f` for a check at `place`.
    fn try_explore_at(
        &self,
        f: &(dyn Fn() + Sync),
        format: Format,
        place: &'static Location<'static>,
    ) -> Result<Explored, Refusal> {
        let mut check = settings::of_environment(self.clone())?.with_initial_memory();
        if check.orderings.is_some() {
            // One of many searches, whose findings are only counted.
            (check.replay, check.html, check.save_schedule, check.shrink) =
                (None, None, None, None);
        }
        check.try_explore_as_set(f, format, place, &Context::default())
    }

    /// The same without the settings of the environment, and under the memory model that is set.
    pub(crate) fn try_explore_as_set(
        &self,
        f: &(dyn Fn() + Sync),
        format: Format,
        place: &'static Location<'static>,
        context: &Context<'_>,
    ) -> Result<Explored, Refusal> {
        let check = self;
        if is_set() {
            return Err(Refusal::Nested);
        }
        if cfg!(panic = "abort") {
            return Err(Refusal::PanicAbort);
        }
        hook::install();
        overflow::install();
        possible::is_possible(check)?;
        let mut search = possible::within_memory(check.plan()).build_for_program()?;
        let timeouts =
            Timeouts { allow_uncontrolled: check.allow_uncontrolled, max_turn: check.max_turn };
        let watched = Arc::new(WatchedCheck::new(timeouts));
        let _watchdog = Watchdog::new(watched.clone());
        let page = check.html.as_deref().map(|path| Page::new(path, place));
        let options = Options {
            since: identity::next_execution(),
            allow_uncontrolled: check.allow_uncontrolled,
            place: Some(place),
            ..check.options
        };
        if let Some(token) = &check.replay {
            let program = |memory| {
                // A replay follows its schedule even where threads spin.
                let options =
                    Options { memory, may_switch: false, refuse_spinning: false, ..options };
                let mut program = Closure::new(f, options, watched.clone());
                program.scenario = context.scenario.map(str::to_owned);
                program
            };
            let mut memory = options.memory;
            // The schedule may be one of either model. One that fits both is the same execution.
            if options.may_switch && !replaying::is_possible(program(memory), token) {
                memory = MemoryModel::Weak;
                search = check.under_weak_memory()?;
            }
            let asked = replaying::ReplayRequest { given: token, stop_at: check.stop_at, format };
            let (outcome, text) =
                replaying::replay(&search, program(memory), &asked, page.as_ref());
            return Ok(Explored { outcome, text, caveat: None, place, shares: true });
        }
        let explore = |search: &Search, options: Options| {
            let options = Options {
                // Only these searches take steps of spinning threads, which are enabled because no
                // other thread can move.
                refuse_spinning: !matches!(
                    search.plan().reduction,
                    Reduction::None | Reduction::Optimal | Reduction::Graphs
                ),
                ..options
            };
            let mut closure = Closure::new(f, options, watched.clone());
            closure.orderings = check.orderings.clone();
            closure.scenario = context.scenario.map(str::to_owned);
            if let Some(learned) = context.learned {
                let known = learned.lock().unwrap_or_else(PoisonError::into_inner).clone();
                closure = closure.knowing(known);
            }
            let foreign_threads = closure.foreign_threads.clone();
            search.run_program(closure, &ProgressObserver::new(check.quiet, &foreign_threads))
        };
        let (mut outcome, mut program) = explore(&search, options);
        if program.needs_weak_memory {
            search = check.under_weak_memory()?.after(outcome.elapsed);
            let options =
                Options { memory: MemoryModel::Weak, may_switch: false, ..program.options };
            (outcome, program) = explore(&search, options);
        }
        let foreign_threads = program.foreign_threads.clone();
        outcome.assumptions = program.assumptions.words();
        outcome.complete &= !program.assumptions.may_miss_executions();
        if let Some(refusal) = program.refusal.clone().or_else(|| foreign_threads.message()) {
            return Err(Refusal::Test(refusal));
        }
        if let Some(learned) = context.learned {
            *learned.lock().unwrap_or_else(PoisonError::into_inner) = program.learned();
        }
        let used = program.used();
        let nothing = caveats::explored_nothing(&outcome, &used);
        // One thread alone shares nothing, unless it could start others unnoticed.
        let may_share = used.threads > 1 || !creation::IS_NOTICED;
        if nothing
            && may_share
            && !check.allow_uncontrolled
            && let Some(mention) = uncontrolled::in_test(place, used.spawned)
        {
            return Err(Refusal::Test(caveats::refusal(&mention)));
        }
        if outcome.verdict == Verdict::Ok
            && !check.allow_uncontrolled
            && let Some(mention) = uncontrolled::pool_in_test(place, used.spawned)
        {
            return Err(Refusal::Test(caveats::pool_refusal(&mention)));
        }
        let settings = report::ReportSettings {
            save: check.save_schedule.as_deref(),
            page: page.as_ref(),
            format,
        };
        let (outcome, text) = report::make_report(search.plan(), outcome, &program, &settings);
        let several =
            outcome.verdict == Verdict::Ok && used.threads > 1 && !check.allow_uncontrolled;
        let suspicion = || {
            let suspicious = several && nothing;
            let mention = suspicious
                .then(|| uncontrolled::in_package(&uncontrolled::package()?))
                .flatten()?;
            Some(caveats::suspicion(&used, &mention))
        };
        let default_memory = match check.memory {
            None if !check.options.may_switch && outcome.memory == MemoryModel::Sc => {
                DefaultMemory::RefusedBy(search.plan().entry().name)
            }
            _ => DefaultMemory::Searched,
        };
        let caveat = (!check.quiet).then(|| {
            // A test that names such a type need not share it between threads: it may only record
            // what the threads did. So this is a warning if threads also share controlled objects.
            let mixed = several && !nothing;
            let mention = mixed.then(|| uncontrolled::in_test(place, used.spawned)).flatten();
            caveats::caveat(&outcome, &used, default_memory, mention).or_else(suspicion)
        });
        let caveat = caveat.flatten();
        Ok(Explored { outcome, text, caveat, place, shares: used.shares })
    }
}

/// What a check is part of, if it is one of many.
#[derive(Clone, Copy, Default)]
pub(crate) struct Context<'a> {
    /// The scenario of a test of a data structure.
    pub(crate) scenario: Option<&'a str>,
    /// What earlier checks of the same structure have learned, and where this one leaves what it
    /// learns.
    pub(crate) learned: Option<&'a Mutex<Learned>>,
}

/// The result of a check, with its report.
pub(crate) struct Explored {
    pub(crate) outcome: Outcome,
    /// The report.
    pub(crate) text: String,
    /// The caveat of a passing check.
    caveat: Option<String>,
    /// The position of the check in the source.
    place: &'static Location<'static>,
    /// Whether two threads used the same object.
    pub(crate) shares: bool,
}

impl Explored {
    /// Prints what a passing check did not cover.
    pub(crate) fn print_caveat(&self) {
        if let Some(caveat) = &self.caveat {
            caveats::print(caveat, self.place);
        }
    }
}
