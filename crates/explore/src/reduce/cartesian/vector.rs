//! CalcCV: the cartesian vector of a state.
//!
//! **Paper.** cartesian, section 5, Figure 6, with the round-robin extension that the text
//! mentions.
//!
//! **Guarantees.** For every thread a prefix from the state, such that of two transitions of
//! different prefixes that depend on each other both are the last of theirs (Definition 2, which is
//! printed with the wrong sign), except for one harmless case: see the module's Deviation 4. The
//! vector is a function of the state.
//!
//! **Map.** CV → [`CartesianVector`]; CV\[i\] → [`Prefix`]; last_tran → `last`; extendable →
//! `extendable`; dependent → [`Conflicts`]; "in CV\[i\]" → [`Passed`]; NextTrans, NextState →
//! [`Stepper::step_with_footprint`].
//!
//! **Deviations.** Those of the [module](super).
//!
//! **Cost.** Time proportional to the transitions executed and their accesses; memory for the
//! states of the prefixes.

use std::collections::BTreeSet;

use preempt_system::{
    Capacity, Choice, Failure, Footprint, Shape, Step, Stepper, ThreadId, ThreadSet,
};

use super::conflicts::Conflicts;
use super::passed::Passed;
use super::states::{START, States};
use super::{Config, Reading};
use crate::engine::execution::Stop;
use crate::engine::expand::deadlock;
use crate::engine::mutants::seeded;
use crate::plan::coverage::Coverage;

/// Why a thread does not move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stutter {
    Waiting,
    Resting,
    Ended,
    Vacant,
}

impl Stutter {
    fn of(step: &Step) -> Stutter {
        match *step {
            Step::Blocked { resting: false } => Stutter::Waiting,
            Step::Blocked { resting: true } => Stutter::Resting,
            Step::Ended => Stutter::Ended,
            Step::Vacant => Stutter::Vacant,
            ref other => unreachable!("a thread that stands still cannot be {other:?}"),
        }
    }

    /// Hides what a thread that stands still has read, if a test has seeded that error.
    #[inline(always)]
    fn blind(self, footprint: &mut Footprint) {
        let is_blind = match self {
            Stutter::Waiting | Stutter::Resting => seeded!(WaitsBlindly),
            Stutter::Vacant => seeded!(VacantBlindly),
            Stutter::Ended => false,
        };
        if is_blind {
            footprint.clear();
        }
    }
}

/// The transitions of a thread from the state of the vector, without a switch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Prefix {
    /// Its first transition. All others are alternative 0 of the same thread.
    pub(super) first: Choice,
    /// The number of its transitions that move.
    pub(super) moves: u32,
    /// The number of its last state.
    end: u32,
    /// The hash of that state, if it was needed.
    hash: Option<u64>,
    /// Why the thread stands still after these moves, if it does.
    stutter: Option<Stutter>,
    /// Whether the thread was found standing still when the prefix was extended.
    stuttered: bool,
    infinite: bool,
}

impl Prefix {
    /// The prefix of a thread before its first transition.
    fn of(thread: ThreadId) -> Prefix {
        let first = Choice::of(thread);
        Prefix {
            first,
            moves: 0,
            end: START,
            hash: None,
            stutter: None,
            stuttered: false,
            infinite: false,
        }
    }
}

/// The place of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the state of the vector.
    Here,
    /// In the last of this many moves, the first of which is this one.
    Within(Choice, u32),
    /// In the state at the ends of all prefixes.
    Ends,
}

/// Transitions between two polls of the limits.
pub(super) const POLL_INTERVAL: u64 = 1 << 12;

