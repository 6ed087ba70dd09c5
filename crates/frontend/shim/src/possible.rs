//! What a check cannot do whatever the search is, and how much memory it may have.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use preempt_explore::{Plan, Refusal, memory};

use crate::check::Check;

/// The sizes of a stack on which a thread can run, and that can be had.
const STACKS: RangeInclusive<usize> = 16 << 10..=(1 << 36) - 1;

/// The same plan with a limit on the memory of the process: see [`Check::memory_limit`].
pub(crate) fn within_memory(mut plan: Plan) -> Plan {
    static USUAL: OnceLock<Option<usize>> = OnceLock::new();
    let now = || memory::resident().unwrap_or(0);
    let usual = || memory::most_of_what_is_free().map(|free| now() + free);
    plan.limits.resident = match plan.limits.memory {
        Some(bytes) => Some(now().saturating_add(bytes)),
        None => *USUAL.get_or_init(usual),
    };
    plan
}

/// The settings that have nothing to do with the search, or why they cannot be.
pub(crate) fn is_possible(check: &Check) -> Result<(), Refusal> {
    if !STACKS.contains(&check.options.stack_size) {
        let (size, least) = (check.options.stack_size, STACKS.start());
        let why = format!(
            "a thread cannot run on a stack of {size} bytes: give `stack_size` {least} or more, and below 2^36"
        );
        return Err(Refusal::because(&why));
    }
    if check.options.max_steps == 0 {
        return Err(Refusal::because("every execution has steps: give `max_steps` 1 or more"));
    }
    if check.stop_at.is_some() && check.replay.is_none() {
        return Err(Refusal::because(
            "`stop_at` is for a schedule that is replayed: call `replay` too, or leave it out",
        ));
    }
    Ok(())
}
