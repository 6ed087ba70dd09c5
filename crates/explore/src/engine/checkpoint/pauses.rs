//! When a search pauses, and what the layers around it add to its checkpoints.
//!
//! A search may be part of others: one worker searches again after several, a search starts again
//! with larger states, or with a variable that races. Each such layer has a *frame*: the data that
//! it needs to start the inner search again. Frames do not change while the inner search runs, so a
//! checkpoint consists of what the [program](super::Resumable) has learned, the frames from the
//! outermost on, and what the search itself writes. It is read in the same order.

use std::io::{self, Write};
use std::sync::Mutex;
use std::time::Duration;

use super::shards::{ShardAccess, ShardedCheckpoints};
use super::{Checkpoints, Head, Keeper, Processes, settings};
use crate::codec::{Damaged, Reader, Writer};
use crate::engine::lock;
use crate::plan::Plan;
use crate::plan::coverage::Limit;
use crate::plan::{Refusal, Unusable};

/// The layers around a search that have a frame, from the outermost on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Layer {
    /// Searches again with promoted variables. Its frame is empty if there are none.
    Promotions,
    /// Searches again with what the program turned out to need.
    Restarts,
    /// Searches again with one worker after several.
    SerialRerun,
}

/// The data with which a search pauses and continues from a checkpoint.
pub(crate) struct Pauses<'a> {
    keeper: &'a dyn Keeper,
    program: u64,
    plan: Vec<(String, String)>,
    frames: Mutex<Vec<Vec<u8>>>,
    /// The limit at which the search ends when it has paused.
    limit: Mutex<Option<Limit>>,
    /// The unread rest of the checkpoint from which the search continues, and the time that it had
    /// taken.
    saved: Mutex<Option<Reader>>,
    elapsed: Mutex<Duration>,
    /// Why the checkpoint cannot be resumed although its checksum is right.
    unusable: Mutex<Option<Unusable>>,
    shards: ShardAccess<'a>,
}

impl<'a> Pauses<'a> {
    /// Prepares a search by this plan. Refuses a checkpoint of another search.
    pub(crate) fn new(plan: &Plan, checkpoints: Checkpoints<'a>) -> Result<Pauses<'a>, Refusal> {
        Pauses::of(plan, Processes::One, checkpoints, ShardAccess::default())
    }

    /// Prepares a search in several processes.
    pub(crate) fn distributed(
        plan: &Plan,
        checkpoints: ShardedCheckpoints<'a>,
    ) -> Result<Pauses<'a>, Refusal> {
        let (checkpoints, shards) = checkpoints.split();
        Pauses::of(plan, Processes::Several, checkpoints, shards)
    }

    fn of(
        plan: &Plan,
        processes: Processes,
        checkpoints: Checkpoints<'a>,
        shards: ShardAccess<'a>,
    ) -> Result<Pauses<'a>, Refusal> {
        let Checkpoints { program, keeper, saved } = checkpoints;
        let plan = settings(plan, processes);
        if let Some(saved) = &saved {
            saved.fits_settings(program, &plan)?;
        }
        let elapsed = saved.as_ref().map(|saved| saved.head.elapsed).unwrap_or_default();
        Ok(Pauses {
            keeper,
            program,
            plan,
            frames: Mutex::default(),
            limit: Mutex::default(),
            saved: Mutex::new(saved.map(|saved| saved.rest)),
            elapsed: Mutex::new(elapsed),
            unusable: Mutex::default(),
            shards,
        })
    }

    pub(crate) fn keeper(&self) -> &dyn Keeper {
        self.keeper
    }

    /// The shards of a search in several processes.
    pub(crate) fn shards(&self) -> ShardAccess<'a> {
        self.shards
    }

    /// Sets the frame of a layer, and drops those within it.
    pub(crate) fn frame(&self, layer: Layer, write: impl FnOnce(&mut Writer<'_>)) {
        let layer = layer as usize;
        let mut frames = lock(&self.frames);
        assert!(layer <= frames.len(), "a layer has a frame before those within it");
        frames.truncate(layer);
        frames.push(Writer::collect(write));
    }

    /// The search ends at this limit when it has paused. The first limit counts.
    pub(crate) fn end_at(&self, limit: Limit) {
        lock(&self.limit).get_or_insert(limit);
    }

    /// The limit at which the search ends when it has paused.
    pub(crate) fn pending_limit(&self) -> Option<Limit> {
        *lock(&self.limit)
    }

    /// Whether the search ends when it has paused.
    pub(crate) fn is_ending(&self) -> bool {
        self.pending_limit().is_some()
    }

    /// Takes the limit at which the search ends now.
    pub(crate) fn limit(&self) -> Option<Limit> {
        lock(&self.limit).take()
    }

    /// Gives a checkpoint to the keeper. `learned` writes what the program has learned, `rest` the
    /// remaining work.
    pub(crate) fn keep(
        &self,
        elapsed: Duration,
        learned: &dyn Fn(&mut Writer<'_>),
        rest: &dyn Fn(&mut Writer<'_>),
    ) {
        self.keeper.keep(&|to| self.write(elapsed, learned, rest, to));
    }

    /// Writes a checkpoint.
    pub(super) fn write(
        &self,
        elapsed: Duration,
        learned: &dyn Fn(&mut Writer<'_>),
        rest: &dyn Fn(&mut Writer<'_>),
        to: &mut dyn Write,
    ) -> io::Result<()> {
        let mut writer = Writer::new(to);
        Head { program: self.program, plan: self.plan.clone(), elapsed }.write(&mut writer);
        learned(&mut writer);
        lock(&self.frames).iter().for_each(|frame| writer.bytes(frame));
        rest(&mut writer);
        writer.finish().map(drop)
    }

    /// The time that the resumed search had taken. Only the first call gets it.
    pub(crate) fn elapsed_before(&self) -> Duration {
        std::mem::take(&mut *lock(&self.elapsed))
    }

    /// Reads the frame of a layer, or the rest of a checkpoint, if the search continues from one.
    pub(crate) fn read<T>(
        &self,
        read: impl FnOnce(&mut Reader) -> Result<T, Damaged>,
    ) -> Option<T> {
        let mut saved = lock(&self.saved);
        match read(saved.as_mut()?) {
            Ok(value) => Some(value),
            Err(Damaged) => {
                drop(saved);
                self.refuse();
                None
            }
        }
    }

    /// The contents of the checkpoint do not belong to the search.
    pub(crate) fn refuse(&self) {
        self.refuse_because(Unusable::DoesNotFit);
    }

    /// The same with a reason. The first one counts.
    pub(crate) fn refuse_because(&self, why: Unusable) {
        *lock(&self.saved) = None;
        lock(&self.unusable).get_or_insert(why);
    }

    /// The search has read the checkpoint. If a part of it is unread, it is damaged.
    pub(crate) fn is_read(&self) {
        if lock(&self.saved).take().is_some_and(|rest| !rest.is_at_its_end()) {
            self.refuse();
        }
    }

    /// Whether there is a checkpoint that was not read yet.
    pub(crate) fn is_resuming(&self) -> bool {
        lock(&self.saved).is_some()
    }

    /// Why the checkpoint could not be read although its checksum is right.
    pub(crate) fn unusable(&self) -> Option<Unusable> {
        lock(&self.unusable).clone()
    }

    /// Whether the checkpoint could not be read although its checksum is right.
    pub(crate) fn is_damaged(&self) -> bool {
        lock(&self.unusable).is_some()
    }
}
