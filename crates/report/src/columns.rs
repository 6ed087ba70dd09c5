//! The columns of a trace: one for each thread if they fit, otherwise one for all threads, which
//! names the thread.
//!
//! A step consists of its source text and a note after `//`, with the values that it read and
//! changed. The note is beside the source if there is room, below it otherwise.

use preempt_system::ThreadId;

use crate::style::{Style, paint};
use crate::wrap::{shortened, width, wrap, wrap_list};

/// The contents of a column for one step.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) source: String,
    pub(crate) effects: Vec<String>,
}

/// One column.
#[derive(Clone, Copy, Debug, Default)]
struct Column {
    width: usize,
    /// The position at which notes beside their source begin.
    notes: usize,
}

/// The widths that a column can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Demand {
    /// Every step on one line.
    OneLine,
    /// Notes below, but no line wrapped.
    TwoLines,
    /// Long sources wrapped, but no note. With less room, one column for all threads is easier to
    /// read.
    Little,
}

/// The columns of one trace.
#[derive(Clone, Debug)]
pub(crate) struct Columns {
    threads: Vec<(ThreadId, String)>,
    /// One for each thread, or one for all.
    columns: Vec<Column>,
    /// With one column for all: the characters for the name before it.
    names: Option<usize>,
}

/// The space between columns.
const GAP: usize = 3;
/// The space between a source and its note.
const SPACE: usize = 2;
/// The mark before a note.
const MARK: &str = "// ";
/// The most lines of a source.
const MOST_LINES: usize = 2;
/// The minimal width for wrapped lines.
const LEAST: usize = 32;

impl Columns {
    /// Columns for these threads and these steps, in `room` characters if possible.
    pub(crate) fn new(
        threads: Vec<(ThreadId, String)>,
        cells: &[(ThreadId, Cell)],
        room: usize,
    ) -> Columns {
        let of = |thread: ThreadId| {
            cells.iter().filter(move |(of, _)| *of == thread).map(|(_, cell)| cell)
        };
        for demand in [Demand::OneLine, Demand::TwoLines, Demand::Little] {
            let wanted = |demand| {
                threads
                    .iter()
                    .map(move |(thread, name)| demanded(of(*thread), demand).max(width(name)))
            };
            let mut widths: Vec<usize> = wanted(demand).collect();
            if let Some(free) = room.checked_sub(total(&widths)) {
                widen(&mut widths, &wanted(Demand::OneLine).collect::<Vec<_>>(), free);
                let columns = threads
                    .iter()
                    .zip(widths)
                    .map(|((thread, _), width)| Column::new(of(*thread), width));
                return Columns { columns: columns.collect(), threads, names: None };
            }
        }
        let names = threads
            .iter()
            .map(|(_, name)| width(name))
            .max()
            .unwrap_or(0)
            .max(width("thread"))
            .min(room / 3);
        let all = Column::new(
            cells.iter().map(|(_, cell)| cell),
            room.saturating_sub(names + SPACE).max(LEAST),
        );
        Columns { threads, columns: vec![all], names: Some(names) }
    }

    /// The width of all columns together.
    pub(crate) fn width(&self) -> usize {
        self.names.map_or(0, |names| names + SPACE)
            + total(&self.columns.iter().map(|column| column.width).collect::<Vec<_>>())
    }

    /// The heading above the first step.
    pub(crate) fn heading(&self, style: &Style) -> String {
        if self.names.is_some() {
            return paint(style.faint, "thread");
        }
        let names = self.threads.iter().zip(&self.columns);
        names
            .map(|((_, name), column)| {
                padded(&paint(style.name, name), width(name), column.width + GAP)
            })
            .collect()
    }

    /// The lines of a step. `last` is the thread that moved before, if it was shown.
    pub(crate) fn lines(
        &self,
        thread: ThreadId,
        cell: &Cell,
        last: Option<ThreadId>,
        style: &Style,
    ) -> Vec<String> {
        let at = self
            .threads
            .iter()
            .position(|(of, _)| *of == thread)
            .expect("every thread that moves has a column");
        let Some(names) = self.names else {
            let before: usize = self.columns[..at].iter().map(|column| column.width + GAP).sum();
            return self.columns[at]
                .lines(cell, style)
                .iter()
                .map(|line| format!("{:before$}{line}", ""))
                .collect();
        };
        let name = if last == Some(thread) {
            String::new()
        } else {
            shortened(&self.threads[at].1, names)
        };
        let lines = self.columns[0].lines(cell, style);
        let lines = lines.iter().enumerate().map(|(at, line)| {
            let name = if at == 0 { name.as_str() } else { "" };
            format!("{}{line}", padded(&paint(style.name, name), width(name), names + SPACE))
        });
        lines.collect()
    }
}

