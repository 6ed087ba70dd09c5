//! The meaning of signs between operands, and the words and signs of other languages with their
//! replacements.

use crate::syntax::ast::BinaryOp;
use crate::syntax::token::{Keyword, Punct};

/// The infix operator that a sign denotes; for a sign of another language, also the replacement.
pub(super) fn binary(punct: Punct) -> Option<(BinaryOp, Option<&'static str>)> {
    let op = match punct {
        Punct::OrOr => BinaryOp::Or,
        Punct::AndAnd => BinaryOp::And,
        Punct::EqEq => BinaryOp::Eq,
        Punct::NotEq => BinaryOp::Ne,
        Punct::Lt => BinaryOp::Lt,
        Punct::LtEq => BinaryOp::Le,
        Punct::Gt => BinaryOp::Gt,
        Punct::GtEq => BinaryOp::Ge,
        Punct::Or => BinaryOp::BitOr,
        Punct::Caret => BinaryOp::BitXor,
        Punct::And => BinaryOp::BitAnd,
        Punct::Shl => BinaryOp::Shl,
        Punct::Shr => BinaryOp::Shr,
        Punct::Plus => BinaryOp::Add,
        Punct::Minus => BinaryOp::Sub,
        Punct::Star => BinaryOp::Mul,
        Punct::Slash => BinaryOp::Div,
        Punct::Percent => BinaryOp::Rem,
        _ => return foreign(punct).map(|(op, hint)| (op, Some(hint))),
    };
    Some((op, None))
}

fn foreign(punct: Punct) -> Option<(BinaryOp, &'static str)> {
    Some(match punct {
        Punct::Implies => (BinaryOp::Or, "write `!a || b` for \"a implies b\""),
        Punct::FatArrow => {
            (BinaryOp::Ge, "\"greater or equal\" is `>=`; for \"a implies b\" write `!a || b`")
        }
        Punct::EqLt => (BinaryOp::Le, "\"less or equal\" is `<=`"),
        Punct::LtGt | Punct::NotEqEq => (BinaryOp::Ne, "\"different\" is `!=`"),
        Punct::TripleEq => (BinaryOp::Eq, "\"equal\" is `==`"),
        _ => return None,
    })
}

/// The operator that a word denotes in other languages, and the replacement.
pub(super) fn word(word: &str) -> Option<(BinaryOp, Option<&'static str>)> {
    Some(match word {
        "and" => (BinaryOp::And, Some("write `&&`")),
        "or" => (BinaryOp::Or, Some("write `||`")),
        "xor" => (BinaryOp::Ne, Some("write `!=` between bools, `^` between numbers")),
        "mod" => (BinaryOp::Rem, Some("write `%`")),
        "div" => (BinaryOp::Div, Some("write `/`")),
        "implies" => (BinaryOp::Or, Some("write `!a || b`")),
        _ => return None,
    })
}

/// The operator of an assignment like `+=`.
pub(super) fn assignment(punct: Punct) -> Option<BinaryOp> {
    Some(match punct {
        Punct::PlusEq => BinaryOp::Add,
        Punct::MinusEq => BinaryOp::Sub,
        Punct::StarEq => BinaryOp::Mul,
        Punct::SlashEq => BinaryOp::Div,
        Punct::PercentEq => BinaryOp::Rem,
        Punct::AndEq => BinaryOp::BitAnd,
        Punct::OrEq => BinaryOp::BitOr,
        Punct::CaretEq => BinaryOp::BitXor,
        Punct::ShlEq => BinaryOp::Shl,
        Punct::ShrEq => BinaryOp::Shr,
        _ => return None,
    })
}

/// The replacement of a word that starts declarations in other languages, and the keyword that it
/// stands for.
pub(super) fn item_word(word: &str) -> Option<(Option<Keyword>, &'static str)> {
    Some(match word {
        "let" | "global" | "shared" | "static" | "mut" | "volatile" => {
            (Some(Keyword::Var), "a shared variable is declared with `var`: `var x: int = 0;`")
        }
        "function" | "func" | "fun" | "def" | "proc" | "procedure" | "void" | "inline" => {
            (Some(Keyword::Fn), "a function is declared with `fn`: `fn f(a: int) -> int { … }`")
        }
        "process" | "proctype" | "task" => {
            (Some(Keyword::Thread), "threads are declared with `thread`: `thread main { … }`")
        }
        "active" | "module" | "main" | "program" => {
            (None, "threads are declared with `thread`: `thread main { … }`")
        }
        "struct" | "class" => {
            (Some(Keyword::Record), "a type with fields is declared with `record`")
        }
        "type" | "typedef" | "union" => {
            (None, "types with fields are declared with `record`, others with `enum`")
        }
        "lock" => (Some(Keyword::Mutex), "a lock is declared with `mutex`"),
        "chan" => {
            (Some(Keyword::Channel), "a channel is declared with `channel`: `channel(4, int) c;`")
        }
        "property" | "always" | "safety" => {
            (None, "properties of states are declared with `invariant`; there are no others")
        }
        "ltl" | "temporal" | "liveness" | "eventually" => {
            (None, "liveness is not supported; properties of states are declared with `invariant`")
        }
        "import" | "use" | "include" => (None, "a model is one file"),
        "define" => (None, "a constant is declared with `const`: `const N = 3;`"),
        "pub" | "public" | "private" | "extern" => {
            (None, "leave it out: every name is known in the whole file")
        }
        _ => return None,
    })
}

/// The quantifier that a word of other languages stands for.
pub(super) fn foreign_quantifier(word: &str) -> Option<&'static str> {
    Some(match word {
        "forall" | "for_all" | "every" => "all",
        "exists" | "some" => "any",
        _ => return None,
    })
}

/// The replacement of a word that starts statements in other languages, and the keyword that it
/// stands for.
pub(super) fn stmt_word(word: &str) -> Option<(Option<Keyword>, &'static str)> {
    let hint = match word {
        "let" | "local" => {
            return Some((Some(Keyword::Var), "a variable is declared with `var`: `var x = 0;`"));
        }
        "goto" => "there are no jumps: use `loop`, `while`, `break` and `continue`",
        "do" | "repeat" | "until" | "forever" => "write `loop { … if e { break; } }`",
        "switch" | "case" | "default" => "write `match e { 0 => { … } _ => { … } }`",
        "elif" | "elsif" | "elseif" => "write `else if`",
        "either" | "nondet" => "write `choose { … } or { … }`",
        "or" => "`or` follows the block of a `choose`: `choose { … } or { … }`",
        "wait" | "when" | "wait_until" => "to wait until `e` holds, write `await e;`",
        "pass" | "nop" => "the empty statement is `skip;`",
        "print" | "printf" | "println" => {
            "there is no output: a failed `assert` shows the schedule with all values"
        }
        "then" | "begin" | "fi" | "od" | "done" => "blocks are written in braces: `if e { … }`",
        "exit" | "stop" | "terminate" => "`return;` ends a thread",
        "assign" => "an assignment is `x = e;`",
        "call" => "a call is just `f(x);`",
        "delete" | "free" => "heap records are freed when nothing points to them",
        _ => return None,
    };
    Some((None, hint))
}
