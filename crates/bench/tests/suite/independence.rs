//! Steps with independent footprints commute: executed in both orders from states of random
//! programs, they lead to the same state, and neither enables or disables the other.

use preempt_bench::random::{self, Random, Shape};
use preempt_lang::source::Source;
use preempt_machine::Machine;
use preempt_system::{Choice, Footprint, Model, Step, Stepper, ThreadId};

/// Follows one random run and tries all pairs of steps in each of its states. Returns the number of
/// independent pairs.
fn pairs(machine: &Machine, random: &mut Random) -> Result<usize, String> {
    let shape = machine.shape();
    let mut stepper = machine.stepper();
    let mut state = vec![0; shape.words];
    if !matches!(stepper.initial(&mut state), Step::Moved { .. }) {
        return Ok(0);
    }
    let mut tried = 0;
    for _ in 0..40 {
        let mut steps: Vec<(Choice, Footprint, Vec<u64>, bool)> = Vec::new();
        for thread in (0..shape.threads).map(ThreadId::new) {
            let mut alternatives = 1;
            let mut alternative = 0;
            while alternative < alternatives {
                let choice = Choice { thread, alternative };
                let (mut next, mut footprint) = (state.clone(), Footprint::new());
                match stepper.step_with_footprint(&mut next, choice, &mut footprint) {
                    Step::Moved { alternatives: known } => {
                        alternatives = known;
                        steps.push((choice, footprint, next, true));
                    }
                    Step::Blocked { .. } => {
                        if next != state {
                            return Err(format!("{choice:?} waits, and has changed the state"));
                        }
                        steps.push((choice, footprint, next, false));
                    }
                    _ => {}
                }
                alternative += 1;
            }
        }
        for (a, fa, after_a, moves_a) in &steps {
            for (b, fb, after_b, moves_b) in &steps {
                if a.thread >= b.thread || fa.depends(fb) {
                    continue;
                }
                tried += 1;
                let then =
                    |stepper: &mut preempt_machine::Stepper<'_>, start: &[u64], choice: Choice| {
                        let mut next = start.to_vec();
                        let moved = matches!(stepper.step(&mut next, choice), Step::Moved { .. });
                        (moved, next)
                    };
                let (ab, ba) = (then(&mut stepper, after_a, *b), then(&mut stepper, after_b, *a));
                if *moves_a && ab.0 != *moves_b || *moves_b && ba.0 != *moves_a {
                    return Err(format!(
                        "{a:?} and {b:?} are called independent, and one decides whether the other can move"
                    ));
                }
                if *moves_a && *moves_b && ab.1 != ba.1 {
                    return Err(format!(
                        "{a:?} and {b:?} are called independent, and do not commute"
                    ));
                }
            }
        }
        let moves: Vec<&Vec<u64>> = steps.iter().filter(|s| s.3).map(|s| &s.2).collect();
        if moves.is_empty() {
            break;
        }
        state = random.pick(&moves).to_vec();
    }
    Ok(tried)
}

#[test]
fn independent_steps_commute() {
    let mut tried = 0;
    for seed in 0..3_000 {
        let text = random::program(seed, Shape { threads: (2, 4), statements: 5 });
        let machine = preempt_lang::load(&Source::new("random.pre", text.as_str()), &[])
            .expect("random programs are programs");
        let mut random = Random::new(seed);
        for _ in 0..4 {
            tried += pairs(&machine, &mut random).unwrap_or_else(|error| panic!("{error}\n{text}"));
        }
    }
    assert!(tried > 50_000, "only {tried} pairs were tried");
}
