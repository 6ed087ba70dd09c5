//! A writer of program texts: lines and nested blocks.

use std::fmt::Write;

/// The text so far.
#[derive(Default)]
pub(super) struct Text {
    text: String,
    indent: usize,
}

impl Text {
    pub(super) fn line(&mut self, text: impl AsRef<str>) {
        let indent = 4 * self.indent;
        writeln!(self.text, "{:indent$}{}", "", text.as_ref()).expect("a string takes all text");
    }

    /// Opens a block.
    pub(super) fn open(&mut self, head: impl AsRef<str>) {
        self.line(format!("{} {{", head.as_ref()));
        self.indent += 1;
    }

    /// Closes the block.
    pub(super) fn close(&mut self) {
        self.indent -= 1;
        self.line("}");
    }

    /// Opens the other branch of the choice whose block was just closed.
    pub(super) fn or(&mut self) {
        self.text.truncate(self.text.trim_end().len());
        self.text.push_str(" or {\n");
        self.indent += 1;
    }

    pub(super) fn contains(&self, part: &str) -> bool {
        self.text.contains(part)
    }

    pub(super) fn finish(self) -> String {
        self.text
    }
}
