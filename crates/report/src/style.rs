//! Colours and layout of reports.

use std::fmt;

use anstyle::{AnsiColor, Effects};

/// The colours of a report. [`Style::default`] has no colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Errors.
    pub bad: anstyle::Style,
    /// Success.
    pub good: anstyle::Style,
    /// Warnings and preemptions.
    pub alert: anstyle::Style,
    /// The names of threads, and headings.
    pub name: anstyle::Style,
    /// Numbers and positions.
    pub faint: anstyle::Style,
    /// The values that a step reads and changes.
    pub effect: anstyle::Style,
}

impl Style {
    /// The colours for a terminal.
    pub fn coloured() -> Style {
        let bold = |colour: AnsiColor| colour.on_default().effects(Effects::BOLD);
        Style {
            bad: bold(AnsiColor::Red),
            good: bold(AnsiColor::Green),
            alert: AnsiColor::Yellow.on_default(),
            name: anstyle::Style::new().effects(Effects::BOLD),
            faint: anstyle::Style::new().effects(Effects::DIMMED),
            effect: AnsiColor::Cyan.on_default(),
        }
    }
}

/// `text` in `style`.
pub(crate) fn paint(style: anstyle::Style, text: impl fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// The format of the failure above a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headline {
    /// On as many lines as it needs.
    Wrapped,
    /// On one line, however long it is, so that a search for a part of it succeeds.
    Whole,
}

/// Whether a trace names its file, if all its positions are in one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileNames {
    /// It does not: the user has named the file, for example on the command line.
    Implied,
    /// It does, unless the failure above the trace names the file.
    Shown,
}

/// The steps of a trace that have their own lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folding {
    /// All, but for repetitions.
    Repetitions,
    /// Those of the program's own code. What a statement does in libraries is one line.
    Statements,
}

/// The layout of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The colours.
    pub style: Style,
    /// The most characters on a line.
    pub width: usize,
    /// The format of the failure above a trace.
    pub headline: Headline,
    /// The most steps of a trace that are shown, the last ones rather than the first ones.
    pub most_steps: usize,
    /// Whether a trace names its file, if all its positions are in one.
    pub files: FileNames,
    /// The steps that have their own lines.
    pub folding: Folding,
}

impl Default for Layout {
    /// Without colours, 80 characters wide.
    fn default() -> Layout {
        Layout {
            style: Style::default(),
            width: 80,
            headline: Headline::Wrapped,
            most_steps: 300,
            files: FileNames::Implied,
            folding: Folding::Repetitions,
        }
    }
}
