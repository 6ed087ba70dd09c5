//! Virtual time: the assumptions of a pass, and how a trace shows it.

use std::time::Duration;

use preempt_explore::{Cache, Order, Outcome, Plan};
use preempt_native::narrate::narrate;
use preempt_native::{Executable, Native};
use preempt_report::recorder::Numbering;
use preempt_system::Verdict;

use crate::compile::executable;

fn explored(executable: Executable) -> (Outcome, Native) {
    let plan = Plan { order: Order::Icb { cache: Cache::Hb }, bound: Some(2), ..Plan::new() };
    let search = plan.build_for_program().expect("the plan is possible");
    search.run_program(Native::new(executable), &())
}

#[test]
fn a_pass_that_relies_on_the_maximal_delay_says_so() {
    let assumes = |native: &Native| {
        native.assumptions().iter().any(|words| words.contains("delayed by more than 1 ms"))
    };
    let (outcome, native) = explored(executable("hour"));
    assert_eq!(outcome.verdict, Verdict::Ok);
    assert!(assumes(&native), "{:?}", native.assumptions());
    let (_, native) = explored(executable("no_lost_update"));
    assert!(!assumes(&native), "{:?}", native.assumptions());
}

#[test]
fn the_trace_of_a_timeout_says_how_long_the_thread_waited() {
    let mut hour = executable("hour");
    hour.max_delay = Duration::from_secs(3600);
    let (outcome, native) = explored(hour);
    let finding = outcome.findings.first().expect("a thread may be delayed for an hour");
    let narrated = narrate(&native, &finding.schedule, Numbering::Slots, |_| None);
    let trace = narrated.expect("a finding can be described").replayed.trace;
    let effects: Vec<&str> =
        trace.steps.iter().flat_map(|s| &s.narration.effects).map(String::as_str).collect();
    let timeout = "c.wake() for at most 1 h times out";
    assert!(effects.contains(&timeout), "{effects:?}");
}
