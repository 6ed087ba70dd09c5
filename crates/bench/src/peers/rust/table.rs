//! Tables of text, and how figures stand in them.

use super::meter::{Ended, Run};

/// Columns as wide as what is in them; the first is to the left, the others to the right.
#[derive(Debug)]
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with this head.
    pub fn new<S: Into<String>>(head: impl IntoIterator<Item = S>) -> Table {
        Table { rows: vec![head.into_iter().map(Into::into).collect()] }
    }

    /// One more row.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The text.
    pub fn to_text(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let wide =
            |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> = (0..columns).map(|column| wide(column).unwrap_or(0)).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                match column {
                    0 => line += &format!("{cell:<width$}"),
                    _ => line += &format!("  {cell:>width$}"),
                }
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

/// A number with its thousands apart.
pub fn grouped(n: u64) -> String {
    let digits = n.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The executions to the end of a search: `+` if it was capped, `!` if it failed.
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

/// How many times one thing is another.
pub fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(absent, |ratio| if ratio < 10.0 { format!("{ratio:.1}") } else { format!("{ratio:.0}") })
}

/// What is not there.
pub fn absent() -> String {
    "–".into()
}
