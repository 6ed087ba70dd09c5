//! The output streams: whether they are terminals, their width and colours.

use std::io::{self, IsTerminal as _, Write as _};

use anstream::{AutoStream, ColorChoice};
use preempt_machine::diagnostic;
use preempt_report::{Layout, Style};

use crate::Refused;
use crate::args::ColorArg;

/// Takes colours as the user wants them, from now on.
pub fn colour(when: ColorArg) {
    let choice = match when {
        // The terminal and the environment decide.
        ColorArg::Auto => ColorChoice::Auto,
        ColorArg::Always => ColorChoice::Always,
        ColorArg::Never => ColorChoice::Never,
    };
    choice.write_global();
}

/// The layout of output on stdout.
pub fn layout() -> Layout {
    let stdout = io::stdout();
    let style = match AutoStream::choice(&stdout) {
        ColorChoice::Never => Style::default(),
        _ => Style::coloured(),
    };
    let plain = Layout::default();
    let width = match terminal_size::terminal_size_of(&stdout) {
        Some((terminal_size::Width(width), _)) => usize::from(width).max(plain.width),
        None => plain.width,
    };
    Layout { style, width, ..plain }
}

/// The format of diagnostics on stderr.
pub fn diagnostic_style() -> diagnostic::Style {
    match AutoStream::choice(&io::stderr()) {
        ColorChoice::Never => diagnostic::Style::Plain,
        _ => diagnostic::Style::Coloured,
    }
}

/// Whether a line on stderr can be drawn over, and if so, how wide it may be.
pub fn redrawable() -> Option<usize> {
    let stderr = io::stderr();
    let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    if !stderr.is_terminal() || dumb {
        return None;
    }
    Some(
        terminal_size::terminal_size_of(&stderr)
            .map_or(80, |(terminal_size::Width(width), _)| width.into()),
    )
}

/// Writes to stdout. A closed pipe, as with `head`, is not an error. Any other error is: output
/// would be lost.
pub fn print(text: &str) -> Result<(), Refused> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(unwritten(&error)),
        _ => Ok(()),
    }
}

/// The refusal of a command whose output could not be written.
pub fn unwritten(error: &io::Error) -> Refused {
    Refused::because(format!("cannot write to the standard output: {error}"))
}

/// Writes to stderr.
pub fn complain(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}
