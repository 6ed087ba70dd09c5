//! The parser reads the whole language, its trees can be printed, and no text makes it panic.

use crate::fuzz::{self, Random};
use preempt_lang::diagnostic::{Diagnostic, Style, render};
use preempt_lang::source::Source;
use preempt_lang::syntax::{MAX_NESTING, MAX_OPERATORS};
use preempt_lang::syntax::{ast, parse, print};

const EVERY_CONSTRUCT: &str = include_str!("../good/every-construct.pre");
const LANGUAGE: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/language.md"));

fn parsed(text: &str) -> (ast::File, Vec<Diagnostic>) {
    parse(&Source::new("test.pre", text))
}

/// The tree of a text without mistakes.
fn sound(text: &str) -> ast::File {
    let (file, diagnostics) = parsed(text);
    let rendered = render(&Source::new("test.pre", text), &diagnostics, Style::Plain);
    assert!(diagnostics.is_empty(), "{rendered}");
    file
}

/// The tree without its positions.
fn shape(file: &ast::File) -> String {
    let tree = format!("{file:?}");
    let mut pieces = tree.split("Span { start: ");
    let mut shape = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        shape += piece.split_once('}').expect("the debug form of a span ends with a brace").1;
    }
    shape
}

fn assert_round_trip(file: &ast::File) {
    let printed = print(file);
    assert_eq!(shape(&sound(&printed)), shape(file), "printed as\n{printed}");
}

/// The forms in the first column of the first table of forms below a heading of the language's
/// description.
fn forms(heading: &str) -> Vec<String> {
    let (_, section) =
        LANGUAGE.split_once(&format!("\n## {heading}\n")).expect("the heading is there");
    let section = section.split("\n## ").next().unwrap_or_default().replace("\\|", "\u{1}");
    let table = section
        .split("\n\n")
        .find(|part| part.trim_start().starts_with("| form"))
        .expect("a table of forms")
        .to_owned();
    let cells = table.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
    let forms = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    // `…` is any text, `s` any statement; a form without letters is the rest of a list of signs.
    let forms = forms
        .map(|form| form.replace('\u{1}', "|").replace('…', "").replace("end: s", "end: skip;"));
    forms.filter(|form| form.contains(|c: char| c.is_ascii_alphanumeric())).collect()
}

#[test]
fn reads_every_construct_and_prints_it() {
    assert_round_trip(&sound(EVERY_CONSTRUCT));
}

#[test]
fn reads_every_form_of_the_description() {
    let (items, stmts, exprs) = (forms("Declarations"), forms("Statements"), forms("Expressions"));
    assert!(
        items.len() > 15 && stmts.len() > 25 && exprs.len() > 25,
        "the tables are read: {} {} {}",
        items.len(),
        stmts.len(),
        exprs.len()
    );
    for item in items {
        assert_round_trip(&sound(&item));
    }
    for stmt in stmts {
        assert_round_trip(&sound(&format!("thread t {{ {stmt} }}")));
    }
    for expr in exprs {
        assert_round_trip(&sound(&format!("thread t {{ x = {expr}; }}")));
    }
}

/// The expression in its canonical form.
fn canonical(expr: &str) -> String {
    let printed = print(&sound(&format!("invariant {expr};")));
    printed.trim().trim_start_matches("invariant ").trim_end_matches(';').to_owned()
}

#[test]
fn operators_bind_as_described() {
    for (text, meant) in [
        ("a+b*c", "a + b * c"),
        ("(a+b)*c", "(a + b) * c"),
        ("a-(b-c)-d", "a - (b - c) - d"),
        ("((a-b)-c)", "a - b - c"),
        ("a|b^c&d<<e+f*-g", "a | b ^ c & d << e + f * -g"),
        ("(((((a|b)^c)&d)<<e)+f)*g", "(((((a | b) ^ c) & d) << e) + f) * g"),
        ("(a|b)==c", "a | b == c"),
        ("a|(b==c)", "a | (b == c)"),
        ("a==b&&c||d", "a == b && c || d"),
        ("a&&(b||c)", "a && (b || c)"),
        ("(a<b)==(c<d)", "(a < b) == (c < d)"),
        ("!a.b[c]", "!a.b[c]"),
        ("(!a).b", "(!a).b"),
        ("*p.f", "*p.f"),
        ("(*p).f", "(*p).f"),
        ("-(-a)", "-(-a)"),
        ("**p", "**p"),
        ("(if a {b} else {c})+d", "(if a { b } else { c }) + d"),
        ("if a {b} else if c {d} else {e}", "if a { b } else { if c { d } else { e } }"),
    ] {
        assert_eq!(canonical(text), meant);
    }
}

