//! Models that are endless or far too large end with a clear message, not with a crash, a hang or
//! exhausted memory.
//!
//! Errors that can be detected statically are refused; others are found at run time. Instead of
//! time and memory, the tests bound the number of states.

use preempt_explore::{Limit, Limits, Order, Outcome, Plan, Reduction, Silent};
use preempt_lang::source::Source;
use preempt_system::Verdict;

/// The maximal number of states that a search for one of these errors may need.
const FEW: u64 = 10_000;

/// The messages with which a model is refused.
fn refusal(model: &str) -> String {
    match preempt_lang::load(&Source::new("extreme.pre", model), &[]) {
        Ok(_) => panic!("it was accepted"),
        Err(diagnostics) => {
            diagnostics.into_iter().map(|diagnostic| diagnostic.message + "\n").collect()
        }
    }
}

/// The outcome of a search.
fn outcome(model: &str, order: Order) -> Outcome {
    let machine = match preempt_lang::load(&Source::new("extreme.pre", model), &[]) {
        Ok(machine) => machine,
        Err(diagnostics) => panic!("it was refused: {diagnostics:?}"),
    };
    let limits = Limits { states: Some(FEW), ..Limits::default() };
    let search =
        Plan::new().order(order).limits(limits).build().expect("a full search is always possible");
    search.run(machine, &Silent).0
}

/// Checks that one mistake is reported, with this text in its message.
fn refused(model: &str, text: &str) {
    let messages = refusal(model);
    assert!(messages.contains(text), "no `{text}` in: {messages}");
    assert_eq!(messages.lines().count(), 1, "one mistake, several messages: {messages}");
}

/// Checks that an error with this text in its message is found within a few states.
fn found(model: &str, order: Order, text: &str) {
    let outcome = outcome(model, order);
    assert_eq!(outcome.verdict, Verdict::Violation, "{}", outcome.guarantee());
    let message = &outcome.findings[0].failure.message;
    assert!(message.contains(text), "no `{text}` in: {message}");
    assert!(outcome.coverage.states <= FEW, "{} states", outcome.coverage.states);
}

/// A search over executions keeps the names of unreferenced records, so it needs more of them than
/// a search over states. It says which limit it has reached and what to do.
#[test]
fn too_many_records_are_not_a_limit_of_memory() {
    let text = "record Node { value: int } var last: *Node; \
        thread t { for i in 0..1200 { last = new Node { value: i }; } } thread u { last = null; }";
    let load = || preempt_lang::load(&Source::new("records.pre", text), &[]).expect("a model");
    let plan = Plan::new().order(Order::Executions).reduction(Reduction::Source);
    let (outcome, _) = plan.build().expect("the plan is valid").run(load(), &Silent);
    assert_eq!(outcome.stopped, Some(Limit::Size), "{}", outcome.guarantee());
    let guarantee = outcome.guarantee();
    assert!(guarantee.contains("1,000 records of one type"), "{guarantee}");
    assert!(guarantee.contains("search over states"), "{guarantee}");
    let states = Plan::new().order(Order::BreadthFirst).build().expect("a full search");
    let (outcome, _) = states.run(load(), &Silent);
    assert!(outcome.complete, "the advice helps: {}", outcome.guarantee());
}

#[test]
fn infinite_recursion_is_found() {
    let local =
        "fn down(n: int) -> int { return down(n - 1) + 1; } thread t { assert down(3) == 3; }";
    found(local, Order::BreadthFirst, "more than 1000 nested calls");
    let shared = "var x = 0; fn down() { x = 1 - x; down(); } thread t { down(); }";
    found(shared, Order::BreadthFirst, "more than 1000 nested calls");
    let mutual =
        "fn f(n: int) { g(n + 1); } fn g(n: int) { f(n + 1); } thread t(i in 0..60) { f(i); }";
    found(mutual, Order::BreadthFirst, "the state grows beyond 8 KiB");
    let wide = "fn f(n: int) { var pad: [int; 50]; pad[n % 50] = n; f(n + 1); } thread t { f(0); }";
    found(wide, Order::BreadthFirst, "the state grows beyond 8 KiB");
    let init = "var x = 0; fn f(n: int) -> int { return f(n + 1); } init { x = f(0); } thread t { yield; }";
    found(init, Order::BreadthFirst, "more than 1000 nested calls");
}

#[test]
fn an_unbounded_heap_is_found() {
    let list = "record Node { next: *Node } var list: *Node; thread t { loop { list = new Node { next: list }; } }";
    found(list, Order::BreadthFirst, "live records: `new` seems to be called forever");
    let many = "record Node { next: *Node } var list: *Node; thread t(i in 0..3) { loop { list = new Node { next: list }; } }";
    found(many, Order::DepthFirst, "live records: `new` seems to be called forever");
    let wide = "record Node { next: *Node, pad: [int; 100] } var list: *Node;
        thread t { loop { list = new Node { next: list }; list.pad[3] = 100000; } }";
    found(wide, Order::BreadthFirst, "the state grows beyond 8 KiB");
    let init = "record Node { next: *Node } var list: *Node;
        init { loop { list = new Node { next: list }; } } thread t { yield; }";
    found(init, Order::BreadthFirst, "live records: `new` seems to be called forever");
}

