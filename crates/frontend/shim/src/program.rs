//! A closure as a program whose executions can be explored.

use std::collections::BTreeSet;
use std::panic::Location as Site;
use std::sync::{Arc, Mutex, PoisonError};

use preempt_replay::{Names, spin};
use preempt_system::{MAX_THREADS, MemoryModel, Program, Restart};

use crate::caveats::Used;
use crate::foreign_threads::ForeignThreads;
use crate::runtime::arena::Escapes;
use crate::runtime::blocks::Block;
use crate::runtime::interrupt::Stuck;
use crate::runtime::orderings::Orderings;
use crate::runtime::place::Place;
use crate::runtime::restart::{Obstacle, Requirements, RestartReason};
use crate::runtime::{Options, Runtime, site};
use crate::stderr::end_process;
use crate::system::Execution;
use crate::watchdog::WatchedCheck;

/// The initial number of thread slots. A run that needs more restarts the search with more.
const INITIAL_SLOTS: usize = 4;

/// A closure under test.
pub(crate) struct Closure<'f> {
    body: &'f (dyn Fn() + Sync),
    pub(crate) options: Options,
    pub(crate) watched: Arc<WatchedCheck>,
    /// Records and replaces orderings: see [`Check::weaken`](crate::Check::weaken).
    pub(crate) orderings: Option<Arc<Orderings>>,
    /// Interference by threads outside the check.
    pub(crate) foreign_threads: Arc<ForeignThreads>,
    slots: usize,
    requirements: Requirements,
    /// Memory that is known to outlive executions.
    escapes: Mutex<Escapes>,
    /// The names that earlier executions assigned, passed from one system to the next.
    names: Mutex<Option<Names<Place>>>,
    /// The features that the executions used so far.
    used: Mutex<Used>,
    /// The unproved assumptions of the search.
    pub(crate) assumptions: Assumptions,
    /// Whether the check has to start over under weak memory.
    pub(crate) needs_weak_memory: bool,
    /// Why the search cannot continue, if it cannot.
    pub(crate) refusal: Option<String>,
    /// The scenario of a test of a data structure: a replay needs it too.
    pub(crate) scenario: Option<String>,
}

/// What a search has learned about a program, for searches of similar programs: with it they need
/// not start over for the same reasons.
#[derive(Clone, Debug, Default)]
pub(crate) struct Learned {
    slots: usize,
    requirements: Requirements,
}

impl Learned {
    /// Adds what was learned about another program.
    pub(crate) fn merge(&mut self, other: &Learned) {
        self.slots = self.slots.max(other.slots);
        let Requirements {
            ordered,
            counted,
            races,
            exchanges,
            replaced,
            moved,
            stale_watch,
            rounds,
            exits,
        } = &mut self.requirements;
        let other = &other.requirements;
        ordered.extend(&other.ordered);
        counted.extend(&other.counted);
        *races |= other.races;
        *exchanges |= other.exchanges;
        replaced.extend(&other.replaced);
        *moved = other.moved.max(*moved);
        *stale_watch |= other.stale_watch;
        rounds.merge(&other.rounds);
        *exits |= other.exits;
    }
}

/// An assumption that a search makes when it holds a thread back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Assumption {
    /// A yield or a timeout at this place lets other threads run: see [`spin`].
    FairYield(&'static Site<'static>),
    /// The loop with an operation at this place does not end by itself. It was followed for a
    /// while, and neither ended nor repeated a state.
    Endless(&'static Site<'static>),
    /// The weak exchange at this place does not fail spuriously forever.
    SteadyExchange(&'static Site<'static>),
    /// A loop with an operation at this place has read old values for some rounds and reads the
    /// newest ones next.
    Visible(&'static Site<'static>),
    /// A thread that locks for reading at this place does not wait for a writer that waits for
    /// other readers.
    ReadersFirst(&'static Site<'static>),
}

/// The assumptions of all workers of a search.
#[derive(Debug, Default)]
pub(crate) struct Assumptions(Mutex<BTreeSet<Assumption>>);

