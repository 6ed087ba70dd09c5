//! The tree of executions, depth first: the loop that all systematic searches over executions
//! share.
//!
//! At every state the running thread goes first, if it can, then the others from the lowest up; of
//! a thread's alternatives the lowest first. The stack is explicit, since it is as deep as an
//! execution. A step is taken unless it goes beyond the bound on preemptions, or the [`Table`]
//! covers it; an execution is cut when it has as many steps as allowed. What becomes of the steps
//! beyond the bound is for the [`OverBound`] to say: that is where depth-first search and icb differ.
//!
//! When others have nothing to do, a worker gives them the [steps](Work::Given) nearest to the
//! beginning, from which most is likely to follow.
//!
//! It pauses between two steps. What is left of its work is then the [execution](PausedWorker) in which it
//! stands and the steps that are open.
//!
//! **Cost.** 12 bytes for every step that was passed on the way and not taken yet.

use std::ops::Range;

use preempt_system::{Choice, FailureKind, System, ThreadId};

use super::cache::Table;
use super::pool::Pool;
use super::weights::WeightTracker;
use crate::codec::{Damaged, Reader, Save, Writer, save_fields};
use crate::engine::cursor::Cursor;
use crate::engine::execution::{Cut, Stop, Visitor};
use crate::engine::expand::nondeterminism;
use crate::engine::names::Name;

/// What becomes of the steps that the bound forbids.
pub(crate) trait OverBound<S: System> {
    /// `choice`, whose name is `step`, would be one preemption too many where the cursor stands.
    fn over_bound(&mut self, cursor: &Cursor<S>, choice: Choice, step: Option<Name>);

    /// The cursor has gone back to where the execution had `len` steps.
    fn rewound(&mut self, len: usize);

    /// How many steps wait there, and in how many bytes.
    fn holds(&self) -> (usize, usize);

    /// Writes what waits there.
    fn save(&self, to: &mut Writer<'_>);

    /// How many of them wait for the next bound.
    fn queued(&self) -> usize {
        0
    }
}

/// Forgets them, and remembers only that there were some.
#[derive(Default)]
pub(crate) struct Discard {
    pub(crate) any: bool,
}

impl<S: System> OverBound<S> for Discard {
    fn over_bound(&mut self, _: &Cursor<S>, _: Choice, _: Option<Name>) {
        self.any = true;
    }

    fn rewound(&mut self, _: usize) {}

    fn holds(&self) -> (usize, usize) {
        (0, 0)
    }

    fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.any);
    }
}

impl Discard {
    /// Reads what was written.
    pub(crate) fn load(from: &mut Reader) -> Result<Discard, Damaged> {
        Ok(Discard { any: from.get()? })
    }
}

/// How far the tree is explored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// The most preemptions.
    pub(crate) preemptions: Option<u32>,
    /// The most steps.
    pub(crate) steps: Option<u32>,
}

impl Extent {
    /// How many preemptions are left after so many: `None` if these are too many, 0 if they do not
    /// matter.
    fn left(self, preemptions: u32) -> Option<u32> {
        self.preemptions.map_or(Some(0), |most| most.checked_sub(preemptions))
    }
}

/// A step that is still to be taken, after so many steps of the execution.
#[derive(Clone, Copy)]
struct Open {
    len: u32,
    choice: Choice,
}

save_fields!(Open { len, choice });

/// What a worker has where it pauses, and when it is done.
pub(crate) struct PausedWorker<B> {
    /// The execution in which it stands.
    steps: Vec<Choice>,
    open: Vec<Open>,
    /// Items that it has taken, and not come to yet.
    pub(crate) items: Range<usize>,
    pub(crate) over_bound: B,
    /// Whether an execution was cut at the greatest number of steps.
    pub(crate) cut: bool,
    /// What weighs the steps of the execution, if somebody wants to know.
    weights: Option<WeightTracker>,
}

