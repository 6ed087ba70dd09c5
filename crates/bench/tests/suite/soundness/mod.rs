//! Tests every cell of `docs/design/soundness.md`: a sound combination can be built, a refused one
//! is refused, and an unsound one is refused *and* loses something. A row or column without a case
//! here fails the test.

mod table;
mod transactions;
mod witnesses;

use preempt_bench::corpus;
use preempt_explore::reduce::cartesian::Reading;
use preempt_explore::{
    Cache, Limits, Omission, Order, Outcome, Plan, Points, Reduction, Silent, StoreKind,
};
use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::FailureKind;
use witnesses::Dynamic;

/// A cell of the page.
struct Cell {
    section: String,
    row: String,
    column: String,
    text: String,
}

impl Cell {
    fn place(&self) -> (&str, &str, &str) {
        (&self.section, &self.row, &self.column)
    }

    /// The first word, without emphasis.
    fn word(&self) -> &str {
        self.text.trim_start_matches('*').split([' ', ':', ',', '*']).next().unwrap_or("")
    }
}

/// All cells of all tables of the page.
fn page() -> Vec<Cell> {
    let text = include_str!("../../../../../docs/design/soundness.md");
    let (mut section, mut head, mut cells) = ("", Vec::new(), Vec::new());
    for line in text.lines() {
        let Some(row) = line.strip_prefix('|').and_then(|line| line.trim_end().strip_suffix('|'))
        else {
            head.clear();
            section = line.strip_prefix("## ").unwrap_or(section);
            continue;
        };
        let row: Vec<&str> = row.split('|').map(str::trim).collect();
        if head.is_empty() {
            head = row;
        } else if !row[0].starts_with("---") {
            assert_eq!(row.len(), head.len(), "a row of another length: {line}");
            let of = |(column, text): (&&str, &&str)| {
                let [section, row, column, text] =
                    [section, row[0], column, text].map(str::to_owned);
                Cell { section, row, column, text }
            };
            cells.extend(head.iter().zip(&row).skip(1).map(of));
        }
    }
    cells
}

/// The orders of a row.
fn orders(row: &str) -> Option<Vec<Order>> {
    Some(match row {
        "bfs, dfs (states)" => vec![Order::BreadthFirst, Order::DepthFirst],
        "icb, cache none, state, hb" => {
            [Cache::None, Cache::State, Cache::Hb].map(|cache| Order::Icb { cache }).to_vec()
        }
        "delay, cache none, state, hb" => {
            [Cache::None, Cache::State, Cache::Hb].map(|cache| Order::Delay { cache }).to_vec()
        }
        "cb-dfs" => vec![Order::ContextBounded],
        "dfs-hb" => vec![Order::DfsHb],
        "executions, depth, idfs" => {
            vec![Order::Executions, Order::Depth { steps: 9 }, Order::IterativeDepth { by: 9 }]
        }
        "random, pct, urw" => vec![Order::Random, Order::Pct { depth: 2 }, Order::Urw],
        _ => return None,
    })
}

/// The reductions of a row, if they are offered.
fn reductions(row: &str) -> Option<Vec<Reduction>> {
    let one = match row {
        "cartesian, cartesian-literal (over states, with bfs or dfs)" => {
            return Some(
                [Reading::Late, Reading::Literal]
                    .map(|reading| Reduction::Cartesian { reading })
                    .to_vec(),
            );
        }
        "sleep" => Reduction::Sleep,
        "dpor (source sets)" => Reduction::Source,
        "dpor-optimal" => Reduction::Optimal,
        "dpor-fg, without sleep sets" => Reduction::FlanaganGodefroid,
        "budgeted-sleep" => Reduction::BudgetedSleep,
        "cb-por" => Reduction::CbPor,
        "cb-por-states" => Reduction::CbPorStates,
        "blocks" => Reduction::Blocks,
        "blocks-paper" => Reduction::BlocksPaper,
        _ => return None,
    };
    Some(vec![one])
}