/// Computes vectors, one after the other, and holds the last one. Every worker has one.
pub(super) struct CartesianVector<'c, S, const W: usize> {
    stepper: S,
    shape: Shape,
    config: &'c Config,
    deadlock: bool,
    invariants: bool,
    states: States<W>,
    start_hash: u64,
    /// The prefix of every slot.
    prefixes: Vec<Prefix>,
    /// The footprint of the last transition of each.
    last: Vec<Footprint>,
    next: Footprint,
    /// The alternatives of threads that choose: prefixes of one transition.
    chosen: Vec<Prefix>,
    choosing: ThreadSet,
    extendable: ThreadSet,
    conflicts: Conflicts,
    passed: Passed,
    /// The counts so far.
    pub(super) seen: Coverage,
    /// The failures of this vector.
    pub(super) failures: Vec<(Place, Failure)>,
    /// For tests: the local states of every thread that were reached.
    pub(super) reached: Vec<BTreeSet<Vec<u64>>>,
    /// The number of transitions at which the limits are polled next, and the interval after that.
    polled: u64,
    poll_interval: u64,
}

impl<'c, S: Stepper, const W: usize> CartesianVector<'c, S, W> {
    pub(super) fn new(
        stepper: S,
        shape: Shape,
        config: &'c Config,
        deadlock: bool,
        invariants: bool,
    ) -> Self {
        let nothing = Prefix::of(ThreadId::new(0));
        CartesianVector {
            stepper,
            shape,
            config,
            deadlock,
            invariants,
            states: States::new(shape.words),
            start_hash: 0,
            prefixes: vec![nothing; shape.threads],
            last: vec![Footprint::new(); shape.threads],
            next: Footprint::new(),
            chosen: Vec::new(),
            choosing: ThreadSet::EMPTY,
            extendable: ThreadSet::EMPTY,
            conflicts: Conflicts::default(),
            passed: Passed::new(),
            seen: Coverage::default(),
            failures: Vec::new(),
            reached: vec![BTreeSet::new(); config.locals.len()],
            polled: POLL_INTERVAL,
            poll_interval: POLL_INTERVAL,
        }
    }

    /// Continues after `seen`.
    pub(super) fn resuming(self, reached: Vec<BTreeSet<Vec<u64>>>, seen: Coverage) -> Self {
        let reached = if reached.is_empty() { self.reached } else { reached };
        CartesianVector { seen, reached, ..self }
    }

    /// Polls the limits every `interval` transitions.
    pub(super) fn poll_every(&mut self, interval: u64) {
        (self.polled, self.poll_interval) = (self.executed() + interval, interval);
    }

    /// Computes the vector of `state`. `may_continue` is called from time to time with the memory
    /// of the vector, because a prefix may be long.
    pub(super) fn calculate(
        &mut self,
        state: &[u64],
        may_continue: &mut impl FnMut(&Coverage, usize) -> bool,
    ) -> Result<(), Stop> {
        self.failures.clear();
        self.chosen.clear();
        self.choosing = ThreadSet::EMPTY;
        self.conflicts.clear();
        self.passed.clear();
        self.states.begin(state);
        self.start_hash = self.states.hash_of_start();
        self.seen.expanded += 1;
        for slot in 0..self.config.locals.len() {
            self.record_local(ThreadId::new(slot), START);
        }
        if self.invariants {
            self.observe(state);
        }
        self.extendable = ThreadSet::first(self.shape.threads);
        for slot in 0..self.shape.threads {
            self.begin(ThreadId::new(slot))?;
        }
        let mut current = self.shape.threads.saturating_sub(1);
        while let Some(thread) = next_after(self.extendable, current) {
            current = thread.index();
            self.extend(thread)?;
            if self.executed() >= self.polled {
                self.polled = self.executed() + self.poll_interval;
                if !may_continue(&self.seen, self.bytes()) {
                    return Err(Stop::Enough);
                }
            }
        }
        if self.deadlock {
            self.check_deadlock();
        }
        self.seen.failed += self.failures.len() as u64;
        Ok(())
    }

