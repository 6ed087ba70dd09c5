//! The happens-before graph of an execution, and its name.
//!
//! **Paper.** cb-por, sections 2 and 3.3: executions are equivalent iff they have the same happens-before graph, and the
//! graph can be recovered from the set of its actions, so that the set can stand for it and be hashed action by action.
//!
//! **Guarantees.** [`HbGraph::key`] is equal for two executions of a program iff one can be got from the other by swapping
//! adjacent independent steps. [`HbGraph::fingerprint`] is a function of the key; different keys among a thousand million
//! have a common fingerprint with odds below 2·10⁻²¹, if the mixer is as good as random. Both are deterministic: no
//! address, no order of first use, no seed. They need names of threads and locations that are equal in equivalent
//! executions, and footprints that contain what a step waited for.
//!
//! **Map.**
//!
//! | paper | here |
//! | --- | --- |
//! | action (t, n, (o, v, m)) | [`HbAction`] |
//! | happens-before graph of a state | [`HbGraph`] |
//! | set of actions, as a key | [`HbKey`] |
//! | hash of a state | [`Fingerprint`] |
//! | hash of next(s, t) without executing it | [`HbGraph::fingerprint_with`] |
//!
//! **Deviations.**
//!
//! 1. An action has *several* accesses: a statement or an atomic block touches more than one variable. Reads and writes are
//!    then per location, and the set of actions still determines the graph.
//! 2. The number of the alternative is part of an action. The paper's threads are deterministic; ours choose, and two
//!    choices with the same accesses lead to different states.
//! 3. A write is ordered after *all* reads since the last write, not only after the last access: the paper's text says
//!    the latter in section 2, its definition in 3.3 the former.
//! 4. 128 bits and a mixer that is not linear over GF(2), instead of 32 bits and a comparison of the states. Sums of the
//!    same terms in another order must differ: with a linear hash the two orders of two racing writes look the same.
//!
//! **Cost.** A step with `a` accesses in a program of `n` threads: O(a·n) time and memory for the clocks, O(a) for the
//! fingerprint; taken back in O(a).

use smallvec::SmallVec;

use crate::clock::{Epoch, VectorClock};
use crate::fingerprint::{Fingerprint, Mixer};
use crate::footprint::{Access, Footprint, Location};
use crate::schedule::Choice;
use crate::thread::ThreadId;

/// One access of an action: the location, how it is touched, and the number of the write that is made or seen. Writes
/// of a location are numbered from 1; 0 is its initial value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NumberedAccess {
    /// What is touched.
    pub location: Location,
    /// How.
    pub access: Access,
    /// The number of the write.
    pub write: u32,
}

/// A step of an execution, without its place in the execution: the paper's action.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HbAction {
    /// Whose step it is.
    pub thread: ThreadId,
    /// Which of the thread's steps, from 1. Without it, two reads of the same write by one thread would be one action,
    /// and would cancel each other in the fingerprint.
    pub time: u32,
    /// The alternative taken.
    pub alternative: u32,
    /// What is touched, in ascending order of the locations.
    pub accesses: SmallVec<[NumberedAccess; 4]>,
}

impl HbAction {
    /// The action's contribution to the fingerprint of every execution it is part of.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut mixer = Mixer::new();
        mixer.absorb(u64::from(self.time) << 32 | self.thread.index() as u64);
        mixer.absorb(u64::from(self.alternative) << 32 | self.accesses.len() as u64);
        for &NumberedAccess { location, access, write } in &self.accesses {
            debug_assert!(write < 1 << 31, "an execution has fewer than 2³¹ steps");
            mixer.absorb(u64::from(location.0) << 32 | u64::from(write) << 1 | u64::from(access == Access::Write));
        }
        mixer.finish()
    }

    /// The step as its thread's clock names it.
    pub fn epoch(&self) -> Epoch {
        Epoch { thread: self.thread, time: self.time }
    }
}

/// The exact name of a happens-before graph: the set of its actions. For tests, and where a collision is unacceptable.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HbKey(Vec<HbAction>);

