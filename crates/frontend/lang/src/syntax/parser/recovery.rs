//! Error recovery: how the parser continues after an error.

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::source::Span;

use super::{Parsed, Parser, Reported};
use crate::syntax::token::{Keyword, Punct, Token, TokenKind};

/// The open brackets, as the signs that close them.
#[derive(Default)]
struct Brackets {
    open: Vec<Punct>,
    /// The number of braces among them. Only braces contain statements; other brackets do not
    /// extend beyond one.
    braces: usize,
}

impl Brackets {
    /// The brackets that are open after `tokens`.
    fn behind(tokens: &[Token]) -> Brackets {
        let mut brackets = Brackets::default();
        tokens.iter().for_each(|token| brackets.pass(token.kind));
        brackets
    }

    fn pass(&mut self, kind: TokenKind) {
        let TokenKind::Punct(punct) = kind else { return };
        match punct {
            Punct::OpenParen => self.open.push(Punct::CloseParen),
            Punct::OpenBracket => self.open.push(Punct::CloseBracket),
            Punct::OpenBrace => {
                self.open.push(Punct::CloseBrace);
                self.braces += 1;
            }
            // A brace closes all brackets that were left open inside.
            Punct::CloseBrace if self.braces > 0 => {
                while self.open.pop().is_some_and(|closing| closing != Punct::CloseBrace) {}
                self.braces -= 1;
            }
            _ => {
                self.open.pop_if(|closing| *closing == punct);
            }
        }
    }
}