    /// The observer's transition: it reads the invariants and changes nothing.
    fn observe(&mut self, state: &[u64]) {
        self.next.clear();
        if let Err(failure) = self.stepper.invariant_with_footprint(state, &mut self.next) {
            self.failures.push((Place::Here, *failure));
        }
        if !seeded!(ObservesBlindly) {
            self.conflicts.observe(&self.next);
        }
    }

    /// Starts the prefix of a thread with its first transition, or one prefix for every alternative
    /// if the thread chooses.
    #[inline(always)]
    fn begin(&mut self, thread: ThreadId) -> Result<(), Capacity> {
        let slot = thread.index();
        self.last[slot].clear();
        let mut prefix = Prefix::of(thread);
        let (mut alternative, mut alternatives) = (0, 1);
        while alternative < alternatives {
            let choice = Choice { thread, alternative };
            match self.stepper.step_with_footprint(
                self.states.draft(START),
                choice,
                &mut self.last[slot],
            ) {
                Step::Moved { alternatives: known } => alternatives = alternatives.max(known),
                Step::Failed(failure) => {
                    self.failures.push((Place::Within(choice, 1), *failure));
                    alternatives = alternatives.max(self.stepper.alternatives());
                }
                Step::Full(capacity) => return Err(capacity),
                Step::Absent | Step::Blocked { .. } | Step::Ended | Step::Vacant
                    if alternative > 0 =>
                {
                    alternative += 1;
                    continue;
                }
                other => {
                    let stutter = Stutter::of(&other);
                    self.count(stutter);
                    stutter.blind(&mut self.last[slot]);
                    prefix.stutter = Some(stutter);
                    break;
                }
            }
            if seeded!(AcrossChoices) {
                alternatives = 1;
            }
            self.seen.transitions += 1;
            let moved = Prefix { first: choice, moves: 1, end: self.keep(thread), ..prefix };
            if alternatives > 1 {
                self.chosen.push(moved);
            } else {
                prefix = moved;
            }
            alternative += 1;
        }
        if alternatives > 1 {
            self.choosing.insert(thread);
        }
        // A vacant slot stands still until a thread is started in it: one self-loop is enough.
        if alternatives > 1 || prefix.stutter == Some(Stutter::Vacant) {
            self.extendable.remove(thread);
        }
        let dependent = self.conflicts.of(thread, &self.last[slot]);
        if !seeded!(WithoutFirstCheck) {
            self.end_prefixes(thread, dependent.last, dependent.observer);
        }
        self.conflicts.add_last(thread, &self.last[slot]);
        self.prefixes[slot] = prefix;
        Ok(())
    }

    /// Tries to make the prefix of a thread one transition longer.
    #[inline(always)]
    fn extend(&mut self, thread: ThreadId) -> Result<(), Capacity> {
        let Prefix { end, moves, first, stutter, .. } = self.prefixes[thread.index()];
        if let Some(stutter) = stutter {
            self.stand_still(thread, stutter);
            return Ok(());
        }
        self.next.clear();
        let step = self.stepper.step_with_footprint(
            self.states.draft(end),
            Choice::of(thread),
            &mut self.next,
        );
        let (stutter, alternatives) = match step {
            Step::Moved { alternatives } => (None, alternatives),
            Step::Failed(failure) => {
                self.failures.push((Place::Within(first, moves + 1), *failure));
                (None, self.stepper.alternatives())
            }
            Step::Full(capacity) => return Err(capacity),
            other => (Some(Stutter::of(&other)), 1),
        };
        match stutter {
            None => self.seen.transitions += 1,
            Some(stutter) => {
                self.count(stutter);
                stutter.blind(&mut self.next);
            }
        }
        let dependent = self.conflicts.of(thread, &self.next);
        let chooses = alternatives > 1 && !seeded!(AcrossChoices);
        if chooses || !dependent.body.is_empty() {
            self.extendable.remove(thread);
            if chooses || !seeded!(AddsWhatDepends) {
                self.reject(stutter);
                return Ok(());
            }
        }
        self.end_prefixes(thread, dependent.last, dependent.observer);
        match stutter {
            None => self.append_draft(thread),
            Some(_) => self.record_stutter(thread, stutter),
        }
        self.conflicts.move_to_body(thread, &self.last[thread.index()]);
        self.conflicts.add_last(thread, &self.next);
        std::mem::swap(&mut self.last[thread.index()], &mut self.next);
        Ok(())
    }

