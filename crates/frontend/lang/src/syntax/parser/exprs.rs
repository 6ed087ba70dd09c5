//! Expressions, by precedence climbing with an explicit stack, so that the recursion is only as
//! deep as the nesting of the text.

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::source::Span;

use super::{Parsed, Parser, Reported, hints};
use crate::syntax::ast::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::syntax::operator::{Precedence as _, Strength, WEAKEST};
use crate::syntax::token::{Keyword, Punct, TokenKind};

impl Parser<'_> {
    /// An expression that is not part of another one.
    pub(super) fn expr(&mut self) -> Parsed<Expr> {
        self.operators = 0;
        self.inner_expr()
    }

    /// An expression that no assignment can follow.
    fn inner_expr(&mut self) -> Parsed<Expr> {
        let expr = self.binary(WEAKEST)?;
        if !matches!(self.kind(), TokenKind::Punct(Punct::Eq | Punct::ColonEq)) {
            return Ok(expr);
        }
        let diagnostic =
            Diagnostic::new(self.token().span, format!("{} inside an expression", self.found()))
                .label("only a statement assigns")
                .hint("to compare, write `==`; an assignment is a statement of its own: `x = e;`");
        self.report(diagnostic);
        self.bump();
        let right = self.binary(WEAKEST)?;
        Ok(binary_expr(expr, BinaryOp::Eq, right))
    }

    /// An end of a range, or the left side of an assignment: anything but `=` may follow it.
    pub(super) fn bound(&mut self) -> Parsed<Expr> {
        self.binary(WEAKEST)
    }

    /// A value in a pattern: `|` and `=>` are not part of it.
    pub(super) fn pattern_value(&mut self) -> Parsed<Expr> {
        self.operators = 0;
        self.binary(BinaryOp::BitXor.strength())
    }

    /// Operands with operators of at least precedence `min` between them. Every nested expression
    /// passes here, so this is where its level is counted.
    fn binary(&mut self, min: Strength) -> Parsed<Expr> {
        self.nested(|parser| parser.climb(min))
    }

    fn climb(&mut self, min: Strength) -> Parsed<Expr> {
        // Left operands that wait for their right ones, with their heights; precedences increase
        // from bottom to top.
        let mut waiting: Vec<(Expr, BinaryOp, usize)> = Vec::new();
        let before = self.operators;
        loop {
            self.operators = before;
            let mut operand = self.unary()?;
            let next = self.operator().filter(|&(op, _)| op.strength() >= min);
            let strength = next.map_or(0, |(op, _)| op.strength());
            let mut chained = None;
            while let Some((left, op, height)) =
                waiting.pop_if(|(_, op, _)| op.strength() >= strength)
            {
                if op.strength() == strength && op.is_comparison() {
                    chained = Some(operand.clone());
                }
                operand = binary_expr(left, op, operand);
                self.operators = self.operators.max(height);
                self.count_operator()?;
            }
            let Some((op, correction)) = next else { return Ok(operand) };
            if let Some(middle) = chained {
                self.chained_comparison(&operand, &middle);
            } else if let Some(hint) = correction {
                let diagnostic = Diagnostic::new(
                    self.token().span,
                    format!("{} is not an operator", self.found()),
                );
                self.report(diagnostic.hint(hint));
            }
            self.bump();
            waiting.push((operand, op, self.operators));
        }
    }

    /// The operator at the current token; if it belongs to another language, also the replacement.
    fn operator(&self) -> Option<(BinaryOp, Option<&'static str>)> {
        match self.kind() {
            // An arm of a `match` whose `match` is missing.
            TokenKind::Punct(Punct::FatArrow) if self.is_ahead(1, Punct::OpenBrace) => None,
            TokenKind::Punct(punct) => hints::binary(punct),
            // On a new line it more likely starts a statement.
            TokenKind::Name if !self.token().first_on_line && !self.is_ahead(1, Punct::Eq) => {
                hints::word(self.word())
            }
            _ => None,
        }
    }

    /// `a < b < c`, with the current token at the second `<`.
    fn chained_comparison(&mut self, left: &Expr, middle: &Expr) {
        let (first, second) = (self.source.slice(left.span), self.source.slice(middle.span));
        let hint = match self.kind() {
            _ if first.len() + second.len() > 60 => "compare twice: `a < b && b < c`".to_owned(),
            TokenKind::Punct(Punct::EqEq | Punct::NotEq) => {
                format!("to compare the bool, write `({first}) {} …`", self.word())
            }
            _ => format!("compare twice: `{first} && {second} {} …`", self.word()),
        };
        let diagnostic =
            Diagnostic::new(self.token().span, "comparisons cannot be chained").hint(hint);
        self.report(diagnostic.related(left.span, "this is already a bool"));
    }

    /// An operand with its prefix operators.
    fn unary(&mut self) -> Parsed<Expr> {
        let punct = match self.kind() {
            TokenKind::Punct(punct) => punct,
            TokenKind::Name if self.word() == "not" && self.begins_operand(1) => {
                self.report(
                    Diagnostic::new(self.token().span, "there is no `not`")
                        .hint("write `!` for it"),
                );
                Punct::Not
            }
            _ => return self.postfix(),
        };
        let wrap: fn(Box<Expr>) -> ExprKind =
            match punct {
                Punct::Not => |operand| ExprKind::Unary(UnaryOp::Not, operand),
                Punct::Minus => |operand| ExprKind::Unary(UnaryOp::Neg, operand),
                Punct::Star => ExprKind::Deref,
                Punct::And => ExprKind::AddressOf,
                Punct::Plus | Punct::PlusPlus | Punct::MinusMinus | Punct::AndAnd => {
                    let diagnostic = Diagnostic::new(
                        self.token().span,
                        format!("{} before an operand", self.found()),
                    );
                    return Err(self.report(diagnostic.hint(match punct {
                    Punct::Plus => "leave the `+` out",
                    Punct::AndAnd => "an address is taken with one `&`, and only of a variable",
                    _ => "write `x += 1;` or `x -= 1;` as a statement of its own, or `-(-x)` for a \
                          double minus",
                })));
                }
                _ => return self.postfix(),
            };
        self.nested(|parser| {
            let start = parser.bump();
            let operand = parser.unary()?;
            let span = start.to(operand.span);
            Ok(Expr { kind: wrap(Box::new(operand)), span })
        })
    }

    /// A primary expression with the indices, selections and calls after it.
    fn postfix(&mut self) -> Parsed<Expr> {
        let mut expr = self.primary()?;
        loop {
            let start = expr.span;
            let kind = match self.kind() {
                TokenKind::Punct(Punct::OpenBracket) => {
                    let open = self.bump();
                    let index = self.inner_expr()?;
                    self.closing(Punct::CloseBracket, open)?;
                    ExprKind::Index(Box::new(expr), Box::new(index))
                }
                TokenKind::Punct(Punct::Dot) => self.selection(expr)?,
                TokenKind::Punct(punct) => match self.foreign_postfix(punct, &expr) {
                    Some(reported) => return Err(reported),
                    None => return Ok(expr),
                },
                _ => return Ok(expr),
            };
            self.count_operator()?;
            expr = Expr { kind, span: self.since(start) };
        }
    }

    /// `.f` or `.m(…)` after `object`.
    fn selection(&mut self, object: Expr) -> Parsed<ExprKind> {
        self.take(Punct::Dot);
        let name = self.name("a field or method")?;
        if !self.is(Punct::OpenParen) {
            return Ok(ExprKind::Field(Box::new(object), name));
        }
        let args = self.args()?;
        Ok(ExprKind::Method(Box::new(object), name, args))
    }

    /// Suffixes that exist only in other languages.
    fn foreign_postfix(&mut self, punct: Punct, operand: &Expr) -> Option<Reported> {
        let text = self.short(operand.span);
        let (message, hint) = match punct {
            Punct::PlusPlus => {
                ("there is no `++`", format!("write `{text} += 1;` as a statement of its own"))
            }
            Punct::MinusMinus => (
                "there is no `--`",
                format!("write `{text} -= 1;` as a statement of its own, or `{text} - -…`"),
            ),
            Punct::Arrow if self.is_ahead(1, TokenKind::Name) => (
                "there is no `->` in expressions",
                "a dot follows a pointer too: `p.f` is `(*p).f`".to_owned(),
            ),
            Punct::ColonColon if text == "do" => (
                "there is no `do … od`",
                "write `loop { … }` with `if` or `choose` inside; `await` the guards before \
                 choosing"
                    .to_owned(),
            ),
            Punct::ColonColon => (
                "there is no `::`",
                "write variants without the name of the enum: `Red`, not `Light::Red`".to_owned(),
            ),
            Punct::OpenParen if !self.token().first_on_line => (
                "this cannot be called",
                "a call is the name of a function, then its arguments: `f(x)`".to_owned(),
            ),
            _ => return None,
        };
        Some(self.report(Diagnostic::new(self.token().span, message).hint(hint)))
    }

    /// An operand without operators.
    fn primary(&mut self) -> Parsed<Expr> {
        let start = self.token().span;
        let kind = match self.kind() {
            TokenKind::Number(number) => {
                self.bump();
                ExprKind::Int(number)
            }
            TokenKind::Name => self.named()?,
            TokenKind::Keyword(word) => self.keyword_expr(word)?,
            TokenKind::Punct(Punct::OpenParen) => {
                let open = self.bump();
                let inner = self.inner_expr()?;
                self.closing(Punct::CloseParen, open)?;
                // The parentheses belong to its span, or the spans of expressions built from it
                // would be torn.
                inner.kind
            }
            TokenKind::Punct(Punct::OpenBracket) => {
                let open = self.bump();
                ExprKind::Array(self.list(open, Punct::CloseBracket, Self::inner_expr)?)
            }
            TokenKind::Text => {
                let hint = "a string can only be the message of an `assert`: `assert e, \"why\";`";
                return Err(
                    self.report(Diagnostic::new(start, "a string is not a value").hint(hint))
                );
            }
            TokenKind::Bad => {
                while self.is(TokenKind::Bad) {
                    self.bump();
                }
                // It may have been meant as a prefix operator.
                if self.begins_operand(0) {
                    return self.primary();
                }
                ExprKind::Error
            }
            _ => {
                let diagnostic = self.expected("an expression");
                return Err(self.report(diagnostic));
            }
        };
        Ok(Expr { kind, span: self.since(start) })
    }

    /// Whether a word or a number is `ahead` tokens after the current one, in the same line.
    fn begins_operand(&self, ahead: usize) -> bool {
        let token = self.tokens[(self.at + ahead).min(self.tokens.len() - 1)];
        let begins = matches!(
            token.kind,
            TokenKind::Name
                | TokenKind::Number(_)
                | TokenKind::Keyword(Keyword::True | Keyword::False)
        );
        begins && !token.first_on_line
    }

    /// An expression that starts with a name.
    fn named(&mut self) -> Parsed<ExprKind> {
        let word = self.word();
        if word == "new" && self.is_ahead(1, TokenKind::Name) {
            return self.new_record();
        }
        if matches!(word, "all" | "any" | "count")
            && self.is_ahead(1, Punct::OpenParen)
            && self.binds(2)
        {
            return self.quantifier();
        }
        let quantifies = self.is_ahead(1, TokenKind::Name)
            || self.is_ahead(1, Punct::OpenParen) && self.binds(2);
        if let Some(ours) = hints::foreign_quantifier(word).filter(|_| quantifies) {
            let message = format!("`{word}` is not a quantifier");
            let diagnostic = Diagnostic::new(self.token().span, message);
            return Err(self.report(diagnostic.hint(format!("write `{ours}(i in 0..3: e)`"))));
        }
        let name = self.name("a variable")?;
        if self.is(Punct::OpenParen) {
            return Ok(ExprKind::Call(name, self.args()?));
        }
        Ok(ExprKind::Name(name.text))
    }

    /// Whether `i in`, or something meant as that, is `ahead` tokens after the current one.
    fn binds(&self, ahead: usize) -> bool {
        let follows = self.ahead(ahead + 1);
        let binds = [Keyword::In.into(), Punct::Colon.into(), Punct::Eq.into()].contains(&follows);
        binds && self.is_ahead(ahead, TokenKind::Name)
    }

    /// An expression that starts with a keyword.
    fn keyword_expr(&mut self, word: Keyword) -> Parsed<ExprKind> {
        match word {
            Keyword::True | Keyword::False | Keyword::Null => {
                self.bump();
                Ok(match word {
                    Keyword::Null => ExprKind::Null,
                    _ => ExprKind::Bool(word == Keyword::True),
                })
            }
            Keyword::If => self.if_expr(),
            Keyword::Spawn => {
                self.bump();
                if self.is(Punct::OpenBrace) {
                    let diagnostic = self.expected("the name of a function");
                    return Err(self
                        .report(diagnostic.hint("put the block into a function: `spawn f(x);`")));
                }
                let name = self.name("a function")?;
                if !self.is(Punct::OpenParen) {
                    let diagnostic = self.expected("`(` and the arguments of the function");
                    return Err(
                        self.report(diagnostic.hint(format!("write `spawn {}()`", name.text)))
                    );
                }
                Ok(ExprKind::Spawn(name, self.args()?))
            }
            Keyword::Choose => {
                self.bump();
                let open = self.expect(Punct::OpenParen, "`choose` in an expression")?;
                let range = self.range()?;
                self.closing(Punct::CloseParen, open)?;
                Ok(ExprKind::Choose(range))
            }
            _ => {
                let diagnostic = self.expected("an expression");
                let hint = format!("`{}` is a reserved word", word.text());
                Err(self.report(diagnostic.hint(hint)))
            }
        }
    }

    /// `if c { a } else { b }`; `else if` may follow too.
    fn if_expr(&mut self) -> Parsed<ExprKind> {
        self.take(Keyword::If);
        let condition = self.inner_expr()?;
        let then = self.braced_expr()?;
        if self.eat(Keyword::Else).is_none() {
            let diagnostic = self.expected("`else`");
            return Err(self.report(
                diagnostic.hint("an `if` that is a value needs both: `if c { a } else { b }`"),
            ));
        }
        let otherwise =
            if self.is(Keyword::If) { self.nested(Self::primary)? } else { self.braced_expr()? };
        Ok(ExprKind::If(Box::new(condition), Box::new(then), Box::new(otherwise)))
    }

    /// `{ e }`
    fn braced_expr(&mut self) -> Parsed<Expr> {
        let open = self.expect(Punct::OpenBrace, "the head of an `if` that is a value")?;
        let expr = self.inner_expr()?;
        if self.is(Punct::Semi) {
            let diagnostic = self.expected("`}`");
            return Err(self.report(
                diagnostic.hint(
                    "an `if` inside an expression has one value in each block, no statements",
                ),
            ));
        }
        self.closing(Punct::CloseBrace, open)?;
        Ok(expr)
    }

    /// `new Node { value: 1, next: p }`
    fn new_record(&mut self) -> Parsed<ExprKind> {
        self.bump();
        let record = self.name("a record")?;
        let Some(open) = self.eat(Punct::OpenBrace) else {
            let diagnostic = self.expected("`{` and the fields of the record");
            let hint = format!(
                "write `new {} {{ field: value }}`; fields not named are zero",
                record.text
            );
            return Err(self.report(diagnostic.hint(hint)));
        };
        let fields = self.list(open, Punct::CloseBrace, |parser| {
            let field = parser.name("a field")?;
            if !parser.is(Punct::Colon) {
                let diagnostic = parser.expected(&format!("`:` and the value of `{}`", field.text));
                return Err(parser.report(diagnostic));
            }
            parser.bump();
            Ok((field, parser.inner_expr()?))
        })?;
        Ok(ExprKind::New(record, fields))
    }

    /// `all(i in 0..N: e)`
    fn quantifier(&mut self) -> Parsed<ExprKind> {
        let word = self.name("a quantifier")?;
        let open = self.take(Punct::OpenParen);
        let variable = self.name("a variable")?;
        if self.eat(Keyword::In).is_none() {
            let diagnostic = self.expected("`in` and a range");
            return Err(
                self.report(diagnostic.hint(format!("write `{}(i in 0..3: e)`", word.text)))
            );
        }
        let range = self.range()?;
        if self.eat(Punct::Colon).is_none() {
            let diagnostic = self.expected("`:` and the body");
            return Err(
                self.report(diagnostic.hint(format!("write `{}(i in 0..3: e)`", word.text)))
            );
        }
        let body = self.inner_expr()?;
        self.closing(Punct::CloseParen, open)?;
        Ok(ExprKind::Quantifier(word, variable, range, Box::new(body)))
    }

    /// `(a, b)`
    fn args(&mut self) -> Parsed<Vec<Expr>> {
        let open = self.take(Punct::OpenParen);
        self.list(open, Punct::CloseParen, Self::inner_expr)
    }

    /// The sign that closes what `open` opened.
    pub(super) fn closing(&mut self, close: Punct, open: Span) -> Parsed<Span> {
        if let Some(span) = self.eat(close) {
            return Ok(span);
        }
        let diagnostic = self.expected(&format!("`{}`", close.text()));
        Err(self.report(diagnostic.related(open, "opened here")))
    }
}

fn binary_expr(left: Expr, op: BinaryOp, right: Expr) -> Expr {
    let span = left.span.to(right.span);
    Expr { kind: ExprKind::Binary(op, Box::new(left), Box::new(right)), span }
}
