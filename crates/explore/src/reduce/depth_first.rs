//! The depth-first loop of the reductions: one [`Policy`] decides which steps to take.

use preempt_system::{Choice, System};

use super::trace::{ReductionStats, Trace};
use crate::codec::{Damaged, Reader, Save, Writer};
use crate::engine::cursor::Cursor;
use crate::engine::execution::{Cut, Stop, Strategy, Visitor, explore, take_again};
use crate::plan::Dependence;

/// A new place, and why no step is taken there although some thread is enabled.
pub(crate) type Entered<P, N> = Result<(P, Option<Cut>), Stop<N>>;

/// Which steps a reduction takes. A *place* is what the reduction knows of the execution before one
/// of its steps; there is one for every step, and one for the end.
pub(crate) trait Policy<S: System> {
    type Place: Save;

    /// What a place passes on to the place after its next step.
    type Arrival: Default;

    /// Enters the place at the end of the execution. `places` are those before it.
    fn enter(
        &mut self,
        trace: &mut Trace<'_, S>,
        arrival: Self::Arrival,
        places: &mut [Self::Place],
        stats: &mut ReductionStats,
    ) -> Entered<Self::Place, S::Need>;

    /// The next step to take at the last place.
    fn next(
        &mut self,
        trace: &Trace<'_, S>,
        place: &mut Self::Place,
    ) -> Option<(Choice, Self::Arrival)>;

    /// The last step of the trace was just taken.
    fn stepped(&mut self, trace: &Trace<'_, S>) {
        let _ = trace;
    }

    /// `place` is done; the trace still ends there. `parent` is the place before it.
    fn leave(
        &mut self,
        trace: &Trace<'_, S>,
        place: Self::Place,
        parent: Option<&mut Self::Place>,
    ) {
        let _ = (trace, place, parent);
    }

    /// How many places stay when the last one is done. A policy that knows that the places before
    /// it are done too skips them at once.
    fn unfinished(places: &[Self::Place]) -> usize {
        places.len() - 1
    }

    /// The execution was taken back to `len` steps.
    fn rewound(&mut self, len: usize) {
        let _ = len;
    }

    /// The memory of the policy's tables.
    fn bytes(&self) -> usize {
        0
    }

    /// Writes the policy's tables.
    fn save(&self, to: &mut Writer<'_>) {
        let _ = to;
    }

    /// Reads them.
    fn load(&mut self, from: &mut Reader) -> Result<(), Damaged> {
        let _ = from;
        Ok(())
    }
}

/// A reduction in progress.
pub(crate) struct DepthFirst<'c, S: System, P: Policy<S>> {
    trace: Trace<'c, S>,
    pub(super) policy: P,
    places: Vec<P::Place>,
    pub(super) stats: ReductionStats,
    /// The execution in which the search has paused, between [`Strategy::load`] and
    /// [`Strategy::replay`].
    paused: Vec<Choice>,
}

impl<'c, S: System, P: Policy<S>> DepthFirst<'c, S, P> {
    /// Starts where the cursor stands, which must be the beginning of an execution.
    pub(super) fn new(cursor: &'c mut Cursor<S>, dependence: Dependence, policy: P) -> Self {
        let trace = Trace::new(cursor, dependence);
        DepthFirst {
            trace,
            policy,
            places: Vec::new(),
            stats: ReductionStats::default(),
            paused: Vec::new(),
        }
    }

    /// Explores everything, without checkpoints.
    pub(super) fn run(
        mut self,
        visitor: &mut impl Visitor<S>,
    ) -> Result<ReductionStats, Stop<S::Need>> {
        explore(&mut self, visitor)?;
        Ok(self.stats)
    }

    fn enter(
        &mut self,
        arrival: P::Arrival,
        visitor: &mut impl Visitor<S>,
    ) -> Result<(), Stop<S::Need>> {
        let DepthFirst { trace, policy, places, stats, .. } = self;
        stats.nodes += 1;
        let is_end = trace.cursor.enabled().is_empty();
        if is_end {
            stats.executions += 1;
            visitor.end(trace.cursor)?;
        }
        let (place, cut) = policy.enter(trace, arrival, places, stats)?;
        places.push(place);
        if let Some(why) = cut.filter(|_| !is_end) {
            stats.covered += u64::from(why == Cut::Covered);
            visitor.cut(trace.cursor, why)?;
        }
        Ok(())
    }
}

impl<S: System, P: Policy<S>> Strategy<S> for DepthFirst<'_, S, P> {
    fn start(&mut self, visitor: &mut impl Visitor<S>) -> Result<(), Stop<S::Need>> {
        self.enter(P::Arrival::default(), visitor)
    }

    #[inline]
    fn advance(&mut self, visitor: &mut impl Visitor<S>) -> Result<bool, Stop<S::Need>> {
        let DepthFirst { trace, policy, places, .. } = self;
        let Some(place) = places.last_mut() else { return Ok(false) };
        if let Some((choice, arrival)) = policy.next(trace, place) {
            let failure = trace.step(choice)?;
            policy.stepped(trace);
            visitor.holds(0, policy.bytes());
            visitor.step(trace.cursor, failure)?;
            self.enter(arrival, visitor)?;
            return Ok(true);
        }
        let unfinished = P::unfinished(places);
        while places.len() > unfinished {
            let place = places.pop().expect("more places than stay");
            policy.leave(trace, place, places.last_mut());
        }
        let len = places.len().saturating_sub(1);
        trace.rewind(len);
        policy.rewound(len);
        Ok(true)
    }

    fn is_cut_by_bound(&self) -> bool {
        self.stats.bounded > 0
    }

    fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.trace.cursor.schedule().steps().to_vec());
        to.put(&self.places);
        to.put(&self.stats);
        self.policy.save(to);
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), Damaged> {
        (self.paused, self.places, self.stats) = from.get()?;
        self.policy.load(from)
    }

    fn replay(&mut self, visitor: &mut impl Visitor<S>) -> Result<(), Stop<S::Need>> {
        for choice in std::mem::take(&mut self.paused) {
            take_again(&mut self.trace, &[choice], visitor)?;
            self.policy.stepped(&self.trace);
        }
        Ok(())
    }
}