    /// The same for a thread that stands still already: its transition is the same self-loop again,
    /// so it is not executed.
    fn stand_still(&mut self, thread: ThreadId, stutter: Stutter) {
        self.count(stutter);
        let footprint = &self.last[thread.index()];
        let dependent = self.conflicts.of(thread, footprint);
        if !dependent.body.is_empty() {
            self.extendable.remove(thread);
            if !seeded!(AddsWhatDepends) {
                return self.reject(Some(stutter));
            }
        }
        self.conflicts.move_to_body(thread, footprint);
        self.conflicts.add_last(thread, footprint);
        self.end_prefixes(thread, dependent.last, dependent.observer);
        self.record_stutter(thread, Some(stutter));
    }

    /// A transition that was executed is not added. Figure 6 as printed does not count it.
    fn reject(&mut self, stutter: Option<Stutter>) {
        if self.config.reading == Reading::Literal {
            match stutter {
                None => self.seen.transitions -= 1,
                Some(Stutter::Waiting | Stutter::Resting) => self.seen.blocked -= 1,
                Some(Stutter::Ended) => self.seen.ended -= 1,
                Some(Stutter::Vacant) => {}
            }
        }
    }

    /// Adds the draft to the prefix of a thread that can still be extended, or has just been found
    /// to end with it.
    #[inline(always)]
    fn append_draft(&mut self, thread: ThreadId) {
        let slot = thread.index();
        let prefix = self.prefixes[slot];
        let before = prefix
            .hash
            .unwrap_or_else(|| self.hash_after(thread, self.start_hash, START, prefix.end));
        let after = self.hash_after(thread, before, prefix.end, self.states.drafted());
        let closes = match self.config.reading {
            Reading::Late => {
                let closes = self.has_passed(thread, after);
                self.passed.insert(Passed::hash_for(thread, before), prefix.end);
                closes
            }
            Reading::Literal => {
                self.passed.insert(Passed::hash_for(thread, before), prefix.end);
                self.is_same(thread, START, self.states.drafted()) || self.has_passed(thread, after)
            }
        };
        let end = self.keep(thread);
        let prefix = &mut self.prefixes[slot];
        (prefix.end, prefix.hash) = (end, Some(after));
        prefix.moves += 1;
        if closes && self.extendable.contains(thread) {
            prefix.infinite = true;
            self.extendable.remove(thread);
        }
    }

    /// Adds a self-loop. In a state that the prefix was extended from before, it is a cycle.
    fn record_stutter(&mut self, thread: ThreadId, stutter: Option<Stutter>) {
        let prefix = &mut self.prefixes[thread.index()];
        let closes = prefix.stuttered || self.config.reading == Reading::Literal;
        (prefix.stutter, prefix.stuttered) = (stutter, true);
        if closes && self.extendable.contains(thread) {
            prefix.infinite = true;
            self.extendable.remove(thread);
        }
    }

    /// Ends the prefixes whose last transitions depend on the new one, and that of the new one.
    #[inline(always)]
    fn end_prefixes(&mut self, thread: ThreadId, others: ThreadSet, observed: bool) {
        if !others.is_empty() || observed {
            self.extendable.remove(thread);
            if !seeded!(OnlyExtendingEnds) {
                self.extendable = ThreadSet::from_bits(self.extendable.bits() & !others.bits());
            }
        }
    }

    /// Counts a self-loop.
    fn count(&mut self, stutter: Stutter) {
        match stutter {
            Stutter::Waiting | Stutter::Resting => self.seen.blocked += 1,
            Stutter::Ended => self.seen.ended += 1,
            Stutter::Vacant => {}
        }
    }

