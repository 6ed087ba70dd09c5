//! Regression tests: shrunk programs on which a search and the reference once disagreed.

use preempt_reference::compare::{Compared, Selection, Verdict, compare};

/// A description of the bug, and the program.
const PROGRAMS: &[(&str, &str)] = &[
    (
        "a thread that returns from inside a block kept the locals of the block",
        "record Node { value: int, next: *Node }
        thread t { choose { var l: *Node = new Node { }; return; } or { } }",
    ),
    (
        "a thread that returns from inside a `for` kept the variable of the loop",
        "var x = 0;
        thread t { for i in 1..3 { choose { return; } or { } } x = 1; }",
    ),
    (
        "a loop whose condition is constant and false was endless",
        "const OFF = false; var x = 0;
        thread t { while OFF { x = 1; } assert x == 1, \"reached\"; }",
    ),
    (
        "the last advance of a loop overflowed",
        "thread t { for i in 2147483646..=2147483647 { yield; } }",
    ),
    (
        "alternatives of one step that touch different things were taken for one",
        "var y = 0;
        thread t0 { atomic { choose { skip; } or { y += 1; } } assert y != 3; }
        thread t1 { y = 2; }",
    ),
    (
        "two writes were one step for a thread that waits for the first",
        "var x = 0;
        thread t0 { assume x != 0; }
        thread t1 { x = 1; x += -1; }",
    ),
    (
        "a plain access and a wait were one step that was blocked in its middle",
        "var y = 1; var z = 1;
        thread t0 { y = 2; }
        thread t1 { z = 2; await y > 1; }",
    ),
    (
        "a thread that fails before its first access hid what others do",
        "channel(0, 0..=3) q0;
        thread t0 { assert 1 == 2; }
        thread t1 { q0.recv(); }",
    ),
    (
        "a deadlock was reported because a failed thread never unlocks",
        "mutex m;
        thread t { m.lock(); assert false; m.unlock(); }
        thread u { m.lock(); m.unlock(); }",
    ),
    (
        "records made by steps that fail were taken for one on which the threads race",
        "record Node { value: int, next: *Node }
        var p: *Node;
        thread t(i in 0..2) { atomic { p.next = new Node { value: i }; } }",
    ),
    (
        "a division by zero counted as a write of its result",
        "var x = 0;
        thread t(i in 0..2) { atomic { x /= 0; } }",
    ),
    (
        "the negation of the lowest integer was an error only where its result was stored",
        "thread t { for i in -2147483648..-2147483646 { assert -i > 0; yield; } }",
    ),
    (
        "the reference told threads apart that have ended, by the type of their function's result",
        "fn f() -> 0..=3 { return 2; } fn g() -> int { return 0; }
        thread t { spawn f(); }
        thread u { spawn g(); }",
    ),
    (
        "a value that a channel cannot carry, sent where the sender would have to wait",
        "channel(0, 0..=3) c; channel(1, 0..=3) d; var x = 1;
        thread t { c.send(x); }
        thread u { c.send(2); }
        thread v { x = -1; d.send(0); d.try_send(x); }",
    ),
    (
        "an index was checked before the value that is written there was read, not with the access",
        "var a: [int; 3]; var x = 1;
        thread t { a[9] = x; }
        thread u { x = 2; assert x == 1, \"U\"; }",
    ),
    (
        "dpor-fg: a notified thread was not seen to race with the next owner of its mutex",
        "mutex m; condvar c;
        thread a { m.lock(); c.wait(m); assert false, \"woken\"; }
        thread b { m.lock(); }
        thread d { c.notify_one(); }",
    ),
    (
        "the same, where the new owner deadlocks and all traces end without a failure of their own",
        "mutex m; condvar c;
        thread a { m.lock(); c.wait(m); m.unlock(); }
        thread b { m.lock(); m.lock(); }
        thread d { c.notify_all(); }",
    ),
    (
        "the same, where a failing access is one of several in a step",
        "var a: [int; 2]; var i = 1;
        thread t { atomic { a[i] = 1; a[i + 1] = 2; } }
        thread u { i = 0; assert a[i] == 0, \"U\"; }",
    ),
    (
        "the reference took a step for endless that spawns a thread whose first step is endless",
        "var x = 1; fn f() -> bool { while true { } return x == 0; }
        thread t { var h = spawn f(); }",
    ),
    (
        "the reference distinguished ends of a thread by locals that only one of them has declared",
        "thread t(i in 0..2) { choose { } or { return; } var l: [int; 2]; yield; }",
    ),
    (
        "dpor-fg: of the races of a step with several accesses only the last was reversed",
        "var a: [int; 2]; var y = 1;
        thread t { assert a[0] == 0, \"T\"; }
        thread u { y = 0; }
        thread v { atomic { a[y] = 1; } }",
    ),
    (
        "accesses through a pointer were one step although the variable is atomic",
        "atomic var y = 0;
        thread t { var p: *int = &y; *p = 1; *p = 0; }
        thread u { assert y != 1, \"U\"; }",
    ),
    (
        "the same with a variable that is promoted",
        "var x = 0;
        thread t { var p: *int = &x; *p = fetch_sub(x, 1); }
        thread u { if x >= 0 { end: await false; } assert false, \"U\"; }",
    ),
    (
        "the same with an element of an array",
        "var a: [int; 2]; var i = 1;
        thread t { var p: *int = &a[i]; *p = 1; *p = 0; }
        thread u { assert a[1] != 1, \"U\"; }",
    ),
    (
        "the same with a part of a record that a pointer points to",
        "record Pair { first: int, second: int } var pair: Pair;
        thread t { var p: *Pair = &pair; var q: *int = &p.second; *q = 1; *q = 0; }
        thread u { assert pair.second != 1, \"U\"; }",
    ),
];

#[test]
fn every_search_agrees_with_the_reference_now() {
    for (wrong, text) in PROGRAMS {
        match compare(text, Selection::All) {
            Verdict::Agree(Compared { plans, .. }) => {
                assert!(plans.len() > 100, "{wrong}: only {} searches", plans.len())
            }
            other => panic!("{wrong}: {other:?}\n{text}"),
        }
    }
}