impl Parser<'_> {
    /// The `;` after `what`. If it is missing and the next statement clearly starts, that is the
    /// only error.
    pub(super) fn semicolon(&mut self, what: &str) -> Parsed<()> {
        // The lexer reported something that may have swallowed the `;`.
        let swallowed = self.at > 0 && self.tokens[self.at - 1].kind == TokenKind::Bad;
        if self.eat(Punct::Semi).is_some() || swallowed {
            return Ok(());
        }
        let end = self.previous().end as usize;
        let message = format!("expected `;` after {what}, found {}", self.found());
        if self.visibly_begins() {
            self.report(Diagnostic::new(Span::new(end, end), message).label("add `;` here"));
            return Ok(());
        }
        Err(self.report(Diagnostic::new(self.token().span, message).label("expected `;`")))
    }

    /// Whether a statement or declaration seems to start here, or a block to end.
    pub(super) fn visibly_begins(&self) -> bool {
        let assigns_or_calls =
            [Punct::Eq, Punct::PlusEq, Punct::MinusEq, Punct::Dot, Punct::OpenParen];
        match self.kind() {
            TokenKind::Punct(Punct::CloseBrace) => true,
            TokenKind::Keyword(word) => word.begins_statement() || word.begins_only_items(),
            TokenKind::Name => {
                self.token().first_on_line
                    || assigns_or_calls.iter().any(|&punct| self.is_ahead(1, punct))
            }
            _ => self.token().first_on_line,
        }
    }

    /// Moves to where the next statement probably starts: after a `;` or a block, before a `}`, or
    /// to a line that starts with a keyword of statements or declarations. The faulty statement
    /// started at token `start`.
    pub(super) fn skip_statement(&mut self, start: usize) {
        let mut brackets = Brackets::behind(&self.tokens[start..self.at]);
        while !self.is(TokenKind::End) && !self.at_item_of_its_own() {
            let kind = self.kind();
            if brackets.braces == 0 {
                match kind {
                    TokenKind::Punct(Punct::CloseBrace) => return,
                    TokenKind::Punct(Punct::Semi) => {
                        self.bump();
                        return;
                    }
                    TokenKind::Keyword(word)
                        if self.at > start
                            && self.token().first_on_line
                            && (word.begins_statement() || word.begins_only_items()) =>
                    {
                        return;
                    }
                    _ => {}
                }
            }
            brackets.pass(kind);
            self.bump();
            // The end of a block ends the statement, unless it clearly continues.
            let block_ended =
                kind == TokenKind::Punct(Punct::CloseBrace) && brackets.open.is_empty();
            if block_ended && self.token().first_on_line && !self.is(Keyword::Else) {
                return;
            }
        }
    }

    /// Moves to where the next declaration probably starts: after a `;` or a block, or to a line
    /// that starts with a keyword of declarations. The faulty declaration started at token `start`.
    pub(super) fn skip_item(&mut self, start: usize) {
        let mut brackets = Brackets::behind(&self.tokens[start..self.at]);
        while !self.is(TokenKind::End) {
            let kind = self.kind();
            let begins = brackets.braces == 0 && self.token().first_on_line && self.at_item();
            if self.at > start && (begins || self.at_item_of_its_own()) {
                return;
            }
            brackets.pass(kind);
            self.bump();
            let ends = matches!(kind, TokenKind::Punct(Punct::Semi | Punct::CloseBrace));
            if ends && brackets.braces == 0 && !(self.is(Punct::Semi) || self.is(Keyword::Else)) {
                return;
            }
        }
    }

    /// Moves to the next line that starts a declaration and is indented less than the current
    /// token: a statement outside all blocks is usually followed by more statements, because a
    /// `}` closed too much.
    pub(super) fn skip_strays(&mut self) {
        let column = self.column(self.token().span);
        loop {
            self.bump();
            let begins = self.token().first_on_line && self.at_item();
            if self.is(TokenKind::End)
                || begins && (column == 0 || self.column(self.token().span) < column)
            {
                return;
            }
        }
    }

    /// Moves to a `{` in the rest of the line, if there is one. Returns whether there is.
    pub(super) fn skip_to_brace(&mut self) -> bool {
        let rest = self.tokens[self.at..].iter().enumerate();
        let mut rest = rest.take_while(|(at, token)| *at == 0 || !token.first_on_line);
        let brace = rest.find(|(_, token)| {
            matches!(
                token.kind,
                TokenKind::Punct(Punct::OpenBrace | Punct::CloseBrace | Punct::Semi)
                    | TokenKind::End
            )
        });
        match brace {
            Some((ahead, token)) if token.kind == Punct::OpenBrace.into() => {
                self.at += ahead;
                true
            }
            _ => false,
        }
    }

    /// Moves to the next `,` or `close` of a list whose element, which started at token `start`, is
    /// faulty; an error if the statement ends before that.
    pub(super) fn skip_element(&mut self, start: usize, close: Punct) -> Parsed<()> {
        let mut brackets = Brackets::behind(&self.tokens[start..self.at]);
        loop {
            let kind = self.kind();
            if brackets.open.is_empty() && (kind == Punct::Comma.into() || kind == close.into()) {
                return Ok(());
            }
            let ends = match kind {
                TokenKind::End => true,
                TokenKind::Punct(Punct::Semi | Punct::CloseBrace) => brackets.braces == 0,
                TokenKind::Keyword(word) => self.token().first_on_line && word.begins_statement(),
                _ => false,
            };
            if ends || self.at_item_of_its_own() {
                return Err(Reported);
            }
            brackets.pass(kind);
            self.bump();
        }
    }

    /// Moves behind the parentheses that open here, or before the block or the end of the file if
    /// they are not closed.
    pub(super) fn skip_parentheses(&mut self) {
        let mut brackets = Brackets::default();
        while !self.is(TokenKind::End) && !self.is(Punct::OpenBrace) {
            brackets.pass(self.kind());
            self.bump();
            if brackets.open.is_empty() {
                return;
            }
        }
    }

    /// Whether a declaration starts here in the first column, which cannot be meant as part of a
    /// block.
    pub(super) fn at_item_of_its_own(&self) -> bool {
        let TokenKind::Keyword(word) = self.kind() else { return false };
        // Not by `column`, which scans the whole line.
        let before = self.source.text.as_bytes()[..self.token().span.start as usize].last();
        word.begins_only_items() && before.is_none_or(|&byte| byte == b'\n')
    }

    /// The number of bytes before a position in its line.
    fn column(&self, span: Span) -> usize {
        let before = &self.source.text[..span.start as usize];
        before.len() - before.rfind('\n').map_or(0, |newline| newline + 1)
    }

    /// The number of blanks at the start of the line of a position.
    fn indentation(&self, span: Span) -> usize {
        let line = &self.source.text[span.start as usize - self.column(span)..];
        line.len() - line.trim_start_matches([' ', '\t']).len()
    }

    /// Records a block whose `}`, which was just skipped, is in another column than the start of
    /// the line of its `{`.
    pub(super) fn compare_braces(&mut self, open: Span, close: Span) {
        let first_on_line = self.tokens[self.at - 1].first_on_line;
        if self.misaligned.is_none()
            && first_on_line
            && self.indentation(open) != self.column(close)
        {
            self.misaligned = Some((open, close));
        }
    }

    /// Reports that the block is not closed at the current token.
    pub(super) fn unclosed(&mut self, open: Span) -> Reported {
        let diagnostic = match self.misaligned {
            Some((open, close)) => Diagnostic::new(open, "this block is probably not closed")
                .label("the `}` of this `{` is missing…")
                .related(close, "…as this `}` is indented for another block"),
            None => Diagnostic::new(open, "this block is never closed")
                .label("the `}` of this `{` is missing"),
        };
        let here = match self.kind() {
            TokenKind::End => "the file ends here",
            _ if self.at_item_of_its_own() => "the next declaration begins here",
            _ => "the next statement begins here",
        };
        self.report(diagnostic.related(self.token().span, here))
    }
}
