//! From tokens to the syntax tree, by recursive descent.
//!
//! # Errors
//!
//! A function that cannot continue reports a diagnostic and returns `Reported`, which is the proof
//! that it did. The error propagates to the nearest list of statements or declarations; there the
//! parser skips to a token at which the next one probably starts. Two rules keep one mistake from
//! causing several messages: nothing is reported twice at one token, and nothing at a token that
//! the lexer reported.
//!
//! # Limits
//!
//! All users of the tree walk it recursively, so its height is limited here, once: at most
//! [`MAX_NESTING`] levels of nested constructs, and at most [`MAX_OPERATORS`] operators on the path
//! from the root of an expression to a leaf. Beyond that a diagnostic is reported.

mod compound;
mod exprs;
mod hints;
mod items;
mod recovery;
mod stmts;
mod types;
mod unknown;

use preempt_machine::diagnostic::{Diagnostic, Diagnostics};
use preempt_machine::source::{Source, Span};

use super::ast::{File, Name};
use super::lexer::lex;
use super::token::{Punct, Token, TokenKind};

/// The most levels of nested blocks, parentheses, prefix operators, types and `else if`.
pub const MAX_NESTING: usize = 100;

/// The most operators, indices and selections on the path from the root of an expression to a leaf.
pub const MAX_OPERATORS: usize = 250;

/// The syntax tree of a text and its errors, sorted by span. Without errors the tree is complete.
pub fn parse(source: &Source) -> (File, Vec<Diagnostic>) {
    let (tokens, complaints) = lex(&source.text);
    let mut parser = Parser {
        source,
        tokens,
        at: 0,
        nesting: 0,
        operators: 0,
        diagnostics: Diagnostics::default(),
        last_report: None,
        given_up: false,
        misaligned: None,
    };
    parser.diagnostics.extend(complaints);
    let file = parser.file();
    (file, parser.diagnostics.into_sorted())
}

/// A diagnostic was reported.
#[derive(Clone, Copy, Debug)]
struct Reported;

type Parsed<T> = Result<T, Reported>;

struct Parser<'s> {
    source: &'s Source,
    /// All tokens; the last is [`TokenKind::End`].
    tokens: Vec<Token>,
    /// The index of the current token.
    at: usize,
    /// The nesting level of the current token.
    nesting: usize,
    /// An upper bound of the height of the current expression so far, as counted by
    /// [`MAX_OPERATORS`]. Of the operands of an operator and of the elements of a list, the highest
    /// counts.
    operators: usize,
    diagnostics: Diagnostics,
    /// The token at which the last diagnostic was reported.
    last_report: Option<usize>,
    /// A limit was exceeded: the rest of the file is not read, and nothing more is reported.
    given_up: bool,
    /// The first block of the current declaration whose braces are in different columns: `{` and
    /// `}`. If a `}` turns out to be missing, it probably belongs there.
    misaligned: Option<(Span, Span)>,
}

