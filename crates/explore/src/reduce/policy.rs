//! The reductions over executions as depth-first searches: a [`Policy`] decides which steps to
//! take.

use preempt_system::{Choice, System};

use super::trace::{ReductionStats, Trace};
use crate::codec::{Damaged, Reader, Save, Writer};
use crate::engine::cursor::Cursor;
use crate::engine::depth_first::{self, DepthFirst, Next};
use crate::engine::execution::{Cut, ResumableSearch, Stop, Visitor, run_to_end, take_again};
use crate::plan::Dependence;

/// A new place, and the reason if no step is taken there although some thread is enabled.
pub(crate) type Entered<P, N> = Result<(P, Option<Cut>), Stop<N>>;

/// Decides which steps a reduction takes. A *place* is the reduction's data about the execution
/// before one of its steps; there is one for every step, and one for the end.
pub(crate) trait Policy<S: System> {
    type Place: Save;

    /// The data that a place passes on to the place after its next step.
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

    /// The number of places that stay when the last one is done. A policy that knows that the
    /// places before it are done too skips them at once.
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
pub(crate) struct ReducedSearch<'c, S: System, P: Policy<S>> {
    trace: Trace<'c, S>,
    pub(super) places: Places<S, P>,
    /// The execution in which the search has paused, between [`ResumableSearch::load`] and
    /// [`ResumableSearch::replay`].
    paused: Vec<Choice>,
}

/// The places of the current execution, and the policy.
pub(crate) struct Places<S: System, P: Policy<S>> {
    pub(super) policy: P,
    list: Vec<P::Place>,
    pub(super) stats: ReductionStats,
}

impl<'c, S: System, P: Policy<S>> ReducedSearch<'c, S, P> {
    /// Starts at the cursor, which must be at the beginning of an execution.
    pub(super) fn new(cursor: &'c mut Cursor<S>, dependence: Dependence, policy: P) -> Self {
        let places = Places { policy, list: Vec::new(), stats: ReductionStats::default() };
        ReducedSearch { trace: Trace::new(cursor, dependence), places, paused: Vec::new() }
    }

    /// Explores everything, without checkpoints.
    pub(super) fn run(
        mut self,
        visitor: &mut impl Visitor<S>,
    ) -> Result<ReductionStats, Stop<S::Need>> {
        run_to_end(&mut self, visitor)?;
        Ok(self.places.stats)
    }
}

impl<'c, S: System, P: Policy<S>, V: Visitor<S>> DepthFirst<S, Trace<'c, S>, V> for Places<S, P> {
    type Step = P::Arrival;

    #[inline]
    fn next(&mut self, trace: &mut Trace<'c, S>, _: &mut V) -> Next<P::Arrival, S::Need> {
        let Places { policy, list, .. } = self;
        while let Some(place) = list.last_mut() {
            if let Some(next) = policy.next(trace, place) {
                return Ok(Some(next));
            }
            let unfinished = P::unfinished(list);
            while list.len() > unfinished {
                let place = list.pop().expect("more places than stay");
                policy.leave(trace, place, list.last_mut());
            }
            let len = list.len().saturating_sub(1);
            trace.rewind(len);
            policy.rewound(len);
        }
        Ok(None)
    }

    #[inline]
    fn taken(&mut self, trace: &Trace<'c, S>, visitor: &mut V) {
        self.policy.stepped(trace);
        visitor.holds(0, self.policy.bytes());
    }

    fn arrive(
        &mut self,
        trace: &mut Trace<'c, S>,
        arrival: P::Arrival,
        visitor: &mut V,
    ) -> Result<(), Stop<S::Need>> {
        let Places { policy, list, stats } = self;
        stats.nodes += 1;
        let is_end = trace.cursor.enabled().is_empty();
        if is_end {
            stats.executions += 1;
            visitor.end(trace.cursor)?;
        }
        let (place, cut) = policy.enter(trace, arrival, list, stats)?;
        list.push(place);
        if let Some(why) = cut.filter(|_| !is_end) {
            stats.covered += u64::from(why == Cut::Covered);
            visitor.cut(trace.cursor, why)?;
        }
        Ok(())
    }
}

impl<S: System, P: Policy<S>> ResumableSearch<S> for ReducedSearch<'_, S, P> {
    fn start(&mut self, visitor: &mut impl Visitor<S>) -> Result<(), Stop<S::Need>> {
        self.places.arrive(&mut self.trace, P::Arrival::default(), visitor)
    }

    #[inline]
    fn advance(&mut self, visitor: &mut impl Visitor<S>) -> Result<bool, Stop<S::Need>> {
        depth_first::advance(&mut self.places, &mut self.trace, visitor)
    }

    fn is_cut_by_bound(&self) -> bool {
        self.places.stats.bounded > 0
    }

    fn save(&self, to: &mut Writer<'_>) {
        to.put(&self.trace.cursor.schedule().steps().to_vec());
        to.put(&self.places.list);
        to.put(&self.places.stats);
        self.places.policy.save(to);
    }

    fn load(&mut self, from: &mut Reader) -> Result<(), Damaged> {
        (self.paused, self.places.list, self.places.stats) = from.get()?;
        self.places.policy.load(from)
    }

    fn replay(&mut self, visitor: &mut impl Visitor<S>) -> Result<(), Stop<S::Need>> {
        for choice in std::mem::take(&mut self.paused) {
            take_again(&mut self.trace, &[choice], visitor)?;
            self.places.policy.stepped(&self.trace);
        }
        Ok(())
    }
}
