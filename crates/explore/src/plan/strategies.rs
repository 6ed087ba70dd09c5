//! The strategies: one row for each, with all its static properties.
//!
//! [`STRATEGIES`] is the only list of strategies. The command line takes its values and its help
//! from it, the library its words for `PREEMPT_ORDER` and `PREEMPT_REDUCE`, reports their names,
//! and [`Plan::build`](super::Plan::build) its refusals. `docs/design/soundness.md` and the README
//! have tables of it, which tests compare.
//!
//! A new strategy is a file in `order` or `reduce`, a variant of [`Order`] or [`Reduction`] and of
//! [`Strategy`] with a row here, and an arm of the dispatch in `driver/executions.rs` or
//! `driver/states.rs`. The compiler names the other matches that a new variant needs.

use preempt_system::memory::MemoryModel;

use super::property::{Loss, Properties, Soundness};
use super::strategy::{Chooser, ExecutionSearch, StateOrder, Strategy, Transactions};
use super::terms::{Setting, Term};
use super::{Cache, Cost, Dependence, Order, Plan, Reading, Reduction, Subject};

/// A strategy.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name in every front end and report.
    pub name: &'static str,
    /// The value of a plan that selects it, with the usual parameters.
    pub value: Value,
    /// The parameter that may follow its name after a colon.
    pub parameter: ParameterKind,
    /// The users to whom it is useful.
    pub audience: Audience,
    /// A summary of what it explores, in a few words.
    pub summary: &'static str,
    /// A description of its function, guarantees and costs, in a few sentences.
    pub description: &'static str,
    /// The guarantee of a completed search, in a few words.
    pub guarantee: &'static str,
    /// The class of searches that it belongs to.
    pub class: Class,
    /// If it searches within a bound on preemptions only: the strategy to use without a bound.
    pub needs_bound: Option<&'static str>,
    /// The orders that a reduction can be combined with; the first is the usual one.
    pub orders: &'static [Order],
    /// The settings that it cannot be combined with.
    pub conflicts: &'static [&'static Conflict],
    /// Why it cannot search real code (closures, executables), whose states can neither be copied
    /// nor compared.
    pub not_for_programs: Option<&'static str>,
    /// The memory models under which it is sound.
    pub memory_models: &'static [MemoryModel],
    /// Its soundness for each class of properties.
    pub properties: Properties,
    /// Makes the strategy of a plan; `None` if it needs a bound and there is none.
    pub construct: fn(&Plan) -> Option<Strategy>,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.name == other.name
    }
}

impl Eq for Entry {}

impl Entry {
    /// Whether it is for users who check programs.
    pub fn is_general(&self) -> bool {
        self.audience == Audience::General
    }

    /// Whether it can be combined with a bound on preemptions.
    pub fn takes_bound(&self) -> bool {
        !self.conflicts.iter().any(|conflict| conflict.with == [Setting::Bound])
    }

    /// Whether it can search this kind of subject.
    pub fn searches(&self, subject: Subject) -> bool {
        match subject {
            Subject::Model => self.memory_models.contains(&MemoryModel::Sc),
            Subject::WeakModel => self.memory_models.contains(&MemoryModel::Weak),
            Subject::Program => self.not_for_programs.is_none(),
        }
    }

    /// How a plan for `subject` asks for it without a parameter. A search with a cache avoids
    /// repeated states in a model, and repeated happens-before graphs in a program and under weak
    /// memory, whose states cannot be compared.
    pub fn value_for(&self, subject: Subject) -> Value {
        match (self.value, subject) {
            (Value::Order(order), Subject::Program | Subject::WeakModel) => {
                Value::Order(order.with_cache(Cache::Hb))
            }
            (value, _) => value,
        }
    }

    /// Its spelling: the name, followed by `:n` or the like if it has a parameter.
    pub fn written(&self) -> String {
        let parameter = match self.parameter {
            ParameterKind::None | ParameterKind::Cache => "",
            ParameterKind::Steps | ParameterKind::Increment | ParameterKind::ErrorDepth => ":n",
        };
        format!("{}{parameter}", self.name)
    }

    /// The option that asks for it.
    pub fn setting(&self) -> Setting {
        match self.value {
            Value::Order(_) => Setting::Order,
            Value::Reduction(_) => Setting::Reduction,
        }
    }
}

/// The value of a plan that selects a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// An order.
    Order(Order),
    /// A reduction.
    Reduction(Reduction),
}

