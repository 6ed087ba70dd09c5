//! Executions under weak memory: the alternatives of accesses, and the name of the execution.
//!
//! # Why the newest store can always be read
//!
//! Alternative 0 is consistent in every execution, so an abandoned execution can run to its end,
//! and a loop that is followed by itself reads the newest stores.
//!
//! # Loops that read old values
//!
//! A thread that reads an old value in every round of a loop is not waiting for anything: what it
//! waits for may have been stored already. Stores become visible in finite time, so it must not
//! read the old value forever. When its rounds repeat, which would hold it back under sequential
//! consistency, it continues with the newest stores instead. The executions that are left out are
//! those in which it reads old values for more rounds, which matter if the loop counts its rounds;
//! the coverage names that assumption.

use preempt_replay::{EarlyWake, NO_OBJECT, Op, OpKind, StartedStep};
use preempt_system::memory::{GraphStep, Memory, MemoryAccess};
use preempt_system::{Access, Choice, Footprint, Pending, Status, ThreadId, VectorClock};

use super::{Execution, Phase};
use crate::program::Assumption;
use crate::runtime::restart::{Obstacle, RestartReason};
use crate::runtime::{Runtime, site};

impl Execution<'_> {
    /// What a thread would do next, with the alternatives of its access to an atomic.
    pub(super) fn ask_weak(
        &mut self,
        thread: ThreadId,
        pending: &mut Pending,
    ) -> Result<(), RestartReason> {
        if self.phase != Phase::Live {
            // The memory is where the threads are, not where the path ends.
            self.catch_up()?;
        }
        let runtime = self.read();
        runtime.recording.ask_into(thread, pending);
        pending.stale_from = preempt_system::pending::NEVER_STALE;
        let (Some(memory), Some(op)) = (&runtime.weak_memory, runtime.recording.next_op(thread))
        else {
            return Ok(());
        };
        let Some((access, is_weak)) = access_of(runtime, thread, op) else { return Ok(()) };
        if !matches!(pending.status, Status::Enabled | Status::Spinning) {
            return Ok(());
        }
        let done = runtime.recording.state().count(thread.index());
        let only_newest = runtime.recording.history(thread).spins_on_stale_values_after(done);
        if only_newest {
            pending.status = Status::Enabled;
        }
        let clocks = &runtime.races.clocks;
        let mut all = memory.alternatives(clocks, thread, op.object, access);
        if only_newest {
            all.truncate(1);
        }
        if let (true, MemoryAccess::Exchange { expected, failure, .. }) = (is_weak, access) {
            // An odd alternative of a weak exchange is a spurious failure: it reads the expected
            // value.
            let read = MemoryAccess::Load(failure);
            let read = memory.alternatives(clocks, thread, op.object, read);
            all.iter_mut().for_each(|nth| *nth *= 2);
            let is_expected = |&nth: &u32| memory.stored(op.object, nth).value == expected;
            let newest = if only_newest { 1 } else { u32::MAX };
            all.extend(
                read.into_iter()
                    .filter(is_expected)
                    .filter(|&nth| nth < newest)
                    .map(|nth| 2 * nth + 1),
            );
            all.sort_unstable();
        }
        let (_, footprint) = pending.footprints[0].clone();
        pending.footprints.clear();
        pending.footprints.extend(all.into_iter().map(|nth| (nth, footprint.clone())));
        pending.stale_from = op.stale_from();
        Ok(())
    }

    /// The next step of a thread as a part of the execution graph. Refuses what a search over
    /// graphs does not handle.
    pub(super) fn describe_step(&mut self, thread: ThreadId) -> Result<GraphStep, RestartReason> {
        if self.phase != Phase::Live {
            self.catch_up()?;
        }
        let runtime = self.read();
        let (Some(memory), Some(op)) = (&runtime.weak_memory, runtime.recording.next_op(thread))
        else {
            return Ok(GraphStep::Other(Footprint::new()));
        };
        let done = runtime.recording.state().count(thread.index());
        let obstacle = if runtime.recording.history(thread).spins_after(done) {
            Some(Obstacle::Loop)
        } else if op.is_atomic() && memory.initial_writes(op.object) > 1 {
            Some(Obstacle::PlainWrite)
        } else {
            obstacle(op.kind)
        };
        if let Some(obstacle) = obstacle {
            return Err(RestartReason::NoGraphs(obstacle, op.verb, op.site));
        }
        let clocks = &runtime.races.clocks;
        let reads = |order| {
            memory.alternatives(clocks, thread, op.object, MemoryAccess::Load(order)).into_iter()
        };
        Ok(match access_of(runtime, thread, op) {
            Some((MemoryAccess::Load(_), _)) => GraphStep::Load,
            Some((MemoryAccess::Store(_), _)) => GraphStep::Store,
            Some((MemoryAccess::Update(order), _)) => {
                GraphStep::Update(reads(order).map(|back| (back, true)).collect())
            }
            Some((MemoryAccess::Exchange { expected, success, failure }, _)) => {
                let writes = |back: u32| memory.stored(op.object, back).value == expected;
                let succeeds = reads(success).filter(|&back| writes(back)).map(|back| (back, true));
                let fails = reads(failure).filter(|&back| !writes(back)).map(|back| (back, false));
                GraphStep::Update(succeeds.chain(fails).collect())
            }
            None => GraphStep::Other(runtime.recording.footprint(thread, op)),
        })
    }

    /// Records the name of the execution after its last step.
    pub(super) fn record_name(&mut self) -> Result<(), RestartReason> {
        if matches!(self.phase, Phase::Rewound | Phase::Adrift) {
            self.catch_up()?;
        }
        let name = self.read().weak_memory.as_ref().map(|memory| memory.name());
        self.names.push(name.expect("the caller has checked that memory is weak"));
        Ok(())
    }

    /// Records that a thread which has read old values for some rounds reads the newest ones next.
    #[cold]
    pub(super) fn rely_on_visibility(&self, thread: ThreadId) {
        if let Some(op) = self.read().recording.last_op(thread) {
            self.program.assumptions.add(Assumption::Visible(site::of(op.site)));
        }
    }
}

