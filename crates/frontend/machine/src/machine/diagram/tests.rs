//! The shapes of diagrams: small programs and the diagrams of their steps.

use preempt_system::{Model, Step, Stepper as _};

use super::super::Machine;
use super::super::sample::{
    all, assign, binary, bool, element, expr, forever, int, load, local, machine, not, program,
    range, stmt, var, wait, with_local,
};
use super::{INTERPRET, Node, NodeId};
use crate::program::{
    BinaryOp, Block, ExprKind, Granularity, Method, ObjectType, Place, Program, StmtKind, Type,
};

impl Machine {
    /// The nodes that are reachable from the first rest point of a thread, in the order of a walk.
    fn diagram(&self, thread: usize) -> Vec<Node> {
        let diagrams = &self.diagrams;
        let (mut met, mut next): (Vec<NodeId>, _) =
            (vec![diagrams.starts[diagrams.entries[thread].base as usize]], 0);
        while let Some(&at) = met.get(next) {
            next += 1;
            let branches = match diagrams.nodes[at as usize] {
                Node::Equal { yes, no, .. } | Node::Below { yes, no, .. } => vec![yes, no],
                Node::Copy { then, .. } | Node::Change { then, .. } => vec![then],
                Node::Case { base, mask, .. } => {
                    diagrams.branches[base as usize..][..=mask as usize].to_vec()
                }
                Node::Choose { base, count, .. } => {
                    diagrams.branches[base as usize..][..count as usize].to_vec()
                }
                _ => vec![],
            };
            branches.into_iter().for_each(|branch| {
                if !met.contains(&branch) {
                    met.push(branch);
                }
            });
        }
        met.into_iter().map(|at| diagrams.nodes[at as usize]).collect()
    }
}

#[test]
fn a_guard_over_one_word_is_one_test_and_an_assignment_is_one_sum() {
    // Waits for n == 3, a[0..4], !a[4]; then a[4] = true, n = 5, a[0] = false.
    let (n, a) = (|| var(1, range(0, 7)), |index| element(0, index, 5));
    let guard = (0..4)
        .map(|index| load(a(index)))
        .chain([not(load(a(4))), binary(BinaryOp::Eq, load(n()), int(3))]);
    let body = vec![
        wait(all(guard)),
        assign(a(4), bool(true)),
        assign(n(), int(5)),
        assign(a(0), bool(false)),
    ];
    let globals = vec![(Type::Array(Type::Bool.into(), 5), 0), (range(0, 7), 0)];
    let machine = machine(program(globals, vec![forever(body), vec![assign(n(), int(3))]]));
    let diagram = machine.diagram(0);
    assert!(
        matches!(
            diagram[..],
            [Node::Equal { .. }, Node::Last { keep: u64::MAX, .. }, Node::Wait { resting: false }]
        ),
        "{diagram:?}"
    );
}

#[test]
fn what_the_tests_told_is_not_asked_again() {
    // The second branch knows that x is not 0; that x + 1 fits is known from the guard.
    let (x, y) = (|| var(0, range(0, 7)), |value| vec![assign(var(1, range(0, 1)), int(value))]);
    let never = vec![stmt(StmtKind::Assert { condition: bool(false), message: None })];
    let is_zero = |op, then: Block, otherwise: Block| {
        stmt(StmtKind::If { condition: binary(op, load(x()), int(0)), then, otherwise })
    };
    let body = vec![
        wait(binary(BinaryOp::Lt, load(x()), int(7))),
        is_zero(BinaryOp::Eq, y(1), vec![is_zero(BinaryOp::Ne, y(0), never)]),
        stmt(StmtKind::Update { place: x(), op: BinaryOp::Add, value: int(1) }),
    ];
    let machine = machine(program(vec![(range(0, 7), 0), (range(0, 1), 0)], vec![forever(body)]));
    let diagram = machine.diagram(0);
    assert!(!diagram.contains(&Node::Interpret), "{diagram:?}");
    let tests = diagram
        .iter()
        .filter(|node| matches!(node, Node::Equal { .. } | Node::Below { .. }))
        .count();
    assert_eq!(tests, 2, "{diagram:?}");
}

#[test]
fn one_copy_does_not_read_what_another_wrote() {
    // x and y form a cycle, which no order of copies can realise; z and y form a line.
    let ty = || range(0, 39);
    let sample = |body: Block| program(vec![(ty(), 1), (ty(), 2), (ty(), 3)], vec![forever(body)]);
    let [x, y, z] = [0, 1, 2].map(|global| move || var(global, ty()));
    let copy = |to: Place, from: Place| assign(to, load(from));
    let line = machine(sample(vec![copy(z(), y()), copy(y(), x()), assign(x(), int(7))]));
    assert!(matches!(
        line.diagram(0)[..],
        [Node::Copy { .. }, Node::Copy { .. }, Node::Last { .. }]
    ));
    let keep = stmt(StmtKind::Let { local: 0, init: Some(load(x())) });
    let circle =
        machine(with_local(sample(vec![keep, copy(x(), y()), copy(y(), local(ty()))]), ty()));
    assert_eq!(circle.diagram(0), [Node::Interpret]);
    for (machine, expected) in [(line, [7, 1, 2]), (circle, [2, 1, 3])] {
        let mut state = vec![0; machine.shape().words];
        machine.stepper().initial(&mut state);
        let choice = preempt_system::Choice::of(preempt_system::ThreadId::new(0));
        assert_eq!(machine.stepper().step(&mut state, choice), Step::Moved { alternatives: 1 });
        let values = machine
            .cells
            .globals
            .iter()
            .map(|&cell| machine.layout.fields[cell as usize].get(&state));
        assert_eq!(values.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn objects_say_what_they_have_to_know() {
    let mutex = || var(0, Type::Object(ObjectType::Mutex));
    let call = |method| {
        let call = ExprKind::Method { object: mutex(), method, args: Vec::new() };
        stmt(StmtKind::Expr(expr(call, Type::Int)))
    };
    let thread = || vec![call(Method::Lock), call(Method::Unlock)];
    let machine = machine(program(vec![(mutex().ty, 0)], vec![thread(), thread(), thread()]));
    let diagram = machine.diagram(1);
    assert!(
        matches!(
            diagram[..],
            [Node::Equal { .. }, Node::Last { .. }, Node::Wait { resting: false }]
        ),
        "free or not is all that matters: {diagram:?}"
    );
}

#[test]
fn what_a_diagram_cannot_say_is_interpreted_from_the_beginning() {
    let (x, y) = (|| load(var(0, Type::Int)), || load(var(1, Type::Int)));
    let values = [
        binary(BinaryOp::Mul, x(), x()),
        binary(BinaryOp::Div, x(), y()),
        binary(BinaryOp::Sub, int(1_000), x()),
    ];
    for value in values {
        let body = vec![stmt(StmtKind::Loop(vec![assign(var(0, Type::Int), value)]))];
        let program = program(vec![(Type::Int, 100), (Type::Int, 200)], vec![body]);
        let machine = machine(Program { granularity: Granularity::Statement, ..program });
        assert_eq!(machine.diagrams.starts[0], INTERPRET, "{:?}", machine.diagram(0));
    }
}
