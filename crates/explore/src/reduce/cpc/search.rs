//! The search of the paper's Figures 6 and 7. Lines are those of Figure 6.
//!
//! It pauses between two steps. The remaining work is the table, the stack, and the discipline.

use preempt_system::{Choice, Failure, Model, Mover, Schedule, Step, StepLog, Stepper, ThreadId};

use super::discipline::{Breach, Discipline};
use super::random_walks::observe_random_walks;
use super::table::{Record, Table};
use super::{Config, Propagation, Variant};
use crate::codec::{Damaged, Reserved, save_fields};
use crate::engine::control::SearchControl;
use crate::engine::distinct_failures::DistinctFailures;
use crate::engine::execution::Stop;
use crate::engine::expand::{Checks, Expander};
use crate::engine::explored::Explored;
use crate::engine::mutants::seeded;
use crate::engine::observer::Follower;
use crate::plan::coverage::Coverage;

/// Steps between two polls of the limits.
const POLL_INTERVAL: u64 = 1 << 12;

/// The forced ends that are kept.
const FORCED: usize = 16;

/// A state on the stack and the thread that moves from it: the paper's `TraversalInfo`.
struct Entry {
    record: Record,
    thread: ThreadId,
    /// The number of threads that were scheduled here, including this one.
    scheduled: u8,
    /// Whether all threads are scheduled here: the paper's Xend.
    ends: bool,
    /// Whether the state was entered by a right mover.
    right: bool,
    /// Whether the thread cannot take a step, or one of its alternatives.
    stuck: bool,
    alternative: u32,
    /// The alternatives known so far.
    alternatives: u32,
}

save_fields!(Entry { record, thread, scheduled, ends, right, stuck, alternative, alternatives });

/// Searches `model`. Also returns where the first transactions were ended by force, and the number
/// of restarts.
pub(super) fn search<M: Model>(
    model: &M,
    config: Config,
    keep_going: bool,
    control: &SearchControl<'_>,
) -> (Explored, Vec<Schedule>, u64) {
    match model.shape().words {
        0 => unreachable!("a state has at least one word"),
        1 => search_words::<M, 2>(model, config, keep_going, control),
        2 => search_words::<M, 3>(model, config, keep_going, control),
        3 => search_words::<M, 4>(model, config, keep_going, control),
        _ => search_words::<M, 0>(model, config, keep_going, control),
    }
}

/// The same for keys of `W` words; of any number of words if `W` is 0.
fn search_words<M: Model, const W: usize>(
    model: &M,
    config: Config,
    keep_going: bool,
    control: &SearchControl<'_>,
) -> (Explored, Vec<Schedule>, u64) {
    let shape = model.shape();
    let resumed = control.resume(|from| {
        let (breaches, discipline, progress): (_, Discipline, Progress<W>) = from.get()?;
        if progress.fits(shape.words + 1) {
            Ok((breaches, discipline, progress))
        } else {
            Err(Damaged)
        }
    });
    let (first, mut discipline, mut progress) = match resumed {
        Some((breaches, discipline, progress)) => (breaches, discipline, Some(progress)),
        None => {
            let mut discipline = Discipline::new(shape.threads);
            observe_random_walks(model, &mut discipline);
            (0, discipline, None)
        }
    };
    for breaches in first.. {
        let mut search = Search::<M, W>::new(model, config, keep_going, control, &mut discipline);
        let begun = match progress.take() {
            Some(progress) => {
                search.progress = progress;
                Ok(())
            }
            None => search.begin(),
        };
        let done = begun.and_then(|()| search.run(breaches));
        if search.breached {
            control.discard_states(search.progress.reported);
            search.discipline.restart();
            continue;
        }
        if let Err(stop) = done {
            control.stop(stop);
        }
        return (search.explored(), std::mem::take(&mut search.progress.forced), breaches);
    }
    unreachable!("a location is given up once")
}

struct Search<'a, M: Model + 'a, const W: usize> {
    config: Config,
    keep_going: bool,
    control: &'a SearchControl<'a>,
    discipline: &'a mut Discipline,
    model: &'a M,
    stepper: M::Stepper<'a>,
    threads: usize,
    words: usize,
    /// The key of the state after the step.
    next: Vec<u64>,
    log: StepLog,
    poll_interval: u64,
    follower: Option<&'a dyn Follower>,
    progress: Progress<W>,
    /// Whether a location turned out not to be protected although the search has relied on it.
    breached: bool,
}

