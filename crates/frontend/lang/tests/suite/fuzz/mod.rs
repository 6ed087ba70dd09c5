//! Random texts from a fixed seed, so that failures are reproducible.

use preempt_lang::syntax::lex;
use preempt_lang::syntax::{PUNCTS, RESERVED};

/// Random numbers: xorshift64*.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % end
    }

    fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }
}

/// Words and literals that are not reserved, right and wrong ones.
const OTHERS: &[&str] = &[
    "x",
    "y",
    "f",
    "end",
    "or",
    "new",
    "all",
    "init",
    "steps",
    "auto",
    "_",
    "let",
    "goto",
    "and",
    "not",
    "case",
    "0",
    "1",
    "42",
    "9999999999",
    "0x1",
    "1.5",
    "\"text\"",
    "\"open",
    "'a'",
    "'",
    "#",
    "?",
    "≤",
    "é",
    "☃",
    "\\",
    "/*",
    "*/",
    "//",
    "\u{a0}",
    "\n",
];

/// One token.
fn token<'a>(random: &mut Random) -> &'a str {
    match random.below(4) {
        0 => random.pick(RESERVED),
        1 | 2 => random.pick(PUNCTS),
        _ => random.pick(OTHERS),
    }
}

/// Up to `most` tokens.
pub fn soup(random: &mut Random, most: usize) -> String {
    let mut text = String::from(random.pick(&[
        "",
        "thread t {\n",
        "var x = ",
        "fn f(",
        "thread t { match x {",
    ]));
    for _ in 0..random.below(most) {
        text += token(random);
        text += random.pick(&["", " ", " ", " ", "\n", "\n    "]);
    }
    text
}

/// An expression with up to `depth` levels; sometimes a faulty one.
pub fn expression(random: &mut Random, depth: usize) -> String {
    if depth == 0 || random.below(8) == 0 {
        return random
            .pick(&["x", "y", "1", "0", "true", "null", "end", "new", "count"])
            .to_owned();
    }
    let mut inner = || expression(random, depth - 1);
    let (a, b, c) = (inner(), inner(), inner());
    match random.below(20) {
        0 => format!("({a})"),
        1 => format!("!{a}"),
        2 => format!("- {a}"),
        3 => format!("*{a}"),
        4 => format!("& {a}"),
        5 => format!("({a})[{b}]"),
        6 => format!("({a}).f"),
        7 => format!("({a}).m({b}, {c})"),
        8 => format!("if {a} {{ {b} }} else {{ {c} }}"),
        9 => format!("f({a}, {b},)"),
        10 => format!("choose({a}..={b})"),
        11 => format!("all(i in {a}..{b}: {c})"),
        12 => format!("new N {{ a: {a}, b: {b} }}"),
        13 => format!("spawn f({a})"),
        14 => format!("[{a}, {b}]"),
        _ => {
            let op = random.pick(&[
                "+", "-", "*", "/", "%", "<<", ">>", "&", "|", "^", "&&", "||", "==", "<", ">=",
            ]);
            format!("({a}) {op} {b}")
        }
    }
}

/// The tokens of a text, each with the blanks before it.
pub fn tokens(text: &str) -> Vec<&str> {
    let ends = lex(text).0.into_iter().map(|token| token.span.end as usize);
    let mut start = 0;
    ends.map(|end| &text[std::mem::replace(&mut start, end)..end]).collect()
}

/// The tokens with some deleted, doubled, replaced or exchanged.
pub fn edited(tokens: &[&str], edits: usize, random: &mut Random) -> String {
    let mut tokens = tokens.to_vec();
    for _ in 0..edits {
        let at = random.below(tokens.len() - 1);
        match random.below(5) {
            0 => {
                tokens.remove(at);
            }
            1 => tokens.insert(at, tokens[at]),
            2 => tokens[at] = token(random),
            3 => tokens.insert(at, token(random)),
            _ => tokens.swap(at, at + 1),
        }
    }
    // Separated by blanks; otherwise deleting a token could join its neighbours.
    tokens.join(" ")
}