/// The access of an operation on an atomic, and whether it may fail spuriously; `None` for another
/// operation.
fn access_of(runtime: &Runtime, thread: ThreadId, op: &Op) -> Option<(MemoryAccess, bool)> {
    let expected = runtime.threads[thread.index()].expected;
    Some(match op.kind {
        OpKind::Load(order) => (MemoryAccess::Load(order), false),
        OpKind::Store(order) => (MemoryAccess::Store(order), false),
        OpKind::Update(order) => (MemoryAccess::Update(order), false),
        OpKind::CompareExchange { success, failure } => {
            (MemoryAccess::Exchange { expected, success, failure }, false)
        }
        OpKind::WeakCompareExchange { success, failure } => {
            (MemoryAccess::Exchange { expected, success, failure }, true)
        }
        _ => return None,
    })
}

/// Why a search over execution graphs does not handle an operation.
fn obstacle(kind: OpKind) -> Option<Obstacle> {
    let is_handled = match kind {
        OpKind::WeakCompareExchange { .. } | OpKind::Assume => false,
        OpKind::Park { early } | OpKind::Wake { early } => early != EarlyWake::Spurious,
        OpKind::Wait | OpKind::Downgrade | OpKind::Object(_) => true,
        OpKind::Load(_) | OpKind::Store(_) | OpKind::Update(_) => true,
        OpKind::CompareExchange { .. } | OpKind::Fence => true,
        OpKind::Touch | OpKind::Peek | OpKind::Choose(_) => true,
        OpKind::Yield | OpKind::Finish | OpKind::Call(_) | OpKind::Return => true,
    };
    (!is_handled).then_some(Obstacle::Operation)
}

/// An operation that is not an access to an atomic: it synchronises, and is an event of the
/// execution.
pub(super) fn synchronise(runtime: &mut Runtime, choice: Choice, step: StartedStep, reply: i64) {
    let op = *runtime.recording.op(step);
    let Choice { thread, alternative } = choice;
    // A fence is an event when it is performed.
    if op.is_atomic() || op.kind == OpKind::Fence {
        return;
    }
    let clocks = &mut runtime.races.clocks;
    clocks.epoch(thread);
    let before = clocks.now(thread).map_or_else(VectorClock::new, VectorClock::clone);
    runtime.synchronise(thread, &op, alternative, reply);
    let after = runtime.races.clocks.now(thread).expect("a running thread has an epoch");
    let objects = runtime.recording.names().objects();
    // A failed attempt counts as a write here, and a timeout as an access to the mutex too: a
    // search over execution graphs must get the same name, see `count_attempts_as_writes`.
    let access = |object: u32| match op.kind {
        _ if op.is_load() => Access::Read,
        OpKind::Wake { early: EarlyWake::Never } if object == op.object => Access::Read,
        OpKind::Object(action) => {
            objects.kind(object).map_or(Access::Write, |kind| kind.access(action))
        }
        _ => Access::Write,
    };
    let used = op.objects().filter(|&(_, object)| object != NO_OBJECT);
    let used: smallvec::SmallVec<[(u32, Access); 2]> =
        used.map(|(_, object)| (object, access(object))).collect();
    let memory = runtime.weak_memory.as_mut().expect("the caller has checked it");
    memory.act(thread, used.iter().copied(), alternative, (&before, after));
    runtime.begin_period(thread);
}
