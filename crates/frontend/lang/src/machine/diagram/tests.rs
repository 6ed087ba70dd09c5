//! The shapes of diagrams: small programs, and what becomes of their steps.

use preempt_system::{Model, Step, Stepper as _};

use super::super::Machine;
use super::{INTERPRET, Node, NodeId};
use crate::source::Source;

fn machine(text: &str) -> Machine {
    crate::load(&Source::new("test.pre", text), &[]).expect("the test is a program")
}

impl Machine {
    /// The nodes that can be reached from the first rest point of a thread, in the order in which they are met.
    fn diagram(&self, thread: usize) -> Vec<Node> {
        let diagrams = &self.diagrams;
        let (mut met, mut next): (Vec<NodeId>, _) = (vec![diagrams.starts[diagrams.entries[thread].base as usize]], 0);
        while let Some(&at) = met.get(next) {
            next += 1;
            let ways = match diagrams.nodes[at as usize] {
                Node::Equal { yes, no, .. } | Node::Below { yes, no, .. } => vec![yes, no],
                Node::Copy { then, .. } | Node::Change { then, .. } => vec![then],
                Node::Case { base, mask, .. } => diagrams.ways[base as usize..][..=mask as usize].to_vec(),
                Node::Choose { base, count, .. } => diagrams.ways[base as usize..][..count as usize].to_vec(),
                _ => vec![],
            };
            ways.into_iter().for_each(|way| {
                if !met.contains(&way) {
                    met.push(way);
                }
            });
        }
        met.into_iter().map(|at| diagrams.nodes[at as usize]).collect()
    }
}

#[test]
fn a_guard_over_one_word_is_one_test_and_an_assignment_is_one_sum() {
    let machine = machine(
        "atomic var a: [bool; 5]; atomic var n: 0..8 = 0;
         thread t { loop { atomic { await n == 3 && all(i in 0..4: a[i]) && !a[4]; a[4] = true; n = 5; a[0] = false; } } }
         thread u { n = 3; }",
    );
    let diagram = machine.diagram(0);
    assert!(
        matches!(diagram[..], [Node::Equal { .. }, Node::Last { keep: u64::MAX, .. }, Node::Wait { resting: false }]),
        "{diagram:?}"
    );
}

#[test]
fn what_the_tests_told_is_not_asked_again() {
    // The second branch knows that x is not 0; that x + 1 fits is known from the guard.
    let machine = machine(
        "atomic var x: 0..8 = 0; atomic var y: 0..2 = 0;
         thread t { loop { atomic { await x < 7; if x == 0 { y = 1; } else if x != 0 { y = 0; } else { assert false; } x += 1; } } }",
    );
    let diagram = machine.diagram(0);
    assert!(!diagram.contains(&Node::Interpret), "{diagram:?}");
    let tests = diagram.iter().filter(|node| matches!(node, Node::Equal { .. } | Node::Below { .. })).count();
    assert_eq!(tests, 2, "{diagram:?}");
}

#[test]
fn one_copy_does_not_read_what_another_wrote() {
    // x and y go round in a circle, which no order of copies can do; z and y go down a line.
    let text = |body: &str| {
        format!(
            "atomic var x: 0..40 = 1; atomic var y: 0..40 = 2; atomic var z: 0..40 = 3;
             thread t {{ loop {{ atomic {{ {body} }} }} }}"
        )
    };
    let line = machine(&text("z = y; y = x; x = 7;"));
    assert!(matches!(line.diagram(0)[..], [Node::Copy { .. }, Node::Copy { .. }, Node::Last { .. }]));
    let circle = machine(&text("var t: 0..40 = x; x = y; y = t;"));
    assert_eq!(circle.diagram(0), [Node::Interpret]);
    for (machine, expected) in [(line, [7, 1, 2]), (circle, [2, 1, 3])] {
        let mut state = vec![0; machine.shape().words];
        machine.stepper().initial(&mut state);
        let choice = preempt_system::Choice::of(preempt_system::ThreadId::new(0));
        assert_eq!(machine.stepper().step(&mut state, choice), Step::Moved { alternatives: 1 });
        let values = machine.cells.globals.iter().map(|&cell| machine.layout.fields[cell as usize].get(&state));
        assert_eq!(values.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn objects_say_what_they_have_to_know() {
    let machine = machine("mutex m; thread t(i in 0..3) { m.lock(); m.unlock(); }");
    let diagram = machine.diagram(1);
    assert!(
        matches!(diagram[..], [Node::Equal { .. }, Node::Last { .. }, Node::Wait { resting: false }]),
        "free or not is all that matters: {diagram:?}"
    );
}

#[test]
fn what_a_diagram_cannot_say_is_interpreted_from_the_beginning() {
    for body in ["x = x * x;", "x = x / y;", "x = 1000 - x; assert x > y * 3;"] {
        let text = format!(
            "steps statement; atomic var x: int = 100; atomic var y: int = 200; thread t {{ loop {{ {body} }} }}"
        );
        let machine = machine(&text);
        assert_eq!(machine.diagrams.starts[0], INTERPRET, "{body}: {:?}", machine.diagram(0));
    }
}
