//! The progress line of a search, with an estimate of the remaining work if there is one.
//!
//! It consists of parts, the most important first. A line that is too wide for the terminal loses
//! whole parts at its end.

use std::time::Duration;

use preempt_explore::{Estimate, Progress};

use crate::number::{bytes, counted, grouped, rate, roughly, time};

/// The characters between the ends of a bar.
const BAR: usize = 20;

/// `now` in one line. The rate is the one since `before`, or that of the whole search.
pub fn line(now: &Progress, before: Option<&Progress>) -> String {
    parts(now, before).join(", ")
}

/// The same in at most `width` characters, with a bar in front if the remaining work can be
/// estimated.
pub fn bar_line(now: &Progress, before: Option<&Progress>, width: usize) -> String {
    let mut line = now.estimate.map(|estimate| bar(&estimate) + " ").unwrap_or_default();
    for (number, part) in parts(now, before).into_iter().enumerate() {
        let part = if number == 0 { part } else { format!(", {part}") };
        if line.chars().count() + part.chars().count() > width {
            break;
        }
        line += &part;
    }
    line.chars().take(width).collect()
}

/// The completed part as a bar: `[######··············] 30 %`.
fn bar(estimate: &Estimate) -> String {
    let all = (estimate.done + estimate.remaining).max(1);
    let part = estimate.done as f64 / all as f64;
    let full = (part * BAR as f64) as usize;
    format!("[{}{}] {:>2.0} %", "#".repeat(full), "·".repeat(BAR - full), (part * 100.0).floor())
}

fn parts(now: &Progress, before: Option<&Progress>) -> Vec<String> {
    let begun = Progress::default();
    // After a restart, the numbers start at 0 again.
    let before = before
        .filter(|before| before.restarts == now.restarts && before.elapsed < now.elapsed)
        .unwrap_or(&begun);
    let lately = now.elapsed.saturating_sub(before.elapsed);
    let (count, noun) =
        if now.executions > 0 { (now.executions, "execution") } else { (now.states, "state") };
    let since = if now.executions > 0 { before.executions } else { before.states };
    let new = count.saturating_sub(since);
    let mut parts =
        vec![format!("{}: {} ({})", time(now.elapsed), counted(count, noun), rate(new, lately))];
    if let Some(bound) = now.bound {
        parts[0] += &format!(" at bound {bound}");
    }
    if let Some(estimate) = &now.estimate {
        parts.push(left(estimate, now, lately, new));
    }
    parts.push(format!("{} waiting{}", grouped(now.frontier), trend(now, before)));
    parts.push(format!("depth {}", grouped(now.depth.into())));
    if now.executions > 0 && now.states > 0 {
        parts.push(counted(now.states, "state"));
    }
    parts.push(bytes(now.store_bytes as u64));
    if let Some(next) = now.estimate.and_then(|estimate| estimate.next) {
        parts.push(format!("then about {} at the next bound", roughly(next)));
    }
    if now.estimate.is_none() {
        parts.push("the end is not known".into());
    }
    if now.failures > 0 {
        parts.insert(1, counted(now.failures, "error"));
    }
    if now.restarts > 0 {
        parts
            .push(format!("restarted with larger states {}", counted(now.restarts.into(), "time")));
    }
    parts
}

/// The remaining work, with its uncertainty, and its time at the current rate.
fn left(estimate: &Estimate, now: &Progress, lately: Duration, new: u64) -> String {
    let Estimate { remaining, least, most, .. } = *estimate;
    let mut text = if least == most {
        format!("{} left", grouped(remaining))
    } else {
        format!("about {} left ({} to {})", roughly(remaining), roughly(least), roughly(most))
    };
    let (new, lately) = if new > 0 { (new, lately) } else { (now.executions, now.elapsed) };
    let seconds = remaining as f64 / new.max(1) as f64 * lately.as_secs_f64();
    // Beyond some weeks, the exact number is irrelevant.
    if seconds < 3e6 {
        text += &format!(", {} at this rate", time(Duration::from_secs_f64(seconds)));
    }
    text
}