#[test]
fn unbounded_spawning_is_found() {
    let ended = "fn child() { skip; } thread t { loop { spawn child(); } }";
    found(ended, Order::BreadthFirst, "more than 64 threads");
    // Breadth first, the steps of all children would come between two spawns.
    let living = "var x = 0; fn child() { x = 1; } thread t { loop { spawn child(); } }";
    found(living, Order::DepthFirst, "more than 64 threads");
    let bomb = "fn child() { spawn child(); spawn child(); } thread t { child(); }";
    found(bomb, Order::DepthFirst, "more than 64 threads");
    let init = "fn child() { yield; } init { loop { spawn child(); } }";
    found(init, Order::BreadthFirst, "more than 64 threads");
}

#[test]
fn a_million_threads_are_refused() {
    refused(
        "var x = 0; thread t(i in 0..1_000_000) { x = i; }",
        "too many threads: at most 64 can run",
    );
    let square = "var x = 0; thread t(i in 0..2_000_000_000, j in 0..2_000_000_000) { x = i; }";
    refused(square, "too many threads: at most 64 can run");
}

#[test]
fn an_infinite_step_is_found() {
    let text = "this step never ends";
    found("var x = 0; thread t { x = 1; loop { } }", Order::BreadthFirst, text);
    found("thread t { loop { } }", Order::BreadthFirst, text);
    found("thread t { var i = 0; while i >= 0 { i = 1 - i; } }", Order::BreadthFirst, text);
    found(
        "var x = 0; thread t { atomic { while x < 2 { x = 1 - x; } } }",
        Order::BreadthFirst,
        text,
    );
    found("init { loop { } } thread t { yield; }", Order::BreadthFirst, text);
}

#[test]
fn a_choice_with_too_many_alternatives_is_found() {
    let text = "more than 65536 alternatives in one step";
    found(
        "var x = 0; thread t { x = choose(-2147483647..2147483647); }",
        Order::BreadthFirst,
        text,
    );
    let sums = "var x = 0; thread t { atomic { while x < 1000 { x += choose(0..2); } } }";
    found(sums, Order::BreadthFirst, text);
}

#[test]
fn declarations_that_are_too_large_are_refused() {
    refused("var a: [int; 1_000_000_000]; thread t { a[0] = 1; }", "`a` is too large");
    refused("var a: [[[int; 100_000]; 100_000]; 100_000]; thread t { skip; }", "`a` is too large");
    refused("mutex m[1_000_000_000]; thread t { m[0].lock(); }", "`m` is too large");
    refused("channel(2_000_000_000, int) c; thread t { c.send(1); }", "`c` is too large");
    refused("record R { a: [int; 1_000_000_000] } thread t { skip; }", "record `R` is too large");
    refused(
        "thread t { var a: [int; 1_000_000_000]; }",
        "the local variables of `t` are too large",
    );
    refused("var a: [int; 900_000]; thread t { a[0] = 1; }", "a state of this program takes");
    refused(
        "invariant all(i in 0..1_000_000_000: i >= 0); thread t { yield; }",
        "a quantifier over 1,000,000,000 values",
    );
}

#[test]
fn expressions_that_are_too_long_are_refused() {
    const MANY: usize = 100_000;
    let text = "more than 250 operators in a row";
    let operands = |operator: &str| vec!["1"; MANY].join(operator);
    refused(&format!("var x = 0; thread t {{ x = {}; }}", operands(" + ")), text);
    refused(&format!("const N = {}; thread t {{ skip; }}", operands(" * ")), text);
    refused(&format!("invariant {} == 0; thread t {{ skip; }}", operands(" | ")), text);
    let path = ".next".repeat(MANY);
    refused(&format!("record N {{ next: *N }} var p: *N; thread t {{ p = p{path}; }}"), text);
    refused(&format!("var a = 0; thread t {{ a{} = 1; }}", "[0]".repeat(MANY)), text);
}

#[test]
fn deep_nesting_is_refused() {
    const DEEP: usize = 100_000;
    let text = "nested more than 100 levels deep";
    let nested =
        |open: &str, inner: &str, close: &str| open.repeat(DEEP) + inner + &close.repeat(DEEP);
    refused(&format!("var x = 0; thread t {{ x = {}; }}", nested("(", "1", ")")), text);
    refused(&format!("thread t {{ assert {}; }}", nested("!", "true", "")), text);
    refused(&format!("thread t {}", nested("{", "skip;", "}")), text);
    refused(&format!("thread t {{ {} }}", nested("atomic {", "skip;", "}")), text);
    refused(
        &format!("thread t {{ if true {{ skip; }} {} }}", nested("else if true { skip; }", "", "")),
        text,
    );
    refused(&format!("var x: {}; thread t {{ skip; }}", nested("[", "int", "; 1]")), text);
    refused(&format!("var x: {}; thread t {{ skip; }}", nested("*", "int", "")), text);
    refused(&format!("var x: [int; 1] = {}; thread t {{ skip; }}", nested("[", "1", "]")), text);
    refused(&format!("thread t {{ {} }}", nested("end: ", "skip;", "")), text);
}

#[test]
fn a_text_that_is_too_long_is_refused() {
    refused(&"/*".repeat(100_000), "this comment is never closed");
}