impl<B> PausedWorker<B> {
    /// That of a worker which has done nothing yet.
    pub(crate) fn new(over_bound: B) -> PausedWorker<B> {
        PausedWorker {
            steps: Vec::new(),
            open: Vec::new(),
            items: 0..0,
            over_bound,
            cut: false,
            weights: None,
        }
    }

    /// Whether the worker has nothing left to do.
    pub(crate) fn is_done(&self) -> bool {
        self.open.is_empty() && self.items.is_empty()
    }

    pub(crate) fn save<S: System>(&self, to: &mut Writer<'_>)
    where
        B: OverBound<S>,
    {
        to.put(&self.steps);
        to.put(&self.open);
        to.put(&(self.items.start, self.items.end));
        to.put(&self.cut);
        to.put(&self.weights);
        self.over_bound.save(to);
    }

    pub(crate) fn load(
        from: &mut Reader,
        over_bound: impl FnOnce(&mut Reader) -> Result<B, Damaged>,
    ) -> Result<PausedWorker<B>, Damaged> {
        let (steps, open): (Vec<Choice>, Vec<Open>) = (from.get()?, from.get()?);
        let (start, end) = from.get()?;
        if open.iter().any(|open| open.len as usize > steps.len()) {
            return Err(Damaged);
        }
        let (cut, weights) = (from.get()?, from.get()?);
        Ok(PausedWorker {
            steps,
            open,
            items: start..end,
            cut,
            weights,
            over_bound: over_bound(from)?,
        })
    }
}

/// A part of the tree.
pub(crate) enum Work {
    /// What follows from some of the items that there were at the beginning.
    Items(Range<usize>),
    /// What follows from a step that another worker has given away: after these steps, this one,
    /// which weighs so much.
    Given(Vec<Choice>, Choice, f64),
}

impl Save for Work {
    fn save(&self, to: &mut Writer<'_>) {
        match self {
            Work::Items(items) => to.put(&Some((items.start, items.end))),
            Work::Given(steps, choice, weight) => {
                to.put(&None::<(usize, usize)>);
                to.put(steps);
                to.put(choice);
                to.put(weight);
            }
        }
    }

    fn load(from: &mut Reader) -> Result<Work, Damaged> {
        Ok(match from.get::<Option<(usize, usize)>>()? {
            Some((start, end)) => Work::Items(start..end),
            None => Work::Given(from.get()?, from.get()?, from.get()?),
        })
    }
}

/// A depth-first search of the tree of executions.
pub(crate) struct Tree<'t, B> {
    extent: Extent,
    pub(crate) table: &'t Table,
    pool: &'t Pool<Work>,
    pub(crate) over_bound: B,
    /// Whether an execution was cut at the greatest number of steps.
    pub(crate) cut: bool,
    open: Vec<Open>,
    weights: WeightTracker,
    /// So many of the open steps, from the beginning, are beyond the bound: nobody would be helped
    /// by them.
    barren: usize,
}