/// One access of the execution, and what it left of its location.
#[derive(Clone, Debug)]
struct Touch {
    /// How many writes there were, this one included if it is one.
    writes: u32,
    /// The last write of the location, if there is one.
    last_write: Option<u32>,
    /// The access of the location before this one.
    previous: Option<u32>,
    /// Whose access it is.
    step: u32,
    access: Access,
    /// What a next write is ordered after: the last write, and all reads since.
    frontier: VectorClock,
}

#[derive(Clone, Debug)]
struct HbStep {
    action: HbAction,
    clock: VectorClock,
    /// The step of the same thread before this one.
    previous: Option<u32>,
    /// Where in [`HbGraph::touches`] its accesses begin.
    touches: u32,
    fingerprint: Fingerprint,
}

/// The happens-before graph of an execution, built and taken back step by step.
#[derive(Clone, Debug, Default)]
pub struct HbGraph {
    steps: Vec<HbStep>,
    /// The last step of each thread.
    last: Vec<Option<u32>>,
    /// All accesses, in the order of the execution, and the last one of each location. Locations are small numbers.
    touches: Vec<Touch>,
    latest: Vec<Option<u32>>,
    fingerprint: Fingerprint,
}

impl HbGraph {
    /// The graph of the execution without steps.
    pub fn new() -> HbGraph {
        HbGraph::default()
    }

    /// How many steps there are.
    #[inline]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there are no steps.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Adds a step at the end.
    pub fn push(&mut self, choice: Choice, footprint: &Footprint) {
        let previous = self.last_step(choice.thread);
        let clock = previous.map_or_else(VectorClock::new, |at| self.steps[at as usize].clock.clone());
        self.push_after(choice, footprint, previous, clock);
    }

    /// Adds the first step of a thread that the step `start` has started: it happens after that step, whatever it touches. Its
    /// action does not say so and need not: in every execution a thread begins after it was started.
    pub fn push_first(&mut self, choice: Choice, footprint: &Footprint, start: usize) {
        debug_assert!(self.last_step(choice.thread).is_none(), "a thread has one first step");
        let clock = self.steps[start].clock.clone();
        self.push_after(choice, footprint, None, clock);
    }

    fn push_after(&mut self, choice: Choice, footprint: &Footprint, previous: Option<u32>, mut clock: VectorClock) {
        let thread = choice.thread;
        for &(location, access) in footprint.accesses() {
            let last = self.latest(location);
            let before = match access {
                Access::Write => last,
                // The frontier of a write is that write's clock.
                Access::Read => last.and_then(|touch| touch.last_write).map(|at| &self.touches[at as usize]),
            };
            if let Some(touch) = before {
                clock.join(&touch.frontier);
            }
        }
        let time = clock.tick(thread).time;
        let action = self.action(choice, time, footprint);
        let (step, touches) = (self.steps.len() as u32, self.touches.len() as u32);
        for &NumberedAccess { location, access, write } in &action.accesses {
            let here = self.touches.len() as u32;
            let (last_write, frontier) = match (access, self.latest(location)) {
                (Access::Write, _) => (Some(here), clock.clone()),
                (Access::Read, None) => (None, clock.clone()),
                (Access::Read, Some(before)) => {
                    let mut frontier = before.frontier.clone();
                    frontier.join(&clock);
                    (before.last_write, frontier)
                }
            };
            let at = location.0 as usize;
            if self.latest.len() <= at {
                self.latest.resize(at + 1, None);
            }
            let previous = self.latest[at].replace(here);
            self.touches.push(Touch { writes: write, last_write, previous, step, access, frontier });
        }
        if self.last.len() <= thread.index() {
            self.last.resize(thread.index() + 1, None);
        }
        self.last[thread.index()] = Some(self.steps.len() as u32);
        let fingerprint = action.fingerprint();
        self.fingerprint ^= fingerprint;
        self.steps.push(HbStep { action, clock, previous, touches, fingerprint });
    }

