//! Scheduling points at synchronisation only: a model made coarser.
//!
//! **Paper.** icb, section 3.1. A step of the coarse model is a step of the fine one and all data
//! accesses of the thread that follow it, up to its next synchronisation. A thread that begins with
//! data accesses has them as its first step.
//!
//! **Guarantees.** Either some execution of the coarse model has a [data
//! race](crate::engine::race), or the coarse model has the same terminal states, deadlocks and
//! failures as the fine one, each with the same least number of preemptions (theorems 2 and 3).
//! After a race nothing is guaranteed: that is why a race is a finding. The coarse model is a model
//! like any other, so every search that is sound for the steps and footprints of models is sound
//! for it: brute force, caches of happens-before graphs and all reductions of executions
//! (`bench/tests/points` compares them all on random programs).
//!
//! **Deviations.** 1. No start event for a thread: it would only add a point at which nothing can
//! happen. 2. A race needs at least one write; the printed definition reports threads that only
//! read. 3. A step that may wait or choose begins a new step, even if it touches only plain
//! variables (`await` on a plain variable). 4. So does every access to a plain variable that some
//! thread may wait for: in the paper no thread is ever blocked on a data variable.
//!
//! **Why it is sound.** Call the fine steps of a coarse step after its first one *merged* steps.
//! Where a coarse step ends is a function of the thread's own place in its code
//! ([`Model::data_steps`]), never of shared values. So:
//!
//! 1. *Footprints are complete.* What a coarse step does and how far it goes is determined by the
//!    state of its thread and by the values of the locations in its footprint. A step of another
//!    thread that is independent of it changes neither, which is all that sleep sets, dynamic
//!    reduction, cb-por and caches of happens-before graphs assume of a model.
//! 2. *Merged steps are always possible*, have one outcome, and no thread waits for anything that
//!    they write. So a fine execution in which some coarse steps are unfinished can be extended by
//!    finishing them; this disables nothing.
//! 3. *No race, nothing lost.* Let a fine execution have no race. A merged step comes, in its
//!    thread, directly after another step of the same coarse step, and does not synchronise; so a
//!    step of another thread between the two that conflicts with it would race with it. Hence all
//!    merged steps can be moved to the left until coarse steps are in one piece: an execution of
//!    the coarse model, with no more preemptions, of which some last steps are unfinished. In a
//!    terminal state none is; before a failure they can be finished by 2. It has no more
//!    [delays](preempt_system::delay) either. A thread inside a coarse step is enabled, so the
//!    threads that are enabled in the coarse execution are enabled at the same point of the fine
//!    one. Where the fine execution goes from a to t and on to b, and t takes only steps that were
//!    moved, the coarse one goes from a to b directly, which skips no more threads than both
//!    switches together.
//! 4. *Races are found.* Take a shortest fine execution with a race: all of it but the last step g
//!    is without a race and becomes coarse by 3. Finish the unfinished coarse steps one by one. If
//!    one of the added steps conflicts with a later step of another thread, the two race, and the
//!    execution up to there is a shorter way to a race of the coarse model. Else g is still
//!    possible, because by deviation 4 no added step writes what g may wait for; and g still races,
//!    because merged steps order nothing. Races belong to happens-before graphs, so it is enough to
//!    see one execution of each.
//!
//! **What was wrong before.** A data access was merged if it could be taken *in the present state*,
//! an `await` on a plain variable among them. So a coarse step ended early or late depending on
//! what others had written, and a step that ended early did not have in its footprint what had
//! ended it: claim 1 did not hold. Reductions treated steps as independent that changed each
//! other's extent, lost the other order with its race or error, or found that a step they had seen
//! was not possible any more. Even brute force lost errors: `y = 1; y = 0` in parallel with
//! `await y == 1; assert false` was one step, which ends the wait for a moment that no thread
//! observes, and a wait that never ends is not an access that could race. And
//! `atomic { assert y == 0 && x == 1; }` with plain `y` and atomic `x` was data or synchronisation
//! depending on the value of `y`.
//!
//! **Cost.** The code of every thread is read once, before the search. A merged step costs what the
//! fine one does.

use std::collections::BTreeSet;

use preempt_system::{
    Capacity, Choice, Failure, Footprint, Location, LocationKind, Model, Schedule, Shape, Step,
    Stepper, ThreadId,
};

use crate::engine::long_steps;

/// The most fine steps of a coarse one: a loop over plain variables need not end. Where a step is
/// cut depends only on the thread's own path.
const LONGEST: usize = 10_000;

/// A model with scheduling points at synchronisation only.
pub struct SyncPoints<M> {
    fine: M,
    /// Plain variables that count as synchronisation.
    promoted: BTreeSet<Location>,
    /// For each thread and each of its rest points, whether the step there is merged into the one
    /// before it.
    merged: Vec<Vec<bool>>,
}

/// Executes the coarse steps.
pub struct SyncStepper<'m, M: Model + 'm> {
    model: &'m SyncPoints<M>,
    stepper: M::Stepper<'m>,
    /// The alternatives of the fine step that the last coarse one began with.
    alternatives: u32,
}

impl<M: Model> Model for SyncPoints<M> {
    type Stepper<'m>
        = SyncStepper<'m, M>
    where
        M: 'm;

    fn shape(&self) -> Shape {
        self.fine.shape()
    }

