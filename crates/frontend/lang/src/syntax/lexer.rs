//! The lexer. Every text has tokens: a character that does not start a token is reported, and
//! lexing continues after it.
//!
//! To avoid follow-up errors in the parser, something that was clearly meant as a token becomes
//! that token (`≤` is read as `<=`). Other invalid words and literals become [`TokenKind::Bad`],
//! which the parser accepts anywhere without a report.

use preempt_machine::diagnostic::Diagnostic;
use preempt_machine::source::Span;

use super::token::{Keyword, Punct, Token, TokenKind};

/// The greatest number that may be written: with a minus sign it is the least `int`.
const MAX_NUMBER: i64 = 1 << 31;

/// The tokens of a text, with [`TokenKind::End`] last, and its lexical errors.
pub fn lex(text: &str) -> (Vec<Token>, Vec<Diagnostic>) {
    let mut lexer =
        Lexer { text, at: 0, line_begun: false, tokens: Vec::new(), diagnostics: Vec::new() };
    lexer.run();
    (lexer.tokens, lexer.diagnostics)
}

struct Lexer<'a> {
    text: &'a str,
    /// The offset of the next byte; always on a character boundary.
    at: usize,
    /// Whether there was a token in this line.
    line_begun: bool,
    tokens: Vec<Token>,
    diagnostics: Vec<Diagnostic>,
}

