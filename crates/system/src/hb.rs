//! The happens-before graph of an execution, and its fingerprint.
//!
//! **Paper.** cb-por, sections 2 and 3.3: executions are equivalent iff they have the same
//! happens-before graph. The set of a graph's actions determines the graph, so the set can
//! represent it and be hashed action by action.
//!
//! **Guarantees.** [`HbGraph::key`] is equal for two executions of a program iff swapping adjacent
//! independent steps turns one into the other. [`HbGraph::fingerprint`] is a function of the key.
//! If the mixer is as good as random, the probability that any two of 10⁹ different keys have the
//! same fingerprint is below 2·10⁻²¹. Both are deterministic: they use no address, no order of
//! first use and no seed. Both require that threads and locations have the same names in equivalent
//! executions, and that a footprint contains what its step waited for.
//!
//! **Map.**
//!
//! | paper | here |
//! | --- | --- |
//! | action (t, n, (o, v, m)) | [`HbAction`] |
//! | happens-before graph of a state | [`HbGraph`] |
//! | set of actions, as a key | [`HbKey`] |
//! | hash of a state | [`Fingerprint`] |
//!
//! **Deviations.**
//!
//! 1. An action has *several* accesses, because a statement or an atomic block touches more than
//!    one variable. Reads and writes are then per location, and the set of actions still determines
//!    the graph.
//! 2. The number of the alternative is part of an action. The paper's threads are deterministic;
//!    ours choose, and two choices with the same accesses lead to different states.
//! 3. A write is ordered after *all* reads since the last write, not only after the last access.
//!    The paper's section 2 says the latter, its definition in section 3.3 the former.
//! 4. 128 bits and a mixer that is not linear over GF(2), instead of 32 bits and a comparison of
//!    the states. With a linear hash the two orders of two racing writes have the same fingerprint.
//!
//! **Cost.** A step with `a` accesses in a program of `n` threads takes O(a·n) time and memory for
//! the clocks and O(a) for the fingerprint. Removing it takes O(a).
//!
//! # Two happens-before relations
//!
//! An access is either *synchronisation* (an object, or a variable that threads share without a
//! lock on purpose) or *data* (a plain variable). A location is one or the other throughout an
//! execution: [`LocationKind`](crate::LocationKind).
//!
//! - The order of **all** dependent steps, which this graph records, defines which executions are
//!   equivalent. Reductions and fingerprints of states use it.
//! - The order of the **synchronisation** alone defines which data accesses the program itself
//!   orders. Race detection uses it: a race is two accesses to one plain variable, at least one of
//!   them a write, that this relation leaves unordered. The first relation orders any two
//!   conflicting accesses by the schedule at hand, and so hides every race.
//!
//! If an execution has no race, a context switch before a data access has the same effect as a
//! switch before the next synchronisation (paper icb, section 3.1).

use smallvec::SmallVec;

use crate::clock::Epoch;
use crate::clock_table::{ClockRow, ClockTable};
use crate::fingerprint::{Fingerprint, Mixer};
use crate::footprint::{Access, Footprint, Location};
use crate::schedule::Choice;
use crate::thread::ThreadId;

/// One access of an action, with the number of the write that it makes or observes. The writes of a
/// location are numbered from 1; 0 is the initial value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NumberedAccess {
    /// The location accessed.
    pub location: Location,
    /// Whether the access reads or writes.
    pub access: Access,
    /// For a write its own number, for a read the number of the write that it observes.
    pub write: u32,
}

/// A step of an execution, independent of its position in the execution: the paper's action.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HbAction {
    /// The thread that takes the step.
    pub thread: ThreadId,
    /// The number of the step within its thread, from 1. Without it, two reads of the same write by
    /// one thread would be the same action and would cancel each other in the fingerprint.
    pub time: u32,
    /// The alternative that the thread takes.
    pub alternative: u32,
    /// The accesses, in ascending order of their locations.
    pub accesses: SmallVec<[NumberedAccess; 4]>,
}

impl HbAction {
    /// The action's contribution to the fingerprint of every execution that contains it.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut naming = Naming::new(self.epoch(), self.alternative, self.accesses.len());
        self.accesses.iter().for_each(|&access| naming.add(access));
        naming.0.finish()
    }

    /// The step as a vector clock identifies it.
    pub fn epoch(&self) -> Epoch {
        Epoch { thread: self.thread, time: self.time }
    }
}