    fn stepper(&self) -> SyncStepper<'_, M> {
        SyncStepper { model: self, stepper: self.fine.stepper(), alternatives: 1 }
    }

    fn grow(&self, capacity: Capacity) -> Self {
        SyncPoints::with(self.fine.grow(capacity), self.promoted.clone())
    }

    fn with_stable_names(self) -> Self {
        SyncPoints::with(self.fine.with_stable_names(), self.promoted)
    }

    fn without_stable_names(self) -> Self {
        SyncPoints::with(self.fine.without_stable_names(), self.promoted)
    }

    fn has_invariants(&self) -> bool {
        self.fine.has_invariants()
    }

    fn location_kind(&self, location: Location) -> LocationKind {
        if self.promoted.contains(&location) {
            LocationKind::Synchronisation
        } else {
            self.fine.location_kind(location)
        }
    }

    fn location_name(&self, location: Location) -> String {
        self.fine.location_name(location)
    }
}

impl<M: Model> SyncPoints<M> {
    /// The coarse model.
    pub fn of(fine: M) -> SyncPoints<M> {
        SyncPoints::with(fine, BTreeSet::new())
    }

    fn with(fine: M, promoted: BTreeSet<Location>) -> SyncPoints<M> {
        let merged = fine.data_steps(&promoted);
        SyncPoints { fine, promoted, merged }
    }

    /// Whether the next fine step of a thread belongs to the coarse one that it is taking.
    fn is_merged(&self, state: &[u64], thread: ThreadId) -> bool {
        let of = |rest: usize| {
            self.merged.get(thread.index()).and_then(|merged| merged.get(rest)).copied()
        };
        self.fine.rest_point(state, thread).and_then(of).unwrap_or(false)
    }

    /// The model that was made coarser.
    pub fn fine(&self) -> &M {
        &self.fine
    }

    /// The model that was made coarser, without the coarse one.
    pub fn into_fine(self) -> M {
        self.fine
    }

    /// Makes these variables synchronisation too.
    pub fn promote(mut self, variables: impl IntoIterator<Item = Location>) -> SyncPoints<M> {
        self.promoted.extend(variables);
        SyncPoints::with(self.fine, self.promoted)
    }

    /// The plain variables that are synchronisation.
    pub fn promoted(&self) -> &BTreeSet<Location> {
        &self.promoted
    }

    /// The steps of the fine model that a schedule of the coarse one consists of.
    pub fn refine(&self, schedule: &Schedule) -> Schedule {
        let mut stepper = self.stepper();
        let mut state = vec![0; self.shape().words];
        stepper.stepper.initial(&mut state);
        let (mut fine, mut stem) = (Vec::new(), 0);
        for (at, &choice) in schedule.steps().iter().enumerate() {
            let (_, steps) = stepper.take(&mut state, choice, None);
            fine.push(choice);
            fine.extend(std::iter::repeat_n(Choice::of(choice.thread), steps - 1));
            if at < schedule.stem().len() {
                stem = fine.len();
            }
        }
        let cycle = fine.len() - stem;
        Schedule::new(fine).with_cycle(if schedule.cycle().is_empty() { 0 } else { cycle })
    }
}

impl<M: Model> SyncStepper<'_, M> {
    /// Takes a coarse step and returns the number of its fine steps. Adds their accesses to
    /// `footprint`, if there is one.
    fn take(
        &mut self,
        state: &mut [u64],
        choice: Choice,
        mut footprint: Option<&mut Footprint>,
    ) -> (Step, usize) {
        let first = self.take_fine(state, choice, footprint.as_deref_mut());
        self.alternatives = self.stepper.alternatives();
        if !matches!(first, Step::Moved { .. }) {
            return (first, 1);
        }
        let (thread, mut steps) = (choice.thread, 1);
        while steps < LONGEST && self.model.is_merged(state, thread) {
            match self.take_fine(state, Choice::of(thread), footprint.as_deref_mut()) {
                Step::Moved { alternatives: 1 } => steps += 1,
                Step::Failed(failure) => return (Step::Failed(failure), steps + 1),
                Step::Full(capacity) => return (Step::Full(capacity), steps),
                other => unreachable!(
                    "a step of data accesses neither waits nor chooses, and is not {other:?}"
                ),
            }
        }
        long_steps::note(steps);
        (first, steps)
    }

    fn take_fine(
        &mut self,
        state: &mut [u64],
        choice: Choice,
        footprint: Option<&mut Footprint>,
    ) -> Step {
        match footprint {
            Some(footprint) => self.stepper.step_with_footprint(state, choice, footprint),
            None => self.stepper.step(state, choice),
        }
    }
}

impl<M: Model> Stepper for SyncStepper<'_, M> {
    fn initial(&mut self, state: &mut [u64]) -> Step {
        self.stepper.initial(state)
    }

    fn step(&mut self, state: &mut [u64], choice: Choice) -> Step {
        self.take(state, choice, None).0
    }

    fn has_failed(&self, state: &[u64]) -> bool {
        self.stepper.has_failed(state)
    }

    fn alternatives(&self) -> u32 {
        self.alternatives
    }

    fn invariant(&mut self, state: &[u64]) -> Result<(), Box<Failure>> {
        self.stepper.invariant(state)
    }

    fn invariant_with_footprint(
        &mut self,
        state: &[u64],
        footprint: &mut Footprint,
    ) -> Result<(), Box<Failure>> {
        self.stepper.invariant_with_footprint(state, footprint)
    }

    fn step_with_footprint(
        &mut self,
        state: &mut [u64],
        choice: Choice,
        footprint: &mut Footprint,
    ) -> Step {
        self.take(state, choice, Some(footprint)).0
    }
}
