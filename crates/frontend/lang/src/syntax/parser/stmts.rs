//! Blocks and statements.

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::source::Span;

use super::{Parsed, Parser, Reported, hints};
use crate::syntax::ast::{Block, Stmt, StmtKind};
use crate::syntax::lexer::unquote;
use crate::syntax::token::{Keyword, Punct, TokenKind};

impl Parser<'_> {
    /// `{ … }` after `head`.
    pub(super) fn block(&mut self, head: &str) -> Parsed<Block> {
        if self.is(Punct::OpenBrace) {
            return self.nested(Self::braces);
        }
        let diagnostic = self.expected(&format!("`{{` after {head}"));
        let reported = self.report(diagnostic.hint("bodies are always written in braces: `{ … }`"));
        if self.skip_to_brace() {
            return self.nested(Self::braces);
        }
        if self.is(Punct::CloseBrace) || !self.visibly_begins() {
            return Err(reported);
        }
        // Meant as a body of one statement.
        let stmt = self.nested(Self::stmt)?;
        let span = self.since(stmt.span);
        Ok(Block { stmts: vec![stmt], span })
    }

    fn braces(&mut self) -> Parsed<Block> {
        let open = self.take(Punct::OpenBrace);
        let mut stmts = Vec::new();
        loop {
            if let Some(close) = self.eat(Punct::CloseBrace) {
                self.compare_braces(open, close);
                // A model has a vector for each of its blocks, most of them short.
                stmts.shrink_to_fit();
                return Ok(Block { stmts, span: open.to(close) });
            }
            if self.is(TokenKind::End) || self.at_item_of_its_own() {
                return Err(self.unclosed(open));
            }
            let before = self.at;
            match self.stmt() {
                Ok(stmt) => stmts.push(stmt),
                Err(Reported) => self.skip_statement(before),
            }
            if self.at == before {
                self.bump();
            }
        }
    }

    /// Whether a line starts here with a keyword that starts statements and no expressions.
    fn at_next_stmt(&self) -> bool {
        let TokenKind::Keyword(word) = self.kind() else { return false };
        let expression = matches!(word, Keyword::If | Keyword::Choose | Keyword::Spawn);
        self.token().first_on_line && word.begins_statement() && !expression
    }

    pub(super) fn stmt(&mut self) -> Parsed<Stmt> {
        self.operators = 0;
        let start = self.token().span;
        match self.kind() {
            TokenKind::Keyword(word) => self.keyword_stmt(word, start),
            TokenKind::Punct(Punct::OpenBrace) => {
                let block = self.nested(Self::braces)?;
                Ok(Stmt { kind: StmtKind::Block(block), span: start })
            }
            TokenKind::Name if self.is_ahead(1, Punct::Colon) => self.labelled(start),
            TokenKind::Name if self.two_words() => {
                let meant = self.unknown_stmt()?;
                self.keyword_stmt(meant, start)
            }
            TokenKind::Punct(Punct::Semi) => {
                let diagnostic =
                    Diagnostic::new(start, "an empty statement").label("nothing before this `;`");
                Err(self.report(
                    diagnostic.hint("remove the `;`, or write `skip;` for an empty statement"),
                ))
            }
            _ => self.expr_stmt(start),
        }
    }

    /// `end: s`
    fn labelled(&mut self, start: Span) -> Parsed<Stmt> {
        if self.word() != "end" {
            let message = format!("unknown label `{}`", self.word());
            let hint =
                "there are no jumps; the only label is `end:`, where a thread may rest forever";
            return Err(self.report(Diagnostic::new(start, message).hint(hint)));
        }
        self.bump();
        self.take(Punct::Colon);
        if self.is(Punct::CloseBrace) || self.is(TokenKind::End) {
            let diagnostic = self.expected("a statement after `end:`");
            return Err(self.report(
                diagnostic.hint("`end:` marks the statement before which a thread may rest"),
            ));
        }
        let stmt = self.nested(Self::stmt)?;
        let span = start.to(stmt.span);
        Ok(Stmt { kind: StmtKind::End(Box::new(stmt)), span })
    }

    fn keyword_stmt(&mut self, word: Keyword, start: Span) -> Parsed<Stmt> {
        let kind = match word {
            Keyword::If => return self.if_stmt(),
            Keyword::While => {
                self.bump();
                let condition = self.head("while")?;
                let span = self.since(start);
                let body = self.block("the condition of a `while`")?;
                return Ok(Stmt { kind: StmtKind::While { condition, body }, span });
            }
            Keyword::Loop => {
                self.bump();
                StmtKind::Loop { body: self.block("`loop`")? }
            }
            Keyword::Atomic if self.is_ahead(1, Keyword::Var) => {
                let diagnostic = Diagnostic::new(start, "a local variable cannot be `atomic`");
                return Err(
                    self.report(diagnostic.hint("only one thread sees it: write just `var`"))
                );
            }
            Keyword::Atomic => {
                self.bump();
                StmtKind::Atomic(self.block("`atomic`")?)
            }
            Keyword::For => return self.for_stmt(),
            Keyword::Match => return self.match_stmt(),
            Keyword::Choose if !self.is_ahead(1, Punct::OpenParen) => {
                StmtKind::Choose(self.choices()?)
            }
            Keyword::Choose | Keyword::Spawn => return self.expr_stmt(start),
            Keyword::Var => {
                self.bump();
                let (name, ty, init) = self.variable()?;
                return self.ended(start, StmtKind::Var { name, ty, init }, "a declaration");
            }
            _ => return self.simple_stmt(word, start),
        };
        Ok(Stmt { kind, span: start })
    }

    /// Statements without blocks that start with a keyword.
    fn simple_stmt(&mut self, word: Keyword, start: Span) -> Parsed<Stmt> {
        let kind = match word {
            Keyword::Break | Keyword::Continue | Keyword::Skip | Keyword::Yield => {
                self.bump();
                match word {
                    Keyword::Break => StmtKind::Break,
                    Keyword::Continue => StmtKind::Continue,
                    Keyword::Skip => StmtKind::Skip,
                    _ => StmtKind::Yield,
                }
            }
            Keyword::Return => {
                self.bump();
                let ends =
                    self.is(Punct::Semi) || self.is(Punct::CloseBrace) || self.at_next_stmt();
                StmtKind::Return(if ends { None } else { Some(self.expr()?) })
            }
            Keyword::Assert => self.assert()?,
            Keyword::Await | Keyword::Assume | Keyword::Join => {
                self.bump();
                let operand = self.expr()?;
                match word {
                    Keyword::Await => StmtKind::Await(operand),
                    Keyword::Assume => StmtKind::Assume(operand),
                    _ => StmtKind::Join(operand),
                }
            }
            _ => return Err(self.misplaced(word)),
        };
        self.ended(start, kind, &format!("`{}`", word.text()))
    }

    /// The statement with its `;`, which is not part of its span.
    fn ended(&mut self, start: Span, kind: StmtKind, what: &str) -> Parsed<Stmt> {
        let span = self.since(start);
        self.semicolon(what)?;
        Ok(Stmt { kind, span })
    }

    fn assert(&mut self) -> Parsed<StmtKind> {
        self.bump();
        let condition = self.expr()?;
        let mut message = None;
        if self.eat(Punct::Comma).is_some() {
            match self.kind() {
                TokenKind::Text => message = Some(unquote(self.word())),
                TokenKind::Bad => {}
                _ => {
                    let diagnostic = self.expected("a string after the `,` of an `assert`");
                    return Err(self.report(
                        diagnostic.hint("the message is written in quotes: `assert e, \"why\";`"),
                    ));
                }
            }
            self.bump();
        }
        Ok(StmtKind::Assert { condition, message })
    }

    /// An assignment, or an expression that is evaluated for its effect.
    fn expr_stmt(&mut self, start: Span) -> Parsed<Stmt> {
        let target = self.bound()?;
        let op = match self.kind() {
            TokenKind::Punct(Punct::Eq) => None,
            TokenKind::Punct(Punct::ColonEq) => {
                self.colon_equals();
                None
            }
            TokenKind::Punct(punct) if hints::assignment(punct).is_some() => {
                hints::assignment(punct)
            }
            _ => {
                if let Some(diagnostic) = self.without_effect(&target) {
                    return Err(self.report(diagnostic));
                }
                return self.ended(start, StmtKind::Expr(target), "a call");
            }
        };
        self.bump();
        let value = self.expr()?;
        self.ended(start, StmtKind::Assign { target, op, value }, "an assignment")
    }
}