/// The progress of the search.
struct Progress<const W: usize> {
    table: Table<W>,
    stack: Reserved<Entry>,
    failures: DistinctFailures,
    seen: Coverage,
    forced: Vec<Schedule>,
    /// The states and the steps that the control knows of.
    reported: u64,
    polled: u64,
}

save_fields!([const W: usize] Progress<W> {
    table, stack, failures, seen, forced, reported, polled,
});

impl<const W: usize> Progress<W> {
    fn new(words: usize) -> Progress<W> {
        Progress {
            table: Table::new(words),
            stack: Reserved::default(),
            failures: DistinctFailures::default(),
            seen: Coverage::default(),
            forced: Vec::new(),
            reported: 0,
            polled: 0,
        }
    }

    /// Whether it belongs to keys of `words` words. Checked for what a checkpoint contains.
    fn fits(&self, words: usize) -> bool {
        let known = |entry: &Entry| u64::from(entry.record) < self.table.len();
        self.table.has_width(words) && self.stack.iter().all(known)
    }
}

impl<'a, M: Model, const W: usize> Search<'a, M, W> {
    fn new(
        model: &'a M,
        config: Config,
        keep_going: bool,
        control: &'a SearchControl<'a>,
        discipline: &'a mut Discipline,
    ) -> Self {
        let shape = model.shape();
        Search {
            config,
            keep_going,
            control,
            discipline,
            model,
            stepper: model.stepper(),
            threads: shape.threads,
            words: shape.words,
            next: vec![0; shape.words + 1],
            log: StepLog::new(),
            poll_interval: control.poll_interval(POLL_INTERVAL),
            follower: control.follower(),
            progress: Progress::new(shape.words + 1),
            breached: false,
        }
    }

    /// Continues the search after `breaches` restarts.
    fn run(&mut self, breaches: u64) -> Result<(), Stop> {
        while let Some(entry) = self.progress.stack.last() {
            if self.control.is_pausing() {
                self.control.pause(|to| {
                    to.put(&breaches);
                    to.put(&*self.discipline);
                    to.put(&self.progress);
                });
                if self.control.stopped() {
                    return Err(Stop::Enough);
                }
            }
            if entry.alternative < entry.alternatives {
                self.step()?;
            } else if self.retire() {
                return Ok(());
            }
        }
        self.report();
        if self.control.stopped() { Err(Stop::Enough) } else { Ok(()) }
    }

    /// L0 to L2: the initial state, in which all threads are scheduled, the first of them first.
    fn begin(&mut self) -> Result<(), Stop> {
        let checks = Checks { deadlock: false, keep_going: self.keep_going };
        let initial = Expander::new(self.model.stepper(), self.model.shape(), checks).initial()?;
        self.next[..self.words].copy_from_slice(&initial.state);
        self.next[self.words] = if seeded!(StartsRight) { u64::MAX } else { 0 };
        let (record, _) = self.progress.table.insert(&self.next)?;
        self.progress.seen.failed = initial.failures.len() as u64;
        for failure in initial.failures {
            self.fail(failure)?;
        }
        self.progress.table.complete(record);
        self.push(record, ThreadId::new(0), Mover::None);
        self.top().ends = true;
        Ok(())
    }

    fn top(&mut self) -> &mut Entry {
        self.progress.stack.last_mut().expect("the stack is not empty")
    }

    fn push(&mut self, record: Record, thread: ThreadId, by: Mover) {
        self.progress.table.enter_stack(record, thread);
        self.progress.stack.push(Entry {
            record,
            thread,
            scheduled: 1,
            ends: false,
            right: by.is_right(),
            stuck: false,
            alternative: 0,
            alternatives: 1,
        });
        let depth = self.progress.stack.len() as u32 - 1;
        self.progress.seen.depth = self.progress.seen.depth.max(depth);
    }

