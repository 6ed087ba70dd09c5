//! The format of figures in the tables.

use super::meter::{Ended, Run};
pub use crate::table::{Table, absent, grouped};

/// The executions of a search: `+` if it was stopped, `!` if it failed.
pub fn executions(run: Option<&Run>) -> String {
    run.map_or_else(absent, |run| {
        let mark = match run.ended {
            Ended::Complete => "",
            Ended::Capped => "+",
            Ended::Failed(_) => "!",
        };
        grouped(run.first) + mark
    })
}

/// Thousands per second.
pub fn thousands(rate: Option<f64>) -> String {
    rate.map_or_else(absent, |rate| format!("{:.0}", rate / 1e3))
}

/// A ratio.
pub fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(absent, |ratio| {
        if ratio < 10.0 { format!("{ratio:.1}") } else { format!("{ratio:.0}") }
    })
}