impl<'a> Lexer<'a> {
    fn run(&mut self) {
        self.at = if self.text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        while let Some(next) = self.peek() {
            let start = self.at;
            match next {
                '\n' => {
                    self.at += 1;
                    self.line_begun = false;
                }
                ' ' | '\t' | '\r' => self.at += 1,
                '/' if self.rest().starts_with("//") => self.skip_line(),
                '/' if self.rest().starts_with("/*") => self.block_comment(),
                '"' => self.text_literal(),
                '\'' => self.quoted(),
                '0'..='9' => self.number(),
                _ if is_word(next) => self.word(),
                _ => match Punct::ALL.iter().find(|punct| self.rest().starts_with(punct.text())) {
                    Some(&punct) => {
                        self.at += punct.text().len();
                        self.push(punct.into(), start);
                    }
                    None => self.unexpected(next),
                },
            }
            debug_assert!(self.at > start, "the lexer moves on with every round");
        }
        self.push(TokenKind::End, self.at);
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Moves to the first character that is not `wanted` and returns the skipped text.
    fn take(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let taken = &rest[..rest.find(|c| !wanted(c)).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    fn push(&mut self, kind: TokenKind, start: usize) {
        let first_on_line = !std::mem::replace(&mut self.line_begun, true);
        self.tokens.push(Token { kind, span: Span::new(start, self.at), first_on_line });
    }

    fn complain(
        &mut self,
        start: usize,
        message: impl Into<String>,
        label: &str,
        hint: impl Into<String>,
    ) {
        let span = Span::new(start, self.at);
        self.diagnostics.push(Diagnostic::new(span, message).label(label).hint(hint));
    }

    fn skip_line(&mut self) {
        self.take(|c| c != '\n');
    }

    fn block_comment(&mut self) {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            let rest = self.rest();
            if rest.starts_with("/*") {
                depth += 1;
                self.at += 2;
            } else if rest.starts_with("*/") {
                depth -= 1;
                self.at += 2;
                if depth == 0 {
                    return;
                }
            } else if let Some(next) = rest.chars().next() {
                // A token after a comment of several lines is the first of its line.
                self.line_begun &= next != '\n';
                self.at += next.len_utf8();
            } else {
                break;
            }
        }
        let opening = Span::new(start, start + 2);
        self.diagnostics.push(
            Diagnostic::new(opening, "this comment is never closed")
                .label("it extends to the end of the file")
                .hint("comments nest: every `/*` needs a `*/` of its own"),
        );
    }

    fn text_literal(&mut self) {
        let start = self.at;
        self.at += 1;
        loop {
            self.take(|c| !matches!(c, '"' | '\\' | '\n'));
            match self.peek() {
                Some('"') => {
                    self.at += 1;
                    return self.push(TokenKind::Text, start);
                }
                Some('\\') => self.escape(),
                _ => break,
            }
        }
        self.complain(
            start,
            "this string is never closed",
            "no `\"` before the end of the line",
            "add a `\"` at its end",
        );
        self.push(TokenKind::Bad, start);
    }

    fn escape(&mut self) {
        let start = self.at;
        self.at += 1;
        let Some(escaped) = self.peek().filter(|&c| c != '\n') else { return };
        self.at += escaped.len_utf8();
        if unescaped(escaped).is_none() {
            let message = format!("unknown escape `\\{escaped}` in a string");
            self.complain(
                start,
                message,
                "",
                "there are `\\\"`, `\\\\` and `\\n`; write `\\\\` for a backslash",
            );
        }
    }

    /// `'…'`, which has no meaning here.
    fn quoted(&mut self) {
        let start = self.at;
        self.at += 1;
        self.take(|c| !matches!(c, '\'' | '\n'));
        if self.peek() == Some('\'') {
            self.at += 1;
        } else {
            // A lone quote, as in an identifier `x'`: the rest of the line may be valid.
            self.at = start + 1;
        }
        self.complain(
            start,
            "unexpected `'`",
            "",
            "there are no character literals; the message of an `assert` is written in double \
             quotes: `\"…\"`",
        );
        self.push(TokenKind::Bad, start);
    }

    fn number(&mut self) {
        let start = self.at;
        let digits: String =
            self.take(|c| c.is_ascii_digit() || c == '_').chars().filter(|&c| c != '_').collect();
        if self.peek().is_some_and(is_word) {
            let tail = self.take(is_word);
            let hint = match tail.as_bytes() {
                [b'x' | b'X' | b'b' | b'B' | b'o' | b'O', ..] if digits == "0" => {
                    "write the number in decimal"
                }
                _ => {
                    "a name begins with a letter or `_`; between a number and a word there must be \
                     a blank or a sign"
                }
            };
            let message =
                format!("`{}` is neither a number nor a name", &self.text[start..self.at]);
            self.complain(start, message, "", hint);
            return self.push(TokenKind::Bad, start);
        }
        let mut after = self.rest().chars();
        if after.next() == Some('.') && after.next().is_some_and(|c| c.is_ascii_digit()) {
            self.take(|c| c.is_ascii_digit() || c == '.');
            self.complain(
                start,
                "numbers are integers",
                "a fraction",
                "for a range write `..`, as in `0..5`",
            );
            return self.push(TokenKind::Bad, start);
        }
        match digits.parse() {
            Ok(number @ 0..=MAX_NUMBER) => self.push(TokenKind::Number(number), start),
            _ => {
                let hint = "`int` ranges from -2147483648 to 2147483647";
                self.complain(start, "this number is too large", "does not fit 32 bits", hint);
                self.push(TokenKind::Bad, start);
            }
        }
    }

    fn word(&mut self) {
        let start = self.at;
        let word = self.take(is_word);
        if !word.is_ascii() {
            let message = format!("the name `{word}` has letters other than a–z");
            self.complain(
                start,
                message,
                "",
                "names are made of `a`–`z`, `A`–`Z`, `0`–`9` and `_`",
            );
            return self.push(TokenKind::Bad, start);
        }
        self.push(Keyword::of(word).map_or(TokenKind::Name, TokenKind::Keyword), start);
    }

    fn unexpected(&mut self, found: char) {
        let start = self.at;
        if let Some(meant) = lookalike(found) {
            self.at += found.len_utf8();
            let hint = format!("write `{}`", meant.text());
            self.complain(
                start,
                format!("unexpected `{found}`"),
                "not a character of this language",
                hint,
            );
            return self.push(meant.into(), start);
        }
        if found.is_whitespace() {
            self.take(|c| c == found);
            let message = format!("unusual space character U+{:04X}", u32::from(found));
            return self.complain(start, message, "", "replace it with an ordinary space");
        }
        self.at += found.len_utf8();
        // A run of the same character, or of characters outside ASCII, is one error.
        self.take(|c| c == found || !found.is_ascii() && !c.is_ascii() && !c.is_whitespace());
        let run = &self.text[start..self.at];
        let message = match found {
            _ if found.is_control() => {
                format!("unexpected control character U+{:04X}", u32::from(found))
            }
            _ if run.chars().nth(1).is_some() => "unexpected characters".to_owned(),
            _ => format!("unexpected `{found}`"),
        };
        let hint = match found {
            '#' => "a comment begins with `//`",
            '?' => "choose between two values with `if c { a } else { b }`",
            '~' => "the bits of `x` are flipped by `x ^ -1`; a bool is negated by `!b`",
            '“' | '”' | '„' | '‘' | '’' | '`' => {
                "strings are written in straight double quotes: `\"…\"`"
            }
            '@' | '$' => "names need no mark before them",
            '\\' => "a statement may simply go on in the next line",
            _ if found.is_control() => "is this a text file?",
            _ => "this character has no meaning here",
        };
        self.complain(start, message, "not a character of this language", hint);
        if found == '#' {
            self.skip_line();
        } else {
            self.push(TokenKind::Bad, start);
        }
    }
}

fn is_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// The sign for a mathematical or typographical character.
fn lookalike(c: char) -> Option<Punct> {
    Some(match c {
        '≤' => Punct::LtEq,
        '≥' => Punct::GtEq,
        '≠' => Punct::NotEq,
        '≡' => Punct::EqEq,
        '∧' => Punct::AndAnd,
        '∨' => Punct::OrOr,
        '¬' => Punct::Not,
        '→' => Punct::Arrow,
        '⇒' => Punct::Implies,
        '…' => Punct::DotDot,
        '−' | '–' => Punct::Minus,
        '×' | '·' => Punct::Star,
        '÷' => Punct::Slash,
        // The Greek question mark, and the full-width semicolon and comma.
        '\u{37e}' | '\u{ff1b}' => Punct::Semi,
        '\u{ff0c}' => Punct::Comma,
        _ => return None,
    })
}

/// The character of an escape sequence in a string literal.
fn unescaped(escaped: char) -> Option<char> {
    match escaped {
        '"' | '\\' => Some(escaped),
        'n' => Some('\n'),
        _ => None,
    }
}

/// The text of a string literal, given with its quotes.
pub(super) fn unquote(literal: &str) -> String {
    let inner = literal.strip_prefix('"').unwrap_or(literal);
    let inner = inner.strip_suffix('"').unwrap_or(inner);
    let mut letters = inner.chars();
    let mut text = String::new();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                text.extend(letters.next().map(|escaped| unescaped(escaped).unwrap_or(escaped)))
            }
            _ => text.push(letter),
        }
    }
    text
}