impl<'t, B> Tree<'t, B> {
    /// Goes on where a worker has paused, or begins. Moves the cursor there.
    pub(crate) fn resume<S: System>(
        (extent, table, pool): (Extent, &'t Table, &'t Pool<Work>),
        rest: PausedWorker<B>,
        cursor: &mut Cursor<S>,
        visitor: &mut impl Visitor<S>,
    ) -> Result<Tree<'t, B>, Stop<S::Need>> {
        go(cursor, &rest.steps, visitor)?;
        let PausedWorker { open, over_bound, cut, weights, .. } = rest;
        let weights = match weights {
            // Where nobody has weighed from the beginning on, nothing can be weighed.
            Some(weights) if visitor.wants_weights() => weights,
            None if visitor.wants_weights() && rest.steps.is_empty() => {
                WeightTracker::on(cursor.threads())
            }
            _ => WeightTracker::off(),
        };
        Ok(Tree { extent, table, pool, over_bound, cut, open, weights, barren: 0 })
    }

    /// What it has now, beside these items.
    pub(crate) fn rest<S: System>(
        self,
        cursor: &Cursor<S>,
        items: Range<usize>,
    ) -> PausedWorker<B> {
        let weights = self.weights.on.then_some(self.weights);
        PausedWorker {
            steps: cursor.schedule().steps().to_vec(),
            open: self.open,
            items,
            over_bound: self.over_bound,
            cut: self.cut,
            weights,
        }
    }

    /// Moves the cursor to the end of these steps.
    pub(crate) fn go<S: System>(
        &mut self,
        cursor: &mut Cursor<S>,
        steps: &[Choice],
        visitor: &mut impl Visitor<S>,
    ) -> Result<(), Stop<S::Need>>
    where
        B: OverBound<S>,
    {
        let common = go(cursor, steps, visitor)?;
        self.over_bound.rewound(common);
        Ok(())
    }

    /// Moves the cursor back to where its execution had `len` steps.
    pub(crate) fn go_back<S: System>(&mut self, cursor: &mut Cursor<S>, len: usize)
    where
        B: OverBound<S>,
    {
        if cursor.len() > len {
            cursor.rewind(len);
            self.over_bound.rewound(len);
        }
    }

    /// Opens all steps where the cursor stands, which is where all there is begins.
    pub(crate) fn open_all<S: System>(
        &mut self,
        cursor: &mut Cursor<S>,
        visitor: &mut impl Visitor<S>,
    ) -> Result<(), Stop<S::Need>> {
        self.weights.start(cursor.len());
        self.arrive(cursor, 1.0, visitor)
    }

    /// Opens one step where the cursor stands, on which so much of all there is hangs.
    pub(crate) fn open_step<S: System>(&mut self, cursor: &Cursor<S>, choice: Choice, weight: f64) {
        self.weights.start(cursor.len());
        self.weights.enter(
            cursor.len(),
            weight,
            self.extent.left(cursor.preemptions_with(choice.thread)).into_iter(),
        );
        self.open.push(Open { len: cursor.len() as u32, choice });
    }

    /// Explores all that follows from the open steps, unless it has to pause.
    pub(crate) fn run<S: System>(
        &mut self,
        cursor: &mut Cursor<S>,
        visitor: &mut impl Visitor<S>,
    ) -> Result<(), Stop<S::Need>>
    where
        B: OverBound<S>,
    {
        while !visitor.is_pausing() {
            let Some(Open { len, choice }) = self.open.pop() else { break };
            self.go_back(cursor, len as usize);
            // Without a bound preemptions cost nothing.
            let preemptions =
                self.extent.preemptions.map_or(0, |_| cursor.preemptions_with(choice.thread));
            let step = self.table.name(cursor, choice);
            let weight = self
                .extent
                .left(preemptions)
                .map_or(0.0, |left| self.weights.weigh(len as usize, left));
            if self.extent.preemptions.is_some_and(|bound| preemptions > bound) {
                if self.table.covers(step, preemptions) {
                    visitor.cut(cursor, Cut::Covered)?;
                } else {
                    self.over_bound.over_bound(cursor, choice, step);
                    visitor.cut(cursor, Cut::Bound)?;
                }
            } else if self.table.take(step, preemptions) {
                let failure = cursor.step(choice)?;
                let (waiting, bytes) = self.over_bound.holds();
                visitor.holds(self.open.len() + waiting, self.table.bytes() + bytes);
                if self.weights.on {
                    visitor.queued(self.over_bound.queued());
                }
                visitor.step(cursor, failure)?;
                self.arrive(cursor, weight, visitor)?;
                if self.pool.has_idle_worker() {
                    self.give(cursor);
                }
            } else {
                visitor.weighed(weight);
                visitor.cut(cursor, Cut::Covered)?;
            }
        }
        Ok(())
    }

    /// Gives the first open step away that is within the bound, unless it is the one to be taken
    /// next. All open steps are steps from states of the present execution.
    #[cold]
    fn give<S: System>(&mut self, cursor: &Cursor<S>) {
        // The open steps are a stack: what is known of the lowest ones stays true as long as they
        // are there.
        self.barren = self.barren.min(self.open.len());
        while self.barren + 1 < self.open.len() {
            let Open { len, choice } = self.open[self.barren];
            let preemptions = cursor.preemptions_with_at(len as usize, choice.thread);
            if self.extent.preemptions.is_none_or(|bound| preemptions <= bound) {
                self.open.remove(self.barren);
                let weight = self
                    .extent
                    .left(preemptions)
                    .map_or(0.0, |left| self.weights.weigh(len as usize, left));
                let steps = (0..len as usize).map(|at| cursor.choice(at)).collect();
                return self.pool.give(Work::Given(steps, choice, weight));
            }
            self.barren += 1;
        }
    }

    /// Opens the steps from where the cursor stands, if there are any.
    fn arrive<S: System>(
        &mut self,
        cursor: &mut Cursor<S>,
        weight: f64,
        visitor: &mut impl Visitor<S>,
    ) -> Result<(), Stop<S::Need>> {
        let enabled = cursor.enabled();
        if enabled.is_empty() {
            self.leave(cursor, weight, visitor);
            return visitor.end(cursor);
        }
        let len = cursor.len() as u32;
        if self.extent.steps.is_some_and(|most| len >= most) {
            self.cut = true;
            self.leave(cursor, weight, visitor);
            return visitor.cut(cursor, Cut::Steps);
        }
        // The last that is opened is the first that is taken.
        let running = cursor.running().filter(|&running| enabled.contains(running));
        let others = running.map_or(enabled, |running| enabled.without(running));
        let from = self.open.len();
        if let Some(running) = running {
            self.open_thread(cursor, len, running);
        }
        for thread in others.iter() {
            self.open_thread(cursor, len, thread);
        }
        self.open[from..].reverse();
        if self.weights.on {
            let left = |open: &Open| self.extent.left(cursor.preemptions_with(open.choice.thread));
            self.weights.enter(len as usize, weight, self.open[from..].iter().filter_map(left));
        }
        Ok(())
    }

    /// Opens the steps of a thread, its first alternative first. One by one, which is faster than
    /// to extend by so few.
    #[inline]
    fn open_thread<S: System>(&mut self, cursor: &Cursor<S>, len: u32, thread: ThreadId) {
        for choice in cursor.choices(thread) {
            self.open.push(Open { len, choice });
        }
    }

    /// An execution has come to its end, or is cut: says what it weighs.
    fn leave<S: System>(
        &mut self,
        cursor: &Cursor<S>,
        mut weight: f64,
        visitor: &mut impl Visitor<S>,
    ) {
        if self.weights.is_first(cursor.len()) && self.extent.preemptions.is_some() {
            let left = |at: usize, thread| self.extent.left(cursor.preemptions_with_at(at, thread));
            let others = |at: usize| {
                let open = self.open.iter().filter(|open| open.len as usize == at);
                open.filter_map(|open| left(at, open.choice.thread)).collect()
            };
            weight = self.weights.weigh_again(
                cursor.len(),
                |at| left(at, cursor.choice(at).thread).unwrap_or(0),
                others,
            );
        }
        visitor.weighed(weight);
    }
}

/// Moves the cursor to the end of these steps. Says how many of them it did not have to take.
fn go<S: System>(
    cursor: &mut Cursor<S>,
    steps: &[Choice],
    visitor: &mut impl Visitor<S>,
) -> Result<usize, Stop<S::Need>> {
    let common =
        (0..cursor.len()).zip(steps).take_while(|&(at, &step)| cursor.choice(at) == step).count();
    cursor.rewind(common);
    for &choice in &steps[common..] {
        // What the step may show was told when it was taken for the first time, except that it may
        // not be what it was.
        let failure = if cursor.can(choice) {
            cursor.step(choice)?
        } else {
            Some(Box::new(nondeterminism()))
        };
        if failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::Nondeterminism) {
            visitor.step(cursor, failure)?;
            return Err(Stop::Enough);
        }
    }
    Ok(common)
}
