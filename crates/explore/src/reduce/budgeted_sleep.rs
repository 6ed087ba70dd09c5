//! Sleep sets under a bound on preemptions.
//!
//! **Paper.** None: worked out for Preempt, beside cb-por, which reaches the same with tables.
//! Sleep sets are Godefroid's: see [`sleep`](super::sleep).
//!
//! **Guarantees.** Every trace that has an execution with at most `bound` preemptions is explored,
//! by an execution within the bound: assertions, deadlocks and terminal states within the bound
//! survive. Some traces are explored more than once. If [`Tally::bounded`] is 0 the bound left
//! nothing out.
//!
//! Why. Ordinary sleep sets are unsound under a bound (program X of the zoo): a run `s.t.w.u.F`,
//! with `w` independent of `u`, is left out because `s.u.t.w.F` was explored, and that run may have
//! one preemption more. So a step keeps what it cost when it falls asleep. In the other run nothing
//! gets dearer inside `w` and `F`, unless `u` *enables* a thread which was blocked where it was
//! switched away from; steps that may do that never sleep (program W). The switch from `u`'s thread
//! to `t` costs at most one if that thread can go on after `u`, and `u` sleeps only beside steps
//! that cost as much; the switches around the old place of `u` cancel. By induction on the order of
//! the search, an execution at most as dear is always explored.
//!
//! **Map.**
//!
//! | in words | here |
//! | --- | --- |
//! | explore(s, sleep, last, pre) | a `Place` |
//! | done, cost(u) | `Place::done` |
//! | may_enable(op) | [`Waits::may_end`] |
//!
//! **Deviations.**
//!
//! 1. What can be waited for is not always known of a program.
//!    [`waits::reachable`](crate::engine::waits::reachable) finds it out by visiting all states of
//!    a model, which are far fewer than the executions; [`Waits::Anywhere`] takes every access for
//!    something that may enable, and lets only steps sleep that touch nothing.
//! 2. Steps sleep, not threads: a thread may have alternatives, each with a footprint of its own,
//!    and all steps that are awake are taken everywhere. So an alternative that sleeps covers no
//!    other one.
//!
//! **Cost.** No table. Near the optimum without locks; several times the traces where the bound no
//! longer restricts anything.

use preempt_system::{Choice, System, ThreadId, Waits};

use super::trace::{Tally, Trace};
use super::walk::inherit;
use crate::codec::save_fields;
use crate::engine::cursor::Cursor;
use crate::engine::execution::{Cut, Stop, Visitor};
use crate::plan::Dependence;

/// How to search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The most preemptions.
    pub bound: u32,
    /// Which steps depend on each other.
    pub dependence: Dependence,
    /// What threads may have to wait for.
    pub waits: Waits,
}

/// A place of the search.
struct Place {
    sleep: Vec<Choice>,
    /// The steps to take here.
    todo: Vec<Choice>,
    /// The steps taken here that may sleep, and what each cost: the preemptions after it, and one
    /// more if its thread could go on.
    done: Vec<(Choice, u32)>,
    /// The step that was taken last.
    taken: Option<Choice>,
}

save_fields!(Place { sleep, todo, done, taken });

/// Explores every trace that has an execution with at most `bound` preemptions.
pub fn budgeted_sleep_sets<S: System>(
    cursor: &mut Cursor<S>,
    visitor: &mut impl Visitor<S>,
    config: &Config,
) -> Result<Tally, Stop<S::Need>> {
    let mut trace = Trace::new(cursor, config.dependence);
    let mut tally = Tally::default();
    let mut places = Vec::new();
    match trace.resume(visitor)? {
        Some(paused) => (places, tally) = paused,
        None => places.push(enter(&mut trace, visitor, config, &mut tally, Vec::new())?),
    }
    loop {
        trace.pause(&places, &tally, visitor)?;
        let Some(place) = places.last_mut() else { break };
        if let Some(choice) = place.taken.take() {
            // Back from it: whether its thread could go on was seen on the way.
            let goes_on = trace.cursor.enabled().contains(choice.thread);
            let cost = trace.cursor.preemptions().count() + u32::from(goes_on);
            trace.rewind(trace.len() - 1);
            if !config.waits.may_end(trace.cursor.footprint(choice)) {
                place.done.push((choice, cost));
            }
        }
        let Some(choice) = place.todo.pop() else {
            places.pop();
            continue;
        };
        let spent = cost_of(&trace, choice.thread);
        let cheap = place.done.iter().filter(|&&(_, cost)| cost <= spent).map(|&(other, _)| other);
        let asleep: Vec<Choice> = place.sleep.iter().copied().chain(cheap).collect();
        let sleep = inherit(&trace, &asleep, choice);
        place.taken = Some(choice);
        let failure = trace.step(choice)?;
        visitor.step(trace.cursor, failure)?;
        let place = enter(&mut trace, visitor, config, &mut tally, sleep)?;
        places.push(place);
    }
    Ok(tally)
}

/// The preemptions after a step of `thread`.
fn cost_of<S: System>(trace: &Trace<'_, S>, thread: ThreadId) -> u32 {
    let preemptions = trace.cursor.preemptions();
    preemptions.count() + u32::from(preemptions.would_preempt(thread, trace.cursor.enabled()))
}

fn enter<S: System>(
    trace: &mut Trace<'_, S>,
    visitor: &mut impl Visitor<S>,
    config: &Config,
    tally: &mut Tally,
    sleep: Vec<Choice>,
) -> Result<Place, Stop<S::Need>> {
    tally.nodes += 1;
    let awake = trace.enabled().flat_map(|thread| trace.alternatives(thread));
    let awake: Vec<Choice> = awake.filter(|choice| !sleep.contains(choice)).collect();
    let within =
        awake.iter().copied().filter(|choice| cost_of(trace, choice.thread) <= config.bound);
    let mut todo: Vec<Choice> = within.collect();
    tally.bounded += (awake.len() - todo.len()) as u64;
    if trace.cursor.enabled().is_empty() {
        tally.executions += 1;
        visitor.end(trace.cursor)?;
    } else if awake.is_empty() {
        tally.covered += 1;
        visitor.cut(trace.cursor, Cut::Covered)?;
    } else if todo.is_empty() {
        visitor.cut(trace.cursor, Cut::Bound)?;
    }
    todo.reverse();
    Ok(Place { sleep, todo, done: Vec::new(), taken: None })
}
