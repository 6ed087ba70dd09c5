//! A check as text: the findings with their traces, the coverage, and the cost.

use std::time::Duration;

use preempt_explore::{Outcome, Plan, Points, Tally};
use preempt_system::{Finding, MemoryModel, Narration, Shrunk, Verdict};

use crate::bounds;
use crate::check_report::{CheckReport, Unreached};
use crate::number::{bytes, counted, rate, time};
use crate::schedule::Ending;
use crate::style::{Headline, Layout, paint};
use crate::token;
use crate::trace::Trace;
use crate::trace_text::headline;
use crate::wrap::{clean, width, wrap};

/// The most traces in the report of a search that continues after its first finding.
const MOST_TRACES: usize = 5;
/// The longest token that can reasonably be pasted.
pub(crate) const LONGEST_TOKEN: usize = 2_000;
/// With fewer states, the store is mostly empty, and its bytes per state mean nothing.
const MANY_STATES: u64 = 10_000;

impl CheckReport<'_> {
    /// The report. Ends with a newline.
    pub fn to_text(&self, layout: &Layout) -> String {
        let mut text = String::new();
        let all = self.outcome.findings.len();
        for (at, (finding, trace)) in self.outcome.findings.iter().zip(self.traces).enumerate() {
            let number =
                if all > 1 { format!("error {} of {all}: ", at + 1) } else { String::new() };
            text += &wrapped(&(number + &headline(&finding.failure)), layout);
            if at < MOST_TRACES {
                text += &trace.to_text(layout);
                text.push('\n');
            }
            text += &self.schedule(finding, trace, layout);
            text.push('\n');
        }
        if all == 0 {
            text += &match self.outcome.verdict {
                Verdict::Ok => paint(layout.style.good, "ok: no error"),
                _ => paint(layout.style.alert, "incomplete: no error so far"),
            };
            text += "\n\n";
        }
        for (label, line) in summary(self) {
            text += &row(label, &line, layout);
            if label == "searched" {
                text += &bounds(self.outcome, layout);
            }
        }
        text
    }

    /// The schedule of a finding and the command that replays it.
    fn schedule(&self, finding: &Finding, trace: &Trace, layout: &Layout) -> String {
        let mut text = String::new();
        let steps = counted(finding.schedule.steps().len() as u64, "step");
        let preemptions = match self.outcome.memory {
            // The finding counts both.
            MemoryModel::Weak => {
                // Only a search with increasing bounds knows that there is no simpler schedule.
                let needs = if finding.shrunk.is_some_and(|it| it.fewest) { "needs " } else { "" };
                let preemptions = counted(trace.preemptions().into(), "preemption");
                format!("{needs}{preemptions} and {}", trace.stale_words())
            }
            _ => counted(finding.preemptions.into(), "preemption"),
        };
        text += &row(
            "schedule",
            &format!("{steps}, {preemptions}{}", simplicity(finding, self.outcome.memory)),
            layout,
        );
        let token = token::token(&finding.schedule, &Ending::of(Some(&finding.failure)));
        if token.len() > LONGEST_TOKEN {
            text += &row(
                "replay",
                "the schedule is too long for a token: save it in a file (--save-schedule, \
                 PREEMPT_SAVE_SCHEDULE)",
                layout,
            );
        } else {
            // Never wrapped, so that it can be copied.
            let label = paint(layout.style.name, format!("{:8}", "replay"));
            text += &format!("  {label}  {}\n", self.replay.of(&token));
        }
        text
    }
}

/// The failure, above its trace.
fn wrapped(headline: &str, layout: &Layout) -> String {
    let lines = match layout.headline {
        Headline::Wrapped => wrap(headline, layout.width.saturating_sub(2)).join("\n  "),
        Headline::Whole => headline.to_owned(),
    };
    paint(layout.style.bad, lines) + "\n\n"
}

/// Whether simpler schedules of a finding exist, as far as it is known.
fn simplicity(finding: &Finding, memory: MemoryModel) -> String {
    // Under weak memory a finding counts stale accesses as preemptions.
    let stale = if memory == MemoryModel::Weak { " or stale accesses" } else { "" };
    let Some(Shrunk { steps, preemptions, executions, fewest }) = finding.shrunk else {
        return String::new();
    };
    let now = (finding.schedule.steps().len(), finding.preemptions);
    let mut text = String::new();
    if now != (steps, preemptions) {
        let (steps, preemptions) =
            (counted(steps as u64, "step"), counted(preemptions.into(), "preemption"));
        text += &format!("; found with {steps}, {preemptions}{stale}");
    }
    match (fewest, now.1) {
        (true, 0) => {}
        (true, _) => {
            text += &format!(
                "; minimal: no schedule with fewer preemptions{stale} reproduces this failure"
            )
        }
        (false, _) => {
            text += &format!(
                "; the best of {}, there may be simpler ones",
                counted(executions, "execution")
            )
        }
    }
    text
}

/// Coverage, strategy and cost: lines with their labels.
pub(crate) fn summary(checked: &CheckReport<'_>) -> Vec<(&'static str, String)> {
    let mut lines = vec![("covered", checked.outcome.guarantee())];
    // If the main search has covered everything or found an error, its line says more.
    if let (Some(scouted), Verdict::Incomplete) = (checked.scouted, checked.outcome.verdict) {
        lines.push((
            "scouted",
            format!("simple errors, for {}: {}", time(scouted.elapsed), scouted.guarantee()),
        ));
    }
    lines.push(("searched", searched(checked)));
    lines.extend(checked.chosen.map(|chosen| ("chosen", chosen.to_owned())));
    lines.extend(
        checked.unreached.as_ref().and_then(Unreached::to_line).map(|line| ("unreached", line)),
    );
    lines.push(("cost", cost(checked)));
    lines.extend(checked.outcome.rerun.map(|took| ("rerun", rerun(took, checked))));
    lines
}

