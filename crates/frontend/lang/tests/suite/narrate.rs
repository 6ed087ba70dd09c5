//! Descriptions of steps, waits and states: names of cells, values of every type, locals.

use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::{
    Choice, Describe as _, Footprint, Location, Model as _, Narration, Step, Stepper as _, ThreadId,
};

fn load(text: &str) -> Machine {
    preempt_lang::load(&Source::new("model.pre", text), &[]).expect("a good model")
}

fn words(narration: Narration) -> String {
    let site = narration.site.map_or(String::new(), |site| format!("{}: ", site.line));
    format!("{site}{} [{}]", narration.source, narration.effects.join(", "))
}

fn pairs(pairs: Vec<(String, String)>) -> String {
    let pairs: Vec<String> =
        pairs.into_iter().map(|(name, value)| format!("{name} = {value}")).collect();
    pairs.join(", ")
}

/// Takes the steps of `threads` and describes each of them; then the state after the last: the
/// shared variables, and for each thread its name, its locals, and what it waits for.
fn story(text: &str, threads: &[usize]) -> Vec<String> {
    let machine = load(text);
    let mut stepper = machine.stepper();
    let mut state = vec![0; machine.shape().words];
    assert!(matches!(stepper.initial(&mut state), Step::Moved { .. }));
    let mut lines = Vec::new();
    for &thread in threads {
        let choice = Choice::of(ThreadId::new(thread));
        lines.push(words(stepper.describe_step(&state, choice)));
        stepper.step(&mut state, choice);
    }
    lines.push(pairs(stepper.variables(&state)));
    for thread in (0..machine.shape().threads).map(ThreadId::new) {
        let name = stepper.thread_name(thread);
        let locals = pairs(stepper.locals(&state, thread));
        let waits = stepper.describe_wait(&state, thread).map_or("-".to_owned(), words);
        lines.push(format!("{name}: {locals}; {waits}"));
    }
    lines
}