    /// L6 to L16: takes the next alternative of the thread on top.
    #[inline(always)]
    fn step(&mut self) -> Result<(), Stop> {
        let entry = self.progress.stack.last_mut().expect("the stack is not empty");
        let (record, thread) = (entry.record, entry.thread);
        let choice = Choice { thread, alternative: entry.alternative };
        entry.alternative += 1;
        self.next.copy_from_slice(self.progress.table.key(record));
        self.log.clear();
        let step = self.stepper.step_with_log(&mut self.next[..self.words], choice, &mut self.log);
        let mut failed = None;
        match step {
            Step::Moved { alternatives } => {
                entry.alternatives = entry.alternatives.max(alternatives)
            }
            Step::Failed(failure) => {
                entry.alternatives = entry.alternatives.max(self.stepper.alternatives());
                failed = Some(failure);
            }
            Step::Blocked { .. } | Step::Ended | Step::Vacant => {
                entry.stuck = true;
                if choice.alternative == 0 {
                    self.progress.seen.blocked += u64::from(matches!(step, Step::Blocked { .. }));
                    self.progress.seen.ended += u64::from(step == Step::Ended);
                }
                // The attempt has read what the thread waits for.
                self.class(record, thread)?;
                return Ok(());
            }
            Step::Absent => {
                assert!(
                    choice.alternative > 0,
                    "a thread that is neither blocked nor ended has an alternative 0"
                );
                return Ok(());
            }
            Step::Full(capacity) => return Err(Stop::Restart(capacity)),
        }
        self.progress.seen.transitions += 1;
        if let Some(follower) = self.follower {
            follower.run(Some(&self.progress.table.key(record)[..self.words]), &[choice]);
        }
        let class = self.class(record, thread)?;
        let before = self.progress.table.phase(record, thread);
        let after = class.is_right() && (before || !class.is_left());
        self.next[self.words] &= !(1 << thread.index());
        self.next[self.words] |= u64::from(after) << thread.index();
        if !before && !class.is_left() {
            // L7 and L8: the step begins another transaction.
            self.end_transaction();
        }
        if let Some(failure) = failed {
            self.progress.seen.failed += 1;
            self.fail(*failure)?;
        }
        self.arrive((before, after), thread, class)?;
        if self.progress.seen.transitions - self.progress.polled >= self.poll_interval {
            self.report();
        }
        if self.control.stopped() { Err(Stop::Enough) } else { Ok(()) }
    }

    /// L9 to L15: the state in `next`, entered by a step of this class.
    #[inline(always)]
    fn arrive(
        &mut self,
        (before, after): (bool, bool),
        thread: ThreadId,
        class: Mover,
    ) -> Result<(), Stop> {
        let (record, fresh) = self.progress.table.insert(&self.next)?;
        if fresh {
            let commits_again = class == Mover::Left && !before;
            let entered = if seeded!(CommitsOnce) && commits_again { Mover::Both } else { class };
            self.push(record, thread, entered);
            return Ok(());
        }
        let on_stack = self.progress.table.is_on_stack(record);
        if self.config.variant.completes() {
            let table = &self.progress.table;
            let complete = table.is_complete(record)
                && !seeded!(TableCopies)
                && !(seeded!(SameThreadOnly) && table.thread(record) != thread);
            if complete || seeded!(StackCompletes) && on_stack {
                self.complete();
            }
        } else if self.config.variant == Variant::CycleDetection && on_stack && !before && !after {
            self.end_transaction();
        }
        Ok(())
    }

    /// The class of the step, or of the attempt, that was just made.
    #[inline(always)]
    fn class(&mut self, record: Record, thread: ThreadId) -> Result<Mover, Stop> {
        let before = &self.progress.table.key(record)[..self.words];
        match self.discipline.class(&self.stepper, before, thread, &self.log) {
            Err(Breach) if seeded!(BreachGoesOn) => Ok(Mover::None),
            Ok(_) if seeded!(LocalsMoveNowhere) && self.log.iter().next().is_none() => {
                Ok(Mover::None)
            }
            Err(Breach) => {
                self.breached = true;
                Err(Stop::Enough)
            }
            Ok(class) => Ok(class),
        }
    }