/// Computes the fingerprint of an action access by access.
struct Naming(Mixer);

impl Naming {
    /// Starts with an action that has `accesses` accesses.
    #[inline]
    fn new(Epoch { thread, time }: Epoch, alternative: u32, accesses: usize) -> Naming {
        let mut mixer = Mixer::new();
        mixer.absorb(u64::from(time) << 32 | thread.index() as u64);
        mixer.absorb(u64::from(alternative) << 32 | accesses as u64);
        Naming(mixer)
    }

    /// Absorbs the next access.
    #[inline]
    fn add(&mut self, NumberedAccess { location, access, write }: NumberedAccess) {
        debug_assert!(write < 1 << 31, "an execution has fewer than 2³¹ steps");
        self.0.absorb(
            u64::from(location.0) << 32
                | u64::from(write) << 1
                | u64::from(access == Access::Write),
        );
    }
}

/// The exact identity of a happens-before graph: the set of its actions. For tests, and where a
/// collision is unacceptable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HbKey(Vec<HbAction>);

/// One access of the execution, and the state of its location after it.
#[derive(Clone, Copy, Debug)]
struct Touch {
    location: Location,
    access: Access,
    /// The number of writes of the location so far, including this access if it is one.
    write: u32,
    /// The last write of the location so far, including this access, as an index into
    /// [`HbGraph::touches`].
    last_write: Option<u32>,
    /// The previous access of the same location.
    previous: Option<u32>,
    /// The step of the access.
    step: u32,
    /// The clock that the next write of the location joins: the last write and all reads since.
    frontier: u32,
}

impl Touch {
    #[inline]
    fn numbered(&self) -> NumberedAccess {
        NumberedAccess { location: self.location, access: self.access, write: self.write }
    }
}

#[derive(Clone, Copy, Debug)]
struct HbStep {
    thread: ThreadId,
    time: u32,
    alternative: u32,
    /// The previous step of the same thread.
    previous: Option<u32>,
    /// The index of its first access in [`HbGraph::touches`]. Its accesses end where the next
    /// step's begin.
    touches: u32,
    /// Its clock. The clocks of all later steps and accesses have higher indices.
    clock: u32,
    /// The fingerprint of the graph up to and including this step.
    name: Fingerprint,
}

/// The happens-before graph of an execution. Steps are added and removed at its end.
#[derive(Clone, Debug, Default)]
pub struct HbGraph {
    steps: Vec<HbStep>,
    /// The last step of each thread.
    last: Vec<Option<u32>>,
    /// All accesses in the order of the execution, and the index of the last one of each location.
    /// Locations are small numbers, so a vector is a good map.
    touches: Vec<Touch>,
    latest: Vec<Option<u32>>,
    clocks: ClockTable,
}

impl HbGraph {
    /// The graph of the execution that has no steps.
    pub fn new() -> HbGraph {
        HbGraph::default()
    }

    /// The number of steps.
    #[inline]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there are no steps.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Appends a step.
    #[inline]
    pub fn push(&mut self, choice: Choice, footprint: &Footprint) {
        let previous = self.last_step(choice.thread);
        self.push_after(choice, footprint, previous, previous);
    }

    /// Appends the first step of a thread that step `start` spawned. It happens after `start`
    /// whatever it touches. Its action does not record that, and need not: in every execution a
    /// thread begins after it was spawned.
    pub fn push_first(&mut self, choice: Choice, footprint: &Footprint, start: usize) {
        debug_assert!(self.last_step(choice.thread).is_none(), "a thread has one first step");
        self.push_after(choice, footprint, None, Some(start as u32));
    }