/// The kinds of parameters of strategies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterKind {
    /// No parameter.
    None,
    /// A cache: `icb:hb`.
    Cache,
    /// A number of steps, which is necessary: `depth:20`.
    Steps,
    /// A number of steps, 1 if it is left out: `idfs:5`.
    Increment,
    /// The depth of errors, 3 if it is left out: `pct:2`.
    ErrorDepth,
}

/// A strategy as its users write it: `executions`, `icb:hb`, `depth:20`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its row.
    pub entry: &'static Entry,
    /// The order or reduction, with the parameter or the usual one.
    pub value: Value,
    /// Whether a parameter was given.
    pub has_parameter: bool,
}

impl Written {
    /// The order or reduction, for a plan that searches `subject`.
    pub fn value_for(&self, subject: Subject) -> Value {
        if self.has_parameter { self.value } else { self.entry.value_for(subject) }
    }
}

/// Why a text is not a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotAStrategy {
    /// No strategy has this name.
    Unknown,
    /// The strategy has no parameter.
    NoParameter(&'static Entry),
    /// The strategy has another kind of parameter, or needs one.
    Parameter(&'static Entry),
}

/// Reads `name` or `name:parameter`.
pub fn parse(text: &str) -> Result<Written, NotAStrategy> {
    let (name, parameter) =
        text.split_once(':').map_or((text, None), |(name, parameter)| (name, Some(parameter)));
    let entry = named(name).ok_or(NotAStrategy::Unknown)?;
    let wrong = || NotAStrategy::Parameter(entry);
    let number = || match parameter.map(str::parse) {
        None => Ok(None),
        Some(Ok(number)) => Ok(Some(number)),
        Some(Err(_)) => Err(wrong()),
    };
    let value = match (entry.parameter, parameter) {
        (ParameterKind::None, Some(_)) => return Err(NotAStrategy::NoParameter(entry)),
        (ParameterKind::None, None) | (ParameterKind::Cache, None) => entry.value,
        (ParameterKind::Cache, Some(name)) => {
            let caches = [Cache::None, Cache::State, Cache::Hb];
            let cache = caches.into_iter().find(|cache| cache.name() == name).ok_or_else(wrong)?;
            match entry.value {
                Value::Order(order) => Value::Order(order.with_cache(cache)),
                Value::Reduction(_) => return Err(wrong()),
            }
        }
        (ParameterKind::Steps, _) => {
            Value::Order(Order::Depth { steps: number()?.ok_or_else(wrong)? })
        }
        (ParameterKind::Increment, _) => {
            number()?.map_or(entry.value, |by| Value::Order(Order::IterativeDepth { by }))
        }
        (ParameterKind::ErrorDepth, _) => {
            number()?.map_or(entry.value, |depth| Value::Order(Order::Pct { depth }))
        }
    };
    Ok(Written { entry, value, has_parameter: parameter.is_some() })
}

/// The users to whom a strategy is useful.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Users who check programs.
    General,
    /// Users who compare algorithms: a published variant that another strategy supersedes.
    Research,
}

/// The classes of searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The graph of states.
    States,
    /// The tree of executions.
    Executions,
    /// A random sample of the executions.
    Sample,
}

/// Settings that a strategy cannot be combined with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Refused if all of these are set.
    pub with: &'static [Setting],
    /// Refused with these caches only; with any if there are none.
    pub caches: &'static [Cache],
    /// The reason.
    pub why: &'static str,
    /// If errors would be missed: a small program that shows it.
    pub witness: Option<&'static str>,
    /// The alternative to use with these settings.
    pub instead: &'static [Term],
}

/// The row of an order.
pub fn of_order(order: Order) -> &'static Entry {
    let same = |value| match value {
        Value::Order(other) => std::mem::discriminant(&other) == std::mem::discriminant(&order),
        Value::Reduction(_) => false,
    };
    STRATEGIES.iter().find(|entry| same(entry.value)).expect("every order has a row")
}

/// The row of a reduction; `None` for [`Reduction::None`], whose strategy is its order.
pub fn of_reduction(reduction: Reduction) -> Option<&'static Entry> {
    let row = STRATEGIES.iter().find(|entry| entry.value == Value::Reduction(reduction));
    assert!(row.is_some() || reduction == Reduction::None, "every reduction has a row");
    row
}

/// The row of this name.
pub fn named(name: &str) -> Option<&'static Entry> {
    STRATEGIES.iter().find(|entry| entry.name == name)
}

/// The order of states that a plan asks for.
fn state_order(plan: &Plan) -> StateOrder {
    match plan.order {
        Order::DepthFirst => StateOrder::DepthFirst,
        _ => StateOrder::BreadthFirst,
    }
}

fn states(plan: &Plan) -> Option<Strategy> {
    Some(Strategy::States { order: state_order(plan), store: plan.store })
}

