//! The table of reductions by transactions.

use preempt_explore::reduce::cpc::{self, Config, Variant};
use preempt_explore::{Order, Plan, Points, Reduction, StoreKind};
use preempt_system::FailureKind;

use super::{Cell, check_invariants, file, kinds, model, run};

fn reduction(row: &str) -> Option<Reduction> {
    Some(match row {
        "transactions" => Reduction::Transactions,
        "transactions-cycle" => Reduction::TransactionsCycle,
        "transactions-unsound" => Reduction::TransactionsUnsound,
        _ => return None,
    })
}

/// Compares a cell with what can be built and what is found.
pub fn check(cell: &Cell) {
    let Some(reduction) = reduction(&cell.row) else {
        assert!(
            cell.row == "line L19 as printed"
                && (cell.text == "–" || cell.text.ends_with("Not offered"))
        );
        return;
    };
    let plan = Plan::new().order(Order::DepthFirst).reduction(reduction).ignore_deadlocks();
    match cell.column.as_str() {
        "assertions, runtime errors" if reduction.is_sound() => {
            assert_eq!(cell.word(), "kept", "{:?}", cell.place());
            let error =
                "atomic var x = 1; thread t { x = 0; x = 1; } thread u { var r = x; r = 1 / r; }";
            assert_eq!(kinds(&run(plan, file("cpc/fig3.pre"))), [FailureKind::Assertion]);
            assert_eq!(kinds(&run(plan, model(error))), [FailureKind::Runtime]);
        }
        "assertions, runtime errors" => {
            assert_eq!(cell.word(), "may", "{:?}", cell.place());
            let outcome = run(plan, file("cpc/fig1.pre"));
            assert!(outcome.findings.is_empty() && !outcome.complete, "{:?}", cell.place());
        }
        "deadlocks" => {
            let refusal = Plan { deadlock: true, ..plan }.build().expect_err("deadlocks are lost");
            assert!(refusal.to_string().contains("`ignore_deadlocks`"), "{refusal}");
        }
        "invariants" => check_invariants(cell, plan),
        "with a bound, points sync, several jobs, another store or order" => {
            assert_eq!(cell.word(), "refused", "{:?}", cell.place());
            for plan in [
                plan.bound(1),
                plan.points(Points::Sync),
                plan.jobs(2),
                plan.store(StoreKind::Tree),
                plan.order(Order::BreadthFirst),
                plan.order(Order::Executions),
            ] {
                assert!(plan.build().is_err(), "{:?}: {plan:?} can be built", cell.place());
            }
        }
        _ => panic!("a column without a case: {:?}", cell.place()),
    }
}

/// The deadlock of two locks in two orders is missed.
pub fn lose_a_deadlock(cell: &Cell) {
    assert_eq!(kinds(&run(Plan::new(), file("abba/model.pre"))), [FailureKind::Deadlock]);
    let reduction = reduction(&cell.row).expect("a reduction that is offered");
    let plan = Plan::new().order(Order::DepthFirst).reduction(reduction).ignore_deadlocks();
    assert_eq!(kinds(&run(plan, file("abba/model.pre"))), []);
}

pub fn line_l19_loses_an_error() {
    for name in ["cpc/l19-loop.pre", "cpc/l19-branch.pre"] {
        let errors =
            |variant| cpc::run(file(name), Config { variant, ..Config::default() }).failures.len();
        assert_eq!((errors(Variant::Printed), errors(Variant::Repaired)), (0, 1), "{name}");
    }
}