    /// Appends a step that happens after `previous` (the thread's previous step), after step
    /// `after`, and after every step that it depends on.
    fn push_after(
        &mut self,
        choice: Choice,
        footprint: &Footprint,
        previous: Option<u32>,
        after: Option<u32>,
    ) {
        let Choice { thread, alternative } = choice;
        let clock = self.clocks.push(after.map(|at| self.steps[at as usize].clock));
        let time = previous.map_or(0, |at| self.steps[at as usize].time) + 1;
        let (step, touches) = (self.steps.len() as u32, self.touches.len() as u32);
        let mut naming =
            Naming::new(Epoch { thread, time }, alternative, footprint.accesses().len());
        // Whether the step reads a location that another step has read since its last write. The
        // next write must then be ordered after both reads.
        let mut reads_again = false;
        for &(location, access) in footprint.accesses() {
            let (at, here) = (location.0 as usize, self.touches.len() as u32);
            if self.latest.len() <= at {
                self.latest.resize(at + 1, None);
            }
            let previous = self.latest[at].replace(here);
            let (mut write, mut last_write) = (0, None);
            if let Some(before) = previous {
                let before = &self.touches[before as usize];
                (write, last_write) = (before.write, before.last_write);
                match access {
                    Access::Write => self.clocks.join(before.frontier),
                    Access::Read => {
                        reads_again |= before.access == Access::Read;
                        // The frontier of a write is the write's own clock.
                        if let Some(write) = last_write {
                            self.clocks.join(self.touches[write as usize].frontier);
                        }
                    }
                }
            }
            if access == Access::Write {
                (write, last_write) = (write + 1, Some(here));
            }
            naming.add(NumberedAccess { location, access, write });
            self.touches.push(Touch {
                location,
                access,
                write,
                last_write,
                previous,
                step,
                frontier: clock,
            });
        }
        self.clocks.set(thread, time);
        if reads_again {
            self.gather_reads(touches as usize, clock);
        }
        if self.last.len() <= thread.index() {
            self.last.resize(thread.index() + 1, None);
        }
        self.last[thread.index()] = Some(step);
        let name = self.fingerprint() ^ naming.0.finish();
        self.steps.push(HbStep { thread, time, alternative, previous, touches, clock, name });
    }

    /// Makes the next write of each location ordered after all reads since the last write, not only
    /// after those of the step whose clock is `clock` and whose accesses start at `touches`.
    fn gather_reads(&mut self, touches: usize, clock: u32) {
        for at in touches..self.touches.len() {
            let Touch { access: Access::Read, previous: Some(previous), .. } = self.touches[at]
            else {
                continue;
            };
            let Touch { frontier, .. } = self.touches[previous as usize];
            // The step's clock already includes the frontier of a write, and often those of reads.
            if !self.clocks.get(frontier).at_most(self.clocks.get(clock)) {
                self.touches[at].frontier = self.clocks.push(Some(clock));
                self.clocks.join(frontier);
            }
        }
    }

    /// Removes the last step. Returns whether there was one.
    pub fn pop(&mut self) -> bool {
        let len = self.len();
        self.truncate(len.saturating_sub(1));
        len > 0
    }

    /// Removes steps from the end until `len` are left.
    pub fn truncate(&mut self, len: usize) {
        let Some(&HbStep { touches, clock, .. }) = self.steps.get(len) else { return };
        for touch in self.touches[touches as usize..].iter().rev() {
            self.latest[touch.location.0 as usize] = touch.previous;
        }
        for step in self.steps[len..].iter().rev() {
            self.last[step.thread.index()] = step.previous;
        }
        self.touches.truncate(touches as usize);
        self.steps.truncate(len);
        self.clocks.truncate(clock);
    }

    /// The fingerprint of the graph, equal for all its linearisations. The empty graph has
    /// fingerprint 0.
    #[inline]
    pub fn fingerprint(&self) -> Fingerprint {
        self.steps.last().map_or_else(Fingerprint::default, |step| step.name)
    }

    /// The exact identity of the graph.
    pub fn key(&self) -> HbKey {
        let mut actions: Vec<HbAction> = (0..self.len()).map(|at| self.step(at)).collect();
        actions.sort_unstable();
        HbKey(actions)
    }

    /// The action of step `at`, counted from 0 in the order of the execution.
    pub fn step(&self, at: usize) -> HbAction {
        let &HbStep { thread, time, alternative, .. } = &self.steps[at];
        let accesses = self.touches_of(at).iter().map(Touch::numbered).collect();
        HbAction { thread, time, alternative, accesses }
    }

    /// Step `at` as a vector clock identifies it.
    #[inline]
    pub fn epoch(&self, at: usize) -> Epoch {
        let &HbStep { thread, time, .. } = &self.steps[at];
        Epoch { thread, time }
    }