fn cartesian(plan: &Plan, reading: Reading) -> Option<Strategy> {
    Some(Strategy::Cartesian { reading, order: state_order(plan), store: plan.store })
}

fn executions(plan: &Plan, search: ExecutionSearch) -> Option<Strategy> {
    Some(Strategy::Executions { search, points: plan.points })
}

fn sample(plan: &Plan, chooser: Chooser) -> Option<Strategy> {
    let Plan { runs, seed, points, .. } = *plan;
    Some(Strategy::Sample { chooser, runs, seed, points })
}

const fn conflict(with: &'static [Setting], why: &'static str) -> Conflict {
    Conflict { with, caches: &[], why, witness: None, instead: &[] }
}

const ICB: Term = Term::Strategy("icb");
const CB_POR: Term = Term::Strategy("cb-por");
const BUDGETED_SLEEP: Term = Term::Strategy("budgeted-sleep");

/// A bound and a set of visited states.
const BOUND_AND_STATES: Conflict = Conflict {
    witness: Some("`y = 1; assert x != 1` in parallel with `x = 1; x = 0`, bound 1"),
    instead: &[ICB, Term::Strategy("dfs-hb")],
    ..conflict(
        &[Setting::Bound],
        "a state that was reached with the last preemption is not explored again when it is \
         reached with fewer",
    )
};
const BOUND_NOT_COUNTED: Conflict = Conflict {
    instead: &[ICB, Term::Strategy("cb-dfs"), Term::Strategy("dfs-hb")],
    ..conflict(&[Setting::Bound], "it does not count preemptions")
};
const BOUND_AND_SAMPLE: Conflict = Conflict {
    instead: &[ICB],
    ..conflict(&[Setting::Bound], "random executions have any number of preemptions")
};
const BOUND_AND_SLEEP: Conflict = Conflict {
    witness: Some("corpus/zoo/x.pre, bound 0"),
    instead: &[CB_POR, BUDGETED_SLEEP],
    ..conflict(
        &[Setting::Bound],
        "the execution that covers a skipped one may need one preemption more",
    )
};
const BOUND_AND_BLOCKS: Conflict = Conflict {
    instead: &[CB_POR, BUDGETED_SLEEP],
    ..conflict(
        &[Setting::Bound],
        "it runs one execution of each trace, whatever its number of preemptions",
    )
};
const BOUND_AND_STATE_REDUCTION: Conflict = Conflict {
    instead: &[CB_POR],
    ..conflict(&[Setting::Bound], "it compares states, not preemptions")
};
const DEPTH_OF_REDUCTION: Conflict =
    conflict(&[Setting::Depth], "a reduction follows every execution to its end");
const DEPTH_OF_ITS_OWN: Conflict = conflict(&[Setting::Depth], "it has a step limit of its own");
const JOBS_OF_REDUCTION: Conflict = Conflict {
    instead: &[ICB],
    ..conflict(&[Setting::Jobs], "which steps it skips depends on the executions explored earlier")
};
const BOUND_AND_GRAPHS: Conflict = Conflict {
    witness: Some(
        "`x.store(1, SeqCst)` in parallel with `x.load(SeqCst); x.load(Relaxed); \
         x.store(2, SeqCst); fence(SeqCst)` and `x.store(1, Relaxed); fence(SeqCst)`, bound 0",
    ),
    instead: &[ICB],
    ..conflict(
        &[Setting::Bound],
        "a graph may be reached only through graphs that need up to two more preemptions or \
         stale accesses",
    )
};
const JOBS_OF_GRAPHS: Conflict =
    Conflict { instead: &[ICB], ..conflict(&[Setting::Jobs], "it has one worker") };
const JOBS_OF_LEARNER: Conflict = Conflict {
    instead: &[Term::Strategy("random")],
    ..conflict(&[Setting::Jobs], "each execution depends on the earlier ones")
};
const JOBS_OF_TRANSACTIONS: Conflict =
    conflict(&[Setting::Jobs], "one worker follows each transaction to its end");
const JOBS_AND_BOUND: Conflict = Conflict {
    instead: &[ICB],
    ..conflict(
        &[Setting::Bound, Setting::Jobs],
        "which steps are repeated with fewer preemptions depends on which worker reaches them first",
    )
};
const JOBS_AND_RACES: Conflict = Conflict {
    caches: &[Cache::Hb],
    instead: &[Term::Cache(Cache::None)],
    ..conflict(
        &[Setting::Points, Setting::Jobs],
        "which races an execution shows depends on the order of its reads, and only one execution \
         of each happens-before graph is taken",
    )
};
const JOBS_AND_RACES_HB: Conflict =
    Conflict { caches: &[], instead: &[Term::Strategy("executions")], ..JOBS_AND_RACES };