    /// Schedules all threads in the state on top.
    #[inline(always)]
    fn end_transaction(&mut self) {
        self.top().ends = true;
        self.complete();
    }

    /// The state on top is complete, and so are those below it down to the first that was complete
    /// before.
    #[inline(always)]
    fn complete(&mut self) {
        let lowest = match self.config.propagation {
            Propagation::AtOnce if self.config.variant.completes() => 0,
            _ => self.progress.stack.len() - 1,
        };
        for entry in self.progress.stack[lowest..].iter().rev() {
            if self.progress.table.is_complete(entry.record) {
                return;
            }
            self.progress.table.complete(entry.record);
        }
    }

    /// L18 to L27: the thread on top is done here. Returns whether the search ends early.
    fn retire(&mut self) -> bool {
        let Entry { record, thread, right, stuck, ends, .. } = *self.top();
        if !ends && !self.progress.table.phase(record, thread) {
            let incomplete = !self.progress.table.is_complete(record);
            let stuck = stuck && !seeded!(StuckGoesOn);
            let forced = match self.config.variant {
                Variant::WithoutL19 => incomplete,
                Variant::Printed => incomplete && !right,
                Variant::Repaired => incomplete && (!right || stuck),
                Variant::CycleDetection | Variant::Unsound => stuck,
            };
            if forced {
                if !stuck && self.progress.forced.len() < FORCED {
                    self.progress.forced.push(self.schedule(self.progress.stack.len() - 1));
                }
                self.end_transaction();
            }
        }
        let mut entry = self.progress.stack.pop().expect("the stack is not empty");
        if self.config.variant.completes() && self.progress.table.is_complete(record) {
            match self.progress.stack.last() {
                Some(below) => self.progress.table.complete(below.record),
                None if seeded!(EmptyStackEnds) => return true,
                None => {}
            }
        }
        if entry.ends && usize::from(entry.scheduled) < self.threads {
            entry.thread = ThreadId::new((thread.index() + 1) % self.threads);
            entry.scheduled += 1;
            (entry.alternative, entry.alternatives, entry.stuck) = (0, 1, false);
            entry.ends = !seeded!(UpdateForgets);
            self.progress.table.enter_stack(record, entry.thread);
            self.progress.stack.push(entry);
        } else {
            self.progress.table.leave_stack(record);
            self.progress.seen.expanded += 1;
        }
        false
    }

    /// The steps that were taken last from the lowest entries.
    #[cold]
    fn schedule(&self, entries: usize) -> Schedule {
        let step =
            |entry: &Entry| Choice { thread: entry.thread, alternative: entry.alternative - 1 };
        Schedule::new(self.progress.stack[..entries].iter().map(step).collect())
    }

    /// Records a failure. Its schedule is the stack, whose last step is the one that was just
    /// taken.
    #[cold]
    fn fail(&mut self, failure: Failure) -> Result<(), Stop> {
        if self.progress.failures.record_shortest(failure, self.schedule(self.progress.stack.len()))
        {
            self.control.count_failure();
        }
        if self.keep_going {
            return Ok(());
        }
        self.control.stop(Stop::Finding);
        Err(Stop::Enough)
    }

    /// Reports progress to the control.
    #[cold]
    fn report(&mut self) {
        self.control.add_states(self.progress.table.len() - self.progress.reported);
        self.control.reach_depth(self.progress.seen.depth);
        self.control.poll_bytes(
            self.progress.seen.transitions - self.progress.polled,
            self.progress.table.bytes() + self.stack_bytes(),
        );
        (self.progress.reported, self.progress.polled) =
            (self.progress.table.len(), self.progress.seen.transitions);
    }

    fn stack_bytes(&self) -> usize {
        self.progress.stack.capacity() * size_of::<Entry>()
    }

    fn explored(&mut self) -> Explored {
        Explored {
            seen: Coverage {
                states: self.progress.table.len(),
                frontier: u64::from(self.progress.seen.depth) + 1,
                ..self.progress.seen
            },
            failures: std::mem::take(&mut self.progress.failures).into_vec(),
            store_bytes: self.progress.table.bytes(),
            frontier_bytes: self.stack_bytes(),
            ..Explored::default()
        }
    }
}