/// A reduction with the order it needs, and with a bound if it needs one.
fn reduced(reduction: Reduction) -> Plan {
    let plan = Plan::new().reduction(reduction);
    if matches!(reduction, Reduction::Cartesian { .. }) {
        return plan;
    }
    if reduction.is_bounded() {
        plan.order(Order::ContextBounded).bound(2)
    } else {
        plan.order(Order::Executions)
    }
}

/// Shows what the unsound combination of a cell loses.
fn show_loss(cell: &Cell) {
    match (cell.row.as_str(), cell.column.as_str()) {
        ("bfs, dfs (states)", "with a bound on preemptions or delays") => {
            witnesses::a_set_of_states_and_a_bound_lose_an_error()
        }
        ("sleep", "with a bound") => witnesses::sleep_sets_and_a_bound_lose_a_trace(),
        ("dpor (source sets)", "with a bound") => {
            witnesses::dynamic_reduction_and_a_bound_lose_a_trace(Dynamic::Source);
        }
        ("dpor-optimal", "with a bound") => {
            witnesses::dynamic_reduction_and_a_bound_lose_a_trace(Dynamic::Optimal)
        }
        ("dpor-fg, without sleep sets", "with a bound") => {
            witnesses::dynamic_reduction_and_a_bound_lose_a_trace(Dynamic::FlanaganGodefroid);
        }
        ("dpor-fg, with sleep sets", "without a bound") => {
            witnesses::the_last_race_is_not_enough_with_sleep_sets()
        }
        (_, "deadlocks") => transactions::lose_a_deadlock(cell),
        ("line L19 as printed", _) => transactions::line_l19_loses_an_error(),
        _ => panic!("no witness shows that this is unsound: {:?}", cell.place()),
    }
}

/// Compares a cell with whether the combination can be built.
fn check_build(cell: &Cell, plan: Plan) {
    let built = plan.build();
    match cell.word() {
        "sound" | "a" => {
            assert!(built.is_ok(), "{:?}: {plan:?} is refused: {:?}", cell.place(), built.err())
        }
        "refused" | "unsound" => {
            assert!(built.is_err(), "{:?}: {plan:?} can be built", cell.place())
        }
        other => panic!("{:?}: what does `{other}` mean?", cell.place()),
    }
}

fn model(text: &str) -> Machine {
    preempt_lang::load(&Source::new("model.pre", text), &[]).expect("a model")
}

fn file(name: &str) -> Machine {
    corpus::machine(&corpus::root().join(name), &[]).expect("a program of the corpus")
}

fn run(plan: Plan, machine: Machine) -> Outcome {
    plan.keep_going().build().expect("the plan is valid").run(machine, &Silent).0
}

fn kinds(outcome: &Outcome) -> Vec<FailureKind> {
    outcome.findings.iter().map(|finding| finding.failure.kind).collect()
}

/// An invariant that holds at the end, but not before.
const BROKEN_ON_THE_WAY: &str =
    "var x = 0; invariant never_one: x != 1; thread t { x = 1; x = 2; }";

/// Compares a cell about invariants with what can be built.
fn check_invariants(cell: &Cell, plan: Plan) {
    let (search, machine) = (plan.build().expect("the plan is valid"), model(BROKEN_ON_THE_WAY));
    match cell.word() {
        "checked" => {
            assert!(search.suits(&machine).is_ok(), "{:?} is refused", cell.place());
            assert_eq!(kinds(&run(plan, machine)), [FailureKind::Invariant], "{:?}", cell.place());
        }
        "refused" => {
            let refusal = search.suits(&machine).expect_err("states are left out");
            assert!(refusal.to_string().contains("invariants"), "{refusal}");
        }
        other => panic!("{:?}: what does `{other}` mean?", cell.place()),
    }
}

