//! Limits of the machine: programs that exceed one by a step fail with its message, and programs
//! that are too large are refused.

use std::cell::Cell;

use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::{Choice, Model as _, Step, Stepper as _, ThreadId};

/// Lets the first thread run until it fails, with larger states where it needs them; the message.
fn run(text: &str) -> String {
    let mut machine =
        preempt_lang::load(&Source::new("model.pre", text), &[]).expect("a good model");
    loop {
        match last_step(&machine) {
            Step::Failed(failure) => return failure.message,
            Step::Full(capacity) => machine = machine.grow(capacity),
            other => return format!("{other:?}"),
        }
    }
}

/// The first step of the first thread that does not move.
fn last_step(machine: &Machine) -> Step {
    let mut stepper = machine.stepper();
    let mut state = vec![0; machine.shape().words];
    let mut step = stepper.initial(&mut state);
    let first = Choice::of(ThreadId::new(0));
    while let Step::Moved { .. } = step {
        step = stepper.step(&mut state, first);
    }
    if let Step::Failed(_) = step {
        assert!(stepper.has_failed(&state));
        assert!(matches!(stepper.step(&mut state, first), Step::Ended));
    }
    step
}

#[test]
fn a_thread_that_can_fail_only_by_a_limit_fails() {
    let programs = [
        ("fn f() { skip; } thread t { loop { spawn f(); } }", "more than 64 threads"),
        (
            "record R { n: *R } var p: *R; thread t { loop { p = new R { n: p }; } }",
            "more than 1000 live",
        ),
        ("fn f() { f(); } thread t { f(); }", "more than 1000 nested calls"),
        ("var x = -2147483648; thread t { if -x > 0 { skip; } }", "integer overflow"),
        (
            "fn f(a: int, b: int, c: int, d: int) -> int { var l: [int; 4]; l[0] = a + 70000;
               l[1] = b + l[0]; l[2] = c + l[1]; yield; return f(a, b, c, d) + l[2]; }
             thread t { f(70000, 70001, 70002, 70003); }",
            "the state grows beyond 8 KiB",
        ),
    ];
    for (text, expected) in programs {
        let message = run(text);
        assert!(message.starts_with(expected), "{message}: {text}");
    }
}

/// The first message of a program that is refused.
fn refused(text: &str) -> Option<String> {
    let machine = preempt_lang::load(&Source::new("model.pre", text), &[]);
    machine.err().map(|diagnostics| diagnostics[0].message.clone())
}

#[test]
fn programs_at_the_limits_are_accepted_and_larger_ones_refused() {
    let cases = |count: u32| {
        let halves =
            format!("all(i in 0..{}: x != i) && all(i in 0..50_000: x != i)", count - 50_000);
        format!("var x = 0; thread t {{ atomic {{ assert {halves}; }} }}")
    };
    assert_eq!(refused(&cases(100_000)), None);
    assert_eq!(refused(&cases(100_001)).as_deref(), Some("this is too complex"));
    let locals = |count: u32| {
        format!(
            "fn f() {{ var a: [bool; 10]; a[0] = true; yield; }}
             thread t(i in 0..60) {{ if false {{ spawn f(); }} var b: [bool; {count}]; f(); }}"
        )
    };
    let message = refused(&locals(20_000)).expect("more than a million values");
    assert!(message.starts_with("the local variables of all threads are 1200"), "{message}");
}

#[test]
fn code_that_needs_more_memory_than_there_is_is_refused() {
    let compiled = |statements: usize, instructions: usize| {
        let text = format!("var x = 0; thread t {{ {} }}", "x = 1; ".repeat(statements));
        let source = Source::new("model.pre", text);
        let program = preempt_lang::check(&source, &[]).expect("a good model");
        // Asked every 1,024 instructions, twice: code is generated a second time when the sizes of
        // all frames are known.
        let asked = Cell::new(0);
        let has_memory = || {
            asked.set(asked.get() + 1);
            asked.get() * 1_024 < instructions
        };
        Machine::within(program, &has_memory).map(|_| asked.get())
    };
    // A statement has three instructions, apart from marks: a rest point, a constant and a store.
    // At 1,024 and 2,048 the first time, also at 0 the second time.
    assert_eq!(compiled(1_000, usize::MAX).expect("there is memory"), 5);
    assert_eq!(compiled(100, 0).expect("too few instructions to ask"), 0);
    let refused = compiled(1_000, 2_000).expect_err("memory runs out");
    assert_eq!(refused.message, "the code of this model needs more memory than there is");
    let done = 2_048_usize.div_ceil(3);
    assert_eq!(
        refused.span.start as usize,
        "var x = 0; thread t { ".len() + done * "x = 1; ".len()
    );
}
