//! Which statements count as reached: by the diagrams, by the interpreter, in every copy of a
//! function.

use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::{Choice, Footprint, Model as _, Step, Stepper as _, ThreadId};

/// Visits all states of a small model, by diagrams or by the interpreter alone.
fn explore(machine: &Machine, interpreted: bool) {
    let mut stepper = machine.stepper();
    let mut first = vec![0; machine.shape().words];
    let Step::Moved { .. } = stepper.initial(&mut first) else { return };
    let (mut seen, mut todo) = (std::collections::HashSet::from([first.clone()]), vec![first]);
    while let Some(state) = todo.pop() {
        for thread in (0..machine.shape().threads).map(ThreadId::new) {
            let (mut alternative, mut alternatives) = (0, 1);
            while alternative < alternatives {
                let mut next = state.clone();
                let choice = Choice { thread, alternative };
                let step = match interpreted {
                    true => stepper.step_with_footprint(&mut next, choice, &mut Footprint::new()),
                    false => stepper.step(&mut next, choice),
                };
                if let Step::Moved { alternatives: known } = step {
                    alternatives = alternatives.max(known);
                    if seen.insert(next.clone()) {
                        todo.push(next);
                    }
                }
                alternative += 1;
            }
        }
    }
}

fn unreached(text: &str, interpreted: bool) -> String {
    let machine = preempt_lang::load(&Source::new("model.pre", text), &[]).expect("a good model");
    // Loading takes random walks, which count too.
    explore(&machine, interpreted);
    let place = |place: preempt_machine::Unreached| {
        let lines = if place.first == place.last {
            place.first.to_string()
        } else {
            format!("{}-{}", place.first, place.last)
        };
        place.outcome.map_or(lines.clone(), |outcome| format!("{lines} never {outcome}"))
    };
    machine.unreached().into_iter().map(place).collect::<Vec<_>>().join(", ")
}

/// Models, and their unreached statements. The first line of a model is line 1.
const MODELS: &[(&str, &str)] = &[
    ("var x = 0;\nthread t {\n x = 1;\n x = 2;\n}", ""),
    // Constant conditions.
    (
        "const RETRY = false;\nvar x = 0;\nthread t {\n while RETRY {\n x = 1;\n x = 2;\n }\n x = 3;\n}",
        "5-6",
    ),
    ("thread t {\n if false {\n skip;\n }\n}", "3"),
    ("thread t {\n if true {\n skip;\n }\n}", ""),
    // After a statement that never passes.
    ("var go = false;\nthread t {\n assume go;\n go = true;\n skip;\n}", "4-5"),
    ("thread t {\n return;\n skip;\n}", "3"),
    ("var x = 0;\nthread t {\n loop {\n yield;\n }\n x = 1;\n}", "6"),
    // After a failing statement in the middle, at the beginning, and at the end of straight-line
    // code.
    (
        "var y = 7;\nthread t {\n var a: 0..9 = 1;\n a = 2;\n a = y;\n a = a + 4;\n a = 3;\n skip;\n}",
        "7-8",
    ),
    ("var x: 0..3 = 0;\nvar y = 7;\nthread t {\n x = y;\n skip;\n}", "5"),
    ("var y = 7;\nthread t {\n var a: 0..3 = y;\n skip;\n}", "4"),
    ("var a: [int; 2];\nvar i = 2;\nthread t {\n a[i] = 1;\n skip;\n}", "5"),
    ("var x = 0;\nthread t {\n atomic {\n x = 1;\n assert x == 2;\n x = 3;\n }\n}", "6"),
    ("var x = 0;\nthread t {\n var a = 1;\n a = a / x;\n x = a;\n}", "5"),
    (
        "var x = 1;\ninit {\n x = x + 1;\n x = 1 / (x - 2);\n x = 3;\n}\nthread t {\n skip;\n}",
        "5-8",
    ),
    // Before a statement that waits forever.
    ("var x = 0;\nthread t {\n var a = 1;\n a = a + 1;\n await x == a;\n a = 2;\n}", "6"),
    // Straight-line code after a branch that leaves, and code that two branches lead to.
    (
        "var x = 0;\nthread t {\n if x == 0 { return; }\n x = 1;\n x = x / 0;\n x = 2;\n}",
        "3 never false, 4-6",
    ),
    (
        "var x = 0;\nthread t {\n if x == 1 { return; }\n x = 1;\n x = x / (x - 1);\n x = 2;\n}",
        "3, 6",
    ),
    ("var x = 0;\nthread t {\n if x == 1 {\n x = 2;\n }\n x = x + 1;\n x = 3;\n}", "4"),
    // Both outcomes, where no statement distinguishes them.
    ("var x = 0;\nthread t {\n if x == 0 {\n skip;\n }\n}", "3 never false"),
    ("var x = 0;\nthread t {\n if x == 1 { } else { skip; }\n}", "3 never true"),
    ("var x = 0;\nthread t {\n if x == 0 { skip; }\n}\nthread u { x = 1; }", ""),
    ("var x = 0;\nthread t {\n while x == 1 { }\n}", "3 never true"),
    // Copies for several threads, with parameters as constants, and of functions.
    ("var x = 0;\nthread t(i in 0..2) {\n if i == 0 {\n x = 1;\n } else {\n x = 2;\n }\n}", ""),
    ("var x = 0;\nthread t(i in 0..2) {\n if i == 2 {\n x = 1;\n } else {\n x = 2;\n }\n}", "4"),
    (
        "var x = 0;\nfn f(p: bool) {\n if p {\n x = 1;\n } else {\n x = 2;\n }\n}\nthread t { f(true); }\nthread u { atomic { f(false); } }",
        "",
    ),
    ("var x = 0;\nfn f() {\n x = 1;\n}\nthread t { skip; }", "3"),
    // If the state does not show which branch was taken.
    ("var x = 0;\nthread t {\n atomic {\n if x == 0 {\n skip;\n } else {\n skip;\n }\n }\n}", "7"),
    ("thread t {\n atomic { choose {\n skip;\n } or {\n skip;\n } }\n}", ""),
    // Branches of match and choose, loops.
    (
        "var x = 1;\nthread t {\n match x {\n 0 => {\n skip; }\n 1 => {\n skip; }\n _ => {\n skip; }\n }\n}",
        "5, 9",
    ),
    (
        "var x = 0;\nthread t {\n for i in 0..0 {\n x = 1;\n }\n for i in 0..1 {\n x = 2;\n }\n}",
        "4",
    ),
    ("var x = 0;\ninit {\n x = 1;\n if x == 2 {\n x = 3;\n }\n}\nthread t { skip; }", "5"),
    ("var x = 0;\nfn f() {\n x = 1;\n}\nthread t {\n if x == 7 {\n spawn f();\n }\n}", "3, 7"),
];

#[test]
fn unreached_statements_are_named() {
    for (text, expected) in MODELS {
        for interpreted in [false, true] {
            assert_eq!(unreached(text, interpreted), *expected, "{text}");
        }
        if !text.contains("true {") && !text.contains("false {") {
            for interpreted in [false, true] {
                assert_eq!(
                    unreached(&format!("steps statement; {text}"), interpreted),
                    *expected,
                    "{text}"
                );
            }
        }
    }
}

#[test]
fn machines_that_have_grown_know_what_was_reached_before() {
    let text = "var x = 0;\nthread t {\n x = 100;\n x = 1000;\n}";
    let machine = preempt_lang::load(&Source::new("model.pre", text), &[]).expect("a good model");
    explore(&machine, false);
    assert_eq!(machine.clone().unreached(), []);
}
