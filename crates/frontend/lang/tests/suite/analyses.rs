//! What a machine knows about its steps without a search: which of them access plain data only,
//! which threads are straight lines, which records are private, which locks are held.

use std::collections::BTreeSet;

use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::{
    Access, Capacity, Choice, Location, LockMode, Model as _, ObjectAccess, Place, Step, StepLog,
    Stepper as _, ThreadId,
};

fn load(text: &str) -> Machine {
    preempt_lang::load(&Source::new("model.pre", text), &[]).expect("a good model")
}

/// The name of a variable or of an object; the stages of threads and their supply have none.
fn name(machine: &Machine, location: Location) -> String {
    let name = machine.location_name(location);
    if name == "an intermediate value" { "threads".to_owned() } else { name }
}

/// For each thread one letter for each of its rest points: `d` if its step accesses plain data
/// only. The variables in `points` are promoted.
fn data_steps(text: &str, points: &[&str]) -> String {
    let machine = load(text);
    let is_point = |&at: &Location| points.contains(&machine.location_name(at).as_str());
    let promoted: BTreeSet<Location> = (0..20).map(Location).filter(is_point).collect();
    let letter = |&data: &bool| if data { 'd' } else { '.' };
    let thread = |steps: &Vec<bool>| steps.iter().map(letter).collect::<String>();
    machine.data_steps(&promoted).iter().map(thread).collect::<Vec<_>>().join(" ")
}

/// A model, the variables that are promoted, and the steps of its threads.
const DATA: &[(&str, &[&str], &str)] = &[
    (
        "var x = 0; atomic var a = 0; mutex m; thread t { x = 1; a = 1; m.lock(); x = 2; \
         m.unlock(); }",
        &[],
        "d..d.",
    ),
    ("var x = 0; var y = 0; thread t { x = 1; y = 1; }", &["y"], "d."),
    (
        "var x = 0; var y = 0; thread t { y = x; } thread u { atomic { y = x; } yield; }",
        &["x"],
        ".d ..",
    ),
    // Waits.
    ("var x = 0; var y = 0; thread t { await x == 1; } thread u { y = 1; x = 1; }", &[], ". d."),
    (
        "var x = 0; var y = 0; var z = 0; thread t { atomic { await x < y; z = 1; } } \
         thread u { y = 1; x = 1; z = 1; }",
        &[],
        ". ..d",
    ),
    (
        "var x = 0; var y = 0; thread t { atomic { if x == 1 { y = 1; } } } thread u { \
         assume y * 2 == 4; }",
        &[],
        ". .",
    ),
    (
        "var a: [int; 3]; var x = 0; thread t { await a[1] == 1; } thread u { a[0] = 1; \
         a[1] = 1; a[x] = 1; }",
        &[],
        ". d.d.",
    ),
    (
        "var a: [int; 3]; var b: [int; 3]; var i = 0; thread t { await a[i] == 1; } \
         thread u { a[0] = 1; b[1] = 1; i = 1; }",
        &[],
        ". .d.",
    ),
    (
        "steps statement; var x = 0; mutex m; var h: thread; fn f() { skip; } thread t { \
         h = spawn f(); x = 1; } thread u { join h; }",
        &[],
        ".d . .",
    ),
    (
        "steps statement; var x = 0; var l: [int; 2]; mutex m[2]; thread t { m[x].lock(); \
         l[x] = 1; x = 2; m[x].unlock(); }",
        &[],
        "....",
    ),
    ("steps statement; var x = 0; mutex m[2]; thread t { m[x].unlock(); x = 2; }", &[], ".d"),
    (
        "steps statement; var x = 0; mutex m; condvar c[2]; thread t { c[x].wait(m); } \
         thread u { x = 1; }",
        &[],
        ".. d",
    ),
    // Choices, allocation, yields.
    (
        "var x = 0; record R { v: int } thread t { x = choose(0..2); atomic { choose { \
         x = 1; } or { x = 2; } } yield; new R {}; }",
        &[],
        ".d...",
    ),
    // Read-modify-write operations on plain variables.
    (
        "var x = 0; thread t { x += 1; } thread u { cas(x, 0, 1); } thread v { swap(x, 2); \
         fetch_add(x, 1); }",
        &[],
        "dd d dd",
    ),
    // Atomic blocks with branches, loops, calls and matches.
    (
        "var x = 0; var y = 0; atomic var a = 0; thread t { atomic { if x == 1 { a = 1; } \
         else { y = 1; } } atomic { if x == 1 { y = 1; } } }",
        &[],
        ".d",
    ),
    (
        "var x = 0; atomic var a = 0; thread t { atomic { match x { 0 => { x = 1; } \
         1 | 2 => { a = 1; } _ => { } } } }",
        &[],
        ".",
    ),
    (
        "var x = 0; atomic var a = 0; thread t { atomic { while x < 3 { x += 1; if x == 2 { \
         a = 1; } } } atomic { for i in 0..3 { x += i; } } }",
        &[],
        ".d",
    ),
    (
        "var x = 0; atomic var a = 0; fn f(n: int) -> int { if n == 0 { return a; } \
         return f(n - 1); } thread t { atomic { x = f(2); } }",
        &[],
        ".",
    ),
    (
        "var x = 0; atomic var a = 0; fn f(n: int) -> int { if n == 0 { return x; } \
         return f(n - 1); } thread t { atomic { x = f(2); } a = 1; }",
        &[],
        "d.",
    ),
    // Pointers.
    (
        "record R { v: int, w: int } var p: *R; var x = 0; thread t { p = new R {}; p.v = 1; \
         p.w = 2; x = 1; }",
        &[],
        ".dddddd",
    ),
    (
        "record R { v: int } var p: *R; var q: *R; init { p = new R {}; q = p; } thread t { \
         await p.v == 1; } thread u { q.v = 1; q = null; p = null; }",
        &[],
        ". d.d.",
    ),
    ("atomic var a = 0; var x = 0; thread t { var p: *int = &a; *p = 1; x = 2; }", &[], ".d"),
    (
        "atomic var a = 0; var x = 0; thread t { var p: *int = &x; *p = 1; x = 2; a = 1; }",
        &[],
        "dd.",
    ),
    (
        "record R { v: int, m: mutex } var r: R; thread t { var p: *R = &r; p.v = 1; \
         p.m.lock(); p.v = 2; }",
        &[],
        "d.d",
    ),
    (
        "record R { v: int, w: [int; 2] } var r: [R; 2]; thread t { var p: *R = &r[1]; \
         var q: *int = &p.w[1]; *q = 1; p.v = 2; } thread u { await r[1].w[1] == 1; \
         r[0].v = 1; }",
        &[],
        ".d. .d",
    ),
    (
        "var x = 0; atomic var a = 0; thread t { var p: *int = if x == 0 { &x } else { &a }; \
         *p = 1; }",
        &[],
        "d.",
    ),
    (
        "var x = 0; thread t { atomic { var p: *int = &x; *p = 1; } } thread u { \
         await x == 1; }",
        &[],
        ". .",
    ),
    (
        "var x = false; var y = 0; thread t { var p: *int = &y; *p = 1; var q: *bool = &x; \
         *q = true; } thread u { await x; }",
        &[],
        ".. .",
    ),
    // More ranges than are distinguished.
    (
        "record R { v: int, w: int } var a: [R; 300]; atomic var z = 0; var i = 0; \
         var x = 0; thread t { a[i].v = 1; a[i].w = 2; x = 1; } thread u { \
         await a[3].w == 1; }",
        &[],
        "d.d.d .",
    ),
    (
        "record R { v: int, w: int } var a: [R; 200]; var i = 0; var x = 0; thread t { \
         a[i].v = 1; a[i].w = 2; x = 1; } thread u { await a[3].w == 1; }",
        &[],
        "ddd.d .",
    ),
];

