//! Source texts and spans.

use std::ops::Range;
use std::sync::Arc;

use preempt_system::Site;

/// A half-open range of bytes of one source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: u32,
    /// The byte after the last.
    pub end: u32,
}

impl Span {
    /// The bytes from `start` to before `end`.
    pub fn new(start: usize, end: usize) -> Span {
        Span { start: start as u32, end: end as u32 }
    }

    /// The smallest span that contains both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// The span as a range of byte offsets.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A named source text.
#[derive(Clone, Debug)]
pub struct Source {
    /// The name of the file, as the user gave it.
    pub name: Arc<str>,
    /// The text.
    pub text: Arc<str>,
    /// The offsets at which lines start.
    lines: Arc<[u32]>,
    /// Whether every character is one byte. Then columns need not be counted, which would take
    /// quadratic time for a model in a single line.
    ascii: bool,
}

impl Source {
    /// A source text of at most 4 GiB.
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Source {
        let (name, text) = (name.into(), text.into());
        let starts =
            text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(at, _)| at as u32 + 1);
        let lines = std::iter::once(0).chain(starts).collect();
        let ascii = text.is_ascii();
        Source { name, text, lines, ascii }
    }

    /// The start of `span` as `file:line:column`.
    pub fn site(&self, span: Span) -> Site {
        let line = self.lines.partition_point(|&start| start <= span.start) - 1;
        let before = self.text.get(self.lines[line] as usize..span.start as usize).unwrap_or("");
        let column = if self.ascii { before.len() } else { before.chars().count() };
        Site { file: self.name.clone(), line: line as u32 + 1, column: column as u32 + 1 }
    }

    /// The text of `span`.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or("")
    }
}
