//! Diagnostics for what is not a statement, with what was probably meant.

use preempt_machine::diagnostic::Diagnostic;
use preempt_system::text::nearest;

use super::{Parsed, Parser, Reported, hints};
use crate::syntax::ast::{BinaryOp, Expr, ExprKind};
use crate::syntax::token::{Keyword, Punct, TokenKind};

impl Parser<'_> {
    /// The error of an expression that has no effect as a statement.
    pub(super) fn without_effect(&self, expr: &Expr) -> Option<Diagnostic> {
        if self.is(Punct::FatArrow) {
            let diagnostic = Diagnostic::new(expr.span, "an arm outside of a `match`");
            return Some(diagnostic.hint(
                "`match e { 0 => { … } _ => { … } }`; is there an extra or a missing brace before it?",
            ));
        }
        let text = self.short(expr.span);
        let hint = match &expr.kind {
            ExprKind::Call(..) | ExprKind::Method(..) | ExprKind::Spawn(..) | ExprKind::New(..) => {
                return None;
            }
            ExprKind::Choose(_) | ExprKind::Error => return None,
            ExprKind::Binary(BinaryOp::Eq, ..) => "an assignment has one `=`: `x = e;`".to_owned(),
            ExprKind::Field(..) => format!("a method is called with parentheses: `{text}()`"),
            ExprKind::Name(_) => match (hints::stmt_word(text), nearest_stmt(text)) {
                (Some((_, hint)), _) => hint.to_owned(),
                (None, Some(keyword)) => format!("did you mean `{};`?", keyword.text()),
                (None, None) => {
                    format!("to call a function, write `{text}()`; to assign, `{text} = e;`")
                }
            },
            _ => "a statement is an assignment, a call or a declaration".to_owned(),
        };
        Some(Diagnostic::new(expr.span, "this statement does nothing").hint(hint))
    }

    /// Whether two words follow each other here, or a word and a block: no expression starts like
    /// that.
    pub(super) fn two_words(&self) -> bool {
        let second = self.tokens[(self.at + 1).min(self.tokens.len() - 1)];
        let follows = match second.kind {
            TokenKind::Name => self.word() != "new" && hints::word(self.word_ahead(1)).is_none(),
            TokenKind::Keyword(_) | TokenKind::Number(_) | TokenKind::Text => true,
            TokenKind::Punct(Punct::OpenBrace) => true,
            _ => false,
        };
        follows && !second.first_on_line
    }

    /// Reports a statement that starts with an unknown word; if a keyword was clearly meant,
    /// replaces the word by it.
    pub(super) fn unknown_stmt(&mut self) -> Parsed<Keyword> {
        let word = self.word();
        let declares = self.is_ahead(1, TokenKind::Name)
            && [Punct::Semi, Punct::Eq, Punct::OpenBracket]
                .iter()
                .any(|&punct| self.is_ahead(2, punct));
        let (meant, hint) = if let Some((meant, hint)) = hints::stmt_word(word) {
            (meant, hint.to_owned())
        } else if let Some(keyword) = nearest_stmt(word).filter(|_| !declares || word.len() > 3) {
            (Some(keyword), format!("did you mean `{}`?", keyword.text()))
        } else if declares {
            let hint = format!(
                "the type of a variable comes after its name: `var {}: {word};`",
                self.word_ahead(1)
            );
            (None, hint)
        } else {
            (
                None,
                "a statement is an assignment, a call, or begins with a reserved word".to_owned(),
            )
        };
        let diagnostic =
            Diagnostic::new(self.token().span, format!("no statement begins with `{word}`"));
        let reported = self.report(diagnostic.hint(hint));
        let meant = meant.ok_or(reported)?;
        self.tokens[self.at].kind = meant.into();
        Ok(meant)
    }

    /// Reports `:=`, which the caller then treats as `=`.
    pub(super) fn colon_equals(&mut self) {
        let diagnostic =
            Diagnostic::new(self.token().span, "`:=` is not an operator of this language");
        self.report(diagnostic.hint("write `=`"));
    }

    /// Reports a keyword that cannot start a statement.
    pub(super) fn misplaced(&mut self, word: Keyword) -> Reported {
        let (text, span) = (word.text(), self.token().span);
        if matches!(word, Keyword::Int | Keyword::Bool) && self.is_ahead(1, TokenKind::Name) {
            return self.type_before_name();
        }
        if word.begins_only_items()
            && matches!(self.ahead(1), TokenKind::Name | TokenKind::Punct(Punct::OpenParen))
        {
            let diagnostic = Diagnostic::new(span, format!("`{text}` inside a block"));
            return self.report(diagnostic.label("a declaration, not a statement").hint(
                "declare it outside of all threads and functions; or is a `}` missing before it?",
            ));
        }
        if word == Keyword::Else {
            let diagnostic = Diagnostic::new(span, "`else` without `if`");
            return self.report(diagnostic.hint("`else` directly follows the `}` of its `if`"));
        }
        let diagnostic = self.expected("a statement");
        self.report(diagnostic.hint(format!("`{text}` is a reserved word")))
    }

    /// Reports `int x` and the like.
    pub(super) fn type_before_name(&mut self) -> Reported {
        let (ty, name) = (self.word(), self.word_ahead(1));
        let diagnostic = Diagnostic::new(
            self.token().span,
            format!("a declaration does not begin with its type `{ty}`"),
        )
        .hint(format!("write `var {name}: {ty};`"));
        self.report(diagnostic)
    }
}

/// The keyword that was probably meant at the start of a statement.
fn nearest_stmt(word: &str) -> Option<Keyword> {
    let words = Keyword::ALL
        .iter()
        .filter(|keyword| keyword.begins_statement() || **keyword == Keyword::Else);
    nearest(word, words.map(|keyword| keyword.text())).and_then(Keyword::of)
}