/// Whether the frontier grows or shrinks: nothing else is known about the end of a search over
/// states.
fn trend(now: &Progress, before: &Progress) -> &'static str {
    if now.executions > 0 || before.elapsed.is_zero() {
        return "";
    }
    match now.frontier.cmp(&before.frontier) {
        std::cmp::Ordering::Greater => " and growing",
        std::cmp::Ordering::Less => " and shrinking",
        std::cmp::Ordering::Equal => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64, states: u64, frontier: u64) -> Progress {
        Progress {
            states,
            depth: 12,
            frontier,
            store_bytes: 24 << 20,
            elapsed: Duration::from_secs(seconds),
            ..Progress::default()
        }
    }

    fn executing(executions: u64, estimate: Option<Estimate>) -> Progress {
        let store_bytes = 1 << 20;
        Progress { executions, estimate, bound: Some(2), store_bytes, ..at(20, 500, 70) }
    }

    #[test]
    fn a_search_of_states_tells_its_rate_and_its_frontier() {
        let now = at(20, 3_000_000, 3456);
        let known = "24.0 MiB, the end is not known";
        assert_eq!(
            line(&now, None),
            format!("20.0 s: 3,000,000 states (150 thousand/s), 3,456 waiting, depth 12, {known}")
        );
        let growing = line(&now, Some(&at(10, 2_000_000, 3000)));
        assert!(growing.contains("(100 thousand/s), 3,456 waiting and growing"), "{growing}");
        assert!(line(&now, Some(&at(10, 2_000_000, 4000))).contains("waiting and shrinking"));
        let restarted = Progress { restarts: 1, ..at(20, 1_000_000, 3456) };
        let restarted = line(&restarted, Some(&at(10, 2_000_000, 3000)));
        assert!(restarted.contains("(50.0 thousand/s), 3,456 waiting, "), "{restarted}");
        assert!(restarted.ends_with("restarted with larger states 1 time"), "{restarted}");
    }

    #[test]
    fn what_is_left_has_its_uncertainty() {
        let estimate = Estimate {
            done: 2000,
            remaining: 6000,
            least: 2512,
            most: 14_333,
            next: Some(1_234_567),
        };
        assert_eq!(
            line(&executing(12_000, Some(estimate)), None),
            "20.0 s: 12,000 executions (600/s) at bound 2, about 6,000 left (2,500 to 14,000), \
             10.0 s at this rate, 70 waiting, depth 12, 500 states, 1.00 MiB, then about 1.2 \
             million at the next bound"
        );
        let exact = Estimate { done: 400, remaining: 600, least: 600, most: 600, next: None };
        assert!(
            line(&executing(400, Some(exact)), None).contains(", 600 left, 30.0 s at this rate,")
        );
        let endless = Estimate { remaining: u64::MAX, least: 1 << 50, most: u64::MAX, ..exact };
        let endless = line(&executing(400, Some(endless)), None);
        assert!(
            endless.contains("about 1.8·10¹⁹ left") && !endless.contains("at this rate"),
            "{endless}"
        );
        assert!(line(&executing(400, None), None).ends_with("the end is not known"));
        let failed = Progress { failures: 2, ..executing(400, Some(exact)) };
        assert!(line(&failed, None).contains("at bound 2, 2 errors, 600 left"));
    }

    #[test]
    fn a_bar_is_as_full_as_the_work_is_done() {
        let estimate =
            Estimate { done: 2000, remaining: 6000, least: 2512, most: 14_333, next: None };
        let now = executing(12_000, Some(estimate));
        let text = bar_line(&now, None, 200);
        assert!(
            text.starts_with(
                "[#####···············] 25 % 20.0 s: 12,000 executions (600/s) at bound 2, about"
            ),
            "{text}"
        );
        assert!(
            !bar_line(&executing(5, None), None, 200).contains('['),
            "no bar without an estimate"
        );
        let done = Estimate { done: 10, remaining: 0, ..estimate };
        assert!(bar(&done).ends_with("####] 100 %"), "{}", bar(&done));
        // Parts are dropped from the end, and only the first may be truncated.
        let parts = [bar_line(&now, None, 79), bar_line(&now, None, 110)];
        assert!(parts[0].ends_with("at bound 2"), "{parts:?}");
        assert!(
            parts.iter().zip([79, 110]).all(|(text, width)| text.chars().count() <= width),
            "{parts:?}"
        );
        assert_eq!(bar_line(&now, None, 10).chars().count(), 10);
    }
}
