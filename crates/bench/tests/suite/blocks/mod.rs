//! The reduction by blocks: random straight-line programs against the oracle, wrong readings of the
//! paper, the figures of `data/blocks.toml`, and what is refused.

mod figures;
mod mutants;
mod refused;

use preempt_bench::agree::blocks::{self, Sums};

#[test]
fn random_straight_lines_agree_with_the_oracle() {
    let (mut compared, mut contradictory, mut beyond, mut failing) = (0, 0, 0, 0);
    let mut sums = Sums::default();
    for seed in 0..3_000 {
        let Some(one) = blocks::one(seed).unwrap_or_else(|error| panic!("{error:#}")) else {
            continue;
        };
        compared += 1;
        contradictory += u32::from(one.product > one.paper);
        beyond += u32::from(one.beyond);
        failing += u32::from(one.fails);
        sums.product += one.product;
        sums.paper += one.paper;
        sums.graphs += one.graphs;
    }
    println!(
        "{compared} compared, {contradictory} with contradictions, {beyond} beyond formula (12), {failing} fail: {sums:?}"
    );
    assert!(compared >= 2_000, "only {compared} programs were small enough");
    // The programs cover what the test is about.
    assert!(contradictory > 100 && beyond > 100 && failing > 100 && sums.graphs < sums.paper);
}
