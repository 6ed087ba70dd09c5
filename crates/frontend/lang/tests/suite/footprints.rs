//! The contents of a step's footprint.

use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::{
    Access, Choice, Footprint, Location, Model as _, Step, Stepper as _, ThreadId,
};

/// The locations that the first step of the first thread accesses.
fn first_step(text: &str) -> (Machine, Vec<(Location, Access)>) {
    let machine = preempt_lang::load(&Source::new("model.pre", text), &[])
        .expect("a good model")
        .with_stable_names();
    let mut stepper = machine.stepper();
    let mut state = vec![0; machine.shape().words];
    assert!(matches!(stepper.initial(&mut state), Step::Moved { .. }));
    let mut footprint = Footprint::new();
    stepper.step_with_footprint(&mut state, Choice::of(ThreadId::new(0)), &mut footprint);
    drop(stepper);
    (machine, footprint.accesses().to_vec())
}

/// The names of these locations.
fn touched(text: &str) -> Vec<String> {
    let (machine, accesses) = first_step(text);
    accesses.iter().map(|&(location, _)| machine.location_name(location)).collect()
}

#[test]
fn records_allocated_by_a_failing_step_are_not_accessed() {
    let model = |last: &str| {
        format!(
            "record Node {{ value: int }} var p: *Node; var q: *Node; var x = 0;
            init {{ p = new Node {{ value: 1 }}; }}
            thread t {{ atomic {{ q = new Node {{ value: 2 }}; p.value = x; {last} }} }}"
        )
    };
    let moved = touched(&model("skip;"));
    let failed = touched(&model("assert false;"));
    let gone: Vec<&String> = moved.iter().filter(|name| !failed.contains(name)).collect();
    assert_eq!(gone, ["Node#2.value"], "of {moved:?}");
    assert!(
        failed.contains(&"Node#1.value".to_owned()) && failed.contains(&"x".to_owned()),
        "{failed:?}"
    );
}

#[test]
fn locations_are_data_synchronisation_or_stages_of_threads() {
    let (machine, accesses) = first_step(
        "record In { lock: mutex, value: int } record Node { first: int, parts: [In; 2] }
        var plain: [int; 2]; atomic var flag = 0; semaphore(1) s; var node: *Node; var whole: In;
        fn f() { skip; }
        init { node = new Node { }; }
        thread t { atomic { s.acquire(); plain[1] = 1; flag = 1; node.first = 1;
            if node.parts[1].lock.try_lock() { node.parts[1].value = 2; }
            if whole.lock.try_lock() { whole.value = 3; } spawn f(); } }",
    );
    let kinds: Vec<String> = accesses
        .iter()
        .map(|&(location, access)| {
            let (name, kind) = (machine.location_name(location), machine.location_kind(location));
            format!("{access:?} {name}: {kind:?}")
        })
        .collect();
    let expected = [
        "Write plain[1]: Data",
        "Write flag: Synchronisation",
        "Write s: Synchronisation",
        "Read node: Data",
        "Write whole.lock: Synchronisation",
        "Write whole.value: Data",
        // The supply of threads.
        "Write an intermediate value: Synchronisation",
        "Write Node#1.first: Data",
        "Write Node#1.parts[1].lock: Synchronisation",
        "Write Node#1.parts[1].value: Data",
        "Write an intermediate value: Life(T0)",
        "Write an intermediate value: Life(T1)",
    ];
    assert_eq!(kinds, expected);
}

/// A statement that is one step and waits after its first access.
#[test]
fn a_step_that_blocks_late_changes_nothing() {
    let text = "steps statement; channel(1, int) c, d; var x = 0;
        thread s { c.send(3); }
        thread t { x = c.recv() + d.recv(); }
        thread u { x = swap(x, 2) + d.recv(); }";
    let machine = preempt_lang::load(&Source::new("model.pre", text), &[]).expect("a good model");
    let mut stepper = machine.stepper();
    let mut step = |state: &mut [u64], thread| {
        let choice = Choice::of(ThreadId::new(thread));
        stepper.step_with_footprint(state, choice, &mut Footprint::new())
    };
    let mut before = vec![0; machine.shape().words];
    assert!(matches!(machine.stepper().initial(&mut before), Step::Moved { .. }));
    assert!(matches!(step(&mut before, 0), Step::Moved { .. }));
    for thread in [1, 2] {
        let mut state = before.clone();
        let blocked = step(&mut state, thread);
        assert!(matches!(blocked, Step::Blocked { resting: false }), "{blocked:?}");
        assert_eq!(state, before);
    }
}