impl Assumptions {
    /// Records an assumption.
    pub(crate) fn add(&self, assumption: Assumption) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(assumption);
    }

    /// Whether executions of a fair scheduler may have been missed.
    pub(crate) fn may_miss_executions(&self) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().any(|assumption| matches!(assumption, Assumption::Endless(_)))
    }

    /// The assumptions, each as the end of a sentence that begins with "assuming".
    pub(crate) fn words(&self) -> Vec<String> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = |site: &Site<'_>| format!("{}:{}", site.file(), site.line());
        let mut words: Vec<String> = all
            .iter()
            .map(|assumption| match assumption {
                Assumption::FairYield(site) => {
                    format!("that the yield or timeout at {} lets other threads run", place(site))
                }
                Assumption::ReadersFirst(site) => format!(
                    "that the reader at {} does not wait for a writer that waits",
                    place(site)
                ),
                Assumption::SteadyExchange(site) => format!(
                    "that the weak exchange at {} fails spuriously at most twice in a row",
                    place(site)
                ),
                Assumption::Visible(site) => format!(
                    "that the loop at {} reads old values for at most {} rounds in a row",
                    place(site),
                    spin::ROUNDS + 1
                ),
                Assumption::Endless(site) => {
                    let (place, rounds) = (place(site), spin::LOOKAHEAD);
                    format!(
                        "that the loop at {place}, which went on for {rounds} rounds, does not \
                             end by itself"
                    )
                }
            })
            .collect();
        words.dedup();
        words
    }
}

impl<'f> Closure<'f> {
    pub(crate) fn new(
        body: &'f (dyn Fn() + Sync),
        options: Options,
        watched: Arc<WatchedCheck>,
    ) -> Closure<'f> {
        let foreign_threads = Arc::default();
        Closure {
            body,
            options,
            watched,
            orderings: None,
            foreign_threads,
            slots: INITIAL_SLOTS,
            // The memory needs the clocks by which races are detected.
            requirements: Requirements {
                races: options.memory == MemoryModel::Weak,
                ..Requirements::default()
            },
            escapes: Mutex::default(),
            names: Mutex::new(None),
            used: Mutex::default(),
            assumptions: Assumptions::default(),
            needs_weak_memory: false,
            refusal: None,
            scenario: None,
        }
    }

    /// The same program, with what was learned about a similar one.
    pub(crate) fn knowing(mut self, learned: Learned) -> Closure<'f> {
        self.slots = self.slots.max(learned.slots).min(self.options.max_threads.max(INITIAL_SLOTS));
        let races = self.requirements.races;
        self.requirements = learned.requirements;
        self.requirements.races |= races;
        self
    }

    /// What was learned.
    pub(crate) fn learned(&self) -> Learned {
        Learned { slots: self.slots, requirements: self.requirements.clone() }
    }

    /// The number of source lines that create objects which only the order of their first uses
    /// distinguishes, if there are any.
    pub(crate) fn unidentified(&self) -> Option<usize> {
        Some(self.requirements.ordered.len()).filter(|&lines| lines > 0)
    }

    fn escapes(&self) -> Escapes {
        self.escapes.lock().expect("learning does not panic").clone()
    }

    /// Keeps the names for the next system.
    pub(crate) fn keep(&self, names: Names<Place>) {
        *self.names.lock().expect("keeping names does not panic") = Some(names);
    }

    /// Reports a thread that was interrupted in code that blocked it: the check fails.
    pub(crate) fn report_stuck(&self, stuck: &Stuck) {
        let (text, ends) = stuck.report();
        if ends {
            end_process(&format!(
                "{text}. Threads of a scope may borrow from the test, so that the process has to \
                 end"
            ));
        }
        self.watched.fail(&text);
        self.foreign_threads.record(text);
    }

    /// Adds the features that the executions of one system used.
    pub(crate) fn record_used(&self, used: Used) {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).add(used);
    }

    /// The features that all executions used.
    pub(crate) fn used(&self) -> Used {
        *self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers blocks that have outlived an execution.
    pub(crate) fn learn(&self, blocks: impl IntoIterator<Item = Block>) {
        let mut escapes = self.escapes.lock().expect("learning does not panic");
        for block in blocks {
            escapes.insert(block);
        }
    }

    fn refuse(&mut self, why: String) -> Restart {
        self.refusal = Some(why);
        Restart::Refused
    }

    fn names(&self) -> Names<Place> {
        let kept = self.names.lock().expect("keeping names does not panic").clone();
        kept.unwrap_or_else(|| Names::new(self.slots))
    }
}

