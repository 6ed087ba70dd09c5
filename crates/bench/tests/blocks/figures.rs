//! `data/blocks.toml`: every figure, by the code that prints the tables.

use preempt_bench::papers;

#[test]
fn all_figures_come_out() {
    assert!(papers::blocks::tables(true).expect("the tables can be made"), "a figure is different");
}
