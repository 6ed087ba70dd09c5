//! Combinations that are unsound, and the smallest programs that show it.

use preempt_bench::corpus;
use preempt_explore::cursor::Cursor;
use preempt_explore::execution::{Stop, Visitor};
use preempt_explore::reduce::dpor::Sleep;
use preempt_explore::reduce::{Dependence, cb_por, dpor};
use preempt_lang::machine::Machine;
use preempt_system::Choice;

use crate::watch::{Collect, again};

fn zoo(letter: char) -> Machine {
    corpus::machine(&corpus::root().join(format!("zoo/{letter}.pre")), &[]).expect("the corpus is well")
}

/// Flanagan and Godefroid's reduction looks at the last race only. With sleep sets that is not enough.
#[test]
fn the_last_race_is_not_enough_with_sleep_sets() {
    let by = |sleep| {
        let strategy = |_: &Machine, cursor: &mut Cursor<'_, Machine>, collect: &mut Collect| {
            dpor::flanagan_godefroid(cursor, collect, Dependence::ReadWrite, sleep)
        };
        again(zoo('n'), strategy).0.1.seen.traces.len()
    };
    assert_eq!((by(Sleep::Never), by(Sleep::Incomplete)), (4, 3));
}

/// Sleep sets as they are, and executions with too many preemptions left out.
fn naive(cursor: &mut Cursor<'_, Machine>, collect: &mut Collect, bound: u32, sleep: &[Choice]) -> Result<(), Stop> {
    if cursor.enabled().is_empty() {
        return collect.end(cursor);
    }
    let mut asleep = sleep.to_vec();
    for choice in cursor.enabled().iter().map(Choice::of) {
        let preempts = cursor.preemptions().would_preempt(choice.thread, cursor.enabled());
        if asleep.contains(&choice) || cursor.preemptions().count() + u32::from(preempts) > bound {
            continue;
        }
        let taken = cursor.footprint(choice);
        let stays = |other: &&Choice| other.thread != choice.thread && !cursor.footprint(**other).depends(taken);
        let inherited: Vec<Choice> = asleep.iter().filter(stays).copied().collect();
        cursor.step(choice)?;
        naive(cursor, collect, bound, &inherited)?;
        cursor.rewind(cursor.len() - 1);
        asleep.push(choice);
    }
    Ok(())
}

#[test]
fn sleep_sets_and_a_bound_lose_a_trace() {
    for (letter, bound, expected, found) in [('x', 0, 2, 1), ('a', 0, 2, 1), ('h', 1, 4, 3)] {
        let (((), naive), machine) = again(zoo(letter), |_, cursor, collect| naive(cursor, collect, bound, &[]));
        let config = cb_por::Config { bound, ..cb_por::Config::default() };
        let ((counts, _), _) =
            again(machine, |machine, cursor, collect| cb_por::terminals(machine, cursor, collect, &config));
        assert_eq!((counts.executions, naive.seen.traces.len()), (expected, found), "program {letter}");
    }
}