impl<'f> Program for Closure<'f> {
    type Need = RestartReason;
    type System<'p>
        = Execution<'p>
    where
        Self: 'p;

    fn start(&self) -> Result<Execution<'_>, RestartReason> {
        Execution::new(
            self,
            self.body,
            Runtime {
                orderings: self.orderings.clone(),
                ..Runtime::new(
                    self.options,
                    self.names(),
                    self.requirements.clone(),
                    self.escapes(),
                    self.foreign_threads.clone(),
                )
            },
        )
    }

    fn is_deterministic(&self) -> bool {
        false
    }

    fn grow(&mut self, need: RestartReason) -> Restart {
        match need {
            RestartReason::Slots(slots) if slots > self.options.max_threads => {
                let most = self.options.max_threads;
                let why = if most == MAX_THREADS {
                    "the most that is supported"
                } else {
                    "what `max_threads` allows"
                };
                return self.refuse(format!(
                    "the test starts more than {most} threads, the first one included; that is \
                     {why}: start fewer threads"
                ));
            }
            RestartReason::Slots(_) => self.slots = (2 * self.slots).min(MAX_THREADS),
            RestartReason::Ordered(site) => {
                self.requirements.ordered.insert(site);
            }
            RestartReason::Counted(site) => {
                self.requirements.counted.insert(site);
            }
            RestartReason::Races => self.requirements.races = true,
            RestartReason::Exits => self.requirements.exits = true,
            RestartReason::Exchanges => self.requirements.exchanges = true,
            RestartReason::Replaced(site) => {
                self.requirements.replaced.insert(site);
            }
            RestartReason::WeakOrdering => {
                // The watch needs the clocks by which races are detected.
                (self.requirements.stale_watch, self.requirements.races) = (true, true);
            }
            RestartReason::WeakMemory => {
                // Another memory model is another plan: see `Check::try_explore`.
                self.needs_weak_memory = true;
                return Restart::Refused;
            }
            // The blocks have been recorded already.
            RestartReason::Addresses => {}
            RestartReason::Moved(times) => self.requirements.moved = times,
            RestartReason::Rounds(site, rounds) => {
                self.requirements.rounds.insert(site, rounds);
            }
            RestartReason::Stuck => {
                let complaint = self
                    .foreign_threads
                    .message()
                    .unwrap_or_else(|| "a thread blocks in code that is not controlled".to_owned());
                return self.refuse(complaint);
            }
            RestartReason::NoGraphs(obstacle, verb, site) => {
                let site = site::of(site);
                let what = match obstacle {
                    Obstacle::Operation => "",
                    Obstacle::PlainWrite => {
                        " on an atomic that was written through its only reference"
                    }
                    Obstacle::Loop => " in a loop that repeats without an effect",
                };
                return self.refuse(format!(
                    "`Reduction::Graphs` does not handle `{verb}`{what}, at {}:{}; use \
                     `Order::Icb`, which is also complete without a bound",
                    site.file(),
                    site.line()
                ));
            }
            RestartReason::Fairness => {
                let message = "there is a schedule after which every thread that can move spins, \
                               and this reduction does not follow these: use dpor-optimal, or none";
                return self.refuse(message.to_owned());
            }
        }
        self.names = Mutex::new(None);
        // The search starts over, and may not need the assumptions again.
        self.assumptions = Assumptions::default();
        Restart::Again
    }
}
