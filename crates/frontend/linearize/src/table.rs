//! A history as a table: a column for each thread, a line where everything above had returned
//! before anything below was called.

use crate::history::{Answer, History};

/// The texts of a history.
#[derive(Clone, Copy, Debug)]
pub struct Labels<'a> {
    /// The name of each thread.
    pub threads: &'a [String],
    /// The text of each call: `push(1)`.
    pub calls: &'a [String],
    /// The text of the result of each call, if it returned.
    pub results: &'a [Option<String>],
}

/// The history as lines of text, without indentation. Where the order of two overlapping stretches
/// cannot be drawn as a line, the later call names those that had returned before it.
pub fn lines(history: &History, labels: Labels<'_>) -> Vec<String> {
    let threads = labels.threads.len();
    let mut cuts = quiet_sets(history);
    cuts.push(u64::MAX);
    let (mut rows, mut above): (Vec<Vec<String>>, u64) = (Vec::new(), 0);
    let mut rules = Vec::new();
    for cut in cuts {
        let mut columns: Vec<Vec<String>> = vec![Vec::new(); threads];
        for call in (0..history.calls()).filter(|&call| (cut & !above) >> call & 1 == 1) {
            columns[history.thread(call)].push(cell(history, labels, call, above));
        }
        let height = columns.iter().map(Vec::len).max().unwrap_or(0);
        for row in 0..height {
            let cell = |column: &Vec<String>| column.get(row).cloned().unwrap_or_default();
            rows.push(columns.iter().map(cell).collect());
        }
        above |= cut;
        rules.push(rows.len());
    }
    // No line after the last calls.
    rules.retain(|&row| row > 0 && row < rows.len());
    layout(labels.threads, &rows, &rules)
}

/// The sets of calls that had all returned before any other call was made, smallest first.
fn quiet_sets(history: &History) -> Vec<u64> {
    let mut sets = history.order(crate::Criterion::Quiescent);
    sets.retain(|&set| set != 0);
    sets.sort_by_key(|set| set.count_ones());
    sets.dedup();
    sets
}

/// The text of one call. `above` are the calls that are drawn above a line, so that their order
/// needs no words.
fn cell(history: &History, labels: Labels<'_>, call: usize, above: u64) -> String {
    let label = &labels.calls[call];
    let text = match (history.answer(call), &labels.results[call]) {
        (Answer::NotCalled, _) => format!("({label} was not called)"),
        (Answer::Returned(_), Some(result)) => format!("{label} = {result}"),
        _ => format!("{label} never returns"),
    };
    let others = (0..history.calls()).filter(|&other| {
        history.precedes(other, call)
            && history.thread(other) != history.thread(call)
            && above >> other & 1 == 0
    });
    let others: Vec<&str> = others.map(|other| labels.calls[other].as_str()).collect();
    match &others[..] {
        [] => text,
        others => format!("{text}  [after {}]", others.join(", ")),
    }
}

/// Aligns the columns and draws the rules before the rows with these numbers.
fn layout(heads: &[String], rows: &[Vec<String>], rules: &[usize]) -> Vec<String> {
    let width = |column: usize| {
        let cells = rows.iter().map(|row| row[column].chars().count());
        cells.chain([heads[column].chars().count()]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..heads.len()).map(width).collect();
    let line = |cells: &[String]| {
        let cells = cells.iter().zip(&widths);
        let padded: Vec<String> = cells
            .map(|(cell, width)| format!("{cell}{}", " ".repeat(width - cell.chars().count())))
            .collect();
        padded.join("    ").trim_end().to_owned()
    };
    let total = widths.iter().sum::<usize>() + 4 * heads.len().saturating_sub(1);
    let mut lines = vec![line(heads)];
    for (number, row) in rows.iter().enumerate() {
        if rules.contains(&number) {
            let rule = "─".repeat(total.max(20));
            lines.push(format!("{rule}  above returned before below was called"));
        }
        lines.push(line(row));
    }
    lines
}
