//! The words for the parts of a plan: on the command line, in text and in JSON they are the same.
//! Strategies have the names of their table.

use preempt_explore::plan::strategies;
use preempt_explore::{Limit, Order, Reduction};

/// The word for an order.
pub fn order(order: Order) -> &'static str {
    strategies::of_order(order).name
}

/// The word for a reduction.
pub fn reduction(reduction: Reduction) -> &'static str {
    strategies::of_reduction(reduction).map_or("none", |entry| entry.name)
}

/// The word for the limit that ended a search.
pub fn limit(limit: Limit) -> &'static str {
    match limit {
        Limit::States => "states",
        Limit::Executions => "executions",
        Limit::Depth => "depth",
        Limit::Memory => "memory",
        Limit::Disk => "disk",
        Limit::Damage => "damage",
        Limit::Time => "time",
        Limit::Interrupt => "interrupt",
        Limit::Round => "round",
        Limit::Size => "size",
        Limit::Process => "process",
    }
}