#[test]
fn positions_are_exact() {
    let text = "thread t { x = (a + b) * c; while x < 1 { skip; } end: m.lock(); }";
    let file = sound(text);
    let ast::ItemKind::Thread { body, .. } = &file.items[0].kind else { panic!("a thread") };
    let slices: Vec<&str> = body.stmts.iter().map(|stmt| &text[stmt.span.range()]).collect();
    assert_eq!(slices, ["x = (a + b) * c", "while x < 1", "end: m.lock()"]);
    let ast::StmtKind::Assign { value, .. } = &body.stmts[0].kind else { panic!("an assignment") };
    assert_eq!(&text[value.span.range()], "(a + b) * c");
    assert_eq!(file.items[0].span.range(), 0..text.len());
}

#[test]
fn parsing_continues_after_a_mistake() {
    let text = "var x = ;\nthread t { x = (1; y = 2; if = { z = 3; } }\nvar w = 1;\nfn f(a, b: int) { q = 4; }\n";
    let (file, diagnostics) = parsed(text);
    assert_eq!(diagnostics.len(), 4, "{diagnostics:?}");
    let printed = print(&file);
    for sound in ["y = 2;", "z = 3;", "var w = 1;", "q = 4;"] {
        assert!(printed.contains(sound), "`{sound}` is lost in\n{printed}");
    }
}

/// Texts for deep nesting: a beginning, a part that is repeated, and an end.
const TOWERS: &[(&str, &str, &str)] = &[
    ("var x = ", "(", "1;"),
    ("var x = ", "!", "a;"),
    ("var x = ", "-(", "a;"),
    ("var x = ", "*", "a;"),
    ("var x = ", "[", ";"),
    ("var x = ", "f(", ";"),
    ("var x = ", "a[", ";"),
    ("var x = ", "f(1)+f(", ";"),
    ("var x = ", "if a { 1 } else ", "{ 2 };"),
    ("var x = ", "if ", ";"),
    ("var x = ", "if a { ", ";"),
    ("var x = ", "new N { a: ", ";"),
    ("var x = ", "all(i in 0..1: ", ";"),
    ("var x = ", "choose(", ";"),
    ("var x = ", "1 || 1 && 1 == 1 | 1 ^ 1 & 1 << 1 + 1 * (", ";"),
    ("var x: ", "*", "int;"),
    ("var x: ", "[", "int;"),
    ("var x: ", "channel(1, channel(", "int;"),
    ("thread t { ", "{ ", "}"),
    ("thread t { ", "if a { } else ", "{ } }"),
    ("thread t { ", "if a { ", "}"),
    ("thread t { ", "choose { } or { ", "}"),
    ("thread t { ", "match x { 1 => { ", "}"),
    ("thread t { ", "end: ", "skip; }"),
    ("thread t { ", "atomic { ", "}"),
    ("var x = a", " + a", ";"),
    ("var x = a", " || a", ";"),
    ("var x = a", " + a * a", ";"),
    ("var x = a", ".f", ";"),
    ("var x = a", "[0]", ";"),
    ("var x = a", ".f(1)", ";"),
    ("var x = ", "(", "1"),
];

#[test]
fn deep_nesting_is_refused_without_a_stack_overflow() {
    // As much as a test's thread has, to be independent of the environment.
    let parser = std::thread::Builder::new().stack_size(2 << 20).spawn(|| {
        for (begin, part, end) in TOWERS {
            for height in [MAX_NESTING - 2, MAX_NESTING, MAX_OPERATORS, 20_000] {
                let text = format!("{begin}{}{end}\n", part.repeat(height));
                let (file, diagnostics) = parsed(&text);
                drop(print(&file.clone()));
                assert_places(&text, &diagnostics);
                if height > MAX_OPERATORS {
                    let [only] = &*diagnostics else {
                        panic!("{} messages about {part:?}", diagnostics.len())
                    };
                    assert!(only.message.contains("more than"), "{part:?}: {}", only.message);
                }
            }
        }
    });
    parser.expect("a thread can be started").join().expect("no tower falls");
}

#[test]
fn bodies_without_braces_nest_too() {
    for part in ["if a ", "while a loop ", "choose if a "] {
        let (_, diagnostics) = parsed(&format!("thread t {{ {} }}", part.repeat(20_000)));
        let last = diagnostics.last().expect("there are mistakes");
        assert!(last.message.contains("more than"), "{part:?}: {}", last.message);
    }
}

#[test]
fn long_texts_without_nesting_are_accepted() {
    let elements = "-1, ".repeat(10 * MAX_OPERATORS);
    sound(&format!("var a: [int; 5] = [{elements}];"));
    let stmts = "x = x + 1; if x == 1 { } ".repeat(10 * MAX_OPERATORS);
    sound(&format!("thread t {{ {stmts} }}"));
    let patterns = "| -1 ".repeat(10 * MAX_OPERATORS);
    sound(&format!("thread t {{ match x {{ 0 {patterns} => {{ }} }} }}"));
}

