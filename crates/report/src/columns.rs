//! The columns of a trace: one for each thread if they fit, otherwise one for all that names the thread.
//!
//! What a step says is its source text and, behind `//`, what it observed and changed: beside the source if there is room,
//! below it otherwise.

use preempt_system::ThreadId;

use crate::style::{Style, paint};
use crate::wrap::{width, wrap, wrap_list};

/// What stands in a column for one step.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) source: String,
    pub(crate) effects: Vec<String>,
}

/// One column.
#[derive(Clone, Copy, Debug, Default)]
struct Column {
    width: usize,
    /// Where notes begin that stand beside their source.
    notes: usize,
}

/// How much room a column asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Demand {
    /// Every step on one line.
    OneLine,
    /// Notes below, but no line broken.
    TwoLines,
    /// As little as is bearable.
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
/// What a note begins with.
const MARK: &str = "// ";
/// The least width to break lines in.
const LEAST: usize = 26;

impl Columns {
    /// Columns for these threads and these steps, in `room` characters if possible.
    pub(crate) fn new(threads: Vec<(ThreadId, String)>, cells: &[(ThreadId, Cell)], room: usize) -> Columns {
        let column = |(thread, name): &(ThreadId, String), demand| {
            Column::new(width(name), cells.iter().filter(|(of, _)| of == thread).map(|(_, cell)| cell), demand)
        };
        for demand in [Demand::OneLine, Demand::TwoLines, Demand::Little] {
            let mut columns: Vec<Column> = threads.iter().map(|thread| column(thread, demand)).collect();
            if let Some(free) = room.checked_sub(total(&columns)) {
                let wanted = threads.iter().map(|thread| column(thread, Demand::OneLine).width).collect();
                widen(&mut columns, wanted, free);
                return Columns { threads, columns, names: None };
            }
        }
        let names = threads.iter().map(|(_, name)| width(name)).max().unwrap_or(0).max(width("thread")).min(room / 3);
        let mut all = Column::new(0, cells.iter().map(|(_, cell)| cell), Demand::OneLine);
        all.width = room.saturating_sub(names + SPACE).max(LEAST);
        Columns { threads, columns: vec![all], names: Some(names) }
    }

    /// The width of all columns together.
    pub(crate) fn width(&self) -> usize {
        self.names.map_or(0, |names| names + SPACE) + total(&self.columns)
    }

    /// The line above the first step.
    pub(crate) fn heading(&self, style: &Style) -> String {
        if self.names.is_some() {
            return paint(style.faint, "thread");
        }
        let names = self.threads.iter().zip(&self.columns);
        names.map(|((_, name), column)| padded(&paint(style.name, name), width(name), column.width + GAP)).collect()
    }

    /// The lines of a step. `last` is the thread that moved before, if it was shown.
    pub(crate) fn lines(&self, thread: ThreadId, cell: &Cell, last: Option<ThreadId>, style: &Style) -> Vec<String> {
        let at = self.threads.iter().position(|(of, _)| *of == thread).expect("every thread that moves has a column");
        let Some(names) = self.names else {
            let before: usize = self.columns[..at].iter().map(|column| column.width + GAP).sum();
            return self.columns[at].lines(cell, style).iter().map(|line| format!("{:before$}{line}", "")).collect();
        };
        let name = if last == Some(thread) { String::new() } else { shortened(&self.threads[at].1, names) };
        let lines = self.columns[0].lines(cell, style);
        let lines = lines.iter().enumerate().map(|(at, line)| {
            let name = if at == 0 { name.as_str() } else { "" };
            format!("{}{line}", padded(&paint(style.name, name), width(name), names + SPACE))
        });
        lines.collect()
    }
}

impl Column {
    fn new<'c>(name: usize, cells: impl Iterator<Item = &'c Cell> + Clone, demand: Demand) -> Column {
        let sources = cells.clone().map(|cell| width(&cell.source)).max().unwrap_or(0);
        let notes = cells.clone().map(Cell::note_width).max().unwrap_or(0);
        let longest = cells.flat_map(|cell| &cell.effects).map(|effect| width(MARK) + width(effect) + 1).max();
        let two_lines = sources.max(longest.unwrap_or(0));
        let wanted = match demand {
            Demand::OneLine if notes > 0 => sources + SPACE + notes,
            Demand::OneLine | Demand::TwoLines => two_lines,
            Demand::Little => two_lines.min(LEAST),
        };
        Column { width: wanted.max(name), notes: sources + SPACE }
    }

    /// What `cell` looks like here.
    fn lines(&self, cell: &Cell, style: &Style) -> Vec<String> {
        let note = cell.note_width();
        if note == 0 {
            return wrap(&cell.source, self.width);
        }
        let source = width(&cell.source);
        // Aligned with the other notes of the column, or at least on the same line.
        for at in [self.notes, source + SPACE] {
            if at >= source + SPACE && at + note <= self.width {
                let note = paint(style.effect, format!("{MARK}{}", cell.effects.join(", ")));
                return vec![format!("{}{note}", padded(&cell.source, source, at))];
            }
        }
        let mut lines = wrap(&cell.source, self.width);
        let notes = wrap_list(&cell.effects, self.width.saturating_sub(width(MARK)));
        lines.extend(notes.into_iter().map(|note| paint(style.effect, format!("{MARK}{note}"))));
        lines
    }
}

impl Cell {
    /// The width of its note on one line.
    fn note_width(&self) -> usize {
        let texts: usize = self.effects.iter().map(|effect| width(effect)).sum();
        if self.effects.is_empty() { 0 } else { width(MARK) + texts + 2 * (self.effects.len() - 1) }
    }
}

fn total(columns: &[Column]) -> usize {
    columns.iter().map(|column| column.width + GAP).sum::<usize>().saturating_sub(GAP)
}

/// Gives `free` characters to the columns that want to be wider, the narrowest first.
fn widen(columns: &mut [Column], wanted: Vec<usize>, free: usize) {
    for _ in 0..free {
        let needy = columns.iter_mut().zip(&wanted).filter(|(column, wanted)| column.width < **wanted);
        match needy.min_by_key(|(column, _)| column.width) {
            Some((column, _)) => column.width += 1,
            None => break,
        }
    }
}

/// `text`, which is seen as `seen` characters, with spaces up to `to`.
fn padded(text: &str, seen: usize, to: usize) -> String {
    format!("{text}{:1$}", "", to.saturating_sub(seen))
}

fn shortened(name: &str, room: usize) -> String {
    if width(name) <= room { name.to_owned() } else { name.chars().take(room.saturating_sub(1)).chain(['…']).collect() }
}
