//! Constant conditions decide at compile time what runs; the result must be the same as at run
//! time.
//!
//! One thread is executed step by step, by the diagrams and by the interpreter alone. Every
//! construct that tests a condition is combined with every way to write a constant `true` or
//! `false`.

use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::{Capacity, Choice, Footprint, Model as _, Step, Stepper as _, ThreadId};

/// The declarations of every model in this file.
const PROLOGUE: &str = "const OFF = false; const ON = true; const N = 2; var x = 0; var no = false; \
                        fn f() -> int { return 2; }";

/// How an execution of the only thread ends.
#[derive(Debug, PartialEq)]
enum End {
    Ended,
    Waits,
    Failed(String),
    /// It took more steps than any execution that ends.
    Runs,
}

fn run(model: &str, constants: &[(String, String)], interpreted: bool) -> End {
    let mut machine =
        preempt_lang::load(&Source::new("model.pre", model), constants).expect("a good model");
    loop {
        match run_on(&machine, interpreted) {
            Ok(end) => return end,
            Err(capacity) => machine = machine.grow(capacity),
        }
    }
}

/// The same on states of this size; `Err` if they are too small.
fn run_on(machine: &Machine, interpreted: bool) -> Result<End, Capacity> {
    let mut stepper = machine.stepper();
    let mut state = vec![0; machine.shape().words];
    let choice = Choice::of(ThreadId::new(0));
    let mut step = stepper.initial(&mut state);
    for _ in 0..1_000 {
        match step {
            Step::Moved { .. } => {}
            Step::Ended => return Ok(End::Ended),
            Step::Blocked { .. } => return Ok(End::Waits),
            Step::Failed(failure) => return Ok(End::Failed(failure.message)),
            Step::Full(capacity) => return Err(capacity),
            other => panic!("{other:?}"),
        }
        step = match interpreted {
            true => stepper.step_with_footprint(&mut state, choice, &mut Footprint::new()),
            false => stepper.step(&mut state, choice),
        };
    }
    Ok(End::Runs)
}

/// `body` as the body of a thread, of a function it calls, and of an `atomic` block, in both
/// granularities.
fn models(body: &str) -> Vec<String> {
    let mut models = Vec::new();
    for steps in ["access", "statement"] {
        let head = format!("steps {steps}; {PROLOGUE}");
        models.push(format!("{head} thread t(i in 3..4) {{ {body} }}"));
        models.push(format!("{head} fn g(i: int) {{ {body} }} thread t {{ g(3); }}"));
        if !body.contains("await") && !body.contains("assume") {
            models.push(format!("{head} thread t(i in 3..4) {{ atomic {{ {body} }} }}"));
        }
    }
    models
}

fn check(body: &str, expected: &End) {
    for model in models(body) {
        for interpreted in [false, true] {
            assert_eq!(run(&model, &[], interpreted), *expected, "{model}");
        }
    }
}

const FALSE: &[&str] = &[
    "false",
    "OFF",
    "!true",
    "!ON",
    "2 == 0",
    "N == 0",
    "i != i",
    "i < 3",
    "1 < 0 || false",
    "false && f() == 2",
    "false && no",
    "OFF && x == 0",
    "any(k in 0..N: k == 7)",
    "all(k in 0..N: k == 1)",
    "any(k in 0..0: true)",
    "if ON { false } else { true }",
];