const JOBS_AND_DEPTH: Conflict = Conflict {
    caches: &[Cache::State, Cache::Hb],
    instead: &[Term::Cache(Cache::None)],
    ..conflict(
        &[Setting::Depth, Setting::Jobs],
        "how many steps lead to a state, and whether a thread spins there, depends on the path",
    )
};
const JOBS_AND_DEPTH_HB: Conflict =
    Conflict { caches: &[], instead: &[Term::Strategy("executions")], ..JOBS_AND_DEPTH };
const RACES_AND_STATE_CACHE: Conflict = Conflict {
    caches: &[Cache::State],
    instead: &[Term::Cache(Cache::Hb), Term::Cache(Cache::None)],
    ..conflict(&[Setting::Points], RACE_IN_STATES)
};
/// For real code, whose threads have no order of their own.
pub(super) const JOBS_AND_ROUND_ROBIN: Conflict = Conflict {
    instead: &[ICB],
    ..conflict(
        &[Setting::Jobs],
        "round robin takes the threads of real code in the order in which the search meets them \
         first, and several workers meet them in different orders",
    )
};
const STORE_OF_EXECUTIONS: Conflict =
    conflict(&[Setting::Store], "a search over executions stores no states");
const STORE_OF_TRANSACTIONS: Conflict =
    conflict(&[Setting::Store], "it has a table of its own, which is exact");

const RACE_IN_STATES: &str =
    "whether an execution has a data race depends on the path to its states";
const RACE_IN_BLOCKS: &str = "blocks must know all steps in advance, and points at synchronisation \
                              merge them while they are executed";
const RACE_IN_TRANSACTIONS: &str = "transactions choose their own scheduling points";
const DEADLOCK_IN_BLOCKS: &str =
    "a program that can deadlock has steps that wait, and blocks refuses it";

/// Sleep sets visit every state, but the argument for a bound is about traces.
const STATES_WITHIN_BOUND: &str = "every state within the bound is visited";

/// States between the steps of a trace that is explored in one order only.
const SKIPPED_STATES: Loss = Loss {
    why: "not every state is visited",
    witness: "`x = 1; x = 0` in parallel with `y = 1; y = 0`, invariant `x + y < 2`",
};
const SKIPPED_DEADLOCKS: Loss = Loss {
    why: "a thread that waits inside its transaction is never resumed",
    witness: "corpus/abba/model.pre",
};
const ENDLESS_TRANSACTIONS: Loss = Loss {
    why: "a transaction that never ends hides what other threads do",
    witness: "corpus/cpc/fig1.pre",
};

const SOUND: Properties = Properties {
    step: Soundness::Sound,
    invariant: Soundness::Sound,
    deadlock: Soundness::Sound,
    race: Soundness::Sound,
};
const SAMPLED: Properties = Properties {
    step: Soundness::Sampled,
    invariant: Soundness::Sampled,
    deadlock: Soundness::Sampled,
    race: Soundness::Sampled,
};
const NOT_COMPARABLE: Option<&str> =
    Some("it compares states, and the states of real code cannot be compared");
const NOT_KNOWN: Option<&str> = Some(
    "it must know all steps in advance, and the steps of real code are known only when it runs",
);