    /// Takes the last step back. Returns whether there was one.
    pub fn pop(&mut self) -> bool {
        let Some(step) = self.steps.pop() else { return false };
        self.last[step.action.thread.index()] = step.previous;
        for access in step.action.accesses.iter().rev() {
            let touch = self.touches.pop().expect("every access of a step is a touch");
            self.latest[access.location.0 as usize] = touch.previous;
        }
        self.fingerprint ^= step.fingerprint;
        true
    }

    /// Takes steps back until `len` are left.
    pub fn truncate(&mut self, len: usize) {
        while self.len() > len {
            self.pop();
        }
    }

    /// The canonical name of the graph: equal for all linearisations of it. That of the empty graph is 0.
    #[inline]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The fingerprint that the graph would have with this step at its end.
    pub fn fingerprint_with(&self, choice: Choice, footprint: &Footprint) -> Fingerprint {
        let time = self.clock(choice.thread).map_or(0, |clock| clock.time(choice.thread)) + 1;
        self.fingerprint ^ self.action(choice, time, footprint).fingerprint()
    }

    /// The exact name of the graph.
    pub fn key(&self) -> HbKey {
        let mut actions: Vec<HbAction> = self.steps.iter().map(|step| step.action.clone()).collect();
        actions.sort_unstable();
        HbKey(actions)
    }

    /// The action of a step, counted from 0 in the order of the execution.
    #[inline]
    pub fn step(&self, at: usize) -> &HbAction {
        &self.steps[at].action
    }

    /// The clock of a step: all steps that happen before it, and itself.
    #[inline]
    pub fn step_clock(&self, at: usize) -> &VectorClock {
        &self.steps[at].clock
    }

    /// The clock of the last step of `thread`, if it has made one.
    pub fn clock(&self, thread: ThreadId) -> Option<&VectorClock> {
        self.last_step(thread).map(|at| &self.steps[at as usize].clock)
    }

    /// Whether one step happens before another. No step happens before itself.
    #[inline]
    pub fn happens_before(&self, earlier: usize, later: usize) -> bool {
        earlier != later && self.step_clock(later).includes(self.step(earlier).epoch())
    }

    /// How many writes of `location` there were.
    pub fn writes(&self, location: Location) -> u32 {
        self.latest(location).map_or(0, |touch| touch.writes)
    }

    /// The last access of a location.
    #[inline]
    fn latest(&self, location: Location) -> Option<&Touch> {
        let at = self.latest.get(location.0 as usize).copied().flatten()?;
        Some(&self.touches[at as usize])
    }

    /// The steps before the step `at`, or of the whole graph, that an access of it to a location comes right after, the latest first: the
    /// last write, and if it is a write itself, also the reads since. All other steps that it depends on happen before these.
    pub fn frontier(&self, at: usize, location: Location, access: Access) -> impl Iterator<Item = usize> {
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

    /// The last access of a location before the step `at`.
    fn touched_before(&self, at: usize, location: Location) -> Option<u32> {
        if let Some(step) = self.steps.get(at)
            && let Some(nth) = step.action.accesses.iter().position(|access| access.location == location)
        {
            return self.touches[step.touches as usize + nth].previous;
        }
        let mut next = self.latest.get(location.0 as usize).copied().flatten();
        while let Some(touch) = next.map(|next| &self.touches[next as usize]).filter(|touch| touch.step as usize >= at)
        {
            next = touch.previous;
        }
        next
    }

    /// The step of the same thread before a step.
    #[inline]
    pub fn previous(&self, at: usize) -> Option<usize> {
        self.steps[at].previous.map(|before| before as usize)
    }

    fn last_step(&self, thread: ThreadId) -> Option<u32> {
        self.last.get(thread.index()).copied().flatten()
    }

    fn action(&self, choice: Choice, time: u32, footprint: &Footprint) -> HbAction {
        let numbered = |&(location, access): &(Location, Access)| NumberedAccess {
            location,
            access,
            write: self.writes(location) + u32::from(access == Access::Write),
        };
        let mut accesses = SmallVec::new();
        // One by one, which is faster than to collect so few.
        footprint.accesses().iter().for_each(|access| accesses.push(numbered(access)));
        HbAction { thread: choice.thread, time, alternative: choice.alternative, accesses }
    }
}
