//! Hand-written programs of the kinds on which searches were wrong before: constant conditions,
//! steps whose alternatives access different locations, waits on plain variables, threads that fail
//! early, and merged steps that may block.
//!
//! Every program is compared with the reference under every plan, at all points and at points of
//! synchronisation. The random generator covers the same constructs; these programs cover the
//! combinations deliberately, so that a failure names its construct.

use std::collections::BTreeSet;

use preempt_reference::compare::{Compared, Selection, Verdict, compare};

/// What the program exercises, and its text.
const PROGRAMS: &[(&str, &str)] = &[
    // Constant conditions.
    (
        "a constant false `while` inside a function inside `atomic`",
        "const ON = 1 > 2; var x = 0;
         fn f() -> int { while ON { x = 5; } return x; }
         thread t { atomic { x = f() + 1; } } thread u { assert x != 1, \"one\"; }",
    ),
    (
        "a `while` that is constant for one value of the thread's parameter",
        "var x = 0;
         thread t(i in 0..2) { while i == 1 { x += 1; if x == 2 { break; } } assert x < 2, \"two\"; }",
    ),
    (
        "a constant false `await` and a constant true one",
        "var x = 0; thread t { await 1 == 1; x = 1; } thread u { if x == 1 { await false; } }",
    ),
    (
        "a constant false `assume` ends the thread's executions",
        "const OFF = false; var x = 0;
         thread t { assume OFF; assert false, \"beyond\"; } thread u { x = 1; assert x == 1; }",
    ),
    (
        "quantifiers over empty ranges",
        "var x = 0;
         thread t { assert all(i in 3..3: x == 9), \"all\"; if any(i in 0..0: true) { x = 1; } }
         thread u { assert count(i in 2..2: true) == 0, \"count\"; assert x == 0, \"reached\"; }",
    ),
    (
        "conditional expressions and short circuits with constant parts",
        "const A = true; var x = 0; var a: [int; 1];
         thread t { if A || a[9] == 1 { x = 1; } if !A && a[9] == 1 { x = 2; }
                    x = if A { x } else { a[9] }; }
         thread u { assert x != 1, \"one\"; }",
    ),
    (
        "`for` over a range that ends before it begins, and `continue` and `break` by constants",
        "const STOP = true; var x = 0;
         thread t { for i in 5..2 { x = 9; } for i in 0..3 { if STOP { continue; } x = 8; }
                    loop { if STOP { break; } x = 7; } assert x == 0, \"never\"; }
         thread u { x = 1; }",
    ),
    (
        "a `match` on a constant",
        "enum E { A, B } const C: E = B; var x = 0;
         thread t { match C { A => { x = 1; } B => { x = 2; } } } thread u { assert x != 2, \"B\"; }",
    ),
    // Alternatives of one step that access different locations.
    (
        "a choice in `atomic` between a lock and a variable",
        "mutex m; var x = 0;
         thread t { atomic { choose { if m.try_lock() { m.unlock(); x = 2; } } or { x = 1; } } }
         thread u { m.lock(); assert x == 0, \"x\"; m.unlock(); }",
    ),
    (
        "a choice in `atomic` of an index",
        "var a: [int; 3];
         thread t(i in 0..2) { atomic { a[choose(0..3)] += i + 1; } }
         thread u { assert a[1] != 3, \"both\"; }",
    ),
    (
        "a choice after a read in the same step",
        "var x = 0; var y = 0;
         thread t { atomic { if x == 1 { choose { y = 1; } or { y = 2; } } else { y = 3; } } }
         thread u { x = 1; assert y != 2, \"two\"; }",
    ),
    (
        "two choices in one step, the second only after one alternative of the first",
        "var x = 0; var y = 0;
         thread t { atomic { choose { x = 1; choose { y = 1; } or { x = 2; } } or { skip; } } }
         thread u { atomic { assert !(x == 1 && y == 1), \"both\"; } x = 0; }",
    ),
    (
        "alternatives whose locations depend on a step that a reversal puts before them",
        "var x = 0; var y = 0; var z = 0;
         thread t { atomic { choose { skip; } or { if x == 1 { y = 1; } else { z = 1; } } }
                    assert y != 5; }
         thread u { x = 1; y = 3; } thread v { y = 2; x = 2; }",
    ),
    (
        "a choice of which thread is spawned",
        "var x = 0; fn f(k: int) { x = k; assert x == k, \"lost\"; }
         thread t { atomic { choose { spawn f(1); } or { spawn f(2); spawn f(3); } } }",
    ),
    (
        "a choice inside a wait's condition step",
        "var x = 0; var y = 0;
         thread t { atomic { await x == 1; choose { y = 1; } or { x = 0; } } assert y == 1, \"y\"; }
         thread u { x = 1; await x == 0; }",
    ),
    // Waits on plain variables.
    (
        "two threads that wait for each other's plain variable",
        "var x = 0; var y = 0;
         thread t { x = 1; await y == 1; x = 2; } thread u { await x == 1; y = 1; assert x != 2, \"late\"; }",
    ),
    (
        "a wait for a plain element of an array at an index that is plain too",
        "var a: [bool; 2]; var i = 0;
         thread t { await a[i]; assert i == 0, \"moved\"; } thread u { a[1] = true; i = 1; a[0] = true; }",
    ),
    (
        "a value that is there only between two plain writes",
        "var x = 0; var y = 0;
         thread t { y = 1; x = 1; x = 0; } thread u { await x == 1; assert y == 0, \"seen\"; }",
    ),
    (
        "a plain read, a lock, and a wait for a plain variable behind it",
        "mutex m; var x = 0; var y = 0;
         thread t { var k = x; m.lock(); await y == 1; x = k + 1; m.unlock(); }
         thread u { y = 1; m.lock(); assert x == 0, \"first\"; m.unlock(); }",
    ),
    (
        "a wait for a plain field of a record",
        "record R { ready: bool, value: int } var r: R;
         thread t { r.value = 1; r.ready = true; r.value = 2; }
         thread u { await r.ready; assert r.value == 1, \"changed\"; }",
    ),
    (
        "`assume` on a plain variable in the middle of plain accesses",
        "var x = 0; var y = 0;
         thread t { y = 1; assume x == 0; y = 2; assume x == 1; y = 3; } thread u { x = 1; assert y != 2, \"two\"; }",
    ),
    // Failures before and in the middle.
    (
        "a spawned thread that fails before its first access, beside others that wait for it",
        "fn f() { assert false, \"F\"; }
         thread t { var h = spawn f(); join h; } thread u { assert 1 == 2, \"U\"; }",
    ),
    (
        "a division by zero before the first access",
        "const ZERO = 0; var x = 0; thread t { var k = 1 / ZERO; x = k; } thread u { x = 1; }",
    ),
    (
        "a failure inside `atomic` undoes what the block has done",
        "var x = 0; semaphore(0) s;
         thread t { atomic { x = 1; s.release(); assert x == 0, \"T\"; } }
         thread u { s.acquire(); assert false, \"never\"; }",
    ),
    (
        "a failing alternative beside one that continues",
        "var x = 0;
         thread t { atomic { choose { x = 1; assert false, \"one\"; } or { x = 2; } } assert x == 2, \"x\"; }
         thread u { x = 3; }",
    ),
    (
        "an overflow in one order only",
        "var x = 2147483646; thread t { x += 1; } thread u { x += 1; }",
    ),
    (
        "an unlock of a mutex that the thread does not hold",
        "mutex m; var x = 0; thread t { m.lock(); x = 1; m.unlock(); } thread u { if x == 1 { m.unlock(); } }",
    ),
    // Objects.
    (
        "a notification that may come before the wait",
        "mutex m; condvar c; var ready = false;
         thread t { m.lock(); if !ready { c.wait(m); } m.unlock(); }
         thread u { ready = true; c.notify_one(); }",
    ),
    (
        "two waiters and one notification",
        "mutex m; condvar c; var go = 0;
         thread t(i in 0..2) { m.lock(); while go == 0 { c.wait(m); } m.unlock(); }
         thread u { m.lock(); go = 1; m.unlock(); c.notify_one(); }",
    ),
    (
        "an event that resets itself, for two threads",
        "event(auto) e; var x = 0;
         thread t(i in 0..2) { e.wait(); x += 1; } thread u { e.set(); e.set(); }",
    ),
    (
        "a barrier with one thread too few",
        "barrier(3) b; var x = 0; thread t(i in 0..2) { x += 1; b.wait(); assert false, \"beyond\"; }",
    ),
    (
        "a barrier that is used twice",
        "barrier(2) b; var x = 0;
         thread t(i in 0..2) { x += 1; b.wait(); assert x >= 1, \"one\"; b.wait(); assert x == 2, \"two\"; }",
    ),
    (
        "a rendezvous with two senders and one receiver",
        "channel(0, int) c; var got = 0;
         thread t(i in 0..2) { c.send(i + 1); } thread u { got = c.recv(); assert got != 2, \"two\"; }",
    ),
    (
        "a channel whose length is read",
        "channel(1, int) c; var x = 0;
         thread t { c.send(1); x = 1; c.send(2); } thread u { await c.len() == 1; assert x == 0, \"x\"; c.recv(); }",
    ),
    (
        "a reader that upgrades by hand",
        "rwlock r; var x = 0;
         thread t(i in 0..2) { r.read(); var k = x; r.unlock_read(); r.write(); x = k + 1; r.unlock_write(); }
         thread u { r.read(); assert x < 2, \"two\"; r.unlock_read(); }",
    ),
    (
        "`try_lock` that decides what is touched",
        "mutex m; var x = 0; var y = 0;
         thread t { if m.try_lock() { x = 1; m.unlock(); } else { y = 1; } }
         thread u { m.lock(); assert y == 0, \"y\"; m.unlock(); assert x == 0, \"x\"; }",
    ),
    // Atomic blocks and heaps.
    (
        "an `atomic` block that waits at its beginning, and one that is empty",
        "atomic var x = 0; var y = 0;
         thread t { atomic { } y = 1; atomic { } x = 1; }
         thread u { atomic { await x == 1; y = 2; } assert y == 2, \"y\"; } thread v { y = 3; }",
    ),
    (
        "what an `atomic` block writes and takes back is seen by no other thread",
        "var x = 0; thread t { atomic { x = 1; assert x == 1; x = 2; x = 0; } }
         thread u { assert x == 0, \"inside\"; x = 5; }",
    ),
    (
        "a node that is taken by two threads: a stack with a compare and swap",
        "record Node { next: *Node, owner: int } var top: *Node;
         init { top = new Node { }; top = new Node { next: top }; }
         thread t(i in 0..2) { var n = top; if cas(top, n, n.next) { n.owner += 1; assert n.owner == 1, \"twice\"; } }",
    ),
    (
        "ABA: a node that comes back while another thread compares",
        "record Node { next: *Node } var top: *Node; var lost = 0;
         init { top = new Node { }; top = new Node { next: top }; }
         thread t { var n = top; var m = n.next; if cas(top, n, m) { assert top == m, \"gone\"; } }
         thread u { var a = top; top = a.next; var b = top; top = b.next; a.next = top; top = a; }",
    ),
    (
        "a null pointer in one order only",
        "record Node { value: int } var p: *Node; init { p = new Node { value: 1 }; }
         thread t { if p != null { assert p.value == 1, \"value\"; } } thread u { p = null; }",
    ),
    (
        "a loop that yields and writes",
        "var x: 0..=2 = 0; var go = false;
         thread t { while !go { x = (x + 1) % 3; yield; } assert x != 2, \"two\"; } thread u { go = true; }",
    ),
    (
        "statements as steps",
        "steps statement; var x = 0; var y = 0;
         thread t { x = y + 1; y = x + x; } thread u { y = x + 1; assert x + y != 3, \"three\"; }",
    ),
    // Constructs that the random generator does not produce.
    (
        "a barrier for three threads",
        "barrier(3) b; var x = 0;
         thread t(i in 0..3) { b.wait(); if i == 0 { x = 1; } else { assert x == 0, \"late\"; } }",
    ),
    (
        "a barrier for one thread",
        "barrier(1) b; var x = 0;
         thread t { x = 1; b.wait(); b.wait(); x = 0; } thread u { assert x == 0, \"between\"; }",
    ),
    (
        "a thread with two parameters",
        "var x: [0..4; 2];
         thread t(i in 0..2, j in 0..2) { x[i] = j; assert i == 0 || x[0] < 1, \"one\"; }",
    ),
    (
        "a pointer to a pointer",
        "record Cell { value: int } var p: *Cell; var q: **Cell;
         init { p = new Cell { value: 1 }; q = &p; }
         thread t { *q = new Cell { value: 2 }; } thread u { assert (*q).value == 1, \"changed\"; }",
    ),
    (
        "joins of threads that a spawned thread has spawned",
        "var inner: thread; var x = 0; fn leaf() { x += 1; } fn branch() { inner = spawn leaf(); }
         thread main { var b = spawn branch(); join b; if inner != null { join inner; }
           assert x == 0, \"ran\"; }",
    ),
];

#[test]
fn every_search_agrees_with_the_reference() {
    let (mut searches, mut labels) = (0, BTreeSet::new());
    for (kind, text) in PROGRAMS {
        match compare(text, Selection::All) {
            Verdict::Agree(Compared { plans, .. }) => {
                assert!(plans.len() > 10, "{kind}: only {} searches were compared", plans.len());
                searches += plans.len();
                labels.extend(
                    plans.iter().map(|plan| format!("{:?} {:?}", plan.order, plan.reduction)),
                );
            }
            other => panic!("{kind}: {other:?}\n{text}"),
        }
    }
    assert!(
        searches > 100 * PROGRAMS.len() && labels.len() > 20,
        "{searches} searches: {labels:?}"
    );
}