/// The common fields of all searches over states.
const STATES: Entry = Entry {
    name: "",
    value: Value::Order(Order::BreadthFirst),
    parameter: ParameterKind::None,
    audience: Audience::General,
    summary: "",
    description: "",
    guarantee: "complete",
    class: Class::States,
    needs_bound: None,
    orders: &[],
    conflicts: &[&BOUND_AND_STATES],
    not_for_programs: NOT_COMPARABLE,
    memory_models: &[MemoryModel::Sc],
    properties: Properties { race: Soundness::NotApplicable(RACE_IN_STATES), ..SOUND },
    construct: states,
};
/// The common fields of all searches over executions without a reduction.
const EXECUTIONS: Entry = Entry {
    class: Class::Executions,
    memory_models: &MemoryModel::ALL,
    conflicts: &[&BOUND_NOT_COUNTED, &STORE_OF_EXECUTIONS],
    not_for_programs: None,
    properties: SOUND,
    ..STATES
};
/// A search of executions by their number of preemptions or delays.
const BY_LEVELS: Entry = Entry {
    parameter: ParameterKind::Cache,
    conflicts: &[&RACES_AND_STATE_CACHE, &JOBS_AND_RACES, &JOBS_AND_DEPTH, &STORE_OF_EXECUTIONS],
    construct: |plan| {
        let (cost, cache) = match plan.order {
            Order::Icb { cache } => (Cost::Preemptions, cache),
            Order::Delay { cache } => (Cost::Delays, cache),
            _ => return None,
        };
        let Plan { bound, past_bound, .. } = *plan;
        executions(plan, ExecutionSearch::Icb { cost, cache, bound, past_bound })
    },
    ..EXECUTIONS
};
const SAMPLE: Entry = Entry {
    guarantee: "none: a sample",
    class: Class::Sample,
    conflicts: &[&BOUND_AND_SAMPLE, &JOBS_OF_LEARNER, &STORE_OF_EXECUTIONS],
    properties: SAMPLED,
    ..EXECUTIONS
};
/// The common fields of reductions over executions without a bound.
///
/// They compare steps of different executions by their alternatives, and an alternative of weak
/// memory is a number of stores, which depends on the order of execution.
const TRACES: Entry = Entry {
    memory_models: &[MemoryModel::Sc],
    orders: &[Order::Executions],
    conflicts: &[&BOUND_AND_SLEEP, &DEPTH_OF_REDUCTION, &JOBS_OF_REDUCTION, &STORE_OF_EXECUTIONS],
    properties: Properties { invariant: Soundness::Unsound(&SKIPPED_STATES), ..SOUND },
    ..EXECUTIONS
};
/// Execution graphs of weak memory. A step has a name there that does not depend on the order of
/// execution, unlike in the reductions above.
const GRAPHS: Entry = Entry {
    memory_models: &[MemoryModel::Weak],
    conflicts: &[&BOUND_AND_GRAPHS, &DEPTH_OF_REDUCTION, &JOBS_OF_GRAPHS, &STORE_OF_EXECUTIONS],
    ..TRACES
};
/// The common fields of reductions within a bound.
const BOUNDED_TRACES: Entry = Entry {
    guarantee: "complete within the bound",
    needs_bound: Some("dpor"),
    orders: &[Order::ContextBounded],
    conflicts: &[&DEPTH_OF_REDUCTION, &JOBS_OF_REDUCTION, &STORE_OF_EXECUTIONS],
    ..TRACES
};
const BLOCKS: Entry = Entry {
    guarantee: "complete for straight-line threads; other programs are refused",
    conflicts: &[&BOUND_AND_BLOCKS, &DEPTH_OF_REDUCTION, &JOBS_OF_REDUCTION, &STORE_OF_EXECUTIONS],
    not_for_programs: NOT_KNOWN,
    properties: Properties {
        deadlock: Soundness::NotApplicable(DEADLOCK_IN_BLOCKS),
        race: Soundness::NotApplicable(RACE_IN_BLOCKS),
        ..TRACES.properties
    },
    ..TRACES
};
const CARTESIAN: Entry = Entry {
    orders: &[Order::BreadthFirst, Order::DepthFirst],
    conflicts: &[&BOUND_AND_STATE_REDUCTION, &DEPTH_OF_REDUCTION],
    ..STATES
};
const TRANSACTIONS: Entry = Entry {
    guarantee: "complete for assertions and runtime errors",
    orders: &[Order::DepthFirst],
    conflicts: &[
        &BOUND_AND_STATE_REDUCTION,
        &DEPTH_OF_REDUCTION,
        &JOBS_OF_TRANSACTIONS,
        &STORE_OF_TRANSACTIONS,
    ],
    properties: Properties {
        step: Soundness::Sound,
        invariant: Soundness::Unsound(&SKIPPED_STATES),
        deadlock: Soundness::Unsound(&SKIPPED_DEADLOCKS),
        race: Soundness::NotApplicable(RACE_IN_TRANSACTIONS),
    },
    ..STATES
};

