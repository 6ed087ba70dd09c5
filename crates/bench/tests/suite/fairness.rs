//! Spinning threads are held back until something changes, without losing errors; an execution that
//! runs forever is a livelock.
//!
//! Small random programs whose threads wait in loops are searched by executions, with fairness, and
//! state by state, without any. Both must find the same failures, and a livelock must be found iff
//! the graph of states has one: a state in which every thread that can move comes back to it by
//! steps of its own.

use std::collections::{BTreeSet, HashSet};

use preempt_explore::{Cache, Limits, Order, Outcome, Plan, Silent, pcg::Pcg};
use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::{Choice, FailureKind, Model, Step, Stepper, ThreadId};

fn machine(text: &str) -> Machine {
    preempt_lang::load(&Source::new("spin.pre", text), &[]).expect("a program")
}

fn run(plan: Plan, machine: &Machine) -> Outcome {
    let limits = Limits { states: Some(20_000), ..Limits::default() };
    plan.limits(limits).build().expect("the plan is valid").run(machine.clone(), &Silent).0
}

fn kinds(outcome: &Outcome) -> Vec<FailureKind> {
    outcome.findings.iter().map(|finding| finding.failure.kind).collect()
}

const ORDERS: [Order; 4] = [
    Order::Executions,
    Order::Icb { cache: Cache::None },
    Order::Icb { cache: Cache::Hb },
    Order::DfsHb,
];

#[test]
fn a_loop_that_waits_ends_without_a_preemption() {
    let text = "atomic var flag = 0; atomic var seen = 0;
        thread waiter { while flag == 0 { yield; } seen = 1; }
        thread setter { flag = 1; }";
    for order in ORDERS {
        let outcome = run(Plan::new().order(order), &machine(text));
        assert!(
            outcome.complete && outcome.findings.is_empty(),
            "{order:?}: {}",
            outcome.guarantee()
        );
    }
    // The waiter starts, completes one round and is switched away from. The switch is not a
    // preemption, since the waiter could only repeat the round.
    let within = run(Plan::new().order(Order::ContextBounded).bound(0), &machine(text));
    assert_eq!((within.executions(), within.traces()), (Some(2), Some(2)));
}

#[test]
fn two_threads_that_spin_on_each_other_are_a_livelock() {
    let text = "atomic var a = 0; atomic var b = 0;
        thread left { while a == 0 { skip; } b = 1; }
        thread right { while b == 0 { skip; } a = 1; }";
    for order in ORDERS {
        assert_eq!(
            kinds(&run(Plan::new().order(order), &machine(text))),
            [FailureKind::Livelock],
            "{order:?}"
        );
    }
}

#[test]
fn a_wait_that_gives_up_and_a_loop_of_several_steps() {
    let gives_up = "atomic var flag = 0;
        thread waiter { var tries = 0; while flag == 0 && tries < 3 { tries = tries + 1; } }
        thread other { mutex_free = 1; }
        atomic var mutex_free = 0;";
    let looks_at_two = "atomic var a = 0; atomic var b = 0;
        thread waiter { loop { if a == 1 { break; } if b == 1 { break; } } }
        thread idle { while b == 0 { } }";
    for order in ORDERS {
        let outcome = run(Plan::new().order(order), &machine(gives_up));
        assert!(
            outcome.complete && outcome.findings.is_empty(),
            "{order:?}: {}",
            outcome.guarantee()
        );
        assert_eq!(
            kinds(&run(Plan::new().order(order), &machine(looks_at_two))),
            [FailureKind::Livelock],
            "{order:?}"
        );
    }
}

/// A program of two or three threads that set, test and wait for two variables.
fn spinning(seed: u64) -> String {
    let mut random = Pcg::new(seed, 0);
    let mut draw = |below: u32| random.below(below);
    let mut text = String::from("atomic var x = 0; atomic var y = 0; mutex m;\n");
    for thread in 0..2 + draw(2) {
        text += &format!("thread t{thread} {{\n");
        for _ in 0..1 + draw(3) {
            let (variable, value) = (["x", "y"][draw(2) as usize], draw(2));
            text += &match draw(6) {
                0 | 1 => format!("    {variable} = {value};\n"),
                2 => format!("    while {variable} == {value} {{ yield; }}\n"),
                3 | 4 => format!("    m.lock(); {variable} = {value}; m.unlock();\n"),
                _ => format!("    assert {variable} == {value};\n"),
            };
        }
        text += "}\n";
    }
    text
}

/// Whether there is a state to which every enabled thread returns by its own steps alone. A failing
/// step does not return; it ends the execution.
fn has_livelock(machine: &Machine) -> bool {
    let (mut stepper, shape) = (machine.stepper(), machine.shape());
    let mut step = |state: &[u64], thread: usize| {
        let mut next = state.to_vec();
        let step = stepper.step(&mut next, Choice::of(ThreadId::new(thread)));
        match step {
            Step::Moved { .. } => Some(Some(next)),
            Step::Failed(_) => Some(None),
            _ => None,
        }
    };
    let mut initial = vec![0; shape.words];
    machine.stepper().initial(&mut initial);
    let (mut seen, mut waiting) = (HashSet::from([initial.clone()]), vec![initial]);
    while let Some(state) = waiting.pop() {
        let next: Vec<_> =
            (0..shape.threads).filter_map(|thread| Some((thread, step(&state, thread)?))).collect();
        let mut comes_back = |(thread, next): &(usize, Option<Vec<u64>>)| {
            let Some(next) = next else { return false };
            let (mut round, mut here) = (HashSet::new(), next.clone());
            while here != state && round.insert(here.clone()) {
                let Some(Some(on)) = step(&here, *thread) else { return false };
                here = on;
            }
            here == state
        };
        if !next.is_empty() && next.iter().all(&mut comes_back) {
            return true;
        }
        waiting.extend(
            next.into_iter().filter_map(|(_, next)| next).filter(|next| seen.insert(next.clone())),
        );
    }
    false
}

#[test]
fn random_spinning_programs_have_the_failures_of_the_state_graph() {
    let (mut compared, mut livelocks) = (0, 0);
    for seed in 0..500 {
        let text = spinning(seed);
        let machine = machine(&text);
        let full = run(Plan::new().keep_going(), &machine);
        let failures = |outcome: &Outcome| {
            let all = outcome.findings.iter().map(|finding| finding.failure.clone());
            all.filter(|failure| failure.kind != FailureKind::Livelock)
                .map(|failure| (failure.kind, failure.message, failure.site.map(|site| site.line)))
                .collect::<BTreeSet<_>>()
        };
        let livelock = has_livelock(&machine);
        for order in [Order::Icb { cache: Cache::Hb }, Order::DfsHb] {
            let outcome = run(Plan::new().order(order).keep_going(), &machine);
            if outcome.stopped.is_some() {
                continue;
            }
            compared += 1;
            livelocks += usize::from(livelock);
            assert_eq!(failures(&outcome), failures(&full), "seed {seed}, {order:?}:\n{text}");
            assert_eq!(
                kinds(&outcome).contains(&FailureKind::Livelock),
                livelock,
                "seed {seed}, {order:?}:\n{text}"
            );
        }
    }
    assert!(
        compared > 700 && livelocks > 100,
        "{compared} comparisons, {livelocks} with a livelock"
    );
}
