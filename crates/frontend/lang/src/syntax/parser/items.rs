//! Declarations.

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::source::Span;
use preempt_system::text::nearest;

use super::{Parsed, Parser, Reported, hints};
use crate::syntax::ast::{Declarator, Expr, File, Item, ItemKind, Name, TypeExpr};
use crate::syntax::token::{Keyword, Punct, TokenKind};

/// The keywords that start declarations.
const ITEM_WORDS: &[&str] = &[
    "atomic",
    "barrier",
    "channel",
    "condvar",
    "const",
    "enum",
    "event",
    "fn",
    "init",
    "invariant",
    "memory",
    "mutex",
    "record",
    "rwlock",
    "semaphore",
    "steps",
    "thread",
    "var",
];

impl Parser<'_> {
    pub(super) fn file(&mut self) -> File {
        let mut items = Vec::new();
        while !self.is(TokenKind::End) {
            let before = self.at;
            self.misaligned = None;
            match self.item() {
                Ok(item) => items.push(item),
                Err(Reported) => self.skip_item(before),
            }
            if self.at == before {
                self.bump();
            }
        }
        File { items }
    }

    /// Whether a declaration starts here.
    pub(super) fn at_item(&self) -> bool {
        match self.kind() {
            TokenKind::Keyword(word) => {
                word.begins_only_items() || matches!(word, Keyword::Var | Keyword::Atomic)
            }
            TokenKind::Name => {
                self.word() == "init" && self.is_ahead(1, Punct::OpenBrace)
                    || matches!(self.word(), "memory" | "steps")
                        && self.is_ahead(1, TokenKind::Name)
            }
            _ => false,
        }
    }

    fn item(&mut self) -> Parsed<Item> {
        let start = self.token().span;
        self.operators = 0;
        let kind = match self.kind() {
            TokenKind::Keyword(word) => self.keyword_item(word)?,
            TokenKind::Name if self.at_item() && self.word() == "init" => {
                self.bump();
                ItemKind::Init(self.block("`init`")?)
            }
            TokenKind::Name if self.at_item() && self.word() == "memory" => self.memory()?,
            TokenKind::Name if self.at_item() => self.steps()?,
            _ => {
                let meant = self.unknown_item()?;
                self.keyword_item(meant)?
            }
        };
        Ok(Item { kind, span: self.since(start) })
    }

    fn keyword_item(&mut self, word: Keyword) -> Parsed<ItemKind> {
        match word {
            Keyword::Const => self.constant(),
            Keyword::Enum => self.enumeration(),
            Keyword::Record => self.record(),
            Keyword::Var => self.shared(None),
            Keyword::Atomic if self.is_ahead(1, Keyword::Var) => {
                let atomic = self.bump();
                self.shared(Some(atomic))
            }
            Keyword::Fn => self.function(),
            Keyword::Thread => self.thread(),
            Keyword::Invariant => self.invariant(),
            _ if word.is_object() => self.objects(word),
            Keyword::Int | Keyword::Bool if self.is_ahead(1, TokenKind::Name) => {
                Err(self.type_before_name())
            }
            _ => self.unknown_item().and_then(|meant| self.keyword_item(meant)),
        }
    }

    fn steps(&mut self) -> Parsed<ItemKind> {
        self.bump();
        let name = self.name("a step size")?;
        if !matches!(&*name.text, "access" | "statement") {
            let diagnostic =
                Diagnostic::new(name.span, format!("unknown step size `{}`", name.text));
            self.report(diagnostic.hint("write `steps access;` or `steps statement;`"));
        }
        self.semicolon("`steps`")?;
        Ok(ItemKind::Steps(name))
    }

    fn memory(&mut self) -> Parsed<ItemKind> {
        self.bump();
        let name = self.name("a memory model")?;
        if !matches!(&*name.text, "sc" | "weak") {
            let diagnostic =
                Diagnostic::new(name.span, format!("unknown memory model `{}`", name.text));
            self.report(diagnostic.hint("write `memory weak;` or `memory sc;`"));
        }
        self.semicolon("`memory`")?;
        Ok(ItemKind::Memory(name))
    }

    fn constant(&mut self) -> Parsed<ItemKind> {
        self.take(Keyword::Const);
        let (name, ty, value) = self.variable()?;
        let Some(value) = value else {
            let diagnostic = self.expected(&format!("`=` and the value of `{}`", name.text));
            return Err(self.report(diagnostic));
        };
        self.semicolon("a constant")?;
        Ok(ItemKind::Const { name, ty, value })
    }

    fn shared(&mut self, atomic: Option<Span>) -> Parsed<ItemKind> {
        self.take(Keyword::Var);
        let (name, ty, init) = self.variable()?;
        self.semicolon("a declaration")?;
        Ok(ItemKind::Var { atomic: atomic.is_some(), name, ty, init })
    }

    /// `x: int = 3`; the type, the value or both may be missing.
    pub(super) fn variable(&mut self) -> Parsed<(Name, Option<TypeExpr>, Option<Expr>)> {
        let declared = matches!(self.kind(), TokenKind::Keyword(_) | TokenKind::Name)
            && (self.is_ahead(1, TokenKind::Name)
                || matches!(self.ahead(1), TokenKind::Keyword(word) if word.is_type()))
            && !self.tokens[self.at + 1].first_on_line;
        if declared {
            return Err(self.two_words_declared());
        }
        let name = self.name("a variable")?;
        let ty = if self.eat(Punct::Colon).is_some() { Some(self.ty()?) } else { None };
        let init = match self.kind() {
            TokenKind::Punct(punct @ (Punct::Eq | Punct::ColonEq)) => {
                if punct == Punct::ColonEq {
                    self.colon_equals();
                }
                self.bump();
                Some(self.expr()?)
            }
            TokenKind::Punct(Punct::OpenBracket) if ty.is_none() => {
                let diagnostic = Diagnostic::new(
                    self.token().span,
                    "the length of an array is part of its type",
                );
                return Err(
                    self.report(diagnostic.hint(format!("write `var {}: [int; 3];`", name.text)))
                );
            }
            TokenKind::Punct(Punct::Comma) => {
                let diagnostic =
                    Diagnostic::new(self.token().span, "one `var` declares one variable");
                return Err(self.report(diagnostic.hint("write a declaration for each of them")));
            }
            _ => None,
        };
        Ok((name, ty, init))
    }

    /// Reports `var mut x`, `var int x` or `var x int`.
    fn two_words_declared(&mut self) -> Reported {
        let (first, second) = (self.word(), self.word_ahead(1));
        let (span, message, hint) = match self.kind() {
            TokenKind::Name if first == "mut" => {
                let hint = format!("every variable can be assigned: write `var {second}`");
                (self.token().span, "there is no `mut`", hint)
            }
            TokenKind::Keyword(_) => (
                self.token().span,
                "the type comes after the name",
                format!("write `var {second}: {first}`"),
            ),
            _ => {
                let hint =
                    format!("the name comes first, then `:` and the type: `var {first}: {second}`");
                (self.tokens[self.at + 1].span, "two words where a name is expected", hint)
            }
        };
        self.report(Diagnostic::new(span, message).hint(hint))
    }

    fn enumeration(&mut self) -> Parsed<ItemKind> {
        self.take(Keyword::Enum);
        let name = self.name("an enum")?;
        let open = self.expect(Punct::OpenBrace, "the name of an enum")?;
        let variants = self.list(open, Punct::CloseBrace, |parser| parser.name("a variant"))?;
        self.eat(Punct::Semi);
        Ok(ItemKind::Enum { name, variants })
    }

    fn record(&mut self) -> Parsed<ItemKind> {
        self.take(Keyword::Record);
        let name = self.name("a record")?;
        let open = self.expect(Punct::OpenBrace, "the name of a record")?;
        let fields = self.list(open, Punct::CloseBrace, |parser| parser.typed_name("a field"))?;
        self.eat(Punct::Semi);
        Ok(ItemKind::Record { name, fields })
    }

    /// `x: int`
    fn typed_name(&mut self, what: &str) -> Parsed<(Name, TypeExpr)> {
        if matches!(self.kind(), TokenKind::Keyword(_)) && self.is_ahead(1, TokenKind::Name) {
            let hint = format!("write `{}: {}`", self.word_ahead(1), self.word());
            let diagnostic = Diagnostic::new(self.token().span, "the type comes after the name");
            return Err(self.report(diagnostic.hint(hint)));
        }
        let name = self.name(what)?;
        if self.eat(Punct::Colon).is_none() {
            let diagnostic = self.expected(&format!("`:` and the type of `{}`", name.text));
            return Err(self.report(diagnostic.hint(format!("write `{}: int`", name.text))));
        }
        Ok((name, self.ty()?))
    }

    fn objects(&mut self, word: Keyword) -> Parsed<ItemKind> {
        let ty = self.object_type(word)?;
        let what = format!("a {}", word.text());
        let mut declarators = vec![self.declarator(&what)?];
        while self.eat(Punct::Comma).is_some() {
            declarators.push(self.declarator(&what)?);
        }
        if self.is(Punct::Eq) {
            let diagnostic = self.expected("`;`");
            let hint = "objects have no initial value; a semaphore's count comes before its name: \
                        `semaphore(3) s;`";
            return Err(self.report(diagnostic.hint(hint)));
        }
        self.semicolon("a declaration")?;
        Ok(ItemKind::Object { ty, declarators })
    }

    fn declarator(&mut self, what: &str) -> Parsed<Declarator> {
        let name = self.name(what)?;
        let mut dimensions = Vec::new();
        while let Some(open) = self.eat(Punct::OpenBracket) {
            dimensions.push(self.expr()?);
            self.closing(Punct::CloseBracket, open)?;
        }
        if self.is(Punct::OpenParen) {
            let diagnostic = self.expected("`,` or `;`");
            let hint = format!("the arguments come before the name: `semaphore(3) {};`", name.text);
            return Err(self.report(diagnostic.hint(hint)));
        }
        Ok(Declarator { name, dimensions })
    }

    fn function(&mut self) -> Parsed<ItemKind> {
        self.take(Keyword::Fn);
        let name = self.name("a function")?;
        let open = self.expect(Punct::OpenParen, "the name of a function")?;
        let params =
            self.list(open, Punct::CloseParen, |parser| parser.typed_name("a parameter"))?;
        let result = match self.kind() {
            TokenKind::Punct(Punct::Arrow) => {
                self.bump();
                Some(self.ty()?)
            }
            TokenKind::Punct(Punct::Colon) | TokenKind::Keyword(Keyword::Int | Keyword::Bool) => {
                let diagnostic = self.expected("`->` or `{`");
                let hint = "the type of the result comes after `->`: `fn f() -> int { … }`";
                return Err(self.report(diagnostic.hint(hint)));
            }
            _ => None,
        };
        let body = self.block("the head of a function")?;
        Ok(ItemKind::Fn { name, params, result, body })
    }

    fn thread(&mut self) -> Parsed<ItemKind> {
        self.take(Keyword::Thread);
        let name = self.name("a thread")?;
        let mut params = Vec::new();
        if let Some(open) = self.eat(Punct::OpenParen) {
            params = self.list(open, Punct::CloseParen, |parser| {
                let name = parser.name("a parameter")?;
                if parser.eat(Keyword::In).is_none() {
                    let diagnostic = parser.expected("`in` and a range");
                    let hint = format!(
                        "one thread starts for each value: `thread t({} in 0..3) {{ … }}`",
                        name.text
                    );
                    return Err(parser.report(diagnostic.hint(hint)));
                }
                Ok((name, parser.range()?))
            })?;
        }
        let body = self.block("the head of a thread")?;
        Ok(ItemKind::Thread { name, params, body })
    }

    fn invariant(&mut self) -> Parsed<ItemKind> {
        self.take(Keyword::Invariant);
        let mut name = None;
        if self.is(TokenKind::Name) && self.is_ahead(1, Punct::Colon) {
            name = Some(self.name("an invariant")?);
            self.take(Punct::Colon);
        }
        let condition = self.expr()?;
        self.semicolon("an invariant")?;
        Ok(ItemKind::Invariant { name, condition })
    }

    /// Reports a token that does not start a declaration; if a keyword was clearly meant, replaces
    /// the token by it.
    fn unknown_item(&mut self) -> Parsed<Keyword> {
        let (word, span) = (self.word(), self.token().span);
        if self.is(Punct::CloseBrace) {
            let diagnostic = Diagnostic::new(span, "this `}` closes nothing");
            return Err(
                self.report(diagnostic.hint("remove it, or look for an extra `}` before it"))
            );
        }
        let statement = matches!(self.kind(), TokenKind::Keyword(word) if word.begins_statement());
        let names = self.is_ahead(1, TokenKind::Name);
        let declares =
            names && [Punct::Semi, Punct::Eq].iter().any(|&punct| self.is_ahead(2, punct));
        let stray = statement || !names && !self.is_ahead(1, Punct::OpenBrace);
        let (meant, hint) = if stray {
            (
                None,
                "statements belong inside `thread main { … }`, `fn f() { … }` or `init { … }`"
                    .to_owned(),
            )
        } else if let Some((meant, hint)) = hints::item_word(word) {
            (meant, hint.to_owned())
        } else if let Some(meant) =
            nearest(word, ITEM_WORDS.iter().copied()).filter(|_| !declares || word.len() > 3)
        {
            (Keyword::of(meant), format!("did you mean `{meant}`?"))
        } else if declares {
            let hint = format!(
                "the type of a variable comes after its name: `var {}: {word};`",
                self.word_ahead(1)
            );
            (None, hint)
        } else {
            (None, format!("a declaration begins with one of `{}`", ITEM_WORDS.join("`, `")))
        };
        let message = match statement {
            true => format!("a statement outside of a thread: `{word}`"),
            false => format!("expected a declaration, found {}", self.found()),
        };
        let reported = self.report(Diagnostic::new(span, message).hint(hint));
        if stray {
            self.skip_strays();
            return Err(reported);
        }
        let meant = meant.filter(|meant| *meant != Keyword::Atomic).ok_or(reported)?;
        self.tokens[self.at].kind = meant.into();
        Ok(meant)
    }
}
