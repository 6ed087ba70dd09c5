//! What the processes report to each other between two levels.

use preempt_system::{Capacity, Failure};

use crate::codec::{Damaged, Reader, Save, Writer, save_fields};
use crate::engine::execution::Stop;
use crate::plan::coverage::{Coverage, Limit};

/// A byte that tells the kinds of gathered data from each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tag<const KIND: u8>;

impl<const KIND: u8> Save for Tag<KIND> {
    fn save(&self, to: &mut Writer<'_>) {
        to.put(&KIND);
    }

    fn load(from: &mut Reader) -> Result<Self, Damaged> {
        if from.get::<u8>()? == KIND { Ok(Tag) } else { Err(Damaged) }
    }
}

/// The tag of reports.
const REPORT: u8 = 1;

/// What a process reports between two levels.
#[derive(Default)]
pub(super) struct LevelReport {
    /// Tells reports from other data that is gathered.
    pub(super) tag: Tag<REPORT>,
    /// The counts since the last report.
    pub(super) seen: Coverage,
    /// Its states of this level that it has not expanded, because the search pauses, and its
    /// states of the next level.
    pub(super) rest: u64,
    pub(super) waiting: u64,
    /// New failures, and the number of steps to each.
    pub(super) failures: Vec<(Failure, u32)>,
    /// Why this process has stopped.
    pub(super) capacity: Option<Capacity>,
    pub(super) limit: Option<u8>,
    /// Whether it pauses for a checkpoint, and the limit at which it wants to end after that.
    pub(super) pauses: bool,
    pub(super) ends_at: Option<u8>,
    /// The number of the next checkpoint. In process 0 only, and only if it keeps checkpoints.
    pub(super) epoch: Option<u64>,
    /// The memory of its store, and the most of its waiting states.
    pub(super) store_bytes: u64,
    pub(super) frontier_bytes: u64,
    pub(super) frontier: u64,
    /// The most bytes of its files.
    pub(super) disk_bytes: u64,
    /// The width of its states and the hash of the initial one: processes that pack states in
    /// different ways must not exchange them.
    pub(super) words: u64,
    pub(super) initial: u64,
}

save_fields!(LevelReport {
    tag,
    seen,
    rest,
    waiting,
    failures,
    capacity,
    limit,
    pauses,
    ends_at,
    epoch,
    store_bytes,
    frontier_bytes,
    frontier,
    disk_bytes,
    words,
    initial
});

/// The limits that can end a process, by their number in a report.
const LIMITS: [Limit; 6] =
    [Limit::Interrupt, Limit::Time, Limit::Memory, Limit::States, Limit::Disk, Limit::Damage];

/// The number of a limit in a report.
pub(super) fn number_of(limit: Limit) -> Option<u8> {
    let number = LIMITS.iter().position(|&other| other == limit);
    Some(number.expect("no other limit ends a single process") as u8)
}

/// The sum of the reports of all processes.
pub(super) struct LevelSum {
    pub(super) seen: Coverage,
    pub(super) rest: u64,
    pub(super) waiting: u64,
    pub(super) failures: Vec<(Failure, u32)>,
    pub(super) stop: Option<Stop>,
    /// The number of the checkpoint that all processes write now.
    pub(super) checkpoint: Option<u64>,
    /// The limit at which the search ends after that.
    pub(super) ends_at: Option<Limit>,
    pub(super) store_bytes: u64,
    pub(super) frontier_bytes: u64,
    pub(super) frontier: u64,
    pub(super) disk_bytes: u64,
}

impl LevelSum {
    /// Fails if a report is not one of this search.
    pub(super) fn of(reports: &[Vec<u8>]) -> Result<LevelSum, Damaged> {
        let reports: Result<Vec<LevelReport>, _> =
            reports.iter().map(|report| read(report)).collect();
        let reports = reports?;
        // A process that has no initial state has stopped.
        let initial = reports.iter().map(|report| report.initial).filter(|&initial| initial != 0);
        let differ = |of: Vec<u64>| of.windows(2).any(|pair| pair[0] != pair[1]);
        if differ(initial.collect()) || differ(reports.iter().map(|report| report.words).collect())
        {
            return Err(Damaged);
        }
        let mut seen = Coverage::default();
        reports.iter().for_each(|report| seen.add(&report.seen));
        // Larger states discard all results of this attempt, so nothing else matters. Which of
        // several needs comes first must not depend on speed.
        let capacity = reports.iter().filter_map(|report| report.capacity);
        let restart = capacity.min_by_key(|need| (need.part, need.value)).map(Stop::Restart);
        let limit = first_limit(reports.iter().map(|report| report.limit))?;
        let ends_at = first_limit(reports.iter().map(|report| report.ends_at))?;
        let pauses = reports.iter().any(|report| report.pauses);
        let sum = |of: fn(&LevelReport) -> u64| reports.iter().map(of).fold(0, u64::saturating_add);
        Ok(LevelSum {
            seen,
            rest: sum(|report| report.rest),
            waiting: sum(|report| report.waiting),
            checkpoint: reports[0].epoch.filter(|_| pauses),
            ends_at,
            stop: restart.or(limit.map(Stop::Limit)),
            store_bytes: sum(|report| report.store_bytes),
            frontier_bytes: sum(|report| report.frontier_bytes),
            frontier: sum(|report| report.frontier),
            disk_bytes: sum(|report| report.disk_bytes),
            failures: reports.into_iter().flat_map(|report| report.failures).collect(),
        })
    }
}

/// The first limit of some reports.
fn first_limit(mut limits: impl Iterator<Item = Option<u8>>) -> Result<Option<Limit>, Damaged> {
    match limits.find_map(|limit| limit) {
        Some(number) => Ok(Some(*LIMITS.get(usize::from(number)).ok_or(Damaged)?)),
        None => Ok(None),
    }
}

/// Reads a value that is all of `bytes`.
pub(super) fn read<T: Save>(bytes: &[u8]) -> Result<T, Damaged> {
    let mut from = Reader::of(bytes.to_vec());
    let value = from.get()?;
    if from.is_at_its_end() { Ok(value) } else { Err(Damaged) }
}