fn assert_places(text: &str, diagnostics: &[Diagnostic]) {
    let places = diagnostics
        .iter()
        .flat_map(|d| std::iter::once(d.span).chain(d.related.iter().map(|r| r.0)));
    for span in places {
        assert!(text.get(span.range()).is_some(), "{span:?} is not in {text:?}: {diagnostics:?}");
    }
    assert!(diagnostics.is_sorted_by_key(|d| (d.span.start, d.span.end)));
}

/// Parses any text: must not panic, positions must be in the text, and a text without mistakes must
/// survive printing. Returns whether it has none.
fn check(text: &str) -> bool {
    let (file, diagnostics) = parsed(text);
    assert_places(text, &diagnostics);
    if diagnostics.is_empty() {
        assert_round_trip(&file);
    }
    diagnostics.is_empty()
}

#[test]
fn random_bytes_cause_no_panic() {
    let mut random = Random::new(1);
    for round in 0..3_000 {
        let bytes: Vec<u8> = (0..random.below(200)).map(|_| random.below(256) as u8).collect();
        let text = String::from_utf8_lossy(&bytes);
        check(&text);
        if round % 10 == 0 {
            render(&Source::new("test.pre", &*text), &parsed(&text).1, Style::Coloured);
        }
    }
}

#[test]
fn random_tokens_cause_no_panic() {
    let mut random = Random::new(2);
    for round in 0..6_000 {
        let text = fuzz::soup(&mut random, 120);
        check(&text);
        if round % 10 == 0 {
            render(&Source::new("test.pre", &*text), &parsed(&text).1, Style::Plain);
        }
    }
}

#[test]
fn random_expressions_survive_printing() {
    let mut random = Random::new(3);
    let sound = (0..3_000)
        .filter(|_| check(&format!("invariant {};", fuzz::expression(&mut random, 5))))
        .count();
    assert!(sound > 2_000, "only {sound} of the expressions were read");
}

#[test]
fn edited_models_cause_no_panic() {
    let mut random = Random::new(4);
    let model = print(&sound(EVERY_CONSTRUCT));
    let tokens = fuzz::tokens(&model);
    let mut sound = 0;
    for round in 0..2_000 {
        let text = fuzz::edited(&tokens, 1 + round % 4, &mut random);
        sound += usize::from(check(&text));
        if round % 20 == 0 {
            render(&Source::new("test.pre", &*text), &parsed(&text).1, Style::Plain);
        }
    }
    assert!((10..1_900).contains(&sound), "{sound} of the edited models are sound");
}

/// One mistake should give one message, and rarely more than two.
#[test]
fn one_mistake_gives_few_messages() {
    let mut random = Random::new(5);
    let model = print(&sound(EVERY_CONSTRUCT));
    let tokens = fuzz::tokens(&model);
    let mut counts = [0_usize; 6];
    for _ in 0..1_000 {
        let text = fuzz::edited(&tokens, 1, &mut random);
        let (_, diagnostics) = parsed(&text);
        counts[diagnostics.len().min(5)] += 1;
    }
    let faulty: usize = counts[1..].iter().sum();
    assert!(counts[1] * 10 > faulty * 8, "numbers of messages about one mistake: {counts:?}");
    assert!(
        counts[4] + counts[5] < faulty / 50,
        "numbers of messages about one mistake: {counts:?}"
    );
}

/// The limits protect functions that traverse the tree: a tree within the limits must not overflow
/// the stack of a test's thread.
#[test]
fn the_deepest_trees_pass_the_front_end() {
    let operators = format!("x{}", " + x".repeat(MAX_OPERATORS - 1));
    let right = format!("{}x{}", "x + (".repeat(MAX_NESTING - 4), ")".repeat(MAX_NESTING - 4));
    let signs = format!("{}x", "- ".repeat(MAX_NESTING - 4));
    let mut models: Vec<String> = [operators, right, signs]
        .map(|expr| format!("var x = 0; thread t {{ x = {expr}; await x == {expr}; }}"))
        .into();
    for (open, close) in [
        ("{ ", "} "),
        ("if x == 0 { ", "} "),
        ("while x == 0 { ", "} "),
        ("choose { } or { ", "} "),
    ] {
        let height = MAX_NESTING - 4;
        models.push(format!(
            "var x = 0; thread t {{ {}x = 1; {}}}",
            open.repeat(height),
            close.repeat(height)
        ));
    }
    models.push(format!(
        "var x = 0; thread t {{ {}{{ }} }}",
        "if x == 0 { x = 1; } else ".repeat(MAX_NESTING - 4)
    ));
    for model in models {
        let source = Source::new("test.pre", &*model);
        // The machine has its own limits, and says so.
        if let Err(diagnostics) = preempt_lang::load(&source, &[]) {
            let rendered = render(&source, &diagnostics, Style::Plain);
            assert!(diagnostics.iter().all(|d| d.message.contains("too complex")), "{rendered}");
        }
    }
}