/// The accesses of the steps of each thread, or why they are not known.
fn lines(text: &str) -> String {
    let machine = load(text);
    let letter = |access: Access| if access == Access::Read { 'r' } else { 'w' };
    match machine.straight_lines() {
        Err(not) => format!("{}: {}", not.site.map_or(0, |site| site.line), not.why),
        Ok(lines) => {
            let step = |step: &preempt_system::Footprint| {
                let names = step.accesses().iter();
                let names =
                    names.map(|&(at, access)| format!("{}:{}", letter(access), name(&machine, at)));
                let names = names.collect::<Vec<_>>().join(" ");
                if names.is_empty() { "-".to_owned() } else { names }
            };
            let line = |line: &Vec<preempt_system::Footprint>| {
                line.iter().map(step).collect::<Vec<_>>().join(", ")
            };
            lines.iter().map(line).collect::<Vec<_>>().join("; ")
        }
    }
}

/// A model, and the accesses of its threads; `-` is a step without one.
const LINES: &[(&str, &str)] = &[
    (
        "var x = 0; var y = 0; thread t { x = 1; y = x; y += 2; } thread u { atomic { x = y; \
         y = 3; } }",
        "w:x, r:x, w:y, r:y, w:y w:threads; w:x w:y w:threads",
    ),
    (
        "var a: [int; 4]; thread t(i in 1..3) { a[i + 1] = a[i]; a[-i + 3] += 1; \
         assert a[0] == 0; }",
        "r:a[1], w:a[2], r:a[2], w:a[2], r:a[0] w:threads; \
         r:a[2], w:a[3], r:a[1], w:a[1], r:a[0] w:threads",
    ),
    (
        "record R { v: int, w: [int; 2] } var r: [R; 2]; thread t { r[1].w[1] = 1; \
         r[0].v = 2; }",
        "w:r[1].w[1], w:r[0].v w:threads",
    ),
    (
        "var x = 0; thread t { swap(x, 1); cas(x, 1, 2); fetch_add(x, 1); yield; skip; }",
        "w:x, w:x, w:x, w:threads",
    ),
    (
        "steps statement; var x = 0; var y = 0; thread t { var k = x + y; y = k; \
         assert x == 0; skip; }",
        "r:x r:y, w:y, r:x, w:threads",
    ),
    (
        "thread t { assert 1 == 2; } thread u { var k = 1; } var x = 0; thread v { \
         var k = 1 / 0; x = k; }",
        "-; ; -",
    ),
    ("var x = 0; thread t { if false { x = 1; } x = 2; }", "w:x w:threads"),
    ("var x = 0; thread t { while false { x = 1; } loop { break; } x = 2; }", "w:x w:threads"),
    (
        "var a: [int; 2]; var i = 0;\nthread t { a[0] = 1;\n a[i] = 1; }",
        "3: it uses an index or a pointer that is not constant",
    ),
    (
        "var a: [int; 2];\nthread t { var i = 1;\n a[i] = 1; }",
        "3: it uses an index or a pointer that is not constant",
    ),
    (
        "var a: [int; 2];\nthread t {\n a[2] = 1; }",
        "3: it uses an index or a pointer that is not constant",
    ),
    (
        "var x = 0;\nthread t { x = 1; }\nthread u {\n if x == 0 { x = 1; } }",
        "4: it branches or loops",
    ),
    ("var x = 0; thread t {\n while x == 0 { skip; } }", "2: it branches or loops"),
    ("var x = 0; thread t {\n loop { x = 1; } }", "2: it loops"),
    ("var x = 0; thread t {\n match x { 0 => { skip; } _ => { } } }", "2: it branches or loops"),
    ("var x = 0; thread t {\n var k = x == 1 && x == 2; }", "2: it branches or loops"),
    ("var x = 0; thread t {\n await x == 0; }", "2: it waits for a condition"),
    ("var x = 0; thread t {\n await x * 2 == 0; }", "2: it waits for a condition"),
    ("mutex m; thread t {\n m.lock(); }", "2: it uses a synchronisation object"),
    ("mutex m; condvar c; thread t {\n c.wait(m); }", "2: it uses a synchronisation object"),
    ("thread t {\n choose { skip; } or { skip; } }", "2: it chooses"),
    ("fn f() { skip; } thread t { skip;\n spawn f(); }", "2: it starts threads"),
    ("var h: thread; thread t { \n join h; }", "2: it waits for a thread"),
    ("record R { v: int } var p: *R; thread t {\n p = new R {}; }", "2: it makes records"),
    ("record R { v: int } var p: *R; thread t {\n p.v = 1; }", "2: it follows a pointer"),
    ("var x = 0; fn f() -> int { return 1; } thread t {\n x = f(); }", "2: it calls a function"),
    (
        "var x = 0; fn f(n: int) -> int { return if n == 0 { 0 } else { f(n - 1) }; } \
         thread t {\n x = f(1); }",
        "2: it calls a function",
    ),
    ("var x = 0; thread t { for i in 0..2 {\n x = i; } }", "1: it branches or loops"),
];

