//! Programs for the compiler: operands that are kept across steps, calls, scopes, places and
//! objects, in combinations that random programs rarely have. Their states are compared with the
//! reference, with accesses and with statements as steps. Every search uses the same compiler, so
//! one search is enough, and many programs take little time.

use preempt_reference::compare::{Selection, Verdict, compare};

const PROGRAMS: &[(&str, &str)] = &[
    // Calls and recursion.
    (
        "a recursive function that uses its parameter and its locals after the call",
        "var x = 0; fn fact(n: int) -> int { var k = n; if n <= 1 { return 1; }
           var r = fact(n - 1); x += 1; return k * r + (n - k); }
         thread t { var r = fact(4); assert r == 24, \"wrong\"; x = r; } thread u { x = 7; }",
    ),
    (
        "a recursive function with two calls in one expression",
        "var calls = 0; fn fib(n: int) -> int { calls += 1; if n < 2 { return n; }
           return fib(n - 1) + fib(n - 2); }
         thread t { assert fib(4) == 3; assert calls != 9, \"nine\"; }",
    ),
    (
        "two functions that call each other",
        "var x = 0; fn even(n: int) -> bool { if n == 0 { return true; } x += n;
           return odd(n - 1); }
         fn odd(n: int) -> bool { var k = n; if n == 0 { return false; }
           var e = even(n - 1); x += k; return e; }
         thread t(i in 2..4) { assert even(i), \"odd\"; } thread u { assert x < 6, \"six\"; }",
    ),
    (
        "a recursive function in a spawned thread, and the depth of its calls",
        "var x = 0; fn down(n: int) { if n > 0 { var k = n; down(n - 1); x += k; } }
         thread t { var h = spawn down(3); down(2); join h; assert x == 9, \"lost\"; }",
    ),
    (
        "a function called from several places, in ordinary code and in `atomic`",
        "var x = 0; fn inc(by: int) -> int { x += by; return x; }
         thread t { var a = inc(1); atomic { a += inc(2); a += inc(3); }
           assert inc(a) < 20, \"t\"; }
         thread u { inc(4); assert x != 5, \"u\"; }",
    ),
    (
        "calls as arguments of calls, with accesses in between",
        "var x = 1; var y = 2; fn f(a: int, b: int) -> int { x = b; return a - b; }
         fn g(a: int) -> int { return a + y; }
         thread t { var r = f(g(x), f(y, g(1))); assert r == 4, \"r\"; } thread u { y = 3; }",
    ),
    (
        "a function without a result, and results that are ignored",
        "var x = 0; fn f(b: bool) { if b { return; } x = 1; } fn g() -> bool { x = 2; return true; }
         thread t { f(true); f(x == 0); g(); f(g()); } thread u { assert x != 1, \"one\"; }",
    ),
    (
        "a result that is out of range, and one that is in range in one order only",
        "var x = 2; fn f() -> 0..=2 { return x; }
         thread t { var k = f(); x = k; } thread u { x = 3; x = 1; }",
    ),
    (
        "an argument that is out of range",
        "var x = 2; fn f(n: 0..=2) { x = n; } thread t { f(x); } thread u { x = 3; }",
    ),
    (
        "a thread that returns from a loop in a block of a loop",
        "var x = 0; thread t { for i in 0..3 { var a = i; while true { var b = a + 1; x += b;
           if b == 2 { return; } if b == 1 { break; } } } } thread u { assert x != 3, \"three\"; }",
    ),
    (
        "functions that return from inside nested loops, with locals that must not survive",
        "var x = 0; fn f(n: int) -> int { for i in 0..2 { var k = n + i; for j in 0..=1 { var l = j;
           if k + l == 2 { return k * 2 + l; } yield; } } return 0; }
         thread t { x = f(1) + f(2); } thread u { x = 1; }",
    ),
    // Scopes and loops.
    (
        "locals of an iteration start at zero",
        "var x = 0; thread t { for i in 0..3 { var k: int; var a: [int; 2]; k += i; a[1] += k;
           x += a[1]; if i == 1 { continue; } k = 5; a[0] = 7; } } thread u {
           assert x != 3, \"u\"; }",
    ),
    (
        "`break` and `continue` out of nested blocks",
        "var x = 0; thread t { var n = 0; loop { var a = n; n += 1; { var b = a; if b == 0 {
           continue; }
           { var c = b; if c == 2 { break; } x += c; } } x += 10; } assert n == 3; }
         thread u { assert x < 10, \"ten\"; }",
    ),
    (
        "a `while` whose condition has several accesses",
        "var x = 0; var y = 2; thread t { while x < y && y > 0 { x += 1; } } thread u { y = 1;
           x = 0; }",
    ),
    (
        "a `for` whose bounds are shared variables that change",
        "var lo = 0; var hi = 2; var n = 0;
         thread t { for i in lo..hi { n += 1; } for i in lo..=hi { n += 1; }
           assert n != 5, \"five\"; }
         thread u { hi = 1; lo = 1; }",
    ),
    (
        "a `for` over a constant range that is inclusive, empty or one value",
        "var x = 0; thread t { for i in 2..=1 { x = 9; } for i in 1..=1 { x += i; }
           for i in -1..=1 { x += i; } assert x == 1; } thread u { yield; x = 0; }",
    ),
    (
        "a `match` with ranges, several patterns and a rest",
        "var x = 0; thread t { match choose(-1..6) { 0 => { x = 1; } 1 | 3..=4 => { x = 2; }
           _ => { x = 3; } } }
         thread u { x += 1; }",
    ),
    (
        "a `match` on a shared value, on a bool and on an enum",
        "enum E { A, B, C } var e: E; var b = false; var x = 0;
         thread t { match e { A => { x = 1; } B | C => { x = 2; } } match b { true => { x += 4; }
           false => { x += 8; } } } thread u { e = C; b = true; assert x != 10, \"ten\"; }",
    ),
    (
        "`choose` between blocks of different lengths",
        "var x = 0; thread t { choose { x = 1; x = 2; } or { } or { x = 3; } x += 1; }
         thread u { assert x != 3, \"three\"; }",
    ),
    (
        "`choose` from ranges whose bounds are variables",
        "var lo = 0; var hi = 1; thread t { var k = choose(lo..=hi); var l = choose(lo..hi);
           assert k + l < 2, \"two\"; } thread u { hi = 2; } thread v { lo = 1; }",
    ),
    (
        "two choices and a failure in one step",
        "var x = 0; thread t { atomic { var a = choose(0..3); var b = choose(a..=2);
           assert a + b != 3, \"three\"; x = a * 3 + b; } } thread u { x = 9; }",
    ),
    // Values that are kept across steps.
    (
        "operands of one expression that are read in several steps",
        "var x = 1; var y = 2; var z = 3; thread t { var r = x * 100 + y * 10 + z;
           assert r == 123, \"r\"; }
         thread u { z = 4; x = 5; y = 6; }",
    ),
    (
        "a value that is kept while a call takes steps",
        "var x = 1; var y = 1; fn f() -> int { y += 1; return y; }
         thread t { x = x * 10 + f(); x += f() * x; } thread u { x = 2; }",
    ),
    (
        "compound assignment to an element whose index is shared",
        "var a: [int; 3]; var i = 0; var k = 1; thread t { a[i] += k; a[i + 1] *= a[k] + 3; }
         thread u { i = 1; k = 0; a[1] = 2; }",
    ),
    (
        "an element of an element, with both indices shared",
        "var a: [[int; 2]; 2]; var i = 0; var j = 1;
         thread t { a[i][j] = 1; a[a[i][j]][j] = a[j][i] + 2; } thread u { i = 1; j = 0; }",
    ),
    (
        "an index that is out of range in one order only, at both ends",
        "var a: [int; 2]; var i = 0; thread t { a[i] = 1; a[i + 1] = 2; } thread u { i = 1;
           i = -1; }",
    ),
    (
        "conditional expressions with accesses in all parts",
        "var x = 0; var y = 1; var z = 2;
         thread t { x = if x == 0 { y } else { z } + if y == z { x } else { 10 }; }
         thread u { x = 1; y = 2; }",
    ),
    (
        "short circuits with accesses on both sides",
        "var x = 0; var y = 0; thread t { var a = x == 0 && y == 0; var b = x == 1 || y == 1;
           assert a || b, \"neither\"; if !(x == 1) || (y == 0 && x == 0) { y = 2; } }
         thread u { x = 1; y = 1; x = 0; }",
    ),
    (
        "quantifiers over shared arrays, nested",
        "var a: [int; 3]; thread t { atomic { assert count(i in 0..3: a[i] > 0) < 2, \"two\"; }
           if any(i in 0..3: all(j in 0..3: i == j || a[j] == 1)) { a[0] = 5; } }
         thread u { a[1] = 1; a[2] = 1; }",
    ),
    (
        "quantifiers in invariants and conditions of waits",
        "var a: [bool; 3]; invariant few: count(i in 0..3: a[i]) < 3;
         thread t(i in 0..2) { await all(j in 0..3: !a[j]) || a[2]; a[i] = true; } thread u {
           a[2] = true; }",
    ),
    // Arithmetic.
    (
        "every operator, with operands that are not constant",
        "var x = 13; var y = 5; var r = 0; thread t { r = x + y; r = x - y; r = x * y; r = x / y;
           r = x % y;
           r = x & y; r = x | y; r = x ^ y; r = x << y; r = x >> 1; r = -x; r = y - x;
           r = 100 / x; }
         thread u { await r == 65; x = -7; }",
    ),
    (
        "comparisons of two variables, and of constants on the left",
        "var x = 1; var y = 2; var n = 0; thread t { if x < y { n += 1; } if x <= y { n += 2; }
           if x > y { n += 4; }
           if x >= y { n += 8; } if 2 < x { n += 16; } if 2 <= y { n += 32; } if 1 > x { n += 64; }
           if 2 >= y { n += 128; } if 1 != x { n += 256; } if 2 == y { n += 512; } }
         thread u { x = 2; }",
    ),
    (
        "errors of arithmetic in one order only",
        "var x = 1; var y = 0; thread t { y = 6 / x; y = 5 % x; y = 1 << x; }
         thread u { x = 0; x = 32; x = -1; x = 2147483647; y = x + 1; }",
    ),
    (
        "a negation and a product that overflow",
        "var x = 1; thread t { x = -x; x *= 3; } thread u { x = -2147483648; } thread v {
           x = 1073741824; }",
    ),
    (
        "values of ranges that do not start at zero, and their bounds",
        "var x: 3..=6 = 4; var y: -5..-2; thread t { x += 1; y -= 1; } thread u { x += 1; y = -3; }
         thread v { x = 6; }",
    ),
    (
        "values that grow by a factor in a loop",
        "var x = 1; thread t { while x < 100000 { x *= 10; } x = -x; x = x * 1000; }
         thread u { assert x != 1000, \"thousand\"; }",
    ),
    (
        "bools and enums as values",
        "enum E { A, B } var b = false; var e: E; fn f(v: E) -> E { if v == A { return B; }
           return A; }
         thread t { b = !b; e = f(e); b = e == B && !b || b; } thread u { e = B; b = e != A; }",
    ),
    // Atomic access operations.
    (
        "read-modify-write operations on elements and fields",
        "record R { v: int, w: [int; 2] } var r: R; var i = 0; var n = 0;
         thread t { if cas(r.w[i], 0, 2) { n = fetch_add(r.v, 3); } n += swap(r.w[i + 1], 7); }
         thread u { i = 1; n = fetch_sub(r.w[0], 1); if cas(r.v, 3, 4) { n = 50; } }",
    ),
    (
        "the bit operations that fetch",
        "var x = 6; var n = 0; thread t { n = fetch_and(x, 3); n = fetch_or(x, 8);
           n = fetch_xor(x, 2); }
         thread u { x = 5; }",
    ),
    (
        "read-modify-write operations whose result does not fit",
        "var x: 0..=3 = 2; var n = 0; thread t { n = fetch_add(x, 1); } thread u {
           fetch_sub(x, 3); }
         thread v { if cas(x, 3, n + 3) { n = 1; } swap(x, n + 2); }",
    ),
    (
        "operands of a compare and swap that are shared",
        "var x = 0; var old = 0; var new = 1; thread t { if cas(x, old, new) { old = 9; } }
         thread u { new = 2; x = 1; old = 1; }",
    ),
    (
        "read-modify-write operations on locals",
        "var x = 0; thread t { var k = 1; var a: [int; 2]; x = fetch_add(k, 2); x += swap(a[1], k);
           if cas(k, 3, 4) { x += a[1] + k; } } thread u { x = 1; }",
    ),
    // Heap records and pointers.
    (
        "a list that is built and traversed while another thread changes it",
        "record Node { value: int, next: *Node } var head: *Node;
         init { for i in 0..2 { head = new Node { next: head, value: i }; } }
         thread t { var sum = 0; var p = head; while p != null { sum += p.value; p = p.next; }
           assert sum < 5, \"sum\"; } thread u { head.next = new Node {
           value: 5, next: head.next }; head = null; }",
    ),
    (
        "records in records and arrays in records on the heap",
        "record In { a: int, b: [int; 2] } record Out { x: int, part: In, p: *Out } var o: *Out;
           var i = 0;
         init { o = new Out { x: 1 }; }
         thread t { o.part.b[i] = 2; o.p = new Out { x: o.part.b[0] }; o.p.part.a = 3; o = o.p; }
         thread u { i = 1; o.part.b[1] = 4; }",
    ),
    (
        "pointers to variables, elements and fields, and comparisons of them",
        "record R { v: int, w: int } var r: R; var a: [int; 2]; var x = 0; var p: *int;
           var q: *int; var i = 0;
         thread t { p = &r.w; *p = 1; p = &a[i]; *p += 2; q = &x; *q = *p; if p == q { x = 7; } }
         thread u { i = 1; p = &x; q = null; }",
    ),
    (
        "pointers as arguments and results, and a null pointer that is used",
        "record Node { value: int } var n: *Node; fn pick(a: *Node, b: *Node) -> *Node {
           if a == null { return b; } return a; } fn set(p: *Node, v: int) { p.value = v; }
         thread t { n = new Node { value: 1 }; set(pick(null, n), 2); n = null; }
         thread u { var p = pick(n, null); set(p, 3); }",
    ),
    (
        "records whose addresses are taken and that nothing else reaches",
        "record Node { value: int, next: *Node } var p: *int; var q: *Node;
         thread t { p = &(new Node { value: 3 }).value; *p += 1; q = new Node { next: new Node {
           value: 8 } };
           p = &q.next.value; q = null; *p = 2; } thread u { if p != null { *p = 6; } }",
    ),
    (
        "two kinds of records, with pointers in both directions",
        "record A { b: *B, n: int } record B { a: *A, n: int } var a: *A; var b: *B;
         thread t { a = new A { n: 1 }; a.b = new B { a: a, n: 2 }; b = a.b; a = null; }
         thread u { b = new B { n: 3 }; b.a = new A { b: b }; }",
    ),
    (
        "more records than fit at first, in threads and in the heap",
        "record Node { next: *Node } var top: *Node; fn push(n: int) { for i in 0..n {
           top = new Node { next: top }; } } thread t { push(5); spawn push(1); spawn push(2);
           top = null; }",
    ),
    (
        "an object in a record on the heap, and pointers to objects",
        "record Box { m: mutex, v: int } var b: *Box; var l: *mutex; mutex g; init {
           b = new Box { }; l = &b.m; }
         thread t { b.m.lock(); b.v += 1; l.unlock(); l = &g; } thread u { l.lock(); b.v += 1;
           l.unlock(); }",
    ),
    // Objects.
    (
        "arrays of objects with shared indices",
        "mutex m[2]; semaphore(1) s[2]; var i = 0;
         thread t { m[i].lock(); s[1 - i].acquire(); m[i].unlock(); } thread u { i = 1;
           m[1].lock(); s[0].release(); }",
    ),
    (
        "a condition variable and a mutex from arrays with shared indices",
        "mutex m[2]; condvar c[2]; var i = 0; var x = 0;
         thread t { m[0].lock(); c[i].wait(m[0]); x += 1; m[0].unlock(); }
         thread u { i = 1; m[0].lock(); c[0].notify_all(); m[0].unlock(); c[1].notify_one(); }",
    ),
    (
        "a thread that waits for two notifications, one after the other",
        "mutex m; condvar c; var x = 0; thread t { m.lock(); c.wait(m); x = 1; c.wait(m); x = 2;
           m.unlock(); }
         thread u { c.notify_one(); c.notify_all(); }",
    ),
    (
        "a wait whose mutex is chosen by a shared variable",
        "mutex m[2]; condvar c; var j = 0;
         thread t { m[0].lock(); m[1].lock(); c.wait(m[j]); m[0].unlock(); yield; }
         thread u { j = 1; c.notify_all(); }",
    ),
    (
        "the variable of a quantifier, and a parameter of another function in its place",
        "var x = 0; fn f(n: int) -> int { x = n; return n; }
         thread t { if all(i in 0..2: x == i) { x = 9; } var k = f(3) + f(4); assert k == 7; }",
    ),
    (
        "a thread that branches before its first access",
        "var x = 0; thread t { var k = 1; var l = 0; if k == 1 { l = 2; } else { l = 3; } x = l; }
         thread u { var k = 1; var l = 0; if k == 2 && l == 0 || k == 3 { l = k; } x = l; }",
    ),
    (
        "a negation that is the only error of its thread",
        "var x = -2147483648; thread t { if -x > 0 { x = 5; } } thread u { x = 1; }",
    ),
    (
        "a rendezvous of values and channels that are shared",
        "channel(0, int) c[2]; var i = 0; var v = 3; var got = 0;
         thread t { c[i].send(v + i); got += 10; } thread u { i = 1; v = 4; got += c[1].recv(); }
         thread w { got += c[0].recv(); }",
    ),
    (
        "a buffered channel of a range, a receive into an expression, attempts",
        "channel(2, 0..=3) c; var x = 0; var v = 2;
         thread t { c.send(v); if c.try_send(v + 1) { x += 1; } c.send(1); }
         thread u { x = c.recv() * 10 + c.recv(); x += c.len(); } thread w { v = 3; }",
    ),
    (
        "barriers in an array, with a shared index, entered twice",
        "barrier(2) b[2]; var i = 0; var x = 0;
         thread t(k in 0..2) { x += k; b[i].wait(); b[1].wait(); x += 2; } thread u { i = 1; }",
    ),
    (
        "events of both kinds, reset and set again",
        "event(set) a; event(auto) b; var x = 0; thread t { a.wait(); a.reset(); b.set();
           a.wait(); x = 1; }
         thread u { b.wait(); a.set(); b.wait(); } thread v { b.set(); }",
    ),
    (
        "a lock for reading held by two, and attempts",
        "rwlock r; var x = 0; thread t(i in 0..2) { r.read(); x += i; if i == 1 {
           r.unlock_read(); } }
         thread u { if r.try_write() { x = 5; r.unlock_write(); } else if r.try_read() { x = 6;
           r.unlock_read(); } }",
    ),
    // Threads.
    (
        "threads with several arguments, joined in the order of their handles",
        "var x = 0; var h: [thread; 2]; fn f(a: int, b: bool, c: 0..4) { if b { x += a; } x += c; }
         thread t { h[0] = spawn f(10, true, 1); h[1] = spawn f(20, x == 0, 2); for i in 0..2 {
           join h[i]; }
           assert x < 33, \"all\"; }",
    ),
    (
        "threads that are spawned in a loop, and more of them than at first",
        "var x = 0; fn f(i: int) { x += i; } thread t { var last: thread; for i in 0..3 {
           last = spawn f(i); }
           join last; x = 10; }",
    ),
    (
        "threads that spawn at once, in `init`, and before they fail",
        "var x = 0; fn f(n: int) { if n > 0 { spawn f(n - 1); } x += n; } fn g() { spawn f(0);
           assert false, \"g\"; }
         init { spawn f(1); } thread t { spawn g(); }",
    ),
    (
        "a join of a thread that never ends, of `null`, and of the thread itself",
        "var me: thread; var other: thread; fn f() { join me; } fn g() { await false; }
         thread t { me = spawn f(); } thread u { other = spawn g(); join other; } thread v {
           join other; }",
    ),
    (
        "a thread that ends with locals, and one that ends inside a function",
        "var x = 0; fn f(n: int) { var k = n + x; yield; x = k; } thread t(i in 0..2) {
           var a = x; f(a + i); }",
    ),
    // Waits.
    (
        "waits for several variables, elements and comparisons",
        "var x = 0; var y = 1; var a: [int; 2];
         thread t { await x == y; a[x] = 1; await a[0] + a[1] > 1 || y == 3; x = 5; }
         thread u { x = 1; a[0] = 1; y = 2; end: await x > y; y = 3; }",
    ),
    (
        "atomic blocks that wait first and then branch, loop and call",
        "var x = 0; var y = 0; fn f(n: int) -> int { y += n; return y; }
         thread t { atomic { await x > 0; for i in 0..x { y += f(i); } if y > 2 { x = 0; } else {
           x = 3; } } }
         thread u { x = 1; x = 2; await y > 0; assert x != 3, \"three\"; }",
    ),
    (
        "an `assume` and a final wait that are no deadlock, beside one that is",
        "var x = 0; thread t { assume x == 2; } thread u { end: await x == 3; } thread v {
           if x == 0 { await x == 4; } }
         thread w { x = 1; }",
    ),
    (
        "an endless step, in `atomic` and without an access",
        "var x = 0; thread t { atomic { while x == 0 { } } } thread u { x = 1; if x == 1 { loop {
           } } }",
    ),
    (
        "a program whose `init` computes, branches and fails in no case",
        "var a: [int; 3]; var x = 0; fn f(n: int) -> int { return n * n; }
         init { for i in 0..3 { a[i] = f(i); } if a[2] == 4 { x = 1; } else { x = 2; } var k = 5;
           x += k; }
         thread t { assert x != 6, \"six\"; } thread u { x = a[1]; }",
    ),
    ("a program whose `init` fails", "var x = 0; init { x = 1; assert x == 0, \"init\"; }
           thread t { x = 2; }"),
    (
        "invariants that are broken by a step, and at the start",
        "var x = 0; var y = 0; invariant low: x + y < 3; invariant x != 2 || y != 0;
         thread t { x += 1; y += 1; } thread u { x += 1; }",
    ),
    (
        "an invariant that cannot be evaluated",
        "var x = 1; invariant 6 / x > 0; thread t { x = 2; x = 0; }",
    ),
    (
        "constants of parameters in bounds, conditions and indices",
        "const N = 3; var a: [int; N]; thread t(i in 0..N) { for j in 0..i { a[j] += i; }
           if i == N - 1 { a[i] = a[i - 1]; } }",
    ),
];

#[test]
fn their_states_agree_with_the_reference() {
    for (kind, text) in PROGRAMS {
        for steps in ["", "steps statement; "] {
            let text = format!("{steps}{text}");
            match compare(&text, Selection::First) {
                Verdict::Agree(_) => {}
                other => panic!("{kind}: {other:?}\n{text}"),
            }
        }
    }
}
