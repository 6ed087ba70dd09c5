//! Statements with blocks and more than a keyword before them: `if`, `for`, `match`, `choose`.

use preempt_machine::diagnostic::Diagnostic;

use super::{Parsed, Parser, Reported};
use crate::syntax::ast::{Arm, Block, Expr, ExprKind, Pattern, Stmt, StmtKind};
use crate::syntax::token::{Keyword, Punct, TokenKind};

impl Parser<'_> {
    /// The condition of a statement with a block. If it cannot be parsed, the block still can.
    pub(super) fn head(&mut self, word: &str) -> Parsed<Expr> {
        let start = self.token().span;
        if self.is(Punct::OpenBrace) {
            let diagnostic = self.expected(&format!("a condition after `{word}`"));
            let hint = if word == "while" {
                "to repeat forever, write `loop { … }`"
            } else {
                "write `if e { … }`"
            };
            self.report(diagnostic.hint(hint));
            return Ok(Expr { kind: ExprKind::Error, span: start });
        }
        match self.expr() {
            Ok(condition) => Ok(condition),
            Err(Reported) => {
                while !self.is(Punct::OpenBrace) {
                    let ends = matches!(
                        self.kind(),
                        TokenKind::End | TokenKind::Punct(Punct::Semi | Punct::CloseBrace)
                    );
                    if ends || self.token().first_on_line {
                        return Err(Reported);
                    }
                    self.bump();
                }
                Ok(Expr { kind: ExprKind::Error, span: self.since(start) })
            }
        }
    }

    pub(super) fn if_stmt(&mut self) -> Parsed<Stmt> {
        let start = self.take(Keyword::If);
        let condition = self.head("if")?;
        let span = self.since(start);
        let then = self.block("the condition of an `if`")?;
        let mut otherwise = None;
        if self.eat(Keyword::Else).is_some() {
            otherwise = Some(if self.is(Keyword::If) {
                let inner = self.nested(Self::if_stmt)?;
                let span = self.since(inner.span);
                Block { stmts: vec![inner], span }
            } else {
                self.block("`else`")?
            });
        }
        Ok(Stmt { kind: StmtKind::If { condition, then, otherwise }, span })
    }

    pub(super) fn for_stmt(&mut self) -> Parsed<Stmt> {
        let start = self.take(Keyword::For);
        if self.is(Punct::OpenParen) {
            let diagnostic = self.expected("the name of a variable");
            self.report(diagnostic.hint("write `for i in 0..3 { … }`, or a `while`"));
            self.skip_parentheses();
            let body = self.block("the head of a `for`")?;
            return Ok(Stmt { kind: StmtKind::Loop { body }, span: start });
        }
        let name = self.name("a variable")?;
        if self.eat(Keyword::In).is_none() {
            let diagnostic = self.expected("`in` and a range");
            return Err(
                self.report(diagnostic.hint(format!("write `for {} in 0..3 {{ … }}`", name.text)))
            );
        }
        let range = self.range()?;
        let span = self.since(start);
        let body = self.block("the range of a `for`")?;
        Ok(Stmt { kind: StmtKind::For { name, range, body }, span })
    }

    pub(super) fn match_stmt(&mut self) -> Parsed<Stmt> {
        let start = self.take(Keyword::Match);
        let scrutinee = self.head("match")?;
        let span = self.since(start);
        let open = self.expect(Punct::OpenBrace, "the value of a `match`")?;
        let mut arms = Vec::new();
        loop {
            if let Some(close) = self.eat(Punct::CloseBrace) {
                self.compare_braces(open, close);
                return Ok(Stmt { kind: StmtKind::Match { scrutinee, arms }, span });
            }
            let stmt = matches!(self.kind(), TokenKind::Keyword(word) if word.begins_statement());
            if stmt || self.is(TokenKind::End) || self.at_item_of_its_own() {
                return Err(self.unclosed(open));
            }
            let before = self.at;
            match self.arm() {
                Ok(arm) => arms.push(arm),
                Err(Reported) => self.skip_statement(before),
            }
            // A comma between arms is tolerated.
            self.eat(Punct::Comma);
            if self.at == before {
                self.bump();
            }
        }
    }

    pub(super) fn arm(&mut self) -> Parsed<Arm> {
        if self.is_word("case") && matches!(self.ahead(1), TokenKind::Name | TokenKind::Number(_)) {
            let diagnostic = Diagnostic::new(self.token().span, "there is no `case`");
            self.report(diagnostic.hint("an arm begins with its pattern: `0 => { … }`"));
            self.bump();
        }
        let start = self.token().span;
        let mut patterns = Vec::new();
        if self.is_word("_") && self.is_ahead(1, Punct::FatArrow) {
            self.bump();
        } else {
            patterns.push(self.pattern()?);
            while self.eat(Punct::Or).is_some() {
                patterns.push(self.pattern()?);
            }
        }
        let span = self.since(start);
        if self.eat(Punct::FatArrow).is_none() {
            let diagnostic = self.expected("`=>` after a pattern");
            return Err(self.report(
                diagnostic.hint("an arm is `0 => { … }`, `1 | 2..=4 => { … }` or `_ => { … }`"),
            ));
        }
        let body = self.block("the `=>` of an arm")?;
        Ok(Arm { patterns, body, span })
    }

    pub(super) fn pattern(&mut self) -> Parsed<Pattern> {
        let lo = self.pattern_value()?;
        if self.at_range() {
            Ok(Pattern::Range(self.range_from(lo, Self::pattern_value)?))
        } else {
            Ok(Pattern::Value(lo))
        }
    }

    /// `choose { … } or { … }`
    pub(super) fn choices(&mut self) -> Parsed<Vec<Block>> {
        self.take(Keyword::Choose);
        let mut blocks = vec![self.block("`choose`")?];
        while self.is_word("or") {
            self.bump();
            blocks.push(self.block("`or`")?);
        }
        Ok(blocks)
    }
}
