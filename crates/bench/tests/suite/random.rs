//! All full searches compared with the oracle on random programs.

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

#[test]
fn a_thread_spawned_by_a_failed_step_is_not_started_by_the_next_step() {
    let text = "
        atomic var x = 0;
        fn child() { x = 1; x = 2; }
        thread t { var q = 0; x = 3; q = choose(0..2); spawn child(); assert q == 0; }
        thread u { x = 4; assert x != 1; x = 5; }
    ";
    assert!(agree::text(text).unwrap_or_else(|error| panic!("{error:#}")), "a small program");
}
