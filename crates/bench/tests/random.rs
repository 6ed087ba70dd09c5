//! All full searches against the oracle on random programs.

use preempt_bench::agree;
use preempt_bench::random::Shape;

#[test]
fn full_searches_agree_with_the_oracle() {
    let mut compared = 0;
    for seed in 0..2_000 {
        match agree::one(seed, Shape::default()) {
            Ok(small) => compared += u32::from(small),
            Err(error) => panic!("{error:#}"),
        }
    }
    assert!(compared > 1_500, "only {compared} programs were small enough");
}
