//! Every combination of settings: a check that is not possible is refused with a reason, and never
//! panics inside the engine.

use std::time::Duration;

use preempt::sync::Arc;
use preempt::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use preempt::{Cache, Check, Count, Memory, Order, Outcome, Reduction, thread};

/// Two threads, two accesses each: six interleavings.
fn two_writers() {
    let n = Arc::new(AtomicUsize::new(0));
    let other = n.clone();
    let t = thread::spawn(move || other.fetch_add(1, SeqCst));
    n.fetch_add(1, SeqCst);
    assert!(t.join().is_ok());
}

fn orders() -> Vec<Option<Order>> {
    let caches = [Cache::None, Cache::State, Cache::Hb];
    let cached = caches.map(|cache| [Order::Icb { cache }, Order::Delay { cache }]).concat();
    let others = [
        Order::BreadthFirst,
        Order::DepthFirst,
        Order::ContextBounded,
        Order::DfsHb,
        Order::Executions,
        Order::Depth { steps: 0 },
        Order::Depth { steps: 3 },
        Order::Depth { steps: u32::MAX },
        Order::IterativeDepth { by: 0 },
        Order::IterativeDepth { by: u32::MAX },
        Order::Random,
        Order::Pct { depth: 0 },
        Order::Pct { depth: 3 },
        Order::Pct { depth: u32::MAX },
        Order::Urw,
    ];
    cached.into_iter().chain(others).map(Some).chain([None]).collect()
}

fn reductions() -> Vec<Option<Reduction>> {
    let names = [
        Reduction::None,
        Reduction::Sleep,
        Reduction::Source,
        Reduction::Optimal,
        Reduction::Graphs,
        Reduction::FlanaganGodefroid,
        Reduction::BudgetedSleep,
        Reduction::CbPor,
        Reduction::CbPorStates,
        Reduction::Blocks,
        Reduction::BlocksPaper,
        Reduction::Transactions,
        Reduction::TransactionsCycle,
        Reduction::TransactionsUnsound,
        Reduction::Cartesian { reading: Default::default() },
    ];
    names.into_iter().map(Some).chain([None]).collect()
}

/// Settings that combine with any order and reduction, each with a value at one end of its range.
fn settings() -> Vec<(&'static str, Check)> {
    let check = || Check::new().quiet().runs(3);
    vec![
        ("usual", check()),
        ("sequential consistency", check().memory(Memory::Sc)),
        ("weak memory", check().memory(Memory::Weak)),
        ("bound 0", check().bound(0)),
        ("maximal bound", check().bound(u32::MAX)),
        ("unbounded", check().unbounded()),
        ("no jobs", check().jobs(0)),
        ("two jobs", check().jobs(2)),
        ("too many jobs", check().jobs(usize::MAX)),
        ("no executions", check().executions(0)),
        ("one execution", check().executions(1)),
        ("no steps", check().steps(0)),
        ("one step", check().steps(1)),
        ("no runs", check().runs(0)),
        ("no time", check().time(Duration::ZERO)),
        ("all time", check().time(Duration::MAX).shrink(Duration::MAX)),
        ("no memory", check().memory_limit(0)),
        ("all memory", check().memory_limit(usize::MAX)),
        ("states", check().count(Count::States).keep_going()),
        ("executions", check().count(Count::Executions).seed(u64::MAX)),
        ("no stack", check().stack_size(0)),
        ("all stacks", check().stack_size(usize::MAX)),
        ("max_steps 0", check().max_steps(0)),
        ("max_steps 1", check().max_steps(1)),
        ("no threads", check().max_threads(0)),
        ("stop_at without replay", check().stop_at(1)),
        ("all spurious events", check().spurious_wakeups().weak_cas_failures().allow_incomplete()),
    ]
}

#[test]
fn a_check_that_cannot_be_made_is_refused() {
    let (mut made, mut refused) = (0, 0);
    for (what, settings) in settings() {
        for order in orders() {
            for reduction in reductions() {
                let check = order.into_iter().fold(settings.clone(), Check::order);
                let check = reduction.into_iter().fold(check, Check::reduce);
                match check.try_run(two_writers) {
                    Ok(_) => made += 1,
                    Err(refusal) => {
                        refused += 1;
                        let why = refusal.to_string();
                        // The setting or the strategy that has to be changed.
                        assert!(why.contains('`'), "{what} {order:?} {reduction:?}: {why}");
                    }
                }
            }
        }
    }
    assert!(made > 100 && refused > 1000, "{made} made, {refused} refused");
}

#[test]
fn impossible_settings_are_refused_with_a_reason() {
    let why = |check: Check| {
        check.try_run(two_writers).err().map(|why| why.to_string()).unwrap_or_default()
    };
    assert_eq!(
        why(Check::new().order(Order::BreadthFirst)),
        "`Order::BreadthFirst` cannot search real code: it compares states, and the states of real \
         code cannot be compared; use `Order::Icb`, `Order::Executions` or `Reduction::Optimal`"
    );
    assert!(why(Check::new().order(Order::Icb { cache: Cache::State })).contains("`Cache::Hb`"));
    assert!(
        why(Check::new().reduce(Reduction::Blocks).unbounded()).contains("`Reduction::Optimal`")
    );
    assert!(why(Check::new().stack_size(0)).contains("`stack_size` must be at least 16384"));
    assert_eq!(why(Check::new().max_steps(0)), "`max_steps` must be at least 1");
    assert_eq!(why(Check::new().stop_at(1)), "`stop_at` needs `replay`");
    assert_eq!(why(Check::new().order(Order::Random).runs(0)), "`runs` must be at least 1");
}

#[test]
#[should_panic(
    expected = "this check cannot be made: `Order::BreadthFirst` cannot search real code"
)]
fn run_panics_with_the_refusal() {
    Check::new().order(Order::BreadthFirst).run(two_writers);
}

#[test]
fn the_failing_execution_counts() {
    let first = |outcome: Outcome| (outcome.executions(), outcome.findings.len());
    assert_eq!(first(Check::new().run(|| panic!("at once"))), (Some(1), 1));
    let second = Check::new().run(|| {
        let n = Arc::new(AtomicUsize::new(0));
        let other = n.clone();
        let t = thread::spawn(move || other.store(1, SeqCst));
        let seen = n.load(SeqCst);
        assert!(t.join().is_ok());
        assert_eq!(seen, 0, "the other thread was first");
    });
    assert_eq!(first(second), (Some(2), 1));
}

/// The executions are short and very many; the tables of cb-por grow with their number.
#[test]
fn a_search_that_exceeds_the_memory_limit_reports_its_coverage() {
    let many = || {
        let cells: Arc<Vec<AtomicUsize>> = Arc::new((0..3).map(AtomicUsize::new).collect());
        let threads: Vec<_> = (0..4)
            .map(|i| {
                let cells = cells.clone();
                thread::spawn(move || {
                    (0..6).for_each(|k| _ = cells[(i + k) % 3].fetch_add(i + k, SeqCst))
                })
            })
            .collect();
        threads.into_iter().for_each(|t| assert!(t.join().is_ok()));
    };
    let check = Check::new()
        .reduce(Reduction::CbPor)
        .bound(6)
        .memory_limit(48 << 20)
        .allow_incomplete()
        .quiet();
    let outcome = check.run(many);
    assert!(
        outcome.guarantee().starts_with("INCOMPLETE: stopped at the memory limit"),
        "{}",
        outcome.guarantee()
    );
    assert!(outcome.executions() > Some(0));
}