/// A deadlock, a failed assertion and a runtime error, with two preemptions at most.
fn check_failures_are_kept(cell: &Cell, plan: Plan) {
    assert_eq!(cell.word(), "kept", "{:?}", cell.place());
    let assertion = "atomic var x = 0; thread t { x = 1; x = 2; } thread u { assert x != 1; }";
    let error = "atomic var x = 1; thread t { x = 0; x = 1; } thread u { var r = x; r = 1 / r; }";
    for (machine, kind) in [
        (file("zoo/l.pre"), FailureKind::Deadlock),
        (model(assertion), FailureKind::Assertion),
        (model(error), FailureKind::Runtime),
    ] {
        if kind == FailureKind::Deadlock && cell.row.starts_with("blocks") {
            let refusal =
                plan.build().expect("the plan is valid").suits(&machine).expect_err("it waits");
            assert!(refusal.to_string().contains("zoo/l.pre:7"), "{:?}: {refusal}", cell.place());
            continue;
        }
        assert_eq!(kinds(&run(plan, machine)), [kind], "{:?}", cell.place());
    }
}

fn check_orders(cell: &Cell) {
    let orders =
        orders(&cell.row).unwrap_or_else(|| panic!("a row without a case: {:?}", cell.place()));
    for plan in orders.into_iter().map(|order| Plan::new().order(order)) {
        match cell.column.as_str() {
            "without a bound" => check_build(cell, plan),
            "with a bound on preemptions or delays" => check_build(cell, plan.bound(1)),
            _ => panic!("a column without a case: {:?}", cell.place()),
        }
        if cell.word() == "a" {
            assert!(
                !run(plan, file("zoo/x.pre")).complete,
                "{:?}: a sample proves nothing",
                cell.place()
            );
        }
    }
}

fn check_reductions(cell: &Cell) {
    if cell.row == "dpor-fg, with sleep sets" {
        // There is no way to ask for it.
        assert!(cell.text == "–" || cell.text.ends_with("Not offered"), "{:?}", cell.place());
        return;
    }
    let reductions =
        reductions(&cell.row).unwrap_or_else(|| panic!("a row without a case: {:?}", cell.place()));
    for plan in reductions.into_iter().map(reduced) {
        match cell.column.as_str() {
            "without a bound" => check_build(cell, Plan { bound: None, ..plan }),
            "with a bound" => check_build(cell, plan.bound(1)),
            "invariants" => check_invariants(cell, plan),
            "deadlocks, assertions, runtime errors" => check_failures_are_kept(cell, plan),
            _ => panic!("a column without a case: {:?}", cell.place()),
        }
    }
}

fn check_points(cell: &Cell) {
    let points = match cell.row.as_str() {
        "all" => Points::All,
        "sync" => Points::Sync,
        _ => panic!("a row without a case: {:?}", cell.place()),
    };
    let plan = Plan::new().order(Order::Icb { cache: Cache::Hb }).points(points);
    match (cell.column.as_str(), points) {
        ("programs without data races", _) | ("programs with one", Points::All) => {
            check_build(cell, plan);
            assert_eq!(kinds(&run(plan, file("races/r1.pre"))), [], "{:?}", cell.place());
        }
        ("programs with one", Points::Sync) => {
            assert!(cell.text.starts_with("the race is the finding"), "{:?}", cell.place());
            assert_eq!(
                kinds(&run(plan, file("races/r3.pre"))),
                [FailureKind::Race],
                "{:?}",
                cell.place()
            );
        }
        ("invariants", _) => check_invariants(cell, plan),
        _ => panic!("a column without a case: {:?}", cell.place()),
    }
}

fn check_stores(cell: &Cell) {
    let stores: &[StoreKind] = match cell.row.as_str() {
        "exact, tree" => &[StoreKind::Exact, StoreKind::Tree],
        "fingerprint" => &[StoreKind::Fingerprint],
        "bitstate" => &[StoreKind::Bitstate { bytes: 1 << 16 }],
        _ => panic!("a row without a case: {:?}", cell.place()),
    };
    assert_eq!(cell.column, "what it may miss");
    for &store in stores {
        // A state of one word is its own fingerprint; those of the queue have more.
        let outcome = run(Plan::new().store(store), file("work-stealing-queue/model.pre"));
        let as_said = match store {
            StoreKind::Exact | StoreKind::Tree => {
                outcome.complete && outcome.omission == Omission::Never
            }
            StoreKind::Fingerprint => matches!(outcome.omission, Omission::Collision { .. }),
            _ => !outcome.complete && matches!(outcome.omission, Omission::Bits { .. }),
        };
        assert!(as_said, "{store:?}: {:?}", outcome.omission);
    }
}

