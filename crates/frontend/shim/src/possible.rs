//! Limits of a check that do not depend on the search: stack sizes, steps, memory.

use std::ops::RangeInclusive;
use std::sync::OnceLock;

use preempt_explore::{Plan, memory};

use crate::Refusal;
use crate::check::Check;

/// Stack sizes on which a thread can run, and that can be allocated.
const STACKS: RangeInclusive<usize> = 16 << 10..=(1 << 36) - 1;

/// The same plan with a limit on the memory of the process: see [`Check::memory_limit`].
pub(crate) fn within_memory(mut plan: Plan) -> Plan {
    static USUAL: OnceLock<Option<usize>> = OnceLock::new();
    let now = || memory::resident().unwrap_or(0);
    let usual = || memory::default_limit().map(|free| now() + free);
    plan.limits.resident = match plan.limits.memory {
        Some(bytes) => Some(now().saturating_add(bytes)),
        None => *USUAL.get_or_init(usual),
    };
    plan
}

/// Checks the settings that the search does not see.
pub(crate) fn is_possible(check: &Check) -> Result<(), Refusal> {
    if !STACKS.contains(&check.options.stack_size) {
        let (size, least) = (check.options.stack_size, *STACKS.start());
        return Err(Refusal::StackSize { size, least });
    }
    if check.options.max_steps == 0 {
        return Err(Refusal::NoSteps);
    }
    if check.stop_at.is_some() && check.replay.is_none() {
        return Err(Refusal::StopWithoutReplay);
    }
    Ok(())
}