/// The string literal of a text, with quotes.
pub(super) fn quote(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts of the tokens without the end, and the messages.
    fn lexed(text: &str) -> (Vec<&str>, Vec<String>) {
        let (tokens, diagnostics) = lex(text);
        let (end, tokens) = tokens.split_last().expect("the end is always there");
        assert_eq!(end.kind, TokenKind::End);
        (
            tokens.iter().map(|t| &text[t.span.range()]).collect(),
            diagnostics.into_iter().map(|d| d.message).collect(),
        )
    }

    #[test]
    fn takes_the_longest_sign() {
        let (tokens, messages) = lexed("0..=9 a<<=b>>c..d==>e & && - -= -> x--1");
        assert_eq!(tokens.join(" "), "0 ..= 9 a <<= b >> c .. d ==> e & && - -= -> x -- 1");
        assert!(messages.is_empty());
    }

    #[test]
    fn comments_nest_and_are_blanks() {
        assert_eq!(lexed("a /* b /* c */ d */ e // f\ng").0, ["a", "e", "g"]);
        let (tokens, messages) = lexed("a /* b /* c */ d");
        assert_eq!(
            (tokens, messages),
            (vec!["a"], vec!["this comment is never closed".to_owned()])
        );
    }

    #[test]
    fn knows_what_begins_a_line() {
        let (tokens, _) = lex("a b\n  c /* \n */ d e");
        let first: Vec<bool> = tokens.iter().map(|t| t.first_on_line).collect();
        assert_eq!(first, [true, false, true, true, false, false]);
    }

    #[test]
    fn numbers_have_32_bits_and_a_sign() {
        let numbers = |text| lex(text).0.into_iter().map(|t| t.kind).take(1).next();
        assert_eq!(numbers("2_147_483_648"), Some(TokenKind::Number(1 << 31)));
        for text in ["2147483649", "99999999999999999999999", "0x10", "1.5", "3threads"] {
            assert_eq!(numbers(text), Some(TokenKind::Bad), "{text}");
            assert_eq!(lex(text).0.len(), 2, "{text} is one token");
            assert_eq!(lex(text).1.len(), 1, "{text} is one mistake");
        }
        assert_eq!(lexed("0..5").0, ["0", "..", "5"]);
    }

    #[test]
    fn texts_survive_quoting() {
        for text in ["", "a", "\"", "\\", "\\n", "two\nlines", "ü'"] {
            assert_eq!(unquote(&quote(text)), text);
            assert_eq!(lexed(&quote(text)), (vec![&*quote(text)], vec![]));
        }
        assert_eq!(lexed(r#"x "a\q" y"#).1, ["unknown escape `\\q` in a string"]);
        assert_eq!(lexed("x \"a\ny").0, ["x", "\"a", "y"]);
        assert_eq!(lexed("\"a\\").1, ["this string is never closed"]);
    }

    #[test]
    fn reads_what_was_meant() {
        let (tokens, messages) = lex("a ≤ b");
        assert_eq!(tokens[1].kind, TokenKind::Punct(Punct::LtEq));
        assert_eq!(messages.len(), 1);
        assert_eq!(lexed("\u{feff}a # b c\nd").0, ["a", "d"]);
        assert_eq!(lexed("a ☃☃☃ b").1, ["unexpected characters"]);
        assert_eq!(lexed("größe").1.len(), 1);
    }
}