/// A construct with `C` for its condition, and how it ends if `C` is false and if it is true.
const CONSTRUCTS: &[(&str, &str, &str)] = &[
    ("while C { assert false, \"in\"; } assert false, \"after\";", "after", "in"),
    ("while C { x = 1; assert x == 2, \"in\"; } assert false, \"after\";", "after", "in"),
    ("while C { break; } assert false, \"after\";", "after", "after"),
    (
        "while C { if x == 2 { break; } x += 1; continue; } assert x == 2, \"zero\"; assert false, \"two\";",
        "zero",
        "two",
    ),
    ("loop { while C { assert false, \"in\"; } break; } assert false, \"after\";", "after", "in"),
    ("while true { if C { assert false, \"in\"; } assert false, \"after\"; }", "after", "in"),
    ("for k in 0..2 { while C { assert false, \"in\"; } } assert false, \"after\";", "after", "in"),
    ("while C || no { assert false, \"in\"; } assert false, \"after\";", "after", "in"),
    ("while no || C { assert false, \"in\"; } assert false, \"after\";", "after", "in"),
    ("while !no && C { assert false, \"in\"; } assert false, \"after\";", "after", "in"),
    ("if C { assert false, \"in\"; } assert false, \"after\";", "after", "in"),
    ("if C { assert false, \"in\"; } else { assert false, \"else\"; }", "else", "in"),
    ("if !(C) { assert false, \"not\"; } assert false, \"after\";", "not", "after"),
    (
        "for k in 0..(if C { 1 } else { 0 }) { assert false, \"in\"; } assert false, \"after\";",
        "after",
        "in",
    ),
    (
        "for k in 1..=(if C { 1 } else { 0 }) { assert false, \"in\"; } assert false, \"after\";",
        "after",
        "in",
    ),
    (
        "match C { true => { assert false, \"in\"; } false => { assert false, \"else\"; } }",
        "else",
        "in",
    ),
    (
        "choose { if C { assert false, \"in\"; } } or { skip; } assert false, \"after\";",
        "after",
        "in",
    ),
    ("assert C, \"in\"; assert false, \"after\";", "in", "after"),
    ("await C; assert false, \"after\";", "wait", "after"),
    ("assume C; assert false, \"after\";", "wait", "after"),
    ("var b = C; while b { assert false, \"in\"; } assert false, \"after\";", "after", "in"),
    ("var n = if C { 1 } else { 2 }; assert n == 2, \"one\"; assert false, \"two\";", "two", "one"),
];

#[test]
fn constant_conditions_have_the_meaning_of_run_time() {
    let end = |word: &str| match word {
        "wait" => End::Waits,
        word => End::Failed(format!("assertion failed: {word}")),
    };
    for (construct, when_false, when_true) in CONSTRUCTS {
        for condition in FALSE {
            // A condition of an `await` calls no functions.
            if condition.contains("f()") && construct.starts_with('a') {
                continue;
            }
            check(&construct.replace('C', &format!("({condition})")), &end(when_false));
            check(&construct.replace('C', &format!("!({condition})")), &end(when_true));
        }
    }
}

#[test]
fn a_constant_that_is_set_to_false_ends_the_loop() {
    let model = "const RETRY = true; var x = 0; thread t { while RETRY { x = 1 - x; } assert false, \"missed\"; }";
    let off = [("RETRY".to_owned(), "false".to_owned())];
    assert_eq!(run(model, &off, false), End::Failed("assertion failed: missed".into()));
    assert_eq!(run(model, &[], false), End::Runs);
}

#[test]
fn a_loop_without_rounds_is_not_an_infinite_step() {
    check("while OFF { skip; }", &End::Ended);
    check("while no { skip; } while OFF { skip; } while no { skip; }", &End::Ended);
}

#[test]
fn ranges_may_end_with_the_highest_int() {
    const COUNT: &str = "var n = 0; for k in RANGE { n += 1; } assert n == EXPECTED;";
    let ranges = [
        ("2147483646..=2147483647", 2),
        ("2147483647..=2147483647", 1),
        ("2147483646..2147483647", 1),
        ("2147483647..=2147483646", 0),
        ("-2147483648..=-2147483648", 1),
        ("2..=1", 0),
        ("x + 2147483645..=x + 2147483647", 3),
        ("x..=x - 1", 0),
        ("x..=x", 1),
    ];
    for (range, expected) in ranges {
        check(
            &COUNT.replace("RANGE", range).replace("EXPECTED", &expected.to_string()),
            &End::Ended,
        );
    }
    check(
        "for k in 2147483646..=2147483647 { if k == 2147483647 { continue; } x = 1; } assert x == 1;",
        &End::Ended,
    );
    check(
        "for k in 2147483646..=2147483647 { if k == 2147483647 { break; } } assert x == 0;",
        &End::Ended,
    );
    check("assert choose(2147483647..=2147483647) == 2147483647;", &End::Ended);
    check("var top = 2147483647; assert choose(top..=top + x) == top;", &End::Ended);
    let empty = "nothing to choose from: 2147483647..2147483647 is empty";
    check("var k = choose(2147483647..=2147483646);", &End::Failed(empty.into()));
}

#[test]
fn the_lowest_int_has_no_negation() {
    let overflow = || End::Failed("integer overflow: the result does not fit 32 bits".into());
    check("var low = -2147483648; assert -low > 0;", &overflow());
    check("assert -(-2147483648) > 0;", &overflow());
    check("assert -(x - 2147483647 - 1) > 0;", &overflow());
    check("assert -(x - 2147483647) > 0;", &End::Ended);
}
