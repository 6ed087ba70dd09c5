//! Scheduling points at synchronisation only: a model made coarser.
//!
//! **Paper.** icb, section 3.1. A step of the coarse model is a step of the fine one and all data accesses of the thread that
//! follow it, up to its next synchronisation. A thread that begins with data accesses has them as its first step.
//!
//! **Guarantees.** For a program without [data races](crate::race): the same terminal states, deadlocks and failures, each with the same
//! least number of preemptions (theorems 2 and 3; `bench/tests/races.rs` checks it on random programs). A program with a race shows
//! it, with the same least number of preemptions. After a race nothing is guaranteed: that is why a race is a finding.
//!
//! **Deviations.** 1. No start event for a thread: it would only add a point at which nothing can happen. 2. A race needs at least one
//! write; the printed definition reports threads that only read. 3. A data access that has to wait (`await` on a plain
//! variable) or that may choose begins a step of its own: other threads decide when it goes on.
//!
//! **Cost.** Every step is dry-run once more, to see where it ends.

use std::collections::BTreeSet;

use preempt_system::{
    Capacity, Choice, Failure, Footprint, Location, Model, Schedule, Shape, Sort, Step, Stepper, ThreadId,
};

/// Data accesses of one step before it is cut all the same: a loop over plain variables need not end.
const LONGEST: usize = 10_000;

/// A model with scheduling points at synchronisation only.
pub struct SyncPoints<M> {
    fine: M,
    /// Plain variables that count as synchronisation all the same.
    promoted: BTreeSet<Location>,
}

/// Executes the coarse steps.
pub struct SyncStepper<'m, M: Model + 'm> {
    model: &'m SyncPoints<M>,
    stepper: M::Stepper<'m>,
    ahead: Vec<u64>,
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
        SyncStepper {
            model: self,
            stepper: self.fine.stepper(),
            ahead: vec![0; self.fine.shape().words],
            alternatives: 1,
        }
    }

    fn grow(&self, capacity: Capacity) -> Self {
        SyncPoints { fine: self.fine.grow(capacity), promoted: self.promoted.clone() }
    }

    fn with_stable_names(self) -> Self {
        SyncPoints { fine: self.fine.with_stable_names(), promoted: self.promoted }
    }

    fn has_invariants(&self) -> bool {
        self.fine.has_invariants()
    }

    fn sort(&self, location: Location) -> Sort {
        if self.promoted.contains(&location) { Sort::Synchronisation } else { self.fine.sort(location) }
    }

    fn location_name(&self, location: Location) -> String {
        self.fine.location_name(location)
    }
}

impl<M: Model> SyncPoints<M> {
    /// The coarse model.
    pub fn of(fine: M) -> SyncPoints<M> {
        SyncPoints { fine, promoted: BTreeSet::new() }
    }

    /// The model that was made coarser.
    pub fn fine(&self) -> &M {
        &self.fine
    }

    /// The model that was made coarser, without the coarse one.
    pub fn into_fine(self) -> M {
        self.fine
    }

    /// Makes these variables synchronisation, too.
    pub fn promote(mut self, variables: impl IntoIterator<Item = Location>) -> SyncPoints<M> {
        self.promoted.extend(variables);
        self
    }

    /// The plain variables that are synchronisation.
    pub fn promoted(&self) -> &BTreeSet<Location> {
        &self.promoted
    }

    /// The steps of the fine model that a schedule of the coarse one stands for.
    pub fn refine(&self, schedule: &Schedule) -> Schedule {
        let mut stepper = self.stepper();
        let mut state = vec![0; self.shape().words];
        stepper.stepper.initial(&mut state);
        let mut fine = Vec::new();
        for &choice in schedule.steps() {
            let (_, steps) = stepper.take(&mut state, choice, &mut Footprint::new());
            fine.push(choice);
            fine.extend(std::iter::repeat_n(Choice::of(choice.thread), steps - 1));
        }
        Schedule(fine)
    }
}

impl<M: Model> SyncStepper<'_, M> {
    /// Takes a coarse step; says how many fine ones it was.
    fn take(&mut self, state: &mut [u64], choice: Choice, footprint: &mut Footprint) -> (Step, usize) {
        let first = self.stepper.step_with_footprint(state, choice, footprint);
        self.alternatives = self.stepper.alternatives();
        if !matches!(first, Step::Moved { .. }) {
            return (first, 1);
        }
        let mut steps = 1;
        while steps < LONGEST {
            match self.follow(state, choice.thread, footprint) {
                Follow::Moved => steps += 1,
                Follow::Failed(failure) => return (Step::Failed(failure), steps + 1),
                Follow::Full(capacity) => return (Step::Full(capacity), steps),
                Follow::Point => break,
            }
        }
        (first, steps)
    }

    /// Takes the thread's next fine step if it is nothing but data accesses.
    fn follow(&mut self, state: &mut [u64], thread: ThreadId, footprint: &mut Footprint) -> Follow {
        self.ahead.copy_from_slice(state);
        let mut accesses = Footprint::new();
        let step = self.stepper.step_with_footprint(&mut self.ahead, Choice::of(thread), &mut accesses);
        let sorts = accesses.accesses().iter().map(|&(location, _)| self.model.sort(location));
        let only_data =
            sorts.clone().any(|sort| sort == Sort::Data) && sorts.clone().all(|sort| sort != Sort::Synchronisation);
        let follow = match step {
            Step::Moved { alternatives: 1 } if only_data => Follow::Moved,
            Step::Failed(failure) if only_data => Follow::Failed(failure),
            Step::Full(capacity) => return Follow::Full(capacity),
            _ => return Follow::Point,
        };
        state.copy_from_slice(&self.ahead);
        accesses.accesses().iter().for_each(|&(location, access)| footprint.add(location, access));
        follow
    }
}

/// What became of the step behind a step.
enum Follow {
    /// It belongs to it, and was taken.
    Moved,
    /// It belongs to it, and fails.
    Failed(Box<Failure>),
    /// Its result does not fit.
    Full(Capacity),
    /// It begins a step of its own.
    Point,
}

impl<M: Model> Stepper for SyncStepper<'_, M> {
    fn initial(&mut self, state: &mut [u64]) -> Step {
        self.stepper.initial(state)
    }

    fn step(&mut self, state: &mut [u64], choice: Choice) -> Step {
        self.take(state, choice, &mut Footprint::new()).0
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

    fn invariant_with_footprint(&mut self, state: &[u64], footprint: &mut Footprint) -> Result<(), Box<Failure>> {
        self.stepper.invariant_with_footprint(state, footprint)
    }

    fn step_with_footprint(&mut self, state: &mut [u64], choice: Choice, footprint: &mut Footprint) -> Step {
        self.take(state, choice, footprint).0
    }
}
