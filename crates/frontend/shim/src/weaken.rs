//! Which orderings a test needs: [`Check::weaken`].
//!
//! The test is searched once as it is, which also yields the orderings that it uses. Then it is
//! searched again for each of them, with that one changed. If the test passes, each ordering is
//! made one step weaker: `SeqCst` becomes acquire, release or both, `AcqRel` becomes `Acquire` and
//! `Release` in two searches, and these become `Relaxed`; a fence that cannot be weaker is removed.
//! If the test fails, each ordering is made stronger, least first, until the test passes. Orderings
//! that the search has not met before the failure are not in the failing execution, so changing
//! them would not prevent it.
//!
//! "Not needed" means that the search with the weaker ordering was complete and that this ordering
//! was the only one that changed.

use std::fmt;
use std::panic::Location as Site;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use preempt_explore::Outcome;
use preempt_system::{Failure, Verdict};

use crate::check::Check;
use crate::report::Format;
use crate::runtime::orderings::{OrderingPlace, OrderingRole, Orderings, Replacement};

/// Which orderings a test needs, or which stronger ones would repair it. [`Check::weaken`] returns
/// it; its text is a table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OrderingReport {
    /// The failure of the test as it is.
    pub failure: Option<Failure>,
    /// The orderings that were tried, in the order of the source.
    pub trials: Vec<OrderingTrial>,
}

/// The test with one ordering changed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct OrderingTrial {
    /// The place of the operation.
    pub site: &'static Site<'static>,
    /// The name of the operation: `store`, `compare_exchange`, `fence`.
    pub operation: &'static str,
    /// What the ordering applies to.
    pub role: OrderingRole,
    /// The ordering in the program.
    pub ordering: Ordering,
    /// The ordering that replaced it; `None` for a fence that was removed.
    pub tried: Option<Ordering>,
    /// The result of the search.
    pub result: TrialResult,
}

/// The result of a search with one ordering changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TrialResult {
    /// The test fails.
    Fails(Failure),
    /// The test passes, and the search was complete.
    Passes,
    /// No failure was found, and the search was not complete.
    NotComplete {
        /// The bound within which there is no failure.
        bound: Option<u32>,
        /// What was covered: see [`Outcome::guarantee`].
        covered: String,
    },
}

impl TrialResult {
    fn of(outcome: &Outcome) -> TrialResult {
        match (outcome.findings.first(), outcome.complete) {
            (Some(finding), _) => TrialResult::Fails(finding.failure.clone()),
            (None, true) if outcome.verdict == Verdict::Ok => TrialResult::Passes,
            _ => TrialResult::NotComplete {
                bound: outcome.bounds.last().map(|completed| completed.bound),
                covered: outcome.guarantee(),
            },
        }
    }

    /// Whether a failure was found.
    pub fn fails(&self) -> bool {
        matches!(self, TrialResult::Fails(_))
    }
}

/// The orderings that are one step weaker. `None` removes a fence.
fn weaker(role: OrderingRole, order: Ordering) -> Vec<Option<Ordering>> {
    use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
    let least = if role == OrderingRole::Fence { None } else { Some(Relaxed) };
    match (order, role) {
        (SeqCst, OrderingRole::Load | OrderingRole::Failure) => vec![Some(Acquire)],
        (SeqCst, OrderingRole::Store) => vec![Some(Release)],
        (SeqCst, _) => vec![Some(AcqRel)],
        (AcqRel, _) => vec![Some(Acquire), Some(Release)],
        (Acquire | Release, _) => vec![least],
        _ => vec![],
    }
}

/// All stronger orderings, none before a weaker one.
fn stronger(role: OrderingRole, order: Ordering) -> Vec<Ordering> {
    use Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
    let all = match role {
        OrderingRole::Load | OrderingRole::Failure => vec![Acquire, SeqCst],
        OrderingRole::Store => vec![Release, SeqCst],
        _ => vec![Acquire, Release, AcqRel, SeqCst],
    };
    let is_stronger = |&other: &Ordering| match order {
        Relaxed => true,
        Acquire | Release => !matches!(other, Acquire | Release),
        AcqRel => other == SeqCst,
        _ => false,
    };
    all.into_iter().filter(is_stronger).collect()
}

