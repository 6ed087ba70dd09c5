//! States and transitions: Table 1, its programs in small sizes, and the examples of the paper's
//! text.

use preempt_bench::papers::cartesian::{CARTESIAN, LITERAL, Row, rows, small_rows};
use preempt_explore::{Order, Plan, Reduction, Silent};
use preempt_lang::source::Source;

/// Rows with more transitions take too long for a test without optimisation.
const LARGEST: u64 = 100_000;

/// Compares all columns of a row that are small enough. Returns their number.
fn check(row: &Row) -> u32 {
    let mut compared = 0;
    let columns =
        [(Reduction::None, row.standard), (CARTESIAN, row.cartesian), (LITERAL, row.literal)];
    for (reduction, expected) in columns {
        let Some(expected) = expected.filter(|[_, transitions]| *transitions <= LARGEST) else {
            continue;
        };
        let jobs: &[usize] =
            if reduction == CARTESIAN && expected[1] < LARGEST / 3 { &[1, 2, 4] } else { &[1] };
        for &jobs in jobs {
            let ours =
                row.run(reduction, jobs).expect("a program of the corpus").expect("a small one");
            assert_eq!(ours.figures, expected, "{} {reduction:?}, {jobs} workers", row.name);
        }
        compared += 1;
    }
    compared
}

#[test]
fn table_1() {
    let compared: u32 = rows().expect("a table").iter().map(check).sum();
    assert!(compared >= 75, "only {compared} columns were compared");
}

#[test]
fn small_sizes() {
    let compared: u32 = small_rows().expect("a table").iter().map(check).sum();
    assert_eq!(compared, 26);
}

/// States and steps of a program, in the full search and in the cartesian one, in both orders.
fn both(text: &str) -> [[u64; 2]; 2] {
    let machine = preempt_lang::load(&Source::new("figure.pre", text), &[]).expect("a model");
    [Reduction::None, CARTESIAN].map(|reduction| {
        let by = |order| {
            let plan =
                Plan::new().order(order).reduction(reduction).build().expect("the plan is valid");
            let seen = plan.run(machine.clone(), &Silent).0.coverage;
            [seen.states, seen.transitions]
        };
        assert_eq!(by(Order::BreadthFirst), by(Order::DepthFirst));
        by(Order::BreadthFirst)
    })
}

#[test]
fn figure_2() {
    // Only x and y are shared. The paper counts nothing here: measured.
    let text = "
        steps statement;
        var x = 0; var y = 0;
        thread t1 { var z: int; var w: int; z = 8; x = 1; z = 42; y = 7; w = z; }
        thread t2 { var q: int; var priv: int; q = 8; priv = y; q = 42; priv = x; skip; }
    ";
    assert_eq!(both(text), [[48, 76], [8, 38]]);
    // If the values that were read are forgotten at once, there are only 6 x 6 positions.
    let forgets = text.replace("priv = y", "assert y >= 0").replace("priv = x", "assert x >= 0");
    assert_eq!(both(&forgets), [[36, 60], [8, 38]], "as an independent prototype has it");
}

#[test]
fn figure_5() {
    // The paper does not contain the program; this one fits every sentence about it.
    let text = "
        steps statement;
        var x = 0; var y = 0;
        thread t1 { x += 1; x += 1; x += 1; y += 1; }
        thread t2 { y += 1; y += 1; y += 1; x += 1; }
    ";
    let [full, [covered, _]] = both(text);
    assert_eq!((full, covered), ([25, 40], 14));
}
