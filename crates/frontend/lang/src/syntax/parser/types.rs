//! Types and ranges.

use preempt_machine::diagnostic::Diagnostic;

use super::{Parsed, Parser};
use crate::syntax::ast::{Expr, ExprKind, ObjectArg, RangeExpr, TypeExpr, TypeKind};
use crate::syntax::token::{Keyword, Punct, TokenKind};

impl Parser<'_> {
    /// `int`, `0..N`, `[T; n]`, `*T`, `mutex`, …
    pub(super) fn ty(&mut self) -> Parsed<TypeExpr> {
        self.operators = 0;
        let ty = self.nested(Self::type_form)?;
        if self.is(Punct::OpenBracket) && !self.token().first_on_line {
            let element = self.short(ty.span);
            let hint = format!("write the length inside: `[{element}; 3]`");
            let message = "the length of an array does not come after its element type";
            return Err(self.report(Diagnostic::new(self.token().span, message).hint(hint)));
        }
        Ok(ty)
    }

    fn type_form(&mut self) -> Parsed<TypeExpr> {
        let start = self.token().span;
        let kind = match self.kind() {
            TokenKind::Keyword(word @ (Keyword::Int | Keyword::Bool | Keyword::Thread)) => {
                self.bump();
                TypeKind::Named(word.text().to_owned())
            }
            TokenKind::Keyword(word) if word.is_object() => return self.object_type(word),
            TokenKind::Punct(Punct::Star) => {
                self.bump();
                TypeKind::Pointer(Box::new(self.ty()?))
            }
            TokenKind::Punct(Punct::OpenBracket) => {
                let open = self.bump();
                let element = self.ty()?;
                if !self.is(Punct::Semi) {
                    let diagnostic = self.expected("`;` and the length of the array");
                    return Err(
                        self.report(diagnostic.hint("an array type has its length: `[int; 3]`"))
                    );
                }
                self.bump();
                let length = self.bound()?;
                self.closing(Punct::CloseBracket, open)?;
                TypeKind::Array(Box::new(element), Box::new(length))
            }
            _ if self.begins_bound() => {
                let lo = self.bound()?;
                return self.range_or_name(lo);
            }
            _ => {
                let diagnostic = self.expected("a type");
                let hint = "types are `int`, `bool`, ranges like `0..8`, arrays `[T; n]`, pointers \
                            `*T`, and names of enums and records";
                return Err(self.report(diagnostic.hint(hint)));
            }
        };
        Ok(TypeExpr { kind, span: self.since(start) })
    }

    /// Whether the current token may start the lower end of a range, or is the name of a type.
    fn begins_bound(&self) -> bool {
        matches!(
            self.kind(),
            TokenKind::Name
                | TokenKind::Number(_)
                | TokenKind::Punct(Punct::Minus | Punct::OpenParen)
                | TokenKind::Keyword(Keyword::True | Keyword::False)
        )
    }

    /// A type that starts with an expression.
    fn range_or_name(&mut self, lo: Expr) -> Parsed<TypeExpr> {
        if self.at_range() {
            let range = self.range_from(lo, Self::bound)?;
            let span = range.span;
            return Ok(TypeExpr { kind: TypeKind::Range(range), span });
        }
        match lo.kind {
            ExprKind::Name(name) => Ok(TypeExpr { kind: TypeKind::Named(name), span: lo.span }),
            _ => {
                let text = self.short(lo.span);
                let hint = format!(
                    "a range has two ends: `0..{text}` are the numbers from 0 up to, but not \
                     including, {text}"
                );
                Err(self.report(
                    Diagnostic::new(lo.span, "expected a type, found an expression").hint(hint),
                ))
            }
        }
    }

    /// `semaphore(3)`, `channel(4, int)`, … without the names that may follow.
    pub(super) fn object_type(&mut self, word: Keyword) -> Parsed<TypeExpr> {
        let start = self.take(word);
        let mut args = Vec::new();
        if let Some(open) = self.eat(Punct::OpenParen) {
            args = self.list(open, Punct::CloseParen, Self::object_arg)?;
        }
        Ok(TypeExpr {
            kind: TypeKind::Object(word.text().to_owned(), args),
            span: self.since(start),
        })
    }

    fn object_arg(&mut self) -> Parsed<ObjectArg> {
        match self.kind() {
            TokenKind::Keyword(Keyword::Int | Keyword::Bool | Keyword::Thread)
            | TokenKind::Punct(Punct::Star | Punct::OpenBracket) => Ok(ObjectArg::Type(self.ty()?)),
            TokenKind::Keyword(word) if word.is_object() => Ok(ObjectArg::Type(self.ty()?)),
            _ => {
                let lo = self.bound()?;
                if self.at_range() {
                    Ok(ObjectArg::Type(self.range_or_name(lo)?))
                } else {
                    Ok(ObjectArg::Expr(lo))
                }
            }
        }
    }

    /// `lo..hi` or `lo..=hi`.
    pub(super) fn range(&mut self) -> Parsed<RangeExpr> {
        let lo = self.bound()?;
        self.range_from(lo, Self::bound)
    }

    /// Whether a `..` is here, or its equivalent in another language.
    pub(super) fn at_range(&self) -> bool {
        matches!(self.kind(), TokenKind::Punct(Punct::DotDot | Punct::DotDotEq | Punct::Ellipsis))
    }

    /// The rest of a range after its lower end; `end` parses the upper one.
    pub(super) fn range_from(
        &mut self,
        lo: Expr,
        end: fn(&mut Self) -> Parsed<Expr>,
    ) -> Parsed<RangeExpr> {
        let inclusive = match self.kind() {
            TokenKind::Punct(Punct::DotDot) => false,
            TokenKind::Punct(Punct::DotDotEq) => true,
            TokenKind::Punct(Punct::Ellipsis) => {
                self.report(
                    Diagnostic::new(self.token().span, "`...` is not an operator of this language")
                        .hint(
                            "write `..` for a range without its upper end, `..=` for one with it",
                        ),
                );
                true
            }
            _ => {
                let diagnostic = self.expected("`..` and the upper end of the range");
                let text = self.short(lo.span);
                let hint = match self.kind() {
                    TokenKind::Punct(Punct::Comma) => {
                        "write `lo..hi`, or `lo..=hi` with the upper end included".to_owned()
                    }
                    _ => format!(
                        "`0..{text}` are the numbers from 0 up to, but not including, {text}"
                    ),
                };
                return Err(self.report(diagnostic.hint(hint)));
            }
        };
        self.bump();
        let hi = end(self)?;
        let span = lo.span.to(hi.span);
        Ok(RangeExpr { lo: Box::new(lo), hi: Box::new(hi), inclusive, span })
    }
}
