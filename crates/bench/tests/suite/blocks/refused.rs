//! What the reduction by blocks refuses, with the position and an alternative.

use preempt_explore::{Limit, Limits, Observer, Order, Plan, Points, Progress, Reduction, Silent};
use preempt_lang::source::Source;
use preempt_machine::Machine;

fn model(text: &str) -> Machine {
    preempt_lang::load(&Source::new("model.pre", text), &[])
        .unwrap_or_else(|d| panic!("{}: {text}", d[0].message))
}

fn plan() -> Plan {
    Plan::new().order(Order::Executions).reduction(Reduction::Blocks)
}

/// The reason for which a program is refused.
fn refusal(text: &str) -> String {
    plan().build().expect("the plan is valid").suits(&model(text)).expect_err(text).to_string()
}

#[test]
fn code_that_is_not_straight_line_is_refused_with_its_line() {
    // The obstacle is always in the second line.
    for (body, why) in [
        ("if x == 0 { x = 1; }", "branches"),
        ("x = if x == 0 { 1 } else { 2 };", "branches"),
        ("assert x == 0 || y == 1;", "branches"),
        ("while x < 2 { x = x + 1; }", "branches or loops"),
        ("for i in 0..3 { x = i; }", "branches or loops"),
        ("loop { x = 1; }", "loops"),
        ("match x { 0 => { y = 1; } _ => { y = 2; } }", "branches"),
        ("await x == 1;", "waits for a condition"),
        ("assume x == 1;", "waits for a condition"),
        ("m.lock();", "synchronisation object"),
        ("m.unlock();", "synchronisation object"),
        ("x = choose(0..2);", "chooses"),
        ("choose { x = 1; } or { x = 2; }", "chooses"),
        ("f();", "calls a function"),
        ("x = g(1);", "calls a function"),
        ("spawn f();", "starts threads"),
        ("a[x] = 1;", "index or a pointer"),
        ("x = *p;", "pointer"),
        ("p = &x; *p = 1;", "pointer"),
        ("n = new Node { v: 1 };", "makes records"),
    ] {
        let text = format!(
            "var x = 0; var y = 0; mutex m; var a: [int; 2]; var p: *int; record Node {{ v: int }} var n: *Node; fn f() {{ x = 1; }} \
             fn g(k: int) -> int {{ return k; }} thread u {{ y = 1; }} thread t {{ y = 2;\n{body}\n}}"
        );
        let refusal = refusal(&text);
        assert!(refusal.contains(why) && refusal.contains("model.pre:2"), "{body}: {refusal}");
        assert!(refusal.contains("use `Reduction::Source`"), "{refusal}");
    }
}

#[test]
fn constant_conditions_and_indices_count_as_straight_line() {
    // Indices that are constants or the thread's parameter, a branch whose condition is constant,
    // and statements of `init`.
    let text =
        "const N = 2; var a: [int; N]; atomic var x = 0; init { for i in 0..N { a[i] = 7; } }
                thread t(i in 0..N) { a[i] = 1; a[0] = a[1]; if N == 2 { x = i; } }";
    let outcome = plan().build().expect("the plan is valid").run(model(text), &Silent).0;
    assert!(outcome.complete, "{}", outcome.guarantee());
}

#[test]
fn too_many_graphs_are_refused_with_their_number() {
    let thread = "thread t(i in 0..3) { x = 1; x = 2; x = 3; x = 4; x = 5; x = 6; }";
    let refused = refusal(&format!("atomic var x = 0; {thread}"));
    assert!(refused.contains("17153136") && refused.contains("bound"), "{refused}");
    // Too many threads to count graphs in reasonable time, but a refusal is quick.
    let many = "atomic var x = 0; thread t(i in 0..30) { x = 1; x = 2; x = 3; }";
    assert!(refusal(many).contains("their traces cannot be counted"), "{}", refusal(many));
}

#[test]
fn other_options_are_refused() {
    let order = |order| Plan { order, ..plan() };
    for (plan, why) in [
        (plan().bound(1), "remove `bound`"),
        (order(Order::ContextBounded).bound(1), "remove `bound`"),
        (plan().points(Points::Sync), "remove `points`"),
        (plan().jobs(2), "remove `jobs`"),
        (order(Order::BreadthFirst), "needs `Order::Executions`"),
        (order(Order::DfsHb), "needs `Order::Executions`"),
        (plan().limits(Limits { depth: Some(3), ..Limits::default() }), "remove `limits.depth`"),
    ] {
        let refusal = plan.build().expect_err("refused");
        assert!(refusal.to_string().contains(why), "{refusal}");
    }
    let search = plan().build().expect("the plan is valid");
    let refusal = search
        .suits(&model("var x = 0; invariant x != 1; thread t { x = 1; }"))
        .expect_err("states are left out");
    assert!(refusal.to_string().contains("invariants"), "{refusal}");
}

/// Interrupts at the first poll.
struct Interrupting;

impl Observer for Interrupting {
    fn progress(&self, _: &Progress) {}
    fn interrupted(&self) -> bool {
        true
    }
}

#[test]
fn a_search_that_is_ended_early_is_not_complete() {
    let many = || model("atomic var x = 0; thread t(i in 0..3) { x = 1; x = 2; x = 3; x = 4; }");
    let interrupted = plan().build().expect("the plan is valid").run(many(), &Interrupting).0;
    assert_eq!((interrupted.stopped, interrupted.complete), (Some(Limit::Interrupt), false));
    let limits = Limits { states: Some(100), ..Limits::default() };
    let stopped = plan().limits(limits).build().expect("the plan is valid").run(many(), &Silent).0;
    assert_eq!((stopped.stopped, stopped.complete), (Some(Limit::States), false));
}