impl Check {
    /// Finds out which orderings of atomics and fences the test needs. If the test passes, each
    /// ordering is tried one step weaker; if it fails, stronger. Every trial is a search with the
    /// settings of this check, and changes one ordering, at one place of the source.
    ///
    /// ```
    /// use preempt::sync::atomic::{AtomicBool, AtomicU32, Ordering::{Acquire, Relaxed, SeqCst}};
    /// use preempt::{Check, thread};
    ///
    /// let orderings = Check::new().weaken(|| {
    ///     let (data, ready) = (AtomicU32::new(0), AtomicBool::new(false));
    ///     thread::scope(|s| {
    ///         s.spawn(|| {
    ///             data.store(7, Relaxed);
    ///             ready.store(true, SeqCst); // `Release` is enough
    ///         });
    ///         s.spawn(|| {
    ///             if ready.load(Acquire) { // needed
    ///                 assert_eq!(data.load(Relaxed), 7);
    ///             }
    ///         });
    ///     });
    /// });
    /// let [store, load] = &orderings.trials[..] else { panic!("{orderings}") };
    /// assert!(!store.result.fails() && load.result.fails());
    /// ```
    ///
    /// Panics if the check is refused: see [`Check::try_run`].
    #[track_caller]
    pub fn weaken<F: Fn() + Sync>(&self, f: F) -> OrderingReport {
        let place = Site::caller();
        let search = |orderings: &Arc<Orderings>| {
            let check = Check { orderings: Some(orderings.clone()), ..self.clone().quiet() };
            check.explore_at(&f, Format::Failure, place).outcome
        };
        let used = Arc::default();
        let outcome = search(&used);
        let failure = outcome.findings.first().map(|finding| finding.failure.clone());
        let mut trials = Vec::new();
        for (place, (operation, ordering)) in used.used() {
            let OrderingPlace { site, role } = place;
            let attempt = |by: Option<Ordering>| {
                let replaced = Orderings::with(Replacement { place, by });
                let result = TrialResult::of(&search(&Arc::new(replaced)));
                OrderingTrial { site, operation, role, ordering, tried: by, result }
            };
            if failure.is_none() {
                trials.extend(weaker(role, ordering).into_iter().map(attempt));
            } else {
                trials.extend(least_repair(stronger(role, ordering), attempt));
            }
        }
        OrderingReport { failure, trials }
    }
}

/// The first attempt after which the test does not fail, or the last one.
fn least_repair(
    stronger: Vec<Ordering>,
    attempt: impl Fn(Option<Ordering>) -> OrderingTrial,
) -> Option<OrderingTrial> {
    let mut last = None;
    for ordering in stronger {
        let trial = attempt(Some(ordering));
        let fails = trial.result.fails();
        last = Some(trial);
        if !fails {
            break;
        }
    }
    last
}

impl OrderingTrial {
    fn operation(&self) -> String {
        match self.role {
            OrderingRole::Success => format!("{}, success", self.operation),
            OrderingRole::Failure => format!("{}, failure", self.operation),
            OrderingRole::Load if self.operation != "load" => format!("{}, load", self.operation),
            _ => self.operation.to_owned(),
        }
    }

    fn change(&self) -> String {
        match self.tried {
            Some(tried) => format!("{:?} -> {tried:?}", self.ordering),
            None => format!("{:?} -> removed", self.ordering),
        }
    }

    /// The result in words, for a test that fails or passes as it is.
    fn verdict(&self, fails: bool) -> String {
        match (&self.result, fails) {
            (TrialResult::Fails(failure), false) => {
                let kind = failure.kind.word();
                let message = failure.message.lines().next().unwrap_or_default();
                format!("needed: {kind}: {message}")
            }
            (TrialResult::Fails(_), true) => "does not help".to_owned(),
            (TrialResult::Passes, false) => "not needed".to_owned(),
            (TrialResult::Passes, true) => "repairs the test".to_owned(),
            (TrialResult::NotComplete { bound: Some(bound), .. }, _) => {
                format!("no failure up to bound {bound}")
            }
            (TrialResult::NotComplete { covered, .. }, _) => format!("no failure: {covered}"),
        }
    }
}

impl fmt::Display for OrderingReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fails = self.failure.is_some();
        match &self.failure {
            Some(failure) => {
                let message = failure.message.lines().next().unwrap_or_default();
                writeln!(f, "the test fails: {}: {message}", failure.kind.word())?;
            }
            None => writeln!(f, "the test passes")?,
        }
        if self.trials.is_empty() {
            let way = if fails { "stronger" } else { "weaker" };
            return writeln!(f, "it uses no ordering that could be {way}");
        }
        writeln!(f, "each ordering was changed alone:\n")?;
        let rows: Vec<[String; 4]> = self
            .trials
            .iter()
            .map(|trial| {
                [trial.site.to_string(), trial.operation(), trial.change(), trial.verdict(fails)]
            })
            .collect();
        let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
        let (places, operations, changes) = (width(0), width(1), width(2));
        for [place, operation, change, verdict] in &rows {
            writeln!(
                f,
                "  {place:places$}  {operation:operations$}  {change:changes$}  {verdict}"
            )?;
        }
        Ok(())
    }
}