    /// Reports a deadlock if every prefix ends with a thread that stands still: see the
    /// [module](super).
    fn check_deadlock(&mut self) {
        let stands = |prefix: &Prefix| match prefix.stutter {
            Some(_) if seeded!(DeadlocksWhereMet) => prefix.moves == 0,
            stutter => stutter.is_some(),
        };
        let waits = self.prefixes.iter().any(|prefix| prefix.stutter == Some(Stutter::Waiting));
        let has_failed = |prefix: &Prefix| self.stepper.has_failed(self.states.get(prefix.end));
        if waits
            && self.choosing.is_empty()
            && self.prefixes.iter().all(stands)
            && !self.prefixes.iter().any(has_failed)
        {
            self.failures.push((Place::Ends, deadlock()));
        }
    }

    /// The prefixes that end, with the states they end in, without those that end where they began.
    pub(super) fn ends(&self) -> impl Iterator<Item = (&Prefix, &[u64])> {
        let finite = |prefix: &&Prefix| !prefix.infinite && prefix.moves > 0;
        self.prefixes
            .iter()
            .chain(&self.chosen)
            .filter(finite)
            .map(|prefix| (prefix, self.states.get(prefix.end)))
    }

    /// The moves of all threads, one after the other: they lead to the state in which all prefixes
    /// have ended.
    pub(super) fn all_moves(&self) -> impl Iterator<Item = (Choice, u32)> {
        self.prefixes.iter().map(|prefix| (prefix.first, prefix.moves))
    }

    /// The draft becomes a state, to which `thread` has moved.
    #[inline(always)]
    fn keep(&mut self, thread: ThreadId) -> u32 {
        if !self.config.locals.is_empty() {
            self.record_local(thread, self.states.drafted());
        }
        self.states.keep()
    }

    #[cold]
    fn record_local(&mut self, thread: ThreadId, number: u32) {
        let local = self.local(thread, number);
        self.reached[thread.index()].insert(local);
    }

    /// The part of a state that is a thread's own.
    #[cold]
    fn local(&self, thread: ThreadId, number: u32) -> Vec<u64> {
        let mask = &self.config.locals[thread.index()];
        self.states.get(number).iter().zip(mask).map(|(word, mask)| word & mask).collect()
    }

    #[inline(always)]
    fn has_passed(&self, thread: ThreadId, hash: u64) -> bool {
        self.passed.contains(Passed::hash_for(thread, hash), |number| {
            self.is_same(thread, number, self.states.drafted())
        })
    }

    /// The hash of state `to` of a thread's prefix, computed from that of state `from`.
    #[inline(always)]
    fn hash_after(&self, thread: ThreadId, hash: u64, from: u32, to: u32) -> u64 {
        if seeded!(LocalCycles) {
            return self.local(thread, to).iter().fold(1, |hash, w| (hash ^ w).wrapping_mul(3));
        }
        self.states.hash_after(hash, from, to)
    }

    #[inline(always)]
    fn is_same(&self, thread: ThreadId, one: u32, other: u32) -> bool {
        if seeded!(LocalCycles) {
            return self.local(thread, one) == self.local(thread, other);
        }
        self.states.get(one) == self.states.get(other)
    }

    fn executed(&self) -> u64 {
        self.seen.transitions + self.seen.blocked + self.seen.ended
    }

    pub(super) fn bytes(&self) -> usize {
        self.states.bytes() + self.passed.bytes() + self.conflicts.bytes()
    }
}

/// The next of `threads` after number `current`, going round.
#[inline(always)]
fn next_after(threads: ThreadSet, current: usize) -> Option<ThreadId> {
    let bits = threads.bits();
    let above = bits & (u64::MAX << current) << 1;
    let from = if above != 0 { above } else { bits };
    (from != 0).then(|| ThreadId::new(from.trailing_zeros() as usize))
}
