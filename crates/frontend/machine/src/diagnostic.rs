//! Diagnostics: what is wrong with a source text, where, and how to fix it.
//!
//! A [`Diagnostic`] is data; [`render`] turns a list of them into text with the file, the line, a
//! caret and the hint. Nothing here prints.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::source::{Source, Span};

/// At most this many are rendered: for a file that is not a model at all, more would not help.
const MAX_RENDERED: usize = 50;

/// An error in a source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The place of the error.
    pub span: Span,
    /// The error in one line, which can be understood without the source.
    pub message: String,
    /// The text beside the caret; may be empty.
    pub label: String,
    /// Advice on how to fix it.
    pub hint: Option<String>,
    /// Related places, each with a label.
    pub related: Vec<(Span, String)>,
}

impl Diagnostic {
    /// A diagnostic with `message` at `span`.
    pub fn new(span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            span,
            message: message.into(),
            label: String::new(),
            hint: None,
            related: Vec::new(),
        }
    }

    /// Adds a text beside the caret.
    pub fn label(mut self, label: impl Into<String>) -> Diagnostic {
        self.label = label.into();
        self
    }

    /// Adds a hint.
    pub fn hint(mut self, hint: impl Into<String>) -> Diagnostic {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a related place with its label.
    pub fn related(mut self, span: Span, label: impl Into<String>) -> Diagnostic {
        self.related.push((span, label.into()));
        self
    }
}

/// Collects diagnostics in any order.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    list: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Adds a diagnostic.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.list.push(diagnostic);
    }

    /// Adds all of `others`.
    pub fn extend(&mut self, others: impl IntoIterator<Item = Diagnostic>) {
        self.list.extend(others);
    }

    /// Whether there are no diagnostics.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// All diagnostics, sorted by place; those of one place in the order in which they were added.
    pub fn into_sorted(mut self) -> Vec<Diagnostic> {
        self.list.sort_by_key(|d| (d.span.start, d.span.end));
        self.list
    }
}

/// The output format of [`render`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Plain text.
    Plain,
    /// With ANSI escape sequences.
    Coloured,
}

/// Renders diagnostics as text, sorted by place and separated by empty lines. Ends with a newline
/// unless there are none.
pub fn render(source: &Source, diagnostics: &[Diagnostic], style: Style) -> String {
    let mut sorted: Vec<&Diagnostic> = diagnostics.iter().collect();
    sorted.sort_by_key(|d| (d.span.start, d.span.end));
    let renderer = match style {
        Style::Plain => Renderer::plain(),
        Style::Coloured => Renderer::styled(),
    };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let mut text = String::new();
    for (at, diagnostic) in sorted.iter().take(MAX_RENDERED).enumerate() {
        if at > 0 {
            text.push('\n');
        }
        text += &renderer.render(&[report(source, diagnostic)]);
        text.push('\n');
    }
    if sorted.len() > MAX_RENDERED {
        text += &format!("\n… and {} more errors\n", sorted.len() - MAX_RENDERED);
    }
    text
}

/// Converts a diagnostic to the renderer's types.
fn report<'a>(source: &'a Source, diagnostic: &'a Diagnostic) -> Group<'a> {
    let primary = AnnotationKind::Primary
        .span(within(source, diagnostic.span))
        .label(labelled(&diagnostic.label));
    let related = diagnostic.related.iter().map(|(span, label)| {
        AnnotationKind::Context.span(within(source, *span)).label(labelled(label))
    });
    let snippet =
        Snippet::source(&*source.text).path(&*source.name).annotation(primary).annotations(related);
    let group = Level::ERROR.primary_title(&*diagnostic.message).element(snippet);
    match &diagnostic.hint {
        Some(hint) => group.element(Level::HELP.message(&**hint)),
        None => group,
    }
}

/// The renderer writes no label at all for `None`, but a stray space for an empty one.
fn labelled(label: &str) -> Option<&str> {
    (!label.is_empty()).then_some(label)
}

/// The span as a range within the text and on character boundaries, so that a wrong span, which
/// would be our error, does not suppress the message.
fn within(source: &Source, span: Span) -> std::ops::Range<usize> {
    let start = source.text.floor_char_boundary(span.start as usize);
    let end = source.text.ceil_char_boundary(span.end as usize).max(start);
    start..end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_the_file_the_line_a_caret_and_the_hint() {
        let source = Source::new("a.pre", "var x = 1;\nvar y = z;\n");
        let diagnostic = Diagnostic::new(Span::new(19, 20), "unknown name `z`")
            .label("not declared")
            .hint("did you mean `x`?")
            .related(Span::new(4, 5), "`x` is declared here");
        let expected = "\
error: unknown name `z`
 --> a.pre:2:9
  |
1 | var x = 1;
  |     - `x` is declared here
2 | var y = z;
  |         ^ not declared
  |
  = help: did you mean `x`?
";
        assert_eq!(render(&source, &[diagnostic], Style::Plain), expected);
    }

    #[test]
    fn renders_in_the_order_of_places_and_not_without_end() {
        let source = Source::new("a.pre", "x".repeat(60));
        let all: Vec<_> = (0..60)
            .rev()
            .map(|at| Diagnostic::new(Span::new(at, at + 1), format!("no {at}.")))
            .collect();
        let text = render(&source, &all, Style::Plain);
        assert!(text.starts_with("error: no 0."));
        assert!(text.contains("no 49.") && !text.contains("no 50."));
        assert!(text.ends_with("\n… and 10 more errors\n"));
        assert_eq!(render(&source, &[], Style::Plain), "");
    }

    #[test]
    fn only_the_coloured_style_has_escapes() {
        let source = Source::new("a.pre", "x");
        let diagnostic = [Diagnostic::new(Span::new(0, 1), "no")];
        assert!(!render(&source, &diagnostic, Style::Plain).contains('\x1b'));
        assert!(render(&source, &diagnostic, Style::Coloured).contains('\x1b'));
    }

    #[test]
    fn renders_spans_that_are_not_in_the_text() {
        let source = Source::new("a.pre", "é");
        for (start, end) in [(0, 0), (1, 1), (2, 2), (1, 9), (7, 9)] {
            let text =
                render(&source, &[Diagnostic::new(Span::new(start, end), "no")], Style::Plain);
            assert!(text.starts_with("error: no\n --> a.pre:1:"), "{text}");
        }
    }
}