/// Takes the steps of `threads` and returns the log of each: accesses with the places that are
/// private before the step, the locks that the thread holds before it, and whether it is alone.
fn owned(text: &str, threads: &[usize]) -> Vec<String> {
    let mut machine = load(text).with_owners();
    loop {
        match logs(&machine, threads) {
            Ok(lines) => return lines,
            Err(capacity) => machine = machine.grow(capacity),
        }
    }
}

fn logs(machine: &Machine, threads: &[usize]) -> Result<Vec<String>, Capacity> {
    let mut stepper = machine.stepper();
    let mut state = vec![0; machine.shape().words];
    if let Step::Full(capacity) = stepper.initial(&mut state) {
        return Err(capacity);
    }
    let mut lines = Vec::new();
    for thread in threads.iter().copied().map(ThreadId::new) {
        let (mut log, mut next) = (StepLog::new(), state.clone());
        let step = stepper.step_with_log(&mut next, Choice::of(thread), &mut log);
        if let Step::Full(capacity) = step {
            return Err(capacity);
        }
        let place_name = |place: Place| {
            let name = name(machine, place.location);
            let private = if stepper.is_private(&state, place) { " private" } else { "" };
            let mut locks = Vec::new();
            stepper.held(&state, thread, place, &mut locks);
            let lock = |&(lock, mode): &(Place, LockMode)| {
                assert_eq!(stepper.holds(&state, thread, lock), Some(mode));
                format!(" {mode:?} {}", machine.location_name(lock.location))
            };
            format!("{name}{private}{}", locks.iter().map(lock).collect::<String>())
        };
        let entry = |entry: ObjectAccess| match entry {
            ObjectAccess::Access(place, access) => format!("{access:?} {}", place_name(place)),
            ObjectAccess::Act(place, _, action) => format!("{action:?} {}", place_name(place)),
            ObjectAccess::Take(_, supply) => format!("{supply:?}"),
        };
        let entries: Vec<String> = log.iter().map(entry).collect();
        let alone = if stepper.is_alone(&state, thread) { "alone: " } else { "" };
        lines.push(format!("{}: {alone}{}", thread.index(), entries.join(", ")));
        state = next;
    }
    Ok(lines)
}

