//! The program of the papers icb and cb-por: the work-stealing queue without its elements.

use anyhow::{Result, anyhow};
use preempt_explore::{Outcome, Plan, Silent};
use preempt_machine::Machine;

use crate::corpus;

/// The lock of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// A variable that is written and excludes no thread.
    Plain,
    /// A mutex.
    Blocking,
}

/// The queue with a driver of this size.
pub fn machine(size: u32, lock: Lock) -> Result<Machine> {
    let set = |name: &str, value: u32| (name.to_owned(), value.to_string());
    let locked = u32::from(lock == Lock::Blocking);
    corpus::machine(
        &corpus::root().join("work-stealing-queue/protocol.pre"),
        &[set("SIZE", size), set("LOCKED", locked)],
    )
}

/// Searches it.
pub fn run(plan: Plan, size: u32, lock: Lock) -> Result<Outcome> {
    let search = plan.build().map_err(|refusal| anyhow!("{refusal}"))?;
    Ok(search.run(machine(size, lock)?, &Silent).0)
}
