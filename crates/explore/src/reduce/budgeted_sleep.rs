//! Sleep sets under a bound on preemptions.
//!
//! **Paper.** None: developed for Preempt, as an alternative to cb-por, which achieves the same
//! with tables. Sleep sets are Godefroid's: see [`sleep`](super::sleep).
//!
//! **Guarantees.** Every trace that has an execution with at most `bound` preemptions is explored,
//! by an execution within the bound: assertions, deadlocks and terminal states within the bound
//! survive. Some traces are explored more than once. If [`ReductionStats::bounded`] is 0 the bound
//! left nothing out.
//!
//! Why. Ordinary sleep sets are unsound under a bound (program X of the zoo): a run `s.t.w.u.F`,
//! with `w` independent of `u`, is skipped because `s.u.t.w.F` was explored, and that run may have
//! one preemption more. So a step keeps its cost when it falls asleep. In the other run nothing
//! gets more expensive inside `w` and `F`, unless `u` *enables* a thread which was blocked where it
//! was switched away from; steps that may do that never sleep (program W). The switch from `u`'s
//! thread to `t` costs at most one if that thread can continue after `u`, and `u` sleeps only next
//! to steps that cost as much; the switches around the old place of `u` cancel. By induction on the
//! order of the search, an execution that costs at most as much is always explored.
//!
//! **Map.**
//!
//! | in words | here |
//! | --- | --- |
//! | explore(s, sleep, last, pre) | a `Node` |
//! | done, cost(u) | `Node::done` |
//! | may_enable(op) | [`Waits::may_end`] |
//!
//! **Deviations.**
//!
//! 1. It is not always known what threads may wait for.
//!    [`waits::reachable`](crate::engine::waits::reachable) computes it by visiting all states of a
//!    model, which are far fewer than the executions; [`Waits::Anywhere`] assumes that every access
//!    may enable a thread, so that only steps without accesses sleep.
//! 2. Steps sleep, not threads: a thread may have alternatives, each with a footprint of its own,
//!    and all steps that are awake are taken everywhere. So a sleeping alternative does not cover
//!    the others.
//!
//! **Cost.** No table. Near the optimum without locks; several times the traces where the bound no
//! longer restricts anything.

use preempt_system::{Choice, System, ThreadId, Waits};

use super::backtrack::inherit;
use super::policy::{Entered, Policy, ReducedSearch};
use super::trace::{ReductionStats, Trace};
use crate::codec::save_fields;
use crate::engine::cursor::Cursor;
use crate::engine::execution::{Cut, Stop, Visitor};
use crate::plan::Dependence;

/// The configuration of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The most preemptions.
    pub bound: u32,
    /// The dependence relation.
    pub dependence: Dependence,
    /// The locations that threads may have to wait for.
    pub waits: Waits,
}

/// The execution before one of its steps.
pub(crate) struct Node {
    sleep: Vec<Choice>,
    /// The steps to take here, the next one last.
    todo: Vec<Choice>,
    /// The steps taken here that may sleep, and the cost of each: the preemptions after it, plus
    /// one if its thread could continue.
    done: Vec<(Choice, u32)>,
}

save_fields!(Node { sleep, todo, done });

/// Explores every trace that has an execution with at most `bound` preemptions.
pub fn budgeted_sleep_sets<S: System>(
    cursor: &mut Cursor<S>,
    visitor: &mut impl Visitor<S>,
    config: &Config,
) -> Result<ReductionStats, Stop<S::Need>> {
    strategy(cursor, config.clone()).run(visitor)
}

/// The search as a strategy.
pub(crate) fn strategy<S: System>(
    cursor: &mut Cursor<S>,
    config: Config,
) -> ReducedSearch<'_, S, BudgetedSleep> {
    ReducedSearch::new(cursor, config.dependence, BudgetedSleep(config))
}

/// Takes every step within the bound that does not sleep.
pub(crate) struct BudgetedSleep(Config);

impl<S: System> Policy<S> for BudgetedSleep {
    type Node = Node;
    /// The steps that sleep.
    type Arrival = Vec<Choice>;

    fn enter(
        &mut self,
        trace: &mut Trace<'_, S>,
        sleep: Vec<Choice>,
        _: &mut [Node],
        stats: &mut ReductionStats,
    ) -> Entered<Node, S::Need> {
        let awake = trace.enabled().flat_map(|thread| trace.alternatives(thread));
        let awake: Vec<Choice> = awake.filter(|choice| !sleep.contains(choice)).collect();
        let is_within = |choice: &Choice| cost_of(trace, choice.thread) <= self.0.bound;
        let mut todo: Vec<Choice> = awake.iter().copied().filter(is_within).collect();
        stats.bounded += (awake.len() - todo.len()) as u64;
        let cut = match (awake.is_empty(), todo.is_empty()) {
            (true, _) => Some(Cut::Covered),
            (false, true) => Some(Cut::Bound),
            (false, false) => None,
        };
        todo.reverse();
        Ok((Node { sleep, todo, done: Vec::new() }, cut))
    }

    fn next(&mut self, trace: &Trace<'_, S>, node: &mut Node) -> Option<(Choice, Vec<Choice>)> {
        let choice = node.todo.pop()?;
        let spent = cost_of(trace, choice.thread);
        let cheap = node.done.iter().filter(|&&(_, cost)| cost <= spent).map(|&(other, _)| other);
        let asleep: Vec<Choice> = node.sleep.iter().copied().chain(cheap).collect();
        Some((choice, inherit(trace, &asleep, choice)))
    }

    /// Whether the thread of a step can continue is known only after the step.
    fn leave(&mut self, trace: &Trace<'_, S>, _: Node, parent: Option<&mut Node>) {
        let (Some(parent), Some(last)) = (parent, trace.len().checked_sub(1)) else { return };
        let choice = trace.cursor.choice(last);
        if !self.0.waits.may_end(trace.cursor.taken(last)) {
            let continues = trace.cursor.enabled().contains(choice.thread);
            let cost = trace.cursor.preemptions().count() + u32::from(continues);
            parent.done.push((choice, cost));
        }
    }
}

/// The preemptions after a step of `thread`.
fn cost_of<S: System>(trace: &Trace<'_, S>, thread: ThreadId) -> u32 {
    let preemptions = trace.cursor.preemptions();
    preemptions.count() + u32::from(preemptions.would_preempt(thread, trace.cursor.enabled()))
}