fn searched(checked: &CheckReport<'_>) -> String {
    let (plan, seen) = (checked.plan, &checked.outcome.coverage);
    if let Some(tally) = &checked.outcome.tally {
        return executed(plan, tally, seen.depth);
    }
    let mut text = format!(
        "{}, {}, depth {}; {}, {} store",
        counted(seen.states, "state"),
        counted(seen.transitions, "transition"),
        seen.depth,
        plan.entry().name,
        plan.store.name(),
    );
    if plan.jobs > 1 {
        text += &format!(", {} jobs", plan.jobs);
    }
    text
}

/// The work of a search over executions.
fn executed(plan: &Plan, tally: &Tally, depth: u32) -> String {
    let mut parts = vec![counted(tally.executions, "execution")];
    parts.extend((tally.cut > 0).then(|| format!("{} cut", counted(tally.cut, "execution"))));
    parts.extend((tally.discarded > 0).then(|| format!("{} discarded", tally.discarded)));
    parts.extend(tally.traces.map(|traces| counted(traces, "trace")));
    parts.extend(tally.states.map(|states| counted(states, "state")));
    parts.push(counted(tally.steps, "step"));
    let mut text = format!("{}, depth {depth}; {}", parts.join(", "), plan.entry().name);
    if plan.points == Points::Sync {
        text += ", points at synchronisation";
    }
    match plan.order.cache() {
        Some(cache) => text += &format!(", cache {}", cache.name()),
        None if plan.order.samples() => text += &format!(", seed {}", plan.seed),
        None => {}
    }
    text
}

/// The time for which one worker searched again after several, and how to avoid it.
fn rerun(took: Duration, checked: &CheckReport<'_>) -> String {
    format!(
        "{} of this: 1 worker searched again after {}, so that this report is the same for every \
         number of workers; {} reports whichever error they find first",
        time(took),
        checked.plan.jobs,
        checked.first
    )
}

fn cost(checked: &CheckReport<'_>) -> String {
    let outcome = checked.outcome;
    let mut parts = vec![time(outcome.elapsed)];
    let states = outcome.coverage.states;
    // The states are those of the main search, and so is the time.
    let proper = outcome
        .elapsed
        .saturating_sub(checked.scouted.map(|scouted| scouted.elapsed).unwrap_or_default());
    if proper.as_millis() >= 100 {
        let (count, what) =
            outcome.tally.map_or((states, "states"), |tally| (tally.executions, "executions"));
        parts.push(rate(count, proper).replace("/s", &format!(" {what}/s")));
    }
    parts.extend(checked.peak_memory.map(bytes));
    if outcome.spilled_bytes > 0 {
        parts.push(format!("{} on disk", bytes(outcome.spilled_bytes)));
    }
    if states >= MANY_STATES && outcome.tally.is_none() {
        parts.push(format!("{:.1} bytes per state", outcome.store_bytes as f64 / states as f64));
    }
    parts.join(", ")
}

/// The coverage that each bound added, if there are several.
fn bounds(outcome: &Outcome, layout: &Layout) -> String {
    let mut label = "bounds";
    let mut text = String::new();
    for line in
        bounds::table(&outcome.bounds).filter(|_| outcome.bounds.len() > 1).unwrap_or_default()
    {
        text += &format!("  {}  {line}\n", paint(layout.style.name, format!("{label:8}")));
        label = "";
    }
    text
}

/// A labelled line, wrapped and indented if it is long.
pub fn row(label: &str, text: &str, layout: &Layout) -> String {
    let lines = wrap(text, layout.width.saturating_sub(12));
    let label = paint(layout.style.name, format!("{label:8}"));
    format!("  {label}  {}\n", lines.join(&format!("\n{:12}", "")))
}

/// The variables at the end of an execution, one on a line.
pub fn variables(trace: &Trace, layout: &Layout) -> String {
    let names = trace.variables.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    let lines = trace.variables.iter().map(|(name, value)| {
        let value = wrap(&clean(value), layout.width.saturating_sub(names + 5));
        format!("  {name:names$} = {}\n", value.join(&format!("\n{:1$}", "", names + 5)))
    });
    lines.collect()
}

/// The steps that can be taken in a state, numbered from 1, each with the name of its thread.
pub fn offer(steps: &[(String, Narration)], layout: &Layout) -> String {
    let names = steps.iter().map(|(name, _)| width(name)).max().unwrap_or(0);
    let lines = steps.iter().enumerate().map(|(at, (name, narration))| {
        let place =
            narration.site.as_ref().map(|site| format!("line {}: ", site.line)).unwrap_or_default();
        let name = paint(layout.style.name, format!("{:names$}", clean(name)));
        let effects = clean(&narration.effects.join(", "));
        let effects = if effects.is_empty() {
            effects
        } else {
            paint(layout.style.effect, format!("  // {effects}"))
        };
        format!("{:>3}  {name}  {place}{}{effects}\n", at + 1, clean(&narration.source))
    });
    lines.collect()
}
