//! The cartesian search: the figures of the paper, random programs compared with the oracle, and
//! every pitfall with the smallest program that shows it.

mod figures;
mod limits;
mod pitfalls;

use preempt_bench::agree::cartesian;
use preempt_bench::random::Shape;

#[test]
fn random_programs_agree_with_the_oracle() {
    let mut compared = 0;
    for seed in 0..2_000 {
        match cartesian::one(seed, Shape::default()) {
            Ok(small) => compared += u32::from(small),
            Err(error) => panic!("{error:#}"),
        }
    }
    assert!(compared > 1_900, "only {compared} programs were small enough");
}
