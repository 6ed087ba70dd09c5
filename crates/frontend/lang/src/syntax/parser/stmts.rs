//! Blocks and statements.

use super::{Parsed, Parser, Reported, hints};
use crate::diagnostic::{Diagnostic, nearest};
use crate::source::Span;
use crate::syntax::ast::{Arm, BinaryOp, Block, Expr, ExprKind, Pattern, Stmt, StmtKind};
use crate::syntax::lexer::unquote;
use crate::syntax::token::{Keyword, Punct, TokenKind};

impl Parser<'_> {
    /// `{ … }` behind `head`.
    pub(super) fn block(&mut self, head: &str) -> Parsed<Block> {
        if self.is(Punct::OpenBrace) {
            return self.nested(Self::braces);
        }
        let diagnostic = self.expected(&format!("`{{` after {head}"));
        let reported = self.report(diagnostic.hint("bodies always stand in braces: `{ … }`"));
        if self.token().first_on_line && !self.at_stmt() {
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

    /// Whether a word for statements stands here.
    fn at_stmt(&self) -> bool {
        matches!(self.kind(), TokenKind::Keyword(word) if word.begins_statement()) || self.is(TokenKind::Name)
    }

    /// Whether a line begins here with a word that begins statements and no expressions.
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
                let diagnostic = Diagnostic::new(start, "an empty statement").label("nothing stands before this `;`");
                Err(self.report(diagnostic.hint("remove the `;`; what does nothing on purpose is `skip;`")))
            }
            _ => self.expr_stmt(start),
        }
    }

    /// `end: s`
    fn labelled(&mut self, start: Span) -> Parsed<Stmt> {
        if self.word() != "end" {
            let message = format!("unknown label `{}`", self.word());
            let hint = "there are no jumps; the only label is `end:`, where a thread may rest for ever";
            return Err(self.report(Diagnostic::new(start, message).hint(hint)));
        }
        self.bump();
        self.take(Punct::Colon);
        if self.is(Punct::CloseBrace) || self.is(TokenKind::End) {
            let diagnostic = self.expected("a statement after `end:`");
            return Err(self.report(diagnostic.hint("`end:` marks the statement before which a thread may rest")));
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
                return Err(self.report(diagnostic.hint("only one thread sees it: write just `var`")));
            }
            Keyword::Atomic => {
                self.bump();
                StmtKind::Atomic(self.block("`atomic`")?)
            }
            Keyword::For => return self.for_stmt(),
            Keyword::Match => return self.match_stmt(),
            Keyword::Choose if !self.is_ahead(1, Punct::OpenParen) => StmtKind::Choose(self.choices()?),
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

    /// Statements without blocks that begin with a reserved word.
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
                let ends = self.is(Punct::Semi) || self.is(Punct::CloseBrace) || self.at_next_stmt();
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

    /// The statement with its `;`, which is not part of its place.
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
                    let diagnostic = self.expected("a text after the `,` of an `assert`");
                    return Err(self.report(diagnostic.hint("the message stands in quotes: `assert e, \"why\";`")));
                }
            }
            self.bump();
        }
        Ok(StmtKind::Assert { condition, message })
    }

    /// The condition of a statement with a block. If it cannot be read, the block still can.
    fn head(&mut self, word: &str) -> Parsed<Expr> {
        let start = self.token().span;
        if self.is(Punct::OpenBrace) {
            let diagnostic = self.expected(&format!("a condition after `{word}`"));
            let hint =
                if word == "while" { "to repeat for ever, write `loop { … }`" } else { "write `if e { … }`" };
            self.report(diagnostic.hint(hint));
            return Ok(Expr { kind: ExprKind::Error, span: start });
        }
        match self.expr() {
            Ok(condition) => Ok(condition),
            Err(Reported) => {
                while !self.is(Punct::OpenBrace) {
                    let ends =
                        matches!(self.kind(), TokenKind::End | TokenKind::Punct(Punct::Semi | Punct::CloseBrace));
                    if ends || self.token().first_on_line {
                        return Err(Reported);
                    }
                    self.bump();
                }
                Ok(Expr { kind: ExprKind::Error, span: self.since(start) })
            }
        }
    }

    fn if_stmt(&mut self) -> Parsed<Stmt> {
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

    fn for_stmt(&mut self) -> Parsed<Stmt> {
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
            return Err(self.report(diagnostic.hint(format!("write `for {} in 0..3 {{ … }}`", name.text))));
        }
        let range = self.range()?;
        let span = self.since(start);
        let body = self.block("the range of a `for`")?;
        Ok(Stmt { kind: StmtKind::For { name, range, body }, span })
    }

    fn match_stmt(&mut self) -> Parsed<Stmt> {
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
            if self.is(TokenKind::End) || self.at_item_of_its_own() {
                return Err(self.unclosed(open));
            }
            let before = self.at;
            match self.arm() {
                Ok(arm) => arms.push(arm),
                Err(Reported) => self.skip_statement(before),
            }
            // Habit puts a comma between arms; it does no harm.
            self.eat(Punct::Comma);
            if self.at == before {
                self.bump();
            }
        }
    }

    fn arm(&mut self) -> Parsed<Arm> {
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
            return Err(self.report(diagnostic.hint("an arm is `0 => { … }`, `1 | 2..=4 => { … }` or `_ => { … }`")));
        }
        let body = self.block("the `=>` of an arm")?;
        Ok(Arm { patterns, body, span })
    }

    fn pattern(&mut self) -> Parsed<Pattern> {
        let lo = self.pattern_value()?;
        if self.at_range() {
            Ok(Pattern::Range(self.range_from(lo, Self::pattern_value)?))
        } else {
            Ok(Pattern::Value(lo))
        }
    }

    /// `choose { … } or { … }`
    fn choices(&mut self) -> Parsed<Vec<Block>> {
        self.take(Keyword::Choose);
        let mut blocks = vec![self.block("`choose`")?];
        while self.is_word("or") {
            self.bump();
            blocks.push(self.block("`or`")?);
        }
        Ok(blocks)
    }

    /// An assignment, or an expression for its effect.
    fn expr_stmt(&mut self, start: Span) -> Parsed<Stmt> {
        let target = self.bound()?;
        let op = match self.kind() {
            TokenKind::Punct(Punct::Eq) => None,
            TokenKind::Punct(Punct::ColonEq) => {
                self.colon_equals();
                None
            }
            TokenKind::Punct(punct) if hints::assignment(punct).is_some() => hints::assignment(punct),
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

    /// What is wrong with an expression that does nothing as a statement.
    fn without_effect(&self, expr: &Expr) -> Option<Diagnostic> {
        let text = self.source.slice(expr.span);
        let hint = match &expr.kind {
            ExprKind::Call(..) | ExprKind::Method(..) | ExprKind::Spawn(..) | ExprKind::New(..) => return None,
            ExprKind::Choose(_) | ExprKind::Error => return None,
            ExprKind::Binary(BinaryOp::Eq, ..) => "an assignment has one `=`: `x = e;`".to_owned(),
            ExprKind::Field(..) => format!("a method is called with parentheses: `{text}()`"),
            ExprKind::Name(_) => match (hints::stmt_word(text), nearest_stmt(text)) {
                (Some((_, hint)), _) => hint.to_owned(),
                (None, Some(keyword)) => format!("did you mean `{};`?", keyword.text()),
                (None, None) => format!("to call a function, write `{text}()`; to assign, `{text} = e;`"),
            },
            _ => "a statement is an assignment, a call or a declaration".to_owned(),
        };
        Some(Diagnostic::new(expr.span, "this statement does nothing").hint(hint))
    }

    /// Whether two words stand here one behind the other, or a word and a block: no expression begins so.
    fn two_words(&self) -> bool {
        let second = self.tokens[(self.at + 1).min(self.tokens.len() - 1)];
        let follows = match second.kind {
            TokenKind::Name => self.word() != "new" && hints::word(self.word_ahead(1)).is_none(),
            TokenKind::Keyword(_) | TokenKind::Number(_) | TokenKind::Text => true,
            TokenKind::Punct(Punct::OpenBrace) => true,
            _ => false,
        };
        follows && !second.first_on_line
    }

    /// Reports a statement that begins with an unknown word; if a reserved word was clearly meant, it stands there then.
    fn unknown_stmt(&mut self) -> Parsed<Keyword> {
        let word = self.word();
        let declares = self.is_ahead(1, TokenKind::Name)
            && [Punct::Semi, Punct::Eq, Punct::OpenBracket].iter().any(|&punct| self.is_ahead(2, punct));
        let (meant, hint) = if let Some((meant, hint)) = hints::stmt_word(word) {
            (meant, hint.to_owned())
        } else if let Some(keyword) = nearest_stmt(word).filter(|_| !declares || word.len() > 3) {
            (Some(keyword), format!("did you mean `{}`?", keyword.text()))
        } else if declares {
            let hint = format!("a variable is declared with its type behind it: `var {}: {word};`", self.word_ahead(1));
            (None, hint)
        } else {
            (None, "a statement is an assignment, a call, or begins with a reserved word".to_owned())
        };
        let diagnostic = Diagnostic::new(self.token().span, format!("no statement begins with `{word}`"));
        let reported = self.report(diagnostic.hint(hint));
        let meant = meant.ok_or(reported)?;
        self.tokens[self.at].kind = meant.into();
        Ok(meant)
    }

    /// Reports `:=`, which the caller then takes for `=`.
    pub(super) fn colon_equals(&mut self) {
        let diagnostic = Diagnostic::new(self.token().span, "`:=` is not a sign of this language");
        self.report(diagnostic.hint("write `=`"));
    }

    /// Reports a reserved word that cannot begin a statement.
    fn misplaced(&mut self, word: Keyword) -> Reported {
        let (text, span) = (word.text(), self.token().span);
        if matches!(word, Keyword::Int | Keyword::Bool) && self.is_ahead(1, TokenKind::Name) {
            return self.type_before_name();
        }
        if word.begins_only_items() && matches!(self.ahead(1), TokenKind::Name | TokenKind::Punct(Punct::OpenParen)) {
            let diagnostic = Diagnostic::new(span, format!("`{text}` inside a block"));
            return self.report(
                diagnostic
                    .label("a declaration, not a statement")
                    .hint("declare it outside of all threads and functions; or is a `}` missing before it?"),
            );
        }
        if word == Keyword::Else {
            let diagnostic = Diagnostic::new(span, "`else` without `if`");
            return self.report(diagnostic.hint("`else` stands right behind the `}` of its `if`"));
        }
        let diagnostic = self.expected("a statement");
        self.report(diagnostic.hint(format!("`{text}` is a reserved word")))
    }

    /// Reports `int x` and the like.
    pub(super) fn type_before_name(&mut self) -> Reported {
        let (ty, name) = (self.word(), self.word_ahead(1));
        let diagnostic =
            Diagnostic::new(self.token().span, format!("a declaration does not begin with its type `{ty}`"))
                .hint(format!("write `var {name}: {ty};`"));
        self.report(diagnostic)
    }
}

/// The reserved word that probably was meant at the beginning of a statement.
fn nearest_stmt(word: &str) -> Option<Keyword> {
    let words = Keyword::ALL.iter().filter(|keyword| keyword.begins_statement() || **keyword == Keyword::Else);
    nearest(word, words.map(|keyword| keyword.text())).and_then(Keyword::of)
}
