//! The contents of a step's footprint.

use preempt_lang::source::Source;
use preempt_system::{Choice, Footprint, Model as _, Step, Stepper as _, ThreadId};

/// The names of the locations that the first step of the first thread accesses.
fn touched(text: &str) -> Vec<String> {
    let machine = preempt_lang::load(&Source::new("model.pre", text), &[])
        .expect("a good model")
        .with_stable_names();
    let mut stepper = machine.stepper();
    let mut state = vec![0; machine.shape().words];
    assert!(matches!(stepper.initial(&mut state), Step::Moved { .. }));
    let mut footprint = Footprint::new();
    stepper.step_with_footprint(&mut state, Choice::of(ThreadId::new(0)), &mut footprint);
    footprint.accesses().iter().map(|&(location, _)| machine.location_name(location)).collect()
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
