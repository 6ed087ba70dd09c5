//! `data/blocks.toml`: every figure, by the code that prints the tables.

use preempt_bench::papers;

#[test]
fn all_figures_are_reproduced() {
    let ask = papers::Ask { extent: papers::Extent::Quick, ..papers::Ask::default() };
    assert!(
        papers::blocks::print(&ask).expect("the tables can be made").good(),
        "a figure is different"
    );
}