impl Column {
    /// A column of this width for these steps. Notes are aligned where the most of them have room.
    fn new<'c>(cells: impl Iterator<Item = &'c Cell> + Clone, width: usize) -> Column {
        let mut places: Vec<usize> =
            cells.clone().map(|cell| cell.source_width() + SPACE).collect();
        places.sort_unstable();
        places.dedup();
        let fitting = |at: usize| {
            cells
                .clone()
                .filter(|cell| cell.source_width() + SPACE <= at && at + cell.note_width() <= width)
                .count()
        };
        let notes = places.into_iter().rev().max_by_key(|&at| fitting(at)).unwrap_or(0);
        Column { width, notes }
    }

    /// The source, on two lines at most. A reader who wants to see more has the file.
    fn source(&self, cell: &Cell) -> Vec<String> {
        let mut lines = wrap(&cell.source, self.width);
        if lines.len() > MOST_LINES {
            lines.truncate(MOST_LINES);
            let last = &mut lines[MOST_LINES - 1];
            *last = shortened(&format!("{last} …"), self.width);
        }
        lines
    }

    /// The lines of `cell` in this column.
    fn lines(&self, cell: &Cell, style: &Style) -> Vec<String> {
        let note = cell.note_width();
        if note == 0 {
            return self.source(cell);
        }
        let source = cell.source_width();
        // Aligned with the other notes of the column, or at least on the same line.
        for at in [self.notes, source + SPACE] {
            if at >= source + SPACE && at + note <= self.width {
                let note = paint(style.effect, format!("{MARK}{}", cell.effects.join(", ")));
                return vec![format!("{}{note}", padded(&cell.source, source, at))];
            }
        }
        let mut lines = self.source(cell);
        let notes = wrap_list(&cell.effects, self.width.saturating_sub(width(MARK)));
        lines.extend(notes.into_iter().map(|note| paint(style.effect, format!("{MARK}{note}"))));
        lines
    }
}

impl Cell {
    fn source_width(&self) -> usize {
        width(&self.source)
    }

    /// The width of the note on one line.
    fn note_width(&self) -> usize {
        let texts: usize = self.effects.iter().map(|effect| width(effect)).sum();
        if self.effects.is_empty() { 0 } else { width(MARK) + texts + 2 * (self.effects.len() - 1) }
    }
}

/// The width that a column needs for these steps.
fn demanded<'c>(cells: impl Iterator<Item = &'c Cell> + Clone, demand: Demand) -> usize {
    let sources = cells.clone().map(Cell::source_width).max().unwrap_or(0);
    let notes = cells.clone().map(Cell::note_width).max().unwrap_or(0);
    // With a trailing comma.
    let effects = cells
        .flat_map(|cell| &cell.effects)
        .map(|effect| width(MARK) + width(effect) + 1)
        .max()
        .unwrap_or(0);
    match demand {
        Demand::OneLine if notes > 0 => sources + SPACE + notes,
        Demand::OneLine | Demand::TwoLines => sources.max(effects),
        Demand::Little => sources.min(LEAST).max(effects),
    }
}

fn total(widths: &[usize]) -> usize {
    widths.iter().map(|width| width + GAP).sum::<usize>().saturating_sub(GAP)
}

/// Gives `free` characters to the columns that want to be wider, the narrowest first.
fn widen(widths: &mut [usize], wanted: &[usize], free: usize) {
    for _ in 0..free {
        let needy = widths.iter_mut().zip(wanted).filter(|(width, wanted)| **width < **wanted);
        match needy.map(|(width, _)| width).min() {
            Some(width) => *width += 1,
            None => break,
        }
    }
}

/// `text`, which is seen as `seen` characters, with spaces up to `to`.
fn padded(text: &str, seen: usize, to: usize) -> String {
    format!("{text}{:1$}", "", to.saturating_sub(seen))
}