/// A model, the threads that take steps, and the logs.
const OWNED: &[(&str, &[usize], &[&str])] = &[
    (
        "record Node { value: int, next: *Node, lock: mutex } record Leaf { value: int }
         var head: *Node; var leaf: *Leaf; mutex m; rwlock w;
         thread t {
            var a = new Node { value: 1 }; a.value = 2;
            a.next = new Node { value: 3 };
            m.lock(); a.lock.lock(); w.read();
            a.next.value = 4;
            head = a;
            a.next.value = 5;
            head = null;
            a.value = 6;
            var l = new Leaf { }; l.value = 1;
            a.lock.unlock(); w.unlock_read(); l.value = 2;
         }
         thread u { w.write(); var k = head; }",
        &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[
            "0: Succeeded, Write Node#1.value private",
            "0: Write Node#1.value private",
            "0: Succeeded, Write Node#1.value private",
            "0: Write Node#1.next private",
            "0: Lock m",
            "0: Lock Node#1.lock private Exclusive m",
            "0: ReadLock w Exclusive m",
            "0: Read Node#1.next private Exclusive m Shared w Exclusive Node#1.lock",
            "0: Write Node#1.value private Exclusive m Shared w",
            "0: Write head Exclusive m Shared w",
            "0: Read Node#1.next Exclusive m Shared w Exclusive Node#1.lock",
            "0: Write Node#1.value Exclusive m Shared w",
            "0: Write head Exclusive m Shared w",
            "0: Write Node#1.value Exclusive m Shared w Exclusive Node#1.lock",
            "0: Succeeded",
            "0: Write Leaf#1.value private Exclusive m Shared w",
            "0: Unlock Node#1.lock Exclusive m Shared w Exclusive Node#1.lock",
            "0: ReadUnlock w Exclusive m Shared w",
        ],
    ),
    (
        "record Node { value: int }
         fn f(p: *Node) { p.value = 1; yield; p.value = 2; }
         thread t {
            var p = new Node { }; p.value = 3;
            var h = spawn f(p); p.value = 4; join h; p.value = 5;
            var q = new Node { }; var k = spawn f(q);
            q = null; q = new Node { };
            join k;
            q.value = 6;
         }",
        &[0, 0, 0, 1, 0, 1, 1, 0, 0, 0, 0, 2, 2, 0, 2, 2, 0, 0],
        &[
            "0: alone: Succeeded",
            "0: alone: Write Node#1.value private",
            "0: alone: Write threads, Start threads",
            "1: Write Node#1.value",
            "0: Write Node#1.value",
            "1: ",
            "1: Write Node#1.value, Finish threads",
            "0: Join threads",
            "0: alone: Write Node#1.value",
            "0: alone: Succeeded",
            "0: alone: Write threads, Start threads",
            "2: Write Node#1.value private",
            "2: ",
            "0: Succeeded",
            "2: Write Node#1.value private, Finish threads",
            "2: ",
            "0: Join threads",
            "0: alone: Write Node#1.value private",
        ],
    ),
    (
        "fn f() { skip; yield; } var x = 0;
         thread t { x = 1; var h = spawn f(); x = 2; join h; x = 3; spawn f(); x = 4; }
         ",
        &[0, 0, 0, 1, 1, 0, 0, 0, 0],
        &[
            "0: alone: Write x",
            "0: alone: Write threads, Start threads",
            "0: Write x",
            "1: Finish threads",
            "1: ",
            "0: Join threads",
            "0: alone: Write x",
            "0: alone: Write threads, Start threads",
            "0: Write x",
        ],
    ),
];

#[test]
fn steps_that_access_plain_data_only() {
    for (text, points, expected) in DATA {
        assert_eq!(data_steps(text, points), *expected, "{points:?} {text}");
    }
}

#[test]
fn straight_lines_and_what_is_in_their_way() {
    for (text, expected) in LINES {
        assert_eq!(lines(text), *expected, "{text}");
    }
}

#[test]
fn owners_of_records_and_locks() {
    for (text, threads, expected) in OWNED {
        assert_eq!(owned(text, threads), *expected, "{text}");
    }
}