    /// The thread of step `at`.
    #[inline]
    pub fn thread(&self, at: usize) -> ThreadId {
        self.steps[at].thread
    }

    /// The accesses of step `at`.
    #[inline]
    fn touches_of(&self, at: usize) -> &[Touch] {
        let end = self.steps.get(at + 1).map_or(self.touches.len(), |next| next.touches as usize);
        &self.touches[self.steps[at].touches as usize..end]
    }

    /// The clock of step `at`: all steps that happen before it, and the step itself.
    #[inline]
    pub fn step_clock(&self, at: usize) -> ClockRow<'_> {
        self.clocks.get(self.steps[at].clock)
    }

    /// The clock of the last step of `thread`, if the thread has taken one.
    #[inline]
    pub fn clock(&self, thread: ThreadId) -> Option<ClockRow<'_>> {
        self.last_step(thread).map(|at| self.step_clock(at as usize))
    }

    /// Whether step `earlier` happens before step `later`. No step happens before itself.
    #[inline]
    pub fn happens_before(&self, earlier: usize, later: usize) -> bool {
        earlier != later && self.step_clock(later).includes(self.epoch(earlier))
    }

    /// The steps later than `at` that do not happen after it.
    #[inline]
    pub fn not_after(&self, at: usize) -> impl Iterator<Item = usize> + Clone {
        let Epoch { thread, time } = self.epoch(at);
        let later = self.steps.iter().enumerate().skip(at + 1);
        later.filter(move |(_, step)| self.clocks.time(step.clock, thread) < time).map(|(at, _)| at)
    }

    /// The steps before step `at` (or of the whole graph, if `at` is its length) that an access of
    /// `at` to `location` directly follows, latest first: the last write, and for a write also the
    /// reads since. Every other step that the access depends on happens before one of these.
    pub fn frontier(
        &self,
        at: usize,
        location: Location,
        access: Access,
    ) -> impl Iterator<Item = usize> {
        let mut next = self.touched_before(at, location);
        std::iter::from_fn(move || {
            let mut touch = &self.touches[next? as usize];
            if access == Access::Read {
                touch = &self.touches[touch.last_write? as usize];
            }
            next = touch.previous.filter(|_| touch.access == Access::Read);
            Some(touch.step as usize)
        })
    }

    /// Like [`HbGraph::frontier`], for an access after a part of the graph. The part must contain
    /// everything that happens before each of its steps.
    pub fn frontier_of(
        &self,
        part: impl Fn(usize) -> bool,
        location: Location,
        access: Access,
    ) -> impl Iterator<Item = usize> {
        let mut next = self.latest.get(location.0 as usize).copied().flatten();
        std::iter::from_fn(move || {
            loop {
                let touch = &self.touches[next? as usize];
                next = touch.previous;
                if part(touch.step as usize) && access.conflicts(touch.access) {
                    next = next.filter(|_| touch.access == Access::Read);
                    return Some(touch.step as usize);
                }
            }
        })
    }

    /// The last access of `location` before step `at`.
    fn touched_before(&self, at: usize, location: Location) -> Option<u32> {
        if at < self.len()
            && let Some(touch) = self.touches_of(at).iter().find(|touch| touch.location == location)
        {
            return touch.previous;
        }
        let mut next = self.latest.get(location.0 as usize).copied().flatten();
        while let Some(touch) =
            next.map(|next| &self.touches[next as usize]).filter(|touch| touch.step as usize >= at)
        {
            next = touch.previous;
        }
        next
    }

    /// The previous step of the thread of step `at`.
    #[inline]
    pub fn previous(&self, at: usize) -> Option<usize> {
        self.steps[at].previous.map(|before| before as usize)
    }

    /// The last step of `thread` in the part of the graph that `part` selects.
    pub fn last_of(&self, thread: ThreadId, part: impl Fn(usize) -> bool) -> Option<usize> {
        let mut last = self.last_step(thread).map(|at| at as usize);
        while let Some(at) = last.filter(|&at| !part(at)) {
            last = self.previous(at);
        }
        last
    }

    #[inline]
    fn last_step(&self, thread: ThreadId) -> Option<u32> {
        self.last.get(thread.index()).copied().flatten()
    }
}
