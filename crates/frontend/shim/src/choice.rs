//! Nondeterministic choices of data.

use std::panic::Location as Site;

use preempt_replay::{NO_OBJECT, OpKind};

use crate::runtime::{describe, inside, op, point, with};

/// Returns a number below `n`. Inside a check this is a step, and every number is explored; outside
/// the result is 0.
///
/// ```
/// let outcome = preempt::Check::new().run(|| assert!(preempt::choose(3) < 3));
/// assert_eq!(outcome.executions(), Some(3));
/// ```
///
/// # Panics
///
/// If `n` is 0.
#[track_caller]
pub fn choose(n: u32) -> u32 {
    assert!(n > 0, "`choose` needs at least one number");
    if n == 1 || !inside() {
        return 0;
    }
    point(op(OpKind::Choose(n), NO_OBJECT, "choose", Site::caller()));
    let chosen = with(|runtime| {
        runtime.outcome.value = u64::from(runtime.outcome.alternative);
        runtime.outcome.alternative
    });
    describe(|| format!("choose({n}) = {chosen}"));
    chosen
}
