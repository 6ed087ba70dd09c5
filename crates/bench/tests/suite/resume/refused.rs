//! Checkpoints that are damaged, or that belong to another search, are refused with a reason and
//! advice.

use std::io::Cursor;

use preempt_bench::{corpus, random::Random};
use preempt_explore::{Cache, Checkpoints, Order, Plan, Saved, Silent};
use preempt_machine::Machine;

use super::tape::{PROGRAM, Tape, open, run_with};

fn model() -> Machine {
    corpus::machine(&corpus::root().join("bluetooth/model.pre"), &[])
        .expect("a program of the corpus")
}

/// A checkpoint from the middle of a search.
fn checkpoint(plan: &Plan) -> Vec<u8> {
    let tape = Tape::new(3, 2);
    run_with(plan, &model(), &Silent, Checkpoints::of(PROGRAM, &tape));
    tape.into_kept().swap_remove(0)
}

#[test]
fn cut_and_changed_checkpoints() {
    let whole = checkpoint(&Plan::new().keep_going());
    let mut random = Random::new(1);
    for _ in 0..500 {
        let mut bytes = whole.clone();
        if random.percent(50) {
            bytes.truncate(random.below(whole.len()));
        } else {
            let bit = random.below(8 * whole.len());
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        let refusal =
            Saved::open(Cursor::new(bytes)).err().expect("the input is refused").to_string();
        assert!(refusal.contains("damaged") || refusal.contains("not a checkpoint"), "{refusal}");
    }
}

#[test]
fn checkpoints_of_something_else() {
    let plan = Plan::new().keep_going();
    let whole = checkpoint(&plan);
    let refusal = |plan: Plan, program: u64| {
        let checkpoints = Checkpoints::of(program, &()).resume(open(&whole));
        let search = plan.build().expect("the plan is valid");
        search.run_with(model(), &Silent, checkpoints).err().map(|refusal| refusal.to_string())
    };
    assert_eq!(refusal(plan, PROGRAM), None);
    let program = refusal(plan, PROGRAM + 1).expect("another program");
    assert!(program.contains("another program") && program.contains("start again"), "{program}");
    for (other, word) in [
        (plan.order(Order::DepthFirst), "the order"),
        (plan.order(Order::Icb { cache: Cache::State }), "the order"),
        (plan.jobs(2), "jobs"),
        (plan.ignore_deadlocks(), "deadlocks"),
        (Plan { keep_going: false, ..plan }, "keep going"),
    ] {
        let text = refusal(other, PROGRAM).expect("another plan");
        assert!(
            text.contains("another search") && text.contains(word) && text.contains("options"),
            "{text}"
        );
    }
}