/// All strategies, in the order in which they are listed.
pub static STRATEGIES: [Entry; 27] = [
    Entry {
        name: "bfs",
        value: Value::Order(Order::BreadthFirst),
        summary: "all states, breadth first",
        description: "All states, level by level. The first error has the fewest steps, and a \
                      search that a limit ends reports the depth that it covered completely. \
                      Keeps two levels of states in addition to the store.",
        guarantee: "complete; the first error has the fewest steps",
        ..STATES
    },
    Entry {
        name: "dfs",
        value: Value::Order(Order::DepthFirst),
        summary: "all states, depth first",
        description: "All states, the newest first. Reaches deep states early and may need less \
                      memory. Its schedules are longer than necessary, and a search that a limit \
                      ends covers no depth completely.",
        ..STATES
    },
    Entry {
        name: "icb",
        value: Value::Order(Order::Icb { cache: Cache::State }),
        summary: "executions by their number of preemptions (iterative context bounding)",
        description: "Executions without preemptions, then those with one, and so on (iterative \
                      context bounding). The first error has the fewest preemptions, and every \
                      completed bound is covered completely. A bound ends the search there; a \
                      cache avoids repeated steps.",
        guarantee: "complete within each bound; the first error has the fewest preemptions",
        ..BY_LEVELS
    },
    Entry {
        name: "delay",
        value: Value::Order(Order::Delay { cache: Cache::State }),
        summary: "executions by their number of delays (delay bounding)",
        description: "Executions by their number of delays (delay bounding). Round robin runs \
                      each thread until it waits or ends, and then the next one; a delay skips \
                      the thread that would run next. Without a delay there is one execution, \
                      however many threads there are, so programs with many threads get far with \
                      few executions. Every completed bound is covered completely. --bound counts \
                      delays.",
        guarantee: "complete within each bound; the first error has the fewest delays",
        ..BY_LEVELS
    },
    Entry {
        name: "cb-dfs",
        value: Value::Order(Order::ContextBounded),
        summary: "all executions within the bound, depth first",
        description: "All executions with at most as many preemptions as the bound allows, depth \
                      first. Stores nothing.",
        guarantee: "complete within the bound",
        needs_bound: Some("executions"),
        conflicts: &[&STORE_OF_EXECUTIONS],
        construct: |plan| executions(plan, ExecutionSearch::Bounded { bound: plan.bound? }),
        ..EXECUTIONS
    },
    Entry {
        name: "dfs-hb",
        value: Value::Order(Order::DfsHb),
        summary: "executions, depth first; equal happens-before graphs mostly once",
        description: "Executions within the bound, or all without one, depth first. Of executions \
                      with the same happens-before graph it takes few more than once.",
        guarantee: "complete within the bound",
        conflicts: &[&JOBS_AND_BOUND, &JOBS_AND_RACES_HB, &JOBS_AND_DEPTH_HB, &STORE_OF_EXECUTIONS],
        construct: |plan| executions(plan, ExecutionSearch::DfsHb { bound: plan.bound }),
        ..EXECUTIONS
    },
    Entry {
        name: "executions",
        value: Value::Order(Order::Executions),
        summary: "all executions, depth first",
        description: "All executions, depth first. Stores nothing.",
        construct: |plan| executions(plan, ExecutionSearch::All),
        ..EXECUTIONS
    },
    Entry {
        name: "depth",
        value: Value::Order(Order::Depth { steps: 1000 }),
        parameter: ParameterKind::Steps,
        summary: "all executions up to a number of steps",
        description: "All executions up to a number of steps, depth first.",
        guarantee: "complete up to the depth",
        conflicts: &[&BOUND_NOT_COUNTED, &DEPTH_OF_ITS_OWN, &STORE_OF_EXECUTIONS],
        construct: |plan| match plan.order {
            Order::Depth { steps } => executions(plan, ExecutionSearch::Depth { steps }),
            _ => None,
        },
        ..EXECUTIONS
    },
    Entry {
        name: "idfs",
        value: Value::Order(Order::IterativeDepth { by: 1 }),
        parameter: ParameterKind::Increment,
        summary: "all executions, with an increasing step limit",
        description: "All executions of 1 step, then of 2 steps, and so on until none is cut.",
        guarantee: "complete up to each depth; the first error has the fewest steps",
        construct: |plan| match plan.order {
            Order::IterativeDepth { by } => {
                executions(plan, ExecutionSearch::IterativeDepth { by })
            }
            _ => None,
        },
        ..EXECUTIONS
    },
    Entry {
        name: "random",
        value: Value::Order(Order::Random),
        summary: "random executions; every enabled thread is equally likely",
        description: "Random executions: at every step all enabled threads are equally likely. \
                      Proves nothing, like the next two.",
        conflicts: &[&BOUND_AND_SAMPLE, &STORE_OF_EXECUTIONS],
        construct: |plan| sample(plan, Chooser::Random),
        ..SAMPLE
    },
    Entry {
        name: "pct",
        value: Value::Order(Order::Pct { depth: 3 }),
        parameter: ParameterKind::ErrorDepth,
        summary: "random executions by priorities (probabilistic concurrency testing)",
        description: "Random executions by priorities that change at random steps. Each finds an \
                      error of depth d in n threads of k steps in all with a probability of at \
                      least 1 / (n * k^(d-1)).",
        construct: |plan| match plan.order {
            Order::Pct { depth } => sample(plan, Chooser::Pct { depth }),
            _ => None,
        },
        ..SAMPLE
    },
    Entry {
        name: "urw",
        value: Value::Order(Order::Urw),
        summary: "random executions, weighted by remaining steps (uniform random walk)",
        description: "Random executions: if no thread ever waits, all interleavings are equally \
                      likely.",
        construct: |plan| sample(plan, Chooser::Urw),
        ..SAMPLE
    },
    Entry {
        name: "sleep",
        value: Value::Reduction(Reduction::Sleep),
        summary: "sleep sets: every trace once, through every state",
        description: "Sleep sets: every trace once. Visits every state.",
        properties: SOUND,
        construct: |plan| executions(plan, ExecutionSearch::Sleep),
        ..TRACES
    },
    Entry {
        name: "dpor",
        value: Value::Reduction(Reduction::Source),
        summary: "dynamic partial-order reduction by source sets: every trace once",
        description: "Dynamic partial-order reduction by source sets: every trace once, and few \
                      executions that are abandoned.",
        construct: |plan| executions(plan, ExecutionSearch::Source),
        ..TRACES
    },
    Entry {
        name: "dpor-optimal",
        value: Value::Reduction(Reduction::Optimal),
        summary: "dpor with wakeup trees: no execution is abandoned",
        description: "The same with wakeup trees: no execution is abandoned.",
        construct: |plan| executions(plan, ExecutionSearch::Optimal),
        ..TRACES
    },
    Entry {
        name: "graphs",
        value: Value::Reduction(Reduction::Graphs),
        summary: "weak memory: every execution graph once",
        description: "Under weak memory, one execution of every execution graph: what each load \
                      reads, the modification order of each atomic, and the order of operations \
                      on each object. Stores no graphs. Refuses a program with an operation that \
                      it does not handle.",
        construct: |plan| executions(plan, ExecutionSearch::Graphs),
        ..GRAPHS
    },
    Entry {
        name: "budgeted-sleep",
        value: Value::Reduction(Reduction::BudgetedSleep),
        summary: "sleep sets within the bound: every trace, some twice",
        description: "Within a bound, every trace, some of them twice. Stores no executions, but \
                      visits all states first to learn where threads wait.",
        properties: Properties { invariant: Soundness::Unproved(STATES_WITHIN_BOUND), ..SOUND },
        construct: |plan| executions(plan, ExecutionSearch::BudgetedSleep { bound: plan.bound? }),
        ..BOUNDED_TRACES
    },
    Entry {
        name: "cb-por",
        value: Value::Reduction(Reduction::CbPor),
        summary: "within the bound, every trace once",
        description: "Within a bound, every trace once. Stores every state.",
        construct: |plan| executions(plan, ExecutionSearch::CbPor { bound: plan.bound? }),
        ..BOUNDED_TRACES
    },
    Entry {
        name: "cb-por-states",
        value: Value::Reduction(Reduction::CbPorStates),
        summary: "within the bound, every state once",
        description: "Within a bound, every state once, as a set of ordered events.",
        properties: SOUND,
        construct: |plan| executions(plan, ExecutionSearch::CbPorStates { bound: plan.bound? }),
        ..BOUNDED_TRACES
    },
    Entry {
        name: "blocks",
        value: Value::Reduction(Reduction::Blocks),
        summary: "straight-line threads: every trace once, counted in advance",
        description: "For straight-line threads: computes all orders of conflicting accesses \
                      before it runs any; every trace once (a failing thread may repeat one). \
                      Refuses branches, loops, calls, waiting, choices, new threads, and more \
                      than 10,000,000 traces.",
        construct: |_| Some(Strategy::Blocks(Dependence::ReadWrite)),
        ..BLOCKS
    },
    Entry {
        name: "cartesian",
        value: Value::Reduction(Reduction::Cartesian { reading: Reading::Late }),
        summary: "states; each thread runs ahead until its steps depend on another thread's",
        description: "Over states: each thread runs ahead until its steps depend on what another \
                      thread does meanwhile. Reaches every local state of every thread, every \
                      deadlock and every violated invariant, mostly from far fewer states. Also \
                      ends on programs that run forever.",
        construct: |plan| cartesian(plan, Reading::Late),
        ..CARTESIAN
    },
    Entry {
        name: "transactions",
        value: Value::Reduction(Reduction::Transactions),
        summary: "states; a thread runs ahead while other threads cannot observe it",
        description: "Over states: a thread runs ahead while the others cannot observe it, past \
                      lock and unlock, and past variables that are always used under a lock or by \
                      one thread, which is assumed and checked on every access. By commit point \
                      completion. Depth first, with a table of its own; ends where the full \
                      search ends.",
        construct: |_| Some(Strategy::Transactions(Transactions::CommitPoints)),
        ..TRANSACTIONS
    },
    Entry {
        name: "dpor-fg",
        value: Value::Reduction(Reduction::FlanaganGodefroid),
        audience: Audience::Research,
        summary: "dynamic partial-order reduction of 2005: every trace, some often",
        description: "Dynamic partial-order reduction as Flanagan and Godefroid published it: \
                      every trace, some of them often.",
        construct: |plan| executions(plan, ExecutionSearch::FlanaganGodefroid),
        ..TRACES
    },
    Entry {
        name: "blocks-paper",
        value: Value::Reduction(Reduction::BlocksPaper),
        audience: Audience::Research,
        summary: "blocks as published: reads do not commute",
        description: "blocks as published, with reads ordered among themselves.",
        construct: |_| Some(Strategy::Blocks(Dependence::All)),
        ..BLOCKS
    },
    Entry {
        name: "cartesian-literal",
        value: Value::Reduction(Reduction::Cartesian { reading: Reading::Literal }),
        audience: Audience::Research,
        summary: "cartesian with the cycle test as printed",
        description: "cartesian with the cycle test as the paper prints it.",
        construct: |plan| cartesian(plan, Reading::Literal),
        ..CARTESIAN
    },
    Entry {
        name: "transactions-cycle",
        value: Value::Reduction(Reduction::TransactionsCycle),
        audience: Audience::Research,
        summary: "transactions by cycle detection: more states",
        description: "transactions by cycle detection instead of commit point completion: more \
                      states.",
        construct: |_| Some(Strategy::Transactions(Transactions::Cycles)),
        ..TRANSACTIONS
    },
    Entry {
        name: "transactions-unsound",
        value: Value::Reduction(Reduction::TransactionsUnsound),
        audience: Audience::Research,
        summary: "transactions that may never end: errors may be missed",
        description: "transactions without either: errors may be missed, and the search is never \
                      complete. The errors that it finds are real.",
        guarantee: "none: errors may be missed",
        properties: Properties {
            step: Soundness::Unsound(&ENDLESS_TRANSACTIONS),
            ..TRANSACTIONS.properties
        },
        construct: |_| Some(Strategy::Transactions(Transactions::Unsound)),
        ..TRANSACTIONS
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_terms_exist() {
        let names: BTreeSet<&str> = STRATEGIES.iter().map(|entry| entry.name).collect();
        assert_eq!(names.len(), STRATEGIES.len());
        for entry in &STRATEGIES {
            let instead = entry.conflicts.iter().flat_map(|conflict| conflict.instead);
            for term in instead {
                assert!(
                    !matches!(term, Term::Strategy(name) if named(name).is_none()),
                    "{}: {term:?}",
                    entry.name
                );
            }
            assert!(entry.needs_bound.is_none_or(|name| named(name).is_some()), "{}", entry.name);
            assert!(!entry.memory_models.is_empty(), "{}", entry.name);
        }
    }

    #[test]
    fn strategies_are_read_with_their_parameters() {
        let value = |text| parse(text).map(|written| written.value).ok();
        assert_eq!(value("executions"), Some(Value::Order(Order::Executions)));
        assert_eq!(value("icb:hb"), Some(Value::Order(Order::Icb { cache: Cache::Hb })));
        assert_eq!(value("delay"), Some(Value::Order(Order::Delay { cache: Cache::State })));
        assert_eq!(value("delay:none"), Some(Value::Order(Order::Delay { cache: Cache::None })));
        assert_eq!(value("depth:20"), Some(Value::Order(Order::Depth { steps: 20 })));
        assert_eq!(value("idfs"), Some(Value::Order(Order::IterativeDepth { by: 1 })));
        assert_eq!(value("pct:4"), Some(Value::Order(Order::Pct { depth: 4 })));
        assert_eq!(value("dpor"), Some(Value::Reduction(Reduction::Source)));
        for text in
            ["", "best", "depth", "depth:x", "icb:x", "delay:2", "pct:many", "dfs:3", "dpor:1"]
        {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_row_is_found_by_its_value() {
        for entry in &STRATEGIES {
            let found = match entry.value {
                Value::Order(order) => of_order(order),
                Value::Reduction(reduction) => of_reduction(reduction).expect("a reduction"),
            };
            assert_eq!(found.name, entry.name);
            assert_eq!(matches!(entry.value, Value::Reduction(_)), !entry.orders.is_empty());
        }
        assert_eq!(of_order(Order::Pct { depth: 17 }).name, "pct");
        assert!(of_reduction(Reduction::None).is_none());
    }
}
