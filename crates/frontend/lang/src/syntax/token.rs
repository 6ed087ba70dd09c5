//! Tokens: the words, signs and literals of a source text.

use preempt_machine::source::Span;

/// A token and its span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    pub span: Span,
    /// Whether only blanks and comments precede it in its line. The grammar ignores lines; error
    /// recovery does not.
    pub first_on_line: bool,
}

/// The kinds of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenKind {
    /// A word that is not reserved.
    Name,
    /// A keyword.
    Keyword(Keyword),
    /// A sign.
    Punct(Punct),
    /// A number, at most 2³¹: with a minus sign that is the least `int`.
    Number(i64),
    /// A string in double quotes.
    Text,
    /// An invalid token, which the lexer has reported.
    Bad,
    /// The end of the file: the last token, exactly once.
    End,
}

impl From<Keyword> for TokenKind {
    fn from(keyword: Keyword) -> TokenKind {
        TokenKind::Keyword(keyword)
    }
}

impl From<Punct> for TokenKind {
    fn from(punct: Punct) -> TokenKind {
        TokenKind::Punct(punct)
    }
}

/// Defines an enum of fixed spellings, with the list of all and the spelling of each.
macro_rules! spellings {
    ($(#[$doc:meta])* $name:ident, $all:ident { $($variant:ident $text:literal)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $(#[doc = concat!("`", $text, "`")] $variant,)*
        }

        impl $name {
            /// All of them, in the order of their declaration.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// How it is written.
            pub const fn text(self) -> &'static str {
                match self {
                    $($name::$variant => $text,)*
                }
            }
        }

        /// All spellings, in the order of their declaration.
        pub const $all: &[&str] = &[$($text),*];
    };
}

spellings! {
    /// The reserved words, sorted. `access`, `all`, `any`, `auto`, `count`, `end`, `init`, `new`,
    /// `or`, `set`, `statement` and `steps` have a meaning in certain places only, where no name
    /// could stand, and are names elsewhere.
    Keyword, RESERVED {
        Assert "assert" Assume "assume" Atomic "atomic" Await "await" Barrier "barrier" Bool "bool" Break "break"
        Channel "channel" Choose "choose" Condvar "condvar" Const "const" Continue "continue" Else "else" Enum "enum"
        Event "event" False "false" Fn "fn" For "for" If "if" In "in" Int "int" Invariant "invariant" Join "join"
        Loop "loop" Match "match" Mutex "mutex" Null "null" Record "record" Return "return" RwLock "rwlock"
        Semaphore "semaphore" Skip "skip" Spawn "spawn" Thread "thread" True "true" Var "var" While "while"
        Yield "yield"
    }
}

spellings! {
    /// The signs, longer ones before their beginnings. The first two lines are signs of other
    /// languages, known only so that the parser can say what to write instead.
    Punct, PUNCTS {
        TripleEq "===" NotEqEq "!==" Implies "==>" Ellipsis "..."
        PlusPlus "++" MinusMinus "--" ColonEq ":=" ColonColon "::" EqLt "=<" LtGt "<>"
        ShlEq "<<=" ShrEq ">>=" DotDotEq "..="
        EqEq "==" NotEq "!=" LtEq "<=" GtEq ">=" AndAnd "&&" OrOr "||" Shl "<<" Shr ">>" DotDot ".." Arrow "->"
        FatArrow "=>" PlusEq "+=" MinusEq "-=" StarEq "*=" SlashEq "/=" PercentEq "%=" AndEq "&=" OrEq "|=" CaretEq "^="
        Plus "+" Minus "-" Star "*" Slash "/" Percent "%" And "&" Or "|" Caret "^" Not "!" Eq "=" Lt "<" Gt ">"
        Dot "." Comma "," Semi ";" Colon ":" OpenParen "(" CloseParen ")" OpenBracket "[" CloseBracket "]"
        OpenBrace "{" CloseBrace "}"
    }
}

impl Keyword {
    /// The reserved word that is written like this.
    pub fn of(word: &str) -> Option<Keyword> {
        RESERVED.binary_search(&word).ok().map(|at| Keyword::ALL[at])
    }

    /// Whether it is the word of a synchronisation object.
    pub fn is_object(self) -> bool {
        use Keyword::*;
        matches!(self, Mutex | RwLock | Condvar | Semaphore | Event | Barrier | Channel)
    }

    /// Whether it is a type, perhaps followed by something in parentheses.
    pub fn is_type(self) -> bool {
        matches!(self, Keyword::Int | Keyword::Bool | Keyword::Thread) || self.is_object()
    }

    /// Whether a declaration begins with it, and no statement does.
    pub fn begins_only_items(self) -> bool {
        use Keyword::*;
        matches!(self, Const | Enum | Record | Fn | Thread | Invariant) || self.is_object()
    }

    /// Whether a statement may begin with it.
    pub fn begins_statement(self) -> bool {
        use Keyword::*;
        matches!(
            self,
            Assert
                | Assume
                | Atomic
                | Await
                | Break
                | Choose
                | Continue
                | For
                | If
                | Join
                | Loop
                | Match
        ) || matches!(self, Return | Skip | Spawn | Var | While | Yield)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sign_hides_a_longer_one() {
        for (at, short) in PUNCTS.iter().enumerate() {
            for long in &PUNCTS[at + 1..] {
                assert!(!long.starts_with(short), "`{short}` would be read in place of `{long}`");
            }
        }
    }

    #[test]
    fn reserved_words_are_sorted_and_known() {
        assert!(RESERVED.is_sorted());
        assert!(
            RESERVED
                .iter()
                .all(|word| Keyword::of(word).is_some_and(|keyword| keyword.text() == *word))
        );
        assert_eq!(Keyword::of("set"), None);
    }
}
