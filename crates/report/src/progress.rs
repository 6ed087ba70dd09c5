//! The line that says how far a search has come.

use preempt_explore::Progress;

use crate::number::{bytes, counted, grouped, rate, time};

/// `now` in one line. The rate is that since `before`, or of the whole search.
pub fn line(now: &Progress, before: Option<&Progress>) -> String {
    let begun = Progress::default();
    // After a restart the numbers begin with 0 again.
    let before =
        before.filter(|before| before.restarts == now.restarts && before.elapsed < now.elapsed).unwrap_or(&begun);
    let found = now.states.saturating_sub(before.states);
    let mut line = format!(
        "{}: {} ({}), depth {}, {} waiting, {}",
        time(now.elapsed),
        counted(now.states, "state"),
        rate(found, now.elapsed.saturating_sub(before.elapsed)),
        grouped(now.depth.into()),
        grouped(now.frontier),
        bytes(now.store_bytes as u64),
    );
    if now.failures > 0 {
        line += &format!(", {}", counted(now.failures, "error"));
    }
    if now.restarts > 0 {
        line += &format!(", begun anew with larger states {}", counted(now.restarts.into(), "time"));
    }
    line
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_rate_is_the_recent_one() {
        let at = |seconds, states| Progress {
            states,
            depth: 12,
            frontier: 3456,
            store_bytes: 24 << 20,
            elapsed: Duration::from_secs(seconds),
            ..Progress::default()
        };
        let now = at(20, 3_000_000);
        assert_eq!(line(&now, None), "20.0 s: 3,000,000 states (150 thousand/s), depth 12, 3,456 waiting, 24.0 MiB");
        assert!(line(&now, Some(&at(10, 2_000_000))).contains("(100 thousand/s)"));
        let anew = Progress { restarts: 1, ..at(20, 1_000_000) };
        assert!(
            line(&anew, Some(&at(10, 2_000_000))).ends_with(
                "(50.0 thousand/s), depth 12, 3,456 waiting, 24.0 MiB, begun anew with larger states 1 time"
            )
        );
    }
}
