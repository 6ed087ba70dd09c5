//! The rows of the table: every strategy, with the reasons of its conflicts.

use preempt_system::memory::MemoryModel;

use super::{Audience, Class, Conflict, Entry, OtherMemory, ParameterKind, Value};
use crate::plan::property::{Loss, Properties, Soundness};
use crate::plan::strategy::{Chooser, ExecutionSearch, StateOrder, Strategy, Transactions};
use crate::plan::terms::{Setting, Term};
use crate::plan::{Cache, Cost, Dependence, Order, Plan, Reading, Reduction};

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
pub(in crate::plan) const JOBS_AND_ROUND_ROBIN: Conflict = Conflict {
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
const WEAK_MEMORY: &[Term] = &[ICB, Term::Strategy("graphs"), Term::Strategy("executions")];
const STATES_OF_WEAK_MEMORY: Option<OtherMemory> = Some(OtherMemory {
    why: "it searches states, and two threads may read different values of one variable in the \
          same state",
    instead: WEAK_MEMORY,
});
const STEPS_OF_WEAK_MEMORY: Option<OtherMemory> = Some(OtherMemory {
    why: "it names a step by its alternative, which counts stores, and the same alternative means \
          something else after steps were exchanged; `x.store(1, Relaxed)` in parallel with \
          `x.store(2, Relaxed)`: the second store before the first is the first one after the \
          second",
    instead: WEAK_MEMORY,
});
const GRAPHS_OF_WEAK_MEMORY: Option<OtherMemory> = Some(OtherMemory {
    why: "it explores the execution graphs of weak memory",
    instead: &[Term::Strategy("dpor-optimal"), ICB],
});
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
    other_memory: STATES_OF_WEAK_MEMORY,
    properties: Properties { race: Soundness::NotApplicable(RACE_IN_STATES), ..SOUND },
    construct: states,
};
/// The common fields of all searches over executions without a reduction.
const EXECUTIONS: Entry = Entry {
    class: Class::Executions,
    memory_models: &MemoryModel::ALL,
    other_memory: None,
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
    other_memory: STEPS_OF_WEAK_MEMORY,
    orders: &[Order::Executions],
    conflicts: &[&BOUND_AND_SLEEP, &DEPTH_OF_REDUCTION, &JOBS_OF_REDUCTION, &STORE_OF_EXECUTIONS],
    properties: Properties { invariant: Soundness::Unsound(&SKIPPED_STATES), ..SOUND },
    ..EXECUTIONS
};
/// Execution graphs of weak memory. A step has a name there that does not depend on the order of
/// execution, unlike in the reductions above.
const GRAPHS: Entry = Entry {
    memory_models: &[MemoryModel::Weak],
    other_memory: GRAPHS_OF_WEAK_MEMORY,
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