fn check_workers(cell: &Cell) {
    let of = |order| Plan::new().order(order);
    let hb = [Order::Icb { cache: Cache::Hb }, Order::Delay { cache: Cache::Hb }, Order::DfsHb];
    let hb = hb.map(of);
    let plans: Vec<Plan> = match cell.row.as_str() {
        "icb and delay, cache state or hb, and dfs-hb, limit of depth" => {
            let cache = Cache::State;
            let states = [of(Order::Icb { cache }), of(Order::Delay { cache })];
            let cached = hb.into_iter().chain(states);
            cached.map(|plan| plan.limits(Limits { depth: Some(9), ..Limits::default() })).collect()
        }
        "icb and delay, cache hb, and dfs-hb, points sync" => {
            hb.map(|plan| plan.points(Points::Sync)).to_vec()
        }
        "cb-dfs, executions, depth, idfs" => {
            let [executions, depth, idfs] =
                [Order::Executions, Order::Depth { steps: 9 }, Order::IterativeDepth { by: 9 }]
                    .map(of);
            vec![of(Order::ContextBounded).bound(1), executions, depth, idfs]
        }
        "dfs-hb, without a bound" => vec![of(Order::DfsHb)],
        "dfs-hb, with a bound" => vec![of(Order::DfsHb).bound(1)],
        "random" => vec![of(Order::Random)],
        "pct, urw" => vec![of(Order::Pct { depth: 2 }), of(Order::Urw)],
        "cartesian" => vec![reduced(Reduction::Cartesian { reading: Reading::Late })],
        "all other reductions" => {
            let rows = page().into_iter().filter(|cell| cell.section == "Reductions");
            let offered = rows.filter_map(|cell| reductions(&cell.row)).flatten();
            offered
                .filter(|reduction| !matches!(reduction, Reduction::Cartesian { .. }))
                .map(reduced)
                .collect()
        }
        row => orders(row)
            .unwrap_or_else(|| panic!("a row without a case: {:?}", cell.place()))
            .into_iter()
            .map(of)
            .collect(),
    };
    assert_eq!(cell.column, "several workers");
    for plan in plans {
        assert!(plan.build().is_ok(), "{:?}: one worker can", cell.place());
        check_build(cell, plan.jobs(2));
    }
}

#[test]
fn what_the_page_says_is_so() {
    let (mut cells, mut unsound) = (0, 0);
    for cell in page() {
        if cell.section == "Strategies and properties" {
            // Generated: see `table`.
            continue;
        }
        cells += 1;
        match cell.section.as_str() {
            "Orders and bounds" => check_orders(&cell),
            "Reductions" => check_reductions(&cell),
            "Transactions" => transactions::check(&cell),
            "Points" => check_points(&cell),
            "Stores" => check_stores(&cell),
            "Workers" => check_workers(&cell),
            // Numbers of programs and tests, not promises.
            "An independent semantics"
            | "Closures"
            | "Weak memory"
            | "Published suites"
            | "Published data structures"
            | "Executions of GenMC" => {}
            other => panic!("a table without cases: {other}"),
        }
        if cell.word() == "unsound" {
            unsound += 1;
            let never = cell.text.ends_with("Refused") || cell.text.ends_with("Not offered");
            assert!(never, "{:?}: unsound, and may be built?", cell.place());
            show_loss(&cell);
        }
    }
    assert!(
        cells >= 92 && unsound >= 10,
        "{cells} cells, {unsound} unsound: is this the whole page?"
    );
}

#[test]
fn a_race_depends_on_how_a_state_was_reached() {
    // The sentence below the table of points.
    for order in [Order::BreadthFirst, Order::DepthFirst, Order::Icb { cache: Cache::State }] {
        let refusal =
            Plan::new().order(order).points(Points::Sync).build().expect_err("races are not seen");
        assert!(refusal.to_string().contains("data race"), "{refusal}");
    }
}