/// A model, the threads that take steps, and the story.
const STORIES: &[(&str, &[usize], &[&str])] = &[
    (
        "enum Color { Red, Green }
         record Pair { first: int, rest: [bool; 2] }
         var x: -3..=3 = 0; var pairs: [Pair; 2]; var color: Color; mutex m; channel(2, Color) c;
         thread t(i in 0..2) {
            var a: [int; 2];
            a[1] = // a comment
                x + 2;
            x = -2;
            pairs[1].rest[i] = true; pairs[1].first = 7;
            color = Green; c.send(color);
            m.lock(); m.lock();
         }",
        &[1, 1, 1, 1, 1, 1, 1, 1],
        &[
            "6: a[1] = x + 2 [x = 0, a[1] = 2]",
            "8: x = -2 [x: 0 → -2]",
            "9: pairs[1].rest[i] = true [pairs[1].rest[1]: false → true]",
            "9: pairs[1].first = 7 [pairs[1].first: 0 → 7]",
            "10: color = Green [color: Red → Green]",
            "10: c.send(color) [color = Green]",
            "10: c.send(color) [c: [] → [Green]]",
            "11: m.lock() [m: free → held by t(1)]",
            "x = -2, pairs = [{ first: 0, rest: [false, false] }, { first: 7, rest: [false, true] \
             }], color = Green, m = held by t(1), c = [Green]",
            "t(0): a = [0, 0]; -",
            "t(1): a = [0, 2]; 11: m.lock() [m = held by t(1)]",
        ],
    ),
    (
        "record Leaf { value: int } record Pair { first: int, second: Leaf }
         var leaf: *Leaf; var other: *Leaf; var pair: Pair; var p: *int; var q: *Leaf; var r: *int;
         thread t {
            leaf = new Leaf { value: 1 };
            other = new Leaf { value: 2 };
            p = &other.value;
            q = &pair.second;
            r = &pair.first;
            other.value += 3;
         }",
        &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        &[
            "4: leaf = new Leaf { value: 1 } [Leaf#1.value: 0 → 1]",
            "4: leaf = new Leaf { value: 1 } [leaf: null → Leaf#1]",
            "5: other = new Leaf { value: 2 } [Leaf#2.value: 0 → 2]",
            "5: other = new Leaf { value: 2 } [other: null → Leaf#2]",
            "6: p = &other.value [other = Leaf#2]",
            "6: p = &other.value [p: null → &Leaf#2.value]",
            "7: q = &pair.second [q: null → &pair.second]",
            "8: r = &pair.first [r: null → &pair.first]",
            "9: other.value += 3 [other = Leaf#2]",
            "9: other.value += 3 [Leaf#2.value = 2]",
            "9: other.value += 3 [Leaf#2.value: 2 → 5, ends]",
            "leaf = Leaf#1, other = Leaf#2, pair = { first: 0, second: { value: 0 } }, p = \
             &Leaf#2.value, q = &pair.second, r = &pair.first, Leaf#1 = { value: 1 }, Leaf#2 = { \
             value: 5 }",
            "t: ; -",
        ],
    ),
    (
        "var x = 0; var h: thread;
         fn add(n: int) -> int { var k = n; x = 1; var s = k + 1; yield; return s; }
         thread t {
            var last = add(4) + 1;
            x = 2;
            h = spawn add(last);
            join h;
         }",
        &[0, 0, 0, 0, 0, 1, 0],
        &[
            "2: x = 1 [x: 0 → 1, s = 5]",
            "2: yield [last = 6]",
            "5: x = 2 [x: 1 → 2]",
            "6: h = spawn add(last) []",
            "6: h = spawn add(last) [h: null → add#1]",
            "2: x = 1 [x: 2 → 1, s = 7]",
            "7: join h [h = add#1]",
            "x = 1, h = add#1",
            "t: last = 6; 7: join h [add#1 has not ended]",
            "add#1: add.n = 6, add.k = 6, add.s = 7; -",
        ],
    ),
    (
        "var x = 0; var h: thread; var k: thread;
         fn one() { x = 1; } fn two() { await x == 2; }
         thread t { h = spawn one(); k = spawn two(); }",
        &[0, 0, 0, 0, 1, 1],
        &[
            "3: h = spawn one() []",
            "3: h = spawn one() [h: null → thread#1]",
            "3: k = spawn two() []",
            "3: k = spawn two() [k: null → thread#2, ends]",
            "2: x = 1 [x: 0 → 1, ends]",
            "(has ended) []",
            "x = 1, h = thread#1, k = thread#2",
            "t: ; -",
            "thread#1: ; -",
            "thread#2: ; 2: await x == 2 [x = 1]",
        ],
    ),
    (
        "mutex m; condvar c;
         thread t { m.lock(); c.wait(m); }
         thread u { m.lock(); c.notify_one(); }",
        &[0, 0, 1],
        &[
            "2: m.lock() [m: free → held by t]",
            "2: c.wait(m) [m: held by t → free, c: no waiters → t waits]",
            "3: m.lock() [m: free → held by u]",
            "m = held by u, c = t waits",
            "t: ; 2: c.wait(m) [c = t waits]",
            "u: ; -",
        ],
    ),
];

#[test]
fn steps_waits_and_states_are_described() {
    for (text, threads, expected) in STORIES {
        assert_eq!(story(text, threads), *expected, "{text}");
    }
}

#[test]
fn only_variables_and_objects_have_values() {
    let machine = load(
        "mutex m; var h: thread; fn f() { m.lock(); }
         thread t { atomic { m.lock(); h = spawn f(); } }",
    );
    let mut stepper = machine.stepper();
    let mut state = vec![0; machine.shape().words];
    stepper.initial(&mut state);
    let mut footprint = Footprint::new();
    stepper.step_with_footprint(&mut state, Choice::of(ThreadId::new(0)), &mut footprint);
    let value = |&(location, _): &(Location, _)| stepper.value(&state, location);
    let values: Vec<_> = footprint.accesses().iter().map(value).collect();
    let pair = |name: &str, value: &str| Some((name.to_owned(), value.to_owned()));
    // The others are the supply of threads, the stage of the new one, and that of `t`.
    assert_eq!(values, [pair("m", "held by t"), pair("h", "f#1"), None, None, None]);
}
