//! Arbitrary bytes as a model: read, checked, made ready and searched for a while. Nothing may
//! panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use preempt_explore::{Limits, Order, Plan, Silent};
use preempt_lang::diagnostic::{Style, render};
use preempt_lang::source::Source;

/// The most states that are visited.
const STATES: u64 = 1_000;

fuzz_target!(|bytes: &[u8]| {
    let source = Source::new("fuzz.pre", String::from_utf8_lossy(bytes).as_ref());
    let machine = match preempt_lang::load(&source, &[]) {
        Ok(machine) => machine,
        Err(diagnostics) => {
            assert!(!diagnostics.is_empty(), "a refusal has a reason");
            assert!(!render(&source, &diagnostics, Style::Plain).is_empty(), "and says it");
            return;
        }
    };
    let plan = Plan::for_model(&machine).keep_going();
    let limits = match plan.order {
        Order::BreadthFirst => Limits { states: Some(STATES), ..Limits::default() },
        // Weak memory.
        _ => Limits { executions: Some(STATES), depth: Some(100), ..Limits::default() },
    };
    let search = plan.limits(limits).build().expect("a full search is always possible");
    search.run(machine, &Silent);
});
