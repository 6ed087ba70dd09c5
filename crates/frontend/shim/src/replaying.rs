//! Running one schedule again.

use std::time::Duration;

use preempt_explore::{Coverage, Omission, Outcome, Plan, Tally};
use preempt_report::{Checked, Layout, token};
use preempt_system::{Finding, Verdict};

use crate::page::Page;
use crate::program::Closure;
use crate::report::{LAYOUT_WIDTH, Told, told};

/// Runs the schedule of a token, and says how it ends.
#[track_caller]
pub(crate) fn replay(plan: &Plan, program: Closure<'_>, word: &str, page: Option<&Page<'_>>) -> (Outcome, String) {
    let recorded = match token::parse(word) {
        Ok(recorded) => recorded,
        Err(why) => panic!("PREEMPT_REPLAY={word} is not a schedule: {why}"),
    };
    let (program, Told { story, timeline, failures, preemptions, taken, .. }) = told(program, &recorded.schedule, None);
    let failure = failures.into_iter().next();
    let all = recorded.schedule.steps().len();
    if taken < all {
        panic!("PREEMPT_REPLAY={word} is not a schedule of this test: it cannot take step {} of {all}", taken + 1);
    }
    if recorded.ending.is_same(failure.as_ref()) == Some(false) {
        let now = failure.map_or_else(|| "nothing fails".to_owned(), |failure| failure.message);
        panic!("PREEMPT_REPLAY={word} does not end as it did: {now}; the test was changed, or is not deterministic");
    }
    let verdict = failure.as_ref().map_or(Verdict::Incomplete, |failure| failure.kind.into());
    let findings: Vec<Finding> = failure
        .into_iter()
        .map(|failure| Finding { failure, schedule: recorded.schedule.clone(), preemptions })
        .collect();
    drop(program);
    let outcome = Outcome {
        verdict,
        complete: false,
        coverage: Coverage { transitions: all as u64, depth: all as u32, ..Coverage::default() },
        at_finding: !findings.is_empty(),
        findings,
        stopped: None,
        tally: Some(Tally { steps: all as u64, ..Tally::default() }),
        bounds: Vec::new(),
        growth: None,
        omission: Omission::Never,
        order: plan.order,
        reduction: plan.reduction,
        promoted: Vec::new(),
        elapsed: Duration::ZERO,
        store_bytes: 0,
        frontier_bytes: 0,
        restarts: 0,
    };
    let stories = [story];
    let checked = Checked {
        plan,
        chosen: None,
        outcome: &outcome,
        stories: &stories,
        peak_memory: None,
        replay: "PREEMPT_REPLAY=",
    };
    let mut text = checked.to_text(&Layout { width: LAYOUT_WIDTH, most_steps: usize::MAX, ..Layout::default() });
    text += &page.map(|page| page.write(&checked, &[timeline])).unwrap_or_default();
    (outcome, text)
}