impl Parser<'_> {
    fn token(&self) -> Token {
        self.tokens[self.at]
    }

    fn kind(&self) -> TokenKind {
        self.token().kind
    }

    /// The token `ahead` positions after the current one.
    fn ahead(&self, ahead: usize) -> TokenKind {
        self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].kind
    }

    /// The text of the token `ahead` positions after the current one.
    fn word_ahead(&self, ahead: usize) -> &str {
        self.source.slice(self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].span)
    }

    /// The text of the current token.
    fn word(&self) -> &str {
        self.word_ahead(0)
    }

    /// The span of the token before the current one.
    fn previous(&self) -> Span {
        self.at.checked_sub(1).map_or(Span::default(), |before| self.tokens[before].span)
    }

    /// From `start` to the end of the token before the current one.
    fn since(&self, start: Span) -> Span {
        Span { start: start.start, end: self.previous().end.max(start.end) }
    }

    fn is(&self, kind: impl Into<TokenKind>) -> bool {
        self.kind() == kind.into()
    }

    fn is_ahead(&self, ahead: usize, kind: impl Into<TokenKind>) -> bool {
        self.ahead(ahead) == kind.into()
    }

    /// Whether the current token is a name with this text: a word with a meaning here that is not
    /// reserved.
    fn is_word(&self, word: &str) -> bool {
        self.kind() == TokenKind::Name && self.word() == word
    }

    /// Moves to the next token, except at the end of the file. Returns the span of the token that
    /// was passed.
    fn bump(&mut self) -> Span {
        let span = self.token().span;
        self.at = (self.at + 1).min(self.tokens.len() - 1);
        span
    }

    /// Skips the token if it is there.
    fn eat(&mut self, kind: impl Into<TokenKind>) -> Option<Span> {
        self.is(kind).then(|| self.bump())
    }

    /// Skips the token, whose kind the caller has checked.
    fn take(&mut self, kind: impl Into<TokenKind>) -> Span {
        debug_assert!(self.is(kind), "the caller has checked the kind of the token");
        self.bump()
    }

    /// The current token, for a message.
    fn found(&self) -> String {
        match self.kind() {
            TokenKind::End => "the end of the file".to_owned(),
            TokenKind::Text => "a string".to_owned(),
            TokenKind::Number(_) => format!("the number `{}`", self.word()),
            _ if self.word().len() > 40 => "a long name".to_owned(),
            _ => format!("`{}`", self.word()),
        }
    }

    /// The text of a span for a hint, unless it is too long.
    fn short(&self, span: Span) -> &str {
        let text = self.source.slice(span);
        if text.len() > 40 || text.contains('\n') { "…" } else { text }
    }

    fn report(&mut self, diagnostic: Diagnostic) -> Reported {
        if !self.given_up && self.last_report != Some(self.at) && self.kind() != TokenKind::Bad {
            self.diagnostics.push(diagnostic);
        }
        self.last_report = Some(self.at);
        Reported
    }

    /// Reports that `wanted` is expected instead of the current token.
    fn expected(&mut self, wanted: &str) -> Diagnostic {
        let found = self.found();
        Diagnostic::new(self.token().span, format!("expected {wanted}, found {found}"))
            .label(format!("expected {wanted}"))
    }

    /// Skips the sign; the message says `after` what it is expected.
    fn expect(&mut self, punct: Punct, after: &str) -> Parsed<Span> {
        if let Some(span) = self.eat(punct) {
            return Ok(span);
        }
        let message = format!("expected `{}` after {after}, found {}", punct.text(), self.found());
        let label = format!("expected `{}`", punct.text());
        Err(self.report(Diagnostic::new(self.token().span, message).label(label)))
    }

    /// Skips the name of `what`, such as "a variable".
    fn name(&mut self, what: &str) -> Parsed<Name> {
        let token = self.token();
        match token.kind {
            TokenKind::Name => {
                let text = self.word().to_owned();
                self.bump();
                Ok(Name { text, span: token.span })
            }
            // On the line of its declaration it was meant as the name; on a new line the name is
            // missing.
            TokenKind::Keyword(keyword) if !token.first_on_line => {
                let text = keyword.text();
                self.report(
                    Diagnostic::new(token.span, format!("`{text}` is a reserved word"))
                        .label(format!("cannot be the name of {what}"))
                        .hint(format!("choose another name, `{text}_` for example")),
                );
                self.bump();
                Ok(Name { text: text.to_owned(), span: token.span })
            }
            _ => {
                let diagnostic = self.expected(&format!("the name of {what}"));
                Err(self.report(diagnostic))
            }
        }
    }

    /// The result of `parse`, one level deeper.
    fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.nesting == MAX_NESTING {
            let message = format!("nested more than {MAX_NESTING} levels deep");
            let hint = "name parts of it: with variables, constants or functions; a long `else if` \
                        may be a `match`";
            return Err(self.give_up(
                Diagnostic::new(self.token().span, message).label("too deep").hint(hint),
            ));
        }
        self.nesting += 1;
        let parsed = parse(self);
        self.nesting -= 1;
        parsed
    }

    /// Counts an operator of the current expression.
    fn count_operator(&mut self) -> Parsed<()> {
        self.operators += 1;
        if self.operators > MAX_OPERATORS {
            let message = format!("more than {MAX_OPERATORS} operators in a row");
            let hint = "compute it in parts: with variables, or in a loop";
            return Err(self.give_up(
                Diagnostic::new(self.token().span, message).label("too long").hint(hint),
            ));
        }
        Ok(())
    }

    /// Reports, and skips the rest of the file: after a limit was exceeded, further errors would be
    /// spurious.
    fn give_up(&mut self, diagnostic: Diagnostic) -> Reported {
        // Unconditionally, or the rest would be missing without a report.
        self.last_report = None;
        let reported = self.report(diagnostic);
        self.given_up = true;
        self.at = self.tokens.len() - 1;
        reported
    }

    /// Elements separated by commas, up to and including `close`; a trailing comma is allowed.
    /// `open` is the span of the opening sign, which was skipped.
    fn list<T>(
        &mut self,
        open: Span,
        close: Punct,
        mut element: impl FnMut(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let mut elements = Vec::new();
        let before = self.operators;
        let mut worst = before;
        while self.eat(close).is_none() {
            self.operators = before;
            let start = self.at;
            match element(self) {
                Ok(element) => elements.push(element),
                Err(Reported) => self.skip_element(start, close)?,
            }
            worst = worst.max(self.operators);
            if self.eat(Punct::Comma).is_none() && !self.is(close) {
                let diagnostic = self.expected(&format!("`,` or `{}`", close.text()));
                self.report(diagnostic.related(open, "the list begins here"));
                self.skip_element(start, close)?;
                self.eat(Punct::Comma);
            }
        }
        self.operators = worst;
        Ok(elements)
    }
}
